//! The range of a card's memory that a run may overwrite: `0..64MiB`.

use crate::linux_sysfs::offsets;
use lanemark_units::format_size;
use std::fmt;
use std::str::FromStr;

/// Bytes of a beat of the widest data path of the core (512 bit). A transfer has the same place in a beat on both sides.
///
/// Source: AMD PG195, "Port Descriptions", and the check of alignments in the driver (`cdev_sgdma.c`).
pub(crate) const BEAT: u64 = 64;

/// Range of addresses on the card (AXI), whose bytes a run may overwrite. Notation: `FROM..TO`, `TO` exclusive; sizes, or
/// hexadecimal with `0x`. `FROM` is a multiple of 64 B, and all addresses are below 2^63.
///
/// ```
/// use lanemark_hw::linux_xdma::CardMemory;
/// let memory: CardMemory = "0x1000..1MiB".parse().unwrap();
/// assert_eq!((memory.from, memory.len()), (4096, (1 << 20) - 4096));
/// assert_eq!(memory.to_string(), "4KiB..1MiB");
/// assert!("4..1MiB".parse::<CardMemory>().is_err());
/// assert!("1MiB..1MiB".parse::<CardMemory>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CardMemory {
    /// First address.
    pub from: u64,
    /// Address after the last one.
    pub to: u64,
}

/// Error for a text that is not a range of a card's memory.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{text}' is not a range of the card's memory: {because}; example: 0x80000000..0x80100000")]
pub struct NotCardMemory {
    /// Text.
    pub text: String,
    /// Reason.
    pub because: String,
}

impl CardMemory {
    /// Length in bytes; never 0 for a parsed range.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    /// Whether the range is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.to <= self.from
    }
}

impl fmt::Display for CardMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from {
            0 => write!(f, "0..{}", format_size(self.to)),
            from => write!(f, "{}..{}", format_size(from), format_size(self.to)),
        }
    }
}

impl FromStr for CardMemory {
    type Err = NotCardMemory;

    fn from_str(text: &str) -> Result<CardMemory, NotCardMemory> {
        let not = |because: String| NotCardMemory { text: text.to_owned(), because };
        let (from, to) = offsets(text).map_err(not)?;
        if !from.is_multiple_of(BEAT) {
            return Err(not(format!("the start address is not a multiple of {BEAT} B")));
        }
        // An address is an offset of a file, which is a signed number.
        if to > i64::MAX as u64 {
            return Err(not("it ends above 0x7fffffffffffffff, the largest offset in a file".to_owned()));
        }
        Ok(CardMemory { from, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_starts_at_a_multiple_of_64_b_and_ends_below_2_to_the_63() {
        let said = |text: &str| {
            text.parse::<CardMemory>().map_or_else(|error| error.to_string(), |memory| format!("{:#x}", memory.to))
        };
        assert_eq!(said("64..128"), "0x80");
        assert!(said("63..128").contains("multiple of 64 B"));
        assert_eq!(said("0..0x7fffffffffffffff"), "0x7fffffffffffffff");
        assert!(said("0..0x8000000000000000").contains("above 0x7fffffffffffffff"));
        for wrong in ["", "0", "0..", "..4096", "0:0..4096", "0..4096:storage", "0x..4096", "-64..64"] {
            assert!(said(wrong).contains("is not a range of the card's memory"), "{wrong}: {}", said(wrong));
        }
    }
}
