//! Instructions of a part of this program, counted by valgrind. Unlike times, they do not depend on other work.

use std::process::{Command, Stdio};

/// Shown instead of a figure if valgrind is not installed.
pub const NOT_COUNTED: &str = "instructions are not counted: valgrind is not installed";

/// Instructions of one repetition: of this program with `arguments` and three times `few`, minus those with `few`, so
/// that start and end of the process do not count; `None` if valgrind is not installed or the program fails.
pub fn of(arguments: &[&str], few: u64) -> Option<f64> {
    let counted = |count: u64| {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(std::env::current_exe().ok()?);
        let out = command.args(arguments).arg(count.to_string()).stdout(Stdio::null()).output().ok()?;
        let said = String::from_utf8(out.stderr).ok().filter(|_| out.status.success())?;
        let line = said.lines().find_map(|line| line.split_once("Collected :"))?;
        line.1.trim().parse::<f64>().ok()
    };
    Some((counted(3 * few)? - counted(few)?) / (2 * few) as f64)
}
