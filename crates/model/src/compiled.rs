//! Predictions of one plan for many values of a platform's numbers.

use crate::bound::Bound;
use crate::bounds::Largest;
use crate::costs::{Costs, Numbers};
use crate::number::{Block, LANES, Number};
use crate::predict::{CoreStream, is_cold};
use crate::store::End;
use crate::{load, store};
use lanemark_machine::{Access, Plan, Verb};
use lanemark_platform::{Origin, Platform, PlatformError};
use lanemark_units::{MemoryType, Ticks};
use std::ops::{Add, Range};

/// A plan of loads or stores by one core, prepared for arrays of numbers of the platform.
///
/// It computes the same formulas as [`predict`](crate::predict), for eight values at a time, and gives the same results
/// to the last bit.
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
    costs: Costs<'a>,
    /// The numbers of the platform.
    numbers: Numbers<Block>,
    traffic: CoreStream<'a>,
    passes: u64,
    /// Whether a first miss in the IOTLB may be part of the time, so that the lead is 1.
    is_cold: bool,
    keys: Vec<Key>,
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

type Field = fn(&mut Numbers<Block>) -> &mut Block;

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
        let numbers = Numbers::of(platform, costs.region).ok_or_else(other_plan)?;
        let (passes, is_cold) = (plan.passes, is_cold(platform, plan));
        let compiled = Compiled { platform, costs, numbers, traffic, passes, is_cold, keys: Vec::new() };
        for (place, key) in keys.iter().enumerate() {
            if keys[..place].contains(key) {
                return Err(CompileError::Twice { key: (*key).to_owned() });
            }
        }
        let keys = keys.iter().map(|path| compiled.key(path)).collect::<Result<_, _>>()?;
        Ok(Compiled { keys, ..compiled })
    }

    /// The key at `path`.
    fn key(&self, path: &str) -> Result<Key, CompileError> {
        let of_region = OF_REGION.map(|(name, field)| (format!("region.{}.{name}", self.costs.region.name), field));
        let times = TIMES.iter().map(|(name, field)| ((*name).to_owned(), *field)).chain(of_region);
        let times = times.map(|(name, field)| (name, Varied::Time(field)));
        let counts = COUNTS.iter().map(|(name, field)| ((*name).to_owned(), Varied::Count(*field)));
        let others = OTHERS.iter().map(|(name, is)| ((*name).to_owned(), *is));
        let known: Vec<(String, Varied)> = times.chain(counts).chain(others).collect();
        let platform = self.platform.name.clone();
        let Some((_, is)) = known.iter().find(|(name, _)| name == path) else {
            let known = known.into_iter().map(|(name, _)| name).collect();
            return Err(CompileError::Key { platform, key: path.to_owned(), known });
        };
        let stream = self.traffic.stream;
        let is_shape = match path {
            WC_BUFFERS => matches!(stream.access, Access::Movdiri(_)),
            STREAMING_LOAD_BUFFERS => {
                self.needs_streaming_load_buffers() && self.platform.core.streaming_load_buffers.value == 0
            }
            _ => false,
        };
        if is_shape {
            return Err(CompileError::Shape { platform, key: path.to_owned() });
        }
        Ok(Key { path: path.to_owned(), is: *is })
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
        // Each block replaces the numbers of the keys.
        let mut costs = self.costs.with(&self.numbers);
        for start in (0..rows).step_by(LANES) {
            let end = rows.min(start + LANES);
            for (key, values) in self.keys.iter().zip(arrays) {
                self.set(&mut costs.numbers, key.is, block(&values[start..end]));
            }
            let (issued, delivered) = self.times(&costs);
            predictions.write(start..end, issued, &delivered, self.is_cold);
        }
        Ok(())
    }

    /// Whether the accesses use streaming-load buffers; without any, they are other loads.
    fn needs_streaming_load_buffers(&self) -> bool {
        let stream = self.traffic.stream;
        let is_non_temporal = matches!(stream.access, Access::NonTemporal(_));
        stream.verb == Verb::Load && stream.span.memory_type == MemoryType::Wc && is_non_temporal
    }

    /// Checks every value of a key.
    fn check(&self, key: &Key, values: &[f64]) -> Result<(), CompileError> {
        let blocks = || values.chunks(LANES).map(block);
        if let Varied::Count(_) = key.is {
            let is_whole = |value: f64| value == value.floor();
            // A sum of distances shows whether there is any.
            let from_whole = blocks().fold(Block::all(0.0), |sum, values| sum + (values - values.floor()));
            let odd = if from_whole == Block::all(0.0) { None } else { values.iter().position(|one| !is_whole(*one)) };
            if let Some(row) = odd {
                return Err(CompileError::Whole { key: key.path.clone(), row, value: values[row] });
            }
        }
        // Ranges are intervals, so that the smallest and the largest value decide.
        let (low, high) = blocks()
            .fold((Block::all(f64::INFINITY), Block::all(f64::NEG_INFINITY)), |(low, high), values| {
                (Number::min(values, low), Number::max(values, high))
            });
        let low = low.0.into_iter().fold(f64::INFINITY, f64::min);
        let high = high.0.into_iter().fold(f64::NEG_INFINITY, f64::max);
        // A sum is not a number if one of its parts is not.
        let sum = blocks().fold(Block::all(0.0), Block::add);
        let odd = sum.0.into_iter().find(|sum| sum.is_nan());
        for value in odd.into_iter().chain([low, high]).filter(|_| !values.is_empty()) {
            self.platform.with(&key.path, value, Origin::Assumed("a value of an array".to_owned()))?;
        }
        if key.path == STREAMING_LOAD_BUFFERS && low == 0.0 && self.needs_streaming_load_buffers() {
            return Err(CompileError::Shape { platform: self.platform.name.clone(), key: key.path.clone() });
        }
        Ok(())
    }

    /// Sets the numbers that depend on a key.
    fn set(&self, numbers: &mut Numbers<Block>, key: Varied, values: Block) {
        match key {
            Varied::Time(field) => *field(numbers) = in_ticks(values),
            Varied::Count(field) => *field(numbers) = values,
            Varied::Clock => {
                let cycles = Block::all(self.platform.core.store_loop_cycles.value);
                numbers.cycle = in_ticks(Block::all(1.0) / values);
                numbers.store_loop = in_ticks(cycles / values);
            }
            Varied::Latency => {
                let latency = in_ticks(values);
                let usual = Block::all(self.platform.link.latency_ns.value.as_ns());
                // Retimers add to it.
                numbers.down = self.numbers.down - usual + latency;
                numbers.up = self.numbers.up - usual + latency;
            }
        }
    }

    /// Times of issue and of delivery.
    fn times(&self, costs: &Costs<'_, Block>) -> (Block, Largest<Block>) {
        let CoreStream { stream, fence, flushed } = self.traffic;
        let loaded = match stream.verb {
            Verb::Load => load::time(costs, stream, flushed, self.passes),
            Verb::Store => None,
        };
        if let Some(loaded) = loaded {
            return (loaded.time.ns, loaded.time);
        }
        let end = fence.map(|fence| End::fence(costs, fence));
        let stored = store::times(costs, stream, costs.pace(stream.access), end, self.passes);
        (stored.issued_ns, stored.delivered)
    }
}

impl Predictions {
    fn resize(&mut self, rows: usize) {
        for column in [&mut self.issue_ns, &mut self.delivered_ns, &mut self.lead] {
            column.resize(rows, 0.0);
        }
        self.bound.resize(rows, Bound::Issue);
    }

    fn write(&mut self, rows: Range<usize>, issued: Block, delivered: &Largest<Block>, is_cold: bool) {
        let Largest { bound, ns, next_ns } = *delivered;
        let lead = if is_cold { Block::all(1.0) } else { lead(ns, next_ns) };
        let len = rows.len();
        self.issue_ns[rows.clone()].copy_from_slice(&issued.0[..len]);
        self.delivered_ns[rows.clone()].copy_from_slice(&ns.0[..len]);
        self.lead[rows.clone()].copy_from_slice(&lead.0[..len]);
        for (one, place) in self.bound[rows].iter_mut().zip(bound.0) {
            *one = Bound::ALL[place as usize];
        }
    }
}

/// The ratio of the largest term to the second largest.
fn lead(ns: Block, next_ns: Block) -> Block {
    next_ns.if_above(Block::all(0.0), ns / next_ns, Block::all(f64::INFINITY))
}

/// Up to eight values; the last one fills the rest.
fn block(values: &[f64]) -> Block {
    match values.try_into() {
        Ok(all) => Block(all),
        Err(_) => Block(std::array::from_fn(|lane| values[lane.min(values.len() - 1)])),
    }
}

/// Nanoseconds rounded to the nearest tick, away from zero if in the middle.
fn in_ticks(ns: Block) -> Block {
    let per_ns = Block::all(Ticks::PER_NS as f64);
    let ticks = ns * per_ns;
    let whole = ticks.floor();
    let above = whole + Block::all(1.0);
    Block::all(0.5).if_above(ticks - whole, whole, above) / per_ns
}
