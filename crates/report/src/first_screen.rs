//! One-screen summary of `lanemark bench` without options: this machine, an example card with its limits, and further
//! commands.
//!
//! It has at most 40 lines of at most 100 columns. The full tables ([`crate::tables`]) have every figure.

use crate::figures::{self, counted};
use crate::grid::{Column, Grid, wrap};
use crate::panel::{Point, headline, summary, title};
use crate::table::{kind_in_words, origins_in_words};
use lanemark_method::{
    Access, AccessPath, Clock, Completion, CoreAccess, Descriptors, Fence, KernelCall, LineSource, Lines, Method,
    Share, Verb,
};
use lanemark_record::diagnosis::{Diagnosis, Severity};
use lanemark_record::{Answer, Detail, DoubtKind, Quantity, Record, Target, TargetKind};

/// Columns of the summary, even on a wider terminal.
const WIDTH: u16 = 100;

/// Renders `record` as one screen. `pci` is the diagnosis of this machine's PCIe devices, or the reason for its
/// absence.
#[must_use]
pub fn first_screen(record: &Record, pci: Result<&Diagnosis, &str>) -> String {
    let mut blocks = vec![machine(record, pci)];
    let of_kind = |is_simulated: bool| {
        record.targets.iter().filter(move |target| (target.kind == TargetKind::Simulated) == is_simulated)
    };
    blocks.extend(of_kind(false).map(|target| costs(record, target)));
    blocks.extend(of_kind(true).map(|target| card(record, target)));
    blocks.extend(skipped(record));
    blocks.push(commands());
    blocks.retain(|block| !block.is_empty());
    blocks.join("\n\n") + "\n"
}

/// The processor, its disturbances, and its PCIe devices.
fn machine(record: &Record, pci: Result<&Diagnosis, &str>) -> String {
    let host = record.host.as_ref();
    let mut lines = Vec::new();
    if let Some(host) = host {
        let processor = host.processor.value().map_or("unknown processor", |name| name.as_str());
        let cpus = host.cpu_count().map(|count| format!(", {}", counted(count, "CPU"))).unwrap_or_default();
        let load = host.load_before.value().map(|load| format!(", load {}", load.one_minute)).unwrap_or_default();
        lines.push(wrap(&format!("This machine: {processor}{cpus}{load}"), Some(WIDTH), 2));
        lines.extend(host.disturbance().map(|text| wrap(&format!("WARNING: {text}"), Some(WIDTH), 2)));
    }
    let pci = match pci {
        Ok(diagnosis) => {
            let found = |severity| diagnosis.findings.iter().filter(|finding| finding.severity == severity).count();
            let severities = [
                (Severity::Broken, "broken"),
                (Severity::Costly, "costly"),
                (Severity::Minor, "minor"),
                (Severity::Hint, "hint"),
            ];
            let findings: Vec<String> = severities
                .into_iter()
                .filter(|(severity, _)| found(*severity) > 0)
                .map(|(severity, name)| format!("{} {name}", found(severity)))
                .collect();
            let findings = if findings.is_empty() { "none".to_owned() } else { findings.join(", ") };
            format!("PCIe: {}, findings: {findings}", counted(diagnosis.functions.len(), "function"))
        }
        Err(why) => format!("PCIe: {why}"),
    };
    lines.push(wrap(&pci, Some(WIDTH), 2));
    lines.join("\n")
}

/// A row of the table of a machine: its text, and the selection of its answer.
struct CostRow {
    what: &'static str,
    is: fn(&Answer) -> bool,
}

const SMALL: u64 = 16 << 10;
const LARGE: u64 = 4 << 20;

/// The rows in output order: costs before rates.
const COSTS: &[CostRow] = &[
    CostRow { what: "time-stamp counter, rdtsc", is: |answer| answer.method == Method::Clock { clock: Clock::Rdtsc } },
    CostRow { what: "store fence, sfence alone", is: |answer| answer.method == Method::Fence { fence: Fence::Sfence } },
    CostRow { what: "full fence, mfence alone", is: |answer| answer.method == Method::Fence { fence: Fence::Mfence } },
    CostRow {
        what: "system call, getppid",
        is: |answer| answer.method == Method::KernelCall { call: KernelCall::Getppid },
    },
    CostRow { what: "wake-up of a thread on another core", is: |answer| matches!(answer.method, Method::Wake { .. }) },
    CostRow {
        what: "cache line to another core, one way",
        is: |answer| matches!(answer.method, Method::CacheLines { access: Access::Plain(_), lines: Lines::One, .. }),
    },
    CostRow {
        what: "load that misses every cache",
        is: |answer| answer.method == Method::LineLoad { source: LineSource::Memory },
    },
    CostRow { what: "memcpy of 4 KiB, cached", is: |answer| is_copy(answer, 4 << 10) },
    CostRow { what: "memcpy of 4 MiB", is: |answer| is_copy(answer, LARGE) },
    CostRow { what: "stores to WB memory, 16 KiB in cache", is: |answer| is_store(answer, SMALL, false) },
    CostRow { what: "stores to WB memory, 4 MiB", is: |answer| is_store(answer, LARGE, false) },
    CostRow { what: "non-temporal stores to WB memory, 4 MiB", is: |answer| is_store(answer, LARGE, true) },
];

fn is_copy(answer: &Answer, size: u64) -> bool {
    answer.size_bytes == size
        && matches!(
            answer.method,
            Method::Core(CoreAccess { path: AccessPath::HotCopy, access: Access::Memcpy, fence: None, .. })
        )
}

fn is_store(answer: &Answer, size: u64, is_non_temporal: bool) -> bool {
    let Method::Core(CoreAccess { path: AccessPath::Pointer, verb: Verb::Store, access, fence: None, .. }) =
        answer.method
    else {
        return false;
    };
    let is_kind =
        if is_non_temporal { matches!(access, Access::NonTemporal(_)) } else { matches!(access, Access::Plain(_)) };
    answer.quantity == Quantity::Bandwidth && answer.size_bytes == size && is_kind
}

/// Costs of a core, a fence, a system call and a copy on a real target.
fn costs(record: &Record, target: &Target) -> String {
    let answers = || record.answers.iter().filter(|answer| answer.target == target.name);
    let columns = vec![
        Column::words("cost or rate on this machine"),
        Column::figures("median"),
        Column::figures("±MAD"),
        Column::words("remarks"),
    ];
    let mut grid = Grid { columns, rows: Vec::new() };
    for row in COSTS {
        let Some((answer, summary)) =
            answers().find_map(|answer| Some((answer, summary(answer).filter(|_| (row.is)(answer))?)))
        else {
            continue;
        };
        let in_words = if answer.quantity == Quantity::Bandwidth { figures::rate } else { figures::time };
        grid.rows.push(vec![row.what.to_owned(), in_words(summary.median), in_words(summary.mad), remarks(answer)]);
    }
    let buffers = answers().find_map(|answer| match &answer.detail {
        Some(Detail::Buffers(buffers)) => Some(buffers),
        _ => None,
    });
    if let Some(buffers) = buffers {
        let (count, remark) = match buffers.count {
            Some(count) => {
                let confidence = buffers.confidence_percent.map(|percent| format!("confidence {percent:.0} %"));
                (count.to_string(), confidence.unwrap_or_default())
            }
            None => ("unknown".to_owned(), "no clear step in the curve, or curves that differ".to_owned()),
        };
        grid.rows.push(vec!["write-combining buffers".to_owned(), count, String::new(), remark]);
    }
    if grid.rows.is_empty() {
        return String::new();
    }
    // The columns are the same with and without remarks.
    grid.lines(Some(WIDTH)).join("\n")
}

/// The doubts about an answer, except a busy machine, which the first lines of the summary state.
fn remarks(answer: &Answer) -> String {
    let doubts = answer.doubts.iter().filter(|doubt| doubt.kind != DoubtKind::BusyMachine);
    doubts.map(|doubt| doubt.kind.in_words()).collect::<Vec<_>>().join(", ")
}

/// A simulated card in one table: figure, limit, share, bound.
fn card(record: &Record, target: &Target) -> String {
    let origins = target.origins.map_or_else(String::new, |origins| format!("; {}", origins_in_words(origins)));
    let head = format!("Example card: {} ({}){origins}", target.name, kind_in_words(target.kind));
    let columns = vec![
        Column::words("question, method"),
        Column::figures("size"),
        Column::figures("figure"),
        Column::figures("limit"),
        Column::figures("of limit"),
        Column::words("bound by"),
    ];
    let mut grid = Grid { columns, rows: Vec::new() };
    for answer in record.answers.iter().filter(|answer| answer.target == target.name && is_example(answer)) {
        let point = Point { answer, value: headline(answer, Some(target.kind)) };
        let in_words = if answer.quantity == Quantity::Bandwidth { figures::rate } else { figures::time };
        grid.rows.push(vec![
            row_name(answer),
            figures::size(answer.size_bytes),
            point.value.map(in_words).unwrap_or_default(),
            answer.ceiling.rate_bytes_per_s.map(figures::rate).unwrap_or_default(),
            point.share_in_words().unwrap_or_default(),
            point.bound_in_words().unwrap_or_default(),
        ]);
    }
    let lines = grid.lines(Some(WIDTH));
    std::iter::once(wrap(&head, Some(WIDTH), 2)).chain(lines).collect::<Vec<_>>().join("\n")
}

/// The question, with the part of the method that the question does not determine.
fn row_name(answer: &Answer) -> String {
    // The unit of the figure distinguishes bandwidth from latency.
    let question = title(&answer.question);
    let question = question.trim_end_matches(" bandwidth").trim_end_matches(" latency").to_owned();
    match &answer.method {
        Method::Dma { .. } => question,
        Method::DmaCall { completion, .. } => format!("Doorbell to {completion}"),
        method => format!("{question}, {method}"),
    }
}

/// Whether to show the answer. Of driver calls: writes of one card with prepared descriptors, polled or by interrupt.
fn is_example(answer: &Answer) -> bool {
    match answer.method {
        Method::DmaCall { ref flows, share, descriptors, completion, .. } => {
            flows.iter().all(|flow| flow.verb == Verb::Store)
                && share == Share::Doorbell
                && matches!(descriptors, Descriptors::Written(_))
                && completion != Completion::Register
        }
        _ => true,
    }
}

/// Targets that could not be measured.
fn skipped(record: &Record) -> Option<String> {
    let lines: Vec<String> = record
        .skipped
        .iter()
        .filter(|skipped| skipped.question == "every question")
        .map(|skipped| wrap(&format!("not measured: {}: {}", skipped.target, skipped.because), Some(WIDTH), 2))
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Suggested commands.
fn commands() -> String {
    [
        "Next:",
        "  lanemark bench --full --html report.html   all questions for this machine and the example card",
        "  lanemark doctor                            findings about the PCIe devices of this machine",
        "  lanemark bench --on 0000:01:00.0 --dry-run a real card: what would be accessed",
    ]
    .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{doctor_fixture, fixture};

    #[test]
    fn summary_fits_into_forty_lines_of_a_hundred_columns() {
        let record = fixture::record();
        let text = first_screen(&record, Err("no PCI bus"));
        assert!(text.lines().count() <= 40, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= usize::from(WIDTH)), "{text}");
        assert!(text.contains("PCIe: no PCI bus") && text.contains("Next:"), "{text}");
    }

    #[test]
    fn findings_are_counted_by_severity() {
        let diagnosis = doctor_fixture::sample();
        let text = first_screen(&fixture::record(), Ok(&diagnosis));
        let line = text.lines().find(|line| line.starts_with("PCIe:")).expect("a line about PCIe");
        let count: usize = line
            .split("findings: ")
            .nth(1)
            .map_or(0, |rest| rest.split(", ").filter_map(|part| part.split(' ').next()?.parse::<usize>().ok()).sum());
        assert_eq!(count, diagnosis.findings.len(), "{line}");
    }

    #[test]
    fn every_row_has_a_unique_text() {
        let texts: Vec<&str> = COSTS.iter().map(|row| row.what).collect();
        assert!(texts.iter().enumerate().all(|(place, text)| !texts[..place].contains(text)));
    }
}
