//! Pairs of requests and completions, and their latencies.

use super::Capture;
use crate::Summary;
use lanemark_wire::{FlowClass, FunctionId, Packet};
use std::collections::{BTreeMap, BTreeSet};

/// A request and its completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Index of the request in the capture.
    pub request: usize,
    /// Indices of the first and the last completion.
    pub completions: (usize, usize),
}

/// The non-posted requests of a capture, by outcome.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Exchanges {
    /// Completed requests, in the order of their last completions.
    pub answered: Vec<Exchange>,
    /// Requests that are outstanding where the capture ends.
    pub open: u64,
    /// Requests without their last completion whose tag is used again.
    pub unanswered: u64,
    /// Completions before the first request with their requester and tag: of requests before the capture.
    pub early: u64,
    /// Other completions without a request.
    pub strays: u64,
    /// Requests whose completion has an earlier time stamp; they are excluded from latencies.
    pub backwards: u64,
}

/// Latencies of one requester, in nanoseconds, from request to completion at the capture point.
#[derive(Clone, Debug, PartialEq)]
pub struct RequesterLatency {
    /// The requester.
    pub requester: FunctionId,
    /// Time until the first completion.
    pub first_ns: Summary,
    /// Time until the last completion.
    pub last_ns: Summary,
}

/// An outstanding request.
struct Open {
    request: usize,
    first: Option<usize>,
}

impl Capture {
    /// Pairs requests with completions by requester and tag.
    ///
    /// A completion is the last one if it carries its whole Byte Count, or has no data. TLPs with an LCRC error are
    /// left out: they are replayed.
    #[must_use]
    pub fn exchanges(&self) -> Exchanges {
        let mut open: BTreeMap<(FunctionId, u16), Open> = BTreeMap::new();
        let mut started: BTreeSet<(FunctionId, u16)> = BTreeSet::new();
        let mut found = Exchanges::default();
        for (place, passed) in self.frames.iter().enumerate().filter(|(_, passed)| !passed.has_lcrc_error) {
            let (Some(class), Some(key), Some(packet)) = (passed.class(), passed.transaction(), passed.packet()) else {
                continue;
            };
            match class {
                FlowClass::Posted => {}
                FlowClass::NonPosted => {
                    started.insert(key);
                    found.unanswered += u64::from(open.insert(key, Open { request: place, first: None }).is_some());
                }
                FlowClass::Completion => match open.get_mut(&key) {
                    None if started.contains(&key) => found.strays += 1,
                    None => found.early += 1,
                    Some(Open { request, first }) => {
                        let first = *first.get_or_insert(place);
                        if is_last(&packet) {
                            found.answered.push(Exchange { request: *request, completions: (first, place) });
                            open.remove(&key);
                        }
                    }
                },
            }
        }
        found.open = open.len() as u64;
        let is_backwards = |exchange: &Exchange| {
            let asked = self.frames[exchange.request].at_ns;
            self.frames[exchange.completions.0].at_ns < asked || self.frames[exchange.completions.1].at_ns < asked
        };
        let all = found.answered.len();
        found.answered.retain(|exchange| !is_backwards(exchange));
        found.backwards = (all - found.answered.len()) as u64;
        found
    }

    /// Latencies by requester, in the order of IDs.
    #[must_use]
    pub fn latencies(&self, exchanges: &Exchanges) -> Vec<RequesterLatency> {
        let mut by_requester: BTreeMap<FunctionId, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
        for exchange in &exchanges.answered {
            let request = &self.frames[exchange.request];
            let until = |place: usize| self.frames[place].at_ns.saturating_sub(request.at_ns) as f64;
            let Some((requester, _)) = request.transaction() else { continue };
            let (first, last) = by_requester.entry(requester).or_default();
            first.push(until(exchange.completions.0));
            last.push(until(exchange.completions.1));
        }
        let summed = by_requester.into_iter().filter_map(|(requester, (first, last))| {
            Some(RequesterLatency { requester, first_ns: Summary::of(&first)?, last_ns: Summary::of(&last)? })
        });
        summed.collect()
    }
}

/// Whether this is the last completion of a request.
fn is_last(completion: &Packet<&[u8]>) -> bool {
    let carried = completion.data_bytes();
    let skipped = usize::from(completion.lower_address() & 3);
    carried == 0 || usize::from(completion.byte_count()) + skipped <= carried
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Passed;
    use lanemark_wire::{Completion, CompletionStatus, Header, MemoryRequest};

    const CARD: FunctionId = FunctionId(0x0100);

    fn passed(at_ns: u64, header: Header) -> Passed {
        let mut tlp = vec![0; Header::MAX_BYTES];
        let used = header.emit(&mut tlp).unwrap();
        tlp.truncate(used);
        tlp.resize(used + header.data_bytes() as usize, 0);
        Passed::new(at_ns, None, tlp).unwrap()
    }

    fn read(at_ns: u64, tag: u16, address: u64, bytes: u32) -> Passed {
        passed(at_ns, Header::Memory(MemoryRequest::read(CARD, tag, address, bytes)))
    }

    fn data(at_ns: u64, tag: u16, lower_address: u8, left: u16, bytes: u16) -> Passed {
        passed(at_ns, Header::Completion(Completion::data(FunctionId(0), CARD, tag, lower_address, left, bytes)))
    }

    fn of(frames: Vec<Passed>) -> (Exchanges, Vec<RequesterLatency>) {
        let capture = Capture { frames, ..Capture::default() };
        let exchanges = capture.exchanges();
        let latencies = capture.latencies(&exchanges);
        (exchanges, latencies)
    }

    #[test]
    fn a_read_is_complete_with_its_last_byte() {
        let (exchanges, latencies) = of(vec![
            read(100, 7, 0x1003, 70),
            read(110, 8, 0x2000, 4),
            data(300, 7, 3, 70, 61),
            data(310, 8, 0, 4, 4),
            data(330, 7, 64, 9, 9),
        ]);
        let answered = [Exchange { request: 1, completions: (3, 3) }, Exchange { request: 0, completions: (2, 4) }];
        assert_eq!(exchanges, Exchanges { answered: answered.to_vec(), ..Exchanges::default() });
        let [card] = latencies.as_slice() else { panic!("{latencies:?}") };
        assert_eq!((card.requester, card.first_ns.count), (CARD, 2));
        assert_eq!((card.first_ns.min, card.first_ns.max), (200.0, 200.0));
        assert_eq!((card.last_ns.min, card.last_ns.max), (200.0, 230.0));
    }

    #[test]
    fn a_read_with_a_missing_byte_is_incomplete() {
        let (exchanges, latencies) = of(vec![read(0, 1, 0, 65), data(9, 1, 0, 65, 64)]);
        assert_eq!(exchanges, Exchanges { open: 1, ..Exchanges::default() });
        assert_eq!(latencies, []);
    }

    #[test]
    fn an_error_completion_completes_a_request() {
        let refusal = Completion::without_data(FunctionId(0), CARD, 1, CompletionStatus::UnsupportedRequest);
        let (exchanges, _) = of(vec![read(0, 1, 0, 4096), passed(5, Header::Completion(refusal))]);
        assert_eq!(exchanges.answered, [Exchange { request: 0, completions: (1, 1) }]);
    }

    #[test]
    fn unmatched_tlps_are_counted() {
        let (exchanges, latencies) = of(vec![
            data(1, 1, 0, 68, 64), // its request precedes the capture
            data(1, 1, 64, 4, 4),
            read(2, 1, 0, 4),
            read(3, 1, 0, 4),    // its tag again
            data(2, 1, 0, 4, 4), // back in time
            data(5, 1, 0, 4, 4), // complete already
            read(6, 2, 0, 4),    // outstanding at the end
            passed(4, Header::Memory(MemoryRequest::write(CARD, 0, 4))),
        ]);
        assert_eq!(
            exchanges,
            Exchanges { answered: Vec::new(), open: 1, unanswered: 1, early: 2, strays: 1, backwards: 1 }
        );
        assert_eq!(latencies, []);
    }

    #[test]
    fn a_tlp_with_an_lcrc_error_is_its_replay_only() {
        let damaged = |passed: Passed| Passed { has_lcrc_error: true, ..passed };
        let (exchanges, latencies) = of(vec![
            damaged(read(0, 1, 0, 4)),
            read(100, 1, 0, 4),
            damaged(data(200, 1, 0, 4, 4)),
            data(300, 1, 0, 4, 4),
        ]);
        assert_eq!(exchanges.answered, [Exchange { request: 1, completions: (3, 3) }]);
        assert_eq!(exchanges, Exchanges { answered: exchanges.answered.clone(), ..Exchanges::default() });
        assert_eq!(latencies[0].first_ns.max, 200.0);
    }

    #[test]
    fn a_read_with_illegal_byte_enables_is_paired_like_others() {
        let odd = Passed::new(0, None, vec![0, 0, 0, 1, 1, 0, 7, 0xff, 0xfe, 0, 0, 0x10]).unwrap();
        assert!(odd.header.is_err());
        let (exchanges, _) = of(vec![odd, data(9, 7, 0x10, 4, 4)]);
        assert_eq!(exchanges.answered, [Exchange { request: 0, completions: (1, 1) }]);
    }
}
