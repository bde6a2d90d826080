//! Requests of a core to a device by stores: push, poll, fetch.

use crate::bound::Bound;
use crate::costs::Costs;
use crate::load;
use crate::prediction::Prediction;
use crate::store::{self, End};
use lanemark_machine::{Fence, Handshake, Stream, Verb};
use lanemark_platform::Platform;
use lanemark_units::MemoryType;

/// Predicts `passes` requests, back to back. `None` for a region with slow reads, which change when the status is
/// loaded, and for data and status in different regions.
///
/// The polling loop starts when the push is acknowledged to the core. Its first load waits at the region until the
/// data is accepted. A load returns the status at the time when the register is read, so the last load is the first
/// one whose register read follows the end of the work:
///
/// `loads = max(0, ceil((accepted + busy - first register read) / round trip)) + 1`.
pub(crate) fn predict(platform: &Platform, request: &Handshake, passes: u64) -> Option<Prediction> {
    let Handshake { data, access, status, busy } = *request;
    let region = platform.region_at(data.at.bar, data.at.offset, data.len)?;
    let polled = platform.region_at(status.bar, status.offset, Handshake::STATUS_BYTES)?;
    if region.name != polled.name || region.slow_read_every.value > 0 {
        return None;
    }
    let costs = Costs::new(platform, region)?;
    let stream = |verb| Stream::over(verb, access, data);
    let end = (data.memory_type == MemoryType::Wc).then(|| End::fence(&costs, Fence::Sfence));
    let push = store::predict(&costs, &stream(Verb::Store), costs.pace(access), end, 1);
    let fetch = load::predict(&costs, &stream(Verb::Load), 0, 1)?;
    let [there, read, back] = costs.read_phases(Handshake::STATUS_BYTES);
    let round_trip = there + read + back;
    let accepted = push.delivered_ns;
    let at_region = (push.issue_ns + there).max(accepted);
    let missed = ((accepted + busy.as_ns() - at_region - read) / round_trip).ceil().max(0.0);
    let polled = at_region + read + back + missed * round_trip;
    let issue_ns = passes as f64 * (polled + fetch.issue_ns);
    let holds_for = "one core that polls without a pause; no other traffic";
    let lead = push.lead.min(fetch.lead);
    Some(Prediction { issue_ns, delivered_ns: issue_ns, bound: Bound::ReadRoundTrip, lead, holds_for })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_machine::{Access, Span, Width};
    use lanemark_units::{BarOffset, Ticks};

    /// Time of requests of 8 B to a platform with round numbers; a read of the status takes 439.5 ns.
    fn takes(memory_type: MemoryType, busy: Ticks, passes: u64) -> f64 {
        let platform = lanemark_platform::preset("tacc-stratix4").unwrap().unwrap();
        let at = |offset| BarOffset { bar: 0, offset };
        let data = Span { at: at(64), len: 8, memory_type };
        let request = Handshake { data, access: Access::Plain(Width::B8), status: at(8), busy };
        predict(&platform, &request, passes).unwrap().issue_ns
    }

    #[test]
    fn the_status_is_loaded_again_if_its_register_is_read_before_the_end_of_the_work() {
        // The store takes 30 ns at the core and 152 ns until it is accepted: 15 ns to the root complex, 7 ns for its
        // 28 B on the link, 100 ns along it, 25 ns in the endpoint, 5 ns for its beat. A load reads the register 15 + 5
        // + 100 + 25 + 142.5 + 5 = 292.5 ns after its issue, so the first one finds work of up to 170.5 ns finished.
        let one = 439.5;
        let last = Ticks::from_ns(170.5).unwrap();
        assert_eq!(takes(MemoryType::Uc, Ticks::ZERO, 1), 30.0 + 2.0 * one);
        assert_eq!(takes(MemoryType::Uc, last, 1), 30.0 + 2.0 * one);
        assert_eq!(takes(MemoryType::Uc, last + Ticks(1), 1), 30.0 + 3.0 * one);
        assert_eq!(takes(MemoryType::Uc, last + Ticks(1), 3), 3.0 * (30.0 + 3.0 * one));
    }

    #[test]
    fn a_push_through_wc_memory_ends_with_its_fence() {
        let [uc, wc] = [MemoryType::Uc, MemoryType::Wc].map(|kind| takes(kind, Ticks::ZERO, 1));
        assert!(wc > uc + 2.0 && wc < uc + 10.0, "the fence takes 2 ns: {uc} and {wc}");
    }
}
