//! The bytes that stores of a plan carry: they identify their address and their repetition.

/// Returns the 8 B that repetition `turn` stores at the 8 B boundary `address`.
#[inline]
#[must_use]
pub fn stored_word(address: u64, turn: u64) -> u64 {
    let mixed = (address ^ turn.wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed ^ (mixed >> 32)
}

/// Fills `into` with the bytes that repetition `turn` stores from `address` on.
#[inline]
pub fn stored_bytes(address: u64, turn: u64, into: &mut [u8]) {
    if address.is_multiple_of(8) && into.len().is_multiple_of(8) {
        let mut at = address;
        let mut store = |words: &mut [[u8; 8]]| {
            for word in words {
                *word = stored_word(at, turn).to_le_bytes();
                at += 8;
            }
        };
        // A line at a time, so that the compiler can vectorise.
        let (lines, rest) = into.as_chunks_mut::<64>();
        for line in lines {
            store(line.as_chunks_mut().0);
        }
        store(rest.as_chunks_mut().0);
        return;
    }
    let (mut at, mut done) = (address, 0);
    while done < into.len() {
        let word = stored_word(at & !7, turn).to_le_bytes();
        let skip = (at % 8) as usize;
        let len = (8 - skip).min(into.len() - done);
        into[done..done + len].copy_from_slice(&word[skip..skip + len]);
        at += len as u64;
        done += len;
    }
}
