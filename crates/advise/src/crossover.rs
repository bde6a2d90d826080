//! The size from which DMA to host memory is faster than loads.

use lanemark_method::{AccessPath, CoreAccess, Method};
use lanemark_record::{Answer, Finding, Quantity, Record, TargetKind};
use lanemark_units::format_size;

/// Reports, for each target and question with both methods, the size up to which loads are faster
/// and the size from which DMA writes are. Emulated targets are ignored.
pub(crate) fn crossovers(record: &Record) -> Vec<Finding> {
    let is_emulated =
        |name: &str| record.targets.iter().any(|target| target.name == name && target.kind == TargetKind::Emulated);
    let mut groups: Vec<(&str, &str)> = Vec::new();
    for answer in record.answers.iter().filter(|answer| is_loaded(answer) && !is_emulated(&answer.target)) {
        let key = (answer.target.as_str(), answer.question.as_str());
        if !groups.contains(&key) {
            groups.push(key);
        }
    }
    let found = groups.into_iter().filter_map(|(target, question)| {
        let of_group = |answer: &&Answer| answer.target == target && answer.question == question;
        let text = crossover(&record.answers.iter().filter(of_group).collect::<Vec<_>>())?;
        Some(Finding { question: question.to_owned(), target: target.to_owned(), text })
    });
    found.collect()
}

fn is_loaded(answer: &Answer) -> bool {
    let is_of_loads = matches!(answer.method, Method::Core(CoreAccess { path: AccessPath::Loads, .. }));
    is_of_loads && answer.quantity == Quantity::RoundTripLatency
}

fn is_called(answer: &Answer) -> bool {
    matches!(answer.method, Method::DmaCall { .. })
}

fn crossover(answers: &[&Answer]) -> Option<String> {
    let mut sizes: Vec<u64> = answers.iter().map(|answer| answer.size_bytes).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let fastest = |size: u64, loaded: bool| {
        let is_kind = |answer: &Answer| if loaded { is_loaded(answer) } else { is_called(answer) };
        let of_kind = answers.iter().filter(|answer| answer.size_bytes == size && is_kind(answer));
        let with_time = of_kind.filter_map(|answer| Some((*answer, answer.latency_ns?.median)));
        with_time.min_by(|one, other| one.1.total_cmp(&other.1))
    };
    let both = |size: u64| Some((size, fastest(size, true)?, fastest(size, false)?));
    let compared: Vec<_> = sizes.into_iter().filter_map(both).collect();
    let loads_win = |(_, loads, dma): &&(u64, (&Answer, f64), (&Answer, f64))| loads.1 <= dma.1;
    // There is one crossover only if DMA stays faster beyond it.
    let wins = compared.iter().take_while(loads_win).count();
    if compared[wins..].iter().any(|size| loads_win(&size)) {
        return None;
    }
    let (before, after) = (wins.checked_sub(1).and_then(|last| compared.get(last)), compared.get(wins));
    let method = |one: &(&Answer, f64)| format!("{} ({:.0} ns)", one.0.method, one.1);
    match (before, after) {
        (Some((small, loads, _)), Some((large, _, dma))) => Some(format!(
            "up to {} loads are faster, with {}; from {} on DMA is faster, with {}",
            format_size(*small),
            method(loads),
            format_size(*large),
            method(dma)
        )),
        (None, Some((large, _, dma))) => Some(format!(
            "from {} on, the smallest size, DMA is faster than loads, with {}",
            format_size(*large),
            method(dma)
        )),
        (Some((small, loads, _)), None) => Some(format!(
            "up to {}, the largest size, loads are faster than DMA, with {}",
            format_size(*small),
            method(loads)
        )),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{answer, record};
    use lanemark_method::{Access, Completion, Descriptors, Flow, Peer, Reach, Share, Verb, Width};
    use lanemark_record::Summary;
    use lanemark_units::MemoryType;

    fn timed(size: u64, method: Method, ns: f64) -> Answer {
        let (quantity, latency_ns) = (Quantity::RoundTripLatency, Summary::of(&[ns]));
        Answer { method, quantity, latency_ns, ..answer("8", size, None) }
    }

    fn texts(times: &[(u64, f64, f64)]) -> Vec<String> {
        let loads = Method::Core(CoreAccess {
            path: AccessPath::Loads,
            verb: Verb::Load,
            memory_type: MemoryType::Uc,
            access: Access::Plain(Width::B8),
            fence: None,
        });
        let call = Method::DmaCall {
            flows: vec![Flow { card: 0, verb: Verb::Store, peer: Peer::Host }],
            share: Share::List,
            descriptors: Descriptors::Written(MemoryType::Uc),
            completion: Completion::Flag,
            reach: Reach::default(),
        };
        let both = |(size, loads_ns, dma_ns): &(u64, f64, f64)| {
            [timed(*size, loads.clone(), *loads_ns), timed(*size, call.clone(), *dma_ns)]
        };
        crossovers(&record(times.iter().flat_map(both).collect())).into_iter().map(|finding| finding.text).collect()
    }

    #[test]
    fn the_crossover_is_between_the_last_size_for_loads_and_the_first_for_the_device() {
        let found = texts(&[(64, 5.0, 6.0), (128, 6.0, 6.0), (256, 9.0, 7.0)]);
        assert!(found[0].starts_with("up to 128B") || found[0].starts_with("up to 128 B"), "{found:?}");
        assert!(found[0].contains("from 256") && found[0].contains("(7 ns)"), "{found:?}");
    }

    #[test]
    fn a_method_that_always_wins_is_reported_with_the_end_of_the_sizes() {
        assert!(texts(&[(64, 9.0, 7.0)])[0].contains("the smallest size"));
        assert!(texts(&[(64, 5.0, 7.0)])[0].contains("the largest size"));
    }

    #[test]
    fn curves_that_cross_twice_have_no_crossover() {
        assert!(texts(&[(64, 5.0, 6.0), (128, 9.0, 7.0), (256, 6.0, 7.0)]).is_empty());
    }
}
