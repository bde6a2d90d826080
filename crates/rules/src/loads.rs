//! Loads of a core.

use crate::condition::with;
use crate::rule::{Outcome, hold};
use crate::trial::Trial;
use lanemark_machine::{Access, Fence, Step, Stream, Verb, Width};
use lanemark_platform::Platform;
use lanemark_units::MemoryType;

/// Time of eight loads of 8 B, in ns.
fn eight_loads(platform: &Platform, kind: MemoryType, fence_each: Option<Fence>) -> Result<f64, String> {
    let mut board = Trial::new(platform)?;
    let stream = Stream::over(Verb::Load, Access::Plain(Width::B8), board.span(0, 64, kind));
    Ok(board.run(0, vec![Step::Stream(Stream { fence_each, ..stream })])?.as_ns())
}

/// Compares one UC load with eight: eight take eight times as long.
pub(crate) fn uc_loads_do_not_overlap(platform: &Platform) -> Outcome {
    let mut board = Trial::new(platform)?;
    let one = board.run(0, vec![board.load(0, Width::B8, MemoryType::Uc)])?.as_ns();
    let eight = eight_loads(platform, MemoryType::Uc, None)?;
    hold((eight / one - 8.0).abs() < 0.01, format!("one UC load takes {one:.0} ns, eight take {eight:.0} ns"))
}

/// Compares eight WC loads with and without fences on a core that speculates: only unfenced ones overlap.
pub(crate) fn unfenced_wc_loads_may_overlap(platform: &Platform) -> Outcome {
    let speculating = with(platform, "core.wc_loads_in_flight", 8.0)?;
    let unfenced = eight_loads(&speculating, MemoryType::Wc, None)?;
    let fenced = eight_loads(&speculating, MemoryType::Wc, Some(Fence::Lfence))?;
    let mfenced = eight_loads(&speculating, MemoryType::Wc, Some(Fence::Mfence))?;
    hold(
        unfenced * 4.0 < fenced && unfenced * 4.0 < mfenced,
        format!("eight speculating WC loads take {unfenced:.0} ns, fenced {fenced:.0} ns"),
    )
}
