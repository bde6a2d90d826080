//! Link utilization matches the bytes of the answers, and latency rises with load.

use lanemark_bench::{Axes, Case, Effort, ask, question};
use lanemark_machine::{Flow, Machine};
use lanemark_method::{Method, Reach};
use lanemark_model::{FormulaMachine, shared_ceiling, transfer_ceiling};
use lanemark_platform::{Platform, preset};
use lanemark_record::{Answer, Direction};
use lanemark_sim::SimulatedMachine;

fn platform(name: &str) -> Platform {
    preset(name).unwrap().unwrap()
}

/// Simulated answers of every default case of a question along `axes`.
fn asked(platform: &Platform, name: &str, axes: &Axes) -> Vec<(Case, Answer)> {
    let question = question(name).unwrap();
    let mut machine = SimulatedMachine::new(platform).unwrap();
    let cases = (question.cases)(machine.facts(), axes);
    let effort = Effort::default();
    cases.into_iter().map(|case| (case.clone(), ask(question, &mut machine, &case, &effort).unwrap())).collect()
}

fn limit(platform: &Platform, case: &Case) -> f64 {
    let ceiling = match case.counted_transfers().as_slice() {
        [transfer] => transfer_ceiling(platform, transfer),
        several => shared_ceiling(platform, several),
    };
    ceiling.unwrap().rate.bytes_per_s()
}

#[test]
fn latency_under_load_starts_at_the_formula_and_rises_towards_the_limit() {
    for name in ["card-gen5-x16", "rosta-virtex7"] {
        let platform = platform(name);
        let answers = asked(&platform, "loaded_latency", &Axes::default());
        assert!(answers.len() >= 5, "{name}");
        let question = question("loaded_latency").unwrap();
        let facts = SimulatedMachine::new(&platform).unwrap().facts().clone();
        let mut formula = FormulaMachine::new(&platform, &facts);
        let unloaded = ask(question, &mut formula, &answers[0].0, &Effort::default()).unwrap();
        let median = |answer: &Answer| answer.latency_ns.unwrap().median;
        let (said, found) = (median(&unloaded), median(&answers[0].1));
        assert!((found / said - 1.0).abs() < 1e-3, "{name}: {found} ns, by formula {said} ns");
        let mut shares = Vec::new();
        for pair in answers.windows(2) {
            let (before, after) = (&pair[0].1, &pair[1].1);
            assert!(median(after) > 0.999 * median(before), "{name}, {}: latency falls under more load", after.method);
        }
        for (case, answer) in &answers {
            let rate = answer.delivered_rate_bytes_per_s.unwrap().median;
            let share = rate / limit(&platform, case);
            assert!(share <= 1.0, "{name}, {}: {share} of the limit", answer.method);
            assert!(answer.latency_ns.unwrap().p99 >= median(answer), "{name}");
            shares.push(share);
        }
        let (last, heaviest) = (median(&answers[answers.len() - 1].1), shares[shares.len() - 1]);
        assert!(heaviest > 0.95 && last > 2.0 * found, "{name}: {last} ns at {heaviest} of the limit");
    }
}

#[test]
fn utilization_of_the_limiting_link_equals_the_share_of_the_limit() {
    let platform = platform("rosta-virtex7");
    let flows: Vec<Flow> = ["0:host", "1:host", "4:host", "5:host"].map(|flow| flow.parse().unwrap()).to_vec();
    let axes = Axes { flows: Some(flows), ..Axes::default() };
    let [(case, answer)] = &asked(&platform, "shared_link", &axes)[..] else { panic!("one case") };
    let share = 100.0 * answer.delivered_rate_bytes_per_s.unwrap().median / limit(&platform, case);
    let up = |name: &str| {
        let mut links = answer.links.iter();
        links.find(|used| used.link == name && used.direction == Direction::Up).unwrap()
    };
    assert!((up("rha25").tlp_share_percent - share).abs() < 0.5, "{share} and {:?}", up("rha25"));
    let sum: f64 = ["fpga0", "fpga1", "fpga4", "fpga5"].map(|name| up(name).payload_rate_bytes_per_s).iter().sum();
    assert!(
        (sum / up("rha25").payload_rate_bytes_per_s - 1.0).abs() < 0.01,
        "bytes into a switch must equal bytes out of it"
    );
    assert!(
        answer.links.iter().all(|used| !["fpga2", "fpga7"].contains(&&*used.link)),
        "cards without flows must be idle"
    );
    for used in &answer.links {
        assert!(used.tlp_share_percent + used.dllp_share_percent <= 100.0, "{used:?}");
    }
}

#[test]
fn link_traffic_of_a_sample_excludes_the_previous_sample() {
    let platform = platform("card-gen5-x16");
    let axes = Axes { sizes: Some(vec![64, 4096, 1 << 20]), ..Axes::default() };
    for name in ["dma_write_bandwidth", "dma_read_bandwidth"] {
        for (case, answer) in asked(&platform, name, &axes) {
            let direction = if name == "dma_write_bandwidth" { Direction::Up } else { Direction::Down };
            let used = answer.links.iter().find(|used| used.direction == direction).unwrap();
            let rate = answer.delivered_rate_bytes_per_s.unwrap().median;
            assert!((used.payload_rate_bytes_per_s / rate - 1.0).abs() < 1e-6, "{name}, {} B", case.size);
            let share = 100.0 * rate / limit(&platform, &case);
            assert!((used.tlp_share_percent - share).abs() < 0.01, "{name}, {} B: {share} % and {used:?}", case.size);
        }
    }
}

#[test]
fn driver_threads_have_separate_channels_and_windows_and_share_the_link() {
    let platform = platform("rosta-virtex7");
    for name in ["doorbell_to_completion", "interrupt_latency", "descriptor_overhead", "dma_or_mmio"] {
        let of = |channels| {
            let reach = Reach { channels, ..Reach::default() };
            asked(&platform, name, &Axes { sizes: Some(vec![16384]), reach, ..Axes::default() })
        };
        let (alone, all) = (of(None), of(Some(3)));
        let called: Vec<_> = all.iter().filter(|(case, _)| !case.calls(1).is_empty()).collect();
        assert!(!called.is_empty(), "{name}");
        for (case, answer) in called {
            let calls = case.calls(1);
            assert_eq!(calls.iter().map(|call| call.channel).collect::<Vec<_>>(), [0, 1, 2]);
            let windows: Vec<_> = calls.iter().map(|call| call.transfer.window).collect();
            assert!(windows.windows(2).all(|pair| pair[0].offset + pair[0].len <= pair[1].offset), "{windows:?}");
            assert!(answer.links.iter().all(|used| used.tlp_share_percent <= 100.0), "{name}: {:?}", answer.links);
            let same = |(other, _): &&(Case, Answer)| (usual(other), other.window) == (usual(case), case.window);
            let (_, one) = alone.iter().find(same).expect("the case also runs with one thread");
            let times = answer.latency_ns.unwrap().median / one.latency_ns.unwrap().median;
            let is_of_the_whole = matches!(name, "doorbell_to_completion" | "dma_or_mmio");
            assert!(!is_of_the_whole || (1.5..=3.0).contains(&times), "{name}, {}: {times} times one", answer.method);
        }
    }
}

/// The method of a case with the usual reach.
fn usual(case: &Case) -> Method {
    let mut method = case.method.clone();
    if let Some(reach) = method.reach_mut() {
        *reach = Reach::default();
    }
    method
}
