//! Dry run of reads through the kernel's driver: what a run would do, without opening the drive.

use super::machine::{MAPPED, facts, limits};
use super::{DriveError, DriveNode};
use crate::drive_options::DriveOptions;
use crate::lines::Lines;
use crate::nvme::{DriveLimits, Queues, commands_of};
use crate::x86::cpu::Cpu;
use crate::x86::pin::{allowed_cpus, usable_cores};
use crate::x86::refusal::Refusal;
use lanemark_machine::{Facts, Machine, MachineError, Plan, Samples, Unsupported};
use lanemark_units::format_size;

/// Dry run of a [`NvmeMachine`](super::NvmeMachine): opens nothing, and records what each plan would do.
#[derive(Debug)]
pub struct NvmeRehearsal {
    facts: Facts,
    limits: DriveLimits,
    lines: Lines,
    summary: Vec<String>,
}

impl NvmeRehearsal {
    /// Creates a dry run.
    ///
    /// # Errors
    /// [`DriveError`] if the usable cores cannot be read.
    pub fn new(node: &DriveNode, is_emulated: bool) -> Result<NvmeRehearsal, DriveError> {
        let path = node.path();
        let cpus = allowed_cpus().map_err(|error| DriveError::Unsupported {
            path: path.to_owned(),
            because: format!("no CPU affinity mask can be read: {error}"),
        })?;
        let any = DriveLimits::unidentified(DriveOptions::default(), MAPPED, usable_cores(cpus.len()));
        let limits = limits(any.namespace, any.most_bytes, Queues::Kernel, any.cores);
        let summary = format!("dry run; {}", Cpu::detected().brand);
        let facts = facts(path, summary, limits, is_emulated);
        let summary = vec![
            format!("opened for reading: {}, {}; its driver stays bound", path.display(), node.summary()),
            "commands: Identify and Read of this namespace; no command that writes to the medium or changes a setting"
                .to_owned(),
            "by io_uring; where it is not permitted or not supported, by ioctl, one command at a time".to_owned(),
            format!(
                "size of logical blocks, size of the namespace and largest transfer are known when the drive has been identified; \
                 sizes that do not fit are refused then; at most {} outstanding commands",
                limits.depth
            ),
            format!(
                "host memory: at most {} of this process, which the kernel's driver maps for each command",
                format_size(MAPPED)
            ),
        ];
        Ok(NvmeRehearsal { facts, limits, lines: Lines::default(), summary })
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
}

impl Machine for NvmeRehearsal {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn supports(&self, plan: &Plan) -> Result<(), Unsupported> {
        let asked = commands_of(plan, &self.limits).unwrap_or_else(|| Err(super::machine::refused()));
        asked.map(drop).map_err(|refusal: Refusal| refusal.into_unsupported(&self.facts))
    }

    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        let asked = commands_of(plan, &self.limits).unwrap_or_else(|| Err(super::machine::refused()));
        let asked = asked.map_err(|refusal| refusal.into_error(&self.facts))?;
        Lines::sampled(samples);
        self.lines.add(asked.to_string());
        Ok(())
    }
}
