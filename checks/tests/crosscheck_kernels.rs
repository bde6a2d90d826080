//! Comparison of formulas and simulation for kernels on a card's own memory, with random cards, copies and matrices: no kernel
//! is faster than its bound, and a leading bound is nearly the whole time.

mod random_platform;

use lanemark_compute::{Csr, Generated, Spmv, StreamCopy, Workload};
use lanemark_machine::{Cause, Compute, HostWait, Machine, PathShare, Plan, Samples, Wait};
use lanemark_model::{Bound, Prediction, predict};
use lanemark_platform::{Origin, Platform};
use lanemark_sim::SimulatedMachine;
use lanemark_units::Ticks;
use random_platform::Random;
use std::sync::Arc;

const CARD: &str = include_str!("../../platforms/card-gen5-x16.toml");
/// Relative rounding error of a whole run.
const ROUNDED: f64 = 1e-9;

fn card(memory: &[(&str, f64)], kernel: &[(&str, f64)], keeps: bool) -> Platform {
    let rows = |numbers: &[(&str, f64)]| -> String {
        let row = |(key, number): &(&str, f64)| format!("{key} = {{ value = {number}, assumed = \"random\" }}\n");
        numbers.iter().map(row).collect::<Vec<_>>().concat()
    };
    let text = format!(
        "{CARD}\n[device_memory]\n{}\n[kernel]\nkeeps_words = {{ value = {keeps}, assumed = \"random\" }}\n{}",
        rows(memory),
        rows(kernel)
    );
    Platform::parse("random.toml", &text).unwrap_or_else(|error| panic!("{error}"))
}

fn random_card(random: &mut Random) -> Platform {
    let eighths = |number: f64| (number * 8.0).round().max(1.0) / 8.0;
    let words = random.pick(&[1.0, 4.0, 16.0]);
    let memory = [
        ("ports", random.pick(&[1.0, 3.0, 8.0, 32.0])),
        ("port_bytes", random.pick(&[8.0, 32.0, 64.0])),
        ("word_ns", eighths(random.between(0.2, 20.0))),
        ("read_ns", eighths(random.between(10.0, 1000.0))),
        ("turnaround_ns", random.pick(&[0.0, 5.0, 22.5])),
    ];
    let kernel = [
        ("clock_ghz", random.pick(&[0.1, 0.3, 1.0])),
        ("cycle_growth_percent", random.pick(&[0.0, 0.0, 3.5, 40.0])),
        ("interval_cycles", random.pick(&[1.0, 1.0, 3.0])),
        ("pipeline_cycles", random.pick(&[0.0, 50.0])),
        ("addition_cycles", random.pick(&[1.0, 1.0, 4.0, 12.0])),
        ("burst_words", words),
        ("unit_words", words * random.pick(&[1.0, 2.0, 32.0])),
    ];
    card(&memory, &kernel, random.below(2) == 1)
}

/// A matrix with rows of random lengths, including empty ones, and random columns.
fn matrix(random: &mut Random) -> Csr {
    let (rows, longest) = (random.pick(&[1, 7, 100, 2000]), random.pick(&[1, 5, 40]));
    // In some matrices almost all rows are empty.
    let every = random.pick(&[1, 1, 1, 60]);
    let mut starts = vec![0_u32];
    for _ in 0..rows {
        let entries = if starts.len() % every == 0 { random.below(longest + 1) as u32 } else { 0 };
        starts.push(starts.last().unwrap() + entries);
    }
    let entries = *starts.last().unwrap() as usize;
    let columns = (0..entries).map(|_| random.below(300) as u32).collect();
    let values = (0..entries).map(|_| random.below(1000) as f64 / 8.0 - 60.0).collect();
    Csr::new(300, starts, columns, values).unwrap()
}

fn work(random: &mut Random, ports: u32) -> Workload {
    if random.below(2) == 0 {
        let first_port = random.below(u64::from(ports)) as u32;
        let ports = 1 + random.below(u64::from(ports - first_port)).min(3) as u32;
        let (stride_bytes, vector_words) = (random.pick(&[8, 8, 24, 64]), random.pick(&[1, 1, 3, 4]));
        let bytes_per_port = 8 * random.pick(&[1, 5, 1000, 8000]);
        return Workload::StreamCopy(StreamCopy { first_port, ports, bytes_per_port, stride_bytes, vector_words });
    }
    let matrix = if random.below(8) == 0 { Generated::Poisson(50).matrix() } else { matrix(random) };
    let (kernels, ports_each) = (random.pick(&[1, 2, 3, 8]), 1 + random.below(u64::from(ports).min(6)) as u32);
    Workload::Spmv(Spmv { matrix: Arc::new(matrix), kernels, ports_each })
}

/// Runs a work once, and checks its results and its critical path; `None` if the card refuses the work.
fn run(platform: &Platform, plan: &Plan) -> Option<Samples> {
    let mut machine = SimulatedMachine::new(platform).unwrap();
    machine.supports(plan).ok()?;
    let mut samples = Samples::wanted(1);
    machine.run(plan, &mut samples).unwrap_or_else(|error| panic!("{error}"));
    let confirmed = samples.confirmed.unwrap();
    assert_eq!(confirmed.confirmed_bytes, confirmed.claimed_bytes, "{plan:?}");
    let on_path: Ticks = samples.path.iter().map(|share| share.span).sum();
    let waited: Ticks = samples.waits.iter().map(|wait| wait.span).sum();
    assert_eq!((on_path, waited), (samples.taken[0].delivered, on_path), "{:?}", samples.path);
    Some(samples)
}

fn plan_of(work: &Workload) -> Plan {
    Plan::new(Compute { work: work.clone(), wait: HostWait::Finish }, 1)
}

/// Ratio of simulated to predicted time, the prediction, and the critical path; `None` if the card refuses the work.
fn traced(platform: &Platform, work: &Workload) -> Option<(f64, Prediction, Vec<PathShare>)> {
    let plan = plan_of(work);
    let samples = run(platform, &plan)?;
    let said = predict(platform, &plan).unwrap();
    let found = samples.taken[0].delivered.as_ns();
    let ratio = if said.delivered_ns > 0.0 { found / said.delivered_ns } else { 1.0 + found };
    Some((ratio, said, samples.path))
}

fn asked(platform: &Platform, work: &Workload) -> Option<(f64, Prediction)> {
    traced(platform, work).map(|(ratio, said, _)| (ratio, said))
}

/// Whether the largest share of a path is that of the bound of the formula.
fn names(path: &[PathShare], bound: Bound) -> bool {
    path.first().is_some_and(|share| match (share.cause, bound) {
        // The formula has one bound for the latency of a unit, whether it is full or has a single word to load.
        (Cause::Transit, Bound::OutstandingWords) => true,
        (cause, bound) => cause == bound.cause(),
    })
}

#[test]
fn kernels_are_never_faster_than_their_bound_and_close_to_a_leading_one() {
    let mut random = Random(97);
    let (mut tried, mut clear, mut worst_clear, mut worst) = (0, 0, 1.0_f64, 1.0_f64);
    let (mut bounds, mut named): (Vec<Bound>, Vec<Cause>) = (Vec::new(), Vec::new());
    for number in 0..600 {
        let platform = random_card(&mut random);
        let work = work(&mut random, platform.device_memory.as_ref().unwrap().ports.value);
        let Some((ratio, said, path)) = traced(&platform, &work) else { continue };
        assert!(ratio >= 1.0 - ROUNDED, "case {number}: {ratio}, {said:?}");
        tried += 1;
        worst = worst.max(ratio);
        if said.lead >= 4.0 {
            (clear, worst_clear) = (clear + 1, worst_clear.max(ratio));
            assert!(ratio < 1.5, "case {number}: {ratio}, {said:?}");
            assert!(names(&path, said.bound), "case {number}: {said:?}, {path:?}");
            named.extend(path.first().map(|share| share.cause));
        }
        if !bounds.contains(&said.bound) {
            bounds.push(said.bound);
        }
    }
    println!(
        "{tried} random cases, {clear} with a lead of 4: at most {worst_clear:.3} times the bound; all: {worst:.3}"
    );
    assert!(tried > 400 && clear > 40, "{tried} {clear}");
    let all = [Bound::Port, Bound::Interval, Bound::OutstandingWords, Bound::Additions];
    assert!(all.iter().all(|bound| bounds.contains(bound)), "{bounds:?}");
    assert!(all.iter().all(|bound| named.contains(&bound.cause())), "{named:?}");
}

/// Keys of kernels and their memory, and the factor that makes them twice as good.
const KEYS: [(&str, f64); 9] = [
    ("device_memory.word_ns", 0.5),
    ("device_memory.read_ns", 0.5),
    ("device_memory.turnaround_ns", 0.5),
    ("kernel.interval_cycles", 0.5),
    ("kernel.pipeline_cycles", 0.5),
    ("kernel.addition_cycles", 0.5),
    ("kernel.unit_words", 2.0),
    ("kernel.burst_words", 2.0),
    ("kernel.clock_ghz", 2.0),
];

#[test]
fn the_largest_share_of_the_critical_path_is_that_of_the_parameter_with_the_largest_effect() {
    let mut random = Random(5);
    let (mut judged, mut agreeing) = (0, 0);
    for number in 0..200 {
        let platform = random_card(&mut random);
        let work = work(&mut random, platform.device_memory.as_ref().unwrap().ports.value);
        let plan = plan_of(&work);
        let Some(before) = run(&platform, &plan).filter(|samples| !samples.path.is_empty()) else { continue };
        let time = before.taken[0].delivered.as_ns();
        let effect = |(key, factor): (&'static str, f64)| {
            let value = platform.number(key)?.0 * factor;
            let better = platform.with(key, value, Origin::Assumed("twice as good".to_owned())).ok()?;
            Some((key, 1.0 - run(&better, &plan)?.taken[0].delivered.as_ns() / time))
        };
        let best = KEYS.into_iter().filter_map(effect).max_by(|one, other| one.1.total_cmp(&other.1));
        let Some((key, gain)) = best.filter(|(_, gain)| *gain >= 0.01) else { continue };
        judged += 1;
        if before.path[0].cause.is_changed_by(key) {
            agreeing += 1;
        } else {
            println!("case {number}: {key} gains {:.1} %, the path is {:?}", gain * 100.0, before.path);
        }
    }
    println!("{agreeing} of {judged} critical paths name what the parameter with the largest effect changes");
    assert!(judged > 120 && agreeing * 100 >= judged * 95, "{agreeing} of {judged}");
}

/// A card with 32 ports, with numbers from data sheets and a measurement of one port.
fn of_32_ports() -> Platform {
    let memory = [("ports", 32.0), ("port_bytes", 32.0), ("word_ns", 2.5), ("read_ns", 300.0), ("turnaround_ns", 22.4)];
    card(&memory, &[("clock_ghz", 0.3)], false)
}

#[test]
fn a_long_copy_meets_its_bound_and_32_ports_are_32_times_as_fast_as_one() {
    let of = |ports: u32, vector_words: u32| {
        let copy = StreamCopy { first_port: 0, ports, bytes_per_port: 1 << 18, stride_bytes: 8, vector_words };
        let work = Workload::StreamCopy(copy);
        let (ratio, said) = asked(&of_32_ports(), &work).unwrap();
        assert!((1.0..1.02).contains(&ratio), "{ratio}");
        work.bytes() as f64 / (said.delivered_ns * ratio)
    };
    let (one, all, plain) = (of(1, 4), of(32, 4), of(1, 1));
    assert!((9.7..10.1).contains(&one), "{one}");
    assert!((all / one - 32.0).abs() < 1e-6);
    // A loop of single words wastes three quarters of each 256-bit word.
    assert!((one / plain - 4.0).abs() < 0.1, "{}", one / plain);
}

#[test]
fn kernels_that_share_a_port_alternate_and_lose_no_words() {
    let matrix = Arc::new(Generated::Random { rows: 3000, each: 10 }.matrix());
    let time = |kernels: u32, ports: f64| {
        let memory = [("ports", ports), ("port_bytes", 32.0), ("word_ns", 2.5), ("read_ns", 300.0)];
        let platform = card(&memory, &[("clock_ghz", 0.3)], false);
        let work = Workload::Spmv(Spmv { matrix: Arc::clone(&matrix), kernels, ports_each: 1 });
        let (ratio, said) = asked(&platform, &work).unwrap();
        (ratio * said.delivered_ns, ratio)
    };
    let (one, alone) = time(1, 1.0);
    let (shared, busy) = time(8, 1.0);
    let (own, _) = time(8, 8.0);
    // One kernel is bound by its port, so eight kernels on one port gain nothing.
    assert!(alone < 1.1 && busy < 1.02, "{alone} {busy}");
    assert!((shared / one - 1.0).abs() < 0.1, "{shared} {one}");
    assert!(one / own > 7.5, "{}", one / own);
}

#[test]
fn a_cycle_that_grows_with_the_kernels_slows_kernels_that_it_binds() {
    let matrix = Arc::new(Generated::Poisson(100).matrix());
    let time = |kernels: u32, ports_each: u32, growth: f64| {
        let memory = [("ports", 32.0), ("port_bytes", 32.0), ("word_ns", 2.5), ("read_ns", 300.0)];
        let platform = card(&memory, &[("clock_ghz", 0.3), ("cycle_growth_percent", growth)], false);
        let work = Workload::Spmv(Spmv { matrix: Arc::clone(&matrix), kernels, ports_each });
        let (ratio, said) = asked(&platform, &work).unwrap();
        assert!((1.0 - ROUNDED..1.05).contains(&ratio), "{ratio} {said:?}");
        (ratio * said.delivered_ns, said.bound)
    };
    // One kernel is alone on the card.
    assert_eq!(time(1, 4, 0.0), time(1, 4, 10.0));
    // With a cycle of 1.7 times, eight kernels bound by their interval take nearly 1.7 times as long.
    let (fast, slow) = (time(8, 4, 0.0), time(8, 4, 10.0));
    assert_eq!((fast.1, slow.1), (Bound::Interval, Bound::Interval));
    assert!((1.6..1.7).contains(&(slow.0 / fast.0)), "{}", slow.0 / fast.0);
    // Eight kernels bound by their ports do not.
    let (fast, slow) = (time(8, 1, 0.0), time(8, 1, 10.0));
    assert_eq!((fast.1, slow.1), (Bound::Port, Bound::Port));
    assert!((1.0..1.05).contains(&(slow.0 / fast.0)), "{}", slow.0 / fast.0);
}

#[test]
fn simulated_kernels_are_deterministic() {
    let work = work(&mut Random(3), 32);
    assert_eq!(traced(&of_32_ports(), &work), traced(&of_32_ports(), &work));
}

#[test]
fn kernels_without_a_path_take_the_same_time_and_have_one_cause() {
    let plan = plan_of(&work(&mut Random(3), 32));
    let with = run(&of_32_ports(), &plan).unwrap();
    let mut without = Samples::wanted(1);
    SimulatedMachine::new(&of_32_ports()).unwrap().without_path().run(&plan, &mut without).unwrap();
    assert_eq!((&without.taken, without.confirmed), (&with.taken, with.confirmed));
    assert_eq!(without.path, []);
    let [Wait { cause: Cause::Compute, span }] = without.waits[..] else { panic!("{:?}", without.waits) };
    assert_eq!(span, with.taken[0].delivered);
}

#[test]
fn work_beyond_the_memory_of_the_card_is_refused() {
    let platform = of_32_ports();
    let fits = |work: Workload| asked(&platform, &work).is_some();
    let copy = |first_port, ports, vector_words| {
        fits(Workload::StreamCopy(StreamCopy {
            first_port,
            ports,
            bytes_per_port: 8192,
            stride_bytes: 8,
            vector_words,
        }))
    };
    assert!(copy(31, 1, 1) && copy(0, 32, 512));
    assert!(!copy(32, 1, 1) && !copy(1, 32, 1) && !copy(0, 1, 513) && !copy(0, 0, 1));
    let matrix = Arc::new(Generated::Poisson(3).matrix());
    let multiply =
        |kernels, ports_each| fits(Workload::Spmv(Spmv { matrix: Arc::clone(&matrix), kernels, ports_each }));
    assert!(multiply(32, 1) && multiply(1, 32));
    assert!(!multiply(33, 1) && !multiply(1, 33) && !multiply(0, 1) && !multiply(1, 0));
}
