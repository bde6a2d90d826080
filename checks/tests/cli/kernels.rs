//! Kernels on a card's own memory: what is asked of them, and of which matrices.

use crate::folder::{Folder, card};
use lanemark_bench::{Axes, CATALOGUE, Effort, ask};
use lanemark_compute::{StreamCopy, Workload};
use lanemark_machine::{
    Allocation, DeviceKind, DmaFacts, EngineJob, Facts, LaunchBy, Machine, MachineError, Plan, QueueRequest,
    RuntimeFacts, Sample, Samples, TimeBase, Unsupported, Verb, Work,
};
use lanemark_units::Ticks;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const KERNELS: &str = r#"
[device_memory]
ports = { value = 4, source = "a test" }
port_bytes = { value = 32, source = "a test" }
word_ns = { value = 2.5, source = "a test" }
read_ns = { value = 300, source = "a test" }
turnaround_ns = { value = 22.4, source = "a test" }
[kernel]
clock_ghz = { value = 0.3, source = "a test" }
"#;
const SPRINGS: &[u8] = include_bytes!("../../../matrices/springs.mtx");
const HUB: &[u8] = include_bytes!("../../../matrices/hub.mtx");

fn folder() -> Folder {
    Folder::with(&[
        ("card.toml", format!("{}{KERNELS}", card()).as_bytes()),
        ("springs.mtx", SPRINGS),
        ("hub.mtx", HUB),
        ("cut.mtx", &SPRINGS[..SPRINGS.len() - 17]),
    ])
}

fn answers(folder: &Folder, arguments: &[&str]) -> Vec<Value> {
    let outcome = folder.run(&[&["bench", "--on", "card.toml", "--json"], arguments].concat());
    assert_eq!(outcome.code, Some(0), "{}", outcome.err);
    let record: Value = serde_json::from_str(&outcome.out).unwrap();
    record["answers"].as_array().unwrap().clone()
}

#[test]
fn copies_are_asked_of_one_port_up_to_all_and_confirmed() {
    let answers = answers(&folder(), &["--question", "stream_copy", "--sizes", "64KiB"]);
    // Ports 1, 2 and 4, in vectors and plain; with a stride too of one and of all; and three more ports alone.
    assert_eq!(answers.len(), 13);
    let rate = |ports: u32, first_port: u32, vector_words: u32| {
        let copy = json!({"ports": ports, "first_port": first_port, "vector_words": vector_words, "stride_bytes": 8});
        let answer = answers.iter().find(|answer| answer["method"]["work"]["stream_copy"] == copy).unwrap();
        assert_eq!(answer["bytes"]["claimed_bytes"], answer["bytes"]["confirmed_bytes"]);
        assert_eq!(
            (&answer["waits"][0]["place"], &answer["waits"][0]["cause"]),
            (&json!("card"), &json!("memory_port"))
        );
        assert_eq!(answer["formula"]["bound"], "words through a port of device memory");
        answer["delivered_rate_bytes_per_s"]["median"].as_f64().unwrap()
    };
    let one = rate(1, 0, 4);
    assert!((one / 9.9e9 - 1.0).abs() < 0.03, "{one}");
    assert!((rate(4, 0, 4) / one - 4.0).abs() < 0.01);
    assert!((rate(1, 3, 4) / one - 1.0).abs() < 1e-9);
    assert!(one / rate(1, 0, 1) > 3.8);
}

#[test]
fn matrices_come_from_files_or_are_made_and_stand_in_the_record_by_name() {
    let folder = folder();
    for (name, shown) in [("springs.mtx", "springs"), ("hub.mtx", "hub"), ("powerlaw:500x6", "powerlaw:500x6")] {
        let answers = answers(&folder, &["--question", "spmv", "--matrix", name]);
        // Of 4 ports: one kernel of 1 to 4, two of 1 and 2, four and eight of one.
        assert_eq!(answers.len(), 8);
        for answer in &answers {
            assert_eq!(answer["method"]["work"]["spmv"]["matrix"], shown);
            assert_eq!(answer["bytes"]["claimed_bytes"], answer["bytes"]["confirmed_bytes"]);
            assert!(answer["formula"]["bound"].is_string());
        }
    }
}

#[test]
fn matrices_that_are_none_are_refused_with_their_line_and_what_to_try() {
    let folder = folder();
    for (name, hints) in [
        ("cut.mtx", ["cut.mtx: line", "the file is truncated"]),
        ("card.toml", ["line 1", "%%MatrixMarket matrix coordinate"]),
        ("absent.mtx", ["absent.mtx", "No such file"]),
        ("springs", ["poisson:256", "MATRIX.mtx"]),
        ("poisson:100000", ["50000000000 entries", "the maximum is 67108864"]),
    ] {
        let outcome = folder.run(&["bench", "--on", "card.toml", "--question", "spmv", "--matrix", name]);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""), "{name}: {}", outcome.err);
        assert!(hints.iter().all(|hint| outcome.err.contains(hint)), "{name}: {}", outcome.err);
    }
}

#[test]
fn a_card_without_kernels_says_which_sections_it_takes() {
    let outcome = Folder::new().run(&["bench", "--on", "aws-f1", "--question", "spmv"]);
    assert_eq!(outcome.code, Some(77));
    assert!(outcome.err.contains("[device_memory] and [kernel]"), "{}", outcome.err);
}

/// A runtime that takes every plan, and notes what kernels it would have launched.
struct Noting {
    facts: Facts,
    kernels: BTreeSet<String>,
}

impl Machine for Noting {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn supports(&self, _: &Plan) -> Result<(), Unsupported> {
        Ok(())
    }

    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        samples.clear();
        if let Some(request) = plan.work.request() {
            self.kernels.extend(match request {
                QueueRequest::Launch(launch) => Some(format!("nothing_{}", launch.arguments.count)),
                QueueRequest::Compute(compute) => Some(match &compute.work {
                    Workload::Spmv(_) => "spmv".to_owned(),
                    Workload::StreamCopy(StreamCopy { vector_words, stride_bytes: 8, .. }) => {
                        format!("stream_copy_{vector_words}")
                    }
                    Workload::StreamCopy(StreamCopy { vector_words, .. }) => {
                        format!("stream_copy_{vector_words}_with_gaps")
                    }
                }),
                QueueRequest::Copy(_) | QueueRequest::SmallCopies(_) => None,
            });
        }
        if let Work::Engines(engines) = &plan.work {
            let of_read = |job: &EngineJob| match job {
                EngineJob::Transfer(read) if read.verb == Verb::Load => {
                    let unit =
                        if [read.bytes, read.window.offset].iter().all(|length| length % 16 == 0) { 16 } else { 4 };
                    Some(format!("reads_{unit}"))
                }
                _ => None,
            };
            self.kernels.extend(engines.jobs.iter().filter_map(of_read));
        }
        while samples.wants_more() {
            let time = Ticks::whole_ns(1000 * plan.passes.max(1));
            samples.keep(Sample { issue: time, delivered: time }, None);
        }
        Ok(())
    }
}

#[test]
fn kernels_that_are_printed_are_those_that_questions_launch_and_no_others() {
    let runtime = RuntimeFacts {
        kind: DeviceKind::Accelerator,
        is_emulated: false,
        allocations: Allocation::ALL.to_vec(),
        launches: vec![LaunchBy::Calls],
        small_copies: Vec::new(),
        memory_ports: 32,
        computes: true,
    };
    let dma = DmaFacts {
        cards: 1,
        mapped_bytes: 1 << 30,
        page_bytes: None,
        cache: None,
        is_partial_dearer: false,
        has_remote: false,
        tags: 64,
        channels: 1,
        peer: None,
        relays_at: None,
        has_driver: false,
        has_flag: false,
        fetches_only: false,
    };
    let facts = Facts {
        name: "a runtime".to_owned(),
        summary: String::new(),
        time_base: TimeBase::Simulated,
        cores: 2,
        regions: vec![],
        memory_types: vec![],
        stores: vec![],
        loads: vec![],
        memcpy: String::new(),
        dma: Some(dma),
        driver_width: None,
        tables: vec![],
        disciplines: vec![],
        line_sources: vec![],
        runtime: Some(runtime),
    };
    let mut machine = Noting { facts, kernels: BTreeSet::new() };
    for question in CATALOGUE {
        for case in (question.cases)(&machine.facts.clone(), &Axes::default()) {
            ask(question, &mut machine, &case, &Effort::default()).unwrap();
        }
    }
    let outcome = Folder::with(&[]).run(&["kernels"]);
    assert_eq!((outcome.code, &*outcome.err), (Some(0), ""));
    let printed = outcome.out.split("__kernel void ").skip(1).filter_map(|kernel| kernel.split('(').next());
    assert_eq!(printed.map(str::to_owned).collect::<BTreeSet<_>>(), machine.kernels);
}
