//! A sparse matrix times a vector: blocks of neighbouring rows, a kernel for each.

#![allow(unsafe_code)]

use super::OpenClError;
use super::context::Context;
use super::memory::Memory;
use super::program::Program;
use super::workers::{Worker, begin};
use lanemark_compute::{Array, Csr, PortWords, Spmv};
use lanemark_machine::{Confirmed, Verb};
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

/// A kernel sums each row from its first entry to its last.
const SOURCE: &str = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable
__kernel void spmv(__global const double *restrict values, __global const uint *restrict columns,
                   __global const double *restrict x, __global double *restrict y,
                   __global const uint *restrict starts, uint rows)
{
    for (uint row = 0; row < rows; row++) {
        double sum = 0.0;
        for (uint entry = starts[row]; entry < starts[row + 1]; entry++)
            sum += values[entry] * x[columns[entry]];
        y[row] = sum;
    }
}
";

/// Where the arrays stand among a worker's.
const VALUES: usize = 0;
const COLUMNS: usize = 1;
const X: usize = 2;
const Y: usize = 3;
const STARTS: usize = 4;
const ARRAYS: usize = 5;

/// Kernels, each with a block of rows.
#[derive(Debug)]
pub(super) struct SpmvKernels {
    spmv: Spmv,
    /// The rows of each.
    blocks: Vec<Range<usize>>,
    pub(super) workers: Vec<Worker>,
    x: Vec<f64>,
}

impl SpmvKernels {
    /// Builds the kernel, and makes the arrays.
    ///
    /// # Errors
    /// What the runtime said, mostly that memory is short.
    pub(super) fn new(context: &Arc<Context>, spmv: &Spmv) -> Result<SpmvKernels, OpenClError> {
        let blocks: Vec<Range<usize>> =
            spmv.blocks().into_iter().map(|rows| rows.start as usize..rows.end as usize).collect();
        let lengths = lengths(&spmv.matrix, &blocks);
        let all = lengths.iter().flatten().sum::<usize>() as u64;
        if all > context.device_bytes {
            return Err(context.too_much(all, "the matrix and its vectors are more than there is".to_owned()));
        }
        let program = Program::built(context, SOURCE)?;
        let ports = context.ports.count();
        let worker = |((place, rows), lengths): ((u32, &Range<usize>), [usize; ARRAYS])| {
            let ports = ports_of(spmv, place, rows, ports);
            let array = |(array, bytes): (usize, usize)| Memory::in_port(context, ports[array], bytes);
            let arrays = (0..).zip(lengths).map(array).collect::<Result<Vec<_>, _>>()?;
            let kernel = program.kernel(c"spmv")?;
            kernel.give_number(ARRAYS as u32, rows.len() as u32)?;
            Worker::new(context, kernel, arrays)
        };
        let workers = (0..).zip(&blocks).zip(lengths).map(worker).collect::<Result<Vec<_>, _>>()?;
        let made = SpmvKernels { spmv: spmv.clone(), blocks, workers, x: Vec::new() };
        made.bring_matrix()?;
        // What the vectors hold does not matter, and no entry is beyond `x`.
        begin(&made.workers)?;
        Ok(made)
    }

    /// Whether they are of this work.
    pub(super) fn are_of(&self, spmv: &Spmv) -> bool {
        let (held, other) = (&self.spmv, spmv);
        (held.kernels, held.ports_each) == (other.kernels, other.ports_each)
            && (Arc::ptr_eq(&held.matrix, &other.matrix) || held.matrix == other.matrix)
    }

    fn bring_matrix(&self) -> Result<(), OpenClError> {
        let matrix = &*self.spmv.matrix;
        for (rows, worker) in self.blocks.iter().zip(&self.workers) {
            let starts = &matrix.row_starts()[rows.start..=rows.end];
            let entries = entries_of(matrix, rows);
            let first = entries.start as u32;
            bring(worker, STARTS, starts.iter().flat_map(|start| (start - first).to_ne_bytes()).collect())?;
            let columns = matrix.column_of()[entries.clone()].iter();
            bring(worker, COLUMNS, columns.flat_map(|column| column.to_ne_bytes()).collect())?;
            bring(worker, VALUES, matrix.values()[entries].iter().flat_map(|value| value.to_ne_bytes()).collect())?;
        }
        Ok(())
    }

    /// Gives every kernel `x`, which another `seed` makes another, and leaves no number in `y`.
    ///
    /// # Errors
    /// What the runtime said.
    pub(super) fn prepare(&mut self, seed: u64) -> Result<(), OpenClError> {
        self.x = vector(self.spmv.matrix.columns(), seed);
        for (rows, worker) in self.blocks.iter().zip(&self.workers) {
            bring(worker, X, self.x.iter().flat_map(|x| x.to_ne_bytes()).collect())?;
            bring(worker, Y, f64::NAN.to_ne_bytes().repeat(rows.len()))?;
        }
        Ok(())
    }

    /// How many bytes of `y` the last pass has computed, within the bounds of the matrix.
    ///
    /// # Errors
    /// What the runtime said.
    pub(super) fn confirmed(&self) -> Result<Confirmed, OpenClError> {
        let matrix = &*self.spmv.matrix;
        let mut y = Vec::with_capacity(matrix.rows() as usize);
        for (rows, worker) in self.blocks.iter().zip(&self.workers) {
            let mut bytes = vec![0; rows.len() * 8];
            if !bytes.is_empty() {
                let at = worker.arrays[Y].at();
                // SAFETY: the array has as many bytes.
                unsafe { worker.commands.bring("reading the result back", Verb::Load, &raw mut *bytes, at) }?;
            }
            y.extend(bytes.chunks_exact(8).map(|word| f64::from_ne_bytes(std::array::from_fn(|place| word[place]))));
        }
        let right = within(&y, &matrix.times(&self.x), &matrix.error_bounds(&self.x));
        Ok(Confirmed { claimed_bytes: 8 * u64::from(matrix.rows()), confirmed_bytes: 8 * right })
    }
}

/// How many are no farther off than their bound.
fn within(found: &[f64], wanted: &[f64], bounds: &[f64]) -> u64 {
    let pairs = found.iter().zip(wanted).zip(bounds);
    pairs.filter(|((found, wanted), bound)| (*found - *wanted).abs() <= **bound).count() as u64
}

/// Brings an array of a worker to the device.
fn bring(worker: &Worker, array: usize, mut bytes: Vec<u8>) -> Result<(), OpenClError> {
    if bytes.is_empty() {
        return Ok(());
    }
    let all = ptr::slice_from_raw_parts_mut(bytes.as_mut_ptr(), bytes.len());
    // SAFETY: the array was made of as many bytes.
    unsafe { worker.commands.bring("bringing a matrix to the device", Verb::Store, all, worker.arrays[array].at()) }
}

/// The port of each array of a kernel, in the order in which arrays stand among a worker's: as on a card whose ports load one element at a time.
fn ports_of(spmv: &Spmv, kernel: u32, rows: &Range<usize>, ports: u32) -> [u32; ARRAYS] {
    let words = PortWords { port_bytes: 32, keeps: false };
    let dealt = spmv.ports_of(kernel, spmv.words(&(rows.start as u32..rows.end as u32), words), ports);
    [Array::Values, Array::Columns, Array::X, Array::Y, Array::RowStarts].map(|array| dealt[array.index()])
}

fn entries_of(matrix: &Csr, rows: &Range<usize>) -> Range<usize> {
    matrix.row_starts()[rows.start] as usize..matrix.row_starts()[rows.end] as usize
}

/// Bytes of each kernel's arrays; none is empty, for no runtime has such a piece.
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

/// Numbers from 1 to 2.
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
    fn each_kernel_has_arrays_of_its_rows_in_ports_of_its_own_and_no_array_is_empty() {
        let matrix = Arc::new(Csr::new(3, vec![0, 0, 0, 2, 2], vec![0, 2], vec![1.0; 2]).unwrap());
        assert_eq!(lengths(&matrix, &[0..2, 2..4]), [[8, 8, 24, 16, 12], [16, 8, 24, 16, 12]]);
        let spmv = Spmv { matrix, kernels: 2, ports_each: 5 };
        let [first, second] = [(0, 0..2), (1, 2..4)].map(|(kernel, rows)| ports_of(&spmv, kernel, &rows, 16));
        assert!(first.iter().all(|port| *port < 5) && second.iter().all(|port| (5..10).contains(port)), "{second:?}");
        assert_eq!(ports_of(&spmv, 1, &(2..4), 1), [0; ARRAYS]);
    }

    #[test]
    fn a_result_counts_up_to_its_bound_and_one_that_was_never_written_does_not() {
        assert_eq!(within(&[1.0, 1.5, f64::NAN, 0.0], &[1.0, 1.0, 1.0, 0.0], &[0.0, 0.5, 9.0, 0.0]), 3);
        assert_eq!(within(&[1.5 + f64::EPSILON], &[1.0], &[0.5]), 0);
    }

    #[test]
    fn vectors_of_two_seeds_differ_and_are_between_1_and_2() {
        let (one, two) = (vector(100, 1), vector(100, 2));
        assert!(one.iter().zip(&two).all(|(one, two)| one != two && (1.0..=2.0).contains(one)));
    }
}
