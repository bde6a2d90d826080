//! The program `lanemark`.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let program = std::env::current_exe().ok().map(Into::into).or_else(|| words.next());
    let arguments = std::env::args_os().skip(1).collect();
    let run = move || lanemark_cli::run(program.into_iter().collect(), arguments);
    ExitCode::from(lanemark_cli::with_enough_stack(run))
}
