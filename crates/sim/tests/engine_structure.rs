//! Structure of DMA engines and of completions: directions at the same time, rules of merging, and alignment.

mod stage;

use lanemark_machine::{Cause, EngineJob, Machine, Partner, Pattern, Plan, Samples, Transfer, Verb, Window, WriteRead};
use lanemark_platform::{Origin, Platform};
use lanemark_sim::SimulatedMachine;
use lanemark_units::Ticks;
use stage::{ns, platform};

/// Returns transfers of `bytes` bytes between card 0 and host memory.
fn transfer(verb: Verb, bytes: u64, count: u64) -> Transfer {
    let window = Window { offset: 0, len: 64 << 10, pattern: Pattern::Sequential };
    Transfer { card: 0, verb, partner: Partner::Host, bytes, count, window, outstanding: None }
}

fn run(platform: &Platform, transfers: &[Transfer]) -> Samples {
    let jobs = transfers.iter().copied().map(EngineJob::Transfer).collect::<Vec<EngineJob>>();
    let mut samples = Samples::wanted(1);
    SimulatedMachine::new(platform).unwrap().run(&Plan::new(jobs, 1), &mut samples).unwrap();
    samples
}

/// Returns a platform with these keys changed.
fn changed(changes: &[(&str, &str)]) -> Platform {
    let origin = || Origin::Assumed("a test".to_owned());
    platform("8B", &[]).with_texts(changes.iter().map(|(key, value)| (*key, *value, origin()))).unwrap()
}

#[test]
fn a_full_duplex_engine_writes_and_reads_at_the_same_time_and_shares_only_its_shared_part() {
    let took = |changes: &[(&str, &str)]| {
        let write = transfer(Verb::Store, 4096, 4);
        let pairs = WriteRead { write, read: Window { offset: 1 << 16, ..write.window }, is_mixed: true };
        let mut samples = Samples::wanted(1);
        SimulatedMachine::new(&changed(changes)).unwrap().run(&Plan::new(pairs, 1), &mut samples).unwrap();
        let on_path: Ticks = samples.path.iter().map(|share| share.span).sum();
        assert_eq!(on_path, samples.taken[0].delivered, "{:?}", samples.path);
        samples.taken[0].delivered
    };
    // The engine is the limit: 100 ns for each of 128 writes and of 32 reads.
    let slow = [("dma.write_request_ns", "100"), ("dma.read_request_ns", "400"), ("dma.read_bytes", "512")];
    let one_channel = took(&slow);
    let duplex = [&slow[..], &[("dma.full_duplex", "true")]].concat();
    let both = took(&duplex);
    assert!(one_channel > both + ns(10_000), "{one_channel:?} and {both:?}");
    // Every request of both directions passes the shared part: 32 of each in turns, then 96 writes of 1136 ns each.
    let shared = took(&[&duplex[..], &[("dma.shared_request_ns", "1000")]].concat());
    assert!(shared > ns(64_000 + 96 * 1136) && shared < ns(64_000 + 96 * 1136 + 1136), "{shared:?}");
}

#[test]
fn two_jobs_of_a_card_need_two_channels_or_a_full_duplex_engine() {
    let both = [transfer(Verb::Store, 64, 4), transfer(Verb::Load, 64, 4)];
    let run = |changes: &[(&str, &str)]| {
        let jobs = both.map(EngineJob::Transfer).to_vec();
        SimulatedMachine::new(&changed(changes)).unwrap().run(&Plan::new(jobs, 1), &mut Samples::wanted(1))
    };
    let refused = run(&[]).unwrap_err().to_string();
    assert!(refused.contains("dma.full_duplex is false"), "{refused}");
    assert!(run(&[("dma.channels", "2")]).is_ok() && run(&[("dma.full_duplex", "true")]).is_ok());
}

#[test]
fn reads_of_whole_lines_and_long_reads_have_full_completions_if_configured() {
    let completions = |changes: &[(&str, f64)], offset: u64, bytes: u64| {
        let changes = [&[("memory.completion_bytes", 64.0), ("link.mps_bytes", 256.0)], changes].concat();
        let window = Window { offset, len: 4096, pattern: Pattern::Sequential };
        let samples = run(&platform("8B", &changes), &[Transfer { window, ..transfer(Verb::Load, bytes, 1) }]);
        samples.traffic.unwrap().completion_tlps
    };
    let lines = [("memory.full_completion_lines", 4.0)];
    assert_eq!([completions(&lines, 0, 256), completions(&lines, 64, 256), completions(&lines, 0, 192)], [1, 1, 3]);
    assert_eq!(completions(&lines, 4, 256), 5, "not from the start of a line");
    let long = [("memory.full_completion_from_bytes", 200.0)];
    assert_eq!([completions(&long, 0, 200), completions(&long, 0, 199)], [1, 4]);
}

#[test]
fn completions_of_the_root_port_start_at_their_alignment() {
    // A completion of 64 B takes 84 B, 21 ns, and with its padding 96 B, 24 ns.
    let took = |aligned: f64, bytes: u64| {
        let changes = [("memory.completion_bytes", 64.0), ("root_complex.completion_alignment_bytes", aligned)];
        run(&platform("8B", &changes), &[transfer(Verb::Load, bytes, 1)]).taken[0].delivered
    };
    assert_eq!(took(32.0, 128), took(4.0, 128) + ns(3), "a second completion starts later");
    assert_eq!(took(32.0, 64), took(4.0, 64), "the last one takes no longer");
}

#[test]
fn the_link_pauses_before_each_segment_of_a_write_while_the_engine_goes_on() {
    let took = |changes: &[(&str, &str)], bytes: u64| {
        run(&changed(changes), &[transfer(Verb::Store, bytes, 1)]).taken[0].delivered
    };
    let pauses = [("dma_write.segment_bytes", "256"), ("dma_write.segment_link_ns", "1000")];
    // The first segment has a pause, too.
    assert_eq!(took(&pauses, 64), took(&[], 64) + ns(1000));
    assert_eq!(took(&pauses, 256), took(&[], 256) + ns(1000));
    assert_eq!(took(&pauses, 512), took(&[], 512) + ns(2000));
    // A slow engine fills buffers during the 16 pauses.
    let slow = [("dma.write_request_ns", "400")];
    let both = [&pauses[..], &slow[..]].concat();
    assert!(took(&both, 4096) < took(&slow, 4096) + ns(5000), "{:?}", took(&both, 4096));
}

#[test]
fn the_data_of_a_read_that_needs_several_pushes_take_a_minimum_time() {
    let took = |least: &str, bytes: u64, count: u64| {
        let changes = [("dma_read.push_bytes", "64"), ("dma_read.many_pushes_ns", least)];
        run(&changed(&changes), &[transfer(Verb::Load, bytes, count)]).taken[0].delivered
    };
    // A completion has 12 B of header and 8 B in each beat.
    let beat = changed(&[]).dma.unwrap().beat_ns.value;
    let beats = beat * (12_u64 + 68).div_ceil(changed(&[]).dma.unwrap().beat_bytes.value.into());
    assert_eq!(took("1000", 68, 1), took("0", 68, 1) + ns(1000) - beats, "longer than a push");
    assert!(took("1000", 63, 1) > took("0", 63, 1) + ns(800), "not a whole number of DWs");
    assert_eq!(took("1000", 64, 3), took("0", 64, 3), "one push");
    // The data of one read after those of the other.
    assert_eq!(took("1000", 68, 3), took("1000", 68, 1) + ns(2000));
    assert_eq!(took("0.25", 68, 3), took("0", 68, 3), "beats take longer than the minimum");
}

/// Returns the times of reads one at a time, all together and each.
fn one_at_a_time(changes: &[(&str, &str)], bytes: u64, count: u64) -> (Ticks, Vec<Ticks>) {
    let samples = run(&changed(changes), &[Transfer { outstanding: Some(1), ..transfer(Verb::Load, bytes, count) }]);
    let on_path: Ticks = samples.path.iter().map(|share| share.span).sum();
    assert_eq!(on_path, samples.taken[0].delivered, "{:?}", samples.path);
    (samples.taken[0].delivered, samples.latencies)
}

#[test]
fn a_queue_and_a_signal_are_part_of_each_latency_but_hold_no_tags() {
    let keys = [("dma_read.queue_ns", "300"), ("dma_read.signal_ns", "200")];
    let ((alone, each), (slower, slower_each)) = (one_at_a_time(&[], 64, 5), one_at_a_time(&keys, 64, 5));
    assert_eq!(slower, alone + ns(5 * 500));
    // The time in the queue is work of the engine on the critical path.
    let work = |keys| {
        let samples = run(&changed(keys), &[Transfer { outstanding: Some(1), ..transfer(Verb::Load, 64, 5) }]);
        samples.path.iter().filter(|share| share.cause == Cause::Engine).map(|share| share.span).sum::<Ticks>()
    };
    assert_eq!(work(&keys[..1]), work(&[]) + ns(5 * 300));
    assert_eq!((each.len(), slower_each.len()), (5, 5));
    assert!(each.iter().zip(&slower_each).all(|(alone, slower)| *slower == *alone + ns(500)), "{slower_each:?}");
    // All reads are in the queue from the start, and tags are free before the signal.
    let took = |keys: &[(&str, &str)]| {
        let few_tags = [keys, &[("dma.tags", "2")]].concat();
        run(&changed(&few_tags), &[transfer(Verb::Load, 64, 50)]).taken[0].delivered
    };
    assert_eq!(took(&keys), took(&[]) + ns(500));
}

#[test]
fn data_count_when_they_are_stored_and_the_stream_is_not_slower() {
    let keys = |bytes| [("dma_read.store_bytes", bytes), ("dma_read.store_ns", "400")];
    let took = |keys: &[(&str, &str)], bytes: u64, count: u64| {
        run(&changed(keys), &[transfer(Verb::Load, bytes, count)]).taken[0].delivered
    };
    assert_eq!(took(&keys("64"), 64, 1), took(&[], 64, 1) + ns(400));
    assert_eq!(took(&keys("256"), 64, 1), took(&[], 64, 1) + ns(100), "a quarter of them");
    assert_eq!(took(&keys("64"), 64, 100), took(&[], 64, 100) + ns(400));
    let ((alone, _), (slower, _)) = (one_at_a_time(&[], 64, 5), one_at_a_time(&keys("64"), 64, 5));
    assert_eq!(slower, alone + ns(5 * 400));
}

#[test]
fn a_job_after_two_that_were_stopped_ends() {
    let write = transfer(Verb::Store, 4096, 50);
    let pairs = WriteRead { write, read: Window { offset: 1 << 16, ..write.window }, is_mixed: true };
    let platform = changed(&[("dma.full_duplex", "true"), ("dma.tags", "2"), ("dma.read_bytes", "64")]);
    let mut machine = SimulatedMachine::new(&platform).unwrap();
    // Reads of a transfer that began are not all requested.
    let late = Plan { timeout: ns(3000), ..Plan::new(pairs, 1) };
    assert!(machine.run(&late, &mut Samples::wanted(1)).is_err());
    let whole = Plan::new(vec![EngineJob::Transfer(write)], 1);
    machine.run(&whole, &mut Samples::wanted(1)).unwrap();
}
