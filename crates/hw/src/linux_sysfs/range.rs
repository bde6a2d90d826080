//! Notation for the ranges that may be accessed: `2:0..4KiB:storage`.

use lanemark_units::{format_size, parse_size};
use std::fmt;
use std::str::FromStr;

/// Range of a BAR that the user names, with its kind.
///
/// Notation: `BAR:FROM..TO`, `TO` exclusive, optionally followed by a colon and the kind: `storage`, `registers`,
/// `registers:write` or `registers:write-only`. `FROM` and `TO` are sizes, or hexadecimal with `0x`.
///
/// ```
/// use lanemark_hw::linux_sysfs::{Kind, Range};
/// let range: Range = "2:0..4KiB".parse().unwrap();
/// assert_eq!((range.bar, range.from, range.to, range.kind), (2, 0, 4096, None));
/// let doorbell: Range = "0:0x1000..0x1004:registers:write-only".parse().unwrap();
/// assert_eq!(doorbell.kind, Some(Kind::Registers { may_load: false, may_store: true }));
/// assert!("2:4KiB..4KiB".parse::<Range>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// BAR number, 0 to 5.
    pub bar: u8,
    /// Offset of the first byte in the BAR.
    pub from: u64,
    /// Offset after the last byte.
    pub to: u64,
    /// Kind; if `None`, it follows from the BAR: storage if prefetchable, otherwise read-only registers.
    pub kind: Option<Kind>,
}

/// Kind of the hardware behind a range, which decides the permitted accesses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Memory that keeps what is written: any load or store is permitted. Its contents are overwritten.
    Storage,
    /// Registers: plans use plain 4 B accesses at multiples of 4 only, which every device supports.
    Registers {
        /// Whether loads are permitted; a load may have side effects.
        may_load: bool,
        /// Whether stores are permitted.
        may_store: bool,
    },
}

impl Kind {
    /// All kinds with their names.
    pub const ALL: [(&str, Kind); 4] = [
        ("storage", Kind::Storage),
        ("registers", Kind::Registers { may_load: true, may_store: false }),
        ("registers:write", Kind::Registers { may_load: true, may_store: true }),
        ("registers:write-only", Kind::Registers { may_load: false, may_store: true }),
    ];

    /// Whether loads are permitted.
    #[must_use]
    pub const fn may_load(self) -> bool {
        matches!(self, Kind::Storage | Kind::Registers { may_load: true, .. })
    }

    /// Whether stores are permitted.
    #[must_use]
    pub const fn may_store(self) -> bool {
        matches!(self, Kind::Storage | Kind::Registers { may_store: true, .. })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Kind::ALL.iter().find(|(_, kind)| kind == self).map_or("registers without access", |(name, _)| name);
        f.write_str(name)
    }
}

/// Error for a text that is not a range of a BAR.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "'{text}' is not a range of a BAR: {because}; examples: 2:0..4KiB, 2:0x1000..0x2000:storage, 0:0..64:registers"
)]
pub struct NotARange {
    /// Text.
    pub text: String,
    /// Reason.
    pub because: String,
}

impl Range {
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

    /// Whether the ranges overlap.
    #[must_use]
    pub const fn overlaps(&self, other: &Range) -> bool {
        self.bar == other.bar && self.from < other.to && other.from < self.to
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from {
            0 => write!(f, "{}:0..{}", self.bar, format_size(self.to))?,
            from => write!(f, "{}:{}..{}", self.bar, format_size(from), format_size(self.to))?,
        }
        self.kind.map_or(Ok(()), |kind| write!(f, ":{kind}"))
    }
}

impl FromStr for Range {
    type Err = NotARange;

    fn from_str(text: &str) -> Result<Range, NotARange> {
        let not = |because: String| NotARange { text: text.to_owned(), because };
        let (bar, rest) = text.split_once(':').ok_or_else(|| not("there is no colon after the BAR".to_owned()))?;
        let (offsets, kind) = rest.split_once(':').map_or((rest, None), |(offsets, kind)| (offsets, Some(kind)));
        let bar = bar
            .parse()
            .ok()
            .filter(|bar| *bar < 6)
            .ok_or_else(|| not("the BAR must be a number from 0 to 5".to_owned()))?;
        let (from, to) = self::offsets(offsets).map_err(not)?;
        let known = |name: &str| Kind::ALL.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
        let names = || Kind::ALL.map(|(name, _)| name).join(", ");
        let kind =
            kind.map(|name| known(name).ok_or_else(|| not(format!("the kind '{name}' is not one of {}", names()))));
        Ok(Range { bar, from, to, kind: kind.transpose()? })
    }
}

/// Start and end of a range in the notation `FROM..TO`, which is not empty; else the reason.
pub(crate) fn offsets(text: &str) -> Result<(u64, u64), String> {
    let (from, to) = text.split_once("..").ok_or_else(|| "there is no '..' between the offsets".to_owned())?;
    let (from, to) = (offset(from)?, offset(to)?);
    if from >= to {
        return Err("it is empty: the end offset must be greater than the start offset".to_owned());
    }
    Ok((from, to))
}

fn offset(text: &str) -> Result<u64, String> {
    match text.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => {
            u64::from_str_radix(digits, 16).map_err(|_| format!("'{text}' is not a hexadecimal offset"))
        }
        Some(_) => Err(format!("'{text}' is not a hexadecimal offset")),
        None => parse_size(text).map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_parsed_from_its_displayed_name() {
        for (name, kind) in Kind::ALL {
            let range: Range = format!("1:64..0x80:{name}").parse().unwrap();
            assert_eq!(range, Range { bar: 1, from: 64, to: 128, kind: Some(kind) });
            assert_eq!(range.to_string().parse(), Ok(range));
        }
    }

    #[test]
    fn registers_are_read_only_by_default() {
        let may = |name: &str| {
            let kind = Kind::ALL.iter().find(|(known, _)| *known == name).unwrap().1;
            (kind.may_load(), kind.may_store())
        };
        assert_eq!(may("storage"), (true, true));
        assert_eq!(may("registers"), (true, false));
        assert_eq!(may("registers:write"), (true, true));
        assert_eq!(may("registers:write-only"), (false, true));
    }

    #[test]
    fn malformed_ranges_are_rejected_with_the_reason_and_an_example() {
        for (text, word) in [
            ("", "colon"),
            ("2", "colon"),
            ("6:0..64", "0 to 5"),
            ("x:0..64", "0 to 5"),
            ("2:64", "'..'"),
            ("2:64..64", "empty"),
            ("2:65..64", "empty"),
            ("2:0..4Q", "4Q"),
            ("2:0..0xg", "hexadecimal"),
            ("2:0x+1..64", "hexadecimal"),
            ("2:0..64:", "''"),
            ("2:0..64:fifo", "registers:write-only"),
            ("2:0..64:storage:write", "'storage:write'"),
        ] {
            let error = text.parse::<Range>().unwrap_err().to_string();
            assert!(error.contains(word) && error.contains("2:0..4KiB"), "{error}");
        }
    }

    #[test]
    fn adjacent_ranges_do_not_overlap_and_one_shared_byte_does() {
        let range = |text: &str| text.parse::<Range>().unwrap();
        assert!(!range("2:0..64").overlaps(&range("2:64..128")));
        assert!(range("2:0..65").overlaps(&range("2:64..128")));
        assert!(!range("2:0..65").overlaps(&range("0:64..128")));
    }
}
