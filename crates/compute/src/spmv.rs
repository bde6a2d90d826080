//! Sparse matrix-vector product (`SpMV`) by several kernels.
//!
//! For each entry, a kernel loads its value (8 B), its column (4 B) and the element of `x` in that column (8 B). For
//! each row, it loads the end of the row (4 B) and stores `y` (8 B). Values, columns and row starts are accessed
//! sequentially, `x` at random.

use crate::{Csr, PortWords};
use std::ops::Range;
use std::sync::Arc;

/// `y = A x`, with rows distributed over kernels, and the arrays of each kernel in its own ports.
#[derive(Clone, PartialEq, Debug)]
pub struct Spmv {
    /// The matrix.
    pub matrix: Arc<Csr>,
    /// Number of kernels, at least 1. Each has a block of adjacent rows.
    pub kernels: u32,
    /// Memory ports per kernel, at least 1.
    pub ports_each: u32,
}

/// An array that a kernel loads or stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Array {
    /// First entry of each row, and the end of the last one.
    RowStarts,
    /// Column of each entry.
    Columns,
    /// Value of each entry.
    Values,
    /// The input vector `x`.
    X,
    /// The output vector `y`.
    Y,
}

impl Array {
    /// All arrays, in the order of [`Array::index`].
    pub const ALL: [Array; 5] = [Array::RowStarts, Array::Columns, Array::Values, Array::X, Array::Y];

    /// Index in [`Array::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Size of an element in bytes.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        match self {
            Array::RowStarts | Array::Columns => 4,
            Array::Values | Array::X | Array::Y => 8,
        }
    }
}

impl Spmv {
    /// The input vector: values from 1 to below 2 that are exact binary fractions of few digits.
    #[must_use]
    pub fn x(&self) -> Vec<f64> {
        (0..self.matrix.columns()).map(|column| 1.0 + f64::from(column % 16) / 16.0).collect()
    }

    /// The rows of each kernel: adjacent, with numbers of entries as equal as whole rows allow.
    ///
    /// ```
    /// use lanemark_compute::{Csr, Spmv};
    /// let matrix = Csr::new(1, vec![0, 3, 4, 5, 6], vec![0; 6], vec![1.0; 6])?.into();
    /// assert_eq!(Spmv { matrix, kernels: 2, ports_each: 1 }.blocks(), [0..1, 1..4]);
    /// # Ok::<(), lanemark_compute::NotCsr>(())
    /// ```
    #[must_use]
    pub fn blocks(&self) -> Vec<Range<u32>> {
        let (starts, kernels) = (self.matrix.row_starts(), u64::from(self.kernels));
        let entries = u64::from(self.matrix.entries());
        let end = |kernel: u64| {
            if kernel == kernels {
                return self.matrix.rows();
            }
            let wanted = (entries * kernel).div_ceil(kernels.max(1));
            let row = starts.partition_point(|start| u64::from(*start) < wanted);
            // The row boundary before it may be nearer.
            let over = |row: usize| u64::from(starts[row]).abs_diff(wanted);
            (if row > 0 && (row == starts.len() || over(row - 1) < over(row)) { row - 1 } else { row }) as u32
        };
        (0..kernels).map(|kernel| end(kernel)..end(kernel + 1)).collect()
    }

    /// Number of rows and of entries in a block of rows.
    fn rows_and_entries(&self, rows: &Range<u32>) -> (u64, u64) {
        let starts = self.matrix.row_starts();
        let entries = starts[rows.end as usize] - starts[rows.start as usize];
        ((rows.end - rows.start).into(), entries.into())
    }

    /// Words transferred for each array of a block of rows, in the order of [`Array::ALL`].
    #[must_use]
    pub fn words(&self, rows: &Range<u32>, words: PortWords) -> [u64; 5] {
        let (count, entries) = self.rows_and_entries(rows);
        Array::ALL.map(|array| match array {
            Array::RowStarts if count > 0 => words.of(count + 1, array.bytes()),
            Array::RowStarts => 0,
            Array::Columns | Array::Values => words.of(entries, array.bytes()),
            Array::X => entries,
            Array::Y => words.of(count, array.bytes()),
        })
    }

    /// The port of each array of a kernel, in the order of [`Array::ALL`]: largest array first, each to the least
    /// loaded port.
    ///
    /// ```
    /// use lanemark_compute::{Csr, Spmv};
    /// let matrix = Csr::new(1, vec![0], vec![], vec![])?.into();
    /// let spmv = Spmv { matrix, kernels: 1, ports_each: 4 };
    /// // Row starts and y share the port that columns, values and x leave free.
    /// assert_eq!(spmv.ports([11, 50, 50, 50, 10]), [3, 0, 1, 2, 3]);
    /// # Ok::<(), lanemark_compute::NotCsr>(())
    /// ```
    #[must_use]
    pub fn ports(&self, words: [u64; 5]) -> [u32; 5] {
        let mut order = [0, 1, 2, 3, 4];
        order.sort_by_key(|array| std::cmp::Reverse(words[*array]));
        let mut held = vec![0; self.ports_each.clamp(1, 5) as usize];
        let mut ports = [0; 5];
        for array in order {
            let least = (0..held.len()).min_by_key(|port| held[*port]).unwrap_or(0);
            held[least] += words[array];
            ports[array] = least as u32;
        }
        ports
    }

    /// Bytes stored in each of `memory_ports` ports: blocks of rows, and for every kernel all of `x` and its part of
    /// `y`.
    ///
    /// ```
    /// use lanemark_compute::{Csr, PortWords, Spmv};
    /// let matrix = Csr::new(100, vec![0, 1, 2], vec![7, 7], vec![1.0; 2])?.into();
    /// let spmv = Spmv { matrix, kernels: 2, ports_each: 1 };
    /// let words = PortWords { port_bytes: 32, keeps: false };
    /// // Two row starts, a column, a value, x and one element of y.
    /// assert_eq!(spmv.held_bytes(words, 4), [2 * 4 + 4 + 8 + 100 * 8 + 8, 828, 0, 0]);
    /// # Ok::<(), lanemark_compute::NotCsr>(())
    /// ```
    #[must_use]
    pub fn held_bytes(&self, words: PortWords, memory_ports: u32) -> Vec<u64> {
        let mut held = vec![0; memory_ports.max(1) as usize];
        for (kernel, rows) in (0..).zip(self.blocks()) {
            let (count, entries) = self.rows_and_entries(&rows);
            let ports = self.ports_of(kernel, self.words(&rows, words), memory_ports);
            for (array, port) in Array::ALL.into_iter().zip(ports) {
                let elements = match array {
                    Array::RowStarts => count + 1,
                    Array::Columns | Array::Values => entries,
                    Array::X => self.matrix.columns().into(),
                    Array::Y => count,
                };
                held[port as usize] += elements * u64::from(array.bytes());
            }
        }
        held
    }

    /// As [`Spmv::ports`], numbered over all kernels modulo `memory_ports`: kernels share ports if there are too few.
    #[must_use]
    pub fn ports_of(&self, kernel: u32, words: [u64; 5], memory_ports: u32) -> [u32; 5] {
        let first = u64::from(kernel) * u64::from(self.ports_each);
        self.ports(words).map(|port| ((first + u64::from(port)) % u64::from(memory_ports.max(1))) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spmv(lengths: &[u32], kernels: u32, ports_each: u32) -> Spmv {
        let starts: Vec<u32> = std::iter::once(0)
            .chain(lengths.iter().scan(0, |sum, length| {
                *sum += length;
                Some(*sum)
            }))
            .collect();
        let entries = *starts.last().unwrap() as usize;
        let matrix = Csr::new(1, starts, vec![0; entries], vec![1.0; entries]).unwrap();
        Spmv { matrix: matrix.into(), kernels, ports_each }
    }

    #[test]
    fn blocks_cover_all_rows_and_are_balanced_within_one_row() {
        for kernels in 1..9 {
            let lengths: Vec<u32> = (0..40).map(|row| row * 7 % 13).collect();
            let dealt = spmv(&lengths, kernels, 1);
            let blocks = dealt.blocks();
            assert_eq!((blocks[0].start, blocks.last().unwrap().end, blocks.len()), (0, 40, kernels as usize));
            assert!(blocks.windows(2).all(|pair| pair[0].end == pair[1].start));
            let share = f64::from(dealt.matrix.entries()) / f64::from(kernels);
            for block in &blocks {
                let (rows, entries) = dealt.rows_and_entries(block);
                assert_eq!(
                    (rows, entries),
                    (
                        block.len() as u64,
                        lengths[block.start as usize..block.end as usize].iter().map(|length| u64::from(*length)).sum()
                    )
                );
                assert!((entries as f64 - share).abs() <= 12.0, "{kernels} {entries} {share}");
            }
        }
    }

    #[test]
    fn kernels_beyond_the_number_of_rows_are_idle_and_a_dense_row_is_not_split() {
        let blocks = spmv(&[5], 3, 1).blocks();
        assert_eq!(blocks.iter().map(|block| block.end - block.start).sum::<u32>(), 1);
        assert_eq!(spmv(&[], 2, 1).blocks(), [0..0, 0..0]);
    }

    #[test]
    fn the_largest_arrays_get_separate_ports_and_a_single_port_holds_all() {
        let discarded = PortWords { port_bytes: 32, keeps: false };
        let one = spmv(&[10, 10], 1, 1);
        let words = one.words(&(0..2), discarded);
        assert_eq!(words, [3, 20, 20, 20, 2]);
        assert_eq!(one.ports(words), [0; 5]);
        assert_eq!(spmv(&[], 1, 3).ports(words), [0, 0, 1, 2, 1]);
        // With kept words, columns and values are small, and x has its own port.
        let kept = one.words(&(0..2), PortWords { keeps: true, ..discarded });
        assert_eq!(kept, [1, 3, 5, 20, 1]);
        assert_eq!(spmv(&[], 1, 2).ports(kept), [1, 1, 1, 0, 1]);
    }

    #[test]
    fn kernels_have_their_own_ports_until_none_are_left() {
        let all = spmv(&[4; 8], 8, 4);
        let of = |kernel, ports| all.ports_of(kernel, [1, 8, 8, 8, 1], ports)[Array::Columns.index()];
        assert_eq!([of(0, 32), of(7, 32), of(7, 28)], [0, 28, 0]);
    }
}
