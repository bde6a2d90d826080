//! What the questions have in common in which a core asks a device to move bytes, and is told of the end.

use crate::case::{Axes, Case, Through};
use crate::dma;
use lanemark_machine::{Completion, Descriptors, Facts, Lane, Op, Plan, Share, Verb};
use lanemark_units::MemoryType;

/// Who asks how, and is told how.
pub(crate) type Asked = (Share, Descriptors, Completion);

/// Descriptors that the core writes to the device, or has written there.
pub(crate) const WRITTEN: Descriptors = Descriptors::Written(MemoryType::Uc);

/// A case for each size of each flow with host memory that is of this kind, in each of these ways; none where no driver can be
/// called.
pub(crate) fn cases(facts: &Facts, axes: &Axes, verb: Verb, ways: &[Asked], usual: &[u64]) -> Vec<Case> {
    // A call is one transfer, and the next one comes when it is over.
    let is_of_one = axes.reach.outstanding.is_none() && axes.reach.channels.is_none();
    if !facts.dma.is_some_and(|dma| dma.has_driver) || !is_of_one {
        return Vec::new();
    }
    let moved = dma::with_host(facts, axes, verb, None, usual);
    let asked = |(share, descriptors, completion): &Asked| {
        let (share, descriptors, completion) = (*share, *descriptors, *completion);
        let with = move |case: &Case| {
            let Through::Dma { window, .. } = case.through else { return case.clone() };
            Case { through: Through::DmaCall { window, share, descriptors, completion }, ..case.clone() }
        };
        moved.iter().map(with).collect::<Vec<Case>>()
    };
    ways.iter().flat_map(asked).collect()
}

/// A core for each flow that makes one call a pass.
pub(crate) fn plan(case: &Case, passes: u64) -> Plan {
    let lanes = (0..).zip(case.calls(1)).map(|(core, call)| Lane { core, body: vec![Op::Dma(call)] });
    Plan { lanes: lanes.collect(), ..Plan::on_one_core(Vec::new(), passes) }
}
