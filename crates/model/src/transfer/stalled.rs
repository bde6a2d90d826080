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
use super::way::{MOST_PIECES, PAGE, Way};
use crate::bound::Bound;
use crate::bounds::Largest;
use lanemark_machine::{Partner, Pattern, Transfer, Verb, Window};
use lanemark_platform::ChunkTiming;
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
        let page = self.page();
        let of_page = page.as_ref().map(|page| self.with_transfer(page));
        let way = of_page.as_ref().unwrap_or(self);
        let tags = way.most_under_way() as u64;
        let described = u64::from(way.dma.descriptor_bytes.value).min(way.transfer.bytes);
        let of_descriptor = described / u64::from(way.most_of_request());
        // A whole period is in the second half, wherever it begins.
        let of_transfer = way.count_and_last(0)?.0 + 1;
        let of_periods = way.period().map_or(FEWEST_AT_RANDOM, |period| period.saturating_mul(4 * of_transfer));
        let of_periods = if of_periods <= MOST_PIECES { of_periods } else { 0 };
        let enough = FEWEST.max(of_periods).max(ROUNDS * tags).max(STALLS * of_descriptor);
        let followed = all.min(MOST_PIECES).min(enough);
        let mut requests = Requests::new(way, followed);
        requests.know_period()?;
        if let Some(ns) = requests.if_alike(all) {
            return Some(ns);
        }
        let is_enough = requests.at_most(all).is_some_and(|ns| ns <= enough_ns);
        if is_enough { None } else { requests.time(all, latencies_ns) }
    }

    /// A one-page transfer that, repeated, issues the same requests; `None` unless transfers are of several alike, whole pages.
    fn page(&self) -> Option<Transfer> {
        let Transfer { bytes, window, outstanding, .. } = self.transfer;
        let of_whole_pages = [*bytes, window.step(*bytes), self.base.checked_add(window.offset)?];
        let is_of_pages = of_whole_pages.iter().all(|bytes| bytes.is_multiple_of(PAGE));
        let is_longer = *bytes > PAGE && outstanding.is_none();
        // A pause precedes each segment but the first one of a transfer.
        let of_reads = self.platform.dma_read.as_ref().map(ChunkTiming::from);
        let has_no_pause = of_reads.is_none_or(|reads| reads.segment == Ticks::ZERO);
        let window = Window { pattern: Pattern::Sequential, ..*window };
        (is_of_pages && is_longer && has_no_pause && self.pages_are_alike()).then_some(Transfer {
            bytes: PAGE,
            window,
            ..*self.transfer
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_platform::Origin;

    #[test]
    fn requests_of_alike_pages_take_the_time_that_they_take_in_longer_transfers() {
        let given = || Origin::Given("a test".to_owned());
        let card = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
        let mut are_stalled = 0;
        for (descriptor_ns, read_bytes, descriptor_bytes, segment_ns) in [
            (20.0, 512.0, 4096.0, 0.0),
            (90.0, 64.0, 4096.0, 0.0),
            (3.0, 256.0, 4096.0, 0.0),
            (20.0, 512.0, 8192.0, 0.0),
            (20.0, 512.0, 4096.0, 100.0),
        ] {
            let numbers = [
                ("dma.descriptor_ns", descriptor_ns),
                ("dma.descriptor_bytes", descriptor_bytes),
                ("dma.read_bytes", read_bytes),
                ("dma.tags", 32.0),
                ("dma_read.chunk_bytes", 256.0),
                ("dma_read.chunk_ns", 3.0),
                ("dma_read.segment_bytes", 4096.0),
                ("dma_read.segment_ns", segment_ns),
            ];
            let card =
                numbers.into_iter().fold(card.clone(), |card, (key, value)| card.with(key, value, given()).unwrap());
            for pattern in [Pattern::Sequential, Pattern::Random] {
                let window = Window { offset: 1 << 14, len: 1 << 22, pattern };
                let transfer = Transfer {
                    card: 0,
                    verb: Verb::Load,
                    partner: Partner::Host,
                    bytes: 1 << 16,
                    count: 1,
                    window,
                    outstanding: None,
                };
                let way = Way::of(&card, &transfer).unwrap();
                let page = way.page();
                let are_alike = descriptor_bytes <= 4096.0 && segment_ns == 0.0;
                assert_eq!(page.is_some(), are_alike, "{descriptor_bytes} {segment_ns}");
                let Some(page) = page else { continue };
                assert_eq!(page.bytes, PAGE);
                let transfers = 40;
                let of_page = way.with_transfer(&page);
                let time = |way: &Way<'_>| {
                    let all = 40 * (1 << 16) / read_bytes as u64;
                    Requests::new(way, all).time(all, 0.0).unwrap()
                };
                let sum = way.sum(0, transfers).unwrap();
                let stalled = way.stalled(&sum, 1.0, transfers, &Largest::of([]));
                let expected = time(&way);
                assert!((time(&of_page) - expected).abs() < 1e-9 * expected, "{pattern:?} {descriptor_ns}");
                if let Some(stalled) = stalled {
                    assert!((stalled - expected).abs() < 1e-4 * expected, "{stalled} {expected}");
                    are_stalled += 1;
                }
            }
        }
        assert_eq!(are_stalled, 6);
    }
}
