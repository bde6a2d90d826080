//! A device as a machine: opening it, running a plan.

#![allow(unsafe_code)]

use super::OpenClError;
use super::device::Device;
use super::finished::FinishedKernels;
use super::queue::Queue;
use super::status::Status;
use crate::runtime_common;
use crate::runtime_common::asked::{Asked, Asker};
use crate::watchdog::{Attendant, PATIENCE, Progress, within};
use crate::x86::cpu::Cpu;
use crate::x86::disturbance::Company;
use crate::x86::pin::allowed_cpus;
use crate::x86::run::{Numbering, Run};
use crate::x86::sample::{Delivery, stamp_before};
use crate::x86::timer::Timer;
use lanemark_machine::{
    Allocation, Compute, Facts, HostWait, Launch, Machine, MachineError, MovedByRuntime, Plan, RuntimeFacts, Samples,
    Unsupported,
};
use opencl_sys as cl;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// A device behind an OpenCL runtime.
///
/// - **Plans:** one lane whose pass is one [`Launch`], so many launches of a kernel that does nothing, and then a wait; one
///   [`MovedByRuntime`], a copy between memory of the program and memory of the device; or one [`Compute`], kernels that compute, each of
///   one work item and with a queue of its own. A kernel is given its arguments anew before each launch of a [`Launch`], within its time. The
///   calling thread is held on the core of the lane, or on none if the plan says so; the threads of the runtime are where the system puts them.
/// - **Times:** the time-stamp counter, as in [`HostMemory`](crate::HostMemory). What a launch takes is what the program waits for; how long the
///   device works on it nobody asks.
/// - **Timeout:** a call into a runtime cannot be called back. Samples are taken by a thread of their own; if it gets no
///   further for the plan's timeout and a second, the run ends with [`MachineError::Timeout`], the thread is left to itself, and every further run
///   is refused.
/// - **Confirmed:** of copies, how many bytes of the last one were where it was to bring them; of kernels that compute, how many bytes of
///   results were right. They differ from run to run.
/// - **Dropped:** samples that the system disturbed, as in `HostMemory`; but a core that the runtime's own threads take for as long as
///   they run is no disturbance: the launch asked for it.
///
/// ```no_run
/// use lanemark_hw::opencl::OpenClMachine;
/// use lanemark_machine::{Arguments, Launch, Machine, Op, Plan, Samples, HostWait};
/// let mut device = OpenClMachine::open(0, Default::default())?;
/// let mut samples = Samples::wanted(100);
/// device.run(&Plan::on_one_core(vec![Op::Launch(Launch { kernels: 1, told: HostWait::Finish, arguments: Arguments::NONE })], 10), &mut samples)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct OpenClMachine {
    facts: Facts,
    device: Device,
    /// The system's numbers of the cores a plan may name.
    cpus: Vec<usize>,
    timer: Timer,
    queue: Arc<Mutex<Queue>>,
    interrupted: Arc<AtomicBool>,
    attendant: Attendant,
    /// Whether kernels may compute with numbers of 64 bits.
    has_double: bool,
    /// Runs begun.
    runs: u64,
}

impl OpenClMachine {
    /// Opens device `number` of [`Device::all`], and builds what it is given to launch; some runtimes take a minute for the first of it. Once
    /// `interrupted` is set this ends, and later every run does, between two samples or within a long one.
    ///
    /// # Errors
    /// [`OpenClError`]; a runtime that has not come back after two minutes is [`OpenClError::Late`], and keeps a thread.
    pub fn open(number: usize, interrupted: Arc<AtomicBool>) -> Result<OpenClMachine, OpenClError> {
        OpenClMachine::open_with(number, None, interrupted)
    }

    /// The same, with kernels that somebody else has built: boards that have no compiler need them.
    ///
    /// # Errors
    /// As for [`open`](OpenClMachine::open), and that the device does not take them.
    pub fn open_with(
        number: usize,
        kernels: Option<FinishedKernels>,
        interrupted: Arc<AtomicBool>,
    ) -> Result<OpenClMachine, OpenClError> {
        let (device, queue) = within(PATIENCE, &interrupted, move || {
            let (mut devices, refused) = Device::all()?;
            if number >= devices.len() {
                return Err(OpenClError::no_device(number, devices, refused));
            }
            let device = devices.swap_remove(number);
            let queue = Queue::new(&device, kernels)?;
            Ok((device, queue))
        })?;
        let cpu = Cpu::detected();
        let has_double = queue.commands.context.has_double;
        let cpus = allowed_cpus().map_err(|error| OpenClError::System(error.to_string()))?;
        Ok(OpenClMachine {
            facts: facts(&device, &queue, cpus.len()),
            device,
            cpus,
            timer: Timer::checked(cpu.tsc_hz),
            queue: Arc::new(Mutex::new(queue)),
            interrupted,
            attendant: Attendant::default(),
            has_double,
            runs: 0,
        })
    }

    /// The device, as its runtime describes it.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The system's numbers of the cores that a plan may name, in the order in which it counts them.
    #[must_use]
    pub fn cpus(&self) -> &[usize] {
        &self.cpus
    }

    /// What a plan asks the runtime for, and the core that is to call for it.
    fn asked(&self, plan: &Plan) -> Result<(Asked, usize), Unsupported> {
        let Some(runtime) = &self.facts.runtime else { unreachable!("`open` says what is behind the runtime") };
        let (machine, cores, has_double) = (self.facts.name.as_str(), self.cpus.len(), self.has_double);
        let usm = "the extension cl_intel_unified_shared_memory";
        // Of pieces that are too long the runtime itself says so.
        let largest_bytes = u64::MAX;
        Asker { machine, cores, runtime, usm, largest_bytes, has_double }.asked(plan)
    }

    /// Takes the samples on a thread of its own; how many were wanted come back, or an error.
    fn take(&mut self, plan: &Plan, asked: Asked, core: usize, wanted: usize) -> Result<Samples, MachineError> {
        let (timer, cpu, runs) = (self.timer, self.cpus[core], self.runs);
        let (name, timeout, plan) = (self.facts.name.clone(), plan.timeout, plan.clone());
        let (queue, interrupted) = (Arc::clone(&self.queue), Arc::clone(&self.interrupted));
        self.attendant.samples(&self.facts.name, timeout, move |told| {
            let mut samples = Samples::wanted(wanted);
            // Whoever panicked left nothing half done here.
            let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
            let run = Run {
                machine: &name,
                timer,
                plan: &plan,
                cpu,
                company: Company::OwnThreads,
                // A look takes 20 to 40 ns and a launch at least a microsecond.
                passes_per_look: 1,
                delivery: Delivery::Drained,
                interrupted: &interrupted,
                numbering: Numbering::EndingWith(runs),
            };
            match asked {
                Asked::Launch(launch) => launch_kernels(&mut queue, &run, launch, &mut samples, told),
                Asked::Moved(moved) => move_bytes(&mut queue, &run, moved, &mut samples, told),
                Asked::Compute(compute) => compute_with(&mut queue, &run, &compute, &mut samples, told),
            }?;
            Ok(samples)
        })
    }
}

impl Machine for OpenClMachine {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn supports(&self, plan: &Plan) -> Result<(), Unsupported> {
        self.asked(plan).map(|_| ())
    }

    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        let (asked, core) = self.asked(plan)?;
        samples.clear();
        let begun = stamp_before();
        self.runs += 1;
        let wanted = samples.count_wanted();
        *samples = self.take(plan, asked, core, wanted)?;
        samples.spent = self.timer.ticks(stamp_before().saturating_sub(begun));
        Ok(())
    }
}

/// An error of the machine. A kernel that does not build keeps no other plan from being run, and memory that there is not none that takes
/// less.
fn failed(run: &Run<'_>, doing: &str, error: &OpenClError) -> MachineError {
    let machine = run.machine.to_owned();
    let of_this_plan = match error {
        OpenClError::NoMemory { .. }
        | OpenClError::NoHostMemory(_)
        | OpenClError::NotBuilt { .. }
        | OpenClError::NoKernel { .. } => Some(""),
        OpenClError::Refused { status, .. } if status.says_short_of_memory() => Some("; ask for less"),
        _ => None,
    };
    if let Some(to_do) = of_this_plan {
        return Unsupported { what: doing.to_owned(), machine, because: format!("{error}{to_do}") }.into();
    }
    let lost = match error {
        OpenClError::Refused { status, .. } if status.may_be_a_lost_device() => LOST,
        _ => "",
    };
    let what = format!("{machine}: {doing}: {error}{lost}");
    MachineError::Device { machine, what }
}

/// What to try where a device may be gone.
const LOST: &str = "; the device may be gone: what was measured before stays. Look whether the system still lists it, reset or reprogram it as its vendor says, and start the program again";

/// What a call within a sample said, which had worked before the samples.
fn called(run: &Run<'_>, doing: &'static str, status: i32) -> Result<(), MachineError> {
    if status == cl::CL_SUCCESS {
        return Ok(());
    }
    Err(failed(run, "in a sample", &OpenClError::Refused { doing, status: Status(status) }))
}

/// Takes samples of launches.
fn launch_kernels(
    queue: &mut Queue,
    run: &Run<'_>,
    launch: Launch,
    samples: &mut Samples,
    told: &Progress,
) -> Result<(), MachineError> {
    let commands = Arc::clone(&queue.commands);
    let launches = told.preparing(|| queue.launches(launch.arguments));
    let launches = launches.map_err(|error| failed(run, "a kernel that does nothing", &error))?;
    let doing = match launch.told {
        HostWait::Finish => "launching a kernel, told by finish",
        HostWait::Event => "launching a kernel, told by event",
    };
    let left = run.take(
        samples,
        doing,
        || (),
        |limits, first, passes| {
            told.step();
            let (stamps, status) = launches.timed(&commands, launch, limits, first, passes);
            called(run, doing, status)?;
            Ok(stamps)
        },
    );
    left.map(|_| ())
}

/// Takes samples of a copy, and looks whether the bytes of the last one are there.
fn move_bytes(
    queue: &mut Queue,
    run: &Run<'_>,
    moved: MovedByRuntime,
    samples: &mut Samples,
    told: &Progress,
) -> Result<(), MachineError> {
    let refused =
        |error: OpenClError| failed(run, &format!("a copy of {} B as {}", moved.bytes, moved.allocation), &error);
    let Numbering::EndingWith(seed) = run.numbering else { return Ok(()) };
    let copies = told.preparing(|| {
        let copies = queue.copies(moved.allocation, moved.bytes)?;
        copies.prepare(moved.verb, seed)?;
        Ok(copies)
    });
    let copies = copies.map_err(refused)?;
    run.take(
        samples,
        "copying to a device or from it",
        || (),
        |limits, _, passes| {
            told.step();
            let (stamps, status) = copies.timed(moved, limits, passes);
            called(run, "copying to a device or from it", status)?;
            Ok(stamps)
        },
    )?;
    samples.confirmed = Some(told.preparing(|| copies.confirmed(moved.verb, seed)).map_err(refused)?);
    Ok(())
}

/// Takes samples of kernels that compute, and looks whether what the last ones computed is right.
fn compute_with(
    queue: &mut Queue,
    run: &Run<'_>,
    compute: &Compute,
    samples: &mut Samples,
    told: &Progress,
) -> Result<(), MachineError> {
    let refused = |error: OpenClError| failed(run, "kernels that compute", &error);
    let Numbering::EndingWith(seed) = run.numbering else { return Ok(()) };
    let computing = told.preparing(|| {
        let computing = queue.computing(&compute.work)?;
        computing.prepare(seed)?;
        Ok(computing)
    });
    let computing = computing.map_err(refused)?;
    let workers = computing.workers();
    run.take(
        samples,
        "computing",
        || (),
        |limits, first, passes| {
            told.step();
            let (stamps, status) = workers.timed(compute.told, limits, first, passes);
            called(run, "computing", status)?;
            Ok(stamps)
        },
    )?;
    samples.confirmed = Some(told.preparing(|| computing.confirmed(seed)).map_err(refused)?);
    Ok(())
}

fn facts(device: &Device, queue: &Queue, cpus: usize) -> Facts {
    let context = &queue.commands.context;
    let has = |allocation: &Allocation| match allocation {
        Allocation::Buffer | Allocation::Mapped => true,
        Allocation::Device => context.usm.is_some(),
        Allocation::Host => context.usm.is_some_and(|usm| usm.has_host),
    };
    let runtime = RuntimeFacts {
        kind: device.kind,
        is_emulated: device.is_emulated,
        allocations: Allocation::ALL.into_iter().filter(has).collect(),
        memory_ports: context.ports.count(),
        // What it could not build the kernels of, it could not have been opened with.
        computes: true,
    };
    runtime_common::facts(format!("opencl:{}", device.number), device.described(), cpus, runtime)
}
