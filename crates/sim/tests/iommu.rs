//! An IOMMU changes the timing of transfers, and nothing else.

use lanemark_machine::{
    Cause, Completion, Descriptors, DmaCall, Machine, Partner, Pattern, Plan, Samples, Share, Transfer, Unsteady, Verb,
    Window, Work,
};
use lanemark_platform::{Origin, Platform, preset};
use lanemark_sim::SimulatedMachine;
use lanemark_units::{MemoryType, Ticks};

fn with_iommu(set: &[(&str, &str)]) -> Platform {
    let preset = preset("card-gen5-x16-iommu").unwrap().unwrap();
    set.iter().fold(preset, |platform, (key, value)| {
        platform.with_text(key, value, Origin::Assumed("a test".to_owned())).unwrap()
    })
}

fn run(platform: &Platform, work: impl Into<Work>, passes: u64) -> Samples {
    let timeout = Ticks::whole_ns(1_000_000_000);
    let plan = Plan { timeout, ..Plan::new(work, passes) };
    let mut samples = Samples::wanted(1);
    SimulatedMachine::new(platform).unwrap().run(&plan, &mut samples).unwrap();
    samples
}

fn transfer(verb: Verb, bytes: u64, count: u64) -> Transfer {
    let window = Window { offset: 0, len: bytes * count, pattern: Pattern::Sequential };
    Transfer { card: 0, verb, partner: Partner::Host, bytes, count, window, outstanding: None }
}

#[test]
fn every_byte_arrives_but_later_than_without_an_iommu() {
    let (with, without) = (with_iommu(&[]), preset("card-gen5-x16").unwrap().unwrap());
    for verb in [Verb::Load, Verb::Store] {
        let op = transfer(verb, 5000, 40);
        let (translated, plain) = (run(&with, op, 1), run(&without, op, 1));
        let confirmed = translated.confirmed.unwrap();
        assert_eq!((confirmed.claimed_bytes, confirmed.confirmed_bytes), (200_000, 200_000));
        assert!(translated.taken[0].delivered > plain.taken[0].delivered, "{verb:?}");
    }
}

#[test]
fn a_credit_stall_behind_a_walk_is_charged_to_translation() {
    let slow = with_iommu(&[("iommu.walkers", "1"), ("iommu.walk_read_ns", "2000")]);
    let samples = run(&slow, transfer(Verb::Store, 4096, 64), 1);
    let longest = samples.waits.iter().max_by_key(|wait| wait.span).unwrap();
    assert_eq!(longest.cause, Cause::Translation, "{:?}", samples.waits);
}

#[test]
fn a_notified_core_sees_the_writes_even_during_walks() {
    // A message needs no translation and would otherwise arrive long before the writes.
    let slow = with_iommu(&[("iommu.walk_read_ns", "5000")]);
    for completion in [Completion::Interrupt, Completion::Flag] {
        let call = DmaCall {
            transfer: transfer(Verb::Store, 16384, 1),
            channel: 0,
            share: Share::Doorbell,
            descriptors: Descriptors::Written(MemoryType::Uc),
            completion,
        };
        let samples = run(&slow, call, 1);
        // A walk of four reads for the first page of the four, and one read for each of the others at least.
        assert!(samples.taken[0].delivered > Ticks::whole_ns(20_000), "{completion:?}: {:?}", samples.taken);
        assert!(samples.confirmed.is_none_or(|bytes| bytes.claimed_bytes == bytes.confirmed_bytes));
    }
}

#[test]
fn no_steady_state_is_skipped_and_the_reason_is_reported() {
    let samples = run(&with_iommu(&[]), transfer(Verb::Store, 4096, 1000), 100);
    let steady = samples.steady.unwrap();
    assert_eq!((steady.skipped, steady.because), (0, Some(Unsteady::Translated)));
}
