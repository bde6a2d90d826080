//! A trace as a capture by a probe at one link.

use crate::timeline::Traced;
use lanemark_machine::{Direction, Frame};
use lanemark_record::{Capture, Passed};
use lanemark_wire::WireError;

/// Captures the TLPs of link `link` in both directions, ordered by the time at its lower end:
/// downstream TLPs at arrival, upstream TLPs at departure. Times are whole nanoseconds, rounded
/// down, from the start of the sample. TLPs with an LCRC error are marked, as an analyser on the
/// link shows them.
///
/// # Errors
/// [`WireError`] if a frame is not a TLP, which is a bug of the machine.
pub fn probe(traced: &Traced, link: usize) -> Result<Capture, WireError> {
    let passed = |frame: &Frame| {
        let (at, is_upstream) = match frame.direction {
            Direction::Downstream => (frame.arrives, false),
            Direction::Upstream => (frame.starts, true),
        };
        let passed = Passed::new(at.as_ns() as u64, Some(is_upstream), frame.tlp.clone())?;
        Ok(Passed { has_lcrc_error: frame.is_damaged, ..passed })
    };
    let frames = traced.trace.frames.iter().filter(|frame| frame.link == link);
    let mut frames = frames.map(passed).collect::<Result<Vec<Passed>, WireError>>()?;
    frames.sort_by_key(|passed| passed.at_ns);
    let mut sent = [0_u16; 2];
    for passed in &mut frames {
        let number = &mut sent[usize::from(passed.is_upstream == Some(true))];
        passed.sequence = *number;
        *number = number.wrapping_add(1);
    }
    let damaged = frames.iter().filter(|passed| passed.has_lcrc_error).count();
    let replays = (damaged > 0).then(|| format!("{damaged} TLPs have an LCRC error"));
    let place = traced.trace.links.get(link).cloned().unwrap_or_default();
    let about: Vec<String> = std::iter::once(traced.about()).chain(traced.gaps()).chain(replays).collect();
    Ok(Capture { place, about: about.join("; "), frames, ..Capture::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::tests::{damaged_load, traced};

    #[test]
    fn a_tlp_with_an_lcrc_error_is_captured_with_a_mark_and_again_as_its_replay() {
        let (trace, method) = (damaged_load(), crate::fixture::method("uc", "8", None));
        let capture = probe(&traced(&trace, &method), 1).unwrap();
        let marks = |passed: &Passed| (passed.at_ns, passed.has_lcrc_error, passed.sequence);
        assert_eq!(capture.frames.iter().map(marks).collect::<Vec<_>>(), [(110, true, 0), (250, false, 1)]);
        assert!(capture.about.ends_with("; 1 TLPs have an LCRC error"), "{}", capture.about);
    }
}
