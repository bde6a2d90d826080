//! Commands as the pages write them, run with the program of this build.

use lanemark_checks::{lanemark, root};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A command of a page may take this long, also in a build that is not optimised.
const TIMEOUT: Duration = Duration::from_mins(5);

/// Exit code and output of a command.
pub struct Outcome {
    /// Its exit code.
    pub code: Option<i32>,
    /// Standard output, then standard error.
    pub output: String,
}

/// Runs one command of a page in `folder`. Of `make` only the targets are looked up.
///
/// # Errors
/// What is wrong with the command itself: not one of ours, or it takes too long.
pub fn run(command: &str, folder: &Path) -> Result<Outcome, String> {
    if let Some(special) = command.chars().find(|c| "|<>&;$`*".contains(*c)) {
        return Err(format!("'{special}' needs a shell, and this test has none"));
    }
    let words = words(command);
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["lanemark", arguments @ ..] | ["cargo", "run", "--release", "--", arguments @ ..] => {
            run_lanemark(arguments, folder)
        }
        ["make", targets @ ..] => match targets.iter().find(|target| !target.contains('=') && !is_target(target)) {
            Some(target) => Err(format!("the Makefile has no target {target}")),
            None => Ok(Outcome { code: Some(0), output: String::new() }),
        },
        _ => Err("only lanemark, cargo run --release -- and make are known here".to_owned()),
    }
}

/// Splits at blanks, except between quotes.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in command.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c.is_whitespace() => words.push(String::new()),
            _ => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn is_target(name: &str) -> bool {
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    makefile.lines().any(|line| line.starts_with(&format!("{name}:")))
}

fn run_lanemark(arguments: &[&str], folder: &Path) -> Result<Outcome, String> {
    let outside = tempfile::tempdir().unwrap();
    let path = |name: &str| outside.path().join(name);
    let file = |name: &str| Stdio::from(std::fs::File::create(path(name)).unwrap());
    let mut child = Command::new(lanemark())
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(file("stdout"))
        .stderr(file("stderr"))
        .spawn()
        .map_err(|error| error.to_string())?;
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            let read = |name: &str| String::from_utf8(std::fs::read(path(name)).unwrap()).unwrap();
            return Ok(Outcome { code: status.code(), output: read("stdout") + &read("stderr") });
        }
        if started.elapsed() > TIMEOUT {
            child.kill().unwrap();
            child.wait().unwrap();
            return Err(format!("takes longer than {} s", TIMEOUT.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_command_is_split_as_a_shell_would() {
    assert_eq!(words("lanemark bench  --on \"my card.toml\" 'x'"), ["lanemark", "bench", "--on", "my card.toml", "x"]);
}

#[test]
fn what_is_not_ours_is_refused() {
    let refused = |command| run(command, Path::new(".")).is_err();
    assert!(refused("rm -r target"));
    assert!(refused("make coffee"));
    assert!(refused("lanemark questions | head"));
    assert!(!refused("make test lint FUZZ_SECONDS=1"));
}
