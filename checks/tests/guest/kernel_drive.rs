//! A namespace of an NVMe drive, read through the kernel's driver.

use crate::guest::{Guest, Hardware, KERNEL};
use crate::sharing::{Guests, Lent};
use lanemark_checks::conformance::PROMISES;
use lanemark_checks::{lanemark, root};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Devices of the guest: a drive of 8 MiB in a hot-plug slot, the file `image` on the outside. Its namespace is `ng0n1`.
const DEVICES: &[&str] = &[
    "-device intel-iommu,intremap=on,caching-mode=on",
    "-device pcie-root-port,id=rp1,chassis=1,slot=1,addr=0x2,x-speed=8,x-width=4",
    "-drive if=none,id=image,format=raw,file={folder}/image",
    "-device nvme,id=removable,bus=rp1,serial=first,drive=image",
];

const DRIVE: &str = "nvme:/dev/ng0n1";
const IMAGE: usize = 8 << 20;

/// Bytes of the image: each word of 8 B is different.
fn image() -> Vec<u8> {
    (0..IMAGE as u64 / 8).flat_map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).collect()
}

/// The program that runs another one without `io_uring`.
fn without_io_uring() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("without_io_uring");
        let mut cc = Command::new("cc");
        cc.args(["-std=gnu99", "-Wall", "-Wextra", "-Werror", "-O1"]);
        let done = cc.arg(root().join("checks/guest/without_io_uring.c")).arg("-o").arg(&program).output().expect("cc");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        program
    })
}

fn boot() -> Guest {
    let hardware = Hardware { packages: KERNEL, devices: DEVICES, kernel: "" };
    let programs = [lanemark(), without_io_uring(), Path::new(env!("CARGO_BIN_EXE_promises"))];
    Guest::boot(&hardware, &programs, |folder| fs::write(folder.join("image"), image()).unwrap())
}

/// A guest that these tests share.
fn shared() -> Lent {
    static GUESTS: Guests = Guests::new(boot);
    GUESTS.lend()
}

/// A bench of the drive, which must succeed: its record.
fn record(guest: &mut Guest, before: &str, arguments: &str) -> Value {
    guest.expect(&format!("{before} lanemark bench --on {DRIVE} {arguments} --record kernel.json >/dev/null"));
    serde_json::from_str(&guest.expect("cat kernel.json")).unwrap()
}

/// The answers of a record; every byte that an answer claims must be confirmed.
fn answers(record: &Value) -> &[Value] {
    let answers = record["answers"].as_array().unwrap();
    for answer in answers {
        let (claimed, confirmed) = (&answer["bytes"]["claimed_bytes"], &answer["bytes"]["confirmed_bytes"]);
        assert!(claimed == confirmed && claimed.as_u64() >= answer["size_bytes"].as_u64(), "{answer}");
        // On the only core of the guest, every sample may have a context switch.
        assert!(!answer["raw"].as_array().unwrap().is_empty(), "{answer}");
    }
    answers
}

pub fn a_drive_that_keeps_its_driver_answers_questions_and_its_bytes_are_compared() {
    let mut guest = shared();
    let questions = "dma_write_bandwidth,doorbell_to_completion,dma_read_latency,dma_map_cost,mmio_read_latency";
    let found = record(&mut guest, "", &format!("--question {questions} --sizes 512,4KiB,12KiB,1MiB --budget 0.5"));
    let answers = answers(&found);
    for question in ["dma_write_bandwidth", "doorbell_to_completion"] {
        for size in [512, 4096, 12288] {
            let has = |answer: &&Value| answer["question"] == question && answer["size_bytes"] == size;
            assert!(answers.iter().any(|answer| has(&answer)), "{question} {size}: {}", found["skipped"]);
        }
    }
    assert!(answers.iter().all(|answer| answer["size_bytes"] != 1 << 20), "{answers:?}");
    let skipped = found["skipped"].to_string();
    for words in ["a command of this drive moves at most", "none is ever sent through the kernel's driver"] {
        assert!(skipped.contains(words), "{words}: {skipped}");
    }
    for question in ["dma_read_latency", "dma_map_cost", "mmio_read_latency"] {
        assert!(found.to_string().contains(question), "{question}: {skipped}");
        assert!(answers.iter().all(|answer| answer["question"] != question), "{answers:?}");
    }
    let driver = guest.expect("basename $(readlink /sys/bus/pci/devices/0000:01:00.0/driver)");
    assert_eq!(driver.trim(), "nvme");
    assert!(fs::read(guest.file("image")).unwrap() == image(), "the drive was written to");
}

pub fn a_drive_behind_its_driver_keeps_every_promise() {
    let said = shared().run("promises nvme /dev/ng0n1");
    assert_eq!(said.status, 0, "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.ends_with(&format!("{} passed, 0 failed\n", PROMISES.len())), "{}", said.stdout);
}

pub fn a_record_of_reads_by_the_kernel_names_function_driver_and_way() {
    let mut guest = shared();
    let asked = "--question dma_write_bandwidth --sizes 4KiB --budget 0.2 --outstanding";
    for depth in [1, 8] {
        let found = record(&mut guest, "", &format!("{asked} {depth}"));
        assert_eq!(answers(&found)[0]["method"]["outstanding"], depth, "{found}");
        let target = &found["targets"][0];
        assert_eq!((&target["name"], &target["kind"]), (&json!(DRIVE), &json!("emulated")));
        let card = &target["card"];
        assert_eq!((&card["id"], &card["driver"]), (&json!("1b36:0010"), &json!("nvme")), "{target}");
        assert!(card["links"].as_array().is_some_and(|links| !links.is_empty()), "{target}");
        let summary = target["summary"].to_string();
        for words in ["NVMe drive QEMU NVMe Ctrl", "namespace 1 of 8MiB in logical blocks of 512B", "by io_uring"] {
            assert!(summary.contains(words), "{words}: {summary}");
        }
        assert_eq!(found["answers"][0]["ceiling"]["kind"], "unknown", "an emulator has no ceiling: {found}");
        let warnings = found["warnings"].to_string();
        assert!(warnings.contains("begins with the system call that submits a read"), "{warnings}");
    }
    let said = guest.run(&format!("lanemark bench --on {DRIVE} {asked} 64"));
    assert!(format!("{}{}", said.stdout, said.stderr).contains("the queues hold 63 outstanding commands"), "{said:?}");
}

pub fn where_io_uring_is_not_permitted_commands_go_by_ioctl_one_at_a_time() {
    let mut guest = shared();
    let asked = "--question dma_write_bandwidth,doorbell_to_completion --sizes 512,4KiB --budget 0.5";
    let found = record(&mut guest, "without_io_uring", asked);
    assert_eq!(answers(&found).len(), 4, "{}", found["skipped"]);
    let summary = found["targets"][0]["summary"].to_string();
    let words = "by ioctl, one command at a time, because io_uring is not permitted here";
    assert!(summary.contains(words) && found["warnings"].to_string().contains("by ioctl"), "{summary}");
    let said = guest.run(&format!("without_io_uring lanemark bench --on {DRIVE} {asked} --outstanding 2"));
    let said = format!("{}{}", said.stdout, said.stderr);
    assert!(said.contains("no answers") && said.contains("one at a time"), "{said}");
}

pub fn a_user_without_permission_is_told_what_to_do() {
    let mut guest = shared();
    let asked = format!("bench --on {DRIVE} --question dma_write_bandwidth --sizes 4KiB");
    let said = guest.run_as_somebody("lanemark", &asked);
    let words = "/dev/ng0n1: opening it for reading: permission denied: run as root";
    assert!(said.status == 77 && said.stderr.contains(words), "{said:?}");
    // Before Linux 6.2, commands need more than the permission to read the file.
    guest.expect("chmod a+r /dev/ng0n1");
    let said = guest.run_as_somebody("lanemark", &asked);
    guest.expect("chmod a-r /dev/ng0n1; chmod u+r /dev/ng0n1");
    let words = "/dev/ng0n1: sending the commands Identify and Read: permission denied: run as root";
    assert!(said.status == 77 && said.stderr.contains(words), "{said:?}");
}

pub fn other_paths_are_refused_with_the_path_to_name() {
    let mut guest = shared();
    let mut refused = |path: &str, words: &str| {
        let said = guest.run(&format!("lanemark bench --on nvme:{path} --question dma_write_bandwidth"));
        let hint = "name the character device of a namespace, here nvme:/dev/ng0n1";
        assert!(said.status == 2 && said.stderr.contains(words) && said.stderr.contains(hint), "{path}: {said:?}");
    };
    refused("/dev/nvme0n1", "/dev/nvme0n1 is a block device, which takes no NVMe commands");
    refused("/dev/nvme0", "/dev/nvme0 is a controller, and not one of its namespaces");
    refused("/dev/null", "/dev/null is no device of an NVMe drive");
    refused("/dev/ng7n1", "/dev/ng7n1 does not exist");
    refused("/etc/passwd", "/etc/passwd is no device");
    let said = guest.run(&format!("lanemark bench --on {DRIVE} --bar 0:0..4KiB"));
    assert!(said.status == 2 && said.stderr.contains("applies to cards only"), "{said:?}");
}

pub fn a_dry_run_of_reads_by_the_kernel_lists_the_commands_and_sends_none() {
    let mut guest = shared();
    let asked = "--question dma_write_bandwidth --sizes 4KiB --dry-run";
    // Not even the permission to open the drive is needed.
    let said = guest.run_as_somebody("lanemark", &format!("bench --on {DRIVE} {asked}"));
    assert_eq!(said.status, 0, "{said:?}");
    for words in [
        "0000:01:00.0 (1b36:0010)",
        "opened for reading: /dev/ng0n1, ng0n1 of the controller nvme0 (0000:01:00.0); its driver stays bound",
        "locked for the run, so that a second Lanemark process is refused: /sys/bus/pci/devices/0000:01:00.0/config",
        "commands: Identify and Read of this namespace; no command that writes to the medium or changes a setting",
        "reads of the drive: 256 x 4KiB per iteration, at most 63 outstanding",
        "dry run, nothing was accessed",
    ] {
        assert!(said.stdout.contains(words), "{words}:\n{}", said.stdout);
    }
}

/// Starts a run that takes minutes, and waits until it reads.
fn running(guest: &mut Guest) {
    let asked = "--question dma_write_bandwidth --sizes 4KiB --full --budget 900";
    guest.expect("rm -f status");
    guest.expect(&format!("(lanemark bench --on {DRIVE} {asked} >said 2>&1; echo $? >status) >/dev/null 2>&1 &"));
    // The program opens the drive before it measures.
    let opened = "ls -l /proc/$(pidof lanemark)/fd 2>/dev/null | grep -q ng0n1";
    guest.expect(&format!("for i in $(seq 300); do {opened} && exit 0; sleep 0.1; done; cat said; exit 1"));
    guest.expect("sleep 2; [ ! -s status ] || { cat said; exit 1; }");
}

/// The exit status of that run, and its output; with the state of the process if it has not ended.
fn ended(guest: &mut Guest) -> (String, String) {
    let state = "p=$(pidof lanemark); cat /proc/$p/task/*/stack /proc/$p/status; ps; dmesg | tail -30";
    let waited = format!(
        "for i in $(seq 600); do [ -s status ] && break; sleep 0.1; done; [ -s status ] || {{ {state}; exit 1; }}"
    );
    let waited = guest.run(&waited);
    assert_eq!(waited.status, 0, "the run has not ended: {waited:?}");
    (guest.expect("cat status").trim().to_owned(), guest.expect("cat said"))
}

pub fn a_second_process_is_refused_until_the_first_one_is_killed() {
    let mut guest = shared();
    running(&mut guest);
    let asked = format!("lanemark bench --on {DRIVE} --question dma_write_bandwidth --sizes 4KiB --budget 0.1");
    let said = guest.run(&asked);
    assert!(said.status == 77 && said.stderr.contains("0000:01:00.0 is locked by another process"), "{said:?}");
    guest.expect("kill -9 $(pidof lanemark)");
    assert_eq!(ended(&mut guest).0, "137");
    guest.expect(&asked);
}

pub fn a_signal_ends_the_reads_by_the_kernel() {
    let mut guest = shared();
    running(&mut guest);
    guest.expect("kill -INT $(pidof lanemark)");
    let (status, said) = ended(&mut guest);
    assert_eq!(status, "130", "{said}");
}

pub fn removing_a_drive_ends_its_reads_with_its_name() {
    let mut guest = boot();
    running(&mut guest);
    guest.monitor("device_del removable");
    let (status, said) = ended(&mut guest);
    assert!(status == "1" && said.contains(&format!("{DRIVE}: the kernel has removed the drive")), "{status} {said}");
    let after = guest.run(&format!("lanemark bench --on {DRIVE} --question dma_write_bandwidth"));
    assert!(after.status == 2 && after.stderr.contains("/dev/ng0n1 does not exist"), "{after:?}");
}
