//! What does an ordering instruction cost, and what does it wait for?
//!
//! Traffic: what the store before it leaves; nothing for a fence alone.
//! Unit: nanoseconds a fence adds: the pass with it minus the pass without. Alone: with nothing before it.
//! On memory that is cached (WB) the store before it is of 8 B to a line the core has, or a non-temporal one of a
//! whole line, which has to reach memory first. On a card's memory it is of 8 B, which leaves as soon as the fence
//! asks for it, or of a whole line.
//! Spoiled by: what else is in the buffers; a clock that changes.
//! Beside them `locked`, an instruction with a `LOCK` prefix on a line of its own, which compilers use instead of
//! `MFENCE`.

use crate::case::{Axes, Case};
use crate::effort::Effort;
use crate::error::BenchError;
use crate::question::{Question, Watch};
use crate::rounds::Wanted;
use crate::sampling::{answer, measure_together};
use lanemark_machine::{Access, Facts, Fence, Machine, Op, Plan, Stream, Verb, Width};
use lanemark_method::{AccessPath, CoreAccess, Method};
use lanemark_record::{Answer, Quantity};
use lanemark_units::MemoryType;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "fence_cost",
    summary: "time a fence adds: alone, after a store, after a whole line",
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

/// Those that a program can ask for.
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

/// The widest non-temporal store there is.
fn whole_line(facts: &Facts) -> Option<Access> {
    [Width::B64, Width::B32, Width::B16, Width::B8]
        .map(Access::NonTemporal)
        .into_iter()
        .find(|access| facts.stores.contains(access))
}

fn plan(case: &Case, passes: u64) -> Plan {
    let mut body = without(case);
    body.extend(case.fence().map(Op::Fence));
    Plan::on_one_core(body, passes)
}

/// What stands before the fence.
fn without(case: &Case) -> Vec<Op> {
    if matches!(case.method, Method::Fence { .. }) {
        return Vec::new();
    }
    vec![Op::Stream(Stream::over(Verb::Store, case.access(), case.span()))]
}

/// The pass with the fence minus the pass without it, sample by sample of the same round.
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
        plans.push(wanted("without it", Plan::on_one_core(stores, passes)));
    }
    let mut measured = measure_together(machine, plans, effort)?.into_iter();
    let Some(with) = measured.next() else { return Err(BenchError::TooFewPoints { question: question.name }) };
    let added = match measured.next() {
        Some(bare) => {
            let added = with.minus_by_round_ns(&bare);
            return Ok(answer(question, case, machine.facts(), &with.beside(&[bare]).with_latencies(added), effort));
        }
        None => with.per_pass_issue_ns(),
    };
    Ok(answer(question, case, machine.facts(), &with.with_latencies(added), effort))
}
