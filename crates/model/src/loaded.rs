//! Latency of a read while several are outstanding.
//!
//! `max(unloaded latency, outstanding x time between completions)` (Little's law), with a constant number
//! outstanding. The time before the engine issues the read is not included. If the engine is the slowest stage, the
//! latency is therefore the unloaded one. Reads that wait for credits do so between engine and link; reads that wait
//! for memory do so there, and on links as far as credits allow.

use crate::bound::Bound;
use crate::path::Path;
use crate::predict::predict;
use crate::prediction::Prediction;
use crate::transfer;
use lanemark_machine::{EngineJob, Plan, Transfer};
use lanemark_platform::Platform;

/// For a plan of reads with a fixed number outstanding and prediction `said`; `None` for any other plan.
pub(crate) fn latency_ns(platform: &Platform, plan: &Plan, said: &Prediction) -> Option<f64> {
    let [EngineJob::Transfer(transfer)] = plan.work.jobs() else { return None };
    let outstanding = f64::from(transfer.outstanding.filter(|most| *most > 1)?);
    let dma = platform.dma.as_ref()?;
    // Differences between two runs exclude the start of a run.
    let more_ns = predict(platform, &Plan { passes: plan.passes.checked_mul(2)?, ..plan.clone() })?.delivered_ns;
    let each_ns = (more_ns - said.delivered_ns) / transfer.count.checked_mul(plan.passes)? as f64;
    let one = Transfer { count: 1, ..*transfer };
    let alone_ns = predict(platform, &Plan::new(one, 1))?.delivered_ns - dma.start_ns.value.as_ns();
    // A channel issues no read while it requests a translation; the number outstanding is then unknown.
    if transfer::asks_again(platform, transfer) {
        return Some(alone_ns);
    }
    let buffers = f64::from(dma.send_buffers.value);
    let up = Path::up(platform, transfer.card)?;
    let in_links: f64 = up.hops.iter().map(|hop| f64::from(hop.credits.nonposted.headers)).sum();
    let all_ns = outstanding * each_ns;
    let loaded_ns = match said.bound {
        Bound::Engine | Bound::SendBuffers | Bound::Latency | Bound::ReadRoundTrip => alone_ns,
        Bound::Memory => all_ns.min(alone_ns + (buffers + in_links) * each_ns),
        Bound::Credits | Bound::Replay => all_ns.min(alone_ns + buffers * each_ns),
        _ => all_ns,
    };
    Some(loaded_ns.max(alone_ns))
}
