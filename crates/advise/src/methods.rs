//! The best method of each question and size, and sudden drops of a method's rate.

use crate::conditions::conditions;
use lanemark_machine::Cause;
use lanemark_method::{Access, AccessPath, CopyDirection, CoreAccess, Method, Width};
use lanemark_record::{Advice, Answer, Detail, Finding, Formula, Quantity, Record, TargetKind};
use lanemark_units::{MemoryType, format_size};
use std::collections::BTreeMap;

/// Advises the best method per target, bandwidth question and size, if there are several methods.
///
/// The best method is the plainest within 2 % of the highest median delivered rate. Emulated
/// targets get no advice, because their times are not meaningful.
pub(crate) fn best_methods(record: &Record) -> Vec<Advice> {
    let rated = |answer: &&Answer| answer.quantity == Quantity::Bandwidth && !is_emulated(record, answer);
    let key =
        |answer: &'_ Answer| (answer.target.clone(), answer.question.clone(), task(answer).place(), answer.size_bytes);
    // The groups in the order of their first answers, and the place of each.
    let mut groups: Vec<Vec<&Answer>> = Vec::new();
    let mut places = BTreeMap::new();
    for answer in record.answers.iter().filter(rated) {
        let place = groups.len();
        if *places.entry(key(answer)).or_insert(place) == place {
            groups.push(Vec::new());
        }
    }
    for answer in &record.answers {
        if let Some(place) = places.get(&key(answer)) {
            groups[*place].push(answer);
        }
    }
    let advice = groups.into_iter().filter_map(|answers| {
        let target = &answers.first()?.target;
        let memcpy = record.targets.iter().find(|one| one.name == *target).map_or("", |one| &one.memcpy);
        best(answers.into_iter(), memcpy)
    });
    advice.collect()
}

/// The task of a method. Methods compete only within a task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Task {
    /// A copy to a destination that no cache holds.
    ColdCopy,
    /// A copy by a runtime, with any kind of memory.
    RuntimeCopy(CopyDirection),
    /// The other methods of the question.
    Other,
}

impl Task {
    /// Place in the order of the tasks.
    const fn place(self) -> u8 {
        match self {
            Task::ColdCopy => 0,
            Task::RuntimeCopy(direction) => 1 + direction as u8,
            Task::Other => u8::MAX,
        }
    }
}

fn task(answer: &Answer) -> Task {
    match &answer.method {
        Method::Core(CoreAccess { path: AccessPath::ColdCopy, .. }) => Task::ColdCopy,
        Method::RuntimeCopy { direction, .. } => Task::RuntimeCopy(*direction),
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
        | Method::Relay { .. }
        | Method::SmallCopies { .. }
        | Method::Launch { .. }
        | Method::Argument { .. }
        | Method::Compute { .. }
        | Method::MapUnmap { .. }
        | Method::SharedBuffer { .. } => Task::Other,
    }
}

fn is_emulated(record: &Record, answer: &Answer) -> bool {
    record.targets.iter().any(|target| target.name == answer.target && target.kind == TargetKind::Emulated)
}

fn best<'a>(answers: impl Iterator<Item = &'a Answer>, memcpy: &str) -> Option<Advice> {
    let mut rated: Vec<(&Answer, f64)> = answers.filter_map(|answer| Some((answer, rate(answer)?))).collect();
    rated.sort_by(|a, b| b.1.total_cmp(&a.1));
    let (fastest, (last, slowest)) = (rated.first()?.1, *rated.last()?);
    // The plainest of the methods that are as good as the fastest is advised.
    let as_good = rated.iter().filter(|rated| rated.1 >= fastest * AS_GOOD);
    let (first, fastest) = *as_good.min_by_key(|rated| plainness(&rated.0.method))?;
    if rated.len() < 2 || fastest / slowest < WORTH_CHOOSING {
        return None;
    }
    Some(Advice {
        question: first.question.clone(),
        target: first.target.clone(),
        size_bytes: first.size_bytes,
        method: first.method.clone(),
        delivered_rate_bytes_per_s_median: fastest,
        times_the_slowest: fastest / slowest,
        reason: reason(first, last),
        rules: conditions(&first.method, memcpy),
    })
}

/// Smallest ratio of the fastest to the slowest rate for which the choice matters.
const WORTH_CHOOSING: f64 = 1.05;

/// Share of the fastest rate from which a method counts as equally good.
const AS_GOOD: f64 = 0.98;

/// Rank of a method; the plainest has the lowest. It depends on the memory type first, ordinary
/// mappings being plainest, and then on the instruction, plain stores and `memcpy` being plainest.
pub(crate) fn plainness(method: &Method) -> (usize, usize) {
    fn rank<T: PartialEq>(plainest_first: &[T], one: Option<&T>) -> usize {
        plainest_first.iter().position(|other| Some(other) == one).unwrap_or(plainest_first.len())
    }
    let mappings = [MemoryType::Wb, MemoryType::Wc, MemoryType::Uc, MemoryType::Wt, MemoryType::Wp];
    let accesses = [
        Access::Memcpy,
        Access::Plain(Width::B64),
        Access::Plain(Width::B32),
        Access::Plain(Width::B16),
        Access::Plain(Width::B8),
        Access::RepMovsb,
        Access::Plain(Width::B4),
        Access::Plain(Width::B2),
        Access::Plain(Width::B1),
    ];
    (rank(&mappings, method.memory_type().as_ref()), rank(&accesses, method.access().as_ref()))
}

/// Smallest slow-down from one size to the next that is reported.
const CLIFF: f64 = 3.0;

/// Reports sizes at which methods suddenly become several times slower, explained by their TLPs. Methods of a question
/// with the same drop share one finding. Without TLP counts nothing is reported, because such a drop is usually the
/// size of a cache.
pub(crate) fn cliffs(record: &Record) -> Vec<Finding> {
    let is_seen = |answer: &Answer| answer.quantity == Quantity::Bandwidth && answer.tlps.is_some();
    if !record.answers.iter().any(is_seen) {
        return Vec::new();
    }
    let mut found: Vec<(Finding, Vec<String>)> = Vec::new();
    for (smaller, next) in record.answers.iter().zip(next_sizes(&record.answers)) {
        let Some(larger) = next.filter(|_| is_seen(smaller)) else { continue };
        let (Some(before), Some(after)) = (rate(smaller), rate(larger)) else { continue };
        if before / after >= CLIFF {
            let (question, target) = (smaller.question.clone(), smaller.target.clone());
            let finding = Finding { question, target, text: cliff(smaller, larger, before / after, record) };
            let method = smaller.method.to_string();
            match found.iter_mut().find(|(other, _)| *other == finding) {
                Some((_, methods)) => methods.push(method),
                None => found.push((finding, vec![method])),
            }
        }
    }
    let named = found.into_iter().map(|(finding, methods)| {
        let verb = if methods.len() == 1 { "falls" } else { "fall" };
        Finding { text: format!("{} {verb} {}", methods.join(", "), finding.text), ..finding }
    });
    named.collect()
}

/// A method, and its answers by size.
type Sizes<'a> = (&'a Method, BTreeMap<u64, &'a Answer>);

/// For each answer, the next larger size of the same method among the later answers.
fn next_sizes(answers: &[Answer]) -> Vec<Option<&Answer>> {
    // Answers of methods that are written alike, by method: the first one of each size.
    let mut later: BTreeMap<(&str, &str, u64, String), Vec<Sizes<'_>>> = BTreeMap::new();
    let mut next = vec![None; answers.len()];
    for (place, answer) in answers.iter().enumerate().rev() {
        let key = (answer.target.as_str(), answer.question.as_str(), answer.alignment_bytes, answer.method.to_string());
        let written_alike = later.entry(key).or_default();
        let same = written_alike.iter_mut().find(|(method, _)| **method == answer.method);
        if let Some((_, sizes)) = same {
            next[place] = sizes.range(answer.size_bytes.saturating_add(1)..).next().map(|(_, larger)| *larger);
            sizes.insert(answer.size_bytes, answer);
        } else {
            written_alike.push((&answer.method, BTreeMap::from([(answer.size_bytes, answer)])));
        }
    }
    next
}

/// Reports the number of write-combining buffers of each target, or why none was found. Emulated
/// targets are ignored.
pub(crate) fn buffers(record: &Record) -> Vec<Finding> {
    let real = record.answers.iter().filter(|answer| !is_emulated(record, answer));
    let found = real.filter_map(|answer| {
        let Some(Detail::Buffers(buffers)) = &answer.detail else { return None };
        let method = &answer.method;
        let text = match (buffers.count, buffers.flush_ns) {
            (Some(count), Some(flush_ns)) => format!(
                "{method} combines stores to up to {count} open lines ({}); with more open lines, every store is sent alone and \
                 costs {flush_ns:.1} ns",
                buffers.because
            ),
            _ => format!("{method}: buffer count unknown: {}", buffers.because),
        };
        Some(Finding { question: answer.question.clone(), target: answer.target.clone(), text })
    });
    found.collect()
}

/// The drop without its method.
fn cliff(smaller: &Answer, larger: &Answer, times: f64, record: &Record) -> String {
    let (from, to) = (format_size(smaller.size_bytes), format_size(larger.size_bytes));
    let fall = format!("{times:.0}-fold between {from} and {to}");
    let (Some(few), Some(many)) = (requests(smaller), requests(larger)) else { return fall };
    let packets = format!("{fall}: {from} take {few:.0} request TLPs, {to} take {many:.0}");
    let a_byte_each = (many - larger.size_bytes as f64).abs() < 0.5;
    if larger.method.access() != Some(Access::Memcpy) || !a_byte_each {
        return packets;
    }
    let memcpy = record.targets.iter().find(|target| target.name == larger.target).map(|target| &target.memcpy);
    let variant = memcpy.map_or("this memcpy", String::as_str);
    format!("{packets}; {variant} uses rep movsb there, which on this memory type moves one byte at a time")
}

/// Request TLPs per iteration.
fn requests(answer: &Answer) -> Option<f64> {
    let tlps = answer.tlps?;
    Some((tlps.writes + tlps.reads) as f64 / answer.passes.max(1) as f64)
}

fn rate(answer: &Answer) -> Option<f64> {
    let measured = answer.delivered_rate_bytes_per_s.map(|summary| summary.median);
    let said = answer.formula.as_ref().and_then(|formula| formula.delivered_rate_bytes_per_s);
    measured.or(said).filter(|rate| *rate > 0.0)
}

/// The limit of the fastest method, and the cost of the slowest.
fn reason(fastest: &Answer, slowest: &Answer) -> String {
    let mut parts = Vec::new();
    if let (Some(few), Some(many)) = (requests(fastest), requests(slowest))
        && few < many
    {
        let noun = if few < 1.5 { "TLP" } else { "TLPs" };
        parts.push(format!("it takes {few:.0} request {noun} where {} takes {many:.0}", slowest.method));
    }
    if let Some(wait) = slowest.waits.first().filter(|wait| wait.cause != Cause::Issue.name()) {
        parts.push(format!("with {}: {} ({:.0} % of the time)", slowest.method, wait.explanation, wait.share_percent));
    }
    match (fastest.waits.first(), &fastest.formula) {
        (Some(bound), _) => parts.push(format!("it is bound by {}", bound.in_words())),
        (None, Some(Formula { bound: Some(bound), .. })) => {
            parts.push(format!("by formula, it is bound by {bound}"));
        }
        (None, _) => {}
    }
    if parts.is_empty() { format!("fastest of all; {} is slowest", slowest.method) } else { parts.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{answer, record, target};
    use lanemark_method::{Allocation, HostWait};
    use lanemark_record::{Buffers, Tlps};

    #[test]
    fn the_fastest_method_of_each_size_is_advised_with_its_margin() {
        let advice = best_methods(&record(vec![
            answer("4", 64, Some(1e9)),
            answer("memcpy", 64, Some(4e9)),
            answer("4", 128, Some(3e9)),
            answer("memcpy", 128, Some(2e9)),
        ]));
        let found: Vec<(u64, String, f64)> = advice
            .iter()
            .map(|advice| (advice.size_bytes, advice.method.to_string(), advice.times_the_slowest))
            .collect();
        assert_eq!(found, [(64, "WC memcpy".to_owned(), 4.0), (128, "WC 4".to_owned(), 1.5)]);
    }

    #[test]
    fn the_next_size_is_the_first_later_answer_of_the_same_method_with_the_smallest_larger_size() {
        let sizes = [("4", 64), ("8", 64), ("4", 64), ("4", 256), ("8", 96), ("4", 128), ("4", 128), ("4", 32)];
        let answers: Vec<Answer> = sizes.iter().map(|(method, size)| answer(method, *size, Some(1e9))).collect();
        for (place, (next, smaller)) in next_sizes(&answers).into_iter().zip(&answers).enumerate() {
            // The rule in words, at the cost of a search for each answer.
            let is_same = |other: &&Answer| other.method == smaller.method && other.size_bytes > smaller.size_bytes;
            let wanted = answers[place + 1..].iter().filter(is_same).min_by_key(|other| other.size_bytes);
            let address = |answer: Option<&Answer>| answer.map(std::ptr::from_ref);
            assert_eq!(address(next), address(wanted), "{place}");
        }
    }

    #[test]
    fn emulated_targets_get_no_advice_and_no_buffer_count() {
        let answers = vec![answer("4", 64, Some(1e9)), answer("memcpy", 64, Some(4e9))];
        for (kind, wanted) in [(TargetKind::Real, 1), (TargetKind::Emulated, 0)] {
            let mut record = record(answers.clone());
            record.targets.push(target(kind));
            assert_eq!(best_methods(&record).len(), wanted, "{kind:?}");
        }
    }

    fn seen(access: &str, size_bytes: u64, rate: f64, writes: u64) -> Answer {
        let tlps = Tlps { writes, reads: 0, completions: 0, payload_bytes: size_bytes };
        Answer { tlps: Some(tlps), ..answer(access, size_bytes, Some(rate)) }
    }

    #[test]
    fn a_threefold_drop_is_reported_and_a_smaller_one_is_not() {
        let found = cliffs(&record(vec![seen("8", 1024, 3e9, 16), seen("8", 2048, 1e9, 64)]));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].text, "WC 8 falls 3-fold between 1KiB and 2KiB: 1KiB take 16 request TLPs, 2KiB take 64");
        assert_eq!(cliffs(&record(vec![seen("8", 1024, 2.99e9, 16), seen("8", 2048, 1e9, 64)])), []);
        assert_eq!(cliffs(&record(vec![seen("4", 1024, 9e9, 16), seen("8", 2048, 1e9, 64)])), []);
    }

    #[test]
    fn methods_with_the_same_drop_share_a_finding() {
        let of = |memory_type, size, rate, writes| {
            let mut answer = seen("memcpy", size, rate, writes);
            if let Method::Core(core) = &mut answer.method {
                core.memory_type = memory_type;
            }
            answer
        };
        let all = [MemoryType::Uc, MemoryType::Wt]
            .map(|memory_type| [of(memory_type, 1024, 0.19e9, 37), of(memory_type, 2048, 0.007e9, 2048)])
            .concat();
        let found = cliffs(&record(all));
        assert_eq!(found.len(), 1);
        assert!(
            found[0].text.starts_with("UC memcpy, WT memcpy fall 27-fold between 1KiB and 2KiB"),
            "{}",
            found[0].text
        );
    }

    #[test]
    fn a_drop_without_tlp_counts_is_not_reported() {
        assert_eq!(cliffs(&record(vec![answer("8", 1024, Some(9e9)), answer("8", 2048, Some(1e9))])), []);
    }

    #[test]
    fn a_drop_caused_by_rep_movsb_is_explained_by_its_tlps() {
        let found = cliffs(&record(vec![seen("memcpy", 1024, 0.19e9, 37), seen("memcpy", 2048, 0.007e9, 2048)]));
        assert!(found[0].text.contains("1KiB take 37 request TLPs, 2KiB take 2048"), "{}", found[0].text);
        assert!(found[0].text.contains("rep movsb"), "{}", found[0].text);
    }

    #[test]
    fn a_buffer_count_has_its_cost_and_a_missing_one_its_reason() {
        let with = |count, flush_ns| {
            let buffers = Buffers {
                count,
                because: "there is no step".to_owned(),
                curves: 2,
                agreeing_curves: 2,
                other_counts: vec![],
                confidence_percent: None,
                flushes_per_line: 8,
                flush_ns,
                flush_spread_percent: None,
                curve: vec![],
            };
            let answer = Answer { detail: Some(Detail::Buffers(buffers)), ..answer("nt8", 64, None) };
            super::buffers(&record(vec![answer]))[0].text.clone()
        };
        assert!(with(Some(16), Some(46.0)).contains("up to 16 open lines"));
        assert_eq!(with(None, None), "WC nt8: buffer count unknown: there is no step");
    }

    fn copied(direction: CopyDirection, allocation: Allocation, rate: f64) -> Answer {
        let method = Method::RuntimeCopy { direction, wait: HostWait::Event, allocation };
        Answer { method, ..answer("8", 64, Some(rate)) }
    }

    #[test]
    fn kinds_of_memory_compete_and_copy_directions_do_not() {
        let advice = best_methods(&record(vec![
            copied(CopyDirection::ToDevice, Allocation::Buffer, 2e9),
            copied(CopyDirection::ToDevice, Allocation::Device, 4e9),
            copied(CopyDirection::FromDevice, Allocation::Buffer, 9e9),
            copied(CopyDirection::FromDevice, Allocation::Host, 3e9),
        ]));
        let found: Vec<String> = advice.iter().map(|advice| advice.method.to_string()).collect();
        assert_eq!(found, ["usm to device by runtime, wait by event", "from device by runtime, wait by event"]);
    }

    #[test]
    fn cached_and_uncached_destinations_get_separate_advice() {
        let to = |path, access: &str, rate| {
            let mut answer = answer(access, 64, Some(rate));
            if let Method::Core(core) = &mut answer.method {
                core.path = path;
            }
            answer
        };
        let advice = best_methods(&record(vec![
            to(AccessPath::HotCopy, "memcpy", 9e9),
            to(AccessPath::HotCopy, "nt64", 3e9),
            to(AccessPath::ColdCopy, "memcpy", 2e9),
            to(AccessPath::ColdCopy, "nt64", 4e9),
        ]));
        let found: Vec<String> = advice.iter().map(|advice| advice.method.to_string()).collect();
        assert_eq!(found, ["WC memcpy, hot", "WC nt64, cold"]);
    }

    #[test]
    fn the_plainest_method_within_two_percent_is_advised() {
        let advised = |memcpy| {
            let rated = [answer("nt64", 64, Some(1e9)), answer("memcpy", 64, Some(memcpy)), answer("1", 64, Some(1e8))];
            best_methods(&record(rated.to_vec()))[0].method.access()
        };
        assert_eq!(advised(0.98e9), Some(Access::Memcpy));
        assert_eq!(advised(0.979e9), Some(Access::NonTemporal(Width::B64)));
    }

    #[test]
    fn one_method_or_no_rate_gives_no_advice() {
        assert_eq!(best_methods(&record(vec![answer("4", 64, Some(1e9))])), []);
        assert_eq!(best_methods(&record(vec![answer("4", 64, None), answer("8", 64, Some(1e9))])), []);
        assert_eq!(best_methods(&record(vec![answer("4", 64, Some(1e9)), answer("8", 64, Some(1.04e9))])), []);
    }
}
