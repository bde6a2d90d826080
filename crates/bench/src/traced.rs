//! Short plans for traces.

use crate::case::Case;
use crate::dma;
use crate::question::Question;
use lanemark_machine::{EngineJob, Plan, Work};
use lanemark_method::Method;

/// Default limit of traced iterations.
const MOST_PASSES: u64 = 8;
/// Limit of the bytes of all iterations after the first.
const FEW_BYTES: u64 = 4096;

/// The plan of a case with `passes` iterations, or with as many as fit on a screen. DMA has one
/// transfer per iteration.
///
/// For a question with several plans, it is the one with all measured operations.
#[must_use]
pub fn plan_to_trace(question: &Question, case: &Case, passes: Option<u64>) -> Plan {
    let few = (FEW_BYTES / case.size.max(1)).clamp(1, MOST_PASSES);
    let passes = passes.unwrap_or(few).max(1);
    match &case.method {
        Method::Dma { .. } | Method::DmaPages { .. } | Method::DmaUnderLoad { .. } => {
            pair_of(question, case, passes).unwrap_or_else(|| dma::plan(case, 1, passes))
        }
        Method::Relay { .. } => case.relay(1).map_or_else(Plan::empty, |relay| Plan::new(relay, passes)),
        Method::Core(_)
        | Method::Fence { .. }
        | Method::Clock { .. }
        | Method::KernelCall { .. }
        | Method::Wake { .. }
        | Method::CacheLines { .. }
        | Method::LineLoad { .. }
        | Method::DmaCall { .. }
        | Method::RuntimeCopy { .. }
        | Method::SmallCopies { .. }
        | Method::Launch { .. }
        | Method::Argument { .. }
        | Method::Compute { .. }
        | Method::MapUnmap { .. }
        | Method::SharedBuffer { .. } => (question.plan)(case, passes),
    }
}

/// A plan with one write and read per iteration, for a question whose plan has such pairs.
fn pair_of(question: &Question, case: &Case, passes: u64) -> Option<Plan> {
    let mut plan = (question.plan)(case, passes);
    let Work::Engines(engines) = &mut plan.work else { return None };
    let [EngineJob::WriteRead(pairs)] = &mut engines.jobs[..] else { return None };
    pairs.write.count = 1;
    Some(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{dma_read_bandwidth, dma_read_write_mix, dma_write_read_latency, fence_cost};
    use lanemark_machine::{Access, Verb, Width};
    use lanemark_method::{AccessPath, CoreAccess, Reach};
    use lanemark_units::{BarOffset, MemoryType};

    #[test]
    fn few_iterations_are_traced_by_default_and_more_on_request() {
        let core = CoreAccess {
            path: AccessPath::Pointer,
            verb: Verb::Load,
            memory_type: MemoryType::Uc,
            access: Access::Plain(Width::B8),
            fence: None,
        };
        let case = |size| Case::of_core(core, BarOffset { bar: 0, offset: 0 }, size);
        let passes = |size, said| plan_to_trace(&fence_cost::QUESTION, &case(size), said).passes;
        assert_eq!([0, 512, 513, 4096, 1 << 20].map(|size| passes(size, None)), [8, 8, 7, 1, 1]);
        assert_eq!((passes(1 << 20, Some(9)), passes(8, Some(0))), (9, 1));
    }

    #[test]
    fn an_iteration_of_a_question_about_pairs_is_one_pair() {
        let flows = vec!["0:host".parse().unwrap(), "host:0".parse().unwrap()];
        let method = Method::Dma { flows, outstanding: Some(1), reach: Reach::default() };
        let case = Case { window: 4096, ..Case::of_runtime(64, method) };
        for question in [&dma_write_read_latency::QUESTION, &dma_read_write_mix::QUESTION] {
            let plan = plan_to_trace(question, &case, Some(3));
            let [EngineJob::WriteRead(pairs)] = plan.work.jobs() else { panic!("{plan:?}") };
            assert_eq!((pairs.write.count, plan.passes), (1, 3));
            assert_eq!(plan.check(), Ok(()));
        }
    }

    #[test]
    fn a_dma_iteration_is_one_transfer() {
        let flows = vec!["host:0".parse().unwrap()];
        let method = Method::Dma { flows, outstanding: None, reach: Reach::default() };
        let case = Case { window: 4096, ..Case::of_runtime(64, method) };
        let plan = plan_to_trace(&dma_read_bandwidth::QUESTION, &case, Some(3));
        assert_eq!(plan.bytes_per_sample(), 3 * 64);
    }
}
