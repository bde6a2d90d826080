//! Writes to host memory, each followed by a read of the same bytes.

use super::{MOST_PIECES, Way, in_dws};
use crate::bounds::Largest;
use crate::path::Pool;
use crate::predict::{Bound, Prediction};
use lanemark_machine::{WriteRead, Writer};
use lanemark_platform::Platform;

/// The formula's answer for `passes` times `pairs`, if one pair is under way at a time: what a read takes, from when the engine
/// is done with the writes, or when memory has taken the last of them.
pub(crate) fn write_read(
    platform: &Platform,
    pairs: &WriteRead,
    passes: u64,
    written_by: Writer,
) -> Option<Prediction> {
    let (write, read) = (pairs.write, pairs.read());
    if write.outstanding != Some(1) || pairs.is_mixed || write.bytes == 0 {
        return None;
    }
    let all = write.count.checked_mul(passes).filter(|all| *all > 0)?;
    let found = |transfer| Way::found(platform, transfer, written_by);
    let (writes, reads) = (found(&write)?, found(&read)?);
    // What is read from elsewhere may have left the cache for what is written.
    let reads = if pairs.read == write.window || reads.cached.is_empty() { reads.of_written()? } else { return None };
    let each = writes.pieces(0)?.len() as u64 + reads.pieces(0)?.len() as u64;
    let (taken_apart, scale) = if each.saturating_mul(all) <= MOST_PIECES { (all, 1.0) } else { (1, all as f64) };
    if taken_apart < all && !writes.holds_alike() {
        return None;
    }
    let mut sum: Option<Largest> = None;
    let (mut last_ns, mut seen_ns, mut requests) = (0.0, 0.0, 0);
    // What the user's clock has to make up for when a pair begins, before the writes and behind the reads.
    let (mut owed_ns, mut kept_ns) = (0.0_f64, 0.0_f64);
    for nth in 0..taken_apart {
        let (written, asked) = (writes.sum(nth, 1)?, reads.sum(nth, 1)?);
        requests += written.requests + asked.requests;
        let (stored, answered) = (writes.terms(&written, 1.0), reads.terms(&asked, 1.0));
        // The first read goes to memory behind the last write, which leaves for the link when the engine is done with it.
        let egress = platform.endpoint.egress_ns.value.as_ns();
        let first_engine = asked.first_engine;
        owed_ns += written.queued.as_ns();
        let fed = owed_ns - written.ahead.as_ns() + written.least_engine.as_ns();
        let (is_fed, engine) = (fed <= written.engine.as_ns(), fed.max(written.engine.as_ns()));
        let stored =
            if is_fed { stored } else { stored.or(Largest::of([(Bound::Queue, engine + written.shortest.as_ns())])) };
        let last = in_dws(*writes.pieces(nth)?.last()?);
        let (path, ahead) = (&writes.path, Some((writes.header_dw, last)));
        let arrives =
            engine + egress + path.behind(ahead, (reads.header_dw, 0), first_engine, |_| Pool::ENDLESS).as_ns();
        let next_taken = writes.next_taken_after(written.requests).max(written.last_of_lines).as_ns();
        // The read behind it is looked up while the write is.
        let taken = stored.ns - (writes.memory()?.write_ns.value + writes.lookup()).as_ns() + next_taken;
        let unhindered = engine + first_engine.as_ns() + egress + path.unloaded(reads.header_dw, 0).as_ns();
        let held_up = (arrives.max(taken) - unhindered).max(0.0);
        // So held up, all that begins with the first read begins later.
        let behind = Largest::of([(stored.bound, engine + held_up)]).then(&reads.behind_first(&asked));
        kept_ns = kept_ns.max(engine + (first_engine + asked.before_beats).as_ns()) + asked.queued.as_ns();
        let taken_in = [(Bound::Queue, kept_ns - asked.ahead.as_ns())];
        let first = Largest::of([(if is_fed { stored.bound } else { Bound::Queue }, engine)]);
        let pair = first.then(&answered).or(behind).or(Largest::of(taken_in));
        (owed_ns, kept_ns) = ((owed_ns - pair.ns).max(0.0), (kept_ns - pair.ns).max(0.0));
        last_ns = answered.ns - first_engine.as_ns();
        // A core may see the last write later than the card has read it.
        seen_ns = sum.map_or(0.0, |sum| sum.ns) + stored.ns;
        sum = Some(sum.map_or(pair, |sum| sum.then(&pair)));
    }
    let start = writes.dma.start_ns.value.as_ns();
    // What is taken to be like the first one leaves as much to make up for.
    let of_queue = |way: &Way| way.sum(0, taken_apart).map(|sum| scale * sum.queued.as_ns() - sum.ahead.as_ns());
    let queued = Largest::of([(Bound::Queue, of_queue(&writes)?), (Bound::Queue, of_queue(&reads)?)]);
    let taken = (Bound::RootComplex, (scale * requests as f64 - 1.0) * reads.root_pace().as_ns());
    let largest = sum?.times(scale, 0.0).or(queued).or(Largest::of([taken]));
    let delivered_ns = start + largest.ns.max(seen_ns);
    let holds_for = "one card, one outstanding pair, no other traffic on its links";
    // With more than one request each way, what is behind the first of them is not told, nor what a device asks before it.
    let is_clear = each == 2 && writes.knows_lines(all, written_by) && !platform.has_ats();
    let lead = if is_clear { largest.lead() } else { 1.0 };
    Some(Prediction { issue_ns: delivered_ns - last_ns, delivered_ns, bound: largest.bound, lead, holds_for })
}
