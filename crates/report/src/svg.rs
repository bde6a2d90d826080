//! Common parts of the drawings in a page: title, description, labels, and escaping.

use std::fmt::Write as _;

/// Escapes `text` for an element or an attribute.
pub(crate) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in crate::grid::clean(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

/// The beginning of a drawing, up to its first element. `id` names its title and description; it
/// has letters, digits and `-` only.
pub(crate) fn begin(class: &str, id: &str, (width, height): (f64, f64), title: &str, desc: &str) -> String {
    format!(
        "<svg class=\"{class}\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" \
         role=\"img\" aria-labelledby=\"{id}-title {id}-desc\">\
         <title id=\"{id}-title\">{}</title><desc id=\"{id}-desc\">{}</desc>",
        escaped(title),
        escaped(desc)
    )
}

/// Adds a label; `anchor` is `start`, `middle` or `end`.
pub(crate) fn words(svg: &mut String, (x, y): (f64, f64), anchor: &str, words: &str) {
    let _ = write!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", escaped(words));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_never_becomes_markup() {
        assert_eq!(escaped("<a b=\"c\" d='e'>&\n"), "&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp; ");
    }
}
