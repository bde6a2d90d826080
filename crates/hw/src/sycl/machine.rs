//! A device as a machine: opening it, running a plan.

use super::SyclError;
use super::device::Device;
use super::queue::Queue;
use crate::behind_runtime;
use crate::patience::{Attendant, PATIENCE, Progress, within};
use crate::x86::cpu::Cpu;
use crate::x86::disturbance::Company;
use crate::x86::pin::allowed_cpus;
use crate::x86::run::{Numbering, Run};
use crate::x86::sample::{Delivery, stamp_before};
use crate::x86::timer::Timer;
use lanemark_machine::{
    Allocation, Arguments, Facts, Launch, Machine, MachineError, MovedByRuntime, Op, Plan, RuntimeFacts, Samples,
    Unsupported,
};
use lanemark_units::format_size;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// A device behind a SYCL runtime.
///
/// - **Plans, times, timeout, dropped:** those of [`OpenClMachine`](crate::opencl::OpenClMachine), by the calls of SYCL: a launch is
///   `queue.submit`, and then `event.wait` or `queue.wait`. What a kernel is given is an accessor of a buffer, made for each launch as a program
///   makes it, or an address.
/// - **Copies:** a buffer's by an accessor and `handler.copy`, an address's by `queue.memcpy`. No call of SYCL returns when the program may use
///   its own memory again and the copy is not over: a sample's two times are the same.
/// - **Confirmed:** of copies, how many bytes of the last one were where it was to bring them; they differ from run to run.
///
/// ```no_run
/// use lanemark_hw::sycl::SyclMachine;
/// use lanemark_machine::{Arguments, Launch, Machine, Op, Plan, Samples, Told};
/// let mut device = SyclMachine::open(0, Default::default())?;
/// let mut samples = Samples::wanted(100);
/// device.run(&Plan::on_one_core(vec![Op::Launch(Launch { kernels: 1, told: Told::Event, arguments: Arguments::NONE })], 10), &mut samples)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SyclMachine {
    facts: Facts,
    /// Bytes of one piece of the device's memory.
    largest_bytes: u64,
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
    /// Opens device `number` of [`Device::all`], and builds what it is given to launch. Once `interrupted` is set this ends, and later every
    /// run does, between two samples or within a long one.
    ///
    /// # Errors
    /// [`SyclError`]; a runtime that has not come back after two minutes is [`SyclError::Late`], and keeps a thread.
    pub fn open(number: usize, interrupted: Arc<AtomicBool>) -> Result<SyclMachine, SyclError> {
        let (device, queue) = within(PATIENCE, &interrupted, move || {
            let mut devices = Device::all()?;
            if number >= devices.len() {
                return Err(SyclError::NoDevice { number, devices });
            }
            let device = devices.swap_remove(number);
            let queue = Queue::new(&device)?;
            Ok((device, queue))
        })?;
        let cpu = Cpu::detected();
        let cpus = allowed_cpus().map_err(|error| SyclError::System(error.to_string()))?;
        Ok(SyclMachine {
            facts: facts(&device, cpus.len()),
            largest_bytes: device.largest_bytes.min(device.memory_bytes),
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
        let refused = |what: &str, because: String| Unsupported {
            what: what.to_owned(),
            machine: self.facts.name.clone(),
            because,
        };
        let one = |because: &str| refused("the plan", because.to_owned());
        let [lane] = plan.lanes.as_slice() else { return Err(one("one thread calls its runtime")) };
        let asked = match lane.body.as_slice() {
            [Op::Launch(launch)] => Asked::Launch(*launch),
            [Op::MovedByRuntime(moved)] => Asked::Moved(*moved),
            [Op::Compute(_)] => return Err(one("its kernels do nothing: without a SYCL compiler there are no others")),
            _ => {
                let because = "it is a queue and no function of PCIe: it launches and copies, one of these, and nothing can be loaded or stored there";
                return Err(one(because));
            }
        };
        if !plan.before.is_empty() {
            return Err(one("nothing goes before"));
        }
        let allocations = self.facts.runtime.as_ref().map_or(&[][..], |runtime| &runtime.allocations);
        let has = |allocation| allocations.contains(&allocation);
        match asked {
            Asked::Launch(Launch { kernels, .. }) if kernels == 0 || kernels > Launch::MOST_KERNELS => {
                let because = format!("launches between two waits are 1 to {}", Launch::MOST_KERNELS);
                return Err(refused(&format!("{kernels} launches"), because));
            }
            Asked::Launch(Launch { arguments: Arguments { count, .. }, .. }) if count > Arguments::MOST => {
                let because = format!("kernels are given at most {}", Arguments::MOST);
                return Err(refused(&format!("a kernel with {count} arguments"), because));
            }
            Asked::Launch(Launch { arguments: Arguments { count: 1.., allocation }, .. })
                if !has(allocation) || !matches!(allocation, Allocation::Buffer | Allocation::Device) =>
            {
                let because = format!("its kernels are given {}", words(allocations, false));
                return Err(refused(&format!("a kernel that is given memory as {allocation}"), because));
            }
            Asked::Moved(MovedByRuntime { allocation, .. }) if !has(allocation) => {
                let because = format!("its memory is {}", words(allocations, true));
                return Err(refused(&format!("memory as {allocation}"), because));
            }
            Asked::Moved(MovedByRuntime { bytes, .. }) if bytes == 0 || bytes > MovedByRuntime::MOST_BYTES => {
                let because = format!("a copy is of 1 B to {}", format_size(MovedByRuntime::MOST_BYTES));
                return Err(refused(&format!("a copy of {bytes} B"), because));
            }
            Asked::Moved(MovedByRuntime { bytes, .. }) if bytes > self.largest_bytes => {
                let because = format!("a piece of its memory has at most {} B", self.largest_bytes);
                return Err(refused(&format!("a copy of {bytes} B"), because));
            }
            _ => {}
        }
        if plan.passes == 0 {
            return Err(one("it has no pass"));
        }
        let core = lane.core as usize;
        if core >= self.cpus.len() {
            return Err(refused(&format!("core {core}"), format!("this program may use {}", self.cpus.len())));
        }
        Ok((asked, core))
    }
}

/// These kinds of memory, in words; `all`, or those that a kernel can be given.
fn words(allocations: &[Allocation], all: bool) -> String {
    let given = |allocation: &&Allocation| all || matches!(allocation, Allocation::Buffer | Allocation::Device);
    allocations.iter().filter(given).map(ToString::to_string).collect::<Vec<_>>().join(", ")
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
            asked.take(&mut queue, &run, runs, &mut samples, told)?;
            Ok(samples)
        })?;
        samples.spent = self.timer.ticks(stamp_before().saturating_sub(begun));
        Ok(())
    }
}

/// What a pass is.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Launch(Launch),
    Moved(MovedByRuntime),
}

impl Asked {
    /// Takes samples of it; counts what it has got done in `told`.
    fn take(
        self,
        queue: &mut Queue,
        run: &Run<'_>,
        seed: u64,
        samples: &mut Samples,
        told: &Progress,
    ) -> Result<(), MachineError> {
        let what = match self {
            Asked::Launch(launch) => format!("a launch with {} arguments", launch.arguments.count),
            Asked::Moved(moved) => format!("a copy of {} B as {}", moved.bytes, moved.allocation),
        };
        let broken = |error: SyclError| {
            let machine = run.machine.to_owned();
            if let SyclError::NoHostMemory { .. } = error {
                return Unsupported { what: what.clone(), machine, because: error.to_string() }.into();
            }
            MachineError::Device { what: format!("{machine}: {what}: {error}"), machine }
        };
        let prepared = told.preparing(|| match self {
            Asked::Launch(launch) => queue.ready(launch),
            Asked::Moved(moved) => queue.room(moved),
        });
        // What cannot be had for this plan can be had for a smaller one.
        prepared.map_err(|error| Unsupported {
            what: what.clone(),
            machine: run.machine.to_owned(),
            because: error.to_string(),
        })?;
        if let Asked::Moved(moved) = self {
            told.preparing(|| queue.prepare(moved.verb, seed)).map_err(broken)?;
        }
        let doing = match self {
            Asked::Launch(_) => "launching kernels",
            Asked::Moved(_) => "copying to a device or from it",
        };
        run.take(
            samples,
            doing,
            || (),
            |limits, first, passes| {
                told.step();
                let stamps = match self {
                    Asked::Launch(launch) => queue.launches(launch, limits, first, passes),
                    Asked::Moved(moved) => queue.copies(moved, limits, first, passes),
                };
                stamps.map_err(broken)
            },
        )?;
        if let Asked::Moved(moved) = self {
            samples.confirmed = Some(told.preparing(|| queue.confirmed(moved.verb, seed)).map_err(broken)?);
        }
        Ok(())
    }
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
        memory_ports: 1,
        computes: false,
    };
    behind_runtime::facts(format!("sycl:{}", device.number), device.described(), cpus, runtime)
}
