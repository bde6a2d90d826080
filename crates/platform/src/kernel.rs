//! Checks of `[kernel]`.

use crate::Platform;
use crate::notes::Notes;

/// A burst is not longer than the words that a unit may have outstanding; otherwise the unit would deadlock.
pub(crate) fn check_kernel(platform: &Platform, notes: &mut Notes<'_>) {
    let Some(kernel) = &platform.kernel else { return };
    let (burst, words) = (kernel.burst_words.value, kernel.unit_words.value);
    if burst > words {
        let message =
            format!("is {burst}; must be at most kernel.unit_words, {words}, because a unit requests whole bursts");
        notes.at_line(kernel.burst_words.line, "kernel.burst_words".to_owned(), message);
    }
}

#[cfg(test)]
mod tests {
    use crate::{Platform, preset};

    /// Result of reading a card with these kernels.
    fn problem(kernel: &str) -> String {
        let card = include_str!("../../../platforms/card-gen5-x16.toml");
        let number = |key: &str, value: &str| format!("{key} = {{ value = {value}, source = \"a test\" }}\n");
        let text = format!("{card}\n[kernel]\n{}{kernel}", number("clock_ghz", "0.3"));
        Platform::parse("kernels.toml", &text).map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn a_burst_longer_than_unit_words_is_rejected() {
        let words = |burst: u32| {
            problem(&format!(
                "unit_words = {{ value = 8, source = \"a test\" }}\nburst_words = {{ value = {burst}, source = \"a test\" }}\n"
            ))
        };
        assert_eq!(words(8), "");
        assert!(words(9).contains("kernel.burst_words: is 9; must be at most kernel.unit_words, 8"), "{}", words(9));
    }

    #[test]
    fn a_platform_without_the_section_has_no_kernels() {
        assert_eq!(preset("aws-f1").unwrap().unwrap().kernel, None);
    }
}
