//! Whether a command said what its page shows.

/// The first line of `shown` that `output` does not have behind the one before; blanks count as one, and
/// in paragraphs that say `varies` one figure is as good as another.
pub fn missing<'a>(shown: &'a [String], output: &str, varies: Option<&str>) -> Option<&'a str> {
    let mut output = output.lines().map(plain);
    let mut any_figures = false;
    shown.iter().map(String::as_str).find(|line| {
        let line = plain(line);
        any_figures = !line.is_empty() && (any_figures || varies.is_some_and(|word| line.contains(word)));
        let is_shown = |said: String| {
            if any_figures { is_like(&without_figures(&said), &without_figures(&line)) } else { is_like(&said, &line) }
        };
        !(line.is_empty() || line == "..." || output.any(is_shown))
    })
}

/// A line with single blanks.
pub fn plain(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Every run of digits and points with its sign as one `#`.
pub fn without_figures(line: &str) -> String {
    let mut out = String::new();
    for c in line.chars() {
        match c {
            '0'..='9' | '.' if out.ends_with('#') => {}
            '0'..='9' => {
                out.truncate(out.trim_end_matches(['+', '-']).len());
                out.push('#');
            }
            c => out.push(c),
        }
    }
    out
}

/// Whether `said` is `line`, where `...` in `line` stands for anything.
fn is_like(said: &str, line: &str) -> bool {
    let mut parts = line.split("...").map(str::trim);
    let Some(mut rest) = parts.next().and_then(|first| said.strip_prefix(first)) else { return false };
    let mut last = None;
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
        last = Some(part);
    }
    rest.is_empty() || last == Some("") || last.is_some_and(|last| rest.ends_with(last))
}
