//! A device as a machine: opening it, running a plan.

use super::SyclError;
use super::device::Device;
use super::queue::{MEMORY_PORTS, Queue};
use crate::opencl::FinishedKernels;
use crate::runtime_common;
use crate::runtime_common::asked::{Asked, Asker};
use crate::watchdog::{Attendant, PATIENCE, Progress, within};
use crate::x86::cpu::Cpu;
use crate::x86::disturbance::Company;
use crate::x86::pin::allowed_cpus;
use crate::x86::run::{Numbering, Run};
use crate::x86::sample::{Delivery, stamp_before};
use crate::x86::timer::Timer;
use lanemark_machine::{Allocation, Facts, Machine, MachineError, Plan, RuntimeFacts, Samples, Unsupported};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// A device behind a SYCL runtime.
///
/// - **Plans, times, timeout, dropped:** those of [`OpenClMachine`](crate::opencl::OpenClMachine), by the calls of SYCL: a launch is
///   `queue.submit`, and then `event.wait` or `queue.wait`. What a kernel is given is an accessor of a buffer, made for each launch as a program
///   makes it, or an address.
/// - **Kernels that compute:** those of OpenCL, each launched through accessors of its arrays on a queue of its own; a program chooses no port.
/// - **Copies:** a buffer's by an accessor and `handler.copy`, an address's by `queue.memcpy`. No call of SYCL returns when the program may use
///   its own memory again and the copy is not over: a sample's two times are the same.
/// - **Confirmed:** of copies, how many bytes of the last one were where it was to bring them; of kernels that compute, how many bytes of
///   results were right. They differ from run to run.
///
/// ```no_run
/// use lanemark_hw::sycl::SyclMachine;
/// use lanemark_machine::{Arguments, Launch, Machine, Op, Plan, Samples, HostWait};
/// let mut device = SyclMachine::open(0, Default::default())?;
/// let mut samples = Samples::wanted(100);
/// device.run(&Plan::on_one_core(vec![Op::Launch(Launch { kernels: 1, told: HostWait::Event, arguments: Arguments::NONE })], 10), &mut samples)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SyclMachine {
    facts: Facts,
    /// Bytes of one piece of the device's memory.
    largest_bytes: u64,
    /// Whether kernels may compute with numbers of 64 bits.
    has_double: bool,
    /// The system's numbers of the cores a plan may name.
    cpus: Vec<usize>,
    timer: Timer,
    queue: Arc<Mutex<Queue>>,
    interrupted: Arc<AtomicBool>,
    attendant: Attendant,
    /// Runs begun.
    runs: u64,
}

impl SyclMachine {
    /// Opens device `number` of [`Device::all`]; kernels are built when they are first launched. Once `interrupted` is set this ends, and later every
    /// run does, between two samples or within a long one.
    ///
    /// # Errors
    /// [`SyclError`]; a runtime that has not come back after two minutes is [`SyclError::Late`], and keeps a thread.
    pub fn open(number: usize, interrupted: Arc<AtomicBool>) -> Result<SyclMachine, SyclError> {
        SyclMachine::open_with(number, None, interrupted)
    }

    /// The same, with kernels that somebody else has built: boards that have no compiler need them.
    ///
    /// # Errors
    /// As for [`open`](SyclMachine::open), and that the device does not take them.
    pub fn open_with(
        number: usize,
        kernels: Option<FinishedKernels>,
        interrupted: Arc<AtomicBool>,
    ) -> Result<SyclMachine, SyclError> {
        let (device, queue) = within(PATIENCE, &interrupted, move || {
            let mut devices = Device::all()?;
            if number >= devices.len() {
                return Err(SyclError::NoDevice { number, devices });
            }
            let device = devices.swap_remove(number);
            let queue = Queue::new(&device, kernels)?;
            Ok((device, queue))
        })?;
        let cpu = Cpu::detected();
        let has_double = queue.has_double();
        let cpus = allowed_cpus().map_err(|error| SyclError::System(error.to_string()))?;
        Ok(SyclMachine {
            facts: facts(&device, cpus.len()),
            largest_bytes: device.largest_bytes.min(device.memory_bytes),
            has_double,
            cpus,
            timer: Timer::checked(cpu.tsc_hz),
            queue: Arc::new(Mutex::new(queue)),
            interrupted,
            attendant: Attendant::default(),
            runs: 0,
        })
    }

    /// What a plan asks the runtime for, and the core that is to call for it.
    fn asked(&self, plan: &Plan) -> Result<(Asked, usize), Unsupported> {
        let Some(runtime) = &self.facts.runtime else { unreachable!("`open` says what is behind the runtime") };
        let (machine, cores) = (self.facts.name.as_str(), self.cpus.len());
        let usm = "the aspects usm_device_allocations and usm_host_allocations";
        let (largest_bytes, has_double) = (self.largest_bytes, self.has_double);
        Asker { machine, cores, runtime, usm, largest_bytes, has_double }.asked(plan)
    }
}

impl Machine for SyclMachine {
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
        let (wanted, timeout) = (samples.count_wanted(), plan.timeout);
        let (timer, cpu, runs) = (self.timer, self.cpus[core], self.runs);
        let (name, plan) = (self.facts.name.clone(), plan.clone());
        let (queue, interrupted) = (Arc::clone(&self.queue), Arc::clone(&self.interrupted));
        *samples = self.attendant.samples(&self.facts.name, timeout, move |told| {
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
            take(asked, &mut queue, &run, runs, &mut samples, told)?;
            Ok(samples)
        })?;
        samples.spent = self.timer.ticks(stamp_before().saturating_sub(begun));
        Ok(())
    }
}

/// What goes wrong with a plan: what cannot be had for it can be had for a smaller one.
#[derive(Debug)]
struct Broken<'a> {
    machine: &'a str,
    what: &'a str,
}

impl Broken<'_> {
    fn before(&self, error: &SyclError) -> MachineError {
        let (what, machine) = (self.what.to_owned(), self.machine.to_owned());
        Unsupported { what, machine, because: error.to_string() }.into()
    }

    fn amid(&self, error: &SyclError) -> MachineError {
        let (what, machine) = (self.what, self.machine.to_owned());
        if let SyclError::NoHostMemory(_) = error {
            return self.before(error);
        }
        MachineError::Device { what: format!("{machine}: {what}: {error}"), machine }
    }
}

/// Takes samples of what is asked; counts what it has got done in `told`.
fn take(
    asked: Asked,
    queue: &mut Queue,
    run: &Run<'_>,
    seed: u64,
    samples: &mut Samples,
    told: &Progress,
) -> Result<(), MachineError> {
    let what = match &asked {
        Asked::Launch(launch) => match launch.arguments.count {
            1 => "a launch with 1 argument".to_owned(),
            count => format!("a launch with {count} arguments"),
        },
        Asked::Moved(moved) => format!("a copy of {} B as {}", moved.bytes, moved.allocation),
        Asked::Compute(_) => "kernels that compute".to_owned(),
    };
    let broken = Broken { machine: run.machine, what: &what };
    let amid = |error| broken.amid(&error);
    match asked {
        Asked::Launch(launch) => {
            told.preparing(|| queue.ready(launch)).map_err(|error| broken.before(&error))?;
            run.take(
                samples,
                "launching kernels",
                || (),
                |limits, first, passes| {
                    told.step();
                    queue.launches(launch, limits, first, passes).map_err(amid)
                },
            )?;
        }
        Asked::Moved(moved) => {
            told.preparing(|| queue.room(moved)).map_err(|error| broken.before(&error))?;
            told.preparing(|| queue.prepare(moved.verb, seed)).map_err(amid)?;
            run.take(
                samples,
                "copying to a device or from it",
                || (),
                |limits, first, passes| {
                    told.step();
                    queue.copies(moved, limits, first, passes).map_err(amid)
                },
            )?;
            samples.confirmed = Some(told.preparing(|| queue.confirmed(moved.verb, seed)).map_err(amid)?);
        }
        Asked::Compute(compute) => {
            let computing = told.preparing(|| queue.computing(&compute.work)).map_err(|error| broken.before(&error))?;
            told.preparing(|| computing.prepare(seed)).map_err(amid)?;
            let workers = computing.workers();
            run.take(
                samples,
                "computing",
                || (),
                |limits, first, passes| {
                    told.step();
                    workers.timed(compute.told, limits, first, passes).map_err(amid)
                },
            )?;
            samples.confirmed = Some(told.preparing(|| computing.confirmed(seed)).map_err(amid)?);
        }
    }
    Ok(())
}

fn facts(device: &Device, cpus: usize) -> Facts {
    let [has_device, has_host] = device.has_usm;
    let mut allocations = vec![Allocation::Buffer];
    allocations.extend(has_device.then_some(Allocation::Device));
    allocations.extend((has_device && has_host).then_some(Allocation::Host));
    let runtime = RuntimeFacts {
        kind: device.kind,
        is_emulated: device.is_emulated,
        allocations,
        memory_ports: MEMORY_PORTS,
        computes: true,
    };
    runtime_common::facts(format!("sycl:{}", device.number), device.described(), cpus, runtime)
}
