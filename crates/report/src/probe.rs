//! A trace as a capture by a probe at one link.

use crate::timeline::Traced;
use lanemark_machine::{Direction, Frame};
use lanemark_record::{Capture, Passed};
use lanemark_wire::WireError;

/// Captures the TLPs of link `link` in both directions, ordered by the time at its lower end:
/// downstream TLPs at arrival, upstream TLPs at departure. Times are whole nanoseconds, rounded
/// down, from the start of the sample. Damaged TLPs are left out and counted in the description:
/// receivers and capture adapters drop them below the transaction layer.
///
/// # Errors
/// [`WireError`] if a frame is not a TLP, which is a bug of the machine.
pub fn probe(traced: &Traced, link: usize) -> Result<Capture, WireError> {
    let passed = |frame: &Frame| {
        let (at, is_upstream) = match frame.direction {
            Direction::Downstream => (frame.arrives, false),
            Direction::Upstream => (frame.starts, true),
        };
        Passed::new(at.as_ns() as u64, Some(is_upstream), frame.tlp.clone())
    };
    let frames = || traced.trace.frames.iter().filter(|frame| frame.link == link);
    let damaged = frames().filter(|frame| frame.is_damaged).count();
    let left_out = (damaged > 0).then(|| format!("{damaged} damaged TLPs are left out"));
    let mut frames =
        frames().filter(|frame| !frame.is_damaged).map(passed).collect::<Result<Vec<Passed>, WireError>>()?;
    frames.sort_by_key(|passed| passed.at_ns);
    for (number, passed) in frames.iter_mut().enumerate() {
        passed.sequence = number as u16;
    }
    let place = traced.trace.links.get(link).cloned().unwrap_or_default();
    let about: Vec<String> = std::iter::once(traced.about()).chain(traced.gaps()).chain(left_out).collect();
    Ok(Capture { place, about: about.join("; "), frames, ..Capture::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::tests::{damaged_load, traced};

    #[test]
    fn a_damaged_tlp_is_captured_only_after_its_replay() {
        let (trace, method) = (damaged_load(), crate::fixture::method("uc", "8", None));
        let capture = probe(&traced(&trace, &method), 1).unwrap();
        assert_eq!(capture.frames.iter().map(|passed| passed.at_ns).collect::<Vec<_>>(), [250]);
        assert!(capture.about.ends_with("; 1 damaged TLPs are left out"), "{}", capture.about);
    }
}
