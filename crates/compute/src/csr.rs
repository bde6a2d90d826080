//! Sparse matrices in compressed sparse row (CSR) format.

use thiserror::Error;

/// A sparse matrix in CSR format: the first entry of each row, and the column and value of each entry.
#[derive(Clone, PartialEq, Debug)]
pub struct Csr {
    columns: u32,
    /// Number of columns with entries.
    used_columns: u32,
    row_starts: Vec<u32>,
    column_of: Vec<u32>,
    values: Vec<f64>,
}

/// Reasons why arrays do not form a CSR matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum NotCsr {
    /// Row starts that do not begin at 0, decrease, or do not end at the number of entries.
    #[error(
        "row starts must begin at 0, must not decrease, and must end at the number of entries, {entries}: see row {row}"
    )]
    Starts {
        /// The row, counted from 0.
        row: usize,
        /// Number of entries.
        entries: usize,
    },
    /// Different numbers of columns and values.
    #[error("{columns} column indices but {values} values; every entry needs both")]
    Lengths {
        /// Number of column indices.
        columns: usize,
        /// Number of values.
        values: usize,
    },
    /// A column index out of range.
    #[error("entry {entry} is in column {column}, but the matrix has {columns} columns")]
    Column {
        /// The entry, counted from 0.
        entry: usize,
        /// Its column.
        column: u32,
        /// Number of columns.
        columns: u32,
    },
    /// More rows or entries than 32 bits can count.
    #[error("more than 4294967295 rows or entries")]
    TooLarge,
}

impl Csr {
    /// A matrix from its arrays; `row_starts` has one element more than there are rows.
    ///
    /// # Errors
    /// [`NotCsr`] for the first violation.
    pub fn new(columns: u32, row_starts: Vec<u32>, column_of: Vec<u32>, values: Vec<f64>) -> Result<Csr, NotCsr> {
        if column_of.len() != values.len() {
            return Err(NotCsr::Lengths { columns: column_of.len(), values: values.len() });
        }
        let entries = u32::try_from(values.len()).map_err(|_| NotCsr::TooLarge)?;
        u32::try_from(row_starts.len()).map_err(|_| NotCsr::TooLarge)?;
        let wrong = |row| NotCsr::Starts { row, entries: values.len() };
        if row_starts.first() != Some(&0) {
            return Err(wrong(0));
        }
        if let Some(row) = row_starts.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(wrong(row));
        }
        if row_starts.last() != Some(&entries) {
            return Err(wrong(row_starts.len() - 1));
        }
        if let Some(entry) = column_of.iter().position(|column| *column >= columns) {
            return Err(NotCsr::Column { entry, column: column_of[entry], columns });
        }
        let used_columns = distinct(columns, &column_of);
        Ok(Csr { columns, used_columns, row_starts, column_of, values })
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> u32 {
        (self.row_starts.len() - 1) as u32
    }

    /// Number of columns.
    #[must_use]
    pub fn columns(&self) -> u32 {
        self.columns
    }

    /// Number of stored entries.
    #[must_use]
    pub fn entries(&self) -> u32 {
        self.values.len() as u32
    }

    /// Index of the first entry of each row, and the number of entries as the last element.
    #[must_use]
    pub fn row_starts(&self) -> &[u32] {
        &self.row_starts
    }

    /// Column of each entry.
    #[must_use]
    pub fn column_of(&self) -> &[u32] {
        &self.column_of
    }

    /// Value of each entry.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Minimum traffic of `y = A x` in bytes: values, columns, row starts and `y` once each, and the elements of `x`
    /// that occur in a product.
    ///
    /// ```
    /// use lanemark_compute::Csr;
    /// let of = |columns| Csr::new(columns, vec![0, 2], vec![1, 1], vec![2.0, 3.0]);
    /// assert_eq!(of(2)?.bytes(), 2 * (8 + 4) + 2 * 4 + 8 + 8);
    /// assert_eq!(of(1_000_000)?.bytes(), of(2)?.bytes());
    /// # Ok::<(), lanemark_compute::NotCsr>(())
    /// ```
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let (entries, rows) = (u64::from(self.entries()), u64::from(self.rows()));
        12 * entries + 4 * (rows + 1) + 8 * u64::from(self.used_columns) + 8 * rows
    }

    /// The product `A x`, with each row summed from first to last entry; columns beyond `x` count as 0.
    ///
    /// ```
    /// use lanemark_compute::Csr;
    /// let matrix = Csr::new(2, vec![0, 2, 3], vec![0, 1, 1], vec![2.0, 3.0, 4.0])?;
    /// assert_eq!(matrix.times(&[1.0, 10.0]), [32.0, 40.0]);
    /// # Ok::<(), lanemark_compute::NotCsr>(())
    /// ```
    #[must_use]
    pub fn times(&self, x: &[f64]) -> Vec<f64> {
        (0..self.rows()).map(|row| self.row_times(row, x)).collect()
    }

    /// One element of [`Csr::times`].
    #[inline]
    #[must_use]
    pub fn row_times(&self, row: u32, x: &[f64]) -> f64 {
        self.row(row).fold(0.0, |sum, (column, value)| sum + value * x.get(column as usize).copied().unwrap_or(0.0))
    }

    /// Error bound of each element of `A x` for other summation orders and fused multiply-add: with `n` entries, `n` ×
    /// 2^-52 × the sum of magnitudes (Higham, Accuracy and Stability of Numerical Algorithms, 3.5, rounded up).
    #[must_use]
    pub fn error_bounds(&self, x: &[f64]) -> Vec<f64> {
        let magnitude = |(column, value): (u32, f64)| (value * x.get(column as usize).copied().unwrap_or(0.0)).abs();
        let bound = |row: u32| self.row(row).map(magnitude).sum::<f64>() * self.row(row).len() as f64 * f64::EPSILON;
        (0..self.rows()).map(bound).collect()
    }

    /// The first row whose product with elements of magnitude up to 2 may overflow an `f64`.
    #[must_use]
    pub fn overflowing_row(&self) -> Option<u32> {
        (0..self.rows()).find(|row| !self.row(*row).map(|(_, value)| (2.0 * value).abs()).sum::<f64>().is_finite())
    }

    /// Columns and values of a row.
    #[inline]
    fn row(&self, row: u32) -> impl ExactSizeIterator<Item = (u32, f64)> {
        let entries = self.row_starts[row as usize] as usize..self.row_starts[row as usize + 1] as usize;
        self.column_of[entries.clone()].iter().copied().zip(self.values[entries].iter().copied())
    }
}

/// Number of distinct columns in `named`, with at most as much extra memory as `named` takes.
fn distinct(columns: u32, named: &[u32]) -> u32 {
    if columns as usize <= named.len() {
        let mut is_named = vec![false; columns as usize];
        for column in named {
            is_named[*column as usize] = true;
        }
        return is_named.iter().filter(|is_named| **is_named).count() as u32;
    }
    let mut sorted = named.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted.len() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_arrays_are_refused_with_the_position() {
        let made = |starts: &[u32], columns: &[u32]| {
            Csr::new(3, starts.to_vec(), columns.to_vec(), vec![1.0; columns.len()]).map(|matrix| matrix.rows())
        };
        assert_eq!(made(&[0, 1, 2], &[0, 2]), Ok(2));
        assert_eq!(made(&[0], &[]), Ok(0));
        assert_eq!(made(&[], &[]), Err(NotCsr::Starts { row: 0, entries: 0 }));
        assert_eq!(made(&[1, 2], &[0, 2]), Err(NotCsr::Starts { row: 0, entries: 2 }));
        assert_eq!(made(&[0, 2, 1, 2], &[0, 2]), Err(NotCsr::Starts { row: 1, entries: 2 }));
        assert_eq!(made(&[0, 1], &[0, 2]), Err(NotCsr::Starts { row: 1, entries: 2 }));
        assert_eq!(made(&[0, 1, 2], &[0, 3]), Err(NotCsr::Column { entry: 1, column: 3, columns: 3 }));
        assert_eq!(Csr::new(3, vec![0, 1], vec![0], vec![]), Err(NotCsr::Lengths { columns: 1, values: 0 }));
    }

    #[test]
    fn an_empty_row_gives_zero_and_a_row_with_one_entry_has_a_one_bit_error_bound() {
        let matrix = Csr::new(2, vec![0, 0, 1], vec![1], vec![3.0]).unwrap();
        assert_eq!(matrix.times(&[5.0, 7.0]), [0.0, 21.0]);
        assert_eq!(matrix.error_bounds(&[5.0, -7.0]), [0.0, 21.0 * f64::EPSILON]);
    }

    #[test]
    fn distinct_columns_are_counted_for_few_and_many_columns() {
        assert_eq!((distinct(3, &[2, 0, 2]), distinct(2, &[1, 1, 1]), distinct(u32::MAX, &[9, 7, 9])), (2, 1, 2));
        assert_eq!((distinct(0, &[]), distinct(4, &[])), (0, 0));
    }

    #[test]
    fn the_first_row_that_may_overflow_is_found() {
        let of = |values: [f64; 2]| Csr::new(1, vec![0, 0, 2], vec![0, 0], values.to_vec()).unwrap().overflowing_row();
        assert_eq!((of([f64::MAX / 4.0, f64::MAX / 4.0]), of([f64::MAX / 2.0, -f64::MAX / 4.0])), (None, Some(1)));
    }
}
