//! Planning: every case of every question and target, checked before measurements begin.

use crate::error::RunError;
use crate::open_target::OpenTarget;
use lanemark_bench::{Axes, Caller, Case, LeftOut, Question};
use lanemark_machine::{Facts, Flow, Peer};
use lanemark_method::Method;
use lanemark_record::{Reach, Skipped, Socket};
use lanemark_units::format_size;
use std::collections::BTreeMap;

/// One planned case.
pub(crate) struct Task {
    pub(crate) question: &'static Question,
    /// Index of the target.
    pub(crate) place: usize,
    pub(crate) case: Case,
}

/// Planned cases in order, and skipped ones with the reason.
pub(crate) struct Work {
    pub(crate) tasks: Vec<Task>,
    pub(crate) skipped: Vec<Skipped>,
}

/// Plans the cases. A size that fits no question is an error; a size that fits some is skipped for the others.
pub(crate) fn work(questions: &[&'static Question], targets: &[OpenTarget], axes: &Axes) -> Result<Work, RunError> {
    let mut work = Work { tasks: Vec::new(), skipped: Vec::new() };
    for target in targets {
        check_region(axes, target.facts())?;
        check_flows(axes, target.facts())?;
    }
    for &question in questions {
        for (place, target) in targets.iter().enumerate() {
            work.add(question, place, target.facts(), axes);
        }
    }
    for (place, target) in targets.iter().enumerate() {
        check_reach(target.facts(), work.tasks.iter().filter(|task| task.place == place))?;
        if let Some(sizes) = &axes.sizes {
            check_sizes(sizes, target.facts(), work.tasks.iter().filter(|task| task.place == place))?;
        }
    }
    work.tasks.retain(|task| task.case.room(targets[task.place].facts()) >= task.case.size);
    Ok(work)
}

impl OpenTarget {
    /// The cases of `question` that a run measures, and those that it skips, with the reasons.
    ///
    /// # Errors
    /// [`RunError`] if a region, flow, window or size of `axes` does not exist or does not fit.
    pub fn planned_cases(
        &self,
        question: &'static Question,
        axes: &Axes,
    ) -> Result<(Vec<Case>, Vec<Skipped>), RunError> {
        let work = work(&[question], std::slice::from_ref(self), axes)?;
        Ok((work.tasks.into_iter().map(|task| task.case).collect(), work.skipped))
    }
}

impl Work {
    fn add(&mut self, question: &'static Question, place: usize, facts: &Facts, axes: &Axes) {
        let mut cases = (question.cases)(facts, axes);
        // Core accesses have no window. A requested variant that does not apply is reported as skipped.
        cases.retain(|case| case.reach().is_as_asked(&axes.reach));
        cases.retain(|case| axes.cores.is_none() || case.caller != Caller::AsPlanned);
        let mut skip = |what: String, because: String| {
            let (question, target) = (question.name.to_owned(), facts.name.clone());
            self.skipped.push(Skipped { question, target, what, because });
        };
        // Requested variants may exist although the defaults do not.
        let left_out = (question.left_out)(facts).filter(|left_out| cases.is_empty() || !left_out.is_all());
        let left_out = left_out.filter(|_| cases.is_empty() || axes.cores.is_none());
        let left_out = match facts.runtime {
            Some(_) if cases.is_empty() && facts.regions.is_empty() && axes.cores.is_none() => {
                if is_for_runtimes(question, facts) { left_out } else { Some(LeftOut::all(NO_FUNCTION)) }
            }
            _ => left_out,
        };
        let says_why = left_out.is_some();
        if let Some(left_out) = left_out {
            skip(left_out.what, left_out.because);
        }
        if cases.is_empty() && !says_why {
            let because = inapplicable(question, facts, axes);
            skip(LeftOut::ALL.to_owned(), because);
        }
        let too_large = cases.iter().filter(|case| case.room(facts) < case.size).min_by_key(|case| case.size);
        if let Some(case) = too_large {
            let because = format!("{}, which the question accesses, is smaller", touched(facts, case));
            skip(format!("sizes from {}", format_size(case.size)), because);
        }
        self.tasks.extend(cases.into_iter().map(|case| Task { question, place, case }));
    }
}

/// Reason why a question has no case although the target has what it needs: the options that do not apply to it.
fn inapplicable(question: &Question, facts: &Facts, axes: &Axes) -> String {
    let Reach { window_bytes, is_random, stride_bytes, outstanding, cache_state, socket, channels } = &axes.reach;
    if outstanding.is_some() {
        return "--outstanding applies to DMA reads, and to commands of a drive; this question has none, or one at a time".to_owned();
    }
    if channels.is_some() {
        let of_pairs = Axes { reach: Reach { channels: Some(2), ..axes.reach }, ..axes.clone() };
        if !(question.cases)(facts, &of_pairs).is_empty() {
            let takes = "a write and a read of one card take one channel each";
            return format!("--channels {} does not apply: {takes}; use --channels 2", channels.unwrap_or_default());
        }
        return "--channels applies to DMA; this question has none, or one transfer at a time; omit it".to_owned();
    }
    let memory = applying(&[("--cache-state", cache_state.is_some()), ("--socket", socket.is_some())]);
    if let Some(apply) = memory {
        let remote = match socket {
            Some(Socket::Remote) => "; --socket remote is available where memory.remote_ns is not 0",
            _ => "",
        };
        return format!("{apply} to DMA of host memory{remote}");
    }
    if axes.cores.is_some() {
        return "--cores selects the cores that launch kernels; this question launches none".to_owned();
    }
    let window = ("--window", window_bytes.is_some());
    if let Some(apply) = applying(&[window, ("--random", *is_random), ("--stride", stride_bytes.is_some())]) {
        return format!("{apply} to DMA");
    }
    if *axes == Axes::default() {
        return "the target lacks the region, driver or instruction that the question needs".to_owned();
    }
    match refusing(question, facts, axes) {
        Some(option) => format!("no case of the question matches the given {option}: remove it, or give other values"),
        None => {
            "the selection matches no case: the question has no such sizes, memory types, instructions, region or flows"
                .to_owned()
        }
    }
}

/// An option, and what omits it.
type Omission = (&'static str, fn(&mut Axes));

/// The option without which the question has cases, if it is one alone.
fn refusing(question: &Question, facts: &Facts, axes: &Axes) -> Option<&'static str> {
    let without: [Omission; 8] = [
        ("--sizes", |axes| axes.sizes = None),
        ("--memory-type", |axes| axes.memory_types = None),
        ("--access", |axes| axes.accesses = None),
        ("--fence", |axes| axes.fences = None),
        ("--align", |axes| axes.alignments = None),
        ("--region", |axes| axes.region = None),
        ("--flows", |axes| axes.flows = None),
        ("--matrix", |axes| axes.matrices = None),
    ];
    let has_cases = |(_, omit): &Omission| {
        let mut fewer = axes.clone();
        omit(&mut fewer);
        fewer != *axes && !(question.cases)(facts, &fewer).is_empty()
    };
    without.iter().find(|one| has_cases(one)).map(|(option, _)| *option)
}

/// The given ones of `options` and the verb, such as `--window and --stride apply`; `None` if none is given.
fn applying(options: &[(&str, bool)]) -> Option<String> {
    let given: Vec<&str> = options.iter().filter(|(_, is_given)| *is_given).map(|(option, _)| *option).collect();
    match given.as_slice() {
        [] => None,
        [only] => Some(format!("{only} applies")),
        several => Some(format!("{} apply", several.join(" and "))),
    }
}

/// Why few questions apply to a runtime device.
const NO_FUNCTION: &str = "it is a runtime queue and not a PCIe function: loads and stores are not possible";

/// Whether `question` applies to a runtime device with all capabilities. Its own reason is then more precise.
fn is_for_runtimes(question: &Question, facts: &Facts) -> bool {
    let mut able = facts.clone();
    if let Some(runtime) = &mut able.runtime {
        runtime.computes = true;
    }
    !(question.cases)(&able, &Axes::default()).is_empty()
}

fn check_region(axes: &Axes, facts: &Facts) -> Result<(), RunError> {
    match &axes.region {
        Some(name) if facts.region(name).is_none() => {
            let known = facts.regions.iter().map(|region| region.name.as_str()).collect::<Vec<_>>().join(", ");
            Err(RunError::Region { name: name.clone(), target: facts.name.clone(), known })
        }
        _ => Ok(()),
    }
}

/// Checks that the cards of all flows exist, on a target with DMA.
fn check_flows(axes: &Axes, facts: &Facts) -> Result<(), RunError> {
    let Some(cards) = facts.dma.map(|dma| dma.cards).filter(|cards| *cards > 0) else { return Ok(()) };
    let is_absent = |flow: &&Flow| flow.card >= cards || matches!(flow.peer, Peer::Card(other) if other >= cards);
    match axes.flows.iter().flatten().find(is_absent) {
        Some(flow) => Err(RunError::Flow { flow: *flow, target: facts.name.clone(), cards }),
        None => Ok(()),
    }
}

/// Checks that windows fit the memory, and that distances from a cache line are below its length.
fn check_reach<'a>(facts: &Facts, tasks: impl Iterator<Item = &'a Task>) -> Result<(), RunError> {
    for Task { question, case, .. } in tasks {
        if !case.method.is_dma() && case.alignment >= LINE {
            return Err(RunError::Alignment { bytes: case.alignment, line: LINE, question: question.name });
        }
        let most = case.most_window(facts);
        if let Some(bytes) = case.reach().window_bytes.filter(|window| *window > most) {
            return Err(RunError::Window { bytes, of: touched(facts, case), target: facts.name.clone(), most });
        }
    }
    Ok(())
}

/// Bytes of a cache line.
const LINE: u64 = 64;

/// Checks that each size fits at least one of its tasks, at the largest distance from a boundary.
fn check_sizes<'a>(sizes: &[u64], facts: &Facts, tasks: impl Iterator<Item = &'a Task>) -> Result<(), RunError> {
    // The most of each size: alignment, bytes that fit, case.
    let mut most: BTreeMap<u64, (u64, u64, &Case)> = BTreeMap::new();
    for Task { case, .. } in tasks {
        let (alignment, room) = (case.alignment, case.room(facts));
        let entry = most.entry(case.size).or_insert((alignment, room, case));
        if (alignment, room) >= (entry.0, entry.1) {
            *entry = (alignment, room, case);
        }
    }
    for size in sizes {
        let Some((_, room, case)) = most.get(size).filter(|(_, room, _)| size > room) else { continue };
        return Err(RunError::Size { bytes: *size, of: touched(facts, case), target: facts.name.clone(), most: *room });
    }
    Ok(())
}

/// The memory accessed by a case, in words.
fn touched(facts: &Facts, case: &Case) -> String {
    if case.reach().window_bytes.is_some_and(|window| window < case.most_window(facts)) {
        return "the window".to_owned();
    }
    match &case.method {
        Method::Dma { flows, .. }
        | Method::DmaPages { flows, .. }
        | Method::DmaCall { flows, .. }
        | Method::DmaUnderLoad { flows, .. }
            if flows.iter().any(|flow| flow.peer == Peer::Host) =>
        {
            return "the DMA-mapped memory".to_owned();
        }
        Method::Relay { .. } => return "the DMA-mapped memory".to_owned(),
        Method::MapUnmap { .. }
        | Method::SharedBuffer { .. }
        | Method::RuntimeCopy { .. }
        | Method::SmallCopies { .. }
        | Method::Compute { .. } => {
            return "the longest buffer".to_owned();
        }
        Method::Core(_)
        | Method::Fence { .. }
        | Method::Clock { .. }
        | Method::KernelCall { .. }
        | Method::Wake { .. }
        | Method::CacheLines { .. }
        | Method::LineLoad { .. }
        | Method::Dma { .. }
        | Method::DmaPages { .. }
        | Method::DmaUnderLoad { .. }
        | Method::DmaCall { .. }
        | Method::Launch { .. }
        | Method::Argument { .. } => {}
    }
    let region = facts.regions.iter().find(|region| region.at == case.region);
    region.map_or_else(String::new, |region| format!("region {region}"))
}
