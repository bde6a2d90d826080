//! OpenCL device as a machine: opening it, running a plan.

use super::commands::Commands;
use super::copies::Copies;
use super::device::Device;
use super::devices::check;
use super::error::OpenClError;
use super::finished::FinishedKernels;
use super::launches::Launches;
use super::queue::Queue;
use super::reads::Reads;
use super::workers::OpenClWorkers;
use crate::runtime_common::computing::Computing;
use crate::runtime_common::machine::{Failed, Job, Prepared, RuntimeMachine, RuntimeQueue, Stage};
use crate::runtime_common::request::DeviceLimits;
use crate::watchdog::{OPEN_LIMIT, within};
use crate::x86::sample::{Limits, Stamps};
use lanemark_machine::{
    Allocation, Confirmed, DmaFacts, EngineJob, EngineWork, Facts, HostMemory, HostWait, Launch, LaunchBy, Machine,
    MachineError, Partner, Plan, QueueRequest, RuntimeCopy, RuntimeFacts, Sample, Samples, Socket, Transfer,
    Unsupported, Verb, Work, Writer,
};
use lanemark_units::{Ticks, format_size};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Device of an OpenCL runtime.
///
/// - **Plans:** a request to a queue. A [`Launch`] enqueues a number of empty kernels and waits. A
///   [`RuntimeCopy`] copies between host memory and device memory. A [`Compute`](lanemark_machine::Compute) runs compute kernels of one work
///   item, each with a queue of its own. The arguments of a [`Launch`] are set before each launch, within the measured time. The calling thread is
///   pinned to the core of the request, unless the plan says otherwise; the operating system places the threads of the runtime.
///   A DMA read of host memory is made by a kernel: one work item has one transfer in flight. The memory is page-locked as far as the runtime
///   can. On a processor the device's memory is that of the host, so these are loads of a core.
/// - **Times:** time-stamp counter, as in [`HostMemory`](crate::HostMemory). A launch takes as long as the program waits; the execution time on
///   the device is not measured.
/// - **Timeout:** a runtime call cannot be cancelled. Samples are taken by a thread of its own. If it makes no progress for the plan's timeout and
///   one second, the run fails with [`MachineError::Timeout`], the thread is abandoned, and every further run fails.
/// - **Confirmed:** for copies, the number of bytes of the last one that arrived; for compute kernels, the number of correct result bytes. The
///   contents differ from run to run.
/// - **Dropped:** samples disturbed by the system, as in `HostMemory`. Time that the runtime's own threads take on the core is no disturbance: it
///   belongs to the launch.
///
/// ```no_run
/// use lanemark_hw::opencl::OpenClMachine;
/// use lanemark_machine::{Arguments, HostWait, Launch, LaunchBy, Machine, Plan, Samples, Step};
/// let mut device = OpenClMachine::open(0, Default::default())?;
/// let mut samples = Samples::wanted(100);
/// let (by, arguments) = (LaunchBy::Calls, Arguments::NONE);
/// device.run(&Plan::new(Launch { kernels: 1, by, wait: HostWait::Finish, arguments }, 10), &mut samples)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct OpenClMachine {
    device: Device,
    facts: Facts,
    machine: RuntimeMachine<Queue>,
}

impl OpenClMachine {
    /// Opens device `number` of [`Device::all`] and builds the empty kernel, for which some runtimes need a minute. Once
    /// `interrupted` is set, opening ends, and later every run ends between two samples or within a long one.
    ///
    /// # Errors
    /// [`OpenClError`]; [`OpenClError::Late`] if the runtime does not return within two minutes, which leaves a thread behind.
    pub fn open(number: usize, interrupted: Arc<AtomicBool>) -> Result<OpenClMachine, OpenClError> {
        OpenClMachine::open_with(number, None, interrupted)
    }

    /// Opens device `number` with prebuilt kernels, which boards without a compiler need.
    ///
    /// # Errors
    /// The errors of [`open`](OpenClMachine::open), and [`OpenClError::NotTaken`] if the device rejects the kernels.
    pub fn open_with(
        number: usize,
        kernels: Option<FinishedKernels>,
        interrupted: Arc<AtomicBool>,
    ) -> Result<OpenClMachine, OpenClError> {
        let (device, queue) = within(OPEN_LIMIT, &interrupted, move || {
            let (mut devices, refused) = Device::all()?;
            if number >= devices.len() {
                return Err(OpenClError::no_device(number, devices, refused));
            }
            let device = devices.swap_remove(number);
            let queue = Queue::new(&device, kernels)?;
            Ok((device, queue))
        })?;
        let limits = DeviceLimits {
            usm: "the extension cl_intel_unified_shared_memory",
            // The runtime itself rejects allocations that are too large.
            largest_bytes: u64::MAX,
            has_double: queue.commands.context.has_double,
        };
        let (name, summary) = (format!("opencl:{}", device.number), device.described());
        let runtime = runtime_facts(&device, &queue);
        let dma = DmaFacts {
            cards: 1,
            mapped_bytes: MOST_READ_BYTES.min(queue.commands.context.piece_bytes),
            // Nothing is known of translations of addresses.
            page_bytes: None,
            cache: None,
            is_partial_dearer: false,
            has_remote: false,
            tags: Reads::most_items(&queue.commands),
            channels: 1,
            peer: None,
            relays_at: None,
            has_driver: false,
            has_flag: false,
            fetches_only: false,
        };
        let machine = RuntimeMachine::new(queue, name, summary, runtime, limits, interrupted);
        let machine = machine.map_err(OpenClError::System)?;
        let facts = Facts { dma: Some(dma), ..machine.facts().clone() };
        Ok(OpenClMachine { device, facts, machine })
    }

    /// Device, as described by its runtime.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// System numbers of the cores that a plan may name, in ascending order.
    #[must_use]
    pub fn cpus(&self) -> &[usize] {
        self.machine.cpus()
    }
}

impl Machine for OpenClMachine {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn supports(&self, plan: &Plan) -> Result<(), Unsupported> {
        plan.check().map_err(|impossible| impossible.on(&self.facts.name))?;
        match &plan.work {
            Work::Engines(work) => self.asked(work).map(|_| ()),
            _ => self.machine.request(plan).map(|_| ()),
        }
    }

    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        plan.check().map_err(|impossible| impossible.on(&self.facts.name))?;
        let Work::Engines(work) = &plan.work else { return self.machine.run(plan, samples) };
        let transfer = self.asked(work)?;
        self.machine.run_by(plan, samples, move |queue, job| read(queue, job, transfer))
    }
}

/// Most bytes of host memory that a kernel reads.
const MOST_READ_BYTES: u64 = 1 << 30;

impl OpenClMachine {
    /// The read of a plan.
    fn asked(&self, work: &EngineWork) -> Result<Transfer, Unsupported> {
        let refused = |what: &str, because: &str| {
            Err(Unsupported { what: what.to_owned(), machine: self.facts.name.clone(), because: because.to_owned() })
        };
        let [EngineJob::Transfer(transfer)] = *work.jobs.as_slice() else {
            return refused("several transfers at once", "the kernel makes reads of one kind");
        };
        let Transfer { card, verb, partner, bytes, count, window, .. } = transfer;
        let mapped = self.facts.dma.map_or(0, |dma| dma.mapped_bytes);
        if card > 0 || partner != Partner::Host {
            return refused("a transfer of or to another card", "the target is one device");
        }
        if verb != Verb::Load {
            return refused("a DMA write", "the kernel reads only: it has no fence after which a write has arrived");
        }
        if bytes == 0 || count == 0 || bytes > window.len {
            return refused("a transfer of no bytes, or of more than its window", "nothing of it can be moved");
        }
        if [bytes, window.offset, window.step(bytes)].iter().any(|length| !length.is_multiple_of(4)) {
            return refused(&format!("a transfer of {bytes} B"), "a work item loads whole words of 4 B");
        }
        if window.offset.checked_add(window.len).is_none_or(|end| end > mapped) {
            let because = format!("at most {} of host memory are read by a kernel", format_size(mapped));
            return refused(&format!("a window of {}", format_size(window.len)), &because);
        }
        let HostMemory { written_by, socket } = work.memory;
        if socket == Socket::Remote {
            return refused("memory of the other socket", "the runtime chooses the place of host memory");
        }
        if written_by != Writer::Core {
            return refused("host memory that no core wrote last", "the runtime writes it, and it stays in the caches");
        }
        Ok(transfer)
    }
}

/// Takes the samples of reads and verifies the data of the last one.
fn read(queue: &mut Queue, job: Job<'_>, transfer: Transfer) -> Result<Samples, MachineError> {
    let Job { machine, plan, timer, interrupted, number, mut samples, progress } = job;
    let failure = |stage, error: OpenClError| Queue::failure(&Failed::new(machine, "DMA reads", stage), &error);
    let (allocating, sampling) = (|error| failure(Stage::Allocating, error), |error| failure(Stage::Sampling, error));
    let summand = (number as u32).wrapping_mul(0x85EB_CA6B).wrapping_add(1);
    let reads = progress.preparing(|| queue.reads.prepare(transfer, summand)).map_err(allocating)?;
    let repeats = progress.preparing(|| reads.repeats(timer, plan.passes)).map_err(sampling)?;
    while samples.wants_more() {
        if interrupted.load(Ordering::Relaxed) {
            return Err(MachineError::Interrupted { machine: machine.to_owned() });
        }
        if plan.warmup_passes > 0 {
            progress.preparing(|| reads.run(timer, plan.warmup_passes)).map_err(sampling)?;
        }
        let taken = reads.run(timer, plan.passes.saturating_mul(repeats)).map_err(sampling)?;
        if taken > plan.timeout {
            let waiting_for = "DMA reads of a kernel".to_owned();
            return Err(MachineError::Timeout { machine: machine.to_owned(), after: taken, waiting_for });
        }
        let each = Ticks(taken.0 / repeats);
        samples.keep(Sample { issue: each, delivered: each }, None);
        progress.step();
    }
    let passes = plan.passes.saturating_mul(repeats);
    samples.confirmed = Some(progress.preparing(|| reads.confirmed(passes)).map_err(sampling)?);
    Ok(samples)
}

/// Request whose kernels and memory exist.
#[derive(Debug)]
pub(super) enum PreparedOpenCl<'a> {
    /// Launches of an empty kernel.
    Launches { commands: Arc<Commands>, kernel: &'a Launches, launch: Launch },
    /// Copies between host memory and device memory.
    Copies { copies: &'a mut Copies, moved: RuntimeCopy },
    /// Compute kernels.
    Compute { kernels: &'a mut Computing<OpenClWorkers>, wait: HostWait },
}

impl RuntimeQueue for Queue {
    type Error = OpenClError;
    type Prepared<'a> = PreparedOpenCl<'a>;

    fn allocate(&mut self, request: QueueRequest) -> Result<PreparedOpenCl<'_>, OpenClError> {
        Ok(match request {
            QueueRequest::Launch(launch) => {
                let commands = Arc::clone(&self.commands);
                PreparedOpenCl::Launches { commands, kernel: self.launches(launch.arguments)?, launch }
            }
            QueueRequest::Copy(moved) => {
                PreparedOpenCl::Copies { copies: self.copies(moved.allocation, moved.bytes)?, moved }
            }
            QueueRequest::SmallCopies(_) => {
                return Err(OpenClError::System("copies of pieces are not supported here: use cuda:0".to_owned()));
            }
            QueueRequest::Compute(compute) => {
                PreparedOpenCl::Compute { kernels: self.computing(&compute.work)?, wait: compute.wait }
            }
        })
    }

    fn failure(failed: &Failed<'_>, error: &OpenClError) -> MachineError {
        match error {
            OpenClError::NoMemory { .. }
            | OpenClError::NoHostMemory(_)
            | OpenClError::NotBuilt { .. }
            | OpenClError::NoKernel { .. } => failed.unsupported(error.to_string()),
            OpenClError::Refused { status, .. } if status.says_short_of_memory() => {
                failed.unsupported(format!("{error}; use a smaller size"))
            }
            OpenClError::Refused { status, .. } if status.may_be_a_lost_device() => {
                failed.device(&format!("{error}{LOST}"))
            }
            _ => failed.device(&error.to_string()),
        }
    }
}

/// Suffix for errors that a lost device may cause.
const LOST: &str = "; the device may be lost, earlier results remain valid: check whether the system still lists it, reset or reprogram it as its vendor describes, and restart the program";

impl Prepared for PreparedOpenCl<'_> {
    type Error = OpenClError;

    fn fill(&mut self, seed: u64) -> Result<(), OpenClError> {
        match self {
            PreparedOpenCl::Launches { .. } => Ok(()),
            PreparedOpenCl::Copies { copies, moved } => copies.prepare(moved.verb, seed),
            PreparedOpenCl::Compute { kernels, .. } => kernels.prepare(seed),
        }
    }

    fn sample(&mut self, limits: &Limits<'_>, first: u64, passes: u64) -> Result<Stamps, OpenClError> {
        let (doing, (stamps, status)) = match self {
            PreparedOpenCl::Launches { commands, kernel, launch } => {
                let doing = match launch.wait {
                    HostWait::Finish => "launching a kernel and waiting with clFinish",
                    HostWait::Event => "launching a kernel and waiting for its event",
                };
                (doing, kernel.timed(commands, *launch, limits, first, passes))
            }
            PreparedOpenCl::Copies { copies, moved } => {
                ("copying between host and device", copies.timed(*moved, limits, passes))
            }
            PreparedOpenCl::Compute { kernels, wait } => {
                ("computing", kernels.workers().timed(*wait, limits, first, passes))
            }
        };
        check(doing, status)?;
        Ok(stamps)
    }

    fn confirmed(&mut self, seed: u64) -> Result<Option<Confirmed>, OpenClError> {
        match self {
            PreparedOpenCl::Launches { .. } => Ok(None),
            PreparedOpenCl::Copies { copies, moved } => copies.confirmed(moved.verb, seed).map(Some),
            PreparedOpenCl::Compute { kernels, .. } => kernels.confirmed(seed).map(Some),
        }
    }
}

fn runtime_facts(device: &Device, queue: &Queue) -> RuntimeFacts {
    let context = &queue.commands.context;
    let has = |allocation: &Allocation| match allocation {
        Allocation::Buffer | Allocation::Mapped => true,
        Allocation::Device => context.usm.is_some(),
        Allocation::Host => context.usm.is_some_and(|usm| usm.has_host),
        // OpenCL has no call for them.
        Allocation::Registered | Allocation::Combining => false,
    };
    RuntimeFacts {
        kind: device.kind,
        is_emulated: device.is_emulated,
        allocations: Allocation::ALL.into_iter().filter(has).collect(),
        launches: vec![LaunchBy::Calls],
        small_copies: Vec::new(),
        memory_ports: context.ports.count(),
        // A device that can build no kernels fails to open.
        computes: true,
    }
}
