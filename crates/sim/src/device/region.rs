//! A region of a card: registers, storage or a queue behind a part of a BAR, with its pending reads.
//!
//! An [`Endpoint`](crate::device::endpoint::Endpoint) passes TLPs to it in order, with their times.

use crate::busy::Busy;
use crate::critical_path::{CriticalPath, Milestone, Place};
use crate::steady::Survey;
use crate::tlp::Tlp;
use lanemark_engine::{Memory, Slab};
use lanemark_machine::Cause;
use lanemark_units::Ticks;
use std::collections::VecDeque;
use std::ops::Range;

/// The kind of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Registers of 8 B: a read clears those marked for it, a write sets bits in those marked for it.
    Registers,
    /// Storage.
    Storage,
    /// Storage with counters of beats, which a read clears.
    CountedStorage,
    /// A queue of this many entries.
    Fifo(usize),
}

/// Constants of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionSpec {
    /// Its name in the platform.
    pub name: String,
    /// Bus address of its first byte.
    pub address: u64,
    /// Its length.
    pub len: u64,
    /// Kind of the region.
    pub kind: Kind,
    /// Bytes of a beat.
    pub beat_bytes: u64,
    /// Time between beats.
    pub beat: Ticks,
    /// From a read request to its first beat.
    pub read: Ticks,
    /// Of this many reads, one takes `slow` longer; 0 for none.
    pub slow_every: u64,
    /// See `slow_every`.
    pub slow: Ticks,
}

/// Beats counted since the last read of the counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Beats {
    /// Write beats.
    pub write: u64,
    /// Read beats.
    pub read: u64,
}

/// A write stored in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FifoEntry {
    /// Offset of the first enabled byte in the region.
    pub offset: u64,
    /// Number of enabled bytes.
    pub len: u32,
    /// The first eight of them.
    pub data: [u8; 8],
}

/// A region and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Constants of the region.
    pub spec: RegionSpec,
    /// Its bytes.
    pub memory: Memory,
    /// Beats since the last read of the counters.
    pub(super) beats: Beats,
    /// Entries of a queue, oldest first.
    pub fifo: VecDeque<FifoEntry>,
    /// Writes lost because the queue was full.
    pub fifo_lost: u64,
    /// Registers cleared by a read.
    pub(super) clear_on_read: Vec<u64>,
    /// Registers in which a write sets bits.
    pub(super) set_on_write: Vec<u64>,
    /// The offsets that keep written bytes, if not all do.
    pub(super) kept: Vec<Range<u64>>,
    pub(super) answers: VecDeque<Answer>,
    /// Number of reads, modulo [`RegionSpec::slow_every`].
    reads: u64,
    /// Use of the data path by reads.
    pub(crate) busy: Busy,
}

/// A read that is not completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// Time of its completion.
    pub(super) due: Ticks,
    /// Time at which its beats have passed the data path.
    passed: Ticks,
    pub(super) tlp: Tlp,
}

impl Region {
    /// Creates a region as at power-on.
    pub(super) fn new(spec: RegionSpec) -> Region {
        Region {
            spec,
            memory: Memory::default(),
            beats: Beats::default(),
            fifo: VecDeque::new(),
            fifo_lost: 0,
            clear_on_read: Vec::new(),
            set_on_write: Vec::new(),
            kept: Vec::new(),
            answers: VecDeque::new(),
            reads: 0,
            busy: Busy::default(),
        }
    }

    /// Schedules the completion of a read of `beats` beats.
    #[inline]
    pub(super) fn begin_read(&mut self, now: Ticks, tlp: &Tlp, beats: u64, path: &mut CriticalPath, card: Place) {
        let before = match self.spec.slow_every {
            0 => self.answers.back(),
            _ => self.answers.iter().max_by_key(|answer| answer.passed),
        };
        let (free, last) =
            before.map_or((Ticks::ZERO, Milestone::NONE), |before| (before.passed, before.tlp.milestone));
        let found = now + self.spec.read;
        let span = self.spec.beat * beats;
        let passed = found.max(free) + span;
        self.busy.occupy(span, passed);
        let mut tlp = *tlp;
        if path.is_on() {
            let before = if free > found { last } else { path.add(tlp.milestone, found, card, Cause::Transit) };
            tlp.milestone = path.add(before, passed, card, Cause::Device);
        }
        let answer = Answer { due: passed, passed, tlp };
        if self.spec.slow_every == 0 {
            return self.answers.push_back(answer);
        }
        self.reads = (self.reads + 1) % self.spec.slow_every;
        let due = if self.reads == 0 { passed + self.spec.slow } else { passed };
        let place = self.answers.partition_point(|other| other.due <= due);
        self.answers.insert(place, Answer { due, ..answer });
    }

    #[inline]
    pub(super) fn beats_of(&self, tlp: &Tlp) -> u64 {
        // A beat is a power of two bytes.
        let shift = self.spec.beat_bytes.trailing_zeros();
        let first = tlp.address >> shift;
        let last = (tlp.address + u64::from(tlp.length_dw) * 4 - 1) >> shift;
        last - first + 1
    }

    /// Returns and clears the beat counters, as a read of the card's counters does.
    pub fn take_beats(&mut self) -> Beats {
        std::mem::take(&mut self.beats)
    }

    /// Marks the 8 B register at `offset` as cleared by a read.
    pub fn clear_on_read(&mut self, offset: u64) {
        self.clear_on_read.push(offset / 8);
    }

    /// Marks the 8 B register at `offset` as one in which writes set bits.
    pub fn set_on_write(&mut self, offset: u64) {
        self.set_on_write.push(offset / 8);
    }

    pub(super) fn write(&mut self, tlp: &Tlp, slab: &Slab, beats: u64) {
        let offset = tlp.address - self.spec.address;
        if tlp.length_dw > 16 {
            return self.write_long(tlp, slab.bytes(tlp.payload), beats);
        }
        let (mask, len) = (self.kept_of(offset, tlp.byte_mask()), usize::from(tlp.length_dw) * 4);
        let bytes = slab.line(tlp.payload);
        match self.spec.kind {
            Kind::Fifo(entries) => self.push(offset, mask, bytes, entries),
            Kind::Registers if !self.set_on_write.is_empty() => {
                let mut merged = *bytes;
                let mut old = [0; 64];
                self.memory.read(offset, &mut old[..len]);
                for place in (0..len).filter(|place| self.set_on_write.contains(&((offset + *place as u64) / 8))) {
                    merged[place] |= old[place];
                }
                self.memory.write_masked(offset, &merged, mask, len);
            }
            Kind::CountedStorage => {
                self.beats.write += beats;
                self.memory.write_masked(offset, bytes, mask, len);
            }
            Kind::Storage | Kind::Registers => self.memory.write_masked(offset, bytes, mask, len),
        }
    }

    /// Returns the mask of the bytes at `offset` that keep their written values.
    #[inline]
    fn kept_of(&self, offset: u64, mask: u64) -> u64 {
        if self.kept.is_empty() {
            return mask;
        }
        let is_kept = |place: &u64| self.kept.iter().any(|kept| kept.contains(&(offset + place)));
        (0..64).filter(is_kept).fold(0, |kept, place| kept | 1 << place) & mask
    }

    /// Writes a TLP longer than a line, which no core sends. Registers store it as plain bytes.
    fn write_long(&mut self, tlp: &Tlp, bytes: &[u8], beats: u64) {
        let skip = tlp.first_be.trailing_zeros() as usize;
        let len = tlp.enabled_bytes();
        let (offset, bytes) = (tlp.address - self.spec.address + skip as u64, &bytes[skip..skip + len as usize]);
        match self.spec.kind {
            Kind::Fifo(entries) => {
                let mut data = [0; 8];
                data.copy_from_slice(&bytes[..8]);
                self.enter(FifoEntry { offset, len, data }, entries);
            }
            kind => {
                if kind == Kind::CountedStorage {
                    self.beats.write += beats;
                }
                if self.kept.is_empty() {
                    return self.memory.write(offset, bytes);
                }
                for kept in &self.kept {
                    let (from, until) = (kept.start.max(offset), kept.end.min(offset + u64::from(len)));
                    if from < until {
                        self.memory.write(from, &bytes[(from - offset) as usize..(until - offset) as usize]);
                    }
                }
            }
        }
    }

    /// Clears every marked register of which a byte in `mask` was read.
    pub(super) fn clear(&mut self, offset: u64, mask: u64) {
        for register in &self.clear_on_read {
            let read = (0..64).any(|place| mask >> place & 1 == 1 && (offset + place) / 8 == *register);
            if read {
                self.memory.write(register * 8, &[0; 8]);
            }
        }
    }

    fn push(&mut self, offset: u64, mask: u64, bytes: &[u8; 64], entries: usize) {
        let first = mask.trailing_zeros() as usize;
        let mut data = [0; 8];
        let enabled = (first..64).filter(|place| mask >> place & 1 == 1);
        for (to, from) in data.iter_mut().zip(enabled) {
            *to = bytes[from];
        }
        self.enter(FifoEntry { offset: offset + first as u64, len: mask.count_ones(), data }, entries);
    }

    fn enter(&mut self, entry: FifoEntry, entries: usize) {
        if self.fifo.len() < entries {
            self.fifo.push_back(entry);
        } else {
            self.fifo_lost += 1;
        }
    }

    /// Reads the data of a completion.
    pub(super) fn read(&mut self, tlp: &Tlp, into: &mut [u8]) {
        let offset = tlp.address - self.spec.address;
        let len = usize::from(tlp.length_dw) * 4;
        match self.spec.kind {
            Kind::Fifo(_) => {
                into[..len].fill(0);
                if let Some(entry) = self.fifo.pop_front() {
                    let part = len.min(8);
                    into[..part].copy_from_slice(&entry.data[..part]);
                }
            }
            kind => {
                self.memory.read(offset, &mut into[..len]);
                if kind == Kind::Registers && len <= 64 {
                    self.clear(offset, tlp.byte_mask());
                }
            }
        }
    }

    /// Returns whether reads or writes have side effects, or writes are ignored.
    pub(crate) fn changes_when_touched(&self) -> bool {
        !self.clear_on_read.is_empty() || !self.set_on_write.is_empty() || !self.kept.is_empty()
    }

    pub(super) fn visit(&mut self, view: &mut impl Survey) {
        // Stored bytes do not affect events. `Board::unsteady` excludes registers with side effects and queues that
        // are read, so only the length of a queue changes.
        let Region {
            spec: _,
            memory: _,
            beats,
            fifo,
            fifo_lost,
            clear_on_read: _,
            set_on_write: _,
            kept: _,
            answers,
            reads,
            busy,
        } = self;
        busy.visit(view);
        view.state(*reads);
        let Beats { write, read } = beats;
        view.counter(write);
        view.counter(read);
        view.count(fifo.len());
        view.counter(fifo_lost);
        view.count(answers.len());
        for Answer { due, passed, tlp } in answers {
            view.moment(due);
            view.moment(passed);
            view.tlp(tlp);
        }
    }
}
