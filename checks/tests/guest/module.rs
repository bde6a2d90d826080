//! Our kernel module (`kmod/`): memory types, refusals, DMA mappings, and its use by `lanemark bench`.

use crate::guest::{Guest, KERNEL_WITH_CHECKS, tools, usual_kernel};
use crate::storage::{self, CARD, bound_to};
use crate::{BEFORE, shared};
use lanemark_checks::conformance::PROMISES;
use lanemark_checks::root;
use lanemark_checks::trials::Available;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

/// The module, built for the guest's kernel; `None` if its headers could not be fetched.
pub fn built() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    BUILT.get_or_init(|| build(&root().join("kmod"), "lanemark")).as_deref()
}

/// The module `name` of a folder with a `Kbuild`, built for the guest's kernel; `None` if its headers could not be fetched.
pub fn build(sources: &Path, name: &str) -> Option<PathBuf> {
    let headers = headers()?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("kmod-{name}-{}", usual_kernel()));
    fs::create_dir_all(&folder).unwrap();
    let makefile = root().join("kmod/Makefile");
    for file in fs::read_dir(sources).unwrap().map(|entry| entry.unwrap().path()).chain([makefile]) {
        fs::copy(&file, folder.join(file.file_name().unwrap())).unwrap();
    }
    // W=1: warnings that the kernel's own drivers must not have.
    let mut command = Command::new("make");
    command.arg("-C").arg(&folder).arg(format!("KERNEL={}", headers.display())).args(["W=1", "modules"]);
    let made = command.output().expect("make");
    let said = format!("{}{}", String::from_utf8_lossy(&made.stdout), String::from_utf8_lossy(&made.stderr));
    assert!(made.status.success() && !said.contains("warning:"), "{said}");
    Some(folder.join(format!("{name}.ko")))
}

/// The headers of the guest's kernel; `None` if they could not be fetched.
fn headers() -> Option<PathBuf> {
    if usual_kernel() == KERNEL_WITH_CHECKS {
        return Some(tools().join(KERNEL_WITH_CHECKS).join("headers"));
    }
    let mut folders = fs::read_dir(tools().join("guest-headers/root/usr/src")).ok()?.map(|entry| entry.unwrap().path());
    folders.find(|path| path.to_string_lossy().ends_with("-cloud-amd64"))
}

/// DKMS, which builds the module again for each new kernel.
pub fn dkms() -> Available {
    let said = Command::new("dkms").arg("--version").output();
    let found = said.map(drop).map_err(|error| format!("dkms, which cannot be run: {error}"));
    Available::new(found, "LANEMARK_REQUIRE_DKMS")
}

pub fn dkms_builds_the_module_for_another_kernel_than_the_running_one() {
    let headers = headers().expect("headers of the kernel");
    let version = headers.file_name().unwrap().to_str().unwrap().trim_start_matches("linux-headers-");
    let folder = tempfile::tempdir().unwrap();
    let [sources, tree, modules] = ["sources", "tree", "modules"].map(|name| folder.path().join(name));
    // As the guide says it, in other folders than those of the system.
    let copy = sources.join("lanemark-1");
    for folder in [&copy, &tree, &modules] {
        fs::create_dir_all(folder).unwrap();
    }
    for file in fs::read_dir(root().join("kmod")).unwrap().map(|entry| entry.unwrap().path()) {
        fs::copy(&file, copy.join(file.file_name().unwrap())).unwrap();
    }
    let mut dkms = Command::new("dkms");
    dkms.args(["build", "lanemark/1", "-k", version, "-a", "x86_64"]).arg("--kernelsourcedir").arg(&headers);
    for (option, folder) in [("--sourcetree", &sources), ("--dkmstree", &tree), ("--installtree", &modules)] {
        dkms.arg(option).arg(folder);
    }
    // Without a program that signs, it makes no key.
    let said = dkms.env("sign_file", "/nowhere").output().unwrap();
    assert!(said.status.success(), "{said:?}");
    let module = tree.join("lanemark/1").join(version).join("x86_64/module/lanemark.ko");
    let module = fs::read(&module).unwrap_or_else(|error| panic!("{}: {error}: {said:?}", module.display()));
    let is_for = format!("vermagic={version} ");
    assert!(module.windows(is_for.len()).any(|window| window == is_for.as_bytes()), "it is for another kernel");
    assert_eq!(fs::read_dir(modules).unwrap().count(), 0, "nothing is installed");
}

pub fn every_member_of_the_interface_is_described_as_kernel_doc_wants_it() {
    let script = headers().expect("headers of the kernel").join("scripts/kernel-doc");
    let sources =
        ["lanemark_uapi.h", "lanemark.h", "card.c", "dma.c", "page.c"].map(|file| root().join("kmod").join(file));
    let said = Command::new("perl").arg(script).args(["-none", "-Werror"]).args(sources).output().expect("perl");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}

/// The program that calls the module as no other one does; `None` without the module.
pub fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    built()?;
    Some(PROGRAM.get_or_init(|| {
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("module");
        let mut cc = Command::new("cc");
        cc.args(["-std=gnu99", "-pthread", "-Wall", "-Wextra", "-Werror", "-O1", "-I"]).arg(root().join("kmod"));
        let done = cc.arg(root().join("checks/guest/module.c")).arg("-o").arg(&program).output().expect("cc");
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        program
    }))
}

const DEVICE: &str = "/dev/lanemark/0000:01:00.0";

/// Runs `then` with the storage card bound to the module; the kernel must report no problem meanwhile.
fn behind_module<T>(then: impl FnOnce(&mut Guest) -> T) -> T {
    behind_module_of(&mut shared(), then)
}

/// The same in this guest.
fn behind_module_of<T>(guest: &mut Guest, then: impl FnOnce(&mut Guest) -> T) -> T {
    guest.expect("dmesg -c >/dev/null");
    let done = bound_to(guest, "lanemark", then);
    let log = guest.expect("dmesg");
    let is_problem = |line: &&str| {
        ["WARNING", "BUG", "Oops", "Call Trace", "DMAR:", "DMA-API:", "lanemark"].iter().any(|word| line.contains(word))
    };
    let problems: Vec<&str> = log.lines().filter(is_problem).collect();
    assert!(problems.is_empty(), "{problems:#?}");
    done
}

pub fn every_memory_type_is_mapped_and_read_back() {
    let said = behind_module(|guest| guest.expect(&format!("module {DEVICE} types 2")));
    // Encodings of IA32_PAT; the MTRR type of this BAR is the same in each line.
    let pats: Vec<&str> = said.lines().filter_map(|line| line.split(" mtrr").next()).collect();
    assert_eq!(pats, ["UC pat 0", "UC- pat 7", "WC pat 1", "WT pat 4", "WP pat 5"], "{said}");
}

pub fn mistakes_are_refused_with_their_error() {
    let said = behind_module(|guest| guest.expect(&format!("module {DEVICE} refusals 2 {}", 4 << 20)));
    assert_eq!(said, "all refused\n");
    let said = shared().run(&format!("module {DEVICE} types 2"));
    assert!(said.status == 1 && said.stderr.contains("No such file"), "no file without the driver: {said:?}");
}

pub fn random_requests_leave_no_warning_in_the_kernels_log() {
    let said = behind_module(|guest| {
        let said = guest.expect(&format!("module {DEVICE} fuzz 20000"));
        // Once more, while the driver is unbound and bound again: its file ends, and the program goes on.
        guest.expect("rm -f status");
        guest.expect(&format!("(module {DEVICE} fuzz 30000000 >fuzzed 2>&1; echo $? >status) >/dev/null 2>&1 &"));
        let opened = "ls -l /proc/$(pidof module)/fd 2>/dev/null | grep -q lanemark";
        guest.expect(&format!("for i in $(seq 300); do {opened} && exit 0; sleep 0.1; done; cat fuzzed; exit 1"));
        guest.expect(&format!("echo 0000:01:00.0 >{CARD}/driver/unbind; sleep 1; pidof module"));
        guest.expect("kill $(pidof module); for i in $(seq 100); do [ -s status ] && exit 0; sleep 0.1; done; exit 1");
        guest.expect("echo 0000:01:00.0 >/sys/bus/pci/drivers_probe");
        said
    });
    let accepted: u64 = said.split(' ').next().unwrap().parse().unwrap();
    assert!(accepted > 100, "too few requests get past the first check: {said}");
}

pub fn memory_is_mapped_by_the_dma_api_and_released_at_the_end() {
    let locked = "grep -h -E '^(Mlocked|Unevictable):' /proc/meminfo";
    behind_module(|guest| {
        let before = guest.expect(locked);
        let said = guest.expect(&format!("module {DEVICE} dma"));
        assert_eq!(said.matches("unmap").count(), 12, "{said}");
        // Behind an IOMMU, the pages of a mapping are contiguous for the device.
        assert!(said.lines().all(|line| line.contains(": 1 segments, 0 pages bounced")), "{said}");
        assert_eq!(before, guest.expect(locked));
    });
}

/// Bytes of a long mapping. With [`KERNEL_WITH_CHECKS`], one of 2 MiB takes longer than the time between two interrupts, so that
/// no sample is undisturbed.
fn long_bytes() -> u64 {
    if usual_kernel() == KERNEL_WITH_CHECKS { 32 << 10 } else { 2 << 20 }
}

pub fn mappings_by_the_dma_api_are_timed_in_parts_and_leave_nothing_pinned() {
    let locked = "grep -h -E '^(Mlocked|Unevictable):' /proc/meminfo";
    let mut guest = shared();
    storage::fresh(&guest);
    let before = guest.expect(locked);
    let bench = format!("{BENCH} --question dma_map_cost --sizes 4096,12288,{}", long_bytes());
    let said = guest.expect(&format!("{bench} --budget 1 --record card.json"));
    assert!(said.contains("bounced: no, the device accesses the mapped pages themselves"), "{said}");
    guest.expect(&format!("echo 1 >{CARD}/enable"));
    let record: Value = serde_json::from_str(&guest.expect("cat card.json")).unwrap();
    let answers = record["answers"].as_array().unwrap();
    let parts = |memory: &str| -> Vec<&str> {
        let of_it = answers.iter().map(|answer| &answer["method"]["means"]["kernel"]);
        of_it.filter(|means| means["memory"] == memory).filter_map(|means| means["part"].as_str()).collect()
    };
    let each = |parts: &[&'static str]| parts.iter().flat_map(|part| [*part; 3]).collect::<Vec<_>>();
    let both = ["calls", "pin", "map", "sync_for_cpu", "sync_for_device", "unmap", "unpin"];
    assert_eq!(parts("streaming"), each(&both), "{}", record["skipped"]);
    for memory in ["to_device", "from_device"] {
        let one = ["map", "sync_for_cpu", "sync_for_device", "unmap"];
        assert_eq!(parts(memory), each(&one), "{memory}: {}", record["skipped"]);
    }
    assert_eq!(parts("coherent"), each(&["calls", "map", "unmap"]), "{}", record["skipped"]);
    assert!(answers.iter().all(|answer| answer["bytes"].is_null()), "no bytes are claimed");
    assert_eq!(before, guest.expect(locked), "pages are pinned");
    let said = guest.run(&format!("{BENCH} --question dma_map_cost --sizes 5000"));
    assert!(said.stdout.contains("whole pages of 4 KiB") && said.status == 77, "{said:?}");
    // Nothing is stored to the card.
    assert!(fs::read(guest.file("storage")).unwrap().iter().all(|byte| *byte == BEFORE));
}

pub fn a_bounce_buffer_is_reported_with_the_number_of_its_pages() {
    // Without translation by the IOMMU, which gives every page a device address.
    let mut guest = crate::boot("iommu=pt swiotlb=force");
    let said = behind_module_of(&mut guest, |guest| guest.expect(&format!("module {DEVICE} dma")));
    for (direction, pages) in [(0, [1, 16, 256]), (1, [1, 16, 256]), (2, [1, 16, 256]), (3, [0; 3])] {
        for (len, pages) in [4096, 65536, 1 << 20].into_iter().zip(pages) {
            let of_it = |line: &&str| line.starts_with(&format!("direction {direction}, {len} B: "));
            let line = said.lines().find(of_it).unwrap_or_else(|| panic!("{said}"));
            assert!(line.contains(&format!(" {pages} pages bounced")), "{line}");
        }
    }
    let bench = format!("{BENCH} --question dma_map_cost --sizes {} --budget 0.2 --record card.json", long_bytes());
    let pages = long_bytes() / 4096;
    let said = guest.expect(&bench);
    assert!(
        said.contains("through a bounce buffer (swiotlb)") && said.contains(&format!("{pages} of {pages} pages")),
        "{said}"
    );
    let record: Value = serde_json::from_str(&guest.expect("cat card.json")).unwrap();
    for answer in record["answers"].as_array().unwrap() {
        let is_coherent = answer["method"]["means"]["kernel"]["memory"] == "coherent";
        let found = &answer["detail"]["bounce_buffer"];
        assert_eq!(found["mapped_pages"], pages, "{answer}");
        assert_eq!(found["bounced_pages"], if is_coherent { 0 } else { pages }, "{answer}");
    }
}

pub fn bus_mastering_is_off_unless_asked_for_and_off_at_the_end() {
    // Bit 2 of the command register.
    let is_on = format!("[ $(( 0x$(xxd -s 4 -l 1 -p {CARD}/config) & 4 )) -ne 0 ]");
    behind_module(|guest| {
        guest.expect(&format!("module {DEVICE} hold 1 & sleep 0.5; ! {is_on}"));
        guest.expect(&format!("sleep 1; module {DEVICE} master 60 & sleep 0.5; {is_on}"));
        guest.expect(&format!("kill -9 $(pidof module); sleep 0.5; ! {is_on}"));
    });
}

pub fn only_a_named_function_without_another_claim_is_bound() {
    let mut guest = shared();
    // A drive with its driver, and an id given to ours: the id matches, and no override names the function.
    let said = guest.run("lanemark bench --on 0000:00:07.0 --bind lanemark --bar 0:0..4KiB --dry-run");
    assert!(said.status == 0 && said.stdout.contains("drivers/nvme/unbind"), "{said:?}");
    for id in ["1af4 1110", "ffffffff ffffffff"] {
        guest.run(&format!("echo {id} >/sys/bus/pci/drivers/lanemark/new_id"));
        guest.expect(&format!("[ ! -e {CARD}/driver ]"));
        assert_eq!(guest.expect("ls /sys/bus/pci/drivers/lanemark | grep -c : || true"), "0\n", "{id}");
        guest.run(&format!("echo {id} >/sys/bus/pci/drivers/lanemark/remove_id"));
    }
    let said = guest.run("echo 0000:00:07.0 >/sys/bus/pci/drivers/lanemark/bind");
    assert_ne!(said.status, 0, "it has the driver nvme: {said:?}");
    let driver = guest.expect("basename $(readlink /sys/bus/pci/devices/0000:00:07.0/driver)");
    assert_eq!(driver, "nvme\n");
}

pub fn a_second_program_is_refused_and_the_driver_is_restored() {
    behind_module(|guest| {
        guest.expect(&format!("module {DEVICE} hold 60 & sleep 0.5"));
        let said = guest.run("lanemark bench --on 0000:01:00.0 --bar 2:0..4KiB --question mmio_read_latency");
        assert!(said.status == 77 && said.stderr.contains("another program has opened"), "{said:?}");
        guest.expect("kill $(pidof module); sleep 0.5");
    });
    let mut guest = shared();
    let said = guest.expect(
        "lanemark bench --on 0000:00:07.0 --bind lanemark --bar 0:0..4KiB --question mmio_read_latency --budget 0.1",
    );
    assert!(said.ends_with("restored; driver now: nvme\n"), "{said}");
    let said = guest.run("lanemark bench --on 0000:00:07.0 --bind lanemark --bar 0:0..1MiB");
    assert!(said.status != 0 && said.stderr.contains("ends beyond BAR0"), "{said:?}");
    assert_eq!(guest.expect("lanemark unbind"), "every function has its former driver\n");
}

/// Starts a run of the storage card that takes a minute, and waits until bytes arrive outside.
fn begun(guest: &mut Guest, more: &str) {
    storage::fresh(guest);
    let ask =
        format!("lanemark bench --on 0000:01:00.0 --bar 2:0..4KiB --question mmio_write_bandwidth --budget 60 {more}");
    guest.expect(&format!("rm -f status; ({ask} >said 2>&1; echo $? >status) >/dev/null 2>&1 &"));
    let has_begun = |guest: &Guest| fs::read(guest.file("storage")).unwrap()[..4096].iter().any(|byte| *byte != BEFORE);
    for _ in 0..600 {
        if has_begun(guest) {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("nothing was stored in a minute: {:?}", guest.run("cat said status"));
}

/// The exit status of that run in a line, and its output.
fn ended(guest: &mut Guest) -> String {
    guest.expect("for i in $(seq 900); do [ -s status ] && break; sleep 0.1; done; cat status said")
}

pub fn removing_the_driver_ends_the_mappings_of_a_program() {
    behind_module(|guest| {
        begun(guest, "");
        guest.expect(&format!("echo 0000:01:00.0 >{CARD}/driver/unbind"));
        let said = ended(guest);
        assert!(said.starts_with("1\n"), "{said}");
        let seen = ["0000:01:00.0 was unbound", "0000:01:00.0: bus error", "with no driver now"];
        assert!(seen.iter().any(|words| said.contains(words)), "{said}");
        guest.expect(&format!("echo 0000:01:00.0 >/sys/bus/pci/drivers_probe; [ -e {CARD}/driver ]"));
    });
}

pub fn the_driver_is_restored_after_a_signal() {
    let mut guest = shared();
    for signal in ["INT", "TERM"] {
        begun(&mut guest, "--bind lanemark");
        guest.expect(&format!("kill -{signal} $(pidof lanemark)"));
        let said = ended(&mut guest);
        assert!(said.starts_with("130\n") && said.contains("restored; driver now: none\n"), "{signal}: {said}");
        guest.expect(&format!("[ ! -e {CARD}/driver ] && [ ! -e {DEVICE} ]"));
    }
    guest.expect(&format!("echo 1 >{CARD}/enable"));
}

const BENCH: &str = "lanemark bench --on 0000:01:00.0 --bind lanemark --bar 2:0..1MiB";

pub fn a_dry_run_prints_steps_mappings_and_calls_and_changes_nothing() {
    let mut guest = shared();
    storage::fresh(&guest);
    let said = guest.expect(&format!("{BENCH} --question driver_call_overhead,mmio_read_latency --dry-run"));
    for wanted in [
        "echo lanemark > ",
        "/dev/lanemark/0000:01:00.0",
        "WT",
        "WP",
        "by driver calls of 64 B",
        "by driver calls of 8 B",
    ] {
        assert!(said.contains(wanted), "no word of '{wanted}':\n{said}");
    }
    guest.expect(&format!("[ ! -e {CARD}/driver ] && [ ! -e {DEVICE} ]"));
    assert!(fs::read(guest.file("storage")).unwrap().iter().all(|byte| *byte == BEFORE));
}

pub fn a_card_behind_the_module_keeps_every_promise() {
    let said = behind_module(|guest| guest.run("promises module 0000:01:00.0 2:0..64KiB"));
    assert_eq!(said.status, 0, "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.ends_with(&format!("{} passed, 0 failed\n", PROMISES.len())), "{}", said.stdout);
}

/// The memory types of the mappings, with what was found.
fn found(record: &Value) -> Vec<(String, String, bool)> {
    let mappings = record["targets"][0]["card"]["mappings"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    mappings
        .iter()
        .map(|map| (text(&map["memory_type"]), text(&map["effective_memory_type"]), map["is_used"] == true))
        .collect()
}

pub fn a_card_answers_with_cached_types_and_driver_calls() {
    let mut guest = shared();
    storage::fresh(&guest);
    guest.expect(&format!("{BENCH} --question driver_call_overhead --budget 0.3 --record card.json"));
    guest.expect(&format!("echo 1 >{CARD}/enable"));
    let record: Value = serde_json::from_str(&guest.expect("cat card.json")).unwrap();
    let answers = record["answers"].as_array().unwrap();
    let paths: Vec<String> = answers.iter().map(|answer| answer["method"].to_string()).collect();
    assert!(answers.len() >= 4, "two reads, a poll, a mapping and the line of writes: {paths:?}");
    for answer in answers.iter().filter(|answer| answer["bytes"].is_object()) {
        assert_eq!(answer["bytes"]["claimed_bytes"], answer["bytes"]["confirmed_bytes"], "{answer}");
    }
    let outside = fs::read(guest.file("storage")).unwrap();
    assert!(outside[..1 << 20].chunks(64).all(|line| line != [BEFORE; 64]), "a line was not written");
    assert!(outside[1 << 20..].iter().all(|byte| *byte == BEFORE), "something beyond the range has changed");

    // Above 4 GiB no MTRR makes WT and WP UC.
    let large = "lanemark bench --on 0000:05:00.0 --bind lanemark --bar 2:0..64KiB --budget 0.1 --memory-type uc,wc,wt,wp \
                 --question mmio_write_bandwidth,mmio_read_bandwidth --sizes 4KiB --record large.json";
    let said = guest.expect(large);
    guest.expect("echo 1 >/sys/bus/pci/devices/0000:05:00.0/enable");
    let record: Value = serde_json::from_str(&guest.expect("cat large.json")).unwrap();
    let wanted = ["uc", "wc", "wt", "wp"].map(|kind| (kind.to_owned(), kind.to_owned(), true));
    assert_eq!(found(&record), wanted, "{said}");
    for kind in ["wt", "wp"] {
        assert!(
            record["answers"].as_array().unwrap().iter().any(|answer| answer["method"].to_string().contains(kind)),
            "no answer with {kind}: {said}"
        );
    }

    // Below 4 GiB the firmware has made BARs UC: loads from this one have no effect.
    let said = guest.expect(
        "lanemark bench --on 0000:00:06.0 --bind lanemark --bar 0:0..4KiB:storage --memory-type uc,wc,wt,wp \
         --question mmio_read_bandwidth --sizes 4KiB --budget 0.1 --record low.json",
    );
    guest.expect("echo 1 >/sys/bus/pci/devices/0000:00:06.0/enable");
    let record: Value = serde_json::from_str(&guest.expect("cat low.json")).unwrap();
    let wanted = [("uc", "uc", true), ("wc", "wc", true), ("wt", "-", false), ("wp", "-", false)];
    assert_eq!(found(&record), wanted.map(|(asked, is, works)| (asked.to_owned(), is.to_owned(), works)), "{said}");
    let mappings = record["targets"][0]["card"]["mappings"].to_string();
    assert!(mappings.contains("was requested as WP but is UC") && mappings.contains("MTRRs UC"), "{mappings}");
    let methods = record["answers"].to_string();
    assert!(!methods.contains("\"wt\"") && !methods.contains("\"wp\""), "{methods}");
}
