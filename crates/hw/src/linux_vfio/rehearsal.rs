//! Dry run of plans on a device behind VFIO: what a run would do, without opening the device.

use super::bars::{RehearsedBars, call_width};
use super::container;
use super::dma_plan::{self, DmaPlan, EngineKind};
use super::drive;
use super::facts::{MAPPED, facts_without_device, with_peer};
use super::interface::CONTAINERS;
use super::iommufd::{self, device_file};
use super::nvme_class::is_nvme;
use super::peer::Peer;
use super::{PeerRange, VfioError, VfioInterface, VfioOptions};
use crate::drive_options::DriveOptions;
use crate::host_page_size::HostPageSize;
use crate::lines::Lines;
use crate::linux_sysfs::{Address, BarFiles, Notes, Rehearsal, System};
use crate::nvme::{DriveLimits, DrivePlan, commands_of};
use crate::pci_driver::PciFunction;
use crate::x86::cpu::Cpu;
use crate::x86::pin::allowed_cpus;
use crate::x86::refusal::Refusal;
use lanemark_devices::{DescriptorEngine, DeviceFile, DmaLimits, Engine, Interrupt, InterruptKind, Polled, StartedBy};
use lanemark_machine::{
    Completion, Facts, Machine, MachineError, Operation, Partner, Plan, Samples, Task, Transfer, Unsupported, Verb,
};
use lanemark_units::format_size;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Dry run of a [`VfioMachine`](super::VfioMachine): opens no device file, and records what each plan would do.
#[derive(Debug)]
pub struct VfioRehearsal {
    facts: Facts,
    ranges: Option<Rehearsal>,
    engine: Option<EngineKind>,
    peer: Option<PeerRange>,
    /// Limits of the reads, if the device is an NVMe drive.
    drive: Option<DriveLimits>,
    lines: VfioNotes,
    summary: Vec<String>,
}

/// Record of a dry run, one sentence for each plan; clones share it.
#[derive(Clone, Debug, Default)]
pub struct VfioNotes {
    touches: Option<Notes>,
    lines: Lines,
}

impl VfioNotes {
    /// Removes and returns the sentences since the last call.
    #[must_use]
    pub fn take(&self) -> Vec<String> {
        let lines = self.lines.take();
        let touches = self.touches.iter().flat_map(Notes::take).map(|touch| touch.to_string());
        lines.into_iter().chain(touches).collect()
    }
}

impl VfioRehearsal {
    /// Creates a dry run; `is_bound` tells whether the device will be bound to `vfio-pci` before the run.
    ///
    /// # Errors
    /// [`VfioError`] if the device does not exist, or does not match the options.
    pub fn new(
        system: &System,
        device: Address,
        options: &VfioOptions<'_>,
        is_bound: bool,
    ) -> Result<VfioRehearsal, VfioError> {
        let unsupported = |because: String| VfioError::Unsupported { device, because };
        let cpus = allowed_cpus().map_err(|error| unsupported(format!("no CPU affinity mask can be read: {error}")))?;
        let attachment = options.attachment_with(system, device, is_bound)?;
        let function = PciFunction::find(system, device).map_err(|error| unsupported(error.to_string()))?;
        let by = VfioInterface::choose(system, device, options.interface, options.peer.is_some())?;
        let [spaces, path] = files_of(by, system, &function);
        let mut facts = facts_without_device(device, &Cpu::detected(), cpus.len(), options.is_emulated);
        if !by.is_translated() {
            facts.tables.clear();
        }
        let engine = options.file.and_then(EngineKind::of);
        let has_ranges = !attachment.places.is_empty();
        let files: Arc<dyn BarFiles> = Arc::new(RehearsedBars { path: path.clone(), width: call_width(system) });
        let ranges = has_ranges.then(|| Rehearsal::through(&files, (attachment, Vec::new())));
        let ranges = ranges.transpose().map_err(|error| unsupported(error.to_string()))?;
        if let Some(ranges) = &ranges {
            facts = Facts { tables: facts.tables, ..ranges.facts().clone() };
        }
        let drive =
            options.is_drive(system, device).then(|| DriveLimits::unidentified(options.drive, MAPPED, facts.cores));
        let drive = drive.map(|limits| DriveLimits { peer: options.peer.map(|peer| peer.range), ..limits });
        let dma = engine.map(|engine| engine.facts(MAPPED, 4096));
        facts.dma =
            dma.or_else(|| drive.map(|limits| drive::facts((MAPPED, Some(4096)), limits.depth, limits.cmb.is_some())));
        if let Some(dma) = facts.dma.as_mut().filter(|_| !by.is_translated()) {
            dma.page_bytes = None;
        }
        let peer = options.peer.filter(|_| engine.is_some() || drive.is_some());
        if let Some(peer) = peer {
            Peer::check(system, peer)?;
            with_peer(&mut facts, peer);
        }
        let touches = ranges.as_ref().map(Rehearsal::notes);
        let lines = VfioNotes { touches, lines: Lines::default() };
        let mut summary = summary(by, [&spaces, &path], options.file, options.pages);
        summary.extend(peer.map(|PeerRange { device, range }| {
            format!(
                "opened in the same container: {device}, which is reset if it can be; BAR{} from {:#x} to {:#x}: overwritten, mapped as \
                 UC into this process, and into the IOMMU while a plan runs",
                range.bar,
                range.from,
                range.to - 1
            )
        }));
        let ranges_of = peer.map(|peer| peer.device).into_iter().chain(has_ranges.then_some(device));
        summary.extend(ranges_of.filter(|of| is_nvme(system, *of)).map(|of| {
            format!(
                "controller memory buffer of {of}: CAP loaded; since NVMe 1.4, CMBMSC stored, CMBLOC and CMBSZ loaded; if a range is in \
                 it, CMBMSC is stored for each run, then CMBSTS loaded"
            )
        }));
        summary.extend(
            drive
                .map(|limits| drive_summary(limits, options.drive, pages_in_words(by, options.pages)))
                .into_iter()
                .flatten(),
        );
        Ok(VfioRehearsal { facts, ranges, engine, peer, drive, lines, summary })
    }

    /// What a run does before and beside its plans, one sentence each.
    #[must_use]
    pub fn summary(&self) -> &[String] {
        &self.summary
    }

    /// The dry run of the ranges, if there are any.
    #[must_use]
    pub fn ranges(&self) -> Option<&Rehearsal> {
        self.ranges.as_ref()
    }

    /// Shared record of the plans.
    #[must_use]
    pub fn notes(&self) -> VfioNotes {
        self.lines.clone()
    }

    fn reads(&self, plan: &Plan) -> Option<Result<DrivePlan, Refusal>> {
        commands_of(plan, self.drive.as_ref()?)
    }

    fn dma(&self, plan: &Plan) -> Option<Result<DmaPlan, Refusal>> {
        let (engine, cores) = (self.engine?, self.facts.cores);
        let peer = self.peer.map(|peer| peer.range);
        dma_plan::of(plan, &dma_plan::Limits { engine, mapped_bytes: MAPPED, peer, cores })
    }

    /// The transfers of one direction of a plan, in words.
    fn in_words(&self, asked: &DmaPlan, transfer: &Transfer) -> String {
        let by = match asked.completion {
            Completion::Interrupt => "the end by interrupt",
            Completion::Flag | Completion::Register => "the end by polling",
        };
        let at_once = if asked.reads.is_some() { ", both directions concurrently" } else { "" };
        let (from, to) = (transfer.window.offset, transfer.window.offset + transfer.window.len.max(transfer.bytes));
        let direction = if transfer.verb == Verb::Load { "from" } else { "to" };
        let (of, at) = match (transfer.partner, self.peer) {
            (Partner::Peer { bar, .. }, Some(peer)) => (peer.device.to_string(), format!("BAR{bar}")),
            _ => ("host memory".to_owned(), "the mapped memory".to_owned()),
        };
        format!(
            "DMA {direction} {of}: {} x {} per iteration, at offsets {from:#x} to {:#x} of {at}; {by}{at_once}",
            transfer.count,
            format_size(transfer.bytes),
            to - 1
        )
    }
}

/// Registers, commands and memory of a drive, in words.
fn drive_summary(limits: DriveLimits, options: DriveOptions, pages: &str) -> Vec<String> {
    let namespace = options.namespace.map_or("the first active namespace".to_owned(), |id| format!("namespace {id}"));
    let place = "at the place in CMBLOC and CMBSZ (loaded), enabled by CMBMSC (stored; then CMBSTS is loaded)";
    let queues = match limits.cmb {
        None => "I/O queues in host memory".to_owned(),
        Some(_) => format!(
            "controller memory buffer, {place}: \
             its first 4 KiB are overwritten by the submission queue, the next 4 KiB by the completion queue if CMBSZ.CQS permits \
             one there, and with --channels 4 KiB by each submission queue; the run is refused if the buffer cannot hold submission \
             queues"
        ),
    };
    let data = match limits.data_in_cmb {
        None => String::new(),
        Some(_) => format!(
            ", in the controller memory buffer, {place}: it is overwritten behind the queues in it, filled by stores and verified by \
             loads; plans are refused if the buffer cannot hold data of reads (CMBSZ.RDS) or of writes (CMBSZ.WDS)"
        ),
    };
    vec![
        format!(
            "NVMe drive, registers in BAR{}: CAP and CSTS (loaded), CC, AQA, ASQ, ACQ and the doorbells of the queue pairs (stored)",
            drive::BAR
        ),
        format!(
            "commands: Identify, Set Features (Number of Queues), Create I/O Completion Queue, Create I/O Submission Queue, Read and Flush of {namespace}; {}",
            match limits.expendable_bytes {
                0 => "no command that writes to the medium".to_owned(),
                bytes => format!("Write for plans with DMA reads: overwrites at most its first {}", format_size(bytes)),
            }
        ),
        format!(
            "size of logical blocks, size of the namespace and largest transfer are known when the drive has been identified; sizes that \
             do not fit are refused then; at most {} outstanding commands on each of the I/O queue pairs that it grants",
            limits.depth
        ),
        queues,
        format!(
            "{}{data}; {}; an option that the drive does not support is refused after the drive has been identified",
            options.data().in_words(),
            if limits.by_interrupt { "completions by interrupt (MSI-X, or else MSI)" } else { "completions polled" }
        ),
        format!(
            "host memory: at most {} at once, in pages of {pages}; mapped while the drive is identified and while a plan runs",
            format_size(limits.mapped_bytes)
        ),
        "bus mastering: on while the drive is identified and while a plan runs, and off afterwards".to_owned(),
    ]
}

/// The file of address spaces and the file by which the device is opened. Before the device is bound, the second one may not
/// exist, and has a placeholder as its name.
fn files_of(by: VfioInterface, system: &System, function: &PciFunction) -> [PathBuf; 2] {
    match by {
        VfioInterface::Container | VfioInterface::NoIommu => {
            let group = function.iommu_group().ok().flatten().unwrap_or_else(|| "GROUP".to_owned());
            let file = container::Group::file_name(&group, by);
            [system.path(CONTAINERS), system.path("dev/vfio").join(file)]
        }
        VfioInterface::Iommufd => {
            let file = device_file(system, function.address());
            let file = file.unwrap_or_else(|| system.path("dev/vfio/devices/DEVICE"));
            [system.path(iommufd::FILE), file]
        }
    }
}

/// Pages of host memory, in words.
const fn pages_in_words(by: VfioInterface, pages: Option<HostPageSize>) -> &'static str {
    match pages {
        Some(pages) => pages.name(),
        None if by.is_translated() => "2 MiB if the system has reserved them, else of 4 KiB",
        None => "2 MiB, which must be reserved",
    }
}

/// Registers of an engine, in words.
fn registers(engine: &Engine) -> String {
    let high = |low: u64, high: Option<u64>| match high {
        Some(high) => format!("{low:#x} and {high:#x}"),
        None => format!("{low:#x}"),
    };
    let Engine { bar, source, source_high, destination, destination_high, count, command, done, .. } = *engine;
    let (source, destination) = (high(source, source_high), high(destination, destination_high));
    format!(
        "BAR{bar}: source {source}, destination {destination}, count {count:#x}, command {command:#x} (stored for each transfer), \
         end {done:#x} (loaded)"
    )
}

fn summary(
    by: VfioInterface,
    [spaces, path]: [&Path; 2],
    file: Option<&DeviceFile>,
    pages: Option<HostPageSize>,
) -> Vec<String> {
    let name = if by == VfioInterface::Container { "VFIO" } else { by.in_words() };
    let mut lines = vec![format!(
        "opened through {name}: {} and {}; opening resets the card if it can be reset, and the contents of its memory may be lost",
        spaces.display(),
        path.display()
    )];
    if !by.is_translated() {
        lines.push(
            "no IOMMU: the card is given physical addresses, nothing blocks its accesses to other memory, and if this process is killed, \
             the memory may be reused under it"
                .to_owned(),
        );
    }
    let Some((file, limits)) = file.and_then(|file| Some((file, file.limits()?))) else { return lines };
    let DmaLimits { memory_start, memory_bytes, address_bits, most_bytes, .. } = limits;
    if let Some(engine) = file.engine {
        let Engine { to_device, to_host, started_by, host_start, .. } = engine;
        lines.push(format!("engine of the device file '{}', registers in {}", file.name, registers(&engine)));
        let started = if started_by == StartedBy::Count { "; the count starts a transfer" } else { "" };
        let from = if host_start > 0 {
            format!("; the engine sees host memory from {host_start:#x} on")
        } else {
            String::new()
        };
        lines.push(format!("commands: {to_device:#x} to the device, {to_host:#x} to host memory{started}{from}"));
    }
    if let Some(engine) = file.descriptors {
        let DescriptorEngine { bar, channel, polled, descriptor_bytes, .. } = engine;
        let polled = match polled {
            Polled::WriteBack => "a word in host memory, which the engine writes",
            Polled::Status => "the status register (loaded)",
        };
        let count = engine.descriptors(most_bytes);
        lines.push(format!(
            "engine of the device file '{}', layout xdma, channel {channel} of each direction, registers in BAR{bar}; loaded: identifiers, \
             status, completed descriptors; loaded to clear it: status; stored for each transfer: interrupt mask, addresses of the list \
             and of its end, adjacent descriptors, control; stored to route or disable interrupts: the IRQ block",
            file.name
        ));
        lines.push(format!(
            "lists of at most {count} descriptors, each of at most {}, in host memory; end of a transfer: {polled}",
            format_size(descriptor_bytes)
        ));
    }
    if let Some(Interrupt { kind, vector, acknowledge, .. }) = file.interrupt.filter(|_| file.interrupts()) {
        let kind = if kind == InterruptKind::MsiX { "MSI-X" } else { "MSI" };
        let how = match file.engine.and_then(|engine| engine.with_interrupt) {
            Some(bits) => format!("requested by the bits {bits:#x} of a command"),
            None => "enabled and routed by the registers of the IRQ block (stored)".to_owned(),
        };
        let acknowledged = acknowledge.map_or_else(String::new, |at| format!(", acknowledged by a store to {at:#x}"));
        lines.push(format!("interrupt: {kind} vector {vector}, {how}{acknowledged}"));
    }
    lines.push(format!("memory of the card at {memory_start:#x}, {}: overwritten", format_size(memory_bytes)));
    let at = if by.is_translated() {
        format!("mapped at IOVAs of at most {address_bits} bits, from 0x200000 on, while a plan runs")
    } else {
        format!("at physical addresses of at most {address_bits} bits; the run ends if they are longer")
    };
    let (most, pages) = (format_size(MAPPED), pages_in_words(by, pages));
    lines.push(format!("host memory: at most {most} at once, in pages of {pages}; {at}"));
    lines.push("bus mastering: on while a plan makes transfers, and off afterwards".to_owned());
    lines
}

impl Machine for VfioRehearsal {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn supports(&self, plan: &Plan) -> Result<(), Unsupported> {
        if let Some(asked) = self.reads(plan) {
            return asked.map(drop).map_err(|refusal| refusal.into_unsupported(&self.facts));
        }
        match (self.dma(plan), &self.ranges) {
            (Some(asked), _) => asked.map(drop).map_err(|refusal| refusal.into_unsupported(&self.facts)),
            (None, Some(ranges)) if map_unmap(plan).is_none() => ranges.supports(plan),
            _ => Ok(()),
        }
    }

    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        let dma = self.dma(plan).transpose().map_err(|refusal| refusal.into_error(&self.facts))?;
        let reads = self.reads(plan).transpose().map_err(|refusal| refusal.into_error(&self.facts))?;
        if let (None, None, None, Some(ranges)) = (&reads, &dma, map_unmap(plan), &mut self.ranges) {
            return ranges.run(plan, samples);
        }
        Lines::sampled(samples);
        if let Some(reads) = reads {
            let words = self.peer.map_or_else(|| reads.to_string(), |peer| reads.in_words(&peer.device));
            self.lines.lines.add(words);
        } else if let Some(asked) = dma {
            asked.transfers().for_each(|transfer| self.lines.lines.add(self.in_words(&asked, &transfer)));
        } else if let Some(asked) = map_unmap(plan) {
            let Operation::MapUnmap(asked) = asked else { return Ok(()) };
            let size = format_size(asked.bytes);
            self.lines.lines.add(format!(
                "maps {size} of host memory and unmaps it, {} times per iteration: {}",
                asked.pairs, asked.means
            ));
        }
        Ok(())
    }
}

/// The mapping of a plan that maps memory.
fn map_unmap(plan: &Plan) -> Option<Operation> {
    let task = plan.work.lanes().first().map(|lane| &lane.task)?;
    match task {
        Task::Operation(operation @ Operation::MapUnmap(_)) => Some(*operation),
        _ => None,
    }
}
