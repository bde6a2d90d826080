//! Generated matrices: deterministic, specified by a name and numbers.

use crate::Csr;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Specification of a generated matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Generated {
    /// 5-point stencil of Poisson's equation on a square grid with this many points per side: local accesses.
    Poisson(u32),
    /// Rows of equal length with random columns.
    Random {
        /// Number of rows and columns.
        rows: u32,
        /// Entries per row.
        each: u32,
    },
    /// Random columns and power-law row lengths, as in graphs of people or web pages: the n-th longest row has 1/√n of
    /// the length of the longest; long and short rows are mixed.
    PowerLaw {
        /// Number of rows and columns.
        rows: u32,
        /// Approximate mean number of entries per row.
        each: u32,
    },
}

/// Reasons why a text does not specify a matrix.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum NotGenerated {
    /// Unknown name or invalid numbers.
    #[error(
        "'{0}' is not a matrix that can be generated: write poisson:256, random:100000x20 or powerlaw:100000x20, with other numbers if needed"
    )]
    Name(String),
    /// Too many entries.
    #[error("'{name}' would have about {entries} entries: the maximum is {most}", most = Generated::MOST_ENTRIES)]
    TooLarge {
        /// The text.
        name: String,
        /// Number of entries.
        entries: u64,
    },
}

impl Generated {
    /// Maximum number of entries.
    pub const MOST_ENTRIES: u64 = 1 << 26;

    /// Generates the matrix.
    #[must_use]
    pub fn matrix(&self) -> Csr {
        match *self {
            Generated::Poisson(side) => poisson(side),
            Generated::Random { rows, each } => by_lengths(rows, |_| each),
            Generated::PowerLaw { rows, each } => {
                // The mean of 1/sqrt(n) for n up to `rows` is about 2/sqrt(rows).
                let longest = f64::from(each) * f64::from(rows).sqrt() / 2.0;
                let length = |row: u32| {
                    let rank = 1 + hash(u64::from(row)) % u64::from(rows);
                    ((longest / (rank as f64).sqrt()).round() as u32).clamp(1, rows)
                };
                by_lengths(rows, length)
            }
        }
    }

    fn entries(&self) -> u64 {
        match *self {
            Generated::Poisson(side) => 5 * u64::from(side) * u64::from(side),
            Generated::Random { rows, each } | Generated::PowerLaw { rows, each } => u64::from(rows) * u64::from(each),
        }
    }
}

impl fmt::Display for Generated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Generated::Poisson(side) => write!(f, "poisson:{side}"),
            Generated::Random { rows, each } => write!(f, "random:{rows}x{each}"),
            Generated::PowerLaw { rows, each } => write!(f, "powerlaw:{rows}x{each}"),
        }
    }
}

impl FromStr for Generated {
    type Err = NotGenerated;

    /// ```
    /// use lanemark_compute::Generated;
    /// let matrix = "poisson:3".parse::<Generated>()?.matrix();
    /// assert_eq!((matrix.rows(), matrix.entries()), (9, 33));
    /// # Ok::<(), lanemark_compute::NotGenerated>(())
    /// ```
    fn from_str(text: &str) -> Result<Generated, NotGenerated> {
        let wrong = || NotGenerated::Name(text.to_owned());
        let (name, numbers) = text.split_once(':').ok_or_else(wrong)?;
        let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number > 0).ok_or_else(wrong);
        let pair = || {
            let (rows, each) = numbers.split_once('x').ok_or_else(wrong)?;
            let (rows, each) = (number(rows)?, number(each)?);
            if each > rows { Err(wrong()) } else { Ok((rows, each)) }
        };
        let generated = match name {
            "poisson" => Generated::Poisson(number(numbers)?),
            "random" => pair().map(|(rows, each)| Generated::Random { rows, each })?,
            "powerlaw" => pair().map(|(rows, each)| Generated::PowerLaw { rows, each })?,
            _ => return Err(wrong()),
        };
        let entries = generated.entries();
        if entries > Generated::MOST_ENTRIES {
            return Err(NotGenerated::TooLarge { name: text.to_owned(), entries });
        }
        Ok(generated)
    }
}

fn poisson(side: u32) -> Csr {
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..side * side {
        let (down, across) = (row / side, row % side);
        let near = [
            (down > 0).then(|| row - side),
            (across > 0).then(|| row - 1),
            Some(row),
            (across + 1 < side).then(|| row + 1),
            (down + 1 < side).then(|| row + side),
        ];
        for column in near.into_iter().flatten() {
            columns.push(column);
            values.push(if column == row { 4.0 } else { -1.0 });
        }
        starts.push(columns.len() as u32);
    }
    csr(side * side, starts, columns, values)
}

/// A matrix with these row lengths and random columns in order; a column may occur twice in a row.
fn by_lengths(rows: u32, length: impl Fn(u32) -> u32) -> Csr {
    let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
    let mut turn = u64::from(rows);
    for row in 0..rows {
        let begin = columns.len();
        for _ in 0..length(row) {
            turn += 1;
            columns.push((hash(turn) % u64::from(rows)) as u32);
        }
        columns[begin..].sort_unstable();
        values.extend(columns[begin..].iter().map(|column| 1.0 + f64::from(column % 8) / 8.0));
        starts.push(columns.len() as u32);
    }
    csr(rows, starts, columns, values)
}

fn csr(columns: u32, starts: Vec<u32>, column_of: Vec<u32>, values: Vec<f64>) -> Csr {
    Csr::new(columns, starts, column_of, values)
        .unwrap_or_else(|wrong| unreachable!("generated arrays are valid: {wrong}"))
}

/// Hash of `place`, used as a random number (`SplitMix64`; Steele, Lea and Flood, OOPSLA 2014).
fn hash(place: u64) -> u64 {
    let mut bits = place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Generated, NotGenerated> {
        text.parse()
    }

    #[test]
    fn a_specification_prints_as_it_was_written() {
        for name in ["poisson:256", "random:1000x20", "powerlaw:1000x20"] {
            assert_eq!(read(name).map(|generated| generated.to_string()), Ok(name.to_owned()));
        }
    }

    #[test]
    fn unknown_names_and_too_large_matrices_are_refused() {
        for name in ["poisson", "poisson:0", "poisson:-1", "poisson:4294967296", "random:5", "random:5x6", "dense:4"] {
            assert_eq!(read(name), Err(NotGenerated::Name(name.to_owned())));
        }
        assert!(read("random:5x5").is_ok());
        assert!(read("random:1048576x64").is_ok());
        assert!(matches!(read("random:1048576x65"), Err(NotGenerated::TooLarge { .. })));
    }

    #[test]
    fn generated_matrices_are_deterministic_and_have_the_requested_size() {
        let matrix = |name: &str| read(name).unwrap().matrix();
        assert_eq!(matrix("random:500x7"), matrix("random:500x7"));
        assert_eq!(matrix("random:500x7").entries(), 3500);
        let law = matrix("powerlaw:10000x20");
        let lengths: Vec<u32> = law.row_starts().windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!((150_000..250_000).contains(&law.entries()), "{}", law.entries());
        assert!(*lengths.iter().max().unwrap() > 30 * lengths[lengths.len() / 2]);
        // At an inner grid point, the coefficients cancel.
        let poisson = matrix("poisson:4");
        assert_eq!(poisson.times(&[1.0; 16])[5], 0.0);
        assert_eq!(poisson.times(&[1.0; 16])[0], 2.0);
    }
}
