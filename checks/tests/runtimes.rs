//! Is what we say of OpenCL runtimes true of a real one?
//!
//! `make test-runtimes` fetches PoCL, which runs kernels on the processor, and runs this.

use lanemark_checks::lanemark;
use lanemark_checks::page::Page;
use lanemark_checks::shown::missing;
use lanemark_compute::{Csr, Spmv, StreamCopy, Work};
use lanemark_hw::opencl::OpenClMachine;
use lanemark_machine::{Compute, Confirmed, Machine, Op, Plan, Samples, Told};
use lanemark_units::Ticks;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

/// Where PoCL was unpacked.
fn pocl() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../.tools/pocl").canonicalize().expect("make test-runtimes fetches it")
}

fn libraries() -> PathBuf {
    pocl().join("root/usr/lib/x86_64-linux-gnu")
}

/// The program where the loader finds runtimes in `vendors`, and the system finds libraries in `libraries`.
fn bench(vendors: &Path, libraries: &Path, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    Command::new(lanemark())
        .arg("bench")
        .args(arguments)
        .current_dir(folder.path())
        .env("OCL_ICD_VENDORS", vendors)
        .env("LD_LIBRARY_PATH", libraries)
        // Kernels that were built are kept, and not in somebody's home.
        .env("POCL_CACHE_DIR", pocl().join("cache"))
        .output()
        .unwrap()
}

fn on_pocl(arguments: &[&str]) -> Output {
    bench(&pocl().join("vendors"), &libraries(), arguments)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn record(output: &Output) -> Value {
    assert!(output.status.success(), "{}", said(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_runtime_is_asked_for_its_launches_by_every_wait_and_says_what_it_is() {
    let record = record(&on_pocl(&["--on", "opencl:0", "--json"]));
    let target = &record["targets"][0];
    assert_eq!((&target["name"], &target["kind"]), (&"opencl:0".into(), &"real".into()));
    let summary = target["summary"].as_str().unwrap();
    for word in ["(CPU)", "Portable Computing Language", "OpenCL 3.0 PoCL", "driver 3.1"] {
        assert!(summary.contains(word), "{summary}");
    }
    let answers = record["answers"].as_array().unwrap();
    let launches: Vec<&Value> = answers.iter().filter(|answer| answer["question"] == "launch_latency").collect();
    let ways: Vec<(&str, &str)> = launches
        .iter()
        .map(|answer| (answer["way"]["access"].as_str().unwrap(), answer["way"]["through"].as_str().unwrap()))
        .collect();
    assert_eq!(ways, [("finish", "launch_1"), ("event", "launch_1"), ("finish", "launch_100")]);
    let is_rate = |answer: &Value| ["transfer", "many_small_few_large"].contains(&answer["question"].as_str().unwrap());
    for answer in answers {
        let quantity = if is_rate(answer) { "bandwidth" } else { "cost" };
        assert_eq!(answer["quantity"], quantity);
        assert!(answer["ceiling"]["rate_bytes_per_s"].is_null(), "{answer}");
    }
    let of = |question: &str| answers.iter().filter(|answer| answer["question"] == question).count();
    assert_eq!(of("accessor_overhead"), 7, "none, five numbers of buffers, and one more");
    assert_eq!(of("transfer"), 48, "six sizes, both ways, told by two, to buffers and mapped");
    assert_eq!(of("many_small_few_large"), 4, "small and large, to buffers and mapped");
    let skipped = record["skipped"].as_array().unwrap();
    assert!(
        skipped.len() > 10
            && skipped.iter().all(|one| one["because"].as_str().unwrap().contains("no function of PCIe"))
    );
}

#[test]
fn copies_of_every_length_arrive_both_ways_and_what_is_issued_is_no_later_than_what_is_delivered() {
    for size in ["1", "4097", "256MiB"] {
        let record = record(&on_pocl(&["--on", "opencl:0", "--question", "transfer", "--sizes", size, "--json"]));
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
    let output = on_pocl(&["--on", "opencl:0", "--question", "transfer", "--sizes", "268435457"]);
    assert_eq!(output.status.code(), Some(2));
    let said = said(&output);
    assert!(said.contains("beyond the longest buffer of opencl:0; ask for at most 268435456"), "{said}");
}

#[test]
fn runs_of_copies_say_how_many_of_how_many_they_were_and_all_bytes_arrive() {
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

/// What tells a test that it is a process that finds PoCL.
const INSIDE: &str = "LANEMARK_ON_POCL";

/// Runs a test again where the system finds PoCL; libraries are loaded once a process.
fn again_on_pocl<F: FnOnce()>(body: F) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    // The test in which the closure stands: `runtimes::a_test::{{closure}}`.
    let test = std::any::type_name::<F>().split("::").nth(1).unwrap();
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args([test, "--exact"]).env(INSIDE, "1").env("OCL_ICD_VENDORS", pocl().join("vendors"));
    let again = again.env("LD_LIBRARY_PATH", libraries()).env("POCL_CACHE_DIR", pocl().join("cache")).output().unwrap();
    let text = String::from_utf8_lossy(&again.stdout).into_owned() + &said(&again);
    assert!(again.status.success() && text.contains("1 passed"), "{text}");
}

fn computed(machine: &mut OpenClMachine, work: Work, told: Told) -> Confirmed {
    let plan = Plan {
        timeout: Ticks::whole_ns(20_000_000_000),
        ..Plan::on_one_core(vec![Op::Compute(Compute { work, told })], 1)
    };
    let mut samples = Samples::wanted(3);
    machine.run(&plan, &mut samples).unwrap();
    assert!(samples.taken.iter().all(|sample| sample.delivered > Ticks::ZERO));
    samples.confirmed.unwrap()
}

#[test]
fn words_are_copied_within_a_port_by_vectors_and_over_gaps_and_all_of_them_are_there() {
    again_on_pocl(|| {
        let mut machine = OpenClMachine::open(0, Arc::default()).unwrap();
        for (stride_bytes, vector_words) in [(8, 1), (8, 4), (8, 16), (32, 1), (32, 4)] {
            let copy = StreamCopy { first_port: 0, ports: 1, bytes_per_port: 1 << 20, stride_bytes, vector_words };
            for told in Told::ALL {
                let confirmed = computed(&mut machine, Work::StreamCopy(copy), told);
                let counts = (confirmed.claimed_bytes, confirmed.confirmed_bytes);
                assert_eq!(counts, (1 << 20, 1 << 20), "a word every {stride_bytes} B, {vector_words} at once");
            }
        }
    });
}

#[test]
fn a_sparse_matrix_is_multiplied_by_one_kernel_or_several_and_every_row_is_within_its_bound() {
    again_on_pocl(|| {
        let mut machine = OpenClMachine::open(0, Arc::default()).unwrap();
        // Rows of 0 to 6 entries, which are in no order.
        let (mut starts, mut columns) = (vec![0], Vec::new());
        for row in 0..5000_u32 {
            columns.extend((0..row % 7).map(|entry| (row * 31 + entry * 977) % 3000));
            starts.push(columns.len() as u32);
        }
        let values = (0..columns.len()).map(|entry| 1.0 / (entry as f64 + 3.0) - 0.01).collect();
        let matrix = Arc::new(Csr::new(3000, starts, columns, values).unwrap());
        for kernels in [1, 3, 8] {
            let work = Work::Spmv(Spmv { matrix: Arc::clone(&matrix), kernels, ports_each: 1 });
            let confirmed = computed(&mut machine, work, Told::Event);
            assert_eq!((confirmed.claimed_bytes, confirmed.confirmed_bytes), (40_000, 40_000), "{kernels} kernels");
        }
    });
}

#[test]
fn a_number_that_no_device_has_is_refused_with_those_that_there_are() {
    let output = on_pocl(&["--on", "opencl:7"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("there is no opencl:7; there are opencl:0: "), "{}", said(&output));
    for wrong in ["opencl:", "opencl:x", "opencl:-1"] {
        let output = on_pocl(&["--on", wrong]);
        assert_eq!(output.status.code(), Some(2));
        assert!(said(&output).contains("they are numbered, opencl:0"), "{}", said(&output));
    }
}

#[test]
fn what_is_about_cards_is_no_question_to_a_runtime_and_nothing_of_it_is_changed() {
    let output = on_pocl(&["--on", "opencl:0", "--question", "mmio_write_bandwidth"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("no function of PCIe"), "{}", said(&output));
    let output = on_pocl(&["--on", "opencl:0", "--with", "link.mps_bytes=256"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("'opencl:0' is real"), "{}", said(&output));
}

#[test]
fn a_runtime_that_lacks_a_library_is_named_with_the_one_that_is_missing() {
    let alone = tempfile::tempdir().unwrap();
    for library in ["libOpenCL.so.1", "libpocl.so.2"] {
        fs::copy(libraries().join(library), alone.path().join(library)).unwrap();
    }
    let output = bench(&pocl().join("vendors"), alone.path(), &["--on", "opencl:0"]);
    assert_eq!(output.status.code(), Some(77));
    let said = said(&output);
    assert!(said.contains("no OpenCL runtime has a device; installed: "), "{said}");
    assert!(
        said.contains("names libpocl.so.2, which cannot be loaded: lib")
            && !said.contains("libpocl.so.2: cannot")
            && said.contains("cannot open shared object"),
        "{said}"
    );
}

#[test]
fn a_machine_without_runtimes_says_so_and_the_others_answer() {
    let none = tempfile::tempdir().unwrap();
    let output = bench(none.path(), &libraries(), &["--on", "opencl:0"]);
    assert_eq!(output.status.code(), Some(77));
    assert!(said(&output).contains("no OpenCL runtime has a device; installed: none"), "{}", said(&output));
    let both = ["--on", "opencl:0", "--on", "card-gen5-x16", "--question", "mmio_read_latency", "--json"];
    let record = record(&bench(none.path(), &libraries(), &both));
    assert!(record["answers"].as_array().unwrap().iter().all(|answer| answer["target"] == "card-gen5-x16"));
    assert_eq!(record["skipped"][0]["target"], "opencl:0");
}

#[test]
fn every_command_of_the_guide_that_wants_a_runtime_says_what_is_shown() {
    let (mut wrong, mut commands) = (Vec::new(), 0);
    for page in Page::all() {
        for block in page.blocks().iter().filter(|block| block.has("runtime")) {
            let exit: i32 = block.note("exit").unwrap_or("0").parse().unwrap();
            for (command, shown) in block.commands() {
                commands += 1;
                let arguments: Vec<&str> = command.split(' ').collect();
                assert_eq!(arguments[..2], ["lanemark", "bench"], "{}:{}", page.path, block.line);
                let output = on_pocl(&arguments[2..]);
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
