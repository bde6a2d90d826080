//! STREAM COPY: a kernel for each port, which copies words from one array to another in the same port.

#![allow(unsafe_code)]

use super::OpenClError;
use super::context::Context;
use super::memory::Memory;
use super::program::Program;
use super::workers::{Worker, begin};
use crate::x86::buffer::Buffer;
use crate::x86::pattern;
use lanemark_compute::StreamCopy;
use lanemark_machine::{Confirmed, Verb};
use rustix::io::Errno;
use std::ptr;
use std::sync::Arc;

/// Its kernels and arrays.
#[derive(Debug)]
pub(super) struct StreamCopies {
    copy: StreamCopy,
    pub(super) workers: Vec<Worker>,
    /// What is brought to an array, and what one is held against.
    staged: Buffer,
    other: Buffer,
}

/// Where the arrays stand among a worker's.
const FROM: usize = 0;
const TO: usize = 1;

impl StreamCopies {
    /// Words that kernels load at once.
    pub(super) const VECTORS: [u32; 5] = [1, 2, 4, 8, 16];

    /// Builds the kernel and makes the arrays.
    ///
    /// # Errors
    /// What the runtime or the system said, mostly that memory is short.
    pub(super) fn new(context: &Arc<Context>, copy: StreamCopy) -> Result<StreamCopies, OpenClError> {
        let bytes = array_bytes(&copy);
        let all = bytes.saturating_mul(2).saturating_mul(u64::from(copy.ports));
        if all > context.device_bytes {
            return Err(context.too_much(all, "two arrays in each port are more than there is".to_owned()));
        }
        let short = |error: Errno| OpenClError::NoHostMemory { bytes, because: error.to_string() };
        let buffer = || Buffer::new(bytes as usize).map_err(short);
        let program = Program::built(context, &source(&copy))?;
        let words = StreamCopy::WORD_BYTES;
        let worker = |port| {
            let array = || Memory::in_port(context, port, bytes as usize);
            let worker = program.kernel(c"stream_copy")?;
            worker.give_number(2, copy.bytes_per_port / words / u64::from(copy.vector_words))?;
            worker.give_number(3, copy.stride_bytes / words)?;
            Worker::new(context, worker, vec![array()?, array()?])
        };
        let ports = copy.first_port..copy.first_port + copy.ports;
        let workers = ports.map(worker).collect::<Result<Vec<_>, _>>()?;
        begin(&workers)?;
        Ok(StreamCopies { copy, workers, staged: buffer()?, other: buffer()? })
    }

    /// Whether they are of this work.
    pub(super) fn are_of(&self, copy: &StreamCopy) -> bool {
        self.copy == *copy
    }

    /// Fills every array: sources with words that another `seed` makes others, destinations with other ones.
    ///
    /// # Errors
    /// What the runtime said.
    pub(super) fn prepare(&mut self, seed: u64) -> Result<(), OpenClError> {
        for (place, worker) in self.workers.iter().enumerate() {
            let (source, stale) = seeds(seed, place);
            for (array, seed) in [(FROM, source), (TO, stale)] {
                pattern::fill(self.staged.bytes_mut(), seed);
                let all = ptr::slice_from_raw_parts_mut(self.staged.at(0), self.staged.bytes().len());
                let to = worker.arrays[array].at();
                // SAFETY: both ends have as many bytes.
                unsafe { worker.commands.bring("filling memory of the device", Verb::Store, all, to) }?;
            }
        }
        Ok(())
    }

    /// How many bytes of words the last pass has put where it was to put them.
    ///
    /// # Errors
    /// What the runtime said.
    pub(super) fn confirmed(&mut self, seed: u64) -> Result<Confirmed, OpenClError> {
        let StreamCopy { ports, bytes_per_port, stride_bytes, .. } = self.copy;
        let mut confirmed_bytes = 0;
        for (place, worker) in self.workers.iter().enumerate() {
            let (source, stale) = seeds(seed, place);
            pattern::fill(self.staged.bytes_mut(), stale);
            let all = ptr::slice_from_raw_parts_mut(self.staged.at(0), self.staged.bytes().len());
            let from = worker.arrays[TO].at();
            // SAFETY: both ends have as many bytes.
            unsafe { worker.commands.bring("reading memory of the device back", Verb::Load, all, from) }?;
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

/// Seeds of a port's source and of what is in its destination before.
fn seeds(seed: u64, place: usize) -> (u64, u64) {
    let source = seed.wrapping_mul(256).wrapping_add(2 * place as u64);
    (source, source.wrapping_add(1))
}

/// Bytes of each array, gaps between words too.
pub(super) fn array_bytes(copy: &StreamCopy) -> u64 {
    (copy.bytes_per_port / StreamCopy::WORD_BYTES).saturating_mul(copy.stride_bytes)
}

/// A plain loop over neighbouring words or vectors of them; or one over words with gaps, as many at once.
fn source(copy: &StreamCopy) -> String {
    let vector = if copy.vector_words == 1 { String::new() } else { copy.vector_words.to_string() };
    let (word, body) = if copy.stride_bytes == StreamCopy::WORD_BYTES {
        (format!("ulong{vector}"), "to[i] = from[i];".to_owned())
    } else {
        let at_once = copy.vector_words;
        let body = format!(
            "ulong words[{at_once}];\n\
             #pragma unroll\n\
             for (uint n = 0; n < {at_once}; n++) words[n] = from[(i * {at_once} + n) * stride];\n\
             #pragma unroll\n\
             for (uint n = 0; n < {at_once}; n++) to[(i * {at_once} + n) * stride] = words[n];"
        );
        ("ulong".to_owned(), body)
    };
    format!(
        "__kernel void stream_copy(__global const {word} *restrict from, __global {word} *restrict to, ulong groups, ulong stride)\n\
         {{\nfor (ulong i = 0; i < groups; i++) {{\n{body}\n}}\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const COPY: StreamCopy =
        StreamCopy { first_port: 0, ports: 2, bytes_per_port: 4096, stride_bytes: 8, vector_words: 4 };

    #[test]
    fn words_without_gaps_are_loaded_as_a_vector_and_words_with_gaps_one_by_one() {
        assert!(source(&COPY).contains("__global const ulong4 *restrict from"));
        assert!(source(&StreamCopy { vector_words: 1, ..COPY }).contains("__global const ulong *restrict from"));
        let gaps = source(&StreamCopy { stride_bytes: 32, ..COPY });
        assert!(
            gaps.contains("const ulong *restrict") && gaps.contains("words[n] = from[(i * 4 + n) * stride]"),
            "{gaps}"
        );
    }

    #[test]
    fn gaps_belong_to_an_array_and_no_two_arrays_hold_the_same() {
        assert_eq!(array_bytes(&COPY), 4096);
        assert_eq!(array_bytes(&StreamCopy { stride_bytes: 32, ..COPY }), 4 * 4096);
        let all: Vec<u64> = (0..32).flat_map(|place| <[u64; 2]>::from(seeds(3, place))).collect();
        assert!(all.iter().enumerate().all(|(place, seed)| !all[..place].contains(seed)));
    }
}
