//! A case made short, for whoever looks at each packet.

use crate::case::{Case, Through};
use crate::dma;
use crate::question::Question;
use lanemark_machine::{Op, Plan};

/// The most passes that are traced where nobody says how many.
const MOST_PASSES: u64 = 8;
/// Passes are few enough to move no more than this, but for the first.
const FEW_BYTES: u64 = 4096;

/// The plan of a case with `passes` passes, or a few that fit on a screen. What devices move is one transfer a pass.
///
/// Of a question that needs several plans it is the one that has all of what is asked about.
#[must_use]
pub fn plan_to_trace(question: &Question, case: &Case, passes: Option<u64>) -> Plan {
    let few = (FEW_BYTES / case.size.max(1)).clamp(1, MOST_PASSES);
    let passes = passes.unwrap_or(few).max(1);
    match case.through {
        Through::Dma { .. } | Through::Pages { .. } | Through::Loaded { .. } => dma::plan(case, 1, passes),
        Through::Relay { .. } => Plan::on_one_core(case.relay(1).map(Op::Relay).into_iter().collect(), passes),
        _ => (question.plan)(case, passes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Caller;
    use crate::{dma_read_bandwidth, fence_cost};
    use lanemark_machine::{Access, Flow, Verb, Width};
    use lanemark_record::Reach;
    use lanemark_units::{BarOffset, MemoryType};

    fn case(size: u64, through: Through) -> Case {
        Case {
            verb: Verb::Load,
            access: Access::Plain(Width::B8),
            memory_type: MemoryType::Uc,
            fence: None,
            size,
            alignment: 0,
            region: BarOffset { bar: 0, offset: 0 },
            flows: vec!["host:0".parse::<Flow>().unwrap()],
            through,
            reach: Reach::default(),
            computation: None,
            caller: Caller::AsPlanned,
        }
    }

    #[test]
    fn few_passes_are_traced_and_more_where_somebody_says_so() {
        let passes = |size, said| plan_to_trace(&fence_cost::QUESTION, &case(size, Through::User), said).passes;
        assert_eq!([0, 512, 513, 4096, 1 << 20].map(|size| passes(size, None)), [8, 8, 7, 1, 1]);
        assert_eq!((passes(1 << 20, Some(9)), passes(8, Some(0))), (9, 1));
    }

    #[test]
    fn a_pass_of_devices_is_one_transfer() {
        let through = Through::Dma { window: 4096, outstanding: None };
        let plan = plan_to_trace(&dma_read_bandwidth::QUESTION, &case(64, through), Some(3));
        assert_eq!(plan.bytes_per_sample(), 3 * 64);
    }
}
