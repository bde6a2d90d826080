//! How long does it take from a doorbell until the core sees the completion?
//!
//! Traffic: the `MWr` of the doorbell downstream; the device's own reads or writes of one transfer;
//! then the notification: a word, a message, or the core's loads. Fetched descriptors are read
//! before the transfer.
//!
//! Unit: nanoseconds, round trip, from the store to the doorbell until the core continues.
//!
//! Methods: `flag`, a word in host memory that the core polls; `register`, a register of the device
//! that it polls over the link; `interrupt`, a message whose handler wakes the thread. The
//! descriptors are already in the device, or it fetches them (`fetched`). If a device only fetches
//! descriptors, `interrupt` is measured with fetched ones, too. On an NVMe drive a descriptor is a
//! command, and the time begins with the first store of the command, before the doorbell.
//!
//! Spoiled by: other users of the links; a deep idle state of the core before the interrupt.
//!
//! Method: pages are pinned and the list is built in advance; each transfer begins after the
//! notification of the previous one. With `--channels`, that many threads run concurrently, each
//! with a core and a channel, until the last of them is notified.

use crate::dma_call::{self, Asked, WRITTEN};
use crate::needs;
use crate::question::Question;
use lanemark_machine::{Completion, Descriptors, Facts, Share, Verb};
use lanemark_record::Quantity;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "doorbell_to_completion",
    summary: "time from a doorbell until the core sees the completion, by size",
    quantity: Quantity::RoundTripLatency,
    cases: |facts, axes| {
        let of = |verb| dma_call::cases(facts, axes, verb, &ways(facts), &[64, 4096, 65536]);
        [of(Verb::Store), of(Verb::Load)].concat()
    },
    plan: dma_call::plan,
    simulated_passes: |_| 4,
    most_passes: |_| 4096,
    accesses_per_pass: |_| 1,
    ask: None,
    is_usual: true,
    left_out: needs::dma_driver,
};

/// The methods of a target.
fn ways(facts: &Facts) -> Vec<Asked> {
    let fetches_only = facts.dma.is_some_and(|dma| dma.fetches_only);
    let by_interrupt = (Share::Doorbell, Descriptors::Fetched, Completion::Interrupt);
    WAYS.into_iter().chain(fetches_only.then_some(by_interrupt)).collect()
}

const WAYS: [Asked; 4] = [
    (Share::Doorbell, WRITTEN, Completion::Flag),
    (Share::Doorbell, Descriptors::Fetched, Completion::Flag),
    (Share::Doorbell, WRITTEN, Completion::Register),
    (Share::Doorbell, WRITTEN, Completion::Interrupt),
];
