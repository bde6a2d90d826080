//! The real `lspci`, unpacked by `checks/tools/lspci`.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

/// A path from the root of the repository.
pub fn house(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// Version of lspci, or the reason why it is not available.
pub fn version() -> Result<String, String> {
    run(&["--version"])
}

/// Output of lspci for a dump.
pub fn listing(dump: &str) -> Result<String, String> {
    let mut file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    file.write_all(dump.as_bytes()).map_err(|error| error.to_string())?;
    run(&["-n", "-vvv", "-F", &file.path().to_string_lossy()])
}

fn run(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(house("checks/tools/lspci")).args(arguments).env("LC_ALL", "C").output();
    let output = output.map_err(|error| format!("checks/tools/lspci does not start: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    match output.status.code() {
        Some(0) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        _ => Err(format!("{}: {said}", output.status)),
    }
}
