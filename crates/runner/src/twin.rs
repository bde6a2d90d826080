//! The twin of a real target: a platform that describes it and shows what cannot be observed on the target itself.

use crate::cancel::Cancel;
use crate::error::RunError;
use crate::open_target::OpenTarget;
use crate::setup::Setup;
use crate::target::Target;
use lanemark_bench::{BenchError, Case, Effort, Question};
use lanemark_platform::Platform;
use lanemark_record::{Answer, Twin as TwinRecord};

/// An open twin.
pub(crate) struct Twin {
    target: OpenTarget,
}

impl Twin {
    /// Opens `target` as the twin of the real ones among `real`.
    ///
    /// # Errors
    /// [`RunError::TwinIsReal`] for a target without a platform; [`RunError::NoTwin`] if no target is real; errors of
    /// [`Target::open`].
    pub(crate) fn open(target: &Target, of: &[Target], cancel: &Cancel) -> Result<Twin, RunError> {
        if target.is_real() {
            return Err(RunError::TwinIsReal { twin: target.to_string() });
        }
        if !of.iter().any(|of| of.is_real() && *of != Target::Host) {
            return Err(RunError::NoTwin);
        }
        Ok(Twin { target: target.open(&Setup::default(), cancel)? })
    }

    /// The platform.
    pub(crate) fn platform(&self) -> Option<&Platform> {
        self.target.platform()
    }

    /// Simulates a case and completes the real `answer` with the bottleneck, the resources and the formula of the twin;
    /// returns the simulated answer.
    ///
    /// # Errors
    /// As for [`lanemark_bench::ask`], if the twin cannot answer; `answer` is then unchanged.
    pub(crate) fn complete(
        &mut self,
        question: &Question,
        case: &Case,
        effort: &Effort,
        answer: &mut Answer,
    ) -> Result<Answer, BenchError> {
        let mut simulated = self.target.ask(question, case, effort)?;
        simulated.formula = self.target.formula(question, case, effort);
        answer.twin = Some(TwinRecord {
            platform: self.target.facts().name.clone(),
            latency_ns: simulated.latency_ns.map(|summary| summary.median),
            delivered_rate_bytes_per_s: simulated.delivered_rate_bytes_per_s.map(|summary| summary.median),
        });
        answer.waits.clone_from(&simulated.waits);
        answer.critical_path.clone_from(&simulated.critical_path);
        answer.links.clone_from(&simulated.links);
        answer.resources.clone_from(&simulated.resources);
        answer.formula.clone_from(&simulated.formula);
        Ok(simulated)
    }
}
