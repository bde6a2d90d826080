//! The stages of requests on their way to an IOMMU, memory and back, each busy until a time.
//!
//! Which stage waits for what is in the table of `at_iommu.rs`.

use super::iotlb::WalkMark;
use crate::path::Pool;
use lanemark_units::Ticks;

/// Parameters of requests of equal length and place in a page.
#[derive(Clone, Copy)]
pub(super) struct Request {
    /// Bytes from the start of its transfer.
    pub(super) offset: u64,
    pub(super) engine: Ticks,
    pub(super) go: Ticks,
    pub(super) slowest: Ticks,
    pub(super) wire: Ticks,
    pub(super) credit_loop: Ticks,
    pub(super) credits: u32,
    /// Of a read: the path from memory on, and the times of its data.
    pub(super) memory_read: Ticks,
    pub(super) link: Ticks,
    pub(super) before_beats: Ticks,
    pub(super) beats: Ticks,
    pub(super) way: Ticks,
}

/// Times and limits that are the same for all requests.
pub(super) struct Fixed {
    pub(super) egress: Ticks,
    pub(super) unloaded: Ticks,
    /// Requests that credits and send buffers hold, and tags; `None` if these are more than there are requests.
    pub(super) buffers: Option<usize>,
    pub(super) tags: Option<usize>,
    /// Credits of the root port.
    pub(super) pool: Pool,
    pub(super) root_pace: Ticks,
    pub(super) pace: Ticks,
    /// Time of a write at memory; `None` for reads.
    pub(super) write: Option<Ticks>,
}

/// The stages after the requests so far.
#[derive(Clone, Copy, Default)]
pub(super) struct Busy {
    pub(super) issued: Ticks,
    pub(super) started: Ticks,
    pub(super) paced: Ticks,
    pub(super) arrived: Ticks,
    pub(super) accepted_by_root: Option<Ticks>,
    pub(super) left: Ticks,
    pub(super) link: Ticks,
    pub(super) beats: Ticks,
    pub(super) end: Ticks,
}

impl Busy {
    /// Whether each stage that is used is busy for exactly this time longer than `earlier`.
    fn is_later(&self, earlier: &Busy, passed: Ticks) -> bool {
        let times = |busy: &Busy| {
            let Busy { issued, started, arrived, left, link, beats, end, .. } = *busy;
            [issued, started, arrived, busy.accepted_by_root.unwrap_or_default(), left, link, beats, end]
        };
        let is_later = |(now, then): (Ticks, Ticks)| now == then + passed || now == Ticks::ZERO && then == Ticks::ZERO;
        self.paced == earlier.paced && times(self).into_iter().zip(times(earlier)).all(is_later)
    }
}

/// Values of the last requests.
pub(super) struct History<T> {
    /// A power of two of places, in turn.
    last: Vec<T>,
    /// Number of requests so far.
    pub(super) count: usize,
}

impl<T: Copy + Default> History<T> {
    /// A history of at least `most` requests.
    fn of(most: usize) -> History<T> {
        History { last: vec![T::default(); most.next_power_of_two()], count: 0 }
    }

    /// The value of request number `nth`, one of the last ones.
    fn at(&self, nth: usize) -> T {
        self.last[nth & (self.last.len() - 1)]
    }

    fn push(&mut self, value: T) {
        let place = self.count & (self.last.len() - 1);
        self.last[place] = value;
        self.count += 1;
    }

    /// The value of the request `back` before the next one; `None` before the first one.
    fn before(&self, back: usize) -> Option<T> {
        Some(self.at(self.count.checked_sub(back)?))
    }

    /// The values of the last requests, at most `most`, the last one first.
    fn last(&self, most: usize) -> Vec<T> {
        (1..=most).map_while(|back| self.before(back)).collect()
    }
}

/// The stages, and the requests so far.
pub(super) struct Stages {
    pub(super) busy: Busy,
    /// Acceptance of requests by memory, and of reads, the times at which their tags are free.
    pub(super) taken: History<Ticks>,
    pub(super) free: History<Ticks>,
    /// The oldest request that may hold credits, and the data credits since.
    pub(super) oldest: usize,
    pub(super) held: u64,
    pub(super) credits: History<u32>,
}

/// The stages at an earlier repetition.
pub(super) struct Earlier {
    pub(super) busy: Busy,
    pub(super) walks: WalkMark,
    /// Of the last requests, the last one first: as [`Stages`] has them.
    pub(super) taken: Vec<Ticks>,
    pub(super) free: Vec<Ticks>,
    /// Requests and transfers so far.
    pub(super) requests: usize,
    pub(super) transfers: u64,
    /// Data credits of each request since the oldest one that may hold some, the last one first.
    pub(super) credits: Vec<u32>,
}

impl Stages {
    /// Before the first of at most this many requests.
    pub(super) fn new(fixed: &Fixed, requests: u64) -> Stages {
        let requests = usize::try_from(requests).unwrap_or(usize::MAX).saturating_add(1);
        let [buffers, tags] = [fixed.buffers, fixed.tags].map(|count| count.map_or(1, |count| count.min(requests)));
        let held = (fixed.pool.headers as usize).min(requests) + 2;
        let (busy, oldest) = (Busy::default(), 0);
        let (taken, free) = (History::of(buffers.max(held)), History::of(tags));
        Stages { busy, taken, free, oldest, held: 0, credits: History::of(held) }
    }

    /// Issues the next request; returns when the IOMMU looks it up.
    pub(super) fn arrive(&mut self, request: &Request, fixed: &Fixed) -> Ticks {
        let nth = self.taken.count;
        let busy = &mut self.busy;
        let room = fixed.buffers.and_then(|buffers| self.taken.before(buffers)).unwrap_or_default();
        let tag = fixed.tags.and_then(|tags| self.free.before(tags)).unwrap_or_default();
        busy.issued = busy.issued.max(room).max(tag) + request.engine;
        // The packet before it on the slowest link.
        let sent = busy.issued + fixed.egress;
        busy.started = sent.max(busy.started + busy.paced);
        busy.paced = request.slowest;
        self.credits.push(request.credits);
        self.held += u64::from(request.credits);
        let Pool { headers, data } = fixed.pool;
        while self.oldest < nth && (self.held > data.into() || (nth + 1 - self.oldest) as u64 > headers.into()) {
            self.held -= u64::from(self.credits.at(self.oldest));
            self.oldest += 1;
        }
        let released = self.oldest.checked_sub(1).map(|place| self.taken.at(place));
        let credit = released.map_or(Ticks::ZERO, |taken| taken + request.credit_loop);
        let behind = if nth == 0 { Ticks::ZERO } else { busy.arrived + request.wire };
        let way = (busy.issued + request.go).max(busy.started + fixed.unloaded);
        busy.arrived = way.max(behind).max(credit);
        let paced = busy.accepted_by_root.map_or(Ticks::ZERO, |last| last + fixed.root_pace);
        let accepted = busy.arrived.max(paced);
        busy.accepted_by_root = Some(accepted);
        accepted
    }

    /// Passes the next request, whose translation is ready at `ready`, to memory, and receives its data.
    pub(super) fn leave(&mut self, request: &Request, fixed: &Fixed, ready: Ticks) {
        let busy = &mut self.busy;
        busy.left = busy.left.max(ready);
        let paced = self.taken.before(1).map_or(Ticks::ZERO, |last| last + fixed.pace);
        let taken = busy.left.max(paced);
        self.taken.push(taken);
        if let Some(write) = fixed.write {
            busy.end = taken + write;
            return;
        }
        busy.link = busy.link.max(taken + request.memory_read) + request.link;
        busy.beats = busy.beats.max(taken + request.before_beats) + request.beats;
        let free = (taken + request.way).max(busy.link).max(busy.beats);
        self.free.push(free);
        busy.end = busy.end.max(free);
    }

    /// Number of the last requests that may hold credits.
    fn holding(&self) -> usize {
        self.taken.count - self.oldest
    }

    /// Number of the last requests whose acceptance later ones may depend on.
    fn last_taken(&self, fixed: &Fixed) -> usize {
        fixed.buffers.unwrap_or(0).max(self.holding() + 1)
    }

    /// The stages after this many transfers.
    pub(super) fn mark(&self, transfers: u64, walks: WalkMark, fixed: &Fixed) -> Earlier {
        Earlier {
            busy: self.busy,
            walks,
            taken: self.taken.last(self.last_taken(fixed)),
            free: self.free.last(fixed.tags.unwrap_or(0)),
            requests: self.taken.count,
            transfers,
            credits: self.credits.last(self.holding()),
        }
    }

    /// Whether every stage is busy for as long as it was at the place `then`, so that the same requests take the same times.
    pub(super) fn repeat(&self, then: &Earlier, walks: &WalkMark, fixed: &Fixed) -> bool {
        walks.is_like(&then.walks, self.busy.issued - then.busy.issued) && self.repeats(then, fixed)
    }

    /// As [`repeat`](Stages::repeat), without walks.
    fn repeats(&self, then: &Earlier, fixed: &Fixed) -> bool {
        let passed = self.busy.issued - then.busy.issued;
        // None of more requests than there were.
        let are_later = |now: &History<Ticks>, then: &[Ticks], last: usize| {
            then.len() == last && (1..).zip(then).all(|(back, then)| now.before(back) == Some(*then + passed))
        };
        self.holding() == then.credits.len()
            && self.credits.last(self.holding()) == then.credits
            && self.busy.is_later(&then.busy, passed)
            && are_later(&self.taken, &then.taken, self.last_taken(fixed))
            && are_later(&self.free, &then.free, fixed.tags.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::super::iotlb::Translator;
    use super::*;

    #[test]
    fn credits_of_other_requests_are_no_repetition() {
        let platform = lanemark_platform::preset("card-gen5-x16-iommu").unwrap().unwrap();
        let none = Ticks::ZERO;
        let fixed = Fixed {
            egress: none,
            unloaded: none,
            buffers: None,
            tags: None,
            pool: Pool { headers: 2, data: 64 },
            root_pace: none,
            pace: none,
            write: Some(none),
        };
        let request = |credits| Request {
            offset: 0,
            engine: Ticks(10),
            go: none,
            slowest: none,
            wire: none,
            credit_loop: none,
            credits,
            memory_read: none,
            link: none,
            before_beats: none,
            beats: none,
            way: none,
        };
        let walks = || Translator::new(platform.iommu.as_ref().unwrap()).mark(0);
        let repeats = |of_later: [u32; 4]| {
            let mut stages = Stages::new(&fixed, 8);
            let follow = |stages: &mut Stages, credits: [u32; 4]| {
                for credits in credits {
                    let ready = stages.arrive(&request(credits), &fixed);
                    stages.leave(&request(credits), &fixed, ready);
                }
            };
            follow(&mut stages, [1, 2, 1, 2]);
            let then = stages.mark(4, walks(), &fixed);
            follow(&mut stages, of_later);
            stages.repeats(&then, &fixed)
        };
        assert_eq!([[1, 2, 1, 2], [1, 2, 2, 1], [1, 1, 1, 3]].map(repeats), [true, false, false]);
    }
}
