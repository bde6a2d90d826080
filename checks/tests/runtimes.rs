//! Is what we say of OpenCL runtimes true of a real one?
//!
//! `make test-runtimes` fetches PoCL, which runs kernels on the processor, and runs this.

use lanemark_checks::lanemark;
use lanemark_checks::page::Page;
use lanemark_checks::shown::missing;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

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
    for answer in answers {
        let quantity = if answer["question"] == "transfer" { "bandwidth" } else { "cost" };
        assert_eq!(answer["quantity"], quantity);
        assert!(answer["ceiling"]["rate_bytes_per_s"].is_null(), "{answer}");
    }
    assert_eq!(answers.len(), 3 + 24, "six sizes, both ways, told by two");
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
        assert_eq!(answers.len(), 4);
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
