//! Compiled plans predict the same as one prediction at a time, to the last bit.

use lanemark_machine::{Access, Fence, Plan, Span, Step, Stream, Verb, Width};
use lanemark_model::{CompileError, Compiled, Predictions, predict};
use lanemark_platform::{Origin, Platform, preset};
use lanemark_units::{BarOffset, MemoryType};

const LENGTHS: [u64; 8] = [4, 64, 100, 192, 1024, 1040, 4096, 8256];

fn platform(name: &str) -> Platform {
    preset(name).unwrap().unwrap()
}

/// Plans of stores and loads of every kind over this many bytes of a region.
fn plans(region: &lanemark_platform::Region, len: u64) -> Vec<Plan> {
    let at = BarOffset { bar: region.bar.value as u8, offset: region.offset_bytes.value };
    let mut plans = Vec::new();
    for memory_type in [MemoryType::Uc, MemoryType::Wc, MemoryType::Wt, MemoryType::Wp] {
        let span = Span { at, len, memory_type };
        let plain = [Width::B4, Width::B8, Width::B64].map(Access::Plain);
        let others = [Access::NonTemporal(Width::B16), Access::Movdiri(Width::B8), Access::Memcpy, Access::RepMovsb];
        for access in plain.into_iter().chain(others) {
            let store = || Step::Stream(Stream::over(Verb::Store, access, span));
            let load = || Stream::over(Verb::Load, access, span);
            let fenced = |fence| Step::Stream(Stream { fence_each: Some(fence), ..load() });
            plans.extend([1, 16].map(|passes| Plan::new(store(), passes)));
            for fence in [Fence::Sfence, Fence::Mfence, Fence::Interrupt] {
                plans.push(Plan::new(vec![store(), Step::Fence(fence)], 7));
            }
            plans.extend([1, 16].map(|passes| Plan::new(Step::Stream(load()), passes)));
            plans.push(Plan::new(vec![Step::Stream(load()), Step::FlushLines(span)], 3));
            plans.extend([Fence::Lfence, Fence::Mfence, Fence::Interrupt].map(|fence| Plan::new(fenced(fence), 3)));
        }
    }
    plans
}

/// Numbers with the values that they take, and the key.
fn varied(region: &str) -> Vec<(String, [f64; 4])> {
    let keys = [
        ("core.clock_ghz", [1.0, 2.1, 3.7, 5.0]),
        ("core.store_buffer_entries", [1.0, 16.0, 56.0, 112.0]),
        ("core.wc_buffers", [1.0, 4.0, 12.0, 40.0]),
        ("core.streaming_load_buffers", [1.0, 2.0, 10.0, 33.0]),
        ("core.fill_buffers", [1.0, 3.0, 12.0, 48.0]),
        ("core.cached_load_ns", [0.3, 1.7, 5.0, 90.0]),
        ("core.sfence_ns", [0.0, 2.0, 33.3, 500.0]),
        ("core.mfence_ns", [0.0, 12.0, 33.3, 500.0]),
        ("core.lfence_ns", [0.0, 12.0, 33.3, 500.0]),
        ("core.interrupt_ns", [0.0, 12.0, 33.3, 500.0]),
        ("root_complex.core_round_trip_ns", [4.0, 60.3, 120.0, 900.0]),
        ("root_complex.posted_queue_entries", [1.0, 3.0, 64.0, 500.0]),
        ("link.latency_ns", [20.1, 120.0, 333.3, 900.0]),
        ("link.posted_header_credits", [1.0, 7.0, 64.0, 127.0]),
        ("link.posted_data_credits", [128.0, 200.0, 256.0, 2047.0]),
        ("link.nonposted_header_credits", [1.0, 7.0, 64.0, 127.0]),
        ("endpoint.ingress_ns", [0.0, 60.0, 200.7, 900.0]),
        ("endpoint.egress_ns", [0.0, 60.0, 200.7, 900.0]),
    ];
    let of_region = [("beat_ns", [0.4, 1.0, 4.0, 100.0]), ("read_ns", [0.0, 40.0, 100.5, 3000.0])];
    let of_region = of_region.map(|(key, values)| (format!("region.{region}.{key}"), values));
    keys.into_iter().map(|(key, values)| (key.to_owned(), values)).chain(of_region).collect()
}

/// Pseudo-random numbers from a fixed seed: xorshift.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}

#[test]
fn every_plan_of_loads_and_stores_is_predicted_to_the_last_bit() {
    let mut draw = Draw(0x9E37_79B9_7F4A_7C15);
    let (mut compared, mut other_shapes) = (0, 0);
    for name in ["card-gen5-x16", "card-gen5-x16-iommu", "aws-f1", "tacc-stratix4", "rosta-virtex7"] {
        let platform = platform(name);
        for region in &platform.regions {
            let all = varied(&region.name);
            for plan in LENGTHS.iter().flat_map(|len| plans(region, *len)) {
                if draw.below(4) > 0 || predict(&platform, &plan).is_none() {
                    continue;
                }
                let first = draw.below(all.len());
                let keys = [first, (first + 1 + draw.below(8)) % all.len(), (first + 9 + draw.below(8)) % all.len()];
                let keys = keys.map(|place| &all[place]);
                let paths: Vec<&str> = keys.iter().map(|(key, _)| key.as_str()).collect();
                let compiled = match Compiled::of(&platform, &plan, &paths) {
                    Err(CompileError::Shape { .. }) => {
                        other_shapes += 1;
                        continue;
                    }
                    compiled => compiled.unwrap(),
                };
                let rows = 1 + draw.below(19);
                let array = |values: &[f64; 4], draw: &mut Draw| (0..rows).map(|_| values[draw.below(4)]).collect();
                let arrays: Vec<Vec<f64>> = keys.iter().map(|(_, values)| array(values, &mut draw)).collect();
                let slices: Vec<&[f64]> = arrays.iter().map(Vec::as_slice).collect();
                let mut found = Predictions::default();
                compiled.predict(&slices, &mut found).unwrap();
                for row in 0..rows {
                    let mut one = platform.clone();
                    for (path, values) in paths.iter().zip(&arrays) {
                        one = one.with(path, values[row], Origin::Assumed("drawn".to_owned())).unwrap();
                    }
                    let wanted = predict(&one, &plan).unwrap();
                    let found = (found.issue_ns[row], found.delivered_ns[row], found.bound[row], found.lead[row]);
                    let wanted = (wanted.issue_ns, wanted.delivered_ns, wanted.bound, wanted.lead);
                    assert_eq!(found, wanted, "{name}, {paths:?}, {slices:?}: {plan:?}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 5_000 && other_shapes < compared / 100, "{compared} compared, {other_shapes} other shapes");
}

fn stores() -> Plan {
    let span = Span { at: BarOffset { bar: 2, offset: 0 }, len: 4096, memory_type: MemoryType::Wc };
    Plan::new(Step::Stream(Stream::over(Verb::Store, Access::Plain(Width::B64), span)), 16)
}

#[test]
fn what_cannot_vary_is_refused_with_the_keys_that_can() {
    let (platform, plan) = (platform("card-gen5-x16"), stores());
    let refused = |plan: &Plan, key: &str| Compiled::of(&platform, plan, &[key]).unwrap_err().to_string();
    let text = refused(&plan, "link.generation");
    assert!(text.starts_with("card-gen5-x16: link.generation cannot vary; the keys that can are core."), "{text}");
    assert!(text.contains("region.memory.read_ns"), "{text}");
    let twice = ["link.latency_ns", "link.latency_ns"];
    let text = Compiled::of(&platform, &plan, &twice).unwrap_err().to_string();
    assert!(text.starts_with("link.latency_ns is given twice"), "{text}");
    let at = BarOffset { bar: 2, offset: 0 };
    let span = Span { at, len: 4096, memory_type: MemoryType::Wc };
    let of = |verb, access| Plan::new(Step::Stream(Stream::over(verb, access, span)), 1);
    let text = refused(&of(Verb::Store, Access::Movdiri(Width::B8)), "core.wc_buffers");
    assert!(text.contains("core.wc_buffers decides which formula holds"), "{text}");
    let none = |verb, access| {
        let plan = of(verb, access);
        let compiled = Compiled::of(&platform, &plan, &["core.streaming_load_buffers"]).unwrap();
        compiled.predict(&[&[0.0, 4.0]], &mut Predictions::default())
    };
    assert!(matches!(none(Verb::Load, Access::NonTemporal(Width::B64)), Err(CompileError::Shape { .. })));
    assert_eq!(none(Verb::Store, Access::Plain(Width::B64)), Ok(()));
    let fence = Plan::new(Step::Fence(Fence::Sfence), 1);
    assert!(refused(&fence, "link.latency_ns").contains("only loads and stores of one core"));
}

#[test]
fn arrays_that_do_not_fit_and_values_out_of_range_are_refused() {
    let (platform, plan) = (platform("card-gen5-x16"), stores());
    let compiled = Compiled::of(&platform, &plan, &["core.wc_buffers", "link.latency_ns"]).unwrap();
    let mut found = Predictions::default();
    compiled.predict(&[&[8.0; 9], &[100.0; 9]], &mut found).unwrap();
    let before = found.clone();
    let mut refused = |arrays: &[&[f64]]| compiled.predict(arrays, &mut found).unwrap_err().to_string();
    assert!(refused(&[&[8.0]]).starts_with("1 arrays for 2 keys"));
    let text = refused(&[&[8.0, 9.0], &[100.0]]);
    assert!(text.starts_with("link.latency_ns has 1 values, and core.wc_buffers has 2"), "{text}");
    assert!(refused(&[&[8.0, 8.5], &[100.0; 2]]).contains("core.wc_buffers: the value at index 1 is 8.5"));
    let mut late = [8.0; 20];
    late[17] = f64::NAN;
    assert!(refused(&[&late, &[100.0; 20]]).contains("index 17"));
    late[17] = f64::INFINITY;
    assert!(refused(&[&late, &[100.0; 20]]).contains("core.wc_buffers"));
    assert!(refused(&[&[8.0, 0.0], &[100.0; 2]]).contains("core.wc_buffers: is 0; must be"));
    assert!(refused(&[&[8.0; 2], &[100.0, -1.0]]).contains("link.latency_ns"));
    assert!(refused(&[&[8.0; 2], &[100.0, f64::NAN]]).contains("link.latency_ns"));
    assert_eq!(found, before, "a refused array changes nothing");
    compiled.predict(&[&[], &[]], &mut found).unwrap();
    assert_eq!(found, Predictions::default());
}
