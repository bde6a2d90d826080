//! A row of a hexadecimal dump.

/// What a line at the left margin that begins no function is.
#[derive(Debug, PartialEq)]
pub(super) enum Row {
    /// Sixteen bytes, or fewer in the last row of a file that was cut.
    Bytes {
        /// Where the first one stands.
        offset: usize,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// It begins as a row and is none.
    Wrong(String),
    /// Something else.
    Not,
}

/// Reads `10: 0c 00 00 f0 ...`: two digits or more, a colon, bytes of two digits.
pub(super) fn read(line: &str) -> Row {
    let Some((offset, rest)) = line.split_once(':') else { return Row::Not };
    let is_offset = (2..=4).contains(&offset.len()) && offset.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_offset || !rest.starts_with(' ') {
        return Row::Not;
    }
    let Ok(offset) = usize::from_str_radix(offset, 16) else { return Row::Not };
    let mut bytes = Vec::with_capacity(16);
    for word in rest.split_ascii_whitespace() {
        let two_digits = word.len() == 2 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u8::from_str_radix(word, 16) {
            Ok(byte) if two_digits => bytes.push(byte),
            _ => return Row::Wrong(format!("'{}' is no byte of two hexadecimal digits", crate::shortened(word))),
        }
    }
    if bytes.is_empty() || bytes.len() > 16 {
        return Row::Wrong(format!("a row has 16 bytes, this one {}", bytes.len()));
    }
    Row::Bytes { offset, bytes }
}

/// Puts a row behind those before it.
///
/// # Errors
/// If a row is missing, is there twice, or lies behind config space.
pub(super) fn append(config: &mut Vec<u8>, (offset, bytes): (usize, Vec<u8>), most: usize) -> Result<(), String> {
    if offset != config.len() {
        return Err(format!(
            "the row of {offset:#x} stands where that of {:#x} should; is a line missing?",
            config.len()
        ));
    }
    if config.len() + bytes.len() > most {
        return Err(format!("config space has {most} B; this row lies behind it"));
    }
    config.extend(bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_sixteen_bytes_or_fewer_at_its_end() {
        let bytes = |line| match read(line) {
            Row::Bytes { offset, bytes } => Some((offset, bytes.len())),
            _ => None,
        };
        assert_eq!(bytes("00: 86 80 00 0c 06 00 90 20 06 00 00 06 00 00 00 00"), Some((0, 16)));
        assert_eq!(bytes("ff0: 01"), Some((0xff0, 1)));
        assert_eq!(bytes("00: 86 80 00 0c 06 00 90 20 06 00 00 06 00 00 00 00 00"), None);
        for wrong in ["00: 8", "00: 868", "00: +1", "00: gg", "00: "] {
            assert!(matches!(read(wrong), Row::Wrong(_)), "{wrong}");
        }
        for other in ["", "0: 00", "00000: 00", "00:86", "00 86", "Slot: 1", "gg: 00"] {
            assert_eq!(read(other), Row::Not, "{other}");
        }
    }

    #[test]
    fn rows_follow_one_another_up_to_the_end_of_config_space() {
        let mut config = Vec::new();
        assert_eq!(append(&mut config, (0, vec![0; 16]), 32), Ok(()));
        for wrong in [0, 0x20, 0x0f] {
            assert!(append(&mut config, (wrong, vec![0; 16]), 32).is_err(), "{wrong:#x}");
        }
        assert_eq!(append(&mut config, (0x10, vec![0; 16]), 32), Ok(()));
        assert!(append(&mut config, (0x20, vec![0]), 32).unwrap_err().contains("behind it"));
    }
}
