//! The case of an answer, found again among those of its question.

use crate::case::{Axes, Case};
use crate::question::Question;
use lanemark_machine::Facts;
use lanemark_method::Method;

/// The case of `question` on a machine with these facts that has this method, size and alignment; `None` if there is none.
/// `region` is the requested region, by name.
#[must_use]
pub fn case_again(
    question: &Question,
    facts: &Facts,
    region: Option<&str>,
    method: &Method,
    size: u64,
    alignment: u64,
) -> Option<Case> {
    let fence = match method {
        Method::Core(core) => Some(vec![core.fence]),
        _ => None,
    };
    let flows = match method {
        Method::Dma { flows, .. }
        | Method::DmaPages { flows, .. }
        | Method::DmaCall { flows, .. }
        | Method::DmaUnderLoad { flows, .. } => Some(flows.clone()),
        _ => None,
    };
    let exact = Axes {
        sizes: Some(vec![size]),
        memory_types: method.memory_type().map(|kind| vec![kind]),
        accesses: method.access().map(|access| vec![access]),
        fences: fence,
        alignments: Some(vec![alignment]),
        region: region.map(str::to_owned),
        flows,
        reach: method.reach(),
        ..Axes::default()
    };
    // A question takes the axes that it varies, and may have no case for the others.
    let own_flows = Axes { flows: None, ..exact.clone() };
    let own_size = Axes { sizes: None, ..own_flows.clone() };
    let own = Axes { region: exact.region.clone(), reach: exact.reach, ..Axes::default() };
    let unrequested = Axes { region: exact.region.clone(), ..Axes::default() };
    [exact, own_flows, own_size, own, unrequested].iter().find_map(|axes| {
        let mut cases = (question.cases)(facts, axes).into_iter();
        cases.find(|case| (&case.method, case.size, case.alignment) == (method, size, alignment))
    })
}
