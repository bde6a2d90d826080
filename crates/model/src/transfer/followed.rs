//! Requests of reads in their order: followed one by one, or bounded by formulas.

use super::alike::AlikeRequest;
use super::kept::Kept;
use super::pipeline::{Fixed, Places, Stages};
use super::sum::Sum;
use super::way::Way;
use lanemark_machine::Transfer;
use lanemark_units::Ticks;
use lanemark_wire::Chunk;

/// Number of periods from which on their line is used, and not that of the descriptors.
const ENOUGH: usize = 8;

/// Requests before the first that is compared with earlier ones.
const FIRST_COMPARED: u64 = 16;

/// Points of the second half of the followed requests, for a straight line: before some of them, the sum of the latencies of
/// all earlier ones, and when the last of these has ended, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub(super) points: Vec<(f64, f64)>,
}

impl Line {
    /// The time of requests with this sum of latencies: the slope by least squares, below all points, because requests
    /// may also end early in their period. `None` with fewer than two points.
    pub(super) fn at(&self, latencies_ns: f64) -> Option<f64> {
        let count = self.points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| self.points.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(|(x, _)| *x), mean(|(_, y)| *y));
        let variance: f64 = self.points.iter().map(|point| (point.0 - x).powi(2)).sum();
        let slope = self.points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>() / variance;
        let start = self.points.iter().map(|point| point.1 - slope * point.0).fold(f64::INFINITY, f64::min);
        let is_known = self.points.len() >= 2 && slope.is_finite();
        is_known.then_some(start + slope * latencies_ns)
    }
}

/// A request that begins with a descriptor.
#[derive(Clone, Copy)]
struct Mark {
    /// Requests before it, the sum of their latencies, and when the last of them has ended.
    done: u64,
    latencies: Ticks,
    ended: Ticks,
    /// Whether a period begins too.
    is_period: bool,
}

/// The lines of the second half of the requests.
struct Lines {
    followed: u64,
    periods: Line,
    descriptors: Line,
}

impl Lines {
    fn add(&mut self, mark: Mark) {
        if 2 * mark.done >= self.followed {
            let point = (mark.latencies.as_ns(), mark.ended.as_ns());
            self.descriptors.points.push(point);
            if mark.is_period {
                self.periods.points.push(point);
            }
        }
    }
}

/// The stages and counters at an earlier repetition.
struct Earlier {
    stages: Stages,
    next: u64,
    done: u64,
}

/// One request of a transfer.
struct Request {
    /// Index in `sums`.
    sum: usize,
    /// Whether it begins with a descriptor.
    is_described: bool,
}

/// The requests of a plan in order.
pub(super) struct Requests<'w, 'a> {
    way: &'w Way<'a>,
    fixed: Fixed,
    stages: Stages,
    /// The next transfer.
    next: u64,
    done: u64,
    latencies: Ticks,
    /// Sums of different requests, and the index of each by what distinguishes it.
    sums: Vec<Sum>,
    places: Kept<AlikeRequest, usize>,
    /// The requests of each transfer of a period, or of each kind; otherwise those of one transfer.
    known: Vec<Vec<Request>>,
    lines: Lines,
    /// Requests after which the stages are kept, to be compared with later ones; the largest number: not any more.
    compare_from: u64,
    /// Time of the repetitions that were skipped, as a float: many iterations take longer than [`Ticks`] can hold.
    skipped_ns: f64,
}

impl<'w, 'a> Requests<'w, 'a> {
    /// The first `followed` requests of `way`.
    pub(super) fn new(way: &'w Way<'a>, followed: u64) -> Requests<'w, 'a> {
        let tags = way.most_under_way() as u64;
        let fixed = Fixed::of(way);
        let stages = Stages::new(way.dma.send_buffers.value.into(), tags);
        // Requests repeat with the period of transfers; if that is too long to be seen, with descriptors.
        let lines = Lines { followed, periods: Line::default(), descriptors: Line::default() };
        Requests {
            way,
            fixed,
            stages,
            next: 0,
            done: 0,
            latencies: Ticks::ZERO,
            sums: Vec::new(),
            places: Kept::default(),
            known: Vec::new(),
            lines,
            compare_from: FIRST_COMPARED,
            skipped_ns: 0.0,
        }
    }

    /// Number of transfers after which the requests repeat, also beyond the end of the window.
    fn repetition(&self) -> Option<u64> {
        let Transfer { bytes, window, .. } = *self.way.transfer;
        self.way.period().filter(|period| window.places(bytes).is_multiple_of(*period))
    }

    /// Computes all requests of a period, if these are no more than are followed.
    pub(super) fn know_period(&mut self) -> Option<()> {
        let Some(period) = self.repetition() else { return Some(()) };
        let (of_one, _) = self.way.count_and_last(0)?;
        if period.saturating_mul(of_one) <= self.lines.followed {
            self.known = (0..period).map(|nth| self.of_transfer(nth, self.lines.followed)).collect::<Option<_>>()?;
        }
        Some(())
    }

    /// Time of `all` requests, if they are all alike; `None` otherwise, or if send buffers may be the limit.
    ///
    /// The largest of `e + k (e + W + a) + o(s) + (n - 1 - k T) max(e, s)` over the stages behind the engine and over `k = 0` and
    /// `k = floor((n - 1) / T)`: `n` requests take `e` each at the engine and `s` each at a later stage, and return their tags `k`
    /// times. `T` is the number of tags, `W` the latency of a request from the engine to its end without waits, `o(s)` the part
    /// of it through this stage, and `a` the time from the end of a request until its tag is free.
    pub(super) fn if_alike(&self, all: u64) -> Option<f64> {
        let [of_one] = self.sums.as_slice() else { return None };
        let is_known = !self.known.is_empty();
        let way = of_one.last_way.as_ns();
        let on_link = (of_one.before_link + of_one.link + of_one.behind_link).as_ns();
        let at_engine = (of_one.before_beats + of_one.beats).as_ns();
        let paces = [self.fixed.root.as_ns(), self.fixed.memory.as_ns(), of_one.link.as_ns(), of_one.beats.as_ns()];
        let longest = way.max(on_link).max(at_engine);
        let stages = paces.into_iter().zip([longest, longest, on_link, at_engine]).chain([(0.0, longest)]);
        let engine = of_one.engine.as_ns();
        // At a stage with the longest latency, a request that waits for a send buffer would be no later.
        let longest_at = stages.clone().filter(|(_, until_end)| *until_end >= longest);
        let pace = longest_at.fold(engine, |most, (pace, _)| most.max(pace));
        let is_buffered = engine + self.fixed.egress.as_ns() <= self.stages.send_buffers.unused as f64 * pace;
        let back = self.fixed.apart.map_or(0.0, |apart| (of_one.after + apart).as_ns());
        let (tags, last) = (self.stages.tags.unused, all.checked_sub(1)?);
        let time = |rounds: u64, (pace, until_end): (f64, f64)| {
            let others = (last - rounds * tags) as f64;
            engine + rounds as f64 * (engine + longest + back) + until_end + others * engine.max(pace)
        };
        let all_rounds = last.checked_div(tags)?;
        let ends = stages.flat_map(|stage| [time(0, stage), time(all_rounds, stage)]);
        (is_known && is_buffered).then(|| ends.fold(0.0, f64::max))
    }

    /// An upper bound of the time of `all` requests, if the stages behind the engine keep it waiting; `None` if they may not, or
    /// if the requests do not repeat soon.
    ///
    /// A sequence of waits runs along requests at the engine, then along those at later stages, of which the slowest takes
    /// `s(i)` for request `i`. It returns to the engine with a tag, at least `T` requests later. `E` is the largest excess of the
    /// engine's time for consecutive requests over that of later stages for all of them but the last, and `L` the latency of a
    /// request without `s(i)`. If any `T - 1` consecutive requests take later stages at least `E + L`, a sequence that does not
    /// return is at least as long as one that does, so that the time is at most `E + L` and the sum of all `s(i)`. The same
    /// applies to send buffers.
    pub(super) fn at_most(&self, all: u64) -> Option<f64> {
        self.known.first()?;
        let sums = || self.known.iter().flatten().map(|request| &self.sums[request.sum]);
        let behind = |sum: &Sum| sum.link.max(sum.beats).max(self.fixed.root).max(self.fixed.memory);
        let (engine, round): (Ticks, Ticks) = (sums().map(|sum| sum.engine).sum(), sums().map(behind).sum());
        if engine > round {
            return None;
        }
        let (mut excess, mut most_excess) = (0.0_f64, 0.0_f64);
        for sum in sums().chain(sums()) {
            excess = excess.max(0.0) + sum.engine.as_ns();
            most_excess = most_excess.max(excess);
            excess -= behind(sum).as_ns();
        }
        let most = |of: &dyn Fn(&Sum) -> f64| self.sums.iter().map(of).fold(0.0, f64::max);
        let on_link = most(&|sum| sum.before_link.as_ns()) + most(&|sum| sum.behind_link.as_ns());
        let beside = most(&|sum| sum.before_beats.as_ns().max(sum.last_way.as_ns() - behind(sum).as_ns()));
        let apart = self.fixed.apart.map_or(0.0, |apart| apart.as_ns() + most(&|sum| sum.after.as_ns()));
        let path = on_link.max(beside) + apart;
        let (of_round, least) = (sums().count() as f64, sums().map(behind).min()?.as_ns());
        let others = |places: &Places| {
            let others = places.unused as f64 - 1.0;
            ((others / of_round).floor() * round.as_ns()).max(others * least)
        };
        let has_enough_tags = others(&self.stages.tags) >= most_excess + path;
        let has_enough_buffers = others(&self.stages.send_buffers) >= most_excess + self.fixed.egress.as_ns();
        let rounds = (all as f64 / of_round).ceil();
        (has_enough_tags && has_enough_buffers).then(|| most_excess + path + rounds * round.as_ns())
    }

    /// Time of `all` requests, whose latencies have this sum.
    pub(super) fn time(&mut self, all: u64, latencies_ns: f64) -> Option<f64> {
        let way = self.way;
        let mut followed = self.lines.followed;
        let repeats = self.repetition().is_some();
        let period = self.repetition().or_else(|| way.period()).unwrap_or(1);
        let mut earlier: Option<Earlier> = None;
        let kinds = if repeats { None } else { way.kinds(0, followed) };
        let mut known = std::mem::take(&mut self.known);
        while self.done < followed {
            if repeats && self.next.is_multiple_of(period) {
                self.stages.retire();
                if let Some(then) = earlier.take_if(|then| self.stages.repeat(&then.stages)) {
                    self.repeat(&then, all);
                    (followed, self.compare_from) = (all, u64::MAX);
                } else if self.done >= self.compare_from {
                    // Kept after twice as many requests each time, they find a repetition of any length: Brent, BIT 20, 1980.
                    self.compare_from = 2 * self.done;
                    earlier = Some(Earlier { stages: self.stages.clone(), next: self.next, done: self.done });
                }
            }
            if self.done == followed {
                break;
            }
            let nth = self.next;
            self.next += 1;
            let most = followed - self.done;
            let place = match kinds.as_ref().and_then(|kinds| kinds.order.get(nth as usize)) {
                Some(kind) => usize::from(*kind),
                None if repeats => (nth % period) as usize,
                None => {
                    known.clear();
                    0
                }
            };
            if place == known.len() {
                known.push(self.of_transfer(nth, most)?);
            }
            for (place, request) in known[place].iter().take(most as usize).enumerate() {
                if request.is_described {
                    let (ended, is_period) = (self.stages.downstream.ended, place == 0 && nth.is_multiple_of(period));
                    self.lines.add(Mark { done: self.done, latencies: self.latencies, ended, is_period });
                }
                let of_one = &self.sums[request.sum];
                self.stages.run(of_one, &self.fixed);
                self.latencies += of_one.latency;
                self.done += 1;
            }
        }
        if followed == all {
            return Some(self.stages.downstream.ended.as_ns() + self.skipped_ns);
        }
        let Lines { periods, descriptors, .. } = &self.lines;
        if periods.points.len() >= ENOUGH { periods.at(latencies_ns) } else { descriptors.at(latencies_ns) }
    }

    /// The first requests of transfer number `nth`, at most `most`.
    fn of_transfer(&mut self, nth: u64, most: u64) -> Option<Vec<Request>> {
        let (start, bytes) = self.way.range(nth)?;
        let mut request = |chunk: Chunk| {
            let offset = chunk.address - start;
            let alike = self.way.alike_request(nth, chunk, offset);
            let sum = if let Some(known) = self.places.find(alike) {
                *known
            } else {
                // Requests at other offsets may have the same sum.
                let of_one = self.way.sum_of_request(nth, chunk, offset)?;
                let same = self.sums.iter().position(|other| *other == of_one);
                let place = same.unwrap_or(self.sums.len());
                if same.is_none() {
                    self.sums.push(of_one);
                }
                self.places.keep(alike, place);
                place
            };
            Some(Request { sum, is_described: self.way.is_described(chunk, offset) })
        };
        self.way.split(start, bytes).take(most as usize).map(&mut request).collect()
    }

    /// Skips whole repetitions of the requests since `then`, up to `all` requests.
    fn repeat(&mut self, then: &Earlier, all: u64) {
        let (requests, transfers) = (self.done - then.done, self.next - then.next);
        let passed = self.stages.engine - then.stages.engine;
        let times = (all - self.done) / requests;
        self.done += times * requests;
        self.next += times * transfers;
        self.skipped_ns = passed.as_ns() * times as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_machine::{Partner, Pattern, Verb, Window};
    use lanemark_platform::{Origin, Platform};

    /// Cards whose limit is the engine, the link or the tags, each with back-to-back reads of these sizes.
    fn cards_and_reads(sizes: &[u64], look: &mut dyn FnMut(&Platform, &Transfer)) {
        let given = || Origin::Given("a test".to_owned());
        let card = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
        for (descriptor_ns, request_ns, buffers) in [
            (0.0, 0.0, 64.0),
            (20.0, 0.0, 64.0),
            (90.0, 0.0, 64.0),
            (20.0, 3.0, 64.0),
            (20.0, 0.0, 4.0),
            (3.0, 1.0, 32.0),
        ] {
            let numbers = [
                ("dma.descriptor_ns", descriptor_ns),
                ("dma.read_request_ns", request_ns),
                ("dma.send_buffers", buffers),
                ("dma.read_bytes", 128.0),
                ("dma.beat_ns", 0.5),
                ("link.generation", 4.0),
            ];
            let card =
                numbers.into_iter().fold(card.clone(), |card, (key, value)| card.with(key, value, given()).unwrap());
            for tags in [1, 16, 32, 64, 128, 256, 512] {
                let card = card.with("dma.tags", f64::from(tags), given()).unwrap();
                for bytes in sizes {
                    let window = Window { offset: 0, len: bytes << 10, pattern: Pattern::Sequential };
                    let (verb, partner, bytes) = (Verb::Load, Partner::Host, *bytes);
                    look(&card, &Transfer { card: 0, verb, partner, bytes, count: 1, window, outstanding: None });
                }
            }
        }
    }

    /// Time of 20 000 requests, one by one.
    fn one_by_one(way: &Way<'_>) -> f64 {
        let mut requests = Requests::new(way, 20_000);
        requests.compare_from = u64::MAX;
        requests.time(20_000, 1e9).unwrap()
    }

    #[test]
    fn no_time_exceeds_the_bound_of_stages_that_keep_the_engine_waiting() {
        let (mut bounded, mut longer) = (0, 0);
        cards_and_reads(&[64, 200, 1536, 4096], &mut |card, transfer| {
            let way = Way::of(card, transfer).unwrap();
            let mut requests = Requests::new(&way, 20_000);
            requests.know_period().unwrap();
            let time = one_by_one(&way);
            let on_link = 20_000.0 * requests.sums.iter().map(|sum| sum.link).max().unwrap().as_ns();
            match requests.at_most(20_000) {
                Some(bound) => {
                    assert!(time <= bound && bound <= 1.1 * time, "{time} ns, {bound} ns, {transfer:?}");
                    bounded += 1;
                }
                None => longer += u32::from(time > 1.1 * on_link),
            }
        });
        assert_eq!(
            (bounded, longer),
            (18, 146),
            "of 168; the path of the other 4 is about as long as that of all tags"
        );
    }

    #[test]
    fn requests_that_are_all_alike_take_the_time_of_a_formula() {
        let mut alike = 0;
        cards_and_reads(&[4, 64, 128, 256], &mut |card, transfer| {
            let way = Way::of(card, transfer).unwrap();
            let mut requests = Requests::new(&way, 20_000);
            requests.know_period().unwrap();
            let Some(found) = requests.if_alike(20_000) else { return };
            let expected = one_by_one(&way);
            assert!(
                (found / expected - 1.0).abs() < 1e-9,
                "{found} ns, {expected} ns, {} tags, {transfer:?}",
                card.dma.as_ref().unwrap().tags.value
            );
            alike += 1;
        });
        assert_eq!(alike, 126, "of 168: those with a descriptor each or with none, and with enough buffers");
    }

    #[test]
    fn added_repetitions_take_the_same_time_as_requests_followed_one_by_one() {
        let card = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
        let (mut found, mut tried) = (0, 0);
        for (tags, descriptor_ns) in [(8.0, 200.0), (64.0, 20.0), (64.0, 200.0)] {
            let given = || Origin::Given("a test".to_owned());
            let card = card.with("dma.tags", tags, given()).unwrap();
            let card = card.with("dma.descriptor_ns", descriptor_ns, given()).unwrap();
            for (bytes, offset) in
                [(64, 0), (100, 4), (512, 0), (512, 256), (1536, 0), (4096, 0), (12_289, 64), (1 << 16, 0)]
            {
                for pattern in [Pattern::Sequential, Pattern::Strided(8192), Pattern::Random] {
                    let window = Window { offset, len: 1 << 22, pattern };
                    let (verb, partner) = (Verb::Load, Partner::Host);
                    let transfer = Transfer { card: 0, verb, partner, bytes, count: 1, window, outstanding: None };
                    let way = Way::of(&card, &transfer).unwrap();
                    let mut one_by_one = Requests::new(&way, 20_000);
                    one_by_one.compare_from = u64::MAX;
                    let expected = one_by_one.time(20_000, 1e9).unwrap();
                    let time = |all| {
                        let mut requests = Requests::new(&way, 2000);
                        (requests.time(all, 1e9).unwrap(), requests.compare_from == u64::MAX)
                    };
                    let (taken, repeats) = time(20_000);
                    if repeats {
                        assert_eq!(
                            taken.to_bits(),
                            expected.to_bits(),
                            "{tags} tags, {descriptor_ns} ns, {transfer:?}"
                        );
                        // A run of hours, which is longer than `Ticks` for some of these cards, has the same rate.
                        let (weeks, _) = time(20_000 << 30);
                        assert!((weeks / (taken * f64::from(1 << 30)) - 1.0).abs() < 0.01, "{weeks} ns, {taken} ns");
                    }
                    (found, tried) = (found + u32::from(repeats), tried + 1);
                }
            }
        }
        assert_eq!((found, tried), (45, 72), "in order: three in four; random: only if all are alike");
    }
}
