//! Host memory that a core shares with a device: which lines its caches hold, and the outstanding accesses.
//!
//! ```text
//!  stores, loads --> caches --miss--> fill buffers --------------+
//!                      \--flush--> write-backs ------------------+--> memory
//!  uncached: write-combining buffers, single accesses -----------+
//! ```
//!
//! Two buffers are modelled: the shared one, and a private one behind a bounce buffer. The caches have space for
//! both. Memory bandwidth is not limited. The first access to an absent line fetches it; stores wait for it without
//! stalling the core.
//!
//! Stall causes recorded by its core: `WcBuffers` (no free fill, write-combining or load buffer), `Flush`,
//! `StrongOrdering` and `ReadRoundTrip` (single accesses), `Fence`.

use lanemark_machine::{BufferHandoff, Cause, Discipline, Flush, Verb};
use lanemark_platform::{FlushLine, Platform};
use lanemark_units::Ticks;

/// Constants of coherent memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    cycle: Ticks,
    /// Time between two stores of a compiled loop.
    store: Ticks,
    cached_load: Ticks,
    read: Ticks,
    write: Ticks,
    flush_line: Ticks,
    purge_line: Ticks,
    fill_buffers: usize,
    wc_buffers: usize,
    loads_in_flight: usize,
    flushes_in_flight: usize,
}

impl Spec {
    /// Reads the constants of a platform; `None` without a `[coherence]` section.
    #[must_use]
    pub fn new(platform: &Platform) -> Option<Spec> {
        let (core, coherence) = (&platform.core, platform.coherence.as_ref()?);
        let ns = |cycles: f64| Ticks::from_ns(cycles / core.clock_ghz.value).unwrap_or(Ticks(1));
        Some(Spec {
            cycle: ns(1.0),
            store: ns(core.store_loop_cycles.value),
            cached_load: core.cached_load_ns.value,
            read: coherence.read_ns.value,
            write: coherence.write_ns.value,
            flush_line: coherence.flush_line_ns.value,
            purge_line: coherence.purge_line_ns.value,
            fill_buffers: core.fill_buffers.value as usize,
            wc_buffers: core.wc_buffers.value as usize,
            loads_in_flight: core.wc_loads_in_flight.value as usize,
            flushes_in_flight: match coherence.flush.value {
                FlushLine::Clflush => 1,
                _ => coherence.flushes_in_flight.value as usize,
            },
        })
    }
}

/// Returns the disciplines by which cores of a platform can share buffers with a device, in the order of their list.
#[must_use]
pub fn disciplines(platform: &Platform) -> Vec<Discipline> {
    let Some(coherence) = &platform.coherence else { return Vec::new() };
    let flushes: &[Flush] = match coherence.flush.value {
        FlushLine::Clflush => &[Flush::Clflush],
        FlushLine::Clflushopt => &[Flush::Clflushopt],
        FlushLine::Clwb => &[Flush::Clflushopt, Flush::Clwb],
    };
    let here = |discipline: &Discipline| !matches!(discipline, Discipline::Flushed(flush) if !flushes.contains(flush));
    Discipline::ALL.into_iter().filter(here).collect()
}

/// One of the two buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The buffer that the device accesses.
    Shared,
    /// The buffer behind the bounce buffer.
    Private,
}

/// How an access reaches memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Through {
    /// Cached: lines are fetched and kept.
    Caches,
    /// Write-combining: stores gather in buffers; loads are single, with a limited number outstanding.
    Combining,
    /// One access at a time.
    Single,
}

/// An operation of a core on shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deed {
    /// A coherent device write of `lines` lines of the shared buffer: no cache holds any of them.
    Arrive {
        /// Number of lines.
        lines: u64,
    },
    /// A store.
    Store {
        /// The buffer.
        place: Place,
        /// The method of access.
        through: Through,
        /// Position in the buffer, in accesses.
        nth: u64,
        /// Whether it stores the data of the previous load, as in a copy.
        copies: bool,
    },
    /// A load.
    Load {
        /// The buffer.
        place: Place,
        /// The method of access.
        through: Through,
        /// Position in the buffer, in accesses.
        nth: u64,
    },
    /// A flush of a line of the shared buffer.
    Flush {
        /// The instruction.
        flush: Flush,
        /// Number of the line.
        line: u64,
    },
    /// An `MFENCE`.
    Fence,
}

/// When the next instruction may issue, and the stall of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// Issue time of the next instruction.
    pub next: Ticks,
    /// Stall cause and stall time.
    pub waited: (Cause, Ticks),
}

/// Accesses of a line.
const A_LINE: u64 = BufferHandoff::LINE_BYTES / BufferHandoff::WIDTH_BYTES;

/// Buffers used in turn, each with the time at which it is free.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ring {
    free: Vec<Ticks>,
    next: usize,
}

impl Ring {
    fn of(count: usize) -> Ring {
        Ring { free: vec![Ticks::ZERO; count.max(1)], next: 0 }
    }

    /// Returns when the next buffer is free.
    fn ready(&self, now: Ticks) -> Ticks {
        self.free[self.next].max(now)
    }

    /// Occupies the next buffer until `until`.
    fn take(&mut self, until: Ticks) {
        self.free[self.next] = until;
        self.next = (self.next + 1) % self.free.len();
    }

    /// Returns when every buffer is free.
    fn settled(&self) -> Ticks {
        self.free.iter().copied().fold(Ticks::ZERO, Ticks::max)
    }
}

/// State of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Line {
    Clean,
    Written,
    /// In no cache.
    Absent,
}

/// State of coherent memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoherentMemory {
    spec: Spec,
    /// Lines of each buffer that were accessed; others are clean in a cache.
    lines: [Vec<Line>; 2],
    fills: Ring,
    combining: Ring,
    single_loads: Ring,
    flushes: Ring,
    /// Time at which every load has completed.
    loaded: Ticks,
    /// Time at which the data of every store to each buffer is available.
    stored: [Ticks; 2],
}

impl CoherentMemory {
    /// Creates an idle memory whose lines are all cached.
    #[must_use]
    pub fn new(spec: Spec) -> CoherentMemory {
        CoherentMemory {
            lines: [Vec::new(), Vec::new()],
            fills: Ring::of(spec.fill_buffers),
            combining: Ring::of(spec.wc_buffers),
            single_loads: Ring::of(spec.loads_in_flight),
            flushes: Ring::of(spec.flushes_in_flight),
            loaded: Ticks::ZERO,
            stored: [Ticks::ZERO; 2],
            spec,
        }
    }

    /// Resets to the initial state.
    pub fn invalidate(&mut self) {
        *self = CoherentMemory::new(self.spec.clone());
    }

    fn line(&mut self, place: Place, line: u64) -> &mut Line {
        let lines = &mut self.lines[place as usize];
        let at = line as usize;
        if lines.len() <= at {
            lines.resize(at + 1, Line::Clean);
        }
        &mut lines[at]
    }

    /// Fetches a line unless it is cached or being fetched; returns when the access can continue.
    fn fetch(&mut self, place: Place, line: u64, now: Ticks) -> Ticks {
        if *self.line(place, line) != Line::Absent {
            return now;
        }
        *self.line(place, line) = Line::Clean;
        let begun = self.fills.ready(now);
        self.fills.take(begun + self.spec.read);
        self.loaded = self.loaded.max(begun + self.spec.read);
        begun
    }

    /// Executes an operation at `now`; `fence` is the minimum time of a fence.
    pub fn execute(&mut self, deed: Deed, now: Ticks, fence: Ticks) -> Done {
        let Spec { cycle, store, write, read, .. } = self.spec;
        let done = |begun: Ticks, next: Ticks, cause| Done { next, waited: (cause, begun.since(now)) };
        match deed {
            Deed::Arrive { lines } => {
                let shared = &mut self.lines[Place::Shared as usize];
                shared.clear();
                shared.resize(lines as usize, Line::Absent);
                done(now, now, Cause::Issue)
            }
            Deed::Store { place, through, nth, copies } => {
                let pace = if copies { cycle } else { store };
                let line = nth / A_LINE;
                let data = if copies { self.loaded.max(now) } else { now };
                match through {
                    Through::Caches => {
                        let begun = self.fetch(place, line, now);
                        *self.line(place, line) = Line::Written;
                        let stored = &mut self.stored[place as usize];
                        *stored = (*stored).max(data);
                        done(begun, begun + pace, Cause::WcBuffers)
                    }
                    Through::Combining => {
                        // The first store to a line takes a buffer; the last one sends it.
                        let begun = if nth.is_multiple_of(A_LINE) { self.combining.ready(now) } else { now };
                        if nth % A_LINE == A_LINE - 1 {
                            self.combining.take(data.max(begun) + write);
                        }
                        done(begun, begun + pace, Cause::WcBuffers)
                    }
                    Through::Single => done(now + write, now + write.max(cycle), Cause::StrongOrdering),
                }
            }
            Deed::Load { place, through, nth } => {
                // Loads see earlier stores of their core, so the store data comes first.
                let ready = self.stored[place as usize].max(now);
                match through {
                    Through::Caches => {
                        let begun = self.fetch(place, nth / A_LINE, ready);
                        self.loaded = self.loaded.max(begun + self.spec.cached_load);
                        done(begun, begun + cycle, Cause::WcBuffers)
                    }
                    Through::Combining => {
                        let begun = self.single_loads.ready(ready);
                        self.single_loads.take(begun + read);
                        self.loaded = self.loaded.max(begun + read);
                        done(begun, begun + cycle, Cause::WcBuffers)
                    }
                    Through::Single => done(ready + read, ready + read.max(cycle), Cause::ReadRoundTrip),
                }
            }
            Deed::Flush { flush, line } => {
                // A flush is ordered behind stores, hence behind the fetches of their lines.
                let ready = self.fills.settled().max(now);
                let begun = self.flushes.ready(ready);
                let Spec { flush_line, purge_line, .. } = self.spec;
                let found = self.line(Place::Shared, line);
                let takes = if *found == Line::Written { flush_line } else { purge_line };
                if *found != Line::Absent {
                    *found = if flush.keeps() { Line::Clean } else { Line::Absent };
                }
                self.flushes.take(begun + takes);
                let cause = if ready > now { Cause::WcBuffers } else { Cause::Flush };
                done(begun, begun + cycle, cause)
            }
            Deed::Fence => {
                let settled = self.settled().max(now);
                done(settled, settled + fence, Cause::Fence)
            }
        }
    }

    /// Returns when no access is outstanding.
    fn settled(&self) -> Ticks {
        let rings = [&self.fills, &self.combining, &self.single_loads, &self.flushes];
        let stored = self.stored.into_iter().fold(self.loaded, Ticks::max);
        rings.into_iter().map(Ring::settled).fold(stored, Ticks::max)
    }
}

/// The operations of a core for one handoff of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sharing {
    handover: BufferHandoff,
    /// Current step, and operations of it that have been issued.
    step: u32,
    nth: u64,
}

/// A step: a number of operations of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Arrive,
    Write(Place, Through),
    Read(Place, Through),
    /// From the first to the second.
    Copy([(Place, Through); 2]),
    Flush(Flush),
    Fence,
}

impl Sharing {
    /// Creates the sequence at its start.
    #[must_use]
    pub const fn new(handover: BufferHandoff) -> Sharing {
        Sharing { handover, step: 0, nth: 0 }
    }

    /// Returns the current step.
    fn step(&self) -> Option<Step> {
        use Place::{Private, Shared};
        use Through::{Caches, Combining, Single};
        let fence = Step::Fence;
        let out: &[Step] = match self.handover.discipline {
            Discipline::Coherent => &[Step::Write(Shared, Caches), fence],
            Discipline::Flushed(flush) => &[Step::Write(Shared, Caches), Step::Flush(flush), fence],
            Discipline::Uncached => &[Step::Write(Shared, Single), fence],
            Discipline::Combining | Discipline::Streaming => &[Step::Write(Shared, Combining), fence],
            Discipline::Bounced => {
                &[Step::Write(Private, Caches), Step::Copy([(Private, Caches), (Shared, Caches)]), fence]
            }
            Discipline::BouncedCombining => {
                &[Step::Write(Private, Caches), Step::Copy([(Private, Caches), (Shared, Combining)]), fence]
            }
        };
        let into: &[Step] = match self.handover.discipline {
            Discipline::Coherent => &[Step::Arrive, Step::Read(Shared, Caches), fence],
            Discipline::Flushed(flush) => {
                &[Step::Flush(flush), fence, Step::Flush(flush), fence, Step::Read(Shared, Caches), fence]
            }
            Discipline::Uncached => &[Step::Read(Shared, Single), fence],
            Discipline::Combining | Discipline::Streaming => &[Step::Read(Shared, Combining), fence],
            Discipline::Bounced => {
                &[Step::Arrive, Step::Copy([(Shared, Caches), (Private, Caches)]), Step::Read(Private, Caches), fence]
            }
            Discipline::BouncedCombining => {
                &[Step::Copy([(Shared, Combining), (Private, Caches)]), Step::Read(Private, Caches), fence]
            }
        };
        let steps = if self.handover.verb == Verb::Store { out } else { into };
        steps.get(self.step as usize).copied()
    }
}

impl Iterator for Sharing {
    type Item = Deed;

    /// Returns the next operation; `None` after the handoff.
    fn next(&mut self) -> Option<Deed> {
        let accesses = self.handover.bytes / BufferHandoff::WIDTH_BYTES;
        let step = self.step()?;
        let nth = self.nth;
        let (deed, count) = match step {
            Step::Arrive => (Deed::Arrive { lines: self.handover.lines() }, 1),
            Step::Fence => (Deed::Fence, 1),
            Step::Write(place, through) => (Deed::Store { place, through, nth, copies: false }, accesses),
            Step::Read(place, through) => (Deed::Load { place, through, nth }, accesses),
            Step::Copy([(place, through), _]) if nth.is_multiple_of(2) => {
                (Deed::Load { place, through, nth: nth / 2 }, 2 * accesses)
            }
            Step::Copy([_, (place, through)]) => {
                (Deed::Store { place, through, nth: nth / 2, copies: true }, 2 * accesses)
            }
            Step::Flush(flush) => (Deed::Flush { flush, line: nth }, self.handover.lines()),
        };
        self.nth += 1;
        if self.nth == count {
            (self.step, self.nth) = (self.step + 1, 0);
        }
        Some(deed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: u64 = BufferHandoff::LINE_BYTES;

    fn ns(ns: u64) -> Ticks {
        Ticks::whole_ns(ns)
    }

    /// Returns a memory with round numbers: two buffers of each kind, and one flush at a time.
    fn memory() -> CoherentMemory {
        CoherentMemory::new(Spec {
            cycle: ns(1),
            store: ns(2),
            cached_load: ns(3),
            read: ns(100),
            write: ns(50),
            flush_line: ns(70),
            purge_line: ns(10),
            fill_buffers: 2,
            wc_buffers: 2,
            loads_in_flight: 2,
            flushes_in_flight: 1,
        })
    }

    /// Returns the end of a handoff that starts at `now`, and its stalls.
    fn over(memory: &mut CoherentMemory, now: Ticks, handover: BufferHandoff) -> (Ticks, Vec<(Cause, Ticks)>) {
        let (mut now, mut waits) = (now, Vec::new());
        for deed in Sharing::new(handover) {
            let done = memory.execute(deed, now, ns(5));
            if done.waited.1 > Ticks::ZERO {
                waits.push(done.waited);
            }
            now = done.next;
        }
        (now, waits)
    }

    fn to_device(discipline: Discipline, lines: u64) -> BufferHandoff {
        BufferHandoff { verb: Verb::Store, discipline, bytes: lines * LINE }
    }

    #[test]
    fn only_a_flush_that_drops_the_line_makes_the_next_store_fetch_it() {
        let time = |flush| {
            let mut memory = memory();
            let first = over(&mut memory, Ticks::ZERO, to_device(Discipline::Flushed(flush), 1)).0;
            // Eight stores, the flush, the fence.
            assert_eq!(first, ns(16 + 70 + 5));
            over(&mut memory, first, to_device(Discipline::Flushed(flush), 1)).0.since(first)
        };
        assert_eq!(time(Flush::Clwb), ns(16 + 70 + 5));
        assert_eq!(time(Flush::Clflushopt), ns(100 + 70 + 5));
    }

    #[test]
    fn flushing_a_clean_line_costs_as_much_as_flushing_an_absent_one() {
        let mut memory = memory();
        let read = BufferHandoff { verb: Verb::Load, ..to_device(Discipline::Flushed(Flush::Clflush), 1) };
        let (first, _) = over(&mut memory, Ticks::ZERO, read);
        // Two flushes with fences; a line from memory, and a fence.
        assert_eq!(first, ns(2 * (10 + 5) + 100 + 5));
        let (written, _) = over(&mut memory, first, to_device(Discipline::Coherent, 1));
        let (last, _) = over(&mut memory, written, read);
        assert_eq!(last.since(written), first + ns(70 - 10), "the dirty line is written back once");
    }

    #[test]
    fn a_line_beyond_the_fill_buffers_waits_for_the_first_of_them() {
        let reads = |lines| {
            let read = BufferHandoff { verb: Verb::Load, ..to_device(Discipline::Coherent, lines) };
            over(&mut memory(), Ticks::ZERO, read)
        };
        // Eight loads a line.
        assert_eq!(reads(2), (ns(8 + 100 + 5), vec![(Cause::Fence, ns(92))]));
        let (third, waits) = reads(3);
        assert_eq!(third, ns(100 + 100 + 5));
        assert_eq!(waits, [(Cause::WcBuffers, ns(100 - 16)), (Cause::Fence, ns(92))]);
    }

    #[test]
    fn a_copy_is_read_after_it_ends_and_a_new_device_write_is_fetched_again() {
        let mut memory = memory();
        let read = BufferHandoff { verb: Verb::Load, ..to_device(Discipline::Bounced, 1) };
        let (first, _) = over(&mut memory, Ticks::ZERO, read);
        // The line of the copy arrives after 100 ns; eight loads follow, the last of which takes 3 ns.
        assert_eq!(first, ns(100 + 7 + 3 + 5));
        let (second, _) = over(&mut memory, first, read);
        assert_eq!(second.since(first), first);
    }

    #[test]
    fn uncached_stores_are_single_and_combined_stores_fill_lines() {
        let time = |discipline| over(&mut memory(), Ticks::ZERO, to_device(discipline, 1)).0;
        assert_eq!(time(Discipline::Uncached), ns(8 * 50 + 5));
        assert_eq!(time(Discipline::Combining), ns(14 + 50 + 5));
        assert_eq!(time(Discipline::Streaming), time(Discipline::Combining));
    }
}
