//! How much does an ordering instruction cost, and how much of that is the store before it?
//!
//! Traffic: that of the store before the fence; none for a fence alone.
//!
//! Unit: added nanoseconds per fence: the iteration with it minus the iteration without it. Alone:
//! without a store.
//!
//! On cached memory (WB), the store before the fence is 8 B to a line that the core owns, or a
//! non-temporal store of a whole line, which must reach memory first. On a card's memory it is 8 B,
//! which leaves the buffer because of the fence, or a whole line.
//!
//! Spoiled by: other contents of the buffers; a changing clock frequency.
//!
//! Also measured: `locked`, an instruction with a `LOCK` prefix on its own line, which compilers
//! use instead of `MFENCE`.

use crate::case::{Axes, Case};
use crate::effort::Effort;
use crate::error::BenchError;
use crate::question::{Question, Watch};
use crate::rounds::Wanted;
use crate::sampling::{answer, measure_together};
use lanemark_machine::{Access, Facts, Fence, Machine, Plan, Step, Stream, Verb, Width};
use lanemark_method::{AccessPath, CoreAccess, Method};
use lanemark_record::{Answer, Quantity};
use lanemark_units::MemoryType;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "fence_cost",
    summary: "added time of a fence: alone, after a store, after a store of a whole line",
    quantity: Quantity::Cost,
    cases,
    plan,
    simulated_passes: |_| 16,
    most_passes: |_| 1 << 14,
    accesses_per_pass: |_| 1,
    ask: Some(ask),
    is_usual: false,
    left_out: |_| None,
};

/// The fences of programs.
const FENCES: [Fence; 4] = [Fence::Sfence, Fence::Lfence, Fence::Mfence, Fence::Locked];

fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    let Some(region) = axes.region(facts, facts.storage()) else { return Vec::new() };
    let fences: Vec<Fence> =
        axes.fences.as_ref().map_or(FENCES.to_vec(), |fences| fences.iter().copied().flatten().collect());
    let usual = |kind: &MemoryType| matches!(kind, MemoryType::Wb | MemoryType::Wc | MemoryType::Uc);
    let memory_types =
        axes.memory_types.clone().unwrap_or_else(|| facts.memory_types.iter().copied().filter(usual).collect());
    let stored = |fence, memory_type, access, size| {
        let (path, verb) = (AccessPath::Pointer, Verb::Store);
        Case::of_core(CoreAccess { path, verb, memory_type, access, fence: Some(fence) }, region.at, size)
    };
    let alone = |fence| Case { region: region.at, ..Case::of_runtime(0, Method::Fence { fence }) };
    let mut cases = Vec::new();
    for fence in fences {
        let eight = Access::Plain(Width::B8);
        cases.extend(facts.memory_types.first().map(|_| alone(fence)));
        for kind in &memory_types {
            cases.push(stored(fence, *kind, eight, 8));
            let line = whole_line(facts).filter(|_| *kind != MemoryType::Uc);
            cases.extend(line.map(|access| stored(fence, *kind, access, 64)));
        }
    }
    cases
}

/// The widest non-temporal store of the machine.
fn whole_line(facts: &Facts) -> Option<Access> {
    [Width::B64, Width::B32, Width::B16, Width::B8]
        .map(Access::NonTemporal)
        .into_iter()
        .find(|access| facts.stores.contains(access))
}

fn plan(case: &Case, passes: u64) -> Plan {
    let mut body = without(case);
    body.extend(case.fence().map(Step::Fence));
    Plan::new(body, passes)
}

/// The operations before the fence.
fn without(case: &Case) -> Vec<Step> {
    if matches!(case.method, Method::Fence { .. }) {
        return Vec::new();
    }
    vec![Step::Stream(Stream::over(Verb::Store, case.access(), case.span()))]
}

/// Time with the fence minus time without it, by pairs of samples of the same round.
fn ask(
    question: &Question,
    machine: &mut dyn Machine,
    case: &Case,
    effort: &Effort,
    _: Watch<'_>,
) -> Result<Answer, BenchError> {
    let passes = (question.simulated_passes)(case);
    let wanted = |name: &str, plan| Wanted { name: name.to_owned(), plan, most_passes: (question.most_passes)(case) };
    let stores = without(case);
    let mut plans = vec![wanted("with the fence", plan(case, passes))];
    if !stores.is_empty() {
        plans.push(wanted("without it", Plan::new(stores, passes)));
    }
    let mut measured = measure_together(machine, plans, effort)?.into_iter();
    let Some(with) = measured.next() else { return Err(BenchError::TooFewPoints { question: question.name }) };
    let added = with.minus(measured.next().as_ref(), |sample| sample.issue, 1.0);
    Ok(answer(question, case, machine.facts(), &added, effort))
}
