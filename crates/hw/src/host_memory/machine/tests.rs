//! The contract of the `Machine` trait on real memory. No test here depends on speed.

mod steps;

use super::*;
use lanemark_machine::{Access, CoreWork, DriverCall, Fence, Lane, Order as StreamOrder, Span, Step, Stream, Task};
use lanemark_units::Ticks;
use std::sync::atomic::Ordering;

const REGION: usize = 1 << 20;

fn host() -> HostMemory {
    HostMemory::with_region(REGION).unwrap()
}

fn span(offset: u64, len: u64) -> Span {
    Span { at: BarOffset { bar: 0, offset }, len, memory_type: MemoryType::Wb }
}

fn plan(task: impl Into<Task>) -> Plan {
    Plan::new(task.into(), 3)
}

fn plan_after(before: Vec<Step>, task: impl Into<Task>) -> Plan {
    Plan::new(CoreWork::after(before, task), 3)
}

fn stream(verb: Verb, access: Access, span: Span) -> Plan {
    plan(vec![Step::Stream(Stream::over(verb, access, span))])
}

/// Runs a plan and checks what holds for every run, and that `supports` accepts it.
fn run(host: &mut HostMemory, plan: &Plan, wanted: usize) -> Samples {
    host.supports(plan).unwrap();
    let mut samples = Samples::wanted(wanted);
    host.run(plan, &mut samples).unwrap();
    // On a busy machine a long sample is dropped because it loses its core.
    let is_short = samples.taken.len() < wanted;
    assert!(!is_short || samples.dropped.count() > wanted as u64, "{samples:?}");
    assert!(samples.spent >= samples.taken.iter().map(|sample| sample.issue).sum());
    assert!(samples.timer_cost > Ticks::ZERO);
    assert!(samples.taken.iter().all(|sample| sample.issue <= sample.delivered));
    assert!(samples.waits.is_empty() && samples.traffic.is_none());
    samples
}

/// Returns the refusal that both `supports` and `run` return.
fn refused(host: &mut HostMemory, plan: &Plan) -> Unsupported {
    let mut samples = Samples::wanted(2);
    let refusal = host.supports(plan).unwrap_err();
    match host.run(plan, &mut samples).unwrap_err() {
        MachineError::Unsupported(unsupported) => assert_eq!(unsupported, refusal),
        MachineError::OutOfRange { regions, .. } => assert!(refusal.because.contains(&regions), "{refusal}"),
        other => panic!("{other}"),
    }
    assert!(samples.taken.is_empty());
    refusal
}

fn aligned_to(access: Access) -> u64 {
    match access {
        Access::Movdir64b => 64,
        Access::NonTemporal(width) if width.is_vector() => width.bytes(),
        _ => 1,
    }
}

const SIZES: [u64; 11] = [0, 1, 2, 7, 63, 64, 65, 511, 513, 4096 + 3, 65_536];

#[test]
fn every_store_writes_the_claimed_bytes_and_no_others() {
    let mut host = host();
    for access in host.facts().stores.clone() {
        for len in SIZES {
            for offset in [0, 1, 8, 31, 64, 4096 - 64, 4096 - 1] {
                let offset = 1024 + offset / aligned_to(access) * aligned_to(access);
                host.region.bytes_mut()[..128 << 10].fill(0);
                let samples = run(&mut host, &stream(Verb::Store, access, span(offset, len)), 2);
                let (start, end) = (offset as usize, (offset + len) as usize);
                let bytes = &host.region.bytes()[..128 << 10];
                assert!(bytes[..start].iter().all(|byte| *byte == 0), "{access} {len} B at {offset}: before");
                assert!(bytes[end..].iter().all(|byte| *byte == 0), "{access} {len} B at {offset}: behind");
                let all = Confirmed { claimed_bytes: len, confirmed_bytes: len };
                assert_eq!(samples.confirmed, (len > 0).then_some(all), "{access} {len} B at {offset}");
            }
        }
    }
}

#[test]
fn every_copying_load_moves_the_claimed_bytes_and_does_not_change_the_region() {
    let mut host = host();
    let before = host.region.bytes().to_vec();
    for access in host.facts().loads.clone() {
        for len in SIZES {
            for offset in [0, 1, 63, 64] {
                let offset = offset / aligned_to(access) * aligned_to(access);
                let samples = run(&mut host, &stream(Verb::Load, access, span(offset, len)), 2);
                let all = Confirmed { claimed_bytes: len, confirmed_bytes: len };
                let can_compare = access.width().is_none() && len > 0;
                assert_eq!(samples.confirmed, can_compare.then_some(all), "{access} {len} B at {offset}");
            }
        }
    }
    assert!(host.region.bytes() == before);
}

#[test]
fn stale_bytes_of_an_earlier_run_are_not_confirmed() {
    let mut host = host();
    for access in [Access::Plain(Width::B8), Access::Memcpy] {
        let plan = stream(Verb::Store, access, span(0, 4096));
        run(&mut host, &plan, 1);
        let left = host.region.bytes()[..4096].to_vec();
        run(&mut host, &plan, 1);
        // As if the loops of the second run had done nothing.
        host.region.bytes_mut()[..4096].copy_from_slice(&left);
        let ask = Request::of(&plan, &host.ability()).unwrap();
        let confirmed = host.confirmed(&ask, host.runs - 1).unwrap().unwrap();
        assert_eq!(confirmed.claimed_bytes, 4096);
        assert!(confirmed.confirmed_bytes < 64, "{access}: {confirmed:?}");
    }
}

#[test]
fn repeated_accesses_to_one_address_write_nothing_else() {
    let mut host = host();
    for access in host.facts().stores.clone() {
        let len = access.width().map_or(100, Width::bytes);
        for times in [0, 1, 7, 8, 9, 1000] {
            host.region.bytes_mut()[..4096].fill(0);
            let order = StreamOrder::SameAddress { times };
            let one = Stream { order, ..Stream::over(Verb::Store, access, span(64, len)) };
            let samples = run(&mut host, &plan(vec![Step::Stream(one)]), 1);
            let bytes = &host.region.bytes()[..4096];
            let mut written = bytes.iter().enumerate().filter(|(_, byte)| **byte != 0).map(|(place, _)| place as u64);
            if times == 0 {
                assert_eq!(written.clone().count(), 0, "{access} 0 times");
            } else {
                assert_eq!(samples.confirmed.unwrap().confirmed_bytes, len, "{access} {times} times");
            }
            assert!(written.all(|place| (64..64 + len).contains(&place)), "{access} {times} times");
        }
    }
}

#[test]
fn a_repeated_access_must_cover_its_whole_span() {
    let mut host = host();
    let order = StreamOrder::SameAddress { times: 4 };
    for len in [7, 9] {
        let one = Stream { order, ..Stream::over(Verb::Store, Access::Plain(Width::B8), span(0, len)) };
        assert!(refused(&mut host, &plan(vec![Step::Stream(one)])).because.contains("whole span"));
    }
}

#[test]
fn every_user_mode_fence_works_after_each_access_and_after_each_iteration() {
    let mut host = host();
    let fences = [None, Some(Fence::Sfence), Some(Fence::Lfence), Some(Fence::Mfence), Some(Fence::Locked)];
    for access in host.facts().stores.clone() {
        for (fence_each, after) in fences.into_iter().flat_map(|each| fences.map(|after| (each, after))) {
            let stores = Stream { fence_each, ..Stream::over(Verb::Store, access, span(0, 64 * 9 + 15)) };
            let mut body = vec![Step::Stream(stores)];
            body.extend(after.map(Step::Fence));
            let confirmed = run(&mut host, &plan(body), 2).confirmed.unwrap();
            assert_eq!(confirmed.confirmed_bytes, 591, "{access} {fence_each:?} {after:?}");
        }
    }
    for access in host.facts().loads.clone() {
        for fence_each in fences {
            let loads = Stream { fence_each, ..Stream::over(Verb::Load, access, span(0, 591)) };
            run(&mut host, &plan(vec![Step::Stream(loads)]), 2);
        }
    }
}

#[test]
fn an_interrupt_is_not_a_fence_for_user_programs() {
    let mut host = host();
    let stores = Stream::over(Verb::Store, Access::Plain(Width::B4), span(0, 64));
    let each = Stream { fence_each: Some(Fence::Interrupt), ..stores.clone() };
    assert!(refused(&mut host, &plan(vec![Step::Stream(each)])).what.contains("interrupt"));
    let after = vec![Step::Stream(stores), Step::Fence(Fence::Interrupt)];
    assert!(refused(&mut host, &plan(after)).what.contains("interrupt"));
}

#[test]
fn aligned_instructions_are_rejected_at_unaligned_addresses() {
    let mut host = host();
    let both = [(Verb::Store, host.facts().stores.clone()), (Verb::Load, host.facts().loads.clone())];
    for (verb, accesses) in both {
        for access in accesses.into_iter().filter(|access| aligned_to(*access) > 1) {
            let alignment = aligned_to(access);
            for off in [1, alignment / 2, alignment - 1] {
                let error = refused(&mut host, &stream(verb, access, span(4096 + off, 64)));
                assert!(error.because.contains(&format!("{alignment} B")), "{error}");
            }
            run(&mut host, &stream(verb, access, span(4096 + alignment, 64)), 1);
        }
    }
}

#[test]
fn a_span_may_end_at_the_end_of_the_region_but_not_beyond() {
    let mut host = host();
    let end = REGION as u64;
    let store = |at, len| stream(Verb::Store, Access::Plain(Width::B8), span(at, len));
    for (at, len) in [(0, end), (end - 65, 65), (end, 0)] {
        run(&mut host, &store(at, len), 1);
    }
    for (at, len) in [(0, end + 1), (end - 64, 65), (end, 1), (end + 1, 0), (u64::MAX, 1), (8, u64::MAX - 3)] {
        let error = host.run(&store(at, len), &mut Samples::wanted(1)).unwrap_err();
        assert!(matches!(error, MachineError::OutOfRange { .. }), "{error}");
        assert!(error.to_string().contains("memory (1MiB at BAR0+0x0)"), "{error}");
        refused(&mut host, &store(at, len));
    }
    let mut elsewhere = span(0, 64);
    elsewhere.at.bar = 1;
    refused(&mut host, &stream(Verb::Load, Access::Plain(Width::B8), elsewhere));
}

#[test]
fn unsupported_plans_are_rejected_with_a_reason() {
    let mut host = host();
    let store = Step::Stream(Stream::over(Verb::Store, Access::Plain(Width::B8), span(0, 64)));
    let lanes = |cores: &[u32]| {
        let of = |core: &u32| Lane { core: *core, task: store.clone().into() };
        Plan::new(cores.iter().map(of).collect::<Vec<Lane>>(), 3)
    };
    let last = host.facts().cores - 1;
    for (bad, word) in [
        (lanes(&[]), "an empty plan"),
        (lanes(&[0, 0]), "two lanes on one core"),
        (lanes(&[0, last]), if last == 0 { "two lanes on one core" } else { "2 lanes" }),
        (plan(Vec::<Step>::new()), "without steps"),
        (plan(vec![store.clone(), store.clone()]), "[stream, stream]"),
        (plan(vec![Step::FlushLines(span(0, 64)), store.clone()]), "flush"),
        (plan(vec![Step::Pause(Ticks::whole_ns(10)), store.clone()]), "pause"),
        (plan(vec![store.clone(), Step::Pause(Ticks::whole_ns(1_000_001))]), "pause"),
        (plan(vec![store.clone(), Step::FlushLines(span(0, 65))]), "flush"),
        (plan_after(vec![store.clone()], store.clone()), "before"),
        (Plan { passes: 0, ..plan(vec![store.clone()]) }, "no iterations"),
        (stream(Verb::Load, Access::Movdir64b, span(0, 64)), "movdir64b to load"),
        (stream(Verb::Store, Access::NonTemporal(Width::B4), span(0, 64)), "nt4 to store"),
    ] {
        let error = refused(&mut host, &bad);
        assert!(error.what.contains(word) && error.machine == "host", "{error}");
    }
    let uncached = Span { memory_type: MemoryType::Uc, ..span(0, 64) };
    assert!(refused(&mut host, &stream(Verb::Store, Access::Memcpy, uncached)).what.contains("UC"));
}

#[test]
fn a_plan_runs_on_every_allowed_core_and_on_no_other() {
    let mut host = host();
    let before = allowed_cpus().unwrap();
    let store = Step::Stream(Stream::over(Verb::Store, Access::Plain(Width::B8), span(0, 64)));
    let on = |core| Plan::new(vec![Lane { core, task: store.clone().into() }], 3);
    for core in 0..host.facts().cores {
        run(&mut host, &on(core), 1);
        assert_eq!(allowed_cpus().unwrap(), before, "the affinity mask must be restored");
    }
    let cores = host.facts().cores;
    assert!(refused(&mut host, &on(cores)).what.contains("core"));
}

#[test]
fn warm_up_iterations_run_but_do_not_count_as_samples() {
    let mut host = host();
    let warm = Plan { warmup_passes: 5, ..stream(Verb::Store, Access::Plain(Width::B8), span(0, 64)) };
    let samples = run(&mut host, &warm, 7);
    assert_eq!(samples.confirmed.unwrap().confirmed_bytes, 64);
}

#[test]
fn earlier_samples_are_cleared() {
    let mut host = host();
    let plan = stream(Verb::Store, Access::Plain(Width::B8), span(0, 64));
    let mut samples = Samples::wanted(3);
    host.run(&plan, &mut samples).unwrap();
    host.run(&plan, &mut samples).unwrap();
    assert!(samples.taken.len() == 3 || samples.dropped.count() > 3, "{samples:?}");
}

#[test]
fn the_interrupt_flag_ends_a_run_before_it_starts_and_within_a_long_sample() {
    let flag = Arc::new(AtomicBool::new(true));
    let mut host = host().interrupted_by(Arc::clone(&flag));
    let mut plan = stream(Verb::Store, Access::Plain(Width::B8), span(0, 64));
    let interrupted = |result| assert!(matches!(result, Err(MachineError::Interrupted { .. })), "{result:?}");
    interrupted(host.run(&plan, &mut Samples::wanted(2)));

    flag.store(false, Ordering::Relaxed);
    host.run(&plan, &mut Samples::wanted(2)).unwrap();

    (plan.passes, plan.timeout) = (u64::MAX, Ticks::NEVER);
    let setter = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(20));
        flag.store(true, Ordering::Relaxed);
    });
    interrupted(host.run(&plan, &mut Samples::wanted(2)));
    setter.join().unwrap();
}

#[test]
fn an_endless_sample_ends_at_its_timeout() {
    let mut host = host();
    let store = stream(Verb::Store, Access::Plain(Width::B8), span(0, 64));
    let timeout = Ticks::whole_ns(5_000_000);
    let endless = [
        Plan { passes: u64::MAX, timeout, ..store.clone() },
        Plan { warmup_passes: u64::MAX, timeout, ..store.clone() },
        Plan { passes: u64::MAX, timeout, ..driver(Verb::Load, 0, 4096, 64) },
    ];
    for plan in endless {
        let error = host.run(&plan, &mut Samples::wanted(2)).unwrap_err();
        let MachineError::Timeout { after, waiting_for, .. } = error else { panic!("{error}") };
        assert!(after >= timeout && waiting_for.contains("of 18446744073709551615"), "{after:?}, {waiting_for}");
    }
    // Too short for a check of the clock, but still late.
    let late = Plan { timeout: Ticks(1), ..store };
    assert!(matches!(host.run(&late, &mut Samples::wanted(2)), Err(MachineError::Timeout { .. })));
}

#[test]
fn a_single_iteration_that_cannot_be_interrupted_is_rejected() {
    let mut host = host();
    for access in [Access::Plain(Width::B8), Access::Memcpy] {
        let order = StreamOrder::SameAddress { times: u64::MAX };
        let endless = Stream { order, ..Stream::over(Verb::Store, access, span(0, 8)) };
        assert!(refused(&mut host, &plan(vec![Step::Stream(endless)])).because.contains("more of them"));
    }
}

fn driver(verb: Verb, offset: u64, len: u64, call_bytes: u64) -> Plan {
    plan(vec![Step::Driver(DriverCall { verb, span: span(offset, len), call_bytes, width: Width::B8 })])
}

#[test]
fn driver_calls_move_the_claimed_bytes_for_any_call_size() {
    let mut host = host();
    for verb in [Verb::Load, Verb::Store] {
        for len in SIZES {
            for call_bytes in [1, 64, 100, 4096, 1 << 30] {
                let samples = run(&mut host, &driver(verb, 77, len, call_bytes), 2);
                let all = Confirmed { claimed_bytes: len, confirmed_bytes: len };
                assert_eq!(samples.confirmed, (len > 0).then_some(all), "{verb:?} {len} B by {call_bytes}");
            }
        }
    }
}

#[test]
fn empty_driver_calls_and_wrong_widths_and_ranges_are_rejected() {
    let mut host = host();
    assert!(refused(&mut host, &driver(Verb::Load, 0, 64, 0)).what.contains("0 B"));
    refused(&mut host, &driver(Verb::Load, REGION as u64 - 63, 64, 64));
    let wide = DriverCall { verb: Verb::Load, span: span(0, 64), call_bytes: 64, width: Width::B4 };
    assert!(refused(&mut host, &plan(vec![Step::Driver(wide)])).because.contains("facts"));
    run(&mut host, &driver(Verb::Load, REGION as u64 - 64, 64, 64), 1);
}

#[test]
fn host_memory_opens_with_64_mib_and_its_facts() {
    let host = HostMemory::open().unwrap();
    let facts = host.facts();
    assert_eq!((facts.name.as_str(), facts.time_base), ("host", TimeBase::Real));
    assert!(facts.summary.ends_with("ordinary memory (WB)"));
    assert_eq!(facts.storage().unwrap().len, 64 << 20);
    assert!(facts.registers().is_none());
    assert!(facts.cores >= 1 && !facts.memcpy.is_empty());
    assert!(facts.stores.contains(&Access::Memcpy) && facts.loads.contains(&Access::Plain(Width::B16)));
}

#[test]
fn host_memory_is_send() {
    fn is_send<T: Send>() {}
    is_send::<HostMemory>();
}
