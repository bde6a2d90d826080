//! The queues of a card, and what its user's circuit joins.
//!
//! ```text
//!  reads of the engine --> RX ----+     +----> TX ----> its writes to host memory
//!                                 | mode|
//!  writes of other cards > EP_RX -+     +----> EP_TX -> its writes to other cards
//! ```
//!
//! Ports: [`Interconnect::takes_at`] and [`Interconnect::take`] are the engine's and the endpoint's, for what comes;
//! [`Interconnect::gives_at`] and [`Interconnect::give`] the engine's, for what goes; [`Interconnect::carry`] moves bytes from queue
//! to queue when that is [due](Interconnect::due), a burst of beats of the user's clock at a time.
//!
//! A full queue lets nothing come: completions keep their tags, and writes of other cards their credits. An empty one lets
//! nothing go.

use crate::device::fifo::{self, Fifo};
use lanemark_engine::Visitor;
use lanemark_units::Ticks;

/// What never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Each queue, by [`Queue`].
    pub queues: [fifo::Spec; 4],
}

/// A queue of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// What the engine read.
    Rx,
    /// What it writes to host memory.
    Tx,
    /// What other cards wrote.
    EpRx,
    /// What it writes to other cards.
    EpTx,
}

/// What is joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// Nothing: the user's circuit makes what goes and takes what comes.
    #[default]
    Straight,
    /// Who came from goes back there: RX to TX, `EP_RX` to `EP_TX`.
    Loopback,
    /// RX to `EP_TX`, `EP_RX` to TX: where a chain of cards begins and ends.
    Chain,
}

impl Mode {
    /// Where what comes in a queue goes, RX first; `None` if the circuit takes it.
    const fn targets(self) -> Option<[Queue; 2]> {
        match self {
            Mode::Straight => None,
            Mode::Loopback => Some([Queue::Tx, Queue::EpTx]),
            Mode::Chain => Some([Queue::EpTx, Queue::Tx]),
        }
    }
}

/// Where bytes come in.
const SOURCES: [Queue; 2] = [Queue::Rx, Queue::EpRx];

/// Beats of a burst, at the most.
const BURST_BEATS: u64 = 16;
/// Bytes of a burst, at the most: beats have 128 B or fewer.
const BURST_BYTES: usize = 128 * BURST_BEATS as usize;

/// Bytes that move from a queue to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Burst {
    bytes: usize,
    until: Ticks,
}

/// Everything that does change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interconnect {
    mode: Mode,
    few_bytes: u64,
    queues: [Fifo; 4],
    moving: [Option<Burst>; 2],
}

impl Interconnect {
    /// With empty queues, joined to nothing.
    #[must_use]
    pub fn new(spec: Spec) -> Interconnect {
        let queues = spec.queues.map(Fifo::new);
        Interconnect { mode: Mode::Straight, few_bytes: 0, queues, moving: [None; 2] }
    }

    /// Joins queues as `mode` says; what was in them is gone. The engine waits for as many as `few_bytes` at once.
    pub fn join(&mut self, mode: Mode, few_bytes: u64) {
        (self.mode, self.few_bytes) = (mode, few_bytes);
        self.moving = [None; 2];
        self.queues.iter_mut().for_each(Fifo::clear);
    }

    /// When a queue takes so many bytes that come; never while it is full.
    #[inline]
    #[must_use]
    pub fn takes_at(&self, queue: Queue, bytes: u64) -> Ticks {
        let fifo = &self.queues[queue as usize];
        match self.mode {
            Mode::Straight => fifo.passes_at(bytes),
            _ if fifo.room() >= bytes => Ticks::ZERO,
            _ => Ticks::NEVER,
        }
    }

    /// They come.
    #[inline]
    pub fn take(&mut self, now: Ticks, queue: Queue, data: &[u8]) {
        let fifo = &mut self.queues[queue as usize];
        if self.mode == Mode::Straight {
            return fifo.pass(now, data.len() as u64);
        }
        fifo.push(now, data, 1);
        self.carry_more(now);
    }

    /// Since when a queue gives so many bytes to go; never while it has fewer.
    #[inline]
    #[must_use]
    pub fn gives_at(&self, queue: Queue, bytes: u64) -> Ticks {
        let fifo = &self.queues[queue as usize];
        if self.mode == Mode::Straight { fifo.passes_at(bytes) } else { fifo.holds_since(bytes) }
    }

    /// They go; says whether they are those of the queue, and not ones that the user's circuit makes.
    #[inline]
    pub fn give(&mut self, now: Ticks, queue: Queue, into: &mut [u8]) -> bool {
        let fifo = &mut self.queues[queue as usize];
        if self.mode == Mode::Straight {
            fifo.pass(now, into.len() as u64);
            return false;
        }
        fifo.pop(into);
        self.carry_more(now);
        true
    }

    /// When the next burst is over.
    #[must_use]
    pub fn due(&self) -> Ticks {
        self.moving.iter().flatten().map(|burst| burst.until).min().unwrap_or(Ticks::NEVER)
    }

    /// Bursts that are over arrive, and others begin.
    pub fn carry(&mut self, now: Ticks) {
        let Some(targets) = self.mode.targets() else { return };
        for (lane, target) in targets.into_iter().enumerate() {
            let Some(burst) = self.moving[lane].filter(|burst| burst.until <= now) else { continue };
            let mut bytes = [0; BURST_BYTES];
            let count = self.queues[SOURCES[lane] as usize].pop(&mut bytes[..burst.bytes]);
            self.queues[target as usize].push(now, &bytes[..count], self.few_bytes);
            self.moving[lane] = None;
        }
        self.carry_more(now);
    }

    /// Whether it joins queues.
    #[inline]
    pub(crate) fn is_joined(&self) -> bool {
        self.mode != Mode::Straight
    }

    /// Shows everything that changes; where queues are joined, nothing is skipped.
    pub(crate) fn visit(&mut self, view: &mut impl Visitor) {
        let Interconnect { mode, few_bytes, queues, moving } = self;
        view.count(*mode as usize);
        view.state(*few_bytes);
        for queue in queues {
            queue.visit(view);
        }
        for burst in moving {
            view.flag(burst.is_some());
            if let Some(Burst { bytes, until }) = burst {
                view.count(*bytes);
                view.moment(until);
            }
        }
    }

    /// Begins bursts where there are bytes, and room for them.
    fn carry_more(&mut self, now: Ticks) {
        let Some(targets) = self.mode.targets() else { return };
        for (lane, target) in targets.into_iter().enumerate() {
            if self.moving[lane].is_some() {
                continue;
            }
            let (from, to) = (&self.queues[SOURCES[lane] as usize], &self.queues[target as usize]);
            let most = u64::from(from.spec().beat_bytes) * BURST_BEATS;
            let bytes = from.len().min(to.room()).min(most);
            if bytes > 0 {
                let until = now + from.spec().beats(bytes);
                self.moving[lane] = Some(Burst { bytes: bytes as usize, until });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interconnect(mode: Mode) -> Interconnect {
        let queue = fifo::Spec { size_bytes: 256, beat_bytes: 8, beat: Ticks(10) };
        let mut interconnect = Interconnect::new(Spec { queues: [queue; 4] });
        interconnect.join(mode, 64);
        interconnect
    }

    /// What lies in a queue when nothing moves any more.
    fn settled(interconnect: &mut Interconnect, queue: Queue) -> (Vec<u8>, Ticks) {
        let mut now = Ticks::ZERO;
        while interconnect.due() < Ticks::NEVER {
            now = interconnect.due();
            interconnect.carry(now);
        }
        let mut bytes = vec![0; interconnect.queues[queue as usize].len() as usize];
        interconnect.give(now, queue, &mut bytes);
        (bytes, now)
    }

    #[test]
    fn bytes_go_where_the_mode_says_a_beat_a_tick_of_the_users_clock() {
        for (mode, from, to) in [
            (Mode::Loopback, Queue::Rx, Queue::Tx),
            (Mode::Loopback, Queue::EpRx, Queue::EpTx),
            (Mode::Chain, Queue::Rx, Queue::EpTx),
            (Mode::Chain, Queue::EpRx, Queue::Tx),
        ] {
            let mut interconnect = interconnect(mode);
            let sent: Vec<u8> = (0..200).collect();
            interconnect.take(Ticks::ZERO, from, &sent);
            // Twenty-five beats, in bursts of sixteen.
            assert_eq!(settled(&mut interconnect, to), (sent, Ticks(250)), "{mode:?} {from:?}");
        }
    }

    #[test]
    fn a_full_queue_takes_nothing_and_an_empty_one_gives_nothing() {
        let mut interconnect = interconnect(Mode::Loopback);
        interconnect.take(Ticks(0), Queue::Rx, &[7; 256]);
        assert_eq!(interconnect.takes_at(Queue::Rx, 1), Ticks::NEVER);
        assert_eq!(interconnect.gives_at(Queue::Tx, 1), Ticks::NEVER);
        interconnect.carry(interconnect.due());
        assert_eq!(
            (interconnect.takes_at(Queue::Rx, 128), interconnect.takes_at(Queue::Rx, 129)),
            (Ticks(0), Ticks::NEVER)
        );
        assert_eq!([128, 129].map(|bytes| interconnect.gives_at(Queue::Tx, bytes)), [Ticks(160), Ticks::NEVER]);
        // Nothing leaves TX: it fills, and then RX does.
        while interconnect.due() < Ticks::NEVER {
            interconnect.carry(interconnect.due());
        }
        interconnect.take(Ticks(1000), Queue::Rx, &[8; 256]);
        assert_eq!(interconnect.due(), Ticks::NEVER);
        let mut out = [0; 100];
        assert!(interconnect.give(Ticks(2000), Queue::Tx, &mut out));
        assert_eq!((out, interconnect.due()), ([7; 100], Ticks(2130)));
    }

    #[test]
    fn unjoined_queues_only_cost_the_time_of_the_users_circuit() {
        let mut interconnect = interconnect(Mode::Straight);
        let mut bytes = [3; 256];
        assert_eq!(interconnect.gives_at(Queue::Tx, 256), Ticks::ZERO);
        assert!(!interconnect.give(Ticks(100), Queue::Tx, &mut bytes));
        assert_eq!((bytes, interconnect.gives_at(Queue::Tx, 8)), ([3; 256], Ticks(110)));
        assert_eq!((interconnect.takes_at(Queue::Rx, 256), interconnect.due()), (Ticks::ZERO, Ticks::NEVER));
    }
}
