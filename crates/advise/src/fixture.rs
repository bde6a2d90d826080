//! Small records for tests.

use lanemark_method::{AccessPath, CoreAccess, Flow, Method, Peer, Reach, Verb};
use lanemark_record::{Answer, Ceiling, CeilingKind, Quantity, Record, Summary, Target, TargetKind};
use lanemark_units::MemoryType;
use std::collections::BTreeMap;

/// An answer about stores to a card, with a rate only.
pub(crate) fn answer(access: &str, size_bytes: u64, rate: Option<f64>) -> Answer {
    Answer {
        question: "mmio_write_bandwidth".to_owned(),
        target: "card".to_owned(),
        method: Method::Core(CoreAccess {
            path: AccessPath::Pointer,
            verb: Verb::Store,
            memory_type: MemoryType::Wc,
            access: access.parse().unwrap(),
            fence: None,
        }),
        varied: BTreeMap::new(),
        size_bytes,
        alignment_bytes: 0,
        quantity: Quantity::Bandwidth,
        latency_ns: None,
        issue_rate_bytes_per_s: None,
        delivered_rate_bytes_per_s: rate.and_then(|rate| Summary::of(&[rate])),
        ceiling: Ceiling { kind: CeilingKind::Unknown, rate_bytes_per_s: None, because: "a test".to_owned() },
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
        timer_cost_ns: 0.0,
        passes: 1,
        samples_ns: vec![],
        raw: vec![],
        dropped: None,
        steady: None,
        corrected: Vec::new(),
        doubts: vec![],
        delivery: None,
        fit: None,
        detail: None,
    }
}

/// A record of `answers` without targets.
pub(crate) fn record(answers: Vec<Answer>) -> Record {
    Record { answers, ..Record::new(vec![]) }
}

/// The target of [`answer`].
pub(crate) fn target(kind: TargetKind) -> Target {
    Target {
        name: "card".to_owned(),
        summary: String::new(),
        kind,
        memcpy: String::new(),
        platform: None,
        origins: None,
        card: None,
        links: vec![],
        runtime: None,
        design: None,
    }
}

/// The method of reads of host memory by the first card.
pub(crate) fn dma(reach: Reach) -> Method {
    let flows = vec![Flow { card: 0, verb: Verb::Load, peer: Peer::Host }];
    Method::Dma { flows, outstanding: Some(1), reach }
}
