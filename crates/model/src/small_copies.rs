//! Copies of many pieces through a runtime: the core and the card work at the same time.
//!
//! | part | time |
//! | --- | --- |
//! | core | costs of runtime and driver, as in `runtime.rs`: for each piece of a loop, once for a batch or a kernel |
//! | first piece | as in `dma_call.rs`, from its doorbell until the core is notified |
//! | further pieces | what further transfers of a stream add, as in `transfer.rs`; at least the fetches of their descriptors |
//! | kernel | its start before the first piece, its end after the last |
//!
//! The time is that of the slower one: of the core until the last doorbell, or of the card from the first one. Where the
//! two are about equal, or descriptors are fetched for several pieces, no term has the effect of one on the other, so the
//! prediction has no lead there.

use crate::bound::Bound;
use crate::bounds::Largest;
use crate::dma_call;
use crate::prediction::Prediction;
use crate::runtime::{Core, HOLDS_FOR};
use crate::transfer;
use lanemark_machine::{
    Completion, CopyBy, Descriptors, DmaCall, Partner, Pattern, Plan, Share, SmallCopies, Transfer, Verb, Window,
    Writer,
};
use lanemark_platform::{Platform, Runtime};
use lanemark_units::MemoryType;

/// Bytes of a line that a core copies.
const LINE: u64 = 64;
/// Ratio of the times of card and core from which on one of them hides the other.
const CLEAR: f64 = 1.25;

/// Predicts `passes` iterations of `asked`.
pub(crate) fn predict(platform: &Platform, asked: &SmallCopies, passes: u64) -> Option<Prediction> {
    let is_possible = (1..=SmallCopies::MOST_COPIES).contains(&asked.count)
        && asked.bytes > 0
        && asked.memory_bytes() <= SmallCopies::MOST_BYTES
        && passes > 0;
    if !is_possible || asked.by == CopyBy::Stores {
        return None;
    }
    let core = Core::of(platform)?;
    let (runtime, driver) = (core.runtime, core.driver);
    let (pieces, is_store) = (f64::from(asked.count), asked.verb == Verb::Store);
    let is_packed = asked.by == CopyBy::Packed;
    let transfer = transfer_of(asked);
    if transfer.window.offset + transfer.window.len > platform.bytes_for_plans() {
        return None;
    }
    let is_kernel = asked.by == CopyBy::InPlace;
    let descriptors = if is_kernel { Descriptors::Written(MemoryType::Uc) } else { Descriptors::Fetched };
    let completion = Completion::Interrupt;
    let one = Transfer { count: 1, ..transfer };
    let call = DmaCall { transfer: one, channel: 0, share: Share::List, descriptors, completion };
    let rung = if is_kernel { dma_call::rung_by_kernel(platform, &call)? } else { dma_call::rung(platform, &call)? };

    // Software.
    let block = u64::from(platform.dma.as_ref()?.descriptor_bytes.value);
    let start = platform.memory.as_ref()?.address_bytes.value;
    let blocks = |nth: u64| {
        let at = start + transfer.window.place(nth, transfer.bytes);
        (at + transfer.bytes - 1) / block - at / block + 1
    };
    let all_blocks: u64 = (0..transfer.count).map(blocks).sum();
    let build = |blocks: u64| core.ns(driver.build_descriptor_ns.value) * blocks as f64;
    let submit = core.ns(runtime.submit_ns.value);
    let copy = submit + core.ns(runtime.usm_copy_ns.value);
    let list = core.ns(runtime.copy_entry_ns.value) * pieces;
    let call_ns = core.ns(driver.call_ns.value);
    let kernel = (runtime.kernel_start_ns.value + runtime.kernel_end_ns.value).as_ns();
    let packing = core.ns(runtime.copy_line_ns.value) * (asked.bytes.div_ceil(LINE) * u64::from(asked.count)) as f64;
    let returns = core.ns(runtime.return_ns.value) + core.ns(runtime.finish_ns.value);
    let round_trip = core.round_trip_ns;

    // What further pieces take on the card.
    let of_stream = |count: u64| {
        let plan = Plan::new(Transfer { count, ..transfer }, 1);
        let plan = Plan { warmup_passes: 1, ..plan };
        transfer::predict(platform, &Transfer { count, ..transfer }, 1, &plan, Writer::Core)
    };
    let more_ns = of_stream(transfer.count)?.delivered_ns - of_stream(1)?.delivered_ns;
    let fetched_ns = if is_kernel { 0.0 } else { fetches(platform, &call, all_blocks)? };
    let device = Largest::of([(rung.known.bound, more_ns), (Bound::Descriptors, fetched_ns)]);

    // From the first instruction to the first doorbell, from it to the last, and until the core may wait.
    let (first, to_last, rest, notice) = match asked.by {
        CopyBy::Loop => {
            let each = copy + call_ns + round_trip + build(all_blocks) / pieces;
            (copy + call_ns / 2.0 + build(blocks(0)), each * (pieces - 1.0), call_ns / 2.0, rung.known.ns)
        }
        CopyBy::Batch => (copy + list + call_ns / 2.0 + build(all_blocks), 0.0, call_ns / 2.0, rung.known.ns),
        CopyBy::InPlace => (submit + list, 0.0, 0.0, rung.known.ns + kernel),
        CopyBy::Packed | CopyBy::Stores => (0.0, 0.0, 0.0, 0.0),
    };
    let (software, by_core, by_card) = if is_packed {
        let copied = copy + call_ns / 2.0 + build(all_blocks);
        let launched = submit + list;
        let notice_ns = rung.known.ns - rung.moved_ns;
        if is_store {
            // The kernel waits for the copy, and for its own doorbell.
            let bell = packing + copied;
            let second = bell + round_trip + call_ns / 2.0 + launched;
            (second, second + rung.bell_ns + kernel + notice_ns, bell + rung.moved_ns + kernel + notice_ns)
        } else {
            // The copy waits for the kernel, and for its own doorbell.
            let bell = launched + round_trip + copied;
            (bell + call_ns / 2.0, bell + rung.known.ns, launched + kernel + rung.known.ns)
        }
    } else {
        let end = first + to_last;
        (end + rest, end + notice, first + notice + device.ns)
    };
    let known = by_core.max(by_card);
    let awake = core.woken(software + round_trip, known);
    let unpack = if is_packed && !is_store { packing } else { 0.0 };
    let ns = awake + returns + unpack;
    let terms = [
        (Bound::Runtime, software + returns + if is_packed { packing } else { 0.0 }),
        (device.bound, rung.known.ns + device.ns),
        (Bound::Kernels, if is_kernel || is_packed { kernel } else { 0.0 }),
    ];
    let clear = by_core.max(by_card) / by_core.min(by_card) >= CLEAR || asked.count == 1;
    let is_alone = asked.by != CopyBy::Loop && asked.by != CopyBy::Batch || asked.count == 1;
    let lead = if clear && is_alone { rung.known.lead() } else { 1.0 };
    let ns = ns * passes as f64;
    Some(Prediction { issue_ns: ns, delivered_ns: ns, bound: Largest::of(terms).bound, lead, holds_for: HOLDS_FOR })
}

/// The transfers of the card: the pieces, or the packed buffer behind them.
fn transfer_of(asked: &SmallCopies) -> Transfer {
    let verb = if asked.verb == Verb::Store { Verb::Load } else { Verb::Store };
    let all = Transfer {
        card: 0,
        verb,
        partner: Partner::Host,
        bytes: asked.bytes,
        count: asked.count.into(),
        window: Window { offset: 0, len: asked.memory_bytes(), pattern: Pattern::Strided(asked.distance_bytes()) },
        outstanding: None,
    };
    if asked.by != CopyBy::Packed {
        return all;
    }
    let (offset, len) = (asked.memory_bytes().next_multiple_of(Runtime::PAGE_BYTES), asked.bytes_in_all());
    Transfer { bytes: len, count: 1, window: Window { offset, len, pattern: Pattern::Sequential }, ..all }
}

/// Least time to fetch all descriptors but those that are fetched with the first.
fn fetches(platform: &Platform, call: &DmaCall, all_blocks: u64) -> Option<f64> {
    let depth = u64::from(platform.dma.as_ref()?.prefetch_descriptors.value).max(1);
    let by_kernel = DmaCall { descriptors: Descriptors::Written(MemoryType::Uc), ..*call };
    let round_trip =
        dma_call::rung(platform, call)?.known.ns - dma_call::rung_by_kernel(platform, &by_kernel)?.known.ns;
    Some(all_blocks.saturating_sub(depth) as f64 / depth as f64 * round_trip.max(0.0))
}
