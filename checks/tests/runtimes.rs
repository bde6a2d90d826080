//! Measurements through real OpenCL and SYCL runtimes.
//!
//! `make test-runtimes` fetches PoCL, which runs kernels on the processor, and runs these tests. If `make runtimes` has
//! installed Intel's runtime for processors, its FPGA emulation and SYCL, the tests run on every device. Otherwise these
//! tests print a note and pass; with `LANEMARK_REQUIRE_INTEL=1` they fail.

use lanemark_checks::page::Page;
use lanemark_checks::shown::missing;
use lanemark_checks::trials::{Available, Trial, run};
use lanemark_checks::{lanemark, root, trials};
use lanemark_compute::{Csr, Spmv, StreamCopy, Workload};
use lanemark_hw::opencl::OpenClMachine;
use lanemark_hw::sycl::SyclMachine;
use lanemark_machine::{
    Allocation, Arguments, Compute, Confirmed, HostWait, Launch, LaunchBy, Machine, MachineError, Plan, QueueRequest,
    RuntimeCopy, Samples, Verb,
};
use lanemark_units::Ticks;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::sync::Arc;

fn main() -> ExitCode {
    let pocl = Available::unless("LANEMARK_SKIPPED_RUNTIMES");
    let found = if environment_file().exists() { Ok(()) } else { Err("make runtimes to be run first".to_owned()) };
    let intel = pocl.and(&Available::new(found, "LANEMARK_REQUIRE_INTEL"));
    let mut tests: Vec<Trial> = trials!(
        pocl;
        launches_are_measured_by_every_wait_and_the_record_describes_the_runtime,
        only_the_named_cores_launch_and_absent_ones_are_skipped_with_a_reason,
        a_twin_shows_the_bottleneck_of_launches_and_how_far_it_is_off,
        page_and_table_show_launches_by_core_and_label_the_device_as_no_card,
        copies_of_every_length_are_correct_and_issued_before_delivered,
        runs_of_copies_report_their_share_and_all_bytes_arrive,
        reads_by_a_kernel_are_confirmed_and_labelled_as_those_of_memory,
        stream_copies_by_vectors_and_strides_are_correct,
        sparse_products_by_one_and_several_kernels_are_correct,
        prebuilt_kernels_work_and_those_of_another_device_are_refused,
        an_unknown_device_number_is_refused_with_the_list_of_devices,
        questions_and_options_about_cards_are_refused_for_runtimes,
        a_runtime_with_a_missing_library_is_named,
        without_runtimes_the_other_targets_answer,
        without_sycl_the_message_names_make_runtimes_and_other_targets_answer,
        a_sycl_device_that_fails_or_hangs_ends_with_its_error_in_time,
        platform_options_are_refused_for_sycl_as_for_opencl,
        runtime_commands_of_the_guide_print_the_shown_output,
    )
    .into();
    tests.extend(trials!(
        intel;
        prebuilt_kernels_work_on_every_runtime,
        every_device_answers_by_opencl_and_sycl_and_emulations_are_labelled,
        copies_by_every_kind_of_memory_are_correct_on_every_device,
        every_opencl_device_reads_host_memory_by_a_kernel,
        a_driver_that_returns_before_its_copy_completes_has_two_times,
        a_runtime_with_a_missing_library_is_listed_with_the_working_ones,
        missing_sycl_devices_and_questions_of_other_targets_are_refused,
        sycl_kernels_take_buffers_and_addresses_and_other_plans_are_refused_by_name,
        sycl_commands_of_the_guide_print_the_shown_output,
    ));
    // Run by a test, with the library path.
    tests.extend(trials!(intel; sycl_kernels_in_a_separate_process).map(|trial| trial.with_ignored_flag(true)));
    run(tests)
}

/// Folder of the unpacked PoCL.
fn pocl() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../.tools/pocl").canonicalize().expect("make test-runtimes fetches it")
}

fn libraries() -> PathBuf {
    pocl().join("root/usr/lib/x86_64-linux-gnu")
}

/// Runs `lanemark` with runtimes from `vendors` and libraries from `libraries`.
fn bench(vendors: &Path, libraries: &Path, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    Command::new(lanemark())
        .arg("bench")
        .args(arguments)
        .current_dir(folder.path())
        .env("OCL_ICD_VENDORS", vendors)
        .env("LD_LIBRARY_PATH", libraries)
        // A kernel cache outside of the home folder.
        .env("POCL_CACHE_DIR", pocl().join("cache"))
        .output()
        .unwrap()
}

fn on_pocl(arguments: &[&str]) -> Output {
    bench(&pocl().join("vendors"), &libraries(), arguments)
}

/// File with the environment that `make runtimes` prints.
fn environment_file() -> PathBuf {
    root().join(".tools/runtimes/environment")
}

/// The environment that `make runtimes` prints.
fn environment() -> Vec<(String, String)> {
    let text = fs::read_to_string(environment_file()).unwrap();
    let pair = |line: &str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
    text.lines().filter_map(pair).collect()
}

/// Runs `lanemark` with all runtimes.
fn on_all(environment: &[(String, String)], arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(lanemark());
    command.args(arguments).current_dir(folder.path()).env("POCL_CACHE_DIR", pocl().join("cache"));
    command.envs(environment.iter().map(|(name, value)| (name, value))).output().unwrap()
}

/// Three devices, each by OpenCL and by SYCL.
const EVERY: [&str; 6] = ["opencl:0", "opencl:1", "opencl:2", "sycl:0", "sycl:1", "sycl:2"];

/// The record of one question on every device.
fn of_every(environment: &[(String, String)], question: &[&str]) -> Value {
    let on = EVERY.iter().flat_map(|device| ["--on", device]);
    let arguments: Vec<&str> =
        ["bench"].into_iter().chain(on).chain(question.iter().copied()).chain(["--json"]).collect();
    record(&on_all(environment, &arguments))
}

fn answers_of<'a>(record: &'a Value, device: &str) -> Vec<&'a Value> {
    record["answers"].as_array().unwrap().iter().filter(|answer| answer["target"] == device).collect()
}

/// Name of the target in `record` whose name begins with `road` and whose summary contains `words`.
fn device<'a>(record: &'a Value, road: &str, words: &str) -> &'a str {
    let is_it = |target: &&Value| {
        target["name"].as_str().unwrap().starts_with(road) && target["summary"].as_str().unwrap().contains(words)
    };
    record["targets"].as_array().unwrap().iter().find(is_it).unwrap()["name"].as_str().unwrap()
}

/// Median of the samples named `name` in an answer.
fn median(answer: &Value, name: &str) -> f64 {
    let rounds = answer["raw"].as_array().unwrap().iter();
    let spans = rounds.flat_map(|round| round[name].as_array().unwrap());
    let mut spans: Vec<f64> = spans.map(|span| span.as_f64().unwrap()).collect();
    spans.sort_by(f64::total_cmp);
    spans[spans.len() / 2]
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn record(output: &Output) -> Value {
    assert!(output.status.success(), "{}", said(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn launches_are_measured_by_every_wait_and_the_record_describes_the_runtime() {
    let record = record(&on_pocl(&["--on", "opencl:0", "--json"]));
    let target = &record["targets"][0];
    assert_eq!((&target["name"], &target["kind"]), (&"opencl:0".into(), &"real".into()));
    let summary = target["summary"].as_str().unwrap();
    for word in ["(CPU)", "Portable Computing Language", "OpenCL 3.0 PoCL", "driver 3.1"] {
        assert!(summary.contains(word), "{summary}");
    }
    let answers = record["answers"].as_array().unwrap();
    let launches: Vec<&Value> = answers.iter().filter(|answer| answer["question"] == "launch_latency").collect();
    for (wait, kernels) in [("finish", 1), ("event", 1), ("finish", 100)] {
        let of = |pinned: bool| {
            let wanted = json!({"kind": "launch", "kernels": kernels, "wait": wait, "pinned": pinned});
            let is = |answer: &&&Value| answer["method"] == wanted;
            launches.iter().filter(is).map(|answer| &answer["detail"]["caller"]).collect::<Vec<_>>()
        };
        let pinned: Vec<u64> = of(true).iter().map(|caller| caller["core"].as_u64().unwrap()).collect();
        assert!(pinned[0] == 0 && pinned.is_sorted() && pinned.len() <= 12, "{pinned:?}");
        assert!(of(true).iter().all(|caller| caller["cpus"].as_array().unwrap().len() == 1), "each on one processor");
        let free = of(false);
        assert!(free.len() == 1 && free[0]["core"].is_null() && !free[0]["cpus"].as_array().unwrap().is_empty());
    }
    for answer in &launches {
        let raw = &answer["raw"][0];
        assert_eq!(raw["cpu"].as_array().unwrap().len(), raw["round"].as_array().unwrap().len(), "{answer}");
    }
    let runtime = &target["runtime"];
    assert_eq!((&runtime["device_kind"], &runtime["is_emulated"]), (&"cpu".into(), &false.into()));
    assert_eq!(runtime["software"]["platform_name"], "Portable Computing Language");
    assert!(runtime["software"]["driver_version"].as_str().unwrap().starts_with("3.1"), "{runtime}");
    assert!(runtime["software"]["loader_library"].as_str().unwrap().contains("libOpenCL.so"), "{runtime}");
    for fact in ["processor", "sockets", "governors", "idle_states", "load_before", "load_after", "stolen_percent"] {
        let fact = &record["host"][fact];
        assert!(fact.get("value").is_some() || fact["unseen"].is_string(), "{fact}");
    }
    for answer in answers {
        let quantity = match answer["question"].as_str().unwrap() {
            "runtime_copy" | "many_small_few_large" | "stream_copy" | "spmv" | "dma_read_bandwidth" => "bandwidth",
            "dma_read_latency" | "iotlb_reach" | "iotlb_thrash" | "loaded_latency" => "round_trip_latency",
            _ => "cost",
        };
        assert_eq!(answer["quantity"], quantity, "{}", answer["question"]);
        assert!(answer["ceiling"]["rate_bytes_per_s"].is_null(), "{answer}");
    }
    let of = |question: &str| answers.iter().filter(|answer| answer["question"] == question).count();
    assert_eq!(of("accessor_overhead"), 7, "no buffer, five numbers of buffers, and the cost of one more");
    // Both directions, two waits, buffers and mapped: eight methods. Of six sizes, the budget may leave out all but the
    // smallest.
    let copies = of("runtime_copy");
    assert!((8..=48).contains(&copies) && copies.is_multiple_of(8), "{copies}");
    let left_out = |one: &&Value| one["because"].as_str().unwrap().contains("time budget");
    let skipped = record["skipped"].as_array().unwrap();
    assert_eq!(skipped.iter().filter(left_out).any(|one| one["question"] == "runtime_copy"), copies < 48);
    assert_eq!(of("many_small_few_large"), 4, "small and large, to buffers and mapped");
    let others: Vec<&Value> = skipped.iter().filter(|one| !left_out(one)).collect();
    assert!(others.len() > 10);
    let reasons = ["not a PCIe function", "the kernel reads only", "the kernel makes reads of one kind"];
    let has_reason = |one: &&Value| reasons.iter().any(|reason| one["because"].as_str().unwrap().contains(reason));
    assert!(others.iter().all(has_reason), "{others:?}");
}

fn a_twin_shows_the_bottleneck_of_launches_and_how_far_it_is_off() {
    let launches = ["--on", "opencl:0", "--question", "launch_latency", "--cores", "0", "--twin", "card-stratix10mx"];
    let record = record(&on_pocl(&[&launches[..], &["--json"]].concat()));
    // Nothing schedules threads that are not pinned on a simulated machine, so the twin leaves them out with the reason.
    let is_pinned = |answer: &&Value| answer["method"]["pinned"] == true;
    let answers: Vec<&Value> = record["answers"].as_array().unwrap().iter().filter(is_pinned).collect();
    assert_eq!(answers.len(), 3);
    for answer in answers {
        assert_eq!(answer["twin"]["platform"], "card-stratix10mx", "{answer}");
        assert!(answer["twin"]["latency_ns"].as_f64().unwrap() > 0.0 && !answer["formula"].is_null(), "{answer}");
        assert!(!answer["waits"].as_array().unwrap().is_empty(), "{answer}");
    }
    let output = on_pocl(&launches);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("those of the twin card-stratix10mx; its figures are up to"), "{text}");
    let output = on_pocl(&["--on", "opencl:0", "--twin", "host"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("host is no simulated platform"), "{}", said(&output));
}

fn only_the_named_cores_launch_and_absent_ones_are_skipped_with_a_reason() {
    let launches = ["--on", "opencl:0", "--question", "launch_latency", "--json", "--cores"];
    let asked = |cores| record(&on_pocl(&[&launches[..], &[cores]].concat()));
    let one = asked("0");
    let answers = one["answers"].as_array().unwrap();
    assert_eq!(answers.len(), 6, "three waits from core 0, and unpinned");
    let far = asked("9999");
    assert_eq!(far["answers"].as_array().unwrap().len(), 3, "unpinned only");
    assert_eq!(far["skipped"][0]["what"], "core 9999");
    let output = on_pocl(&["--on", "opencl:0", "--question", "launch_latency", "--cores", "none"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("or use all"), "{}", said(&output));
    let output = on_pocl(&["--on", "opencl:0", "--question", "runtime_copy", "--cores", "0"]);
    assert_eq!(output.status.code(), Some(77), "{}", said(&output));
    assert!(said(&output).contains("cores selects the cores that launch kernels"), "{}", said(&output));
}

fn page_and_table_show_launches_by_core_and_label_the_device_as_no_card() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("r.html");
    let output = on_pocl(&["--on", "opencl:0", "--question", "launch_latency", "--html", page.to_str().unwrap()]);
    let table = String::from_utf8(output.stdout).unwrap();
    for words in [
        "opencl:0 (real, CPU device, no card): ",
        "from core",
        "unpinned",
        "p99",
        "no card: the device is the processor itself",
    ] {
        assert!(table.contains(words), "{words}: {table}");
    }
    let page = fs::read_to_string(page).unwrap();
    assert_eq!(page.matches("<svg class=\"callers\"").count(), 3);
    assert!(page.contains("real, CPU device, no card"));
}

fn copies_of_every_length_are_correct_and_issued_before_delivered() {
    for size in ["1", "4097", "256MiB"] {
        let record = record(&on_pocl(&["--on", "opencl:0", "--question", "runtime_copy", "--sizes", size, "--json"]));
        let answers = record["answers"].as_array().unwrap();
        assert_eq!(answers.len(), 8);
        for answer in answers {
            let (bytes, size) = (&answer["bytes"], &answer["size_bytes"]);
            assert_eq!((&bytes["claimed_bytes"], &bytes["confirmed_bytes"]), (size, size), "{answer}");
            for raw in answer["raw"].as_array().unwrap() {
                let spans = |name: &str| raw[name].as_array().unwrap().clone();
                for (issue, delivered) in spans("issue_ns").iter().zip(spans("delivered_ns")) {
                    assert!(issue.as_f64().unwrap() <= delivered.as_f64().unwrap());
                }
            }
        }
    }
    let output = on_pocl(&["--on", "opencl:0", "--question", "runtime_copy", "--sizes", "268435457"]);
    assert_eq!(output.status.code(), Some(2));
    let said = said(&output);
    assert!(said.contains("exceed the longest buffer of opencl:0; use at most 268435456"), "{said}");
}

fn runs_of_copies_report_their_share_and_all_bytes_arrive() {
    let record = record(&on_pocl(&["--on", "opencl:0", "--question", "many_small_few_large", "--json"]));
    for answer in record["answers"].as_array().unwrap() {
        let (runs, size) = (&answer["detail"]["runs"], answer["size_bytes"].as_u64().unwrap());
        assert_eq!(runs["copies"].as_u64().unwrap() * 100, 8_000_000_000 / size);
        assert_eq!(runs["whole_copies"].as_u64().unwrap(), 8_000_000_000 / size);
        assert!(runs["runs"].as_u64().unwrap() >= 8 && runs["shortest_s"].as_f64() <= runs["longest_s"].as_f64());
        assert_eq!(answer["bytes"]["confirmed_bytes"].as_u64(), Some(size));
    }
    assert_eq!(record["findings"].as_array().unwrap().len(), 2);
}

/// Environment variable of a process that finds PoCL.
const INSIDE: &str = "LANEMARK_ON_POCL";

/// Runs a test in a new process that finds PoCL, because the library path is fixed at process start.
fn again_on_pocl<F: FnOnce()>(body: F) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    // The name of the test that contains the closure: `runtimes::a_test::{{closure}}`.
    let test = std::any::type_name::<F>().split("::").nth(1).unwrap();
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args([test, "--exact"]).env(INSIDE, "1").env("OCL_ICD_VENDORS", pocl().join("vendors"));
    let again = again.env("LD_LIBRARY_PATH", libraries()).env("POCL_CACHE_DIR", pocl().join("cache")).output().unwrap();
    let shown = String::from_utf8_lossy(&again.stdout).into_owned() + &said(&again);
    assert!(again.status.success() && shown.contains("1 passed"), "{shown}");
}

fn computed(machine: &mut dyn Machine, work: Workload, wait: HostWait) -> Confirmed {
    let plan = Plan { timeout: Ticks::whole_ns(20_000_000_000), ..Plan::new(Compute { work, wait }, 1) };
    let mut samples = Samples::wanted(3);
    machine.run(&plan, &mut samples).unwrap();
    assert!(samples.taken.iter().all(|sample| sample.delivered > Ticks::ZERO));
    samples.confirmed.unwrap()
}

/// Checks every kind of copy within ports, word by word.
fn words_arrive(machine: &mut dyn Machine) {
    let ports = machine.facts().runtime.as_ref().unwrap().memory_ports;
    let bytes = u64::from(ports) << 20;
    for (stride_bytes, vector_words) in [(8, 1), (8, 4), (8, 16), (32, 1), (32, 4)] {
        let copy = StreamCopy { first_port: 0, ports, bytes_per_port: 1 << 20, stride_bytes, vector_words };
        for wait in HostWait::ALL {
            let confirmed = computed(machine, Workload::StreamCopy(copy), wait);
            let counts = (confirmed.claimed_bytes, confirmed.confirmed_bytes);
            assert_eq!(counts, (bytes, bytes), "a word every {stride_bytes} B, vectors of {vector_words}");
        }
    }
}

/// Checks that every row of a sparse product is within its error bound.
fn rows_are_right(machine: &mut dyn Machine) {
    // Rows of 0 to 6 entries in random order.
    let (mut starts, mut columns) = (vec![0], Vec::new());
    for row in 0..5000_u32 {
        columns.extend((0..row % 7).map(|entry| (row * 31 + entry * 977) % 3000));
        starts.push(columns.len() as u32);
    }
    let values = (0..columns.len()).map(|entry| 1.0 / (entry as f64 + 3.0) - 0.01).collect();
    let matrix = Arc::new(Csr::new(3000, starts, columns, values).unwrap());
    let ports = machine.facts().runtime.as_ref().unwrap().memory_ports;
    let has = |(kernels, ports_each): &(u32, u32)| *ports_each == 1 || kernels * ports_each <= ports;
    for (kernels, ports_each) in [(1, 1), (3, 1), (8, 1), (8, 4)].into_iter().filter(has) {
        let work = Workload::Spmv(Spmv { matrix: Arc::clone(&matrix), kernels, ports_each });
        let confirmed = computed(machine, work, HostWait::Event);
        let counts = (confirmed.claimed_bytes, confirmed.confirmed_bytes);
        assert_eq!(counts, (40_000, 40_000), "{kernels} kernels, {ports_each} ports");
    }
}

fn stream_copies_by_vectors_and_strides_are_correct() {
    again_on_pocl(|| words_arrive(&mut OpenClMachine::open(0, Arc::default()).unwrap()));
}

fn sparse_products_by_one_and_several_kernels_are_correct() {
    again_on_pocl(|| rows_are_right(&mut OpenClMachine::open(0, Arc::default()).unwrap()));
}

/// Builds the output of `lanemark kernels` for a device, in a separate process beforehand.
fn built_before(folder: &Path, environment: &[(String, String)], number: usize) -> PathBuf {
    let (offline, source) = (folder.join("offline"), folder.join("kernels.cl"));
    let built = folder.join(format!("kernels.{number}"));
    let all = on_all(environment, &["kernels"]);
    assert!(all.status.success(), "{}", said(&all));
    fs::write(&source, all.stdout).unwrap();
    let mut compiler = Command::new("cc");
    compiler.arg(root().join("checks/runtimes/offline.c")).arg(format!("-L{}", libraries().display()));
    let flags = ["-l:libOpenCL.so.1", "-Wl,--allow-shlib-undefined", "-o"];
    assert!(compiler.args(flags).arg(&offline).status().unwrap().success());
    let mut compiler = Command::new(&offline);
    compiler.arg(number.to_string()).args([&source, &built]).envs(environment.iter().cloned());
    assert!(compiler.env("POCL_CACHE_DIR", pocl().join("cache")).status().unwrap().success());
    built
}

fn prebuilt_kernels_work_and_those_of_another_device_are_refused() {
    let pair = |name: &str, value: PathBuf| (name.to_owned(), value.display().to_string());
    let on_one = vec![pair("OCL_ICD_VENDORS", pocl().join("vendors")), pair("LD_LIBRARY_PATH", libraries())];
    prebuilt_kernels(&on_one, 1);
}

fn prebuilt_kernels_work_on_every_runtime() {
    prebuilt_kernels(&environment(), 3);
}

/// Kernels that are built before the run, on this many devices of an environment.
fn prebuilt_kernels(environment: &[(String, String)], devices: usize) {
    let folder = tempfile::tempdir().unwrap();
    let questions = "launch_latency,accessor_overhead,stream_copy,spmv";
    let mut all = Vec::new();
    for number in 0..devices {
        let built = built_before(folder.path(), environment, number).display().to_string();
        for road in if devices == 1 { &["opencl"][..] } else { &["opencl", "sycl"] } {
            let on = format!("{road}:{number}");
            let arguments =
                ["bench", "--on", &on, "--question", questions, "--budget", "1", "--json", "--kernels", &built];
            let record = record(&on_all(environment, &arguments));
            // Except cases that no device of this kind supports, such as ports and addresses.
            for question in questions.split(',') {
                let is_of = |answer: &&&Value| answer["question"] == question;
                let computed = answers_of(&record, &on);
                let computed: Vec<_> = computed.iter().filter(is_of).collect();
                assert!(!computed.is_empty(), "{on}: {question}");
                for answer in computed.iter().filter(|_| ["stream_copy", "spmv"].contains(&question)) {
                    let bytes = &answer["bytes"];
                    assert!(bytes["claimed_bytes"].as_u64().unwrap() > 0, "{answer}");
                    assert_eq!(bytes["confirmed_bytes"], bytes["claimed_bytes"], "{answer}");
                }
            }
            let warnings = record["warnings"].to_string();
            assert!(warnings.contains(&format!("{on}: kernels from {built}")), "{warnings}");
        }
        all.push(built);
    }
    let refused = |kernels: &str| {
        let output = on_all(environment, &["bench", "--on", "opencl:0", "--kernels", kernels]);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        said(&output)
    };
    let source = folder.path().join("kernels.cl").display().to_string();
    for kernels in [&source].into_iter().chain(&all[1..]) {
        let said = refused(kernels);
        assert!(said.contains(&format!("rejects the kernels in {kernels}: ")), "{said}");
    }
    assert!(refused("nowhere.aocx").contains("reading nowhere.aocx: "));
    let output = on_all(environment, &["bench", "--on", "card-gen5-x16", "--kernels", &source]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("--kernels applies to runtime devices only"), "{}", said(&output));
}

fn an_unknown_device_number_is_refused_with_the_list_of_devices() {
    let output = on_pocl(&["--on", "opencl:7"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("no device opencl:7; available: opencl:0: "), "{}", said(&output));
    for wrong in ["opencl:", "opencl:x", "opencl:-1"] {
        let output = on_pocl(&["--on", wrong]);
        assert_eq!(output.status.code(), Some(2));
        assert!(said(&output).contains("use a number, for example opencl:0"), "{}", said(&output));
    }
}

fn questions_and_options_about_cards_are_refused_for_runtimes() {
    let output = on_pocl(&["--on", "opencl:0", "--question", "mmio_write_bandwidth"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("not a PCIe function"), "{}", said(&output));
    let output = on_pocl(&["--on", "opencl:0", "--with", "link.mps_bytes=256"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("'opencl:0' is no simulated platform"), "{}", said(&output));
}

fn a_runtime_with_a_missing_library_is_named() {
    let alone = tempfile::tempdir().unwrap();
    for library in ["libOpenCL.so.1", "libpocl.so.2"] {
        fs::copy(libraries().join(library), alone.path().join(library)).unwrap();
    }
    let output = bench(&pocl().join("vendors"), alone.path(), &["--on", "opencl:0"]);
    assert_eq!(output.status.code(), Some(77));
    let said = said(&output);
    assert!(said.contains("no OpenCL runtime has a device; installed runtimes: "), "{said}");
    assert!(
        said.contains("names libpocl.so.2, which cannot be loaded: lib")
            && !said.contains("libpocl.so.2: cannot")
            && said.contains("cannot open shared object"),
        "{said}"
    );
}

/// Checks that all bytes of a record's reads are confirmed, and returns the number of answers.
fn confirmed_reads(record: &Value) -> usize {
    let answers = record["answers"].as_array().unwrap();
    for answer in answers {
        let bytes = |name: &str| answer["bytes"][name].as_u64().unwrap_or_else(|| panic!("{answer}"));
        assert!(bytes("claimed_bytes") > 0 && bytes("claimed_bytes") == bytes("confirmed_bytes"), "{answer}");
        assert!(answer["ceiling"]["rate_bytes_per_s"].is_null(), "{answer}");
    }
    answers.len()
}

fn reads_by_a_kernel_are_confirmed_and_labelled_as_those_of_memory() {
    let reads = ["--on", "opencl:0", "--question", "dma_read_latency,dma_read_bandwidth", "--sizes", "4,20,64,4096"];
    for more in [&[][..], &["--random"], &["--stride", "8192"]] {
        let record = record(&on_pocl(&[&reads[..], more, &["--json"]].concat()));
        assert_eq!(confirmed_reads(&record), 8, "{more:?}: {}", record["skipped"]);
        for answer in record["answers"].as_array().unwrap() {
            let because = match answer["question"].as_str().unwrap() {
                "dma_read_latency" => "latencies have no ceiling",
                _ => "the device is the processor itself: there is no link between it and memory",
            };
            assert_eq!(answer["ceiling"]["because"], because);
        }
        let findings = record["findings"].to_string();
        assert_eq!(findings.matches("this answer is about memory, and no byte crosses PCIe").count(), 2, "{findings}");
    }
    let refused = |arguments: &[&str], because: &str| {
        let output = on_pocl(&[&["--on", "opencl:0", "--question"], arguments].concat());
        assert_eq!(output.status.code(), Some(77), "{}", said(&output));
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &said(&output);
        assert!(text.contains(because), "{text}");
    };
    refused(&["dma_write_bandwidth"], "the kernel reads only: it has no fence after which a write has arrived");
    refused(&["dma_read_latency", "--sizes", "6"], "a work item loads whole words of 4 B");
}

fn every_opencl_device_reads_host_memory_by_a_kernel() {
    let environment = environment();
    let reads = ["--question", "dma_read_latency", "--sizes", "64", "--json"];
    let devices = ["--on", "opencl:0", "--on", "opencl:1", "--on", "opencl:2"];
    let record = record(&on_all(&environment, &[&["bench"], &reads[..], &devices].concat()));
    assert_eq!(confirmed_reads(&record), 3, "{}", record["skipped"]);
}

fn without_runtimes_the_other_targets_answer() {
    let none = tempfile::tempdir().unwrap();
    let output = bench(none.path(), &libraries(), &["--on", "opencl:0"]);
    assert_eq!(output.status.code(), Some(77));
    let message = said(&output);
    let named =
        format!("no OpenCL runtime has a device; installed runtimes: none: {} lists none", none.path().display());
    assert!(message.contains(&named) && message.contains("apt-get install pocl-opencl-icd"), "{message}");
    let both = ["--on", "opencl:0", "--on", "card-gen5-x16", "--question", "mmio_read_latency", "--json"];
    let record = record(&bench(none.path(), &libraries(), &both));
    assert!(record["answers"].as_array().unwrap().iter().all(|answer| answer["target"] == "card-gen5-x16"));
    assert_eq!(record["skipped"][0]["target"], "opencl:0");
}

fn every_device_answers_by_opencl_and_sycl_and_emulations_are_labelled() {
    let environment = environment();
    let record = of_every(&environment, &["--question", "launch_latency"]);
    for (number, device) in EVERY.iter().enumerate() {
        // Three waits, from some cores and unpinned.
        let launches = answers_of(&record, device).len();
        assert!(launches >= 6 && launches.is_multiple_of(3), "{device}: {launches}");
        let summary = record["targets"][number]["summary"].as_str().unwrap();
        assert_eq!(summary.contains("emulated)"), summary.contains("FPGA Emulation"), "{summary}");
        assert_eq!(summary.contains("SYCL 2020 (libsycl "), device.starts_with("sycl"), "{summary}");
    }
    for road in ["opencl:", "sycl:"] {
        for words in ["PoCL", "Intel(R) OpenCL,", "Intel(R) FPGA Emulation Device (accelerator, emulated)"] {
            assert!(device(&record, road, words).starts_with(road));
        }
    }
}

fn copies_by_every_kind_of_memory_are_correct_on_every_device() {
    let environment = environment();
    for size in ["1", "4097", "8MiB"] {
        let record = of_every(&environment, &["--question", "runtime_copy", "--sizes", size]);
        for device in EVERY {
            assert!(answers_of(&record, device).len() >= 4, "{device}");
        }
        for answer in record["answers"].as_array().unwrap() {
            let (bytes, size) = (&answer["bytes"], &answer["size_bytes"]);
            assert_eq!((&bytes["claimed_bytes"], &bytes["confirmed_bytes"]), (size, size), "{answer}");
            let is_emulated =
                ["opencl:", "sycl:"].iter().any(|road| answer["target"] == device(&record, road, "emulated"));
            let because = answer["ceiling"]["because"].as_str().unwrap();
            assert_eq!(because.contains("timings are not meaningful"), is_emulated, "{answer}");
        }
        // PoCL 3.1 has no unified memory; the others do.
        let ways = |words| answers_of(&record, device(&record, "sycl:", words)).len();
        assert_eq!((ways("PoCL"), ways("Intel(R) OpenCL,"), ways("FPGA Emulation")), (4, 12, 12));
    }
}

fn a_driver_that_returns_before_its_copy_completes_has_two_times() {
    let environment = environment();
    let record = of_every(&environment, &["--question", "runtime_copy", "--sizes", "80000"]);
    let spans = |road: &str, wait: &str| {
        let device = device(&record, road, "FPGA Emulation");
        let is_it = |answer: &&&Value| {
            answer["method"]
                == json!({"kind": "runtime_copy", "direction": "to_device", "wait": wait, "allocation": "buffer"})
        };
        let answers = answers_of(&record, device);
        let answer = answers.iter().find(is_it).unwrap();
        (median(answer, "issue_ns"), median(answer, "delivered_ns"))
    };
    let (issued, delivered) = spans("opencl:", "finish");
    assert!(issued < 0.7 * delivered, "its blocking write must return early: {issued} {delivered}");
    for (road, wait) in [("opencl:", "event"), ("sycl:", "finish"), ("sycl:", "event")] {
        let (issued, delivered) = spans(road, wait);
        assert!(issued > 0.7 * delivered, "{road} {wait}: {issued} {delivered}");
    }
}

fn a_runtime_with_a_missing_library_is_listed_with_the_working_ones() {
    let environment = environment();
    let (alone, vendors) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for file in fs::read_dir(root().join(".tools/intel/lib")).unwrap() {
        let file = file.unwrap();
        if file.file_name() != "libsvml.so" {
            symlink(file.path(), alone.path().join(file.file_name())).unwrap();
        }
    }
    let library = alone.path().join("libintelocl.so").display().to_string();
    fs::write(vendors.path().join("intel.icd"), &library).unwrap();
    fs::copy(root().join(".tools/runtimes/vendors/pocl.icd"), vendors.path().join("pocl.icd")).unwrap();
    let places = environment.into_iter().map(|(name, value)| match name.as_str() {
        "OCL_ICD_VENDORS" => (name, vendors.path().display().to_string()),
        _ => (name, value),
    });
    let output = on_all(&places.collect::<Vec<_>>(), &["bench", "--on", "opencl:1"]);
    assert_eq!(output.status.code(), Some(2));
    let said = said(&output);
    assert!(said.contains("available: opencl:0: ") && said.contains("Portable Computing Language"), "{said}");
    let named = format!("intel.icd names {library}, which cannot be loaded: libsvml.so: cannot open");
    assert!(said.contains(&named), "{said}");
}

fn without_sycl_the_message_names_make_runtimes_and_other_targets_answer() {
    let environment = |shim: &str| {
        let libraries = libraries().display().to_string();
        [("LANEMARK_SYCL", shim), ("LD_LIBRARY_PATH", &libraries)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
    };
    let output = on_all(&environment("/nowhere/shim.so"), &["bench", "--on", "sycl:0"]);
    assert_eq!(output.status.code(), Some(77));
    let message = said(&output);
    assert!(message.contains("no SYCL on this machine: /nowhere/shim.so: cannot open"), "{message}");
    assert!(message.contains("make runtimes"), "{message}");
    let output = on_all(&environment("libc.so.6"), &["bench", "--on", "sycl:0"]);
    assert!(said(&output).contains("the SYCL shim libc.so.6 is not a shim"), "{}", said(&output));
    let both = ["bench", "--on", "sycl:0", "--on", "card-gen5-x16", "--question", "mmio_read_latency", "--json"];
    let record = record(&on_all(&environment("/nowhere/shim.so"), &both));
    assert_eq!(record["skipped"][0]["target"], "sycl:0");
    assert!(!answers_of(&record, "card-gen5-x16").is_empty());
}

/// Version of the shim interface.
const SHIM: u32 = 2;

/// A fake shim in C above an OpenCL that does nothing: its device copies by event or computes several times, and then
/// executes `then`.
fn false_shim(folder: &Path, number: u32, then: &str) -> Vec<(String, String)> {
    let (source, library) = (folder.join("shim.c"), folder.join("shim.so"));
    let text = r#"
        #include <stdint.h>
        #include <stdlib.h>
        #include <string.h>
        #include <unistd.h>
        struct device {
            char name[256], platform[256], version[256], driver[256], backend[64];
            uint64_t memory, largest;
            uint32_t kind;
            uint8_t is_opencl, device_usm, host_usm;
        };
        static unsigned char *memory;
        static size_t length;
        static int left = 20;
        uint32_t lanemark_sycl_shim(void) { return NUMBER; }
        const char *lanemark_sycl_version(void) { return "a false SYCL"; }
        int lanemark_sycl_count(size_t *count, char *said) { *count = 1; return 0; }
        int lanemark_sycl_device(size_t number, struct device *into, char *said) {
            strcpy(into->name, "card");
            into->memory = into->largest = 1 << 20;
            into->is_opencl = 1;
            return 0;
        }
        int lanemark_sycl_open(size_t number, void **queue, void **context, void **device, char *said) {
            *queue = *context = *device = &left;
            return 0;
        }
        void lanemark_sycl_close(void *queue) {}
        int lanemark_sycl_kernel(void *queue, uint32_t arguments, void *kernel, char *said) { return 0; }
        int lanemark_sycl_arguments(void *queue, uint32_t count, int32_t kind, char *said) { return 0; }
        int lanemark_sycl_launch(void *queue, uint32_t n, uint32_t event, uint32_t count, int32_t kind, char *said) { return 0; }
        int lanemark_sycl_copies(void *queue, size_t bytes, int32_t kind, void **own, char *said) {
            memory = malloc(length = bytes);
            return 0;
        }
        int lanemark_sycl_copy(void *queue, uint32_t to_device, uint32_t event, unsigned char *own, char *said) {
            if (event && left-- <= 0) { THEN }
            to_device ? memcpy(memory, own, length) : memcpy(own, memory, length);
            return 0;
        }
        int lanemark_sycl_failed(void *queue, char *said) { return 0; }
        int lanemark_sycl_workers(void *queue, void **workers, char *said) {
            *workers = &left;
            return 0;
        }
        void lanemark_sycl_no_workers(void *workers) {}
        int lanemark_sycl_worker(void *workers, void *kernel, size_t *lengths, size_t arrays, uint64_t *numbers, uint8_t *bytes,
                                 size_t count, char *said) {
            return 0;
        }
        int lanemark_sycl_bring(void *workers, size_t worker, size_t array, uint32_t to_device, unsigned char *own, size_t bytes,
                                char *said) {
            return 0;
        }
        int lanemark_sycl_compute(void *workers, uint32_t event, char *said) {
            if (left-- <= 0) { THEN }
            return 0;
        }
    "#;
    fs::write(&source, text.replace("NUMBER", &number.to_string()).replace("THEN", then)).unwrap();
    let below = (folder.join("libOpenCL.so.1"), root().join("crates/hw/tests/fake_opencl/opencl.c"));
    for (library, source) in [(&library, &source), (&below.0, &below.1)] {
        let mut compiler = Command::new("cc");
        assert!(compiler.args(["-shared", "-fPIC", "-w", "-o"]).args([library, source]).status().unwrap().success());
    }
    [("LANEMARK_SYCL", &*library), ("LD_LIBRARY_PATH", folder), ("FAKE_EXTENSIONS", Path::new("cl_khr_fp64"))]
        .map(|(name, value)| (name.to_owned(), value.display().to_string()))
        .to_vec()
}

fn a_sycl_device_that_fails_or_hangs_ends_with_its_error_in_time() {
    let copies: &[_] = &["bench", "--on", "sycl:0", "--question", "runtime_copy", "--sizes", "64"];
    let kernels: &[_] = &["bench", "--on", "sycl:0", "--question", "spmv", "--matrix", "poisson:16"];
    let (fails, hangs) = (r#"strcpy(said, "the card is gone"); return 1;"#, "for (;;) pause();");
    for (asked, then, because) in [
        (copies, fails, "a copy of 64 B as buffer: copying between host and device: the card is gone"),
        (copies, hangs, "waiting for the runtime: a call has not returned for "),
        (kernels, fails, "kernels that compute: computing: the card is gone"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let output = on_all(&false_shim(folder.path(), SHIM, then), asked);
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &said(&output);
        assert!(!output.status.success() && text.contains(because) && text.contains("sycl:0"), "{text}");
    }
    let folder = tempfile::tempdir().unwrap();
    let output = on_all(&false_shim(folder.path(), SHIM + 1, ""), copies);
    assert_eq!(output.status.code(), Some(77));
    assert!(said(&output).contains("has interface version 3 instead of 2; 'make runtimes'"), "{}", said(&output));
    let too_much = ["bench", "--on", "sycl:0", "--question", "runtime_copy", "--sizes", "1MiB,1048577"];
    let output = on_all(&false_shim(folder.path(), SHIM, ""), &too_much);
    assert!(output.status.success(), "{}", said(&output));
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(shown.contains("the largest allocation on the device is 1048576 B"), "{shown}");
    // A device without 64-bit floating point skips sums in it.
    let mut single = false_shim(folder.path(), SHIM, "");
    single.last_mut().unwrap().1.clear();
    let output = on_all(&single, kernels);
    assert_eq!(output.status.code(), Some(77));
    assert!(said(&output).contains("cl_khr_fp64"), "{}", said(&output));
}

fn platform_options_are_refused_for_sycl_as_for_opencl() {
    for (arguments, because) in [
        (&["bench", "--on", "sycl:x"][..], "use a number, for example sycl:0"),
        (&["bench", "--on", "sycl:0", "--with", "link.mps_bytes=256"], "'sycl:0' is no simulated platform"),
        (&["bench", "--on", "sycl:0", "--fault", "poisoned@card:3"], "'sycl:0' is no simulated platform"),
        (&["predict", "--on", "sycl:0"], "'sycl:0' has no formula"),
        (
            &["trace", "--on", "sycl:0", "--question", "runtime_copy"],
            "'sycl:0' is no simulated platform, and only those are traced",
        ),
    ] {
        let output = on_all(&[], arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", said(&output));
        assert!(said(&output).contains(because), "{arguments:?}: {}", said(&output));
    }
}

fn missing_sycl_devices_and_questions_of_other_targets_are_refused() {
    let environment = environment();
    let output = on_all(&environment, &["bench", "--on", "sycl:3"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("no device sycl:3; available: sycl:0: "), "{}", said(&output));
    let output = on_all(&environment, &["bench", "--on", "sycl:0", "--question", "mmio_write_bandwidth"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("not a PCIe function"), "{}", said(&output));
}

/// Runs the test below in a new process, because the library path is fixed at process start.
fn sycl_kernels_take_buffers_and_addresses_and_other_plans_are_refused_by_name() {
    let environment = environment();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "sycl_kernels_in_a_separate_process"]);
    let output = command.envs(environment).env("POCL_CACHE_DIR", pocl().join("cache")).output().unwrap();
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), said(&output));
}

fn sycl_kernels_in_a_separate_process() {
    let plan = |request| Plan { warmup_passes: 1, ..Plan::new(request, 10) };
    let launch = |count, allocation, kernels| {
        let arguments = Arguments { count, allocation };
        plan(QueueRequest::Launch(Launch { kernels, by: LaunchBy::Calls, wait: HostWait::Event, arguments }))
    };
    let copy = |bytes, allocation| {
        plan(QueueRequest::Copy(RuntimeCopy { verb: Verb::Store, bytes, wait: HostWait::Event, allocation }))
    };
    for number in 0..3 {
        let mut device = SyclMachine::open(number, std::sync::Arc::default()).unwrap();
        let facts = device.facts().clone();
        let runtime = facts.runtime.unwrap();
        let mut samples = Samples::wanted(20);
        for allocation in [Allocation::Buffer, Allocation::Device] {
            for count in [1, 2, Arguments::MOST] {
                let ran = device.run(&launch(count, allocation, 3), &mut samples);
                if runtime.allocations.contains(&allocation) {
                    ran.unwrap();
                    let taken = samples.taken.len() as u64 + samples.dropped.count();
                    assert!(taken >= 20, "{}: {taken}", facts.summary);
                } else {
                    assert!(matches!(ran, Err(MachineError::Unsupported(_))), "{}: {ran:?}", facts.summary);
                }
            }
        }
        for (refused, because) in [
            (launch(17, Allocation::Buffer, 1), "at most 16"),
            (launch(1, Allocation::Host, 1), "kernel arguments are buffers or USM"),
            (launch(0, Allocation::Buffer, 0), "one iteration launches 1 to 10000 kernels"),
            (launch(0, Allocation::Buffer, Launch::MOST_KERNELS + 1), "one iteration launches 1 to 10000 kernels"),
            (copy(64, Allocation::Mapped), "it supports buffer"),
            (copy(0, Allocation::Buffer), "a copy has 1 B to 256MiB"),
            (copy(RuntimeCopy::MOST_BYTES + 1, Allocation::Buffer), "a copy has 1 B to 256MiB"),
            (Plan { passes: 0, ..copy(64, Allocation::Buffer) }, "no iterations"),
        ] {
            let said = device.run(&refused, &mut samples).unwrap_err().to_string();
            assert!(said.contains(because) && said.contains(&facts.name), "{said}");
        }
        let timeout = Ticks::whole_ns(60_000_000_000);
        let most = Plan { passes: 1, timeout, ..launch(0, Allocation::Buffer, Launch::MOST_KERNELS) };
        device.run(&most, &mut Samples::wanted(1)).unwrap();
        device.run(&copy(64, Allocation::Buffer), &mut samples).unwrap();
        assert_eq!(samples.confirmed.unwrap().confirmed_bytes, 64, "{}", facts.summary);
        words_arrive(&mut device);
        rows_are_right(&mut device);
    }
}

fn runtime_commands_of_the_guide_print_the_shown_output() {
    guide(false);
}

fn sycl_commands_of_the_guide_print_the_shown_output() {
    guide(true);
}

/// Commands of the guide on a runtime, of SYCL or of OpenCL.
fn guide(is_sycl: bool) {
    let (mut wrong, mut commands) = (Vec::new(), 0);
    for page in Page::all() {
        for block in page.blocks().iter().filter(|block| block.has("runtime") && block.has("sycl") == is_sycl) {
            let exit: i32 = block.note("exit").unwrap_or("0").parse().unwrap();
            for (command, shown) in block.commands() {
                commands += 1;
                let arguments: Vec<&str> = command.split(' ').collect();
                assert_eq!(arguments[..2], ["lanemark", "bench"], "{}:{}", page.path, block.line);
                let output = if is_sycl { on_all(&environment(), &arguments[1..]) } else { on_pocl(&arguments[2..]) };
                let text = String::from_utf8_lossy(&output.stdout).into_owned() + &said(&output);
                let missing = missing(&shown, &text, block.note("varies"));
                if output.status.code() != Some(exit) || missing.is_some() {
                    wrong.push(format!(
                        "{}:{}: $ {command}\nwithout the line {missing:?}\n{text}",
                        page.path, block.line
                    ));
                }
            }
        }
    }
    assert!(commands > 0, "no page has a command for a runtime: the pages are not read");
    assert!(wrong.is_empty(), "{} of {commands} commands:\n\n{}", wrong.len(), wrong.join("\n\n"));
}
