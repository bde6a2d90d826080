//! The command `lanemark`: parses arguments, calls the crates and prints their results. It computes nothing.
//!
//! It is a library, because the command also comes with the Python package ([`run`]), and because functions of that package
//! take the options of commands ([`options`]) and show a fit as the command does ([`fit_text`]).

#![forbid(unsafe_code)]

mod advise;
mod args;
mod baseline;
mod bench;
mod compare;
mod copies;
mod corpus;
mod doctor;
mod driver;
mod failure;
mod fleet;
mod fuzz_rtl;
mod hang;
mod import;
mod input;
mod interrupt;
mod invocation;
mod listing;
mod lspci;
pub mod options;
mod output;
mod overview;
mod page;
mod paper;
mod platform_file;
mod progress;
mod recover;
mod repeat;
mod report;
mod request;
mod stack;
mod sweep;
mod trace;
mod unknown;

use args::{Args, Command};
use clap::Parser;
pub use failure::Failure;
use failure::say;
pub use import::{above_limit, imported_record};
pub use lanemark_import::ImportTool;
pub use page::record_page;
pub use stack::with_enough_stack;
use std::ffi::OsString;
pub use unknown::{fit_json, fit_text};

/// Runs the command with `arguments`, prints to standard output and standard error, and returns the exit code.
///
/// `program` starts it again with other arguments: the path of the program, or an interpreter and the name of a module. Only
/// the first call of a process has an effect on it.
///
/// ```
/// let words = |words: &[&str]| words.iter().map(Into::into).collect::<Vec<std::ffi::OsString>>();
/// assert_eq!(lanemark_cli::run(words(&["lanemark"]), words(&["platforms", "--json"])), 0);
/// assert_eq!(lanemark_cli::run(words(&["lanemark"]), words(&["predict", "--on", "no-such-card"])), 2);
/// ```
#[must_use]
pub fn run(program: Vec<OsString>, arguments: Vec<OsString>) -> u8 {
    invocation::set(program, arguments.clone());
    let name = OsString::from("lanemark");
    let args = match Args::try_parse_from(std::iter::once(name).chain(arguments)) {
        Ok(args) => args,
        Err(error) => {
            // Help is asked for and goes to standard output. A failed write is ignored.
            let _ = error.print();
            return u8::try_from(error.exit_code()).unwrap_or(2);
        }
    };
    let done = match args.command {
        Command::Bench(args) => bench::bench(&args),
        Command::Predict(args) => bench::predict(&args),
        Command::Advise(args) => advise::advise(&args),
        Command::Tune(args) => copies::tune(&args),
        Command::Sweep(args) => sweep::sweep(&args),
        Command::Reproduce(args) => paper::reproduce(&args),
        Command::Fit(args) => paper::fit(&args),
        Command::Import(args) => import::import(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Recover(args) => recover::recover(&args),
        Command::Bind(args) => driver::bind(&args),
        Command::Unbind(args) => driver::unbind(&args),
        Command::Trace(args) => trace::trace(&args),
        Command::FuzzRtl(args) => fuzz_rtl::fuzz_rtl(&args),
        Command::Lspci(args) => lspci::lspci(&args),
        Command::Report(args) => report::report(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Fleet(args) => fleet::fleet(&args),
        Command::Baselines(args) => baseline::list(&args),
        Command::Platforms(args) => listing::platforms(&args),
        Command::New(args) => platform_file::new(&args),
        Command::Check(args) if corpus::is_of_records(&args) => corpus::check(&args),
        Command::Check(args) => platform_file::check(&args),
        Command::Questions(args) => listing::questions(&args),
        Command::Kernels => listing::kernels(),
        Command::Schema(args) => listing::schema(&args),
        Command::Completions(args) => listing::completions(&args),
        Command::Man(args) => listing::man(&args),
    };
    match done {
        Ok(()) => 0,
        // The reader of standard output has closed it: this is not an error.
        Err(Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => 0,
        Err(failure) => {
            say(&format!("lanemark: {failure}"));
            failure.exit_code()
        }
    }
}
