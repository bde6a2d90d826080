//! What is done about a runtime that fails, and what one that works is asked for: against a library that stands in for OpenCL.
//!
//! The library is loaded once a process, so every test runs itself again in a process of its own, which finds the library that was
//! compiled for it and what that is to do.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use lanemark_compute::{Csr, Spmv, StreamCopy, Work};
use lanemark_hw::opencl::{FinishedKernels, OpenClError, OpenClMachine};
use lanemark_machine::{
    Allocation, Arguments, Compute, HostWait, Launch, Machine, MachineError, MovedByRuntime, Op, Plan, Samples, Verb,
};
use std::env;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// What tells a test that it is the process that finds the library.
const INSIDE: &str = "LANEMARK_FAKE_OPENCL";
const EVERYTHING: &str = "cl_khr_fp64 cl_intel_unified_shared_memory";

/// How many lines its compiler says: more than 64 KiB.
const LOG_LINES: &str = "5000";

/// Runs `body` where OpenCL is the library, in which calls fail as `fails` says, on a device with these extensions.
fn with_fake<F: FnOnce()>(fails: &str, extensions: &str, body: F) {
    if env::var_os(INSIDE).is_some() {
        return body();
    }
    // The test in which the closure stands: `opencl::a_test::{{closure}}`.
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

fn run(machine: &mut OpenClMachine, op: Op) -> Result<Samples, MachineError> {
    let mut samples = Samples::wanted(5);
    machine.run(&Plan::on_one_core(vec![op], 3), &mut samples)?;
    Ok(samples)
}

fn copy(verb: Verb, allocation: Allocation, told: HostWait, bytes: u64) -> Op {
    Op::MovedByRuntime(MovedByRuntime { verb, bytes, told, allocation })
}

fn launch(count: u32, allocation: Allocation) -> Op {
    Op::Launch(Launch { kernels: 2, told: HostWait::Event, arguments: Arguments { count, allocation } })
}

fn stream_copy() -> Op {
    let copy = StreamCopy { first_port: 0, ports: 1, bytes_per_port: 4096, stride_bytes: 8, vector_words: 4 };
    Op::Compute(Compute { work: Work::StreamCopy(copy), told: HostWait::Event })
}

fn spmv() -> Op {
    let matrix = Csr::new(2, vec![0, 1, 2], vec![0, 1], vec![1.0, 2.0]).unwrap();
    let work = Work::Spmv(Spmv { matrix: Arc::new(matrix), kernels: 2, ports_each: 1 });
    Op::Compute(Compute { work, told: HostWait::Finish })
}

#[test]
fn every_kind_of_memory_is_copied_to_and_from_by_every_wait_and_all_bytes_are_there() {
    with_fake("", EVERYTHING, || {
        let mut machine = opened();
        assert_eq!(machine.facts().runtime.as_ref().unwrap().allocations, Allocation::ALL);
        for allocation in Allocation::ALL {
            for (verb, told) in [(Verb::Store, HostWait::Finish), (Verb::Load, HostWait::Event)] {
                for bytes in [1, 4097, 1 << 20] {
                    let samples = run(&mut machine, copy(verb, allocation, told, bytes)).unwrap();
                    let confirmed = samples.confirmed.unwrap();
                    let counts = (confirmed.claimed_bytes, confirmed.confirmed_bytes);
                    assert_eq!(counts, (bytes, bytes), "{verb:?} {allocation}");
                }
            }
        }
    });
}

#[test]
fn a_device_without_the_extension_has_no_memory_with_addresses_and_says_which_is_missing() {
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
fn results_that_no_kernel_computed_are_not_confirmed() {
    with_fake("", EVERYTHING, || {
        let mut machine = opened();
        let confirmed = run(&mut machine, spmv()).unwrap().confirmed.unwrap();
        assert_eq!((confirmed.claimed_bytes, confirmed.confirmed_bytes), (16, 0));
        let confirmed = run(&mut machine, stream_copy()).unwrap().confirmed.unwrap();
        // By chance one byte of 256 is what it was to become.
        assert!(confirmed.claimed_bytes == 4096 && confirmed.confirmed_bytes < 64, "{confirmed:?}");
    });
}

#[test]
fn a_kernel_that_does_not_build_shows_how_the_words_of_the_compiler_end() {
    with_fake("clBuildProgram 1 -11", "", || {
        let error = OpenClMachine::open(0, Arc::default()).unwrap_err();
        assert!(matches!(error, OpenClError::NotBuilt { .. }));
        let said = error.to_string();
        assert!(
            said.contains("opencl:0: fake") && said.contains("CL_BUILD_PROGRAM_FAILURE (-11)\n(the first "),
            "{said}"
        );
        assert!(said.contains(" B are left out)\nline 4961: ") && said.ends_with("\nline 5000: nor this"), "{said}");
    });
}

#[test]
fn a_kernel_that_does_not_build_later_ends_its_own_plan_and_no_other() {
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
fn memory_that_turns_out_short_when_it_is_used_ends_its_plan_and_is_no_lost_device() {
    with_fake("clEnqueueMapBuffer 1 -6", EVERYTHING, || {
        let mut machine = opened();
        let refused = run(&mut machine, copy(Verb::Store, Allocation::Mapped, HostWait::Event, 64));
        let Err(MachineError::Unsupported(refused)) = refused else { panic!("{refused:?}") };
        let because = refused.because;
        assert!(because.contains("CL_OUT_OF_HOST_MEMORY (-6); ask for less") && !because.contains("gone"), "{because}");
        assert!(run(&mut machine, copy(Verb::Store, Allocation::Buffer, HostWait::Event, 64)).is_ok());
    });
}

#[test]
fn a_device_that_cannot_be_opened_is_named_with_its_runtime() {
    with_fake("clCreateContext 1 -2", "", || {
        let error = OpenClMachine::open(0, Arc::default()).unwrap_err();
        let said = error.to_string();
        for word in
            ["opencl:0: fake (", "Fake Platform", "cannot be opened: making a context", "CL_DEVICE_NOT_AVAILABLE (-2)"]
        {
            assert!(said.contains(word), "{said}");
        }
    });
}

#[test]
fn memory_that_there_is_not_is_named_with_what_there_is_and_less_is_had_afterwards() {
    with_fake("", EVERYTHING, || {
        let mut machine = opened();
        let refused = run(&mut machine, copy(Verb::Store, Allocation::Buffer, HostWait::Event, (1 << 20) + 1));
        let Err(MachineError::Unsupported(refused)) = refused else { panic!("{refused:?}") };
        let wanted = "no memory for 1048577B: CL_INVALID_BUFFER_SIZE (-61); the device says that it has 4MiB, and at most 1MiB in one piece";
        assert!(refused.because.contains(wanted), "{refused}");
        assert!(run(&mut machine, copy(Verb::Store, Allocation::Buffer, HostWait::Event, 1 << 20)).is_ok());
    });
}

#[test]
fn addresses_that_a_runtime_does_not_give_are_short_memory_too() {
    with_fake("clDeviceMemAllocINTEL 2 -4", EVERYTHING, || {
        let mut machine = opened();
        assert!(run(&mut machine, copy(Verb::Store, Allocation::Device, HostWait::Event, 64)).is_ok());
        let refused = run(&mut machine, copy(Verb::Store, Allocation::Device, HostWait::Event, 128));
        let Err(MachineError::Unsupported(refused)) = refused else { panic!("{refused:?}") };
        assert!(refused.because.contains("CL_MEM_OBJECT_ALLOCATION_FAILURE (-4)"), "{refused}");
    });
}

#[test]
fn a_device_that_is_lost_in_the_middle_ends_its_run_with_one_message_and_what_to_try() {
    with_fake("clWaitForEvents 20 -5", EVERYTHING, || {
        let mut machine = opened();
        assert!(run(&mut machine, copy(Verb::Store, Allocation::Buffer, HostWait::Event, 64)).is_ok());
        let lost = run(&mut machine, copy(Verb::Store, Allocation::Buffer, HostWait::Event, 64)).unwrap_err();
        assert!(matches!(lost, MachineError::Device { .. }));
        let said = lost.to_string();
        for word in ["opencl:0: in a sample: copying", "CL_OUT_OF_RESOURCES (-5)", "the device may be gone", "reset"] {
            assert!(said.contains(word), "{said}");
        }
        let said = run(&mut machine, launch(0, Allocation::Buffer)).unwrap_err().to_string();
        assert!(said.contains("launching a kernel, told by event: CL_OUT_OF_RESOURCES (-5)"), "{said}");
    });
}

#[test]
fn a_kernel_that_cannot_be_launched_or_given_its_memory_ends_the_run_with_what_was_said() {
    with_fake("clSetKernelArgMemPointerINTEL 1 -51", EVERYTHING, || {
        let mut machine = opened();
        let said = run(&mut machine, launch(1, Allocation::Device)).unwrap_err().to_string();
        assert!(said.contains("for the first time: status -51") && !said.contains("gone"), "{said}");
        assert!(run(&mut machine, launch(4, Allocation::Buffer)).is_ok());
    });
}

/// Kernels that are built, of a file that is called `board.aocx`.
fn given(names: &str) -> FinishedKernels {
    FinishedKernels { file: "board.aocx".to_owned(), bytes: names.as_bytes().to_vec() }
}

#[test]
fn a_board_that_has_no_compiler_says_what_it_wants_and_launches_kernels_that_are_built() {
    with_fake("", "cl_khr_fp64 fake_no_compiler", || {
        let error = OpenClMachine::open(0, Arc::default()).unwrap_err().to_string();
        assert!(error.contains("CL_COMPILER_NOT_AVAILABLE") && error.contains("'lanemark kernels'"), "{error}");
        let kernels = given("FAKE\nnothing_0\nstream_copy_4\n");
        let mut board = OpenClMachine::open_with(0, Some(kernels), Arc::default()).unwrap();
        run(&mut board, launch(0, Allocation::Buffer)).unwrap();
        run(&mut board, stream_copy()).unwrap();
        // What there is no kernel for is this plan's trouble only.
        for (op, name) in [(launch(3, Allocation::Buffer), "nothing_3"), (spmv(), "spmv")] {
            let MachineError::Unsupported(refused) = run(&mut board, op).unwrap_err() else { panic!("{name}") };
            assert!(refused.because.contains(&format!("board.aocx has no kernel {name}:")), "{}", refused.because);
        }
        run(&mut board, launch(0, Allocation::Buffer)).unwrap();
        // No kernel has to be there that is not asked for.
        let mut board = OpenClMachine::open_with(0, Some(given("FAKE\nspmv\n")), Arc::default()).unwrap();
        run(&mut board, spmv()).unwrap();
        let MachineError::Unsupported(refused) = run(&mut board, launch(0, Allocation::Buffer)).unwrap_err() else {
            panic!()
        };
        assert!(refused.because.contains("board.aocx has no kernel nothing_0:"), "{}", refused.because);
    });
}

#[test]
fn a_board_that_cannot_take_kernels_now_does_not_speak_against_their_file() {
    with_fake("clCreateProgramWithBinary 1 -2", EVERYTHING, || {
        let error = OpenClMachine::open_with(0, Some(given("FAKE\nspmv\n")), Arc::default()).unwrap_err();
        assert!(matches!(error, OpenClError::NotOpened { .. }), "{error:?}");
        let error = error.to_string();
        assert!(error.contains("giving it kernels that are built: CL_DEVICE_NOT_AVAILABLE (-2)"), "{error}");
    });
}

#[test]
fn kernels_that_a_device_does_not_take_are_refused_with_what_it_said_of_them() {
    with_fake("clBuildProgram 1 -11", EVERYTHING, || {
        let error = OpenClMachine::open_with(0, Some(given("FAKE\nspmv\n")), Arc::default()).unwrap_err();
        let (is_it, error) = (matches!(error, OpenClError::NotTaken { .. }), error.to_string());
        assert!(is_it && error.contains("CL_BUILD_PROGRAM_FAILURE (-11)"), "{error}");
        assert!(error.ends_with("\nline 5000: nor this"), "{error}");
    });
}

#[test]
fn what_is_no_kernel_of_this_device_is_refused_with_the_file() {
    with_fake("", EVERYTHING, || {
        for bytes in ["", "FAKE", "MZ\nnothing_0\n"] {
            let error = OpenClMachine::open_with(0, Some(given(bytes)), Arc::default()).unwrap_err();
            assert!(matches!(error, OpenClError::NotTaken { .. }), "{error:?}");
            let error = error.to_string();
            assert!(error.contains("the kernels of board.aocx: CL_INVALID_BINARY (-42)"), "{error}");
        }
    });
}
