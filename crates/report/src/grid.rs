//! A text grid with a header line: measured, fitted to a width, and printed.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

/// Rows below a header, without a frame.
#[derive(Default)]
pub(crate) struct Grid {
    /// The columns.
    pub columns: Vec<Column>,
    /// Rows with one cell per column.
    pub rows: Vec<Vec<String>>,
}

/// Heading and alignment of a column.
#[derive(Clone)]
pub(crate) struct Column {
    /// Heading.
    pub head: String,
    /// Whether the cells are figures, which are right-aligned.
    pub is_figure: bool,
}

impl Column {
    /// A left-aligned column of words.
    pub fn words(head: &str) -> Column {
        Column { head: head.to_owned(), is_figure: false }
    }

    /// A right-aligned column of figures.
    pub fn figures(head: impl Into<String>) -> Column {
        Column { head: head.into(), is_figure: true }
    }
}

impl Grid {
    /// Removes every column whose cells are all empty.
    pub fn drop_empty_columns(&mut self) {
        for place in (0..self.columns.len()).rev() {
            if self.rows.iter().all(|row| row[place].is_empty()) {
                self.remove(place);
            }
        }
    }

    /// Removes the column headed `head`, if there is one.
    pub fn drop_column(&mut self, head: &str) {
        if let Some(place) = self.columns.iter().position(|column| column.head == head) {
            self.remove(place);
        }
    }

    fn remove(&mut self, place: usize) {
        self.columns.remove(place);
        for row in &mut self.rows {
            row.remove(place);
        }
    }

    /// The lines: the header, a rule, and one per row. Cells wrap only if `width` is too small for
    /// them.
    pub fn lines(&self, width: Option<u16>) -> Vec<String> {
        let mut table = Table::new();
        table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')));
        table.set_header(self.columns.iter().map(|column| clean(&column.head)).collect::<Vec<_>>());
        for row in &self.rows {
            table.add_row(row.iter().map(|cell| clean(cell)).collect::<Vec<_>>());
        }
        if let Some(width) = width {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        let last = self.columns.len().saturating_sub(1);
        for (place, (column, look)) in table.column_iter_mut().zip(&self.columns).enumerate() {
            // The library adds one more space between columns.
            column.set_padding((0, u16::from(place != last)));
            if look.is_figure {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.trim_fmt().lines().map(str::to_owned).collect()
    }

    /// Width of the longest line without wrapping, in characters.
    pub fn natural_width(&self) -> usize {
        self.lines(None).iter().map(|line| line.chars().count()).max().unwrap_or(0)
    }

    /// Whether the grid fits into `width` without wrapping.
    pub fn fits(&self, width: Option<u16>) -> bool {
        width.is_none_or(|width| self.natural_width() <= usize::from(width))
    }
}

/// `text` on one line without control characters: a record may be untrusted, and a terminal
/// executes escape sequences.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_whitespace() { ' ' } else { c }).filter(|c| !c.is_control()).collect()
}

/// Cleans `text` and breaks it at spaces into lines of at most `width` characters. Continuation
/// lines are indented by `indent` spaces. Long words stay whole, and a number stays with its unit.
pub(crate) fn wrap(text: &str, width: Option<u16>, indent: usize) -> String {
    let text = clean(text);
    let Some(width) = width.map(usize::from) else { return text };
    let lead = text.chars().take_while(|c| *c == ' ').count();
    let mut lines = vec![" ".repeat(lead)];
    for word in words(&text) {
        let line = lines.last_mut().map_or(0, |line| line.chars().count());
        let is_bare = lines.last().is_some_and(|line| line.trim().is_empty());
        if !is_bare && line + 1 + word.chars().count() > width {
            lines.push(" ".repeat(indent) + &word);
        } else if let Some(line) = lines.last_mut() {
            if !is_bare {
                line.push(' ');
            }
            line.push_str(&word);
        }
    }
    lines.join("\n")
}

/// Splits `text` into words; a unit stays with the number before it.
fn words(text: &str) -> Vec<String> {
    const UNITS: [&str; 12] = ["%", "B", "KiB", "MiB", "GiB", "GB/s", "MB/s", "kB/s", "B/s", "ns", "us", "ms"];
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_unit = UNITS.contains(&word.trim_end_matches([',', ';', ':', '.', ')']));
        match words.last_mut().filter(|last| is_unit && last.ends_with(|c: char| c.is_ascii_digit())) {
            Some(number) => *number += &format!(" {word}"),
            None => words.push(word.to_owned()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_right_aligned_and_words_left_aligned() {
        let grid = Grid {
            columns: vec![Column::words("method"), Column::figures("64 B")],
            rows: vec![vec!["UC 4".into(), "0.0419".into()], vec!["WC movdir64b".into(), "8".into()]],
        };
        let expected = ["method          64 B", "────────────────────", "UC 4          0.0419", "WC movdir64b       8"];
        assert_eq!(grid.lines(None), expected);
        assert!(grid.fits(Some(20)) && !grid.fits(Some(19)));
    }

    #[test]
    fn empty_columns_are_left_out() {
        let mut grid = Grid {
            columns: vec![Column::words("a"), Column::words("b"), Column::words("c")],
            rows: vec![vec!["1".into(), String::new(), "3".into()]],
        };
        grid.drop_empty_columns();
        assert_eq!(grid.rows, [["1", "3"]]);
        assert_eq!(grid.columns.len(), 2);
    }

    #[test]
    fn lines_break_at_spaces_and_long_words_stay_whole() {
        assert_eq!(wrap("  one two three", Some(9), 4), "  one two\n    three");
        assert_eq!(wrap("one unbreakable", Some(5), 2), "one\n  unbreakable");
        assert_eq!(wrap("one two", None, 2), "one two");
        assert_eq!(wrap("", Some(5), 2), "");
        assert_eq!(wrap("within 5 %, said", Some(9), 1), "within\n 5 %,\n said");
    }

    #[test]
    fn untrusted_text_cannot_move_the_cursor() {
        assert_eq!(clean("a\x1b[2Jb\nc\u{9b}d"), "a[2Jb cd");
    }
}
