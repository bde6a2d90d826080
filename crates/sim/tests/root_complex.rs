//! Device requests at the root complex: their rate, and the reads that hit in the last-level cache.

mod stage;

use lanemark_machine::{
    Cause, Completion, Descriptors, DmaCall, EngineJob, EngineWork, HostMemory, Machine, Partner, Pattern, Plan,
    Samples, Share, Socket, Transfer, Verb, Window, Work, WriteRead, Writer,
};
use lanemark_platform::Platform;
use lanemark_sim::SimulatedMachine;
use lanemark_units::Ticks;
use stage::{ns, platform, tree_platform};

fn transfer(verb: Verb, bytes: u64, count: u64, len: u64) -> Transfer {
    let window = Window { offset: 0, len, pattern: Pattern::Sequential };
    Transfer { card: 0, verb, partner: Partner::Host, bytes, count, window, outstanding: None }
}

/// The transfer, with this initial state of host memory.
fn in_memory(transfer: Transfer, memory: HostMemory) -> EngineWork {
    EngineWork { jobs: vec![EngineJob::Transfer(transfer)], memory }
}

fn run(platform: &Platform, work: impl Into<Work>) -> Samples {
    let plan = Plan::new(work, 1);
    let mut samples = Samples::wanted(1);
    SimulatedMachine::new(platform).unwrap().run(&plan, &mut samples).unwrap_or_else(|error| panic!("{error}"));
    assert!(samples.confirmed.is_none_or(|bytes| bytes.claimed_bytes == bytes.confirmed_bytes));
    samples
}

fn took(platform: &Platform, work: impl Into<Work>) -> Ticks {
    run(platform, work).taken[0].delivered
}

const REQUEST: (&str, f64) = ("root_complex.request_ns", 300.0);

#[test]
fn reads_and_writes_are_limited_by_the_root_complex() {
    let (free, slow) = (platform("8B", &[]), platform("8B", &[REQUEST]));
    for verb in [Verb::Store, Verb::Load] {
        let of = |platform, count| took(platform, transfer(verb, 64, count, 4096));
        assert_eq!(of(&slow, 1), of(&free, 1), "{verb:?}");
        assert_eq!(of(&slow, 11) - of(&slow, 1), ns(300) * 10, "{verb:?}");
        assert!(of(&free, 11) - of(&free, 1) < ns(300) * 10);
    }
    // Together: each pair is a write and a read.
    let write = Transfer { outstanding: Some(4), ..transfer(Verb::Store, 64, 11, 4096) };
    let read = Window { offset: 8192, len: 4096, pattern: Pattern::Sequential };
    let pairs = |count| {
        let write = Transfer { count, ..write };
        took(&slow, WriteRead { write, read, is_mixed: true })
    };
    assert_eq!(pairs(11) - pairs(1), ns(300) * 20);
}

#[test]
fn a_sample_is_not_delayed_by_requests_of_the_previous_one() {
    for key in [REQUEST.0, "memory.read_request_ns", "memory.write_tlp_ns"] {
        let slow = platform("8B", &[(key, 100_000.0)]);
        for verb in [Verb::Store, Verb::Load] {
            let plan = Plan::new(transfer(verb, 64, 1, 4096), 1);
            let mut samples = Samples::wanted(3);
            SimulatedMachine::new(&slow).unwrap().run(&plan, &mut samples).unwrap();
            let took: Vec<Ticks> = samples.taken.iter().map(|sample| sample.delivered).collect();
            assert_eq!(took, [took[0]; 3], "{key}, {verb:?}");
        }
    }
}

#[test]
fn root_ports_share_the_root_complex_round_robin() {
    let mut two = tree_platform(&[REQUEST]);
    "root".clone_into(&mut two.switches[1].below);
    let write = |card| {
        let window = Window { offset: u64::from(card) << 16, len: 4096, pattern: Pattern::Sequential };
        Transfer { card, window, ..transfer(Verb::Store, 64, 40, 4096) }
    };
    let alone = run(&two, write(0));
    let both = run(&two, [write(0), write(2)].map(EngineJob::Transfer).to_vec());
    let moved: u64 = both.together.as_ref().unwrap().each.iter().map(|moved| moved.bytes).sum();
    assert_eq!(moved, 2 * 40 * 64);
    let more = both.taken[0].delivered - alone.taken[0].delivered;
    // Round-robin: the first card's last request is the last but one of all, or the last one.
    assert!((ns(300) * 39..=ns(300) * 40).contains(&more), "{more:?}");
}

#[test]
fn a_credit_stall_for_queued_requests_is_charged_to_the_root_complex() {
    let slow = platform("8B", &[REQUEST, ("root_complex.posted_header_credits", 4.0)]);
    let samples = run(&slow, transfer(Verb::Store, 64, 40, 4096));
    let waited = samples.waits.iter().find(|wait| wait.cause == Cause::RootComplex).map(|wait| wait.span);
    assert!(waited > Some(ns(300) * 20), "{:?}", samples.waits);
}

#[test]
fn a_load_completes_after_queued_writes_of_the_card() {
    let call = |request: f64, completion| {
        let transfer = transfer(Verb::Store, 1024, 1, 4096);
        let descriptors = Descriptors::Written(lanemark_units::MemoryType::Uc);
        let call = DmaCall { transfer, channel: 0, share: Share::Doorbell, descriptors, completion };
        took(&platform("8B", &[("root_complex.request_ns", request)]), call)
    };
    // Eight writes of 128 B; the word follows them, and so does the completion of a load.
    assert!(call(2000.0, Completion::Flag) > ns(2000) * 8);
    let polled = call(2000.0, Completion::Register);
    assert!(polled > ns(2000) * 7 && polled < ns(2000) * 8, "{polled:?}");
}

const CACHE: [(&str, f64); 2] = [("memory.cache_bytes", 4096.0), ("memory.cached_read_ns", 80.0)];

#[test]
fn reads_hit_in_a_window_that_fits_into_the_cache() {
    let (plain, cached) = (platform("8B", &[]), platform("8B", &CACHE));
    let one = |platform, window: Window, bytes| {
        took(platform, Transfer { window, outstanding: Some(1), ..transfer(Verb::Load, bytes, 1, 0) })
    };
    let at = |offset, len| Window { offset, len, pattern: Pattern::Sequential };
    let dram = one(&plain, at(0, 4096), 64);
    assert_eq!(one(&cached, at(0, 4096), 64), dram - ns(120));
    // The window begins inside a line, so it touches one more.
    assert_eq!(one(&cached, at(32, 4096), 64), dram);
    assert_eq!(one(&cached, at(32, 4032), 64), one(&plain, at(32, 4032), 64) - ns(120));
    assert_eq!(one(&cached, at(0, 4160), 64), dram);
    // Every line of a read must be cached.
    assert_eq!(one(&cached, at(0, 4096), 128), one(&plain, at(0, 4096), 128) - ns(120));
    assert_eq!(one(&cached, at(0, 4224), 128), one(&plain, at(0, 4224), 128));
}

#[test]
fn a_read_that_hits_completes_before_an_earlier_dram_read() {
    // The first of 65 lines is not cached; the second read completes before it.
    let platform = platform("8B", &CACHE);
    let reads = |count| took(&platform, transfer(Verb::Load, 64, count, 65 * 64));
    assert_eq!(reads(2), reads(1));
    let samples = run(&platform, Transfer { outstanding: Some(2), ..transfer(Verb::Load, 64, 65, 65 * 64) });
    let [first, second] = [samples.latencies[0], samples.latencies[1]];
    assert!(first < second, "{first:?} {second:?}");
}

#[test]
fn a_card_hits_on_lines_it_has_just_written() {
    let write = Transfer { outstanding: Some(1), ..transfer(Verb::Store, 64, 1, 65536) };
    let pair = |changes: &[(&str, f64)]| {
        took(&platform("8B", changes), WriteRead { write, read: write.window, is_mixed: false })
    };
    assert_eq!(pair(&CACHE), pair(&[]) - ns(120));
}

#[test]
fn descriptors_written_by_the_core_hit_in_the_cache() {
    let transfer = transfer(Verb::Store, 64, 1, 4096);
    let (share, descriptors, completion) = (Share::Doorbell, Descriptors::Fetched, Completion::Flag);
    let call = DmaCall { transfer, channel: 0, share, descriptors, completion };
    let took = |changes: &[(&str, f64)]| took(&platform("8B", changes), call);
    assert_eq!(took(&CACHE), took(&[]) - ns(120));
}

/// Reads a window of `lines` lines once, one line at a time; returns the latencies.
fn one_by_one(platform: &Platform, lines: u64, written_by: Writer) -> Vec<Ticks> {
    let read = Transfer { outstanding: Some(1), ..transfer(Verb::Load, 64, lines, lines * 64) };
    let memory = HostMemory { written_by, ..HostMemory::default() };
    let plan = Plan::new(in_memory(read, memory), 1);
    let mut samples = Samples::wanted(1);
    SimulatedMachine::new(platform).unwrap().run(&plan, &mut samples).unwrap();
    samples.latencies.clone()
}

#[test]
fn hits_are_limited_by_ddio_ways_after_device_writes_and_by_all_ways_after_core_writes() {
    // 64 lines, of which devices fill 12.
    let cached = platform("8B", &[CACHE[0], CACHE[1], ("memory.ddio_ways", 3.0)]);
    let latencies = |lines, written_by| one_by_one(&cached, lines, written_by);
    let (slow, quick) = (latencies(1, Writer::Nobody)[0], latencies(1, Writer::Core)[0]);
    assert_eq!(slow - quick, ns(120));
    for (written_by, room) in [(Writer::Nobody, 0), (Writer::Device, 12), (Writer::Core, 64)] {
        for lines in [1, 12, 13, 64, 65, 100] {
            let hits = latencies(lines, written_by).iter().rev().take_while(|latency| **latency == quick).count();
            assert_eq!(hits as u64, lines.min(room), "{lines} lines, {written_by:?}");
            let misses = latencies(lines, written_by).iter().filter(|latency| **latency == slow).count();
            assert_eq!(misses as u64, lines - lines.min(room), "{lines} lines, {written_by:?}");
        }
    }
}

#[test]
fn a_partial_line_write_occupies_the_port_unless_the_line_is_cached() {
    let held = ("memory.partial_line_ns", 70.0);
    let writes = |changes: &[(&str, f64)], bytes, offset, written_by| {
        let window = Window { offset, len: 64 << 10, pattern: Pattern::Strided(192) };
        let write = Transfer { window, ..transfer(Verb::Store, bytes, 11, 0) };
        let memory = HostMemory { written_by, ..HostMemory::default() };
        let plan = |count| Plan::new(in_memory(Transfer { count, ..write }, memory), 1);
        let took = |count| {
            let mut samples = Samples::wanted(1);
            SimulatedMachine::new(&platform("8B", changes)).unwrap().run(&plan(count), &mut samples).unwrap();
            samples.taken[0].delivered
        };
        took(11) - took(1)
    };
    let free = |bytes, offset| writes(&[], bytes, offset, Writer::Core);
    for (bytes, offset, lines) in [(1, 0, 1), (63, 0, 1), (64, 0, 0), (65, 0, 1), (64, 4, 2), (60, 4, 1), (60, 0, 1)] {
        let slow = writes(&[held], bytes, offset, Writer::Core);
        let meant = if lines == 0 { free(bytes, offset) } else { ns(70) * lines * 10 };
        assert_eq!(slow, meant, "{bytes} B at {offset}");
        // The whole window is cached after core writes, and not cached without a writer.
        let cached = [held, ("memory.cache_bytes", 65536.0), ("memory.cached_read_ns", 80.0)];
        assert_eq!(writes(&cached, bytes, offset, Writer::Core), free(bytes, offset), "{bytes} B at {offset}");
        assert_eq!(writes(&cached, bytes, offset, Writer::Nobody), meant, "{bytes} B at {offset}");
    }
}

#[test]
fn requests_behind_a_partial_line_write_wait_for_it() {
    let pair = |partial: f64, bytes| {
        let write = Transfer { outstanding: Some(1), ..transfer(Verb::Store, bytes, 1, 4096) };
        let pairs = WriteRead { write, read: write.window, is_mixed: false };
        took(&platform("8B", &[("memory.partial_line_ns", partial)]), pairs)
    };
    let apart = pair(1000.0, 60) - pair(0.0, 60);
    assert!(apart > ns(900) && apart <= ns(1000), "{apart:?}");
    assert_eq!(pair(1000.0, 64), pair(0.0, 64));
    let held = platform("8B", &[("memory.partial_line_ns", 1000.0), ("root_complex.posted_header_credits", 2.0)]);
    let samples = run(&held, transfer(Verb::Store, 32, 20, 4096));
    let waited = samples.waits.iter().find(|wait| wait.cause == Cause::Memory).map(|wait| wait.span);
    assert!(waited > Some(ns(1000) * 8), "{:?}", samples.waits);
}

#[test]
fn memory_of_the_other_socket_adds_its_latency_in_both_directions() {
    let two = platform("8B", &[CACHE[0], CACHE[1], ("memory.remote_ns", 65.0)]);
    let took = |platform: &Platform, verb, written_by, socket| {
        let memory = HostMemory { written_by, socket };
        let transfer = Transfer { outstanding: Some(1), ..transfer(verb, 64, 1, 64) };
        let plan = Plan::new(in_memory(transfer, memory), 1);
        let mut samples = Samples::wanted(1);
        let mut machine = SimulatedMachine::new(platform).unwrap();
        machine.run(&plan, &mut samples).map(|()| samples.taken[0].delivered)
    };
    for written_by in [Writer::Nobody, Writer::Core, Writer::Device] {
        for (verb, more) in [(Verb::Load, ns(130)), (Verb::Store, ns(65))] {
            let [near, far] =
                [Socket::Local, Socket::Remote].map(|socket| took(&two, verb, written_by, socket).unwrap());
            assert_eq!(far - near, more, "{verb:?} {written_by:?}");
        }
    }
    let refused = took(&platform("8B", &CACHE), Verb::Load, Writer::Core, Socket::Remote).unwrap_err().to_string();
    assert!(refused.contains("it has one socket: memory.remote_ns is 0"), "{refused}");
}
