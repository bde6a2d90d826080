//! An engine with the layout `xdma`: lists of descriptors in host memory, and the registers of one channel per direction.
//!
//! The memory for descriptors is a part of the window that is mapped for the device: for each direction the list, and in a page
//! of its own behind it the word that the engine writes at the end. Each transfer begins with Run set, and ends with a load of
//! Status, which clears it, and with Run cleared: the engine counts completed descriptors from 0 in the next one.
//!
//! Source: AMD, PG195. Verified on: the emulated card of `checks/tests/guest/xdma_twin`. Not yet verified on a real card.

use super::job::{DmaMemory, Job, Stuck};
use super::registers::Registers;
use lanemark_devices::xdma::{
    CHANNELS, Channel, DESCRIPTOR_BYTES, Direction, IDENTIFIER_MASK, List, control, irq, status, write_back,
};
use lanemark_devices::{DescriptorEngine, Polled};
use lanemark_machine::Verb;
use rustix::io::Errno;

/// Bytes of a page.
const PAGE: u64 = 4096;
/// Width of the registers.
const WIDTH: u8 = 4;

/// The channels of a device file.
#[derive(Clone, Copy, Debug)]
pub(super) struct XdmaDriver {
    engine: DescriptorEngine,
    to_device: Channel,
    to_host: Channel,
}

impl XdmaDriver {
    pub(super) const fn new(engine: DescriptorEngine) -> XdmaDriver {
        let to_device = Channel::new(Direction::H2c, engine.channel);
        let to_host = Channel::new(Direction::C2h, engine.channel);
        XdmaDriver { engine, to_device, to_host }
    }

    /// Bytes of the descriptors of the largest transfer, in whole pages.
    const fn descriptors_bytes(&self) -> u64 {
        let count = self.engine.descriptors(self.engine.limits.most_bytes);
        (count * DESCRIPTOR_BYTES).next_multiple_of(PAGE)
    }

    /// Bytes of host memory for the descriptors of both directions and the words at their ends.
    pub(super) const fn list_bytes(&self) -> u64 {
        2 * (self.descriptors_bytes() + PAGE)
    }

    /// Offset in the window of the list of a direction.
    const fn list(&self, verb: Verb, memory: &DmaMemory<'_>) -> u64 {
        match verb {
            Verb::Load => memory.list,
            Verb::Store => memory.list + self.descriptors_bytes() + PAGE,
        }
    }

    const fn channel(&self, verb: Verb) -> &Channel {
        match verb {
            Verb::Load => &self.to_device,
            Verb::Store => &self.to_host,
        }
    }

    /// What did not show the end of a transfer that is late.
    pub(super) const fn late(&self) -> Stuck {
        match self.engine.polled {
            Polled::WriteBack => Stuck::WriteBack,
            Polled::Status => Stuck::Register,
        }
    }

    /// Fails unless the identifiers are those of the layout; stores nothing.
    pub(super) fn check_identity(&self, registers: &Registers) -> Result<(), Stuck> {
        for at in [
            self.to_device.identifier,
            self.to_host.identifier,
            self.to_device.list_identifier,
            self.to_host.list_identifier,
            irq::IDENTIFIER,
        ] {
            let (found, expected) = (load(registers, at).map_err(Stuck::Os)?, Channel::expected(at));
            if found & IDENTIFIER_MASK != expected {
                return Err(Stuck::Identifier { at, found, expected });
            }
        }
        Ok(())
    }

    /// Clears Run and Status of both channels, and the interrupts that Status asks for.
    pub(super) fn stop(&self, registers: &Registers) -> Result<(), Errno> {
        for channel in [&self.to_device, &self.to_host] {
            store(registers, channel.control, 0)?;
            store(registers, channel.interrupts, 0)?;
            // What an earlier program left would send an interrupt as soon as one is enabled.
            load(registers, channel.status_clearing)?;
        }
        Ok(())
    }

    /// Whether both channels have stopped.
    pub(super) fn is_idle(&self, registers: &Registers) -> Result<bool, Stuck> {
        let both = [self.to_device.status, self.to_host.status];
        let both = both.map(|at| load(registers, at).map(|found| found & status::BUSY == 0));
        Ok(both[0].map_err(Stuck::Os)? && both[1].map_err(Stuck::Os)?)
    }

    /// Sets the vector of both channels, and lets them send interrupts.
    pub(super) fn route_interrupts(&self, registers: &Registers, vector: u16) -> Result<(), Stuck> {
        let bits = self.interrupt_bits(registers).map_err(Stuck::Os)?;
        for bit in (0..2 * CHANNELS).filter(|bit| bits & 1 << bit != 0) {
            let (at, shift) = (irq::VECTOR + bit / 4 * 4, bit % 4 * 8);
            let others = load(registers, at).map_err(Stuck::Os)? & !(0x1f << shift);
            store(registers, at, others | u32::from(vector) << shift).map_err(Stuck::Os)?;
        }
        store(registers, irq::ENABLE, bits).map_err(Stuck::Os)
    }

    /// Lets the channels send no more interrupts.
    pub(super) fn disable_interrupts(&self, registers: &Registers) {
        // A device that does not respond sends none.
        let _ = self.interrupt_bits(registers).and_then(|bits| store(registers, irq::DISABLE, bits));
    }

    /// The bits of both channels in the IRQ block: those of host to card come first.
    fn interrupt_bits(&self, registers: &Registers) -> Result<u32, Errno> {
        let own = u64::from(self.engine.channel);
        let mut before = 0;
        for nth in 0..CHANNELS {
            let at = Channel::new(Direction::H2c, nth as u8).identifier;
            if load(registers, at)? & IDENTIFIER_MASK & !0x8000 == Channel::expected(at) {
                before += 1;
            }
        }
        Ok(1 << own | 1 << (before + own))
    }

    /// Writes the descriptors of a transfer, and starts it. Returns their number.
    #[inline]
    pub(super) fn start(
        &self,
        registers: &Registers,
        job: Job,
        with_interrupt: bool,
        memory: &DmaMemory<'_>,
    ) -> Result<u32, Stuck> {
        let (source, destination) = match job.verb {
            Verb::Load => (job.iova, job.own),
            Verb::Store => (job.own, job.iova),
        };
        let start = self.list(job.verb, memory);
        let at = memory.window.iova(start);
        let list = List { at, source, destination, bytes: job.bytes, descriptor_bytes: self.engine.descriptor_bytes };
        // A plan with a longer transfer is refused; a list beyond its memory would be one of the device.
        if list.is_empty() || job.bytes > self.engine.limits.most_bytes {
            return Err(Stuck::Beyond(job.iova));
        }
        for nth in 0..list.len() {
            for (place, word) in (0..).zip(list.descriptor(nth)) {
                memory.window.store_word(start + nth * DESCRIPTOR_BYTES + place * 8, word);
            }
        }
        let end = self.descriptors_bytes();
        memory.window.store_word(start + end, 0);
        let channel = self.channel(job.verb);
        self.program(registers, channel, [at, at + end], list.adjacent(0), with_interrupt).map_err(Stuck::Os)?;
        Ok(list.len() as u32)
    }

    /// Stores to the registers of a channel; Run is last.
    #[inline]
    fn program(
        &self,
        registers: &Registers,
        channel: &Channel,
        [list, end]: [u64; 2],
        adjacent: u64,
        with_interrupt: bool,
    ) -> Result<(), Errno> {
        let is_written = self.engine.polled == Polled::WriteBack && !with_interrupt;
        store(registers, channel.interrupts, if with_interrupt { status::LOGGED } else { 0 })?;
        if is_written {
            store(registers, channel.write_back[0], end as u32)?;
            store(registers, channel.write_back[1], (end >> 32) as u32)?;
        }
        store(registers, channel.list[0], list as u32)?;
        store(registers, channel.list[1], (list >> 32) as u32)?;
        store(registers, channel.adjacent, adjacent as u32)?;
        let write_back = if is_written { control::WRITE_BACK } else { 0 };
        store(registers, channel.control, control::RUN | status::LOGGED | write_back)
    }

    /// The word in host memory that the engine writes at the end; 0 before.
    #[inline]
    fn written_back(&self, verb: Verb, memory: &DmaMemory<'_>) -> u32 {
        memory.window.load_word(self.list(verb, memory) + self.descriptors_bytes()) as u32
    }

    /// Whether the polled place shows the end of a list with `count` descriptors, or an error.
    #[inline]
    pub(super) fn is_done(
        &self,
        registers: &Registers,
        job: Job,
        count: u32,
        memory: &DmaMemory<'_>,
    ) -> Result<bool, Stuck> {
        match self.engine.polled {
            Polled::WriteBack => {
                let word = self.written_back(job.verb, memory);
                Ok(word & write_back::ERROR != 0 || word & write_back::COUNT >= count)
            }
            Polled::Status => {
                let found = load(registers, self.channel(job.verb).status).map_err(Stuck::Os)?;
                Ok(found & status::BUSY == 0 && found & (status::STOPPED | status::ERRORS) != 0)
            }
        }
    }

    /// Clears Status and Run after a list of `count` descriptors. Fails unless the engine has completed all of them without an
    /// error. The completed count is that of the word in host memory if it was polled, else that of the register.
    ///
    /// An engine that ended with an error fails with that, also if it is late.
    #[inline]
    pub(super) fn end(
        &self,
        registers: &Registers,
        job: Job,
        (count, with_interrupt): (u32, bool),
        memory: &DmaMemory<'_>,
        awaited: Result<(), Stuck>,
    ) -> Result<(), Stuck> {
        let channel = self.channel(job.verb);
        let found = load(registers, channel.status_clearing).map_err(Stuck::Os)?;
        let (completed, is_failed) = if self.engine.polled == Polled::WriteBack && !with_interrupt {
            let word = self.written_back(job.verb, memory);
            (word & write_back::COUNT, word & write_back::ERROR != 0)
        } else {
            (load(registers, channel.completed).map_err(Stuck::Os)?, false)
        };
        store(registers, channel.control, 0).map_err(Stuck::Os)?;
        // All ones are those of a device that has vanished.
        if is_failed || found & status::ERRORS != 0 && found != u32::MAX {
            return Err(Stuck::Failed { verb: job.verb, status: found });
        }
        // An engine that stopped early shows no end, so it is late too.
        if found & status::STOPPED != 0 && found != u32::MAX && completed != count {
            return Err(Stuck::Count { completed, of: count });
        }
        awaited?;
        if completed == count { Ok(()) } else { Err(Stuck::Count { completed, of: count }) }
    }
}

#[inline]
fn load(registers: &Registers, at: u64) -> Result<u32, Errno> {
    registers.load(at, WIDTH).map(|found| found as u32)
}

#[inline]
fn store(registers: &Registers, at: u64, value: u32) -> Result<(), Errno> {
    registers.store(at, WIDTH, value.into())
}
