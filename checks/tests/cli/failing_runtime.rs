//! What the program does where a runtime fails, by exit code and words: against the library that stands in for OpenCL.

use lanemark_checks::{lanemark, root};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// Asks a device whose calls fail as `fails` says; `kib` is the most memory that the program may have.
fn bench(fails: &str, kib: Option<u32>, arguments: &[&str]) -> Output {
    bench_among(Path::new("/nowhere"), fails, kib, arguments)
}

/// As [`bench`], where `vendors` says which runtimes are installed.
fn bench_among(vendors: &Path, fails: &str, kib: Option<u32>, arguments: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libOpenCL.so.1");
    let source = root().join("crates/hw/tests/fake_opencl/opencl.c");
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).args([&library, &source]).status();
    assert!(compiled.unwrap().success());
    let limit = kib.map_or_else(String::new, |kib| format!("ulimit -v {kib}; "));
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{limit}exec \"$@\"")).arg("sh").arg(lanemark());
    command.args(["bench", "--on", "opencl:0"]).args(arguments).current_dir(folder.path());
    command.env("LD_LIBRARY_PATH", folder.path()).env("OCL_ICD_VENDORS", vendors).env("FAKE_FAILS", fails);
    command.output().unwrap()
}

fn texts(output: &Output) -> [String; 2] {
    [&output.stdout, &output.stderr].map(|text| String::from_utf8(text.clone()).unwrap())
}

fn record(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", texts(output)[1]))
}

/// How often it was said, on both outputs.
fn times(output: &Output, words: &str) -> usize {
    texts(output).iter().map(|text| text.matches(words).count()).sum()
}

const TRANSFER: [&str; 4] = ["--question", "runtime_copy", "--sizes", "64"];

/// The warnings of a record, without the one about other work on this machine.
fn warnings(record: &Value) -> Vec<&str> {
    let all = record["warnings"].as_array().unwrap().iter().filter_map(Value::as_str);
    all.filter(|text| !text.starts_with("the machine was busy")).collect()
}

#[test]
fn a_kernel_that_does_not_build_leaves_the_copies_answered() {
    let both = ["--question", "accessor_overhead,runtime_copy", "--sizes", "64", "--json"];
    let output = bench("clBuildProgram 2 -11", None, &both);
    assert_eq!(output.status.code(), Some(0), "{}", texts(&output)[1]);
    let record = record(&output);
    let copies =
        record["answers"].as_array().unwrap().iter().filter(|answer| answer["question"] == "runtime_copy").count();
    assert_eq!(copies, 8, "both ways, told by two, to buffers and mapped");
    let skipped = record["skipped"].as_array().unwrap();
    let of_kernels = skipped.iter().filter(|one| one["question"] == "accessor_overhead");
    assert!(of_kernels.clone().count() > 0);
    for one in of_kernels {
        assert!(one["because"].as_str().unwrap().contains("line 1: the fake compiler does not like it"), "{one}");
    }
}

#[test]
fn where_a_kernel_that_does_not_build_is_all_there_was_to_ask_its_log_is_said_once() {
    for fails in ["clBuildProgram 1 -11", "clBuildProgram 2 -11"] {
        let output = bench(fails, None, &["--question", "stream_copy", "--sizes", "64KiB"]);
        assert_eq!(output.status.code(), Some(77), "{fails}: {:?}", texts(&output));
        assert_eq!(times(&output, "the fake compiler does not like it"), 1, "{fails}: {:?}", texts(&output));
        assert!(texts(&output)[1].contains("lanemark: skipped, because the kernel does not compile for opencl:0"));
    }
}

#[test]
fn a_device_that_is_lost_before_it_answers_is_one_message_and_absent() {
    let output = bench("clFinish 1 -5", None, &TRANSFER);
    assert_eq!(output.status.code(), Some(77), "{:?}", texts(&output));
    assert_eq!(times(&output, "the device may be lost"), 1, "{:?}", texts(&output));
    assert!(texts(&output)[1].contains("lanemark: skipped, because opencl:0: a copy of 64 B"), "{:?}", texts(&output));
}

#[test]
fn a_device_that_is_lost_in_the_middle_keeps_its_answers_and_says_why_once() {
    // Copies launch nothing: the first launch is that of the question behind them.
    let (lost, both) = ("clEnqueueNDRangeKernel 1 -5", [&TRANSFER[..], &["--question", "launch_latency"]].concat());
    let output = bench(lost, None, &both);
    assert_eq!(output.status.code(), Some(77), "{:?}", texts(&output));
    assert_eq!(times(&output, "the device may be lost"), 1, "{:?}", texts(&output));
    assert!(texts(&output)[1].contains("opencl:0 failed before all cases were measured"), "{:?}", texts(&output));
    let record = record(&bench(lost, None, &[&both[..], &["--json"]].concat()));
    assert!(!record["answers"].as_array().unwrap().is_empty());
    assert_eq!(warnings(&record).len(), 1, "{}", record["warnings"]);
}

#[test]
fn host_memory_that_is_short_leaves_out_what_needs_it_and_no_more() {
    let sizes = ["--question", "runtime_copy", "--json", "--sizes"];
    let output = bench("", Some(250_000), &[&sizes[..], &["64,256MiB"]].concat());
    assert_eq!(output.status.code(), Some(0), "{:?}", texts(&output));
    let found = record(&output);
    assert_eq!(found["answers"].as_array().unwrap().len(), 8);
    let is_short = |one: &&Value| one["because"].as_str().unwrap().starts_with("cannot allocate 256MiB of host memory");
    assert!(found["skipped"].as_array().unwrap().iter().any(|one| is_short(&one)), "{}", found["skipped"]);
    let output = bench("", Some(250_000), &["--question", "runtime_copy", "--sizes", "256MiB"]);
    assert_eq!(output.status.code(), Some(77), "{:?}", texts(&output));
    assert_eq!(times(&output, "raise the limit (ulimit -v)"), 1, "{:?}", texts(&output));
}

#[test]
fn a_device_that_cannot_be_opened_is_named_and_a_runtime_that_is_broken_is_a_warning_beside_answers() {
    let output = bench("clCreateContext 1 -2", None, &TRANSFER);
    assert_eq!(output.status.code(), Some(77));
    let said = &texts(&output)[1];
    assert!(
        said.contains("skipped, because cannot open opencl:0: fake (") && said.contains("creating a context"),
        "{said}"
    );
    let vendors = tempfile::tempdir().unwrap();
    let file = vendors.path().join("broken.icd");
    std::fs::write(&file, "/nowhere/libbroken.so").unwrap();
    let record = record(&bench_among(&file, "", None, &[&TRANSFER[..], &["--json"]].concat()));
    let warnings = warnings(&record);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let warning = warnings[0];
    assert!(warning.contains("broken.icd names /nowhere/libbroken.so, which cannot be loaded"), "{warning}");
}
