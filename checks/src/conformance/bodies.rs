//! Test bodies of the conformance tests, one per promise.

use super::{Opened, Subject, plans};
use lanemark_machine::{Facts, Machine, MachineError, Plan, RegionKind, Samples, Step, TimeBase};
use lanemark_units::Ticks;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

type Kept = Result<(), String>;

/// Returns the message as an error unless the condition holds.
macro_rules! hold {
    ($holds:expr, $($why:tt)+) => {
        if !$holds {
            return Err(format!($($why)+));
        }
    };
}

/// Opens the machine without interruption.
fn opened(subject: &dyn Subject) -> Box<dyn Opened> {
    subject.open(Arc::default())
}

fn facts_of(opened: &mut dyn Opened) -> Facts {
    opened.machine().facts().clone()
}

/// Samples of a run that must succeed.
fn run(machine: &mut dyn Machine, plan: &Plan, wanted: usize) -> Result<Samples, String> {
    let mut samples = Samples::wanted(wanted);
    machine.run(plan, &mut samples).map_err(|error| format!("{plan:?} must run, but failed: {error}"))?;
    Ok(samples)
}

/// Plans that a machine may refuse.
fn asked(facts: &Facts) -> Vec<Plan> {
    [plans::all_accesses(facts), plans::all_steps(facts), plans::all_transfers(facts)].concat()
}

/// Plans that the machine reports as supported; it must support some.
fn supported(machine: &dyn Machine) -> Result<Vec<Plan>, String> {
    let facts = machine.facts();
    let plans = asked(facts);
    let supported: Vec<Plan> = plans.into_iter().filter(|plan| machine.supports(plan).is_ok()).collect();
    hold!(supported.len() >= 10, "only {} of the plans made for the machine are supported", supported.len());
    Ok(supported)
}

pub(super) fn facts(subject: &dyn Subject) -> Kept {
    let mut opened = opened(subject);
    let facts = facts_of(&mut *opened);
    hold!(!facts.name.is_empty() && !facts.summary.is_empty(), "the facts have no name or summary: {facts:?}");
    hold!(facts.cores > 0 && !facts.memory_types.is_empty(), "the facts have no core or no memory type: {facts:?}");
    let has_loads = !facts.loads.is_empty() && !facts.regions.is_empty();
    hold!(has_loads || facts.dma.is_some(), "the facts have no load or no region, and no DMA: {facts:?}");
    for (place, region) in facts.regions.iter().enumerate() {
        hold!(region.len > 0, "{region} is empty");
        for other in &facts.regions[..place] {
            hold!(other.name != region.name, "two regions are called {}", region.name);
            let apart = other.at.bar != region.at.bar
                || other.at.offset + other.len <= region.at.offset
                || region.at.offset + region.len <= other.at.offset;
            hold!(apart, "{region} and {other} overlap");
        }
    }
    let machine = opened.machine();
    let runs = supported(machine)?;
    for plan in runs.iter().step_by(runs.len().div_ceil(20)).chain(plans::outside(&facts).iter()) {
        let ended = machine.run(plan, &mut Samples::wanted(1));
        hold!(*machine.facts() == facts, "after {plan:?} ({ended:?}) the facts changed to {:?}", machine.facts());
    }
    Ok(())
}

pub(super) fn agreement(subject: &dyn Subject) -> Kept {
    let mut opened = opened(subject);
    let facts = facts_of(&mut *opened);
    let machine = opened.machine();
    let refused = plans::refused(&facts).into_iter().map(|(_, plan)| plan).collect();
    let plans = [asked(&facts), refused, plans::outside(&facts)].concat();
    supported(machine)?;
    for plan in plans {
        let told = machine.supports(&plan);
        hold!(
            machine.supports(&plan) == told,
            "supports() of {plan:?} returned {told:?} first and another result then"
        );
        let ended = machine.run(&plan, &mut Samples::wanted(1));
        let agrees = match (&told, &ended) {
            (Ok(()), Ok(())) | (Err(_), Err(MachineError::OutOfRange { .. })) => true,
            (Err(told), Err(MachineError::Unsupported(ended))) => told == ended,
            _ => false,
        };
        hold!(agrees, "supports() of {plan:?} returned {told:?}, but run() {ended:?}");
    }
    for (what, plan) in plans::refused(&facts) {
        let told = machine.supports(&plan);
        hold!(told.is_err(), "{what} is accepted: {plan:?}");
        let reasons = told.is_err_and(|told| !told.what.is_empty() && !told.because.is_empty());
        hold!(reasons, "{what} is refused without a reason");
    }
    Ok(())
}

/// Runs plans that must be refused; samples and bytes must be unchanged.
fn untouched(opened: &mut dyn Opened, plans: &[Plan]) -> Kept {
    let mut samples = Samples::wanted(2);
    if let Some(plan) = ordinary(opened.machine()).ok().filter(|plan| opened.machine().supports(plan).is_ok()) {
        opened.machine().run(&plan, &mut samples).map_err(|error| format!("{plan:?} must run, but failed: {error}"))?;
    }
    let before = (samples.clone(), opened.bytes());
    for plan in plans {
        let ended = opened.machine().run(plan, &mut samples);
        hold!(ended.is_err(), "{plan:?} is accepted");
        hold!(samples == before.0, "{plan:?} was refused, but changed the samples of the previous run");
        hold!(opened.bytes() == before.1, "{plan:?} was refused, but changed bytes");
    }
    Ok(())
}

pub(super) fn refusal(subject: &dyn Subject) -> Kept {
    let mut opened = opened(subject);
    let facts = facts_of(&mut *opened);
    let mut refused: Vec<Plan> = plans::refused(&facts).into_iter().map(|(_, plan)| plan).collect();
    refused.extend(asked(&facts).into_iter().filter(|plan| opened.machine().supports(plan).is_err()));
    hold!(refused.len() >= 10, "only {} of the plans made to be refused are refused", refused.len());
    untouched(&mut *opened, &refused)
}

pub(super) fn outside(subject: &dyn Subject) -> Kept {
    let mut opened = opened(subject);
    let facts = facts_of(&mut *opened);
    let outside = plans::outside(&facts);
    let machine = opened.machine();
    for plan in &outside {
        hold!(machine.supports(plan).is_err(), "supports() accepts {plan:?}");
        let error = machine.run(plan, &mut Samples::wanted(1)).err();
        let Some(MachineError::OutOfRange { regions, .. }) = &error else {
            return Err(format!("{plan:?} gave {error:?}"));
        };
        hold!(facts.regions.iter().all(|region| regions.contains(&region.name)), "the error names only '{regions}'");
    }
    // The last byte inside a region must be accepted; otherwise the checks above prove little.
    for region in &facts.regions {
        let last = plans::last_byte(region, &facts);
        hold!(machine.supports(&last).is_ok(), "the last byte of {region} is refused: {:?}", machine.supports(&last));
        if region.kind == RegionKind::Storage {
            run(machine, &last, 1)?;
        }
    }
    untouched(&mut *opened, &outside)
}

/// A plan with samples that can be checked.
fn ordinary(machine: &dyn Machine) -> Result<Plan, String> {
    let facts = machine.facts();
    let dma = || plans::dma_writes(facts).into_iter().find(|plan| machine.supports(plan).is_ok());
    let plan = plans::plain_store(facts).or_else(|| plans::plain_load(facts)).or_else(dma);
    plan.ok_or_else(|| "the machine has no region, and no DMA".to_owned())
}

pub(super) fn count(subject: &dyn Subject) -> Kept {
    let mut opened = opened(subject);
    let facts = facts_of(&mut *opened);
    let plan = ordinary(opened.machine())?;
    for warmup_passes in [0, 3] {
        let plan = Plan { warmup_passes, ..plan.clone() };
        for wanted in [1, 2, 7] {
            let mut samples = Samples::wanted(wanted);
            for time in ["first", "second"] {
                opened.machine().run(&plan, &mut samples).map_err(|error| error.to_string())?;
                let (taken, dropped) = (samples.taken.len(), samples.dropped.count());
                let enough = taken == wanted || (taken < wanted && !samples.wants_more());
                hold!(enough, "{wanted} samples were wanted, the {time} run took {taken} and dropped {dropped}");
                let is_virtual = facts.time_base == TimeBase::Simulated;
                hold!(!is_virtual || dropped == 0, "{dropped} samples were dropped where time is virtual");
            }
        }
    }
    Ok(())
}

/// Whether the last instruction of an iteration moves bytes, so that a sample is issued before it is delivered. Stores
/// before a fence may be delivered long before the fence completes.
fn ends_with_an_access(plan: &Plan) -> bool {
    let last = plan.work.lanes().first().and_then(|lane| lane.task.steps().last());
    matches!(last, Some(Step::Stream(stream)) if stream.fence_each.is_none())
}

pub(super) fn order(subject: &dyn Subject) -> Kept {
    let mut opened = opened(subject);
    let machine = opened.machine();
    let is_virtual = machine.facts().time_base == TimeBase::Simulated;
    for plan in supported(machine)? {
        // A few instructions may take less real time than the variation of the subtracted timer cost.
        let is_seen = if is_virtual { plan.bytes_per_sample() > 0 } else { plan.bytes_per_sample() >= 1024 };
        for sample in run(machine, &plan, 2)?.taken {
            let in_order = sample.issue <= sample.delivered || !ends_with_an_access(&plan);
            let took_time = sample.delivered > Ticks::ZERO || !is_seen;
            hold!(in_order && took_time, "{plan:?} gave {sample:?}");
        }
    }
    Ok(())
}

pub(super) fn bytes(subject: &dyn Subject) -> Kept {
    let mut opened = opened(subject);
    let facts = facts_of(&mut *opened);
    let stores = plans::checkable_stores(&facts);
    let stores: Vec<_> = stores.into_iter().filter(|store| opened.machine().supports(&store.plan).is_ok()).collect();
    hold!(facts.storage().is_none() || stores.len() >= 10, "only {} stores to its storage are supported", stores.len());
    for plans::Store { plan, range } in stores {
        let before = opened.bytes();
        let samples = run(opened.machine(), &plan, 2)?;
        let len = range.len() as u64;
        let Some(confirmed) = samples.confirmed else { return Err(format!("{plan:?} confirmed no bytes")) };
        let all = confirmed.claimed_bytes == len && confirmed.confirmed_bytes == len;
        hold!(all, "{plan:?} gave {confirmed:?}");
        if let (Some(before), Some(after)) = (before, opened.bytes()) {
            hold!(before[..range.start] == after[..range.start], "{plan:?} changed bytes before its span");
            hold!(before[range.end..] == after[range.end..], "{plan:?} changed bytes after its span");
            hold!(before[range.clone()] != after[range], "{plan:?} did not change its span");
        }
    }
    Ok(())
}

/// Checks that the next run after an ended one is complete.
fn works(machine: &mut dyn Machine, plan: &Plan) -> Kept {
    let samples = run(machine, plan, 3)?;
    hold!(!samples.wants_more(), "the run after an ended one took {} of 3 samples", samples.taken.len());
    let whole = samples.confirmed.is_none_or(|confirmed| confirmed.claimed_bytes == confirmed.confirmed_bytes);
    hold!(whole, "the run after an ended one confirmed {:?}", samples.confirmed);
    Ok(())
}

pub(super) fn timeout(subject: &dyn Subject) -> Kept {
    let mut opened = opened(subject);
    let plan = ordinary(opened.machine())?;
    let timeout = Ticks::whole_ns(5_000_000);
    for endless in
        [Plan { passes: u64::MAX, timeout, ..plan.clone() }, Plan { warmup_passes: u64::MAX, timeout, ..plan.clone() }]
    {
        let error = opened.machine().run(&endless, &mut Samples::wanted(2)).err();
        let Some(MachineError::Timeout { after, waiting_for, .. }) = &error else {
            return Err(format!("{endless:?} gave {error:?}"));
        };
        hold!(
            *after >= timeout && !waiting_for.is_empty(),
            "the run ended after {after:?}, waiting for '{waiting_for}'"
        );
        works(opened.machine(), &plan)?;
    }
    // One tick is too short for any plan.
    let late = Plan { timeout: Ticks(1), ..plan.clone() };
    let error = opened.machine().run(&late, &mut Samples::wanted(1)).err();
    hold!(matches!(error, Some(MachineError::Timeout { .. })), "a plan with a timeout of one tick gave {error:?}");
    works(opened.machine(), &plan)
}

pub(super) fn interruption(subject: &dyn Subject) -> Kept {
    let flag = Arc::new(AtomicBool::new(true));
    let mut opened = subject.open(Arc::clone(&flag));
    let plan = ordinary(opened.machine())?;
    // Long enough to be ended by the flag only, and short enough to end on a machine that ignores the flag.
    let long = Plan { passes: u64::MAX, timeout: Ticks::whole_ns(10_000_000_000), ..plan.clone() };
    for when in ["before it began", "while it ran"] {
        let error = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(20));
                flag.store(true, Ordering::Relaxed);
            });
            opened.machine().run(&long, &mut Samples::wanted(2)).err()
        });
        hold!(matches!(error, Some(MachineError::Interrupted { .. })), "a run interrupted {when} gave {error:?}");
        flag.store(false, Ordering::Relaxed);
    }
    works(opened.machine(), &plan)
}

pub(super) fn independence(subject: &dyn Subject) -> Kept {
    let mut first = opened(subject);
    let facts = facts_of(&mut *first);
    let runs = supported(first.machine())?;
    let plan = ordinary(first.machine())?;
    let alone = run(first.machine(), &plan, 3)?;
    drop(first);
    let mut second = opened(subject);
    for other in runs.iter().step_by(runs.len().div_ceil(20)) {
        run(second.machine(), other, 2)?;
        let again = run(second.machine(), &plan, 3)?;
        // On real time, only times may differ.
        let same = if facts.time_base == TimeBase::Simulated {
            again == alone
        } else {
            again.confirmed == alone.confirmed && again.waits == alone.waits && again.traffic == alone.traffic
        };
        hold!(same, "{plan:?} gave {alone:?}, and after {other:?} it gave {again:?}");
    }
    Ok(())
}
