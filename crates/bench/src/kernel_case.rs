//! Cases with compute kernels, and their plans.

use crate::case::Case;
use crate::computation::Computation;
use lanemark_machine::{Compute, HostWait, Plan};
use lanemark_method::Method;

impl Computation {
    /// The case of this computation with `size` bytes.
    pub(crate) fn case(self, size: u64) -> Case {
        let method = Method::Compute { work: self.parameters(), wait: HostWait::Finish };
        Case { computation: Some(self), ..Case::of_runtime(size, method) }
    }
}

/// The plan of a case with kernels.
pub(crate) fn plan(case: &Case, passes: u64) -> Plan {
    let wait = if let Method::Compute { wait, .. } = case.method { wait } else { HostWait::Finish };
    let of = |asked: &Computation| Plan::new(Compute { work: asked.work.clone(), wait }, passes);
    case.computation.as_ref().map_or_else(Plan::empty, of)
}
