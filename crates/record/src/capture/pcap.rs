//! The classic pcap format: a file header of 24 B, and a header of 16 B before each frame.
//!
//! Either byte order; times in microseconds or nanoseconds. The format has no direction and no
//! comment. Every length is checked against the size of the file. With two headers of fixed size,
//! a library would be longer to call than this reader is.
//!
//! Source: draft-ietf-opsawg-pcap, sections 4 and 5.

use super::frame::{Frame, Intake};

/// Magic numbers, in the byte order of the file.
const MICROSECONDS: u32 = 0xA1B2_C3D4;
const NANOSECONDS: u32 = 0xA1B2_3C4D;

const FILE_HEADER: usize = 24;
const FRAME_HEADER: usize = 16;

/// Byte order and time unit of a file.
#[derive(Clone, Copy)]
struct Form {
    is_big: bool,
    ns_per_part: u64,
}

impl Form {
    fn of(magic: [u8; 4]) -> Option<Form> {
        [false, true].into_iter().find_map(|is_big| {
            let form = |ns_per_part| Some(Form { is_big, ns_per_part });
            match if is_big { u32::from_be_bytes(magic) } else { u32::from_le_bytes(magic) } {
                MICROSECONDS => form(1000),
                NANOSECONDS => form(1),
                _ => None,
            }
        })
    }

    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(if self.is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }
}

/// Whether a file with these first bytes is classic pcap.
pub(super) fn is_pcap(bytes: &[u8]) -> bool {
    bytes.first_chunk().is_some_and(|magic| Form::of(*magic).is_some())
}

/// Reads all frames of a file for which [`is_pcap`] holds.
pub(super) fn read(bytes: &[u8], intake: &mut Intake) {
    let Some(form) = bytes.first_chunk().and_then(|magic| Form::of(*magic)) else { return };
    // The upper half has the length of the frame check sequence.
    let Some(link_type) = form.u32(bytes, 20).map(|word| word as u16) else {
        intake.capture.unread.ends_early = Some(format!("it has {} B, its file header {FILE_HEADER}", bytes.len()));
        return;
    };
    let mut at = FILE_HEADER;
    let mut number = 0;
    while at < bytes.len() {
        let fields = [0, 4, 8, 12].map(|field| form.u32(bytes, at + field));
        let [Some(seconds), Some(parts), Some(captured), Some(whole)] = fields else {
            intake.capture.unread.ends_early = Some(format!("byte {at}: the file ends within the header of a frame"));
            return;
        };
        let start = at + FRAME_HEADER;
        let Some(frame) = start.checked_add(captured as usize).and_then(|end| bytes.get(start..end)) else {
            let why = format!("byte {at}: the file ends within a frame of {captured} B");
            intake.capture.unread.ends_early = Some(why);
            return;
        };
        number += 1;
        intake.frame(Frame {
            number,
            at_ns: u64::from(seconds) * 1_000_000_000 + u64::from(parts) * form.ns_per_part,
            is_upstream: None,
            has_lcrc_error: false,
            link_type,
            bytes: frame,
            whole_bytes: whole as usize,
        });
        at = start + frame.len();
    }
}

#[cfg(test)]
mod tests {
    use crate::capture::{Capture, nettlp};
    use std::path::Path;

    const READ: [u8; 12] = [0, 0, 0, 1, 1, 0, 7, 0x0f, 0xfe, 0, 0, 0x10];

    /// A file with one frame per time: seconds, and parts of a second.
    fn file(magic: u32, is_big: bool, times: &[(u32, u32)]) -> Vec<u8> {
        let word = |value: u32| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        let half = |value: u16| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
        // Version 2.4, the frame check sequence has 4 B, Ethernet.
        let mut file = [&word(magic)[..], &half(2), &half(4), &[0; 8], &word(65_535), &word(0x4400_0001)].concat();
        for (number, (seconds, parts)) in times.iter().enumerate() {
            let frame = nettlp::frame(number as u16, 0, 7, false, &READ);
            let length = word(frame.len() as u32);
            file.extend([&word(*seconds)[..], &word(*parts), &length, &length, &frame].concat());
        }
        file
    }

    fn read(bytes: &[u8]) -> Capture {
        Capture::from_bytes(bytes, Path::new("x.pcap")).unwrap()
    }

    #[test]
    fn both_byte_orders_and_both_units_of_time_are_read() {
        for is_big in [false, true] {
            for (magic, at_ns) in [(0xA1B2_C3D4, 3_000_070_000), (0xA1B2_3C4D, 3_000_000_070)] {
                let found = read(&file(magic, is_big, &[(3, 70), (u32::MAX, 0)]));
                assert_eq!(found.unread, crate::Unread::default());
                let [first, second] = found.frames.as_slice() else { panic!("{found:?}") };
                assert_eq!((first.at_ns, first.is_upstream, first.tlp.as_slice()), (at_ns, None, &READ[..]));
                assert_eq!(second.at_ns, u64::from(u32::MAX) * 1_000_000_000);
            }
        }
    }

    #[test]
    fn a_truncated_file_gives_its_complete_frames_and_the_place() {
        let whole = file(0xA1B2_C3D4, false, &[(1, 0), (2, 0)]);
        let frame = (whole.len() - 24) / 2;
        for kept in 4..whole.len() {
            let found = read(&whole[..kept]);
            assert_eq!(found.frames.len(), kept.saturating_sub(24) / frame, "{kept}");
            let is_whole = kept >= 24 && (kept - 24).is_multiple_of(frame);
            assert_eq!(found.unread.ends_early.is_none(), is_whole, "{kept}");
        }
        let why = |kept: usize| read(&whole[..kept]).unread.ends_early.unwrap();
        assert_eq!(why(23), "it has 23 B, its file header 24");
        assert_eq!(why(30), "byte 24: the file ends within the header of a frame");
        assert_eq!(why(50), "byte 24: the file ends within a frame of 60 B");
        let mut endless = whole.clone();
        endless[32..36].copy_from_slice(&[0xFF; 4]);
        let found = read(&endless);
        assert_eq!((found.frames.len(), found.unread.ends_early.is_some()), (0, true));
    }

    #[test]
    fn a_frame_cut_by_the_snap_length_keeps_the_header_of_its_tlp() {
        let write = [&[0x40, 0, 0, 4, 1, 0, 1, 0xff, 0xfe, 0, 0, 0x10][..], &[9; 16]].concat();
        let frame = nettlp::frame(0, 0, 1, false, &write);
        let mut bytes = file(0xA1B2_C3D4, false, &[]);
        let word = |value: usize| (value as u32).to_le_bytes();
        bytes.extend([&word(0)[..], &word(0), &word(frame.len() - 7), &word(frame.len())].concat());
        bytes.extend(&frame[..frame.len() - 7]);
        let found = read(&bytes);
        assert_eq!((found.frames.len(), found.unread.cut), (1, 1));
        assert!(found.frames[0].is_cut && found.unread.ends_early.is_none());
    }
}
