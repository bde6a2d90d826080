//! At which rate do kernels copy within device memory?
//!
//! Traffic: loads and stores between kernels and memory ports; none on the link.
//!
//! Unit: bytes per second, loaded and stored, as in STREAM; a size is the bytes copied within each
//! port.
//!
//! Methods: a kernel per port, from one port to all of them, and each port alone; in vectors of 256
//! bits and as a plain loop of 64 bits; with consecutive words, and with one word per 64 B. If a
//! port moves more than requested and discards the rest, the plain loop pays for it.
//!
//! Spoiled by: a runtime that places arrays of several kernels behind one port.

use crate::case::{Axes, Case};
use crate::computation::Computation;
use crate::kernel_case;
use crate::needs;
use crate::question::Question;
use lanemark_compute::{StreamCopy, Workload};
use lanemark_machine::Facts;
use lanemark_record::Quantity;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "stream_copy",
    summary: "rate of copies by kernels within device memory, by ports, vectors and strides",
    quantity: Quantity::Bandwidth,
    cases,
    plan: kernel_case::plan,
    simulated_passes: |_| 1,
    most_passes: |_| 64,
    accesses_per_pass: |case| copy(case).map_or(1, |copy| 2 * u64::from(copy.ports)),
    ask: None,
    is_usual: false,
    left_out: needs::compute_kernels,
};

/// Bytes copied within each port: long enough to hide the start.
const SIZE: u64 = 1 << 20;
/// Words of 64 bits per vector of 256 bits.
const VECTOR: u32 = 4;
/// A line of most memories.
const STRIDE: u64 = 64;

fn copy(case: &Case) -> Option<&StreamCopy> {
    match &case.computation.as_ref()?.work {
        Workload::StreamCopy(copy) => Some(copy),
        Workload::Spmv(_) => None,
    }
}

fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    let Some(runtime) = facts.runtime.as_ref().filter(|runtime| runtime.computes) else { return Vec::new() };
    let all = runtime.memory_ports;
    let doubling = std::iter::successors(Some(1_u32), |ports| ports.checked_mul(2)).take_while(|ports| *ports < all);
    let ways = |ports: u32| {
        let strided = ports == 1 || ports == all;
        let both = [VECTOR, 1].map(|vector| (ports, vector, StreamCopy::WORD_BYTES));
        both.into_iter().chain([VECTOR, 1].map(|vector| (ports, vector, STRIDE)).into_iter().filter(move |_| strided))
    };
    let together = doubling.chain([all]).flat_map(ways).map(|(ports, vector, stride)| (0, ports, vector, stride));
    // One port should be as fast as another.
    let alone = (1..all).map(|port| (port, 1, VECTOR, StreamCopy::WORD_BYTES));
    let ways: Vec<(u32, u32, u32, u64)> = together.chain(alone).collect();
    let sizes = axes.sizes.clone().unwrap_or_else(|| vec![SIZE]);
    let of_size = |size: u64| {
        ways.iter().map(move |(first_port, ports, vector_words, stride_bytes)| {
            let (first_port, ports) = (*first_port, *ports);
            let (vector_words, stride_bytes) = (*vector_words, *stride_bytes);
            let copy = StreamCopy { first_port, ports, bytes_per_port: size, stride_bytes, vector_words };
            Computation { work: Workload::StreamCopy(copy), matrix: String::new() }.case(size)
        })
    };
    sizes.into_iter().flat_map(of_size).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime_fixture;
    use lanemark_machine::TimeBase;

    #[test]
    fn a_method_names_ports_loop_and_stride_and_counts_both_directions() {
        let case = |ports, vector_words, stride_bytes| {
            let copy = StreamCopy { first_port: 0, ports, bytes_per_port: 4096, stride_bytes, vector_words };
            Computation { work: Workload::StreamCopy(copy), matrix: String::new() }.case(4096)
        };
        assert_eq!(case(1, 1, 8).method.to_string(), "stream copy 1 port plain, wait by finish");
        assert_eq!(case(32, 4, 64).method.to_string(), "stream copy 32 ports vectors of 4 every 64 B, wait by finish");
        let alone = StreamCopy { first_port: 7, ports: 1, bytes_per_port: 4096, stride_bytes: 8, vector_words: 4 };
        let alone = Computation { work: Workload::StreamCopy(alone), matrix: String::new() }.case(4096);
        assert_eq!(alone.method.to_string(), "stream copy 1 port from 7 on vectors of 4, wait by finish");
        assert_eq!((QUESTION.accesses_per_pass)(&case(32, 4, 8)) * 4096, copy(&case(32, 4, 8)).unwrap().bytes());
    }

    #[test]
    fn each_port_copies_one_mebibyte_by_default() {
        let mut facts = runtime_fixture::facts(&[]);
        let runtime = facts.runtime.as_mut().unwrap();
        (runtime.computes, runtime.memory_ports) = (true, 32);
        for (sizes, wanted) in [(None, SIZE), (Some(vec![96_000_000]), 96_000_000)] {
            let cases = cases(&facts, &Axes { sizes, ..Axes::default() });
            assert_eq!(cases.len(), 47);
            for case in &cases {
                assert_eq!((case.size, copy(case).unwrap().bytes_per_port), (wanted, wanted));
                assert!(case.room(&facts) >= wanted, "{}", case.method);
            }
            // A copy of the runtime fills the source of a real device.
            for (time_base, most) in [(TimeBase::Simulated, 512 << 20), (TimeBase::Real, 256 << 20)] {
                assert_eq!(cases[0].most_window(&Facts { time_base, ..facts.clone() }), most);
            }
        }
    }
}
