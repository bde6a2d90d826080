//! Kernels on the memory of a card, limited by their initiation interval.

use crate::{assert_ns, platform, predicted};
use lanemark_compute::{Csr, Spmv, StreamCopy, Workload};
use lanemark_machine::{Compute, HostWait, Placement, QueueRequest, QueueWork, Work};
use lanemark_model::Bound;

/// A kernel at 1 GHz that starts an iteration every 1000 ns. Each word takes its port 2 ns, and arrives 300 ns later.
const KERNEL: &str = "
[device_memory]
ports = { value = 4, source = \"a test\" }
port_bytes = { value = 32, source = \"a test\" }
word_ns = { value = 2, source = \"a test\" }
read_ns = { value = 300, source = \"a test\" }
turnaround_ns = { value = 20, source = \"a test\" }

[kernel]
clock_ghz = { value = 1, source = \"a test\" }
interval_cycles = { value = 1000, source = \"a test\" }
pipeline_cycles = { value = 70, source = \"a test\" }
";

/// From the first word of the last iteration until its result is stored: the word, the pipeline, the turnaround and
/// the store.
const LAST_NS: f64 = 2.0 + 300.0 + 70.0 + 20.0 + 2.0;

#[track_caller]
fn assert_interval(work: Workload, by_hand: f64) {
    let request = QueueRequest::Compute(Compute { work, wait: HostWait::Finish });
    let card = platform(&format!("{}{KERNEL}", crate::calls::RUNTIME), &[]);
    let found = predicted(&card, Work::Queue(QueueWork { core: 0, placement: Placement::Pinned, request }));
    assert_eq!(found.bound, Bound::Interval, "{found:?}");
    assert_ns(found.delivered_ns, by_hand);
}

#[test]
fn a_stream_copy_starts_one_iteration_every_interval() {
    for (vector_words, steps) in [(1, 100.0), (4, 25.0)] {
        let copy = StreamCopy { first_port: 0, ports: 1, bytes_per_port: 800, stride_bytes: 8, vector_words };
        assert_interval(Workload::StreamCopy(copy), steps * 1000.0 + LAST_NS);
    }
}

#[test]
fn empty_rows_of_a_matrix_take_an_iteration_each() {
    // One entry in the first of 100 rows.
    let starts: Vec<u32> = std::iter::once(0).chain([1; 100]).collect();
    let matrix = Csr::new(1, starts, vec![0], vec![1.0]).unwrap();
    let spmv = Spmv { matrix: matrix.into(), kernels: 1, ports_each: 4 };
    assert_interval(Workload::Spmv(spmv), 100.0 * 1000.0 + LAST_NS);
}
