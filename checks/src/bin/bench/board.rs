//! `lanemark.Board`, driven from Python TLP by TLP, beside the same board driven from Rust.

use super::cocotb::writes_per_s;
use super::{ROUNDS, row};
use lanemark_platform::Platform;
use std::process::Command;

/// What `checks/python/board_rate.py` calls its loops, and what they are.
const LOOPS: [(&str, &str); 2] = [
    ("taken_together", "board: 64 B writes from Python, thousand per CPU s (target: 200)"),
    ("answered_one_by_one", "  each answered by a device in Python, thousand TLPs per CPU s"),
];

pub fn board(card: &Platform) {
    let printed = match printed() {
        Ok(printed) => printed,
        Err(because) => return println!("  skipped: lanemark.Board, {because}"),
    };
    for (name, what) in LOOPS {
        let of_loop = printed.lines().filter_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
        row(what, of_loop.map(|rate| rate / 1e3).collect());
    }
    let Some(native) = (0..ROUNDS).map(|_| writes_per_s(card)).collect::<Option<Vec<f64>>>() else {
        return eprintln!("board: the simulated card did not receive every write");
    };
    row("  baseline: the same writes from Rust, thousand per second", native.iter().map(|rate| rate / 1e3).collect());
}

/// The output of `checks/python/board_rate.py`, with the package as users build it.
fn printed() -> Result<String, String> {
    let house = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let run = |command: &mut Command| {
        let output = command.current_dir(house).output();
        let output = output.map_err(|error| format!("because {command:?} cannot be run: {error}"))?;
        let (text, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let said = || format!("because {command:?} said: {}", error.lines().last().unwrap_or("nothing"));
        output.status.success().then(|| text.into_owned()).ok_or_else(said)
    };
    run(Command::new("checks/python/install").env("LANEMARK_WHEEL_PROFILE", "release"))?;
    run(Command::new(".tools/python/bin/python").arg("checks/python/board_rate.py"))
}
