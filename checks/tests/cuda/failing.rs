//! Every function of the driver fails: at which operation the run ends, and what it says.

use crate::{bench, said};
use lanemark_checks::{on_all_cores, root};
use std::fs;
use std::process::Output;

/// Four questions that call every function of the backend.
const ALL_CALLS: [&str; 4] =
    ["--question", "dma_read_latency,runtime_copy,launch_latency,small_copies", "--sizes", "64"];

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
    ("cuGraphCreate", (801, "CUDA_ERROR_NOT_SUPPORTED"), LAUNCH, Partly("creating a graph")),
    ("cuGraphAddKernelNode_v2", (1, "CUDA_ERROR_INVALID_VALUE"), LAUNCH, Partly("adding a kernel to a graph")),
    ("cuGraphInstantiateWithFlags", (801, "CUDA_ERROR_NOT_SUPPORTED"), LAUNCH, Partly("instantiating a graph")),
    ("cuGraphLaunch", (1, "CUDA_ERROR_INVALID_VALUE"), LAUNCH, Partly("launching the kernel for the first time")),
    ("cuGraphExecDestroy", (400, "CUDA_ERROR_INVALID_HANDLE"), LAUNCH, Answered),
    ("cuGraphDestroy", (400, "CUDA_ERROR_INVALID_HANDLE"), LAUNCH, Answered),
    ("cuStreamWaitValue32_v2", (801, "CUDA_ERROR_NOT_SUPPORTED"), LAUNCH, Partly("launching the kernel for the first time")),
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
    // Functions that the driver gives by name and version.
    functions.extend(source.split("c\"cu").skip(1).map(|rest| format!("cu{}", rest.split('"').next().unwrap())));
    assert!(functions.len() > 30, "{functions:?}");
    functions
}

pub fn the_table_of_failing_calls_has_every_function_of_the_backend() {
    let functions = functions();
    for function in &functions {
        assert!(FAILING.iter().any(|(row, ..)| row == function), "no row of FAILING has {function}");
    }
    for (row, ..) in FAILING {
        assert!(functions.iter().any(|function| function == row), "the backend does not load {row}");
    }
}

/// Whether the device was opened: the table of answers names it.
pub fn is_open(output: &Output) -> bool {
    String::from_utf8_lossy(&output.stdout).contains("cuda:0 (emulated")
}

/// Runs `question` in which every call of `function` fails, or if `is_opened` all but the first ones, without which the
/// device cannot be opened.
///
/// On a busy machine the clock is checked several times before the device is open, and not as often in every run: the same
/// call comes before that in one run, and after the last one in another.
fn failing(function: &str, (code, name): (i32, &str), question: &str, (is_opened, is_said): (bool, bool)) -> Output {
    // Launches have no size.
    let sizes: &[&str] = if question == LAUNCH { &[] } else { &["--sizes", "4096"] };
    for from in (1..=64).chain([128, 256]).cycle().take(3 * 66) {
        let fail = format!("{function}:{code}:{from}");
        let output = bench(&[("FAKE_CUDA_FAIL", &fail)], &[&["--question", question], sizes].concat());
        let is_reached = || !is_said || said(&output).contains(&format!("{name} ({code})"));
        if !is_opened || is_open(&output) && is_reached() {
            return output;
        }
    }
    panic!("no call of {function} fails in a device that was opened, or none is said")
}

pub fn every_failing_call_ends_with_its_operation_and_the_name_of_the_error() {
    on_all_cores(FAILING, |(function, (code, name), question, end)| {
        let is_opened = matches!(end, Skipped(_) | Partly(_) | Answered);
        let output = failing(function, (*code, name), question, (is_opened, *end != Answered));
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
    });
}

pub fn every_function_may_fail_at_any_call_without_a_panic_or_a_hang() {
    let rows = functions().into_iter().flat_map(|function| [1, 2, 9].map(|from| format!("{function}:999:{from}")));
    on_all_cores(rows, |row| {
        let output = bench(&[("FAKE_CUDA_FAIL", &row)], &ALL_CALLS);
        let text = said(&output);
        assert!(matches!(output.status.code(), Some(0 | 77)), "{row}: {:?} {text}", output.status);
        assert!(!text.contains("panicked"), "{row}: {text}");
        assert!(output.status.success() || text.contains("CUDA_ERROR_"), "{row}: {text}");
    });
}
