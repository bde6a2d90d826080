//! A card with AMD's XDMA core, through its driver: a module with the same files and errors, on memory of the kernel.

use crate::dma;
use crate::guest::{Guest, Hardware, KERNEL};
use crate::module::build;
use crate::sharing::{Guests, Lent};
use lanemark_checks::conformance::PROMISES;
use lanemark_checks::{lanemark, root};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The card whose driver is the twin.
const DEVICES: &[&str] = &[
    "-device intel-iommu,intremap=on,caching-mode=on",
    "-device pcie-root-port,id=rp1,chassis=1,slot=1,addr=0x2,x-speed=8,x-width=8",
    "-device edu,id=card,bus=rp1,dma_mask=0xffffffff",
];

const CARD: &str = "xdma:/dev/xdma0";
const FUNCTION: &str = "0000:01:00.0";
/// The memory of the card, and what a test gives away of it.
const GIVEN: &str = "--card-memory 0x20000..0x60000";

fn boot() -> Guest {
    static TWIN: OnceLock<PathBuf> = OnceLock::new();
    let twin = TWIN.get_or_init(|| build(&root().join("checks/guest/xdma"), "xdma").expect("headers of the kernel"));
    let programs: [&Path; 3] = [lanemark(), twin, Path::new(env!("CARGO_BIN_EXE_promises"))];
    let mut guest = Guest::boot(&Hardware { packages: KERNEL, devices: DEVICES, kernel: "" }, &programs, |_| ());
    guest.expect("insmod /bin/xdma.ko from=0x20000 to=0x60000; ls /dev/xdma0_h2c_0 /dev/xdma0_c2h_1");
    guest
}

/// A guest that these tests share.
pub fn shared() -> Lent {
    static GUESTS: Guests = Guests::new(boot);
    GUESTS.lend()
}

/// Sets a parameter of the driver while `then` runs.
fn with<T>(guest: &mut Guest, parameter: &str, value: &str, then: impl FnOnce(&mut Guest) -> T) -> T {
    let file = format!("/sys/module/xdma/parameters/{parameter}");
    let before = guest.expect(&format!("cat {file}; echo {value} >{file}"));
    let done = then(guest);
    guest.expect(&format!("echo {} >{file}", before.trim()));
    done
}

fn record(guest: &mut Guest, arguments: &str) -> Value {
    guest.expect(&format!("lanemark bench --on {CARD} {arguments} --record xdma.json >/dev/null"));
    serde_json::from_str(&guest.expect("cat xdma.json")).unwrap()
}

/// Number of bytes outside of the addresses that were given away which were touched.
fn beyond(guest: &mut Guest) -> String {
    guest.expect("cat /sys/module/xdma/parameters/beyond").trim().to_owned()
}

pub fn a_card_reads_and_writes_host_memory_and_only_addresses_that_are_given_away() {
    let mut guest = shared();
    let questions = "dma_read_bandwidth,dma_write_bandwidth,dma_read_write_mix,dma_read_latency,doorbell_to_completion,\
                     interrupt_latency";
    let found = record(&mut guest, &format!("{GIVEN} --question {questions} --sizes 64,100,4KiB,128KiB --budget 0.3"));
    let answers = found["answers"].as_array().unwrap();
    for answer in answers {
        let (claimed, confirmed) = (&answer["bytes"]["claimed_bytes"], &answer["bytes"]["confirmed_bytes"]);
        assert!(claimed == confirmed && claimed.as_u64() >= answer["size_bytes"].as_u64(), "{answer}");
    }
    assert!(answers.iter().any(|answer| kept(answer) > 0), "no sample was kept");
    for question in ["dma_read_bandwidth", "dma_write_bandwidth", "dma_read_write_mix", "dma_read_latency"] {
        for size in [64, 100, 4096, 128 << 10] {
            let has = |answer: &&Value| answer["question"] == question && answer["size_bytes"] == size;
            assert!(answers.iter().any(|answer| has(&answer)), "{question} {size}: {}", found["skipped"]);
        }
    }
    for (question, because) in [("doorbell_to_completion", "a whole call"), ("interrupt_latency", "no transfer raises")]
    {
        assert!(answers.iter().all(|answer| answer["question"] != question));
        let skipped = found["skipped"].as_array().unwrap();
        let is_it = |one: &&Value| one["question"] == question && one["because"].to_string().contains(because);
        assert!(skipped.iter().any(|one| is_it(&one)), "{question}: {}", found["skipped"]);
    }
    assert_eq!(beyond(&mut guest), "0");
    let target = &found["targets"][0];
    assert_eq!((&target["name"], &target["kind"]), (&CARD.into(), &"emulated".into()));
    assert_eq!((&target["card"]["id"], &target["card"]["driver"]), (&"1234:11e8".into(), &"xdma".into()), "{target}");
    let summary = target["summary"].to_string();
    assert!(summary.contains("xdma0 (0000:01:00.0) with 2 h2c and 2 c2h channels"), "{summary}");
    assert!(found["warnings"].to_string().contains("every transfer is a call of the driver"), "{}", found["warnings"]);
    assert!(target["card"]["links"].as_array().is_some_and(|links| !links.is_empty()), "{target}");
}

pub fn a_card_behind_amds_driver_keeps_every_promise() {
    let mut guest = shared();
    let said = guest.run("promises xdma /dev/xdma0 0x20000..0x60000");
    assert_eq!(said.status, 0, "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.ends_with(&format!("{} passed, 0 failed\n", PROMISES.len())), "{}", said.stdout);
    assert_eq!(beyond(&mut guest), "0");
}

/// Number of samples of an answer that were kept.
fn kept(answer: &Value) -> usize {
    answer["raw"][0]["issue_ns"].as_array().map_or(0, Vec::len)
}

pub fn several_channels_move_their_shares_at_once() {
    let mut guest = shared();
    let asked = format!("{GIVEN} --question dma_read_bandwidth,dma_write_bandwidth --sizes 64KiB --budget 1");
    // The guest has one core: transfers that take a while leave it to the other channel, as those of a card do.
    let most = "/sys/module/xdma/parameters/most_at_once";
    guest.expect(&format!("echo 0 >{most}"));
    let found = with(&mut guest, "delay_ms", "1", |guest| record(guest, &format!("{asked} --channels 2")));
    for answer in found["answers"].as_array().unwrap() {
        assert_eq!(answer["bytes"]["claimed_bytes"], answer["bytes"]["confirmed_bytes"], "{answer}");
        assert!(answer["bytes"]["claimed_bytes"].as_u64() > Some(64 << 10), "{answer}");
    }
    let kept: Vec<usize> = found["answers"].as_array().unwrap().iter().map(kept).collect();
    assert!(kept.len() == 2 && kept.iter().any(|kept| *kept > 0), "samples {kept:?}: {}", found["skipped"]);
    assert_eq!((beyond(&mut guest).as_str(), guest.expect(&format!("cat {most}")).trim()), ("0", "2"));
    let said = guest.run(&format!("lanemark bench --on {CARD} {asked} --channels 3"));
    assert!(said.status == 77 && said.stderr.contains("the design has 2 of each direction"), "{said:?}");
}

pub fn bytes_that_the_card_stores_elsewhere_or_not_at_all_are_not_confirmed() {
    let mut guest = shared();
    let asked = format!("lanemark bench --on {CARD} {GIVEN} --question dma_read_bandwidth --sizes 4KiB --budget 0.2");
    let bytes = |guest: &mut Guest| {
        guest.run(&format!("{asked} --record bytes.json"));
        let record: Value = serde_json::from_str(&guest.expect("cat bytes.json")).unwrap();
        let bytes = record["answers"][0]["bytes"].clone();
        (bytes["claimed_bytes"].as_u64().unwrap(), bytes["confirmed_bytes"].as_u64().unwrap())
    };
    // The bytes of an earlier run are still on the card.
    let (claimed, confirmed) = bytes(&mut guest);
    assert_eq!(claimed, confirmed);
    for (fault, value) in [("shift_bytes", "64"), ("loses", "1")] {
        let (claimed, confirmed) = with(&mut guest, fault, value, bytes);
        assert!(confirmed < claimed / 2, "{fault}: {confirmed} of {claimed}");
    }
}

pub fn errors_of_the_driver_end_a_run_with_the_file_and_a_remedy() {
    let mut guest = shared();
    let mut ends = |parameter: &str, value: &str, given: &str, words: &str| {
        let asked =
            format!("lanemark bench --on {CARD} {given} --question dma_write_bandwidth --sizes 4KiB --budget 0.2");
        let said = with(&mut guest, parameter, value, |guest| guest.run(&asked));
        assert!(said.status == 1 && said.stderr.contains(words), "{words}: {said:?}");
    };
    ends(
        "most_bytes",
        "1000",
        GIVEN,
        "/dev/xdma0_c2h_0: 4KiB at 0x20000 of the card: the driver has moved 1000 B only",
    );
    ends(
        "beat_bytes",
        "128",
        "--card-memory 0x20040..0x60000",
        "of the card: the driver refuses the address or the length",
    );
    ends("gives_up", "1", GIVEN, "of the card: the driver has given up the transfer after its time limit");
    ends("poll_mode", "0", "--card-memory 0..0x10000", "at 0x0 of the card: the driver reports 'Input/output error");
}

pub fn a_card_without_a_range_of_its_memory_and_other_paths_are_refused() {
    let mut guest = shared();
    let mut refused = |arguments: &str, status: i32, words: &str| {
        let said = guest.run(&format!("lanemark bench {arguments} --question dma_write_bandwidth --sizes 4KiB"));
        assert!(said.status == status && said.stderr.contains(words), "{words}: {said:?}");
    };
    refused(&format!("--on {CARD}"), 2, "with --card-memory FROM..TO");
    refused(&format!("--on xdma:/dev/xdma1 {GIVEN}"), 2, "/dev/xdma1 has no channel");
    refused(&format!("--on xdma:/dev/xdma0_h2c_0 {GIVEN}"), 2, "here xdma:/dev/xdma0");
    refused(&format!("--on {CARD} --card-memory 32..4096"), 2, "multiple of 64 B");
    refused(&format!("--on host {GIVEN}"), 2, "applies to cards with the driver xdma only");
    refused(&format!("--on {CARD} {GIVEN} --device edu"), 2, "applies to cards only");
    refused(&format!("--on {CARD} --card-memory 0x20000..0x20400"), 77, "make it at least");
    let limit = "/sys/module/xdma/parameters/c2h_timeout";
    guest.expect(&format!("echo 0 >{limit}"));
    let said = guest.run(&format!("lanemark bench --on {CARD} {GIVEN} --question dma_write_bandwidth"));
    guest.expect(&format!("echo 10 >{limit}"));
    assert!(said.status == 77 && said.stderr.contains("its driver waits without limit (c2h_timeout=0)"), "{said:?}");
    let said = guest.run_as_somebody("lanemark", &format!("bench --on {CARD} {GIVEN} --question dma_write_bandwidth"));
    assert!(said.status == 77 && said.stderr.contains("permission denied: run as root"), "{said:?}");
}

/// Two registers of the user BAR, which is BAR0 of edu.
const REGISTERS: &str = "--bar 0:0..8:registers:write";

pub fn registers_of_the_user_bar_are_loaded_and_stored_to_through_the_drivers_file() {
    let mut guest = shared();
    let questions = "--question mmio_read_latency,mmio_write_bandwidth,dma_write_bandwidth --sizes 4,64 --budget 0.2";
    let found = record(&mut guest, &format!("{REGISTERS} {questions}"));
    let answers = found["answers"].as_array().unwrap();
    assert!(answers.iter().any(|answer| answer["question"] == "mmio_read_latency"), "{}", found["skipped"]);
    let card = &found["targets"][0]["card"];
    assert_eq!((&card["mappings"][0]["file"], &card["driver"]), (&"/dev/xdma0_user".into(), &"xdma".into()), "{card}");
    assert_eq!(
        (&card["ranges"][0]["kind"], &card["was_enabled"]),
        (&"registers:write".into(), &false.into()),
        "{card}"
    );
    let skipped = found["skipped"].to_string();
    assert!(skipped.contains("name them with --card-memory"), "{skipped}");
    let found = record(&mut guest, &format!("{GIVEN} {REGISTERS} {questions}"));
    for question in ["mmio_read_latency", "dma_write_bandwidth"] {
        let answers = found["answers"].as_array().unwrap();
        assert!(answers.iter().any(|answer| answer["question"] == question), "{question}: {}", found["skipped"]);
    }
    assert_eq!(beyond(&mut guest), "0");
}

pub fn a_range_that_is_not_in_a_user_bar_is_refused() {
    let mut guest = shared();
    let mut refused = |arguments: &str, status: i32, words: &str| {
        let said = guest.run(&format!("lanemark bench {arguments} --question mmio_read_latency --sizes 4"));
        assert!(said.status == status && said.stderr.contains(words), "{words}: {said:?}");
    };
    refused(&format!("--on {CARD} --bar 1:0..4KiB"), 2, "has no BAR1");
    refused(&format!("--on {CARD} --bar 0:0..2MiB"), 2, "BAR0");
    refused(&format!("--on {CARD} --on {FUNCTION} --i-own-this-device --bar 0:0..8"), 2, "several cards");
    let again = |user: &str| {
        let drivers = "/sys/bus/pci/drivers/xdma";
        let set = format!("echo {user} >/sys/module/xdma/parameters/has_user");
        format!("{set}; echo {FUNCTION} >{drivers}/unbind; echo {FUNCTION} >{drivers}/bind")
    };
    guest.expect(&again("0"));
    let said = guest.run(&format!("lanemark bench --on {CARD} {REGISTERS} --question mmio_read_latency --sizes 4"));
    guest.expect(&again("1"));
    assert!(said.status == 77 && said.stderr.contains("this design has no user BAR"), "{said:?}");
}

pub fn a_dry_run_lists_the_calls_and_makes_none() {
    let mut guest = shared();
    let asked = format!("bench --on {CARD} {GIVEN} --question dma_read_write_mix --sizes 4KiB --dry-run");
    // Not even the permission to open a channel is needed.
    let said = guest.run_as_somebody("lanemark", &asked);
    assert_eq!(said.status, 0, "{said:?}");
    for words in [
        "0000:01:00.0 (1234:11e8)",
        "opened and locked: /dev/xdma0_h2c_0, /dev/xdma0_h2c_1, /dev/xdma0_c2h_0, /dev/xdma0_c2h_1, of",
        "locked for the run, so that a second Lanemark process is refused: /sys/bus/pci/devices/0000:01:00.0/config",
        "overwritten: addresses 0x20000 to 0x5ffff of the card; no others are read or written",
        "DMA reads by pwrite to h2c channel 0: 256 x 4KiB per iteration",
        "DMA writes by pread from c2h channel 0: 256 x 4KiB per iteration",
        "dry run, nothing was accessed",
    ] {
        assert!(said.stdout.contains(words), "{words}:\n{}", said.stdout);
    }
}

pub fn a_dry_run_lists_loads_from_the_user_bar_and_makes_none() {
    let mut guest = shared();
    let asked = format!("bench --on {CARD} {REGISTERS} --question mmio_read_latency --sizes 4 --dry-run");
    let said = guest.run_as_somebody("lanemark", &asked);
    assert_eq!(said.status, 0, "{said:?}");
    for words in ["range 0:0..8B:registers:write", "/dev/xdma0_user", "dry run, nothing was accessed"] {
        assert!(said.stdout.contains(words), "{words}:\n{}", said.stdout);
    }
    assert!(!said.stdout.contains("overwritten"), "{}", said.stdout);
}

/// Starts a run that takes minutes, and waits until it moves bytes.
fn running(guest: &mut Guest) {
    let asked = format!("{GIVEN} --question dma_write_bandwidth --sizes 4KiB --full --budget 900");
    guest.expect("rm -f status");
    guest.expect(&format!("(lanemark bench --on {CARD} {asked} >said 2>&1; echo $? >status) >/dev/null 2>&1 &"));
    let opened = "ls -l /proc/$(pidof lanemark)/fd 2>/dev/null | grep -q xdma0_c2h_1";
    guest.expect(&format!("for i in $(seq 300); do {opened} && exit 0; sleep 0.1; done; cat said; exit 1"));
    guest.expect("sleep 1; [ ! -s status ] || { cat said; exit 1; }");
}

/// The exit status of that run, and its output.
fn ended(guest: &mut Guest) -> (String, String) {
    guest.expect("for i in $(seq 600); do [ -s status ] && exit 0; sleep 0.1; done; ps; cat said; exit 1");
    (guest.expect("cat status").trim().to_owned(), guest.expect("cat said"))
}

pub fn a_second_program_is_refused_and_a_killed_one_leaves_no_lock() {
    let mut guest = shared();
    running(&mut guest);
    let asked = format!("lanemark bench --on {CARD} {GIVEN} --question dma_write_bandwidth --sizes 4KiB --budget 0.1");
    let said = guest.run(&asked);
    assert!(said.status == 77 && said.stderr.contains("another program measures this card"), "{said:?}");
    guest.expect("kill -9 $(pidof lanemark)");
    assert_eq!(ended(&mut guest).0, "137");
    let said = guest.run(&asked);
    assert_eq!(said.status, 0, "{said:?}");
}

pub fn a_signal_within_a_call_ends_transfers_by_the_driver() {
    let mut guest = shared();
    let (status, said) = with(&mut guest, "delay_ms", "300", |guest| {
        running(guest);
        guest.expect("kill -INT $(pidof lanemark)");
        ended(guest)
    });
    assert_eq!(status, "130", "{said}");
}

pub fn unbinding_the_driver_ends_a_run_with_the_name_of_the_card() {
    let mut guest = shared();
    let (status, said) = with(&mut guest, "delay_ms", "300", |guest| {
        running(guest);
        guest.expect(&format!("echo {FUNCTION} >/sys/bus/pci/drivers/xdma/unbind"));
        ended(guest)
    });
    assert!(status == "1" && said.contains(&format!("{CARD}: the card is gone")), "{status} {said}");
    let after = guest.run(&format!("lanemark bench --on {CARD} {GIVEN}"));
    assert!(after.status == 2 && after.stderr.contains("this machine has none"), "{after:?}");
    guest.expect(&format!("echo {FUNCTION} >/sys/bus/pci/drivers/xdma/bind"));
}

pub fn removing_a_card_ends_a_run_with_the_name_of_the_card() {
    let mut guest = shared();
    let (status, said) = with(&mut guest, "delay_ms", "300", |guest| {
        running(guest);
        guest.monitor("device_del card");
        ended(guest)
    });
    assert!(status == "1" && said.contains(&format!("{CARD}: the card is gone")), "{status} {said}");
    dma::plugged_again(&mut guest, FUNCTION, "edu,id=card,bus=rp1,dma_mask=0xffffffff");
    guest.expect("for i in $(seq 300); do [ -e /dev/xdma0_c2h_1 ] && exit 0; sleep 0.1; done; exit 1");
}
