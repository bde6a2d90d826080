//! Errors of a function, as counters or status bits, and those since an earlier inventory.

use super::case::Case;
use lanemark_inventory::{Aer, ErrorCount, Function, Seen};
use lanemark_wire::config::Errors;
use std::collections::BTreeMap;

/// Counters above 0, without the totals.
fn kinds(counts: &[ErrorCount]) -> impl Iterator<Item = &ErrorCount> {
    counts.iter().filter(|count| count.count > 0 && !count.name.starts_with("TOTAL"))
}

pub(super) fn in_words(counts: &[ErrorCount]) -> String {
    kinds(counts).map(|count| format!("{} {}", count.count, count.name)).collect::<Vec<_>>().join(", ")
}

pub(super) fn sum(counts: &[ErrorCount]) -> u64 {
    kinds(counts).fold(0, |sum, count| sum.saturating_add(count.count))
}

/// Error information of a function in the earlier inventory.
pub(super) fn before<'a>(case: &Case<'a>, function: &Function) -> Option<&'a Aer> {
    case.earlier?.function(function.address)?.aer.present()
}

/// Counts since the earlier inventory, by kind. If any counter decreased, all were reset, and all counts are new.
pub(super) fn since(now: &[ErrorCount], before: &[ErrorCount]) -> Vec<ErrorCount> {
    let before: BTreeMap<&str, u64> = before.iter().map(|count| (count.name.as_str(), count.count)).collect();
    let of = |count: &ErrorCount| before.get(count.name.as_str()).copied().unwrap_or(0);
    let began_again = now.iter().any(|count| count.count < of(count));
    let grown = |count: &ErrorCount| ErrorCount {
        name: count.name.clone(),
        count: if began_again { count.count } else { count.count - of(count) },
    };
    now.iter().map(grown).collect()
}

/// Bits that were not set before; all bits without an earlier inventory.
pub(super) fn new_bits(now: &Seen<u32>, before: Option<&Seen<u32>>) -> u32 {
    now.get().unwrap_or(0) & !before.and_then(Seen::get).unwrap_or(0)
}

/// Corrected errors of a function: counted by the kernel, or in the status register.
pub(super) struct Corrected {
    /// Names of the errors.
    pub(super) kinds: Vec<String>,
    /// Number of errors of each kind; `None` for status bits.
    pub(super) counts: Option<Vec<ErrorCount>>,
    /// Whether they occurred since the earlier inventory.
    pub(super) is_new: bool,
}

impl Corrected {
    pub(super) fn in_words(&self) -> String {
        self.counts.as_deref().map_or_else(|| self.kinds.join(", "), in_words)
    }
}

/// Corrected errors of a function; only new ones if there is an earlier inventory. `None` without errors.
pub(super) fn corrected_of(case: &Case<'_>, function: &Function) -> Option<Corrected> {
    let aer = function.aer.present()?;
    let before = before(case, function);
    let corrected = if let Some(counts) = aer.correctable.known() {
        let grown = before.and_then(|aer| aer.correctable.known()).map(|before| since(counts, before));
        let is_new = grown.is_some();
        let counts = grown.unwrap_or_else(|| counts.clone());
        let kinds = kinds(&counts).map(|count| count.name.clone()).collect();
        Corrected { kinds, counts: Some(counts), is_new }
    } else {
        let status = new_bits(&aer.correctable_status, before.map(|aer| &aer.correctable_status));
        let kinds = Errors::correctable(status & !ADVISORY_NON_FATAL).names().map(str::to_owned).collect();
        Corrected { kinds, counts: None, is_new: before.is_some() }
    };
    (!corrected.kinds.is_empty()).then_some(corrected)
}

/// Advisory Non-Fatal Error, which enumeration may set.
const ADVISORY_NON_FATAL: u32 = 1 << 13;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_compared_by_kind() {
        let count = |name: &str, count| ErrorCount { name: name.to_owned(), count };
        let rows = |counts: &[ErrorCount]| counts.iter().map(|count| count.count).collect::<Vec<_>>();
        let before = [count("RxErr", 5), count("BadTLP", 1)];
        assert_eq!(rows(&since(&[count("RxErr", 5), count("BadTLP", 4), count("New", 2)], &before)), [0, 3, 2]);
        // The sum is equal, but one counter has increased since the reset.
        assert_eq!(rows(&since(&[count("RxErr", 2), count("BadTLP", 4)], &before)), [2, 4]);
    }
}
