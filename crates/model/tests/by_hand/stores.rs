//! Stores of a core: store buffer, write-combining buffers and fences.
//!
//! The core has a clock of 1 GHz, and its round trip to the root complex takes 2000 ns, so that it limits.

use crate::{assert_ns, platform, predicted};
use lanemark_machine::{Access, Fence, Span, Step, Stream, Verb, Width, Work};
use lanemark_platform::Platform;
use lanemark_units::{BarOffset, MemoryType};

fn core(changes: &[(&str, &str)]) -> Platform {
    let all = [("core.clock_ghz", "1"), ("core.sfence_ns", "3"), ("root_complex.core_round_trip_ns", "2000")];
    platform("", &[&all, changes].concat())
}

/// Stores of 8 B to the memory of the card.
fn stores(access: Access, memory_type: MemoryType, len: u64) -> Stream {
    let span = Span { at: BarOffset { bar: 2, offset: 0 }, len, memory_type };
    Stream::over(Verb::Store, access, span)
}

fn combined(len: u64) -> Stream {
    stores(Access::Plain(Width::B8), MemoryType::Wc, len)
}

/// From a write of 64 B leaving the core until its acceptance: 88 B on the link, one beat.
const LINE_NS: f64 = 1000.0 + 352.0 + 1000.0 + 10000.0 + 2.0;
/// The same of 8 B: 32 B on the link.
const EIGHT_NS: f64 = 1000.0 + 128.0 + 1000.0 + 10000.0 + 2.0;

#[test]
fn a_second_line_waits_for_the_only_write_combining_buffer() {
    let card = core(&[("core.wc_buffers", "1")]);
    let found = predicted(&card, Step::Stream(combined(128)).into());
    // The first line has its eight stores after 7 ns and its buffer after a round trip; then follow seven stores.
    assert_ns(found.delivered_ns, 7.0 + 2000.0 + 7.0 + LINE_NS);
}

#[test]
fn stores_beyond_the_store_buffer_are_issued_after_the_wait_for_a_buffer() {
    let slow = [("core.wc_buffers", "1"), ("core.store_loop_cycles", "10")];
    let card = core(&[&slow[..], &[("core.store_buffer_entries", "1")]].concat());
    let found = predicted(&card, Step::Stream(combined(128)).into());
    // Of the seven stores after the first of the second line, one is in the store buffer and the next is at its entry.
    // The other five are issued every 10 ns.
    assert_ns(found.delivered_ns, 70.0 + 2000.0 + 5.0 * 10.0 + LINE_NS);
    // If all are in the store buffer, they leave every nanosecond.
    let card = core(&slow);
    let found = predicted(&card, Step::Stream(combined(128)).into());
    assert_ns(found.delivered_ns, 70.0 + 2000.0 + 7.0 + LINE_NS);
}

fn fenced(card: &Platform, passes: u64) -> f64 {
    let steps: Work = vec![Step::Stream(combined(64)), Step::Fence(Fence::Sfence)].into();
    let plan = lanemark_machine::Plan::new(steps, passes);
    lanemark_model::predict(card, &plan).unwrap().issue_ns
}

#[test]
fn a_fence_waits_until_the_line_is_acknowledged() {
    let card = core(&[]);
    assert_ns(fenced(&card, 1), 7.0 + 2000.0 + 3.0);
    assert_ns(fenced(&card, 4), 4.0 * (7.0 + 2000.0 + 3.0));
}

#[test]
fn a_fence_starts_one_step_after_the_last_store_if_the_acknowledgment_is_earlier() {
    let slow = [("core.store_loop_cycles", "10"), ("root_complex.core_round_trip_ns", "0")];
    assert_ns(fenced(&core(&slow), 1), 80.0 + 3.0);
    // A round trip as long as a step makes no difference, a longer one does.
    let slow = [("core.store_loop_cycles", "10"), ("root_complex.core_round_trip_ns", "10")];
    assert_ns(fenced(&core(&slow), 1), 80.0 + 3.0);
    let slow = [("core.store_loop_cycles", "10"), ("root_complex.core_round_trip_ns", "12")];
    assert_ns(fenced(&core(&slow), 1), 82.0 + 3.0);
}

#[test]
fn a_direct_store_to_another_line_waits_only_with_a_single_buffer() {
    let work = || Step::Stream(stores(Access::Movdiri(Width::B8), MemoryType::Wc, 128)).into();
    // 16 stores, each a round trip after the previous one.
    let one = predicted(&core(&[("core.wc_buffers", "1")]), work());
    assert_ns(one.delivered_ns, 15.0 * 2000.0 + EIGHT_NS);
    // The first store of each line need not wait: 14 round trips and the two steps of those, of which the last follows
    // nothing.
    let two = predicted(&core(&[("core.wc_buffers", "2")]), work());
    assert_ns(two.delivered_ns, 14.0 * 2000.0 + 1.0 + EIGHT_NS);
}
