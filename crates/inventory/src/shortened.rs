//! External text in messages.

/// External text for a message: truncated, with control characters replaced.
pub(crate) fn shortened(text: &str) -> String {
    const MOST: usize = 60;
    let mut short: String = text.chars().take(MOST).map(|c| if c.is_control() { '?' } else { c }).collect();
    if text.chars().nth(MOST).is_some() {
        short.push_str("...");
    }
    short
}
