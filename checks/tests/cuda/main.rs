//! The CUDA backend on a fake driver (`checks/fake_cuda`), and its kernels through the assembler of the vendor.
//!
//! The fake driver moves data for real and fails as environment variables say. A process loads a driver once, so every
//! test runs the program. `make ptxas` fetches the assembler; without it, two tests are ignored.

mod failing;
mod pieces;
mod ptx;

use lanemark_checks::page::Page;
use lanemark_checks::shown::missing;
use lanemark_checks::trials::{Available, Trial, run};
use lanemark_checks::{lanemark, root, trials};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Output};
use std::sync::OnceLock;
use tempfile::TempDir;

fn main() -> ExitCode {
    let is_measured = cfg!(all(target_arch = "x86_64", target_os = "linux"));
    let here = Available::optional(if is_measured { Ok(()) } else { Err("an x86-64 Linux machine".to_owned()) });
    let found = ptx::ptxas().map(|_| ()).ok_or_else(|| "make ptxas to be run first".to_owned());
    let assembler = Available::new(found, "LANEMARK_REQUIRE_PTXAS");
    let beside = ptx::disassembler().map(|_| ()).ok_or_else(|| "nvdisasm beside ptxas".to_owned());
    let disassembler = assembler.and(&Available::new(beside, "LANEMARK_REQUIRE_PTXAS"));
    let mut tests: Vec<Trial> = trials!(
        here;
        every_question_is_answered_and_all_bytes_are_confirmed,
        transfers_of_every_unit_order_and_depth_move_every_byte,
        answers_of_a_fake_driver_are_marked_as_emulated_and_have_no_ceiling,
        failing::the_table_of_failing_calls_has_every_function_of_the_backend,
        failing::every_failing_call_ends_with_its_operation_and_the_name_of_the_error,
        failing::every_function_may_fail_at_any_call_without_a_panic_or_a_hang,
        a_kernel_that_does_not_compile_is_shown_with_the_log_of_the_compiler,
        no_driver_no_device_and_a_missing_function_are_three_messages,
        devices_are_numbered_and_an_absent_number_is_refused_with_the_list,
        a_kernel_that_hangs_ends_the_run_in_time_and_is_named,
        a_lost_device_keeps_earlier_answers_and_is_reported_once,
        wrong_bytes_are_counted_and_the_figure_is_refused,
        a_clock_at_another_rate_or_standing_still_is_refused,
        pieces::pieces_of_any_length_are_copied_by_every_method_in_both_directions,
        pieces::a_driver_without_a_batch_leaves_the_other_methods_and_says_so,
        pieces::wrong_bytes_of_pieces_and_of_the_gaps_between_them_are_counted,
        pieces::a_tuned_table_says_that_it_is_emulated_and_gives_choices,
        a_driver_without_graphs_or_stream_waits_is_left_with_the_name_of_the_function,
        memory_that_cannot_be_registered_leaves_the_other_kinds,
        the_commands_of_the_guide_print_the_shown_output,
    )
    .into();
    tests.extend(trials!(assembler; ptx::every_kernel_assembles_for_three_generations));
    tests.extend(trials!(disassembler; ptx::a_thread_has_eight_loads_and_stores_in_flight_and_none_are_merged));
    run(tests)
}

/// Compiles the fake driver into a new folder, without the function `hidden`.
fn compiled(hidden: Option<&str>) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC", "-pthread", "-o"]);
    cc.arg(folder.path().join("libcuda.so.1"));
    cc.args(["libcuda.c", "kernels.c"].map(|file| root().join("checks/fake_cuda").join(file)));
    if let Some(hidden) = hidden {
        let script = folder.path().join("symbols");
        fs::write(&script, format!("{{ global: *; local: {hidden}; }};\n")).unwrap();
        cc.arg(format!("-Wl,--version-script={}", script.display()));
    }
    let done = cc.output().expect("a C compiler, cc, which Rust needs for linking too");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    folder
}

/// Runs `lanemark bench --on cuda:0` with the driver in `folder`; a run that hangs is killed, which has its own exit code.
fn bench_in(folder: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    command.args(["-k", "1", "90"]).arg(lanemark()).args(["bench", "--budget", "0.2"]).args(arguments);
    if !arguments.contains(&"--on") {
        command.args(["--on", "cuda:0"]);
    }
    command.current_dir(folder).env("LD_LIBRARY_PATH", folder).envs(environment.iter().copied());
    command.output().unwrap()
}

fn bench(environment: &[(&str, &str)], arguments: &[&str]) -> Output {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    bench_in(FOLDER.get_or_init(|| compiled(None)).path(), environment, arguments)
}

/// Everything that the program printed.
fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn record(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", said(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The answers of a record; at least one.
fn answers(record: &Value) -> &[Value] {
    let answers = record["answers"].as_array().unwrap();
    assert!(!answers.is_empty(), "{}", record["skipped"]);
    answers
}

/// Claimed and confirmed bytes of an answer.
fn bytes(answer: &Value) -> (u64, u64) {
    let of = |name: &str| answer["bytes"][name].as_u64().unwrap_or_else(|| panic!("{answer}"));
    (of("claimed_bytes"), of("confirmed_bytes"))
}

const DMA: [&str; 4] = ["dma_read_latency", "dma_read_bandwidth", "dma_write_bandwidth", "dma_read_write_mix"];

fn every_question_is_answered_and_all_bytes_are_confirmed() {
    for question in DMA.into_iter().chain(["runtime_copy"]) {
        let record = record(&bench(&[], &["--question", question, "--json", "--sizes", "64,4096,1MiB"]));
        let (answers, skipped) = (answers(&record), record["skipped"].as_array().unwrap());
        // Two directions, two waits, four kinds of memory.
        let methods = if question == "runtime_copy" { 16 } else { 1 };
        assert_eq!((answers.len(), skipped.len()), (3 * methods, 0), "{question}: {skipped:?}");
        for answer in answers {
            let (claimed, confirmed) = bytes(answer);
            assert!(claimed > 0 && claimed == confirmed, "{answer}");
        }
    }
    // A doorbell of a read and one of a write: of reads nothing is known.
    let record_of_doorbells = record(&bench(&[], &["--question", "doorbell_to_completion", "--sizes", "64", "--json"]));
    let is_write = |answer: &&Value| bytes(answer) == (64, 64);
    let confirmed = answers(&record_of_doorbells).iter().filter(|answer| !answer["bytes"].is_null()).filter(is_write);
    assert_eq!((answers(&record_of_doorbells).len(), confirmed.count()), (2, 1));
    // Two waits and a batch from a core and from an unpinned thread, five graphs, a stream wait.
    for (question, least) in [("launch_latency", 12), ("accessor_overhead", 7)] {
        let record = record(&bench(&[], &["--question", question, "--json"]));
        assert!(answers(&record).len() >= least, "{question}: {}", answers(&record).len());
    }
}

fn transfers_of_every_unit_order_and_depth_move_every_byte() {
    // Units of 4, 8 and 16 B; less than a slice, a slice, and several with a rest.
    let sizes = ["--sizes", "4,8,16,20,24,64,2048,4096,4100,20000"];
    let (both, reads) = ("dma_read_bandwidth,dma_write_bandwidth", "dma_read_bandwidth");
    for (questions, more, count) in [
        (both, &[][..], 20),
        (both, &["--random"], 20),
        (both, &["--stride", "20480"], 20),
        (reads, &["--outstanding", "1"], 10),
        (reads, &["--outstanding", "7"], 10),
    ] {
        let record = record(&bench(&[], &[&["--question", questions, "--json"], &sizes[..], more].concat()));
        assert_eq!(answers(&record).len(), count, "{more:?}: {}", record["skipped"]);
        for answer in answers(&record) {
            let (claimed, confirmed) = bytes(answer);
            assert!(claimed > 0 && claimed == confirmed, "{more:?}: {answer}");
        }
    }
    let output = bench(&[], &["--question", "dma_read_bandwidth", "--sizes", "6"]);
    assert_eq!(output.status.code(), Some(77));
    assert!(said(&output).contains("a thread of the device loads and stores whole words of 4 B"), "{}", said(&output));
}

fn answers_of_a_fake_driver_are_marked_as_emulated_and_have_no_ceiling() {
    // Also at the address of a function of this machine, whose link is known.
    let functions = fs::read_dir("/sys/bus/pci/devices").into_iter().flatten();
    let function = functions.flatten().map(|entry| entry.file_name().into_string().unwrap()).next();
    let question = ["--question", "dma_read_bandwidth,runtime_copy", "--sizes", "4096"];
    for bus_id in [None, function.as_deref()] {
        let environment: Vec<_> = bus_id.map(|bus_id| ("FAKE_CUDA_BUS_ID", bus_id)).into_iter().collect();
        let record = record(&bench(&environment, &[&question[..], &["--json"]].concat()));
        let target = &record["targets"][0];
        let summary = target["summary"].as_str().unwrap();
        let place = format!("Fake GPU (test driver) at {}, ", bus_id.unwrap_or("face:0f:00.0"));
        assert!(summary.starts_with(&place), "{summary}");
        assert_eq!(target["kind"], "emulated");
        assert_eq!(target["runtime"]["is_emulated"], true);
        for answer in answers(&record) {
            let ceiling = &answer["ceiling"];
            assert!(ceiling["rate_bytes_per_s"].is_null(), "{ceiling}");
            assert_eq!(ceiling["because"], "the device is emulated: timings are not meaningful");
        }
    }
    let output = bench(&[], &question);
    assert!(said(&output).contains("cuda:0 (emulated: timings are not meaningful"), "{}", said(&output));
}

fn a_kernel_that_does_not_compile_is_shown_with_the_log_of_the_compiler() {
    for (from, kernel) in [("1", "clock"), ("2", "transfers")] {
        let fail = format!("cuModuleLoadDataEx:218:{from}");
        let output = bench(&[("FAKE_CUDA_FAIL", &fail)], &["--question", "dma_read_latency"]);
        let shown = format!(
            "the kernel {kernel} does not compile: CUDA_ERROR_INVALID_PTX (218); it needs compute capability 7.5 and a driver of version 520 or later\nline 1: the fake compiler rejects it\n"
        );
        assert!(said(&output).contains(&shown), "{}", said(&output));
    }
}

fn no_driver_no_device_and_a_missing_function_are_three_messages() {
    let refused = |folder: &Path, environment: &[(&str, &str)], words: &[&str]| {
        let output = bench_in(folder, environment, &["--question", "dma_read_latency"]);
        assert_eq!(output.status.code(), Some(77), "{}", said(&output));
        assert!(words.iter().all(|word| said(&output).contains(word)), "{words:?}: {}", said(&output));
    };
    // A file that is no library hides the driver that this machine may have.
    let none = tempfile::tempdir().unwrap();
    fs::write(none.path().join("libcuda.so.1"), "no library").unwrap();
    refused(
        none.path(),
        &[],
        &["no CUDA driver on this machine: ", "install the NVIDIA driver, which contains libcuda.so.1"],
    );
    let whole = compiled(None);
    refused(
        whole.path(),
        &[("FAKE_CUDA_DEVICES", "0")],
        &["the CUDA driver has no device (it counts 0): check nvidia-smi"],
    );
    for hidden in ["cuInit", "cuMemHostRegister_v2", "cuLaunchKernel"] {
        let words = format!("the CUDA driver of this machine does not export {hidden}: install a driver of version ");
        refused(compiled(Some(hidden)).path(), &[], &[&words]);
    }
}

fn devices_are_numbered_and_an_absent_number_is_refused_with_the_list() {
    let two = [("FAKE_CUDA_DEVICES", "2")];
    let second = record(&bench(&two, &["--on", "cuda:1", "--question", "dma_read_latency", "--sizes", "64", "--json"]));
    assert!(answers(&second).iter().all(|answer| answer["target"] == "cuda:1"));
    let output = bench(&two, &["--on", "cuda:2", "--question", "dma_read_latency"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let list = "no device cuda:2; available: cuda:0: Fake GPU (test driver) at face:0f:00.0, ";
    assert!(said(&output).contains(list) && said(&output).contains("; cuda:1: Fake GPU"), "{}", said(&output));
}

fn a_kernel_that_hangs_ends_the_run_in_time_and_is_named() {
    for (kernel, launch, questions, is_opened) in [
        ("clock", 1, "dma_read_latency", false),
        ("transfers", 5, "dma_read_latency,dma_write_bandwidth", true),
        ("nothing", 1, "launch_latency", true),
        ("pieces", 1, "small_copies", true),
        ("ping", 1, "doorbell_to_completion", true),
    ] {
        let output = bench(&[("FAKE_CUDA_HANG", &format!("{kernel}:{launch}"))], &["--question", questions]);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(77), "{text}");
        if is_opened {
            let late = format!("running the kernel {kernel}; shorten it or raise its timeout");
            assert!(text.contains("the plan timed out after ") && text.contains(&late), "{text}");
            let further =
                format!("running the kernel {kernel} has not ended since an earlier measurement; restart the program");
            assert!(text.contains(&further), "{text}");
        } else {
            assert!(text.contains("the CUDA device: running the kernel clock has not ended for 20 s"), "{text}");
        }
    }
}

fn a_lost_device_keeps_earlier_answers_and_is_reported_once() {
    let question = ["--question", "dma_read_latency", "--sizes", "64"];
    let lost_after = |launches: u32| bench(&[("FAKE_CUDA_LOST_AFTER", &launches.to_string())], &question);
    // The clock is read by three launches.
    let opening = said(&lost_after(2));
    assert!(opening.contains("cannot open cuda:0: ") && opening.contains("CUDA_ERROR_UNKNOWN (999)"), "{opening}");
    let output = (3..20).map(lost_after).find(failing::is_open).unwrap();
    assert_eq!(output.status.code(), Some(77));
    assert_eq!(said(&output).matches("the device may be lost").count(), 1, "{}", said(&output));
    // A question takes hundreds of launches at most, the launches of the next one thousands.
    let both = ["--question", "dma_read_latency,launch_latency", "--json"];
    let output = bench(&[("FAKE_CUDA_LOST_AFTER", "10000")], &both);
    assert_eq!(output.status.code(), Some(77), "{}", said(&output));
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(answers(&record).iter().any(|answer| answer["question"] == "dma_read_latency"));
    let lost = |text: &&Value| text.as_str().unwrap().contains("CUDA_ERROR_UNKNOWN (999); the device may be lost");
    assert_eq!(record["warnings"].as_array().unwrap().iter().filter(lost).count(), 1, "{}", record["warnings"]);
}

fn wrong_bytes_are_counted_and_the_figure_is_refused() {
    let wrong = [("FAKE_CUDA_WRONG_BYTES", "1")];
    for (question, (claimed_parts, confirmed_parts)) in [
        // The sum of one warp of one, so every byte that it read is in doubt.
        ("dma_read_latency", (1, 0)),
        // One word of every 64 B.
        ("dma_write_bandwidth", (16, 15)),
        // One byte of every copy.
        ("runtime_copy", (64, 63)),
    ] {
        let asked = ["--question", question, "--sizes", "64"];
        let output = bench(&wrong, &asked);
        assert_eq!(output.status.code(), Some(1), "{question}: {}", said(&output));
        assert!(said(&output).contains(" bytes arrived; the figure is invalid"), "{}", said(&output));
        let output = bench(&wrong, &[&asked[..], &["--json"]].concat());
        assert_eq!(output.status.code(), Some(1), "{question}: {}", said(&output));
        let record: Value = serde_json::from_slice(&output.stdout).unwrap();
        for answer in answers(&record) {
            let (claimed, confirmed) = bytes(answer);
            assert_eq!(claimed * confirmed_parts, confirmed * claimed_parts, "{answer}");
        }
    }
}

fn a_driver_without_graphs_or_stream_waits_is_left_with_the_name_of_the_function() {
    for (hidden, by, left) in
        [("cuGraphAddKernelNode_v2", "graph", "stream_wait"), ("cuStreamWaitValue32_v2", "stream_wait", "graph")]
    {
        let output = bench_in(compiled(Some(hidden)).path(), &[], &["--question", "launch_latency", "--json"]);
        let record = record(&output);
        let methods: Vec<&str> =
            answers(&record).iter().map(|answer| answer["method"]["by"].as_str().unwrap_or("calls")).collect();
        assert!(methods.contains(&"calls") && methods.contains(&left) && !methods.contains(&by), "{methods:?}");
        let because = format!("does not export {hidden}, which a launch by {by} needs");
        assert!(record["skipped"].to_string().contains(&because), "{}", record["skipped"]);
    }
}

fn a_clock_at_another_rate_or_standing_still_is_refused() {
    let refused = |rate: &str, words: &str| {
        let output = bench(&[("FAKE_CUDA_CLOCK", rate)], &["--question", "dma_read_latency"]);
        assert_eq!(output.status.code(), Some(77), "{}", said(&output));
        let text = said(&output);
        assert!(text.contains("the clock of the device cannot be used for timing: ") && text.contains(words), "{text}");
    };
    refused("2", "ns while the processor's advanced by ");
    refused("0.5", "ns while the processor's advanced by ");
    refused("0", "16384 readings are all alike");
}

fn memory_that_cannot_be_registered_leaves_the_other_kinds() {
    let fail = [("FAKE_CUDA_FAIL", "cuMemHostRegister_v2:712:1")];
    let record = record(&bench(&fail, &["--question", "runtime_copy", "--sizes", "4KiB", "--json"]));
    let mut kinds: Vec<&str> =
        answers(&record).iter().map(|answer| answer["method"]["allocation"].as_str().unwrap()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, ["host_usm", "host_wc", "usm"]);
    let skipped = record["skipped"].as_array().unwrap();
    let because = "registering host memory: CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED (712)";
    assert!(skipped.iter().any(|one| one["because"].as_str().unwrap().contains(because)), "{skipped:?}");
}

fn the_commands_of_the_guide_print_the_shown_output() {
    let folder = compiled(None);
    let (mut wrong, mut commands) = (Vec::new(), 0);
    for page in Page::all() {
        for block in page.blocks().iter().filter(|block| block.has("gpu")) {
            for (command, shown) in block.commands() {
                commands += 1;
                let arguments: Vec<&str> = command.split(' ').collect();
                assert_eq!(arguments[..2], ["lanemark", "bench"], "{}:{}", page.path, block.line);
                let mut bench = Command::new("timeout");
                bench.args(["-k", "1", "90"]).arg(lanemark()).args(&arguments[1..]);
                let output = bench.env("LD_LIBRARY_PATH", folder.path()).output().unwrap();
                let missing = missing(&shown, &said(&output), block.note("varies"));
                if output.status.code() != Some(0) || missing.is_some() {
                    let text = said(&output);
                    wrong.push(format!("{}:{}: $ {command}\nwithout {missing:?}\n{text}", page.path, block.line));
                }
            }
        }
    }
    assert!(commands > 0, "no page has a command for a GPU: the pages are not read");
    assert!(wrong.is_empty(), "{} of {commands} commands:\n\n{}", wrong.len(), wrong.join("\n\n"));
}
