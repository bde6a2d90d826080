//! SYCL device as a machine: opening it, running a plan.

use super::device::Device;
use super::error::SyclError;
use super::queue::{MEMORY_PORTS, Queue};
use super::workers::SyclWorkers;
use crate::opencl::FinishedKernels;
use crate::runtime_common::computing::Computing;
use crate::runtime_common::machine::{Failed, Prepared, RuntimeMachine, RuntimeQueue, Stage};
use crate::runtime_common::request::DeviceLimits;
use crate::watchdog::{OPEN_LIMIT, within};
use crate::x86::sample::{Limits, Stamps};
use lanemark_machine::{
    Allocation, Confirmed, Facts, HostWait, Launch, LaunchBy, Machine, MachineError, Plan, QueueRequest, RuntimeCopy,
    RuntimeFacts, Samples, Unsupported,
};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Device of a SYCL runtime.
///
/// - **Plans, times, timeout, dropped:** as for [`OpenClMachine`](crate::opencl::OpenClMachine), with SYCL calls: a launch is `queue.submit`,
///   followed by `event.wait` or `queue.wait`. Kernel arguments are buffer accessors, created for each launch as in a SYCL program, or addresses.
/// - **Compute kernels:** the OpenCL ones, each launched through accessors on a queue of its own. Memory ports cannot be selected.
/// - **Copies:** `handler.copy` with an accessor for buffers, `queue.memcpy` for addresses. SYCL has no call that returns when the program may
///   reuse its own memory before the copy is complete, so both times of a sample are equal.
/// - **Confirmed:** for copies, the number of bytes of the last one that arrived; for compute kernels, the number of correct result bytes. The
///   contents differ from run to run.
///
/// ```no_run
/// use lanemark_hw::sycl::SyclMachine;
/// use lanemark_machine::{Arguments, HostWait, Launch, LaunchBy, Machine, Plan, Samples, Step};
/// let mut device = SyclMachine::open(0, Default::default())?;
/// let mut samples = Samples::wanted(100);
/// let (by, arguments) = (LaunchBy::Calls, Arguments::NONE);
/// device.run(&Plan::new(Launch { kernels: 1, by, wait: HostWait::Event, arguments }, 10), &mut samples)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SyclMachine {
    machine: RuntimeMachine<Queue>,
}

impl SyclMachine {
    /// Opens device `number` of [`Device::all`]; kernels are built at their first launch. Once `interrupted` is set, opening
    /// ends, and later every run ends between two samples or within a long one.
    ///
    /// # Errors
    /// [`SyclError`]; [`SyclError::Late`] if the runtime does not return within two minutes, which leaves a thread behind.
    pub fn open(number: usize, interrupted: Arc<AtomicBool>) -> Result<SyclMachine, SyclError> {
        SyclMachine::open_with(number, None, interrupted)
    }

    /// Opens device `number` with prebuilt kernels, which boards without a compiler need.
    ///
    /// # Errors
    /// The errors of [`open`](SyclMachine::open), and [`SyclError::OpenCl`] if the device rejects the kernels.
    pub fn open_with(
        number: usize,
        kernels: Option<FinishedKernels>,
        interrupted: Arc<AtomicBool>,
    ) -> Result<SyclMachine, SyclError> {
        let (device, queue) = within(OPEN_LIMIT, &interrupted, move || {
            let mut devices = Device::all()?;
            if number >= devices.len() {
                return Err(SyclError::NoDevice { number, devices });
            }
            let device = devices.swap_remove(number);
            let queue = Queue::new(&device, kernels)?;
            Ok((device, queue))
        })?;
        let limits = DeviceLimits {
            usm: "the aspects usm_device_allocations and usm_host_allocations",
            largest_bytes: device.largest_bytes.min(device.memory_bytes),
            has_double: queue.has_double(),
        };
        let (name, summary) = (format!("sycl:{}", device.number), device.described());
        let machine = RuntimeMachine::new(queue, name, summary, runtime_facts(&device), limits, interrupted);
        Ok(SyclMachine { machine: machine.map_err(SyclError::System)? })
    }
}

impl Machine for SyclMachine {
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
pub(super) enum PreparedSycl<'a> {
    /// Launches of an empty kernel.
    Launches { queue: &'a mut Queue, launch: Launch },
    /// Copies between host memory and device memory.
    Copies { queue: &'a mut Queue, moved: RuntimeCopy },
    /// Compute kernels.
    Compute { kernels: &'a mut Computing<SyclWorkers>, wait: HostWait },
}

impl RuntimeQueue for Queue {
    type Error = SyclError;
    type Prepared<'a> = PreparedSycl<'a>;

    fn allocate(&mut self, request: QueueRequest) -> Result<PreparedSycl<'_>, SyclError> {
        Ok(match request {
            QueueRequest::Launch(launch) => {
                self.prepare_launch(launch)?;
                PreparedSycl::Launches { queue: self, launch }
            }
            QueueRequest::Copy(moved) => {
                self.allocate_copies(moved)?;
                PreparedSycl::Copies { queue: self, moved }
            }
            QueueRequest::SmallCopies(_) => {
                return Err(SyclError::System("copies of pieces are not supported here: use cuda:0".to_owned()));
            }
            QueueRequest::Compute(compute) => {
                PreparedSycl::Compute { kernels: self.computing(&compute.work)?, wait: compute.wait }
            }
        })
    }

    /// SYCL reports no status codes: every failed allocation is taken to depend on the plan.
    fn failure(failed: &Failed<'_>, error: &SyclError) -> MachineError {
        match (failed.stage, error) {
            (Stage::Allocating, _) | (_, SyclError::NoHostMemory(_)) => failed.unsupported(error.to_string()),
            (Stage::Sampling, _) => failed.device(&error.to_string()),
        }
    }
}

impl Prepared for PreparedSycl<'_> {
    type Error = SyclError;

    fn fill(&mut self, seed: u64) -> Result<(), SyclError> {
        match self {
            PreparedSycl::Launches { .. } => Ok(()),
            PreparedSycl::Copies { queue, moved } => queue.prepare(moved.verb, seed),
            PreparedSycl::Compute { kernels, .. } => kernels.prepare(seed),
        }
    }

    fn sample(&mut self, limits: &Limits<'_>, first: u64, passes: u64) -> Result<Stamps, SyclError> {
        match self {
            PreparedSycl::Launches { queue, launch } => queue.launches(*launch, limits, first, passes),
            PreparedSycl::Copies { queue, moved } => queue.copies(*moved, limits, first, passes),
            PreparedSycl::Compute { kernels, wait } => kernels.workers().timed(*wait, limits, first, passes),
        }
    }

    fn confirmed(&mut self, seed: u64) -> Result<Option<Confirmed>, SyclError> {
        match self {
            PreparedSycl::Launches { .. } => Ok(None),
            PreparedSycl::Copies { queue, moved } => queue.confirmed(moved.verb, seed).map(Some),
            PreparedSycl::Compute { kernels, .. } => kernels.confirmed(seed).map(Some),
        }
    }
}

fn runtime_facts(device: &Device) -> RuntimeFacts {
    let [has_device, has_host] = device.has_usm;
    let mut allocations = vec![Allocation::Buffer];
    allocations.extend(has_device.then_some(Allocation::Device));
    allocations.extend((has_device && has_host).then_some(Allocation::Host));
    RuntimeFacts {
        kind: device.kind,
        is_emulated: device.is_emulated,
        allocations,
        launches: vec![LaunchBy::Calls],
        small_copies: Vec::new(),
        memory_ports: MEMORY_PORTS,
        computes: true,
    }
}
