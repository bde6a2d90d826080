//! A device behind VFIO as a machine.

use super::{Container, Iommu, VfioError};
use crate::linux_sysfs::{Address, System};
use crate::map_unmap::{mapper_by, refused};
use crate::x86::buffer::Buffer;
use crate::x86::cpu::Cpu;
use crate::x86::disturbance::Company;
use crate::x86::pin::{allowed_cpus, usable_cores};
use crate::x86::request::{Ability, Request, Timed};
use crate::x86::run::{Numbering, Run};
use crate::x86::sample::{Delivery, stamp_before};
use crate::x86::timer::Timer;
use lanemark_dma::Space;
use lanemark_machine::{
    Facts, Machine, MachineError, MapUnmap, Plan, Region, RegionKind, Samples, Table, TimeBase, Unsupported,
};
use lanemark_units::{BarOffset, HostVirt, MemoryType, format_size};
use rustix::io::Errno;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Bytes of a page of the processor.
const PAGE: usize = 4096;

/// Memory of this process, mapped for a device by the real IOMMU.
///
/// - **Plans:** DMA mappings by the strategies of `lanemark-dma`, each map and unmap one ioctl. Opening resets the device, if
///   it can be reset; then no request goes to or from it.
/// - **Times, timeout, dropped:** as for [`HostMemory`](crate::HostMemory). Pinning of the pages is part of the time.
/// - **Confirmed:** nothing; the kernel reports how much it unmapped, and a run fails if that is not all.
#[derive(Debug)]
pub struct VfioMachine {
    facts: Facts,
    cpu: Cpu,
    cpus: Vec<usize>,
    timer: Timer,
    container: Arc<Container>,
    space: Space,
    /// Memory to map, as long as the longest buffer so far.
    memory: Option<Buffer>,
    interrupted: Arc<AtomicBool>,
    runs: u64,
}

impl VfioMachine {
    /// Opens a device that is bound to `vfio-pci`. In an emulator (`is_emulated`), the time-stamp counter need not be
    /// invariant.
    ///
    /// # Errors
    /// [`VfioError`].
    pub fn open(system: &System, device: Address, is_emulated: bool) -> Result<VfioMachine, VfioError> {
        let unsupported = |because: String| VfioError::Unsupported { device, because };
        // Everything that needs no device first: opening resets it.
        let cpu = Cpu::detected();
        if !cpu.has_invariant_tsc && !is_emulated {
            let because = "the time-stamp counter of this processor is not invariant, so nothing can be timed";
            return Err(unsupported(because.to_owned()));
        }
        let cpus = allowed_cpus().map_err(|error| unsupported(format!("no CPU affinity mask can be read: {error}")))?;
        let container = Container::open(system, device)?;
        let space = Iommu::space(&container).map_err(|error| unsupported(error.to_string()))?;
        Ok(VfioMachine {
            facts: facts(&container, &cpu, cpus.len(), is_emulated),
            timer: Timer::checked(cpu.tsc_hz),
            cpu,
            cpus,
            container: Arc::new(container),
            space,
            memory: None,
            interrupted: Arc::default(),
            runs: 0,
        })
    }

    /// Sets the flag that ends a run with [`MachineError::Interrupted`], between two samples or within a long one.
    #[must_use]
    pub fn interrupted_by(self, flag: Arc<AtomicBool>) -> VfioMachine {
        VfioMachine { interrupted: flag, ..self }
    }

    /// Limits of plans; an ioctl takes microseconds.
    fn ability(&self) -> Ability<'_> {
        Ability {
            facts: &self.facts,
            cpu: &self.cpu,
            timer: self.timer,
            no_other_type: "the memory that is mapped is WB",
            weight_per_check: 1 << 14,
            weight_per_pass: 1 << 24,
        }
    }

    /// The mapping that a plan asks for.
    fn request(&self, plan: &Plan) -> Result<(Request, MapUnmap), MachineError> {
        let ask = Request::of(plan, &self.ability()).map_err(|refusal| refusal.into_error(&self.facts))?;
        let Timed::MapUnmap(asked) = ask.work else {
            let because = "over VFIO it maps memory for the device, and does nothing else".to_owned();
            let (what, machine) = ("any other plan".to_owned(), self.facts.name.clone());
            return Err(Unsupported { what, machine, because }.into());
        };
        Ok((ask, asked))
    }

    /// Memory of `bytes` bytes, in whole pages.
    fn memory(&mut self, bytes: u64) -> Result<HostVirt, MachineError> {
        let len = (bytes as usize).next_multiple_of(PAGE);
        if self.memory.as_ref().is_none_or(|memory| memory.bytes().len() < len) {
            let os = |error: Errno| MachineError::Os {
                machine: self.facts.name.clone(),
                doing: "allocating the memory to map",
                source: error.into(),
            };
            self.memory = Some(Buffer::new(len).map_err(os)?);
        }
        Ok(HostVirt(self.memory.as_mut().map_or(0, |memory| memory.at(0).addr() as u64)))
    }
}

impl Machine for VfioMachine {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn supports(&self, plan: &Plan) -> Result<(), Unsupported> {
        match self.request(plan) {
            Err(MachineError::Unsupported(refusal)) => Err(refusal),
            // Other errors are those of a run.
            _ => Ok(()),
        }
    }

    #[allow(unsafe_code)]
    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        let (ask, asked) = self.request(plan)?;
        samples.clear();
        let begun = stamp_before();
        self.runs += 1;
        let memory = self.memory(asked.bytes)?;
        let name = self.facts.name.clone();
        // SAFETY: the memory lives until the next run or the end of this machine, and the mapper until the end of this run.
        // The device does nothing: its bus mastering is off.
        let iommu = unsafe { Iommu::new(Arc::clone(&self.container)) };
        let mapper = mapper_by(asked, self.space.clone(), memory, iommu);
        let mut mapper = mapper.map_err(|error| refused(&name, error))?;
        let run = Run {
            machine: &name,
            timer: self.timer,
            plan,
            cpu: self.cpus[ask.core],
            company: Company::None,
            passes_per_check: ask.passes_per_check,
            delivery: Delivery::Drained,
            interrupted: &self.interrupted,
            numbering: Numbering::EndingWith(self.runs),
        };
        run.take(
            samples,
            "mapping memory for DMA",
            || {},
            |limits, first, passes| mapper.timed(limits, first, passes).map_err(|error| refused(&name, error)),
        )?;
        samples.confirmed = None;
        samples.spent = self.timer.ticks(stamp_before().saturating_sub(begun));
        Ok(())
    }
}

fn facts(container: &Container, cpu: &Cpu, cpus: usize, is_emulated: bool) -> Facts {
    let sizes = container.properties().page_sizes;
    let pages = (0..64).filter(|bit| sizes & (1 << bit) != 0).map(|bit| format_size(1 << bit));
    let pages = pages.collect::<Vec<_>>().join(", ");
    Facts {
        name: container.device().to_string(),
        summary: format!("VFIO type 1, pages of {pages}; {}", cpu.brand),
        time_base: if is_emulated { TimeBase::Emulated } else { TimeBase::Real },
        cores: usable_cores(cpus),
        regions: vec![Region {
            name: "memory".to_owned(),
            at: BarOffset { bar: 0, offset: 0 },
            len: MapUnmap::MOST_BYTES,
            kind: RegionKind::Storage,
        }],
        memory_types: vec![MemoryType::Wb],
        stores: vec![],
        loads: vec![],
        memcpy: String::new(),
        dma: None,
        driver_width: None,
        tables: vec![Table::Iommu],
        disciplines: vec![],
        line_sources: vec![],
        runtime: None,
    }
}
