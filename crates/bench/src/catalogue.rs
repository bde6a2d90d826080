//! The catalogue: one row per question.

use crate::question::Question;
use crate::{
    accessor_overhead, cache_residency, coherence_cost, copy_routines, core_to_core, descriptor_overhead, dma_map_cost,
    dma_or_mmio, dma_read_bandwidth, dma_read_latency, dma_read_write_mix, dma_write_bandwidth, dma_write_read_latency,
    doorbell_to_completion, driver_call_overhead, fence_cost, interrupt_latency, iotlb_reach, iotlb_thrash,
    launch_latency, loaded_latency, many_small_few_large, mmio_handshake, mmio_read_bandwidth, mmio_read_latency,
    mmio_write_bandwidth, mmio_write_latency, p2p_latency, p2p_read_bandwidth, p2p_write_bandwidth,
    partial_line_writes, relay_bandwidth, runtime_copy, shared_link, small_copies, spmv, stream_copy,
    streaming_load_bandwidth, syscall_latency, timer_cost, wc_buffers,
};

/// Every question, in the order of measurement.
pub const CATALOGUE: &[Question] = &[
    mmio_write_bandwidth::QUESTION,
    mmio_write_latency::QUESTION,
    mmio_read_latency::QUESTION,
    mmio_read_bandwidth::QUESTION,
    streaming_load_bandwidth::QUESTION,
    mmio_handshake::QUESTION,
    driver_call_overhead::QUESTION,
    dma_read_latency::QUESTION,
    iotlb_reach::QUESTION,
    iotlb_thrash::QUESTION,
    cache_residency::QUESTION,
    loaded_latency::QUESTION,
    dma_read_bandwidth::QUESTION,
    dma_write_bandwidth::QUESTION,
    partial_line_writes::QUESTION,
    dma_read_write_mix::QUESTION,
    dma_write_read_latency::QUESTION,
    doorbell_to_completion::QUESTION,
    interrupt_latency::QUESTION,
    descriptor_overhead::QUESTION,
    dma_or_mmio::QUESTION,
    p2p_latency::QUESTION,
    p2p_write_bandwidth::QUESTION,
    p2p_read_bandwidth::QUESTION,
    relay_bandwidth::QUESTION,
    shared_link::QUESTION,
    wc_buffers::QUESTION,
    fence_cost::QUESTION,
    timer_cost::QUESTION,
    syscall_latency::QUESTION,
    launch_latency::QUESTION,
    accessor_overhead::QUESTION,
    runtime_copy::QUESTION,
    many_small_few_large::QUESTION,
    small_copies::QUESTION,
    stream_copy::QUESTION,
    spmv::QUESTION,
    dma_map_cost::QUESTION,
    coherence_cost::QUESTION,
    core_to_core::QUESTION,
    copy_routines::QUESTION,
];

/// The question called `name`.
#[must_use]
pub fn question(name: &str) -> Option<&'static Question> {
    CATALOGUE.iter().find(|question| question.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for (place, row) in CATALOGUE.iter().enumerate() {
            assert!(CATALOGUE[..place].iter().all(|other| other.name != row.name));
            assert_eq!(question(row.name).map(|found| found.name), Some(row.name));
        }
    }
}
