//! Sums over runs of transfers.

use super::alike::AlikeRequest;
use super::kept::Kept;
use super::kinds::Kind;
use super::sum::Sum;
use super::way::{MOST_PIECES, PAGE, Way};
use lanemark_machine::Verb;
use lanemark_units::Ticks;
use lanemark_wire::Chunk;
use std::ops::Range;

/// Requests whose times are added without overflow: a millisecond each is five hours.
const MOST_SUMMED: u64 = 1 << 24;

/// Transfers that are counted, once for each window: those of a usual run, 16 MiB in 64 B.
const MOST_COUNTED: u64 = 1 << 18;

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
        let Some(period) = self.short_period() else {
            return self.first_part(all).or_else(|| self.counted_part(all));
        };
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

    /// All transfers, if those that are alike are counted: the first ones do not stand for the others, in a cache and beside it.
    fn counted_part(&self, all: u64) -> Option<Part> {
        (all <= MOST_COUNTED && self.kinds(0, all).is_some()).then(|| Part::of(all, all))
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
        let whole = |sum: Sum, busiest: Ticks| {
            let others = sum.engine - sum.first_engine;
            Sum { beyond: others - sum.least_engine * (sum.requests - 1), busiest, ..sum }
        };
        if transfers == 1 {
            let sum = self.sum_of_one(first, &mut Kept::default())?;
            return Some(whole(sum, sum.engine));
        }
        let mut sum: Option<Sum> = None;
        let mut of_channel = vec![Ticks::ZERO; self.channels as usize];
        // Most transfers and requests of a window are the same at other addresses.
        let (mut earlier, mut earlier_requests) = (Kept::default(), Kept::default());
        if let Some(period) = self.period().filter(|_| self.channels == 1) {
            let (mut next, end) = (first, first + transfers);
            while next < end {
                let run = (end - next).min(self.until_start(next));
                // From one start of the window to the next, all passes are the same.
                let is_whole = run == self.transfer.window.places(self.transfer.bytes);
                let passes = if is_whole { (end - next) / run } else { 1 };
                let of_run = self.sum_of_run(next, run, period, &mut earlier_requests)?;
                self.append(&mut sum, &self.repeated(&of_run, passes)?);
                next += run * passes;
            }
            of_channel[0] = sum.map_or(Ticks::ZERO, |sum| sum.engine);
        } else if let Some(kinds) = self.kinds(first, transfers) {
            sum = Some(self.sum_of_one(first, &mut earlier_requests)?);
            for Kind { nth, between } in kinds.all.iter().filter(|kind| kind.between > 0) {
                let of_one = self.sum_of_one(*nth, &mut earlier_requests)?;
                self.append(&mut sum, &self.repeated(&of_one, *between)?);
            }
            self.append(&mut sum, &self.sum_of_one(first + transfers - 1, &mut earlier_requests)?);
            of_channel[0] = sum.map_or(Ticks::ZERO, |sum| sum.engine);
        } else {
            // Between the first and the last, those that are alike are added together: of host memory, their order has no
            // effect.
            let (last, mut of_last) = ((first + transfers).saturating_sub(1), None);
            for nth in first..first + transfers {
                let alike = self.alike(nth);
                let (mut computed, mut is_kept) = (None, true);
                let (of_one, times) = if let Some(known) = earlier.find(alike) {
                    known
                } else {
                    let of_one = (self.sum_of_one(nth, &mut earlier_requests)?, 0);
                    earlier.keep(alike, of_one).unwrap_or_else(|| {
                        is_kept = false;
                        computed.insert(of_one)
                    })
                };
                of_channel[(nth % u64::from(self.channels)) as usize] += of_one.engine;
                match nth {
                    _ if nth == first => sum = Some(*of_one),
                    _ if nth == last => of_last = Some(*of_one),
                    _ if is_kept => *times += 1,
                    _ => self.append(&mut sum, of_one),
                }
            }
            for (of_one, times) in earlier.values().filter(|(_, times)| *times > 0) {
                self.append(&mut sum, &self.repeated(of_one, *times)?);
            }
            if let Some(of_last) = of_last {
                self.append(&mut sum, &of_last);
            }
        }
        sum.map(|sum| whole(sum, of_channel.into_iter().max().unwrap_or(sum.engine)))
    }

    /// Adds the sum of the requests after those of `sum`.
    fn append(&self, sum: &mut Option<Sum>, next: &Sum) {
        match sum {
            Some(sum) => sum.append(next, self.can_be_overtaken()),
            None => *sum = Some(*next),
        }
    }

    /// Sums over `run` transfers from number `first` on, whose requests repeat after `period` transfers.
    ///
    /// The sums are of whole ticks, so that their order has no effect: those of whole periods are doubled.
    fn sum_of_run(&self, first: u64, run: u64, period: u64, earlier: &mut Kept<AlikeRequest, Sum>) -> Option<Sum> {
        let (periods, rest) = (run / period, run % period);
        let (mut of_period, mut of_rest) = (None, None);
        for nth in 0..run.min(period) {
            self.add_one(&mut of_period, first + nth, earlier)?;
            if nth + 1 == rest {
                of_rest = of_period;
            }
        }
        let mut sum = self.repeated(&of_period?, periods);
        if let Some(of_rest) = of_rest {
            self.append(&mut sum, &of_rest);
        }
        sum
    }

    /// The sum of `times` equal sums; `None` of none.
    fn repeated(&self, one: &Sum, mut times: u64) -> Option<Sum> {
        let (mut sum, mut of_some): (Option<Sum>, Sum) = (None, *one);
        while times > 0 {
            if times % 2 == 1 {
                self.append(&mut sum, &of_some);
            }
            times /= 2;
            if times > 0 {
                let as_many = of_some;
                of_some.append(&as_many, self.can_be_overtaken());
            }
        }
        sum
    }

    /// Whether data of a later request may arrive before those of the first: of writes, if another channel issued them,
    /// or of reads that hit in the cache.
    pub(super) fn can_be_overtaken(&self) -> bool {
        self.transfer.verb == Verb::Store || self.channels > 1 || !self.cached.is_empty()
    }

    /// Sums over transfer number `nth`, without [`busiest`](Sum::busiest) and [`beyond`](Sum::beyond).
    pub(super) fn sum_of_one(&self, nth: u64, earlier: &mut Kept<AlikeRequest, Sum>) -> Option<Sum> {
        let mut sum = None;
        self.add_one(&mut sum, nth, earlier)?;
        sum
    }

    /// Adds transfer number `nth` to those before it.
    fn add_one(&self, sum: &mut Option<Sum>, nth: u64, earlier: &mut Kept<AlikeRequest, Sum>) -> Option<()> {
        let (start, bytes) = self.range(nth)?;
        let of_first = PAGE - start % PAGE;
        if bytes < of_first + 2 * PAGE || !self.pages_are_alike() {
            return self.add_part(sum, nth, start, start..start + bytes, earlier);
        }
        // The first page has the descriptor of the transfer; whole pages after it are computed once.
        let (pages, rest) = ((bytes - of_first) / PAGE, (bytes - of_first) % PAGE);
        let (first_page, last_page) = (start + of_first, start + bytes - rest);
        self.add_part(sum, nth, start, start..first_page, earlier)?;
        let mut of_page = None;
        self.add_part(&mut of_page, nth, start, first_page..first_page + PAGE, earlier)?;
        self.append(sum, &self.repeated(&of_page?, pages)?);
        self.add_part(sum, nth, start, last_page..start + bytes, earlier)
    }

    /// As [`add_one`](Way::add_one), for the requests of a part of the transfer that begins at `start`.
    pub(super) fn add_part(
        &self,
        sum: &mut Option<Sum>,
        nth: u64,
        start: u64,
        part: Range<u64>,
        earlier: &mut Kept<AlikeRequest, Sum>,
    ) -> Option<()> {
        let chunks = self.split(part.start, part.end - part.start);
        let mut chunks = chunks.map(|chunk| (chunk, self.alike_request(nth, chunk, chunk.address - start))).peekable();
        while let Some((chunk, alike)) = chunks.next() {
            let mut times = 1;
            while chunks.next_if(|(_, next)| alike.is_some() && *next == alike).is_some() {
                times += 1;
            }
            let computed;
            let of_one = if let Some(of_one) = earlier.find(alike) {
                of_one
            } else {
                computed = self.sum_of_request(nth, chunk, chunk.address - start)?;
                earlier.keep(alike, computed);
                &computed
            };
            match times {
                1 => self.append(sum, of_one),
                _ => self.append(sum, &self.repeated(of_one, times)?),
            }
        }
        Some(())
    }

    /// The sum of this request alone, which starts `offset` bytes into transfer number `nth`.
    pub(super) fn sum_of_request(&self, nth: u64, chunk: Chunk, offset: u64) -> Option<Sum> {
        let piece = match self.transfer.verb {
            Verb::Store => self.write(chunk, offset)?,
            Verb::Load => self.read(chunk)?,
        };
        let (engine, request_beats) = (self.engine(chunk, offset), self.request_beats(chunk));
        let of_lines = self.held_by_lines(nth, chunk);
        Some(Sum {
            requests: 1,
            least_bytes: chunk.bytes,
            busiest: Ticks::ZERO,
            engine,
            first_engine: engine,
            request_beats,
            least_request_beats: request_beats,
            link: piece.link,
            beats: piece.beats,
            at_region: piece.at_region,
            packets: piece.packets,
            latencies: engine + piece.way,
            last_way: piece.way,
            shortest: piece.way,
            first_latency: engine + piece.way,
            before_link: piece.before_link,
            before_beats: piece.before_beats,
            behind_link: piece.behind_link,
            besides_memory: piece.way,
            after: piece.after,
            least_after: piece.after,
            most_after: piece.after,
            last_at_region: piece.at_region + piece.besides_region,
            held: piece.held,
            all_held: piece.held,
            of_lines,
            most_of_lines: of_lines,
            last_of_lines: of_lines,
            latency: engine + piece.way,
            most_latency: engine + piece.way,
            least_link: piece.link,
            most_link: piece.link,
            least_beats: piece.beats.max(piece.at_region),
            to_link: engine + self.platform.endpoint.egress_ns.value,
            root_reads: piece.root_reads,
            root_loops: piece.root_loops,
            root_loop: piece.root_loop,
            root_way: piece.root_way,
            spread_lines: piece.spread_lines,
            queued: piece.queued.beats,
            ahead: piece.queued.ahead,
            least_engine: engine,
            most_engine: engine,
            beyond: Ticks::ZERO,
        })
    }
}
