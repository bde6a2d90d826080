//! Published figures as text.

/// Formats `value` with four significant digits, without trailing zeros: a published `64` stays
/// `64`.
pub(crate) fn exact(value: f64) -> String {
    let scale = if value == 0.0 || !value.is_finite() { 0 } else { 3 - value.abs().log10().floor() as i64 };
    let decimals = scale.clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_figures_keep_their_digits() {
        for (value, text) in
            [(64.0, "64"), (0.5, "0.5"), (441.26, "441.3"), (0.0, "0"), (12345.6, "12346"), (1e-3, "0.001")]
        {
            assert_eq!(exact(value), text);
        }
    }
}
