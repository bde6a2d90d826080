//! A small record for tests: a simulated card with a bandwidth and a latency, and a host with an
//! unknown limit.

use lanemark_method::{
    Access, AccessPath, CoreAccess, Flow, HostWait, LaunchBy, Lines, Method, Peer, Reach, Verb, Width,
};
use lanemark_record::diagnosis::Fact;
use lanemark_record::{
    Advice, Answer, Bound, Bytes, CallerCores, Ceiling, CeilingKind, Class, CorePair, CpuSamples, Detail, DeviceKind,
    Direction, Formula, Host, Link, LinkUse, Origins, Picture, PictureLine, Quantity, Record, Reproduction, Row,
    Runtime, Skipped, SocketCpus, Summary, Target, TargetKind, Tlps, Verdict, WaitShare,
};
use lanemark_units::MemoryType;
use std::collections::BTreeMap;

/// An empty record.
pub(crate) fn empty() -> Record {
    Record::new(vec!["lanemark".to_owned(), "bench".to_owned()])
}

/// Two targets, two questions, three methods, three sizes.
pub(crate) fn record() -> Record {
    let mut record = empty();
    record.targets = vec![
        Target {
            name: "card-gen5-x16".to_owned(),
            summary: "A card on Gen5 x16".to_owned(),
            kind: TargetKind::Simulated,
            memcpy: "glibc, AVX".to_owned(),
            platform: Some(serde_json::json!({"link": {"width": 16, "note": "a & b"}})),
            origins: Some(Origins { given: 5, assumed: 3, fitted: 1, unknown: 0, inherited: None }),
            card: None,
            links: vec![],
            runtime: None,
            design: None,
        },
        Target {
            name: "host".to_owned(),
            summary: "This machine's memory".to_owned(),
            kind: TargetKind::Real,
            memcpy: "glibc".to_owned(),
            platform: None,
            origins: None,
            card: None,
            links: vec![],
            runtime: None,
            design: None,
        },
    ];
    for (access, fence, rates, wait) in [
        ("4", None, [0.04e9, 0.04e9, 0.04e9], "strong_ordering"),
        ("nt32", Some("sfence"), [2e9, 20e9, 50e9], "link_busy"),
        ("movdir64b", None, [8e9, 30e9, 51e9], "link_busy"),
    ] {
        for (size, rate) in [64, 4096, 4 << 20].into_iter().zip(rates) {
            let memory_type = if access == "4" { "uc" } else { "wc" };
            let mut answer = bandwidth("card-gen5-x16", method(memory_type, access, fence), size, rate);
            answer.ceiling = Ceiling {
                kind: CeilingKind::Computed,
                rate_bytes_per_s: Some(54e9),
                because: "Gen5 x16 in 256 B packets".to_owned(),
            };
            answer.share_of_ceiling_percent = Some(100.0 * rate / 54e9);
            answer.waits = vec![WaitShare {
                cause: wait.to_owned(),
                place: "card up".to_owned(),
                is_latency: false,
                explanation: "why".to_owned(),
                share_percent: 90.0,
            }];
            answer.formula = Some(Formula {
                latency_ns: None,
                delivered_rate_bytes_per_s: Some(rate * 1.01),
                bound: Some("link".to_owned()),
                cause: Some("link_busy".to_owned()),
                holds_for: "any size".to_owned(),
            });
            answer.tlps = Some(Tlps { writes: size.div_ceil(256), reads: 0, completions: 0, payload_bytes: size });
            answer.bytes = Some(Bytes { claimed_bytes: size, confirmed_bytes: size });
            record.answers.push(answer);
        }
    }
    for (access, size, ns) in [("4", 4, 441.0), ("8", 8, 442.5)] {
        let mut answer = bandwidth("card-gen5-x16", method("uc", access, None), size, 0.0);
        answer.question = "mmio_read_latency".to_owned();
        answer.quantity = Quantity::RoundTripLatency;
        answer.delivered_rate_bytes_per_s = None;
        answer.latency_ns = Summary::of(&[ns, ns, ns + 1.0]);
        answer.waits = vec![WaitShare {
            cause: "read_round_trip".to_owned(),
            place: "memory".to_owned(),
            is_latency: true,
            explanation: "away".to_owned(),
            share_percent: 99.0,
        }];
        answer.formula = Some(Formula {
            latency_ns: Some(ns),
            delivered_rate_bytes_per_s: None,
            bound: Some("round trip".to_owned()),
            cause: Some("read_round_trip".to_owned()),
            holds_for: "one read".to_owned(),
        });
        record.answers.push(answer);
    }
    record.answers.push(bandwidth("host", method("wb", "memcpy", None), 4096, 12e9));
    let stretch = |size_bytes, method, rate| Advice {
        question: "mmio_write_bandwidth".to_owned(),
        target: "card-gen5-x16".to_owned(),
        size_bytes,
        method,
        delivered_rate_bytes_per_s_median: rate,
        times_the_slowest: rate / 0.04e9,
        reason: "whole lines leave as one packet".to_owned(),
        rules: vec!["execute SFENCE before a doorbell".to_owned()],
    };
    record.advice = vec![
        stretch(64, method("wc", "movdir64b", None), 8e9),
        stretch(4096, method("wc", "movdir64b", None), 30e9),
        stretch(4 << 20, method("wc", "nt32", Some("sfence")), 50e9),
    ];
    record.skipped = ["uc 64", "wc 64"]
        .map(|what| Skipped {
            question: "mmio_write_bandwidth".to_owned(),
            target: "host".to_owned(),
            what: what.to_owned(),
            because: "this CPU has no AVX-512".to_owned(),
        })
        .to_vec();
    record.warnings = vec!["the clock frequency changed".to_owned()];
    record
}

/// Two methods between the cores 0, 1 and 3, without the pair of 1 and 3.
pub(crate) fn pairs() -> Record {
    let mut record = empty();
    for (lines, to_core, ns) in
        [(Lines::One, 1, 60.0), (Lines::One, 3, 90.0), (Lines::Two, 1, 170.0), (Lines::Two, 3, 171.0)]
    {
        let method = Method::CacheLines { memory_type: MemoryType::Wb, access: Access::Plain(Width::B8), lines };
        record.answers.push(Answer {
            question: "core_to_core".to_owned(),
            quantity: Quantity::OneWayLatency,
            latency_ns: Summary::of(&[ns]),
            issue_rate_bytes_per_s: None,
            delivered_rate_bytes_per_s: None,
            detail: Some(Detail::Pair(CorePair { from_core: 0, to_core })),
            ..bandwidth("host", method, 8, 0.0)
        });
    }
    record
}

/// Accesses of a core through a pointer.
pub(crate) fn method(memory_type: &str, access: &str, fence: Option<&str>) -> Method {
    Method::Core(CoreAccess {
        path: AccessPath::Pointer,
        verb: Verb::Store,
        memory_type: memory_type.parse().unwrap(),
        access: access.parse().unwrap(),
        fence: fence.map(|fence| fence.parse().unwrap()),
    })
}

/// An answer with a rate only.
pub(crate) fn bandwidth(target: &str, method: Method, size_bytes: u64, rate: f64) -> Answer {
    Answer {
        question: "mmio_write_bandwidth".to_owned(),
        target: target.to_owned(),
        method,
        varied: BTreeMap::new(),
        size_bytes,
        alignment_bytes: 0,
        quantity: Quantity::Bandwidth,
        latency_ns: None,
        issue_rate_bytes_per_s: Summary::of(&[rate * 2.0]),
        delivered_rate_bytes_per_s: Summary::of(&[rate]),
        ceiling: Ceiling {
            kind: CeilingKind::Unknown,
            rate_bytes_per_s: None,
            because: "no stand-in was measured".to_owned(),
        },
        share_of_ceiling_percent: None,
        waits: vec![],
        critical_path: vec![],
        resources: vec![],
        twin: None,
        sensitivities: vec![],
        formula: None,
        tlps: None,
        links: vec![],
        bytes: None,
        timer_cost_ns: 10.0,
        passes: 1,
        samples_ns: vec![1.0],
        raw: vec![],
        dropped: None,
        doubts: vec![],
        delivery: None,
        steady: None,
        corrected: Vec::new(),
        fit: None,
        detail: None,
    }
}

/// A reproduction with one row of each kind.
pub(crate) fn reproduction() -> Reproduction {
    let row = |id: &str, class, verdict, ours: Option<f64>, note: &str| Row {
        id: id.to_owned(),
        what: "latency of a 4 B read".to_owned(),
        published: Some(440.0),
        corrected: None,
        simulated: ours,
        formula: Some(441.0),
        unit: "ns".to_owned(),
        class,
        same_as: Vec::new(),
        error_percent: ours.map(|ours| 100.0 * (ours - 440.0) / 440.0),
        tolerance_percent: Some(5.0),
        verdict,
        note: note.to_owned(),
    };
    Reproduction {
        paper: "someone2026".to_owned(),
        title: "How long does a read take".to_owned(),
        platform: "card-gen5-x16".to_owned(),
        rows: vec![
            row("T1.a", Class::Given, Verdict::Listed, Some(440.0), ""),
            row("T1.b", Class::Fitted, Verdict::Agrees, Some(441.0), ""),
            row("T1.c", Class::Predicted, Verdict::Agrees, Some(442.0), "a note of a test"),
            row("T1.d", Class::Predicted, Verdict::KnownGap, Some(500.0), "the paper's host has two sockets"),
            row("T1.e", Class::Predicted, Verdict::Disagrees, Some(880.0), ""),
            row("T1.f", Class::Unanswered, Verdict::Later, None, "needs a switch"),
        ],
        bounds: vec![Bound {
            name: "all latencies".to_owned(),
            statistic: "median".to_owned(),
            rows: 5,
            found_percent: 0.5,
            wanted_percent: 2.0,
            met: true,
        }],
        pictures: vec![],
        here: vec![],
    }
}

/// Two lines; the name of one is markup, and most of its values are missing.
pub(crate) fn picture() -> Picture {
    let line = |name: &str, values: [Option<f64>; 3]| PictureLine { name: name.to_owned(), values: values.to_vec() };
    Picture {
        title: "Misses".to_owned(),
        along: "wc_buffers".to_owned(),
        shows: "misses a page".to_owned(),
        at: vec![1.0, 2.0, 4.0],
        lines: vec![line("ours", [Some(1.0), Some(1.5), Some(2.0)]), line("<theirs>", [Some(8.0), None, None])],
        note: "a note of a test".to_owned(),
    }
}

/// `cards` cards below switches of eight, four of them busy and one link saturated; a single card
/// is below the root itself.
pub(crate) fn fabric(cards: usize) -> Record {
    let mut record = record();
    let link =
        |name: String, above: &str, width_lanes| Link { name, above: above.to_owned(), generation: 2, width_lanes };
    let above = |card: usize| format!("sw{}", card / 8);
    let mut links: Vec<Link> = Vec::new();
    if cards > 1 {
        links.extend((0..cards.div_ceil(8)).map(|switch| link(format!("sw{switch}"), "root", 8)));
    }
    links.extend((0..cards).map(|card| {
        let above = if cards > 1 { above(card) } else { "root".to_owned() };
        link(format!("fpga{card}"), &above, 4)
    }));
    record.targets[0].links = links;
    let used = |link: &str, tlp_share_percent, payload_rate_bytes_per_s| LinkUse {
        link: link.to_owned(),
        direction: Direction::Up,
        tlp_share_percent,
        dllp_share_percent: 0.01,
        payload_rate_bytes_per_s,
    };
    let flows = vec![Flow { card: 0, verb: Verb::Store, peer: Peer::Host }];
    let method = Method::Dma { flows, outstanding: None, reach: Reach::default() };
    let mut answer =
        Answer { question: "shared_link".to_owned(), ..bandwidth("card-gen5-x16", method, 1 << 20, 3.44e9) };
    answer.links = vec![used("fpga0", 49.8, 0.861e9), used("fpga1", 0.99, 1e6)];
    if cards > 1 {
        answer.links.push(used("sw0", 99.6, 3.44e9));
    }
    record.answers = vec![answer];
    record
}

/// One card with three loads.
pub(crate) fn loaded() -> Record {
    let mut record = record();
    record.answers = [(1, 675.0, 0.76e9), (64, 675.0, 47.3e9), (256, 2165.0, 60e9)]
        .map(|(outstanding, ns, rate)| {
            let flows = vec![Flow { card: 0, verb: Verb::Load, peer: Peer::Host }];
            let method = Method::DmaUnderLoad { flows, outstanding, reach: Reach::default() };
            let mut answer = bandwidth("card-gen5-x16", method, 512, rate);
            answer.question = "loaded_latency".to_owned();
            answer.quantity = Quantity::RoundTripLatency;
            answer.latency_ns = Summary::of(&[ns, ns, ns * 1.1]);
            answer.ceiling.rate_bytes_per_s = Some(60.6e9);
            answer.formula = (outstanding == 1).then(|| Formula {
                latency_ns: Some(ns),
                delivered_rate_bytes_per_s: None,
                bound: Some("latency".to_owned()),
                cause: Some("read_round_trip".to_owned()),
                holds_for: "one card".to_owned(),
            });
            answer
        })
        .to_vec();
    record
}

/// Two methods of a runtime, called from one core on each of two sockets and from an unpinned
/// thread.
pub(crate) fn callers() -> Record {
    let mut record = record();
    let seen = |socket| SocketCpus { socket, cpus: vec![socket], first_threads: vec![socket] };
    let unseen = |what: &str| format!("no {what}");
    record.host = Some(Host {
        processor: Fact::Seen { value: "a processor".to_owned() },
        sockets: Fact::Seen { value: vec![seen(0), seen(1)] },
        governors: Fact::Unseen { unseen: unseen("governors") },
        idle_states: Fact::Unseen { unseen: unseen("idle states") },
        load_before: Fact::Unseen { unseen: unseen("loadavg") },
        load_after: Fact::Unseen { unseen: unseen("loadavg") },
        stolen_percent: Fact::Unseen { unseen: unseen("stat") },
    });
    let runtime = Runtime { device_kind: DeviceKind::Cpu, is_emulated: false, software: None };
    record.targets.truncate(1);
    record.targets[0] = Target {
        name: "opencl:0".to_owned(),
        kind: TargetKind::Real,
        platform: None,
        origins: None,
        runtime: Some(runtime),
        ..record.targets[0].clone()
    };
    let cpus = |counts: &[(u32, u64)]| {
        counts.iter().map(|(cpu, samples)| CpuSamples { cpu: *cpu, samples: *samples }).collect()
    };
    let places = [(Some(1), &[(1, 30)][..], 30e3), (None, &[(0, 10), (1, 20)], 25e3), (Some(0), &[(0, 30)], 20e3)];
    let methods = [(1, 1.0), (100, 0.05)];
    let answer = |(kernels, share): (u32, f64), (core, counts, ns): (Option<u32>, &[(u32, u64)], f64)| {
        let (wait, pinned) = (HostWait::Finish, core.is_some());
        let method = Method::Launch { kernels, by: LaunchBy::Calls, wait, arguments: None, pinned };
        let mut answer = bandwidth("opencl:0", method, 0, 1e9);
        "launch_latency".clone_into(&mut answer.question);
        (answer.quantity, answer.delivered_rate_bytes_per_s) = (Quantity::Cost, None);
        let mut samples = vec![ns * share; 99];
        samples.push(9e6 * share);
        answer.latency_ns = Summary::of(&samples).map(|summary| Summary { p99: 9e6 * share, ..summary });
        answer.detail = Some(Detail::Caller(CallerCores { core, cpus: cpus(counts) }));
        answer
    };
    record.answers =
        methods.iter().flat_map(|method| places.iter().map(move |place| answer(*method, *place))).collect();
    record
}
