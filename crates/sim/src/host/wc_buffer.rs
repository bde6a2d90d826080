//! Write-combining buffers: gather stores to 64 B lines and send as few TLPs as possible.
//!
//! A buffer is *free*, *open* (gathering), or *leaving* (its TLPs are in flight to the root complex and not all
//! acknowledged). A full line is evicted immediately. A partial line is evicted by a flush, in pieces that the
//! processor's policy determines. A store to a line that is leaving stalls.

use crate::tlp::{Tlp, TlpKind, span};
use lanemark_engine::{Slab, Slot};
use lanemark_platform::WcPartialFlush;

/// Bytes of a line.
pub const LINE: u64 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Free,
    Open,
    Leaving,
}

/// Number of residues of line numbers, a power of two: neighbouring lines have different ones.
const RESIDUES: usize = 64;

/// Returns the residue of a line, by its bus address.
#[inline]
const fn residue(line: u64) -> usize {
    (line / LINE) as usize % RESIDUES
}

/// A write-combining buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Buffer {
    state: State,
    /// Bus address of its line.
    line: u64,
    /// Mask of the valid bytes.
    mask: u64,
    /// Unacknowledged TLPs.
    unacknowledged: u32,
    /// Sequence number of opening, to find the oldest.
    opened: u64,
    data: Slot,
}

/// A TLP of an evicted buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Bus address of its first DW.
    pub address: u64,
    /// Length in DWs.
    pub length_dw: u16,
    /// Byte enables of the first DW.
    pub first_be: u8,
    /// Byte enables of the last DW.
    pub last_be: u8,
}

impl Piece {
    /// Returns the write TLP, without its payload.
    #[inline]
    #[must_use]
    pub const fn write(&self) -> Tlp {
        let Piece { address, length_dw, first_be, last_be } = *self;
        Tlp { address, length_dw, first_be, last_be, ..Tlp::of(TlpKind::MWr) }
    }
}

/// The result of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// Gathered in a buffer.
    Gathered,
    /// Gathered in this buffer, which is now full.
    Full(usize),
    /// Stalled: its line is leaving.
    SameLine,
    /// Stalled: all buffers are in use; this one, the oldest open one, must be evicted, if there is one.
    NoBuffer(Option<usize>),
}

/// The write-combining buffers of a core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WcBuffers {
    policy: WcPartialFlush,
    buffers: Vec<Buffer>,
    /// Free buffers, a bit each.
    free: Vec<u64>,
    /// Number of buffers in use for the lines of each residue, which tells of most lines that they are in none.
    held: [u16; RESIDUES],
    opened: u64,
    leaving: u32,
    open: u32,
}

impl WcBuffers {
    /// Creates `count` free buffers.
    #[must_use]
    pub fn new(count: usize, policy: WcPartialFlush) -> WcBuffers {
        let free = Buffer { state: State::Free, line: 0, mask: 0, unacknowledged: 0, opened: 0, data: Slot::NONE };
        let buffers = vec![free; count];
        let mut all =
            WcBuffers { policy, buffers, free: Vec::new(), held: [0; RESIDUES], opened: 0, leaving: 0, open: 0 };
        all.free = vec![0; count.div_ceil(64)];
        (0..count).for_each(|place| all.free[place / 64] |= 1 << (place % 64));
        all
    }

    /// Stores `len` bytes, which `fill` writes, at bus address `address`. They must not cross a line.
    #[inline]
    pub fn store(&mut self, address: u64, len: u64, slab: &mut Slab, fill: impl FnOnce(&mut [u8])) -> Stored {
        let line = address & !(LINE - 1);
        let place = (address % LINE) as usize..(address % LINE + len) as usize;
        if let Some(number) = self.buffer_of(line) {
            let buffer = &mut self.buffers[number];
            return match buffer.state {
                State::Open => merge(buffer, number, place, slab, fill),
                State::Free | State::Leaving => Stored::SameLine,
            };
        }
        let Some(number) = self.free() else {
            return Stored::NoBuffer(if self.leaving > 0 { None } else { self.oldest_open() });
        };
        self.opened += 1;
        self.open += 1;
        self.hold(number, line);
        let buffer = &mut self.buffers[number];
        let data = slab.take();
        *buffer = Buffer { state: State::Open, line, mask: 0, unacknowledged: 0, opened: self.opened, data };
        merge(buffer, number, place, slab, fill)
    }

    /// Reserves a buffer for a direct store to `line`, which gathers nothing.
    pub fn reserve(&mut self, line: u64) -> Stored {
        if let Some(place) = self.find(line, State::Leaving) {
            debug_assert_eq!(self.buffers[place].line, line);
            return Stored::SameLine;
        }
        match self.free() {
            Some(place) => {
                self.hold(place, line);
                let buffer = &mut self.buffers[place];
                *buffer =
                    Buffer { state: State::Leaving, line, mask: 0, unacknowledged: 1, opened: 0, data: Slot::NONE };
                self.leaving += 1;
                Stored::Full(place)
            }
            None => Stored::NoBuffer(if self.leaving > 0 { None } else { self.oldest_open() }),
        }
    }

    fn find(&self, line: u64, state: State) -> Option<usize> {
        self.buffer_of(line).filter(|place| self.buffers[*place].state == state)
    }

    /// Returns the buffer of a line, if one gathers it or it is leaving: there is at most one.
    #[inline]
    fn buffer_of(&self, line: u64) -> Option<usize> {
        if self.held[residue(line)] == 0 {
            return None;
        }
        self.buffers.iter().position(|buffer| buffer.line == line && buffer.state != State::Free)
    }

    /// Returns the first free buffer.
    #[inline]
    fn free(&self) -> Option<usize> {
        let word = self.free.iter().position(|word| *word != 0)?;
        Some(word * 64 + self.free[word].trailing_zeros() as usize)
    }

    /// Takes a free buffer for a line.
    #[inline]
    fn hold(&mut self, place: usize, line: u64) {
        self.free[place / 64] &= !(1 << (place % 64));
        self.held[residue(line)] += 1;
    }

    /// Returns the bus address of the line in buffer `place`.
    #[inline]
    #[must_use]
    pub fn line(&self, place: usize) -> u64 {
        self.buffers[place].line
    }

    /// Returns the open buffer of the line that holds `address`.
    #[must_use]
    pub fn open_at(&self, address: u64) -> Option<usize> {
        if self.open == 0 { None } else { self.find(address & !(LINE - 1), State::Open) }
    }

    /// Returns the oldest open buffer.
    #[must_use]
    pub fn oldest_open(&self) -> Option<usize> {
        let open = self.buffers.iter().enumerate().filter(|(_, buffer)| buffer.state == State::Open);
        open.min_by_key(|(_, buffer)| buffer.opened).map(|(place, _)| place)
    }

    /// Evicts buffer `place`: passes each of its TLPs and payloads to `send`.
    #[inline]
    pub fn evict(&mut self, place: usize, slab: &mut Slab, mut send: impl FnMut(Piece, Slot)) {
        let policy = self.policy;
        let buffer = &mut self.buffers[place];
        if buffer.state != State::Open {
            return;
        }
        let (line, mask, data) = (buffer.line, buffer.mask, buffer.data);
        buffer.state = State::Leaving;
        buffer.data = Slot::NONE;
        self.open -= 1;
        self.leaving += 1;
        if mask == u64::MAX {
            buffer.unacknowledged = 1;
            send(Piece { address: line, length_dw: 16, first_be: 0xF, last_be: 0xF }, data);
            return;
        }
        let mut count = 0;
        each_piece(line, mask, policy, |piece| {
            let payload = slab.take();
            let start = (piece.address - line) as usize;
            let len = usize::from(piece.length_dw) * 4;
            let bytes = *slab.line(data);
            slab.line_mut(payload)[..len].copy_from_slice(&bytes[start..start + len]);
            count += 1;
            send(piece, payload);
        });
        self.buffers[place].unacknowledged = count;
        slab.give_back(data);
    }

    /// Acknowledges a TLP of buffer `place`.
    #[inline]
    pub fn acknowledge(&mut self, place: usize) {
        let buffer = &mut self.buffers[place];
        buffer.unacknowledged -= 1;
        if buffer.unacknowledged == 0 {
            buffer.state = State::Free;
            let line = buffer.line;
            self.free[place / 64] |= 1 << (place % 64);
            self.held[residue(line)] -= 1;
            self.leaving -= 1;
        }
    }

    /// Returns the number of buffers that are leaving.
    #[inline]
    #[must_use]
    pub fn leaving(&self) -> u32 {
        self.leaving
    }

    /// Returns the number of open buffers.
    #[inline]
    #[must_use]
    pub fn open(&self) -> u32 {
        self.open
    }
}

#[inline]
fn merge(
    buffer: &mut Buffer,
    number: usize,
    place: std::ops::Range<usize>,
    slab: &mut Slab,
    fill: impl FnOnce(&mut [u8]),
) -> Stored {
    let bits = if place.len() == 64 { u64::MAX } else { ((1 << place.len()) - 1) << place.start };
    buffer.mask |= bits;
    fill(&mut slab.line_mut(buffer.data)[place]);
    if buffer.mask == u64::MAX { Stored::Full(number) } else { Stored::Gathered }
}

/// Passes the TLPs of a partial line to `send`.
fn each_piece(line: u64, mask: u64, policy: WcPartialFlush, mut send: impl FnMut(Piece)) {
    match policy {
        WcPartialFlush::EightBytes => {
            for chunk in 0..8 {
                let enables = (mask >> (chunk * 8) & 0xFF) as u8;
                let (low, high) = (enables & 0xF, enables >> 4);
                let address = line + chunk * 8;
                match (low, high) {
                    (0, 0) => {}
                    (low, 0) => send(Piece { address, length_dw: 1, first_be: low, last_be: 0 }),
                    (0, high) => send(Piece { address: address + 4, length_dw: 1, first_be: high, last_be: 0 }),
                    (low, high) => send(Piece { address, length_dw: 2, first_be: low, last_be: high }),
                }
            }
        }
        WcPartialFlush::Dw => {
            for dw in 0..16 {
                let first_be = (mask >> (dw * 4) & 0xF) as u8;
                if first_be != 0 {
                    send(Piece { address: line + dw * 4, length_dw: 1, first_be, last_be: 0 });
                }
            }
        }
        WcPartialFlush::Contiguous => {
            let mut rest = mask;
            while rest != 0 {
                let start = u64::from(rest.trailing_zeros());
                let len = u64::from((!(rest >> start)).trailing_zeros());
                let (address, length_dw, first_be, last_be) = span(line + start, len);
                send(Piece { address, length_dw, first_be, last_be });
                rest &= !(((1_u128 << len) - 1) << start) as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(wc: &mut WcBuffers, address: u64, data: &[u8], slab: &mut Slab) -> Stored {
        wc.store(address, data.len() as u64, slab, |bytes| bytes.copy_from_slice(data))
    }

    fn pieces(mask: u64, policy: WcPartialFlush) -> Vec<(u64, u16, u8, u8)> {
        let mut all = Vec::new();
        each_piece(0, mask, policy, |piece| all.push((piece.address, piece.length_dw, piece.first_be, piece.last_be)));
        all
    }

    #[test]
    fn a_line_is_evicted_when_its_last_byte_is_stored() {
        let (mut slab, mut wc) = (Slab::new(64), WcBuffers::new(1, WcPartialFlush::EightBytes));
        assert_eq!(store(&mut wc, 0, &[1; 63], &mut slab), Stored::Gathered);
        assert_eq!(store(&mut wc, 63, &[1], &mut slab), Stored::Full(0));
        let mut sent = Vec::new();
        wc.evict(0, &mut slab, |piece, _| sent.push(piece));
        assert_eq!(sent, [Piece { address: 0, length_dw: 16, first_be: 0xF, last_be: 0xF }]);
    }

    #[test]
    fn a_later_store_to_the_same_address_replaces_the_earlier_one() {
        let (mut slab, mut wc) = (Slab::new(64), WcBuffers::new(1, WcPartialFlush::EightBytes));
        for value in 1..=6 {
            assert_eq!(store(&mut wc, 0, &[value], &mut slab), Stored::Gathered);
        }
        let mut sent = Vec::new();
        wc.evict(0, &mut slab, |piece, slot| sent.push((piece.first_be, slot)));
        assert_eq!(sent.len(), 1);
        assert_eq!((sent[0].0, slab.line(sent[0].1)[0]), (1, 6), "one byte, the last value");
    }

    #[test]
    fn a_line_beyond_the_buffers_evicts_the_oldest() {
        let (mut slab, mut wc) = (Slab::new(64), WcBuffers::new(6, WcPartialFlush::EightBytes));
        for line in 0..6 {
            assert_eq!(store(&mut wc, line * 64, &[1], &mut slab), Stored::Gathered);
        }
        assert_eq!(store(&mut wc, 5 * 64 + 1, &[1], &mut slab), Stored::Gathered, "the sixth line has its buffer");
        assert_eq!(store(&mut wc, 6 * 64, &[1], &mut slab), Stored::NoBuffer(Some(0)));
    }

    #[test]
    fn stores_wait_for_a_leaving_buffer_instead_of_evicting_another() {
        let (mut slab, mut wc) = (Slab::new(64), WcBuffers::new(2, WcPartialFlush::EightBytes));
        store(&mut wc, 0, &[1], &mut slab);
        wc.evict(0, &mut slab, |_, _| {});
        store(&mut wc, 64, &[1], &mut slab);
        assert_eq!(store(&mut wc, 0, &[1], &mut slab), Stored::SameLine);
        assert_eq!(store(&mut wc, 128, &[1], &mut slab), Stored::NoBuffer(None));
        wc.acknowledge(0);
        assert_eq!(store(&mut wc, 128, &[1], &mut slab), Stored::Gathered);
    }

    #[test]
    fn the_open_buffer_of_a_line_is_found_by_any_address_in_it() {
        let (mut slab, mut wc) = (Slab::new(64), WcBuffers::new(2, WcPartialFlush::EightBytes));
        assert_eq!(wc.open_at(64), None);
        store(&mut wc, 64, &[1], &mut slab);
        assert_eq!([63, 64, 127, 128].map(|at| wc.open_at(at)), [None, Some(0), Some(0), None]);
        store(&mut wc, 0, &[1], &mut slab);
        assert_eq!(wc.open_at(63), Some(1));
        wc.evict(0, &mut slab, |_, _| {});
        assert_eq!((wc.open_at(64), wc.open_at(63)), (None, Some(1)), "a leaving buffer is not open");
    }

    #[test]
    fn eight_byte_policy_splits_at_8_bytes_and_keeps_byte_enables() {
        assert_eq!(
            pieces(0b1111_0000_0011_1100_0101, WcPartialFlush::EightBytes),
            [(0, 2, 0b0101, 0b1100), (8, 2, 0b0011, 0b0000)]
                .map(|piece: (u64, u16, u8, u8)| if piece.3 == 0 { (piece.0, 1, piece.2, 0) } else { piece })
                .into_iter()
                .chain([(16, 1, 0b1111, 0)])
                .collect::<Vec<_>>()
        );
        assert_eq!(pieces(u64::MAX >> 1, WcPartialFlush::EightBytes).len(), 8);
        assert_eq!(pieces(0xF0, WcPartialFlush::EightBytes), [(4, 1, 0xF, 0)]);
    }

    #[test]
    fn dw_policy_sends_each_touched_dw_as_a_tlp() {
        assert_eq!(pieces(0xFFFF, WcPartialFlush::Dw).len(), 4);
        assert_eq!(pieces(0x1001, WcPartialFlush::Dw), [(0, 1, 1, 0), (12, 1, 1, 0)]);
    }

    #[test]
    fn contiguous_policy_sends_one_tlp_for_each_run() {
        assert_eq!(pieces(0x00FF_FF00, WcPartialFlush::Contiguous), [(8, 4, 0xF, 0xF)]);
        assert_eq!(pieces(0b1_0000_0110, WcPartialFlush::Contiguous), [(0, 1, 0b0110, 0), (8, 1, 1, 0)]);
        assert_eq!(pieces(u64::MAX >> 1, WcPartialFlush::Contiguous), [(0, 16, 0xF, 0x7)]);
    }

    #[test]
    fn every_policy_sends_every_valid_byte_once_and_no_other() {
        let mut state = 7_u64;
        for _ in 0..2000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let mask = state ^ (state >> 29);
            for policy in [WcPartialFlush::EightBytes, WcPartialFlush::Dw, WcPartialFlush::Contiguous] {
                let mut seen = 0_u64;
                each_piece(0, mask, policy, |piece| {
                    let bytes = piece.write().byte_mask() << piece.address;
                    assert_eq!(seen & bytes, 0);
                    seen |= bytes;
                });
                assert_eq!(seen, mask, "{policy:?}");
            }
        }
    }
}
