//! The bytes that stores of a plan carry: they identify their address and their repetition.

/// Odd factors that mix the repetition and the address.
const TURN_FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
const FACTOR: u64 = 0xD6E8_FEB8_6659_FD93;

/// Returns the 8 B that repetition `turn` stores at the 8 B boundary `address`.
#[inline]
#[must_use]
pub fn stored_word(address: u64, turn: u64) -> u64 {
    let mixed = (address ^ turn.wrapping_mul(TURN_FACTOR)).wrapping_mul(FACTOR);
    mixed ^ (mixed >> 32)
}

/// Differences between the product of a word's address in [`stored_word`] and that of the first word of its line, by
/// bits 3 to 5 of the first factor: an exclusive or with the offset adds or subtracts each of its bits.
const STEPS: [[u64; 8]; 8] = {
    let mut steps = [[0; 8]; 8];
    let mut bits = 0_u64;
    while bits < 8 {
        let mut word = 0_u64;
        while word < 8 {
            steps[bits as usize][word as usize] =
                ((bits ^ word).wrapping_sub(bits)).wrapping_mul(FACTOR.wrapping_mul(8));
            word += 1;
        }
        bits += 1;
    }
    steps
};

/// Fills a line with the bytes that repetition `turn` stores at `address`, a multiple of 64.
// Sums instead of products, which the compiler vectorises.
#[inline]
fn stored_line(address: u64, turn: u64, into: &mut [u8; 64]) {
    let first = address ^ turn.wrapping_mul(TURN_FACTOR);
    let product = first.wrapping_mul(FACTOR);
    for (word, step) in into.as_chunks_mut::<8>().0.iter_mut().zip(&STEPS[(first >> 3) as usize % 8]) {
        let mixed = product.wrapping_add(*step);
        *word = (mixed ^ (mixed >> 32)).to_le_bytes();
    }
}

/// Fills `into` with the bytes that repetition `turn` stores from `address` on.
#[inline]
pub fn stored_bytes(address: u64, turn: u64, into: &mut [u8]) {
    if address.is_multiple_of(64) && into.len().is_multiple_of(64) {
        let lines = into.as_chunks_mut::<64>().0;
        lines.iter_mut().zip((address..).step_by(64)).for_each(|(line, at)| stored_line(at, turn, line));
        return;
    }
    if address.is_multiple_of(8) && into.len().is_multiple_of(8) {
        let words = into.as_chunks_mut::<8>().0;
        let all = words.iter_mut().zip((address..).step_by(8));
        all.for_each(|(word, at)| *word = stored_word(at, turn).to_le_bytes());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_any_length_and_place_are_those_of_their_words() {
        for address in [0x1000_u64, 0x1040, 0x1008, 0x1003, 0xFFFF_FFC0, 0x1_0000_0040] {
            for (turn, len) in [(0, 64), (1, 128), (7, 192), (3, 8), (4, 63), (u64::MAX, 256)] {
                let mut bytes = vec![0; len];
                stored_bytes(address, turn, &mut bytes);
                let meant = (address..).take(len).map(|at| stored_word(at & !7, turn).to_le_bytes()[(at % 8) as usize]);
                assert!(bytes.iter().copied().eq(meant), "{len} B at {address:#x}, repetition {turn}");
            }
        }
    }
}
