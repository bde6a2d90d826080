//! Sizes as people type them: `64`, `4K`, `4KiB`, `1.5MB`, and ranges such as `64..4M`. K is 1024 in all of them.

/// Errors in a size or a list of sizes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SizeError {
    /// Neither a number nor a number with a known unit.
    #[error(
        "'{text}' is not a size: write bytes (64), or a number with K, M, G or T (4K, 4KB and 4KiB are 4096 bytes)"
    )]
    NotASize {
        /// The text.
        text: String,
    },
    /// Larger than 2^64 - 1 bytes.
    #[error("'{text}' is larger than any address space")]
    TooLarge {
        /// The text.
        text: String,
    },
    /// An empty list or range.
    #[error("the size list is empty: write sizes (64,4KiB) or a range (64..4MiB)")]
    Empty,
    /// Sizes that do not ascend.
    #[error("the sizes '{text}' are not in ascending order: write the smallest first")]
    Backwards {
        /// The text.
        text: String,
    },
    /// A factor between sizes that is below 2 or not a whole number.
    #[error("the factor '{text}' must be at least 2, a whole number: write 64..4MiB*4")]
    Factor {
        /// The text of the factor.
        text: String,
    },
    /// A size of 0.
    #[error("a size of 0 bytes is not allowed: the smallest is 1")]
    Zero,
}

/// The binary prefixes, with the power of two that each stands for.
const PREFIXES: &[(char, u32)] = &[('k', 10), ('m', 20), ('g', 30), ('t', 40)];

/// The bytes that a unit stands for: `B`, or a binary prefix with or without `B` or `iB`, in upper or lower case; `None` for other text.
///
/// Sizes of transfers are powers of two almost always, so `K` and `KB` are 1024 as in fio and dd's `K`. Rates are decimal everywhere.
fn unit_bytes(unit: &str) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    if matches!(unit.as_str(), "" | "b") {
        return Some(1);
    }
    let (_, power) = PREFIXES.iter().find(|(prefix, _)| unit.starts_with(*prefix))?;
    matches!(&unit[1..], "" | "b" | "ib").then_some(1 << power)
}

/// Parses a size, in bytes.
///
/// ```
/// assert_eq!(lanemark_units::parse_size("1.5KiB"), Ok(1536));
/// assert_eq!(lanemark_units::parse_size("4k"), Ok(4096));
/// assert!(lanemark_units::parse_size("4q").is_err());
/// ```
///
/// # Errors
/// [`SizeError::NotASize`] if number or unit are invalid, or the size is not a whole number of bytes;
/// [`SizeError::TooLarge`] above 2^64 - 1.
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let text = text.trim();
    let not_a_size = || SizeError::NotASize { text: text.to_owned() };
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = unit_bytes(unit.trim()).ok_or_else(not_a_size)?;
    let too_large = || SizeError::TooLarge { text: text.to_owned() };
    if let Some((whole, part)) = number.split_once('.') {
        if whole.is_empty() || part.is_empty() || part.len() > 12 || part.contains('.') {
            return Err(not_a_size());
        }
        let whole: u64 = whole.parse().map_err(|_| not_a_size())?;
        let scale = 10_u128.pow(part.len() as u32);
        let part: u128 = part.parse().map_err(|_| not_a_size())?;
        let scaled = (u128::from(whole) * scale + part).checked_mul(u128::from(factor)).ok_or_else(too_large)?;
        if !scaled.is_multiple_of(scale) {
            return Err(not_a_size());
        }
        return u64::try_from(scaled / scale).map_err(|_| too_large());
    }
    if number.is_empty() {
        return Err(not_a_size());
    }
    let number: u64 = number.parse().map_err(|_| too_large())?;
    number.checked_mul(factor).ok_or_else(too_large)
}

/// Formats a size with the largest binary unit that gives a whole number.
///
/// ```
/// assert_eq!(lanemark_units::format_size(4096), "4KiB");
/// assert_eq!(lanemark_units::format_size(100), "100B");
/// ```
#[must_use]
pub fn format_size(bytes: u64) -> String {
    let (name, factor) = [("TiB", 1_u64 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
        .into_iter()
        .find(|(_, factor)| bytes >= *factor && bytes.is_multiple_of(*factor))
        .unwrap_or(("B", 1));
    format!("{}{name}", bytes / factor)
}

/// A list of sizes, parsed from `64..4MiB` (doubling), `64..4MiB*4` (quadrupling) or `64,100,4KiB`.
///
/// ```
/// use lanemark_units::SizeRange;
/// assert_eq!("64..512".parse::<SizeRange>().unwrap().bytes(), [64, 128, 256, 512]);
/// assert_eq!("64..1KiB*4".parse::<SizeRange>().unwrap().bytes(), [64, 256, 1024]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizeRange(Vec<u64>);

impl SizeRange {
    /// The sizes in bytes, ascending; never empty, none 0.
    #[must_use]
    pub fn bytes(&self) -> &[u64] {
        &self.0
    }
}

impl std::str::FromStr for SizeRange {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<SizeRange, SizeError> {
        let backwards = || SizeError::Backwards { text: text.to_owned() };
        if text.trim().is_empty() {
            return Err(SizeError::Empty);
        }
        let sizes = if let Some((first, rest)) = text.split_once("..") {
            let (last, factor) = match rest.split_once('*') {
                Some((last, factor)) => (
                    last,
                    factor
                        .trim()
                        .parse()
                        .ok()
                        .filter(|f| *f >= 2)
                        .ok_or_else(|| SizeError::Factor { text: factor.trim().to_owned() })?,
                ),
                None => (rest, 2_u64),
            };
            let (first, last) = (parse_size(first)?, parse_size(last)?);
            if first == 0 {
                return Err(SizeError::Zero);
            }
            if first > last {
                return Err(backwards());
            }
            let next = |size: &u64| size.checked_mul(factor).filter(|next| *next <= last);
            let mut sizes: Vec<u64> = std::iter::successors(Some(first), next).collect();
            if sizes.last() != Some(&last) {
                sizes.push(last);
            }
            sizes
        } else {
            text.split(',').map(parse_size).collect::<Result<Vec<u64>, SizeError>>()?
        };
        if sizes.contains(&0) {
            return Err(SizeError::Zero);
        }
        if sizes.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(backwards());
        }
        Ok(SizeRange(sizes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_type_them() {
        for (text, bytes) in [
            ("0", 0),
            ("64", 64),
            ("64B", 64),
            ("4KiB", 4096),
            ("4 KiB", 4096),
            ("4k", 4096),
            ("4K", 4096),
            ("4KB", 4096),
            ("4kib", 4096),
            ("2GB", 2 << 30),
            ("1.5m", 3 << 19),
            ("1t", 1 << 40),
            ("1.5KiB", 1536),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "KiB", "4Q", "-1", "4kbb", "4ik", "4bk", "4µ", "1.2.3KiB", "0.3B", "1.", ".5KiB", "1e3"] {
            assert!(matches!(parse_size(text), Err(SizeError::NotASize { .. })), "{text}");
        }
        for text in ["18446744073709551616", "16777216TiB", "18446744073709551615.000000000001TiB"] {
            assert!(matches!(parse_size(text), Err(SizeError::TooLarge { .. })), "{text}");
        }
        assert_eq!(parse_size("16777215TiB"), Ok(16_777_215 << 40));
    }

    #[test]
    fn a_formatted_size_parses_back() {
        for bytes in [0, 1, 63, 64, 1023, 1024, 1025, 1 << 20, 3 << 30, u64::MAX] {
            assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
        }
    }

    #[test]
    fn a_range_includes_its_last_size_even_if_doubling_misses_it() {
        assert_eq!("64..200".parse::<SizeRange>().unwrap().bytes(), [64, 128, 200]);
        assert_eq!("7".parse::<SizeRange>().unwrap().bytes(), [7]);
        assert_eq!("64..64".parse::<SizeRange>().unwrap().bytes(), [64]);
    }

    #[test]
    fn empty_descending_and_zero_lists_are_refused() {
        assert_eq!("".parse::<SizeRange>(), Err(SizeError::Empty));
        assert!(matches!("4096..64".parse::<SizeRange>(), Err(SizeError::Backwards { .. })));
        assert!(matches!("64,32".parse::<SizeRange>(), Err(SizeError::Backwards { .. })));
        assert!(matches!("64,64".parse::<SizeRange>(), Err(SizeError::Backwards { .. })));
        assert_eq!("0..64".parse::<SizeRange>(), Err(SizeError::Zero));
        assert_eq!("0,64".parse::<SizeRange>(), Err(SizeError::Zero));
        for factor in ["1", "0", "-1", "x", "", "1.5"] {
            let refused = format!("64..128*{factor}").parse::<SizeRange>();
            assert_eq!(refused, Err(SizeError::Factor { text: factor.to_owned() }), "{factor}");
        }
        assert!(SizeError::Factor { text: "1".to_owned() }.to_string().contains("must be at least 2"));
    }
}
