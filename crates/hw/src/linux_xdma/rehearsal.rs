//! Dry run of transfers through the driver: what a run would do, without opening a channel.

use super::machine::{MAPPED, facts, refused, with_user};
use super::plan::{self, Limits};
use super::user::UserBar;
use super::{CardMemory, XdmaCard, XdmaError};
use crate::lines::Lines;
use crate::linux_sysfs::{Attachment, BarFiles, CardError, Rehearsal};
use crate::x86::cpu::Cpu;
use crate::x86::pin::{allowed_cpus, usable_cores};
use lanemark_machine::{Facts, Machine, MachineError, Plan, Samples, Unsupported};
use lanemark_units::format_size;
use std::sync::Arc;

/// Dry run of an [`XdmaMachine`](super::XdmaMachine): opens nothing, and records what each plan would do.
#[derive(Debug)]
pub struct XdmaRehearsal {
    facts: Facts,
    limits: Limits,
    user: Option<Rehearsal>,
    lines: Lines,
    summary: Vec<String>,
}

impl XdmaRehearsal {
    /// Creates a dry run of what [`XdmaMachine::open`](super::XdmaMachine::open) opens, from the result of
    /// [`Attachment::rehearsed`].
    ///
    /// # Errors
    /// [`XdmaError`] as there, and if the usable cores cannot be read.
    pub fn new(
        card: &XdmaCard,
        memory: Option<CardMemory>,
        rehearsed: (Attachment, Vec<CardError>),
        is_emulated: bool,
    ) -> Result<XdmaRehearsal, XdmaError> {
        let unsupported = |because: String| XdmaError::Unsupported { path: card.path().to_owned(), because };
        card.check_access(memory, &rehearsed.0)?;
        let cpus = allowed_cpus().map_err(|error| unsupported(format!("no CPU affinity mask can be read: {error}")))?;
        let files: Arc<dyn BarFiles> = Arc::new(UserBar(card.clone()));
        let user = (!rehearsed.0.places.is_empty()).then(|| Rehearsal::through(&files, rehearsed)).transpose();
        let user = user.map_err(|error| unsupported(error.to_string()))?;
        let limits = Limits { memory, channels: card.channels(), mapped_bytes: MAPPED };
        let processor = format!("dry run; {}", Cpu::detected().brand);
        let facts = facts(card, &processor, limits, usable_cores(cpus.len()), is_emulated);
        let facts = user.as_ref().map_or_else(|| facts.clone(), |user| with_user(&facts, user.facts()));
        let path = card.path().display();
        let files = ["h2c", "c2h"].iter().flat_map(|of| (0..card.channels()).map(move |number| (of, number)));
        let files: Vec<String> = files.map(|(of, number)| format!("{path}_{of}_{number}")).collect();
        let mut summary = vec![format!("opened and locked: {}, of {}", files.join(", "), card.summary())];
        summary.extend(memory.map(effects).into_iter().flatten());
        Ok(XdmaRehearsal { facts, limits, user, lines: Lines::default(), summary })
    }

    /// What a run does before and beside its plans, one sentence each.
    #[must_use]
    pub fn summary(&self) -> &[String] {
        &self.summary
    }

    /// The dry run of the ranges of the user BAR, if there are any.
    #[must_use]
    pub const fn user(&self) -> Option<&Rehearsal> {
        self.user.as_ref()
    }

    /// Shared record of the plans with DMA.
    #[must_use]
    pub fn notes(&self) -> Lines {
        self.lines.clone()
    }
}

/// Memory of the card and of the host that runs with DMA use, in words.
fn effects(memory: CardMemory) -> [String; 3] {
    [
        format!(
            "overwritten: addresses {:#x} to {:#x} of the card; no others are read or written",
            memory.from,
            memory.to - 1
        ),
        format!(
            "host memory: a window of at most {}, one more transfer and 1MiB of this process, which the driver pins and maps for each \
             call",
            format_size(MAPPED)
        ),
        "verification: before the samples, the addresses of all channels are written through h2c channel 0; after DMA reads, those of \
         the last iteration are read through c2h channel 0"
            .to_owned(),
    ]
}

impl Machine for XdmaRehearsal {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn supports(&self, plan: &Plan) -> Result<(), Unsupported> {
        match (plan::of(plan, &self.limits), &self.user) {
            (None, Some(user)) => user.supports(plan),
            (asked, _) => asked
                .unwrap_or_else(|| Err(refused()))
                .map(drop)
                .map_err(|refusal| refusal.into_unsupported(&self.facts)),
        }
    }

    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        let asked = match (plan::of(plan, &self.limits), &mut self.user) {
            (None, Some(user)) => return user.run(plan, samples),
            (asked, _) => asked.unwrap_or_else(|| Err(refused())).map_err(|refusal| refusal.into_error(&self.facts))?,
        };
        Lines::sampled(samples);
        for stream in asked {
            self.lines.add(stream.to_string());
        }
        Ok(())
    }
}
