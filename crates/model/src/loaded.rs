//! How long a read takes of several under way at once.
//!
//! `max(alone, number under way x time from one end to the next)` (Little), while there are always as many. What a read waits
//! for before its engine makes it is no part of it: where the engine is slowest it takes as long as alone; what waits for
//! credits does so in the places between engine and link, and what waits for memory there and where links have credits for it.

use crate::path::Path;
use crate::predict::{Bound, Prediction, predict};
use crate::transfer;
use lanemark_machine::{Op, Plan, Transfer};
use lanemark_platform::Platform;

/// For a plan of reads with a number under way, of which `said` is known; `None` for any other.
pub(crate) fn latency_ns(platform: &Platform, plan: &Plan, said: &Prediction) -> Option<f64> {
    let ([lane], []) = (plan.lanes.as_slice(), plan.before.as_slice()) else { return None };
    let [Op::Transfer(transfer)] = lane.body.as_slice() else { return None };
    let outstanding = f64::from(transfer.outstanding.filter(|most| *most > 1)?);
    let dma = platform.dma.as_ref()?;
    // As many reads more: how a run begins is no part of what one takes.
    let more_ns = predict(platform, &Plan { passes: plan.passes.checked_mul(2)?, ..plan.clone() })?.delivered_ns;
    let each_ns = (more_ns - said.delivered_ns) / transfer.count.checked_mul(plan.passes)? as f64;
    let one = Op::Transfer(Transfer { count: 1, ..*transfer });
    let alone_ns = predict(platform, &Plan::on_one_core(vec![one], 1))?.delivered_ns - dma.start_ns.value.as_ns();
    // A channel makes no read while it asks where one leads: how many are under way is not known, nor how many wait for the answer.
    if transfer::asks_again(platform, transfer) {
        return Some(alone_ns);
    }
    let buffers = f64::from(dma.send_buffers.value);
    let up = Path::up(platform, transfer.card)?;
    let in_links: f64 = up.hops.iter().map(|hop| f64::from(hop.credits.nonposted.headers)).sum();
    let all_ns = outstanding * each_ns;
    let loaded_ns = match said.bound {
        Bound::Engine | Bound::Buffers => alone_ns,
        Bound::Memory => all_ns.min(alone_ns + (buffers + in_links) * each_ns),
        Bound::Credits | Bound::Replay => all_ns.min(alone_ns + buffers * each_ns),
        _ => all_ns,
    };
    Some(loaded_ns.max(alone_ns))
}
