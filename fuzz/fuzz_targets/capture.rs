//! Fuzzes the capture reader: complete frames are written and read back unchanged.
#![no_main]

use lanemark_record::{Capture, Passed, Unread};
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let capture = match Capture::from_bytes(bytes, Path::new("fuzz.pcap")) {
        Ok(capture) => capture,
        Err(error) => return assert!(error.to_string().starts_with("fuzz.pcap: ")),
    };
    let held: usize = capture.frames.iter().map(|passed| passed.tlp.len()).sum();
    assert!(held <= bytes.len(), "frames are longer than the file");
    let Unread { malformed, first_malformed, .. } = &capture.unread;
    assert_eq!(*malformed > 0, first_malformed.is_some());
    let exchanges = capture.exchanges();
    assert!(
        exchanges.answered.len() as u64 + exchanges.unanswered + exchanges.open + exchanges.backwards
            <= capture.frames.len() as u64
    );
    for row in capture.latencies(&exchanges) {
        assert!(row.first_ns.min >= 0.0 && row.last_ns.min >= 0.0);
    }
    // Complete frames round-trip, except that they get the sequence numbers of the new file: one count a direction.
    let whole = capture.frames.into_iter().filter(|passed| !passed.is_cut);
    let mut sent = [0_u16; 2];
    let numbered = whole.map(|passed| {
        let number = &mut sent[usize::from(passed.is_upstream == Some(true))];
        let sequence = *number;
        *number = number.wrapping_add(1);
        Passed { sequence, ..passed }
    });
    let frames: Vec<Passed> = numbered.collect();
    let short = Capture { place: "a".to_owned(), about: "b".to_owned(), frames, unread: Unread::default() };
    let again = Capture::from_bytes(&short.to_pcapng(), Path::new("again.pcapng"));
    assert_eq!(again.unwrap(), short);
});
