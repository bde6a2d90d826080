//! Runtimes: kernels are launched, bytes are copied by every method, and runtime, core and card take their time.

use lanemark_machine::{
    Allocation, Arguments, Cause, Confirmed, HostWait, Launch, LaunchBy, Machine, Placement, Plan, QueueRequest,
    QueueWork, RuntimeCopy, Samples, Verb,
};
use lanemark_platform::{Origin, Platform, preset};
use lanemark_sim::SimulatedMachine;

fn card() -> Platform {
    preset("card-stratix10mx").unwrap().unwrap()
}

fn with(platform: &Platform, key: &str, value: f64) -> Platform {
    platform.with(key, value, Origin::Assumed("a test".to_owned())).unwrap()
}

fn run(platform: &Platform, request: QueueRequest, passes: u64) -> Samples {
    let mut samples = Samples::wanted(2);
    SimulatedMachine::new(platform).unwrap().run(&Plan::new(request, passes), &mut samples).unwrap();
    assert_eq!(samples.taken[0], samples.taken[1]);
    samples
}

fn launch(kernels: u32, wait: HostWait, arguments: Arguments) -> QueueRequest {
    QueueRequest::Launch(Launch { kernels, by: LaunchBy::Calls, wait, arguments })
}

fn copy(verb: Verb, bytes: u64, wait: HostWait, allocation: Allocation) -> QueueRequest {
    QueueRequest::Copy(RuntimeCopy { verb, bytes, wait, allocation })
}

fn delivered_ns(platform: &Platform, request: QueueRequest) -> f64 {
    run(platform, request, 1).taken[0].delivered.as_ns()
}

#[test]
fn every_copy_method_moves_every_byte() {
    let from_malloc = with(&card(), "runtime.buffer_offset_bytes", 16.0);
    for platform in [card(), from_malloc] {
        for verb in [Verb::Store, Verb::Load] {
            for allocation in Allocation::ALL {
                for wait in HostWait::ALL {
                    // Less than a line; a staged copy; an in-place copy; one byte more than two chunks.
                    for bytes in [1, 4095, 4096, 131_073] {
                        let samples = run(&platform, copy(verb, bytes, wait, allocation), 2);
                        let all = Confirmed { claimed_bytes: bytes, confirmed_bytes: bytes };
                        assert_eq!(samples.confirmed, Some(all), "{verb:?} {bytes} {allocation} {wait}");
                    }
                }
            }
        }
    }
}

fn waited_ns(samples: &Samples, cause: Cause) -> f64 {
    let of = |wait: &&lanemark_machine::Wait| wait.cause == cause;
    samples.waits.iter().find(of).map_or(0.0, |wait| wait.span.as_ns()) / samples.taken.len() as f64
}

/// No arguments.
const NOTHING: Arguments = Arguments::NONE;

#[test]
fn kernels_before_one_wait_cost_a_call_each_and_one_wait() {
    let quiet = with(&with(&card(), "runtime.idle_exit_ns", 0.0), "runtime.kernel_start_ns", 100.0);
    let one = delivered_ns(&quiet, launch(1, HostWait::Finish, NOTHING));
    let hundred = delivered_ns(&quiet, launch(100, HostWait::Finish, NOTHING));
    let core = &quiet.core;
    let distance = quiet.core_distance(0).as_ns();
    let round_trip = quiet.root_complex.core_round_trip_ns.value.as_ns() + 2.0 * distance;
    let (submit, cycle) = (quiet.runtime.as_ref().unwrap().submit_ns.value.as_ns(), 1.0 / core.clock_ghz.value);
    assert!((hundred - one - 99.0 * (submit + round_trip)).abs() < 99.0 * cycle, "{one} {hundred}");
    // A card slower than the calls runs them one after another.
    let slow = with(&quiet, "runtime.kernel_end_ns", 10_000.0);
    let [one, hundred] = [1, 100].map(|kernels| delivered_ns(&slow, launch(kernels, HostWait::Finish, NOTHING)));
    assert!((hundred - one - 99.0 * 10_100.0).abs() < 0.1, "{one} {hundred}");
}

#[test]
fn buffer_arguments_have_a_cost_and_address_arguments_have_none() {
    let of = |count, allocation| delivered_ns(&card(), launch(1, HostWait::Finish, Arguments { count, allocation }));
    let (none, look) = (of(0, Allocation::Buffer), card().runtime.unwrap().argument_ns.value.as_ns());
    assert_eq!([1, 16].map(|count| of(count, Allocation::Buffer) - none), [look, 16.0 * look]);
    assert_eq!(of(16, Allocation::Device), none);
}

#[test]
fn events_and_finish_cost_only_the_programs_that_use_them() {
    let platform = with(&with(&card(), "runtime.event_ns", 700.0), "runtime.finish_ns", 300.0);
    for op in [|wait| launch(3, wait, NOTHING), |wait| copy(Verb::Load, 8192, wait, Allocation::Device)] {
        let took = |platform: &Platform, wait| delivered_ns(platform, op(wait));
        assert_eq!(took(&platform, HostWait::Event) - took(&card(), HostWait::Event), 700.0);
        assert_eq!(took(&platform, HostWait::Finish) - took(&card(), HostWait::Finish), 300.0);
    }
}

#[test]
fn a_copy_is_staged_if_short_misaligned_or_beyond_the_pinning_limit() {
    // With free pinning, runtime time shows that the core copied.
    let copied_ns = |platform: &Platform, bytes| {
        waited_ns(&run(platform, copy(Verb::Load, bytes, HostWait::Event, Allocation::Device), 1), Cause::Runtime)
    };
    let software = copied_ns(&card(), 4096);
    assert_eq!(copied_ns(&card(), 4095) - software, 64.0 * 6.0);
    for (offset, is_staged) in [(0.0, false), (16.0, true), (32.0, true), (64.0, false)] {
        let platform = with(&card(), "runtime.buffer_offset_bytes", offset);
        assert_eq!(copied_ns(&platform, 8192) > software, is_staged, "{offset}");
    }
    for (most, is_staged) in [(8192.0, false), (8191.0, true)] {
        let platform = with(&with(&card(), "runtime.chunk_bytes", 4096.0), "runtime.pinned_bytes", most);
        assert_eq!(copied_ns(&platform, 8192) > software, is_staged, "{most}");
    }
}

#[test]
fn buffers_that_stay_pinned_must_fit_the_pinning_limit() {
    let platform = with(&with(&card(), "runtime.chunk_bytes", 4096.0), "runtime.pinned_bytes", 8192.0);
    let machine = SimulatedMachine::new(&platform).unwrap();
    let takes =
        |bytes, allocation| machine.supports(&Plan::new(copy(Verb::Store, bytes, HostWait::Finish, allocation), 1));
    for allocation in [Allocation::Host, Allocation::Mapped] {
        assert!(takes(8192, allocation).is_ok());
        let error = takes(8193, allocation).unwrap_err().to_string();
        assert!(error.contains("12288 B would stay pinned for it, and runtime.pinned_bytes is 8192"), "{error}");
    }
}

#[test]
fn only_a_staged_store_returns_before_it_completes() {
    let is_early = |verb, bytes, wait, allocation| {
        let sample = run(&card(), copy(verb, bytes, wait, allocation), 1).taken[0];
        sample.issue < sample.delivered
    };
    for (allocation, bytes) in [(Allocation::Buffer, 64), (Allocation::Device, 4095), (Allocation::Mapped, 80_000)] {
        assert!(is_early(Verb::Store, bytes, HostWait::Finish, allocation));
        assert!(!is_early(Verb::Store, bytes, HostWait::Event, allocation));
        assert!(!is_early(Verb::Load, bytes, HostWait::Finish, allocation));
    }
    assert!(!is_early(Verb::Store, 4096, HostWait::Finish, Allocation::Buffer));
    assert!(!is_early(Verb::Store, 64, HostWait::Finish, Allocation::Host));
}

#[test]
fn a_long_wait_enters_an_idle_state_and_wakes_later() {
    let of = |entry| {
        let platform = with(&card(), "runtime.idle_entry_ns", entry);
        let samples = run(&platform, launch(1, HostWait::Finish, NOTHING), 1);
        (samples.taken[0].delivered.as_ns(), waited_ns(&samples, Cause::Idle))
    };
    let samples = run(&card(), launch(1, HostWait::Finish, NOTHING), 1);
    let waited = waited_ns(&samples, Cause::Compute) + waited_ns(&samples, Cause::Interrupt);
    let (awake, asleep) = (of(waited), of(waited - 0.01));
    assert_eq!((awake.1, asleep), (0.0, (awake.0 + 4000.0, 4000.0)));
}

#[test]
fn a_slow_core_clock_slows_software_only() {
    let powersave = with(&card(), "runtime.clock_ghz", 1.4);
    for op in [launch(1, HostWait::Finish, NOTHING), copy(Verb::Store, 80_000, HostWait::Finish, Allocation::Buffer)] {
        let [fast, slow] = [card(), powersave.clone()].map(|platform| run(&platform, op.clone(), 1));
        for (cause, factor) in
            [(Cause::Runtime, 2.0), (Cause::Driver, 2.0), (Cause::Interrupt, 1.0), (Cause::StrongOrdering, 1.0)]
        {
            assert_eq!(waited_ns(&slow, cause), factor * waited_ns(&fast, cause), "{cause:?}");
        }
        assert!(slow.taken[0].delivered > fast.taken[0].delivered);
    }
    assert_eq!(
        run(&with(&card(), "runtime.clock_ghz", 2.8), launch(1, HostWait::Event, NOTHING), 1).taken,
        run(&card(), launch(1, HostWait::Event, NOTHING), 1).taken
    );
}

#[test]
fn the_nearest_core_launches_fastest() {
    let took = |core| {
        let request = launch(1, HostWait::Finish, NOTHING);
        let plan = Plan::new(QueueWork { core, placement: Placement::Pinned, request }, 1);
        let mut samples = Samples::wanted(1);
        SimulatedMachine::new(&card()).unwrap().run(&plan, &mut samples).unwrap();
        samples.taken[0].delivered
    };
    let all: Vec<_> = (0..64).map(took).collect();
    let best = (0..64).min_by_key(|core| all[*core]).unwrap();
    assert_eq!(best, 31);
    assert!(all[..32].windows(2).all(|pair| pair[0] > pair[1]) && all[32..].iter().all(|far| *far > all[0]));
}

/// Runs with and without the skip of equal iterations.
fn both(platform: &Platform, op: &QueueRequest, passes: u64, timeout_ns: u64) -> [Result<Samples, String>; 2] {
    let mut plan = Plan { warmup_passes: 1, ..Plan::new(op.clone(), passes) };
    plan.timeout = lanemark_units::Ticks::whole_ns(timeout_ns);
    [true, false].map(|skips| {
        let machine = SimulatedMachine::new(platform).unwrap();
        let mut machine = if skips { machine } else { machine.in_detail() };
        let mut samples = Samples::wanted(2);
        machine.run(&plan, &mut samples).map_err(|error| error.to_string())?;
        assert_eq!(samples.steady.unwrap().skipped > 0, skips, "{:?}", samples.steady);
        samples.steady = None;
        Ok(samples)
    })
}

#[test]
fn skipped_iterations_change_no_result() {
    for (key, value) in [("runtime.chunk_bytes", 65_536.0), ("runtime.chunk_bytes", 1000.0), ("link.width_lanes", 1.0)]
    {
        let platform = with(&card(), key, value);
        let copies = [Verb::Store, Verb::Load].into_iter().flat_map(|verb| HostWait::ALL.map(|wait| (verb, wait)));
        let copies = copies.flat_map(|(verb, wait)| Allocation::ALL.map(|held| copy(verb, 3333, wait, held)));
        for op in copies.chain([launch(1, HostWait::Finish, NOTHING), launch(7, HostWait::Event, NOTHING)]) {
            let [skipped, detailed] = both(&platform, &op, 50, 1_000_000_000);
            assert_eq!(skipped.unwrap(), detailed.unwrap(), "{op:?}");
        }
    }
}

#[test]
fn a_timeout_is_the_same_with_skipped_iterations() {
    let op = copy(Verb::Load, 4096, HostWait::Finish, Allocation::Buffer);
    let took = both(&card(), &op, 100, 1_000_000_000)[0].as_ref().unwrap().taken[0].delivered.as_ns().ceil() as u64;
    assert!(both(&card(), &op, 100, took + 1).iter().all(Result::is_ok));
    for error in both(&card(), &op, 100, took - 20_000) {
        assert!(error.unwrap_err().contains("the plan timed out after"));
    }
}

#[test]
fn a_hundred_thousand_copies_are_simulated_quickly() {
    let op = copy(Verb::Store, 80_000, HostWait::Finish, Allocation::Device);
    let per_copy = |passes| {
        let mut plan = Plan::new(op.clone(), passes);
        plan.timeout = lanemark_units::Ticks::whole_ns(1_000_000_000_000);
        let mut samples = Samples::wanted(1);
        SimulatedMachine::new(&card()).unwrap().run(&plan, &mut samples).unwrap();
        assert_eq!(samples.confirmed.unwrap().confirmed_bytes, 80_000);
        samples.taken[0].delivered.as_ns() / passes as f64
    };
    assert!((per_copy(100_000) / per_copy(100) - 1.0).abs() < 1e-6);
}

/// Runs a copy with a page that cannot be pinned, and again; returns the error, and the bytes of the second run.
fn refused_once(fault: &str, verb: Verb, bytes: u64, allocation: Allocation) -> (String, Option<Confirmed>) {
    let platform = card().with_fault(fault.parse().unwrap()).unwrap();
    let mut machine = SimulatedMachine::new(&platform).unwrap();
    let plan = Plan::new(copy(verb, bytes, HostWait::Finish, allocation), 2);
    let mut samples = Samples::wanted(1);
    let error = machine.run(&plan, &mut samples).unwrap_err().to_string();
    assert_eq!(machine.injected_faults()[0].because_not, None);
    machine.run(&plan, &mut samples).unwrap();
    (error, samples.confirmed)
}

#[test]
fn an_unpinnable_page_fails_every_kind_of_copy_once() {
    for verb in [Verb::Store, Verb::Load] {
        for allocation in Allocation::ALL {
            for bytes in [64, 80_000] {
                let (error, confirmed) = refused_once("unpinnable@card:1", verb, bytes, allocation);
                let pages = bytes.div_ceil(4096);
                let said = format!("page 1 of a buffer of {pages} cannot be pinned; no page was pinned before it");
                assert!(error.contains(&said) && error.contains("card received no doorbell"), "{error}");
                assert_eq!(confirmed, Some(Confirmed { claimed_bytes: bytes, confirmed_bytes: bytes }));
            }
        }
    }
}

#[test]
fn earlier_pages_are_unpinned_and_earlier_copies_stay() {
    // Page 3 of the second copy; the first copy is complete.
    let (error, _) = refused_once("unpinnable@card:23", Verb::Load, 80_000, Allocation::Device);
    assert!(
        error.contains("page 3 of a buffer of 20 cannot be pinned; the 2 before it were unpinned again"),
        "{error}"
    );
    assert!(error.contains("80000 of 160000 B"), "{error}");
}

#[test]
fn buffers_that_stay_pinned_are_pinned_once() {
    for (allocation, bytes, pages) in
        [(Allocation::Host, 80_000, 20), (Allocation::Mapped, 80_000, 20), (Allocation::Buffer, 64, 1)]
    {
        let fault = format!("unpinnable@card:{}", pages + 1);
        let platform = card().with_fault(fault.parse().unwrap()).unwrap();
        let mut machine = SimulatedMachine::new(&platform).unwrap();
        let plan = Plan::new(copy(Verb::Store, bytes, HostWait::Finish, allocation), 9);
        machine.run(&plan, &mut Samples::wanted(1)).unwrap();
        assert!(machine.injected_faults()[0].because_not.is_some(), "{allocation}");
    }
}

#[test]
fn other_faults_fail_a_copy_and_the_next_one_works() {
    for (fault, verb) in [("poisoned@card:3", Verb::Store), ("ecrc@card:3", Verb::Store)] {
        let (error, confirmed) = refused_once(fault, verb, 80_000, Allocation::Buffer);
        assert!(!error.is_empty());
        assert_eq!(confirmed, Some(Confirmed { claimed_bytes: 80_000, confirmed_bytes: 80_000 }));
    }
}

#[test]
fn each_message_reports_its_own_kernel() {
    // All kernels end long before the first message reaches the handler.
    let platform = with(&with(&card(), "runtime.kernel_start_ns", 10.0), "driver.interrupt_ns", 1_000_000.0);
    let took = |kernels| run(&platform, launch(kernels, HostWait::Finish, NOTHING), 1);
    let (one, two) = (took(1), took(2));
    let later = two.taken[0].delivered - one.taken[0].delivered;
    assert!(later.as_ns() > 3000.0, "the second call, and then its own message");
}
