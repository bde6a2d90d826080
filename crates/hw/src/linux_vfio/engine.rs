//! The DMA engine of a device, driven as its device file says.

use super::interrupt::VfioInterrupt;
use super::job::{DmaMemory, Job, Stuck, within};
use super::registers::Registers;
use super::xdma::XdmaDriver;
use super::{VfioDevice, VfioError};
use crate::linux_sysfs::Device;
use crate::x86::sample::stamp_before;
use crate::x86::timer::Timer;
use lanemark_devices::{DeviceFile, Direction, DmaLimits, Engine, Interrupt, InterruptKind};
use lanemark_machine::{Completion, Verb};
use lanemark_units::Ticks;
use rustix::io::Errno;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use vfio_bindings::bindings::vfio::{VFIO_PCI_MSI_IRQ_INDEX, VFIO_PCI_MSIX_IRQ_INDEX};

/// Polls of a register between two checks of the clock.
const POLLS: u32 = 16;
/// Time of a transfer without pauses between polls.
const SOON: Ticks = Ticks::whole_ns(1_000_000);
/// After that, a pause is this part of the time so far.
const PAUSE: u64 = 16;
/// Longest wait without a look at the flags, in ms.
const LOOK_MS: u32 = 100;

/// The flags and limits of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline<'a> {
    pub(super) interrupted: &'a AtomicBool,
    /// Time stamp at which the sample ends.
    pub(super) end: u64,
}

/// Mechanism by which an engine is told its transfers.
#[derive(Clone, Copy, Debug)]
enum Mechanism {
    /// By registers, one transfer at a time.
    Registers(Engine),
    /// By lists of descriptors in host memory.
    Xdma(XdmaDriver),
}

/// A transfer of one of two directions.
#[derive(Clone, Copy, Debug)]
struct Running {
    job: Job,
    /// Its number in its direction.
    nth: u64,
    /// Time stamp before its start.
    begun: u64,
    /// Descriptors of its list.
    list: u32,
}

/// The pauses between polls of long transfers.
#[derive(Debug)]
struct Pace {
    /// Time of a transfer after which polls have pauses, in cycles.
    soon: u64,
    /// Time that the next transfer is expected to take, in cycles; 0 if unknown.
    expected: Cell<u64>,
}

impl Pace {
    /// Whether a transfer that has taken this many cycles is polled with pauses.
    const fn is_long(&self, elapsed: u64) -> bool {
        elapsed > self.soon
    }

    /// Pause before the first poll of a transfer, in cycles; none if it is expected to be short.
    fn first_pause(&self) -> Option<u64> {
        let expected = self.expected.get();
        self.is_long(expected).then_some(expected - expected / 8)
    }

    /// Notes the time of a transfer. `was_over`: the first poll after [`first_pause`](Pace::first_pause) showed its end. Then it
    /// may have ended long before, and the next pause is half as long: otherwise a short transfer after a long one would be
    /// paused for, and seem long, for ever.
    fn ended(&self, elapsed: u64, was_over: bool) {
        self.expected.set(if was_over { elapsed / 2 } else { elapsed });
    }

    /// Clears the expected time: the next transfers have another length.
    fn clear(&self) {
        self.expected.set(0);
    }
}

/// The engine of an open device.
#[derive(Debug)]
pub(super) struct EngineDriver {
    mechanism: Mechanism,
    limits: DmaLimits,
    interrupt: Option<Interrupt>,
    registers: Registers,
    /// Whether the registers are those of the device file: nothing is stored to them before.
    is_identified: Cell<bool>,
    /// Vector of the engine, while it is enabled.
    vector: Option<VfioInterrupt>,
    device: Arc<VfioDevice>,
    timer: Timer,
    /// Longest time of a transfer, in cycles.
    longest: u64,
    pace: Pace,
    /// Whether a transfer without an interrupt may have left its end pending: it must be acknowledged before an interrupt is
    /// enabled.
    may_be_pending: Cell<bool>,
}

impl EngineDriver {
    /// Maps the registers of the engine of `file`, and changes none; `None` if it describes none.
    ///
    /// # Errors
    /// [`VfioError`] of the BAR.
    pub(super) fn open(
        device: &Arc<VfioDevice>,
        sysfs: &Device,
        file: &DeviceFile,
        timer: Timer,
    ) -> Result<Option<EngineDriver>, VfioError> {
        let mechanism = match (file.engine, file.descriptors) {
            (Some(engine), _) => Mechanism::Registers(engine),
            (None, Some(engine)) => Mechanism::Xdma(XdmaDriver::new(engine)),
            (None, None) => return Ok(None),
        };
        let Some(limits) = file.limits() else { return Ok(None) };
        let ends = || file.registers().map(|(_, at, width)| (at, at + u64::from(width)));
        let bar = file.registers().map(|(bar, ..)| bar).next().unwrap_or(0);
        let from = ends().map(|(at, _)| at).min().unwrap_or(0);
        let to = ends().map(|(_, end)| end).max().unwrap_or(0);
        let registers = Registers::open(device, sysfs, bar, from, to)
            .map_err(|error| VfioError::Unsupported { device: device.address(), because: error.to_string() })?;
        let longest = timer.cycles(Ticks::whole_ns(u64::from(limits.longest_ms) * 1_000_000));
        let (device, interrupt) = (Arc::clone(device), file.interrupt);
        let pace = Pace { soon: timer.cycles(SOON), expected: Cell::new(0) };
        Ok(Some(EngineDriver {
            mechanism,
            limits,
            interrupt,
            registers,
            is_identified: Cell::new(false),
            vector: None,
            device,
            timer,
            longest,
            pace,
            may_be_pending: Cell::new(true),
        }))
    }

    pub(super) const fn limits(&self) -> &DmaLimits {
        &self.limits
    }

    /// Bytes of host memory for descriptors, in whole pages.
    pub(super) const fn list_bytes(&self) -> u64 {
        match &self.mechanism {
            Mechanism::Registers(_) => 0,
            Mechanism::Xdma(xdma) => xdma.list_bytes(),
        }
    }

    /// Section of the device file.
    pub(super) const fn section(&self) -> &'static str {
        match &self.mechanism {
            Mechanism::Registers(_) => "engine",
            Mechanism::Xdma(_) => "descriptors",
        }
    }

    pub(super) const fn registers(&self) -> &Registers {
        &self.registers
    }

    /// Enables or disables the vector.
    pub(super) fn set_vector(&mut self, is_enabled: bool) -> Result<(), VfioError> {
        self.vector = None;
        if let (Mechanism::Xdma(xdma), false, true) = (&self.mechanism, is_enabled, self.is_identified.get()) {
            xdma.disable_interrupts(&self.registers);
        }
        let Some(interrupt) = self.interrupt.filter(|_| is_enabled) else { return Ok(()) };
        let (index, kind) = match interrupt.kind {
            InterruptKind::Msi => (VFIO_PCI_MSI_IRQ_INDEX, "MSI"),
            InterruptKind::MsiX => (VFIO_PCI_MSIX_IRQ_INDEX, "MSI-X"),
        };
        let device = self.device.address();
        let os = |doing, source| VfioError::Os { device, doing, path: self.device.path().clone(), source };
        let have = self.device.vectors(index).map_err(|error| os("counting the interrupts of the device of", error))?;
        let vector = u32::from(interrupt.vector);
        if vector >= have {
            let because = format!("the device file names {kind} vector {vector}, and the device has {have}");
            return Err(VfioError::Unsupported { device, because });
        }
        let enabled = VfioInterrupt::enable(Arc::clone(&self.device), index, vector);
        self.vector = Some(enabled.map_err(|error| os("enabling an interrupt of the device of", error))?);
        Ok(())
    }

    /// Fails unless the registers are those of the layout of the device file, if it names one. Stores nothing.
    pub(super) fn check_identity(&self) -> Result<(), Stuck> {
        self.is_identified.set(false);
        if let Mechanism::Xdma(xdma) = &self.mechanism {
            xdma.check_identity(&self.registers)?;
        }
        self.is_identified.set(true);
        Ok(())
    }

    /// Fails unless the engine is idle. Its identity was checked.
    pub(super) fn check_idle(&self, deadline: &Deadline<'_>) -> Result<(), Stuck> {
        let is_idle = match &self.mechanism {
            Mechanism::Registers(engine) => self
                .poll(stamp_before(), deadline, Stuck::Register, || self.is_done(engine, None))
                .or_else(|late| self.check_failed(engine, None).and(Err(late))),
            Mechanism::Xdma(xdma) => {
                xdma.stop(&self.registers).map_err(Stuck::Os)?;
                self.poll(stamp_before(), deadline, Stuck::Register, || xdma.is_idle(&self.registers))
            }
        };
        self.pace.clear();
        is_idle
    }

    /// Stops an engine that may still fetch descriptors.
    pub(super) fn stop(&self) {
        if let (Mechanism::Xdma(xdma), true) = (&self.mechanism, self.is_identified.get()) {
            // A device that does not respond fetches nothing either; otherwise its bus mastering is off.
            let _ = xdma.stop(&self.registers);
        }
    }

    /// Makes the device ready for interrupts at the end of transfers; its vector is enabled.
    pub(super) fn route_interrupts(&self) -> Result<(), Stuck> {
        let (Mechanism::Xdma(xdma), Some(interrupt)) = (&self.mechanism, self.interrupt) else { return Ok(()) };
        xdma.route_interrupts(&self.registers, interrupt.vector)
    }

    /// Starts a transfer and waits for its end.
    #[inline]
    pub(super) fn transfer(
        &self,
        job: Job,
        by: Completion,
        deadline: &Deadline<'_>,
        memory: &DmaMemory<'_>,
    ) -> Result<(), Stuck> {
        within(&memory.data, job)?;
        let (begun, with_interrupt) = (stamp_before(), by == Completion::Interrupt);
        match &self.mechanism {
            Mechanism::Registers(engine) => {
                let is_pending = self.may_be_pending.replace(!with_interrupt);
                if with_interrupt && is_pending {
                    self.acknowledge().map_err(Stuck::Os)?;
                }
                self.start(engine, job, with_interrupt).map_err(Stuck::Os)?;
                let of = Some(job.verb);
                if with_interrupt {
                    let ended = self.await_interrupt(begun, deadline);
                    let ended = ended.and_then(|()| self.acknowledge().map_err(Stuck::Os));
                    return self.check_failed(engine, of).and(ended);
                }
                let ended = self.poll(begun, deadline, Stuck::Register, || self.is_done(engine, of));
                // A failed transfer may never show its end.
                ended.or_else(|late| self.check_failed(engine, of).and(Err(late)))
            }
            Mechanism::Xdma(xdma) => {
                let list = xdma.start(&self.registers, job, with_interrupt, memory)?;
                let awaited = if with_interrupt {
                    self.await_interrupt(begun, deadline)
                } else {
                    self.poll(begun, deadline, xdma.late(), || xdma.is_done(&self.registers, job, list, memory))
                };
                // The status of an engine that is stuck may say why.
                xdma.end(&self.registers, job, (list, with_interrupt), memory, awaited)
            }
        }
    }

    /// Makes `count` transfers of each direction, `job(verb, nth)`, and polls for their ends. Each direction starts its next
    /// transfer as soon as the last one has ended, whatever the other one does.
    pub(super) fn both(
        &self,
        count: u64,
        job: impl Fn(Verb, u64) -> Job,
        deadline: &Deadline<'_>,
        memory: &DmaMemory<'_>,
    ) -> Result<(), Stuck> {
        // Plans for an engine that is started by registers are refused.
        let Mechanism::Xdma(xdma) = &self.mechanism else { return Err(Stuck::Os(Errno::OPNOTSUPP)) };
        let begin = |verb, nth| {
            let job = job(verb, nth);
            within(&memory.data, job)?;
            let begun = stamp_before();
            let list = xdma.start(&self.registers, job, false, memory)?;
            Ok(Some(Running { job, nth, begun, list }))
        };
        let mut all = [begin(Verb::Store, 0)?, begin(Verb::Load, 0)?];
        let mut polls: u32 = 0;
        while all.iter().any(Option::is_some) {
            polls = polls.wrapping_add(1);
            for running in &mut all {
                let Some(Running { job, nth, begun, list }) = *running else { continue };
                let is_done = xdma.is_done(&self.registers, job, list, memory)?;
                let elapsed =
                    if is_done || polls.is_multiple_of(POLLS) { stamp_before().saturating_sub(begun) } else { 0 };
                let awaited = if !is_done && elapsed > self.longest { Err(xdma.late()) } else { Ok(()) };
                if is_done || awaited.is_err() {
                    xdma.end(&self.registers, job, (list, false), memory, awaited)?;
                    *running = if nth + 1 < count { begin(job.verb, nth + 1)? } else { None };
                }
            }
            // The core sleeps only while each running transfer is a long one, and by the shorter of them.
            if polls.is_multiple_of(POLLS) {
                let now = stamp_before();
                let shortest = all.iter().flatten().map(|running| now.saturating_sub(running.begun)).min();
                if let Some(elapsed) = shortest.filter(|elapsed| self.pace.is_long(*elapsed)) {
                    self.pause_until(now.saturating_add(elapsed / PAUSE), deadline)?;
                }
            }
            if polls.is_multiple_of(POLLS) {
                deadline.check(stamp_before())?;
            }
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Whether the register shows the end of a transfer of direction `verb`, or of one before this run. Fails if that has failed.
    #[inline]
    fn is_done(&self, engine: &Engine, verb: Option<Verb>) -> Result<bool, Stuck> {
        let found = self.registers.load(engine.done, engine.register_bytes).map_err(Stuck::Os)?;
        let is_done = found & engine.done_mask == engine.done_value;
        if is_done { failed(engine, verb, found).map(|()| true) } else { Ok(false) }
    }

    /// Fails if the register shows that a transfer has failed. Loads it only if it has such bits.
    #[inline]
    fn check_failed(&self, engine: &Engine, verb: Option<Verb>) -> Result<(), Stuck> {
        if engine.failed_mask.is_none() {
            return Ok(());
        }
        let found = self.registers.load(engine.done, engine.register_bytes).map_err(Stuck::Os)?;
        failed(engine, verb, found)
    }

    /// Writes the addresses, the number of bytes and the command.
    #[inline]
    fn start(&self, engine: &Engine, job: Job, with_interrupt: bool) -> Result<(), Errno> {
        let direction = if job.verb == Verb::Load { Direction::ToDevice } else { Direction::ToHost };
        for (register, value) in engine.stores(direction, (job.iova, job.own), job.bytes, with_interrupt) {
            if let Some(register) = register {
                self.registers.store(register, engine.register_bytes, value)?;
            }
        }
        Ok(())
    }

    /// Polls until `is_done`; `late` says what did not show the end in time.
    ///
    /// Polling a slow engine without a pause would take the core from others, and its samples would count as disturbed. So
    /// a transfer longer than a millisecond is polled with pauses: its time is at most a sixteenth too long, if it takes as
    /// long as the one before.
    #[inline]
    fn poll(
        &self,
        begun: u64,
        deadline: &Deadline<'_>,
        late: Stuck,
        is_done: impl Fn() -> Result<bool, Stuck>,
    ) -> Result<(), Stuck> {
        let first = self.pace.first_pause();
        if let Some(pause) = first {
            self.pause_until(begun.saturating_add(pause), deadline)?;
        }
        let mut is_first = first.is_some();
        loop {
            for _ in 0..POLLS {
                if is_done()? {
                    self.pace.ended(stamp_before().saturating_sub(begun), is_first);
                    return Ok(());
                }
                is_first = false;
                std::hint::spin_loop();
            }
            let now = stamp_before();
            let elapsed = now.saturating_sub(begun);
            if elapsed > self.longest {
                return Err(late);
            }
            deadline.check(now)?;
            if self.pace.is_long(elapsed) {
                self.pause_until(now.saturating_add(elapsed / PAUSE), deadline)?;
            }
        }
    }

    /// Sleeps until a time stamp.
    fn pause_until(&self, end: u64, deadline: &Deadline<'_>) -> Result<(), Stuck> {
        loop {
            let now = stamp_before();
            deadline.check(now)?;
            let Some(left) = end.checked_sub(now).filter(|left| *left > 0) else { return Ok(()) };
            let left = Duration::from_secs_f64(self.timer.ticks(left).as_ns() / 1e9);
            std::thread::sleep(left.min(Duration::from_millis(LOOK_MS.into())));
        }
    }

    /// Waits for the interrupt.
    #[inline]
    fn await_interrupt(&self, begun: u64, deadline: &Deadline<'_>) -> Result<(), Stuck> {
        let Some(vector) = &self.vector else { return Err(Stuck::Interrupt) };
        loop {
            match vector.wait(LOOK_MS) {
                Ok(true) => return Ok(()),
                Ok(false) | Err(Errno::INTR) => {}
                Err(error) => return Err(Stuck::Os(error)),
            }
            let now = stamp_before();
            if now.saturating_sub(begun) > self.longest {
                return Err(Stuck::Interrupt);
            }
            deadline.check(now)?;
        }
    }

    /// Stores the pending reasons, or that of a transfer, to the register that ends the interrupt.
    fn acknowledge(&self) -> Result<(), Errno> {
        let Some(interrupt) = self.interrupt else { return Ok(()) };
        let Some(acknowledge) = interrupt.acknowledge else { return Ok(()) };
        let width = interrupt.register_bytes;
        let pending = interrupt.status.map(|status| self.registers.load(status, width)).transpose()?;
        self.registers.store(acknowledge, width, pending.unwrap_or(interrupt.done_value))
    }
}

/// Fails if `found`, the value of the register that shows the end, has bits of a failed transfer.
#[inline]
fn failed(engine: &Engine, verb: Option<Verb>, found: u64) -> Result<(), Stuck> {
    match engine.failed_mask {
        Some(mask) if found & mask != 0 => Err(Stuck::FailedBits { verb, found, mask }),
        _ => Ok(()),
    }
}

impl Deadline<'_> {
    /// Fails after the end, and if the run was interrupted.
    pub(super) fn check(&self, now: u64) -> Result<(), Stuck> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(Stuck::Interrupted);
        }
        if now > self.end { Err(Stuck::Plan) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_transfers_after_a_long_one_are_soon_polled_without_a_pause() {
        let pace = Pace { soon: 1000, expected: Cell::new(0) };
        assert_eq!(pace.first_pause(), None);
        pace.ended(8000, false);
        assert_eq!(pace.first_pause(), Some(7000), "the same time is expected again");
        let mut pauses = 0;
        // The processor wakes 300 cycles late: by the time of the last pause alone, a pause would follow for ever.
        while let Some(pause) = pace.first_pause() {
            pace.ended(pause + 300, true);
            pauses += 1;
        }
        assert_eq!(pauses, 3);
        pace.ended(1001, false);
        assert_eq!(pace.first_pause(), Some(876));
        pace.ended(1000, false);
        assert_eq!(pace.first_pause(), None);
    }
}
