//! What processors and devices are asked to do on a coherent board, and what they answer.

use super::CoherentBoard;
use crate::adapter_tlb::{PAGE_BYTES, PageEntry, TlbCommand};
use crate::bus::{Line, MOST_LINE_BYTES};
use crate::io_adapter::{Fault, LEAST_BYTES};
use crate::processor::{Act, MOST_UNCACHED_BYTES};
use lanemark_units::{HostPhys, HostVirt, Iova, Ticks};

/// What somebody is to do. Each of them does one thing after the other, as it is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A processor reads: the line that holds this byte is the answer.
    Load {
        /// Which processor.
        processor: usize,
        /// From where.
        at: HostVirt,
    },
    /// A processor writes, within one line.
    Store {
        /// Which processor.
        processor: usize,
        /// From where on.
        at: HostVirt,
        /// What.
        data: Vec<u8>,
    },
    /// A processor reads bytes from memory, past all caches; they are the answer.
    LoadUncached {
        /// Which processor.
        processor: usize,
        /// From where on: a multiple of their number.
        at: HostVirt,
        /// How many: a power of two, up to [`MOST_UNCACHED_BYTES`].
        len_bytes: usize,
    },
    /// A processor writes bytes to memory, past all caches, which keep what they have.
    StoreUncached {
        /// Which processor.
        processor: usize,
        /// From where on: a multiple of their number.
        at: HostVirt,
        /// What: as many bytes as are loaded at once.
        data: Vec<u8>,
    },
    /// A processor has the line with this byte flushed from all caches: what is dirty goes to memory.
    Flush {
        /// Which processor.
        processor: usize,
        /// Where.
        at: HostVirt,
    },
    /// A processor has the line with this byte purged from all caches: what is dirty is lost.
    Purge {
        /// Which processor.
        processor: usize,
        /// Where.
        at: HostVirt,
    },
    /// A processor fetches a line that it may need.
    Prefetch {
        /// Which processor.
        processor: usize,
        /// Where.
        at: HostVirt,
    },
    /// A processor tells the I/O TLB something.
    TlbCommand {
        /// Which processor.
        processor: usize,
        /// What.
        command: TlbCommand,
    },
    /// A device reads words; they are the answer.
    DeviceRead {
        /// Which device.
        device: usize,
        /// From where on.
        at: Iova,
        /// How much.
        len_bytes: usize,
    },
    /// A device writes words.
    DeviceWrite {
        /// Which device.
        device: usize,
        /// From where on.
        at: Iova,
        /// What.
        data: Vec<u8>,
    },
}

/// Which request an answer is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// What came of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// When whoever was asked is done with it.
    pub at: Ticks,
    /// What was read: a line by a processor, or what it read past the caches; words by a device.
    pub bytes: Vec<u8>,
    /// What stopped a device.
    pub fault: Option<Fault>,
}

/// Why something was not done, or not all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoAccess {
    /// There is none of that number.
    #[error("there is no {what} {number}: there are {there_are}, from 0 on")]
    Nobody {
        /// A processor, or a device.
        what: &'static str,
        /// Which.
        number: usize,
        /// How many there are.
        there_are: usize,
    },
    /// No bytes, or more than one request may move.
    #[error("{len_bytes} B at once: a request moves 1 to {most}")]
    Length {
        /// How many.
        len_bytes: usize,
        /// How many there may be.
        most: usize,
    },
    /// A processor's access in two lines.
    #[error("{len_bytes} B at {at} are in two lines; ask for each by itself")]
    TwoLines {
        /// From where on.
        at: HostVirt,
        /// How many.
        len_bytes: usize,
    },
    /// What a processor moves past the caches is no number.
    #[error(
        "{len_bytes} B at {at} past the caches: an access is 1, 2, 4 or {MOST_UNCACHED_BYTES} B at a multiple of that"
    )]
    NoNumber {
        /// From where on.
        at: HostVirt,
        /// How many.
        len_bytes: usize,
    },
    /// What a device moves is not words.
    #[error("a device moves {len_bytes} B at {at}: both must be multiples of {LEAST_BYTES}")]
    NoWords {
        /// From where on.
        at: Iova,
        /// How many.
        len_bytes: usize,
    },
    /// No such memory.
    #[error("{at} is at {physical}, and memory ends at 2^{} B; place the page lower", PageEntry::PHYSICAL_BITS)]
    NoMemory {
        /// The virtual address.
        at: HostVirt,
        /// The physical one.
        physical: HostPhys,
    },
    /// Too much that has not been done.
    #[error("{what} {number} has {most} requests to do; run the board until some are done")]
    Busy {
        /// A processor, or a device.
        what: &'static str,
        /// Which.
        number: usize,
        /// How many it may have.
        most: usize,
    },
    /// Too many answers that nobody has taken.
    #[error("{most} answers have not been taken; take some (`answer`) before more is asked")]
    NotTaken {
        /// How many there may be.
        most: usize,
    },
    /// A device did what it may not do.
    #[error("{0}")]
    Fault(Fault),
    /// Nothing happens any more, and there is no answer: a defect of this simulator.
    #[error("at {0:?} nothing happens any more and the request is not done: this is a defect of the simulator")]
    Stuck(Ticks),
}

impl CoherentBoard {
    /// The most requests that one processor or device may have to do.
    pub const MOST_WAITING: usize = 4096;
    /// The most answers that wait to be taken.
    pub const MOST_ANSWERS: usize = 1 << 16;
    /// The most bytes that a device moves by one request.
    pub const MOST_TRANSFER_BYTES: usize = 1 << 24;

    /// Virtual pages from that of `virt` on are these physical pages from that of `physical` on. A page that nobody has
    /// placed has the same number in both.
    ///
    /// # Errors
    /// [`NoAccess::NoMemory`] where memory ends before they do; none is placed then.
    pub fn place(&mut self, virt: HostVirt, physical: HostPhys, pages: u64) -> Result<(), NoAccess> {
        let (from, to) = (virt.0 / PAGE_BYTES, physical.0 / PAGE_BYTES);
        if to.saturating_add(pages) > 1 << PageEntry::PHYSICAL_BITS >> PAGE_BYTES.trailing_zeros() {
            return Err(NoAccess::NoMemory { at: virt, physical });
        }
        self.pages.extend((0..pages).map(|page| (from + page, to + page)));
        Ok(())
    }

    /// Where a virtual address is.
    ///
    /// # Errors
    /// [`NoAccess::NoMemory`] where there is no such memory.
    pub fn physical(&self, virt: HostVirt) -> Result<HostPhys, NoAccess> {
        let mask = self.spec().adapter.line_bytes - 1;
        let physical = HostPhys(self.line_of(virt).physical | virt.0 & mask);
        let is_there = physical.0 >> PageEntry::PHYSICAL_BITS == 0;
        if is_there { Ok(physical) } else { Err(NoAccess::NoMemory { at: virt, physical }) }
    }

    /// Somebody begins to do this now, or as soon as what it was asked before is done. The answer is there when
    /// [`CoherentBoard::answer`] gives it.
    ///
    /// # Errors
    /// [`NoAccess`], and nothing is begun.
    pub fn ask(&mut self, request: Request) -> Result<Ticket, NoAccess> {
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

    /// A processor is to do this with a line, wherever programs see that.
    pub(super) fn ask_processor(&mut self, processor: usize, line: Line, act: Act) -> Result<Ticket, NoAccess> {
        let (what, there_are, most) = ("processor", self.processors.len(), CoherentBoard::MOST_WAITING);
        let ticket = self.next_ticket;
        let Some(asked) = self.processors.get_mut(processor) else {
            return Err(NoAccess::Nobody { what, number: processor, there_are });
        };
        if asked.waiting() >= most {
            return Err(NoAccess::Busy { what, number: processor, most });
        }
        asked.ask(ticket, line, act);
        Ok(self.asked(processor))
    }

    /// Which byte of its line is the first of an access that goes past the caches.
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
            return Err(NoAccess::Nobody { what, number: device, there_are });
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

    fn begin(&mut self, device: usize, at: Iova, is_write: bool, data: Vec<u8>) -> Ticket {
        self.adapter.ask(device, self.next_ticket, at, is_write, data);
        self.asked(self.adapter_port())
    }

    /// The port looks what there is to do.
    fn asked(&mut self, port: usize) -> Ticket {
        self.schedule.set(port, self.now);
        self.next_ticket += 1;
        Ticket(self.next_ticket - 1)
    }

    /// What came of a request, if it is done by now; the second time there is nothing.
    pub fn answer(&mut self, ticket: Ticket) -> Option<Answer> {
        if self.answers.get(&ticket.0)?.at > self.now {
            return None;
        }
        self.answers.remove(&ticket.0)
    }

    /// Lets happen what does until a request is done.
    ///
    /// # Errors
    /// [`NoAccess::Fault`] where a device did what it may not do; [`NoAccess::Stuck`].
    pub fn wait(&mut self, ticket: Ticket) -> Result<Answer, NoAccess> {
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

    /// Asks, and lets happen what does until it is done. Gives how long that took, and what was read.
    fn at_once(&mut self, request: Request) -> Result<(Ticks, Vec<u8>), NoAccess> {
        let before = self.now;
        let ticket = self.ask(request)?;
        let answer = self.wait(ticket)?;
        Ok((answer.at.since(before), answer.bytes))
    }

    /// The parts of bytes from `at` on that are each in one line: where in the bytes, and how many.
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

    /// A processor reads, line by line. Gives how long it took.
    ///
    /// # Errors
    /// [`NoAccess`]; what is before the line it names has been read.
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

    /// A processor writes, line by line. Gives how long it took.
    ///
    /// # Errors
    /// [`NoAccess`]; what is before the line it names has been written.
    pub fn store(&mut self, processor: usize, at: HostVirt, data: &[u8]) -> Result<Ticks, NoAccess> {
        let mut took = Ticks::ZERO;
        for (done, len) in self.parts(at, data.len()) {
            let at = HostVirt(at.0.wrapping_add(done as u64));
            took += self.at_once(Request::Store { processor, at, data: data[done..done + len].to_vec() })?.0;
        }
        Ok(took)
    }

    /// A processor reads past all caches, as through a mapping that is not cached: by the longest accesses that go. Gives how
    /// long it took.
    ///
    /// # Errors
    /// [`NoAccess`]; what is before the bytes it names has been read.
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

    /// A processor writes past all caches, as through a mapping that is not cached: by the longest accesses that go. Gives
    /// how long it took.
    ///
    /// # Errors
    /// [`NoAccess`]; what is before the bytes it names has been written.
    pub fn store_uncached(&mut self, processor: usize, at: HostVirt, data: &[u8]) -> Result<Ticks, NoAccess> {
        let mut took = Ticks::ZERO;
        for (done, len) in numbers(at, data.len()) {
            let at = HostVirt(at.0.wrapping_add(done as u64));
            took += self.at_once(Request::StoreUncached { processor, at, data: data[done..done + len].to_vec() })?.0;
        }
        Ok(took)
    }

    /// A processor has the lines with these bytes flushed from all caches. Gives how long it took.
    ///
    /// # Errors
    /// [`NoAccess`]; lines before the one it names are flushed.
    pub fn flush(&mut self, processor: usize, at: HostVirt, len_bytes: usize) -> Result<Ticks, NoAccess> {
        self.each_line(at, len_bytes, |at| Request::Flush { processor, at })
    }

    /// A processor has the lines with these bytes purged from all caches. Gives how long it took.
    ///
    /// # Errors
    /// [`NoAccess`]; lines before the one it names are purged.
    pub fn purge(&mut self, processor: usize, at: HostVirt, len_bytes: usize) -> Result<Ticks, NoAccess> {
        self.each_line(at, len_bytes, |at| Request::Purge { processor, at })
    }

    /// A processor fetches the lines with these bytes. Gives how long it took.
    ///
    /// # Errors
    /// [`NoAccess`]; lines before the one it names are fetched.
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

    /// A device reads. Gives how long it took.
    ///
    /// # Errors
    /// [`NoAccess`], and `into` is as it was.
    pub fn device_read(&mut self, device: usize, at: Iova, into: &mut [u8]) -> Result<Ticks, NoAccess> {
        let (took, bytes) = self.at_once(Request::DeviceRead { device, at, len_bytes: into.len() })?;
        into.copy_from_slice(&bytes);
        Ok(took)
    }

    /// A device writes. Gives how long it took.
    ///
    /// # Errors
    /// [`NoAccess`]; with [`NoAccess::Fault`], what is before the address it names has been written, and nothing else.
    pub fn device_write(&mut self, device: usize, at: Iova, data: &[u8]) -> Result<Ticks, NoAccess> {
        Ok(self.at_once(Request::DeviceWrite { device, at, data: data.to_vec() })?.0)
    }

    /// A processor tells the I/O TLB something. Gives how long it took.
    ///
    /// # Errors
    /// [`NoAccess`].
    pub fn command(&mut self, processor: usize, command: TlbCommand) -> Result<Ticks, NoAccess> {
        Ok(self.at_once(Request::TlbCommand { processor, command })?.0)
    }
}

/// The fewest accesses that go past the caches for bytes from `at` on: where in the bytes, and how many.
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
        // A short directory, so that boards are built soon.
        spec.adapter.tlb.block_bits = 1;
        CoherentBoard::new(spec).unwrap()
    }

    #[test]
    fn an_access_past_the_caches_leaves_none_a_line_and_each_what_it_has() {
        let mut board = board();
        board.store(0, AT, &[1; 32]).unwrap();
        board.store_uncached(1, AT, &[2; 32]).unwrap();
        let mut seen = [0; 32];
        board.load_uncached(1, AT, &mut seen).unwrap();
        assert_eq!(seen, [2; 32], "memory has it");
        assert!(board.processor(1).unwrap().cache().state(board.line_of(AT)).is_none());
        board.load(0, AT, &mut seen).unwrap();
        assert_eq!(seen, [1; 32], "a cache that has the line has not looked");
        board.flush(0, AT, 32).unwrap();
        board.load_uncached(0, AT, &mut seen).unwrap();
        assert_eq!(seen, [1; 32], "and writes it over what went past");
        assert_eq!([TransactionKind::Read(8), TransactionKind::Write(8)].map(|kind| board.bus().count(kind)), [8, 4]);
    }

    #[test]
    fn bytes_go_past_the_caches_by_the_longest_accesses_and_no_byte_beside_them_changes() {
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
    fn an_access_past_the_caches_is_one_number_where_numbers_are() {
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
