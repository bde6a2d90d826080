//! A job of a DMA engine: a transfer of a plan, repeated and split into requests.

use crate::steady::Survey;
use lanemark_machine::{Transfer, Verb, Window, WriteRead};
use lanemark_wire::Chunk;
use lanemark_wire::split::{Chunks, requests};

/// Limits of the requests of an engine in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimit {
    /// Largest request, in bytes.
    pub most_bytes: u32,
    /// Address boundary in bytes, which no request crosses: a power of two, at most 4096.
    pub boundary_bytes: u32,
}

/// Limits of the requests of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// Limits of reads.
    pub read: RequestLimit,
    /// Limits of writes.
    pub write: RequestLimit,
}

impl RequestLimit {
    /// The iterator of the requests of a transfer, before the first one.
    const fn pieces(self) -> Chunks {
        requests(0, 0, self.most_bytes).within(self.boundary_bytes)
    }
}

/// A job and its progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The transfer.
    pub transfer: Transfer,
    /// Bus address of offset 0 of the window.
    pub base: u64,
    /// Number of the first iteration; of a job in parts, of the first part.
    pub first_pass: u64,
    /// Bytes of the last transfer of an iteration, if its transfers are parts of one copy.
    last_part: Option<u64>,
    /// Transfers of the job, and those that are released (may begin).
    pub transfers: u64,
    /// See `transfers`.
    pub released: u64,
    /// The next transfer, and the step to the one after it; other channels do those between.
    pub next: u64,
    step: u64,
    /// The transfer begun last, and its remaining requests.
    begun: u64,
    pieces: Chunks,
    /// The window of the reads that follow writes, and their remaining requests.
    pub read: Option<Window>,
    read_pieces: Chunks,
    /// Whether writes and reads alternate by bytes, and the excess of written over read bytes.
    is_mixed: bool,
    ahead: i64,
    /// The next request.
    pub piece: Option<Piece>,
}

/// The next request, before it becomes a TLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Number of its transfer.
    pub number: u64,
    /// Its address and length.
    pub chunk: Chunk,
    /// Offset in its transfer.
    pub offset: u64,
    /// Its direction.
    pub verb: Verb,
}

impl Job {
    /// Creates a job of `transfer`, `passes` times, with no transfer released; `base` is the bus address of offset 0
    /// of the windows.
    #[must_use]
    pub fn new(transfer: &Transfer, base: u64, passes: u64, first_pass: u64, limits: RequestLimits) -> Job {
        let limit = if transfer.verb == Verb::Store { limits.write } else { limits.read };
        Job {
            transfer: *transfer,
            base,
            first_pass,
            last_part: None,
            transfers: transfer.count.saturating_mul(passes),
            released: 0,
            next: 0,
            step: 1,
            begun: 0,
            pieces: limit.pieces(),
            read: None,
            read_pieces: limits.read.pieces(),
            is_mixed: false,
            ahead: 0,
            piece: None,
        }
    }

    /// Adds a read behind each write.
    #[must_use]
    pub fn with_reads(mut self, pairs: &WriteRead) -> Job {
        (self.read, self.is_mixed) = (Some(pairs.read), pairs.is_mixed);
        self
    }

    /// Makes the transfers of an iteration parts of one copy, whose last part has `last_part` bytes.
    #[must_use]
    pub fn in_parts(mut self, last_part: u64) -> Job {
        (self.last_part, self.first_pass) = (Some(last_part), self.first_pass.wrapping_mul(self.transfer.count));
        self
    }

    /// Skips `passes` iterations, and does the last ones of the job.
    pub fn leave_out(&mut self, passes: u64) {
        let transfers = self.transfer.count.saturating_mul(passes);
        self.transfers = self.transfers.saturating_sub(transfers);
        let numbered = if self.last_part.is_some() { transfers } else { passes };
        self.first_pass = self.first_pass.wrapping_add(numbered);
    }

    /// Returns the length of transfer `number`.
    #[inline]
    pub(crate) fn bytes_of(&self, number: u64) -> u64 {
        match self.last_part {
            Some(bytes) if (number + 1).is_multiple_of(self.transfer.count) => bytes,
            _ => self.transfer.bytes,
        }
    }

    /// Returns the iteration number that, with the address, determines the data of a transfer.
    #[inline]
    pub(crate) fn turn_of(&self, number: u64) -> u64 {
        let count = if self.last_part.is_some() { 1 } else { self.transfer.count };
        self.first_pass.wrapping_add(if number < count { 0 } else { number / count })
    }

    /// Returns the offset of transfer `number` in its copy, if a copy has several parts.
    #[inline]
    pub(crate) fn parts_before(&self, number: u64) -> u64 {
        if self.last_part.is_some() { number % self.transfer.count * self.transfer.bytes } else { 0 }
    }

    /// Keeps the transfers whose number modulo `channels` is `channel`.
    #[must_use]
    pub fn dealt(mut self, channel: u64, channels: u64) -> Job {
        (self.next, self.step) = (channel, channels.max(1));
        self
    }

    /// Releases every transfer.
    #[must_use]
    pub fn released(mut self) -> Job {
        self.released = self.transfers;
        self.advance();
        self
    }

    /// Returns the piece for the chunk just taken from a transfer; its offset is the length already taken.
    #[inline]
    fn piece_of(&self, chunk: Chunk, verb: Verb) -> Piece {
        let (bytes, pieces) = match self.read {
            Some(_) if verb == Verb::Load => (self.transfer.bytes, &self.read_pieces),
            _ => (self.bytes_of(self.begun), &self.pieces),
        };
        let offset = bytes - pieces.rest().1 - u64::from(chunk.bytes);
        Piece { number: self.begun, chunk, offset, verb }
    }

    /// Returns the number of its transfers, and how many have begun.
    pub(crate) fn share(&self) -> (u64, u64) {
        let first = self.next % self.step;
        let made = |to: u64| to.saturating_sub(first).div_ceil(self.step);
        (made(self.transfers), made(self.next))
    }

    /// Returns the bytes of the current transfer that have not been requested.
    pub(crate) fn unasked(&self, verb: Verb) -> u64 {
        let of_piece = self.piece.filter(|piece| piece.verb == verb).map_or(0, |piece| piece.chunk.bytes);
        self.pieces.rest().1 + u64::from(of_piece)
    }

    /// Returns the bus address of a transfer.
    pub(crate) fn start_of(&self, number: u64, verb: Verb) -> u64 {
        let window = self.read.as_ref().filter(|_| verb == Verb::Load).unwrap_or(&self.transfer.window);
        self.base + window.place(number, self.transfer.bytes)
    }

    /// Visits the state of a job of card `owner`.
    pub(crate) fn visit(&mut self, view: &mut impl Survey, owner: u16) {
        let Job {
            transfer,
            base: _,
            first_pass: _,
            last_part: _,
            transfers: _,
            released,
            next,
            step: _,
            begun,
            pieces,
            read: _,
            read_pieces,
            is_mixed: _,
            ahead,
            piece,
        } = self;
        let before = *next;
        view.counter(next);
        let moved = *next - before;
        view.state(*released);
        view.state(before.wrapping_sub(*begun));
        let of_begun = *begun;
        *begun += moved;
        rest(view, owner, transfer.verb, of_begun, pieces);
        rest(view, owner, Verb::Load, of_begun, read_pieces);
        view.state(ahead.cast_unsigned());
        view.flag(piece.is_some());
        if let Some(Piece { number, chunk, offset, verb }) = piece {
            view.state(before.wrapping_sub(*number));
            view.place(owner, *verb, *number, &mut chunk.address);
            *number += moved;
            view.state(u64::from(chunk.bytes));
            view.state(*offset);
            view.count(*verb as usize);
        }
    }

    /// Prepares the next request, if there is one.
    #[inline]
    pub fn advance(&mut self) {
        // Within a transfer, the next request continues where the last one ended; this is the usual case.
        if !self.is_mixed
            && let Some(chunk) = self.pieces.next()
        {
            self.piece = Some(self.piece_of(chunk, self.transfer.verb));
            return;
        }
        self.advance_apart();
    }

    /// Prepares the next request as [`Job::advance`], which may be of another transfer or direction.
    #[inline(never)]
    fn advance_apart(&mut self) {
        self.piece = loop {
            if self.is_mixed
                && self.ahead > 0
                && let Some(chunk) = self.read_pieces.next()
            {
                self.ahead -= i64::from(chunk.bytes);
                break Some(self.piece_of(chunk, Verb::Load));
            }
            if let Some(chunk) = self.pieces.next() {
                self.ahead += i64::from(chunk.bytes);
                break Some(self.piece_of(chunk, self.transfer.verb));
            }
            if let Some(chunk) = self.read_pieces.next() {
                break Some(self.piece_of(chunk, Verb::Load));
            }
            if self.next >= self.released {
                break None;
            }
            let bytes = self.transfer.bytes;
            let place = self.transfer.window.place(self.next, bytes);
            self.pieces.begin(self.base + place, self.bytes_of(self.next));
            self.ahead = 0;
            if let Some(read) = &self.read {
                self.read_pieces.begin(self.base + read.place(self.next, bytes), bytes);
            }
            self.begun = self.next;
            self.next = self.next.saturating_add(self.step);
        };
    }
}

/// Visits the remaining part of transfer `number`.
fn rest(view: &mut impl Survey, owner: u16, verb: Verb, number: u64, chunks: &mut Chunks) {
    let (mut address, bytes) = chunks.rest();
    view.state(bytes);
    if bytes > 0 {
        view.place(owner, verb, number, &mut address);
        chunks.begin(address, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_machine::{Partner, Pattern};

    fn up_to(most_bytes: u32) -> RequestLimit {
        RequestLimit { most_bytes, boundary_bytes: 4096 }
    }

    #[test]
    fn channels_that_share_a_job_do_every_transfer_once() {
        let window = Window { offset: 0, len: 7 * 64, pattern: Pattern::Sequential };
        let (verb, partner) = (Verb::Store, Partner::Host);
        let transfer = Transfer { card: 0, verb, partner, bytes: 64, count: 7, window, outstanding: None };
        let limits = RequestLimits { read: up_to(64), write: up_to(64) };
        let mut made = Vec::new();
        for channel in 0..3 {
            let mut job = Job::new(&transfer, 0x1000, 1, 0, limits).dealt(channel, 3).released();
            while let Some(piece) = job.piece {
                assert_eq!(piece.number % 3, channel);
                assert_eq!(piece.chunk.address, 0x1000 + 64 * piece.number);
                made.push(piece.number);
                job.advance();
            }
        }
        made.sort_unstable();
        assert_eq!(made, [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn reads_of_a_mixed_job_follow_as_many_bytes_of_writes() {
        let window = |offset| Window { offset, len: 128, pattern: Pattern::Sequential };
        let (verb, partner, outstanding) = (Verb::Store, Partner::Host, Some(1));
        let write = Transfer { card: 0, verb, partner, bytes: 128, count: 1, window: window(0), outstanding };
        let made = |is_mixed, read| {
            let pairs = WriteRead { write, read: window(4096), is_mixed };
            let limits = RequestLimits { read: up_to(read), write: up_to(64) };
            let mut job = Job::new(&write, 0, 1, 0, limits).with_reads(&pairs).released();
            let mut verbs = String::new();
            while let Some(piece) = job.piece {
                verbs.push(if piece.verb == Verb::Store { 'w' } else { 'r' });
                job.advance();
            }
            verbs
        };
        assert_eq!(made(false, 64), "wwrr");
        assert_eq!([32, 64, 128].map(|read| made(true, read)), ["wrrwrr", "wrwr", "wrw"]);
    }
}
