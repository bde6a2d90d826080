//! Loads of a kernel from the memory of its card.

use crate::one_sample::{delivered_ns, sample};
use crate::rule::Outcome;
use lanemark_compute::{StreamCopy, Workload};
use lanemark_machine::{Compute, HostWait, QueueRequest};
use lanemark_platform::Platform;

/// A loop of 64-bit accesses moves four times the words of one of 256-bit accesses, and takes four times as long where the
/// ports are the bound.
pub(crate) fn partially_used_words_are_loaded_whole(platform: &Platform) -> Outcome {
    let ns = |vector_words| {
        let copy = StreamCopy { first_port: 0, ports: 1, bytes_per_port: 1 << 20, stride_bytes: 8, vector_words };
        let compute = Compute { work: Workload::StreamCopy(copy), wait: HostWait::Finish };
        delivered_ns(&sample(platform, 0, QueueRequest::Compute(compute))?.1)
    };
    let (memory, kernel) = (platform.device_memory.as_ref(), platform.kernel.as_ref());
    let (Some(memory), Some(kernel)) = (memory, kernel) else {
        return Err("the card of this platform runs no kernels".to_owned());
    };
    let words = |vector_words| {
        let copy = StreamCopy { first_port: 0, ports: 1, bytes_per_port: 1 << 20, stride_bytes: 8, vector_words };
        let words =
            lanemark_compute::PortWords { port_bytes: memory.port_bytes.value, keeps: kernel.keeps_words.value };
        copy.words(words)
    };
    let (plain, vectors, times) = (words(1), words(4), ns(1)? / ns(4)?);
    let seen = format!("{plain} words of 256 bits instead of {vectors}, in {times:.3} times the time");
    if plain == 4 * vectors { Ok(seen) } else { Err(seen) }
}
