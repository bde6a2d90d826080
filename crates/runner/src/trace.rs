//! Tracing of one case on a simulated target.

use crate::cancel::Cancel;
use crate::changes::Changes;
use crate::error::RunError;
use crate::open_target::OpenTarget;
use crate::setup::Setup;
use crate::target::Target;
use crate::tasks::{Work, work};
use lanemark_bench::{Axes, Case, Question, case_again, plan_to_trace};
use lanemark_machine::{Machine as _, MachineError, Plan, Sample, Samples, Trace};
use lanemark_platform::Platform;
use lanemark_record::Answer;
use lanemark_sim::SimulatedMachine;

/// A request to trace one case.
#[derive(Clone)]
pub struct TraceRequest {
    /// The simulated target.
    pub target: Target,
    /// The question.
    pub question: &'static Question,
    /// Variants of the question; the first case is traced.
    pub axes: Axes,
    /// Changes to the target.
    pub changes: Changes,
    /// Iterations of the case. `None`: as many as fit on a screen.
    pub passes: Option<u64>,
    /// Whether to trace DLLPs as well.
    pub dllps: bool,
}

/// A traced case.
#[derive(Clone, Debug)]
pub struct TracedCase {
    /// The target's name.
    pub target: String,
    /// The case.
    pub case: Case,
    /// Number of cases of the request; the first is traced.
    pub cases: usize,
    /// Number of the traced case among them, from 1: the first one that the simulation supports.
    pub nth: usize,
    /// Iterations of the case.
    pub passes: u64,
    /// The sample.
    pub sample: Sample,
    /// Trace of the sample, up to the error if it failed.
    pub trace: Trace,
    /// Injected faults and their effects, one sentence each.
    pub faults: Vec<String>,
    /// Link of the card used by the case.
    pub card_link: String,
    /// Error that ended the sample.
    pub error: Option<String>,
    /// Differences from the platform's file, one sentence per key.
    pub differences: Vec<String>,
}

/// Traces the first case of `request` that the simulation supports, until `cancel` is set.
///
/// # Errors
/// [`RunError`] if the target is real, the request is invalid or leaves no case, or the simulation supports none.
///
/// ```
/// use lanemark_bench::Axes;
/// use lanemark_runner::{Cancel, Changes, Target, TraceRequest, question, trace};
///
/// let (target, question) = (Target::Named("card-gen5-x16".to_owned()), question("mmio_read_latency")?);
/// let (axes, changes) = (Axes::default(), Changes::default());
/// let request = TraceRequest { target, question, axes, changes, passes: Some(1), dllps: false };
/// let traced = trace(&request, &Cancel::new())?;
/// assert_eq!((traced.trace.frames.len(), traced.error), (2, None), "MRd and CplD");
/// # Ok::<(), lanemark_runner::RunError>(())
/// ```
pub fn trace(request: &TraceRequest, cancel: &Cancel) -> Result<TracedCase, RunError> {
    let TraceRequest { target, question, axes, changes, passes, dllps } = request;
    if target.is_real() {
        return Err(RunError::NoTrace { target: target.to_string() });
    }
    changes.check(target)?;
    let opened = target.open(&Setup { changes: changes.clone(), ..Setup::default() }, cancel)?;
    let Work { tasks, skipped } = work(&[*question], std::slice::from_ref(&opened), axes)?;
    let cases = tasks.len();
    let Some(platform) = opened.platform() else { return Err(RunError::NoTrace { target: target.to_string() }) };
    let mut machine = SimulatedMachine::new(platform)?.interrupted_by(cancel.flag()).with_dllps(*dllps);
    if cancel.is_cancelled() {
        return Err(RunError::Interrupted);
    }
    // The first supported one, or the reason of the first.
    let mut refused = None;
    let supported = tasks.into_iter().zip(1..).find_map(|(task, nth)| {
        let plan = plan_to_trace(question, &task.case, *passes);
        match machine.supports(&plan) {
            Ok(()) => Some((nth, task.case, plan)),
            Err(unsupported) => {
                refused.get_or_insert(unsupported);
                None
            }
        }
    });
    let Some((nth, case, plan)) = supported else {
        let because = skipped.first().map_or("the request selects no case", |skipped| &skipped.because);
        let nothing = RunError::NothingToAsk { because: because.to_owned() };
        return Err(refused.map_or(nothing, RunError::Unsupported));
    };
    traced(&mut machine, platform, case, &plan, (nth, cases), OpenTarget::notes(&opened).to_vec())
}

/// Traces the case of an answer again on `platform`, the platform that the answer is of, with as many iterations as fit on a
/// screen; `region` is the requested region. `None` if the simulation has no such case.
///
/// # Errors
/// [`RunError`] if the platform cannot be simulated, or if `cancel` is set.
pub fn trace_again(
    platform: &Platform,
    answer: &Answer,
    region: Option<&str>,
    cancel: &Cancel,
) -> Result<Option<TracedCase>, RunError> {
    let mut machine = SimulatedMachine::new(platform)?.interrupted_by(cancel.flag());
    let Some(question) = lanemark_bench::question(&answer.question) else { return Ok(None) };
    let (size, alignment) = (answer.size_bytes, answer.alignment_bytes);
    let case = case_again(question, machine.facts(), region, &answer.method, size, alignment);
    let Some(case) = case else { return Ok(None) };
    let plan = plan_to_trace(question, &case, None);
    if machine.supports(&plan).is_err() {
        return Ok(None);
    }
    traced(&mut machine, platform, case, &plan, (1, 1), Vec::new()).map(Some)
}

/// Traces a plan that the machine supports. `place`: the number of its case, from 1, and the number of all cases.
fn traced(
    machine: &mut SimulatedMachine,
    platform: &Platform,
    case: Case,
    plan: &Plan,
    (nth, cases): (usize, usize),
    differences: Vec<String>,
) -> Result<TracedCase, RunError> {
    let mut samples = Samples::wanted(1);
    let (trace, done) = machine.trace_to_the_end(plan, &mut samples, Trace::MOST);
    let error = match done {
        Ok(()) => None,
        Err(MachineError::Unsupported(unsupported)) => return Err(RunError::Unsupported(unsupported)),
        Err(MachineError::Interrupted { .. }) => return Err(RunError::Interrupted),
        Err(error) => Some(error.to_string()),
    };
    Ok(TracedCase {
        target: platform.name.clone(),
        nth,
        cases,
        passes: plan.passes,
        sample: samples.taken.last().copied().unwrap_or_default(),
        trace,
        faults: machine.injected_faults().iter().map(|fault| format!("{}: {fault}", platform.name)).collect(),
        card_link: card_of(platform, &case).to_owned(),
        case,
        error,
        differences,
    })
}

/// The link of the card used by a case.
fn card_of<'a>(platform: &'a Platform, case: &Case) -> &'a str {
    let card = case.first_card();
    platform.slots.get(card as usize).map_or("card", |slot| &slot.name)
}
