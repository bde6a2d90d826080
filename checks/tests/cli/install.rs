//! Does the command of the README install a program that runs?

use lanemark_checks::{INSTALL, install, root};
use std::path::Path;
use std::process::Command;

/// Output of the installed program, run outside the repository.
fn output(program: &Path, argument: &str) -> String {
    let done = Command::new(program).arg(argument).current_dir(program.parent().unwrap()).output().unwrap();
    assert!(done.status.success(), "{argument}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn the_command_of_the_readme_installs_a_program_that_runs() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let command = format!("cargo {}", INSTALL.join(" "));
    assert!(readme.lines().any(|line| line == command), "{command} is not in README.md");
    let place = tempfile::tempdir().unwrap();
    let program = install(place.path());
    let version = output(&program, "--version");
    assert!(version.starts_with(concat!("lanemark ", env!("CARGO_PKG_VERSION"))), "{version}");
    assert!(output(&program, "questions").contains("dma_read_bandwidth"));
}
