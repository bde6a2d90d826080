//! Written captures are read back; damaged ones are counted and never cause errors.

use super::*;
use crate::Unread;
use crate::capture::Passed;
use std::path::Path;

const READ: [u8; 12] = [0, 0, 0, 1, 1, 0, 7, 0x0f, 0xfe, 0, 0, 0x10];

fn passed(at_ns: u64, is_upstream: Option<bool>, sequence: u16) -> Passed {
    Passed { sequence, ..Passed::new(at_ns, is_upstream, READ.to_vec()).unwrap() }
}

fn capture() -> Capture {
    let frames = vec![passed(5, Some(false), 0), passed(u64::MAX, Some(true), 0), passed(1 << 40, Some(false), 1)];
    Capture { place: "card".to_owned(), about: "three reads".to_owned(), frames, ..Capture::default() }
}

fn read(bytes: &[u8]) -> Capture {
    Capture::from_bytes(bytes, Path::new("x.pcapng")).unwrap()
}

/// Offsets of the blocks of a written file.
fn blocks(bytes: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        found.push(at);
        at += u32::from_le_bytes(*bytes[at + 4..].first_chunk().unwrap()) as usize;
    }
    found
}

#[test]
fn a_capture_round_trips() {
    let mut capture = capture();
    capture.frames.push(passed(7, None, 2));
    capture.frames.push(Passed { has_lcrc_error: true, ..passed(8, Some(true), 1) });
    capture.frames.push(Passed { has_lcrc_error: true, ..passed(9, None, 3) });
    assert_eq!(read(&capture.to_pcapng()), capture);
    assert_eq!(read(&Capture::default().to_pcapng()), Capture::default());
}

#[test]
fn the_first_blocks_match_the_format() {
    let bytes = Capture::default().to_pcapng();
    let section = [
        &[0x0A, 0x0D, 0x0D, 0x0A, 32, 0, 0, 0, 0x4D, 0x3C, 0x2B, 0x1A, 1, 0, 0, 0][..],
        &[0xFF; 8],
        &[0, 0, 0, 0, 32, 0, 0, 0],
    ];
    let interface =
        [&[1, 0, 0, 0, 32, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0][..], &[9, 0, 1, 0, 9, 0, 0, 0], &[0, 0, 0, 0, 32, 0, 0, 0]];
    assert_eq!(bytes, [section.concat(), interface.concat()].concat());
}

#[test]
fn a_truncated_file_gives_its_complete_blocks_and_a_reason() {
    let bytes = capture().to_pcapng();
    let ends: Vec<usize> = blocks(&bytes).into_iter().skip(1).chain([bytes.len()]).collect();
    for kept in 4..bytes.len() {
        let found = read(&bytes[..kept]);
        let whole = ends.iter().filter(|end| **end <= kept).count();
        assert_eq!(found.frames.len(), whole.saturating_sub(2), "{kept}");
        assert_eq!(found.unread.ends_early.is_none(), ends.contains(&kept), "{kept}");
    }
}

#[test]
fn wrong_lengths_end_decoding_without_allocation() {
    let bytes = capture().to_pcapng();
    let second = blocks(&bytes)[3];
    let with = |at: usize, value: u32| {
        let mut bytes = bytes.clone();
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        read(&bytes)
    };
    for (length, why) in [
        (0, "a block of 0 B"),
        (8, "a block of 8 B"),
        (13, "a block of 13 B"),
        (u32::MAX, "a block of 4294967295 B"),
        (u32::MAX - 3, "the file ends within a block"),
        (96, "a block of 96 B with another length at its end"),
    ] {
        let found = with(second + 4, length);
        assert_eq!(found.unread.ends_early, Some(format!("byte {second}: {why}")));
        assert_eq!(found.frames.len(), 1);
    }
    // Length of the frame: one byte longer than its block, and equal to it.
    let room = u32::from_le_bytes(*bytes[second + 4..].first_chunk().unwrap()) - 32;
    for length in [room + 1, u32::MAX] {
        let found = with(second + 20, length);
        assert_eq!((found.frames.len(), found.unread.malformed), (2, 1));
        assert_eq!(found.unread.first_malformed.as_deref(), Some("frame 2: it is longer than its block"));
    }
    assert_eq!(with(second + 20, room).unread, Unread::default(), "bytes after a TLP are ignored");
    let strange = with(second + 8, 1);
    assert_eq!(strange.unread.first_malformed.as_deref(), Some("frame 2: it refers to an undefined interface"));
}

#[test]
fn frames_without_a_valid_tlp_are_counted_by_kind() {
    let mut bytes = capture().to_pcapng();
    let [_, _, first, second, third] = *blocks(&bytes) else { panic!("{:?}", blocks(&bytes)) };
    let frame = 28;
    bytes[first + frame + 23] = 6; // TCP
    bytes[second + frame + 48] = 0x3F; // a reserved type
    bytes[third + 20] -= 1; // cut by one byte
    let found = read(&bytes);
    assert_eq!((found.frames.len(), found.unread.others, found.unread.malformed, found.unread.cut), (0, 1, 1, 1));
    let why = found.unread.first_malformed.unwrap();
    assert!(why.starts_with("frame 2: byte 0: Fmt 0b001 with Type 0b11111 is reserved"), "{why}");
}

#[test]
fn a_write_with_a_truncated_payload_keeps_its_header() {
    let write = [&[0x40, 0, 0, 4, 1, 0, 1, 0xff, 0xfe, 0, 0, 0x10][..], &[9; 16]].concat();
    let passed = Passed::new(1, None, write).unwrap();
    let mut bytes = Capture { frames: vec![passed.clone()], ..Capture::default() }.to_pcapng();
    let begin = blocks(&bytes)[2];
    for (missing, headers) in [(1, 1), (16, 1), (17, 0)] {
        bytes[begin + 20] = 76 - missing;
        let found = read(&bytes);
        assert_eq!((found.frames.len(), found.unread.cut, found.unread.malformed), (headers, 1, 0), "{missing}");
        assert!(found.frames.iter().all(|found| found.is_cut && found.header == passed.header));
    }
}

#[test]
fn bytes_after_a_tlp_in_its_datagram_are_ignored() {
    let mut long = passed(1, None, 0);
    long.tlp.extend([9; 5]);
    let capture = Capture { frames: vec![long], ..Capture::default() };
    assert_eq!(read(&capture.to_pcapng()).frames, [passed(1, None, 0)]);
    let digest = [0, 0, 0x80, 1, 1, 0, 7, 0x0f, 0xfe, 0, 0, 0x10, 1, 2, 3, 4];
    let with_digest = Passed::new(1, None, [&digest[..], &[9; 3]].concat()).unwrap();
    assert_eq!(with_digest.tlp, digest);
    let capture = Capture { frames: vec![with_digest], ..Capture::default() };
    assert_eq!(read(&capture.to_pcapng()), capture);
}

#[test]
fn both_byte_orders_and_all_resolutions_are_read() {
    let word = |value: u32| value.to_be_bytes();
    let frame = nettlp::frame(3, 0, 7, false, &READ);
    let block = |kind: u32, body: &[u8]| {
        let length = word((LEAST_BLOCK + body.len()) as u32);
        [&word(kind)[..], &length, body, &length].concat()
    };
    let section = block(SECTION, &[&word(BYTE_ORDER)[..], &[0, 1, 0, 0], &[0xFF; 8]].concat());
    let packet = block(ENHANCED_PACKET, &[&word(0)[..], &word(1), &word(2), &word(60), &word(60), &frame].concat());
    let with_offset = |offset: i64| [&[0, 9, 0, 1, 9, 0, 0, 0, 0, 14, 0, 8][..], &offset.to_be_bytes()].concat();
    for (options, at_ns) in [
        (vec![], ((1_u64 << 32) + 2) * 1000),
        (vec![0, 9, 0, 1, 9, 0, 0, 0], (1 << 32) + 2),
        (vec![0, 9, 0, 1, 0xA1, 0, 0, 0], 500_000_000),
        (vec![0, 9, 0, 1, 127, 0, 0, 0], 0),
        (with_offset(2), (1 << 32) + 2_000_000_002),
        (with_offset(-9), 0),
        (with_offset(i64::MAX), u64::MAX),
    ] {
        let interface = block(INTERFACE, &[&[0, 1, 0, 0, 0, 0, 0, 0][..], &options].concat());
        let found = read(&[&section[..], &interface, &packet].concat());
        assert_eq!(found.unread, Unread::default());
        assert_eq!(found.frames.iter().map(|passed| (passed.at_ns, passed.sequence)).collect::<Vec<_>>(), [(at_ns, 3)]);
    }
    let simple = block(SIMPLE_PACKET, &[0; 8]);
    assert_eq!(read(&[&section[..], &simple].concat()).unread.untimed, 1);
    let unknown = block(0x0BAD, &[0; 8]);
    assert_eq!(read(&[&section[..], &unknown].concat()).unread, Unread::default());
}
