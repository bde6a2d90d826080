//! Transfers that a driver requests, and launches through a runtime.

use crate::{READ_NS, WRITE_NS, assert_ns, platform, predicted};
use lanemark_machine::{
    Arguments, Completion, CoreWork, Descriptors, DmaCall, HostWait, Lane, Launch, LaunchBy, Partner, Pattern,
    Placement, QueueRequest, QueueWork, Share, Task, Transfer, Verb, Window, Work,
};
use lanemark_platform::Platform;

/// A transfer of 64 B, from its doorbell on, with a descriptor of 16 B that the card fetches.
fn call(card: &Platform, verb: Verb, completion: Completion) -> f64 {
    let window = Window { offset: 0, len: 4096, pattern: Pattern::Sequential };
    let transfer = Transfer { card: 0, verb, partner: Partner::Host, bytes: 64, count: 1, window, outstanding: None };
    let (share, descriptors) = (Share::Doorbell, Descriptors::Fetched);
    let task = Task::DmaCall(DmaCall { transfer, channel: 0, share, descriptors, completion });
    let lanes = vec![Lane { core: 0, task }];
    predicted(card, Work::Cores(CoreWork { lanes, before: Vec::new() })).delivered_ns
}

/// From the store of a doorbell register, 8 B and 32 B on the link, until the card has accepted it: half of the round
/// trip of the core, the link, one beat.
const DOORBELL_NS: f64 = 100.0 + 128.0 + 1000.0 + 10000.0 + 2.0;
/// From there until the card has the descriptor: a read of 20 B on the link, a completion of 36 B.
const FETCH_NS: f64 = 4.0 + 20000.0 + 80.0 + 1000.0 + 300_000.0 + 144.0 + 1000.0 + 10000.0 + 4.0;

#[test]
fn a_read_by_a_card_is_followed_by_its_completion_flag() {
    let card = platform("", &[("core.cached_load_ns", "5")]);
    // A write of 4 B, 24 B on the link, and a load of the flag from the cache.
    let flag = 4.0 + 20000.0 + 96.0 + 1000.0 + 400_000.0 + 5.0;
    assert_ns(call(&card, Verb::Load, Completion::Flag), DOORBELL_NS + FETCH_NS + READ_NS + flag);
}

#[test]
fn a_load_of_the_status_register_returns_after_the_data_that_the_card_wrote_before() {
    let card = platform("", &[]);
    // The first load of the status finds the transfer complete, and its data would be back after some 533 us.
    let by_hand = DOORBELL_NS + FETCH_NS + WRITE_NS + 100.0;
    assert_ns(call(&card, Verb::Store, Completion::Register), by_hand);
}

#[test]
fn the_status_register_is_loaded_until_the_read_of_a_card_has_ended() {
    let card = platform("", &[("region.registers.read_ns", "50000")]);
    // A load: 24 B to the register, one beat, and 28 B back.
    let looked = 100.0 + 96.0 + 1000.0 + 10000.0 + 50000.0 + 2.0;
    let back = 20000.0 + 112.0 + 1000.0 + 100.0;
    // The loads start when the doorbell store is acknowledged.
    let over = DOORBELL_NS + FETCH_NS + READ_NS;
    let loads = ((over - 200.0 - looked) / (looked + back)).ceil();
    assert_eq!(loads, 8.0);
    assert_ns(call(&card, Verb::Load, Completion::Register), 200.0 + (loads + 1.0) * (looked + back));
}

pub(crate) const RUNTIME: &str = "
[runtime]
submit_ns = { value = 3000000, source = \"a test\" }
return_ns = { value = 5000000, source = \"a test\" }
finish_ns = { value = 7000000, source = \"a test\" }
kernel_start_ns = { value = 11000000, source = \"a test\" }
kernel_end_ns = { value = 13000000, source = \"a test\" }
";

#[test]
fn a_launch_is_the_sum_of_software_doorbell_kernel_and_interrupt() {
    let driver = [("driver.interrupt_ns", "600000"), ("driver.handler_ns", "70"), ("driver.wake_ns", "50")];
    let card = platform(RUNTIME, &driver);
    let launch = Launch { kernels: 1, by: LaunchBy::Calls, wait: HostWait::Finish, arguments: Arguments::NONE };
    let request = QueueRequest::Launch(launch);
    let work = Work::Queue(QueueWork { core: 0, placement: Placement::Pinned, request });
    // The interrupt message has 4 B, 24 B on the link.
    let message = 20000.0 + 96.0 + 1000.0 + 600_000.0 + 70.0 + 50.0;
    let by_hand = 3e6 + DOORBELL_NS + 24e6 + message + 5e6 + 7e6;
    assert_ns(predicted(&card, work).delivered_ns, by_hand);
}
