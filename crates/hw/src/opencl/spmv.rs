//! A sparse matrix times a vector: blocks of neighbouring rows, a kernel for each.

#![allow(unsafe_code)]

use super::OpenClError;
use super::context::Context;
use super::memory::Memory;
use super::program::Program;
use super::workers::{Worker, begin};
use lanemark_compute::{Csr, Spmv};
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
    pub(super) workers: Vec<Worker>,
    x: Vec<f64>,
}

impl SpmvKernels {
    /// Builds the kernel, and makes the arrays: those of a kernel go to its ports in turn, values first, then columns, `x`, `y`, and
    /// starts of rows.
    ///
    /// # Errors
    /// What the runtime said, mostly that memory is short.
    pub(super) fn new(context: &Arc<Context>, spmv: &Spmv) -> Result<SpmvKernels, OpenClError> {
        let all = lengths(&spmv.matrix, spmv.kernels).iter().flatten().sum::<usize>() as u64;
        if all > context.device_bytes {
            return Err(context.too_much(all, "the matrix and its vectors are more than there is".to_owned()));
        }
        let program = Program::built(context, SOURCE)?;
        let ports = context.ports.count();
        let worker = |(place, lengths): (u32, [usize; ARRAYS])| {
            let port = |array: u32| (place * spmv.ports_each + array % spmv.ports_each) % ports;
            let array = |(array, bytes): (u32, usize)| Memory::in_port(context, port(array), bytes);
            let arrays = (0..).zip(lengths).map(array).collect::<Result<Vec<_>, _>>()?;
            let kernel = program.kernel(c"spmv")?;
            let rows = rows_of(&spmv.matrix, spmv.kernels, place);
            kernel.give_number(ARRAYS as u32, rows.len() as u32)?;
            Worker::new(context, kernel, arrays)
        };
        let lengths = lengths(&spmv.matrix, spmv.kernels);
        let workers = (0..).zip(lengths).map(worker).collect::<Result<Vec<_>, _>>()?;
        let made = SpmvKernels { spmv: spmv.clone(), workers, x: Vec::new() };
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
        for (place, worker) in (0..).zip(&self.workers) {
            let rows = rows_of(matrix, self.spmv.kernels, place);
            let starts = &matrix.row_starts()[rows.start..=rows.end];
            let entries = entries_of(matrix, &rows);
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
        for (place, worker) in (0..).zip(&self.workers) {
            bring(worker, X, self.x.iter().flat_map(|x| x.to_ne_bytes()).collect())?;
            let rows = rows_of(&self.spmv.matrix, self.spmv.kernels, place).len();
            bring(worker, Y, f64::NAN.to_ne_bytes().repeat(rows))?;
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
        for (place, worker) in (0..).zip(&self.workers) {
            let mut bytes = vec![0; rows_of(matrix, self.spmv.kernels, place).len() * 8];
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

/// The rows of kernel `place` of `kernels`: as many as the others', or one more.
fn rows_of(matrix: &Csr, kernels: u32, place: u32) -> Range<usize> {
    let bound = |place: u32| (u64::from(matrix.rows()) * u64::from(place) / u64::from(kernels.max(1))) as usize;
    bound(place)..bound(place + 1)
}

fn entries_of(matrix: &Csr, rows: &Range<usize>) -> Range<usize> {
    matrix.row_starts()[rows.start] as usize..matrix.row_starts()[rows.end] as usize
}

/// Bytes of each kernel's arrays; none is empty, for no runtime has such a piece.
fn lengths(matrix: &Csr, kernels: u32) -> Vec<[usize; ARRAYS]> {
    let of_kernel = |place| {
        let rows = rows_of(matrix, kernels, place);
        let entries = entries_of(matrix, &rows).len();
        let bytes = |array| match array {
            VALUES => 8 * entries,
            COLUMNS => 4 * entries,
            X => 8 * matrix.columns() as usize,
            Y => 8 * rows.len(),
            _ => 4 * (rows.len() + 1),
        };
        std::array::from_fn(|array| bytes(array).max(8))
    };
    (0..kernels).map(of_kernel).collect()
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
    fn every_row_is_dealt_to_one_kernel_and_blocks_differ_by_a_row() {
        let matrix = Csr::new(1, vec![0; 8], vec![], vec![]).unwrap();
        let blocks: Vec<_> = (0..3).map(|place| rows_of(&matrix, 3, place)).collect();
        assert_eq!(blocks, [0..2, 2..4, 4..7]);
        assert_eq!(lengths(&matrix, 1), [[8, 8, 8, 56, 32]]);
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
