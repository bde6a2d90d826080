//! Columns of a table: text with each word stored once, or numbers.

use std::collections::HashMap;

/// A column of a [`SweepTable`](super::SweepTable).
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name, which ends in the unit.
    pub name: String,
    pub(super) data: Data,
}

/// A value of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// No value.
    Absent,
    /// A text.
    Text(&'a str),
    /// A whole number.
    Whole(i64),
    /// A number.
    Number(f64),
}

impl Cell<'_> {
    /// The cell as a number, if it is one.
    #[must_use]
    pub const fn number(self) -> Option<f64> {
        match self {
            Cell::Whole(whole) => Some(whole as f64),
            Cell::Number(number) => Some(number),
            Cell::Absent | Cell::Text(_) => None,
        }
    }
}

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Data {
    /// Index of a word, from 1; 0 for an absent value.
    Text {
        words: Vec<String>,
        cells: Vec<u32>,
    },
    Whole(Vec<Option<i64>>),
    Number(Vec<Option<f64>>),
}

impl Column {
    /// The value in a row; absent beyond the last row.
    #[must_use]
    pub fn cell(&self, row: usize) -> Cell<'_> {
        match &self.data {
            Data::Text { words, cells } => {
                let word =
                    cells.get(row).and_then(|word| word.checked_sub(1)).and_then(|word| words.get(word as usize));
                word.map_or(Cell::Absent, |word| Cell::Text(word))
            }
            Data::Whole(cells) => cells.get(row).copied().flatten().map_or(Cell::Absent, Cell::Whole),
            Data::Number(cells) => cells.get(row).copied().flatten().map_or(Cell::Absent, Cell::Number),
        }
    }

    /// Whether no row has a value.
    pub(super) fn is_empty(&self) -> bool {
        match &self.data {
            Data::Text { words, .. } => words.is_empty(),
            Data::Whole(cells) => cells.iter().all(Option::is_none),
            Data::Number(cells) => cells.iter().all(Option::is_none),
        }
    }

    /// The column with its rows in this order, and its words in the order of the rows.
    pub(super) fn reordered(&self, order: &[u32]) -> Column {
        fn pick<T: Copy>(cells: &[T], order: &[u32]) -> Vec<T> {
            order.iter().map(|row| cells[*row as usize]).collect()
        }
        let data = match &self.data {
            Data::Text { words, cells } => {
                let mut sorted = Words::default();
                for (row, from) in order.iter().enumerate() {
                    let word = cells[*from as usize].checked_sub(1).and_then(|word| words.get(word as usize));
                    if let Some(word) = word {
                        sorted.set(row, word);
                    }
                }
                return sorted.text(self.name.clone(), order.len());
            }
            Data::Whole(cells) => Data::Whole(pick(cells, order)),
            Data::Number(cells) => Data::Number(pick(cells, order)),
        };
        Column { name: self.name.clone(), data }
    }

    /// Position of each row in the order of this column: numbers ascending, or words in the order of their bytes;
    /// absent values first.
    pub(super) fn ranks(&self) -> Vec<u64> {
        match &self.data {
            Data::Text { words, cells } => {
                let mut sorted: Vec<usize> = (0..words.len()).collect();
                sorted.sort_by(|one, other| words[*one].cmp(&words[*other]));
                let mut rank = vec![0; words.len() + 1];
                sorted.iter().enumerate().for_each(|(place, word)| rank[word + 1] = place as u64 + 1);
                cells.iter().map(|word| rank[*word as usize]).collect()
            }
            // The order of signed numbers as unsigned ones.
            Data::Whole(cells) => cells.iter().map(|cell| cell.map_or(0, |whole| ordered(whole as f64))).collect(),
            Data::Number(cells) => cells.iter().map(|cell| cell.map_or(0, ordered)).collect(),
        }
    }
}

/// Bits that compare as the numbers do.
fn ordered(number: f64) -> u64 {
    let bits = number.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
}

/// A text column that is being filled.
#[derive(Clone, Debug, Default)]
pub(super) struct Words {
    index: HashMap<String, u32>,
    distinct: Vec<String>,
    cells: Vec<u32>,
}

impl Words {
    /// Sets the value of row number `row`; skipped rows have none.
    pub(super) fn set(&mut self, row: usize, text: &str) {
        self.cells.resize(row, 0);
        let next = self.distinct.len() as u32 + 1;
        let word = if let Some(word) = self.index.get(text) {
            *word
        } else {
            self.distinct.push(text.to_owned());
            self.index.insert(text.to_owned(), next);
            next
        };
        self.cells.push(word);
    }

    /// The column of `rows` rows.
    pub(super) fn text(mut self, name: String, rows: usize) -> Column {
        self.cells.resize(rows, 0);
        Column { name, data: Data::Text { words: self.distinct, cells: self.cells } }
    }

    /// The column of `rows` rows; of numbers, if all its words are numbers.
    pub(super) fn numeric(self, name: String, rows: usize) -> Column {
        fn pick<T: Copy>(cells: &[u32], words: &[T]) -> Vec<Option<T>> {
            cells.iter().map(|word| word.checked_sub(1).map(|word| words[word as usize])).collect()
        }
        let column = self.text(name, rows);
        let Data::Text { words, cells } = &column.data else { return column };
        let whole: Option<Vec<i64>> = words.iter().map(|word| word.parse().ok()).collect();
        if let Some(whole) = whole {
            return Column { data: Data::Whole(pick(cells, &whole)), ..column };
        }
        let number = |word: &String| word.parse().ok().filter(|number: &f64| number.is_finite());
        let numbers: Option<Vec<f64>> = words.iter().map(number).collect();
        match numbers {
            Some(numbers) => Column { data: Data::Number(pick(cells, &numbers)), ..column },
            None => column,
        }
    }
}
