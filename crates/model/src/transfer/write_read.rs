//! DMA writes to host memory, each followed by a read of the same length.

use super::way::{Way, in_dws};
use crate::bound::Bound;
use crate::bounds::Largest;
use crate::path::Pool;
use crate::prediction::Prediction;
use lanemark_machine::{WriteRead, Writer};
use lanemark_platform::Platform;

/// Predicts `passes` iterations of `pairs` with one outstanding pair: the time of a read, from the end of the writes
/// at the engine, or from the acceptance of the last write by memory.
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
    // Data read from elsewhere may have been evicted from the cache by the writes.
    let reads = if pairs.read == write.window || reads.cached.is_empty() { reads.of_written()? } else { return None };
    let each = writes.pieces(0)?.len() as u64 + reads.pieces(0)?.len() as u64;
    let [of_writes, of_reads] = [writes.part_one_by_one(all)?, reads.part_one_by_one(all)?];
    let part = if of_writes.transfers < of_reads.transfers { of_reads } else { of_writes };
    let (taken_apart, scale) = (part.transfers, part.times);
    let mut sum: Option<Largest> = None;
    let (mut last_ns, mut seen_ns, mut requests) = (0.0, 0.0, 0);
    // Lag of the user clock at the start of a pair, before the writes and after the reads.
    let (mut owed_ns, mut kept_ns) = (0.0_f64, 0.0_f64);
    for nth in 0..taken_apart {
        let (written, asked) = (writes.sum(nth, 1)?, reads.sum(nth, 1)?);
        requests += written.requests + asked.requests;
        let (stored, answered) = (writes.terms(&written, 1.0), reads.terms(&asked, 1.0));
        // The first read reaches memory after the last write, which is sent when the engine has finished it.
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
        // The lookup of the read overlaps with the write.
        let at_memory = stored.ns - (writes.memory()?.write_ns.value + writes.lookup()).as_ns();
        let unhindered = engine + first_engine.as_ns() + egress + path.unloaded(reads.header_dw, 0).as_ns();
        let held_up = |until: f64| engine + (arrives.max(until) - unhindered).max(0.0);
        // With that delay, everything that starts with the first read starts later. The root complex may accept reads
        // while memory is still busy with the writes: its pace counts from the first that it accepts.
        let next_taken = writes.next_taken_after(&written).map_or(0.0, |next| at_memory + next.as_ns());
        let accepted = held_up(next_taken.max(writes.accepted_after(&written)?.as_ns()));
        let taken = held_up(at_memory + written.last_of_lines.as_ns()).max(accepted);
        let (paced, others) =
            reads.behind_first(&asked).into_iter().partition::<Vec<_>, _>(|(bound, _)| *bound == Bound::RootComplex);
        let after = |start, terms| Largest::of([(stored.bound, start)]).then(&Largest::of(terms));
        let behind = after(accepted, paced).or(after(taken, others));
        kept_ns = kept_ns.max(engine + (first_engine + asked.before_beats).as_ns()) + asked.queued.as_ns();
        let taken_in = [(Bound::Queue, kept_ns - asked.ahead.as_ns())];
        let first = Largest::of([(if is_fed { stored.bound } else { Bound::Queue }, engine)]);
        let pair = first.then(&answered).or(behind).or(Largest::of(taken_in));
        (owed_ns, kept_ns) = ((owed_ns - pair.ns).max(0.0), (kept_ns - pair.ns).max(0.0));
        last_ns = answered.ns - first_engine.as_ns();
        // A core may observe the last write after the card has completed its read.
        seen_ns = sum.map_or(0.0, |sum| sum.ns) + stored.ns;
        sum = Some(sum.map_or(pair, |sum| sum.then(&pair)));
    }
    let start = writes.dma.start_ns.value.as_ns();
    // Transfers assumed to be like the first one leave the same lag.
    let of_queue = |way: &Way| way.sum(0, taken_apart).map(|sum| scale * sum.queued.as_ns() - sum.ahead.as_ns());
    let queued = Largest::of([(Bound::Queue, of_queue(&writes)?), (Bound::Queue, of_queue(&reads)?)]);
    let taken = (Bound::RootComplex, (scale * requests as f64 - 1.0) * reads.root_pace().as_ns());
    let largest = sum?.times(scale, 0.0).or(queued).or(Largest::of([taken]));
    let delivered_ns = start + largest.ns.max(seen_ns);
    let holds_for = "one card, one outstanding pair, no other traffic on its links";
    // With several requests in each direction, no term models what follows the first of them, nor earlier translation
    // requests of the device.
    let is_clear = each == 2 && writes.knows_lines(all, written_by) && !platform.has_ats();
    let lead = if is_clear { largest.lead() } else { 1.0 };
    Some(Prediction { issue_ns: delivered_ns - last_ns, delivered_ns, bound: largest.bound, lead, holds_for })
}
