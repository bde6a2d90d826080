//! Results of requests: records, problems and errors with their classes.

use lanemark_bench::Axes;
use lanemark_record::{CacheState, CeilingKind, Reach, Socket, TargetKind};
use lanemark_runner::{
    Answerer, Cancel, CardAccess, Changes, Class, Event, Outcome, Request, RunError, Setup, Target, TraceRequest,
    dry_run, platform, question, questions, run, trace,
};
use lanemark_units::MemoryType;

/// A request with one question and few cases on the default card.
fn small() -> Request {
    Request {
        targets: vec!["card-gen5-x16".parse().unwrap()],
        questions: questions(&["mmio_write_bandwidth"]).unwrap(),
        axes: Axes {
            sizes: Some(vec![64, 4096]),
            memory_types: Some(vec![MemoryType::Wc]),
            accesses: Some(vec!["8".parse().unwrap()]),
            ..Axes::default()
        },
        ..Request::default()
    }
}

fn asked(request: &Request) -> Outcome {
    run(request, &mut |_| {}, &Cancel::new()).unwrap()
}

/// Class, field and text of the error of a request.
fn refused(request: &Request) -> (Class, Option<&'static str>, String) {
    let error = run(request, &mut |_| {}, &Cancel::new()).unwrap_err();
    (error.class(), error.field(), error.to_string())
}

#[test]
fn every_answer_has_a_ceiling_and_a_formula() {
    let record = asked(&Request { command: vec!["a test".to_owned()], ..small() }).into_result().unwrap();
    assert_eq!((record.command[0].as_str(), record.answers.len()), ("a test", 2));
    assert_eq!((record.targets[0].kind, record.written_unix_s), (TargetKind::Simulated, None));
    for answer in &record.answers {
        assert_eq!(answer.ceiling.kind, CeilingKind::Computed);
        assert!(answer.share_of_ceiling_percent.is_some() && answer.formula.is_some());
    }
    assert!(record.findings.is_empty() && record.advice.is_empty(), "the runner interprets nothing");
}

#[test]
fn the_figure_of_a_size_behind_an_iommu_is_the_same_with_any_other_sizes() {
    let sizes = [512, 1 << 20, 4096, 65_536];
    for name in ["dma_read_bandwidth", "dma_write_bandwidth", "dma_read_latency"] {
        let of = |sizes: &[u64]| {
            let axes = Axes { sizes: Some(sizes.to_vec()), ..Axes::default() };
            let targets = vec!["card-gen5-x16-iommu".parse().unwrap()];
            asked(&Request { targets, questions: questions(&[name]).unwrap(), axes, ..Request::default() })
                .record
                .answers
        };
        let together = of(&sizes);
        assert_eq!(together.len(), sizes.len());
        for (size, answer) in sizes.iter().zip(together) {
            assert_eq!(of(&[*size]), [answer], "{name}");
        }
    }
}

#[test]
fn predictions_equal_the_formulas_beside_measured_answers() {
    let (measured, predicted) =
        (asked(&small()).record, asked(&Request { answerer: Answerer::Formulas, ..small() }).record);
    assert_eq!(predicted.targets[0].kind, TargetKind::Formula);
    for (measured, predicted) in measured.answers.iter().zip(&predicted.answers) {
        assert_eq!((&measured.formula, &measured.ceiling), (&predicted.formula, &predicted.ceiling));
        assert!(predicted.delivered_rate_bytes_per_s.is_none() && predicted.raw.is_empty());
    }
}

#[test]
fn platform_given_as_value_gives_the_answers_of_its_file() {
    let of_file = asked(&small()).record;
    let target = Target::Platform(Box::new(platform("card-gen5-x16").unwrap()));
    assert_eq!(asked(&Request { targets: vec![target], ..small() }).record.answers, of_file.answers);
}

#[test]
fn progress_starts_with_the_case_count_and_reaches_it() {
    let mut seen = Vec::new();
    let mut last = 0.0;
    let mut progress = |event: Event<'_>| match event {
        Event::Begun { cases } => seen.push(format!("{cases} cases")),
        Event::Asking { question, target } => seen.push(format!("{question} on {target}")),
        Event::Done { cases } => {
            assert!(cases >= last, "{cases} after {last}");
            last = cases;
        }
        _ => {}
    };
    run(&small(), &mut progress, &Cancel::new()).unwrap();
    assert_eq!(seen, ["2 cases", "mmio_write_bandwidth on card-gen5-x16"]);
    assert!((last - 2.0).abs() < 1e-9);
}

#[test]
fn cancelled_run_keeps_its_answers_and_is_marked_interrupted() {
    let cancel = Cancel::new();
    let cancels = cancel.clone();
    let mut progress = |event: Event<'_>| {
        if matches!(event, Event::Done { cases } if cases >= 1.0) {
            cancels.cancel();
        }
    };
    let outcome = run(&small(), &mut progress, &cancel).unwrap();
    assert!(outcome.record.interrupted);
    assert_eq!(outcome.record.answers.len(), 1);
    assert_eq!(outcome.problem.map(|problem| problem.class()), Some(Class::Interrupted));
}

#[test]
fn fatal_fault_is_reported_as_failure_with_the_record() {
    let changes = Changes { faults: vec!["surprise_removal@card:1".parse().unwrap()], ..Changes::default() };
    let questions = questions(&["mmio_read_latency", "dma_read_latency"]).unwrap();
    let outcome = asked(&Request { questions, axes: Axes::default(), setup: setup(changes), ..small() });
    assert!(outcome.record.warnings.iter().any(|warning| warning.contains("card-gen5-x16")));
    assert_eq!(outcome.problem.map(|problem| problem.class()), Some(Class::Failed));
}

fn setup(changes: Changes) -> Setup {
    Setup { changes, ..Setup::default() }
}

#[test]
fn errors_name_the_request_field_and_the_fix() {
    let host = || vec![Target::Host];
    let card = "0000:01:00.0".parse::<Target>().unwrap();
    let with = |key: &str| Changes { with: vec![(key.to_owned(), "256".to_owned())], ..Changes::default() };
    let twice = ["128", "256"].map(|bytes| ("link.mps_bytes".to_owned(), bytes.to_owned()));
    let twice = Changes { with: twice.to_vec(), ..Changes::default() };
    let fault = Changes { faults: vec!["no_completion@card".parse().unwrap()], ..Changes::default() };
    let bars = CardAccess { bars: vec!["2:0..64".parse().unwrap()], ..CardAccess::default() };
    let of_card = || Setup { card: bars.clone(), ..Setup::default() };
    // Below this root is no device.
    let absent = CardAccess {
        peer: Some("0000:02:00.0:2:0..4KiB".parse().unwrap()),
        system_root: Some("/nowhere".into()),
        ..CardAccess::default()
    };
    let absent = Setup { card: absent, ..Setup::default() };
    let formulas = || Request { answerer: Answerer::Formulas, ..small() };
    let cases = [
        (Request { targets: vec![Target::Named("nowhere".to_owned())], ..small() }, None, "card-gen5-x16"),
        (Request { targets: vec![small().targets[0].clone(); 2], ..small() }, None, "two targets are called"),
        (
            Request { targets: host(), setup: setup(with("link.mps_bytes")), ..small() },
            Some("with"),
            "is no simulated platform",
        ),
        (Request { setup: setup(twice), ..small() }, Some("with"), "is given twice, as 128 and as 256"),
        (Request { setup: setup(with("link.mpsbytes")), ..small() }, Some("with"), "link.mpsbytes"),
        (Request { setup: setup(fault), ..formulas() }, Some("fault"), "formulas do not model faults"),
        (Request { targets: host(), ..formulas() }, None, "has no formula"),
        (Request { setup: of_card(), ..small() }, Some("bar"), "name one by its address"),
        (Request { targets: vec![card.clone()], setup: absent, ..small() }, None, "0000:01:00.0 does not exist"),
        (Request { targets: vec![card.clone(), card], setup: of_card(), ..small() }, None, "one card at a time"),
        (
            Request { axes: Axes { sizes: Some(vec![1 << 40]), ..small().axes }, ..small() },
            Some("sizes"),
            "at most 268435456",
        ),
        (
            Request { axes: Axes { region: Some("attic".to_owned()), ..small().axes }, ..small() },
            Some("region"),
            "registers",
        ),
        (
            Request { axes: Axes { flows: Some(vec!["9:host".parse().unwrap()]), ..small().axes }, ..small() },
            Some("flows"),
            "card-gen5-x16 has 1 card: 0",
        ),
        (
            Request { axes: Axes { alignments: Some(vec![64]), ..small().axes }, ..small() },
            Some("align"),
            "64 is not below 64",
        ),
    ];
    for (request, field, hint) in cases {
        let (class, found, text) = refused(&request);
        assert_eq!((class, found), (Class::Usage, field), "{text}");
        assert!(text.contains(hint), "'{hint}' is not in: {text}");
    }
    assert!(matches!(question("mmio_write"), Err(RunError::UnknownQuestion { .. })));
    assert!(matches!("opencl:x".parse::<Target>(), Err(RunError::DeviceNumber { .. })));
    for real in ["host", "opencl:0", "0000:01:00.0"] {
        assert!(matches!(platform(real), Err(RunError::NotSimulated { target }) if target == real), "{real}");
    }
    assert!(matches!(dry_run(&small()), Err(RunError::NoCard { field: "dry_run" })));
}

#[test]
fn selection_without_cases_is_absent_with_the_reason() {
    let questions = questions(&["launch_latency"]).unwrap();
    let outcome = asked(&Request { questions, axes: Axes::default(), ..small() });
    assert!(outcome.record.answers.is_empty());
    let problem = outcome.problem.unwrap();
    assert_eq!((problem.class(), problem.to_string()), (Class::Absent, outcome.record.skipped[0].because.clone()));
}

#[test]
fn reason_for_skipping_names_the_given_options_only() {
    let skipped = |reach: Reach| {
        let axes = Axes { reach, ..small().axes };
        asked(&Request { axes, ..small() }).record.skipped.remove(0).because
    };
    let (cache_state, socket) = (Some(CacheState::Cold), Some(Socket::Local));
    let of_memory = Reach { cache_state, ..Reach::default() };
    assert_eq!(skipped(of_memory), "--cache-state applies to DMA of host memory");
    let both = Reach { socket, ..of_memory };
    assert_eq!(skipped(both), "--cache-state and --socket apply to DMA of host memory");
    assert_eq!(skipped(Reach { stride_bytes: Some(64), ..Reach::default() }), "--stride applies to DMA");
}

#[test]
fn only_simulated_targets_can_be_traced() {
    let request = |target: &str| TraceRequest {
        target: target.parse().unwrap(),
        question: question("dma_read_latency").unwrap(),
        axes: Axes { sizes: Some(vec![64]), ..Axes::default() },
        changes: Changes::default(),
        passes: Some(1),
        dllps: false,
    };
    let traced = trace(&request("card-gen5-x16"), &Cancel::new()).unwrap();
    assert_eq!((traced.card_link.as_str(), traced.passes, traced.error), ("card", 1, None));
    assert!(!traced.trace.frames.is_empty());
    assert!(matches!(trace(&request("host"), &Cancel::new()), Err(RunError::NoTrace { .. })));
    let cancelled = Cancel::new();
    cancelled.cancel();
    assert!(matches!(trace(&request("card-gen5-x16"), &cancelled), Err(RunError::Interrupted)));
}
