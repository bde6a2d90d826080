//! The CUDA backend on a fake driver (`checks/fake_cuda`), and its kernels through the assembler of the vendor.
//!
//! The fake driver moves data for real and fails as environment variables say. A process loads a driver once, so every
//! test runs the program. `make ptxas` fetches the assembler; without it, two tests are ignored.

use lanemark_checks::page::Page;
use lanemark_checks::shown::missing;
use lanemark_checks::trials::{Available, Trial, run};
use lanemark_checks::{lanemark, root, trials};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::sync::OnceLock;
use tempfile::TempDir;

fn main() -> ExitCode {
    let is_measured = cfg!(all(target_arch = "x86_64", target_os = "linux"));
    let here = Available::optional(if is_measured { Ok(()) } else { Err("an x86-64 Linux machine".to_owned()) });
    let found = ptxas().map(|_| ()).ok_or_else(|| "make ptxas to be run first".to_owned());
    let assembler = Available::new(found, "LANEMARK_REQUIRE_PTXAS");
    let beside = disassembler().map(|_| ()).ok_or_else(|| "nvdisasm beside ptxas".to_owned());
    let disassembler = assembler.and(&Available::new(beside, "LANEMARK_REQUIRE_PTXAS"));
    let mut tests: Vec<Trial> = trials!(
        here;
        every_question_is_answered_and_all_bytes_are_confirmed,
        transfers_of_every_unit_order_and_depth_move_every_byte,
        answers_of_a_fake_driver_are_marked_as_emulated_and_have_no_ceiling,
        the_table_of_failing_calls_has_every_function_of_the_backend,
        every_failing_call_ends_with_its_operation_and_the_name_of_the_error,
        every_function_may_fail_at_any_call_without_a_panic_or_a_hang,
        a_kernel_that_does_not_compile_is_shown_with_the_log_of_the_compiler,
        no_driver_no_device_and_a_missing_function_are_three_messages,
        devices_are_numbered_and_an_absent_number_is_refused_with_the_list,
        a_kernel_that_hangs_ends_the_run_in_time_and_is_named,
        a_lost_device_keeps_earlier_answers_and_is_reported_once,
        wrong_bytes_are_counted_and_the_figure_is_refused,
        a_clock_at_another_rate_or_standing_still_is_refused,
        pieces_of_any_length_are_copied_by_every_method_in_both_directions,
        a_driver_without_a_batch_leaves_the_other_methods_and_says_so,
        a_tuned_table_says_that_it_is_emulated_and_gives_choices,
        memory_that_cannot_be_registered_leaves_the_other_kinds,
        the_commands_of_the_guide_print_the_shown_output,
    )
    .into();
    tests.extend(trials!(assembler; every_kernel_assembles_for_three_generations));
    tests.extend(trials!(disassembler; a_thread_has_eight_loads_and_stores_in_flight_and_none_are_merged));
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
/// Four questions that call every function of the backend.
const ALL_CALLS: [&str; 4] =
    ["--question", "dma_read_latency,runtime_copy,launch_latency,small_copies", "--sizes", "64"];

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
    for (question, least) in [("launch_latency", 6), ("accessor_overhead", 7)] {
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

/// What a run shows in which the calls of one function failed: before the device is open (the first three), later, or
/// not at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// The driver is not used further.
    NotListed(&'static str),
    /// The device is named beside this operation.
    NotOpened(&'static str),
    /// These words, in a message of its own.
    Refused(&'static str),
    /// The target is skipped, with this operation.
    Skipped(&'static str),
    /// Some cases are skipped, with this operation, and the others answered.
    Partly(&'static str),
    /// The result is correct: the call came after it.
    Answered,
}
use End::{Answered, NotListed, NotOpened, Partly, Refused, Skipped};

const READ: &str = "dma_read_latency";
const COPY: &str = "runtime_copy";
const LAUNCH: &str = "launch_latency";
const PIECES: &str = "small_copies";
const COPYING: &str = "copying between host and device";

/// A function, the error that it returns, the question asked, and the end of the run.
#[rustfmt::skip]
const FAILING: &[(&str, (i32, &str), &str, End)] = &[
    ("cuInit", (100, "CUDA_ERROR_NO_DEVICE"), READ, Refused("the CUDA driver has no device (")),
    ("cuInit", (999, "CUDA_ERROR_UNKNOWN"), READ, NotListed("initialising the driver")),
    ("cuDriverGetVersion", (3, "CUDA_ERROR_NOT_INITIALIZED"), READ, NotListed("asking for the version of the driver")),
    ("cuDeviceGetCount", (3, "CUDA_ERROR_NOT_INITIALIZED"), READ, NotListed("counting the devices")),
    ("cuDeviceGet", (101, "CUDA_ERROR_INVALID_DEVICE"), READ, NotListed("opening a device")),
    ("cuDeviceGetName", (101, "CUDA_ERROR_INVALID_DEVICE"), READ, NotListed("asking for the name of a device")),
    ("cuDeviceGetPCIBusId", (1, "CUDA_ERROR_INVALID_VALUE"), READ, NotListed("asking for the PCI address of a device")),
    ("cuDeviceGetAttribute", (1, "CUDA_ERROR_INVALID_VALUE"), READ, NotListed("asking for an attribute of a device")),
    ("cuDeviceTotalMem_v2", (4, "CUDA_ERROR_DEINITIALIZED"), READ, NotListed("asking for the memory of a device")),
    ("cuDevicePrimaryCtxRetain", (46, "CUDA_ERROR_DEVICE_UNAVAILABLE"), READ, NotOpened("opening a context")),
    ("cuDevicePrimaryCtxRelease_v2", (201, "CUDA_ERROR_INVALID_CONTEXT"), READ, Answered),
    ("cuCtxSetCurrent", (201, "CUDA_ERROR_INVALID_CONTEXT"), READ, NotOpened("creating a stream")),
    ("cuCtxSetCurrent", (201, "CUDA_ERROR_INVALID_CONTEXT"), READ, Skipped("selecting the context")),
    ("cuStreamCreate", (304, "CUDA_ERROR_OPERATING_SYSTEM"), READ, NotOpened("creating a stream")),
    ("cuStreamDestroy_v2", (400, "CUDA_ERROR_INVALID_HANDLE"), READ, Answered),
    ("cuStreamQuery", (700, "CUDA_ERROR_ILLEGAL_ADDRESS"), READ, NotOpened("running the kernel clock")),
    ("cuStreamQuery", (700, "CUDA_ERROR_ILLEGAL_ADDRESS"), READ, Skipped("running the kernel transfers")),
    ("cuStreamQuery", (702, "CUDA_ERROR_LAUNCH_TIMEOUT"), LAUNCH, Skipped("running the kernel nothing")),
    ("cuStreamSynchronize", (214, "CUDA_ERROR_ECC_UNCORRECTABLE"), COPY, Skipped("writing device memory")),
    ("cuStreamSynchronize", (999, "CUDA_ERROR_UNKNOWN"), LAUNCH, Skipped("launching a kernel and waiting for it")),
    ("cuEventCreate", (400, "CUDA_ERROR_INVALID_HANDLE"), COPY, Skipped("creating an event")),
    ("cuEventDestroy_v2", (400, "CUDA_ERROR_INVALID_HANDLE"), COPY, Answered),
    ("cuEventRecord", (400, "CUDA_ERROR_INVALID_HANDLE"), COPY, Skipped(COPYING)),
    ("cuEventRecord", (400, "CUDA_ERROR_INVALID_HANDLE"), LAUNCH, Skipped("launching a kernel and waiting for it")),
    ("cuEventSynchronize", (719, "CUDA_ERROR_LAUNCH_FAILED"), COPY, Skipped(COPYING)),
    ("cuMemAlloc_v2", (2, "CUDA_ERROR_OUT_OF_MEMORY"), READ, Refused("cannot allocate 128KiB on the device: ")),
    ("cuMemAlloc_v2", (2, "CUDA_ERROR_OUT_OF_MEMORY"), COPY, Skipped("cannot allocate 4KiB on the device: ")),
    ("cuMemFree_v2", (1, "CUDA_ERROR_INVALID_VALUE"), READ, Answered),
    ("cuMemHostAlloc", (2, "CUDA_ERROR_OUT_OF_MEMORY"), READ, Skipped("cannot allocate 4MiB of page-locked host memory: ")),
    ("cuMemHostAlloc", (800, "CUDA_ERROR_NOT_PERMITTED"), READ, Skipped("allocating memory: ")),
    ("cuMemFreeHost", (1, "CUDA_ERROR_INVALID_VALUE"), READ, Answered),
    ("cuMemHostRegister_v2", (712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"), COPY, Partly("registering host memory")),
    ("cuMemHostUnregister", (713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"), READ, Answered),
    ("cuMemHostGetDevicePointer_v2", (1, "CUDA_ERROR_INVALID_VALUE"), READ, Skipped("asking for the address of host memory")),
    ("cuMemcpyHtoD_v2", (1, "CUDA_ERROR_INVALID_VALUE"), COPY, Skipped("writing device memory")),
    ("cuMemcpyDtoH_v2", (700, "CUDA_ERROR_ILLEGAL_ADDRESS"), READ, NotOpened("reading device memory")),
    ("cuMemcpyDtoH_v2", (700, "CUDA_ERROR_ILLEGAL_ADDRESS"), READ, Skipped("reading device memory")),
    ("cuMemcpyHtoDAsync_v2", (700, "CUDA_ERROR_ILLEGAL_ADDRESS"), COPY, Skipped(COPYING)),
    ("cuMemcpyDtoHAsync_v2", (700, "CUDA_ERROR_ILLEGAL_ADDRESS"), COPY, Skipped(COPYING)),
    ("cuMemsetD8Async", (719, "CUDA_ERROR_LAUNCH_FAILED"), READ, Skipped("clearing the times")),
    ("cuMemcpyHtoDAsync_v2", (719, "CUDA_ERROR_LAUNCH_FAILED"), PIECES, Skipped("copying pieces between host and device")),
    ("cuMemcpyDtoHAsync_v2", (1, "CUDA_ERROR_INVALID_VALUE"), PIECES, Skipped("copying pieces between host and device")),
    ("cuGetProcAddress_v2", (3, "CUDA_ERROR_NOT_INITIALIZED"), PIECES, Answered),
    ("cuMemcpyBatchAsync", (719, "CUDA_ERROR_LAUNCH_FAILED"), PIECES, Skipped("copying pieces by one batch call")),
    ("cuStreamSynchronize", (719, "CUDA_ERROR_LAUNCH_FAILED"), PIECES, Skipped("writing device memory")),
    ("cuModuleLoadDataEx", (218, "CUDA_ERROR_INVALID_PTX"), READ, Refused("the kernel clock does not compile")),
    ("cuModuleLoadDataEx", (221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND"), READ, Skipped("the kernel transfers does not compile")),
    ("cuModuleUnload", (400, "CUDA_ERROR_INVALID_HANDLE"), READ, Answered),
    ("cuModuleGetFunction", (500, "CUDA_ERROR_NOT_FOUND"), LAUNCH, Skipped("the kernel nothing does not compile")),
    ("cuLaunchKernel", (701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"), READ, NotOpened("launching the kernel clock")),
    ("cuLaunchKernel", (719, "CUDA_ERROR_LAUNCH_FAILED"), READ, Skipped("launching the kernel transfers")),
    ("cuLaunchKernel", (719, "CUDA_ERROR_LAUNCH_FAILED"), LAUNCH, Skipped("launching the kernel for the first time")),
];

/// Names of the functions that the backend loads, from its source.
fn functions() -> Vec<String> {
    let source = fs::read_to_string(root().join("crates/hw/src/cuda/api.rs")).unwrap();
    let tables = source.split("\nfunctions! {").skip(1).map(|rest| rest.split_once("\n}").unwrap().0);
    let rows = tables.flat_map(str::lines).filter_map(|line| line.trim().split_once(": cu"));
    let mut functions: Vec<String> = rows.map(|(_, rest)| format!("cu{}", rest.split('(').next().unwrap())).collect();
    // Those that are looked up by their version.
    functions.extend(source.split("c\"cu").skip(1).map(|rest| format!("cu{}", rest.split('"').next().unwrap())));
    assert!(functions.len() > 30, "{functions:?}");
    functions
}

fn the_table_of_failing_calls_has_every_function_of_the_backend() {
    let functions = functions();
    for function in &functions {
        assert!(FAILING.iter().any(|(row, ..)| row == function), "no row of FAILING has {function}");
    }
    for (row, ..) in FAILING {
        assert!(functions.iter().any(|function| function == row), "the backend does not load {row}");
    }
}

/// Whether the device was opened: the table of answers names it.
fn is_open(output: &Output) -> bool {
    String::from_utf8_lossy(&output.stdout).contains("cuda:0 (emulated")
}

/// Runs `question` in which every call of `function` fails, or if `is_opened` all but the first ones, without which the
/// device cannot be opened.
fn failing(function: &str, code: i32, question: &str, is_opened: bool) -> Output {
    // Launches have no size.
    let sizes: &[&str] = if question == LAUNCH { &[] } else { &["--sizes", "4096"] };
    for from in (1..16).chain([32, 64, 128, 256]) {
        let fail = format!("{function}:{code}:{from}");
        let output = bench(&[("FAKE_CUDA_FAIL", &fail)], &[&["--question", question], sizes].concat());
        if !is_opened || is_open(&output) {
            return output;
        }
    }
    panic!("a device is never opened if {function} fails")
}

fn every_failing_call_ends_with_its_operation_and_the_name_of_the_error() {
    for (function, (code, name), question, end) in FAILING {
        let is_opened = matches!(end, Skipped(_) | Partly(_) | Answered);
        let output = failing(function, *code, question, is_opened);
        let (text, row) = (said(&output), format!("{function} at {question}"));
        let parts: Vec<&str> = match end {
            NotListed(doing) => vec!["the CUDA driver cannot list its devices: ", doing, "check nvidia-smi"],
            NotOpened(doing) => {
                vec!["cannot open cuda:0: Fake GPU (test driver) at ", doing, "check whether another program"]
            }
            Refused(words) | Skipped(words) | Partly(words) => vec![words],
            Answered => vec![],
        };
        assert_eq!(is_open(&output), is_opened, "{row}: {text}");
        assert_eq!(
            output.status.code(),
            Some(if matches!(end, Partly(_) | Answered) { 0 } else { 77 }),
            "{row}: {text}"
        );
        assert!(parts.iter().all(|part| text.contains(part)), "{row}: {parts:?}: {text}");
        assert_eq!(text.contains(&format!("{name} ({code})")), *end != Answered, "{row}: {text}");
        assert!(!text.contains("panicked"), "{row}: {text}");
    }
}

fn every_function_may_fail_at_any_call_without_a_panic_or_a_hang() {
    for function in functions() {
        for from in [1, 2, 9] {
            let row = format!("{function}:999:{from}");
            let output = bench(&[("FAKE_CUDA_FAIL", &row)], &ALL_CALLS);
            let text = said(&output);
            assert!(matches!(output.status.code(), Some(0 | 77)), "{row}: {:?} {text}", output.status);
            assert!(!text.contains("panicked"), "{row}: {text}");
            assert!(output.status.success() || text.contains("CUDA_ERROR_"), "{row}: {text}");
        }
    }
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
        &["no CUDA driver on this machine: ", "libcuda.so.1 belongs to the driver of NVIDIA GPUs"],
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
    let output = (3..20).map(lost_after).find(is_open).unwrap();
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
        ("small_copies", (64, 63)),
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
            let method = &answer["method"];
            // Copies from the device are left as they are, those of a kernel are not.
            if method["kind"] == "small_copies" && method["direction"] == "from_device" && is_copied_by_the_driver(method) {
                assert_eq!(claimed, confirmed, "{answer}");
                continue;
            }
            if method["by"] == "packed" && method["direction"] == "to_device" {
                // A byte of the packed buffer, and one of every piece.
                assert!(confirmed < claimed, "{answer}");
                continue;
            }
            assert_eq!(claimed * confirmed_parts, confirmed * claimed_parts, "{answer}");
        }
    }
}

fn is_copied_by_the_driver(method: &Value) -> bool {
    ["loop", "batch"].contains(&method["by"].as_str().unwrap())
}

fn pieces_of_any_length_are_copied_by_every_method_in_both_directions() {
    // Units of 16, 8, 4 and 1 B; less than a slice, a slice, and several with a rest.
    let sizes = ["--sizes", "1,7,64,100,1000,4096,4104,9001"];
    let record = record(&bench(&[], &[&["--question", PIECES, "--json"], &sizes[..]].concat()));
    // Two directions, four counts, four methods.
    assert_eq!(answers(&record).len(), 8 * 2 * 4 * 4, "{}", record["skipped"]);
    for answer in answers(&record) {
        let pieces = answer["method"]["copies"].as_u64().unwrap() * answer["size_bytes"].as_u64().unwrap();
        assert_eq!(bytes(answer), (pieces, pieces), "{answer}");
    }
    let skipped = record["skipped"].as_array().unwrap();
    assert!(skipped.iter().any(|one| one["what"].as_str().unwrap().ends_with("accesses of a core through a BAR")));
}

fn a_driver_without_a_batch_leaves_the_other_methods_and_says_so() {
    let without = |output: Output| {
        let record = record(&output);
        let mut methods: Vec<&str> =
            answers(&record).iter().map(|answer| answer["method"]["by"].as_str().unwrap()).collect();
        methods.sort_unstable();
        methods.dedup();
        assert_eq!(methods, ["in_place", "loop", "packed"]);
        let skipped = record["skipped"].to_string();
        assert!(skipped.contains("one batch call") && skipped.contains("a batch needs CUDA 12.8 or later"), "{skipped}");
    };
    let question = ["--question", PIECES, "--sizes", "64", "--json"];
    without(bench(&[("FAKE_CUDA_VERSION", "12040")], &question));
    without(bench_in(compiled(Some("cuGetProcAddress_v2")).path(), &[], &question));
}

fn a_tuned_table_says_that_it_is_emulated_and_gives_choices() {
    let folder = compiled(None);
    let run = |arguments: &[&str]| {
        let mut command = Command::new("timeout");
        command.args(["-k", "1", "90"]).arg(lanemark()).args(arguments).current_dir(folder.path());
        let output = command.env("LD_LIBRARY_PATH", folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        said(&output)
    };
    let text = run(&["tune", "--on", "cuda:0", "--budget", "0.05", "-o", "table.json"]);
    let left = ["accesses of a core through a BAR: no backend maps", "the time budget of 0.05 s does not suffice"];
    assert!(left.iter().all(|left| text.contains(left)) && text.contains("not in the table: "), "{text}");
    let table: Value = serde_json::from_slice(&fs::read(folder.path().join("table.json")).unwrap()).unwrap();
    // Two directions, four methods, four counts, and at least the ends of the sizes.
    assert!(table["points"].as_array().unwrap().len() >= 2 * 4 * 4 * 2, "{table}");
    let advice = run(&["advise", "copy", "--table", "table.json", "--sizes", "64", "--count", "8"]);
    let machine = advice.lines().next().unwrap();
    assert!(machine.starts_with("cuda:0: Fake GPU (test driver) at "), "{machine}");
    assert!(machine.ends_with(" (the device is emulated: timings are not meaningful)"), "{machine}");
    assert!(["to device, 8 of 64B: ", "from device, 8 of 64B: "].iter().all(|row| advice.contains(row)), "{advice}");
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

/// The assembler: `LANEMARK_PTXAS`, or the one that `make ptxas` fetched.
fn ptxas() -> Option<PathBuf> {
    let named = std::env::var_os("LANEMARK_PTXAS").map(PathBuf::from);
    Some(named.unwrap_or_else(|| root().join(".tools/ptxas/ptxas"))).filter(|path| path.exists())
}

fn disassembler() -> Option<PathBuf> {
    Some(ptxas()?.with_file_name("nvdisasm")).filter(|path| path.exists())
}

/// Assembles a kernel for `generation`; the assembler prints nothing.
fn assembled(folder: &Path, name: &str, text: &str, generation: &str) -> PathBuf {
    let (source, binary) = (folder.join(format!("{name}.ptx")), folder.join(format!("{name}.{generation}")));
    fs::write(&source, text).unwrap();
    let mut command = Command::new(ptxas().unwrap());
    let output = command.arg(format!("-arch={generation}")).arg(&source).arg("-o").arg(&binary).output().unwrap();
    assert!(output.status.success() && said(&output).is_empty(), "{name} for {generation}: {}", said(&output));
    binary
}

/// Turing, the oldest that the texts name, Ampere, Hopper.
const GENERATIONS: [&str; 3] = ["sm_75", "sm_80", "sm_90"];

fn every_kernel_assembles_for_three_generations() {
    let (folder, kernels) = (tempfile::tempdir().unwrap(), lanemark_hw::cuda::every_kernel());
    for (name, text) in &kernels {
        for generation in GENERATIONS {
            assembled(folder.path(), name, text, generation);
        }
    }
    // Every text of the backend is among them.
    for file in fs::read_dir(root().join("crates/hw/src/cuda")).unwrap() {
        let file = file.unwrap().path();
        if file.extension().is_some_and(|kind| kind == "ptx") {
            let name = file.file_stem().unwrap().to_str().unwrap();
            assert!(kernels.iter().any(|(kernel, _)| kernel.split('_').next() == Some(name)), "{name}");
        }
    }
}

fn a_thread_has_eight_loads_and_stores_in_flight_and_none_are_merged() {
    let (folder, kernels) = (tempfile::tempdir().unwrap(), lanemark_hw::cuda::every_kernel());
    for (name, width, is_word) in
        [("transfers_16", ".128", false), ("transfers_8", ".64", false), ("transfers_4", "", true)]
    {
        let text = &kernels.iter().find(|(kernel, _)| kernel == name).unwrap().1;
        for generation in GENERATIONS {
            let binary = assembled(folder.path(), name, text, generation);
            let output = Command::new(disassembler().unwrap()).arg("-c").arg(binary).output().unwrap();
            assert!(output.status.success(), "{}", said(&output));
            let code = String::from_utf8(output.stdout).unwrap();
            let lines: Vec<&str> = code.lines().collect();
            let places = |instruction: String| {
                let is_it = |line: &&str| line.contains(&format!(" {instruction} "));
                lines.iter().enumerate().filter(|(_, line)| is_it(line)).map(|(place, _)| place).collect::<Vec<_>>()
            };
            let (loads, stores) =
                (places(format!("LDG.E{width}.STRONG.SYS")), places(format!("STG.E{width}.STRONG.SYS")));
            // The load after the fence is a word.
            let others = usize::from(is_word);
            assert_eq!((loads.len(), stores.len()), (8 + others, 8), "{name} for {generation}: {code}");
            // No branch between the eight loads, so all of them are issued before the thread waits.
            let branches = lines[loads[0]..loads[7]].iter().filter(|line| line.contains(" BRA ")).count();
            assert_eq!(branches, 0, "{name} for {generation}: {code}");
        }
    }
}
