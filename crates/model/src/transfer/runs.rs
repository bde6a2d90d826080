//! Sums over runs of transfers.

use super::alike::AlikePiece;
use super::kept::Kept;
use super::packets::Packets;
use super::sum::Sum;
use super::way::{MOST_PIECES, PAGE, Piece, Way};
use lanemark_machine::Verb;
use lanemark_units::Ticks;
use std::ops::Range;

/// Requests whose times are added without overflow: a millisecond each is five hours.
const MOST_SUMMED: u64 = 1 << 24;

/// Requests of a page, of the shortest maximum payload of the specification.
const MOST_OF_PAGE: u64 = 32;

/// The first transfers of many, and the number of times that these stand for all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) transfers: u64,
    pub(super) times: f64,
}

impl Part {
    fn of(transfers: u64, all: u64) -> Part {
        Part { transfers, times: all as f64 / transfers as f64 }
    }
}

impl Way<'_> {
    /// The transfers whose sum is that of `all`: all of them if they are few or repeat, otherwise the first. `None` if
    /// the first one does not stand for the others.
    pub(super) fn part(&self, all: u64) -> Option<Part> {
        let Some(period) = self.short_period() else { return self.first_part(all) };
        let (requests, _) = self.count_and_last(0)?;
        let most = MOST_SUMMED / requests.max(1);
        Some(Part::of(if all <= most { all } else { (most / period).max(1) * period }, all))
    }

    /// As [`part`](Way::part), where each transfer of the part is computed.
    pub(super) fn part_one_by_one(&self, all: u64) -> Option<Part> {
        let first = self.first_part(all)?;
        let period = self.short_period().filter(|period| first.transfers < all && *period < all);
        Some(period.map_or(first, |period| Part::of(period, all)))
    }

    /// All transfers if they have few requests, otherwise the first ones; a single one if the others are the same at
    /// other addresses, and of several channels.
    fn first_part(&self, all: u64) -> Option<Part> {
        let (requests, _) = self.count_and_last(0)?;
        let few = MOST_PIECES / requests.max(1);
        if all <= few {
            return Some(Part::of(all, all));
        }
        let first = if self.channels > 1 || self.has_blocks() { 1 } else { few.max(1) };
        self.is_of_one_kind(all).then(|| Part::of(first, all))
    }

    /// Number of transfers after which the requests of a channel repeat, if they differ and it is quick to compute so many.
    fn short_period(&self) -> Option<u64> {
        let period = self.period().filter(|_| self.channels == 1 && !self.has_blocks())?;
        let (requests, _) = self.count_and_last(0)?;
        // Of the whole pages of a transfer, one is computed.
        let computed = if self.pages_are_alike() { requests.min(3 * MOST_OF_PAGE) } else { requests };
        (period.saturating_mul(computed) <= MOST_PIECES).then_some(period)
    }

    /// Sums over `transfers` transfers, from number `first` on.
    pub(super) fn sum(&self, first: u64, transfers: u64) -> Option<Sum> {
        let mut sum: Option<Sum> = None;
        let mut of_channel = vec![Ticks::ZERO; self.channels as usize];
        // Most transfers and requests of a window are the same at other addresses.
        let (mut earlier, mut earlier_requests) = (Kept::default(), Kept::default());
        if let Some(period) = self.period().filter(|_| self.channels == 1) {
            let (mut next, mut earlier) = (first, None);
            while next < first + transfers {
                let run = (first + transfers - next).min(self.until_start(next));
                let of_run = match earlier {
                    // Another pass over the whole window.
                    Some((whole, of_whole)) if whole == run && next > first + run => of_whole,
                    _ => self.sum_of_run(next, run, period, &mut earlier_requests)?,
                };
                earlier = Some((run, of_run));
                sum = Some(sum.map_or(of_run, |sum| sum.then(&of_run, self.can_be_overtaken())));
                next += run;
            }
            of_channel[0] = sum.map_or(Ticks::ZERO, |sum| sum.engine);
        } else {
            for nth in first..first + transfers {
                let alike = self.alike(nth);
                let of_one = match earlier.find(alike) {
                    Some(of_one) => of_one,
                    None => earlier.keep(alike, self.sum_of_one(nth, &mut earlier_requests)?),
                };
                of_channel[(nth % u64::from(self.channels)) as usize] += of_one.engine;
                sum = Some(sum.map_or(of_one, |sum| sum.then(&of_one, self.can_be_overtaken())));
            }
        }
        sum.map(|sum| {
            let others = sum.engine - sum.first_engine;
            let busiest = of_channel.into_iter().max().unwrap_or(sum.engine);
            Sum { beyond: others - sum.least_engine * (sum.requests - 1), busiest, ..sum }
        })
    }

    /// Sums over `run` transfers from number `first` on, whose requests repeat after `period` transfers.
    ///
    /// The sums are of whole ticks, so that their order has no effect: those of whole periods are doubled.
    fn sum_of_run(&self, first: u64, run: u64, period: u64, earlier: &mut Kept<AlikePiece, Piece>) -> Option<Sum> {
        let then = |sum: Option<Sum>, next: Sum| Some(sum.map_or(next, |sum| sum.then(&next, self.can_be_overtaken())));
        let (periods, rest) = (run / period, run % period);
        let (mut of_period, mut of_rest) = (None, None);
        for nth in 0..run.min(period) {
            of_period = then(of_period, self.sum_of_one(first + nth, earlier)?);
            if nth + 1 == rest {
                of_rest = of_period;
            }
        }
        let sum = self.repeated(&of_period?, periods);
        match of_rest {
            Some(rest) => then(sum, rest),
            None => sum,
        }
    }

    /// The sum of `times` equal sums; `None` of none.
    fn repeated(&self, one: &Sum, mut times: u64) -> Option<Sum> {
        let (mut sum, mut of_some): (Option<Sum>, Sum) = (None, *one);
        while times > 0 {
            if times % 2 == 1 {
                sum = Some(sum.map_or(of_some, |sum| sum.then(&of_some, self.can_be_overtaken())));
            }
            of_some = of_some.then(&of_some, self.can_be_overtaken());
            times /= 2;
        }
        sum
    }

    /// Whether data of a later request may arrive before those of the first: of writes, if another channel issued them,
    /// or of reads that hit in the cache.
    pub(super) fn can_be_overtaken(&self) -> bool {
        self.transfer.verb == Verb::Store || self.channels > 1 || !self.cached.is_empty()
    }

    /// Sums over transfer number `nth`, without [`busiest`](Sum::busiest) and [`beyond`](Sum::beyond).
    pub(super) fn sum_of_one(&self, nth: u64, earlier: &mut Kept<AlikePiece, Piece>) -> Option<Sum> {
        let (start, bytes) = self.range(nth)?;
        let of_first = PAGE - start % PAGE;
        if bytes < of_first + 2 * PAGE || !self.pages_are_alike() {
            return self.sum_of_part(nth, start, start..start + bytes, earlier);
        }
        // The first page has the descriptor of the transfer; whole pages after it are computed once.
        let (pages, rest) = ((bytes - of_first) / PAGE, (bytes - of_first) % PAGE);
        let (first_page, last_page) = (start + of_first, start + bytes - rest);
        let then = |sum: Sum, next: &Sum| sum.then(next, self.can_be_overtaken());
        let sum = self.sum_of_part(nth, start, start..first_page, earlier)?;
        let of_page = self.sum_of_part(nth, start, first_page..first_page + PAGE, earlier)?;
        let sum = then(sum, &self.repeated(&of_page, pages)?);
        match rest {
            0 => Some(sum),
            _ => Some(then(sum, &self.sum_of_part(nth, start, last_page..start + bytes, earlier)?)),
        }
    }

    /// As [`sum_of_one`](Way::sum_of_one), for the requests of a part of the transfer that begins at `start`.
    pub(super) fn sum_of_part(
        &self,
        nth: u64,
        start: u64,
        part: Range<u64>,
        earlier: &mut Kept<AlikePiece, Piece>,
    ) -> Option<Sum> {
        let mut sum: Option<Sum> = None;
        let egress = self.platform.endpoint.egress_ns.value;
        for chunk in self.split(part.start, part.end - part.start) {
            let engine = self.engine(chunk, chunk.address - start);
            let alike = self.alike_piece(chunk, chunk.address - start);
            let piece = match (earlier.find(alike), self.transfer.verb) {
                (Some(piece), _) => piece,
                (None, Verb::Store) => earlier.keep(alike, self.write(chunk, chunk.address - start)?),
                (None, Verb::Load) => earlier.keep(alike, self.read(chunk)?),
            };
            let request_beats = self.request_beats(chunk);
            let so_far = sum.get_or_insert(Sum {
                requests: 0,
                least_bytes: chunk.bytes,
                busiest: Ticks::ZERO,
                request_beats: Ticks::ZERO,
                least_request_beats: request_beats,
                engine: Ticks::ZERO,
                first_engine: engine,
                link: Ticks::ZERO,
                beats: Ticks::ZERO,
                at_region: Ticks::ZERO,
                packets: Packets::default(),
                latencies: Ticks::ZERO,
                last_way: piece.way,
                shortest: piece.way,
                first_latency: engine + piece.way,
                before_link: piece.before_link,
                before_beats: piece.before_beats,
                behind_link: piece.behind_link,
                last_at_region: Ticks::ZERO,
                besides_memory: piece.way,
                after: piece.after,
                least_after: piece.after,
                most_after: piece.after,
                held: piece.held,
                all_held: Ticks::ZERO,
                of_lines: Ticks::ZERO,
                most_of_lines: Ticks::ZERO,
                last_of_lines: Ticks::ZERO,
                root_reads: 0,
                root_loops: Ticks::ZERO,
                root_loop: piece.root_loop,
                root_way: piece.root_way,
                latency: engine + piece.way,
                most_latency: Ticks::ZERO,
                least_link: piece.link,
                most_link: piece.link,
                least_beats: piece.beats.max(piece.at_region),
                to_link: engine + egress,
                least_engine: engine,
                most_engine: engine,
                beyond: Ticks::ZERO,
                spread_lines: 0,
                queued: Ticks::ZERO,
                ahead: Ticks::ZERO,
            });
            so_far.requests += 1;
            so_far.least_bytes = so_far.least_bytes.min(chunk.bytes);
            so_far.request_beats += request_beats;
            so_far.least_request_beats = so_far.least_request_beats.min(request_beats);
            so_far.spread_lines += piece.spread_lines;
            so_far.queued += piece.queued.beats;
            so_far.ahead = so_far.ahead.max(piece.queued.ahead);
            so_far.engine += engine;
            so_far.link += piece.link;
            so_far.beats += piece.beats;
            so_far.at_region += piece.at_region;
            so_far.packets = so_far.packets.and(piece.packets);
            so_far.root_reads += piece.root_reads;
            so_far.root_loops += piece.root_loops;
            so_far.root_loop = so_far.root_loop.min(piece.root_loop);
            so_far.root_way = so_far.root_way.min(piece.root_way);
            so_far.latencies += engine + piece.way;
            so_far.last_way = piece.way;
            so_far.least_after = so_far.least_after.min(piece.after);
            so_far.most_after = so_far.most_after.max(piece.after);
            so_far.after = if self.can_be_overtaken() { so_far.least_after } else { piece.after };
            so_far.shortest = so_far.shortest.min(piece.way);
            if self.can_be_overtaken() {
                so_far.before_link = so_far.before_link.min(piece.before_link);
                so_far.before_beats = so_far.before_beats.min(piece.before_beats);
            }
            so_far.behind_link = so_far.behind_link.min(piece.behind_link);
            so_far.last_at_region = so_far.last_at_region.max(so_far.at_region + piece.besides_region);
            so_far.besides_memory = so_far.besides_memory.min(piece.way);
            so_far.held = so_far.held.min(piece.held);
            so_far.all_held += piece.held;
            so_far.last_of_lines = self.held_by_lines(nth, chunk);
            so_far.of_lines += so_far.last_of_lines;
            so_far.most_of_lines = so_far.most_of_lines.max(so_far.last_of_lines);
            so_far.most_latency = so_far.most_latency.max(engine + piece.way);
            so_far.latency = so_far.latency.min(engine + piece.way);
            so_far.least_link = so_far.least_link.min(piece.link);
            so_far.most_link = so_far.most_link.max(piece.link);
            so_far.least_beats = so_far.least_beats.min(piece.beats.max(piece.at_region));
            so_far.to_link = so_far.to_link.min(engine + egress);
            so_far.most_engine = so_far.most_engine.max(engine);
            so_far.least_engine = so_far.least_engine.min(engine);
        }
        sum
    }
}
