//! DMA by an engine that fetches descriptors, with the device file of XDMA and without a driver for it.

use crate::dma::{self, record, state};
use crate::guest::{Guest, Hardware, KERNEL};
use crate::sharing::{Guests, Lent};
use crate::xdma_twin::{Fault, Seen, Twin};
use lanemark_checks::lanemark;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The card of [`xdma_twin`](crate::xdma_twin), and one with memory, the file `memory` on the outside, each in a slot of its own.
const DEVICES: &[&str] = &[
    "-object memory-backend-memfd,id=ram,size=512M,share=on",
    "-machine memory-backend=ram",
    "-device intel-iommu,intremap=on,caching-mode=on",
    "-device pcie-root-port,id=rp1,chassis=1,slot=1,addr=0x2",
    r#"-device {"driver":"vfio-user-pci","bus":"rp1","rombar":0,"socket":{"type":"unix","path":"{folder}/xdma"}}"#,
    "-device pcie-root-port,id=rp2,chassis=2,slot=2,addr=0x3",
    "-object memory-backend-file,id=memory,share=on,mem-path={folder}/memory,size=1M",
    "-device ivshmem-plain,memdev=memory,bus=rp2",
];

/// Address of the card with memory.
const MEMORY: &str = "0000:02:00.0";
/// Initial byte and size of the memory card's BAR.
const BEFORE: u8 = 0xa7;
const MEMORY_BYTES: usize = 1 << 20;

/// Address of the card.
pub const XDMA: &str = "0000:01:00.0";

/// The cards by the socket of their guest.
static TWINS: Mutex<BTreeMap<PathBuf, Twin>> = Mutex::new(BTreeMap::new());

/// A guest with the card, without a fault.
pub fn shared() -> (Lent, Twin) {
    static GUESTS: Guests = Guests::new(|| {
        let hardware = Hardware { packages: KERNEL, devices: DEVICES, kernel: "" };
        Guest::boot(&hardware, &[lanemark(), Path::new(env!("CARGO_BIN_EXE_promises"))], |folder| {
            fs::write(folder.join("memory"), vec![BEFORE; MEMORY_BYTES]).unwrap();
            let socket = folder.join("xdma");
            let twin = Twin::serve(&socket);
            TWINS.lock().unwrap_or_else(PoisonError::into_inner).insert(socket, twin);
        })
    });
    let guest = GUESTS.lend();
    let twins = TWINS.lock().unwrap_or_else(PoisonError::into_inner);
    let twin = twins.get(&guest.file("xdma")).unwrap().clone();
    twin.set(None);
    let _ = twin.seen();
    (guest, twin)
}

/// Writes the device file of XDMA with changes.
fn changed_file(guest: &mut Guest, changes: &[(&str, &str)]) {
    dma::changed_file(guest, "devices/xdma.toml", changes);
}

/// Changes of the file for lists of 256 descriptors, in four blocks.
const LONG_LISTS: [(&str, &str); 3] = [
    ("descriptor_bytes = \"128MiB\"", "descriptor_bytes = 64"),
    ("memory_bytes = \"4KiB\"", "memory_bytes = \"32KiB\""),
    ("most_bytes = \"4KiB\"", "most_bytes = \"16KiB\""),
];

/// Runs `bench` with the changed file, which must fail: its messages.
fn failed(guest: &mut Guest, twin: &Twin, fault: Fault, arguments: &str) -> String {
    twin.set(Some(fault));
    let bench = format!("lanemark bench --on {XDMA} --bind vfio-pci --device mine.toml --budget 0.1 {arguments}");
    let said = guest.run(&bench);
    assert_eq!(said.status, 1, "{fault:?}: {said:?}");
    assert_eq!(state(guest, XDMA), (false, String::new()), "{fault:?}: bus mastering is off");
    twin.set(None);
    assert_eq!(twin.seen().violations, [""; 0], "{fault:?}");
    said.stdout + &said.stderr
}

/// Runs a question, which must succeed: the card works again after an error.
fn works(guest: &mut Guest) {
    record(guest, &format!("--on {XDMA} --device xdma --question dma_read_latency --sizes 64 --budget 0.1"));
}

pub fn a_card_that_fetches_descriptors_answers_questions_about_dma() {
    let (mut guest, twin) = shared();
    let questions = "dma_read_latency,dma_write_bandwidth,dma_read_bandwidth,interrupt_latency,doorbell_to_completion";
    let more = "--sizes 4KiB --budget 0.1 --twin card-gen5-x16-iommu";
    let asked = format!("--on {XDMA} --device xdma --question {questions},dma_read_write_mix {more}");
    let record = record(&mut guest, &asked);
    assert_eq!(state(&mut guest, XDMA), (false, String::new()), "no bus master, and no driver as before");
    let answers = record["answers"].as_array().unwrap();
    for question in questions.split(',') {
        let of = |answer: &&serde_json::Value| answer["question"] == question;
        assert!(answers.iter().any(|answer| of(&answer)), "{question}: {}", record["skipped"]);
        for answer in answers.iter().filter(of) {
            let bytes = &answer["bytes"];
            assert!(bytes["claimed_bytes"].as_u64().is_some_and(|bytes| bytes >= 4096), "{question}: {answer}");
            assert_eq!(bytes["claimed_bytes"], bytes["confirmed_bytes"], "{question}");
            assert_eq!(answer["twin"]["platform"], "card-gen5-x16-iommu", "{question}: {}", record["skipped"]);
        }
    }
    let skipped = record["skipped"].as_array().unwrap();
    let mix: Vec<_> = skipped.iter().filter(|skipped| skipped["question"] == "dma_read_write_mix").collect();
    let because = |mix: &&serde_json::Value| mix["because"].to_string();
    let is_short = |because: String| because.contains("descriptors.memory_bytes must be at least 8KiB");
    assert!(!mix.is_empty() && mix.iter().map(because).all(is_short), "{mix:?}");
    assert!(record.to_string().contains("by descriptors and registers"), "{record}");
    let Seen { descriptors, longest, interrupts, started, violations, .. } = twin.seen();
    assert_eq!((longest, started, violations), (1, [true, false, true, false], vec![]));
    assert!(descriptors > 100 && interrupts[0] > 0 && interrupts[1..] == [0; 3], "{interrupts:?}");
}

pub fn an_engine_with_descriptors_writes_and_reads_the_memory_of_another_card_and_nothing_beside_it() {
    let (mut guest, twin) = shared();
    let questions = "p2p_write_bandwidth,p2p_read_bandwidth,p2p_latency";
    let peer = format!("--peer {MEMORY}:2:4KiB..12KiB --question {questions} --sizes 64,4KiB");
    guest.expect(&format!("lanemark bind {MEMORY}"));
    let asked = format!("--on {XDMA} --device xdma {peer}");
    let dry = guest.expect(&format!("lanemark bench --bind vfio-pci {asked} --dry-run"));
    let words =
        "DMA from 0000:02:00.0: 256 x 4KiB per iteration, at offsets 0x1000 to 0x2fff of BAR2; the end by polling";
    assert!(dry.contains(words), "{dry}");
    let outside = |guest: &Guest| fs::read(guest.file("memory")).unwrap();
    assert!(outside(&guest).iter().all(|byte| *byte == BEFORE), "a dry run has changed the other card");
    let _ = twin.seen();
    let record = record(&mut guest, &format!("{asked} --budget 0.1"));
    guest.expect(&format!("lanemark unbind {MEMORY}"));
    let answers = record["answers"].as_array().unwrap();
    for question in questions.split(',') {
        let of = answers.iter().filter(|answer| answer["question"] == question);
        assert_eq!(of.count(), 2, "{question}: {}", record["skipped"]);
    }
    for answer in answers {
        let bytes = &answer["bytes"];
        assert!(bytes["claimed_bytes"].as_u64() >= answer["size_bytes"].as_u64(), "{answer}");
        assert_eq!(bytes["claimed_bytes"], bytes["confirmed_bytes"], "{answer}");
    }
    let now = outside(&guest);
    assert!(now[4096..12288].iter().any(|byte| *byte != BEFORE), "nothing arrived");
    let mut beside = now[..4096].iter().chain(&now[12288..]);
    assert!(beside.all(|byte| *byte == BEFORE), "bytes beside the named pages have changed");
    let Seen { descriptors, violations, .. } = twin.seen();
    assert!(descriptors > 0 && violations.is_empty(), "{violations:?}");
    changed_file(&mut guest, &[]);
    guest.expect(&format!("lanemark bind {MEMORY}"));
    for question in ["p2p_write_bandwidth", "p2p_read_bandwidth"] {
        let asked = format!("--peer {MEMORY}:2:4KiB..12KiB --question {question} --sizes 4KiB");
        let said = failed(&mut guest, &twin, Fault::LosesBytes, &asked);
        assert!(said.contains("bytes arrived; the figure is invalid"), "{question}: {said}");
    }
    guest.expect(&format!("lanemark unbind {MEMORY}"));
}

pub fn an_engine_with_descriptors_keeps_every_promise() {
    let (mut guest, twin) = shared();
    dma::keeps_every_promise(&mut guest, XDMA, "xdma");
    assert_eq!(twin.seen().violations, [""; 0]);
}

/// The second engine of the card.
const SECOND_ENGINE: &str = r#"
schema = 1
name = "second"
summary = "An engine in a BAR that is shorter than a page"
source = "checks/tests/guest/xdma_twin.rs"
[id]
vendor = 0x10ee
device = 0x9038
[[bar]]
number = 3
len_bytes = 256
[engine]
bar = 3
register_bytes = 8
source_register = 0x0
destination_register = 0x8
count_register = 0x10
command_register = 0x18
to_device_command = 0x1
to_host_command = 0x3
done_register = 0x18
done_mask = 0x1
done_value = 0x0
address_bits = 32
memory_start = 0
memory_bytes = "4KiB"
most_bytes = "4KiB"
alignment_bytes = 1
longest_ms = 2000
"#;

pub fn registers_in_a_page_that_another_bar_shares_are_accessed_by_system_calls() {
    let (mut guest, twin) = shared();
    guest.expect(&format!("cat >second.toml <<'END'\n{SECOND_ENGINE}END"));
    let asked = "--device second.toml --question dma_read_latency,dma_write_bandwidth --sizes 64,4KiB --budget 0.1";
    let calls = "registers of the engine by system calls, because their pages cannot be mapped";
    let run = |guest: &mut Guest, are_called: bool| {
        let record = record(guest, &format!("--on {XDMA} {asked}"));
        let answers = record["answers"].as_array().unwrap();
        assert!(answers.len() == 4 && answers.iter().all(|answer| answer["bytes"].is_object()), "{record}");
        for answer in answers {
            assert_eq!(answer["bytes"]["claimed_bytes"], answer["bytes"]["confirmed_bytes"], "{answer}");
        }
        let summary = record["targets"][0]["summary"].to_string();
        assert_eq!(summary.contains(calls), are_called, "{summary}");
        let Seen { second_widths, violations, .. } = twin.seen();
        // Linux 6.1 splits a system call into accesses of 4 B.
        assert_eq!(second_widths, BTreeSet::from([if are_called { 4 } else { 8 }]));
        assert_eq!(violations, [""; 0]);
    };
    // The firmware gives each BAR its own page, and the kernel does not.
    run(&mut guest, false);
    guest.expect(&format!("echo 1 >/sys/bus/pci/devices/{XDMA}/remove; echo 1 >/sys/bus/pci/rescan"));
    let starts = guest.expect(&format!("sed -n 3,4p /sys/bus/pci/devices/{XDMA}/resource | cut -c 1-15"));
    let pages: BTreeSet<&str> = starts.lines().collect();
    assert_eq!(pages.len(), 1, "both BARs are in one page: {starts}");
    run(&mut guest, true);
}

pub fn lists_of_several_pages_end_in_memory_in_a_register_and_by_an_interrupt_of_any_vector() {
    let (mut guest, twin) = shared();
    let questions = "dma_write_bandwidth,interrupt_latency";
    let asked = format!("--on {XDMA} --device mine.toml --question {questions} --sizes 16KiB --budget 0.1");
    for (polled, channel, vector, kind) in
        [("write-back", 0, 1, "msi"), ("status", 1, 3, "msi-x"), ("write-back", 0, 0, "msi-x")]
    {
        let (polled, vector_line) = (format!("polled = \"{polled}\""), format!("vector = {vector}"));
        let (channel_line, kind_line) = (format!("channel = {channel}"), format!("kind = \"{kind}\""));
        let more = [
            ("polled = \"write-back\"", &*polled),
            ("channel = 0", &channel_line),
            ("vector = 0", &vector_line),
            ("kind = \"msi\"", &kind_line),
        ];
        changed_file(&mut guest, &[LONG_LISTS.as_slice(), &more].concat());
        let record = record(&mut guest, &asked);
        for answer in record["answers"].as_array().unwrap() {
            assert_eq!(answer["bytes"]["claimed_bytes"], answer["bytes"]["confirmed_bytes"], "{polled}: {answer}");
        }
        assert_eq!(record["answers"].as_array().unwrap().len(), 2, "{polled}: {}", record["skipped"]);
        let Seen { longest, descriptors, fetches, interrupts, by_msix, started, violations, .. } = twin.seen();
        assert_eq!((longest, violations), (256, vec![]), "{polled}");
        assert_eq!(by_msix, if kind == "msi-x" { interrupts.iter().sum() } else { 0 }, "{kind}");
        // 256 descriptors are four blocks of 64.
        assert_eq!(fetches, descriptors / 64, "{polled}");
        let used: Vec<usize> = (0..4).filter(|nth| interrupts[*nth] > 0).collect();
        assert_eq!((used, started.map(usize::from)[channel]), (vec![vector], 1), "{polled}");
    }
}

pub fn both_directions_move_data_at_once_and_all_of_their_bytes_are_compared() {
    let (mut guest, twin) = shared();
    let asked = "--device mine.toml --question dma_read_write_mix --sizes 64,16KiB --budget 0.1";
    for polled in ["write-back", "status"] {
        let polled_line = format!("polled = \"{polled}\"");
        changed_file(&mut guest, &[LONG_LISTS.as_slice(), &[("polled = \"write-back\"", &*polled_line)]].concat());
        let record = record(&mut guest, &format!("--on {XDMA} {asked}"));
        let answers = record["answers"].as_array().unwrap();
        assert_eq!(answers.len(), 2, "{polled}: {}", record["skipped"]);
        for answer in answers {
            let bytes = &answer["bytes"];
            // The last iteration of writes, and the last read.
            assert!(bytes["claimed_bytes"].as_u64() >= answer["size_bytes"].as_u64().map(|size| 2 * size), "{answer}");
            assert_eq!(bytes["claimed_bytes"], bytes["confirmed_bytes"], "{answer}");
        }
        let Seen { longest, started, violations, .. } = twin.seen();
        assert_eq!((longest, started, violations), (256, [true, false, true, false], vec![]), "{polled}");
    }
    twin.set(Some(Fault::StartsLate));
    for (question, is_at_once) in [("dma_read_write_mix", true), ("dma_write_bandwidth", false)] {
        let asked = format!("--on {XDMA} --device mine.toml --question {question} --sizes 16KiB --budget 0.1");
        record(&mut guest, &asked);
        let Seen { at_once, violations, .. } = twin.seen();
        assert_eq!((at_once > 0, violations), (is_at_once, vec![]), "{question}: {at_once}");
    }
    twin.set(None);
}

pub fn bytes_that_the_engine_loses_or_writes_beside_a_transfer_are_found() {
    let (mut guest, twin) = shared();
    changed_file(&mut guest, &[LONG_LISTS[1], LONG_LISTS[2]]);
    for question in ["dma_write_bandwidth", "dma_read_latency", "dma_read_write_mix"] {
        let said = failed(&mut guest, &twin, Fault::LosesBytes, &format!("--question {question} --sizes 4KiB"));
        assert!(said.contains("bytes arrived; the figure is invalid"), "{question}: {said}");
    }
    for polled in ["write-back", "status"] {
        let polled_line = format!("polled = \"{polled}\"");
        changed_file(&mut guest, &[LONG_LISTS.as_slice(), &[("polled = \"write-back\"", &*polled_line)]].concat());
        for question in ["dma_write_bandwidth", "interrupt_latency"] {
            let said = failed(&mut guest, &twin, Fault::StopsEarly, &format!("--question {question} --sizes 4KiB"));
            assert!(
                said.contains("the engine counts 1 of 64 descriptors as completed"),
                "{polled}, {question}: {said}"
            );
        }
    }
    changed_file(&mut guest, &LONG_LISTS);
    // Only DMA writes are tested: bytes of a DMA read beyond the transfer go to memory of the card that nothing compares.
    let said = failed(&mut guest, &twin, Fault::MovesMore, "--question interrupt_latency --sizes 64");
    assert!(said.contains("DMA has changed the byte at offset"), "{said}");
}

pub fn an_engine_that_hangs_or_sends_no_interrupt_is_a_timeout_with_its_name() {
    let (mut guest, twin) = shared();
    changed_file(&mut guest, &[("longest_ms = 1000", "longest_ms = 300")]);
    for (fault, question, words) in [
        (Fault::Hangs, "dma_read_latency", "the word in host memory that shows the end of a transfer"),
        (Fault::Hangs, "dma_read_write_mix", "the word in host memory that shows the end of a transfer"),
        (Fault::SendsNoInterrupt, "interrupt_latency", "the interrupt at the end of a transfer"),
    ] {
        let said = failed(&mut guest, &twin, fault, &format!("--question {question} --sizes 64"));
        assert!(said.contains(words) && said.contains("descriptors.longest_ms"), "{fault:?}: {said}");
    }
    works(&mut guest);
}

pub fn errors_that_the_engine_logs_end_a_run_with_their_words() {
    let (mut guest, twin) = shared();
    changed_file(&mut guest, &[]);
    for (fault, words) in [
        (Fault::DropsAddressBits, "error of the fetch of a descriptor"),
        (Fault::SeesNoMagic, "descriptor without magic number"),
        (Fault::NeedsAlignment, "source and destination not aligned to each other"),
    ] {
        let said = failed(&mut guest, &twin, fault, "--question dma_read_latency --sizes 8");
        assert!(said.contains("the engine ended with status 0x") && said.contains(words), "{fault:?}: {said}");
    }
    changed_file(&mut guest, &[("alignment_bytes = 1", "alignment_bytes = 64")]);
    twin.set(Some(Fault::NeedsAlignment));
    let said = record(
        &mut guest,
        &format!("--on {XDMA} --device mine.toml --question dma_read_latency --sizes 8,64 --budget 0.1"),
    );
    twin.set(None);
    assert_eq!(said["answers"].as_array().unwrap().len(), 1, "{}", said["skipped"]);
    assert!(said["skipped"].to_string().contains("multiples of 64 B"), "{}", said["skipped"]);
    assert_eq!(said["answers"][0]["bytes"], json!({ "claimed_bytes": 64, "confirmed_bytes": 64 }));
}

pub fn another_engine_at_these_registers_is_refused_before_a_store() {
    let (mut guest, twin) = shared();
    changed_file(&mut guest, &[]);
    let _ = twin.seen();
    twin.set(Some(Fault::Streams));
    let bench = format!("lanemark bench --on {XDMA} --bind vfio-pci --device mine.toml --question dma_read_latency");
    let said = guest.run(&bench);
    assert_eq!(said.status, 1, "{said:?}");
    assert!(said.stderr.contains("the register at 0x0 is 0x1fc08006"), "{said:?}");
    assert_eq!(twin.seen(), Seen::default(), "no store");
    twin.set(None);
    // A wrong file is refused before the card is bound.
    for (from, to, words) in [
        ("bar = 0\nchannel", "bar = 2\nchannel", "descriptors.bar: BAR2 has no section [[bar]]"),
        ("device = 0x9038", "device = 0x9039", "its device is 0x9038"),
        ("len_bytes = \"64KiB\"", "len_bytes = \"128KiB\"", "BAR0 has 0x10000 B"),
    ] {
        changed_file(&mut guest, &[(from, to)]);
        let said = guest.run(&bench);
        assert!(said.status != 0 && said.stderr.contains(words), "{words}: {said:?}");
        assert_eq!(state(&mut guest, XDMA), (false, String::new()));
    }
    assert_eq!(twin.seen(), Seen::default());
}

pub fn a_dry_run_lists_layout_lists_and_interrupt_and_touches_no_register() {
    let (mut guest, twin) = shared();
    let bench = format!("lanemark bench --on {XDMA} --bind vfio-pci --device xdma --sizes 4KiB --dry-run");
    let said = guest.expect(&format!("{bench} --question dma_read_latency,interrupt_latency"));
    for words in [
        "layout xdma, channel 0 of each direction, registers in BAR0",
        "lists of at most 1 descriptors, each of at most 128MiB, in host memory; end of a transfer: a word in host memory",
        "interrupt: MSI vector 0, enabled and routed by the registers of the IRQ block",
        "memory of the card at 0x0, 4KiB: overwritten",
        "range 0:12KiB..12292B:registers",
        "DMA from host memory: 16 x 4KiB per iteration",
        "dry run, nothing was accessed",
    ] {
        assert!(said.contains(words), "{words}:\n{said}");
    }
    assert_eq!(twin.seen(), Seen::default());
}
