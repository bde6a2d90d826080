//! The FIFOs of a card and the connections that the user circuit makes between them.
//!
//! ```text
//!  reads of the engine --> RX ----+     +----> TX ----> its writes to host memory
//!                                 | mode|
//!  writes of other cards > EP_RX -+     +----> EP_TX -> its writes to other cards
//! ```
//!
//! Ports: the engine and the endpoint call [`Interconnect::takes_at`] and [`Interconnect::take`] for received bytes,
//! and the engine calls [`Interconnect::gives_at`] and [`Interconnect::give`] for sent bytes. [`Interconnect::carry`]
//! moves bytes from FIFO to FIFO when that is [due](Interconnect::due), a burst of user-clock beats at a time.
//!
//! A full FIFO applies back-pressure: completions keep their tags, and writes of other cards their credits. An empty
//! one stalls requests.

use crate::critical_path::{CriticalPath, Milestone, Place};
use crate::device::fifo::{self, Fifo};
use lanemark_engine::Visitor;
use lanemark_machine::Cause;
use lanemark_units::Ticks;

/// Constants of the interconnect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Constants of each FIFO, by [`Queue`].
    pub queues: [fifo::Spec; 4],
}

/// A FIFO of a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Queue {
    /// Data read by the engine.
    Rx,
    /// Data that the engine writes to host memory.
    Tx,
    /// Data written by other cards.
    EpRx,
    /// Data that the engine writes to other cards.
    EpTx,
}

/// The connections between FIFOs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// None: the user circuit produces sent bytes and consumes received ones.
    #[default]
    Straight,
    /// Back to the origin: RX to TX, `EP_RX` to `EP_TX`.
    Loopback,
    /// RX to `EP_TX`, `EP_RX` to TX: the ends of a chain of cards.
    Chain,
}

impl Mode {
    /// Returns the destination of RX and of `EP_RX`; `None` if the circuit consumes the bytes.
    const fn targets(self) -> Option<[Queue; 2]> {
        match self {
            Mode::Straight => None,
            Mode::Loopback => Some([Queue::Tx, Queue::EpTx]),
            Mode::Chain => Some([Queue::EpTx, Queue::Tx]),
        }
    }
}

/// The FIFOs that receive bytes.
const SOURCES: [Queue; 2] = [Queue::Rx, Queue::EpRx];

/// Largest burst, in beats.
const BURST_BEATS: u64 = 16;
/// Largest burst, in bytes: a beat has at most 128 B.
const BURST_BYTES: usize = 128 * BURST_BEATS as usize;

/// A burst in flight between FIFOs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Burst {
    bytes: usize,
    until: Ticks,
    /// What it waited for last before it began, once that is known: data, room, or the burst before it.
    waited_for: Option<Milestone>,
}

/// State of the interconnect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interconnect {
    mode: Mode,
    few_bytes: u64,
    queues: [Fifo; 4],
    moving: [Option<Burst>; 2],
    /// When each FIFO last received and supplied bytes.
    filled: [Milestone; 4],
    drained: [Milestone; 4],
}

impl Interconnect {
    /// Creates an interconnect with empty FIFOs and no connections.
    #[must_use]
    pub fn new(spec: Spec) -> Interconnect {
        let queues = spec.queues.map(Fifo::new);
        Interconnect {
            mode: Mode::Straight,
            few_bytes: 0,
            queues,
            moving: [None; 2],
            filled: [Milestone::NONE; 4],
            drained: [Milestone::NONE; 4],
        }
    }

    /// Connects FIFOs by `mode` and drops their content. The engine waits for at most `few_bytes` at a time.
    pub fn join(&mut self, mode: Mode, few_bytes: u64) {
        (self.mode, self.few_bytes) = (mode, few_bytes);
        self.moving = [None; 2];
        self.queues.iter_mut().for_each(Fifo::clear);
    }

    /// Returns when a FIFO accepts `bytes`; [`Ticks::NEVER`] while it is full.
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

    /// Stores received bytes in a FIFO.
    #[inline]
    pub fn take(&mut self, now: Ticks, queue: Queue, data: &[u8]) {
        let fifo = &mut self.queues[queue as usize];
        if self.mode == Mode::Straight {
            return fifo.pass(now, data.len() as u64);
        }
        fifo.push(now, data, 1);
        self.carry_more(now);
    }

    /// Returns since when a FIFO can supply `bytes`; [`Ticks::NEVER`] while it holds fewer.
    #[inline]
    #[must_use]
    pub fn gives_at(&self, queue: Queue, bytes: u64) -> Ticks {
        let fifo = &self.queues[queue as usize];
        if self.mode == Mode::Straight { fifo.passes_at(bytes) } else { fifo.holds_since(bytes) }
    }

    /// Removes bytes from a FIFO; returns false if the user circuit produces them instead.
    #[allow(clippy::inline_always)] // For every TLP.
    #[inline(always)]
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

    /// Returns when a FIFO last received bytes.
    pub(crate) fn filled(&self, queue: Queue) -> Milestone {
        self.filled[queue as usize]
    }

    /// Returns when a FIFO last supplied bytes.
    pub(crate) fn drained(&self, queue: Queue) -> Milestone {
        self.drained[queue as usize]
    }

    /// Records that bytes entered a FIFO; without connections, they leave at once.
    pub(crate) fn set_filled(&mut self, queue: Queue, milestone: Milestone) {
        self.filled[queue as usize] = milestone;
        self.set_waited_for(milestone, |source, _| source == queue);
        if self.mode == Mode::Straight {
            self.drained[queue as usize] = milestone;
        }
    }

    /// Records that bytes left a FIFO; without connections, they have entered it at once.
    pub(crate) fn set_drained(&mut self, queue: Queue, milestone: Milestone) {
        self.drained[queue as usize] = milestone;
        self.set_waited_for(milestone, |_, target| target == queue);
        if self.mode == Mode::Straight {
            self.filled[queue as usize] = milestone;
        }
    }

    /// Records what the bursts from and to these FIFOs waited for, if they have just begun.
    fn set_waited_for(&mut self, milestone: Milestone, is_one: impl Fn(Queue, Queue) -> bool) {
        let Some(targets) = self.mode.targets() else { return };
        for (lane, target) in targets.into_iter().enumerate() {
            if let Some(burst) = self.moving[lane].as_mut().filter(|_| is_one(SOURCES[lane], target)) {
                burst.waited_for.get_or_insert(milestone);
            }
        }
    }

    /// Returns when the next burst ends.
    #[must_use]
    pub fn due(&self) -> Ticks {
        self.moving.iter().flatten().map(|burst| burst.until).min().unwrap_or(Ticks::NEVER)
    }

    /// Delivers the bursts that have ended and starts further ones, on the card at `place`.
    pub fn carry(&mut self, now: Ticks, path: &mut CriticalPath, place: Place) {
        let Some(targets) = self.mode.targets() else { return };
        let mut last = Milestone::NONE;
        for (lane, target) in targets.into_iter().enumerate() {
            let Some(burst) = self.moving[lane].filter(|burst| burst.until <= now) else { continue };
            let mut bytes = [0; BURST_BYTES];
            let count = self.queues[SOURCES[lane] as usize].pop(&mut bytes[..burst.bytes]);
            self.queues[target as usize].push(now, &bytes[..count], self.few_bytes);
            let source = SOURCES[lane] as usize;
            let milestone = path.add(burst.waited_for.unwrap_or(self.filled[source]), now, place, Cause::Fifo);
            last = milestone;
            (self.drained[source], self.filled[target as usize]) = (milestone, milestone);
            self.moving[lane] = None;
        }
        self.carry_more(now);
        // The bursts that begin now waited for the end of these.
        self.set_waited_for(last, |_, _| true);
    }

    /// Returns whether FIFOs are connected.
    #[inline]
    pub(crate) fn is_joined(&self) -> bool {
        self.mode != Mode::Straight
    }

    /// Visits the state. Where FIFOs are connected, no steady state is skipped.
    pub(crate) fn visit(&mut self, view: &mut impl Visitor) {
        let Interconnect { mode, few_bytes, queues, moving, filled: _, drained: _ } = self;
        view.count(*mode as usize);
        view.state(*few_bytes);
        for queue in queues {
            queue.visit(view);
        }
        for burst in moving {
            view.flag(burst.is_some());
            if let Some(Burst { bytes, until, waited_for: _ }) = burst {
                view.count(*bytes);
                view.moment(until);
            }
        }
    }

    /// Starts bursts where there are bytes and space.
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
                self.moving[lane] = Some(Burst { bytes: bytes as usize, until, waited_for: None });
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

    /// Runs until nothing moves; returns the content of a FIFO and the time.
    fn settled(interconnect: &mut Interconnect, queue: Queue) -> (Vec<u8>, Ticks) {
        let mut now = Ticks::ZERO;
        while interconnect.due() < Ticks::NEVER {
            now = interconnect.due();
            interconnect.carry(now, &mut CriticalPath::default(), Place::ROOT_COMPLEX);
        }
        let mut bytes = vec![0; interconnect.queues[queue as usize].len() as usize];
        interconnect.give(now, queue, &mut bytes);
        (bytes, now)
    }

    #[test]
    fn bytes_move_by_the_mode_one_beat_a_user_clock_tick() {
        for (mode, from, to) in [
            (Mode::Loopback, Queue::Rx, Queue::Tx),
            (Mode::Loopback, Queue::EpRx, Queue::EpTx),
            (Mode::Chain, Queue::Rx, Queue::EpTx),
            (Mode::Chain, Queue::EpRx, Queue::Tx),
        ] {
            let mut interconnect = interconnect(mode);
            let sent: Vec<u8> = (0..200).collect();
            interconnect.take(Ticks::ZERO, from, &sent);
            // Twenty-five beats, in bursts of at most sixteen.
            assert_eq!(settled(&mut interconnect, to), (sent, Ticks(250)), "{mode:?} {from:?}");
        }
    }

    #[test]
    fn a_full_queue_accepts_no_bytes_and_an_empty_one_supplies_none() {
        let mut interconnect = interconnect(Mode::Loopback);
        interconnect.take(Ticks(0), Queue::Rx, &[7; 256]);
        assert_eq!(interconnect.takes_at(Queue::Rx, 1), Ticks::NEVER);
        assert_eq!(interconnect.gives_at(Queue::Tx, 1), Ticks::NEVER);
        interconnect.carry(interconnect.due(), &mut CriticalPath::default(), Place::ROOT_COMPLEX);
        assert_eq!(
            (interconnect.takes_at(Queue::Rx, 128), interconnect.takes_at(Queue::Rx, 129)),
            (Ticks(0), Ticks::NEVER)
        );
        assert_eq!([128, 129].map(|bytes| interconnect.gives_at(Queue::Tx, bytes)), [Ticks(160), Ticks::NEVER]);
        // TX is not drained: it fills, and then RX does.
        while interconnect.due() < Ticks::NEVER {
            interconnect.carry(interconnect.due(), &mut CriticalPath::default(), Place::ROOT_COMPLEX);
        }
        interconnect.take(Ticks(1000), Queue::Rx, &[8; 256]);
        assert_eq!(interconnect.due(), Ticks::NEVER);
        let mut out = [0; 100];
        assert!(interconnect.give(Ticks(2000), Queue::Tx, &mut out));
        assert_eq!((out, interconnect.due()), ([7; 100], Ticks(2130)));
    }

    #[test]
    fn unjoined_queues_cost_the_time_of_the_user_circuit_only() {
        let mut interconnect = interconnect(Mode::Straight);
        let mut bytes = [3; 256];
        assert_eq!(interconnect.gives_at(Queue::Tx, 256), Ticks::ZERO);
        assert!(!interconnect.give(Ticks(100), Queue::Tx, &mut bytes));
        assert_eq!((bytes, interconnect.gives_at(Queue::Tx, 8)), ([3; 256], Ticks(110)));
        assert_eq!((interconnect.takes_at(Queue::Rx, 256), interconnect.due()), (Ticks::ZERO, Ticks::NEVER));
    }
}
