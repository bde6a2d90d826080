//! One frame of a capture file: the TLP in it, or the reason why there is none.

use super::nettlp::{self, Found};
use super::tlp::{TlpBytes, tlp_of};
use super::{Capture, Passed};
use lanemark_wire::WireError;
use std::collections::BTreeMap;

/// A frame as a capture file holds it.
#[derive(Clone, Copy)]
pub(super) struct Frame<'a> {
    /// Number in the file, from 1, for messages.
    pub(super) number: u64,
    /// Time in nanoseconds.
    pub(super) at_ns: u64,
    /// Direction, if the file has it.
    pub(super) is_upstream: Option<bool>,
    /// Whether the file marks a checksum error.
    pub(super) has_lcrc_error: bool,
    /// Link type, as pcap and pcapng number them.
    pub(super) link_type: u16,
    /// The captured bytes.
    pub(super) bytes: &'a [u8],
    /// Length of the frame before truncation.
    pub(super) whole_bytes: usize,
}

/// Collects the frames of a file.
#[derive(Default)]
pub(super) struct Intake {
    pub(super) capture: Capture,
    senders: BTreeMap<[u8; 4], Sequence>,
}

impl Intake {
    /// Adds a frame, as a TLP or to a count.
    pub(super) fn frame(&mut self, frame: Frame<'_>) {
        let (sender, sequence, tlp, is_cut) = match nettlp::decode(frame.link_type, frame.bytes, frame.whole_bytes) {
            Found::Tlp { sender, sequence, tlp, is_cut } => (sender, sequence, tlp, is_cut),
            Found::Broken { is_cut: true } => return self.capture.unread.cut += 1,
            Found::Broken { is_cut: false } => {
                return self.malformed(frame.number, "its UDP datagram is too short");
            }
            Found::Other => return self.capture.unread.others += 1,
        };
        self.senders.entry(sender).or_default().count(sequence);
        match tlp_of(tlp, is_cut) {
            Ok(TlpBytes { header, bytes, is_cut }) => {
                self.capture.unread.cut += u64::from(is_cut);
                let Frame { at_ns, is_upstream, has_lcrc_error, .. } = frame;
                let tlp = bytes.to_vec();
                self.capture.frames.push(Passed { at_ns, is_upstream, sequence, header, tlp, is_cut, has_lcrc_error });
            }
            Err(WireError::TooShort { .. }) if is_cut => self.capture.unread.cut += 1,
            Err(error) => self.malformed(frame.number, &error.to_string()),
        }
    }

    /// Counts a malformed frame.
    pub(super) fn malformed(&mut self, number: u64, why: &str) {
        self.capture.unread.malformed += 1;
        self.capture.unread.first_malformed.get_or_insert_with(|| format!("frame {number}: {why}"));
    }

    /// The capture, with the number of lost frames.
    pub(super) fn into_capture(mut self) -> Capture {
        self.capture.unread.lost = self.senders.values().map(Sequence::lost).sum();
        self.capture
    }
}

/// The sequence numbers of one sender.
#[derive(Default)]
struct Sequence {
    last: Option<u16>,
    /// Steps between frames, and steps of 1.
    steps: u64,
    ones: u64,
    missing: u64,
}

impl Sequence {
    fn count(&mut self, sequence: u16) {
        if let Some(last) = self.last {
            let step = sequence.wrapping_sub(last);
            self.steps += 1;
            self.ones += u64::from(step == 1);
            if step < 0x8000 {
                self.missing += u64::from(step.saturating_sub(1));
            } else {
                // A frame that was overtaken is not missing.
                self.missing = self.missing.saturating_sub(1);
                return;
            }
        }
        self.last = Some(sequence);
    }

    /// Lost frames. A sender without a step of 1 in half of its steps does not number its frames.
    fn lost(&self) -> u64 {
        if self.ones * 2 >= self.steps { self.missing } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(numbers: impl IntoIterator<Item = u16>) -> u64 {
        let mut sequence = Sequence::default();
        numbers.into_iter().for_each(|number| sequence.count(number));
        sequence.lost()
    }

    #[test]
    fn gaps_of_sequence_numbers_are_lost_frames() {
        assert_eq!(lost([]), 0);
        assert_eq!(lost(0..100), 0);
        assert_eq!(lost((0..100).filter(|number| !(40..47).contains(number))), 7);
        assert_eq!(lost([65_533, 65_534, 65_535, 0, 1, 3]), 1, "numbers wrap");
        assert_eq!(lost([0, 1, 2, 4, 3, 5, 6]), 0, "an overtaken frame is not lost");
    }

    #[test]
    fn a_sender_that_does_not_number_its_frames_loses_none() {
        assert_eq!(lost([0; 50]), 0);
        assert_eq!(lost([9, 500, 3, 77, 20_000]), 0);
    }
}
