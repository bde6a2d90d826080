//! OpenCL backend against a fake OpenCL library: failing calls, and the requests that reach a working runtime.
//!
//! A process loads the library only once. Every test therefore runs itself again in a child process that finds the fake
//! library, with the failures selected by environment variables.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use lanemark_compute::{Csr, Spmv, StreamCopy, Workload};
use lanemark_hw::opencl::{FinishedKernels, OpenClError, OpenClMachine};
use lanemark_machine::{
    Allocation, Arguments, Compute, HostWait, Launch, LaunchBy, Machine, MachineError, Plan, QueueRequest, RuntimeCopy,
    Samples, Verb,
};
use std::env;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// Environment variable that marks the child process of a test.
const INSIDE: &str = "LANEMARK_FAKE_OPENCL";
const EVERYTHING: &str = "cl_khr_fp64 cl_intel_unified_shared_memory";

/// Number of lines in the log of the fake compiler: more than 64 KiB.
const LOG_LINES: &str = "5000";

/// Runs `body` with the fake library, in which calls fail as `fails` says, on a device with these extensions.
fn with_fake<F: FnOnce()>(fails: &str, extensions: &str, body: F) {
    if env::var_os(INSIDE).is_some() {
        return body();
    }
    // The name of the test that contains the closure: `opencl::a_test::{{closure}}`.
    let test = std::any::type_name::<F>().split("::").nth(1).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_opencl/opencl.c");
    let library = folder.path().join("libOpenCL.so.1");
    let flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o"];
    let compiled = Command::new("cc").args(flags).arg(&library).arg(&source).output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let mut again = Command::new(env::current_exe().unwrap());
    again.args([test, "--exact"]).env(INSIDE, "1").env("LD_LIBRARY_PATH", folder.path());
    let again = again.env("FAKE_FAILS", fails).env("FAKE_EXTENSIONS", extensions).env("FAKE_LOG", LOG_LINES).output();
    let again = again.unwrap();
    let said = String::from_utf8_lossy(&again.stdout).into_owned() + &String::from_utf8_lossy(&again.stderr);
    assert!(again.status.success() && said.contains("1 passed"), "{said}");
}

fn opened() -> OpenClMachine {
    OpenClMachine::open(0, Arc::default()).unwrap()
}

fn run(machine: &mut OpenClMachine, request: QueueRequest) -> Result<Samples, MachineError> {
    let mut samples = Samples::wanted(5);
    machine.run(&Plan::new(request, 3), &mut samples)?;
    Ok(samples)
}

fn copy(verb: Verb, allocation: Allocation, wait: HostWait, bytes: u64) -> QueueRequest {
    QueueRequest::Copy(RuntimeCopy { verb, bytes, wait, allocation })
}

fn launch(count: u32, allocation: Allocation) -> QueueRequest {
    QueueRequest::Launch(Launch {
        kernels: 2,
        by: LaunchBy::Calls,
        wait: HostWait::Event,
        arguments: Arguments { count, allocation },
    })
}

fn stream_copy() -> QueueRequest {
    let copy = StreamCopy { first_port: 0, ports: 1, bytes_per_port: 4096, stride_bytes: 8, vector_words: 4 };
    QueueRequest::Compute(Compute { work: Workload::StreamCopy(copy), wait: HostWait::Event })
}

fn spmv() -> QueueRequest {
    let matrix = Csr::new(2, vec![0, 1, 2], vec![0, 1], vec![1.0, 2.0]).unwrap();
    let work = Workload::Spmv(Spmv { matrix: Arc::new(matrix), kernels: 2, ports_each: 1 });
    QueueRequest::Compute(Compute { work, wait: HostWait::Finish })
}

#[test]
fn all_bytes_arrive_for_every_allocation_direction_and_wait() {
    with_fake("", EVERYTHING, || {
        let mut machine = opened();
        let all = [Allocation::Buffer, Allocation::Device, Allocation::Host, Allocation::Mapped];
        assert_eq!(machine.facts().runtime.as_ref().unwrap().allocations, all);
        for allocation in all {
            for (verb, wait) in [(Verb::Store, HostWait::Finish), (Verb::Load, HostWait::Event)] {
                for bytes in [1, 4097, 1 << 20] {
                    let samples = run(&mut machine, copy(verb, allocation, wait, bytes)).unwrap();
                    let confirmed = samples.confirmed.unwrap();
                    let counts = (confirmed.claimed_bytes, confirmed.confirmed_bytes);
                    assert_eq!(counts, (bytes, bytes), "{verb:?} {allocation}");
                }
            }
        }
    });
}

#[test]
fn a_device_without_an_extension_rejects_its_plans_and_names_the_extension() {
    with_fake("", "cl_intel_unified_shared_memory_of_another_kind", || {
        let mut machine = opened();
        let runtime = machine.facts().runtime.clone().unwrap();
        assert_eq!(runtime.allocations, [Allocation::Buffer, Allocation::Mapped]);
        assert_eq!(runtime.memory_ports, 1);
        for op in [copy(Verb::Store, Allocation::Host, HostWait::Event, 64), launch(1, Allocation::Device)] {
            let said = run(&mut machine, op).unwrap_err().to_string();
            assert!(said.contains("cl_intel_unified_shared_memory"), "{said}");
        }
        let said = run(&mut machine, spmv()).unwrap_err().to_string();
        assert!(said.contains("cl_khr_fp64"), "{said}");
        assert!(run(&mut machine, launch(16, Allocation::Buffer)).is_ok());
    });
}

#[test]
fn wrong_results_are_not_confirmed() {
    with_fake("", EVERYTHING, || {
        let mut machine = opened();
        let confirmed = run(&mut machine, spmv()).unwrap().confirmed.unwrap();
        assert_eq!((confirmed.claimed_bytes, confirmed.confirmed_bytes), (16, 0));
        let confirmed = run(&mut machine, stream_copy()).unwrap().confirmed.unwrap();
        // One byte of 256 is right by chance.
        assert!(confirmed.claimed_bytes == 4096 && confirmed.confirmed_bytes < 64, "{confirmed:?}");
    });
}

#[test]
fn a_kernel_that_does_not_compile_shows_the_end_of_the_log() {
    with_fake("clBuildProgram 1 -11", "", || {
        let error = OpenClMachine::open(0, Arc::default()).unwrap_err();
        assert!(matches!(error, OpenClError::NotBuilt { .. }));
        let said = error.to_string();
        assert!(said.contains("opencl:0: fake") && said.contains("CL_BUILD_PROGRAM_FAILURE (-11)\n(first "), "{said}");
        assert!(said.contains(" B omitted)\nline 4961: ") && said.ends_with("\nline 5000: nor this"), "{said}");
    });
}

#[test]
fn a_kernel_that_does_not_compile_affects_its_own_plan_only() {
    with_fake("clBuildProgram 2 -11", EVERYTHING, || {
        let mut machine = opened();
        for op in [launch(1, Allocation::Buffer), stream_copy()] {
            let refused = run(&mut machine, op);
            let Err(MachineError::Unsupported(refused)) = refused else { panic!("{refused:?}") };
            assert!(refused.because.ends_with("\nline 5000: nor this"), "{refused}");
        }
        assert!(run(&mut machine, copy(Verb::Store, Allocation::Buffer, HostWait::Event, 64)).is_ok());
        assert!(run(&mut machine, launch(0, Allocation::Buffer)).is_ok());
    });
}

#[test]
fn memory_that_runs_short_at_first_use_ends_its_plan_without_reporting_a_lost_device() {
    with_fake("clEnqueueMapBuffer 1 -6", EVERYTHING, || {
        let mut machine = opened();
        let refused = run(&mut machine, copy(Verb::Store, Allocation::Mapped, HostWait::Event, 64));
        let Err(MachineError::Unsupported(refused)) = refused else { panic!("{refused:?}") };
        let because = refused.because;
        assert!(
            because.contains("CL_OUT_OF_HOST_MEMORY (-6); use a smaller size") && !because.contains("lost"),
            "{because}"
        );
        assert!(run(&mut machine, copy(Verb::Store, Allocation::Buffer, HostWait::Event, 64)).is_ok());
    });
}

#[test]
fn a_device_that_cannot_be_opened_is_named_with_its_runtime() {
    with_fake("clCreateContext 1 -2", "", || {
        let error = OpenClMachine::open(0, Arc::default()).unwrap_err();
        let said = error.to_string();
        for word in
            ["cannot open opencl:0: fake (", "Fake Platform", "creating a context", "CL_DEVICE_NOT_AVAILABLE (-2)"]
        {
            assert!(said.contains(word), "{said}");
        }
    });
}

#[test]
fn an_allocation_that_is_too_large_reports_the_limits_and_a_smaller_one_succeeds() {
    with_fake("", EVERYTHING, || {
        let mut machine = opened();
        let refused = run(&mut machine, copy(Verb::Store, Allocation::Buffer, HostWait::Event, (1 << 20) + 1));
        let Err(MachineError::Unsupported(refused)) = refused else { panic!("{refused:?}") };
        let wanted = "cannot allocate 1048577B on the device: CL_INVALID_BUFFER_SIZE (-61); it has 4MiB in total and allows at most 1MiB per allocation";
        assert!(refused.because.contains(wanted), "{refused}");
        assert!(run(&mut machine, copy(Verb::Store, Allocation::Buffer, HostWait::Event, 1 << 20)).is_ok());
    });
}

#[test]
fn a_failed_usm_allocation_is_a_lack_of_memory() {
    with_fake("clDeviceMemAllocINTEL 2 -4", EVERYTHING, || {
        let mut machine = opened();
        assert!(run(&mut machine, copy(Verb::Store, Allocation::Device, HostWait::Event, 64)).is_ok());
        let refused = run(&mut machine, copy(Verb::Store, Allocation::Device, HostWait::Event, 128));
        let Err(MachineError::Unsupported(refused)) = refused else { panic!("{refused:?}") };
        assert!(refused.because.contains("CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)"), "{refused}");
    });
}

#[test]
fn a_device_lost_during_a_run_is_one_message_with_a_remedy() {
    with_fake("clWaitForEvents 20 -5", EVERYTHING, || {
        let mut machine = opened();
        assert!(run(&mut machine, copy(Verb::Store, Allocation::Buffer, HostWait::Event, 64)).is_ok());
        let lost = run(&mut machine, copy(Verb::Store, Allocation::Buffer, HostWait::Event, 64)).unwrap_err();
        assert!(matches!(lost, MachineError::Device { .. }));
        let said = lost.to_string();
        for word in [
            "opencl:0: a copy of 64 B as buffer: copying",
            "CL_OUT_OF_RESOURCES (-5)",
            "the device may be lost",
            "reset",
        ] {
            assert!(said.contains(word), "{said}");
        }
        let said = run(&mut machine, launch(0, Allocation::Buffer)).unwrap_err().to_string();
        assert!(said.contains("launching a kernel and waiting for its event: CL_OUT_OF_RESOURCES (-5)"), "{said}");
    });
}

#[test]
fn a_kernel_whose_arguments_cannot_be_set_fails_with_the_status() {
    with_fake("clSetKernelArgMemPointerINTEL 1 -51", EVERYTHING, || {
        let mut machine = opened();
        let said = run(&mut machine, launch(1, Allocation::Device)).unwrap_err().to_string();
        assert!(said.contains("for the first time: status -51") && !said.contains("lost"), "{said}");
        assert!(run(&mut machine, launch(4, Allocation::Buffer)).is_ok());
    });
}

/// Prebuilt kernels in a file named `board.aocx`.
fn given(names: &str) -> FinishedKernels {
    FinishedKernels { file: "board.aocx".to_owned(), bytes: names.as_bytes().to_vec() }
}

#[test]
fn a_board_without_a_compiler_needs_prebuilt_kernels_and_launches_them() {
    with_fake("", "cl_khr_fp64 fake_no_compiler", || {
        let error = OpenClMachine::open(0, Arc::default()).unwrap_err().to_string();
        assert!(error.contains("CL_COMPILER_NOT_AVAILABLE") && error.contains("'lanemark kernels'"), "{error}");
        let kernels = given("FAKE\nnothing_0\nstream_copy_4\n");
        let mut board = OpenClMachine::open_with(0, Some(kernels), Arc::default()).unwrap();
        run(&mut board, launch(0, Allocation::Buffer)).unwrap();
        run(&mut board, stream_copy()).unwrap();
        // A missing kernel affects its own plan only.
        for (op, name) in [(launch(3, Allocation::Buffer), "nothing_3"), (spmv(), "spmv")] {
            let MachineError::Unsupported(refused) = run(&mut board, op).unwrap_err() else { panic!("{name}") };
            assert!(refused.because.contains(&format!("board.aocx has no kernel {name}:")), "{}", refused.because);
        }
        run(&mut board, launch(0, Allocation::Buffer)).unwrap();
        // Kernels that no plan uses may be missing.
        let mut board = OpenClMachine::open_with(0, Some(given("FAKE\nspmv\n")), Arc::default()).unwrap();
        run(&mut board, spmv()).unwrap();
        let MachineError::Unsupported(refused) = run(&mut board, launch(0, Allocation::Buffer)).unwrap_err() else {
            panic!()
        };
        assert!(refused.because.contains("board.aocx has no kernel nothing_0:"), "{}", refused.because);
    });
}

#[test]
fn a_board_that_is_unavailable_does_not_mean_that_the_file_is_wrong() {
    with_fake("clCreateProgramWithBinary 1 -2", EVERYTHING, || {
        let error = OpenClMachine::open_with(0, Some(given("FAKE\nspmv\n")), Arc::default()).unwrap_err();
        assert!(matches!(error, OpenClError::NotOpened { .. }), "{error:?}");
        let error = error.to_string();
        assert!(error.contains("loading prebuilt kernels: CL_DEVICE_NOT_AVAILABLE (-2)"), "{error}");
    });
}

#[test]
fn prebuilt_kernels_that_a_device_rejects_are_reported_with_its_log() {
    with_fake("clBuildProgram 1 -11", EVERYTHING, || {
        let error = OpenClMachine::open_with(0, Some(given("FAKE\nspmv\n")), Arc::default()).unwrap_err();
        let (is_it, error) = (matches!(error, OpenClError::NotTaken { .. }), error.to_string());
        assert!(is_it && error.contains("CL_BUILD_PROGRAM_FAILURE (-11)"), "{error}");
        assert!(error.ends_with("\nline 5000: nor this"), "{error}");
    });
}

#[test]
fn a_file_that_is_not_for_this_device_is_rejected_by_name() {
    with_fake("", EVERYTHING, || {
        for bytes in ["", "FAKE", "MZ\nnothing_0\n"] {
            let error = OpenClMachine::open_with(0, Some(given(bytes)), Arc::default()).unwrap_err();
            assert!(matches!(error, OpenClError::NotTaken { .. }), "{error:?}");
            let error = error.to_string();
            assert!(error.contains("the kernels in board.aocx: CL_INVALID_BINARY (-42)"), "{error}");
        }
    });
}
