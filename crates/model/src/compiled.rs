//! Predictions of one plan for many values of a platform's numbers.

use crate::bound::Bound;
use crate::bounds::Largest;
use crate::costs::{Costs, Numbers};
use crate::number::{Number, WHOLE};
use crate::predict::{CoreStream, is_cold};
use crate::program::{Program, Run};
use crate::store::End;
use crate::summary::Summary;
use crate::symbol::{Graph, Symbol};
use crate::vector::vectorized;
use crate::{load, store};
use lanemark_machine::{Access, Plan, Stream, Verb};
use lanemark_platform::{Origin, Platform, PlatformError, Region, range_of};
use lanemark_units::{MemoryType, Ticks};
use std::ops::Range;

/// A plan of loads or stores by one core, prepared for arrays of numbers of the platform.
///
/// It computes the same formulas as [`predict`](crate::predict), and gives the same results to the last bit. What does
/// not depend on the varied numbers is computed once, and the rest for many rows at a time.
///
/// Transfers by DMA, copies by a driver, and questions with several cores or cards have no such form.
///
/// ```
/// use lanemark_machine::{Access, Plan, Span, Step, Stream, Verb, Width};
/// use lanemark_model::{Compiled, Predictions};
/// use lanemark_units::{BarOffset, MemoryType};
/// let card = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
/// let span = Span { at: BarOffset { bar: 2, offset: 0 }, len: 4096, memory_type: MemoryType::Wc };
/// let stream = Stream::over(Verb::Store, Access::Plain(Width::B64), span);
/// let plan = Plan::new(Step::Stream(stream), 16);
///
/// let compiled = Compiled::of(&card, &plan, &["core.wc_buffers", "link.latency_ns"])?;
/// let mut predictions = Predictions::default();
/// compiled.predict(&[&[8.0, 12.0, 16.0], &[100.0, 100.0, 100.0]], &mut predictions)?;
/// assert!(predictions.delivered_ns[0] > predictions.delivered_ns[2]);
/// assert_eq!(predictions.bound[0].name(), "buffers per round trip");
/// # Ok::<(), lanemark_model::CompileError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Compiled<'a> {
    platform: &'a Platform,
    traffic: CoreStream<'a>,
    keys: Vec<Key>,
    /// Time of issue, time of delivery, lead, and the place of the bound in [`Bound::ALL`].
    program: Program<4>,
}

/// Results of [`Compiled::predict`], one of each for each row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Predictions {
    /// As [`Prediction::issue_ns`](crate::Prediction::issue_ns), in nanoseconds.
    pub issue_ns: Vec<f64>,
    /// As [`Prediction::delivered_ns`](crate::Prediction::delivered_ns), in nanoseconds.
    pub delivered_ns: Vec<f64>,
    /// As [`Prediction::bound`](crate::Prediction::bound).
    pub bound: Vec<Bound>,
    /// As [`Prediction::lead`](crate::Prediction::lead), a ratio from 1 on.
    pub lead: Vec<f64>,
}

/// Reasons why a plan cannot be prepared, or an array cannot be used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The plan has no formula that can be prepared.
    #[error(
        "{platform}: only loads and stores of one core at no distance from the card, for which predict has a formula, are prepared"
    )]
    Plan {
        /// Name of the platform.
        platform: String,
    },
    /// The key is not one of those that can vary.
    #[error("{platform}: {key} cannot vary; the keys that can are {}", known.join(", "))]
    Key {
        /// Name of the platform.
        platform: String,
        /// The key, as given.
        key: String,
        /// The keys that can vary.
        known: Vec<String>,
    },
    /// The key decides which formula holds, so that its values need a plan each.
    #[error("{platform}: {key} decides which formula holds for these accesses; use predict for each of its values")]
    Shape {
        /// Name of the platform.
        platform: String,
        /// The key.
        key: String,
    },
    /// A key is given twice.
    #[error("{key} is given twice; give it once, with one array")]
    Twice {
        /// The key.
        key: String,
    },
    /// Another number of arrays than of keys.
    #[error("{arrays} arrays for {keys} keys; each key needs an array")]
    Arrays {
        /// Number of keys.
        keys: usize,
        /// Number of arrays.
        arrays: usize,
    },
    /// Arrays of different lengths.
    #[error("{key} has {values} values, and {first_key} has {first_values}; all arrays need the same number")]
    Lengths {
        /// The first key.
        first_key: String,
        /// Length of its array.
        first_values: usize,
        /// The first key whose array has another length.
        key: String,
        /// Length of that array.
        values: usize,
    },
    /// A value is not valid for its key.
    #[error(transparent)]
    Value(#[from] PlatformError),
    /// A value of a count is not a whole number.
    #[error("{key}: the value at index {row} is {value}; must be a whole number")]
    Whole {
        /// The key.
        key: String,
        /// Number of the value in its array, from 0 on.
        row: usize,
        /// The value.
        value: f64,
    },
}

/// A key that varies.
#[derive(Clone, Debug)]
struct Key {
    path: String,
    is: Varied,
}

/// How a value of a key becomes a number of the formulas.
#[derive(Clone, Copy, Debug)]
enum Varied {
    /// A time, rounded to a tick.
    Time(Field),
    /// A count.
    Count(Field),
    /// The clock in GHz, on which the times of instructions depend.
    Clock,
    /// Latency of the link in each direction.
    Latency,
}

type Field = for<'n, 'g> fn(&'n mut Numbers<Symbol<'g>>) -> &'n mut Symbol<'g>;

/// Times that may vary, each with its number.
const TIMES: [(&str, Field); 8] = [
    ("core.cached_load_ns", |numbers| &mut numbers.cached_load),
    ("core.sfence_ns", |numbers| &mut numbers.sfence),
    ("core.lfence_ns", |numbers| &mut numbers.lfence),
    ("core.mfence_ns", |numbers| &mut numbers.mfence),
    ("core.interrupt_ns", |numbers| &mut numbers.interrupt),
    ("root_complex.core_round_trip_ns", |numbers| &mut numbers.round_trip),
    ("endpoint.ingress_ns", |numbers| &mut numbers.ingress),
    ("endpoint.egress_ns", |numbers| &mut numbers.egress),
];

/// Times of the region that the plan accesses.
const OF_REGION: [(&str, Field); 2] =
    [("beat_ns", |numbers| &mut numbers.beat), ("read_ns", |numbers| &mut numbers.region_read)];

/// Counts that may vary.
const COUNTS: [(&str, Field); 8] = [
    ("core.store_buffer_entries", |numbers| &mut numbers.store_buffer),
    (WC_BUFFERS, |numbers| &mut numbers.wc_buffers),
    (STREAMING_LOAD_BUFFERS, |numbers| &mut numbers.streaming_load_buffers),
    ("core.fill_buffers", |numbers| &mut numbers.fill_buffers),
    ("root_complex.posted_queue_entries", |numbers| &mut numbers.queue),
    ("link.posted_header_credits", |numbers| &mut numbers.posted_headers),
    ("link.posted_data_credits", |numbers| &mut numbers.posted_data),
    ("link.nonposted_header_credits", |numbers| &mut numbers.nonposted_headers),
];

const WC_BUFFERS: &str = "core.wc_buffers";
const STREAMING_LOAD_BUFFERS: &str = "core.streaming_load_buffers";

/// The other keys that may vary.
const OTHERS: [(&str, Varied); 2] = [("core.clock_ghz", Varied::Clock), ("link.latency_ns", Varied::Latency)];

impl<'a> Compiled<'a> {
    /// Prepares `plan` on `platform` for arrays of the numbers at `keys`, which are paths such as `link.latency_ns`.
    ///
    /// # Errors
    /// [`CompileError::Plan`], [`CompileError::Key`], [`CompileError::Shape`] and [`CompileError::Twice`].
    pub fn of(platform: &'a Platform, plan: &'a Plan, keys: &[&str]) -> Result<Compiled<'a>, CompileError> {
        let other_plan = || CompileError::Plan { platform: platform.name.clone() };
        crate::predict(platform, plan).ok_or_else(other_plan)?;
        let traffic = CoreStream::of_plan(platform, plan).ok_or_else(other_plan)?;
        let costs = traffic.costs(platform).ok_or_else(other_plan)?;
        for (place, key) in keys.iter().enumerate() {
            if keys[..place].contains(key) {
                return Err(CompileError::Twice { key: (*key).to_owned() });
            }
        }
        let key = |path: &&str| key(platform, traffic.stream, costs.region, path);
        let keys: Vec<Key> = keys.iter().map(key).collect::<Result<_, _>>()?;

        let graph = Graph::default();
        let mut numbers = Numbers::of(platform, costs.region).ok_or_else(other_plan)?;
        for (place, key) in keys.iter().enumerate() {
            let range = range_of(&key.path).unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
            set(&mut numbers, platform, key.is, graph.input(place, range));
        }
        let (issued, delivered) = times(&costs.with(&numbers), traffic, plan.passes);
        let lead = if is_cold(platform, plan) { Symbol::all(1.0) } else { lead(&delivered) };
        let program = Program::of(&graph, [issued, delivered.ns, lead, delivered.bound]);
        Ok(Compiled { platform, traffic, keys, program })
    }

    /// Predicts the plan for each row of `arrays`, which has an array for each key, in the units of the platform file.
    /// The results replace those in `predictions`.
    ///
    /// Each value is checked as in a file, but not together with those of other keys.
    ///
    /// # Errors
    /// [`CompileError::Arrays`], [`CompileError::Lengths`], [`CompileError::Value`], [`CompileError::Whole`] and, for 0
    /// streaming-load buffers, [`CompileError::Shape`]; `predictions` is then unchanged.
    pub fn predict(&self, arrays: &[&[f64]], predictions: &mut Predictions) -> Result<(), CompileError> {
        let rows = arrays.first().map_or(0, |array| array.len());
        if arrays.len() != self.keys.len() {
            return Err(CompileError::Arrays { keys: self.keys.len(), arrays: arrays.len() });
        }
        if let Some((key, array)) = self.keys.iter().zip(arrays).find(|(_, array)| array.len() != rows) {
            let first_key = self.keys.first().map(|first| first.path.clone()).unwrap_or_default();
            let (key, values) = (key.path.clone(), array.len());
            return Err(CompileError::Lengths { first_key, first_values: rows, key, values });
        }
        for (key, values) in self.keys.iter().zip(arrays) {
            self.check(key, values)?;
        }
        predictions.resize(rows);
        let take = &mut |rows, outputs: [&[f64]; 4]| predictions.write(rows, outputs);
        vectorized(Run { program: &self.program, inputs: arrays, rows, take });
        Ok(())
    }

    /// Checks every value of a key.
    fn check(&self, key: &Key, values: &[f64]) -> Result<(), CompileError> {
        let summary = Summary::of(values);
        if let Varied::Count(_) = key.is
            && summary.fractions > 0.0
            && let Some(row) = values.iter().position(|value| *value != value.floor())
        {
            return Err(CompileError::Whole { key: key.path.clone(), row, value: values[row] });
        }
        // Ranges are intervals, so that the smallest and the largest value decide. A sum is not a number if one of its
        // parts is not.
        let Summary { low, high, sum, .. } = summary;
        let odd = Some(sum).filter(|sum| sum.is_nan());
        for value in odd.into_iter().chain([low, high]).filter(|_| !values.is_empty()) {
            self.platform.with(&key.path, value, Origin::Assumed("a value of an array".to_owned()))?;
        }
        if key.path == STREAMING_LOAD_BUFFERS && low == 0.0 && needs_streaming_load_buffers(self.traffic.stream) {
            return Err(CompileError::Shape { platform: self.platform.name.clone(), key: key.path.clone() });
        }
        Ok(())
    }
}

/// The key at `path`, for a stream over a region.
fn key(platform: &Platform, stream: &Stream, region: &Region, path: &str) -> Result<Key, CompileError> {
    let of_region = OF_REGION.map(|(name, field)| (format!("region.{}.{name}", region.name), field));
    let times = TIMES.iter().map(|(name, field)| ((*name).to_owned(), *field)).chain(of_region);
    let times = times.map(|(name, field)| (name, Varied::Time(field)));
    let counts = COUNTS.iter().map(|(name, field)| ((*name).to_owned(), Varied::Count(*field)));
    let others = OTHERS.iter().map(|(name, is)| ((*name).to_owned(), *is));
    let known: Vec<(String, Varied)> = times.chain(counts).chain(others).collect();
    let name = platform.name.clone();
    let Some((_, is)) = known.iter().find(|(name, _)| name == path) else {
        let known = known.into_iter().map(|(name, _)| name).collect();
        return Err(CompileError::Key { platform: name, key: path.to_owned(), known });
    };
    let is_shape = match path {
        WC_BUFFERS => matches!(stream.access, Access::Movdiri(_)),
        STREAMING_LOAD_BUFFERS => {
            needs_streaming_load_buffers(stream) && platform.core.streaming_load_buffers.value == 0
        }
        _ => false,
    };
    if is_shape {
        return Err(CompileError::Shape { platform: name, key: path.to_owned() });
    }
    Ok(Key { path: path.to_owned(), is: *is })
}

/// Whether the accesses use streaming-load buffers; without any, they are other loads.
fn needs_streaming_load_buffers(stream: &Stream) -> bool {
    let is_non_temporal = matches!(stream.access, Access::NonTemporal(_));
    stream.verb == Verb::Load && stream.span.memory_type == MemoryType::Wc && is_non_temporal
}

/// Sets the numbers of `platform` that depend on a key, whose value varies.
fn set<'g>(numbers: &mut Numbers<Symbol<'g>>, platform: &Platform, key: Varied, value: Symbol<'g>) {
    match key {
        Varied::Time(field) => *field(numbers) = in_ticks(value),
        Varied::Count(field) => *field(numbers) = value,
        Varied::Clock => {
            let cycles = Symbol::all(platform.core.store_loop_cycles.value);
            numbers.cycle = in_ticks(Symbol::all(1.0) / value);
            numbers.store_loop = in_ticks(cycles / value);
        }
        Varied::Latency => {
            let latency = in_ticks(value);
            let usual = Symbol::all(platform.link.latency_ns.value.as_ns());
            // Retimers add to it.
            numbers.down = numbers.down - usual + latency;
            numbers.up = numbers.up - usual + latency;
        }
    }
}

/// Times of issue and of delivery.
fn times<N: Number>(costs: &Costs<'_, N>, traffic: CoreStream<'_>, passes: u64) -> (N, Largest<N>) {
    let CoreStream { stream, fence, flushed } = traffic;
    let loaded = match stream.verb {
        Verb::Load => load::time(costs, stream, flushed, passes),
        Verb::Store => None,
    };
    if let Some(loaded) = loaded {
        return (loaded.time.ns, loaded.time);
    }
    let end = fence.map(|fence| End::fence(costs, fence));
    let stored = store::times(costs, stream, costs.pace(stream.access), end, passes);
    (stored.issued_ns, stored.delivered)
}

/// The ratio of the largest term to the second largest.
fn lead<N: Number>(delivered: &Largest<N>) -> N {
    let Largest { ns, next_ns, .. } = *delivered;
    next_ns.if_above(N::all(0.0), ns / next_ns, N::all(f64::INFINITY))
}

/// Nanoseconds rounded to the nearest tick, away from zero if in the middle.
fn in_ticks<N: Number>(ns: N) -> N {
    let per_ns = N::all(Ticks::PER_NS as f64);
    let ticks = ns * per_ns;
    let whole = ticks.floor();
    let above = whole + N::all(1.0);
    N::all(0.5).if_above(ticks - whole, whole, above) / per_ns
}

impl Predictions {
    fn resize(&mut self, rows: usize) {
        for column in [&mut self.issue_ns, &mut self.delivered_ns, &mut self.lead] {
            column.resize(rows, 0.0);
        }
        self.bound.resize(rows, Bound::Issue);
    }

    fn write(&mut self, rows: Range<usize>, [issued, delivered, lead, places]: [&[f64]; 4]) {
        self.issue_ns[rows.clone()].copy_from_slice(issued);
        self.delivered_ns[rows.clone()].copy_from_slice(delivered);
        self.lead[rows.clone()].copy_from_slice(lead);
        for (bound, place) in self.bound[rows].iter_mut().zip(places) {
            *bound = bound_at(*place);
        }
    }
}

/// The bound at a place in [`Bound::ALL`], without a branch.
#[inline]
fn bound_at(place: f64) -> Bound {
    const PLACES: usize = 32;
    const PADDED: [Bound; PLACES] = {
        let mut padded = [Bound::Issue; PLACES];
        let mut place = 0;
        while place < Bound::ALL.len() {
            padded[place] = Bound::ALL[place];
            place += 1;
        }
        padded
    };
    // The last bits of the sum are the place.
    PADDED[(place + WHOLE).to_bits() as usize % PLACES]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bound_is_found_at_its_place() {
        for (place, bound) in Bound::ALL.into_iter().enumerate() {
            assert_eq!(bound_at(place as f64), bound);
        }
    }
}
