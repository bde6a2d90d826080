//! Findings about runtimes: the cost of kernel arguments, and the times of runs of copies.

use lanemark_method::Method;
use lanemark_record::{Answer, Detail, DeviceKind, Finding, Record, Runs, TargetKind};
use lanemark_units::format_size;

/// Reports, for each target and kind of memory, whether each argument of a kernel makes a launch
/// longer. Emulated targets are ignored.
pub(crate) fn accessors(record: &Record) -> Vec<Finding> {
    let found = record.answers.iter().filter_map(|answer| {
        let Method::Argument { allocation, .. } = answer.method else { return None };
        let memory = allocation.name().replace('_', " ");
        let (fit, slope) = (answer.fit?, answer.latency_ns?);
        let kind = record.targets.iter().find(|target| target.name == answer.target).map(|target| target.kind);
        let added = format!("{} in addition to {}", time(slope.median), time(fit.fixed_ns));
        let longer = format!("each {memory} argument makes a launch longer, without any copy: {added}");
        let no_longer = format!("no visible cost of a {memory} argument per launch");
        let text = match (slope.ci95, kind) {
            (_, Some(TargetKind::Emulated)) => return None,
            (Some(interval), _) => {
                let between = format!("95 % interval {} to {}", time(interval.low), time(interval.high));
                if interval.low > 0.0 { format!("{longer}, {between}") } else { format!("{no_longer}: {added}, {between}") }
            }
            (None, Some(TargetKind::Real)) => format!(
                "too few samples for the cost of a {memory} argument per launch: {added}, without an interval; measure again \
                 with --budget 10"
            ),
            (None, _) if slope.median > 0.0 => longer,
            (None, _) => no_longer,
        };
        Some(Finding { question: answer.question.clone(), target: answer.target.clone(), text })
    });
    found.collect()
}

/// Reports, for each target and size of copies, the times of runs by kind of memory. Emulated
/// targets are ignored.
pub(crate) fn runs(record: &Record) -> Vec<Finding> {
    let mut groups: Vec<Vec<(&Answer, &Runs)>> = Vec::new();
    for answer in &record.answers {
        let Some(Detail::Runs(runs)) = &answer.detail else { continue };
        let is_target = |kind| record.targets.iter().any(|target| target.name == answer.target && target.kind == kind);
        if is_target(TargetKind::Emulated) {
            continue;
        }
        let is_alike = |other: &Answer| (&other.target, other.size_bytes) == (&answer.target, answer.size_bytes);
        match groups.iter_mut().find(|group| group.first().is_some_and(|(first, _)| is_alike(first))) {
            Some(group) => group.push((answer, runs)),
            None => groups.push(vec![(answer, runs)]),
        }
    }
    let found = groups.iter().filter_map(|group| {
        let (first, runs) = group.first()?;
        let part = match runs.whole_copies / runs.copies.max(1) {
            0 | 1 => String::new(),
            times => format!(" (a whole run has {}, {times} times as many)", runs.whole_copies),
        };
        let each = group.iter().map(|(answer, runs)| {
            let memory = if let Method::RuntimeCopy { allocation, .. } = answer.method {
                allocation.name().replace('_', " ")
            } else {
                answer.method.to_string()
            };
            let (median, shortest, longest) =
                (seconds(runs.median_s), seconds(runs.shortest_s), seconds(runs.longest_s));
            if runs.runs == 1 {
                format!("{memory} {median}")
            } else {
                format!("{memory} {median} ({shortest} to {longest})")
            }
        });
        let each: Vec<String> = each.collect();
        let text = format!("{} copies of {}{part}: {}", runs.copies, format_size(first.size_bytes), each.join(", "));
        Some(Finding { question: first.question.clone(), target: first.target.clone(), text })
    });
    found.collect()
}

/// Reports, for each question about DMA that a processor behind a runtime answered, that no byte crossed a link.
pub(crate) fn own_memory(record: &Record) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for answer in record.answers.iter().filter(|answer| answer.method.is_dma()) {
        let target = record.targets.iter().find(|target| target.name == answer.target);
        let kind = target.and_then(|target| target.runtime.as_ref()).map(|runtime| runtime.device_kind);
        let is_known = |one: &Finding| (&one.question, &one.target) == (&answer.question, &answer.target);
        if kind != Some(DeviceKind::Cpu) || found.iter().any(is_known) {
            continue;
        }
        let text = "the device is the processor, so its DMA is loads of a core from memory: this answer is about memory, \
                    and no byte crosses PCIe";
        found.push(Finding { question: answer.question.clone(), target: answer.target.clone(), text: text.to_owned() });
    }
    found
}

/// A time with three digits or more.
fn seconds(seconds: f64) -> String {
    if seconds >= 1.0 { format!("{seconds:.2} s") } else { format!("{:.1} ms", seconds * 1e3) }
}

fn time(ns: f64) -> String {
    if ns.abs() >= 1000.0 { format!("{:.2} us", ns / 1e3) } else { format!("{ns:.0} ns") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use lanemark_method::{Allocation, CopyDirection, Flow, HostWait, LaunchBy, Peer, Reach, Verb};
    use lanemark_record::{LineFit, Runtime, Summary, Target};

    fn slope(allocation: Allocation, slopes: &[f64]) -> Answer {
        Answer {
            method: Method::Argument { wait: HostWait::Event, allocation },
            latency_ns: Summary::of(slopes),
            fit: Some(LineFit { per_call_ns: 1.0, fixed_ns: 5000.0, r_squared: 1.0 }),
            ..fixture::answer("8", 0, None)
        }
    }

    #[test]
    fn an_argument_has_a_cost_only_if_its_whole_interval_is_positive() {
        let text =
            |slopes: &[f64]| accessors(&fixture::record(vec![slope(Allocation::Buffer, slopes)]))[0].text.clone();
        let above = text(&[300.0; 9]);
        assert!(
            above.starts_with("each buffer argument makes a launch longer")
                && above.contains("300 ns in addition to 5.00 us")
        );
        let around = text(&[-9.0, -8.0, -1.0, 1.0, 2.0, 3.0, 4.0, 8.0, 9.0]);
        assert!(around.starts_with("no visible cost"), "{around}");
        assert!(text(&[0.0]).starts_with("no visible cost"));
        let on = |kind| {
            let targets = vec![fixture::target(kind)];
            accessors(&Record { targets, ..fixture::record(vec![slope(Allocation::Device, &[300.0])]) })
        };
        assert!(on(TargetKind::Simulated)[0].text.starts_with("each usm argument"));
        assert!(on(TargetKind::Real)[0].text.contains("too few samples"));
        assert!(on(TargetKind::Emulated).is_empty());
        let launch =
            Method::Launch { kernels: 1, by: LaunchBy::Calls, wait: HostWait::Event, arguments: None, pinned: true };
        let launched = Answer { method: launch, ..slope(Allocation::Buffer, &[1.0]) };
        assert!(accessors(&fixture::record(vec![launched])).is_empty());
    }

    #[test]
    fn dma_of_a_processor_behind_a_runtime_is_said_to_be_about_memory_once_a_question() {
        let (one, other) = (fixture::answer("8", 64, None), fixture::answer("8", 4096, None));
        let of = |device_kind| {
            let mut record = fixture::record(vec![
                Answer { method: reads(), ..one.clone() },
                Answer { method: reads(), ..other.clone() },
                slope(Allocation::Buffer, &[1.0]),
            ]);
            let runtime = Runtime { device_kind, is_emulated: false, software: None };
            record.targets =
                vec![Target { name: one.target.clone(), runtime: Some(runtime), ..fixture::target(TargetKind::Real) }];
            own_memory(&record)
        };
        let found = of(DeviceKind::Cpu);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].text.contains("this answer is about memory"), "{found:?}");
        assert!(of(DeviceKind::Gpu).is_empty());
    }

    fn reads() -> Method {
        let flows = vec![Flow { card: 0, verb: Verb::Load, peer: Peer::Host }];
        Method::Dma { flows, outstanding: Some(1), reach: Reach::default() }
    }

    #[test]
    fn runs_of_one_size_share_a_finding_with_spread_and_share_of_a_whole_run() {
        let run = |allocation, size, copies, median_s| {
            let mut answer = fixture::answer("8", size, None);
            let (direction, wait) = (CopyDirection::ToDevice, HostWait::Event);
            answer.method = Method::RuntimeCopy { direction, wait, allocation };
            let (shortest_s, longest_s) = (median_s / 2.0, median_s * 4.0);
            let runs = Runs { copies, whole_copies: 100_000, runs: 8, shortest_s, median_s, longest_s };
            answer.detail = Some(Detail::Runs(runs));
            answer
        };
        let answers = vec![
            run(Allocation::Buffer, 80_000, 1000, 0.25),
            run(Allocation::Host, 80_000, 1000, 0.5),
            run(Allocation::Buffer, 4096, 100_000, 30.0),
        ];
        let found: Vec<String> = runs(&fixture::record(answers)).into_iter().map(|finding| finding.text).collect();
        assert_eq!(
            found,
            [
                "1000 copies of 80000B (a whole run has 100000, 100 times as many): buffer 250.0 ms (125.0 ms to 1.00 s), \
                 host usm 500.0 ms (250.0 ms to 2.00 s)",
                "100000 copies of 4KiB: buffer 30.00 s (15.00 s to 120.00 s)"
            ]
        );
    }
}
