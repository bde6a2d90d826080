//! Columns of a table: text with each word stored once, or numbers.

use std::collections::HashMap;

/// A column of a [`Table`](super::Table).
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Name, which ends in the unit.
    pub name: String,
    /// Its values.
    pub values: Values,
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
pub enum Values {
    /// Texts, each distinct one stored once.
    Text {
        /// The distinct texts.
        words: Vec<String>,
        /// For each row its place in `words`, from 1; 0 for an absent value.
        cells: Vec<u32>,
    },
    /// Whole numbers; those above 2^63 - 1 are stored as that.
    Whole(Vec<Option<i64>>),
    /// Numbers.
    Number(Vec<Option<f64>>),
}

impl Column {
    /// The value in a row; absent beyond the last row.
    #[must_use]
    pub fn cell(&self, row: usize) -> Cell<'_> {
        match &self.values {
            Values::Text { words, cells } => {
                let word =
                    cells.get(row).and_then(|word| word.checked_sub(1)).and_then(|word| words.get(word as usize));
                word.map_or(Cell::Absent, |word| Cell::Text(word))
            }
            Values::Whole(cells) => cells.get(row).copied().flatten().map_or(Cell::Absent, Cell::Whole),
            Values::Number(cells) => cells.get(row).copied().flatten().map_or(Cell::Absent, Cell::Number),
        }
    }

    /// Number of its rows.
    pub(crate) fn len(&self) -> usize {
        match &self.values {
            Values::Text { cells, .. } => cells.len(),
            Values::Whole(cells) => cells.len(),
            Values::Number(cells) => cells.len(),
        }
    }

    /// Whether no row has a value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        match &self.values {
            Values::Text { words, .. } => words.is_empty(),
            Values::Whole(cells) => cells.iter().all(Option::is_none),
            Values::Number(cells) => cells.iter().all(Option::is_none),
        }
    }

    /// The column with its rows in this order, and its words in the order of the rows.
    pub(crate) fn reordered(&self, order: &[u32]) -> Column {
        fn pick<T: Copy>(cells: &[T], order: &[u32]) -> Vec<T> {
            order.iter().map(|row| cells[*row as usize]).collect()
        }
        let values = match &self.values {
            Values::Text { words, cells } => {
                let mut sorted = Words::default();
                for (row, from) in order.iter().enumerate() {
                    let word = cells[*from as usize].checked_sub(1).and_then(|word| words.get(word as usize));
                    if let Some(word) = word {
                        sorted.set(row, word);
                    }
                }
                return sorted.text(self.name.clone(), order.len());
            }
            Values::Whole(cells) => Values::Whole(pick(cells, order)),
            Values::Number(cells) => Values::Number(pick(cells, order)),
        };
        Column { name: self.name.clone(), values }
    }

    /// Position of each row in the order of this column: numbers ascending, or words in the order of their bytes;
    /// absent values first.
    pub(crate) fn ranks(&self) -> Vec<u64> {
        match &self.values {
            Values::Text { words, cells } => {
                let mut sorted: Vec<usize> = (0..words.len()).collect();
                sorted.sort_by(|one, other| words[*one].cmp(&words[*other]));
                let mut rank = vec![0; words.len() + 1];
                sorted.iter().enumerate().for_each(|(place, word)| rank[word + 1] = place as u64 + 1);
                cells.iter().map(|word| rank[*word as usize]).collect()
            }
            // The order of signed numbers as unsigned ones.
            Values::Whole(cells) => cells.iter().map(|cell| cell.map_or(0, |whole| ordered(whole as f64))).collect(),
            Values::Number(cells) => cells.iter().map(|cell| cell.map_or(0, ordered)).collect(),
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
pub(crate) struct Words {
    index: HashMap<String, u32>,
    distinct: Vec<String>,
    cells: Vec<u32>,
}

impl Words {
    /// Sets the value of row number `row`; skipped rows have none.
    pub(crate) fn set(&mut self, row: usize, text: &str) {
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
    pub(crate) fn text(mut self, name: String, rows: usize) -> Column {
        self.cells.resize(rows, 0);
        Column { name, values: Values::Text { words: self.distinct, cells: self.cells } }
    }

    /// The column of `rows` rows; of numbers, if all its words are numbers.
    pub(crate) fn numeric(self, name: String, rows: usize) -> Column {
        fn pick<T: Copy>(cells: &[u32], words: &[T]) -> Vec<Option<T>> {
            cells.iter().map(|word| word.checked_sub(1).map(|word| words[word as usize])).collect()
        }
        let column = self.text(name, rows);
        let Values::Text { words, cells } = &column.values else { return column };
        let whole: Option<Vec<i64>> = words.iter().map(|word| word.parse().ok()).collect();
        if let Some(whole) = whole {
            return Column { values: Values::Whole(pick(cells, &whole)), ..column };
        }
        let number = |word: &String| word.parse().ok().filter(|number: &f64| number.is_finite());
        let numbers: Option<Vec<f64>> = words.iter().map(number).collect();
        match numbers {
            Some(numbers) => Column { values: Values::Number(pick(cells, &numbers)), ..column },
            None => column,
        }
    }
}
