//! Measured ceilings for targets without a computed one.

use crate::effort::Effort;
use crate::error::BenchError;
use crate::sampling::measure;
use lanemark_machine::{Access, Facts, Machine, Plan, Span, Step, Stream, Verb, Width};
use lanemark_record::{Ceiling, CeilingKind, Summary};
use lanemark_units::MemoryType;

/// Bytes that fit into any first-level data cache.
const SMALL: u64 = 16 << 10;

/// The rate of the widest loads or stores over 16 KiB in the first-level cache, which bounds a
/// core's accesses to ordinary memory.
///
/// # Errors
/// [`BenchError`] if the machine does not complete the plan.
pub fn measured_ceiling(machine: &mut dyn Machine, verb: Verb, effort: &Effort) -> Result<Ceiling, BenchError> {
    let widest = machine
        .facts()
        .accesses(verb)
        .iter()
        .filter_map(|access| if let Access::Plain(width) = access { Some(*width) } else { None })
        .max()
        .unwrap_or(Width::B8);
    let Some((at, memory_type)) = place(machine.facts()) else {
        return Ok(unknown("no storage to measure a stand-in"));
    };
    let span = Span { at, len: SMALL, memory_type };
    let mut fastest: Option<f64> = None;
    for access in [Access::Plain(widest), Access::NonTemporal(widest)] {
        // Streaming loads of ordinary memory behave like plain loads; streaming stores bypass the
        // cache.
        let is_store_past_cache = verb == Verb::Store && access != Access::Plain(widest);
        if is_store_past_cache || !machine.facts().accesses(verb).contains(&access) {
            continue;
        }
        let plan = Plan::new(Step::Stream(Stream::over(verb, access, span)), 1);
        // A stand-in is one figure among many, so it gets a tenth of a question's time.
        let measured = measure(machine, &plan, 4096, &effort.share(10))?;
        let rates: Vec<f64> =
            measured.per_pass_issue_ns().iter().filter(|ns| **ns > 0.0).map(|ns| SMALL as f64 * 1e9 / ns).collect();
        let rate = Summary::of(&rates).map(|summary| summary.p99);
        fastest = fastest.into_iter().chain(rate).reduce(f64::max);
    }
    if fastest.is_none() {
        return Ok(unknown("the stand-in took zero time"));
    }
    let verb = if verb == Verb::Load { "loads from" } else { "stores to" };
    Ok(Ceiling {
        kind: CeilingKind::Measured,
        rate_bytes_per_s: fastest,
        because: format!("stand-in: p99 of {} B {verb} 16 KiB that stay in the first-level cache", widest.bytes()),
    })
}

fn place(facts: &Facts) -> Option<(lanemark_units::BarOffset, MemoryType)> {
    let region = facts.storage().filter(|region| region.len >= SMALL)?;
    Some((region.at, *facts.memory_types.first()?))
}

fn unknown(because: &str) -> Ceiling {
    Ceiling { kind: CeilingKind::Unknown, rate_bytes_per_s: None, because: because.to_owned() }
}
