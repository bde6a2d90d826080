//! Fuzzes the capture reader: complete frames are written and read back unchanged.
#![no_main]

use lanemark_record::{Capture, Passed, Unread};
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let capture = match Capture::from_pcapng(bytes, Path::new("fuzz.pcapng")) {
        Ok(capture) => capture,
        Err(error) => return assert!(error.to_string().starts_with("fuzz.pcapng: ")),
    };
    let held: usize = capture.frames.iter().map(|passed| passed.tlp.len()).sum();
    assert!(held <= bytes.len(), "frames are longer than the file");
    let Unread { malformed, first_malformed, .. } = &capture.unread;
    assert_eq!(*malformed > 0, first_malformed.is_some());
    let exchanges = capture.exchanges();
    assert!(
        exchanges.answered.len() as u64 + exchanges.unanswered + exchanges.backwards <= capture.frames.len() as u64
    );
    for row in capture.latencies(&exchanges) {
        assert!(row.first_ns.min >= 0.0 && row.last_ns.min >= 0.0);
    }
    // Complete frames round-trip, except that they get the sequence numbers of the new file.
    let whole = capture.frames.into_iter().filter(|passed| !passed.is_cut).zip(0_u16..);
    let frames: Vec<Passed> = whole.map(|(passed, sequence)| Passed { sequence, ..passed }).take(1 << 16).collect();
    let short = Capture { place: "a".to_owned(), about: "b".to_owned(), frames, unread: Unread::default() };
    let again = Capture::from_pcapng(&short.to_pcapng(), Path::new("again.pcapng"));
    assert_eq!(again.unwrap(), short);
});
