//! Lists and ranges of values, as people type them: `128,256`, `8..256*2`, `100..500+50`, `4K..1M*4`.

use lanemark_units::parse_size;

/// Errors in a list of values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValuesError {
    /// An empty list, or an empty item.
    #[error("'{0}' has an empty value: write values (8,16) or a range (8..256*2, 100..500+50)")]
    Empty(String),
    /// A bound of a range that is not a number.
    #[error("'{0}' in a range is not a number or a size: write 8..256*2, 100..500+50 or 4K..1M*4")]
    NotANumber(String),
    /// A range that ends before it begins.
    #[error("the range '{0}' ends before it begins: write the smaller number first")]
    Backwards(String),
    /// A step that does not get from one value to the next.
    #[error(
        "the step of '{0}' must be a factor above 1 (8..256*2, from a number above 0) or a number above 0 (8..256+8)"
    )]
    Step(String),
    /// Too many values.
    #[error("'{0}' has more than a million values: use larger steps or fewer values")]
    TooMany(String),
}

/// Largest number of values of a list.
pub(crate) const MOST: usize = 1_000_000;

/// The values of a comma-separated list of values and ranges. A range has a factor (`8..256*2`, also the default) or a
/// step (`100..500+50`). It includes its last value even if the step misses it. Sizes in ranges become bytes.
///
/// ```
/// use lanemark_sweep::value_list;
/// assert_eq!(value_list("8..64*2").unwrap(), ["8", "16", "32", "64"]);
/// assert_eq!(value_list("0.1..0.4+0.1,true").unwrap(), ["0.1", "0.2", "0.3", "0.4", "true"]);
/// assert_eq!(value_list("4K..64K*4").unwrap(), ["4096", "16384", "65536"]);
/// assert!(value_list("64..8").is_err());
/// ```
///
/// # Errors
/// [`ValuesError`] with the part of `text` that is wrong.
pub fn value_list(text: &str) -> Result<Vec<String>, ValuesError> {
    let mut values = Vec::new();
    for item in text.split(',').map(str::trim) {
        if item.is_empty() {
            return Err(ValuesError::Empty(text.to_owned()));
        }
        match item.split_once("..") {
            None => values.push(item.to_owned()),
            Some((first, rest)) => values.extend(range(item, first, rest)?),
        }
        if values.len() > MOST {
            return Err(ValuesError::TooMany(shortened(text)));
        }
    }
    Ok(values)
}

fn range(item: &str, first: &str, rest: &str) -> Result<Vec<String>, ValuesError> {
    let (last, step, is_factor) = match (rest.split_once('*'), rest.split_once('+')) {
        (Some((last, factor)), _) => (last, number(factor)?, true),
        // The exponent of 1e+3 is no step.
        (None, Some((last, step))) if !last.ends_with(['e', 'E']) => (last, number(step)?, false),
        _ => (rest, 2.0, true),
    };
    let (first, last) = (number(first)?, number(last)?);
    if first > last {
        return Err(ValuesError::Backwards(item.to_owned()));
    }
    let is_step = if is_factor { step > 1.0 && first > 0.0 } else { step > 0.0 };
    if !is_step {
        return Err(ValuesError::Step(item.to_owned()));
    }
    let mut values = Vec::new();
    for nth in 0..i32::try_from(MOST).unwrap_or(i32::MAX) {
        let value = if is_factor { first * step.powi(nth) } else { first + step * f64::from(nth) };
        // A value within rounding of the last one is the last one.
        let rounding = if is_factor { last * 1e-12 } else { step * 1e-9 };
        if value >= last - rounding {
            values.push(shown(last));
            return Ok(values);
        }
        values.push(shown(value));
    }
    Err(ValuesError::TooMany(item.to_owned()))
}

/// The beginning of a text, for messages.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// A number, or a size with its unit in bytes.
fn number(text: &str) -> Result<f64, ValuesError> {
    let text = text.trim();
    let plain = text.parse().ok().filter(|number: &f64| number.is_finite());
    let size = || parse_size(text).ok().map(|bytes| bytes as f64);
    plain.or_else(size).ok_or_else(|| ValuesError::NotANumber(text.to_owned()))
}

/// The number without the rounding errors of steps, with an exponent if it has many digits.
fn shown(number: f64) -> String {
    let rounded: f64 = format!("{number:.12e}").parse().unwrap_or(number);
    let is_whole = rounded.fract() == 0.0 && rounded.abs() < 9e15;
    if is_whole { format!("{rounded:.0}") } else { format!("{rounded:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_end_with_their_last_value() {
        let list = |text| value_list(text).unwrap().join(" ");
        assert_eq!(list("8..256"), "8 16 32 64 128 256");
        assert_eq!(list("8..100*2"), "8 16 32 64 100");
        assert_eq!(list("0..10+4"), "0 4 8 10");
        assert_eq!(list("1..1"), "1");
        assert_eq!(list("1..2*1.1").split(' ').count(), 9);
        assert_eq!(list("1e3..1e+3"), "1000");
        assert_eq!(list("1e300..1e308*1e9"), "1e300 1e308");
        assert_eq!(list("-2..2+2"), "-2 0 2");
        assert_eq!(list(" 8 , 16..32 "), "8 16 32");
        assert_eq!(list("8B,never,1M"), "8B never 1M");
    }

    #[test]
    fn wrong_ranges_are_refused_by_name() {
        for text in ["", ",", "8,,16"] {
            assert!(matches!(value_list(text), Err(ValuesError::Empty(_))), "{text}");
        }
        for text in ["a..b", "8..", "..8", "8..16*x", "8..16+", "nan..8", "8..inf"] {
            assert!(matches!(value_list(text), Err(ValuesError::NotANumber(_))), "{text}");
        }
        for text in ["8..16*1", "8..16*0.5", "0..16", "0..16*2", "8..16+0", "8..16+-1"] {
            assert!(matches!(value_list(text), Err(ValuesError::Step(_))), "{text}");
        }
        assert!(matches!(value_list("16..8"), Err(ValuesError::Backwards(_))));
        assert!(matches!(value_list("0..1e9+1"), Err(ValuesError::TooMany(_))));
    }

    #[test]
    fn a_list_has_at_most_a_million_values() {
        assert_eq!(value_list("1..1000000+1").unwrap().len(), 1_000_000);
        assert!(matches!(value_list("0..1000000+1"), Err(ValuesError::TooMany(_))));
        assert_eq!(value_list("1..600000+1,600001..1000000+1").unwrap().len(), 1_000_000);
        let long = value_list(&["1..600000+1"; 100].join(",")).unwrap_err().to_string();
        assert!(long.contains("...' has more than a million values") && long.len() < 200, "{long}");
    }
}
