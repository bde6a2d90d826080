//! Comparison of formula and simulation for launches and copies through a runtime, on random platforms with a random
//! runtime, from any core. The criteria are those of `crosscheck_calls.rs`.

mod random_platform;

use lanemark_machine::{
    Allocation, Arguments, HostWait, Launch, LaunchBy, Machine, Placement, Plan, QueueRequest, QueueWork, RuntimeCopy,
    Samples, Verb,
};
use lanemark_model::{copy_ceiling, predict};
use lanemark_platform::{Origin, Platform, preset};
use lanemark_sim::SimulatedMachine;
use lanemark_units::Ticks;
use random_platform::{Random, platform_with_driver, set};

/// As in `crosscheck_transfers.rs`.
const ROUNDING: f64 = 0.001;
const CLEAR: f64 = 1.25;
const AGREE: f64 = 0.02;

fn platform(random: &mut Random) -> Platform {
    let mut platform = platform_with_driver(random);
    platform.msi_x = None;
    platform.runtime = preset("card-stratix10mx").unwrap().unwrap().runtime;
    platform.core.cores.value = random.pick(&[1, 2, 7, 64]);
    platform.core.sockets.value = random.pick(&[1, 2]).min(platform.core.cores.value);
    // One below the other: a core may be no less than a step farther than the next.
    set(&mut platform, "root_complex.core_step_ns", random.pick(&[0.0, 0.5, 20.0]));
    set(&mut platform, "root_complex.other_socket_ns", random.pick(&[0.0, 70.0]));
    for (key, least, most) in [
        ("submit_ns", 50.0, 10_000.0),
        ("return_ns", 50.0, 10_000.0),
        ("argument_ns", 1.0, 2000.0),
        ("buffer_copy_ns", 1.0, 20_000.0),
        ("usm_copy_ns", 1.0, 20_000.0),
        ("finish_ns", 1.0, 1000.0),
        ("event_ns", 1.0, 1000.0),
        ("copy_line_ns", 1.0, 50.0),
        ("kernel_start_ns", 10.0, 20_000.0),
        ("kernel_end_ns", 10.0, 2000.0),
        ("idle_entry_ns", 100.0, 20_000.0),
        ("idle_exit_ns", 1.0, 20_000.0),
    ] {
        let value = random.between(least, most);
        platform = platform.with(&format!("runtime.{key}"), value, Origin::Assumed("random".to_owned())).unwrap();
    }
    let chunk = random.pick(&[64, 1000, 4096, 65_536]);
    set(&mut platform, "runtime.chunk_bytes", f64::from(chunk));
    set(&mut platform, "runtime.staged_below_bytes", random.pick(&[0.0, 4096.0, 100_000.0]));
    set(&mut platform, "runtime.buffer_offset_bytes", random.pick(&[0.0, 16.0, 4032.0]));
    set(&mut platform, "runtime.clock_ghz", random.pick(&[0.0, 0.8, 2.0]));
    platform
}

fn asked(random: &mut Random) -> QueueRequest {
    let wait = random.pick(&HostWait::ALL);
    if random.below(3) == 0 {
        let allocation = random.pick(&[Allocation::Buffer, Allocation::Device]);
        let arguments = Arguments { count: random.below(5) as u32, allocation };
        return QueueRequest::Launch(Launch {
            kernels: random.pick(&[1, 1, 2, 3, 50]),
            by: LaunchBy::Calls,
            wait,
            arguments,
        });
    }
    let (verb, allocation) = (random.pick(&[Verb::Store, Verb::Load]), random.pick(&Allocation::ALL));
    let bytes = random.pick(&[1, 64, 1000, 4096, 4097, 30_000, 80_000]);
    QueueRequest::Copy(RuntimeCopy { verb, bytes, wait, allocation })
}

#[test]
fn a_runtime_is_never_faster_than_the_formula_and_meets_a_leading_bound() {
    let (mut clear, mut exact, mut wrong, picked) = (0, 0, Vec::new(), 600_u32);
    let random = &mut Random(31);
    for number in 0..picked {
        let platform = platform(random);
        let request = asked(random);
        let core = random.below(u64::from(platform.core.cores.value)) as u32;
        let work = QueueWork { core, placement: Placement::Pinned, request: request.clone() };
        let timeout = Ticks::whole_ns(1_000_000_000_000);
        let plan = Plan { timeout, ..Plan::new(work, random.pick(&[1, 1, 2, 5, 20])) };
        let said = predict(&platform, &plan).expect("every runtime call has a formula");
        let mut samples = Samples::wanted(1);
        SimulatedMachine::new(&platform).unwrap().run(&plan, &mut samples).unwrap_or_else(|error| panic!("{error}"));
        let sample = samples.taken[0];
        if let QueueRequest::Copy(moved) = &request {
            let most = copy_ceiling(&platform, moved.verb, moved.bytes)
                .expect("the platform has a DMA engine")
                .rate
                .bytes_per_s();
            let rate = (moved.bytes * plan.passes) as f64 * 1e9 / sample.delivered.as_ns();
            assert!(rate <= most * (1.0 + ROUNDING), "{number}: {rate} B/s of {most}: {moved:?}");
        }
        for (what, said_ns, simulated_ns) in
            [("issue", said.issue_ns, sample.issue.as_ns()), ("delivered", said.delivered_ns, sample.delivered.as_ns())]
        {
            let is_clear = said.lead >= CLEAR;
            let later = simulated_ns - said_ns;
            clear += u32::from(is_clear);
            exact += u32::from(later.abs() < 1.0);
            // Delays by DLLPs are in no formula.
            let is_late = is_clear && later > AGREE * said_ns;
            if later < -ROUNDING * said_ns - 1.0 || is_late {
                wrong.push(format!(
                    "{number}: {what} {simulated_ns} ns, predicted {said_ns} ns, lead {}; {plan:?}",
                    said.lead
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong, the first: {}", wrong.len(), wrong[..wrong.len().min(5)].join("\n"));
    println!("{clear} clear, {exact} of them to a nanosecond, of {}", 2 * picked);
    assert!(clear > picked / 2, "only {clear} cases have a leading bound");
}
