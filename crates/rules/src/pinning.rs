//! Pinning of pages for zero-copy transfers.

use crate::condition::with;
use crate::one_sample::{again, sample};
use crate::rule::Outcome;
use lanemark_machine::{Allocation, HostWait, QueueRequest, RuntimeCopy, Verb};
use lanemark_platform::Platform;
use lanemark_sim::SimulatedMachine;

/// Bytes of a copy.
const BYTES: u64 = 80_000;

/// A blocking copy of a runtime.
fn copy(verb: Verb, allocation: Allocation) -> QueueRequest {
    QueueRequest::Copy(RuntimeCopy { verb, bytes: BYTES, wait: HostWait::Event, allocation })
}

/// With an unpinnable last page, a zero-copy transfer fails; a staged one pins fewer pages and succeeds.
pub(crate) fn unaligned_buffers_are_staged(platform: &Platform) -> Outcome {
    let broken = unpinnable(platform, BYTES.div_ceil(4096))?;
    let (mut in_place, mut staged) = (Vec::new(), Vec::new());
    for offset in [0_u32, 8, 16, 32, 48, 64, 128] {
        let platform = with(&broken, "runtime.buffer_offset_bytes", offset.into())?;
        match sample(&platform, 0, copy(Verb::Store, Allocation::Buffer)) {
            Ok(_) => staged.push(offset),
            Err(error) if error.contains("cannot be pinned") => in_place.push(offset),
            Err(error) => return Err(error),
        }
    }
    let seen = format!("pinned and moved in place at offsets {in_place:?} B in a page, staged at {staged:?}");
    if in_place == [0, 64, 128] { Ok(seen) } else { Err(seen) }
}

/// The platform with a page of the buffer that cannot be pinned.
fn unpinnable(platform: &Platform, page: u64) -> Result<Platform, String> {
    let card = platform.card_name(0).unwrap_or("card");
    let fault =
        format!("unpinnable@{card}:{page}").parse().map_err(|error: lanemark_platform::NoFault| error.to_string())?;
    platform.with_fault(fault).map_err(|error| error.to_string())
}

/// In both directions, through buffers and through USM: the copy ends with an error that names the page, and the next copy
/// is complete.
pub(crate) fn a_page_that_cannot_be_pinned_ends_one_transfer(platform: &Platform) -> Outcome {
    let broken = unpinnable(platform, 1)?;
    let mut said = String::new();
    for allocation in [Allocation::Buffer, Allocation::Device] {
        for verb in [Verb::Load, Verb::Store] {
            let mut machine = SimulatedMachine::new(&broken).map_err(|error| error.to_string())?;
            let Err(error) = again(&mut machine, 0, copy(verb, allocation)) else {
                return Err(format!("a copy by {allocation} succeeds with an unpinnable page"));
            };
            said = error.to_string();
            let next = again(&mut machine, 0, copy(verb, allocation)).map_err(|error| error.to_string())?;
            let confirmed = next.confirmed.as_ref().map_or(0, |bytes| bytes.confirmed_bytes);
            if confirmed != BYTES {
                return Err(format!("the next copy by {allocation} delivers {confirmed} of {BYTES} B"));
            }
        }
    }
    Ok(format!("four kinds of copies fail, and each next copy is complete; the error: {said}"))
}
