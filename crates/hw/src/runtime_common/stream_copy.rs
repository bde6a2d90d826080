//! STREAM COPY: one kernel per memory port copies words from one array to another in the same port.

use super::workers::{Array, Number, WorkerSpec, Workers, WorkersSpec};
use crate::NoHostMemory;
use crate::kernel_source::stream_copy;
use crate::x86::buffer::Buffer;
use crate::x86::pattern;
use lanemark_compute::StreamCopy;
use lanemark_machine::{Confirmed, Verb};
use rustix::io::Errno;

/// Stream-copy kernels with host buffers for filling and verifying their arrays.
#[derive(Debug)]
pub(crate) struct StreamCopies<W> {
    copy: StreamCopy,
    pub(super) workers: W,
    /// Host copy of an array on the device.
    staged: Buffer,
    /// Expected contents, for the comparison.
    other: Buffer,
}

// Indices of a worker's arrays.
const FROM: usize = 0;
const TO: usize = 1;

impl<W: Workers> StreamCopies<W> {
    /// Creates the kernels and their arrays.
    ///
    /// # Errors
    /// Errors of the runtime or the system, usually too little memory.
    pub(super) fn new(
        copy: StreamCopy,
        make: impl FnOnce(WorkersSpec) -> Result<W, W::Error>,
    ) -> Result<StreamCopies<W>, W::Error> {
        let workers = make(spec(&copy))?;
        let bytes = array_bytes(&copy);
        let short = |error: Errno| NoHostMemory { bytes, because: error.to_string() };
        let buffer = || Buffer::new(bytes as usize).map_err(short);
        let (staged, other) = (buffer()?, buffer()?);
        workers.launch_once()?;
        Ok(StreamCopies { copy, workers, staged, other })
    }

    /// Whether these kernels can be reused for `copy`.
    pub(super) fn matches(&self, copy: &StreamCopy) -> bool {
        self.copy == *copy
    }

    /// Fills sources and destinations with different values that depend on `seed`.
    ///
    /// # Errors
    /// Errors of the runtime.
    pub(super) fn prepare(&mut self, seed: u64) -> Result<(), W::Error> {
        for worker in 0..self.copy.ports as usize {
            let (source, stale) = seeds(seed, worker);
            for (array, seed) in [(FROM, source), (TO, stale)] {
                pattern::fill(self.staged.bytes_mut(), seed);
                self.workers.copy_and_wait(worker, array, Verb::Store, self.staged.bytes_mut())?;
            }
        }
        Ok(())
    }

    /// Number of bytes that the last iteration copied correctly, without the gaps.
    ///
    /// # Errors
    /// Errors of the runtime.
    pub(super) fn confirmed(&mut self, seed: u64) -> Result<Confirmed, W::Error> {
        let StreamCopy { ports, bytes_per_port, stride_bytes, .. } = self.copy;
        let mut confirmed_bytes = 0;
        for worker in 0..ports as usize {
            let (source, stale) = seeds(seed, worker);
            pattern::fill(self.staged.bytes_mut(), stale);
            self.workers.copy_and_wait(worker, TO, Verb::Load, self.staged.bytes_mut())?;
            pattern::fill(self.other.bytes_mut(), source);
            let strided = |buffer: &[u8]| -> Vec<u8> {
                let word = |stride: &[u8]| stride[..StreamCopy::WORD_BYTES as usize].to_vec();
                buffer.chunks_exact(stride_bytes as usize).flat_map(word).collect()
            };
            confirmed_bytes += if stride_bytes == StreamCopy::WORD_BYTES {
                pattern::equal_bytes(self.staged.bytes(), self.other.bytes())
            } else {
                pattern::equal_bytes(&strided(self.staged.bytes()), &strided(self.other.bytes()))
            };
        }
        Ok(Confirmed { claimed_bytes: bytes_per_port * u64::from(ports), confirmed_bytes })
    }
}

/// Specification of one kernel per port, each with two arrays in its port.
fn spec(copy: &StreamCopy) -> WorkersSpec {
    let words = StreamCopy::WORD_BYTES;
    let of_port = |port| WorkerSpec {
        arrays: vec![Array { port, bytes: array_bytes(copy) as usize }; 2],
        numbers: vec![
            Number::Ulong(copy.bytes_per_port / words / u64::from(copy.vector_words)),
            Number::Ulong(copy.stride_bytes / words),
        ],
    };
    let ports = copy.first_port..copy.first_port + copy.ports;
    let source = stream_copy(copy.vector_words, copy.stride_bytes != words);
    WorkersSpec { source, workers: ports.map(of_port).collect() }
}

/// Seeds for the contents of a port's source and for the initial contents of its destination.
fn seeds(seed: u64, place: usize) -> (u64, u64) {
    let source = seed.wrapping_mul(256).wrapping_add(2 * place as u64);
    (source, source.wrapping_add(1))
}

/// Length in bytes of each array, including the gaps between words.
pub(super) fn array_bytes(copy: &StreamCopy) -> u64 {
    (copy.bytes_per_port / StreamCopy::WORD_BYTES).saturating_mul(copy.stride_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COPY: StreamCopy =
        StreamCopy { first_port: 0, ports: 2, bytes_per_port: 4096, stride_bytes: 8, vector_words: 4 };

    #[test]
    fn arrays_include_gaps_and_all_arrays_have_different_contents() {
        assert_eq!(array_bytes(&COPY), 4096);
        assert_eq!(array_bytes(&StreamCopy { stride_bytes: 32, ..COPY }), 4 * 4096);
        let all: Vec<u64> = (0..32).flat_map(|place| <[u64; 2]>::from(seeds(3, place))).collect();
        assert!(all.iter().enumerate().all(|(place, seed)| !all[..place].contains(seed)));
    }
}
