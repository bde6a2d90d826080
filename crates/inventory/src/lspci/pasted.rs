//! Removes what mail and forums add to a listing: quote marks, fences of code blocks, indentation.
//!
//! The first heading of a function shows the additions; they are removed from every line that has them.

use super::heading;

/// Marks around a block of code, in Markdown, on bulletin boards and in HTML.
const FENCES: [&str; 6] = ["```", "~~~", "[code]", "[/code]", "<pre>", "</pre>"];

/// The additions of a text.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub(super) struct Pasted<'a> {
    /// Number of quote marks before each line.
    quotes: usize,
    /// Blanks before each line, behind the quote marks.
    indentation: &'a str,
}

impl<'a> Pasted<'a> {
    /// The additions before the first heading of `text` that has a class; none without such a heading.
    pub(super) fn of(text: &'a str) -> Pasted<'a> {
        text.lines().find_map(of_line).unwrap_or_default()
    }

    /// The line without the additions; `None` for a fence.
    pub(super) fn strip(self, line: &'a str) -> Option<&'a str> {
        let mut line = line;
        for _ in 0..self.quotes {
            let Some(rest) = line.strip_prefix('>') else { break };
            line = rest.strip_prefix(' ').unwrap_or(rest);
        }
        line = line.strip_prefix(self.indentation).unwrap_or(line);
        match fence(line) {
            Some(rest) if heading::has_class(rest) => Some(rest),
            Some(_) => None,
            None => Some(line),
        }
    }
}

fn of_line(line: &str) -> Option<Pasted<'_>> {
    let (mut rest, mut quotes) = (line, 0);
    while let Some(quoted) = rest.strip_prefix('>') {
        rest = quoted.strip_prefix(' ').unwrap_or(quoted);
        quotes += 1;
    }
    let text = rest.trim_start();
    let indentation = &rest[..rest.len() - text.len()];
    heading::has_class(fence(text).unwrap_or(text)).then_some(Pasted { quotes, indentation })
}

/// The text behind a fence.
fn fence(line: &str) -> Option<&str> {
    FENCES.iter().find_map(|fence| {
        let (mark, rest) = line.split_at_checked(fence.len())?;
        mark.eq_ignore_ascii_case(fence).then_some(rest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADING: &str = "01:00.0 VGA compatible controller: Some Card (rev a1)";

    fn stripped(text: &str) -> Vec<&str> {
        let pasted = Pasted::of(text);
        text.lines().filter_map(|line| pasted.strip(line)).collect()
    }

    #[test]
    fn quote_marks_are_removed_up_to_those_of_the_heading() {
        for (mark, detail) in [("> ", "> \t"), (">", ">\t"), ("> > ", "> > \t"), (">>", ">>\t")] {
            let text = format!("{mark}{HEADING}\n{detail}Status: Cap+ >TAbort-\nwhat is this?");
            assert_eq!(stripped(&text), [HEADING, "\tStatus: Cap+ >TAbort-", "what is this?"]);
        }
        // A line that a mail program wrapped is no quotation.
        let wrapped = format!("{HEADING}\n\tStatus: Cap+\n>SERR- <PERR-");
        assert_eq!(stripped(&wrapped)[2], ">SERR- <PERR-");
        assert_eq!(Pasted::of("> no heading\n> 01:00.0 Teapot"), Pasted::default());
    }

    #[test]
    fn fences_are_removed_with_and_without_a_heading_behind_them() {
        for (first, last) in [("```text\n", "```"), ("[CODE]", "[/CODE]"), ("<pre>\n", "</pre>"), ("~~~\n", "~~~")] {
            assert_eq!(stripped(&format!("{first}{HEADING}\n\tFlags: fast\n{last}")), [HEADING, "\tFlags: fast"]);
        }
    }

    #[test]
    fn the_indentation_of_the_heading_is_removed_from_every_line() {
        let text = format!("    {HEADING}\n    \tFlags: fast\n        Memory at 0\n");
        assert_eq!(stripped(&text), [HEADING, "\tFlags: fast", "    Memory at 0"]);
    }
}
