//! Sparse matrix times vector: blocks of consecutive rows, one kernel per block.

use super::workers::{self, Number, WorkerSpec, Workers, WorkersSpec};
use crate::kernel_source;
use lanemark_compute::{Array, Csr, PortWords, Spmv};
use lanemark_machine::{Confirmed, Verb};
use std::ops::Range;
use std::sync::Arc;

// Indices of a worker's arrays.
const VALUES: usize = 0;
const COLUMNS: usize = 1;
const X: usize = 2;
const Y: usize = 3;
const STARTS: usize = 4;
const ARRAYS: usize = 5;

/// Kernels of one matrix, each for a block of rows.
#[derive(Debug)]
pub(crate) struct SpmvKernels<W> {
    spmv: Spmv,
    /// Row range of each kernel.
    blocks: Vec<Range<usize>>,
    pub(super) workers: W,
    x: Vec<f64>,
}

impl<W: Workers> SpmvKernels<W> {
    /// Creates the kernels and their arrays, and copies the matrix to the device.
    ///
    /// # Errors
    /// Errors of the runtime, usually too little memory.
    pub(super) fn new(
        spmv: &Spmv,
        memory_ports: u32,
        make: impl FnOnce(WorkersSpec) -> Result<W, W::Error>,
    ) -> Result<SpmvKernels<W>, W::Error> {
        let blocks = blocks(spmv);
        let workers = make(spec(spmv, &blocks, memory_ports))?;
        let kernels = SpmvKernels { spmv: spmv.clone(), blocks, workers, x: Vec::new() };
        kernels.bring_matrix()?;
        // The vectors are still undefined, which is harmless: every column index is within `x`.
        kernels.workers.launch_once()?;
        Ok(kernels)
    }

    /// Whether these kernels can be reused for `spmv`.
    pub(super) fn matches(&self, spmv: &Spmv) -> bool {
        let (held, other) = (&self.spmv, spmv);
        (held.kernels, held.ports_each) == (other.kernels, other.ports_each)
            && (Arc::ptr_eq(&held.matrix, &other.matrix) || held.matrix == other.matrix)
    }

    fn bring_matrix(&self) -> Result<(), W::Error> {
        let matrix = &*self.spmv.matrix;
        for (worker, rows) in self.blocks.iter().enumerate() {
            let starts = &matrix.row_starts()[rows.start..=rows.end];
            let entries = entries_of(matrix, rows);
            let first = entries.start as u32;
            self.copy_and_wait(
                worker,
                STARTS,
                starts.iter().flat_map(|start| (start - first).to_ne_bytes()).collect(),
            )?;
            let columns = matrix.column_of()[entries.clone()].iter();
            self.copy_and_wait(worker, COLUMNS, columns.flat_map(|column| column.to_ne_bytes()).collect())?;
            self.copy_and_wait(
                worker,
                VALUES,
                matrix.values()[entries].iter().flat_map(|value| value.to_ne_bytes()).collect(),
            )?;
        }
        Ok(())
    }

    /// Copies an `x` that depends on `seed` to every kernel, and fills `y` with NaN.
    ///
    /// # Errors
    /// Errors of the runtime.
    pub(super) fn prepare(&mut self, seed: u64) -> Result<(), W::Error> {
        self.x = vector(self.spmv.matrix.columns(), seed);
        for (worker, rows) in self.blocks.iter().enumerate() {
            self.copy_and_wait(worker, X, self.x.iter().flat_map(|x| x.to_ne_bytes()).collect())?;
            self.copy_and_wait(worker, Y, f64::NAN.to_ne_bytes().repeat(rows.len()))?;
        }
        Ok(())
    }

    /// Number of bytes of `y` that the last iteration computed within the rounding-error bounds.
    ///
    /// # Errors
    /// Errors of the runtime.
    pub(super) fn confirmed(&self) -> Result<Confirmed, W::Error> {
        let matrix = &*self.spmv.matrix;
        let mut y = Vec::with_capacity(matrix.rows() as usize);
        for (worker, rows) in self.blocks.iter().enumerate() {
            let mut bytes = vec![0; rows.len() * 8];
            if !bytes.is_empty() {
                self.workers.copy_and_wait(worker, Y, Verb::Load, &mut bytes)?;
            }
            y.extend(bytes.chunks_exact(8).map(|word| f64::from_ne_bytes(std::array::from_fn(|place| word[place]))));
        }
        let right = within(&y, &matrix.times(&self.x), &matrix.error_bounds(&self.x));
        Ok(Confirmed { claimed_bytes: 8 * u64::from(matrix.rows()), confirmed_bytes: 8 * right })
    }

    /// Copies `bytes` into an array of a worker.
    fn copy_and_wait(&self, worker: usize, array: usize, mut bytes: Vec<u8>) -> Result<(), W::Error> {
        // An array without entries still has one element, which no kernel reads.
        if bytes.is_empty() { Ok(()) } else { self.workers.copy_and_wait(worker, array, Verb::Store, &mut bytes) }
    }
}

/// Row range of each kernel.
fn blocks(spmv: &Spmv) -> Vec<Range<usize>> {
    spmv.blocks().into_iter().map(|rows| rows.start as usize..rows.end as usize).collect()
}

/// Specification of one kernel per block, with arrays assigned to ports.
fn spec(spmv: &Spmv, blocks: &[Range<usize>], memory_ports: u32) -> WorkersSpec {
    let of_kernel = |((kernel, rows), lengths): ((u32, &Range<usize>), [usize; ARRAYS])| {
        let ports = ports_of(spmv, kernel, rows, memory_ports);
        let array = |(port, bytes)| workers::Array { port, bytes };
        WorkerSpec {
            arrays: ports.into_iter().zip(lengths).map(array).collect(),
            numbers: vec![Number::Uint(rows.len() as u32)],
        }
    };
    let kernels = (0..).zip(blocks).zip(lengths(&spmv.matrix, blocks));
    WorkersSpec { source: kernel_source::spmv(), workers: kernels.map(of_kernel).collect() }
}

/// Number of results within their error bound.
fn within(found: &[f64], wanted: &[f64], bounds: &[f64]) -> u64 {
    let pairs = found.iter().zip(wanted).zip(bounds);
    pairs.filter(|((found, wanted), bound)| (*found - *wanted).abs() <= **bound).count() as u64
}

/// Memory port of each array of a kernel, in array-index order; assigned as on a card that loads one element at a time.
fn ports_of(spmv: &Spmv, kernel: u32, rows: &Range<usize>, ports: u32) -> [u32; ARRAYS] {
    let words = PortWords { port_bytes: 32, keeps: false };
    let dealt = spmv.ports_of(kernel, spmv.words(&(rows.start as u32..rows.end as u32), words), ports);
    [Array::Values, Array::Columns, Array::X, Array::Y, Array::RowStarts].map(|array| dealt[array.index()])
}

fn entries_of(matrix: &Csr, rows: &Range<usize>) -> Range<usize> {
    matrix.row_starts()[rows.start] as usize..matrix.row_starts()[rows.end] as usize
}

/// Length in bytes of each kernel's arrays; never 0, because no runtime allocates empty buffers.
fn lengths(matrix: &Csr, blocks: &[Range<usize>]) -> Vec<[usize; ARRAYS]> {
    let of_kernel = |rows: &Range<usize>| {
        let entries = entries_of(matrix, rows).len();
        let bytes = |array| match array {
            VALUES => 8 * entries,
            COLUMNS => 4 * entries,
            X => 8 * matrix.columns() as usize,
            Y => 8 * rows.len(),
            _ => 4 * (rows.len() + 1),
        };
        std::array::from_fn(|array| bytes(array).max(8))
    };
    blocks.iter().map(of_kernel).collect()
}

/// Pseudo-random numbers from 1 to 2.
fn vector(columns: u32, seed: u64) -> Vec<f64> {
    let mut bytes = vec![0; 4 * columns as usize];
    crate::x86::pattern::fill(&mut bytes, seed);
    let part = |word: &[u8]| f64::from(u32::from_le_bytes(std::array::from_fn(|place| word[place])));
    bytes.chunks_exact(4).map(|word| 1.0 + part(word) / f64::from(u32::MAX)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kernel_has_nonempty_arrays_in_its_own_ports() {
        let matrix = Arc::new(Csr::new(3, vec![0, 0, 0, 2, 2], vec![0, 2], vec![1.0; 2]).unwrap());
        assert_eq!(lengths(&matrix, &[0..2, 2..4]), [[8, 8, 24, 16, 12], [16, 8, 24, 16, 12]]);
        let spmv = Spmv { matrix, kernels: 2, ports_each: 5 };
        let [first, second] = [(0, 0..2), (1, 2..4)].map(|(kernel, rows)| ports_of(&spmv, kernel, &rows, 16));
        assert!(first.iter().all(|port| *port < 5) && second.iter().all(|port| (5..10).contains(port)), "{second:?}");
        assert_eq!(ports_of(&spmv, 1, &(2..4), 1), [0; ARRAYS]);
    }

    #[test]
    fn a_result_counts_up_to_its_error_bound_and_nan_does_not_count() {
        assert_eq!(within(&[1.0, 1.5, f64::NAN, 0.0], &[1.0, 1.0, 1.0, 0.0], &[0.0, 0.5, 9.0, 0.0]), 3);
        assert_eq!(within(&[1.5 + f64::EPSILON], &[1.0], &[0.5]), 0);
    }

    #[test]
    fn vectors_of_different_seeds_differ_and_lie_between_1_and_2() {
        let (one, two) = (vector(100, 1), vector(100, 2));
        assert!(one.iter().zip(&two).all(|(one, two)| one != two && (1.0..=2.0).contains(one)));
    }
}
