//! Gives the shared library its SONAME.

use std::io::Write;

fn main() -> std::io::Result<()> {
    let mut cargo = std::io::stdout().lock();
    writeln!(cargo, "cargo::rerun-if-changed=build.rs")?;
    let is_linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux");
    if is_linux {
        // Before 1.0, a minor version may change the interface.
        let (major, minor) = (env!("CARGO_PKG_VERSION_MAJOR"), env!("CARGO_PKG_VERSION_MINOR"));
        let number = if major == "0" { format!("0.{minor}") } else { major.to_owned() };
        writeln!(cargo, "cargo::rustc-cdylib-link-arg=-Wl,-soname,liblanemark.so.{number}")?;
    }
    Ok(())
}
