//! Fuzzes the Matrix Market parser: a matrix has no more entries than its text can hold.
#![no_main]

use lanemark_compute::matrix_market;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let matrix = match matrix_market(bytes) {
        Ok(matrix) => matrix,
        Err(wrong) => {
            let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
            return assert!(wrong.line >= 1 && wrong.line <= lines, "{wrong}");
        }
    };
    // An entry has at least two bytes of text and is stored at most twice.
    assert!(u64::from(matrix.entries()) <= bytes.len() as u64);
    let y = matrix.times(&vec![1.0; matrix.columns() as usize]);
    assert_eq!(y.len(), matrix.rows() as usize);
});
