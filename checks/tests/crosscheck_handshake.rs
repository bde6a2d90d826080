//! Comparison of formula and simulation for requests of a core to a device: push, poll, fetch.
//!
//! Both agree to the tick, whenever the work of the device ends. Without the work, a request takes between two and
//! three read latencies.

mod random_platform;

use lanemark_machine::{Access, Handshake, Machine, Plan, Samples, Span, Step, Stream, Verb, Width};
use lanemark_model::predict;
use lanemark_platform::{Platform, RegionKind, preset};
use lanemark_sim::SimulatedMachine;
use lanemark_units::{BarOffset, MemoryType, Ticks};
use random_platform::{Random, set};

/// A request of `len` bytes through the first register region.
fn request(platform: &Platform, memory_type: MemoryType, access: Access, len: u64, busy: Ticks) -> Handshake {
    let region = platform.regions.iter().find(|region| region.kind.value == RegionKind::Registers).unwrap();
    let at = |offset| BarOffset { bar: region.bar.value as u8, offset: region.offset_bytes.value + offset };
    Handshake { data: Span { at: at(64), len, memory_type }, access, status: at(8), busy }
}

fn simulated(platform: &Platform, plan: &Plan) -> (Ticks, Samples) {
    let mut samples = Samples::wanted(1);
    SimulatedMachine::new(platform).unwrap().run(plan, &mut samples).unwrap_or_else(|error| panic!("{error}"));
    (samples.taken[0].delivered, samples)
}

fn predicted(platform: &Platform, plan: &Plan) -> Ticks {
    Ticks::from_ns(predict(platform, plan).unwrap().delivered_ns).unwrap()
}

/// Latency of a load of the status register.
fn latency(platform: &Platform) -> Ticks {
    let Handshake { status, .. } = request(platform, MemoryType::Uc, Access::Plain(Width::B8), 8, Ticks::ZERO);
    let span = Span { at: status, len: 8, memory_type: MemoryType::Uc };
    simulated(platform, &Plan::new(Step::Stream(Stream::over(Verb::Load, Access::Plain(Width::B8), span)), 1)).0
}

/// A preset with registers, in which about half of the latencies are random.
fn platform(random: &mut Random) -> Platform {
    let mut platform = preset(random.pick(&["tacc-stratix4", "card-gen5-x16"])).unwrap().unwrap();
    let numbers = [
        ("root_complex.core_round_trip_ns", 10.0, 500.0),
        ("link.latency_ns", 20.0, 500.0),
        ("endpoint.ingress_ns", 5.0, 300.0),
        ("endpoint.egress_ns", 5.0, 300.0),
        ("region.registers.read_ns", 5.0, 500.0),
        ("region.registers.beat_ns", 0.5, 20.0),
        ("core.sfence_ns", 1.0, 20.0),
    ];
    for (key, least, most) in numbers {
        if random.below(2) == 0 {
            set(&mut platform, key, random.between(least, most));
        }
    }
    // Half of the core's round trip is a whole tick.
    let round_trip = &mut platform.root_complex.core_round_trip_ns.value;
    round_trip.0 -= round_trip.0 % 2;
    platform
}

#[test]
fn formula_and_simulation_agree_to_the_tick_whenever_the_work_ends() {
    let mut random = Random(22);
    let eight = Access::Plain(Width::B8);
    for nth in 0..400 {
        let platform = platform(&mut random);
        let (memory_type, access, len) = random.pick(&[
            (MemoryType::Uc, eight, 8),
            (MemoryType::Uc, eight, 64),
            (MemoryType::Wc, eight, 8),
            (MemoryType::Wc, eight, 64),
            (MemoryType::Wc, Access::NonTemporal(Width::B16), 64),
        ]);
        let busy = if nth % 8 == 0 { Ticks::ZERO } else { Ticks(random.below(8192 * 1000)) };
        let plan = Plan::new(request(&platform, memory_type, access, len, busy), 1 + random.below(3));
        let (simulated, samples) = simulated(&platform, &plan);
        assert_eq!(simulated, predicted(&platform, &plan), "{nth}: {plan:?} on {}", platform.name);
        let path: Ticks = samples.path.iter().map(|share| share.span).sum();
        assert_eq!(path, simulated, "{nth}: the critical path adds up; {plan:?} on {}", platform.name);
    }
}

/// The shortest and the longest time that a request adds to the work of the device.
fn added(platform: &Platform) -> [Ticks; 2] {
    let one = latency(platform);
    let times = (0..64).map(|part| {
        let busy = Ticks(one.0 * part / 64);
        let plan = Plan::new(request(platform, MemoryType::Uc, Access::Plain(Width::B8), 8, busy), 1);
        simulated(platform, &plan).0 - busy
    });
    let all: Vec<Ticks> = times.collect();
    [*all.iter().min().unwrap(), *all.iter().max().unwrap()]
}

#[test]
fn the_time_that_a_request_adds_varies_by_one_read_latency() {
    let mut random = Random(20);
    for _ in 0..20 {
        let platform = platform(&mut random);
        let (one, [least, most]) = (latency(&platform), added(&platform));
        assert!(most - least <= one && most - least > one - Ticks(one.0 / 30), "{least} to {most}, {one}");
    }
}

#[test]
fn a_register_that_is_read_in_no_time_costs_two_to_three_read_latencies() {
    let mut tacc = preset("tacc-stratix4").unwrap().unwrap();
    let [least, most] = added(&tacc);
    let one = latency(&tacc);
    assert!(least < one * 2 && most < one * 3, "a push does not read: {least} to {most}, {one}");
    set(&mut tacc, "region.registers.read_ns", 0.0);
    let ([least, most], one) = (added(&tacc), latency(&tacc));
    let about = |found: Ticks, times: f64| (found.as_ns() / one.as_ns() - times).abs() < 0.06;
    assert!(about(least, 2.0) && about(most, 3.0), "{least} to {most}, {one}");
}

#[test]
fn only_the_status_is_loaded_more_often_while_the_device_works() {
    let tacc = preset("tacc-stratix4").unwrap().unwrap();
    let reads = |busy: Ticks| {
        let plan = Plan::new(request(&tacc, MemoryType::Uc, Access::Plain(Width::B8), 16, busy), 1);
        let traffic = simulated(&tacc, &plan).1.traffic.unwrap();
        (traffic.write_tlps, traffic.read_tlps)
    };
    assert_eq!((reads(Ticks::ZERO), reads(latency(&tacc) * 5)), ((2, 3), (2, 8)));
}

#[test]
fn slow_reads_have_no_formula_because_they_change_when_the_status_is_seen() {
    let mut tacc = preset("tacc-stratix4").unwrap().unwrap();
    let plan = Plan::new(request(&tacc, MemoryType::Uc, Access::Plain(Width::B8), 8, Ticks::ZERO), 1);
    assert!(predict(&tacc, &plan).is_some());
    set(&mut tacc, "region.registers.slow_read_every", 3.0);
    assert!(predict(&tacc, &plan).is_none());
}

#[test]
fn data_at_a_doorbell_of_kernels_is_refused() {
    let card = preset("card-stratix10mx").unwrap().unwrap();
    let asked = request(&card, MemoryType::Uc, Access::Plain(Width::B8), 8, Ticks::ZERO);
    let bell = card.kernel_doorbell(0).unwrap().doorbell - card.bar(asked.data.at.bar).unwrap().address_bytes.value;
    let at = |offset| Handshake { data: Span { at: BarOffset { offset, ..asked.data.at }, ..asked.data }, ..asked };
    let machine = SimulatedMachine::new(&card).unwrap();
    let supports = |offset| machine.supports(&Plan::new(at(offset), 1));
    assert_eq!(supports(bell - 8), Ok(()));
    assert!(supports(bell).unwrap_err().to_string().contains("start a kernel"));
}
