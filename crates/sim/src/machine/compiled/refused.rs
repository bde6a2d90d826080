//! Platforms and plans that a compiled card does not support, and why.

use crate::device::compiled_card::CompiledCard;
use crate::machine::SimulatedMachine;
use lanemark_machine::{
    Completion, CoreWork, Descriptors, DmaCall, EngineJob, EngineWork, HostMemory, Lane, Partner, Share, Task,
    Transfer, Unsupported, Work,
};
use lanemark_platform::Platform;
use lanemark_units::{MemoryType, format_size};

/// Why a platform is no host of this card.
pub(super) fn platform(platform: &Platform, card: &CompiledCard) -> Option<String> {
    let because = [
        (platform.cards() > 1, "a compiled card needs a platform with one card"),
        (!platform.faults.is_empty(), "a compiled card supports no injected faults: remove them"),
        (platform.has_ats(), "a compiled card has no ATC: set dma.ats_entries to 0"),
        (platform.fifos.is_some(), "a compiled card has no [fifos]: remove the section"),
        (platform.runtime.is_some(), "a compiled card has no [runtime]: remove the section"),
    ];
    if let Some((_, because)) = because.into_iter().find(|(is_so, _)| *is_so) {
        return Some(because.to_owned());
    }
    let ingress = platform.endpoint.ingress_ns.value;
    if card.ingress() > ingress {
        return Some(format!(
            "design.ingress_clocks of the device file takes {}, more than endpoint.ingress_ns, {ingress}",
            card.ingress()
        ));
    }
    card.registers().iter().find_map(|(number, end)| {
        let bar = platform.bars.iter().find(|bar| bar.index.value as u8 == *number);
        let len = bar.map_or(0, |bar| bar.size_bytes.value);
        (*end > len).then(|| {
            format!(
                "the device file has a register up to {end:#x} in BAR {number}, which has {} here",
                format_size(len)
            )
        })
    })
}

impl SimulatedMachine {
    /// Checks whether a compiled card can do this work.
    pub(in crate::machine) fn check_compiled(&self, work: &Work) -> Result<(), Unsupported> {
        work.check_cores(self.facts.cores).map_err(|impossible| impossible.on(&self.facts.name))?;
        match work {
            Work::Engines(engines) => self.check_compiled_job(engines),
            Work::Cores(CoreWork { lanes, before }) if work.dma_calls().next().is_some() => match lanes.as_slice() {
                [Lane { task: Task::DmaCall(call), .. }] if before.is_empty() => self.check_compiled_call(call),
                _ => Err(self.unsupported("DMA requested by several cores", "its engine does one transfer at a time")),
            },
            Work::Cores(CoreWork { lanes, .. }) if lanes.iter().any(|lane| matches!(lane.task, Task::Operation(_))) => {
                Err(self.unsupported("this operation", "this needs a simulated card"))
            }
            Work::Relay(_) | Work::Queue(_) => {
                Err(self.unsupported("work of several cards or of kernels", "a compiled card has neither"))
            }
            Work::Cores(_) | Work::Exchange(_) => self.check_work(work),
        }
    }

    fn check_compiled_call(&self, call: &DmaCall) -> Result<(), Unsupported> {
        let DmaCall { transfer, channel, share, descriptors, completion } = *call;
        let refused = |what: &str, because: &str| Err(self.unsupported(what, because));
        match (share, descriptors, completion) {
            (Share::Call, ..) => return refused("a call of a kernel driver", "a compiled card has no kernel driver"),
            (Share::Doorbell, ..) => {
                return refused(
                    "a doorbell with descriptors prepared in advance",
                    "its engine has no queue of descriptors",
                );
            }
            (Share::List, Descriptors::Fetched | Descriptors::Written(MemoryType::Wc), _) => {
                return refused("descriptors in host memory or in WC memory", "a transfer is described by registers");
            }
            (Share::List, Descriptors::Written(_), Completion::Flag) => {
                return refused(
                    "a completion flag in host memory",
                    "its engine writes no flag: a register shows the end",
                );
            }
            (Share::List, Descriptors::Written(_), Completion::Interrupt)
                if self.board.compiled().and_then(CompiledCard::msi).is_none() =>
            {
                let because = "the device file has no [interrupt] of the kind msi, or no engine.interrupt_command";
                return refused("an interrupt", because);
            }
            (Share::List, Descriptors::Written(_), Completion::Interrupt) if self.platform.driver.is_none() => {
                let because = "the platform has no section [driver], which has the times of an interrupt";
                return refused("an interrupt", because);
            }
            (Share::List, Descriptors::Written(_), Completion::Interrupt | Completion::Register) => {}
        }
        if channel != 0 {
            return refused("another channel than 0", "its engine has one");
        }
        self.check_compiled_transfer(&transfer)
    }

    fn check_compiled_job(&self, EngineWork { jobs, memory }: &EngineWork) -> Result<(), Unsupported> {
        let [EngineJob::Transfer(transfer)] = jobs.as_slice() else {
            return Err(self.unsupported("concurrent transfers", "its engine does one transfer at a time"));
        };
        if *memory != HostMemory::default() {
            return Err(self.unsupported(
                "this cache state or socket",
                "only the default cache state is simulated with a compiled card",
            ));
        }
        self.check_compiled_transfer(transfer)
    }

    fn check_compiled_transfer(&self, transfer: &Transfer) -> Result<(), Unsupported> {
        let refused = |what: &str, because: String| Err(self.unsupported(what, because));
        let Some(engine) = self.engine() else {
            return refused("DMA", "no device file describes its engine: name one with a section [engine]".to_owned());
        };
        let Transfer { partner, bytes, window, outstanding, .. } = *transfer;
        self.check_transfer(transfer)?;
        if partner != Partner::Host {
            return refused("DMA between cards", "there is one card".to_owned());
        }
        if outstanding.is_some_and(|outstanding| outstanding > 1) {
            return refused("several outstanding transfers", "its engine does one transfer at a time".to_owned());
        }
        let most = engine.limits.most_bytes.min(engine.limits.memory_bytes);
        if bytes == 0 || bytes > most {
            let because = format!("its engine moves 1 B to {} per transfer", format_size(most));
            return refused(&format!("a transfer of {}", format_size(bytes)), because);
        }
        let alignment = engine.limits.alignment_bytes.max(1);
        let at = self.board.mapped_at() + window.offset;
        if [bytes, at, window.step(bytes)].iter().any(|at| !at.is_multiple_of(alignment)) {
            return refused("this alignment", format!("the engine needs multiples of {alignment} B"));
        }
        let end = self.board.mapped_at() + window.offset + window.len.max(bytes);
        if engine.limits.address_bits < 64 && end > 1 << engine.limits.address_bits {
            let because = format!(
                "engine.address_bits is {}, too small for memory.address_bytes {:#x}: lower it in the platform",
                engine.limits.address_bits,
                self.board.mapped_at()
            );
            return refused("this window of host memory", because);
        }
        Ok(())
    }
}
