//! DMA by the engine of a device, through VFIO and the IOMMU of the guest.

use crate::guest::{Guest, Hardware, usual_kernel};
use crate::sharing::{Guests, Lent};
use lanemark_checks::conformance::PROMISES;
use lanemark_checks::{lanemark, root};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Devices of the guest for DMA:
///
/// | address | device |
/// | --- | --- |
/// | 00:05.0 | edu, whose engine reaches 28 address bits |
/// | 00:06.0 | edu, whose engine drops all but 20 bits of an address |
/// | 01:00.0 | edu in a hot-plug slot |
/// | 02:00.0 | ivshmem: BAR2 is 1 MiB of storage, the file `storage` on the outside |
/// | 05:00.0 | edu below a switch without ACS |
/// | 06:00.0 | ivshmem below the same switch, the file `below` on the outside |
/// | 00:07.0 | edu, a function of the same device as |
/// | 00:07.1 | ivshmem, in one IOMMU group with it: the file `beside` on the outside |
/// | 00:08.0 | nvme without a namespace: BAR2 is a controller memory buffer of 1 MiB |
/// | 07:00.0 | nvme with 1 MiB, in a hot-plug slot |
///
/// A transfer of edu takes 100 ms of the guest's time. This time advances with the number of instructions, and jumps to the
/// next event where the guest waits: so a test takes seconds.
const DEVICES: &[&str] = &[
    "-icount shift=6,sleep=off",
    "-device intel-iommu,intremap=on,caching-mode=on",
    "-device edu,addr=0x5",
    "-device edu,dma_mask=0xfffff,addr=0x6",
    "-device pcie-root-port,id=rp1,chassis=1,slot=1,addr=0x2",
    "-device edu,id=card,bus=rp1",
    "-device pcie-root-port,id=rp2,chassis=2,slot=2,addr=0x3",
    "-object memory-backend-file,id=storage,share=on,mem-path={folder}/storage,size=1M",
    "-device ivshmem-plain,id=memory,memdev=storage,bus=rp2",
    "-device pcie-root-port,id=rp3,chassis=3,slot=3,addr=0x4",
    "-device x3130-upstream,id=up,bus=rp3",
    "-device xio3130-downstream,id=down1,bus=up,chassis=4,slot=4",
    "-device xio3130-downstream,id=down2,bus=up,chassis=5,slot=5",
    "-device edu,bus=down1",
    "-object memory-backend-file,id=below,share=on,mem-path={folder}/below,size=1M",
    "-device ivshmem-plain,memdev=below,bus=down2",
    "-device edu,addr=0x7.0,multifunction=on",
    "-object memory-backend-file,id=beside,share=on,mem-path={folder}/beside,size=1M",
    "-device ivshmem-plain,memdev=beside,addr=0x7.1",
    "-device nvme,addr=0x8,serial=buffer,cmb_size_mb=1",
    "-device pcie-root-port,id=rp4,chassis=6,slot=6,addr=0x9",
    "-drive if=none,id=medium,format=raw,file={folder}/medium",
    "-device nvme,id=removable,bus=rp4,serial=removable,drive=medium",
];

/// The first edu.
pub const EDU: &str = "0000:00:05.0";

/// Its device file.
const EDU_FILE: &str = "devices/edu.toml";

/// A guest that the tests of DMA share.
pub fn shared() -> Lent {
    static GUESTS: Guests = Guests::new(|| boot(""));
    GUESTS.lend()
}

/// A guest for DMA with more on the command line of its kernel.
pub fn boot(kernel: &str) -> Guest {
    boot_on(&[], kernel, &[])
}

/// As [`boot`], with more hardware and programs.
pub fn boot_on(more: &[&str], kernel: &str, programs: &[&Path]) -> Guest {
    let devices: Vec<&str> = DEVICES.iter().chain(more).copied().collect();
    let hardware = Hardware { packages: usual_kernel(), devices: &devices, kernel };
    let programs = [&[lanemark(), Path::new(env!("CARGO_BIN_EXE_promises"))], programs].concat();
    Guest::boot(&hardware, &programs, |folder| {
        for file in ["storage", "below", "beside", "medium"] {
            fs::write(folder.join(file), vec![0xa7; 1 << 20]).unwrap();
        }
    })
}

/// A bench of a card that is bound for it, which must succeed: its record.
pub fn record(guest: &mut Guest, arguments: &str) -> Value {
    guest.expect(&format!("lanemark bench --bind vfio-pci {arguments} --record dma.json >/dev/null"));
    serde_json::from_str(&guest.expect("cat dma.json")).unwrap()
}

/// Script that prints the number of pinned pages: acquired and not released. Both counts are complete after a refresh.
pub const PINNED: &str = "cat /proc/sys/vm/stat_refresh; \
    awk '/nr_foll_pin_acquired/ { a = $2 } /nr_foll_pin_released/ { r = $2 } END { print a - r }' /proc/vmstat";

/// Whether a function may be bus master, and its driver.
pub fn state(guest: &mut Guest, function: &str) -> (bool, String) {
    let folder = format!("/sys/bus/pci/devices/{function}");
    let command = guest.expect(&format!("xxd -s 4 -l 1 -p {folder}/config"));
    let command = u8::from_str_radix(command.trim(), 16).unwrap();
    let driver = guest.expect(&format!("[ ! -e {folder}/driver ] || basename $(readlink {folder}/driver)"));
    (command & 4 != 0, driver.trim().to_owned())
}

/// Writes a device file with changes.
pub fn changed_file(guest: &mut Guest, file: &str, changes: &[(&str, &str)]) {
    let text = fs::read_to_string(root().join(file)).unwrap();
    let mine = changes.iter().fold(text, |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    });
    guest.expect(&format!("cat >mine.toml <<'END'\n{mine}END\n"));
}

/// Runs the conformance tests on the engine of a card by a device file; all must pass.
pub fn keeps_every_promise(guest: &mut Guest, function: &str, file: &str) {
    guest.expect(&format!("lanemark bind {function}"));
    let said = guest.run(&format!("promises engine-vfio {function} {file}"));
    guest.expect(&format!("lanemark unbind {function}"));
    assert_eq!(said.status, 0, "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.ends_with(&format!("{} passed, 0 failed\n", PROMISES.len())), "{}", said.stdout);
}

pub fn the_engine_of_a_device_file_keeps_every_promise() {
    keeps_every_promise(&mut shared(), EDU, "edu");
}

pub fn an_engine_whose_memory_decoding_is_turned_off_is_an_error_with_that_cause() {
    let mut guest = shared();
    let bench = format!(
        "lanemark bench --on {EDU} --bind vfio-pci --device edu --question dma_read_latency --interval 0.0001 --budget 60"
    );
    guest.expect(&format!("rm -f status; ({bench} >said 2>&1; echo $? >status) >/dev/null 2>&1 &"));
    let config = format!("/sys/bus/pci/devices/{EDU}/config");
    // Its transfers have begun.
    let masters = format!("$(( 0x$(xxd -s 4 -l 1 -p {config}) & 4 ))");
    guest.expect(&format!("for i in $(seq 60); do [ {masters} -ne 0 ] && exit 0; sleep 0.5; done; cat said; exit 1"));
    guest.expect(&format!("printf '\\004' | dd of={config} bs=1 seek=4 conv=notrunc"));
    let said = guest.expect("for i in $(seq 600); do [ -s status ] && break; sleep 0.5; done; cat status said");
    assert!(said.starts_with("1\n") && said.contains(&format!("{EDU}: memory decoding is off")), "{said}");
    assert!(said.contains("run again, which turns it on"), "{said}");
    record(&mut guest, &format!("--on {EDU} --device edu --question dma_read_latency --sizes 64 --budget 0.1"));
}

pub fn the_engine_of_a_device_answers_questions_about_dma() {
    let mut guest = shared();
    let questions = "dma_read_latency,interrupt_latency,dma_write_bandwidth,dma_read_bandwidth";
    let more = "--sizes 2KiB --budget 0.1 --twin card-gen5-x16-iommu";
    let record = record(&mut guest, &format!("--on {EDU} --device edu --question {questions} {more}"));
    assert_eq!(state(&mut guest, EDU), (false, String::new()), "no bus master, and no driver as before");
    let target = &record["targets"][0];
    assert_eq!((&target["kind"], &target["card"]["driver"]), (&json!("emulated"), &json!("vfio-pci")));
    let answers = record["answers"].as_array().unwrap();
    for question in questions.split(',') {
        let answer = answers.iter().find(|answer| answer["question"] == question);
        let answer = answer.unwrap_or_else(|| panic!("{question}: {}", record["skipped"]));
        let bytes = &answer["bytes"];
        // Of 512 writes over 4 MiB, each goes to a place of its own. The device's memory has the last of its reads.
        let wanted = if question == "dma_write_bandwidth" { 1 << 20 } else { 2048 };
        assert_eq!(bytes, &json!({ "claimed_bytes": wanted, "confirmed_bytes": wanted }), "{question}");
        assert!(!answer["samples_ns"].as_array().unwrap().is_empty(), "{question}: {answer}");
        // The plans are those of the simulated card.
        assert_eq!(answer["twin"]["platform"], "card-gen5-x16-iommu", "{question}: {}", record["skipped"]);
        assert!(answer["ceiling"]["kind"] == "unknown" && answer["share_of_ceiling_percent"].is_null(), "{answer}");
    }
    let skipped = |what: &str| record["skipped"].to_string().contains(what);
    assert!(!skipped("dma_"), "{}", record["skipped"]);
}

pub fn pages_of_4_kib_and_of_2_mib_are_mapped_by_the_iommu() {
    let mut guest = shared();
    // Pages of 2 MiB last, for the next question, too.
    for (huge, window, page) in [(0, "16KiB", "4KiB"), (40, "8MiB", "2MiB")] {
        guest.expect(&format!("echo {huge} >/proc/sys/vm/nr_hugepages"));
        let record = record(
            &mut guest,
            &format!("--on {EDU} --device edu --question iotlb_reach --window {window} --budget 0.1 --csv dma.csv"),
        );
        let answer = &record["answers"][0];
        assert_eq!(answer["bytes"]["confirmed_bytes"], 64, "{page}: {}", record["skipped"]);
        assert!(guest.expect("cat dma.csv").contains(window), "{page}");
        assert_eq!(answer["method"]["reach"]["stride_bytes"], page_bytes(page), "{answer}");
    }
    let thrash =
        record(&mut guest, &format!("--on {EDU} --device edu --question iotlb_thrash --stride 2MiB --budget 0.1"));
    let answers = thrash["answers"].as_array().unwrap();
    assert!(!answers.is_empty() && answers.iter().all(|answer| answer["bytes"]["confirmed_bytes"] == 64), "{thrash}");
    guest.expect("echo 0 >/proc/sys/vm/nr_hugepages");
}

fn page_bytes(page: &str) -> u64 {
    if page == "4KiB" { 4096 } else { 2 << 20 }
}

pub fn a_dry_run_lists_binds_registers_and_pages_and_changes_nothing() {
    let mut guest = shared();
    let before = state(&mut guest, EDU);
    let said = guest.expect(&format!(
        "lanemark bench --on {EDU} --bind vfio-pci --device edu --question dma_read_latency,mmio_read_latency --sizes 64 --dry-run"
    ));
    for words in [
        "echo vfio-pci > /sys/bus/pci/devices/0000:00:05.0/driver_override",
        "/dev/vfio/",
        "source 0x80, destination 0x88, count 0x90, command 0x98",
        "memory of the card at 0x40000, 4KiB: overwritten",
        "IOVAs of at most 28 bits",
        "MSI vector 0",
        "locked for the run, so that a second Lanemark process is refused: /sys/bus/pci/devices/0000:00:05.0/config",
        "range 0:0..4B:registers",
        "DMA from host memory: 16 x 64B per iteration",
        "dry run, nothing was accessed",
    ] {
        assert!(said.contains(words), "{words}:\n{said}");
    }
    assert_eq!(state(&mut guest, EDU), before);
    assert_eq!(guest.expect("lanemark unbind"), "every function has its former driver\n");
}

pub fn blocked_dma_is_an_error_with_the_report_of_the_kernel() {
    let mut guest = shared();
    // This engine drops the upper bits of addresses, so that its requests go to pages that are not mapped.
    let said = guest
        .run("lanemark bench --on 0000:00:06.0 --bind vfio-pci --device edu --question dma_read_latency --sizes 64");
    assert_eq!(said.status, 1, "{said:?}");
    for words in ["0000:00:06.0: the IOMMU has blocked", "DMAR: [DMA Read", "fault addr 0x", "address_bits"] {
        assert!(said.stderr.contains(words), "{words}: {said:?}");
    }
    assert_eq!(state(&mut guest, "0000:00:06.0"), (false, String::new()));
    // The doctor finds the same in the kernel's log.
    let said = guest.run("lanemark doctor");
    let words = "the IOMMU refused requests, by the kernel's log";
    assert!(said.stdout.contains(words) && said.stdout.contains("DMA Read"), "{said:?}");
}

pub fn an_interrupt_that_never_comes_is_a_timeout_with_its_name() {
    let mut guest = shared();
    changed_file(
        &mut guest,
        EDU_FILE,
        &[("interrupt_command = 0x4", "interrupt_command = 0x8"), ("longest_ms = 2000", "longest_ms = 300")],
    );
    let said = guest.run(&format!(
        "lanemark bench --on {EDU} --bind vfio-pci --device mine.toml --question interrupt_latency --sizes 64"
    ));
    assert!(said.status != 0, "{said:?}");
    let all = format!("{}{}", said.stdout, said.stderr);
    assert!(all.contains("the interrupt at the end of a transfer") && all.contains("engine.longest_ms"), "{said:?}");
    // The engine works afterwards.
    record(&mut guest, &format!("--on {EDU} --device edu --question dma_read_latency --sizes 64 --budget 0.1"));
}

pub fn a_wrong_device_file_is_refused_before_the_card_is_bound() {
    let mut guest = shared();
    let bench = format!("lanemark bench --on {EDU} --bind vfio-pci --device mine.toml --question dma_read_latency");
    changed_file(&mut guest, EDU_FILE, &[("source_register = 0x80", "source_register = 0x84")]);
    let said = guest.run(&bench);
    assert!(said.status == 2 && said.stderr.contains("engine.source_register: 0x84 is no multiple"), "{said:?}");
    assert!(!said.stdout.contains("bound to"), "{said:?}");
    for (from, to, words) in [
        ("device = 0x11e8", "device = 0x11e9", "its device is 0x11e8, and the device file has id.device = 0x11e9"),
        ("len_bytes = \"1MiB\"", "len_bytes = \"2MiB\"", "BAR0 has 0x100000 B"),
    ] {
        changed_file(&mut guest, EDU_FILE, &[(from, to)]);
        let said = guest.run(&bench);
        assert!(said.status != 0 && said.stderr.contains(words), "{said:?}");
        assert_eq!(state(&mut guest, EDU), (false, String::new()));
    }
    let said = guest.run(&format!("lanemark bench --on {EDU} --device edu"));
    assert!(said.status == 2 && said.stderr.contains("--bind vfio-pci"), "{said:?}");
}

/// Starts a long run of DMA, and waits until the card may be bus master.
fn long_run(guest: &mut Guest, function: &str) {
    started(guest, function, "--device edu --question dma_write_bandwidth --sizes 64");
}

/// Starts a long run of a card that is bound for it, and waits until the card may be bus master.
pub fn started(guest: &mut Guest, function: &str, asked: &str) {
    let bench = format!("lanemark bench --on {function} --bind vfio-pci {asked} --full --budget 900");
    guest.expect("rm -f status");
    guest.expect(&format!("({bench} >said 2>&1; echo $? >status) >/dev/null 2>&1 &"));
    let master = format!("$(( 0x$(xxd -s 4 -l 1 -p /sys/bus/pci/devices/{function}/config) & 4 ))");
    let driver = format!("$(readlink /sys/bus/pci/devices/{function}/driver)");
    // Bus mastering is on only while a plan runs, so what was seen once is not asked again.
    guest.expect(&format!(
        "for i in $(seq 120); do case {driver} in */vfio-pci) [ {master} -ne 0 ] && exit 0;; esac; sleep 0.5; done; cat said; exit 1"
    ));
}

/// Waits for the end of a long run; returns its exit status and its output.
pub fn ended(guest: &mut Guest) -> (String, String) {
    let status = guest.expect("for i in $(seq 600); do [ -s status ] && break; sleep 0.5; done; cat status");
    (status.trim().to_owned(), guest.expect("cat said"))
}

pub fn the_driver_is_restored_after_a_signal_and_listed_after_a_kill() {
    let mut guest = shared();
    for signal in ["INT", "TERM"] {
        long_run(&mut guest, EDU);
        guest.expect(&format!("kill -{signal} $(pidof lanemark)"));
        let (status, said) = ended(&mut guest);
        assert!(status == "130" && said.contains("restored; driver now: none"), "{signal}: {status} {said}");
        assert_eq!(state(&mut guest, EDU), (false, String::new()), "{signal}");
    }
    let before = guest.expect(PINNED);
    long_run(&mut guest, EDU);
    assert_ne!(guest.expect(PINNED), before, "a run pins pages");
    guest.expect("kill -KILL $(pidof lanemark)");
    ended(&mut guest);
    assert_eq!(state(&mut guest, EDU), (false, "vfio-pci".to_owned()), "the kernel has cleared bus mastering");
    assert_eq!(guest.expect(PINNED), before, "pages are pinned");
    let next =
        guest.run(&format!("lanemark bench --on {EDU} --bind vfio-pci --device edu --question dma_read_latency"));
    let remedy = format!("lanemark unbind {EDU}");
    assert!(next.status == 2 && next.stderr.contains(&remedy), "{next:?}");
    // Commands about other devices report it, too.
    let others = [
        "bench --on host --question timer_cost --budget 0.1",
        "bench --on 0000:00:06.0 --bind vfio-pci --device edu --dry-run",
        "bind 0000:00:06.0 --dry-run",
        "doctor",
    ];
    let report =
        format!("note: a run that was killed left {EDU} bound to vfio-pci, driver before: none; restore it with");
    for command in others {
        let said = guest.run(&format!("lanemark {command}"));
        assert!(said.status == 0 && said.stderr.contains(&format!("{report}: {remedy}")), "{command}: {said:?}");
    }
    guest.expect(&format!("lanemark unbind {EDU}"));
    assert_eq!(state(&mut guest, EDU), (false, String::new()));
    let after = guest.run("lanemark doctor");
    assert!(after.status == 0 && !after.stderr.contains("was killed"), "{after:?}");
}

pub fn removing_a_card_behind_vfio_ends_its_run() {
    let mut guest = shared();
    let card = "0000:01:00.0";
    long_run(&mut guest, card);
    guest.monitor("device_del card");
    let (status, said) = ended(&mut guest);
    assert!(status == "1" && said.contains(&format!("{card} is gone")), "{status} {said}");
    guest.expect(&format!("for i in $(seq 60); do [ -e /sys/bus/pci/devices/{card} ] || break; sleep 0.5; done"));
    let after = guest.run(&format!("lanemark bench --on {card} --bind vfio-pci --device edu"));
    assert!(after.status == 2 && after.stderr.contains("does not exist"), "{after:?}");
    guest.expect(&format!("rm -f /run/lanemark/{card}.*"));
    plugged_again(&mut guest, card, "edu,id=card,bus=rp1");
}

pub fn removing_a_drive_behind_vfio_ends_its_run() {
    let mut guest = shared();
    let drive = "0000:07:00.0";
    started(&mut guest, drive, "--question dma_write_bandwidth --sizes 4KiB");
    guest.monitor("device_del removable");
    let (status, said) = ended(&mut guest);
    assert!(status == "1" && said.contains(&format!("{drive} is gone")), "{status} {said}");
    guest.expect(&format!("rm -f /run/lanemark/{drive}.*"));
}

/// Plugs a card that was removed, so that the next test has it.
pub fn plugged_again(guest: &mut Guest, card: &str, device: &str) {
    guest.monitor(&format!("device_add {device}"));
    guest.expect(&format!(
        "for i in $(seq 60); do [ -e /sys/bus/pci/devices/{card} ] && exit 0; sleep 0.5; done; exit 1"
    ));
}

/// Plugs a card with memory, the file `name` on the outside, that was removed.
pub fn memory_plugged_again(guest: &mut Guest, card: &str, id: &str, (name, size): (&str, &str), slot: &str) {
    // The emulator ends when a card gets the memory of a former one.
    let file = guest.file(name);
    let memory = format!("{name}-again");
    guest.monitor(&format!(
        "object_add memory-backend-file,id={memory},share=on,mem-path={},size={size}",
        file.display()
    ));
    plugged_again(guest, card, &format!("ivshmem-plain,id={id},memdev={memory},bus={slot}"));
}

pub fn loads_and_stores_go_through_vfio_to_a_bound_card() {
    let mut guest = shared();
    let found = record(
        &mut guest,
        "--on 0000:02:00.0 --bar 2:0..4KiB --question mmio_write_bandwidth,mmio_read_latency --access 8 --sizes 4KiB",
    );
    let outside = fs::read(guest.file("storage")).unwrap();
    assert!(outside[..4096].chunks(64).all(|line| line != [0xa7; 64]), "a line of the range was not stored to");
    assert!(outside[4096..].iter().all(|byte| *byte == 0xa7), "something beyond the range has changed");
    let answers = found["answers"].as_array().unwrap();
    let stored = answers.iter().find(|answer| answer["question"] == "mmio_write_bandwidth").unwrap();
    assert_eq!(stored["bytes"], json!({ "claimed_bytes": 4096, "confirmed_bytes": 4096 }));
    assert!(answers.iter().any(|answer| answer["question"] == "mmio_read_latency"), "{}", found["skipped"]);
    let mapping = &found["targets"][0]["card"]["mappings"][0];
    assert!(mapping["file"].as_str().unwrap().starts_with("/dev/vfio/") && mapping["memory_type"] == "uc", "{mapping}");
    // The harmless ranges of a device file need no option.
    let found = record(&mut guest, &format!("--on {EDU} --device edu --question mmio_read_latency"));
    assert_eq!(found["targets"][0]["card"]["ranges"][0]["kind"], "registers");
    assert!(!found["answers"].as_array().unwrap().is_empty(), "{}", found["skipped"]);
}

pub fn calls_of_vfio_read_and_write_bytes_of_a_card() {
    let mut guest = shared();
    let found = record(&mut guest, "--on 0000:02:00.0 --bar 2:0..1MiB --question driver_call_overhead --budget 0.3");
    let (answers, found_skipped) = (found["answers"].as_array().unwrap(), &found["skipped"]);
    let ways = |path: &str, verb: &str| {
        let is_one = |method: &Value| method["path"] == path && method["verb"] == verb;
        answers.iter().filter(|answer| is_one(&answer["method"])).count()
    };
    let found = [ways("driver", "load"), ways("driver_poll", "load"), ways("mmap", "load")];
    assert_eq!(found, [2, 1, 1], "{found_skipped}");
    for answer in answers.iter().filter(|answer| !answer["bytes"].is_null()) {
        assert_eq!(answer["bytes"]["claimed_bytes"], answer["bytes"]["confirmed_bytes"], "{answer}");
    }
    // Writing 1 MiB by calls takes longer than a plan may in an emulator, but it has begun.
    let outside = fs::read(guest.file("storage")).unwrap();
    assert!(outside[..64] != [0xa7; 64], "no line was written");
    // For the other tests. Not created anew, because the emulator has mapped it.
    let storage = fs::OpenOptions::new().write(true).open(guest.file("storage")).unwrap();
    storage.write_all_at(&vec![0xa7; outside.len()], 0).unwrap();
}
