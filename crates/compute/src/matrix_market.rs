//! Parses sparse matrices in Matrix Market format (Boisvert, Pozo and Remington, The Matrix Market Exchange Formats,
//! NISTIR 5935), as published in matrix collections.
//!
//! Supported are `coordinate` matrices that are `real`, `integer` or `pattern`, and `general`, `symmetric` or
//! `skew-symmetric`. Memory use is proportional to the length of the text, not to the sizes it declares.

use crate::{Csr, NotCsr};
use thiserror::Error;

/// A parse error with its line.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("line {line}: {what}")]
pub struct NotMatrixMarket {
    /// Line number, counted from 1.
    pub line: usize,
    /// The error.
    pub what: Wrong,
}

/// Errors of a line.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum Wrong {
    /// Not text.
    #[error("not text in ASCII or UTF-8: unpack the file first (gunzip, tar)")]
    Text,
    /// A wrong first line.
    #[error(
        "must be '%%MatrixMarket matrix coordinate <real|integer|pattern> <general|symmetric|skew-symmetric>'; is it a Matrix Market file?"
    )]
    Banner,
    /// An unsupported kind of matrix.
    #[error(
        "'{0}' is not supported: use coordinate, real, integer or pattern, and general, symmetric or skew-symmetric"
    )]
    Kind(String),
    /// A wrong or missing size line.
    #[error("must have three whole numbers below 4294967296: rows, columns and entries; is the file complete?")]
    Sizes,
    /// A symmetric matrix that is not square.
    #[error("a symmetric matrix must be square, but this one has {rows} rows and {columns} columns")]
    Square {
        /// Number of rows.
        rows: u32,
        /// Number of columns.
        columns: u32,
    },
    /// Implausibly many rows or columns for the number of entries.
    #[error("{rows} rows or columns for {entries} entries: the maximum is {most} per entry; is the size line right?", most = MOST_EMPTY)]
    Empty {
        /// The larger of the numbers of rows and columns.
        rows: u32,
        /// Number of entries in the text.
        entries: usize,
    },
    /// A malformed entry line.
    #[error("must have {0}, separated by blanks")]
    Entry(&'static str),
    /// An entry out of range.
    #[error(
        "row {row}, column {column} is outside the matrix of {rows} rows and {columns} columns, which are counted from 1"
    )]
    Outside {
        /// Row of the entry.
        row: u32,
        /// Column of the entry.
        column: u32,
        /// Number of rows.
        rows: u32,
        /// Number of columns.
        columns: u32,
    },
    /// An entry in the triangle that a symmetric matrix omits.
    #[error("row {row}, column {column}: a symmetric matrix has its entries below the diagonal{also}", also = if *.is_skew { ", and a skew-symmetric one has none on it" } else { " or on it" })]
    Side {
        /// Row of the entry.
        row: u32,
        /// Column of the entry.
        column: u32,
        /// Whether the matrix is skew-symmetric.
        is_skew: bool,
    },
    /// Fewer entries than declared.
    #[error("the text ends after {found} of {promised} entries: the file is truncated, or the size line is wrong")]
    Fewer {
        /// Number of entries in the text.
        found: usize,
        /// Declared number of entries.
        promised: u32,
    },
    /// More entries than declared.
    #[error("more entries than the {0} declared: the size line is wrong, or two files are concatenated")]
    More(u32),
    /// More entries than 32 bits can count.
    #[error("more than 4294967295 entries")]
    TooLarge,
}

/// Maximum number of rows or columns per entry: real matrices have almost no empty ones.
const MOST_EMPTY: u64 = 1 << 10;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Real,
    Integer,
    Pattern,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Symmetry {
    General,
    Symmetric,
    Skew,
}

/// Parses a matrix. Entries of a row are sorted by column; values of a pattern are 1.
///
/// ```
/// let text = "%%MatrixMarket matrix coordinate real symmetric\n% a spring\n2 2 2\n1 1 2.5\n2 1 -1\n";
/// let matrix = lanemark_compute::matrix_market(text.as_bytes())?;
/// assert_eq!((matrix.rows(), matrix.entries()), (2, 3));
/// assert_eq!(matrix.times(&[1.0, 1.0]), [1.5, -1.0]);
/// # Ok::<(), lanemark_compute::NotMatrixMarket>(())
/// ```
///
/// # Errors
/// [`NotMatrixMarket`] for the first wrong line.
pub fn matrix_market(bytes: &[u8]) -> Result<Csr, NotMatrixMarket> {
    let wrong = |line: usize, what: Wrong| NotMatrixMarket { line, what };
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        wrong(1 + String::from_utf8_lossy(before).matches('\n').count(), Wrong::Text)
    })?;
    // Windows editors prepend a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = (1..).zip(text.lines());
    let (field, symmetry) = banner(lines.next().map_or("", |(_, line)| line)).map_err(|what| wrong(1, what))?;
    let is_content = |line: &str| !line.trim_start().starts_with('%') && !line.trim().is_empty();
    let end = text.lines().count().max(1);
    let mut lines = lines.filter(|(_, line)| is_content(line));
    let (sizes_line, sizes) = lines.next().ok_or_else(|| wrong(end, Wrong::Sizes))?;
    let [rows, columns, promised] = whole_numbers(sizes).ok_or_else(|| wrong(sizes_line, Wrong::Sizes))?;
    if symmetry != Symmetry::General && rows != columns {
        return Err(wrong(sizes_line, Wrong::Square { rows, columns }));
    }
    let mut entries: Vec<(u32, u32, f64)> = Vec::new();
    let mut found = 0_usize;
    for (line, text) in lines {
        if found == promised as usize {
            return Err(wrong(line, Wrong::More(promised)));
        }
        found += 1;
        let (row, column, value) = entry(text, field).map_err(|what| wrong(line, what))?;
        if row == 0 || column == 0 || row > rows || column > columns {
            return Err(wrong(line, Wrong::Outside { row, column, rows, columns }));
        }
        let is_skew = symmetry == Symmetry::Skew;
        if symmetry != Symmetry::General && (column > row || is_skew && column == row) {
            return Err(wrong(line, Wrong::Side { row, column, is_skew }));
        }
        entries.push((row - 1, column - 1, value));
        if symmetry != Symmetry::General && row != column {
            entries.push((column - 1, row - 1, if is_skew { -value } else { value }));
        }
    }
    if found < promised as usize {
        return Err(wrong(end, Wrong::Fewer { found, promised }));
    }
    let most = (entries.len() as u64 + 1) * MOST_EMPTY;
    if u64::from(rows.max(columns)) > most {
        return Err(wrong(sizes_line, Wrong::Empty { rows: rows.max(columns), entries: found }));
    }
    by_rows(rows, columns, entries).map_err(|_| wrong(sizes_line, Wrong::TooLarge))
}

fn by_rows(rows: u32, columns: u32, mut entries: Vec<(u32, u32, f64)>) -> Result<Csr, NotCsr> {
    // A stable sort: duplicates are added in the order of the text.
    entries.sort_by_key(|(row, column, _)| (*row, *column));
    let mut starts = vec![0_u32; rows as usize + 1];
    for (row, _, _) in &entries {
        starts[*row as usize + 1] = starts[*row as usize + 1].checked_add(1).ok_or(NotCsr::TooLarge)?;
    }
    for row in 1..starts.len() {
        starts[row] = starts[row].checked_add(starts[row - 1]).ok_or(NotCsr::TooLarge)?;
    }
    let (column_of, values) = entries.into_iter().map(|(_, column, value)| (column, value)).unzip();
    Csr::new(columns, starts, column_of, values)
}

fn banner(line: &str) -> Result<(Field, Symmetry), Wrong> {
    let words: Vec<String> = line.split_ascii_whitespace().map(str::to_ascii_lowercase).collect();
    let [mark, object, format, field, symmetry] = words.as_slice() else { return Err(Wrong::Banner) };
    if mark != "%%matrixmarket" || object != "matrix" {
        return Err(Wrong::Banner);
    }
    if format != "coordinate" {
        return Err(Wrong::Kind(format.clone()));
    }
    let field = match field.as_str() {
        "real" => Field::Real,
        "integer" => Field::Integer,
        "pattern" => Field::Pattern,
        other => return Err(Wrong::Kind(other.to_owned())),
    };
    let symmetry = match symmetry.as_str() {
        "general" => Symmetry::General,
        "symmetric" => Symmetry::Symmetric,
        "skew-symmetric" => Symmetry::Skew,
        other => return Err(Wrong::Kind(other.to_owned())),
    };
    if (field, symmetry) == (Field::Pattern, Symmetry::Skew) {
        return Err(Wrong::Kind("pattern skew-symmetric".to_owned()));
    }
    Ok((field, symmetry))
}

fn whole_numbers(line: &str) -> Option<[u32; 3]> {
    let numbers: Option<Vec<u32>> = line.split_ascii_whitespace().map(|word| word.parse().ok()).collect();
    numbers?.try_into().ok()
}

fn entry(line: &str, field: Field) -> Result<(u32, u32, f64), Wrong> {
    let wanted = Wrong::Entry(match field {
        Field::Real => "a row, a column and a number that is not infinite",
        Field::Integer => "a row, a column and a whole number",
        Field::Pattern => "a row and a column",
    });
    let mut words = line.split_ascii_whitespace();
    let mut place = || words.next()?.parse::<u32>().ok();
    let (Some(row), Some(column)) = (place(), place()) else { return Err(wanted) };
    let value = match field {
        Field::Pattern => Some(1.0),
        Field::Real => words.next().and_then(real).filter(|value| value.is_finite()),
        Field::Integer => words.next().and_then(|word| word.parse::<i64>().ok()).map(|value| value as f64),
    };
    match (value, words.next()) {
        (Some(value), None) => Ok((row, column, value)),
        _ => Err(wanted),
    }
}

/// Parses a number in C or Fortran notation, where the exponent may start with `D`.
fn real(word: &str) -> Option<f64> {
    let is_digit = |before: char| before.is_ascii_digit() || before == '.';
    match word.split_once(['d', 'D']) {
        Some((digits, exponent)) if digits.ends_with(is_digit) => format!("{digits}e{exponent}").parse().ok(),
        _ => word.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Csr, NotMatrixMarket> {
        matrix_market(text.as_bytes())
    }

    fn wrong(text: &str) -> (usize, Wrong) {
        let wrong = read(text).unwrap_err();
        (wrong.line, wrong.what)
    }

    const GENERAL: &str = "%%MatrixMarket matrix coordinate real general\n";

    #[test]
    fn each_kind_of_matrix_is_parsed_as_specified() {
        let general = read(&format!("{GENERAL}% a word\n\n2 3 3\n2 3 1e2\n1 1 -0.5\n2 1 7\n")).unwrap();
        assert_eq!(
            (general.row_starts(), general.column_of(), general.values()),
            (&[0, 1, 3][..], &[0, 0, 2][..], &[-0.5, 7.0, 100.0][..])
        );
        let skew = read("%%matrixmarket MATRIX Coordinate Integer skew-symmetric\n2 2 1\n2 1 3\n").unwrap();
        assert_eq!((skew.column_of(), skew.values()), (&[1, 0][..], &[-3.0, 3.0][..]));
        let pattern = read("%%MatrixMarket matrix coordinate pattern symmetric\n2 2 2\n2 1\n2 2\n").unwrap();
        assert_eq!((pattern.column_of(), pattern.values()), (&[1, 0, 1][..], &[1.0; 3][..]));
        assert_eq!(read(&format!("{GENERAL}0 0 0\n")).map(|matrix| matrix.rows()), Ok(0));
    }

    #[test]
    fn fortran_numbers_and_a_byte_order_mark_are_accepted() {
        let values = |text: &str| read(text).map(|matrix| matrix.times(&[1.0]));
        let general = "%%MatrixMarket matrix coordinate real general\n3 1 3\n";
        assert_eq!(values(&format!("{general}1 1 1.5D+2\n2 1 -2d0\n3 1 .5D-1")), Ok(vec![150.0, -2.0, 0.05]));
        assert_eq!(values(&format!("\u{feff}{general}1 1 1\n2 1 2.\r\n3 1 3")), Ok(vec![1.0, 2.0, 3.0]));
        for other in ["D2", "1D", "1e2D3", "1D2D3", "infD1"] {
            let at = wrong(&format!("{general}1 1 1\n2 1 {other}\n3 1 3"));
            assert!(matches!(at, (4, Wrong::Entry(_))), "{other}: {at:?}");
        }
    }

    #[test]
    fn a_wrong_number_of_entries_is_refused() {
        let of = |promised: u32| read(&format!("{GENERAL}2 2 {promised}\n1 1 1\n2 2 1\n"));
        assert!(of(2).is_ok());
        assert_eq!(of(3).unwrap_err(), NotMatrixMarket { line: 4, what: Wrong::Fewer { found: 2, promised: 3 } });
        assert_eq!(of(1).unwrap_err(), NotMatrixMarket { line: 4, what: Wrong::More(1) });
    }

    #[test]
    fn an_entry_out_of_range_is_refused_with_its_line() {
        let at = |row: u32, column: u32| read(&format!("{GENERAL}2 3 1\n{row} {column} 1\n"));
        assert!(at(2, 3).is_ok() && at(1, 1).is_ok());
        for (row, column) in [(0, 1), (1, 0), (3, 1), (1, 4)] {
            let outside = Wrong::Outside { row, column, rows: 2, columns: 3 };
            assert_eq!(at(row, column).unwrap_err(), NotMatrixMarket { line: 3, what: outside });
        }
        let above = "%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 2 1\n";
        assert_eq!(wrong(above), (3, Wrong::Side { row: 1, column: 2, is_skew: false }));
        let on = "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 1\n";
        assert_eq!(wrong(on), (3, Wrong::Side { row: 1, column: 1, is_skew: true }));
    }

    #[test]
    fn sizes_that_would_exhaust_memory_are_refused_before_allocation() {
        let rows = |rows: u64| wrong(&format!("{GENERAL}{rows} 1 1\n1 1 1\n"));
        assert_eq!(rows(4_294_967_295), (2, Wrong::Empty { rows: u32::MAX, entries: 1 }));
        assert_eq!(rows(4_294_967_296), (2, Wrong::Sizes));
        assert!(read(&format!("{GENERAL}2048 1 1\n1 1 1\n")).is_ok());
        assert_eq!(rows(2049), (2, Wrong::Empty { rows: 2049, entries: 1 }));
        assert_eq!(wrong(&format!("{GENERAL}9 9 4294967295\n")), (2, Wrong::Fewer { found: 0, promised: u32::MAX }));
    }

    #[test]
    fn other_files_are_refused_with_the_reason() {
        assert_eq!(wrong(""), (1, Wrong::Banner));
        assert_eq!(wrong("1 1 1\n"), (1, Wrong::Banner));
        assert_eq!(wrong("%%MatrixMarket matrix array real general\n"), (1, Wrong::Kind("array".to_owned())));
        assert_eq!(wrong("%%MatrixMarket matrix coordinate complex general\n"), (1, Wrong::Kind("complex".to_owned())));
        assert_eq!(
            wrong("%%MatrixMarket matrix coordinate real hermitian\n"),
            (1, Wrong::Kind("hermitian".to_owned()))
        );
        assert_eq!(wrong(GENERAL), (1, Wrong::Sizes));
        assert_eq!(
            wrong("%%MatrixMarket matrix coordinate real symmetric\n2 3 0\n"),
            (2, Wrong::Square { rows: 2, columns: 3 })
        );
        let packed = matrix_market(b"\x1f\x8b\x08").unwrap_err();
        assert_eq!((packed.line, packed.what), (1, Wrong::Text));
        for line in ["1 1", "1 1 x", "1 1 inf", "1 1 1 1", "-1 1 1", "1.5 1 1"] {
            assert!(matches!(wrong(&format!("{GENERAL}2 2 1\n{line}\n")), (3, Wrong::Entry(_))), "{line}");
        }
    }
}
