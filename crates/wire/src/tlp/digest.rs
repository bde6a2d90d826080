//! The TLP digest: ECRC.

/// ECRC of a TLP, as its digest on the link.
///
/// `tlp` is header and data, with end-to-end prefixes and without local ones; `header` is the offset of the header.
/// The bits that switches may change, bit 0 of Type and EP, count as 1.
///
/// Source: PCI Express Base Specification 5.0, section 2.7.1. The polynomial, the order of bits and the complement are
/// those of Ethernet; the mapping of the result into the digest makes it little-endian.
pub(super) fn ecrc(tlp: &[u8], header: usize) -> [u8; 4] {
    let variant = |place: usize| match place.checked_sub(header) {
        Some(0) => 0x01,
        Some(2) => 0x40,
        _ => 0,
    };
    let bytes = tlp.iter().enumerate().map(|(place, byte)| byte | variant(place));
    (!bytes.fold(u32::MAX, |sum, byte| TABLE[usize::from(sum as u8 ^ byte)] ^ sum >> 8)).to_le_bytes()
}

/// Remainders of each byte, by the reversed polynomial `0x04C1_1DB7`.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 0 { sum >> 1 } else { sum >> 1 ^ 0xEDB8_8320 };
            bit += 1;
        }
        table[byte] = sum;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_that_of_ethernet() {
        // The check value of the catalogue of CRCs, CRC-32/ISO-HDLC; byte 0 has bit 0 set, byte 2 gets bit 6.
        assert_eq!(ecrc(b"123456789", 100), 0xCBF4_3926_u32.to_le_bytes());
        assert_eq!(ecrc(b"", 0), [0; 4]);
    }

    #[test]
    fn bits_that_switches_change_do_not_count() {
        let tlp = [0x44, 0, 0, 1, 0, 0, 1, 0x0f, 1, 8, 0x0f, 0xfc, 1, 2, 3, 4];
        let changed = |place: usize, bits: u8, header: usize| {
            let mut other = tlp;
            other[place] ^= bits;
            ecrc(&other, header) == ecrc(&tlp, header)
        };
        assert!(changed(0, 0x01, 0) && changed(2, 0x40, 0), "CfgWr0 becomes CfgWr1; EP");
        assert!(!changed(0, 0x02, 0) && !changed(2, 0x80, 0) && !changed(15, 1, 0));
        assert!(changed(4, 0x01, 4) && changed(6, 0x40, 4) && !changed(0, 0x01, 4), "after a prefix");
    }
}
