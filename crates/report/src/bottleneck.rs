//! Whether a parameter of the platform acts on the bottleneck of an answer.

use lanemark_machine::Cause;
use lanemark_record::{Answer, PathPart};

/// Whether the parameter `key` of a platform can shorten the longest share of the answer's critical path; `None` without
/// a path.
///
/// Work is shortened by a parameter of that work. Latency that a limit of concurrency keeps from overlapping is shortened
/// by more of the limit, or by a time of a place where the path has such latency.
#[must_use]
pub fn acts_on_bottleneck(answer: &Answer, key: &str) -> Option<bool> {
    let first = answer.waits.first()?;
    let cause = Cause::named(&first.cause)?;
    let is_time = key.ends_with("_ns");
    let is_there = || {
        let same = |part: &&PathPart| part.is_latency && part.cause == first.cause;
        answer.critical_path.iter().filter(same).any(|part| describes(key, &part.place))
    };
    Some(cause.is_changed_by(key) && (!first.is_latency || !is_time || is_there()))
}

/// Whether a key of the platform describes this place of a critical path.
fn describes(key: &str, place: &str) -> bool {
    let is_link = place.ends_with(" up") || place.ends_with(" down");
    match key.split('.').next().unwrap_or_default() {
        "memory" => place == "memory",
        "root_complex" => place == "root complex",
        "iommu" => place == "IOMMU",
        "core" | "driver" | "runtime" | "memcpy" | "coherence" => place.starts_with("core"),
        "link" | "switch" | "retimer" | "slot" => is_link,
        _ => !is_link && (place.starts_with("card") || place.starts_with("DMA engine")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_of_a_place_without_such_latency_does_not_act_on_it() {
        let sections = [
            "memory.read_ns",
            "root_complex.peer_forward_ns",
            "iommu.walk_ns",
            "core.sfence_ns",
            "link.latency_ns",
            "dma.beat_ns",
        ];
        let places = ["memory", "root complex", "IOMMU", "core 0", "card up", "DMA engine"];
        for (nth, key) in sections.iter().enumerate() {
            let described: Vec<&str> = places.into_iter().filter(|place| describes(key, place)).collect();
            assert_eq!(described, [places[nth]], "{key}");
        }
        assert!(describes("region.memory.read_ns", "card 0") && describes("switch.top.latency_ns", "rc47a down"));
    }
}
