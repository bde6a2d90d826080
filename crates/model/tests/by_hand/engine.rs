//! What transfers of an engine share with other requests, and what stands in their way: caches, page walks, FIFOs.

use crate::{READ_NS, SWITCHES, WRITE_NS, assert_ns, dma, platform};
use lanemark_machine::{
    EngineJob, EngineWork, HostMemory, Partner, Pattern, Plan, Transfer, Verb, Window, Work, WriteRead, Writer,
};
use lanemark_model::{Bound, predict, shared_ceiling};
use lanemark_platform::Platform;

/// Transfers of `bytes` bytes, in a window that no core has written.
fn cold(card: &Platform, transfer: Transfer, warmup_passes: u64) -> f64 {
    let memory = HostMemory { written_by: Writer::Nobody, ..HostMemory::default() };
    let work = Work::Engines(EngineWork { jobs: vec![EngineJob::Transfer(transfer)], memory });
    predict(card, &Plan { warmup_passes, ..Plan::new(work, 1) }).unwrap().delivered_ns
}

fn host(verb: Verb, bytes: u64, count: u64, window: Window) -> Transfer {
    Transfer { card: 0, verb, partner: Partner::Host, bytes, count, window, outstanding: None }
}

#[test]
fn flows_that_share_a_link_have_its_rate_together_and_others_their_own() {
    let card = platform(SWITCHES, &[]);
    let window = Window { offset: 0, len: 1 << 16, pattern: Pattern::Sequential };
    let write = |card| Transfer { card, ..host(Verb::Store, 64, 1, window) };
    // 64 B in 84 B, at 4 ns a byte.
    let alone = 64.0 / 336e-9;
    let rate = |flows: &[Transfer]| shared_ceiling(&card, flows).unwrap();
    assert!((rate(&[write(0)]).rate.bytes_per_s() / alone - 1.0).abs() < 1e-9);
    let both = rate(&[write(0), write(1)]);
    assert!((both.rate.bytes_per_s() / alone - 1.0).abs() < 1e-9);
    assert_eq!(both.because, "2 of 2 flows share the link up from switch upper");
    // The data of a read go the other way.
    let three = rate(&[write(0), write(1), host(Verb::Load, 64, 1, window)]);
    assert!((three.rate.bytes_per_s() / (2.0 * alone) - 1.0).abs() < 1e-9);
    assert_eq!(three.because, "2 of 3 flows share the link up from switch upper; Gen1 x1, CplD of 64 B downstream");
}

/// A write of 32 B: 52 B on the link.
const HALF_LINE_NS: f64 = WRITE_NS - 336.0 + 208.0;

#[test]
fn a_partly_written_line_occupies_memory_unless_the_cache_holds_it() {
    let window = Window { offset: 0, len: 32, pattern: Pattern::Sequential };
    let writes = host(Verb::Store, 32, 3, window);
    let slow = ("memory.partial_line_ns", "900000");
    // The third write follows the second, which follows the first.
    assert_ns(cold(&platform("", &[slow]), writes, 0), HALF_LINE_NS + 2.0 * 900_000.0);
    // The cache holds the line after the first write.
    let cache = [("memory.cache_bytes", "1MiB"), ("memory.cached_read_ns", "200000")];
    let card = platform("", &[&cache[..], &[slow]].concat());
    assert_ns(cold(&card, writes, 0), HALF_LINE_NS + 900_000.0);
}

const IOMMU: &str = "
[iommu]
iotlb_entries = { value = 2, source = \"a test\" }
iotlb_ways = { value = 2, source = \"a test\" }
lookup_ns = { value = 30000, source = \"a test\" }
walk_read_ns = { value = 500000, source = \"a test\" }
walk_reads = { value = 4, source = \"a test\" }
";

/// Six reads of 64 B, one at a time, of that many pages in turn.
fn of_pages(pages: u64) -> Transfer {
    let window = Window { offset: 0, len: pages * 4096, pattern: Pattern::Strided(4096) };
    Transfer { outstanding: Some(1), ..host(Verb::Load, 64, 6, window) }
}

#[test]
fn every_read_walks_the_page_table_if_the_pages_exceed_the_iotlb() {
    let card = platform(IOMMU, &[]);
    assert_ns(cold(&card, of_pages(2), 1), 6.0 * (READ_NS + 30000.0));
    assert_ns(cold(&card, of_pages(3), 1), 6.0 * (READ_NS + 30000.0 + 4.0 * 500_000.0));
}

#[test]
fn a_card_with_ats_requests_translations_of_the_pages_that_its_cache_does_not_hold() {
    let card = platform(IOMMU, &[("dma.ats_entries", "1"), ("iommu.walk_read_ns", "0")]);
    // A request of 20 B on the link, a lookup, and a completion of 8 B, 28 B on the link.
    let request = 4.0 + 20000.0 + 80.0 + 1000.0 + 30000.0 + 112.0 + 1000.0 + 10000.0 + 4.0;
    assert_ns(cold(&card, of_pages(1), 1), 6.0 * READ_NS);
    // After a warm-up, every page is requested each time.
    assert_ns(cold(&card, of_pages(3), 1), 6.0 * READ_NS + 6.0 * request);
    // Without one, the first pass may find one page; the second finds none of the three.
    assert_ns(cold(&card, of_pages(3), 0), 6.0 * READ_NS + 5.0 * request);
}

const FIFOS: &str = "
[fifos]
ep_rx = \"memory\"
rx_bytes = { value = 4096, source = \"a test\" }
tx_bytes = { value = 4096, source = \"a test\" }
ep_rx_bytes = { value = 4096, source = \"a test\" }
ep_tx_bytes = { value = 4096, source = \"a test\" }
beat_bytes = { value = 8, source = \"a test\" }
beat_ns = { value = 1000, source = \"a test\" }
";

#[test]
fn the_user_clock_limits_writes_beyond_what_a_fifo_holds() {
    let found = dma(&platform(FIFOS, &[]), Verb::Store, 100);
    assert_eq!(found.bound, Bound::Queue, "{found:?}");
    // 8 beats a write. The FIFO holds data of 512 beats at the start, and the last beat overlaps with the last write.
    assert_ns(found.delivered_ns, WRITE_NS + (8.0 * 100.0 - 512.0 - 1.0) * 1000.0);
}

#[test]
fn a_read_behind_a_write_waits_until_the_root_complex_accepts_it() {
    let card = platform("", &[("root_complex.request_ns", "100000")]);
    let window = Window { offset: 0, len: 4096, pattern: Pattern::Sequential };
    let write = Transfer { outstanding: Some(1), ..host(Verb::Store, 64, 1, window) };
    let pairs = WriteRead { write, read: window, is_mixed: false };
    let memory = HostMemory { written_by: Writer::Nobody, ..HostMemory::default() };
    let work = Work::Engines(EngineWork { jobs: vec![EngineJob::WriteRead(pairs)], memory });
    // The write is at the root complex after 21340 ns, and the read is accepted 100 us later.
    let by_hand = 4.0 + 20000.0 + 336.0 + 1000.0 + 100_000.0 + 300_000.0 + 336.0 + 1000.0 + 10000.0 + 4.0;
    assert_ns(predict(&card, &Plan::new(work, 1)).unwrap().delivered_ns, by_hand);
}
