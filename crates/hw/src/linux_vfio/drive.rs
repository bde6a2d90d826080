//! An NVMe drive behind VFIO: its identification, and runs of plans with its reads and writes.

use super::device::BusMaster;
use super::drive_cmb::{CmbWindow, DriveCmb};
use super::facts::mapped_of;
use super::faults::FaultLog;
use super::host_window::HostWindow;
use super::own_queue::{Layout, OwnQueue};
use super::peer::Peer;
use super::registers::Registers;
use super::transfers::{REPORT, map_peer, not_kept};
use super::{AddressSpace, VfioDevice, VfioError, VfioInterrupt, VfioVectors};
use crate::drive_options::{CompletionBy, DataPlace, DataPointers, Destructive, DriveOptions, QueuePlace};
use crate::host_pages::HostPages;
use crate::linux_sysfs::Device;
use crate::nvme::{
    CmbUses, Command, Controller, ControllerData, DataAt, DataMemory as _, DriveLimits, DrivePlan, DriveQueue as _,
    DriveRun, Interrupt, IoInterrupts, IoQueues, MOST_PAIRS, Namespace, NvmeError, PAGE, Places, Queues, Spot,
    deadline, is_stopped, queue_bytes, registers_end,
};
use lanemark_machine::{Confirmed, DmaFacts, MachineError, Samples, Verb};
use lanemark_units::Ticks;
use rustix::io::Errno;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use vfio_bindings::bindings::vfio::{VFIO_PCI_MSI_IRQ_INDEX, VFIO_PCI_MSIX_IRQ_INDEX};

/// BAR of the registers. Source: NVM Express over PCIe Transport Specification 1.0, 3.1.
pub(super) const BAR: u8 = 0;
/// Address bits of a controller: ASQ, ACQ and PRP entries have 64.
const ADDRESS_BITS: u32 = 64;

/// A drive that was identified. Its controller is enabled only while it is identified and while a plan runs.
#[derive(Debug)]
pub(super) struct Drive {
    registers: Registers,
    /// Its memory buffer, if it is to hold queues or data.
    cmb: Option<DriveCmb>,
    options: DriveOptions,
    /// The kind of its interrupts; `None` if it has neither MSI-X nor MSI.
    vectors: Option<Vectors>,
    data: ControllerData,
    namespace: Option<Namespace>,
    depth: u32,
    /// I/O queue pairs that it grants, and whose doorbells are mapped.
    pairs: u32,
    mapped_bytes: u64,
    page_bytes: Option<u64>,
    pages: Option<HostPages>,
    /// Whether the controller could not be stopped after an error, so that its DMA may still be going on.
    is_running: bool,
}

/// The interrupts of a device of one kind: its VFIO index, its name, and the number of vectors.
#[derive(Clone, Copy, Debug)]
struct Vectors {
    index: u32,
    name: &'static str,
    count: u32,
}

impl Vectors {
    /// MSI-X, or MSI if the device has no MSI-X vectors; `None` if it has neither.
    fn of(device: &VfioDevice) -> Result<Option<Vectors>, String> {
        for (index, name) in [(VFIO_PCI_MSIX_IRQ_INDEX, "MSI-X"), (VFIO_PCI_MSI_IRQ_INDEX, "MSI")] {
            let count = device.vectors(index).map_err(|error| format!("counting its {name} vectors: {error}"))?;
            if count > 0 {
                return Ok(Some(Vectors { index, name, count }));
            }
        }
        Ok(None)
    }
}

/// Least time limit for filling or copying the controller memory buffer: 64 MiB by loads of 8 B take some ten seconds.
const LONGEST: Ticks = Ticks::whole_ns(60_000_000_000);

/// Time after which a wait for an interrupt looks at the flags, in ms.
const LOOK_MS: u32 = 100;

impl Interrupt for VfioVectors {
    fn wait(&self) -> Result<u64, Errno> {
        match VfioVectors::wait(self, LOOK_MS) {
            // A signal ends the wait, and the caller looks at the flag.
            Err(Errno::INTR) => Ok(0),
            found => found,
        }
    }
}

/// The parts of a machine that a run uses.
pub(super) struct DriveBench<'a> {
    pub(super) work: DriveRun<'a>,
    pub(super) address_space: &'a Arc<AddressSpace>,
    pub(super) drive: &'a mut Drive,
    /// Memory of another card.
    pub(super) peer: Option<&'a Peer>,
    /// The kernel's request to give the device back.
    pub(super) requested: Option<&'a VfioInterrupt>,
    /// The kernel's log.
    pub(super) log: &'a Path,
}

impl Drive {
    /// Opens and identifies the drive; bus mastering is on meanwhile.
    ///
    /// # Errors
    /// [`VfioError`] of the BAR, of memory, and of the controller; [`VfioError::Interrupted`] at the flag.
    pub(super) fn open(
        address_space: &Arc<AddressSpace>,
        sysfs: &Device,
        mapped: u64,
        (options, interrupted): (DriveOptions, Option<&AtomicBool>),
    ) -> Result<Drive, VfioError> {
        let device = address_space.device();
        let unsupported = |because: String| VfioError::Unsupported { device: device.address(), because };
        let (registers, most_pairs) = registers(device, sysfs).map_err(unsupported)?;
        let uses =
            CmbUses { queues: options.queues() == QueuePlace::Cmb, data: options.data_place() == DataPlace::Cmb };
        let cmb = options.uses_cmb().then(|| DriveCmb::open(&registers, device, sysfs, uses));
        let cmb = cmb.transpose().map_err(unsupported)?;
        if cmb.as_ref().is_some_and(|cmb| uses.data && cmb.data_bytes() == 0) {
            let because = NvmeError::no_option(
                "queues take the whole controller memory buffer, and leave no room for data",
                "--nvme-data-place",
            );
            return Err(unsupported(because.to_string()));
        }
        let vectors = Vectors::of(device).map_err(unsupported)?;
        if vectors.is_none() && options.completions() == CompletionBy::Interrupt {
            let because = NvmeError::no_option("the drive has neither MSI-X nor MSI vectors", "--nvme-completions");
            return Err(unsupported(because.to_string()));
        }
        let mut pages = address_space
            .allocate(mapped + mapped / 8)
            .map_err(|error| unsupported(format!("no memory for DMA can be allocated: {error}")))?;
        // Data in the buffer have no pages in an IOTLB.
        let in_cmb = cmb.as_ref().filter(|_| uses.data).map(|cmb| (cmb.data_bytes(), None));
        let (mapped_bytes, page_bytes) =
            in_cmb.unwrap_or((mapped.min(mapped_of(pages.len(), mapped / 8)), Some(pages.page_bytes())));
        let identified = {
            let own = cmb.as_ref().map(DriveCmb::region);
            let window = HostWindow::map(address_space, &mut pages, queue_bytes(1), ADDRESS_BITS, own)
                .map_err(|error| unsupported(format!("mapping memory for the drive: {error}")))?;
            let master = BusMaster::enable(Arc::clone(device));
            let _master = master.map_err(|error| unsupported(format!("enabling bus mastering: {error}")))?;
            let how = (options.namespace, cmb.as_ref());
            let identified = identified(&registers, &window, how, &mut flag(interrupted));
            if identified.is_err() && device.can_reset() {
                // Its DMA must end before the memory is unmapped and reused.
                let _ = device.reset();
            }
            identified
        };
        let Identified { data, namespace, depth, granted } = identified.map_err(|error| match error {
            NvmeError::Interrupted => VfioError::Interrupted,
            error => unsupported(error.to_string()),
        })?;
        if !data.has_sgl && options.data() != DataPointers::Prp {
            let because = NvmeError::no_option("the drive takes no SGLs (SGLS of Identify Controller)", "--nvme-data");
            return Err(unsupported(because.to_string()));
        }
        if let Some(named) = options.destructive.filter(|named| namespace.is_none_or(|of| of.id != named.namespace)) {
            let other = namespace.map_or_else(
                || "the drive has no active namespace".to_owned(),
                |of| {
                    format!(
                        "the namespace in use is {}: to use another one, add --namespace {}",
                        of.id, named.namespace
                    )
                },
            );
            return Err(unsupported(format!("--destructive {}: {other}", named.namespace)));
        }
        let pages = Some(pages);
        Ok(Drive {
            registers,
            cmb,
            options,
            vectors,
            data,
            namespace,
            depth,
            pairs: granted.min(most_pairs),
            mapped_bytes,
            page_bytes,
            pages,
            is_running: false,
        })
    }

    /// The part of the medium that may be overwritten.
    pub(super) const fn destructive(&self) -> Option<Destructive> {
        self.options.destructive
    }

    /// Place of the data of commands.
    pub(super) fn data_place(&self) -> DataPlace {
        self.options.data_place()
    }

    /// The namespace in use.
    pub(super) const fn namespace(&self) -> Option<Namespace> {
        self.namespace
    }

    /// Limits of plans; `None` without a namespace.
    pub(super) fn limits(&self, cores: u32) -> Option<DriveLimits> {
        let most_bytes = DriveLimits::most_bytes(self.data.most_bytes);
        let (depth, mapped_bytes) = (self.depth, self.mapped_bytes);
        let cmb = self.cmb.as_ref().and_then(DriveCmb::queues);
        let data_in_cmb = self.cmb.as_ref().and_then(DriveCmb::data);
        let (interrupts, by_interrupt) =
            (self.vectors.is_some(), self.options.completions() == CompletionBy::Interrupt);
        self.namespace.map(|namespace| DriveLimits {
            namespace,
            most_bytes,
            depth,
            queues: Queues::Own,
            pairs: self.pairs,
            cmb,
            data_in_cmb,
            peer: None,
            interrupts,
            by_interrupt,
            expendable_bytes: self.options.destructive.map_or(0, |named| named.bytes),
            mapped_bytes,
            cores,
        })
    }

    /// Facts for questions; `None` without a namespace.
    pub(super) fn facts(&self) -> Option<DmaFacts> {
        let pages = (self.mapped_bytes, self.page_bytes);
        self.namespace.map(|_| facts(pages, self.depth, self.cmb.as_ref().and_then(DriveCmb::queues).is_some()))
    }

    /// Model, namespace, and how commands, data and completions are exchanged, in words.
    pub(super) fn summary(&self) -> String {
        let namespace = self.namespace.map_or_else(
            || "no active namespace, so it answers no question about DMA".to_owned(),
            |namespace| namespace.to_string(),
        );
        let queues = self.cmb.as_ref().map_or_else(|| "I/O queues in host memory".to_owned(), DriveCmb::summary);
        let pairs = if self.pairs == 1 {
            "1 I/O queue pair".to_owned()
        } else {
            format!("up to {} I/O queue pairs", self.pairs)
        };
        let completions = match (self.options.completions(), self.vectors) {
            (CompletionBy::Interrupt, Some(Vectors { name, count, .. })) => {
                let shared = match count {
                    _ if count >= self.pairs => String::new(),
                    1 => ", 1 vector for all queue pairs".to_owned(),
                    _ => format!(", {count} vectors for all queue pairs"),
                };
                format!("completions by {name} interrupt{shared}")
            }
            _ => "completions polled".to_owned(),
        };
        format!("{}, {namespace}; {pairs}, {queues}, {}, {completions}", self.data, self.options.data().in_words())
    }
}

/// Facts of a drive with this depth of its queues, which may be in a controller memory buffer.
pub(super) const fn facts((mapped_bytes, page_bytes): (u64, Option<u64>), depth: u32, has_cmb: bool) -> DmaFacts {
    let engine = DmaFacts::of_register_engine(mapped_bytes, PAGE);
    DmaFacts { tags: depth, has_flag: true, fetches_only: !has_cmb, page_bytes, ..engine }
}

/// Maps the registers up to the last doorbell that can be used; also returns the number of I/O queue pairs with doorbells.
fn registers(device: &Arc<VfioDevice>, sysfs: &Device) -> Result<(Registers, u32), String> {
    /// End of the registers without doorbells.
    const CONTROLLER: u64 = 0x40;
    let bars = sysfs.bars().map_err(|error| error.to_string())?;
    let len = bars.iter().find(|bar| bar.number == BAR).map_or(0, |bar| bar.len);
    let (pairs, end) = {
        let first = Registers::open(device, sysfs, BAR, 0, CONTROLLER).map_err(|error| error.to_string())?;
        registers_end(&first, MOST_PAIRS, len).map_err(|error| NvmeError::Os(error).to_string())?
    };
    let registers = Registers::open(device, sysfs, BAR, 0, end).map_err(|error| error.to_string())?;
    Ok((registers, pairs))
}

/// Answers of a drive to Identify and to Set Features, and the depth of its queues.
struct Identified {
    data: ControllerData,
    namespace: Option<Namespace>,
    depth: u32,
    /// I/O queue pairs that it grants.
    granted: u32,
}

/// Enables, identifies and disables the controller.
fn identified(
    registers: &Registers,
    memory: &HostWindow<'_>,
    (wanted, cmb): (Option<u32>, Option<&DriveCmb>),
    check: &mut impl FnMut() -> Result<(), NvmeError>,
) -> Result<Identified, NvmeError> {
    let mut controller = Controller::enable(registers, memory, 0, cmb.map(DriveCmb::mapped), check)?;
    let (data, namespace) = controller.identify(wanted, check)?;
    let in_cmb = cmb.and_then(DriveCmb::queues).is_some();
    let queues = if in_cmb { IoQueues::SubmissionsInCmb } else { IoQueues::Host };
    let granted = controller.grant(MOST_PAIRS, check)?;
    let depth = controller.create_queues(queues, 1, None, check)?;
    controller.disable()?;
    Ok(Identified { data, namespace, depth, granted })
}

/// A check that ends a wait at the flag.
fn flag(interrupted: Option<&AtomicBool>) -> impl FnMut() -> Result<(), NvmeError> {
    let is_set = move || interrupted.is_some_and(|flag| flag.load(Ordering::Relaxed));
    move || if is_set() { Err(NvmeError::Interrupted) } else { Ok(()) }
}

impl DriveBench<'_> {
    /// Runs a plan and verifies its bytes.
    pub(super) fn run(self, samples: &mut Samples) -> Result<(), MachineError> {
        self.check_stopped()?;
        let layout = self.layout();
        let log = FaultLog::from_now(self.log);
        let mut pages = match self.drive.pages.take().filter(|pages| pages.len() >= layout.len) {
            Some(pages) => pages,
            None => self.allocated(layout.len)?,
        };
        let is_in_cmb = self.work.asked.data == DataAt::Cmb;
        if !is_in_cmb {
            self.work.fill(&mut pages);
        }
        let peer = self.peer.filter(|_| self.work.asked.data == DataAt::Peer);
        peer.map_or(Ok(()), |peer| self.fill_peer(peer))?;
        let device = Arc::clone(self.address_space.device());
        let confirmed = {
            let mut window = self.mapped(&mut pages, layout)?;
            let iova =
                peer.map_or(Ok(0), |peer| map_peer(peer, &mut window)).map_err(|error| self.device_error(error))?;
            let done = self.measured(layout, (&window, peer, iova), samples);
            if done.is_err() {
                // A read may still be going on: it must end before its memory is unmapped and reused.
                let is_reset = device.can_reset() && device.reset().is_ok();
                self.drive.is_running = !is_reset && !is_stopped(&self.drive.registers);
            }
            done
        };
        let beside = || match peer {
            _ if is_in_cmb => Ok(()),
            Some(peer) => self.check_beside(peer),
            None => self.work.check_beside(&pages),
        };
        let confirmed = confirmed.and_then(|confirmed| beside().map(|()| confirmed));
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
                self.work.name
            )));
        }
        let gone = || device.check().and_then(|()| peer.map_or(Ok(()), Peer::check_device));
        samples.confirmed = Some(confirmed.map_err(|error| match (error, gone()) {
            (error @ (MachineError::Interrupted { .. } | MachineError::Device { .. }), _) | (error, Ok(())) => error,
            (_, Err(gone)) => self.device_error(gone.to_string()),
        })?);
        Ok(())
    }

    /// Reads logical blocks from the byte `from` of the namespace on to `to`, by the commands of a plan, and times nothing.
    pub(super) fn read(self, from: u64, to: &mut [u8]) -> Result<(), MachineError> {
        self.check_stopped()?;
        let DriveRun { plan, asked, namespace, name, .. } = self.work;
        let (transfer, layout) = (asked.transfer, self.layout());
        let (bytes, block) = (transfer.bytes, namespace.block_bytes);
        if !from.is_multiple_of(block) || !(to.len() as u64).is_multiple_of(bytes) {
            let what = format!("{name}: {} B at {from} are no whole reads of {bytes} B at a block", to.len());
            return Err(self.device_error(what));
        }
        let mut pages = self.allocated(layout.len)?;
        let window = self.mapped(&mut pages, layout)?;
        let master = BusMaster::enable(Arc::clone(self.address_space.device()));
        let _master = master.map_err(|error| self.os("enabling bus mastering", error))?;
        let interrupts = self.interrupts()?;
        let mut queue = self.queue(layout, &window, interrupts.as_ref())?;
        let blocks = (bytes / block) as u32;
        let spot = |nth: u64| Spot { place: asked.data, at: nth * bytes, list: nth };
        let read = |nth: u64| queue.read((from + nth * bytes) / block, blocks, spot(nth), bytes);
        let commands: Vec<Command> = (0..transfer.count).map(read).collect();
        let mut commands = commands.into_iter();
        let done = self.work.commands(&mut queue, asked.depth, plan.timeout, |_| commands.next());
        done.map_err(|failure| self.work.failed(failure, plan.timeout))?;
        match self.data_in_cmb() {
            Some(cmb) => cmb.read(0, to).map_err(|error| self.failed(error.into()))?,
            None => window.read(0, to),
        }
        self.disabled(queue)
    }

    /// The window for data in the controller memory buffer, behind the queues; `None` if they are in host memory.
    fn data_in_cmb(&self) -> Option<CmbWindow<'_>> {
        let start = self.work.asked.queue_bytes_in_cmb();
        let cmb = self.drive.cmb.as_ref().filter(|_| self.work.asked.data == DataAt::Cmb);
        cmb.map(|cmb| cmb.window(start))
    }

    fn failed(&self, error: NvmeError) -> MachineError {
        self.work.failed((error, ""), self.work.plan.timeout)
    }

    pub(super) fn layout(&self) -> Layout {
        Layout::of(&self.work.asked, self.drive.options.data())
    }

    /// Enables the interrupts of the run, if it has any: a vector for each queue pair, or as many as the drive has.
    fn interrupts(&self) -> Result<Option<VfioVectors>, MachineError> {
        let asked = self.work.asked;
        let Some(Vectors { index, count, .. }) = self.drive.vectors.filter(|_| asked.by_interrupt) else {
            return Ok(None);
        };
        let enabled = VfioVectors::enable(Arc::clone(self.address_space.device()), index, count.min(asked.pairs));
        enabled.map(Some).map_err(|error| self.os("enabling interrupts of the drive", error))
    }

    /// Maps the memory of a run for the drive.
    pub(super) fn mapped<'a>(&self, pages: &'a mut HostPages, layout: Layout) -> Result<HostWindow<'a>, MachineError> {
        let own = self.drive.cmb.as_ref().map(DriveCmb::region);
        HostWindow::map(self.address_space, pages, layout.len, ADDRESS_BITS, own)
            .map_err(|error| self.os("mapping memory for DMA", std::io::Error::other(error)))
    }

    /// Enables the controller, and creates its queues.
    pub(super) fn queue<'a>(
        &'a self,
        layout: Layout,
        window: &'a HostWindow<'a>,
        interrupts: Option<&'a VfioVectors>,
    ) -> Result<OwnQueue<'a>, MachineError> {
        let failed = |error: NvmeError| self.failed(error);
        let registers = &self.drive.registers;
        let mut check = flag(Some(self.work.interrupted));
        let cmb = self.drive.cmb.as_ref().map(DriveCmb::mapped);
        let mut controller = Controller::enable(registers, window, layout.queues, cmb, &mut check).map_err(failed)?;
        if self.work.asked.overwritten() > 0 {
            // Another controller may have changed the namespace: its blocks would be others than those that were named.
            let (_, now) = controller.identify(Some(self.work.namespace.id), &mut check).map_err(failed)?;
            if now != Some(self.work.namespace) {
                return Err(self.device_error(format!(
                    "{}: its namespace has changed since the drive was opened, so nothing is written to it: start again",
                    self.work.name
                )));
            }
        }
        let interrupts = interrupts.map(|event| IoInterrupts { vectors: event.count(), event });
        let DrivePlan { queues, pairs, .. } = self.work.asked;
        controller.create_queues(queues, pairs, interrupts, &mut check).map_err(failed)?;
        Ok(OwnQueue {
            controller,
            window,
            registers,
            namespace: self.work.namespace.id,
            layout,
            data: self.drive.options.data(),
            outside: self.data_in_cmb().map_or(0, |cmb| cmb.address),
            is_destructive: self.drive.options.destructive.is_some(),
            name: self.work.name,
            device: self.address_space.device(),
            requested: self.requested,
            peer: self.peer,
        })
    }

    fn disabled(&self, queue: OwnQueue<'_>) -> Result<(), MachineError> {
        queue.controller.disable().map_err(|error| self.failed(error))
    }

    /// Enables the controller, samples, and compares the bytes. With `peer`, data are in its BAR, whose offset 0 is at `iova`.
    fn measured(
        &self,
        layout: Layout,
        (window, peer, iova): (&HostWindow<'_>, Option<&Peer>, u64),
        samples: &mut Samples,
    ) -> Result<Confirmed, MachineError> {
        let master = BusMaster::enable(Arc::clone(self.address_space.device()));
        let _master = master.map_err(|error| self.os("enabling bus mastering", error))?;
        let interrupts = self.interrupts()?;
        let mut queue = self.queue(layout, window, interrupts.as_ref())?;
        self.work.once(&mut queue, Command::flush(self.work.namespace.id))?;
        let confirmed = match (self.data_in_cmb(), peer) {
            (Some(cmb), _) => self.measured_in_cmb(&mut queue, window, cmb, samples)?,
            (None, Some(peer)) => {
                queue.outside = iova;
                self.work.measured(&mut queue, (window.memory(), peer), samples)?
            }
            (None, None) => self.work.measured(&mut queue, (window.memory(), window.memory()), samples)?,
        };
        self.disabled(queue)?;
        Ok(confirmed)
    }

    /// Samples with data in the controller memory buffer, which is filled by stores and verified by loads.
    fn measured_in_cmb(
        &self,
        queue: &mut OwnQueue<'_>,
        window: &HostWindow<'_>,
        cmb: CmbWindow<'_>,
        samples: &mut Samples,
    ) -> Result<Confirmed, MachineError> {
        let len = Places::of(&self.work.asked).window_end;
        let mut copy = HostPages::new(len).map_err(|error| self.os("allocating memory", error.into()))?;
        let longest = self.work.plan.timeout.max(LONGEST);
        let mut check = deadline(self.work.timer, longest, self.work.interrupted);
        self.work.fill(&mut copy);
        cmb.fill(&copy, len, &mut check).map_err(|error| self.failed(error))?;
        let confirmed = self.work.measured(queue, (window.memory(), &cmb), samples)?;
        let mut check = deadline(self.work.timer, longest, self.work.interrupted);
        cmb.copy_to(&copy, len, &mut check).map_err(|error| self.failed(error))?;
        // The bytes of a drive that is gone are no fault of its firmware.
        queue.check()?;
        self.work.check_beside(&copy)?;
        Ok(confirmed)
    }

    /// Fills the memory of another card.
    fn fill_peer(&self, peer: &Peer) -> Result<(), MachineError> {
        peer.check_device().map_err(|error| self.device_error(error.to_string()))?;
        let filled = peer.fill(self.work.seed(), self.work.interrupted);
        filled.map_err(|error| self.device_error(error.to_string()))?;
        flag(Some(self.work.interrupted))().map_err(|error| self.failed(error))
    }

    /// Fails if the memory of another card has other bytes than it was filled with, outside all transfers that write to it.
    fn check_beside(&self, peer: &Peer) -> Result<(), MachineError> {
        let found = peer.bytes(self.work.interrupted).map_err(|error| self.device_error(error.to_string()))?;
        flag(Some(self.work.interrupted))().map_err(|error| self.failed(error))?;
        let (plan, transfer) = (self.work.plan, self.work.asked.transfer);
        let Some(at) = peer.changed_beside(plan, &transfer, found, self.work.seed()) else { return Ok(()) };
        let (name, bar, other) = (self.work.name, peer.range().bar, peer.device().address());
        Err(self.device_error(match transfer.verb {
            Verb::Load => not_kept(name, at, bar, other),
            Verb::Store => format!(
                "{name}: the byte at offset {at:#x} of BAR{bar} of {other} has changed, outside all transfers: the drive's firmware is \
                 at fault, or {other} writes to its own memory"
            ),
        }))
    }

    /// Fails if the controller was not stopped after an earlier run.
    pub(super) fn check_stopped(&self) -> Result<(), MachineError> {
        if !self.drive.is_running {
            return Ok(());
        }
        Err(self.device_error(format!(
            "{}: the controller could not be stopped after an error, and cannot be reset, so it may still write to memory: \
             power-cycle the drive",
            self.work.name
        )))
    }

    pub(super) fn device_error(&self, what: String) -> MachineError {
        MachineError::Device { machine: self.work.name.to_owned(), what }
    }

    /// Memory of at least `len` bytes.
    pub(super) fn allocated(&self, len: u64) -> Result<HostPages, MachineError> {
        self.address_space.allocate_whole(len).map_err(|error| self.os("allocating memory for DMA", error))
    }

    pub(super) fn os(&self, doing: &'static str, source: std::io::Error) -> MachineError {
        MachineError::Os { machine: self.work.name.to_owned(), doing, source }
    }
}
