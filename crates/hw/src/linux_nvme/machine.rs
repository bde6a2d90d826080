//! A namespace behind the kernel's driver as a machine.

use super::passthrough;
use super::queue::{KernelQueue, Way, is_removed_soon};
use super::ring::Ring;
use super::{DriveError, DriveNode};
use crate::drive_options::DriveOptions;
use crate::host_pages::HostPages;
use crate::linux_sysfs::{CardError, Device, Opened};
use crate::nvme::{
    Command, ControllerData, DataAt, DriveLimits, DrivePlan, DriveQueue as _, DriveRun, Namespace, NvmeError, PAGE,
    Places, Queues, Spot, commands_of, deadline,
};
use crate::x86::cpu::Cpu;
use crate::x86::pin::{allowed_cpus, usable_cores};
use crate::x86::refusal::Refusal;
use crate::x86::sample::stamp_before;
use crate::x86::timer::Timer;
use lanemark_machine::{DmaFacts, Facts, Machine, MachineError, Plan, Samples, TimeBase, Unsupported};
use lanemark_units::{MemoryType, Ticks};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// Most host memory for reads.
pub(super) const MAPPED: u64 = 64 << 20;
/// Longest wait for the end of a thread that closes a file.
const CLOSING: Duration = Duration::from_secs(1);
/// Longest time of the first read.
const FIRST: Ticks = Ticks::whole_ns(30_000_000_000);

/// A namespace of an NVMe drive, read through the kernel's driver.
///
/// - **Plans:** DMA writes to host memory, which are Read commands; transfers by a doorbell and a flag. Nothing else.
/// - **Checks:** before every run, that identity and driver of the function are unchanged; before every sample, and during long
///   waits, that the kernel still has the drive. Another process of Lanemark cannot open the function meanwhile.
/// - **Times:** as for [`HostMemory`](crate::HostMemory). A transfer begins with the system call that submits it, and ends when
///   the core sees the completion in the ring, or when the ioctl returns. It includes the kernel's driver, which maps the
///   memory for the command, the interrupt, and the medium: it is an upper bound of the time of the DMA.
/// - **Timeout:** of each sample by the plan; of each command by the kernel's driver. An ioctl ends with its command only.
/// - **Confirmed:** the bytes of the last iteration, against a second read of the same blocks. Other bytes of the memory must be
///   unchanged.
/// - **Failures:** a drive that the kernel removes ends the run with [`MachineError::Device`].
#[derive(Debug)]
pub struct NvmeMachine {
    facts: Facts,
    cpus: Vec<usize>,
    timer: Timer,
    node: DriveNode,
    function: Device,
    opened: Opened,
    /// The namespace; `None` only while this value is dropped.
    file: Option<OwnedFd>,
    limits: DriveLimits,
    way: Way,
    pages: Option<HostPages>,
    interrupted: Arc<AtomicBool>,
    runs: u64,
}

impl NvmeMachine {
    /// Opens a namespace, identifies it, and reads its first block. Setting the flag ends runs, and opening.
    ///
    /// # Errors
    /// [`DriveError`].
    pub fn open(node: &DriveNode, is_emulated: bool, interrupted: Arc<AtomicBool>) -> Result<NvmeMachine, DriveError> {
        let path = || node.path().to_owned();
        let unsupported = |because: String| DriveError::Unsupported { path: path(), because };
        let cpu = Cpu::detected();
        if !cpu.has_invariant_tsc && !is_emulated {
            let because = "the time-stamp counter of this processor is not invariant, so nothing can be timed";
            return Err(unsupported(because.to_owned()));
        }
        let cpus = allowed_cpus().map_err(|error| unsupported(format!("no CPU affinity mask can be read: {error}")))?;
        let timer = Timer::checked(cpu.tsc_hz);
        let file = open(node.path(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(|error| match error {
            Errno::ACCESS | Errno::PERM => DriveError::Permission { path: path(), doing: "opening it for reading" },
            error => DriveError::Os { path: path(), doing: "opening it for reading", source: error.into() },
        })?;
        let function = Device::find(node.system(), node.function()).map_err(DriveError::Function)?;
        let opened = Opened::new(&function).map_err(DriveError::Function)?;
        let (data, namespace) = identified(node, &file)?;
        let pages = HostPages::new(MAPPED + MAPPED / 8)
            .map_err(|error| unsupported(format!("no memory for reads can be allocated: {error}")))?;
        let most_bytes = DriveLimits::most_bytes(data.most_bytes);
        let most_bytes = node.most_bytes(pages.page_bytes()).map_or(most_bytes, |most| most.min(most_bytes));
        let mut limits = limits(namespace, most_bytes, Queues::Kernel, usable_cores(cpus.len()));
        let mut way =
            Ring::new().map_or_else(|error| Way::Calls(not_permitted(&error)), |ring| Way::Ring(Box::new(ring)));
        if let Err(error) = first_read(node, &file, &pages, namespace, &mut way, timer, &interrupted) {
            // The command may still write to the memory.
            std::mem::forget(pages);
            return Err(error);
        }
        limits.queues = way.queues();
        limits.depth = limits.queues.depth();
        let summary = format!("{data}, {namespace}; through the kernel's driver {}; {}", way.summary(), cpu.brand);
        let facts = facts(node.path(), summary, limits, is_emulated);
        let (node, file, pages) = (node.clone(), Some(file), Some(pages));
        Ok(NvmeMachine { facts, cpus, timer, node, function, opened, file, limits, way, pages, interrupted, runs: 0 })
    }

    /// Whether commands go through `io_uring` or by ioctl, and for an ioctl the reason, as text for the user.
    #[must_use]
    pub fn way(&self) -> String {
        self.way.summary()
    }

    fn asked(&self, plan: &Plan) -> Result<DrivePlan, Refusal> {
        commands_of(plan, &self.limits).unwrap_or_else(|| Err(refused()))
    }

    /// Error for a function that was removed or replaced.
    fn changed(&self, error: &CardError) -> MachineError {
        // At the removal of a driver, the kernel removes its link in sysfs before the namespace.
        let is_removed = matches!(error, CardError::Gone { .. }) || is_removed_soon(&self.node);
        let error = if is_removed { NvmeError::Removed.to_string() } else { error.to_string() };
        MachineError::Device { machine: self.facts.name.clone(), what: format!("{}: {error}", self.facts.name) }
    }

    fn os(&self, doing: &'static str, source: std::io::Error) -> MachineError {
        MachineError::Os { machine: self.facts.name.clone(), doing, source }
    }

    /// Runs the reads of a plan.
    fn read(&mut self, plan: &Plan, asked: DrivePlan, samples: &mut Samples) -> Result<(), MachineError> {
        let Some(file) = &self.file else { return Ok(()) };
        let len = Places::of(&asked).end;
        let mut pages = match self.pages.take().filter(|pages| pages.len() >= len) {
            Some(pages) => pages,
            None => HostPages::new(len).map_err(|error| self.os("allocating memory", error.into()))?,
        };
        let reads = DriveRun {
            name: &self.facts.name,
            cpu: self.cpus.get(asked.core as usize).copied().unwrap_or_default(),
            timer: self.timer,
            interrupted: &self.interrupted,
            number: self.runs,
            plan,
            asked,
            namespace: self.limits.namespace,
        };
        reads.fill(&mut pages);
        let mut queue = KernelQueue {
            way: &mut self.way,
            file,
            node: &self.node,
            namespace: self.limits.namespace,
            pages: &pages,
            name: &self.facts.name,
        };
        let confirmed = reads.measured(&mut queue, (&pages, &pages), samples);
        if queue.is_busy() {
            // Commands may still write to the memory, and the ring has completions of this run: both are replaced.
            std::mem::forget(pages);
            let ring = Ring::new().map_err(|error| self.os("creating a ring", error))?;
            drop(std::mem::replace(&mut self.way, Way::Ring(Box::new(ring))));
            samples.confirmed = Some(confirmed?);
            return Ok(());
        }
        let confirmed = confirmed.and_then(|confirmed| reads.check_beside(&pages).map(|()| confirmed));
        self.pages = Some(pages);
        samples.confirmed = Some(confirmed?);
        Ok(())
    }
}

impl Machine for NvmeMachine {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn supports(&self, plan: &Plan) -> Result<(), Unsupported> {
        self.asked(plan).map(drop).map_err(|refusal| refusal.into_unsupported(&self.facts))
    }

    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        let asked = self.asked(plan).map_err(|refusal| refusal.into_error(&self.facts))?;
        samples.clear();
        let begun = stamp_before();
        self.runs += 1;
        self.opened.check(&self.function).map_err(|error| self.changed(&error))?;
        self.read(plan, asked, samples)?;
        samples.spent = self.timer.ticks(stamp_before().saturating_sub(begun));
        Ok(())
    }
}

/// The refusal of a plan without DMA.
pub(super) fn refused() -> Refusal {
    Refusal::new(
        "any other plan",
        "through the kernel's driver, a drive is only read (dma_write_bandwidth, doorbell_to_completion); for other questions, \
         name its PCI address with --bind vfio-pci, or with --bar",
    )
}

impl Drop for NvmeMachine {
    fn drop(&mut self) {
        let Some(file) = self.file.take().filter(|_| self.node.is_removed()) else { return };
        // Linux 6.1 faults when the last file of a removed drive is closed, which ends the thread that closes it. So this one
        // does not, and waits for that one no longer than it must.
        let (sender, receiver) = channel::<OwnedFd>();
        let Ok(closing) = std::thread::Builder::new().spawn(move || drop(receiver.recv())) else {
            // Without a thread, the kernel closes it at the end of the process.
            std::mem::forget(file);
            return;
        };
        // The thread only ends after it has received the file.
        let _ = sender.send(file);
        let end = Instant::now() + CLOSING;
        while !closing.is_finished() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

pub(super) fn limits(namespace: Namespace, most_bytes: u64, queues: Queues, cores: u32) -> DriveLimits {
    let any = DriveLimits::unidentified(DriveOptions::default(), MAPPED, cores);
    // Interrupts go to the driver.
    DriveLimits { namespace, most_bytes, depth: queues.depth(), queues, pairs: 1, interrupts: false, ..any }
}

pub(super) fn facts(path: &Path, summary: String, limits: DriveLimits, is_emulated: bool) -> Facts {
    // The kernel maps the memory of each command anew, so a window has no pages in an IOTLB.
    let dma = DmaFacts {
        tags: limits.depth,
        has_flag: true,
        fetches_only: true,
        page_bytes: None,
        ..DmaFacts::of_register_engine(MAPPED, PAGE)
    };
    Facts {
        name: format!("nvme:{}", path.display()),
        summary,
        time_base: if is_emulated { TimeBase::Emulated } else { TimeBase::Real },
        cores: limits.cores,
        regions: vec![],
        memory_types: vec![MemoryType::Wb],
        stores: vec![],
        loads: vec![],
        memcpy: String::new(),
        dma: Some(dma),
        driver_width: None,
        tables: vec![],
        disciplines: vec![],
        line_sources: vec![],
        runtime: None,
    }
}

/// Identifies the controller and the namespace of a file.
fn identified(node: &DriveNode, file: &OwnedFd) -> Result<(ControllerData, Namespace), DriveError> {
    let failed = |error: NvmeError| failed(node, error);
    let id = passthrough::namespace_id(file.as_fd()).map_err(|source| DriveError::Os {
        path: node.path().to_owned(),
        doing: "asking for the identifier of the namespace",
        source,
    })?;
    let identify = |command: &dyn Fn(u64) -> Command| passthrough::identify(file.as_fd(), command).map_err(failed);
    let data = ControllerData::of(&identify(&Command::identify_controller)?, PAGE);
    let namespace = Namespace::readable(id, &identify(&|at| Command::identify_namespace(id, at))?);
    let namespace = namespace.map_err(|because| self::failed(node, NvmeError::Unsupported(because)))?;
    Ok((data, namespace))
}

/// Reads the first block, which decides whether `io_uring` can be used.
fn first_read(
    node: &DriveNode,
    file: &OwnedFd,
    pages: &HostPages,
    namespace: Namespace,
    way: &mut Way,
    timer: Timer,
    interrupted: &AtomicBool,
) -> Result<(), DriveError> {
    let read = |way: &mut Way| {
        let mut queue = KernelQueue { way, file, node, namespace, pages, name: "" };
        let mut once = Some(queue.read(0, 1, Spot { place: DataAt::Host, at: 0, list: 0 }, namespace.block_bytes));
        queue.run(1, |_| once.take(), &mut deadline(timer, FIRST, interrupted))
    };
    let done = match read(way) {
        // What a kernel answers that knows no such operation, or whose driver or security module does not permit it.
        Err(NvmeError::Kernel { error, .. }) if matches!(way, Way::Ring(_)) => {
            *way = Way::Calls(format!("the kernel's driver takes no command by io_uring ({error})"));
            read(way)
        }
        done => done,
    };
    done.map_err(|error| failed(node, error))
}

/// Why no ring can be created.
fn not_permitted(error: &std::io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::PERM | Errno::ACCESS) => {
            "io_uring is not permitted here (sysctl kernel.io_uring_disabled, or a container's seccomp filter)"
                .to_owned()
        }
        Some(Errno::NOSYS) => "this kernel has no io_uring".to_owned(),
        _ => format!("no ring can be created ({error})"),
    }
}

fn failed(node: &DriveNode, error: NvmeError) -> DriveError {
    let path = node.path().to_owned();
    match error {
        NvmeError::Kernel { error: Errno::ACCESS | Errno::PERM, .. } => {
            DriveError::Permission { path, doing: "sending the commands Identify and Read" }
        }
        NvmeError::Interrupted => DriveError::Interrupted,
        NvmeError::Unsupported(_) => DriveError::Unsupported { path, because: error.to_string() },
        NvmeError::Late => {
            DriveError::Failed { path, because: "the first read did not complete within 30 s; see dmesg".to_owned() }
        }
        error => DriveError::Failed { path, because: error.to_string() },
    }
}
