//! OpenCL device as a machine: opening it, running a plan.

use super::commands::Commands;
use super::copies::Copies;
use super::device::Device;
use super::devices::check;
use super::error::OpenClError;
use super::finished::FinishedKernels;
use super::launches::Launches;
use super::queue::Queue;
use super::workers::OpenClWorkers;
use crate::runtime_common::computing::Computing;
use crate::runtime_common::machine::{Failed, Prepared, RuntimeMachine, RuntimeQueue};
use crate::runtime_common::request::DeviceLimits;
use crate::watchdog::{OPEN_LIMIT, within};
use crate::x86::sample::{Limits, Stamps};
use lanemark_machine::{
    Allocation, Confirmed, Facts, HostWait, Launch, Machine, MachineError, Plan, QueueRequest, RuntimeCopy,
    RuntimeFacts, Samples, Unsupported,
};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Device of an OpenCL runtime.
///
/// - **Plans:** a request to a queue. A [`Launch`] enqueues a number of empty kernels and waits. A
///   [`RuntimeCopy`] copies between host memory and device memory. A [`Compute`](lanemark_machine::Compute) runs compute kernels of one work
///   item, each with a queue of its own. The arguments of a [`Launch`] are set before each launch, within the measured time. The calling thread is
///   pinned to the core of the request, unless the plan says otherwise; the operating system places the threads of the runtime.
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
/// use lanemark_machine::{Arguments, Launch, Machine, Step, Plan, Samples, HostWait};
/// let mut device = OpenClMachine::open(0, Default::default())?;
/// let mut samples = Samples::wanted(100);
/// device.run(&Plan::new(Launch { kernels: 1, wait: HostWait::Finish, arguments: Arguments::NONE }, 10), &mut samples)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct OpenClMachine {
    device: Device,
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
        let machine = RuntimeMachine::new(queue, name, summary, runtime, limits, interrupted);
        Ok(OpenClMachine { device, machine: machine.map_err(OpenClError::System)? })
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
        self.machine.facts()
    }

    fn supports(&self, plan: &Plan) -> Result<(), Unsupported> {
        self.machine.request(plan).map(|_| ())
    }

    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        self.machine.run(plan, samples)
    }
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
        small_copies: Vec::new(),
        memory_ports: context.ports.count(),
        // A device that can build no kernels fails to open.
        computes: true,
    }
}
