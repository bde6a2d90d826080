//! The DMA engine of a device, driven as its device file says.

use super::interrupt::VfioInterrupt;
use super::registers::Registers;
use super::{VfioDevice, VfioError};
use crate::linux_sysfs::Device;
use crate::x86::sample::stamp_before;
use crate::x86::timer::Timer;
use lanemark_devices::{DeviceFile, Engine, Interrupt, InterruptKind};
use lanemark_machine::{Completion, Verb};
use lanemark_units::Ticks;
use rustix::io::Errno;
use std::cell::Cell;
use std::fmt;
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

/// One transfer between the device's own memory and host memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Job {
    /// Direction as seen by the device.
    pub(super) verb: Verb,
    /// Address of the host memory.
    pub(super) iova: u64,
    pub(super) bytes: u64,
}

/// Why a transfer did not end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stuck {
    /// The register did not show the end in time.
    Register,
    /// The interrupt did not arrive in time.
    Interrupt,
    /// The sample took longer than its plan permits.
    Plan,
    /// The run was interrupted.
    Interrupted,
    /// A system call failed.
    Os(Errno),
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stuck::Register => f.write_str("the register that shows the end of a transfer"),
            Stuck::Interrupt => f.write_str("the interrupt at the end of a transfer"),
            Stuck::Plan => f.write_str("the transfers of a sample"),
            Stuck::Interrupted => f.write_str("a transfer, until it was interrupted"),
            Stuck::Os(error) => write!(f, "a transfer: {error}"),
        }
    }
}

/// The flags and limits of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline<'a> {
    pub(super) interrupted: &'a AtomicBool,
    /// Time stamp at which the sample ends.
    pub(super) end: u64,
}

/// The engine of an open device.
#[derive(Debug)]
pub(super) struct EngineDriver {
    engine: Engine,
    interrupt: Option<Interrupt>,
    registers: Registers,
    /// Vector of the engine, while it is enabled.
    vector: Option<VfioInterrupt>,
    device: Arc<VfioDevice>,
    timer: Timer,
    /// Longest time of a transfer, in cycles.
    longest: u64,
    /// Time of a transfer after which polls have pauses, in cycles.
    soon: u64,
    /// Time of the last transfer, in cycles; 0 if unknown.
    last: Cell<u64>,
}

impl EngineDriver {
    /// Maps the registers of the engine of `file`, and changes none.
    ///
    /// # Errors
    /// [`VfioError`] of the BAR.
    pub(super) fn open(
        device: &Arc<VfioDevice>,
        sysfs: &Device,
        file: &DeviceFile,
        engine: Engine,
        timer: Timer,
    ) -> Result<EngineDriver, VfioError> {
        let ends = || file.registers().map(|(_, at, width)| (at, at + u64::from(width)));
        let from = ends().map(|(at, _)| at).min().unwrap_or(0);
        let to = ends().map(|(_, end)| end).max().unwrap_or(0);
        let registers = Registers::open(device, sysfs, engine.bar, from, to)
            .map_err(|error| VfioError::Unsupported { device: device.address(), because: error.to_string() })?;
        let longest = timer.cycles(Ticks::whole_ns(u64::from(engine.longest_ms) * 1_000_000));
        let (device, interrupt) = (Arc::clone(device), file.interrupt);
        let soon = timer.cycles(SOON);
        Ok(EngineDriver {
            engine,
            interrupt,
            registers,
            vector: None,
            device,
            timer,
            longest,
            soon,
            last: Cell::new(0),
        })
    }

    pub(super) const fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(super) const fn registers(&self) -> &Registers {
        &self.registers
    }

    /// Whether it can send an interrupt at the end of a transfer.
    pub(super) const fn interrupts(&self) -> bool {
        self.interrupt.is_some() && self.engine.with_interrupt.is_some()
    }

    /// Enables or disables the vector.
    pub(super) fn set_vector(&mut self, is_enabled: bool) -> Result<(), VfioError> {
        self.vector = None;
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

    /// Fails unless the engine is idle.
    pub(super) fn check_idle(&self, deadline: &Deadline<'_>) -> Result<(), Stuck> {
        let is_idle = self.poll(stamp_before(), deadline);
        self.clear_pace();
        is_idle
    }

    /// Starts a transfer and waits for its end.
    #[inline]
    pub(super) fn transfer(&self, job: Job, by: Completion, deadline: &Deadline<'_>) -> Result<(), Stuck> {
        let begun = stamp_before();
        self.start(job, by == Completion::Interrupt).map_err(Stuck::Os)?;
        if by == Completion::Interrupt { self.await_interrupt(begun, deadline) } else { self.poll(begun, deadline) }
    }

    /// Writes the addresses, the number of bytes and the command.
    #[inline]
    fn start(&self, job: Job, with_interrupt: bool) -> Result<(), Errno> {
        let (engine, registers) = (&self.engine, &self.registers);
        let width = engine.register_bytes;
        let own = engine.memory_start;
        let (source, destination, command) = match job.verb {
            Verb::Load => (job.iova, own, engine.to_device),
            Verb::Store => (own, job.iova, engine.to_host),
        };
        registers.store(engine.source, width, source)?;
        if let Some(high) = engine.source_high {
            registers.store(high, width, source >> 32)?;
        }
        registers.store(engine.destination, width, destination)?;
        if let Some(high) = engine.destination_high {
            registers.store(high, width, destination >> 32)?;
        }
        registers.store(engine.count, width, job.bytes)?;
        let interrupt = if with_interrupt { engine.with_interrupt.unwrap_or(0) } else { 0 };
        registers.store(engine.command, width, command | interrupt)
    }

    /// Polls the register that shows the end.
    ///
    /// Polling a slow engine without a pause would take the core from others, and its samples would count as disturbed. So
    /// a transfer longer than a millisecond is polled with pauses: its time is at most a sixteenth too long.
    #[inline]
    fn poll(&self, begun: u64, deadline: &Deadline<'_>) -> Result<(), Stuck> {
        let Engine { done, register_bytes, done_mask, done_value, .. } = self.engine;
        let expected = self.last.get();
        if expected > self.soon {
            self.pause_until(begun.saturating_add(expected - expected / 8), deadline)?;
        }
        loop {
            for _ in 0..POLLS {
                if self.registers.load(done, register_bytes).map_err(Stuck::Os)? & done_mask == done_value {
                    self.last.set(stamp_before().saturating_sub(begun));
                    return Ok(());
                }
                std::hint::spin_loop();
            }
            let now = stamp_before();
            let elapsed = now.saturating_sub(begun);
            if elapsed > self.longest {
                return Err(Stuck::Register);
            }
            deadline.check(now)?;
            if elapsed > self.soon {
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

    /// Clears the time of the last transfer: the next ones have another length.
    fn clear_pace(&self) {
        self.last.set(0);
    }

    /// Waits for the interrupt, and acknowledges it.
    #[inline]
    fn await_interrupt(&self, begun: u64, deadline: &Deadline<'_>) -> Result<(), Stuck> {
        let Some(vector) = &self.vector else { return Err(Stuck::Interrupt) };
        loop {
            match vector.wait(LOOK_MS) {
                Ok(true) => break,
                Ok(false) | Err(Errno::INTR) => {}
                Err(error) => return Err(Stuck::Os(error)),
            }
            let now = stamp_before();
            if now.saturating_sub(begun) > self.longest {
                return Err(Stuck::Interrupt);
            }
            deadline.check(now)?;
        }
        self.acknowledge().map_err(Stuck::Os)
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

impl Deadline<'_> {
    /// Fails after the end, and if the run was interrupted.
    pub(super) fn check(&self, now: u64) -> Result<(), Stuck> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(Stuck::Interrupted);
        }
        if now > self.end { Err(Stuck::Plan) } else { Ok(()) }
    }
}
