//! Parses a row of a hexadecimal dump.

/// An unindented line that is not the heading of a function.
#[derive(Debug, PartialEq)]
pub(super) enum Row {
    /// Up to sixteen bytes; the last row of a truncated file may have fewer.
    Bytes {
        /// Offset of the first byte.
        offset: usize,
        /// The bytes, padded with zeros.
        bytes: [u8; 16],
        /// Number of bytes.
        count: usize,
    },
    /// A malformed row, with the violated rule.
    Wrong(String),
    /// Not a row.
    Not,
}

/// Parses `10: 0c 00 00 f0 ...`: an offset of at least two digits, a colon, bytes of two digits.
pub(super) fn read(line: &str) -> Row {
    let Some(colon) = line.bytes().take(5).position(|c| c == b':') else { return Row::Not };
    let (offset, rest) = (&line[..colon], &line[colon + 1..]);
    let is_offset = colon >= 2 && offset.bytes().all(|c| c.is_ascii_hexdigit());
    if !is_offset || !rest.starts_with(' ') {
        return Row::Not;
    }
    let Ok(offset) = usize::from_str_radix(offset, 16) else { return Row::Not };
    let (mut bytes, mut count) = ([0; 16], 0);
    for word in rest.trim_end().as_bytes().get(1..).unwrap_or_default().chunks(3) {
        let byte = match word {
            [high, low] | [high, low, b' '] => digit(*high).zip(digit(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        let Some(byte) = byte else {
            let word =
                rest.split_ascii_whitespace().find(|word| word.len() != 2 || !word.bytes().all(|c| digit(c).is_some()));
            let word = crate::shortened::shortened(word.unwrap_or(rest));
            return Row::Wrong(format!("'{word}' is not a byte; write two hexadecimal digits, separated by one blank"));
        };
        if let Some(place) = bytes.get_mut(count) {
            *place = byte;
        }
        count += 1;
    }
    if count == 0 || count > bytes.len() {
        return Row::Wrong(format!("a row has 1 to 16 bytes; this one has {count}"));
    }
    Row::Bytes { offset, bytes, count }
}

/// Value of a hexadecimal digit. Performance-critical: a dump of a large machine has millions of digits.
const fn digit(c: u8) -> Option<u8> {
    match c {
        b'0'..=b'9' => Some(c - b'0'),
        b'a'..=b'f' => Some(c - b'a' + 10),
        b'A'..=b'F' => Some(c - b'A' + 10),
        _ => None,
    }
}

/// Appends a row to configuration space.
///
/// # Errors
/// If a row is missing or duplicated, or lies beyond configuration space.
pub(super) fn append(config: &mut Vec<u8>, (offset, bytes): (usize, &[u8]), most: usize) -> Result<(), String> {
    if offset != config.len() {
        return Err(format!("row {offset:#x} where row {:#x} is expected; is a line missing?", config.len()));
    }
    if config.len() + bytes.len() > most {
        return Err(format!("this row is beyond the {most} B of config space"));
    }
    config.extend_from_slice(bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_one_to_sixteen_bytes() {
        let bytes = |line| match read(line) {
            Row::Bytes { offset, count, .. } => Some((offset, count)),
            _ => None,
        };
        assert_eq!(bytes("00: 86 80 00 0c 06 00 90 20 06 00 00 06 00 00 00 00"), Some((0, 16)));
        assert_eq!(bytes("ff0: 01"), Some((0xff0, 1)));
        assert_eq!(bytes("00: 86 80 00 0c 06 00 90 20 06 00 00 06 00 00 00 00 00"), None);
        for wrong in ["00: 8", "00: 868", "00: +1", "00: gg", "00: ", "00: 00  00", "00: 00\u{e9}"] {
            assert!(matches!(read(wrong), Row::Wrong(_)), "{wrong}");
        }
        for other in ["", "0: 00", "00000: 00", "00:86", "00 86", "Slot: 1", "gg: 00"] {
            assert_eq!(read(other), Row::Not, "{other}");
        }
    }

    #[test]
    fn rows_are_contiguous_up_to_the_end_of_config_space() {
        let mut config = Vec::new();
        assert_eq!(append(&mut config, (0, &[0; 16]), 32), Ok(()));
        for wrong in [0, 0x20, 0x0f] {
            assert!(append(&mut config, (wrong, &[0; 16]), 32).is_err(), "{wrong:#x}");
        }
        assert_eq!(append(&mut config, (0x10, &[0; 16]), 32), Ok(()));
        assert!(append(&mut config, (0x20, &[0]), 32).unwrap_err().contains("beyond the 32 B"));
    }
}
