//! A figure's question, asked of the simulation and of the formula.

use crate::figure::{Ask, Wanted};
use lanemark_bench::{Axes, BenchError, Case, Cores, Effort, Question};
use lanemark_config_space::{ConfigWrite, NoConfigWrite};
use lanemark_method::{AccessPath, CoreAccess, Method};
use lanemark_platform::{Origin, Platform};
use lanemark_record::{Answer, Detail, Reach, Runs, Summary};
use lanemark_runner::{Changes, OpenTarget, question};

/// Result in the unit of the figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ours {
    pub(crate) simulated: f64,
    pub(crate) formula: Option<f64>,
}

/// Asks `wanted` at `size` of `platform`: a fresh simulation, and its formula.
pub(crate) fn asked(platform: &Platform, wanted: &Ask, size: Option<u64>) -> Result<Ours, String> {
    let mut target = OpenTarget::of_platform(&changed(platform, wanted)?).map_err(|error| error.to_string())?;
    let (question, case, effort) = case(&target, wanted, size)?;
    let simulated = figure(target.ask(question, &case, &effort), wanted)?;
    Ok(Ours { simulated, formula: figure(target.ask_formulas(question, &case, &effort), wanted).ok() })
}

/// Only the simulated figure, for fits.
pub(crate) fn simulated(platform: &Platform, wanted: &Ask, size: Option<u64>) -> Result<f64, String> {
    let mut target = OpenTarget::of_platform(&changed(platform, wanted)?).map_err(|error| error.to_string())?;
    let (question, case, effort) = case(&target, wanted, size)?;
    figure(target.ask(question, &case, &effort), wanted)
}

/// The wanted figure of an answer.
fn figure(answer: Result<Answer, BenchError>, wanted: &Ask) -> Result<f64, String> {
    let answer = answer.map_err(|error| error.to_string())?;
    figure_of(&answer, wanted.figure).ok_or_else(|| "the answer has no such figure".to_owned())
}

/// The platform with the numbers that are others for this figure, after its writes to ports.
fn changed(platform: &Platform, wanted: &Ask) -> Result<Platform, String> {
    let platform = with_numbers(platform, wanted)?;
    let writes = wanted.setpci.iter().map(|text| text.parse()).collect::<Result<Vec<ConfigWrite>, NoConfigWrite>>();
    let changes = Changes { setpci: writes.map_err(|error| error.to_string())?, ..Changes::default() };
    changes.apply(platform).map(|(platform, _)| platform).map_err(|error| error.to_string())
}

fn with_numbers(platform: &Platform, wanted: &Ask) -> Result<Platform, String> {
    wanted.with.iter().try_fold(platform.clone(), |platform, (key, value)| {
        let origin = Origin::Given("the figure's own condition".to_owned());
        platform.with(key, *value, origin).map_err(|error| error.to_string())
    })
}

/// Decides whether a case's method is meant.
type MethodFilter = Box<dyn Fn(&Method) -> bool>;

/// Which methods are asked: one, those of a kind, or those by which a core reaches memory.
fn method_of(wanted: &Ask) -> Result<MethodFilter, String> {
    match (wanted.method.clone(), wanted.kind, wanted.path) {
        (Some(method), None, None) => Ok(Box::new(move |other| *other == method)),
        (None, Some(kind), None) => Ok(Box::new(move |other| other.kind() == kind)),
        (None, None, path) => {
            let wanted = path.unwrap_or(AccessPath::Pointer);
            Ok(Box::new(move |other| matches!(other, Method::Core(CoreAccess { path, .. }) if *path == wanted)))
        }
        _ => Err(format!("{}: give one of method, kind and path", wanted.question)),
    }
}

fn case(target: &OpenTarget, wanted: &Ask, size: Option<u64>) -> Result<(&'static Question, Case, Effort), String> {
    let question = question(&wanted.question).map_err(|error| error.to_string())?;
    let fence = match wanted.fence.as_deref() {
        None => None,
        Some("none") => Some(vec![None]),
        Some(name) => Some(vec![Some(name.parse().map_err(|error: lanemark_machine::UnknownName| error.to_string())?)]),
    };
    let is_wanted = method_of(wanted)?;
    let size = size.or(wanted.size);
    let is_by_driver = matches!(wanted.path, Some(AccessPath::Driver | AccessPath::DriverPoll | AccessPath::Mmap));
    let axes = Axes {
        // The usual cases of a driver question include the sizes that figures are given for.
        sizes: if is_by_driver { None } else { size.map(|size| vec![size]) },
        memory_types: wanted.memory_type.map(|memory_type| vec![memory_type]),
        accesses: wanted.access.map(|access| vec![access]),
        fences: fence,
        alignments: None,
        region: wanted.region.clone(),
        flows: wanted
            .flows
            .as_ref()
            .map(|flows| flows.iter().map(|flow| flow.parse()).collect::<Result<_, _>>())
            .transpose()
            .map_err(|error: lanemark_machine::UnknownName| error.to_string())?,
        reach: Reach::default(),
        matrices: None,
        // Virtual cores are alike.
        cores: Some(Cores::These(vec![0])),
    };
    let fits = |case: &Case| is_wanted(&case.method) && size.is_none_or(|size| case.size == size);
    let case = target.one_case(question, &axes, fits).map_err(|error| error.to_string())?;
    let passes = wanted.passes.map(|passes| match wanted.at_most_bytes {
        Some(most) => passes.min((most / case.size.max(1)).max(1)),
        None => passes,
    });
    Ok((question, case, Effort { simulated_passes: passes, ..Effort::default() }))
}

/// Bytes of a MiB.
const MIB: f64 = (1 << 20) as f64;

/// From where to where the samples of a figure go: all but 1 % at either end, and of runs of copies all.
pub(crate) fn spread_of(answer: &Answer, wanted: Wanted) -> Option<[f64; 2]> {
    let between = |summary: Option<Summary>, unit: f64| {
        let summary = summary.filter(|summary| summary.count > 1)?;
        Some([summary.p1 / unit, summary.p99 / unit])
    };
    match wanted {
        Wanted::LatencyNs => between(answer.latency_ns, 1.0),
        Wanted::LatencyUs => between(answer.latency_ns, 1e3),
        Wanted::LatencyMs => between(answer.latency_ns, 1e6),
        Wanted::LatencyS => between(answer.latency_ns, 1e9),
        Wanted::WholeRunS => {
            let (runs, times) = whole_runs(answer)?;
            Some([runs.shortest_s * times, runs.longest_s * times])
        }
        Wanted::IssueGbPerS => between(answer.issue_rate_bytes_per_s, 1e9),
        Wanted::DeliveredGbPerS => between(answer.delivered_rate_bytes_per_s, 1e9),
        Wanted::DeliveredMibPerS => between(answer.delivered_rate_bytes_per_s, MIB),
        Wanted::SpreadNs | Wanted::WorstRunS | Wanted::FlowMibPerS => None,
    }
}

/// What was made of a run, times this is a whole one.
fn whole_runs(answer: &Answer) -> Option<(&Runs, f64)> {
    match &answer.detail {
        Some(Detail::Runs(runs)) => Some((runs, runs.whole_copies as f64 / runs.copies as f64)),
        _ => None,
    }
}

pub(crate) fn figure_of(answer: &Answer, wanted: Wanted) -> Option<f64> {
    Some(match wanted {
        Wanted::LatencyNs => answer.latency_ns?.median,
        Wanted::LatencyUs => answer.latency_ns?.median / 1e3,
        Wanted::LatencyMs => answer.latency_ns?.median / 1e6,
        Wanted::LatencyS => answer.latency_ns?.median / 1e9,
        Wanted::SpreadNs => {
            let summary = answer.latency_ns.filter(|summary| summary.count > 1)?;
            summary.p99 - summary.p1
        }
        Wanted::WholeRunS => {
            let (runs, times) = whole_runs(answer)?;
            runs.median_s * times
        }
        Wanted::WorstRunS => {
            let (runs, times) = whole_runs(answer)?;
            runs.longest_s * times
        }
        Wanted::IssueGbPerS => answer.issue_rate_bytes_per_s?.median / 1e9,
        Wanted::DeliveredGbPerS => answer.delivered_rate_bytes_per_s?.median / 1e9,
        Wanted::DeliveredMibPerS => answer.delivered_rate_bytes_per_s?.median / MIB,
        Wanted::FlowMibPerS => match &answer.detail {
            Some(Detail::Flows(flows)) => flows.common_rate_bytes_per_s / flows.each.len() as f64 / MIB,
            _ => return None,
        },
    })
}
