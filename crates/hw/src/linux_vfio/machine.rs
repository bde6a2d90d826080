//! A device behind VFIO as a machine.

use super::bars::DeviceBars;
use super::cmb_space::CmbSpace;
use super::dma_plan::{self, DmaPlan, EngineKind};
use super::drive::{self, Drive, DriveBench};
use super::engine::EngineDriver;
use super::facts::{MAPPED, facts, mapped_of, pages, with_peer};
use super::host_window::HostWindow;
use super::peer::Peer;
use super::transfers::Bench;
use super::unmapped::UnmappedRead;
use super::{AddressSpace, Iommu, VfioError, VfioInterface, VfioInterrupt, VfioOptions};
use crate::drive_options::{DataPlace, Destructive, DriveOptions};
use crate::host_pages::HostPages;
use crate::linux_sysfs::{Address, Attachment, BarFiles, CardMachine, Mapping, System, locked};
use crate::map_unmap::{mapper_by, refused};
use crate::nvme::{DataAt, DriveLimits, DrivePlan, DriveRun, commands_of, whole};
use crate::x86::buffer::Buffer;
use crate::x86::cpu::Cpu;
use crate::x86::disturbance::Company;
use crate::x86::pin::allowed_cpus;
use crate::x86::refusal::Refusal;
use crate::x86::request::{Ability, Request, Timed};
use crate::x86::run::{Numbering, Run};
use crate::x86::sample::{Delivery, stamp_before};
use crate::x86::timer::Timer;
use lanemark_devices::DeviceFile;
use lanemark_dma::Space;
use lanemark_machine::{
    CoreWork, DmaFacts, Facts, Lane, Machine, MachineError, MapUnmap, Operation, Plan, Samples, Task, Unsupported, Work,
};
use lanemark_units::{HostVirt, Ticks, format_size};
use rustix::io::Errno;
use std::fmt::Write as _;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use vfio_bindings::bindings::vfio::VFIO_PCI_REQ_IRQ_INDEX;

/// Bytes of a page of the processor.
const PAGE: usize = 4096;

/// A device behind the real IOMMU, and memory of this process that is mapped for it.
///
/// - **Plans:** DMA mappings by the strategies of `lanemark-dma`, each map and unmap one ioctl. With named ranges, loads and
///   stores to its BARs, as [`CardMachine`]. With a device file, DMA by its engine: transfers one at a time, started by
///   registers or described by descriptors in host memory; an engine with descriptors also runs one in each
///   direction concurrently. An NVMe drive needs no device file: it makes DMA by Read commands of one namespace, the first
///   active one unless another is named, and by Write commands if `--destructive` names it, too. Opening resets the device, if it can be reset.
/// - **Checks:** before every run, the slot must have the same device with the same driver, and the kernel must not have
///   requested it back. Bus mastering is on while a run with DMA makes transfers, and host memory is mapped only meanwhile.
/// - **Times:** as for [`HostMemory`](crate::HostMemory). A mapping includes the pinning of the pages. A transfer begins
///   with the first store to a register of the engine, and ends when the core sees the register or the interrupt that shows
///   its end: it includes both, so it is an upper bound of the time of the DMA. That of a drive begins with the first store of
///   a command and ends when the core sees the completion; it includes the medium.
/// - **Timeout:** of each transfer by the device file, and of each sample by the plan.
/// - **Confirmed:** the bytes that DMA wrote in the last iteration, and those that it read in its last transfer. Other bytes
///   of the mapped memory must be unchanged. For mappings nothing; the kernel reports how much it unmapped, and a run fails
///   if that is not all.
/// - **Failures:** DMA that the IOMMU blocks is [`MachineError::Device`] with the kernel's report, if it can be read. After every
///   run, the Command register is read, also that of the other device: with memory decoding off at either, the figures are void, and the
///   error names that cause.
#[derive(Debug)]
pub struct VfioMachine {
    facts: Facts,
    cpu: Cpu,
    cpus: Vec<usize>,
    timer: Timer,
    space: Space,
    /// Named ranges of BARs.
    card: Option<CardMachine>,
    /// The controller memory buffer that has one of these ranges.
    cmb: Option<CmbSpace>,
    engine: Option<DmaEngine>,
    /// Memory of another device. Closed before the address space, as everything above.
    peer: Option<Peer>,
    address_space: Arc<AddressSpace>,
    /// The device as an NVMe drive, if it is one and no device file describes it.
    drive: Option<Drive>,
    /// Why an NVMe drive could not be identified.
    unidentified: Option<String>,
    /// The kernel's request to give the device back, if it can signal one.
    requested: Option<VfioInterrupt>,
    /// Only one process of Lanemark at a time has the device open.
    _lock: Arc<File>,
    /// The kernel's log.
    log: PathBuf,
    /// Memory to map, as long as the longest buffer so far.
    memory: Option<Buffer>,
    interrupted: Arc<AtomicBool>,
    runs: u64,
}

/// The engine of a device, and memory for it.
#[derive(Debug)]
struct DmaEngine {
    driver: EngineDriver,
    kind: EngineKind,
    pages: Option<HostPages>,
    mapped_bytes: u64,
    page_bytes: u64,
}

impl VfioMachine {
    /// Opens a device that is bound to `vfio-pci`. In an emulator, the time-stamp counter need not be invariant.
    ///
    /// # Errors
    /// [`VfioError`].
    pub fn open(system: &System, device: Address, options: &VfioOptions<'_>) -> Result<VfioMachine, VfioError> {
        let unsupported = |because: String| VfioError::Unsupported { device, because };
        // Everything that needs no device first: opening resets it.
        let cpu = Cpu::detected();
        if !cpu.has_invariant_tsc && !options.is_emulated {
            let because = "the time-stamp counter of this processor is not invariant, so nothing can be timed";
            return Err(unsupported(because.to_owned()));
        }
        let cpus = allowed_cpus().map_err(|error| unsupported(format!("no CPU affinity mask can be read: {error}")))?;
        let attachment = options.attachment(system, device)?;
        options.peer.map(|peer| Peer::check(system, peer)).transpose()?;
        // Before the device is reset: through sysfs, another process can access a device that is bound to `vfio-pci`.
        let lock = locked(&attachment.device).map_err(VfioError::Range)?;
        let by = VfioInterface::choose(system, device, options.interface, options.peer.is_some())?;
        let mut address_space = AddressSpace::open(system, device, by, options.pages)?;
        let peer = options.peer.map(|peer| Peer::open(system, &mut address_space, peer)).transpose()?;
        let address_space = Arc::new(address_space);
        let space = Iommu::space(&address_space, 32).map_err(|error| unsupported(error.to_string()))?;
        let timer = Timer::checked(cpu.tsc_hz);
        let opened = address_space.device();
        let engine =
            options.file.map(|file| DmaEngine::open(&address_space, &attachment, file, timer)).transpose()?.flatten();
        let is_drive = options.is_drive(system, device);
        let how = (options.drive, options.interrupted);
        let open_drive = || Drive::open(&address_space, &attachment.device, MAPPED, how);
        // A drive that cannot be identified still maps memory, and has BARs.
        let (drive, unidentified) = match is_drive.then(open_drive).transpose() {
            Ok(drive) => (drive, None),
            Err(VfioError::Interrupted) => return Err(VfioError::Interrupted),
            // An option that the drive or the system does not support is an error, and never ignored.
            Err(error)
                if options.drive.given().is_some()
                    || options.pages.is_some()
                    || options.peer.is_some()
                    || !by.is_translated() =>
            {
                return Err(error);
            }
            Err(error) => (None, Some(error.to_string())),
        };
        let cmb = CmbSpace::find(system, opened, &attachment.device, options.ranges)?;
        let has_ranges = !attachment.places.is_empty();
        let card = has_ranges.then(|| {
            let files: Arc<dyn BarFiles> = Arc::new(DeviceBars(Arc::clone(opened)));
            CardMachine::through(&files, attachment, options.is_emulated)
        });
        let card = card.transpose().map_err(|error| unsupported(error.to_string()))?;
        let mut facts = facts(&address_space, &cpu, cpus.len(), options.is_emulated);
        if let Some(card) = &card {
            let summary = format!("{}; {}", pages(&address_space), card.facts().summary);
            facts = Facts { tables: facts.tables, summary, ..card.facts().clone() };
        }
        if engine.as_ref().is_some_and(|engine| engine.driver.registers().is_called()) {
            facts.summary.push_str("; registers of the engine by system calls, because their pages cannot be mapped");
        }
        facts.dma = engine.as_ref().map(DmaEngine::facts).or_else(|| drive.as_ref()?.facts());
        if let Some(bytes) = facts.dma.and_then(|dma| dma.page_bytes) {
            let _ = write!(facts.summary, "; host memory in pages of {}", format_size(bytes));
        }
        if let Some(dma) = facts.dma.as_mut().filter(|_| !by.is_translated()) {
            // There is no IOTLB.
            dma.page_bytes = None;
        }
        if let Some(peer) = options.peer.filter(|_| facts.dma.is_some()) {
            with_peer(&mut facts, peer);
        }
        if let Some(because) = &unidentified {
            facts.dma = Some(drive::facts((MAPPED, Some(PAGE as u64)), 1, false));
            facts.summary = format!("NVMe drive that could not be identified ({because}); {}", facts.summary);
        }
        if let Some(drive) = &drive {
            facts.summary = format!("{}; {}", drive.summary(), facts.summary);
        }
        if let Some(of) = cmb.iter().chain(peer.as_ref().and_then(Peer::cmb)).next() {
            facts.summary = format!("{}; {of}", facts.summary);
        }
        let requested = VfioInterrupt::enable(Arc::clone(opened), VFIO_PCI_REQ_IRQ_INDEX, 0).ok();
        Ok(VfioMachine {
            facts,
            timer,
            cpu,
            cpus,
            space,
            card,
            cmb,
            engine,
            peer,
            drive,
            unidentified,
            requested,
            _lock: lock,
            log: system.path("dev/kmsg"),
            address_space,
            memory: None,
            interrupted: Arc::default(),
            runs: 0,
        })
    }

    /// Sets the flag that ends a run with [`MachineError::Interrupted`], between two samples or within a long one.
    #[must_use]
    pub fn interrupted_by(self, flag: Arc<AtomicBool>) -> VfioMachine {
        let card = self.card.map(|card| card.interrupted_by(Arc::clone(&flag)));
        VfioMachine { interrupted: flag, card, ..self }
    }

    /// Device and accessible ranges; `None` without ranges.
    #[must_use]
    pub fn attachment(&self) -> Option<&Attachment> {
        self.card.as_ref().map(CardMachine::attachment)
    }

    /// Mappings of the ranges.
    #[must_use]
    pub fn mappings(&self) -> &[Mapping] {
        self.card.as_ref().map_or(&[], CardMachine::mappings)
    }

    /// Whether DMA is reads of an NVMe drive.
    #[must_use]
    pub fn reads_a_drive(&self) -> bool {
        self.drive.as_ref().is_some_and(|drive| drive.facts().is_some())
    }

    /// The part of an NVMe drive that DMA reads of host memory overwrite; `None` if they are refused.
    #[must_use]
    pub fn overwrites(&self) -> Option<Destructive> {
        self.drive.as_ref().filter(|_| self.reads_a_drive())?.destructive()
    }

    /// Whether the data of its commands stay in the drive, in its controller memory buffer.
    #[must_use]
    pub fn keeps_data_in_drive(&self) -> bool {
        self.drive.as_ref().is_some_and(|drive| drive.data_place() == DataPlace::Cmb)
    }

    /// Reads logical blocks of the drive from the byte `from` of its namespace on to `bytes`, by commands of `command_bytes`, of
    /// which at most `depth` are outstanding on each of `pairs` I/O queue pairs.
    ///
    /// # Errors
    /// [`MachineError`] of a device without a namespace, of sizes that do not fit, and of the drive.
    pub fn read_drive(
        &mut self,
        from: u64,
        command_bytes: u64,
        (depth, pairs): (u32, u32),
        bytes: &mut [u8],
    ) -> Result<(), MachineError> {
        self.check_device()?;
        let plan = whole(command_bytes, bytes.len() as u64, depth, pairs);
        let asked = self.asked_of_drive(&plan)?;
        self.runs += 1;
        self.with_drive(&plan, asked, |bench| bench.read(from, bytes))
    }

    /// The reads of the drive that a plan asks for.
    fn asked_of_drive(&self, plan: &Plan) -> Result<DrivePlan, MachineError> {
        let asked = self.reads(plan).unwrap_or_else(|| Err(no_drive()));
        asked.map_err(|refusal| refusal.into_error(&self.facts))
    }

    /// Reads a block of the drive to memory that was unmapped just before, which the IOMMU must block.
    ///
    /// # Errors
    /// [`MachineError`] of a device without a namespace, of mappings, and of a read before that, to mapped memory.
    pub fn read_unmapped(&mut self) -> Result<UnmappedRead, MachineError> {
        if !self.address_space.interface().is_translated() {
            let because = "no IOMMU blocks it";
            return Err(Refusal::new("a read to memory that is not mapped", because).into_error(&self.facts));
        }
        self.check_device()?;
        let block = self.drive.as_ref().and_then(Drive::namespace).map_or(512, |namespace| namespace.block_bytes);
        let plan = whole(block, block, 1, 1);
        let asked = self.asked_of_drive(&plan)?;
        self.runs += 1;
        let mut found = None;
        self.with_drive(&plan, asked, |bench| {
            found = Some(bench.read_unmapped()?);
            Ok(())
        })?;
        found.ok_or_else(|| no_drive().into_error(&self.facts))
    }

    /// Limits of plans; an ioctl takes microseconds.
    fn ability(&self) -> Ability<'_> {
        Ability {
            facts: &self.facts,
            cpu: &self.cpu,
            timer: self.timer,
            no_other_type: "the memory that is mapped is WB",
            weight_per_check: 1 << 14,
            weight_per_pass: 1 << 24,
        }
    }

    /// The mapping that a plan asks for.
    fn request(&self, plan: &Plan) -> Result<(Request, MapUnmap), MachineError> {
        let other = || {
            let because = "over VFIO it maps memory for the device; name a --bar for loads and stores to it".to_owned();
            MachineError::from(Unsupported {
                what: "any other plan".to_owned(),
                machine: self.facts.name.clone(),
                because,
            })
        };
        // Its memory is for mappings only, so no other plan is within it or outside of it.
        if !VfioMachine::is_mapping(plan) {
            return Err(other());
        }
        if !self.address_space.interface().is_translated() {
            let because = "no IOMMU translates for it, so nothing is mapped";
            return Err(Refusal::new("mapping memory", because).into_error(&self.facts));
        }
        let ask = Request::of(plan, &self.ability()).map_err(|refusal| refusal.into_error(&self.facts))?;
        let Timed::MapUnmap(asked) = ask.work else { return Err(other()) };
        Ok((ask, asked))
    }

    /// The transfers that a plan asks for; `None` for other work, and without an engine.
    fn dma(&self, plan: &Plan) -> Option<Result<DmaPlan, Refusal>> {
        let engine = self.engine.as_ref()?;
        let limits = dma_plan::Limits {
            engine: engine.kind,
            mapped_bytes: engine.mapped_bytes,
            peer: self.peer.as_ref().map(Peer::range),
            cores: self.facts.cores,
        };
        dma_plan::of(plan, &limits)
    }

    /// The reads of a drive that a plan asks for; `None` for other work, and without a drive that has a namespace.
    fn reads(&self, plan: &Plan) -> Option<Result<DrivePlan, Refusal>> {
        if let Some(because) = &self.unidentified {
            let any = DriveLimits::unidentified(DriveOptions::default(), MAPPED, self.facts.cores);
            let refused = || Refusal::new("reads of the drive", format!("it could not be identified: {because}"));
            return commands_of(plan, &any).map(|asked| asked.and_then(|_| Err(refused())));
        }
        let limits = self.drive.as_ref()?.limits(self.facts.cores)?;
        commands_of(plan, &DriveLimits { peer: self.peer.as_ref().map(Peer::range), ..limits })
    }

    /// Whether a plan maps memory.
    fn is_mapping(plan: &Plan) -> bool {
        let Work::Cores(CoreWork { lanes, .. }) = &plan.work else { return false };
        let is_one = |lane: &Lane| matches!(lane.task, Task::Operation(Operation::MapUnmap(_)));
        lanes.first().is_some_and(is_one)
    }

    /// Fails if the device is not the one that was opened, or if the kernel has requested it.
    fn check_device(&self) -> Result<(), MachineError> {
        let device = self.address_space.device();
        let checked = match self.requested.as_ref().map(VfioInterrupt::take) {
            Some(Ok(true)) => Err(device.requested()),
            _ => device.check(),
        };
        let checked = checked.and_then(|()| self.peer.as_ref().map_or(Ok(()), Peer::check_device));
        checked.map_err(|error| MachineError::Device { machine: self.facts.name.clone(), what: error.to_string() })
    }

    fn run_dma(&mut self, plan: &Plan, asked: &DmaPlan, samples: &mut Samples) -> Result<(), MachineError> {
        let VfioMachine { facts, cpus, timer, address_space, engine, peer, requested, log, interrupted, runs, .. } =
            self;
        let Some(engine) = engine else { return Ok(()) };
        let cmb = peer.as_ref().and_then(Peer::cmb);
        let _space = cmb.map(|cmb| cmb.enable(&facts.name)).transpose()?;
        let bench = Bench {
            name: &facts.name,
            address_space,
            driver: &mut engine.driver,
            peer: peer.as_ref(),
            pages: &mut engine.pages,
            cpu: cpus.get(asked.core as usize).copied().unwrap_or_default(),
            timer: *timer,
            interrupted,
            requested: requested.as_ref(),
            log,
            number: *runs,
        };
        bench.run(plan, asked, samples)
    }

    /// Runs `then` with the parts of this machine that commands of the drive need.
    fn with_drive(
        &mut self,
        plan: &Plan,
        asked: DrivePlan,
        then: impl FnOnce(DriveBench<'_>) -> Result<(), MachineError>,
    ) -> Result<(), MachineError> {
        let VfioMachine { facts, cpus, timer, address_space, drive, peer, requested, log, interrupted, runs, .. } =
            self;
        let cmb = peer.as_ref().and_then(Peer::cmb).filter(|_| asked.data == DataAt::Peer);
        let _space = cmb.map(|cmb| cmb.enable(&facts.name)).transpose()?;
        let Some((drive, namespace)) = drive.as_mut().and_then(|drive| drive.namespace().map(|of| (drive, of))) else {
            return Ok(());
        };
        let work = DriveRun {
            name: &facts.name,
            cpu: cpus.get(asked.core as usize).copied().unwrap_or_default(),
            timer: *timer,
            interrupted,
            number: *runs,
            plan,
            asked,
            namespace,
        };
        let (peer, requested) = (peer.as_ref(), requested.as_ref());
        then(DriveBench { work, address_space, drive, peer, requested, log })
    }

    /// Memory of `bytes` bytes, in whole pages.
    fn memory(&mut self, bytes: u64) -> Result<HostVirt, MachineError> {
        let len = (bytes as usize).next_multiple_of(PAGE);
        if self.memory.as_ref().is_none_or(|memory| memory.bytes().len() < len) {
            let os = |error: Errno| MachineError::Os {
                machine: self.facts.name.clone(),
                doing: "allocating the memory to map",
                source: error.into(),
            };
            self.memory = Some(Buffer::new(len).map_err(os)?);
        }
        Ok(HostVirt(self.memory.as_mut().map_or(0, |memory| memory.at(0).addr() as u64)))
    }
}

impl Machine for VfioMachine {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn supports(&self, plan: &Plan) -> Result<(), Unsupported> {
        if let Some(asked) = self.reads(plan) {
            return asked.map(drop).map_err(|refusal| refusal.into_unsupported(&self.facts));
        }
        match self.dma(plan) {
            Some(Ok(_)) => return Ok(()),
            Some(Err(refusal)) => return Err(refusal.into_unsupported(&self.facts)),
            None => {}
        }
        if let Some(card) = self.card.as_ref().filter(|_| !VfioMachine::is_mapping(plan)) {
            return card.supports(plan);
        }
        match self.request(plan) {
            Err(MachineError::Unsupported(refusal)) => Err(refusal),
            // Other errors are those of a run.
            _ => Ok(()),
        }
    }

    fn least_sample(&self, plan: &Plan) -> Ticks {
        self.card.as_ref().map_or(Ticks::ZERO, |card| card.least_sample(plan))
    }

    fn slowest_sample(&self, plan: &Plan) -> Ticks {
        let (Some(engine), Some(Ok(asked))) = (&self.engine, self.dma(plan)) else { return Ticks::ZERO };
        let transfers = asked.transfer.count.saturating_mul(plan.passes.max(plan.warmup_passes));
        let longest = Ticks::whole_ns(u64::from(engine.driver.limits().longest_ms) * 1_000_000);
        Ticks(longest.0.saturating_mul(transfers).min(1 << 61))
    }

    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        let done = self.run_unexplained(plan, samples);
        self.explained(done)
    }
}

impl VfioMachine {
    /// A run with its cause, if loads from BARs may have returned all ones.
    fn explained(&self, done: Result<(), MachineError>) -> Result<(), MachineError> {
        use MachineError::{Device, Interrupted, OutOfRange, Unsupported};
        if matches!(done, Err(Unsupported(_) | OutOfRange { .. } | Interrupted { .. })) {
            return done;
        }
        let of_peer = || self.peer.as_ref().map_or(Ok(()), |peer| peer.device().check_decoding());
        match (self.address_space.device().check_decoding().and_then(|()| of_peer()), done) {
            (Ok(()), done) => done,
            // The error of the run may say more, such as the offset of the access.
            (Err(VfioError::Gone { .. }), Err(gone @ Device { .. })) => Err(gone),
            (Err(cause), _) => Err(Device { machine: self.facts.name.clone(), what: cause.to_string() }),
        }
    }

    fn run_unexplained(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        if let Some(asked) = self.reads(plan) {
            let asked = asked.map_err(|refusal| refusal.into_error(&self.facts))?;
            samples.clear();
            let begun = stamp_before();
            self.check_device()?;
            self.runs += 1;
            self.with_drive(plan, asked, |bench| bench.run(samples))?;
            samples.spent = self.timer.ticks(stamp_before().saturating_sub(begun));
            return Ok(());
        }
        let dma = self.dma(plan).transpose().map_err(|refusal| refusal.into_error(&self.facts))?;
        if dma.is_none() && !VfioMachine::is_mapping(plan) && self.card.is_some() {
            self.check_device()?;
            let VfioMachine { card, cmb, facts, .. } = self;
            let _space = cmb.as_ref().map(|cmb| cmb.enable(&facts.name)).transpose()?;
            return card.as_mut().map_or(Ok(()), |card| card.run(plan, samples));
        }
        if let Some(asked) = dma {
            samples.clear();
            let begun = stamp_before();
            self.check_device()?;
            self.runs += 1;
            self.run_dma(plan, &asked, samples)?;
            samples.spent = self.timer.ticks(stamp_before().saturating_sub(begun));
            return Ok(());
        }
        self.run_mapping(plan, samples)
    }

    #[allow(unsafe_code)]
    fn run_mapping(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        let (ask, asked) = self.request(plan)?;
        self.check_device()?;
        samples.clear();
        let begun = stamp_before();
        self.runs += 1;
        let memory = self.memory(asked.bytes)?;
        let name = self.facts.name.clone();
        // SAFETY: the memory lives until the next run or the end of this machine, and the mapper until the end of this run.
        // The device does nothing: its bus mastering is off.
        let iommu = unsafe { Iommu::new(Arc::clone(&self.address_space)) };
        let mapper = mapper_by(asked, self.space.clone(), memory, iommu);
        let mut mapper = mapper.map_err(|error| refused(&name, error))?;
        let run = Run {
            machine: &name,
            timer: self.timer,
            plan,
            cpu: self.cpus[ask.core],
            company: Company::None,
            passes_per_check: ask.passes_per_check,
            delivery: Delivery::Drained,
            interrupted: &self.interrupted,
            numbering: Numbering::EndingWith(self.runs),
        };
        run.take(
            samples,
            "mapping memory for DMA",
            || {},
            |limits, first, passes| mapper.timed(limits, first, passes).map_err(|error| refused(&name, error)),
        )?;
        samples.confirmed = None;
        samples.spent = self.timer.ticks(stamp_before().saturating_sub(begun));
        Ok(())
    }
}

impl DmaEngine {
    /// Opens the engine of a device file; `None` if it describes none.
    fn open(
        address_space: &Arc<AddressSpace>,
        attachment: &Attachment,
        file: &DeviceFile,
        timer: Timer,
    ) -> Result<Option<DmaEngine>, VfioError> {
        let Some(kind) = EngineKind::of(file) else { return Ok(None) };
        let device = address_space.device().address();
        let driver = EngineDriver::open(address_space.device(), &attachment.device, file, timer)?;
        let Some(driver) = driver else { return Ok(None) };
        let limits = *driver.limits();
        let unsupported = |because: String| VfioError::Unsupported { device, because };
        let space =
            HostWindow::space(address_space, limits.address_bits).map_err(|error| unsupported(error.to_string()))?;
        // The first allocation decides on the page size.
        let more = limits.most_bytes.next_multiple_of(PAGE as u64) + driver.list_bytes();
        let pages = address_space.allocate(MAPPED + more);
        let pages = pages.map_err(|error| unsupported(format!("no memory for DMA can be allocated: {error}")))?;
        let reachable = space.free_pages().saturating_mul(space.page_bytes()).saturating_sub(driver.list_bytes()) / 2;
        let (there, page_bytes) = (mapped_of(pages.len(), more), pages.page_bytes());
        let mapped_bytes = MAPPED.min(reachable).min(there);
        Ok(Some(DmaEngine { driver, kind, pages: Some(pages), mapped_bytes, page_bytes }))
    }

    fn facts(&self) -> DmaFacts {
        self.kind.facts(self.mapped_bytes, self.page_bytes)
    }
}

/// The refusal of reads by a device without a namespace.
fn no_drive() -> Refusal {
    Refusal::new("a read of a drive", "it is no NVMe drive, or has no active namespace")
}
