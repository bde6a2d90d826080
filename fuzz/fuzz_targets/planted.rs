//! A planted bug that only a fuzzer with comparison tracing finds. If it is not found, the other targets prove nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((start, rest)) = bytes.split_first_chunk() else { return };
    if u32::from_le_bytes(*start) == 0x6b72_6d6c && rest.first() == Some(&7) {
        panic!("the planted bug was found");
    }
});
