//! A trace as a probe at one link would have captured it.

use crate::timeline::Traced;
use lanemark_machine::{Direction, Frame};
use lanemark_record::{Capture, Passed};
use lanemark_wire::WireError;

/// The TLPs of link `link`, either way, by the time at which they pass its lower end: what comes down when all of it is
/// there, what goes up when its first symbol goes. Times are whole nanoseconds, cut off, from the beginning of the sample.
///
/// # Errors
/// [`WireError`] if a frame is no TLP: a mistake of the machine.
pub fn probe(traced: &Traced, link: usize) -> Result<Capture, WireError> {
    let passed = |frame: &Frame| {
        let (at, is_upstream) = match frame.direction {
            Direction::Downstream => (frame.arrives, false),
            Direction::Upstream => (frame.starts, true),
        };
        Passed::new(at.as_ns() as u64, Some(is_upstream), frame.tlp.clone())
    };
    let frames = traced.trace.frames.iter().filter(|frame| frame.link == link);
    let mut frames = frames.map(passed).collect::<Result<Vec<Passed>, WireError>>()?;
    frames.sort_by_key(|passed| passed.at_ns);
    for (number, passed) in frames.iter_mut().enumerate() {
        passed.sequence = number as u16;
    }
    let place = traced.trace.links.get(link).cloned().unwrap_or_default();
    let about: Vec<String> = std::iter::once(traced.about()).chain(traced.gaps()).collect();
    Ok(Capture { place, about: about.join("; "), frames, ..Capture::default() })
}
