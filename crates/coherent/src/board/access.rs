//! Requests of processors and devices on a coherent board, and their answers.

use super::CoherentBoard;
use super::request::{Answer, NoAccess, Request, RequestId};
use crate::adapter_tlb::{PAGE_BYTES, PageEntry, TlbCommand};
use crate::bus::{Line, MOST_LINE_BYTES};
use crate::io_adapter::LEAST_BYTES;
use crate::processor::{Act, MOST_UNCACHED_BYTES};
use lanemark_units::{HostPhys, HostVirt, Iova, Ticks};

impl CoherentBoard {
    /// The largest number of outstanding requests of a processor or device.
    pub const MOST_WAITING: usize = 4096;
    /// The largest number of answers that have not been taken.
    pub const MOST_ANSWERS: usize = 1 << 16;
    /// The largest length of a device request, in bytes.
    pub const MOST_TRANSFER_BYTES: usize = 1 << 24;

    /// Maps `pages` virtual pages from that of `virt` on to the physical pages from that of `physical` on. A page
    /// that is not mapped has the same number in both.
    ///
    /// # Errors
    /// [`NoAccess::NoMemory`] if a page lies beyond memory; no page is mapped then.
    pub fn place(&mut self, virt: HostVirt, physical: HostPhys, pages: u64) -> Result<(), NoAccess> {
        let (from, to) = (virt.0 / PAGE_BYTES, physical.0 / PAGE_BYTES);
        if to.saturating_add(pages) > 1 << PageEntry::PHYSICAL_BITS >> PAGE_BYTES.trailing_zeros() {
            return Err(NoAccess::NoMemory { at: virt, physical });
        }
        self.pages.extend((0..pages).map(|page| (from + page, to + page)));
        Ok(())
    }

    /// Translates a virtual address.
    ///
    /// # Errors
    /// [`NoAccess::NoMemory`] if it lies beyond memory.
    pub fn physical(&self, virt: HostVirt) -> Result<HostPhys, NoAccess> {
        let mask = self.spec().adapter.line_bytes - 1;
        let physical = HostPhys(self.line_of(virt).physical | virt.0 & mask);
        let is_there = physical.0 >> PageEntry::PHYSICAL_BITS == 0;
        if is_there { Ok(physical) } else { Err(NoAccess::NoMemory { at: virt, physical }) }
    }

    /// Issues a request, which begins when the previous requests of the same processor or device have completed.
    /// [`CoherentBoard::answer`] returns its answer.
    ///
    /// # Errors
    /// [`NoAccess`]; the request is not issued.
    pub fn ask(&mut self, request: Request) -> Result<RequestId, NoAccess> {
        if self.answers.len() >= CoherentBoard::MOST_ANSWERS {
            return Err(NoAccess::NotTaken { most: CoherentBoard::MOST_ANSWERS });
        }
        let (processor, at, act) = match request {
            Request::Load { processor, at } => (processor, at, Act::Load),
            Request::Flush { processor, at } => (processor, at, Act::Flush),
            Request::Purge { processor, at } => (processor, at, Act::Purge),
            Request::Prefetch { processor, at } => (processor, at, Act::Prefetch),
            Request::Store { processor, at, data } => {
                let (first, len) = ((at.0 % self.spec.adapter.line_bytes) as usize, data.len());
                let line_bytes = self.spec.adapter.line_bytes as usize;
                if len == 0 || len > line_bytes {
                    return Err(NoAccess::Length { len_bytes: len, most: line_bytes });
                }
                if first + len > line_bytes {
                    return Err(NoAccess::TwoLines { at, len_bytes: len });
                }
                let mut line = [0; MOST_LINE_BYTES];
                line[first..first + len].copy_from_slice(&data);
                (processor, at, Act::Store { at: first, len, data: line })
            }
            Request::LoadUncached { processor, at, len_bytes } => {
                (processor, at, Act::LoadUncached { at: self.uncached(at, len_bytes)?, len: len_bytes })
            }
            Request::StoreUncached { processor, at, data } => {
                let (first, len) = (self.uncached(at, data.len())?, data.len());
                let mut line = [0; MOST_LINE_BYTES];
                line[first..first + len].copy_from_slice(&data);
                (processor, at, Act::StoreUncached { at: first, len, data: line })
            }
            Request::TlbCommand { processor, command } => (processor, HostVirt(0), Act::TlbCommand(command)),
            Request::DeviceRead { device, at, len_bytes } => {
                self.device_may(device, at, len_bytes)?;
                return Ok(self.begin(device, at, false, vec![0; len_bytes]));
            }
            Request::DeviceWrite { device, at, data } => {
                self.device_may(device, at, data.len())?;
                return Ok(self.begin(device, at, true, data));
            }
        };
        self.physical(at)?;
        self.ask_processor(processor, self.line_of(at), act)
    }

    /// Issues an operation of a processor on a bus line.
    pub(super) fn ask_processor(&mut self, processor: usize, line: Line, act: Act) -> Result<RequestId, NoAccess> {
        let (what, there_are, most) = ("processor", self.processors.len(), CoherentBoard::MOST_WAITING);
        let ticket = self.next_ticket;
        let Some(asked) = self.processors.get_mut(processor) else {
            return Err(NoAccess::UnknownRequester { what, number: processor, there_are });
        };
        if asked.waiting() >= most {
            return Err(NoAccess::Busy { what, number: processor, most });
        }
        asked.ask(ticket, line, act);
        Ok(self.asked(processor))
    }

    /// Returns the offset of an uncached access in its line.
    fn uncached(&self, at: HostVirt, len_bytes: usize) -> Result<usize, NoAccess> {
        let is_number = len_bytes.is_power_of_two() && len_bytes <= MOST_UNCACHED_BYTES;
        if !is_number || !at.0.is_multiple_of(len_bytes as u64) {
            return Err(NoAccess::NoNumber { at, len_bytes });
        }
        Ok((at.0 % self.spec.adapter.line_bytes) as usize)
    }

    fn device_may(&self, device: usize, at: Iova, len_bytes: usize) -> Result<(), NoAccess> {
        let (what, most) = ("device", CoherentBoard::MOST_TRANSFER_BYTES);
        let there_are = self.spec.adapter.devices.len();
        if device >= there_are {
            return Err(NoAccess::UnknownRequester { what, number: device, there_are });
        }
        if len_bytes == 0 || len_bytes > most || at.0.checked_add(len_bytes as u64).is_none() {
            return Err(NoAccess::Length { len_bytes, most });
        }
        if !(at.0 | len_bytes as u64).is_multiple_of(LEAST_BYTES) {
            return Err(NoAccess::NoWords { at, len_bytes });
        }
        if self.adapter.waiting(device) >= CoherentBoard::MOST_WAITING {
            return Err(NoAccess::Busy { what, number: device, most: CoherentBoard::MOST_WAITING });
        }
        Ok(())
    }

    fn begin(&mut self, device: usize, at: Iova, is_write: bool, data: Vec<u8>) -> RequestId {
        self.adapter.ask(device, self.next_ticket, at, is_write, data);
        self.asked(self.adapter_port())
    }

    /// Makes a port due now and returns the ticket of the request.
    fn asked(&mut self, port: usize) -> RequestId {
        self.schedule.set(port, self.now);
        self.next_ticket += 1;
        RequestId(self.next_ticket - 1)
    }

    /// Returns the answer of a request if it has completed, once.
    pub fn answer(&mut self, ticket: RequestId) -> Option<Answer> {
        if self.answers.get(&ticket.0)?.at > self.now {
            return None;
        }
        self.answers.remove(&ticket.0)
    }

    /// Runs the board until a request has completed.
    ///
    /// # Errors
    /// [`NoAccess::Fault`] if a device access was refused; [`NoAccess::Stuck`] in a deadlock.
    pub fn wait(&mut self, ticket: RequestId) -> Result<Answer, NoAccess> {
        loop {
            if let Some(answer) = self.answers.get(&ticket.0) {
                let at = answer.at;
                self.run_until(at);
                break;
            }
            match self.next_at() {
                Ticks::NEVER => return Err(NoAccess::Stuck(self.now)),
                at => self.run_until(at),
            }
        }
        let answer = self.answer(ticket).ok_or(NoAccess::Stuck(self.now))?;
        answer.fault.map_or(Ok(answer), |fault| Err(NoAccess::Fault(fault)))
    }

    /// Issues a request and runs the board until it has completed. Returns its duration and the bytes read.
    fn at_once(&mut self, request: Request) -> Result<(Ticks, Vec<u8>), NoAccess> {
        let before = self.now;
        let ticket = self.ask(request)?;
        let answer = self.wait(ticket)?;
        Ok((answer.at.since(before), answer.bytes))
    }

    /// Splits an access into parts of one line each: offset and length.
    fn parts(&self, at: HostVirt, len_bytes: usize) -> Vec<(usize, usize)> {
        let line_bytes = self.spec.adapter.line_bytes as usize;
        let first = (at.0 % line_bytes as u64) as usize;
        let ends = (line_bytes - first..len_bytes).step_by(line_bytes);
        let mut parts = Vec::new();
        let mut done = 0;
        for end in ends.chain([len_bytes]).filter(|_| len_bytes > 0) {
            parts.push((done, end - done));
            done = end;
        }
        parts
    }

    /// Loads bytes by a processor, line by line. Returns the duration.
    ///
    /// # Errors
    /// [`NoAccess`]; the lines before the failing one have been read.
    pub fn load(&mut self, processor: usize, at: HostVirt, into: &mut [u8]) -> Result<Ticks, NoAccess> {
        let mut took = Ticks::ZERO;
        for (done, len) in self.parts(at, into.len()) {
            let at = HostVirt(at.0.wrapping_add(done as u64));
            let (time, line) = self.at_once(Request::Load { processor, at })?;
            let first = (at.0 % self.spec.adapter.line_bytes) as usize;
            into[done..done + len].copy_from_slice(&line[first..first + len]);
            took += time;
        }
        Ok(took)
    }

    /// Stores bytes by a processor, line by line. Returns the duration.
    ///
    /// # Errors
    /// [`NoAccess`]; the lines before the failing one have been written.
    pub fn store(&mut self, processor: usize, at: HostVirt, data: &[u8]) -> Result<Ticks, NoAccess> {
        let mut took = Ticks::ZERO;
        for (done, len) in self.parts(at, data.len()) {
            let at = HostVirt(at.0.wrapping_add(done as u64));
            took += self.at_once(Request::Store { processor, at, data: data[done..done + len].to_vec() })?.0;
        }
        Ok(took)
    }

    /// Loads bytes by a processor through an uncached mapping, in the fewest accesses. Returns the duration.
    ///
    /// # Errors
    /// [`NoAccess`]; the bytes before the failing access have been read.
    pub fn load_uncached(&mut self, processor: usize, at: HostVirt, into: &mut [u8]) -> Result<Ticks, NoAccess> {
        let mut took = Ticks::ZERO;
        for (done, len_bytes) in numbers(at, into.len()) {
            let at = HostVirt(at.0.wrapping_add(done as u64));
            let (time, bytes) = self.at_once(Request::LoadUncached { processor, at, len_bytes })?;
            into[done..done + len_bytes].copy_from_slice(&bytes);
            took += time;
        }
        Ok(took)
    }

    /// Stores bytes by a processor through an uncached mapping, in the fewest accesses. Returns the duration.
    ///
    /// # Errors
    /// [`NoAccess`]; the bytes before the failing access have been written.
    pub fn store_uncached(&mut self, processor: usize, at: HostVirt, data: &[u8]) -> Result<Ticks, NoAccess> {
        let mut took = Ticks::ZERO;
        for (done, len) in numbers(at, data.len()) {
            let at = HostVirt(at.0.wrapping_add(done as u64));
            took += self.at_once(Request::StoreUncached { processor, at, data: data[done..done + len].to_vec() })?.0;
        }
        Ok(took)
    }

    /// Flushes the lines of these bytes from all caches. Returns the duration.
    ///
    /// # Errors
    /// [`NoAccess`]; the lines before the failing one have been flushed.
    pub fn flush(&mut self, processor: usize, at: HostVirt, len_bytes: usize) -> Result<Ticks, NoAccess> {
        self.each_line(at, len_bytes, |at| Request::Flush { processor, at })
    }

    /// Purges the lines of these bytes from all caches. Returns the duration.
    ///
    /// # Errors
    /// [`NoAccess`]; the lines before the failing one have been purged.
    pub fn purge(&mut self, processor: usize, at: HostVirt, len_bytes: usize) -> Result<Ticks, NoAccess> {
        self.each_line(at, len_bytes, |at| Request::Purge { processor, at })
    }

    /// Prefetches the lines of these bytes. Returns the duration.
    ///
    /// # Errors
    /// [`NoAccess`]; the lines before the failing one have been fetched.
    pub fn prefetch(&mut self, processor: usize, at: HostVirt, len_bytes: usize) -> Result<Ticks, NoAccess> {
        self.each_line(at, len_bytes, |at| Request::Prefetch { processor, at })
    }

    fn each_line(
        &mut self,
        at: HostVirt,
        len_bytes: usize,
        request: impl Fn(HostVirt) -> Request,
    ) -> Result<Ticks, NoAccess> {
        let mut took = Ticks::ZERO;
        for (done, _) in self.parts(at, len_bytes) {
            took += self.at_once(request(HostVirt(at.0.wrapping_add(done as u64))))?.0;
        }
        Ok(took)
    }

    /// Reads bytes by a device. Returns the duration.
    ///
    /// # Errors
    /// [`NoAccess`]; `into` is unchanged.
    pub fn device_read(&mut self, device: usize, at: Iova, into: &mut [u8]) -> Result<Ticks, NoAccess> {
        let (took, bytes) = self.at_once(Request::DeviceRead { device, at, len_bytes: into.len() })?;
        into.copy_from_slice(&bytes);
        Ok(took)
    }

    /// Writes bytes by a device. Returns the duration.
    ///
    /// # Errors
    /// [`NoAccess`]; with [`NoAccess::Fault`], the bytes before the faulting address have been written.
    pub fn device_write(&mut self, device: usize, at: Iova, data: &[u8]) -> Result<Ticks, NoAccess> {
        Ok(self.at_once(Request::DeviceWrite { device, at, data: data.to_vec() })?.0)
    }

    /// Sends a command to the I/O TLB from a processor. Returns the duration.
    ///
    /// # Errors
    /// [`NoAccess`].
    pub fn command(&mut self, processor: usize, command: TlbCommand) -> Result<Ticks, NoAccess> {
        Ok(self.at_once(Request::TlbCommand { processor, command })?.0)
    }
}

/// Splits an uncached access into the fewest naturally aligned accesses: offset and length.
fn numbers(at: HostVirt, len_bytes: usize) -> Vec<(usize, usize)> {
    let (mut done, mut numbers) = (0, Vec::new());
    while done < len_bytes {
        let aligned = at.0.wrapping_add(done as u64).trailing_zeros().min(MOST_UNCACHED_BYTES.trailing_zeros());
        let len = (1 << aligned).min(1 << (len_bytes - done).ilog2());
        numbers.push((done, len));
        done += len;
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::Spec;
    use crate::bus::TransactionKind;

    const AT: HostVirt = HostVirt(0x2_5000);

    fn board() -> CoherentBoard {
        let mut spec = Spec::not_coherent(true);
        // A short directory keeps the construction of boards fast.
        spec.adapter.tlb.block_bits = 1;
        CoherentBoard::new(spec).unwrap()
    }

    #[test]
    fn an_uncached_access_neither_fills_nor_changes_caches() {
        let mut board = board();
        board.store(0, AT, &[1; 32]).unwrap();
        board.store_uncached(1, AT, &[2; 32]).unwrap();
        let mut seen = [0; 32];
        board.load_uncached(1, AT, &mut seen).unwrap();
        assert_eq!(seen, [2; 32], "memory has the new bytes");
        assert!(board.processor(1).unwrap().cache().state(board.line_of(AT)).is_none());
        board.load(0, AT, &mut seen).unwrap();
        assert_eq!(seen, [1; 32], "a cache with the line did not snoop");
        board.flush(0, AT, 32).unwrap();
        board.load_uncached(0, AT, &mut seen).unwrap();
        assert_eq!(seen, [1; 32], "the write-back overwrites the uncached store");
        assert_eq!([TransactionKind::Read(8), TransactionKind::Write(8)].map(|kind| board.bus().count(kind)), [8, 4]);
    }

    #[test]
    fn uncached_bytes_use_the_fewest_accesses_and_leave_their_neighbours_unchanged() {
        let mut board = board();
        board.store_uncached(0, AT, &[0; 40]).unwrap();
        let at = HostVirt(AT.0 + 3);
        assert_eq!(numbers(at, 30), [(0, 1), (1, 4), (5, 8), (13, 8), (21, 8), (29, 1)]);
        let data: Vec<u8> = (1..=30).collect();
        board.store_uncached(0, at, &data).unwrap();
        let mut seen = [0xff; 40];
        board.load_uncached(1, AT, &mut seen).unwrap();
        assert_eq!(seen, *[&[0; 3][..], &data, &[0; 7]].concat());
        let mut part = [0; 30];
        board.load_uncached(1, at, &mut part).unwrap();
        assert_eq!(part, *data);
        assert_eq!(numbers(AT, 0), []);
    }

    #[test]
    fn a_misaligned_uncached_access_is_rejected() {
        let mut board = board();
        let mut ask = |at: u64, len_bytes: usize| {
            let at = HostVirt(AT.0 + at);
            let (load, store) = (
                Request::LoadUncached { processor: 0, at, len_bytes },
                Request::StoreUncached { processor: 0, at, data: vec![0; len_bytes] },
            );
            let refused = Err(NoAccess::NoNumber { at, len_bytes });
            let asked = [board.ask(load), board.ask(store)].map(|asked| asked.map(drop));
            assert!(asked == [Ok(()); 2] || asked == [refused; 2], "{asked:?}");
            asked[0].is_ok()
        };
        assert!(ask(0, 8) && ask(24, 8) && ask(4, 4) && ask(6, 2) && ask(7, 1));
        assert!(!ask(0, 16) && !ask(0, 0) && !ask(0, 3) && !ask(4, 8) && !ask(1, 2));
    }
}
