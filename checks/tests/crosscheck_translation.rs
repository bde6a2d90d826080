//! Comparison of formulas and simulation for an IOMMU and ATS, on random platforms. The criteria are those of
//! `crosscheck_transfers.rs`.

mod random_platform;

use lanemark_bench::{Axes, question};
use lanemark_checks::on_all_cores;
use lanemark_machine::{
    Completion, Descriptors, DmaCall, EngineJob, Machine, Partner, Pattern, Plan, Samples, Share, Transfer, Verb,
    Window, Work, WriteRead,
};
use lanemark_model::{Bound, FormulaMachine, Prediction, predict};
use lanemark_platform::{PRESETS, Platform};
use lanemark_record::Reach;
use lanemark_sim::SimulatedMachine;
use lanemark_units::Ticks;
use random_platform::behind_iommu::{numbers, platform};
use random_platform::{Random, set};

/// As in `crosscheck_transfers.rs`.
const ROUNDING: f64 = 0.001;
const CLEAR: f64 = 1.25;
const AGREE: f64 = 0.02;
/// Time of an acknowledgment on the slowest link of these platforms: 8 B on Gen2 x8.
const ACKNOWLEDGED_NS: f64 = 2.0;

/// Simulated time of the last of three rounds over a window, and the formula.
fn ask(platform: &Platform, transfer: Transfer) -> Option<(f64, Prediction)> {
    ask_for(platform, transfer)
}

fn ask_for(platform: &Platform, work: impl Into<Work>) -> Option<(f64, Prediction)> {
    let timeout = Ticks::whole_ns(1_000_000_000_000);
    let plan = Plan { timeout, warmup_passes: 2, ..Plan::new(work, 1) };
    let said = predict(platform, &plan)?;
    let mut samples = Samples::wanted(1);
    SimulatedMachine::new(platform).unwrap().run(&plan, &mut samples).unwrap_or_else(|error| panic!("{error}"));
    assert!(samples.confirmed.is_none_or(|bytes| bytes.claimed_bytes == bytes.confirmed_bytes), "{plan:?}");
    Some((samples.taken[0].delivered.as_ns(), said))
}

/// One round over a random window.
fn round(random: &mut Random, platform: &Platform, verb: Verb, bytes: u64) -> Transfer {
    let page = platform.iommu.as_ref().unwrap().page_bytes.value;
    let entries = u64::from(platform.iommu.as_ref().unwrap().iotlb_entries.value);
    let stride = random.pick(&[page, page, 2 * page, page / 2, page / 8]);
    let room = platform.memory.as_ref().unwrap().size_bytes.value / 2;
    // Mostly about as many pages as the IOTLB has entries.
    let places = match random.below(3) {
        0 => 1 + random.below(2 * entries),
        1 => entries * page / stride + random.below(3),
        _ => 1 + random.below(2000),
    };
    let (stride, places) = (stride.max(bytes), places.clamp(1, (room / stride).min(3000)));
    let offset = random.pick(&[0, 0, 64, page / 2 / 64 * 64]);
    let window = Window { offset, len: places * stride, pattern: Pattern::Strided(stride) };
    Transfer { card: 0, verb, partner: Partner::Host, bytes, count: places, window, outstanding: None }
}

#[test]
fn single_reads_match_the_formula_for_hits_and_walks() {
    let mut random = Random(61);
    let (mut asked, mut missed, mut paced) = (0, 0, 0);
    for number in 0..600 {
        let platform = platform(&mut random);
        let bytes = random.pick(&[4, 64]);
        let transfer = Transfer { outstanding: Some(1), ..round(&mut random, &platform, Verb::Load, bytes) };
        let Some((simulated, said)) = ask(&platform, transfer) else { continue };
        let alone = Transfer { count: 1, window: Window { len: bytes, ..transfer.window }, ..transfer };
        let (_, known) = ask(&platform, alone).unwrap();
        let each = said.delivered_ns / transfer.count as f64 / known.delivered_ns;
        let few_ticks = 24.0 / Ticks::PER_NS as f64 * transfer.count as f64;
        let later = simulated - said.delivered_ns;
        // A walk waits for the previous one, so the formula is only a bound.
        let is_paced = platform.number("iommu.walk_interval_ns").is_some_and(|(ns, _)| ns > known.delivered_ns);
        assert!(
            later.abs() <= few_ticks || is_paced && later > 0.0,
            "case {number}: {simulated} and {said:?}: {transfer:?} on {}, {}",
            platform.name,
            numbers(&platform)
        );
        asked += 1;
        missed += u32::from(each > 1.01);
        paced += u32::from(is_paced);
    }
    assert!(asked > 550 && missed > 150 && missed < asked - 150, "{asked} cases, {missed} of them misses");
    assert!(paced < 60, "{paced} of {asked}");
}

/// Gives the platform a random last-level cache that its walks read through.
fn through_cache(platform: &mut Platform, random: &mut Random) {
    let (walked, _) = platform.number("iommu.walk_read_ns").unwrap();
    let (read, _) = platform.number("memory.read_ns").unwrap();
    set(platform, "memory.cache_bytes", 1024.0 * random.pick(&[1.0, 64.0, 1024.0, 16384.0, 65536.0]));
    set(platform, "memory.cached_read_ns", random.pick(&[read, (read * 2.0).round() / 4.0]));
    set(platform, "memory.ddio_ways", random.pick(&[1.0, 2.0, 16.0]));
    set(platform, "iommu.walk_cached_read_ns", random.pick(&[walked, (walked * 2.0).round() / 4.0, 0.25]));
}

#[test]
fn walks_through_the_cache_match_the_formula_if_the_table_is_cached_and_the_bound_otherwise() {
    let mut random = Random(73);
    let (mut kept, mut missed, mut pushed_out) = (0, 0, 0);
    for number in 0..600 {
        let mut platform = platform(&mut random);
        set(&mut platform, "iommu.walk_interval_ns", 0.0);
        through_cache(&mut platform, &mut random);
        let verb = random.pick(&[Verb::Load, Verb::Load, Verb::Store]);
        let bytes = random.pick(&[4, 64]);
        let transfer = Transfer { outstanding: Some(1), ..round(&mut random, &platform, verb, bytes) };
        let Some((simulated, said)) = ask(&platform, transfer) else { continue };
        let (window, few_ticks) = (transfer.window, 24.0 / Ticks::PER_NS as f64 * transfer.count as f64);
        let later = simulated - said.delivered_ns;
        // Enough lines for the data and eight levels of entries of 8 B, at any address.
        let pages = window.len / 4096 + 1;
        let lines = window.len / 64 + 8 * (pages / 8 + 3);
        let (cache, _) = platform.number("memory.cache_bytes").unwrap();
        let is_kept = verb == Verb::Load && lines as f64 * 64.0 * 2.0 < cache;
        assert!(
            later >= -few_ticks && (!is_kept || later <= few_ticks),
            "case {number}: {simulated} and {said:?}: {transfer:?} on {}, {}, a cache of {cache} B",
            platform.name,
            numbers(&platform)
        );
        let alone = Transfer { count: 1, window: Window { len: bytes, ..window }, ..transfer };
        let (_, known) = ask(&platform, alone).unwrap();
        kept += u32::from(is_kept);
        missed += u32::from(is_kept && said.delivered_ns > 1.01 * known.delivered_ns * transfer.count as f64);
        pushed_out += u32::from(later > few_ticks);
    }
    assert!(
        kept > 100 && missed > 15 && pushed_out > 50,
        "{kept} cached, {missed} of them misses, {pushed_out} evicted"
    );
}

#[test]
fn the_simulation_is_never_faster_than_a_bound_and_meets_a_leading_one() {
    let mut random = Random(67);
    let cases = (0..1500).map(move |number| {
        let mut platform = platform(&mut random);
        if number % 3 == 0 {
            through_cache(&mut platform, &mut random);
        }
        let bytes = random.pick(&[64, 512, 4096, 10_000]);
        let verb = random.pick(&[Verb::Load, Verb::Store]);
        let whole = round(&mut random, &platform, verb, bytes);
        // One round, or less, or more.
        let count = random.pick(&[whole.count, whole.count, whole.count.div_ceil(3), 2 * whole.count + 1]);
        (number, platform, Transfer { count, ..whole })
    });
    let asked = on_all_cores(cases, |(number, platform, transfer)| {
        let (simulated, said) = ask(&platform, transfer)?;
        let first = Transfer { bytes: transfer.bytes.min(4096), count: 1, ..transfer };
        let latency = ask(&platform, first).map_or(0.0, |(_, said)| said.delivered_ns);
        Some((number, platform, transfer, simulated, said, latency))
    });
    let (mut clear, mut walking, mut failures) = (0, 0, Vec::new());
    for (number, platform, transfer, simulated, said, latency) in asked.into_iter().flatten() {
        let later = simulated - said.delivered_ns;
        let leads = said.lead >= CLEAR;
        clear += u32::from(leads);
        walking += u32::from(said.bound == Bound::Translation);
        if later < -ROUNDING * said.delivered_ns || leads && later > AGREE * said.delivered_ns + latency {
            failures.push(format!(
                "case {number}: {simulated} and {said:?}, one {latency}: {transfer:?} on {}, {}",
                platform.name,
                numbers(&platform)
            ));
        }
    }
    assert!(failures.is_empty(), "{} of them:\n{}", failures.len(), failures[..failures.len().min(3)].join("\n"));
    assert!(clear > 150 && walking > 50, "{clear} with a leading bound, {walking} of them walks");
}

#[test]
fn a_write_and_a_following_read_are_translated_concurrently() {
    let mut random = Random(97);
    let mut asked = 0;
    for number in 0..200 {
        let mut platform = platform(&mut random);
        set(&mut platform, "iommu.lookup_ns", random.pick(&[0.0, 10.0, 300.0, 1000.0]));
        let bytes = random.pick(&[4, 8, 64, 512, 4096]);
        let write = Transfer { count: 1, outstanding: Some(1), ..round(&mut random, &platform, Verb::Store, bytes) };
        let pairs = WriteRead { write, read: write.window, is_mixed: false };
        let Some((simulated, said)) = ask_for(&platform, pairs) else { continue };
        assert!(
            simulated >= said.delivered_ns * (1.0 - ROUNDING),
            "case {number}: {simulated} and {said:?}: {pairs:?} on {}: {}",
            platform.name,
            numbers(&platform)
        );
        asked += 1;
    }
    assert!(asked > 100, "{asked}");
}

/// A random platform with ATS, with more or fewer entries than a window has pages.
fn with_ats(random: &mut Random) -> Platform {
    let mut platform = platform(random);
    let entries = random.pick(&[1, 2, 8, 16, 64, 512]);
    set(&mut platform, "dma.ats_entries", f64::from(entries));
    assert!(platform.has_ats());
    for (key, least, most) in [
        ("endpoint.egress_ns", 5.0, 300.0),
        ("endpoint.ingress_ns", 5.0, 300.0),
        ("link.latency_ns", 20.0, 500.0),
        ("dma.read_request_ns", 1.0, 50.0),
        ("dma.descriptor_ns", 1.0, 50.0),
    ] {
        set(&mut platform, key, (random.between(least, most) * 4.0).round() / 4.0);
    }
    platform
}

/// One round over about as many pages as the device has ATS entries.
fn round_of_device(random: &mut Random, platform: &Platform, verb: Verb, bytes: u64) -> Transfer {
    let Transfer { window, .. } = round(random, platform, verb, bytes);
    let Pattern::Strided(stride) = window.pattern else { panic!("{window:?}") };
    let page = platform.iommu.as_ref().unwrap().page_bytes.value;
    let keeps = u64::from(platform.dma.as_ref().unwrap().ats_entries.value) * page / stride;
    let room = platform.memory.as_ref().unwrap().size_bytes.value / 2 / stride;
    let places = random.pick(&[1, keeps / 2, keeps, keeps + 1, 2 * keeps, window.len / stride]);
    let places = places.clamp(1, room.min(3000));
    let window = Window { len: places * stride, ..window };
    Transfer { card: 0, verb, partner: Partner::Host, bytes, count: places, window, outstanding: None }
}

#[test]
fn single_reads_with_ats_match_the_formula() {
    let mut random = Random(103);
    let (mut asked, mut missed, mut bounds) = (0, 0, 0);
    for number in 0..400 {
        let mut platform = with_ats(&mut random);
        // If a walk waits for the previous one, the formula is only a bound.
        set(&mut platform, "iommu.walk_interval_ns", 0.0);
        let bytes = random.pick(&[4, 64]);
        let transfer = Transfer { outstanding: Some(1), ..round_of_device(&mut random, &platform, Verb::Load, bytes) };
        let Some((simulated, said)) = ask(&platform, transfer) else { continue };
        let alone = Transfer { count: 1, window: Window { len: bytes, ..transfer.window }, ..transfer };
        let (_, known) = ask(&platform, alone).unwrap();
        let later = simulated - said.delivered_ns;
        // A translation request is a separate request.
        let few_ticks = 48.0 / Ticks::PER_NS as f64 * transfer.count as f64;
        // The translation completion waits for the acknowledgment of its request, so the formula is only a bound.
        let is_bound = platform.number("iommu.lookup_ns").is_some_and(|(ns, _)| ns < ACKNOWLEDGED_NS);
        assert!(
            later.abs() <= few_ticks
                || is_bound && later > 0.0 && later < ACKNOWLEDGED_NS * transfer.count as f64 && said.lead <= 1.0,
            "case {number}: {simulated} and {said:?}: {transfer:?}, {} kept, on {}, {}",
            platform.dma.as_ref().unwrap().ats_entries.value,
            platform.name,
            numbers(&platform)
        );
        asked += 1;
        missed += u32::from(said.delivered_ns > 1.01 * known.delivered_ns * transfer.count as f64);
        bounds += u32::from(is_bound);
    }
    assert!(asked > 350 && missed > 100 && missed < asked - 100, "{asked} cases, {missed} of them misses");
    assert!(bounds < asked / 3, "{bounds} of {asked}");
}

#[test]
fn devices_with_ats_are_never_faster_than_a_bound_and_meet_a_leading_one() {
    let mut random = Random(107);
    let (mut clear, mut asking, mut failures) = (0, 0, Vec::new());
    for number in 0..600 {
        let platform = with_ats(&mut random);
        let bytes = random.pick(&[64, 512, 4096, 10_000]);
        let verb = random.pick(&[Verb::Load, Verb::Store]);
        let whole = round_of_device(&mut random, &platform, verb, bytes);
        let count = random.pick(&[whole.count, whole.count, whole.count.div_ceil(3), 2 * whole.count + 1]);
        let transfer = Transfer { count, ..whole };
        let Some((simulated, said)) = ask(&platform, transfer) else { continue };
        let first = Transfer { bytes: bytes.min(4096), count: 1, ..transfer };
        let latency = ask(&platform, first).map_or(0.0, |(_, said)| said.delivered_ns);
        let later = simulated - said.delivered_ns;
        let leads = said.lead >= CLEAR;
        clear += u32::from(leads);
        asking += u32::from(said.bound == Bound::Translation);
        if later < -ROUNDING * said.delivered_ns || leads && later > AGREE * said.delivered_ns + latency {
            failures.push(format!(
                "case {number}: {simulated} and {said:?}, one {latency}: {transfer:?}, {} kept, on {}, {}",
                platform.dma.as_ref().unwrap().ats_entries.value,
                platform.name,
                numbers(&platform)
            ));
        }
    }
    assert!(failures.is_empty(), "{} of them:\n{}", failures.len(), failures[..failures.len().min(3)].join("\n"));
    assert!(clear > 50 && asking > 50, "{clear} with a leading bound, {asking} of them translation requests");
}

#[test]
fn a_transfer_takes_the_same_time_whatever_was_translated_before() {
    let mut random = Random(109);
    let mut asked = [0; 2];
    for number in 0..120 {
        let keeps = number % 2 == 0;
        let mut platform = with_ats(&mut random);
        if !keeps {
            set(&mut platform, "dma.ats_entries", 0.0);
        }
        if number % 3 == 0 {
            through_cache(&mut platform, &mut random);
        }
        let bytes = random.pick(&[64, 512, 4096]);
        let verb = random.pick(&[Verb::Load, Verb::Store]);
        let whole = if keeps {
            round_of_device(&mut random, &platform, verb, bytes)
        } else {
            round(&mut random, &platform, verb, bytes)
        };
        let part = Transfer { count: whole.count.div_ceil(2), ..whole };
        let timeout = Ticks::whole_ns(1_000_000_000_000);
        let plan = |transfer| Plan { timeout, ..Plan::new(transfer, 1) };
        let simulated = |machine: &mut SimulatedMachine| {
            let mut samples = Samples::wanted(2);
            machine.run(&plan(whole), &mut samples).unwrap();
            samples.taken.iter().map(|sample| sample.delivered).collect::<Vec<_>>()
        };
        let (mut fresh, mut used) =
            (SimulatedMachine::new(&platform).unwrap(), SimulatedMachine::new(&platform).unwrap());
        used.run(&plan(part), &mut Samples::wanted(1)).unwrap();
        let (first, later) = (simulated(&mut fresh), simulated(&mut used));
        let message = format!("case {number}: {whole:?} on {}: {}", platform.name, numbers(&platform));
        assert_eq!(first, later, "{message}");
        assert_eq!(first[0], first[1], "{message}");
        asked[usize::from(keeps)] += 1;
    }
    assert_eq!(asked, [60; 2]);
}

#[test]
fn a_read_that_waits_for_the_credit_of_its_translation_request_is_not_faster_than_the_bound() {
    let mut random = Random(113);
    let mut waited = 0;
    for number in 0..60 {
        let mut platform = with_ats(&mut random);
        set(&mut platform, "iommu.walk_interval_ns", 0.0);
        set(&mut platform, "root_complex.nonposted_header_credits", 1.0);
        set(&mut platform, "dma.ats_entries", 1.0);
        let transfer = Transfer { outstanding: Some(1), ..round_of_device(&mut random, &platform, Verb::Load, 64) };
        let Some((simulated, said)) = ask(&platform, transfer) else { continue };
        let (later, few_ticks) = (simulated - said.delivered_ns, 48.0 / Ticks::PER_NS as f64 * transfer.count as f64);
        assert!(
            later >= -few_ticks && (later <= few_ticks || said.lead <= 1.0),
            "case {number}: {simulated} and {said:?}: {transfer:?} on {}: {}",
            platform.name,
            numbers(&platform)
        );
        waited += u32::from(later > few_ticks);
    }
    assert!(waited > 5, "{waited}");
}

#[test]
fn with_several_outstanding_reads_the_formula_is_at_most_one_round_trip() {
    let mut random = Random(127);
    let mut asked = 0;
    for number in 0..100 {
        let platform = with_ats(&mut random);
        let entries = u64::from(platform.dma.as_ref().unwrap().ats_entries.value);
        let outstanding = Some(random.pick(&[2, 8, 32]));
        let transfer = Transfer { outstanding, ..round_of_device(&mut random, &platform, Verb::Load, 64) };
        let timeout = Ticks::whole_ns(1_000_000_000_000);
        let plan = Plan { timeout, warmup_passes: 2, ..Plan::new(transfer, 1) };
        let Pattern::Strided(stride) = transfer.window.pattern else { panic!("{transfer:?}") };
        let page = platform.iommu.as_ref().unwrap().page_bytes.value;
        if transfer.count * stride.min(page) / page <= entries + 1 || predict(&platform, &plan).is_none() {
            continue;
        }
        let mut simulated = SimulatedMachine::new(&platform).unwrap();
        let mut samples = Samples::wanted(1);
        simulated.run(&plan, &mut samples).unwrap();
        let least = samples.latencies.iter().min().unwrap().as_ns();
        let mut formula = FormulaMachine::new(&platform, simulated.facts());
        formula.run(&plan, &mut samples).unwrap();
        let said = samples.latencies[0].as_ns();
        // The formula is the time of a read that hits.
        assert!(
            said <= least * (1.0 + ROUNDING),
            "case {number}: {least} and {said}: {transfer:?} on {}: {}",
            platform.name,
            numbers(&platform)
        );
        asked += 1;
    }
    assert!(asked > 20, "{asked}");
}

#[test]
fn driver_calls_with_ats_have_no_leading_bound() {
    let preset = PRESETS.iter().find(|preset| preset.name == "card-gen5-x16-iommu").unwrap();
    let mut platform = Platform::parse("calls", preset.text).unwrap();
    set(&mut platform, "dma.ats_entries", 1.0);
    for completion in [Completion::Flag, Completion::Interrupt, Completion::Register] {
        for verb in [Verb::Load, Verb::Store] {
            let window = Window { offset: 0, len: 4096, pattern: Pattern::Sequential };
            let transfer =
                Transfer { card: 0, verb, partner: Partner::Host, bytes: 4096, count: 1, window, outstanding: None };
            let (share, descriptors) = (Share::Doorbell, Descriptors::Fetched);
            let call = DmaCall { transfer, channel: 0, share, descriptors, completion };
            let timeout = Ticks::whole_ns(1_000_000_000);
            // Status words, descriptors and data are in pages that evict each other from the single entry.
            let plan = Plan { timeout, warmup_passes: 2, ..Plan::new(call, 1) };
            let said = predict(&platform, &plan).unwrap();
            let mut samples = Samples::wanted(1);
            SimulatedMachine::new(&platform).unwrap().run(&plan, &mut samples).unwrap();
            let simulated = samples.taken[0].delivered.as_ns();
            assert!(said.lead <= 1.0 && simulated > 1.02 * said.delivered_ns, "{verb:?} {completion:?}: {said:?}");
        }
    }
}

/// The cases of `iotlb_thrash` for a given or default window and stride.
fn in_turn(platform: &Platform, window_bytes: Option<u64>, stride_bytes: Option<u64>) -> Vec<(String, Plan)> {
    let thrash = question("iotlb_thrash").unwrap();
    let axes = Axes { reach: Reach { window_bytes, stride_bytes, ..Reach::default() }, ..Axes::default() };
    let cases = (thrash.cases)(SimulatedMachine::new(platform).unwrap().facts(), &axes);
    cases.iter().map(|case| (case.method.to_string(), (thrash.plan)(case, 1))).collect()
}

#[test]
fn iotlb_thrash_varies_pages_and_strides_or_uses_the_given_ones() {
    let preset = PRESETS.iter().find(|preset| preset.name == "card-gen5-x16-iommu").unwrap();
    let platform = Platform::parse(preset.name, preset.text).unwrap();
    let names = |window, stride| -> Vec<String> {
        let asked = in_turn(&platform, window, stride);
        asked.into_iter().map(|(way, _)| way.trim_start_matches("host-to-device by DMA, ").to_owned()).collect()
    };
    let far = [2, 4, 8, 16, 32].map(|pages| format!("{pages} pages in turn, every 4MiB"));
    let near =
        ["1MiB", "256KiB", "64KiB", "16KiB", "4KiB"].map(|distance| format!("32 pages in turn, every {distance}"));
    assert_eq!(names(None, None), [far, near].concat());
    assert_eq!(names(None, Some(65536)), [2, 4, 8, 16, 32].map(|pages| format!("{pages} pages in turn, every 64KiB")));
    assert_eq!(names(Some(1 << 20), Some(65536)), ["16 pages in turn, every 64KiB, in 1MiB"]);
    assert_eq!(names(Some(128 << 20), None), ["32 pages in turn, every 4MiB, in 128MiB"]);
}

#[test]
fn iotlb_thrash_matches_the_formula_for_random_iotlbs() {
    let mut random = Random(71);
    let (mut asked, mut missed) = (0, 0);
    for number in 0..100 {
        let mut platform = platform(&mut random);
        // If a walk waits for the previous one, the formula is only a bound.
        set(&mut platform, "iommu.walk_interval_ns", 0.0);
        let mut fastest = f64::INFINITY;
        for (way, plan) in in_turn(&platform, None, None) {
            let [EngineJob::Transfer(transfer)] = *plan.work.jobs() else { panic!("{way}: no transfer") };
            let (simulated, said) = ask(&platform, transfer).unwrap();
            let each = simulated / transfer.count as f64;
            let few_ticks = 24.0 / Ticks::PER_NS as f64 * transfer.count as f64;
            let later = simulated - said.delivered_ns;
            assert!(
                later.abs() <= few_ticks,
                "platform {number}, {way}: {simulated} and {said:?}: {}",
                numbers(&platform)
            );
            fastest = fastest.min(each);
            asked += 1;
            missed += u32::from(each > 1.01 * fastest);
        }
    }
    assert!(asked > 600 && missed > 150 && missed < asked - 150, "{asked} cases, {missed} of them misses");
}
