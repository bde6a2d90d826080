//! Reads of an engine that stalls for descriptors, one after the other.
//!
//! While the engine reads a descriptor, tags that are free stay unused and later stages run idle; afterwards, all of them
//! work at once. No single term describes that, therefore the requests are followed one by one. Request `i` is issued at
//! `t`, its data are requested at `u`, and its tag is free at `c`:
//!
//! ```text
//! t(i) = max(u(i-1), a tag is free, request i-b has left)      b send buffers
//! u(i) = t(i) + descriptor + cost + beats
//! c(i) = max(u(i) + path, end of completions on the slowest link, end of beats at the engine)
//! ```
//!
//! A request reaches root complex, memory, link and engine no earlier than these have served the one before it. What only
//! has a mean, such as credits, remains with the other terms, of which this is one more.
//!
//! As soon as all of them are busy for as long as at an earlier repetition of the requests, the requests between repeat too:
//! the time of a repetition is added once for each of the rest. Otherwise, each further request is assumed to take the mean
//! time of the second half of the requests that were followed.
//!
//! Requests are not followed if they are all alike, because a formula gives their time, or if an upper bound of it shows that
//! another term is at least as large ([`Requests::if_alike`], [`Requests::at_most`]).

use super::followed::Requests;
use super::sum::Sum;
use super::way::{MOST_PIECES, Way};
use crate::bound::Bound;
use crate::bounds::Largest;
use lanemark_machine::{Partner, Verb};
use lanemark_units::Ticks;

/// Requests that are followed at least, unless a repetition is found before.
const FEWEST: u64 = 1024;

/// Requests that are followed at least if transfers do not repeat.
const FEWEST_AT_RANDOM: u64 = MOST_PIECES;

/// Rounds of tags, and stalls for descriptors, that are followed at least.
pub(super) const ROUNDS: u64 = 8;
const STALLS: u64 = 32;

/// Share of the time that stalls must have to be followed.
pub(super) const NEGLIGIBLE: f64 = 0.01;

/// Relative difference of two times that are the same: a tenth of what [`Largest::at_least`] takes for rounding.
const SAME: f64 = 1e-4;

impl Way<'_> {
    /// Time of `times` repetitions of the requests of `sum`, those of all `transfers`, until the tag of the last one is free, if
    /// the engine stalls for more than a negligible part of `largest`, or tags are held for different times. `None` if other
    /// terms are enough.
    pub(super) fn stalled(&self, sum: &Sum, times: f64, transfers: u64, largest: &Largest) -> Option<f64> {
        let is_of_host = self.transfer.verb == Verb::Load && self.transfer.partner == Partner::Host;
        if is_of_host && self.channels > 1 {
            return self.stalled_channels(sum, times, transfers, largest);
        }
        if !is_of_host || self.can_be_overtaken() {
            return None;
        }
        let unstalled = self.dma.read_request_ns.value + self.dma.shared_request_ns.value + sum.least_request_beats;
        let stops = times * sum.engine.since(unstalled * sum.requests).as_ns();
        let stalls = self.dma.descriptor_ns.value > Ticks::ZERO && stops > NEGLIGIBLE * largest.ns;
        if !(stalls || largest.bound == Bound::Tags && self.hold_tags_unlike(sum, times)) {
            return None;
        }
        let all = (sum.requests as f64 * times).round() as u64;
        // What follows the tags is apart, so that the choice does not depend on where a latency is.
        let enough_ns = (largest.ns - self.beyond(sum).as_ns()) * (1.0 + SAME);
        let latencies_ns = times * sum.latencies.as_ns();
        let tags = self.most_under_way() as u64;
        let described = u64::from(self.dma.descriptor_bytes.value).min(self.transfer.bytes);
        let of_descriptor = described / u64::from(self.most_of_request());
        // A whole period is in the second half, wherever it begins.
        let of_transfer = self.count_and_last(0)?.0 + 1;
        let of_periods = self.period().map_or(FEWEST_AT_RANDOM, |period| period.saturating_mul(4 * of_transfer));
        let of_periods = if of_periods <= MOST_PIECES { of_periods } else { 0 };
        let enough = FEWEST.max(of_periods).max(ROUNDS * tags).max(STALLS * of_descriptor);
        let followed = all.min(MOST_PIECES).min(enough);
        let mut requests = Requests::new(self, followed);
        requests.know_period()?;
        if let Some(ns) = requests.if_alike(all) {
            return Some(ns);
        }
        let is_enough = requests.at_most(all).is_some_and(|ns| ns <= enough_ns);
        if is_enough { None } else { requests.time(all, latencies_ns) }
    }
}
