//! One-screen summary of `lanemark bench` without options: a few questions for this machine and the example card.

use crate::doctor;
use crate::failure::Failure;
use crate::progress::spinner;
use lanemark_advise::doctor::{DiagnosisRequest, diagnose};
use lanemark_bench::{Axes, Effort};
use lanemark_machine::Facts;
use lanemark_method::{Access, Fence, Verb, Width};
use lanemark_record::diagnosis::Diagnosis;
use lanemark_record::{Host, Record, Skipped};
use lanemark_runner::{Cancel, Class, Request, RunError, Setup, Target, question, run};
use lanemark_units::{MemoryType, Ticks};

/// The example card.
const CARD: &str = "card-gen5-x16";

/// Default time budget of one question on this machine.
const BUDGET: Ticks = Ticks::whole_ns(250_000_000);

/// Time budget of the write-combining buffers, which need a clear curve. A blurred one takes up to four times as long.
const BUFFERS_BUDGET: Ticks = Ticks::whole_ns(500_000_000);

/// A question and its selected variants.
type Asked = (&'static str, Axes);

/// Measures the answers of the summary. Returns them as one record without findings, and the first problem.
///
/// # Errors
/// [`RunError`] if the example card cannot be simulated. An absent machine is listed as skipped.
pub fn measure(
    command: &[String],
    budget: Option<Ticks>,
    cancel: &Cancel,
) -> Result<(Record, Option<RunError>), RunError> {
    let mut record = Record::new(command.to_vec());
    let mut problem = None;
    for (name, asked) in [("host", of_host as fn(&Facts) -> Vec<Asked>), (CARD, of_card)] {
        let target: Target = name.parse()?;
        let bar = spinner(name.to_owned());
        let facts = match target.open(&Setup::default(), cancel) {
            Ok(open) => open.facts().clone(),
            Err(error) if name == CARD => return Err(error),
            Err(error) => {
                record.skipped.push(Skipped {
                    question: "every question".to_owned(),
                    target: name.to_owned(),
                    what: "everything".to_owned(),
                    because: error.to_string(),
                });
                continue;
            }
        };
        for (name, axes) in asked(&facts) {
            bar.set_message(format!("{name} on {}", facts.name));
            let usual = if name == "wc_buffers" { BUFFERS_BUDGET } else { BUDGET };
            // No user named the sizes: each gets the samples of an interval.
            let effort = Effort { budget: budget.unwrap_or(usual), has_default_sizes: true, ..Effort::default() };
            let request = Request {
                targets: vec![target.clone()],
                questions: vec![question(name)?],
                axes,
                effort,
                command: command.to_vec(),
                ..Request::default()
            };
            let outcome = run(&request, &mut |_| {}, cancel)?;
            add(&mut record, outcome.record);
            // A question that does not apply to this machine does not fail the others.
            problem = problem.or(outcome.problem.filter(|problem| problem.class() != Class::Absent));
            if record.interrupted {
                break;
            }
        }
        bar.finish_and_clear();
    }
    if let Some(text) = record.host.as_ref().and_then(Host::disturbance) {
        record.warnings.insert(0, text);
    }
    Ok((record, problem))
}

/// Adds the answers of one question. The load before is that of the first question, the load after that of the last.
fn add(record: &mut Record, other: Record) {
    for target in other.targets {
        if record.targets.iter().all(|known| known.name != target.name) {
            record.targets.push(target);
        }
    }
    record.answers.extend(other.answers);
    record.skipped.extend(other.skipped);
    // A disturbance is stated once for all questions.
    let disturbance = other.host.as_ref().and_then(Host::disturbance);
    for warning in other.warnings {
        if Some(&warning) != disturbance.as_ref() && !record.warnings.contains(&warning) {
            record.warnings.push(warning);
        }
    }
    record.written_unix_s = other.written_unix_s.or(record.written_unix_s);
    record.interrupted |= other.interrupted;
    if let Some(mut host) = other.host {
        if let Some(first) = record.host.take() {
            host.load_before = first.load_before;
        }
        record.host = Some(host);
    }
}

/// The widest of the `accesses` for which `is_wanted` returns true.
fn widest(accesses: &[Access], is_wanted: fn(&Access) -> bool) -> Vec<Access> {
    let widest = accesses.iter().copied().filter(is_wanted).max_by_key(|access| access.width().map(Width::bytes));
    widest.into_iter().collect()
}

fn of_host(facts: &Facts) -> Vec<Asked> {
    let stores = facts.accesses(Verb::Store);
    let plain = widest(stores, |access| matches!(access, Access::Plain(_)));
    let streaming = widest(stores, |access| matches!(access, Access::NonTemporal(_)));
    // The narrowest store fills a buffer in the most steps, and so makes eviction the most expensive.
    let non_temporal = stores.iter().copied().filter(|access| matches!(access, Access::NonTemporal(_)));
    let narrowest = non_temporal.min_by_key(|access| access.width().map(Width::bytes)).into_iter().collect();
    let fences = Some(vec![Some(Fence::Sfence), Some(Fence::Mfence)]);
    let both = plain.iter().chain(&streaming).copied().collect();
    vec![
        ("timer_cost", Axes::default()),
        ("fence_cost", Axes { fences, memory_types: Some(Vec::new()), ..Axes::default() }),
        ("syscall_latency", Axes::default()),
        ("core_to_core", Axes { accesses: Some(vec![Access::Plain(Width::B8)]), ..Axes::default() }),
        (
            "copy_routines",
            Axes { sizes: Some(vec![4 << 10, 4 << 20]), accesses: Some(vec![Access::Memcpy]), ..Axes::default() },
        ),
        (
            "mmio_write_bandwidth",
            Axes { sizes: Some(vec![16 << 10, 4 << 20]), accesses: Some(both), ..Axes::default() },
        ),
        ("wc_buffers", Axes { accesses: Some(narrowest), ..Axes::default() }),
    ]
}

fn of_card(_: &Facts) -> Vec<Asked> {
    let core = |memory_type, access, size| Axes {
        memory_types: Some(vec![memory_type]),
        accesses: Some(vec![Access::Plain(access)]),
        sizes: Some(vec![size]),
        ..Axes::default()
    };
    let dma = |size| Axes { sizes: Some(vec![size]), ..Axes::default() };
    vec![
        ("mmio_write_bandwidth", core(MemoryType::Wc, Width::B64, 4 << 20)),
        ("mmio_write_bandwidth", core(MemoryType::Uc, Width::B8, 4 << 10)),
        ("mmio_read_bandwidth", core(MemoryType::Uc, Width::B8, 4 << 10)),
        ("mmio_read_latency", core(MemoryType::Uc, Width::B8, 8)),
        ("dma_write_bandwidth", dma(4 << 20)),
        ("dma_read_bandwidth", dma(4 << 20)),
        ("dma_read_latency", dma(64)),
        ("doorbell_to_completion", dma(64)),
    ]
}

/// Diagnosis of the PCIe devices of this machine, or the reason why there is none.
pub fn pci() -> Result<Diagnosis, String> {
    match doctor::read(None) {
        Ok(inventory) => Ok(diagnose(&inventory, &DiagnosisRequest::default())),
        Err(Failure::Absent(why)) => Err(why),
        Err(failure) => Err(failure.to_string()),
    }
}
