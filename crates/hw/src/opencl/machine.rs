//! A device as a machine: opening it, running a plan.

#![allow(unsafe_code)]

use super::OpenClError;
use super::device::{Device, good};
use super::queue::Queue;
use crate::interpreter::interpreter;
use crate::patience::{Attendant, PATIENCE, Progress, within};
use crate::x86::cpu::Cpu;
use crate::x86::pin::{allowed_cpus, usable_cores};
use crate::x86::run::{Numbering, Run};
use crate::x86::sample::{Delivery, stamp_before};
use crate::x86::timer::Timer;
use lanemark_machine::{
    Allocation, Arguments, Clockwork, Facts, Launch, Machine, MachineError, MovedByRuntime, Op, Plan, RuntimeFacts,
    Samples, Unsupported,
};
use lanemark_units::format_size;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// A device behind an OpenCL runtime.
///
/// - **Plans:** one lane whose pass is one [`Launch`], so many launches of a kernel that does nothing, and then a wait; or one
///   [`MovedByRuntime`], a copy between a buffer of the program and one of the device. The
///   calling thread is held on the core of the lane; the threads of the runtime are where the system puts them.
/// - **Times:** the time-stamp counter, as in [`HostMemory`](crate::HostMemory). What a launch takes is what the program waits for; how long the
///   device works on it nobody asks.
/// - **Timeout:** a call into a runtime cannot be called back. Samples are taken by a thread of their own; if it gets no
///   further for the plan's timeout and a second, the run ends with [`MachineError::Timeout`], the thread is left to itself, and every further run
///   is refused.
/// - **Confirmed:** of copies, how many bytes of the last one were where it was to bring them; they differ from run to run.
/// - **Dropped:** samples that the system disturbed, as in `HostMemory`.
///
/// ```no_run
/// use lanemark_hw::opencl::OpenClMachine;
/// use lanemark_machine::{Arguments, Launch, Machine, Op, Plan, Samples, Told};
/// let mut device = OpenClMachine::open(0, Default::default())?;
/// let mut samples = Samples::wanted(100);
/// device.run(&Plan::on_one_core(vec![Op::Launch(Launch { kernels: 1, told: Told::Finish, arguments: Arguments::NONE })], 10), &mut samples)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct OpenClMachine {
    facts: Facts,
    /// The system's numbers of the cores a plan may name.
    cpus: Vec<usize>,
    timer: Timer,
    queue: Arc<Mutex<Queue>>,
    interrupted: Arc<AtomicBool>,
    attendant: Attendant,
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
        let (device, queue) = within(PATIENCE, &interrupted, move || {
            let (mut devices, refused) = Device::all()?;
            if number >= devices.len() {
                return Err(OpenClError::no_device(number, devices, refused));
            }
            let device = devices.swap_remove(number);
            let queue = Queue::new(&device)?;
            Ok((device, queue))
        })?;
        let cpu = Cpu::detected();
        let cpus = allowed_cpus().map_err(|error| OpenClError::System(error.to_string()))?;
        Ok(OpenClMachine {
            facts: facts(&device, cpus.len()),
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
            _ => {
                let because = "it is a queue and no function of PCIe: it launches and copies, one of these, and nothing can be loaded or stored there";
                return Err(one(because));
            }
        };
        if !plan.before.is_empty() {
            return Err(one("nothing goes before"));
        }
        match asked {
            Asked::Launch(Launch { kernels, .. }) if kernels == 0 || kernels > Launch::MOST_KERNELS => {
                let because = format!("launches between two waits are 1 to {}", Launch::MOST_KERNELS);
                return Err(refused(&format!("{kernels} launches"), because));
            }
            Asked::Launch(Launch { arguments: Arguments { count: 1.., .. }, .. }) => {
                return Err(one("its kernels are given nothing"));
            }
            Asked::Moved(MovedByRuntime { allocation, .. }) if allocation != Allocation::Buffer => {
                return Err(refused(&format!("memory as {allocation}"), "its memory is buffers".to_owned()));
            }
            Asked::Moved(MovedByRuntime { bytes, .. }) if bytes == 0 || bytes > MovedByRuntime::MOST_BYTES => {
                let because = format!("a copy is of 1 B to {}", format_size(MovedByRuntime::MOST_BYTES));
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
                // A look takes 20 to 40 ns and a launch at least a microsecond.
                passes_per_look: 1,
                delivery: Delivery::Drained,
                interrupted: &interrupted,
                numbering: Numbering::EndingWith(runs),
            };
            match asked {
                Asked::Launch(launch) => launch_kernels(&queue, &run, launch, &mut samples, told),
                Asked::Moved(moved) => move_bytes(&mut queue, &run, moved, &mut samples, told),
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

/// What a pass is.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Launch(Launch),
    Moved(MovedByRuntime),
}

/// Takes samples of launches; counts what it has got done in `told`.
fn launch_kernels(
    queue: &Queue,
    run: &Run<'_>,
    launch: Launch,
    samples: &mut Samples,
    told: &Progress,
) -> Result<(), MachineError> {
    let left = run.take(
        samples,
        "launching kernels",
        || (),
        |limits, first, passes| {
            told.step();
            queue.timed(run.machine, launch, limits, first, passes)
        },
    );
    left.map(|_| ())
}

/// Takes samples of a copy, and looks whether the bytes of the last one are there; counts what it has got done in `told`.
fn move_bytes(
    queue: &mut Queue,
    run: &Run<'_>,
    moved: MovedByRuntime,
    samples: &mut Samples,
    told: &Progress,
) -> Result<(), MachineError> {
    let refused = |error: OpenClError| {
        let machine = run.machine.to_owned();
        let what = format!("{machine}: a copy of {} B: {error}", moved.bytes);
        MachineError::Device { machine, what }
    };
    let Numbering::EndingWith(seed) = run.numbering else { return Ok(()) };
    let copies = told.preparing(|| {
        let copies = queue.copies(moved.bytes)?;
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
            good("asking for it", status).map_err(refused)?;
            Ok(stamps)
        },
    )?;
    samples.confirmed = Some(told.preparing(|| copies.confirmed(moved.verb, seed)).map_err(refused)?);
    Ok(())
}

fn facts(device: &Device, cpus: usize) -> Facts {
    Facts {
        name: format!("opencl:{}", device.number),
        summary: device.described(),
        clockwork: if interpreter().is_some() { Clockwork::Emulated } else { Clockwork::Real },
        cores: usable_cores(cpus),
        regions: Vec::new(),
        memory_types: Vec::new(),
        stores: Vec::new(),
        loads: Vec::new(),
        memcpy: String::new(),
        dma: None,
        driver_width: None,
        disciplines: Vec::new(),
        holders: Vec::new(),
        runtime: Some(RuntimeFacts {
            kind: device.kind,
            is_emulated: device.is_emulated,
            allocations: vec![Allocation::Buffer],
            memory_ports: 1,
            computes: false,
        }),
    }
}
