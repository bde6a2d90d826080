//! Dry run of transfers through the driver: what a run would do, without opening a channel.

use super::machine::{MAPPED, facts, refused};
use super::plan::{self, Limits, Stream};
use super::{CardMemory, XdmaCard, XdmaError};
use crate::lines::Lines;
use crate::x86::cpu::Cpu;
use crate::x86::pin::{allowed_cpus, usable_cores};
use crate::x86::refusal::Refusal;
use lanemark_machine::{Facts, Machine, MachineError, Plan, Samples, Unsupported};
use lanemark_units::format_size;

/// Dry run of an [`XdmaMachine`](super::XdmaMachine): opens nothing, and records what each plan would do.
#[derive(Debug)]
pub struct XdmaRehearsal {
    facts: Facts,
    limits: Limits,
    lines: Lines,
    summary: Vec<String>,
}

impl XdmaRehearsal {
    /// Creates a dry run.
    ///
    /// # Errors
    /// [`XdmaError`] if the usable cores cannot be read.
    pub fn new(card: &XdmaCard, memory: CardMemory, is_emulated: bool) -> Result<XdmaRehearsal, XdmaError> {
        let cpus = allowed_cpus().map_err(|error| XdmaError::Unsupported {
            path: card.path().to_owned(),
            because: format!("no CPU affinity mask can be read: {error}"),
        })?;
        let limits = Limits { memory, channels: card.channels(), mapped_bytes: MAPPED };
        let processor = format!("dry run; {}", Cpu::detected().brand);
        let facts = facts(card, &processor, limits, usable_cores(cpus.len()), is_emulated);
        let path = card.path().display();
        let files = ["h2c", "c2h"].iter().flat_map(|of| (0..card.channels()).map(move |number| (of, number)));
        let files: Vec<String> = files.map(|(of, number)| format!("{path}_{of}_{number}")).collect();
        let summary = vec![
            format!("opened and locked: {}, of {}", files.join(", "), card.summary()),
            format!(
                "overwritten: addresses {:#x} to {:#x} of the card; no others are read or written",
                memory.from,
                memory.to - 1
            ),
            format!(
                "host memory: a window of at most {}, one more transfer and 1MiB of this process, which the driver pins and maps for \
                 each call",
                format_size(MAPPED)
            ),
            "verification: before the samples, the addresses of all channels are written through h2c channel 0; after DMA reads, those \
             of the last iteration are read through c2h channel 0"
                .to_owned(),
        ];
        Ok(XdmaRehearsal { facts, limits, lines: Lines::default(), summary })
    }

    /// What a run does before and beside its plans, one sentence each.
    #[must_use]
    pub fn summary(&self) -> &[String] {
        &self.summary
    }

    /// Shared record of the plans.
    #[must_use]
    pub fn notes(&self) -> Lines {
        self.lines.clone()
    }

    fn asked(&self, plan: &Plan) -> Result<Vec<Stream>, Refusal> {
        plan::of(plan, &self.limits).unwrap_or_else(|| Err(refused()))
    }
}

impl Machine for XdmaRehearsal {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn supports(&self, plan: &Plan) -> Result<(), Unsupported> {
        self.asked(plan).map(drop).map_err(|refusal| refusal.into_unsupported(&self.facts))
    }

    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        let asked = self.asked(plan).map_err(|refusal| refusal.into_error(&self.facts))?;
        Lines::sampled(samples);
        for stream in asked {
            self.lines.add(stream.to_string());
        }
        Ok(())
    }
}
