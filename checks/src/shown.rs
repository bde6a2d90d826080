//! Comparison of the output shown in a page with the output of the command.

/// The first line of `shown` that is absent from `output` after the previous one.
///
/// A run of blanks counts as one. In paragraphs that contain `varies`, any figure matches.
#[must_use]
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

fn plain(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The line with every number, including its sign, replaced by `#`.
fn without_figures(line: &str) -> String {
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

/// Whether `said` matches `line`, where `...` in `line` matches anything.
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

/// `shown` with the figures of `output` in lines that differ only in figures.
#[must_use]
pub fn renewed(shown: &[String], output: &str) -> Vec<String> {
    // The length of a rule is that of its table, which follows from figures.
    let is_rule = |line: &str| !line.is_empty() && line.chars().all(|c| c == '─');
    let shape = |line: &str| if is_rule(line) { "─".to_owned() } else { without_figures(&plain(line)) };
    let first_word = |line: &str| line.split_whitespace().next().map(str::to_owned);
    let mut at = 0;
    let lines: Vec<&str> = output.lines().collect();
    shown
        .iter()
        .map(|line| {
            let alike =
                |said: &&str| shape(said) == shape(line) && (is_rule(line) || first_word(said) == first_word(line));
            let found = lines[at..].iter().position(alike);
            match found {
                Some(place) if !line.trim().is_empty() => {
                    at += place + 1;
                    lines[at - 1].to_owned()
                }
                _ => line.clone(),
            }
        })
        .collect()
}

#[test]
fn shown_output_is_compared() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let output = "way   64 B\nUC 4  27.0 MB/s\nWC 4  1.2 GB/s\ndone";
    let missing_line = |shown: &str, varies| missing(&lines(shown), output, varies).map(str::to_owned);
    let refused = |line: &str| Some(line.to_owned());
    assert_eq!(missing_line("way  64 B\n...\nWC ... GB/s", None), None);
    assert_eq!(missing_line("WC 4 1.2 GB/s\nway 64 B", None), refused("way 64 B"), "order matters");
    assert_eq!(missing_line("UC 4 28.0 MB/s", None), refused("UC 4 28.0 MB/s"));
    assert_eq!(missing_line("UC 4", None), refused("UC 4"), "whole lines are compared");
    assert_eq!(missing_line("UC ... GB/s", None), refused("UC ... GB/s"));
    assert_eq!(missing_line("way 64 B\nUC 4 128 MB/s", Some("way")), None, "figures may differ");
    assert_eq!(missing_line("way 64 B\nUC 4 128 GB/s", Some("way")), refused("UC 4 128 GB/s"), "units may not differ");
    let old = lines("way  64 B\n...\nUC 4 2 MB/s\nWC 4 1.1 MB/s");
    assert_eq!(renewed(&old, output), lines("way   64 B\n...\nUC 4  27.0 MB/s\nWC 4 1.1 MB/s"));
    assert_eq!(
        renewed(&lines("way\n────\nUC 4 9 GB/s"), "way\n──────\nUC 4 10 GB/s"),
        lines("way\n──────\nUC 4 10 GB/s")
    );
    assert_eq!(missing_line("way 64 B\n\nUC 4 128 MB/s", Some("way")), refused("UC 4 128 MB/s"), "to the blank line");
}
