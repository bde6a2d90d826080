//! The command `lanemark`: parses arguments, calls the crates and prints their results. It computes nothing.

#![forbid(unsafe_code)]

mod advise;
mod args;
mod baseline;
mod bench;
mod compare;
mod doctor;
mod driver;
mod failure;
mod input;
mod interrupt;
mod listing;
mod lspci;
mod output;
mod overview;
mod paper;
mod platform_file;
mod progress;
mod recover;
mod repeat;
mod report;
mod request;
mod sweep;
mod trace;
mod unknown;

use args::{Args, Command};
use clap::Parser;
use failure::{Failure, say};
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match args.command {
        Command::Bench(args) => bench::bench(&args),
        Command::Predict(args) => bench::predict(&args),
        Command::Advise(args) => advise::advise(&args),
        Command::Sweep(args) => sweep::sweep(&args),
        Command::Reproduce(args) => paper::reproduce(&args),
        Command::Fit(args) => paper::fit(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Recover(args) => recover::recover(&args),
        Command::Bind(args) => driver::bind(&args),
        Command::Unbind(args) => driver::unbind(&args),
        Command::Trace(args) => trace::trace(&args),
        Command::Lspci(args) => lspci::lspci(&args),
        Command::Report(args) => report::report(&args),
        Command::Compare(args) => compare::compare(&args),
        Command::Baselines(args) => baseline::list(&args),
        Command::Platforms(args) => listing::platforms(&args),
        Command::New(args) => platform_file::new(&args),
        Command::Check(args) => platform_file::check(&args),
        Command::Questions(args) => listing::questions(&args),
        Command::Kernels => listing::kernels(),
        Command::Schema(args) => listing::schema(&args),
        Command::Completions(args) => listing::completions(&args),
        Command::Man(args) => listing::man(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of standard output has closed it: this is not an error.
        Err(Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => {
            say(&format!("lanemark: {failure}"));
            ExitCode::from(failure.exit_code())
        }
    }
}
