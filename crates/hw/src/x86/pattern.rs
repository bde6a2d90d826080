//! Stored data and its verification.

/// Number of iterations after which the values repeat.
pub(crate) const VALUES: u64 = 32;

/// 8 B value that iteration `n` stores at every place.
///
/// Each of the eight bytes differs from that of the preceding iterations and is nonzero, so stale or unwritten bytes
/// are detected.
#[inline]
pub(crate) const fn value(n: u64) -> u64 {
    let byte = n % VALUES;
    byte * 0x0101_0101_0101_0101 + 0xd0a1_7121_c251_9232
}

/// [`value`] eight times: the source line of `MOVDIR64B`.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line(pub(crate) [u64; 8]);

/// One line per value.
pub(crate) type Lines = [Line; VALUES as usize];

/// All lines, in order.
pub(crate) fn lines() -> Box<Lines> {
    Box::new(std::array::from_fn(|n| Line([value(n as u64); 8])))
}

/// Fills `bytes` with pseudo-random data; the data of two seeds agree in one of 256 bytes.
///
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014), `SplitMix64`.
pub(crate) fn fill(bytes: &mut [u8], seed: u64) {
    let mix = |z: u64| {
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let mut state = mix(seed);
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(state).to_le_bytes()
    };
    // A copy of a known length is one store, any other one a call.
    let (words, rest) = bytes.as_chunks_mut();
    for word in words {
        *word = next();
    }
    for (byte, filled) in rest.iter_mut().zip(next()) {
        *byte = filled;
    }
}

/// Number of positions at which both slices are equal.
pub(crate) fn equal_bytes(left: &[u8], right: &[u8]) -> u64 {
    let pages = left.chunks(4096).zip(right.chunks(4096));
    pages
        .map(
            |(left, right)| {
                if left == right { left.len() } else { left.iter().zip(right).filter(|(l, r)| l == r).count() }
            },
        )
        .sum::<usize>() as u64
}

/// Number of bytes of `span` that equal those stored by an iteration with `value`: accesses of `width` bytes from the
/// start, and a remainder of 8, 4, 2 and 1 B.
pub(crate) fn stored_bytes(span: &[u8], width: usize, value: u64) -> u64 {
    let (body, mut rest) = span.split_at(span.len() / width * width);
    let mut stored = matching(body, width.min(8), value);
    for narrower in [8, 4, 2, 1] {
        let (now, later) = rest.split_at(rest.len() / narrower * narrower);
        stored += matching(now, narrower, value);
        rest = later;
    }
    stored
}

/// Number of bytes of `span` that equal the first `width` bytes of `value`, repeated.
fn matching(span: &[u8], width: usize, value: u64) -> u64 {
    let value = value.to_le_bytes();
    let wanted = &value[..width];
    span.chunks(width)
        .map(|chunk| if chunk == wanted { width } else { chunk.iter().zip(wanted).filter(|(l, r)| l == r).count() })
        .sum::<usize>() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_value_is_nonzero_and_differs_from_the_previous_iteration() {
        for n in 0..2 * VALUES {
            let (before, now) = (value(n).to_le_bytes(), value(n + 1).to_le_bytes());
            assert!(before.iter().zip(now).all(|(before, now)| *before != now && now != 0), "{n}");
        }
    }

    #[test]
    fn the_bytes_of_a_value_are_distinct_so_that_a_shifted_store_is_detected() {
        for n in 0..VALUES {
            let mut bytes = value(n).to_le_bytes();
            bytes.sort_unstable();
            assert!(bytes.windows(2).all(|pair| pair[0] != pair[1]), "{n}: {bytes:x?}");
        }
    }

    #[test]
    fn every_wrong_byte_is_detected() {
        let value = value(3);
        // 64 B accesses over 64 + 8 + 4 + 2 + 1 B.
        let mut span: Vec<u8> = value.to_le_bytes().repeat(9);
        for width in [4, 2, 1] {
            span.extend(&value.to_le_bytes()[..width]);
        }
        assert_eq!(stored_bytes(&span, 64, value), 79);
        for place in 0..span.len() {
            span[place] ^= 0x80;
            assert_eq!(stored_bytes(&span, 64, value), 78, "{place}");
            span[place] ^= 0x80;
        }
        let bytes = vec![value.to_le_bytes()[0]; 7];
        assert_eq!(stored_bytes(&bytes, 1, value), 7);
    }

    #[test]
    fn a_short_fill_is_the_beginning_of_a_long_one() {
        let mut long = [0; 24];
        fill(&mut long, 0);
        assert_eq!(long[..8], 0xe220_a839_7b1d_cdaf_u64.to_le_bytes(), "the first output of SplitMix64 from 0");
        for len in 0..24 {
            let mut short = vec![0; len];
            fill(&mut short, 0);
            assert_eq!(short, long[..len], "{len}");
        }
    }

    #[test]
    fn fills_of_different_seeds_agree_by_chance_only() {
        let (mut one, mut two) = (vec![0; 65_539], vec![0; 65_539]);
        fill(&mut one, 1);
        assert_eq!(equal_bytes(&one, &one), 65_539);
        for seed in 2..20 {
            fill(&mut two, seed);
            assert!(equal_bytes(&one, &two) < 65_539 / 128, "{seed}");
        }
    }
}
