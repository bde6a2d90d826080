//! Flags of structure that a platform file only assumes: the figures choose them again.

use crate::calibrate::started;
use crate::mechanism::flags;
use crate::{FitData, Parameter};
use lanemark_platform::Draft;

/// A flag of structure that the file assumes, and on which some figures depend, so that the search chose it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reopened {
    /// Path of its key.
    pub key: String,
    /// The value that the file assumes.
    pub assumed: bool,
    /// The value of the chosen structure.
    pub chosen: bool,
    /// Whether a structure with the other value was fitted and compared; otherwise its short fit promised nothing.
    pub is_compared: bool,
}

/// The fit in which a search may also change the flags that `draft` assumes, except those in `kept`; and these flags, each
/// with its assumed value. A flag without effect on any figure, at the middle, at the ends and at places inside of the
/// search ranges, stays closed.
pub(crate) fn reopen(problem: &FitData, draft: &Draft, kept: &[String]) -> (FitData, Vec<(&'static str, bool)>) {
    let mut reopened = Vec::new();
    let mut next = problem.clone();
    for key in flags().into_iter().filter(|key| kept.iter().all(|kept| kept != key)) {
        let assumed = match draft.assumption(key).as_ref().map(|(value, _)| value.as_str()) {
            Some("true") => true,
            Some("false") => false,
            _ => continue,
        };
        let open = problem.with_open(key, f64::from(u8::from(assumed)));
        if open.with_value(key, f64::from(u8::from(!assumed))).is_ok_and(|other| differ(&open, &other)) {
            next = next.with_open(key, f64::from(u8::from(assumed)));
            reopened.push((key, assumed));
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
    fn reopened(full_duplex: &str, figures: &str, kept: &[String]) -> Vec<(&'static str, bool)> {
        let text = include_str!("../../../platforms/card-gen5-x16.toml");
        let text = text.replace("[dma]\n", &format!("[dma]\nfull_duplex = {full_duplex}\n"));
        // An engine that is slower than the link.
        let text = text.replace("beat_bytes = { value = 128,", "beat_bytes = { value = 32,");
        let text = text.replace("latency_ns = { value = 120, assumed", "latency_ns = { unknown");
        let draft = Draft::parse("card.toml", &text).unwrap();
        let table = Table::parse("card.csv", &format!("{HEADER}\n{figures}\n")).unwrap();
        reopen(&FitData::of_table(&table, &draft).unwrap(), &draft, kept).1
    }

    #[test]
    fn an_assumed_flag_is_reopened_by_figures_that_depend_on_it() {
        for assumed in [true, false] {
            let entry = format!("{{ value = {assumed}, assumed = \"as most\" }}");
            assert_eq!(reopened(&entry, MIXED, &[]), [("dma.full_duplex", assumed)]);
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
