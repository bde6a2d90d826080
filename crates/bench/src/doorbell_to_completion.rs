//! How long from ringing a device's doorbell until the core knows that it is done?
//!
//! Traffic: the `MWr` of the doorbell downstream; the device's own reads or writes of one transfer; then the word, the message
//! or the loads by which the core comes to know of the end. Where descriptors are fetched, their reads before the transfer.
//! Unit: nanoseconds, round trip, from the store to the doorbell until the core goes on.
//! Ways: `flag`, a word in host memory that the core polls; `register`, a register of the device that it polls over the link;
//! `interrupt`, a message whose handler wakes the thread. The descriptors are in the device already, or it fetches them
//! (`fetched`).
//! Spoiled by: whatever else uses the links; a core that sleeps deeply when it is interrupted.
//! Method: pages are pinned and the list is built before; one transfer, and the next when the core knows of its end. With
//! `--channels`, so many threads do it at once, a core and a channel each: until the last of them knows.

use crate::dma_call::{self, Asked, WRITTEN};
use crate::needs;
use crate::question::Question;
use lanemark_machine::{Completion, Descriptors, Share, Verb};
use lanemark_record::Quantity;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "doorbell_to_completion",
    summary: "time from ringing a device until the core knows that its transfer is done, by size",
    quantity: Quantity::RoundTripLatency,
    cases: |facts, axes| {
        let of = |verb| dma_call::cases(facts, axes, verb, &WAYS, &[64, 4096, 65536]);
        [of(Verb::Store), of(Verb::Load)].concat()
    },
    plan: dma_call::plan,
    simulated_passes: |_| 4,
    most_passes: |_| 4096,
    accesses_per_pass: |_| 1,
    ask: None,
    is_usual: true,
    left_out: needs::an_engine_with_a_driver,
};

const WAYS: [Asked; 4] = [
    (Share::Doorbell, WRITTEN, Completion::Flag),
    (Share::Doorbell, Descriptors::Fetched, Completion::Flag),
    (Share::Doorbell, WRITTEN, Completion::Register),
    (Share::Doorbell, WRITTEN, Completion::Interrupt),
];
