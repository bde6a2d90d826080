//! An NVMe drive behind VFIO: its identification, and runs of plans with its reads.

use super::device::BusMaster;
use super::drive_plan::{DriveLimits, DrivePlan};
use super::engine::{Deadline, Stuck};
use super::faults::FaultLog;
use super::host_window::{HostPages, HostWindow};
use super::registers::Registers;
use super::transfers::{REPORT, changed, fill};
use super::{Container, VfioDevice, VfioError, VfioInterrupt};
use crate::linux_sysfs::Device;
use crate::nvme::{
    Bar, Command, Controller, ControllerData, DmaMemory, Namespace, NvmeError, PAGE, QUEUE_BYTES, list_bytes, pointers,
    registers_end,
};
use crate::x86::disturbance::Company;
use crate::x86::pattern;
use crate::x86::run::{Numbering, Run};
use crate::x86::sample::{Delivery, Limits, Stamps, stamp_before, timed};
use crate::x86::timer::Timer;
use lanemark_machine::{Confirmed, DmaFacts, MachineError, Plan, Samples, Transfer};
use lanemark_units::{Ticks, format_size};
use rustix::io::Errno;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// BAR of the registers. Source: NVM Express over PCIe Transport Specification 1.0, 3.1.
pub(super) const BAR: u8 = 0;
/// Address bits of a controller: ASQ, ACQ and PRP entries have 64.
const ADDRESS_BITS: u32 = 64;

/// A drive that was identified. Its controller is enabled only while it is identified and while a plan runs.
#[derive(Debug)]
pub(super) struct Drive {
    registers: Registers,
    data: ControllerData,
    namespace: Option<Namespace>,
    depth: u32,
    mapped_bytes: u64,
    page_bytes: u64,
    pages: Option<HostPages>,
}

/// The parts of a machine that a run uses.
pub(super) struct DriveBench<'a> {
    pub(super) name: &'a str,
    pub(super) container: &'a Arc<Container>,
    pub(super) drive: &'a mut Drive,
    pub(super) cpu: usize,
    pub(super) timer: Timer,
    pub(super) interrupted: &'a AtomicBool,
    /// The kernel's request to give the device back.
    pub(super) requested: Option<&'a VfioInterrupt>,
    /// The kernel's log.
    pub(super) log: &'a Path,
    /// Number of this run, from which the bytes before it follow.
    pub(super) number: u64,
}

/// Host memory of a run: the window of the plan, a place for verification, the queues, and lists of data pointers.
#[derive(Clone, Copy, Debug)]
struct Layout {
    window_end: u64,
    scratch: u64,
    queues: u64,
    lists: u64,
    /// Bytes of each list: one for each place of the window, and one for the scratch.
    list: u64,
    len: u64,
}

impl Layout {
    fn of(transfer: &Transfer) -> Layout {
        let Transfer { bytes, window, .. } = *transfer;
        let window_end = window.offset + window.len.max(bytes);
        let scratch = window_end.next_multiple_of(PAGE);
        let queues = scratch + bytes.next_multiple_of(PAGE);
        let (lists, list) = (queues + QUEUE_BYTES, list_bytes(bytes));
        let len = (lists + (window.places(bytes) + 1) * list).next_multiple_of(PAGE);
        Layout { window_end, scratch, queues, lists, list, len }
    }
}

impl Drive {
    /// Opens and identifies the drive; bus mastering is on meanwhile.
    ///
    /// # Errors
    /// [`VfioError`] of the BAR, of memory, and of the controller.
    pub(super) fn open(container: &Arc<Container>, sysfs: &Device, mapped: u64) -> Result<Drive, VfioError> {
        let device = container.device();
        let unsupported = |because: String| VfioError::Unsupported { device: device.address(), because };
        let registers = registers(device, sysfs).map_err(unsupported)?;
        let mut pages = HostPages::new(mapped + (mapped / 8))
            .map_err(|error| unsupported(format!("no memory for DMA can be allocated: {error}")))?;
        let (page_bytes, mapped_bytes) = (pages.page_bytes(), mapped);
        let identified = {
            let window = HostWindow::map(container, &mut pages, QUEUE_BYTES, ADDRESS_BITS)
                .map_err(|error| unsupported(format!("mapping memory for the drive: {error}")))?;
            let master = BusMaster::enable(Arc::clone(device));
            let _master = master.map_err(|error| unsupported(format!("enabling bus mastering: {error}")))?;
            let identified = identified(&registers, &window);
            if identified.is_err() && device.can_reset() {
                // Its DMA must end before the memory is unmapped and reused.
                let _ = device.reset();
            }
            identified
        };
        let (data, namespace, depth) = identified.map_err(|error| unsupported(error.to_string()))?;
        Ok(Drive { registers, data, namespace, depth, mapped_bytes, page_bytes, pages: Some(pages) })
    }

    /// Limits of plans; `None` without a namespace.
    pub(super) fn limits(&self, cores: u32) -> Option<DriveLimits> {
        let most_bytes = DriveLimits::most_bytes(self.data.most_bytes);
        let (depth, mapped_bytes) = (self.depth, self.mapped_bytes);
        self.namespace.map(|namespace| DriveLimits { namespace, most_bytes, depth, mapped_bytes, cores })
    }

    /// Facts for questions; `None` without a namespace.
    pub(super) fn facts(&self) -> Option<DmaFacts> {
        self.namespace.map(|_| facts(self.mapped_bytes, self.page_bytes, self.depth))
    }

    /// Model and namespace, in words.
    pub(super) fn summary(&self) -> String {
        let ControllerData { model, firmware, .. } = &self.data;
        let namespace = self.namespace.map_or_else(
            || "no active namespace, so it answers no question about DMA".to_owned(),
            |namespace| {
                let Namespace { id, block_bytes, .. } = namespace;
                format!(
                    "namespace {id} of {} in logical blocks of {}",
                    format_size(namespace.bytes()),
                    format_size(block_bytes)
                )
            },
        );
        format!("NVMe drive {model}, firmware {firmware}, {namespace}")
    }
}

/// Facts of a drive with this depth of its queues.
pub(super) const fn facts(mapped_bytes: u64, page_bytes: u64, depth: u32) -> DmaFacts {
    DmaFacts { tags: depth, has_flag: true, ..DmaFacts::of_register_engine(mapped_bytes, page_bytes) }
}

/// Maps the registers up to the last doorbell that is used.
fn registers(device: &Arc<VfioDevice>, sysfs: &Device) -> Result<Registers, String> {
    /// End of the registers without doorbells.
    const CONTROLLER: u64 = 0x40;
    let end = {
        let first = Registers::open(device, sysfs, BAR, 0, CONTROLLER).map_err(|error| error.to_string())?;
        registers_end(&first).map_err(|error| NvmeError::Os(error).to_string())?
    };
    Registers::open(device, sysfs, BAR, 0, end).map_err(|error| error.to_string())
}

/// Enables, identifies and disables the controller.
fn identified(
    registers: &Registers,
    memory: &HostWindow<'_>,
) -> Result<(ControllerData, Option<Namespace>, u32), NvmeError> {
    let mut controller = Controller::enable(registers, memory, 0)?;
    let (data, namespace) = controller.identify()?;
    let depth = controller.create_queues()?;
    controller.disable()?;
    Ok((data, namespace, depth))
}

impl Bar for Registers {
    #[inline]
    fn load(&self, offset: u64, width: u8) -> Result<u64, Errno> {
        Registers::load(self, offset, width)
    }

    #[inline]
    fn store(&self, offset: u64, width: u8, value: u64) -> Result<(), Errno> {
        Registers::store(self, offset, width, value)
    }
}

impl DmaMemory for HostWindow<'_> {
    #[inline]
    fn load(&self, offset: u64) -> u64 {
        self.load_word(offset)
    }

    #[inline]
    fn store(&self, offset: u64, value: u64) {
        self.store_word(offset, value);
    }

    #[inline]
    fn iova(&self, offset: u64) -> u64 {
        HostWindow::iova(self, offset)
    }
}

/// Why reads ended early, for the message.
type Failure = (NvmeError, Option<Stuck>, &'static str);

impl DriveBench<'_> {
    /// Runs a plan and verifies its bytes.
    pub(super) fn run(self, plan: &Plan, asked: &DrivePlan, samples: &mut Samples) -> Result<(), MachineError> {
        let Some(namespace) = self.drive.namespace else { return Ok(()) };
        let layout = Layout::of(&asked.transfer);
        let log = FaultLog::from_now(self.log);
        let mut pages = match self.drive.pages.take().filter(|pages| pages.len() >= layout.len) {
            Some(pages) => pages,
            None => {
                HostPages::new(layout.len).map_err(|error| self.os("allocating the memory to map", error.into()))?
            }
        };
        fill(&mut pages, layout.window_end, self.seed());
        let device = Arc::clone(self.container.device());
        let confirmed = {
            let mapped = HostWindow::map(self.container, &mut pages, layout.len, ADDRESS_BITS);
            let window = mapped.map_err(|error| self.os("mapping memory for DMA", std::io::Error::other(error)))?;
            let done = self.measured(plan, asked, &layout, namespace, &window, samples);
            if done.is_err() && device.can_reset() {
                // A read may still be going on: it must end before its memory is unmapped and reused.
                let _ = device.reset();
            }
            done
        };
        let confirmed = confirmed.and_then(|confirmed| self.beside(plan, &asked.transfer, &pages).map(|()| confirmed));
        let is_complete = confirmed.as_ref().is_ok_and(|bytes| bytes.confirmed_bytes == bytes.claimed_bytes);
        let mut faults = log.faults_of(device.address());
        if !is_complete && faults.is_empty() {
            // The kernel reports a fault after the request.
            std::thread::sleep(REPORT);
            faults = log.faults_of(device.address());
        }
        self.drive.pages = Some(pages);
        if let Some(first) = faults.first() {
            let count = faults.len();
            return Err(self.device_error(format!(
                "{}: the IOMMU has blocked {count} of its DMA requests; the kernel reports: {first}; the firmware of the drive is at \
                 fault",
                self.name
            )));
        }
        samples.confirmed = Some(confirmed.map_err(|error| match (error, device.check()) {
            (error @ (MachineError::Interrupted { .. } | MachineError::Device { .. }), _) | (error, Ok(())) => error,
            (_, Err(gone)) => self.device_error(gone.to_string()),
        })?);
        Ok(())
    }

    /// Reads logical blocks from the byte `from` of the namespace on to `to`, by the commands of a plan, and times nothing.
    pub(super) fn read(self, plan: &Plan, asked: &DrivePlan, from: u64, to: &mut [u8]) -> Result<(), MachineError> {
        let Some(namespace) = self.drive.namespace else { return Ok(()) };
        let (transfer, layout) = (asked.transfer, Layout::of(&asked.transfer));
        let (bytes, block) = (transfer.bytes, namespace.block_bytes);
        if !from.is_multiple_of(block) || !(to.len() as u64).is_multiple_of(bytes) {
            let what = format!("{}: {} B at {from} are no whole reads of {bytes} B at a block", self.name, to.len());
            return Err(self.device_error(what));
        }
        let mut pages = HostPages::new(layout.len).map_err(|error| self.os("allocating memory", error.into()))?;
        let window = HostWindow::map(self.container, &mut pages, layout.len, ADDRESS_BITS)
            .map_err(|error| self.os("mapping memory for DMA", std::io::Error::other(error)))?;
        let master = BusMaster::enable(Arc::clone(self.container.device()));
        let _master = master.map_err(|error| self.os("enabling bus mastering", error))?;
        let failed = |error: NvmeError| self.failed((error, None, ""), plan.timeout);
        let mut controller = Controller::enable(&self.drive.registers, &window, layout.queues).map_err(failed)?;
        controller.create_queues().map_err(failed)?;
        let mut commands = (0..transfer.count).map(|nth| {
            let data = pointers(&window, nth * bytes, bytes, layout.lists + nth * layout.list);
            Command::read(namespace.id, (from + nth * bytes) / block, (bytes / block) as u32, data)
        });
        let done = self.reads(&mut controller, asked.depth, plan.timeout, || commands.next());
        done.map_err(|failure| self.failed(failure, plan.timeout))?;
        controller.disable().map_err(failed)?;
        window.read(0, to);
        Ok(())
    }

    /// Seed of the bytes in the window before the run.
    const fn seed(&self) -> u64 {
        2 * self.number
    }

    /// Enables the controller, samples, and reads the blocks of the last iteration once more; compares both.
    fn measured(
        &self,
        plan: &Plan,
        asked: &DrivePlan,
        layout: &Layout,
        namespace: Namespace,
        window: &HostWindow<'_>,
        samples: &mut Samples,
    ) -> Result<Confirmed, MachineError> {
        let master = BusMaster::enable(Arc::clone(self.container.device()));
        let _master = master.map_err(|error| self.os("enabling bus mastering", error))?;
        let failed = |error: NvmeError| self.failed((error, None, ""), plan.timeout);
        let controller = Controller::enable(&self.drive.registers, window, layout.queues).map_err(failed)?;
        let controller = RefCell::new(controller);
        controller.borrow_mut().create_queues().map_err(failed)?;
        let Transfer { bytes, count, window: places, .. } = asked.transfer;
        let blocks = (bytes / namespace.block_bytes) as u32;
        // Each place of the window has blocks of its own, as far as the namespace reaches.
        let pieces = namespace.blocks / u64::from(blocks);
        let first_block = |nth: u64| nth % places.places(bytes) % pieces * u64::from(blocks);
        let read = |nth: u64, to: [u64; 2]| Command::read(namespace.id, first_block(nth), blocks, to);
        let reads: Vec<Command> = (0..places.places(bytes))
            .map(|place| {
                let at = places.offset + place * places.step(bytes);
                read(place, pointers(window, at, bytes, layout.lists + place * layout.list))
            })
            .collect();
        let index = |nth: u64| (places.place(nth, bytes) - places.offset) / places.step(bytes);
        let once = |command: Command| {
            let mut once = Some(command);
            // As long as Linux waits for a command: a Flush may have to empty a cache.
            let longest = plan.timeout.max(Ticks::whole_ns(30_000_000_000));
            let done = self.reads(&mut controller.borrow_mut(), 1, longest, || once.take());
            done.map_err(|failure| self.failed(failure, plan.timeout))
        };
        once(Command::flush(namespace.id))?;

        let run = Run {
            machine: self.name,
            timer: self.timer,
            plan,
            cpu: self.cpu,
            company: Company::Device,
            passes_per_check: 1,
            delivery: Delivery::Drained,
            interrupted: self.interrupted,
            numbering: Numbering::EndingWith(self.number),
        };
        let take = |limits: &Limits<'_>, first: u64, passes: u64| -> Result<Stamps, MachineError> {
            self.check_requested()?;
            let failure = Cell::new(None);
            let mut nth = 0;
            let mut controller = controller.borrow_mut();
            // All iterations are one stream, as in the simulation: the queue would run empty between them.
            let end = passes * count;
            let stamps = timed(limits, first, 1, |_| {
                let next = || {
                    let command = (nth < end).then(|| reads.get(index(nth) as usize).copied()).flatten();
                    nth += 1;
                    command
                };
                let done = self.reads(&mut controller, asked.depth, plan.timeout, next);
                done.map_err(|why| {
                    failure.set(Some(why));
                    Errno::IO
                })
            });
            self.drive.registers.check().map_err(|error| self.device_error(error.to_string()))?;
            failure.get().map_or(Ok(stamps), |failure| Err(self.failed(failure, plan.timeout)))
        };
        run.take(samples, "reading from the drive", || {}, take)?;

        let transfers = plan.passes * count;
        let last: BTreeSet<u64> = (transfers.saturating_sub(count)..transfers).map(index).collect();
        let scratch = layout.lists + places.places(bytes) * layout.list;
        let to = pointers(window, layout.scratch, bytes, scratch);
        let (mut meant, mut found) = (vec![0; bytes as usize], vec![0; bytes as usize]);
        let mut confirmed_bytes = 0;
        for place in &last {
            for word in (layout.scratch..layout.scratch + bytes).step_by(8) {
                window.store_word(word, POISON);
            }
            once(read(*place, to))?;
            window.read(layout.scratch, &mut meant);
            window.read(places.offset + place * places.step(bytes), &mut found);
            confirmed_bytes += pattern::equal_bytes(&found, &meant);
        }
        controller.into_inner().disable().map_err(failed)?;
        Ok(Confirmed { claimed_bytes: bytes * last.len() as u64, confirmed_bytes })
    }

    /// Runs commands, until the plan's timeout or an interruption.
    #[inline]
    fn reads(
        &self,
        controller: &mut Controller<'_, Registers, HostWindow<'_>>,
        depth: u32,
        timeout: Ticks,
        next: impl FnMut() -> Option<Command>,
    ) -> Result<(), Failure> {
        let end = stamp_before().saturating_add(self.timer.cycles(timeout));
        let deadline = Deadline { interrupted: self.interrupted, end };
        let mut stuck = None;
        let mut check = || {
            deadline.check(stamp_before()).map_err(|why| {
                stuck = Some(why);
                NvmeError::Ended
            })
        };
        let done = controller.run(depth, next, &mut check);
        done.map_err(|error| (error, stuck, controller.waiting_for()))
    }

    /// Fails if the kernel requests the device back: it is being removed, or its driver unbound.
    fn check_requested(&self) -> Result<(), MachineError> {
        let is_requested = self.requested.is_some_and(|request| request.take().unwrap_or(false));
        if is_requested { Err(self.device_error(self.container.device().requested().to_string())) } else { Ok(()) }
    }

    /// Fails if bytes of the window beside the transfers have changed.
    fn beside(&self, plan: &Plan, transfer: &Transfer, pages: &HostPages) -> Result<(), MachineError> {
        let Transfer { bytes, count, window, .. } = *transfer;
        let longest = plan.passes.max(plan.warmup_passes) * count;
        let distinct = if window.pattern.is_random() { longest } else { longest.min(window.places(bytes)) };
        let touched: BTreeSet<u64> = (0..distinct).map(|nth| window.place(nth, bytes)).collect();
        let mut from = 0;
        for at in touched.into_iter().chain([Layout::of(transfer).window_end]) {
            if let Some(changed) = changed(pages, from, at, self.seed()) {
                return Err(self.device_error(format!(
                    "{}: the drive has changed the byte at offset {changed} of the host memory, which is outside of every read: its \
                     firmware is at fault",
                    self.name
                )));
            }
            from = at + bytes;
        }
        Ok(())
    }

    fn failed(&self, (error, stuck, command): Failure, timeout: Ticks) -> MachineError {
        let machine = self.name.to_owned();
        match (error, stuck) {
            (NvmeError::Ended, Some(Stuck::Interrupted)) => MachineError::Interrupted { machine },
            (NvmeError::Ended, _) => {
                let waiting_for = format!("the completion of the command {command}");
                MachineError::Timeout { machine, after: timeout, waiting_for }
            }
            (NvmeError::Os(error), _) => self.os("accessing a register of the drive", error.into()),
            (error, _) => self.device_error(format!("{}: {error}", self.name)),
        }
    }

    fn device_error(&self, what: String) -> MachineError {
        MachineError::Device { machine: self.name.to_owned(), what }
    }

    fn os(&self, doing: &'static str, source: std::io::Error) -> MachineError {
        MachineError::Os { machine: self.name.to_owned(), doing, source }
    }
}

/// The bytes of the place for verification before a read.
const POISON: u64 = 0xdead_10cc_dead_10cc;
