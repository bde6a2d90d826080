//! Fuzzes the TLP parser: a parsed header encodes to the same bytes.
#![no_main]

use lanemark_wire::{Generation, Header};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok((header, used)) = Header::parse(bytes) else {
        assert!(Header::parse_whole(bytes).is_err());
        return;
    };
    let mut out = [0xa5; Header::MAX_BYTES];
    assert_eq!(header.emit(&mut out), Ok(used));
    assert_eq!(out[..used], bytes[..used]);
    assert_eq!(Header::parse(&out), Ok((header, used)));
    assert_eq!(usize::from(header.header_dw()) * 4, used);
    for short in 0..used {
        assert!(header.emit(&mut out[..short]).is_err() && Header::parse(&bytes[..short]).is_err());
    }
    let digest = if header.td() { 4 } else { 0 };
    let needed = used + header.data_bytes() as usize + digest;
    match Header::parse_whole(bytes) {
        Ok((whole, data)) => {
            assert_eq!((whole, data.len()), (header, header.data_bytes() as usize));
            assert!(bytes.len() >= needed);
        }
        Err(_) => assert!(bytes.len() < needed),
    }
    assert_eq!(header.kind().class(), header.class());
    assert!(header.wire_bytes(Generation::Gen3) as usize > needed);
});
