//! Suggestions for a mistyped name: "did you mean `link.mps_bytes`?".

/// At most as many names are suggested.
const MOST: usize = 4;

/// Similarity (Jaro-Winkler, 0 to 1) from which a name is suggested; `mps` and `tags` score 0.5, `dma_raed` and `dma_read` 0.97.
const SIMILAR: f64 = 0.86;

/// The names of `known` that `typed` may have meant, likeliest first, at most four.
///
/// Names that begin or end with `typed` at a word boundary come first, in their given order; then similar ones by Jaro-Winkler similarity.
///
/// ```
/// use lanemark_units::closest;
/// let keys = ["link.mps_bytes", "link.mrrs_bytes", "dma.tags"];
/// assert_eq!(closest("link.mps", keys), ["link.mps_bytes"]);
/// assert_eq!(closest("dma.tgas", keys), ["dma.tags"]);
/// assert_eq!(closest("colour", keys), [""; 0]);
/// ```
#[must_use]
pub fn closest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let typed = typed.trim().to_ascii_lowercase().replace('-', "_");
    let is_boundary = |c: char| !c.is_ascii_alphanumeric();
    let continues = |name: &str| {
        let after = name.strip_prefix(&typed).is_some_and(|rest| rest.starts_with(is_boundary));
        let before = name.strip_suffix(&typed).is_some_and(|rest| rest.ends_with(is_boundary));
        typed.len() >= 2 && (after || before)
    };
    let (mut found, others): (Vec<&str>, Vec<&str>) = known.into_iter().partition(|name| continues(name));
    if found.is_empty() {
        let mut similar: Vec<(f64, &str)> =
            others.into_iter().map(|name| (strsim::jaro_winkler(&typed, name), name)).collect();
        similar.retain(|(score, _)| *score >= SIMILAR);
        similar.sort_by(|one, other| other.0.total_cmp(&one.0));
        found.extend(similar.into_iter().map(|(_, name)| name));
    }
    found.truncate(MOST);
    found
}

/// A question that names what `typed` may have meant, such as `did you mean dma.tags?`; `None` where nothing is close.
///
/// ```
/// use lanemark_units::did_you_mean;
/// let hint = did_you_mean("dma_read", ["dma_read_latency", "dma_read_bandwidth", "fence_cost"]);
/// assert_eq!(hint.as_deref(), Some("did you mean dma_read_latency or dma_read_bandwidth?"));
/// assert_eq!(did_you_mean("colour", ["fence_cost"]), None);
/// ```
#[must_use]
pub fn did_you_mean<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let found = closest(typed, known);
    let (last, others) = found.split_last()?;
    Some(if others.is_empty() {
        format!("did you mean {last}?")
    } else {
        format!("did you mean {} or {last}?", others.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_at_a_word_boundary_suggests_every_name_that_continues_it() {
        let questions =
            ["dma_read_latency", "dma_read_bandwidth", "dma_read_write_mix", "dma_reader", "mmio_read_latency"];
        assert_eq!(closest("dma_read", questions), ["dma_read_latency", "dma_read_bandwidth", "dma_read_write_mix"]);
        assert_eq!(closest("DMA-Read", questions).len(), 3);
    }

    #[test]
    fn at_most_four_names_are_suggested() {
        assert_eq!(closest("a", ["a_1"; 9]), [""; 0], "one letter says too little");
        assert_eq!(closest("ab", ["ab_1"; 9]).len(), MOST);
    }

    #[test]
    fn swapped_letters_are_recognised_and_other_words_are_not() {
        assert_eq!(closest("fence_csot", ["fence_cost", "timer_cost"]), ["fence_cost"]);
        assert_eq!(closest("bandwidth", ["fence_cost"]), [""; 0]);
        assert_eq!(closest("", ["fence_cost"]), [""; 0]);
    }
}
