//! Placeholders in the notes of an experiment: numbers that the run fills in.
//!
//! | placeholder | text |
//! | --- | --- |
//! | `{R12}` | simulated value of row R12 with its unit; that of the formula if nothing is simulated |
//! | `{R12\|published}` | published value of row R12 with its unit |
//! | `{R12\|error}` | error of row R12 in percent, with its sign |
//! | `{=100*R12/R9:1}` | arithmetic over simulated values, without a unit |
//!
//! A number has three significant digits, and all digits before the point.

use crate::expression::evaluate;
use crate::standard;
use lanemark_platform::Platform;
use lanemark_record::Row;
use std::cell::{Cell, RefCell};

/// A placeholder, without its braces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Placeholder<'a> {
    Value(&'a str),
    Published(&'a str),
    Error(&'a str),
    Arithmetic(&'a str),
}

impl<'a> Placeholder<'a> {
    fn of(text: &'a str) -> Result<Placeholder<'a>, String> {
        if let Some(expression) = text.strip_prefix('=') {
            return Ok(Placeholder::Arithmetic(expression));
        }
        match text.split_once('|') {
            None => Ok(Placeholder::Value(text)),
            Some((id, "published")) => Ok(Placeholder::Published(id)),
            Some((id, "error")) => Ok(Placeholder::Error(id)),
            Some((_, kind)) => Err(format!("'{kind}' in '{{{text}}}' is neither published nor error")),
        }
    }

    /// The text for a reader.
    fn filled(self, rows: &[Row], platform: Option<&Platform>) -> Result<String, String> {
        let row = |id: &str| rows.iter().find(|row| row.id == id).ok_or_else(|| format!("there is no row '{id}'"));
        let computed = |row: &Row| row.simulated.or(row.formula);
        let without = |id: &str, what: &str| format!("row '{id}' has no {what}");
        match self {
            Placeholder::Value(id) => {
                let row = row(id)?;
                Ok(with_unit(computed(row).ok_or_else(|| without(id, "value"))?, &row.unit))
            }
            Placeholder::Published(id) => {
                let row = row(id)?;
                let value = row.corrected.or(row.published).ok_or_else(|| without(id, "published value"))?;
                Ok(with_unit(value, &row.unit))
            }
            Placeholder::Error(id) => {
                let error = row(id)?.error_percent.ok_or_else(|| without(id, "error"))?;
                Ok(format!("{error:+.1} %"))
            }
            Placeholder::Arithmetic(expression) => {
                let value = |id: &str| standard::number(platform, id).or_else(|| row(id).ok().and_then(computed));
                Ok(digits(evaluate(expression, &value)?))
            }
        }
    }

    /// Checks the placeholder without values; `is_row` returns whether a row exists.
    fn check(self, is_row: &dyn Fn(&str) -> bool, platform: Option<&Platform>) -> Result<(), String> {
        let named = |id: &str| if is_row(id) { Ok(()) } else { Err(format!("there is no row '{id}'")) };
        match self {
            Placeholder::Value(id) | Placeholder::Published(id) | Placeholder::Error(id) => named(id),
            Placeholder::Arithmetic(expression) => {
                // Any values do, as long as differences are not zero.
                let (any, unknown) = (Cell::new(1.0), RefCell::new(None));
                let value = |id: &str| {
                    any.set(any.get() * 1.618);
                    if standard::number(platform, id).is_none() {
                        named(id).map_err(|message| *unknown.borrow_mut() = Some(message)).ok()?;
                    }
                    Some(any.get())
                };
                let result = evaluate(expression, &value);
                unknown.take().map_or(result.map(|_| ()), Err)
            }
        }
    }
}

/// Fills the placeholders of `note` with values of `rows`.
///
/// # Errors
/// The placeholder that is malformed, names no row, or names a row without this value.
pub(crate) fn fill(note: &str, rows: &[Row], platform: Option<&Platform>) -> Result<String, String> {
    replace(note, |placeholder| placeholder.filled(rows, platform))
}

/// Checks the placeholders of `note`; `is_row` returns whether a row exists.
///
/// # Errors
/// The placeholder that is malformed or names no row.
pub(crate) fn check(note: &str, is_row: &dyn Fn(&str) -> bool, platform: Option<&Platform>) -> Result<(), String> {
    replace(note, |placeholder| placeholder.check(is_row, platform).map(|()| String::new())).map(|_| ())
}

fn replace(note: &str, text: impl Fn(Placeholder<'_>) -> Result<String, String>) -> Result<String, String> {
    let (mut filled, mut rest) = (String::with_capacity(note.len()), note);
    while let Some((before, behind)) = rest.split_once('{') {
        let (inside, after) = behind.split_once('}').ok_or_else(|| format!("a '}}' is missing in '{note}'"))?;
        filled += before;
        filled += &text(Placeholder::of(inside)?)?;
        rest = after;
    }
    filled += rest;
    Ok(filled)
}

/// A number with its unit; `-` is the unit of a ratio.
fn with_unit(value: f64, unit: &str) -> String {
    if unit.is_empty() || unit == "-" { digits(value) } else { format!("{} {unit}", digits(value)) }
}

/// A number with three significant digits, and all digits before the point.
fn digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    // The exponent of the rounded number: 9.996 has the digits of 10.0.
    let text = format!("{value:.2e}");
    let exponent: i32 = text.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    format!("{value:.*}", usize::try_from(2 - exponent).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_record::{Class, Verdict};

    fn row(id: &str, simulated: Option<f64>, unit: &str) -> Row {
        Row {
            id: id.to_owned(),
            what: String::new(),
            published: Some(808.0),
            corrected: None,
            simulated,
            formula: Some(2.0),
            unit: unit.to_owned(),
            class: Class::Predicted,
            same_as: Vec::new(),
            error_percent: simulated.map(|simulated| 100.0 * (simulated - 808.0) / 808.0),
            tolerance_percent: None,
            verdict: Verdict::Listed,
            note: String::new(),
        }
    }

    fn rows() -> [Row; 3] {
        [row("R12", Some(792.16), "MiB/s"), row("R9:1", Some(966.87), "MiB/s"), row("S11", None, "-")]
    }

    #[test]
    fn placeholders_are_filled_with_values_of_the_run() {
        let fill = |note| fill(note, &rows(), None).unwrap();
        assert_eq!(fill("no numbers"), "no numbers");
        assert_eq!(fill("{R12}, published {R12|published}: {R12|error}."), "792 MiB/s, published 808 MiB/s: -2.0 %.");
        assert_eq!(fill("{S11} by formula"), "2.00 by formula");
        assert_eq!(
            fill("{=100*(1-R12/R9:1)} % less; a lane has {=lane:2} Gbit/s"),
            "18.1 % less; a lane has 4.00 Gbit/s"
        );
    }

    #[test]
    fn a_placeholder_without_a_row_or_a_value_is_refused() {
        for (note, message) in [
            ("{R13}", "there is no row 'R13'"),
            ("{R12|simulated}", "'simulated' in '{R12|simulated}' is neither published nor error"),
            ("{S11|error}", "row 'S11' has no error"),
            ("{R12", "a '}' is missing in '{R12'"),
            ("{=R12/R14}", "R14 has no value in 'R12/R14'"),
            ("{=1/0}", "'1/0' divides by zero"),
        ] {
            assert_eq!(fill(note, &rows(), None), Err(message.to_owned()), "{note}");
        }
    }

    #[test]
    fn placeholders_are_checked_before_a_run() {
        let is_row = |id: &str| id == "R12" || id == "R9:1";
        let check = |note| check(note, &is_row, None);
        for note in ["", "{R12} {R9:1|error} {R12|published}", "{=R12/(R9:1-R12)*lane:3}"] {
            assert_eq!(check(note), Ok(()), "{note}");
        }
        for note in ["{R1}", "{R12|x}", "{=R12/R1}", "{=R12/}", "{R12"] {
            assert!(check(note).is_err(), "{note}");
        }
    }

    #[test]
    fn numbers_have_three_significant_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.012_34, "0.0123"),
            (9.994, "9.99"),
            (9.996, "10.0"),
            (-99.96, "-100"),
            (1064.6, "1065"),
            (12_994.4, "12994"),
        ] {
            assert_eq!(digits(value), text);
        }
    }
}
