//! Comparison of formulas and simulation, which share only platforms and tables.
//!
//! Over a few thousand random platforms and plans, the simulation is never faster than a formula's bound or the ceiling. Where
//! one bound clearly exceeds the next, both agree. The gaps of the other cases are in `docs/crosscheck.md`, which this test
//! compares; `LANEMARK_BLESS=1` rewrites it.

use lanemark_machine::{Access, DriverCall, Fence, Machine, Plan, Samples, Span, Step, Stream, Verb, Width};
use lanemark_model::{Bound, Prediction, ceiling, predict};
use lanemark_platform::{Origin, Platform, preset};
use lanemark_sim::SimulatedMachine;
use lanemark_units::{MemoryType, Rate, Ticks};
use lanemark_wire::{Generation, Lanes, tlp_ticks};
use std::fmt::Write as _;
use std::path::Path;

/// Relative rounding error of the simulation: half round trips, cycles and beats are whole ticks.
const ROUNDING: f64 = 0.001;
/// Ratio of the largest bound to the next one from which it clearly leads.
const CLEAR: f64 = 1.25;
/// With a leading bound, the largest relative gap, plus one round trip until the steady state.
const AGREE: f64 = 0.02;
/// As above for a copy by `memcpy`, which mixes widths; the formula uses their mean.
const MIXED: f64 = 0.1;

/// A linear congruential generator with a fixed seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    /// A number between `least` and `most`, log-uniform.
    fn between(&mut self, least: f64, most: f64) -> f64 {
        let share = self.below(1_000_000) as f64 / 1e6;
        (least.ln() + share * (most.ln() - least.ln())).exp()
    }
}

/// A random platform derived from a preset, and its storage region.
fn platform(random: &mut Random) -> (Platform, &'static str) {
    let (name, region) = random.pick(&[("card-gen5-x16", "memory"), ("tacc-stratix4", "sram"), ("aws-f1", "ddr")]);
    let mut platform = preset(name).unwrap().unwrap();
    let mut set = |key: &str, value: f64| {
        // A value that is invalid with the others, such as fewer credits than one packet needs, is not applied.
        if let Ok(changed) = platform.with(key, value, Origin::Assumed("picked".to_owned())) {
            platform = changed;
        }
    };
    let beat = format!("region.{region}.beat_ns");
    let read = format!("region.{region}.read_ns");
    let beat_bytes = format!("region.{region}.beat_bytes");
    let numbers: [(&str, f64, f64); 14] = [
        ("core.clock_ghz", 1.0, 5.0),
        ("core.store_loop_cycles", 0.5, 20.0),
        ("core.sfence_ns", 1.0, 20.0),
        ("core.lfence_ns", 1.0, 20.0),
        ("core.mfence_ns", 1.0, 50.0),
        ("core.interrupt_ns", 100.0, 2000.0),
        ("core.cached_load_ns", 1.0, 4.0),
        ("driver.call_ns", 50.0, 1000.0),
        ("root_complex.core_round_trip_ns", 10.0, 500.0),
        ("link.latency_ns", 20.0, 500.0),
        ("endpoint.ingress_ns", 5.0, 300.0),
        ("endpoint.egress_ns", 5.0, 300.0),
        (&beat, 0.5, 100.0),
        (&read, 5.0, 500.0),
    ];
    let counts: [(&str, f64, f64); 9] = [
        ("core.store_buffer_entries", 1.0, 120.0),
        ("core.wc_buffers", 1.0, 24.0),
        ("core.wc_loads_in_flight", 1.0, 12.0),
        ("core.streaming_load_buffers", 1.0, 24.0),
        ("core.fill_buffers", 1.0, 24.0),
        ("root_complex.posted_queue_entries", 1.0, 100.0),
        ("link.posted_header_credits", 1.0, 127.0),
        ("link.posted_data_credits", 8.0, 2047.0),
        ("link.nonposted_header_credits", 1.0, 127.0),
    ];
    for (key, least, most) in numbers {
        if random.below(2) == 0 {
            set(key, random.between(least, most));
        }
    }
    for (key, least, most) in counts {
        if random.below(2) == 0 {
            set(key, random.between(least, most).round());
        }
    }
    if random.below(2) == 0 {
        set("link.generation", random.pick(&[1.0, 2.0, 3.0, 4.0, 5.0]));
        set("link.width_lanes", random.pick(&[1.0, 2.0, 4.0, 8.0, 16.0]));
    }
    if random.below(2) == 0 {
        set(&beat_bytes, random.pick(&[1.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]));
    }
    (platform, region)
}

/// A plan, and the part of it that the ceiling applies to.
struct Case {
    platform: Platform,
    region: &'static str,
    plan: Plan,
    /// Class of the case in the table.
    class: &'static str,
    what: String,
    verb: Verb,
    size: u64,
    /// Whether every byte of every iteration crosses the link.
    all_cross: bool,
}

fn case(random: &mut Random) -> Case {
    let (platform, region) = platform(random);
    let machine = SimulatedMachine::new(&platform).unwrap();
    let place = machine.facts().region(region).unwrap().at;
    let verb = random.pick(&[Verb::Store, Verb::Store, Verb::Load]);
    let mut access = random.pick(machine.facts().accesses(verb));
    let kind =
        random.pick(&[MemoryType::Uc, MemoryType::Wc, MemoryType::Wc, MemoryType::Wc, MemoryType::Wt, MemoryType::Wp]);
    let one_at_a_time = kind == MemoryType::Uc || (verb == Verb::Load && kind == MemoryType::Wc);
    let mut size = random.pick(&[64, 128, 256, 512, 1024, 4096, 16384]);
    if access == Access::Memcpy || random.below(8) == 0 {
        size = random.pick(&[64, 128, 256, 512, 1024, 2048, 4096]);
    } else if random.below(10) == 0 && access != Access::Movdir64b {
        size = access.width().map_or(8, Width::bytes);
    }
    if one_at_a_time {
        size = size.min(1024);
    }
    let budget = if one_at_a_time { 4096 } else { 32768 };
    let passes = (budget / size).clamp(1, 1 + random.below(100));
    let span = Span { at: place, len: size, memory_type: kind };
    let (mut fence, mut call) = (None, String::new());
    let op = if random.below(10) == 0 {
        access = Access::Plain(Width::B8);
        let call_bytes = random.pick(&[8, 64, 512, 4096]).min(size);
        call = format!(" by calls of {call_bytes} B");
        Step::Driver(DriverCall { verb, span, call_bytes, width: Width::B8 })
    } else {
        if random.below(3) == 0 {
            fence = Some(random.pick(&Fence::ALL));
        }
        Step::Stream(Stream { fence_each: fence.filter(|_| verb == Verb::Load), ..Stream::over(verb, access, span) })
    };
    let driver = matches!(op, Step::Driver(_));
    let mut body = vec![op];
    let flushes = verb == Verb::Load && kind.caches_loads() && !driver && random.below(4) > 0;
    if flushes {
        body.push(Step::FlushLines(span));
    }
    if verb == Verb::Store {
        body.extend(fence.map(Step::Fence));
    }
    let eaten = size < 64 && !driver && !fence.is_some_and(Fence::drains_stores);
    let cached = verb == Verb::Load && kind.caches_loads() && !flushes;
    let class = match (driver, verb, access) {
        (true, ..) => "driver calls",
        (_, Verb::Store, Access::Memcpy) => "stores by memcpy",
        (_, Verb::Store, Access::Movdiri(_)) => "stores by MOVDIRI",
        (_, Verb::Store, _) if kind == MemoryType::Wc && fence.is_some() => "WC stores, fenced",
        (_, Verb::Store, _) if kind == MemoryType::Wc => "WC stores",
        (_, Verb::Store, _) => "UC, WT, WP stores",
        (_, Verb::Load, Access::NonTemporal(_)) if kind == MemoryType::Wc => "streaming loads",
        (_, Verb::Load, _) if kind.caches_loads() => "WT, WP loads",
        (_, Verb::Load, _) => "UC, WC loads",
    };
    let fence = fence.map_or(String::new(), |fence| format!(", {fence}"));
    let what = format!("{verb:?} {access} {kind} {size} B x {passes}{fence}{call} on {}", platform.name);
    let plan = Plan { timeout: Ticks::whole_ns(1_000_000_000_000), ..Plan::new(body, passes) };
    Case { platform, region, plan, class, what, verb, size, all_cross: !eaten && !cached }
}

/// Results of simulation and formula.
struct Both {
    said: Prediction,
    issue_ns: f64,
    delivered_ns: f64,
}

impl Both {
    /// Relative time of the simulation beyond the formula; negative only by rounding.
    fn gap(&self) -> f64 {
        self.delivered_ns / self.said.delivered_ns - 1.0
    }

    fn issue_gap(&self) -> f64 {
        (self.issue_ns / self.said.issue_ns - 1.0).abs()
    }
}

fn ask(case: &Case) -> Option<Both> {
    let said = predict(&case.platform, &case.plan)?;
    let mut machine = SimulatedMachine::new(&case.platform).unwrap();
    let mut samples = Samples::wanted(1);
    machine.run(&case.plan, &mut samples).unwrap_or_else(|error| panic!("{}: {error}", case.what));
    let sample = samples.taken[0];
    Some(Both { said, issue_ns: sample.issue.as_ns(), delivered_ns: sample.delivered.as_ns() })
}

/// Unloaded round trip from a core to the region's data, in ns.
fn round_trip_ns(case: &Case) -> f64 {
    let (platform, region) = (&case.platform, case.platform.region(case.region).unwrap());
    let parts = [
        platform.root_complex.core_round_trip_ns.value,
        platform.link.latency_ns.value * 2,
        platform.endpoint.ingress_ns.value,
        platform.endpoint.egress_ns.value,
        region.read_ns.value,
        region.beat_ns.value,
    ];
    parts.into_iter().sum::<Ticks>().as_ns()
}

/// A row of the table.
#[derive(Default)]
struct Row {
    cases: u32,
    within: [u32; 3],
    issue_within: [u32; 3],
    worst: Option<(f64, String)>,
}

const LIMITS: [f64; 3] = [0.02, 0.05, 0.10];

impl Row {
    fn add(&mut self, case: &Case, both: &Both) {
        self.cases += 1;
        for (limit, (within, issue)) in LIMITS.iter().zip(self.within.iter_mut().zip(&mut self.issue_within)) {
            *within += u32::from(both.gap() <= *limit);
            *issue += u32::from(both.issue_gap() <= *limit);
        }
        if self.worst.as_ref().is_none_or(|worst| both.gap() > worst.0) {
            self.worst = Some((both.gap(), case.what.clone()));
        }
    }

    fn print(&self, class: &str, into: &mut String) {
        let percent = |count: u32| 100.0 * f64::from(count) / f64::from(self.cases.max(1));
        let [two, five, ten] = self.within.map(percent);
        let issue = percent(self.issue_within[1]);
        let (gap, what) = self.worst.as_ref().map_or((0.0, ""), |worst| (worst.0, worst.1.as_str()));
        let _ = writeln!(
            into,
            "| {class} | {} | {two:.1} | {five:.1} | {ten:.1} | {issue:.1} | {:.1} % | {what} |",
            self.cases,
            100.0 * gap
        );
    }
}

/// Time of one DLLP relative to a round trip of credits: once per round trip, an `UpdateFC` may wait for another DLLP.
fn share_of_a_dllp(platform: &Platform) -> f64 {
    let link = &platform.link;
    let generation = Generation::from_number(link.generation.value as u8).unwrap();
    let lanes = Lanes::new(link.width_lanes.value as u8).unwrap();
    let dllp = tlp_ticks(generation, lanes, generation.rate().dllp_bytes.into()).as_ns();
    dllp / (dllp + 2.0 * link.latency_ns.value.as_ns() + platform.endpoint.ingress_ns.value.as_ns())
}

#[test]
fn the_simulation_is_never_faster_than_a_bound_and_meets_a_leading_one() {
    let mut random = Random(20);
    let mut rows: Vec<(&str, Row)> = Vec::new();
    let (mut clear, mut failures) = (0, Vec::new());
    for number in 0..8000 {
        let case = case(&mut random);
        let Some(both) = ask(&case) else { continue };
        let place = rows.iter().position(|row| row.0 == case.class).unwrap_or_else(|| {
            rows.push((case.class, Row::default()));
            rows.len() - 1
        });
        rows[place].1.add(&case, &both);
        let mut fail = |why: String| {
            failures
                .push(format!("case {number}: {}: {why}: {:?}, simulated {}", case.what, both.said, both.delivered_ns));
        };
        let mixed = case.what.contains("memcpy");
        if both.gap() < -(if mixed { MIXED } else { ROUNDING }) {
            fail(format!("the simulation is faster than the formula by {:.2} %", -100.0 * both.gap()));
        }
        if case.all_cross {
            let rate = Rate::over(case.plan.bytes_per_sample(), Ticks::from_ns(both.delivered_ns).unwrap()).unwrap();
            let most = ceiling(&case.platform, case.region, case.verb, case.size).unwrap().rate;
            if rate.bytes_per_s() > most.bytes_per_s() * (1.0 + ROUNDING) {
                fail(format!("{rate} is above the ceiling of {most}"));
            }
        }
        if both.said.lead >= CLEAR {
            clear += 1;
            let apart = AGREE + if both.said.bound == Bound::Credits { share_of_a_dllp(&case.platform) } else { 0.0 };
            let late = both.delivered_ns - both.said.delivered_ns * (1.0 + apart);
            if late > round_trip_ns(&case) && !mixed {
                fail(format!("one bound leads, but the simulation takes {:.1} % longer", 100.0 * both.gap()));
            }
        }
    }
    let shown = failures.iter().take(15).cloned().collect::<Vec<_>>().join("\n");
    assert!(failures.is_empty(), "{} failures:\n{shown}", failures.len());
    assert!(clear > 4000, "only {clear} cases have a leading bound");
    rows.sort_by_key(|row| row.0);
    compare_with_document(&document(&rows, clear));
}

fn document(rows: &[(&str, Row)], clear: u32) -> String {
    let cases: u32 = rows.iter().map(|row| row.1.cases).sum();
    let mut text = format!(
        "# Formulas against the simulation\n\n\
         Written by `checks/tests/crosscheck.rs` from {cases} random platforms and plans; `LANEMARK_BLESS=1\n\
         cargo test -p lanemark-checks --test crosscheck` rewrites it. A formula is the largest of several lower\n\
         bounds: the simulation never delivers earlier (beyond rounding, 0.1 %). Where one bound is {CLEAR} times the\n\
         next ({clear} cases), it delivers at most {:.0} % and one round trip later. Copies by `memcpy` are an exception:\n\
         their mean width describes them to 10 %. Where credits lead, one DLLP per round trip of credits is\n\
         tolerated, because an `UpdateFC` may wait for another DLLP. In the other cases several bounds limit\n\
         together; the table shows the gap.\n\n\
         Columns: share of the cases in which the simulation delivers at most 2, 5, 10 % after the formula; share\n\
         in which the issue time differs by at most 5 %; the largest gap and its case.\n\n\
         | class | cases | 2 % | 5 % | 10 % | issue 5 % | largest gap | where |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n",
        100.0 * AGREE
    );
    for (class, row) in rows {
        row.print(class, &mut text);
    }
    text
}

fn compare_with_document(text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/crosscheck.md");
    if std::env::var_os("LANEMARK_BLESS").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == text,
        "docs/crosscheck.md is out of date: run this test with LANEMARK_BLESS=1; it would be\n{text}"
    );
}

#[test]
fn unloaded_latencies_are_exact_to_a_few_ticks() {
    let mut random = Random(7);
    let few_ticks = 12.0 / Ticks::PER_NS as f64;
    let mut asked = 0;
    for _ in 0..600 {
        let (platform, region) = platform(&mut random);
        let machine = SimulatedMachine::new(&platform).unwrap();
        let place = machine.facts().region(region).unwrap().at;
        let verb = random.pick(&[Verb::Store, Verb::Load]);
        let access = random.pick(machine.facts().accesses(verb));
        let Some(width) = access.width() else { continue };
        for kind in [MemoryType::Uc, MemoryType::Wc, MemoryType::Wt, MemoryType::Wp] {
            let span = Span { at: place, len: width.bytes(), memory_type: kind };
            for fence in [None, Some(Fence::Lfence), Some(Fence::Mfence)] {
                let fence_each = fence.filter(|_| verb == Verb::Load);
                let stream = Stream { fence_each, ..Stream::over(verb, access, span) };
                let mut body = vec![Step::Stream(stream)];
                body.extend(fence.filter(|_| verb == Verb::Store).map(Step::Fence));
                let what = format!("{verb:?} {access} {kind} {fence:?} on {}", platform.name);
                let case = Case {
                    platform: platform.clone(),
                    region,
                    plan: Plan::new(body, 1),
                    class: "",
                    what,
                    verb,
                    size: width.bytes(),
                    all_cross: true,
                };
                let both = ask(&case).unwrap_or_else(|| panic!("{}: there is no formula", case.what));
                let apart = (both.delivered_ns - both.said.delivered_ns).abs();
                assert!(apart <= few_ticks, "{}: {apart} ns apart: {:?} {}", case.what, both.said, both.delivered_ns);
                let apart = (both.issue_ns - both.said.issue_ns).abs();
                assert!(apart <= few_ticks, "{}: issue {apart} ns apart: {:?} {}", case.what, both.said, both.issue_ns);
                asked += 1;
            }
        }
    }
    assert!(asked > 5000, "{asked}");
}
