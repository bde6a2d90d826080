//! A record with every type of the format.

use lanemark_method::{
    Access, AccessPath, Allocation, Arguments, Clock, Completion, ComputeWork, CopyDirection, CoreAccess, Descriptors,
    Discipline, Fence, Flow, Flush, HostWait, Invalidation, KernelCall, LaunchBy, LineSource, Lines, Means, Method,
    Peer, Share, Strategy, Table, Verb, WakeBy, Width,
};
use lanemark_record::diagnosis::Fact;
use lanemark_record::{
    Advice, Answer, Buffers, Bytes, CacheState, Ceiling, CeilingKind, CorrectedErrors, CurvePoint, Delivery, Detail,
    Direction, Doubt, DoubtKind, Dropped, DroppedSample, Finding, Formula, Inherited, Interval, KnownBy, LineFit, Link,
    LinkUse, Origins, PathPart, Quantity, RawSamples, Reach, Record, ResourceUse, Runtime, SCHEMA, Sensitivity,
    Skipped, Socket, SocketCpus, Software, Steady, Summary, Target, TargetKind, Tlps, Tool, Twin, WaitShare,
};
use lanemark_record::{Design, DeviceKind, Governor, Host, IdleState, Load};
use lanemark_units::MemoryType;

pub fn whole_record() -> Record {
    let method = every_method().remove(0);
    let summary = Summary {
        count: 3,
        min: 0.1,
        p1: 0.1,
        median: 1.0 / 3.0,
        p99: 1e300,
        max: f64::MAX,
        mad: 5e-324,
        ci95: Some(Interval { low: -0.5, high: 0.5 }),
    };
    Record {
        schema: SCHEMA,
        tool: Tool { name: "lanemark".to_owned(), version: "0.1.0".to_owned() },
        command: vec!["lanemark".to_owned(), "bench".to_owned(), "--on=\"schema\"".to_owned()],
        written_unix_s: Some(u64::MAX),
        imported: None,
        host: Some(Host {
            processor: Fact::Seen { value: "a processor".to_owned() },
            sockets: Fact::Seen { value: vec![SocketCpus { socket: 1, cpus: vec![1, 3], first_threads: vec![1] }] },
            governors: Fact::Seen {
                value: vec![Governor {
                    name: "powersave".to_owned(),
                    driver: Fact::Unseen { unseen: "there is no scaling_driver".to_owned() },
                    cpus: vec![1],
                }],
            },
            idle_states: Fact::Seen {
                value: vec![IdleState {
                    name: "C6".to_owned(),
                    exit_latency_ns: Fact::Seen { value: 133_000 },
                    is_disabled: Fact::Seen { value: true },
                }],
            },
            load_before: Fact::Seen {
                value: Load { one_minute: 0.5, five_minutes: 0.25, fifteen_minutes: 0.125, runnable: 2, threads: 90 },
            },
            load_after: Fact::Unseen { unseen: "there is no loadavg".to_owned() },
            stolen_percent: Fact::Seen { value: 0.5 },
        }),
        targets: vec![Target {
            name: "card".to_owned(),
            summary: "a \u{1f980}\n card".to_owned(),
            kind: TargetKind::Simulated,
            memcpy: "glibc-2.20-avx-unaligned".to_owned(),
            platform: Some(serde_json::json!({"schema": 7, "link": {"width_lanes": {"value": 8}}})),
            origins: Some(Origins {
                given: 1,
                assumed: u32::MAX,
                fitted: 0,
                unknown: 2,
                inherited: Some(Inherited { given: 3, assumed: 4, fitted: 5 }),
            }),
            card: None,
            runtime: Some(Runtime {
                device_kind: DeviceKind::Accelerator,
                is_emulated: true,
                software: Some(Software {
                    platform_name: "a runtime".to_owned(),
                    platform_version: "OpenCL 3.0".to_owned(),
                    device_name: "a card".to_owned(),
                    device_version: "OpenCL 1.2".to_owned(),
                    driver_version: "20.4".to_owned(),
                    loader_library: Some("/lib/libOpenCL.so.1".to_owned()),
                }),
            }),
            design: Some(Design {
                library: "card.so".to_owned(),
                library_bytes: u64::MAX,
                library_xxh3: "00112233445566778899aabbccddeeff".to_owned(),
                beat_bytes: 64,
                clock_ns: 3.2,
                platform: serde_json::json!({"schema": 7}),
            }),
            links: vec![Link { name: "fpga0".to_owned(), above: "root".to_owned(), generation: 6, width_lanes: 16 }],
        }],
        answers: vec![Answer {
            question: "mmio_write_bandwidth".to_owned(),
            target: "card".to_owned(),
            method: method.clone(),
            varied: [("dma.tags".to_owned(), "64".to_owned())].into(),
            size_bytes: u64::MAX,
            alignment_bytes: 0,
            quantity: Quantity::Bandwidth,
            latency_ns: Some(summary),
            issue_rate_bytes_per_s: Some(summary),
            delivered_rate_bytes_per_s: Some(summary),
            ceiling: Ceiling {
                kind: CeilingKind::Computed,
                rate_bytes_per_s: Some(15_753_846_153.846_153),
                because: "Gen3 x16".to_owned(),
            },
            share_of_ceiling_percent: Some(99.9),
            waits: vec![WaitShare {
                cause: "credit".to_owned(),
                place: "card down".to_owned(),
                is_latency: true,
                explanation: "for room at the receiver".to_owned(),
                share_percent: 50.0,
            }],
            critical_path: vec![PathPart {
                place: "card down".to_owned(),
                cause: "credit".to_owned(),
                is_latency: true,
                share_percent: 50.0,
            }],
            sensitivities: vec![Sensitivity {
                key: "dma.tags".to_owned(),
                value: 32.0,
                changed_to: 64.0,
                change_percent: 12.5,
                formula_change_percent: Some(12.4),
            }],
            formula: Some(Formula {
                latency_ns: Some(1.0),
                delivered_rate_bytes_per_s: Some(2.0),
                bound: Some("link".to_owned()),
                cause: Some("link_busy".to_owned()),
                holds_for: "all sizes".to_owned(),
            }),
            links: vec![LinkUse {
                link: "fpga0".to_owned(),
                direction: Direction::Up,
                tlp_share_percent: 99.5,
                dllp_share_percent: 0.25,
                payload_rate_bytes_per_s: 1e9,
            }],
            twin: Some(Twin {
                platform: "my-card".to_owned(),
                latency_ns: Some(1.5),
                delivered_rate_bytes_per_s: Some(2.5),
            }),
            resources: vec![ResourceUse {
                place: "memory".to_owned(),
                cause: "memory".to_owned(),
                direction: Some(Direction::Up),
                share_percent: 12.5,
            }],
            corrected: vec![CorrectedErrors { port: "root/card".to_owned(), error: "BadTLP".to_owned(), count: 3 }],
            tlps: Some(Tlps { writes: 1, reads: 2, completions: 3, payload_bytes: 4 }),
            bytes: Some(Bytes { claimed_bytes: 64, confirmed_bytes: 64 }),
            timer_cost_ns: -0.0,
            passes: 7,
            samples_ns: vec![0.1, 0.2, 0.3],
            raw: vec![RawSamples {
                plan: "pointer".to_owned(),
                passes: 7,
                round: vec![0, 0, 1],
                issue_ns: vec![0.7, 1.4, 2.1],
                delivered_ns: vec![0.7, 1.4, 2.1],
                cpu: vec![4, 4, 5],
                dropped: vec![DroppedSample { place: 1, reason: "clock_step".to_owned() }],
                is_subtracted: true,
            }],
            dropped: Some(Dropped { context_switches: 2, clock_steps: u64::MAX }),
            doubts: vec![Doubt { kind: DoubtKind::TwoHumps, text: "two kinds".to_owned() }],
            delivery: Some(Delivery { known_by: KnownBy::ReadBack, read_round_trip_ns: Some(812.5) }),
            detail: Some(Detail::Buffers(Buffers {
                count: Some(16),
                because: "a line takes longer with 17".to_owned(),
                curves: 7,
                agreeing_curves: 6,
                other_counts: vec![14],
                confidence_percent: Some(77.8),
                flushes_per_line: 8,
                flush_ns: Some(46.0),
                flush_spread_percent: Some(4.0),
                curve: vec![CurvePoint { lines: 1, line_ns_p5: 20.5, line_ns_median: 21.0 }],
            })),
            steady: Some(Steady {
                transfers: u64::MAX,
                skipped_transfers: u64::MAX - 9,
                period_transfers: 588,
                because: None,
            }),
            fit: Some(LineFit { per_call_ns: 130.2, fixed_ns: -3.0, r_squared: 1.0 }),
        }],
        skipped: vec![Skipped {
            question: "mmio_read_latency".to_owned(),
            target: "host".to_owned(),
            what: "uc".to_owned(),
            because: "there is no such memory".to_owned(),
        }],
        warnings: vec!["the governor is powersave".to_owned()],
        advice: every_method().into_iter().map(advice).collect(),
        findings: vec![Finding {
            question: "mmio_write_bandwidth".to_owned(),
            target: "card".to_owned(),
            text: "it falls off at 2 KiB".to_owned(),
        }],
        interrupted: false,
    }
}

fn advice(method: Method) -> Advice {
    Advice {
        question: "mmio_write_bandwidth".to_owned(),
        target: "card".to_owned(),
        size_bytes: 64,
        method,
        delivered_rate_bytes_per_s_median: 1e9,
        times_the_slowest: 12.5,
        reason: "full lines".to_owned(),
        rules: vec!["execute SFENCE before a doorbell".to_owned()],
    }
}

/// A method of every kind, with every optional field.
pub fn every_method() -> Vec<Method> {
    let reach = Reach {
        window_bytes: Some(1 << 20),
        is_random: true,
        stride_bytes: Some(4096),
        outstanding: Some(4),
        cache_state: Some(CacheState::DeviceWarm),
        socket: Some(Socket::Remote),
        channels: Some(2),
    };
    let flows = vec![
        Flow { card: 0, verb: Verb::Load, peer: Peer::Host },
        Flow { card: 0, verb: Verb::Store, peer: Peer::Card(1) },
    ];
    let usual = Reach::default();
    let (wait, allocation, access) = (HostWait::Finish, Allocation::Host, Access::NonTemporal(Width::B32));
    let map = Means::Map { strategy: Strategy::Ranges, table: Table::InMemory, invalidation: Invalidation::Strict };
    let stream = ComputeWork::StreamCopy { ports: 2, first_port: 1, vector_words: 4, stride_bytes: 64 };
    let spmv = ComputeWork::Spmv { matrix: "poisson:64".to_owned(), kernels: 1, ports_each: 4 };
    vec![
        Method::Core(CoreAccess {
            path: AccessPath::Pointer,
            verb: Verb::Store,
            memory_type: MemoryType::Wc,
            access: Access::Memcpy,
            fence: Some(Fence::Sfence),
        }),
        Method::Fence { fence: Fence::Locked },
        Method::Clock { clock: Clock::FencedPair },
        Method::KernelCall { call: KernelCall::Getppid },
        Method::Wake { by: WakeBy::Eventfd },
        Method::CacheLines { memory_type: MemoryType::Wb, access, lines: Lines::Two },
        Method::LineLoad { source: LineSource::RemoteCore },
        Method::Dma { flows: flows.clone(), outstanding: Some(1), reach },
        Method::DmaPages { flows: flows.clone(), pages: 4, reach: usual },
        Method::DmaUnderLoad { flows: flows.clone(), outstanding: 16, reach: usual },
        Method::DmaCall {
            flows,
            share: Share::List,
            descriptors: Descriptors::Written(MemoryType::Uc),
            completion: Completion::Flag,
            reach: usual,
        },
        Method::Relay { cards: vec![0, 1], reach: usual },
        Method::RuntimeCopy { direction: CopyDirection::FromDevice, wait, allocation },
        Method::Launch {
            kernels: 1,
            by: LaunchBy::Calls,
            wait,
            arguments: Some(Arguments { count: 4, allocation }),
            pinned: false,
        },
        Method::Launch { kernels: 256, by: LaunchBy::Graph, wait, arguments: None, pinned: true },
        Method::Argument { wait, allocation },
        Method::Compute { work: stream, wait },
        Method::Compute { work: spmv, wait },
        Method::MapUnmap { means: map },
        Method::MapUnmap { means: Means::Pool },
        Method::SharedBuffer { direction: CopyDirection::ToDevice, discipline: Discipline::Flushed(Flush::Clwb) },
    ]
}
