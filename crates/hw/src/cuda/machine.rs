//! CUDA device as a machine: opening it, running a plan.

use super::copies::Copies;
use super::device::Device;
use super::error::CudaError;
use super::launches::Launches;
use super::pieces::PreparedPieces;
use super::ping;
use super::queue::Queue;
use super::transfers::Asked;
use crate::runtime_common::machine::{Failed, Job, Prepared, RuntimeMachine, RuntimeQueue, Stage};
use crate::runtime_common::request::DeviceLimits;
use crate::watchdog::{OPEN_LIMIT, within};
use crate::x86::cpu::Cpu;
use crate::x86::disturbance::Company;
use crate::x86::run::{Numbering, Run};
use crate::x86::sample::{Delivery, Limits, Stamps};
use crate::x86::timer::Timer;
use lanemark_machine::{
    Allocation, Completion, Confirmed, CopyBy, CoreWork, Descriptors, DeviceKind, DmaCall, DmaFacts, EngineJob,
    EngineWork, Facts, HostMemory, Lane, Launch, LaunchBy, Machine, MachineError, Partner, Pattern, Plan, QueueRequest,
    RuntimeCopy, RuntimeFacts, Samples, Share, Socket, Task, Transfer, Unsupported, Work, Writer,
};
use lanemark_units::{Ticks, format_size};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Device of the CUDA driver.
///
/// - **Plans:** a request to a queue, as for [`OpenClMachine`](crate::opencl::OpenClMachine), without compute kernels;
///   copies of many pieces, also by a kernel; and DMA transfers between the device and host memory, which a kernel makes: one warp per outstanding transfer, or all
///   warps together if their number is not limited. At most 4 KiB of a transfer is in flight. Sizes and places are
///   multiples of 4 B.
/// - **Times:** DMA is timed with the device's clock, which is compared with the host's on opening; requests with the TSC.
///   A write is issued when the last store has left its warp; it is delivered when a read after a fence has returned, which
///   includes one round trip.
/// - **Timeout:** every wait ends. If a kernel does not end within the plan's timeout and one second, or a call does not
///   return, the run fails with [`MachineError::Timeout`], and every further run fails.
/// - **Confirmed:** of copies and writes, the bytes that arrived; of reads, the sums of all words that each warp read.
/// - **Dropped:** samples of DMA never; requests as in `OpenClMachine`.
///
/// ```no_run
/// use lanemark_hw::cuda::CudaMachine;
/// use lanemark_machine::{Machine, Partner, Pattern, Plan, Samples, Transfer, Verb, Window};
/// let mut device = CudaMachine::open(0, Default::default())?;
/// let window = Window { offset: 0, len: 1 << 20, pattern: Pattern::Random };
/// let (verb, partner) = (Verb::Load, Partner::Host);
/// let reads = Transfer { card: 0, verb, partner, bytes: 64, count: 100, window, outstanding: Some(1) };
/// let mut samples = Samples::wanted(10);
/// device.run(&Plan::new(reads, 10), &mut samples)?;
/// println!("{} ns for 1000 reads", samples.taken[0].delivered.as_ns());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CudaMachine {
    device: Device,
    facts: Facts,
    machine: RuntimeMachine<Queue>,
    least_sample: Ticks,
    own_reads: [Ticks; 2],
}

/// Time beyond a plan's timeout before a kernel counts as stuck.
const GRACE: Duration = Duration::from_secs(1);
/// Largest part of this machine's memory that is page-locked for transfers, as a divisor.
const PART_OF_MEMORY: u64 = 4;
/// Most bytes that are page-locked for transfers.
const MOST_LOCKED_BYTES: u64 = 16 << 30;

impl CudaMachine {
    /// Opens device `number` of [`Device::all`] and compares its clock with the host's. Once `interrupted` is set, opening
    /// ends, and later every run ends between two samples or within a long one.
    ///
    /// # Errors
    /// [`CudaError`]; [`CudaError::Late`] if the driver does not return within two minutes, which leaves a thread behind.
    pub fn open(number: usize, interrupted: Arc<AtomicBool>) -> Result<CudaMachine, CudaError> {
        let timer = Timer::checked(Cpu::detected().tsc_hz);
        let (device, queue, own_reads) = within(OPEN_LIMIT, &interrupted, move || {
            let mut devices = Device::all()?;
            if number >= devices.len() {
                let devices = devices.iter().map(Device::to_string).collect();
                return Err(CudaError::NoDevice { number, devices });
            }
            let device = devices.swap_remove(number);
            let mut queue = Queue::new(&device, timer)?;
            let own = queue.transfers.own_reads(CudaMachine::OWN_READS_BYTES);
            let own = own.map_err(|error| error.while_opening(&device))?;
            Ok((device, queue, own))
        })?;
        let limits = DeviceLimits { usm: "memory by address", largest_bytes: device.memory_bytes, has_double: true };
        let runtime = RuntimeFacts {
            kind: DeviceKind::Gpu,
            is_emulated: queue.context.api.is_fake,
            allocations: vec![Allocation::Device, Allocation::Registered, Allocation::Host, Allocation::Combining],
            launches: LaunchBy::ALL.to_vec(),
            small_copies: CopyBy::ALL.into_iter().filter(|by| has_copies(&queue, *by)).collect(),
            memory_ports: 1,
            computes: false,
        };
        let least_sample = queue.clock.least_span();
        let (name, summary) = (format!("cuda:{}", device.number), device.described());
        let machine = RuntimeMachine::new(queue, name, summary, runtime, limits, interrupted);
        let machine = machine.map_err(CudaError::System)?;
        let dma = DmaFacts {
            cards: 1,
            mapped_bytes: MOST_LOCKED_BYTES.min(memory_bytes() / PART_OF_MEMORY),
            // Those of the processor: what the IOMMU and the device make of them is not visible.
            page_bytes: Some(rustix::param::page_size() as u64),
            cache: None,
            is_partial_dearer: false,
            has_remote: false,
            tags: device.multiprocessors.saturating_mul(device.blocks_per_multiprocessor),
            channels: 1,
            peer: None,
            relays_at: None,
            has_driver: true,
            has_flag: false,
            fetches_only: false,
        };
        let facts = Facts { dma: Some(dma), ..machine.facts().clone() };
        Ok(CudaMachine { device, facts, machine, least_sample, own_reads })
    }

    /// Device, as described by its driver.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Calls `look` while the device copies 1 GiB from host memory, after as much for warm-up: an idle device may run its
    /// link and its clocks slower.
    ///
    /// # Errors
    /// [`CudaError::NotOpened`] with the status of the driver, and [`CudaError::Stuck`].
    pub fn under_traffic<T: Send + 'static>(
        &mut self,
        look: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, CudaError> {
        let seen = self.machine.with_queue(|queue| queue.under_traffic(look));
        seen.map_err(|error| error.while_opening(&self.device))
    }

    /// Sizes of the reads of [`own_reads`](CudaMachine::own_reads).
    pub const OWN_READS_BYTES: [u64; 2] = [64, 4096];

    /// Latencies of random reads of 64 B and of 4 KiB from the device's own memory, in a window of 4 MiB, by the kernel of DMA
    /// reads. The difference to a DMA read is the link, the root complex and the access to host memory.
    #[must_use]
    pub const fn own_reads(&self) -> [Ticks; 2] {
        self.own_reads
    }

    /// System numbers of the cores that a plan may name, in ascending order.
    #[must_use]
    pub fn cpus(&self) -> &[usize] {
        self.machine.cpus()
    }

    /// The transfers of a plan.
    fn asked(&self, work: &EngineWork) -> Result<Asked, Unsupported> {
        let refused = |what: &str, because: &str| Unsupported {
            what: what.to_owned(),
            machine: self.facts.name.clone(),
            because: because.to_owned(),
        };
        let transfers = match *work.jobs.as_slice() {
            [EngineJob::Transfer(transfer)] => vec![transfer],
            [EngineJob::WriteRead(pairs)] if pairs.is_mixed => vec![pairs.write, pairs.read()],
            [EngineJob::WriteRead(_)] => {
                return Err(refused("a write followed by a read", "the kernel reads and writes different bytes"));
            }
            [EngineJob::OnChannels(_)] => {
                return Err(refused("a number of channels", "a program cannot select channels on this device"));
            }
            _ => return Err(refused("jobs of several devices", "the target is one device")),
        };
        let mapped = self.facts.dma.map_or(0, |dma| dma.mapped_bytes);
        for Transfer { card, partner, bytes, count, window, .. } in &transfers {
            let distance = window.step(*bytes);
            if *card > 0 || *partner != Partner::Host {
                return Err(refused("a transfer of or to another card", "the target is one device"));
            }
            if *bytes == 0 || *count == 0 || *bytes > window.len {
                return Err(refused(
                    "a transfer of no bytes, or of more than its window",
                    "nothing of it can be moved",
                ));
            }
            if [*bytes, window.offset, distance].iter().any(|value| !value.is_multiple_of(4)) {
                let what = format!("a transfer of {bytes} B every {distance} B from {} on", window.offset);
                return Err(refused(&what, "a thread of the device loads and stores whole words of 4 B"));
            }
            if window.offset.checked_add(window.len).is_none_or(|end| end > mapped) {
                let because = format!("at most {} of host memory are mapped for the device", format_size(mapped));
                return Err(refused(&format!("a window of {}", format_size(window.len)), &because));
            }
        }
        let HostMemory { written_by, socket } = work.memory;
        if socket == Socket::Remote {
            return Err(refused("memory of the other socket", "the driver chooses the place of host memory"));
        }
        if written_by == Writer::Device {
            return Err(refused("host memory written by the device", "no cache in which it would stay is known"));
        }
        Ok(Asked { transfers, written_by })
    }
}

impl CudaMachine {
    /// The transfer of a doorbell, and the core that rings it.
    fn doorbell(&self, work: &CoreWork) -> Result<(Transfer, usize), Unsupported> {
        let refused = |what: String, because: &str| {
            Err(Unsupported { what, machine: self.facts.name.clone(), because: because.to_owned() })
        };
        let [Lane { core, task: Task::DmaCall(call) }] = work.lanes.as_slice() else {
            return refused("doorbells of several cores".to_owned(), "one kernel answers the doorbells of one core");
        };
        let DmaCall { transfer, share, descriptors, completion, .. } = *call;
        if (share, descriptors, completion) != (Share::Doorbell, Descriptors::Fetched, Completion::Flag) {
            let because = "a kernel of the device fetches its orders from host memory and answers with a word there: it has no doorbell register, and raises no interrupt";
            return refused(
                format!("a {} with {} descriptors and completion by {completion}", share.name(), descriptors.name()),
                because,
            );
        }
        let bytes = transfer.bytes;
        if bytes == 0 || !bytes.is_multiple_of(ping::UNIT_BYTES) || bytes > transfer.window.len {
            let because = "the kernel that answers moves whole units of 16 B, within one window";
            return refused(format!("a transfer of {bytes} B"), because);
        }
        if transfer.window.pattern != Pattern::Sequential {
            return refused(
                "a window that is not sequential".to_owned(),
                "the kernel that answers goes through its window",
            );
        }
        let mapped = self.facts.dma.map_or(0, |dma| dma.mapped_bytes);
        if transfer.window.offset > 0 || transfer.window.len > mapped {
            let what = format!("a window of {} at {}", format_size(transfer.window.len), transfer.window.offset);
            let because = format!(
                "the kernel that answers starts at a page, and at most {} of host memory are mapped for the device",
                format_size(mapped)
            );
            return refused(what, &because);
        }
        match usize::try_from(*core).ok().filter(|core| *core < self.machine.cpus().len()) {
            Some(core) => Ok((transfer, core)),
            None => refused(format!("core {core}"), "this program may not use it"),
        }
    }
}

fn has_dma_call(work: &CoreWork) -> bool {
    work.lanes.iter().any(|lane| matches!(lane.task, Task::DmaCall(_)))
}

/// Takes the samples of doorbells and verifies the data of the last one.
fn ring(queue: &mut Queue, job: Job<'_>, transfer: &Transfer, cpu: usize) -> Result<Samples, MachineError> {
    let Job { machine, plan, timer, interrupted, number, mut samples, progress } = job;
    let failure = |stage, error: CudaError| Queue::failure(&Failed::new(machine, "doorbells", stage), &error);
    let allocating = |error| failure(Stage::Allocating, error);
    let prepared = progress.preparing(|| {
        queue.context.enter()?;
        let ping = queue.ping(transfer.window.len)?;
        ping.fill();
        Ok(ping)
    });
    let ping = prepared.map_err(allocating)?;
    let run = Run {
        machine,
        timer,
        plan,
        cpu,
        company: Company::OwnThreads,
        passes_per_check: 1,
        delivery: Delivery::Drained,
        interrupted,
        numbering: Numbering::EndingWith(number),
    };
    run.take(
        &mut samples,
        "ringing a doorbell",
        || (),
        |limits, _, passes| {
            progress.step();
            ping.timed(transfer, limits, timer, passes).map_err(|error| failure(Stage::Sampling, error))
        },
    )?;
    samples.confirmed = ping.confirmed(transfer);
    Ok(samples)
}

impl Machine for CudaMachine {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn supports(&self, plan: &Plan) -> Result<(), Unsupported> {
        plan.check().map_err(|impossible| impossible.on(&self.facts.name))?;
        match &plan.work {
            Work::Engines(work) => self.asked(work).map(|_| ()),
            Work::Cores(work) if has_dma_call(work) => self.doorbell(work).map(|_| ()),
            _ => self.machine.request(plan).map(|_| ()),
        }
    }

    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        plan.check().map_err(|impossible| impossible.on(&self.facts.name))?;
        match &plan.work {
            Work::Engines(work) => {
                let asked = self.asked(work)?;
                self.machine.run_by(plan, samples, move |queue, job| transfer(queue, job, &asked))
            }
            Work::Cores(work) if has_dma_call(work) => {
                let (transfer, core) = self.doorbell(work)?;
                let cpu = self.machine.cpus()[core];
                self.machine.run_by(plan, samples, move |queue, job| ring(queue, job, &transfer, cpu))
            }
            _ => self.machine.run(plan, samples),
        }
    }

    fn least_sample(&self, plan: &Plan) -> Ticks {
        // Other plans are timed by the processor.
        if matches!(plan.work, Work::Engines(_)) { self.least_sample } else { Ticks::ZERO }
    }
}

/// Takes the samples of transfers and verifies the data of the last one.
fn transfer(queue: &mut Queue, job: Job<'_>, asked: &Asked) -> Result<Samples, MachineError> {
    let Job { machine, plan, interrupted, number, mut samples, progress, .. } = job;
    let failure = |stage, error: CudaError| Queue::failure(&Failed::new(machine, "DMA transfers", stage), &error);
    let allocating = |error| failure(Stage::Allocating, error);
    let sampling = |error| failure(Stage::Sampling, error);
    let limit = Duration::from_secs_f64(plan.timeout.as_ns() / 1e9) + GRACE;
    progress.preparing(|| queue.context.enter()).map_err(allocating)?;
    let prepared = progress.preparing(|| {
        let mut prepared = queue.transfers.prepare(asked, [plan.warmup_passes, plan.passes], number)?;
        prepared.fill();
        Ok(prepared)
    });
    let mut prepared = prepared.map_err(allocating)?;
    while samples.wants_more() {
        if interrupted.load(Ordering::Relaxed) {
            return Err(MachineError::Interrupted { machine: machine.to_owned() });
        }
        progress.preparing(|| prepared.before_sample());
        let sample = prepared.run(limit).map_err(sampling)?;
        if sample.delivered > plan.timeout {
            let waiting_for = "DMA transfers of a kernel".to_owned();
            return Err(MachineError::Timeout { machine: machine.to_owned(), after: sample.delivered, waiting_for });
        }
        samples.keep(sample, None);
        progress.step();
    }
    samples.confirmed = Some(progress.preparing(|| prepared.confirmed()).map_err(sampling)?);
    Ok(samples)
}

/// Whether many pieces can be copied in this way: a driver before CUDA 12.8 has no batch, and nothing maps the memory of
/// the device for the processor.
fn has_copies(queue: &Queue, by: CopyBy) -> bool {
    match by {
        CopyBy::Loop | CopyBy::Packed | CopyBy::InPlace => true,
        CopyBy::Batch => queue.context.api.copy_batch.is_some(),
        CopyBy::Stores => false,
    }
}

/// Memory of this machine in bytes; 0 if the system does not report it.
fn memory_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    (info.totalram as u64).saturating_mul(info.mem_unit.into())
}

/// Request whose kernels and memory exist.
#[derive(Debug)]
pub(super) enum PreparedCuda<'a> {
    /// Launches of an empty kernel.
    Launches { kernel: &'a mut Launches, launch: Launch },
    /// Copies between host memory and device memory.
    Copies { copies: &'a mut Copies, moved: RuntimeCopy },
    /// Copies of many pieces.
    Pieces(PreparedPieces<'a>),
}

impl RuntimeQueue for Queue {
    type Error = CudaError;
    type Prepared<'a> = PreparedCuda<'a>;

    fn allocate(&mut self, request: QueueRequest) -> Result<PreparedCuda<'_>, CudaError> {
        self.context.enter()?;
        Ok(match request {
            QueueRequest::Launch(launch) => PreparedCuda::Launches { kernel: self.launches(launch)?, launch },
            QueueRequest::Copy(moved) => {
                PreparedCuda::Copies { copies: self.copies(moved.allocation, moved.bytes)?, moved }
            }
            QueueRequest::SmallCopies(copies) => PreparedCuda::Pieces(self.pieces.prepare(copies)?),
            QueueRequest::Compute(_) => {
                return Err(CudaError::System("compute kernels are not supported here: use opencl:0".to_owned()));
            }
        })
    }

    fn failure(failed: &Failed<'_>, error: &CudaError) -> MachineError {
        match error {
            CudaError::NoMemory { .. }
            | CudaError::NoHostMemory(_)
            | CudaError::NotBuilt { .. }
            | CudaError::NotThere { .. } => failed.unsupported(error.to_string()),
            CudaError::Refused { status, .. } if failed.stage == Stage::Allocating && status.is_short_of_memory() => {
                failed.unsupported(format!("{error}; use a smaller size"))
            }
            // Another kind of memory may work.
            CudaError::Refused { status, .. }
                if failed.stage == Stage::Allocating && !status.may_be_a_lost_device() =>
            {
                failed.unsupported(error.to_string())
            }
            CudaError::Stuck { kernel, seconds } => failed.timeout(*seconds, kernel),
            CudaError::Refused { status, .. } if status.may_be_a_lost_device() => {
                failed.device(&format!("{error}{LOST}"))
            }
            _ => failed.device(&error.to_string()),
        }
    }
}

/// Suffix for errors that a lost device may cause.
const LOST: &str = "; the device may be lost, earlier results remain valid: look for messages of the driver (Xid) in dmesg and for the device in nvidia-smi, reset it as its vendor describes, and restart the program";

impl Prepared for PreparedCuda<'_> {
    type Error = CudaError;

    fn fill(&mut self, seed: u64) -> Result<(), CudaError> {
        match self {
            PreparedCuda::Launches { .. } => Ok(()),
            PreparedCuda::Copies { copies, moved } => copies.fill(moved.verb, seed),
            PreparedCuda::Pieces(pieces) => pieces.fill(seed),
        }
    }

    fn sample(&mut self, limits: &Limits<'_>, first: u64, passes: u64) -> Result<Stamps, CudaError> {
        let (doing, (stamps, status)) = match self {
            PreparedCuda::Launches { kernel, launch } => {
                ("launching a kernel and waiting for it", kernel.timed(*launch, limits, first, passes))
            }
            PreparedCuda::Copies { copies, moved } => {
                ("copying between host and device", copies.timed(*moved, limits, passes))
            }
            PreparedCuda::Pieces(pieces) => return pieces.timed(limits, first, passes),
        };
        CudaError::check(doing, status)?;
        Ok(stamps)
    }

    fn confirmed(&mut self, seed: u64) -> Result<Option<Confirmed>, CudaError> {
        match self {
            PreparedCuda::Launches { .. } => Ok(None),
            PreparedCuda::Copies { copies, moved } => copies.confirmed(moved.verb, seed).map(Some),
            PreparedCuda::Pieces(pieces) => pieces.confirmed(seed).map(Some),
        }
    }
}
