//! Operations other than streams, and operations before and after a stream.

use super::*;
use lanemark_machine::{
    BlockCopy, BufferHandoff, Clock, Discipline, Exchange as CoreExchange, Invalidation, KernelCall, MapUnmap, Means,
    Medium, Operation, Task,
};

/// Stores narrower than a line.
fn interleaving(host: &HostMemory) -> Vec<Access> {
    let narrow = |access: &Access| access.width().is_some_and(|width| width.bytes() < 64);
    host.facts().stores.iter().copied().filter(narrow).collect()
}

fn interleaved(access: Access, span: Span, lines: u64) -> Stream {
    Stream { order: StreamOrder::Interleaved { lines }, ..Stream::over(Verb::Store, access, span) }
}

#[test]
fn interleaved_lines_are_stored_whole_for_any_operation_after_them() {
    let mut host = host();
    for access in interleaving(&host) {
        for lines in [1, 2, 7, 8, 17, 40] {
            host.region.bytes_mut()[..64 << 10].fill(0);
            let (start, len) = (4096, 3 * lines * 64);
            let stores = Step::Stream(interleaved(access, span(start, len), lines));
            for after in [None, Some(Step::Fence(Fence::Sfence)), Some(Step::Pause(Ticks::whole_ns(50)))] {
                let steps: Vec<Step> = [Some(stores.clone()), after].into_iter().flatten().collect();
                let confirmed = run(&mut host, &plan(steps), 2).confirmed.unwrap();
                assert_eq!(confirmed, Confirmed { claimed_bytes: len, confirmed_bytes: len }, "{access} {lines}");
            }
            let (start, end) = (start as usize, (start + len) as usize);
            let bytes = &host.region.bytes()[..64 << 10];
            assert!(bytes[..start].iter().chain(&bytes[end..]).all(|byte| *byte == 0), "{access} {lines}: others");
        }
    }
}

#[test]
fn interleaving_needs_narrow_stores_without_fences_and_whole_blocks() {
    let mut host = host();
    let good = interleaved(Access::NonTemporal(Width::B8), span(0, 384), 3);
    run(&mut host, &plan(vec![Step::Stream(good.clone())]), 1);
    for bad in [
        Stream { span: span(0, 385), ..good.clone() },
        Stream { span: span(32, 384), ..good.clone() },
        Stream { access: Access::Plain(Width::B64), ..good.clone() },
        Stream { access: Access::Memcpy, ..good.clone() },
        Stream { verb: Verb::Load, access: Access::Plain(Width::B8), ..good.clone() },
        Stream { fence_each: Some(Fence::Sfence), ..good },
    ] {
        let error = refused(&mut host, &plan(vec![Step::Stream(bad.clone())]));
        assert!(error.what.contains("interleaved") || error.because.contains("no AVX"), "{bad:?}: {error}");
    }
}

#[test]
fn a_flush_or_a_pause_may_follow_any_stream() {
    let mut host = host();
    for after in [Step::FlushLines(span(128, 591)), Step::Pause(Ticks::whole_ns(200))] {
        for access in host.facts().stores.clone() {
            let store = Step::Stream(Stream::over(Verb::Store, access, span(128, 591)));
            let confirmed = run(&mut host, &plan(vec![store, after.clone()]), 2).confirmed.unwrap();
            assert_eq!(confirmed.confirmed_bytes, 591, "{access}");
        }
        for access in host.facts().loads.clone() {
            let load = Step::Stream(Stream::over(Verb::Load, access, span(128, 591)));
            run(&mut host, &plan(vec![load, after.clone()]), 2);
        }
    }
}

#[test]
fn fences_flushes_pauses_clock_reads_and_system_calls_run_alone() {
    let mut host = host();
    let mut steps = [Fence::Sfence, Fence::Lfence, Fence::Mfence, Fence::Locked].map(Step::Fence).to_vec();
    steps.extend([Step::FlushLines(span(0, 4096)), Step::Pause(Ticks::whole_ns(100)), Step::Map(span(8192, 4096))]);
    let mut alone: Vec<Task> = steps.into_iter().map(Task::from).collect();
    alone.extend(Clock::ALL.map(|clock| Task::from(Operation::Clock(clock))));
    alone.extend(KernelCall::ALL.map(|call| Task::from(Operation::KernelCall(call))));
    for op in alone {
        let samples = run(&mut host, &plan(op.clone()), 3);
        assert_eq!(samples.confirmed, None, "{op:?}");
    }
    assert!(refused(&mut host, &plan(vec![Step::Fence(Fence::Interrupt)])).what.contains("interrupt"));
}

#[test]
fn a_pause_is_never_shorter_than_requested() {
    let mut host = host();
    let pause = Ticks::whole_ns(20_000);
    let samples = run(&mut host, &plan(vec![Step::Pause(pause)]), 3);
    let three = Ticks(3 * pause.0);
    // No claim about speed: a pause is never shorter, except for the cost of the timer.
    assert!(samples.taken.iter().all(|sample| sample.issue + samples.timer_cost >= three), "{:?}", samples.taken);
}

#[test]
fn an_mmap_is_page_aligned_and_not_empty() {
    let mut host = host();
    for bad in [span(1, 4096), span(4096, 0)] {
        refused(&mut host, &plan(vec![Step::Map(bad)]));
    }
    refused(&mut host, &plan(vec![Step::Map(span(REGION as u64 - 4096, 4097))]));
    run(&mut host, &plan(vec![Step::Map(span(REGION as u64 - 4096, 4096))]), 1);
}

#[test]
fn memory_is_mapped_by_every_means_and_invalid_requests_are_rejected_with_a_reason() {
    let mut host = host();
    let tables = host.facts().tables.clone();
    for means in Means::with(&tables) {
        let page = MapUnmap { means, bytes: 4096, pairs: 2 };
        assert_eq!(run(&mut host, &plan(page), 2).confirmed, None, "{means}");
        for bad in [
            MapUnmap { bytes: 0, ..page },
            MapUnmap { pairs: 0, ..page },
            MapUnmap { bytes: MapUnmap::MOST_BYTES + 1, ..page },
        ] {
            let error = refused(&mut host, &plan(bad));
            assert!(error.what.contains(&means.to_string()), "{error}");
        }
        // The largest and most frequent request, and one beyond it.
        let most = MapUnmap { bytes: MapUnmap::MOST_BYTES, pairs: Invalidation::QUEUE, ..page };
        assert!(host.supports(&plan(most)).is_ok());
        assert!(host.supports(&plan(MapUnmap { pairs: 2 * most.pairs, ..most })).is_err());
    }
    for means in Means::with(&[Table::Iommu]).filter(|means| *means != Means::Pool) {
        let error = refused(&mut host, &plan(MapUnmap { means, bytes: 4096, pairs: 1 }));
        assert!(error.because.contains("bound to vfio-pci"), "{error}");
    }
    let odd = MapUnmap { means: Means::Pool, bytes: 4097, pairs: 1 };
    assert!(refused(&mut host, &plan(odd)).because.contains("power of two"));
}

fn copies(access: Access, zone: Span, block_bytes: u64) -> Plan {
    plan(vec![Step::Copy(BlockCopy { access, zone, block_bytes })])
}

#[test]
fn every_copy_fills_its_zone_with_the_block_hot_and_cold() {
    let mut host = host();
    let accesses: Vec<Access> = [Access::CopyToDevice]
        .into_iter()
        .chain(crate::x86::copy::ROUTINES.map(|(access, _)| access))
        .filter(|access| host.facts().stores.contains(access))
        .collect();
    assert!(accesses.len() >= 5, "{accesses:?}");
    for access in accesses {
        for (block, count) in [(64, 1), (64, 40), (100, 3), (4096, 2), (65_536, 1)] {
            host.region.bytes_mut()[..256 << 10].fill(0);
            let zone = span(4096, block * count);
            let warm = copies(access, zone, block);
            let cold =
                Plan { passes: 1, ..plan_after(vec![Step::FlushLines(zone)], warm.work.lanes()[0].task.clone()) };
            for plan in [warm, cold] {
                let confirmed = run(&mut host, &plan, 2).confirmed.unwrap();
                let all = Confirmed { claimed_bytes: zone.len, confirmed_bytes: zone.len };
                assert_eq!(confirmed, all, "{access}: {count} blocks of {block} B");
            }
            let bytes = &host.region.bytes()[..256 << 10];
            let (start, end) = (4096, 4096 + zone.len as usize);
            assert!(bytes[..start].iter().chain(&bytes[end..]).all(|byte| *byte == 0), "{access} {block} B: others");
        }
    }
}

#[test]
fn a_zone_must_be_whole_blocks_and_the_access_must_have_a_copy_routine() {
    let mut host = host();
    run(&mut host, &copies(Access::Memcpy, span(0, 192), 64), 1);
    for (len, block) in [(0, 64), (191, 64), (193, 64), (64, 0), (64, 128)] {
        refused(&mut host, &copies(Access::Memcpy, span(0, len), block));
    }
    refused(&mut host, &copies(Access::Memcpy, span(REGION as u64 - 63, 64), 64));
    let error = refused(&mut host, &copies(Access::Plain(Width::B8), span(0, 64), 64));
    assert!(error.because.contains("no copy routine"), "{error}");
}

fn lines(access: Access, message: u64, answer: u64) -> Medium {
    Medium::Lines { access, message: span(message, 64), answer: span(answer, 64) }
}

/// Two cores that exchange messages.
fn exchange(medium: Medium) -> Plan {
    Plan::new(CoreExchange { cores: [0, 1], medium }, 5)
}

#[test]
fn two_cores_exchange_messages_through_lines_and_events() {
    let mut host = host();
    let here: Vec<Access> = [Access::Plain(Width::B8), Access::NonTemporal(Width::B8), Access::Movdir64b]
        .into_iter()
        .filter(|access| host.facts().stores.contains(access))
        .collect();
    let lines = here.iter().flat_map(|access| [exchange(lines(*access, 0, 0)), exchange(lines(*access, 64, 4096))]);
    let events = exchange(Medium::Events);
    for plan in lines.chain([events]) {
        if host.facts().cores < 2 {
            assert!(refused(&mut host, &plan).what.contains("core 1"));
            continue;
        }
        let before = allowed_cpus().unwrap();
        // Twice: the lines still hold the numbers of the first run.
        for _ in 0..2 {
            run(&mut host, &Plan { warmup_passes: 2, ..plan.clone() }, 3);
        }
        assert_eq!(allowed_cpus().unwrap(), before);
    }
}

#[test]
fn an_endless_exchange_ends_at_its_timeout_and_at_the_interrupt_flag() {
    let flag = Arc::new(AtomicBool::new(false));
    let mut host = host().interrupted_by(Arc::clone(&flag));
    if host.facts().cores < 2 {
        // With one core there is no peer, and the plan is refused.
        assert!(refused(&mut host, &exchange(Medium::Events)).what.contains("core 1"));
        return;
    }
    for plan in [exchange(lines(Access::Plain(Width::B8), 0, 0)), exchange(Medium::Events)] {
        flag.store(false, Ordering::Relaxed);
        let endless = Plan { passes: u64::MAX, timeout: Ticks::whole_ns(5_000_000), ..plan };
        let error = host.run(&endless, &mut Samples::wanted(1)).unwrap_err();
        assert!(matches!(error, MachineError::Timeout { .. }), "{error}");

        let setter = std::thread::spawn({
            let flag = Arc::clone(&flag);
            move || {
                std::thread::sleep(Duration::from_millis(20));
                flag.store(true, Ordering::Relaxed);
            }
        });
        let endless = Plan { timeout: Ticks::NEVER, ..endless };
        let error = host.run(&endless, &mut Samples::wanted(1)).unwrap_err();
        assert!(matches!(error, MachineError::Interrupted { .. }), "{error}");
        setter.join().unwrap();
    }
}

#[test]
fn exchanges_need_two_cores_and_whole_lines_stored_by_one_instruction() {
    let mut host = host();
    let eight = Access::Plain(Width::B8);
    let alone = CoreExchange { cores: [0, 0], medium: lines(eight, 0, 64) };
    for bad in [
        Plan::new(alone, 5),
        exchange(lines(eight, 32, 64)),
        exchange(lines(eight, 0, REGION as u64)),
        exchange(lines(Access::Plain(Width::B4), 0, 0)),
    ] {
        refused(&mut host, &bad);
    }
}

/// Plan of one or two iterations, with one warm-up iteration where that is possible.
fn sharing(shared: BufferHandoff) -> Plan {
    let is_written = shared.finds_written_lines();
    Plan { warmup_passes: u64::from(!is_written), passes: 1 + u64::from(!is_written), ..plan(shared) }
}

#[test]
fn shared_buffers_are_written_and_copied_byte_for_byte_under_every_discipline() {
    let mut host = host();
    for discipline in host.facts().disciplines.clone() {
        for bytes in [64, 4096, 16 << 10] {
            host.region.bytes_mut().fill(0);
            let out = BufferHandoff { verb: Verb::Store, discipline, bytes };
            let confirmed = run(&mut host, &sharing(out), 2).confirmed.unwrap();
            assert_eq!(confirmed, Confirmed { claimed_bytes: bytes, confirmed_bytes: bytes }, "{discipline}");
            assert!(host.region.bytes()[bytes as usize..].iter().all(|byte| *byte == 0), "{discipline}: others");
            let into = BufferHandoff { verb: Verb::Load, ..out };
            if into.check().is_ok() {
                let copied = run(&mut host, &sharing(into), 2).confirmed.map(|found| found.confirmed_bytes);
                assert_eq!(copied, (discipline == Discipline::Bounced).then_some(bytes), "{discipline}");
            }
        }
    }
}

#[test]
fn device_written_buffers_are_read_once_and_non_wb_mappings_are_rejected() {
    let mut host = host();
    for discipline in [Discipline::Coherent, Discipline::Bounced] {
        let one = sharing(BufferHandoff { verb: Verb::Load, discipline, bytes: 4096 });
        assert!(host.supports(&one).is_ok());
        for more in [Plan { passes: 2, ..one.clone() }, Plan { warmup_passes: 1, ..one.clone() }] {
            assert!(refused(&mut host, &more).because.contains("one iteration"), "{discipline}");
        }
    }
    for discipline in [Discipline::Uncached, Discipline::Combining, Discipline::BouncedCombining] {
        let mapped = BufferHandoff { verb: Verb::Store, discipline, bytes: 64 };
        assert!(refused(&mut host, &sharing(mapped)).because.contains("WB"), "{discipline}");
    }
    let odd = BufferHandoff { verb: Verb::Store, discipline: Discipline::Coherent, bytes: 65 };
    assert!(refused(&mut host, &sharing(odd)).because.contains("whole lines"));
}
