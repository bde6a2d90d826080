//! Does an IOMMU on the way to memory change when things come, and nothing else?

use lanemark_machine::{
    Cause, Completion, Descriptors, DmaCall, Lane, Machine, Op, Partner, Pattern, Plan, Samples, Share, Transfer,
    Unsteady, Verb, Window,
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

fn run(platform: &Platform, op: Op, passes: u64) -> Samples {
    let timeout = Ticks::whole_ns(1_000_000_000);
    let plan = Plan { lanes: vec![Lane { core: 0, body: vec![op] }], timeout, ..Plan::on_one_core(Vec::new(), passes) };
    let mut samples = Samples::wanted(1);
    SimulatedMachine::new(platform).unwrap().run(&plan, &mut samples).unwrap();
    samples
}

fn transfer(verb: Verb, bytes: u64, count: u64) -> Transfer {
    let window = Window { offset: 0, len: bytes * count, pattern: Pattern::Sequential };
    Transfer { card: 0, verb, partner: Partner::Host, bytes, count, window, outstanding: None }
}

#[test]
fn every_byte_comes_to_its_place_and_later_than_without_one() {
    let (with, without) = (with_iommu(&[]), preset("card-gen5-x16").unwrap().unwrap());
    for verb in [Verb::Load, Verb::Store] {
        let op = Op::Transfer(transfer(verb, 5000, 40));
        let (translated, plain) = (run(&with, op.clone(), 1), run(&without, op, 1));
        let confirmed = translated.confirmed.unwrap();
        assert_eq!((confirmed.claimed_bytes, confirmed.confirmed_bytes), (200_000, 200_000));
        assert!(translated.taken[0].delivered > plain.taken[0].delivered, "{verb:?}");
    }
}

#[test]
fn what_waits_for_credits_behind_a_walk_waits_for_translation() {
    let slow = with_iommu(&[("iommu.walkers", "1"), ("iommu.walk_read_ns", "2000")]);
    let samples = run(&slow, Op::Transfer(transfer(Verb::Store, 4096, 64)), 1);
    let longest = samples.waits.iter().max_by_key(|wait| wait.span).unwrap();
    assert_eq!(longest.cause, Cause::Translation, "{:?}", samples.waits);
}

#[test]
fn a_core_that_is_told_of_writes_finds_them_though_their_pages_are_walked_for() {
    // A message needs no translation and would be there long before the writes.
    let slow = with_iommu(&[("iommu.walk_read_ns", "5000")]);
    for completion in [Completion::Interrupt, Completion::Flag] {
        let call = DmaCall {
            transfer: transfer(Verb::Store, 16384, 1),
            channel: 0,
            share: Share::Doorbell,
            descriptors: Descriptors::Written(MemoryType::Uc),
            completion,
        };
        let samples = run(&slow, Op::Dma(call), 1);
        // A walk of four reads for the first page of the four, and one read for each of the others at least.
        assert!(samples.taken[0].delivered > Ticks::whole_ns(20_000), "{completion:?}: {:?}", samples.taken);
        assert!(samples.confirmed.is_none_or(|bytes| bytes.claimed_bytes == bytes.confirmed_bytes));
    }
}

#[test]
fn nothing_is_skipped_and_the_reason_is_said() {
    let samples = run(&with_iommu(&[]), Op::Transfer(transfer(Verb::Store, 4096, 1000)), 100);
    let steady = samples.steady.unwrap();
    assert_eq!((steady.skipped, steady.because), (0, Some(Unsteady::Translated)));
}
