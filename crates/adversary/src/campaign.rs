//! Many seeds on all cores.

use crate::case::Case;
use crate::finding::Finding;
use crate::rule::Rule;
use crate::shrink;
use crate::situation::Coverage;
use crate::target::Target;
use crate::trial::{Outcome, run};
use lanemark_dut::Dut;
use lanemark_record::{Capture, Passed};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A broken rule, and the shortest case that shows it.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The lowest seed that breaks the rule.
    pub seed: u64,
    /// Number of seeds that break it.
    pub seeds: u64,
    /// The finding in the shortest case.
    pub finding: Finding,
    /// The shortest case.
    pub case: Case,
    /// TLPs of the shortest case.
    pub kept: Vec<Passed>,
}

impl Failure {
    /// Name of the file of the shortest case, such as `seed-7-poison.toml`.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("seed-{}-{}.toml", self.seed, self.finding.rule.row().name)
    }

    /// The TLPs of the shortest case as a capture.
    #[must_use]
    pub fn capture(&self) -> Capture {
        let about = format!("seed {}: {}", self.seed, self.finding);
        Capture { place: "device under test".to_owned(), about, frames: self.kept.clone(), ..Capture::default() }
    }
}

/// The result of many seeds.
#[derive(Clone, Default, Debug)]
pub struct Summary {
    /// Seeds that ran.
    pub seeds: u64,
    /// TLPs of both directions.
    pub tlps: u64,
    /// Clocks.
    pub clocks: u64,
    /// Situations that were created.
    pub coverage: Coverage,
    /// Broken rules.
    pub failures: Vec<Failure>,
}

/// A range of seeds, and what to do with them.
#[derive(Clone, Debug)]
pub struct Request {
    /// Seeds.
    pub seeds: Range<u64>,
    /// Whether the partner also breaks the rules.
    pub is_illegal: bool,
    /// Number of threads.
    pub threads: usize,
}

/// What all threads share.
#[derive(Default)]
struct Shared {
    summary: Summary,
    /// Lowest seed, number of seeds and index of the step by rule.
    broken: BTreeMap<Rule, (u64, u64)>,
    error: Option<String>,
}

/// Runs all seeds; `open` makes a device in its initial state for a seed, and `should_stop` ends the run early.
///
/// # Errors
/// The error of `open`.
pub fn campaign<D: Dut>(
    request: &Request,
    target: &Target,
    open: impl Fn(u64) -> Result<D, String> + Sync,
    should_stop: impl Fn() -> bool + Sync,
) -> Result<Summary, String> {
    let next = AtomicU64::new(request.seeds.start);
    let shared = Mutex::new(Shared::default());
    let work = || {
        while !should_stop() {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= request.seeds.end {
                break;
            }
            let case = Case::of_seed(seed, target, request.is_illegal);
            let outcome = open(seed).map(|mut dut| run(&mut dut, target, &case, false));
            let Ok(mut shared) = shared.lock() else { break };
            match outcome {
                Ok(outcome) => shared.add(seed, &outcome),
                Err(error) => {
                    shared.error.get_or_insert(error);
                    break;
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..request.threads.max(1) {
            if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                // The system permits no more threads: fewer of them run the same seeds.
                break;
            }
        }
        work();
    });
    let shared = shared.into_inner().map_err(|_| "a thread ended early".to_owned())?;
    if let Some(error) = shared.error {
        return Err(error);
    }
    let mut summary = shared.summary;
    for (rule, (seed, seeds)) in shared.broken {
        summary.failures.push(shortened(rule, seed, seeds, request, target, &open)?);
    }
    summary.failures.sort_by_key(|failure| failure.seed);
    Ok(summary)
}

impl Shared {
    fn add(&mut self, seed: u64, outcome: &Outcome) {
        self.summary.seeds += 1;
        self.summary.tlps += outcome.tlps;
        self.summary.clocks += outcome.clocks;
        self.summary.coverage.add(&outcome.coverage);
        if let Some((finding, _)) = &outcome.finding {
            let (lowest, seeds) = self.broken.entry(finding.rule).or_insert((seed, 0));
            *lowest = seed.min(*lowest);
            *seeds += 1;
        }
    }
}

fn shortened<D: Dut>(
    rule: Rule,
    seed: u64,
    seeds: u64,
    request: &Request,
    target: &Target,
    open: &impl Fn(u64) -> Result<D, String>,
) -> Result<Failure, String> {
    let case = Case::of_seed(seed, target, request.is_illegal);
    let case = shrink::shortest(&case, rule, target.alignment(), |candidate| {
        let mut dut = open(seed).ok()?;
        run(&mut dut, target, candidate, false).finding.map(|(finding, _)| finding.rule)
    });
    let mut dut = open(seed)?;
    let outcome = run(&mut dut, target, &case, true);
    let Some((finding, _)) = outcome.finding else {
        return Err(format!(
            "seed {seed} breaks {} in one run and not in the next: the device keeps a state beyond its reset",
            rule.row().name
        ));
    };
    Ok(Failure { seed, seeds, finding, case, kept: outcome.kept })
}
