//! Values of structure that a platform file only assumes: the figures choose them again.

use crate::calibrate::started;
use crate::mechanism::{is_flag, reopenable};
use crate::{FitData, Parameter};
use lanemark_platform::Draft;

/// A value of structure that the file assumes, and on which some figures depend, so that the search chose it again: a flag,
/// or the width of beats.
#[derive(Clone, Debug, PartialEq)]
pub struct Reopened {
    /// Path of its key.
    pub key: String,
    /// The value that the file assumes; 1 is `true`.
    pub assumed: f64,
    /// The value of the chosen structure.
    pub chosen: f64,
    /// Whether the key is `true` or `false`.
    pub is_flag: bool,
    /// Whether a structure with another value was fitted and compared; otherwise its short fit promised nothing.
    pub is_compared: bool,
}

impl Reopened {
    /// A value of the key as in a platform file.
    #[must_use]
    pub fn in_words(&self, value: f64) -> String {
        if self.is_flag { (value > 0.0).to_string() } else { value.to_string() }
    }

    /// The other values that the search may choose, in words.
    #[must_use]
    pub fn others(&self) -> String {
        if self.is_flag { self.in_words(1.0 - self.assumed) } else { "another value".to_owned() }
    }
}

/// The fit in which a search may also change the values that `draft` assumes, except those in `kept`; and the keys of these,
/// each with its assumed value and whether it is a flag. A key without effect on any figure, at the middle, at the ends and
/// at places inside of the search ranges, stays closed.
pub(crate) fn reopen(problem: &FitData, draft: &Draft, kept: &[String]) -> (FitData, Vec<(&'static str, f64, bool)>) {
    let mut reopened = Vec::new();
    let mut next = problem.clone();
    for (key, values) in reopenable().into_iter().filter(|(key, _)| kept.iter().all(|kept| kept != key)) {
        let assumed = match draft.assumption(key).as_ref().map(|(value, _)| value.as_str()) {
            Some("true") => 1.0,
            Some("false") => 0.0,
            Some(number) => match number.parse::<f64>() {
                Ok(number) => number,
                Err(_) => continue,
            },
            None => continue,
        };
        let open = problem.with_open(key, assumed);
        let others = values.iter().filter(|value| (*value - assumed).abs() > 0.0);
        let mut others = others.filter_map(|value| open.with_value(key, *value).ok());
        if others.any(|other| differ(&open, &other)) {
            next = next.with_open(key, assumed);
            reopened.push((key, assumed, is_flag(values)));
        }
    }
    (next, reopened)
}

/// Places inside of the search ranges at which two problems are compared.
const PLACES: u32 = 32;

/// Whether formulas give another figure for `other` than for `one`: at the middle or at an end of all search ranges, or at
/// one of some places that combine short and long times.
fn differ(one: &FitData, other: &FitData) -> bool {
    let parameters = one.parameters();
    let at = |of: fn(&Parameter) -> f64| parameters.iter().map(of).collect::<Vec<f64>>();
    let inside = (0..PLACES).map(|nth| started(&parameters, nth).iter().map(|parameter| parameter.start).collect());
    let (Ok(facts), Ok(other_facts)) = (one.facts(), other.facts()) else { return false };
    [at(|one| one.start), at(|one| one.low), at(|one| one.high)].into_iter().chain(inside).any(|values| {
        let before = one.formula_residuals(&facts, &values);
        let both = before.and_then(|before| Ok((before, other.formula_residuals(&other_facts, &values)?)));
        both.is_ok_and(|(before, after)| before != after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HEADER, Table};

    const MIXED: &str = "dma_read_write_mix,4096,6 GB/s";

    /// The flags that are reopened for these figures, if the file states `dma.full_duplex` like this.
    fn reopened(full_duplex: &str, figures: &str, kept: &[String]) -> Vec<(&'static str, f64)> {
        let text = include_str!("../../../platforms/card-gen5-x16.toml");
        let text = text.replace("[dma]\n", &format!("[dma]\nfull_duplex = {full_duplex}\n"));
        // An engine that is slower than the link.
        let text = text.replace("beat_bytes = { value = 128, assumed", "beat_bytes = { value = 32, source");
        let text = text.replace("latency_ns = { value = 120, assumed", "latency_ns = { unknown");
        let draft = Draft::parse("card.toml", &text).unwrap();
        let table = Table::parse("card.csv", &format!("{HEADER}\n{figures}\n")).unwrap();
        let (_, reopened) = reopen(&FitData::of_table(&table, &draft).unwrap(), &draft, kept);
        reopened.into_iter().map(|(key, assumed, _)| (key, assumed)).collect()
    }

    #[test]
    fn an_assumed_flag_is_reopened_by_figures_that_depend_on_it() {
        for assumed in [true, false] {
            let entry = format!("{{ value = {assumed}, assumed = \"as most\" }}");
            assert_eq!(reopened(&entry, MIXED, &[]), [("dma.full_duplex", f64::from(u8::from(assumed)))]);
            assert_eq!(reopened(&entry, "dma_read_bandwidth,4096,6 GB/s", &[]), []);
            assert_eq!(reopened(&entry, MIXED, &["dma.full_duplex".to_owned()]), []);
        }
    }

    #[test]
    fn a_flag_with_a_source_a_fitted_one_and_an_unknown_one_are_not_reopened() {
        for entry in [
            "{ value = true, source = \"a manual\" }",
            "{ value = true, fitted_to = [\"other.csv\"] }",
            "{ unknown = \"figures of both directions\" }",
        ] {
            assert_eq!(reopened(entry, MIXED, &[]), [], "{entry}");
        }
    }
}
