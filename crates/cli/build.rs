//! Build script: embeds commit, profile and target in the output of `lanemark --version`.

use std::process::Command;

fn main() {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
        String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    // Outside a git checkout, for example in a source archive, there is no commit.
    let commit = git(&["rev-parse", "--short=10", "HEAD"]).map(|commit| format!("{commit}, ")).unwrap_or_default();
    if let Some(head) = git(&["rev-parse", "--git-path", "HEAD"]) {
        println!("cargo::rerun-if-changed={head}");
    }
    if let Some(branch) = git(&["symbolic-ref", "-q", "HEAD"]).and_then(|name| git(&["rev-parse", "--git-path", &name]))
    {
        println!("cargo::rerun-if-changed={branch}");
    }
    println!("cargo::rerun-if-changed=build.rs");
    let version = variable("CARGO_PKG_VERSION");
    println!("cargo::rustc-env=LANEMARK_VERSION={version} ({commit}{}, {})", variable("PROFILE"), variable("TARGET"));
}
