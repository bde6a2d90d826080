//! Plans on a board whose card is no model: an engine in software, and the same with a bug.

#[path = "../../adversary/tests/engines/mod.rs"]
#[expect(dead_code, reason = "not every bug changes what a simulated host sees")]
mod engines;

use engines::{Bug, Engine};
use lanemark_devices::DeviceFile;
use lanemark_dut::{Dut, Inputs, Outputs};
use lanemark_machine::{
    Access, Completion, Descriptors, DmaCall, Fence, Machine, MachineError, Partner, Pattern, Plan, Samples, Share,
    Span, Step, Stream, Transfer, Verb, Width, Window, Work,
};
use lanemark_platform::Platform;
use lanemark_sim::{CompiledCard, SimulatedMachine};
use lanemark_units::{BarOffset, MemoryType, Ticks};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Offset of the card's memory in BAR 0.
const MEMORY: u64 = 0x4000;

/// Clocks for which a slow card rests: longer than an idle card is clocked.
const RESTS: u32 = 1000;
/// An address above 4 GiB that is no memory.
const NOWHERE: u64 = 0x7f_0000_1000;

fn platform() -> Platform {
    Platform::parse("rtl/platform.toml", include_str!("../../../rtl/platform.toml")).unwrap()
}

fn machine_on(platform: &Platform, dut: impl Dut + Send + 'static) -> SimulatedMachine {
    let file = DeviceFile::parse("rtl/card.toml", include_str!("../../../rtl/card.toml")).unwrap();
    let card = CompiledCard::new(Box::new(dut), Ticks::whole_ns(16), Some(&file));
    SimulatedMachine::of_compiled(platform, card).unwrap()
}

fn machine(dut: impl Dut + Send + 'static) -> SimulatedMachine {
    machine_on(&platform(), dut)
}

fn run(machine: &mut SimulatedMachine, plan: &Plan) -> Result<Samples, MachineError> {
    let mut samples = Samples::wanted(1);
    machine.run(plan, &mut samples)?;
    Ok(samples)
}

fn error(machine: &mut SimulatedMachine, plan: &Plan) -> String {
    run(machine, plan).map(|samples| samples.confirmed).unwrap_err().to_string()
}

fn stream(verb: Verb, offset: u64, len: u64) -> Plan {
    let span = Span { at: BarOffset { bar: 0, offset }, len, memory_type: MemoryType::Uc };
    let stream = Step::Stream(Stream::over(verb, Access::Plain(Width::B4), span));
    Plan::new(vec![stream, Step::Fence(Fence::Mfence)], 3)
}

fn transfers(verb: Verb, bytes: u64, count: u64, outstanding: Option<u32>) -> Plan {
    let window = Window { offset: 3, len: 64 << 10, pattern: Pattern::Sequential };
    Plan::new(Transfer { card: 0, verb, partner: Partner::Host, bytes, count, window, outstanding }, 2)
}

/// The fault of a card at its streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Oddity {
    /// Sends nothing.
    Silent,
    /// Takes nothing.
    Deaf,
    /// Sends each TLP twice.
    Twice,
    /// Sends DWs of ones.
    Ones,
    /// Sends writes without end.
    Babbling,
    /// Has an assertion that fails.
    Asserting,
    /// Writes to an address that is no memory.
    Elsewhere,
    /// Sends nothing for some clocks after each TLP that it receives.
    Slow,
    /// Completes each load with an error status.
    Refusing,
    /// Completes loads of 8 B with 4 B.
    Splitting,
}

/// The engine with an oddity at its streams.
struct Odd {
    engine: Engine,
    oddity: Oddity,
    sent: Vec<u8>,
    again: Vec<u8>,
    /// Whether the last beat began a write, and whether it ended a TLP.
    began_write: bool,
    ended: bool,
    /// Clocks in which it is still slow, or the number of a beat.
    rests: u32,
}

impl Odd {
    fn new(oddity: Oddity) -> Odd {
        Odd {
            engine: Engine::new(Bug::None),
            oddity,
            sent: Vec::new(),
            again: Vec::new(),
            began_write: false,
            ended: true,
            rests: 0,
        }
    }
}

impl Dut for Odd {
    fn beat_bytes(&self) -> usize {
        self.engine.beat_bytes()
    }

    fn clock(&mut self, inputs: &Inputs, outputs: &mut Outputs) {
        if inputs.reset != 0 {
            *self = Odd::new(self.oddity);
        }
        let mut seen = *inputs;
        if self.oddity == Oddity::Deaf {
            seen.rx_bytes = 0;
        }
        if !self.again.is_empty() {
            // A TLP is sent again before the next one.
            seen.tx_ready = 0;
        }
        if self.oddity == Oddity::Slow {
            // Only its output waits; a TLP that has begun is sent whole.
            self.rests = if inputs.rx_bytes > 0 { RESTS } else { self.rests.saturating_sub(1) };
            if self.rests > 0 && self.ended {
                seen.tx_ready = 0;
            }
        }
        self.engine.clock(&seen, outputs);
        let mut offer = |bytes: &[u8], is_last: bool| {
            outputs.tx_data[..bytes.len()].copy_from_slice(bytes);
            (outputs.tx_bytes, outputs.tx_last) = (bytes.len() as u8, u8::from(is_last));
        };
        match self.oddity {
            Oddity::Silent => outputs.tx_bytes = 0,
            Oddity::Deaf => outputs.rx_ready = 0,
            Oddity::Ones => offer(&[0xff; 8], true),
            Oddity::Babbling => offer(&[0x40, 0, 0, 1, 1, 0, 0, 0x0f], false),
            Oddity::Elsewhere => {
                if self.began_write {
                    outputs.tx_data[..8].copy_from_slice(&NOWHERE.to_be_bytes());
                }
                if inputs.tx_ready != 0 && outputs.tx_bytes > 0 {
                    let was_last = std::mem::replace(&mut self.ended, outputs.tx_last != 0);
                    self.began_write = was_last && outputs.tx_data[0] == 0x60;
                }
            }
            Oddity::Twice if !self.again.is_empty() => {
                let len = self.again.len().min(8);
                let beat: Vec<u8> = self.again.drain(..len).collect();
                offer(&beat, self.again.is_empty());
            }
            Oddity::Twice if outputs.tx_bytes > 0 && inputs.tx_ready != 0 => {
                self.sent.extend_from_slice(outputs.beat());
                if outputs.tx_last != 0 {
                    self.again = std::mem::take(&mut self.sent);
                }
            }
            Oddity::Slow => {
                if seen.tx_ready == 0 {
                    outputs.tx_bytes = 0;
                } else if outputs.tx_bytes > 0 {
                    self.ended = outputs.tx_last != 0;
                }
            }
            Oddity::Refusing => {
                if inputs.tx_ready != 0 && outputs.tx_bytes > 0 {
                    let was_last = std::mem::replace(&mut self.ended, outputs.tx_last != 0);
                    if was_last && outputs.tx_data[0] == 0x4a {
                        // Cpl with Unsupported Request: no data follow.
                        outputs.tx_data[..8].copy_from_slice(&[0x0a, 0, 0, 0, 1, 0, 0x20, 4]);
                    } else if self.ended {
                        outputs.tx_bytes = 4;
                    }
                }
            }
            Oddity::Splitting => {
                if inputs.tx_ready != 0 && outputs.tx_bytes > 0 {
                    // The third beat has the second DW.
                    self.rests = if self.ended { 0 } else { self.rests + 1 };
                    self.ended = outputs.tx_last != 0;
                    match self.rests {
                        0 => outputs.tx_data[3] = 1,
                        1 => outputs.tx_last = 1,
                        _ => outputs.tx_bytes = 0,
                    }
                }
            }
            Oddity::Twice | Oddity::Asserting => {}
        }
    }

    fn failed_assertion(&mut self) -> Option<String> {
        (self.oddity == Oddity::Asserting).then(|| "card.sv:7: the tag is busy".to_owned())
    }
}

#[test]
fn stores_and_loads_reach_the_card_and_are_confirmed() {
    let mut machine = machine(Engine::new(Bug::None));
    let stored = run(&mut machine, &stream(Verb::Store, MEMORY, 256)).unwrap();
    assert_eq!(stored.confirmed.map(|bytes| (bytes.claimed_bytes, bytes.confirmed_bytes)), Some((256, 256)));
    let loaded = run(&mut machine, &stream(Verb::Load, MEMORY, 64)).unwrap();
    assert!(loaded.taken[0].delivered > Ticks::whole_ns(3 * 16 * 900), "16 loads, three times, one after the other");
    let traffic = loaded.traffic.unwrap();
    assert_eq!((traffic.read_tlps, traffic.completion_tlps), (48, 48));
}

#[test]
fn the_same_plan_takes_the_same_time_again() {
    // Six transfers to six places.
    let again = |verb, bytes| {
        let window = Window { offset: 3, len: 6 * bytes, pattern: Pattern::Sequential };
        let (card, partner, count, outstanding) = (0, Partner::Host, 3, None);
        Plan::new(Transfer { card, verb, partner, bytes, count, window, outstanding }, 2)
    };
    let plans = [stream(Verb::Load, MEMORY, 64), again(Verb::Load, 1000), again(Verb::Store, 77)];
    let times = |machine: &mut SimulatedMachine| -> Vec<Ticks> {
        plans.iter().map(|plan| run(machine, plan).unwrap().taken[0].delivered).collect()
    };
    let mut same = machine(Engine::new(Bug::None));
    let one = times(&mut same);
    assert_eq!(one, times(&mut same));
    assert_eq!(one, times(&mut machine(Engine::new(Bug::None))));
    let mut samples = Samples::wanted(3);
    same.run(&plans[1], &mut samples).unwrap();
    assert!(samples.taken.iter().all(|sample| *sample == samples.taken[0]), "{:?}", samples.taken);
}

#[test]
fn dma_moves_every_byte_in_both_directions() {
    let mut machine = machine(Engine::new(Bug::None));
    for bytes in [1, 3, 64, 129, 1000, 4096] {
        for verb in [Verb::Load, Verb::Store] {
            for outstanding in [None, (verb == Verb::Load).then_some(1)] {
                let samples = run(&mut machine, &transfers(verb, bytes, 3, outstanding)).unwrap();
                let confirmed = samples.confirmed.unwrap();
                assert_eq!(confirmed.claimed_bytes, confirmed.confirmed_bytes, "{verb:?} of {bytes} B");
                assert!(confirmed.claimed_bytes >= bytes);
            }
        }
    }
}

#[test]
fn a_latency_leaves_out_the_registers_between_transfers_and_a_rate_includes_them() {
    let mut machine = machine(Engine::new(Bug::None));
    let mut time = |count, outstanding| {
        let samples = run(&mut machine, &transfers(Verb::Load, 64, count, outstanding)).unwrap();
        samples.taken[0].delivered.as_ns()
    };
    let (one, ten, all) = (time(1, Some(1)), time(10, Some(1)), time(10, None));
    // Up to a clock at the edge of each.
    assert!((ten / one - 10.0).abs() < 0.2, "{one} ns, {ten} ns");
    assert!(all > ten * 1.05, "{ten} ns, {all} ns");
}

#[test]
fn a_plan_that_the_engine_cannot_make_is_refused_with_the_reason() {
    let machine = machine(Engine::new(Bug::None));
    let refused = |plan: &Plan| machine.supports(plan).unwrap_err().to_string();
    assert!(machine.supports(&transfers(Verb::Load, 4096, 1, None)).is_ok());
    assert!(refused(&transfers(Verb::Load, 4097, 1, None)).contains("its engine moves 1 B to 4KiB per transfer"));
    assert!(refused(&transfers(Verb::Load, 64, 1, Some(2))).contains("one transfer at a time"));
    let none = CompiledCard::new(Box::new(Engine::new(Bug::None)), Ticks::whole_ns(16), None);
    let bare = SimulatedMachine::of_compiled(&platform(), none).unwrap();
    assert!(bare.facts().dma.is_none());
    let because = bare.supports(&transfers(Verb::Load, 64, 1, None)).unwrap_err().to_string();
    assert!(because.contains("no section [dma]") || because.contains("no device file describes"), "{because}");
}

#[test]
fn a_platform_that_is_no_host_of_the_card_is_refused_with_what_to_change() {
    let file = DeviceFile::parse("rtl/card.toml", include_str!("../../../rtl/card.toml")).unwrap();
    let refused = |platform: Platform, period| {
        let card = CompiledCard::new(Box::new(Engine::new(Bug::None)), period, Some(&file));
        SimulatedMachine::of_compiled(&platform, card).unwrap_err().to_string()
    };
    let usual = Ticks::whole_ns(16);
    let faulty = platform().with_fault("no_completion@card:1".parse().unwrap()).unwrap();
    assert!(refused(faulty, usual).contains("no injected faults"));
    assert!(refused(platform(), Ticks::whole_ns(200)).contains("more than endpoint.ingress_ns"));
    let with_bar = |bytes| {
        let mut changed = platform();
        changed.bars[0].size_bytes.value = bytes;
        changed
    };
    assert!(refused(with_bar(27), usual).contains("a register up to 0x1c in BAR 0"));
    let card = CompiledCard::new(Box::new(Engine::new(Bug::None)), usual, Some(&file));
    assert!(SimulatedMachine::of_compiled(&with_bar(28), card).is_ok());
    let several = lanemark_platform::preset("rosta-virtex7").unwrap().unwrap();
    assert!(refused(several, usual).contains("one card"));
}

#[test]
fn a_card_may_rest_longer_than_an_idle_one_is_clocked() {
    let mut slow = machine(Odd::new(Oddity::Slow));
    let mut usual = machine(Engine::new(Bug::None));
    let plans =
        [stream(Verb::Load, MEMORY, 4), transfers(Verb::Store, 300, 1, None), transfers(Verb::Load, 300, 2, Some(1))];
    for plan in plans {
        let time = |machine: &mut SimulatedMachine| run(machine, &plan).unwrap().taken[0].delivered.as_ns();
        let (slow, usual) = (time(&mut slow), time(&mut usual));
        assert!(slow > usual + 16.0 * f64::from(RESTS), "{usual} ns, {slow} ns: {plan:?}");
    }
}

#[test]
fn a_card_that_is_faster_than_its_link_waits_for_its_buffers() {
    let platform = platform();
    let file = DeviceFile::parse("rtl/card.toml", include_str!("../../../rtl/card.toml")).unwrap();
    let card = CompiledCard::new(Box::new(Engine::new(Bug::None)), Ticks::whole_ns(1), Some(&file));
    let mut machine = SimulatedMachine::of_compiled(&platform, card).unwrap();
    let samples = run(&mut machine, &transfers(Verb::Store, 4096, 3, None)).unwrap();
    let confirmed = samples.confirmed.unwrap();
    assert_eq!(confirmed.claimed_bytes, confirmed.confirmed_bytes);
    // Writes of 128 B on Gen1 x1: 212 MB/s, less the first latency.
    let rate = 6.0 * 4096.0 / samples.taken[0].delivered.as_ns();
    assert!((0.19..0.213).contains(&rate), "{rate} GB/s");
}

#[test]
fn a_load_that_the_card_refuses_or_splits_is_no_measurement() {
    let load = |width, len| {
        let span = Span { at: BarOffset { bar: 0, offset: MEMORY }, len, memory_type: MemoryType::Uc };
        Plan::new(vec![Step::Stream(Stream::over(Verb::Load, Access::Plain(width), span))], 1)
    };
    let refused = run(&mut machine(Odd::new(Oddity::Refusing)), &load(Width::B4, 4)).unwrap_err();
    assert!(matches!(refused, MachineError::Bus(_)) && refused.to_string().contains("0xe0004000"), "{refused}");
    let split = error(&mut machine(Odd::new(Oddity::Splitting)), &load(Width::B8, 8));
    assert!(split.contains("the card completes a read of 2 DW with 1 DW"), "{split}");
}

#[test]
fn an_interrupted_run_ends_between_two_transfers() {
    let flag = Arc::new(AtomicBool::new(true));
    let mut machine = machine(Engine::new(Bug::None)).interrupted_by(flag.clone());
    let interrupted = run(&mut machine, &transfers(Verb::Store, 64, 1 << 20, None)).unwrap_err();
    assert!(matches!(interrupted, MachineError::Interrupted { .. }), "{interrupted}");
    flag.store(false, Ordering::Relaxed);
    assert!(run(&mut machine, &transfers(Verb::Store, 64, 1, None)).is_ok(), "and works afterwards");
}

#[test]
fn wrong_bytes_are_not_confirmed_and_a_wrong_number_of_bytes_is_an_error() {
    let lost = run(&mut machine(Engine::new(Bug::EnablesIgnored)), &{
        let span = Span { at: BarOffset { bar: 0, offset: MEMORY + 1 }, len: 9, memory_type: MemoryType::Uc };
        let stream = Stream::over(Verb::Store, Access::Plain(Width::B1), span);
        Plan::new(vec![Step::Stream(stream), Step::Fence(Fence::Mfence)], 1)
    });
    let bytes = lost.unwrap().confirmed.unwrap();
    assert!(bytes.confirmed_bytes < bytes.claimed_bytes, "{bytes:?}");
    let error = error(&mut machine(Engine::new(Bug::WrongLastByteEnable)), &transfers(Verb::Store, 77, 1, None));
    assert!(error.contains("B came to an end") && error.contains("fuzz-rtl"), "{error}");
}

#[test]
fn a_tag_that_is_used_twice_is_named() {
    let mut platform = platform();
    platform.link.mrrs_bytes.value = 512;
    let mut machine = machine_on(&platform, Engine::new(Bug::TagFreedEarly));
    let error = error(&mut machine, &transfers(Verb::Load, 4096, 1, None));
    assert!(error.contains("the card sends a read with tag"), "{error}");
}

#[test]
fn a_card_that_does_not_work_ends_each_run_with_what_is_wrong() {
    let store = stream(Verb::Store, MEMORY, 64);
    let load = stream(Verb::Load, MEMORY, 4);
    for (oddity, plan, says) in [
        (Oddity::Silent, &load, "the card does not complete a read of 0xe0004000 within 262144 clocks"),
        (Oddity::Deaf, &store, "the card does not take a TLP within 262144 clocks"),
        (Oddity::Twice, &load, "the card completes a read with tag 0, which is not outstanding"),
        (Oddity::Ones, &load, "malformed TLP"),
        (Oddity::Babbling, &load, "the card sends a TLP of more than 4116 B"),
        (Oddity::Asserting, &load, "an assertion of the design failed: card.sv:7: the tag is busy"),
    ] {
        let mut machine = machine(Odd::new(oddity));
        for _ in 0..2 {
            let error = error(&mut machine, plan);
            assert!(error.contains(says), "{oddity:?}: {error}");
        }
    }
}

#[test]
fn a_write_of_the_card_to_an_unmapped_address_is_an_error_of_the_bus() {
    let mut machine = machine(Odd::new(Oddity::Elsewhere));
    let error = run(&mut machine, &transfers(Verb::Store, 64, 1, None)).unwrap_err();
    assert!(matches!(error, MachineError::Bus(_)), "{error}");
    assert!(error.to_string().contains("0x7f00001000"), "{error}");
}

#[test]
fn a_payload_beyond_the_setting_of_the_host_is_named() {
    let error = error(&mut machine(Engine::new(Bug::IgnoresMps)), &transfers(Verb::Store, 512, 1, None));
    assert!(error.contains("more than Max_Payload_Size"), "{error}");
}

/// Transfers that a core requests.
fn called(verb: Verb, bytes: u64, share: Share, completion: Completion) -> Plan {
    let Work::Engines(work) = transfers(verb, bytes, 1, None).work else { unreachable!() };
    let (transfer, descriptors) = (*work.jobs[0].transfer(), Descriptors::Written(MemoryType::Uc));
    Plan::new(DmaCall { transfer, channel: 0, share, descriptors, completion }, 3)
}

#[test]
fn a_core_starts_a_transfer_by_registers_through_the_link_and_polls_until_its_end() {
    let mut machine = machine(Engine::new(Bug::None));
    for verb in [Verb::Load, Verb::Store] {
        for bytes in [64, 1000] {
            let alone = run(&mut machine, &transfers(verb, bytes, 1, (verb == Verb::Load).then_some(1))).unwrap();
            let samples = run(&mut machine, &called(verb, bytes, Share::List, Completion::Register)).unwrap();
            let confirmed = samples.confirmed.unwrap();
            assert_eq!(confirmed.claimed_bytes, confirmed.confirmed_bytes, "{verb:?} of {bytes} B");
            let (alone, called) = (alone.taken[0].delivered.as_ns() / 2.0, samples.taken[0].delivered.as_ns() / 3.0);
            // A hop of the link and the hard block each way for the last store and the last load, and the memory of the host.
            assert!(called > alone + 600.0, "{verb:?} of {bytes} B: {alone} ns alone, {called} ns called");
            let traffic = samples.traffic.unwrap();
            let requests = if verb == Verb::Load { 0 } else { bytes.div_ceil(128) };
            assert!(traffic.write_tlps >= 3 * (6 + requests), "{traffic:?}");
        }
    }
}

#[test]
fn an_interrupt_ends_a_transfer_after_its_data_and_a_missing_or_early_one_is_named() {
    let platform = platform();
    let times = platform.driver.as_ref().unwrap();
    let software = times.interrupt_ns.value + times.handler_ns.value + times.wake_ns.value;
    let mut works = machine_on(&platform, Engine::new(Bug::None));
    for verb in [Verb::Load, Verb::Store] {
        let interrupted = run(&mut works, &called(verb, 300, Share::List, Completion::Interrupt)).unwrap();
        let confirmed = interrupted.confirmed.unwrap();
        assert_eq!(confirmed.claimed_bytes, confirmed.confirmed_bytes, "{verb:?}");
        let alone = run(&mut works, &transfers(verb, 300, 1, (verb == Verb::Load).then_some(1))).unwrap();
        let (alone, each) = (alone.taken[0].delivered.as_ns() / 2.0, interrupted.taken[0].delivered.as_ns() / 3.0);
        assert!(each > alone + software.as_ns(), "{verb:?}: {alone} ns alone, {each} ns");
    }
    let plan = called(Verb::Store, 300, Share::List, Completion::Interrupt);
    let missing = error(&mut machine_on(&platform, Engine::new(Bug::NoInterrupt)), &plan);
    assert!(missing.contains("the card does not send an interrupt"), "{missing}");
    let early = error(&mut machine_on(&platform, Engine::new(Bug::InterruptFirst)), &plan);
    assert!(early.contains("the interrupt comes before the data of its transfer"), "{early}");
}

#[test]
fn a_call_that_registers_cannot_make_is_refused_with_the_reason() {
    let machine = machine_on(&Platform { driver: None, ..platform() }, Engine::new(Bug::None));
    for (share, completion, because) in [
        (Share::Call, Completion::Register, "a compiled card has no kernel driver"),
        (Share::Doorbell, Completion::Register, "no queue of descriptors"),
        (Share::List, Completion::Flag, "writes no flag"),
        (Share::List, Completion::Interrupt, "the platform has no section [driver]"),
    ] {
        let refused = machine.supports(&called(Verb::Store, 64, share, completion)).unwrap_err().to_string();
        assert!(refused.contains(because), "{refused}");
    }
}

#[test]
fn work_that_needs_a_driver_or_another_card_is_refused() {
    let machine = machine(Engine::new(Bug::None));
    let peer = Transfer {
        card: 0,
        verb: Verb::Store,
        partner: Partner::Peer { card: 1, bar: 0 },
        bytes: 64,
        count: 1,
        window: Window { offset: 0, len: 64, pattern: Pattern::Sequential },
        outstanding: None,
    };
    let because = machine.supports(&Plan::new(Work::from(peer), 1)).unwrap_err().to_string();
    assert!(because.contains("card 1 is no peer of card 0"), "{because}");
}
