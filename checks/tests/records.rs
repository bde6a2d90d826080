//! Records of real devices in `records/` stay readable, and say what a user may rely on.

use lanemark_checks::root;
use lanemark_record::gate::{Verdict, judgements};
use lanemark_record::{Answer, CeilingKind, Method, Record, TargetKind};

/// The records of GPUs, by file name.
fn records() -> Vec<(String, Record)> {
    let files = std::fs::read_dir(root().join("records")).unwrap().map(|entry| entry.unwrap().path());
    let is_of_gpu = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        ["h100-", "h200-"].iter().any(|gpu| name.starts_with(gpu)) && name.ends_with(".json")
    };
    let mut paths: Vec<_> = files.filter(is_of_gpu).collect();
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let record = lanemark_record::read(path).unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, record)
    };
    paths.iter().map(read).collect()
}

/// Answers of the record `name` to one question, and that there are some.
fn answers(name: &str, question: &str) -> Vec<Answer> {
    let (_, record) = records().into_iter().find(|(file, _)| file == name).unwrap_or_else(|| panic!("no {name}"));
    let found: Vec<Answer> = record.answers.into_iter().filter(|answer| answer.question == question).collect();
    assert!(!found.is_empty(), "{name} has no answer to {question}");
    found
}

#[test]
fn every_record_is_of_a_real_device_and_nothing_in_it_is_impossible() {
    let records = records();
    assert!(records.len() >= 2, "{}", records.len());
    for (name, record) in records {
        assert!(!record.answers.is_empty(), "{name}");
        assert!(record.targets.iter().all(|target| target.kind == TargetKind::Real), "{name}");
        let impossible: Vec<_> =
            judgements(&record).into_iter().filter(|found| found.verdict == Verdict::Impossible).collect();
        assert!(impossible.is_empty(), "{name}: {impossible:?}");
        for answer in &record.answers {
            if let Some(bytes) = answer.bytes {
                assert_eq!(bytes.confirmed_bytes, bytes.claimed_bytes, "{name}: {}", answer.method);
            }
        }
    }
}

#[test]
fn a_gpu_has_a_computed_ceiling_for_every_rate() {
    for (name, record) in records().into_iter().filter(|(name, _)| name.ends_with("-cuda.json")) {
        let rates: Vec<&Answer> =
            record.answers.iter().filter(|answer| answer.delivered_rate_bytes_per_s.is_some()).collect();
        assert!(rates.len() >= 15, "{name}: {}", rates.len());
        for answer in rates {
            assert_eq!(answer.ceiling.kind, CeilingKind::Computed, "{name}: {}", answer.method);
            assert!(answer.ceiling.because.contains("Gen5 x16"), "{name}: {}", answer.ceiling.because);
        }
        let state = record.warnings.iter().find(|warning| warning.contains("under traffic")).unwrap();
        assert!(state.contains("Gen5 x16") && state.contains("MHz"), "{name}: {state}");
    }
}

#[test]
fn reads_of_real_gpus_follow_littles_law_below_the_limit() {
    for name in ["h100-dma-cuda.json", "h200-dma-cuda.json"] {
        follows_littles_law(name);
    }
}

fn follows_littles_law(name: &str) {
    let of = |outstanding: u32| {
        let all = answers(name, "loaded_latency");
        let is = |answer: &&Answer| matches!(answer.method, Method::DmaUnderLoad { outstanding: found, .. } if found == outstanding);
        let found = all.iter().find(is).unwrap_or_else(|| panic!("no answer with {outstanding} outstanding"));
        (found.latency_ns.unwrap().median, found.delivered_rate_bytes_per_s.unwrap().median)
    };
    let (alone_ns, alone) = of(1);
    let (_, sixteen) = of(16);
    // 512 B in flight give 512 B per latency; sixteen times as many give that rate as long as the latency stays.
    assert!((alone * alone_ns / 1e9 / 512.0 - 1.0).abs() < 0.02, "{alone_ns} ns, {alone} B/s");
    assert!((sixteen / alone / 16.0 - 1.0).abs() < 0.15, "{sixteen} B/s");
}

#[test]
fn latency_of_a_gpu_grows_by_a_similar_step_with_each_doubling_of_the_size() {
    let answers = answers("h100-sizes.json", "dma_read_latency");
    let median = |bytes: u64| {
        let found = answers.iter().find(|answer| answer.size_bytes == bytes);
        found.unwrap_or_else(|| panic!("no answer of {bytes} B")).latency_ns.unwrap().median
    };
    // From 64 B on. The link explains 1 ns of the first step and 35 ns of the last one.
    for bytes in [64, 128, 256, 512, 1024, 2048] {
        let step = median(2 * bytes) - median(bytes);
        assert!((35.0..80.0).contains(&step), "{bytes} B: {step} ns");
    }
}

#[test]
fn a_window_of_many_pages_costs_a_gpu_two_steps_of_latency() {
    let record = records().into_iter().find(|(name, _)| name == "h100-windows.json").unwrap().1;
    let reach = record.findings.iter().find(|finding| finding.question == "iotlb_reach").unwrap();
    for words in ["up to 2048 pages (128MiB) hit the IOTLB", "from 16384 pages (1GiB) on another 185 ns"] {
        assert!(reach.text.contains(words), "{}", reach.text);
    }
}
