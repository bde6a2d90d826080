//! A fake controller for tests: registers, queues and a medium in memory.

use super::command::ID;
use super::error::NvmeError;
use super::memory::{Bar, COMPLETION, DmaMemory, Doorbell, ENTRIES, Interrupt, PAGE, SUBMISSION, Slots};
use rustix::io::Errno;
use std::cell::{Cell, RefCell};

/// A check that ends no wait.
#[allow(clippy::unnecessary_wraps)] // The signature of a check.
pub(super) fn always() -> Result<(), NvmeError> {
    Ok(())
}

/// A check that ends a wait at its first call.
pub(super) fn never() -> Result<(), NvmeError> {
    Err(NvmeError::Late)
}

/// Host memory that the fake controller reads and writes.
#[derive(Debug)]
pub(super) struct FakeMemory(RefCell<Vec<u64>>);

impl FakeMemory {
    pub(super) const IOVA: u64 = 0x4000_0000;

    pub(super) fn new(bytes: u64) -> FakeMemory {
        FakeMemory(RefCell::new(vec![u64::MAX; (bytes / 8) as usize]))
    }

    pub(super) fn bytes(&self, at: u64, len: u64) -> Vec<u8> {
        (at..at + len).step_by(8).flat_map(|word| self.load(word).to_le_bytes()).collect()
    }

    /// Stores bytes at an address of the controller.
    fn put(&self, iova: u64, bytes: &[u8]) {
        for (place, word) in (iova - FakeMemory::IOVA..).step_by(8).zip(bytes.chunks(8)) {
            self.store(place, u64::from_le_bytes(word.try_into().unwrap()));
        }
    }
}

/// Entries of a queue at an offset of the memory.
#[derive(Debug)]
pub(super) struct FakeSlots<'a>(&'a FakeMemory, u64);

impl Slots for FakeSlots<'_> {
    fn submit(&self, index: u32, words: &[u64; 8], id: u16) -> Result<(), NvmeError> {
        assert!(index < ENTRIES.into());
        let first = self.1 + u64::from(index) * SUBMISSION;
        (first..).step_by(8).zip(words).for_each(|(to, word)| self.0.store(to, *word));
        self.0.store(first, words[0] | u64::from(id) << ID);
        Ok(())
    }

    fn completion(&self, index: u32) -> Result<u64, NvmeError> {
        assert!(index < ENTRIES.into());
        Ok(self.0.load(self.1 + u64::from(index) * COMPLETION + 8))
    }
}

impl DmaMemory for FakeMemory {
    type Slots<'a> = FakeSlots<'a>;

    fn slots(&self, offset: u64) -> FakeSlots<'_> {
        FakeSlots(self, offset)
    }

    fn load(&self, offset: u64) -> u64 {
        assert_eq!(offset % 8, 0);
        self.0.borrow()[(offset / 8) as usize]
    }

    fn store(&self, offset: u64, value: u64) {
        assert_eq!(offset % 8, 0);
        self.0.borrow_mut()[(offset / 8) as usize] = value;
    }

    fn iova(&self, offset: u64) -> u64 {
        FakeMemory::IOVA + offset
    }
}

/// Fault of the fake controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fault {
    None,
    NeverReady,
    Fatal,
    Gone,
    /// Completions name a command that was not submitted.
    WrongIdentifier,
    /// As `WrongIdentifier`, for I/O commands only.
    WrongIoIdentifier,
    /// Successful completions of I/O commands have the bit More.
    HasMore,
    /// No interrupt follows a completion.
    NoInterrupt,
    /// Interrupts arrive all the time, and I/O commands never complete.
    OnlyInterrupts,
    /// I/O commands complete when this many are outstanding, in reverse order.
    Batches(u32),
}

/// A queue of the controller: addresses, entries, and positions.
#[derive(Clone, Copy, Default, Debug)]
struct Queue {
    submissions: u64,
    completions: u64,
    entries: u64,
    head: u64,
    tail: u64,
    /// Number of completions so far, and of those whose entries were given back.
    completed: u64,
    released: u64,
    /// Vector of the interrupt after a completion; `None` without interrupts.
    vector: Option<u64>,
}

/// Memory buffer of the fake controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum FakeCmb {
    None,
    /// Without CMBMSC: its addresses are those of the BAR.
    Legacy,
    /// As `Legacy`, and may hold only these: bits 4:0 of CMBSZ.
    Holding(u64),
    /// CMBLOC and CMBSZ are 0 until CMBMSC.CRE is set.
    Hidden,
    /// As `Hidden`, and refuses every address.
    RefusesItsAddress,
}

/// The fake controller.
#[derive(Debug)]
pub(super) struct Fake<'a> {
    memory: &'a FakeMemory,
    fault: Fault,
    cmb: FakeCmb,
    registers: RefCell<Vec<u8>>,
    queues: RefCell<[Queue; 1 + Fake::PAIRS as usize]>,
    /// Commands that were fetched, with the numbers of their queues.
    waiting: RefCell<Vec<(usize, [u64; 8])>>,
    most_outstanding: Cell<u32>,
    reads: Cell<u64>,
    /// Interrupts that were sent, by vector.
    interrupts: Cell<[u64; Fake::PAIRS as usize]>,
}

/// Interrupts of the fake controller, like eventfds: all of a vector since the last wait count as one.
#[derive(Debug)]
pub(super) struct Bell<'a> {
    fake: &'a Fake<'a>,
    seen: Cell<[u64; Fake::PAIRS as usize]>,
    arrived: Cell<u64>,
}

impl<'a> Bell<'a> {
    pub(super) fn new(fake: &'a Fake<'a>) -> Bell<'a> {
        Bell { fake, seen: Cell::default(), arrived: Cell::new(0) }
    }

    /// Number of looks at which one had arrived.
    pub(super) fn arrived(&self) -> u64 {
        self.arrived.get()
    }
}

impl Interrupt for Bell<'_> {
    fn wait(&self) -> Result<u64, Errno> {
        let sent = self.fake.interrupts.get();
        let before = self.seen.replace(sent);
        let is_new = |vector: &usize| sent[*vector] != before[*vector] || self.fake.fault == Fault::OnlyInterrupts;
        let arrived = (0..sent.len()).filter(is_new).fold(0, |arrived, vector| arrived | 1 << vector);
        self.arrived.set(self.arrived.get() + u64::from(arrived != 0));
        Ok(arrived)
    }
}

impl<'a> Fake<'a> {
    pub(super) const BLOCKS: u64 = 4096;
    /// I/O queue pairs that it grants.
    pub(super) const PAIRS: u32 = 4;
    /// Active namespaces.
    const NAMESPACES: [u32; 3] = [5, 8, 9];
    /// CAP: 64 entries, 500 ms, the NVM command set.
    const CAP: u64 = 1 << 37 | 1 << 24 | 63;

    /// End of the doorbells.
    const DOORBELLS_END: u64 = 0x1000 + 8 * (1 + Fake::PAIRS as u64);
    /// Offset of the memory buffer in BAR 0.
    pub(super) const CMB: u64 = 0x2000;
    /// Size of the memory buffer, in bytes.
    const CMB_BYTES: u64 = 0x8000;
    /// Address of the BAR.
    pub(super) const BAR: u64 = 0xfe00_0000;

    pub(super) fn new(memory: &'a FakeMemory, fault: Fault) -> Fake<'a> {
        Fake::with_cmb(memory, fault, FakeCmb::None)
    }

    /// A controller whose queues have at most so many entries.
    pub(super) fn with_entries(memory: &'a FakeMemory, fault: Fault, entries: u32) -> Fake<'a> {
        let fake = Fake::new(memory, fault);
        fake.set(0, fake.register(0) & !0xffff | u64::from(entries - 1));
        fake
    }

    /// Completes all commands that are outstanding, also fewer than a batch.
    pub(super) fn complete_all(&self) {
        let commands = std::mem::take(&mut *self.waiting.borrow_mut());
        commands.iter().rev().for_each(|(number, command)| self.complete(*number, command));
    }

    pub(super) fn forget_most_outstanding(&self) {
        self.most_outstanding.set(0);
    }

    pub(super) fn with_cmb(memory: &'a FakeMemory, fault: Fault, cmb: FakeCmb) -> Fake<'a> {
        let end = (Fake::CMB + Fake::CMB_BYTES) as usize;
        let mut registers = vec![if fault == Fault::Gone { 0xff } else { 0 }; end];
        if fault != Fault::Gone {
            let has_control = u64::from(matches!(cmb, FakeCmb::Hidden | FakeCmb::RefusesItsAddress));
            registers[..8].copy_from_slice(&(Fake::CAP | has_control << 57).to_le_bytes());
        }
        // Old contents: a queue that is not cleared is noticed.
        registers[Fake::CMB as usize..].fill(0xff);
        let fake = Fake {
            memory,
            fault,
            cmb,
            registers: RefCell::new(registers),
            queues: RefCell::default(),
            waiting: RefCell::default(),
            most_outstanding: Cell::new(0),
            reads: Cell::new(0),
            interrupts: Cell::default(),
        };
        fake.show_cmb(matches!(cmb, FakeCmb::Legacy | FakeCmb::Holding(_)));
        fake
    }

    /// Makes CMBLOC and CMBSZ readable, or not: eight units of 4 KiB from the third one on, for all queues and data.
    fn show_cmb(&self, is_shown: bool) {
        if self.fault != Fault::Gone {
            self.set(0x38, if is_shown { 2 << 12 } else { 0 });
            let holds = if let FakeCmb::Holding(what) = self.cmb { what } else { 0x1b };
            self.set(0x3c, if is_shown { 8 << 12 | holds } else { 0 });
        }
    }

    /// Whether CMBMSC is 0, as after a reset.
    pub(super) fn has_no_cmb_address(&self) -> bool {
        self.register(0x50) == 0 && self.register(0x54) == 0
    }

    /// Offset in the BAR of an address that the controller recognises as that of its memory buffer.
    fn in_cmb(&self, address: u64) -> Option<usize> {
        let start = match self.cmb {
            FakeCmb::None => return None,
            FakeCmb::Legacy | FakeCmb::Holding(_) => Fake::BAR + Fake::CMB,
            FakeCmb::Hidden | FakeCmb::RefusesItsAddress => {
                let control = self.register(0x50) | self.register(0x54) << 32;
                (control & 2 != 0).then_some(control & !0xfff)?
            }
        };
        let offset = address.checked_sub(start).filter(|offset| *offset < Fake::CMB_BYTES)?;
        Some((Fake::CMB + offset) as usize)
    }

    fn word_at(&self, address: u64) -> u64 {
        match self.in_cmb(address) {
            Some(at) => self.word_at_offset(at),
            None => self.memory.load(address - FakeMemory::IOVA),
        }
    }

    fn word_at_offset(&self, at: usize) -> u64 {
        self.register(at) | self.register(at + 4) << 32
    }

    fn put_word_at(&self, address: u64, value: u64) {
        match self.in_cmb(address) {
            Some(at) => {
                self.set(at, value & 0xffff_ffff);
                self.set(at + 4, value >> 32);
            }
            None => self.memory.store(address - FakeMemory::IOVA, value),
        }
    }

    /// The bytes of the medium.
    pub(super) fn image(from: u64, len: u64) -> Vec<u8> {
        (from..from + len).map(|at| (at / 512 * 7 + at % 251) as u8).collect()
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.register(0x14) & 1 == 1
    }

    pub(super) fn reads(&self) -> u64 {
        self.reads.get()
    }

    pub(super) fn most_outstanding(&self) -> u32 {
        self.most_outstanding.get()
    }

    fn register(&self, at: usize) -> u64 {
        u32::from_le_bytes(self.registers.borrow()[at..at + 4].try_into().unwrap()).into()
    }

    fn set(&self, at: usize, value: u64) {
        self.registers.borrow_mut()[at..at + 4].copy_from_slice(&value.to_le_bytes()[..4]);
    }

    /// Takes the commands up to the tail of a queue.
    fn fetch(&self, number: usize) {
        loop {
            let queue = &mut self.queues.borrow_mut()[number];
            if queue.head == queue.tail {
                break;
            }
            let at = queue.submissions + queue.head * SUBMISSION;
            queue.head = (queue.head + 1) % queue.entries;
            let command = std::array::from_fn(|n| self.word_at(at + 8 * n as u64));
            self.waiting.borrow_mut().push((number, command));
        }
        let waiting = self.waiting.borrow().len() as u32;
        let batch = if let (1.., Fault::Batches(batch)) = (number, self.fault) { batch } else { 1 };
        if number > 0 {
            self.most_outstanding.set(self.most_outstanding.get().max(waiting));
        }
        if waiting >= batch {
            self.complete_all();
        }
    }

    fn complete(&self, number: usize, command: &[u64; 8]) {
        if number > 0 && self.fault == Fault::OnlyInterrupts {
            return;
        }
        let (status, result) = if number == 0 { self.admin(command) } else { (self.io(command), 0) };
        let mut queues = self.queues.borrow_mut();
        let queue = &mut queues[number];
        let phase = u64::from((queue.completed / queue.entries).is_multiple_of(2));
        let at = queue.completions + queue.completed % queue.entries * COMPLETION;
        assert!(queue.completed - queue.released < queue.entries - 1, "the completion queue is full");
        queue.completed += 1;
        let is_wrong = match self.fault {
            Fault::WrongIdentifier => true,
            Fault::WrongIoIdentifier => number > 0,
            _ => false,
        };
        let id = if is_wrong { 9 } else { command[0] >> 16 & 0xffff };
        self.put_word_at(at, result);
        let status = if self.fault == Fault::HasMore && number > 0 && status == 0 { 1 << 13 } else { status };
        self.put_word_at(at + 8, (status << 17 | phase << 16 | id) << 32 | queue.head);
        if let Some(vector) = queue.vector.filter(|_| self.fault != Fault::NoInterrupt) {
            let mut sent = self.interrupts.get();
            sent[vector as usize] += 1;
            self.interrupts.set(sent);
        }
    }

    /// Status and dword 0 of the completion.
    fn admin(&self, command: &[u64; 8]) -> (u64, u64) {
        let mut data = vec![0; PAGE as usize];
        match (command[0] & 0xff, command[5] & 0xffff) {
            (6, 1) => {
                data[24..64].fill(b' ');
                data[24..28].copy_from_slice(b"FAKE");
                data[77] = 7;
                data[536] = 1;
            }
            (6, 2) => {
                let after = (command[0] >> 32) as u32;
                let ids = Fake::NAMESPACES.into_iter().filter(|id| *id > after);
                data.chunks_mut(4).zip(ids).for_each(|(to, id)| to.copy_from_slice(&id.to_le_bytes()));
            }
            (6, 0) => {
                data[..8].copy_from_slice(&Fake::BLOCKS.to_le_bytes());
                data[130] = 9;
                // The second namespace has metadata.
                data[128] = if command[0] >> 32 == u64::from(Fake::NAMESPACES[1]) { 8 } else { 0 };
            }
            (5, number) if number <= Fake::PAIRS.into() => {
                let queue = &mut self.queues.borrow_mut()[number as usize];
                queue.completions = command[3];
                // IEN and IV, in dword 11.
                queue.vector = (command[5] >> 33 & 1 == 1).then_some(command[5] >> 48);
                return (0, 0);
            }
            (1, number) if number <= Fake::PAIRS.into() => {
                let queue = &mut self.queues.borrow_mut()[number as usize];
                (queue.submissions, queue.entries) = (command[3], (command[5] >> 16 & 0xffff) + 1);
                return (0, 0);
            }
            // Command Sequence Error, after a queue was created.
            (9, 7) if self.queues.borrow()[1].completions != 0 => return (0x0c, 0),
            (9, 7) => return (0, u64::from(Fake::PAIRS - 1) << 16 | u64::from(Fake::PAIRS - 1)),
            _ => return (1, 0),
        }
        self.memory.put(command[3], &data);
        (0, 0)
    }

    /// The memory of a command: addresses and lengths.
    fn pieces(&self, command: &[u64; 8], len: u64) -> Vec<(u64, u64)> {
        if command[0] >> 14 & 3 == 1 {
            return self.sgl([command[3], command[4]]);
        }
        let lead = (PAGE - command[3] % PAGE).min(len);
        let further = (len - lead).div_ceil(PAGE);
        let list = |n: u64| self.memory.load(command[4] - FakeMemory::IOVA + 8 * n);
        let page = |n| (if further == 1 { command[4] } else { list(n) }, (len - lead - n * PAGE).min(PAGE));
        [(command[3], lead)].into_iter().chain((0..further).map(page)).collect()
    }

    /// The data blocks of a descriptor and of the segments that it leads to.
    fn sgl(&self, [address, second]: [u64; 2]) -> Vec<(u64, u64)> {
        let bytes = second & 0xffff_ffff;
        if second >> 60 == 0 {
            return vec![(address, bytes)];
        }
        assert!(matches!(second >> 60, 2 | 3), "type {:#x}", second >> 60);
        let at = |place: u64| self.memory.load(place - FakeMemory::IOVA);
        (address..address + bytes).step_by(16).flat_map(|place| self.sgl([at(place), at(place + 8)])).collect()
    }

    fn io(&self, command: &[u64; 8]) -> u64 {
        let (first, blocks) = (command[5], (command[6] & 0xffff) + 1);
        match command[0] & 0xff {
            0 => 0,
            2 if first + blocks > Fake::BLOCKS => 0x80,
            2 => {
                let data = Fake::image(first * 512, blocks * 512);
                let mut rest = data.as_slice();
                for (address, bytes) in self.pieces(command, data.len() as u64) {
                    let (piece, further) = rest.split_at(bytes as usize);
                    for (to, word) in (address..).step_by(8).zip(piece.as_chunks().0) {
                        self.put_word_at(to, u64::from_le_bytes(*word));
                    }
                    rest = further;
                }
                assert!(rest.is_empty(), "{} B have no place", rest.len());
                self.reads.set(self.reads.get() + 1);
                0
            }
            _ => 1,
        }
    }
}

/// A doorbell of the fake controller.
#[derive(Debug)]
pub(super) struct FakeDoorbell<'a>(&'a Fake<'a>, u64);

impl Doorbell for FakeDoorbell<'_> {
    fn ring(&self, value: u32) -> Result<(), Errno> {
        self.0.store(self.1, 4, value.into())
    }
}

impl Bar for Fake<'_> {
    type Doorbell<'a>
        = FakeDoorbell<'a>
    where
        Self: 'a;

    fn doorbell(&self, offset: u64) -> Result<FakeDoorbell<'_>, Errno> {
        Ok(FakeDoorbell(self, offset))
    }

    fn load(&self, offset: u64, width: u8) -> Result<u64, Errno> {
        if offset >= Fake::CMB {
            assert_eq!(width, 8);
            return Ok(self.word_at_offset(offset as usize));
        }
        assert_eq!(width, 4);
        Ok(self.register(offset as usize))
    }

    fn store(&self, offset: u64, width: u8, value: u64) -> Result<(), Errno> {
        if offset >= Fake::CMB {
            assert_eq!(width, 8);
            self.set(offset as usize, value & 0xffff_ffff);
            self.set(offset as usize + 4, value >> 32);
            return Ok(());
        }
        assert_eq!(width, 4);
        self.set(offset as usize, value);
        match offset {
            // CMBMSC is stored in two halves, the upper one first; the lower one makes both take effect.
            0x50 if self.cmb != FakeCmb::None => {
                self.show_cmb(value & 1 == 1);
                self.set(0x58, u64::from(self.cmb == FakeCmb::RefusesItsAddress && value & 2 != 0));
            }
            0x14 if value & 1 == 1 => {
                let address = |at| self.register(at) | self.register(at + 4) << 32;
                let entries = (self.register(0x24) & 0xfff) + 1;
                let admin =
                    Queue { submissions: address(0x28), completions: address(0x30), entries, ..Queue::default() };
                *self.queues.borrow_mut() = std::array::from_fn(|n| if n == 0 { admin } else { Queue::default() });
                let status = match self.fault {
                    Fault::NeverReady => 0,
                    Fault::Fatal => 2,
                    _ => 1,
                };
                self.set(0x1c, status);
            }
            0x14 if self.fault != Fault::Gone => self.set(0x1c, 0),
            0x1000..Fake::DOORBELLS_END if offset.is_multiple_of(8) => {
                let number = (offset as usize - 0x1000) / 8;
                let mut queues = self.queues.borrow_mut();
                assert!(value < queues[number].entries, "the tail {value} of {} entries", queues[number].entries);
                queues[number].tail = value;
                drop(queues);
                self.fetch(number);
            }
            0x1000..Fake::DOORBELLS_END => {
                let queue = &mut self.queues.borrow_mut()[(offset as usize - 0x1000) / 8];
                assert!(value < queue.entries, "the head {value} of {} entries", queue.entries);
                let released = (value + queue.entries - queue.released % queue.entries) % queue.entries;
                queue.released += released;
                assert!(released > 0 && queue.released <= queue.completed, "the head moves by {released}");
            }
            _ => {}
        }
        Ok(())
    }
}
