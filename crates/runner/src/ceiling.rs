//! The ceiling of a case: computed, measured on a stand-in, or unknown with the reason.

use crate::open_target::{Kind, OpenTarget};
use lanemark_bench::{BenchError, Case, Effort, measured_ceiling};
use lanemark_machine::{Machine, MachineError, TimeBase, Verb};
use lanemark_platform::Platform;
use lanemark_record::{Ceiling, CeilingKind, Runtime};

impl OpenTarget {
    /// The ceiling of a case. The ceilings of ordinary memory are measured on first use.
    pub(crate) fn ceiling(&mut self, case: &Case, effort: &Effort) -> Result<Ceiling, BenchError> {
        if self.facts().time_base == TimeBase::Emulated {
            return Ok(unknown("it is emulated: timings are not meaningful".to_owned()));
        }
        let runtime = self.runtime();
        let emulated = runtime.as_ref().filter(|runtime| runtime.is_emulated).and_then(Runtime::no_card_because);
        if let Some(because) = emulated {
            return Ok(unknown(because.to_owned()));
        }
        Ok(match &mut self.kind {
            Kind::Platform(formulas) => computed(&formulas.platform, case),
            Kind::Compiled(compiled) => computed(&compiled.host, case),
            Kind::Card(card) => card.ceiling(case),
            Kind::Gpu(gpu) => gpu.ceiling(case),
            Kind::Runtime(_) => {
                let because = "a runtime does not report the path between a program and its device";
                let no_card = runtime.as_ref().and_then(Runtime::no_card_because);
                unknown(no_card.unwrap_or(because).to_owned())
            }
            Kind::Memory(stand_ins) => {
                let [load, store] = match stand_ins {
                    Some(known) => &*known,
                    None => stand_ins.insert(measured(self.machine.as_mut(), effort)?),
                };
                if case.verb() == Verb::Load { load.clone() } else { store.clone() }
            }
        })
    }
}

/// An unknown ceiling, with the reason.
fn unknown(because: String) -> Ceiling {
    Ceiling { kind: CeilingKind::Unknown, rate_bytes_per_s: None, because }
}

/// The ceiling computed from the links and data paths of a platform.
fn computed(platform: &Platform, case: &Case) -> Ceiling {
    match lanemark_model::rate_ceiling(platform, &case.rated()) {
        Some(limit) => Ceiling {
            kind: CeilingKind::Computed,
            rate_bytes_per_s: Some(limit.rate.bytes_per_s()),
            because: limit.because,
        },
        None => unknown("no region of the platform covers the accessed addresses".to_owned()),
    }
}

/// The measured ceilings of loads and of stores.
fn measured(machine: &mut dyn Machine, effort: &Effort) -> Result<[Ceiling; 2], BenchError> {
    let mut stand_in = |verb| match measured_ceiling(machine, verb, effort) {
        Err(BenchError::Machine(error @ MachineError::Interrupted { .. })) => Err(error.into()),
        Err(error) => Ok(unknown(format!("measuring the stand-in failed: {error}"))),
        Ok(ceiling) => Ok::<_, BenchError>(ceiling),
    };
    Ok([stand_in(Verb::Load)?, stand_in(Verb::Store)?])
}
