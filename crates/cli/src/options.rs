//! Requests from the options of a command, for other interfaces to the same questions.
//!
//! Options are words, as on a command line, so that an interface has the same options, checks and messages as the command.

use crate::args::{Args, BenchArgs, Command, TraceArgs};
use crate::bench::check_formulas;
use crate::failure::Failure;
use crate::{request, trace};
use clap::{CommandFactory, Parser};
use lanemark_bench::Question;
use lanemark_runner::{Answerer, Request, Target, TraceRequest};
use std::collections::BTreeMap;

/// Builds the request of `bench` to these targets.
///
/// ```
/// use lanemark_cli::options;
/// use lanemark_runner::{Answerer, Target};
/// let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
/// let card: Target = "card-gen5-x16".parse()?;
/// let options = words(&["--question", "dma_read_latency", "--sizes", "64,4K"]);
/// let request = options::request(&options, vec![card.clone()], Answerer::Formulas)?;
/// assert_eq!((request.targets, request.axes.sizes), (vec![card.clone()], Some(vec![64, 4096])));
/// let refused = options::request(&words(&["--sizes", "many"]), vec![card], Answerer::Machines);
/// assert!(refused.err().unwrap().to_string().starts_with("invalid value 'many' for '--sizes <SIZES>'"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`Failure::Usage`] for an invalid option; with [`Answerer::Formulas`], also for options about samples.
pub fn request(options: &[String], targets: Vec<Target>, answerer: Answerer) -> Result<Request, Failure> {
    let args = bench_args(options)?;
    if answerer == Answerer::Formulas {
        check_formulas(&args)?;
    }
    request::request(&args, targets, answerer)
}

/// Builds the request of `trace` for one question on one target.
///
/// # Errors
/// [`Failure::Usage`] for an invalid option.
pub fn trace_request(options: &[String], target: Target, question: &'static Question) -> Result<TraceRequest, Failure> {
    let args = trace_args(options, &target.to_string(), question.name)?;
    trace::request(&args, target, question)
}

/// The options of a command by name, such as `no-fast-forward`, and whether each is a flag, which has no value; empty if there
/// is no such command.
///
/// ```
/// let options = lanemark_cli::options::names("bench");
/// assert!(options["no-fast-forward"] && !options["sizes"]);
/// ```
#[must_use]
pub fn names(command: &str) -> BTreeMap<String, bool> {
    let whole = Args::command();
    let found = whole.find_subcommand(command);
    let options = found.into_iter().flat_map(clap::Command::get_arguments);
    let named = options.filter_map(|option| Some((option.get_long()?.to_owned(), option)));
    named.map(|(name, option)| (name, !option.get_action().takes_values())).collect()
}

fn bench_args(options: &[String]) -> Result<BenchArgs, Failure> {
    match parsed("bench", options.to_vec())? {
        Command::Bench(args) => Ok(args),
        _ => Err(Failure::Usage("these are no options of bench".to_owned())),
    }
}

fn trace_args(options: &[String], target: &str, question: &str) -> Result<TraceArgs, Failure> {
    let named = ["--on", target, "--question", question].map(str::to_owned);
    match parsed("trace", [&named[..], options].concat())? {
        Command::Trace(args) => Ok(args),
        _ => Err(Failure::Usage("these are no options of trace".to_owned())),
    }
}

/// Parses the words of a command; an error is its first sentence, without the usage of the command line.
fn parsed(command: &str, options: Vec<String>) -> Result<Command, Failure> {
    let words = ["lanemark".to_owned(), command.to_owned()].into_iter().chain(options);
    Args::try_parse_from(words).map(|args| args.command).map_err(|error| {
        let text = error.to_string();
        let sentence = text.split("\n\n").next().unwrap_or_default();
        let sentence = sentence.strip_prefix("error: ").unwrap_or(sentence);
        Failure::Usage(sentence.split_whitespace().collect::<Vec<_>>().join(" "))
    })
}
