//! An NVMe drive behind VFIO: reads by its own queues, compared with the image behind it.

use crate::dma::PINNED;
use crate::guest::{Guest, Hardware, usual_kernel};
use crate::sharing::{Guests, Lent};
use lanemark_checks::conformance::PROMISES;
use lanemark_checks::lanemark;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Devices of the guest for drives:
///
/// | address | device |
/// | --- | --- |
/// | 00:05.0 | nvme with logical blocks of 512 B: 8 MiB, the file `image` on the outside; its controller memory buffer, in BAR2, has an address of its own (CMBMSC) |
/// | 00:06.0 | nvme with logical blocks of 4 KiB and commands of up to 2 MiB: 2 MiB, the file `small` on the outside; BAR2 is a controller memory buffer as before NVMe 1.4 |
/// | 00:07.0 | nvme without a namespace and without a controller memory buffer |
/// | 00:08.0 | nvme whose logical blocks have metadata, so it cannot be identified |
/// | 00:09.0 | nvme with two I/O queue pairs and one MSI-X vector, whose first namespace may be overwritten: 8 MiB, the file `lost` on the outside; the second one, 1 MiB, is `kept` |
const DEVICES: &[&str] = &[
    "-device intel-iommu,intremap=on,caching-mode=on",
    "-drive if=none,id=image,format=raw,file={folder}/image",
    "-device nvme,addr=0x5,serial=first,drive=image,cmb_size_mb=1",
    "-drive if=none,id=small,format=raw,file={folder}/small",
    "-device nvme,addr=0x6,serial=second,drive=small,logical_block_size=4096,physical_block_size=4096,cmb_size_mb=1,legacy-cmb=on,mdts=9",
    "-device nvme,addr=0x7,serial=third",
    "-device nvme,id=fourth,addr=0x8,serial=fourth",
    "-drive if=none,id=metadata,format=raw,file={folder}/metadata",
    "-device nvme-ns,bus=fourth,drive=metadata,ms=8",
    "-drive if=none,id=lost,format=raw,file={folder}/lost",
    "-device nvme,id=fifth,addr=0x9,serial=fifth,cmb_size_mb=1,max_ioqpairs=2,msix_qsize=1",
    "-device nvme-ns,bus=fifth,drive=lost,nsid=1",
    "-drive if=none,id=kept,format=raw,file={folder}/kept",
    "-device nvme-ns,bus=fifth,drive=kept,nsid=2",
];

pub const DRIVE: &str = "0000:00:05.0";
pub const SMALL: &str = "0000:00:06.0";
pub const EMPTY: &str = "0000:00:07.0";
const UNIDENTIFIED: &str = "0000:00:08.0";
pub const LOST: &str = "0000:00:09.0";

/// Bytes of an image: each word of 8 B is different.
pub fn image(bytes: usize) -> Vec<u8> {
    (0..bytes as u64 / 8).flat_map(|word| word.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).collect()
}

/// Bytes of the second namespace, which differ from those of the first one.
fn kept() -> Vec<u8> {
    image(1 << 20).iter().map(|byte| !byte).collect()
}

pub const IMAGE: usize = 8 << 20;
const SMALL_IMAGE: usize = 2 << 20;

/// A guest that the tests of drives share.
pub fn shared() -> Lent {
    static GUESTS: Guests = Guests::new(|| {
        let hardware = Hardware { packages: usual_kernel(), devices: DEVICES, kernel: "" };
        let (read, promises) = (env!("CARGO_BIN_EXE_read-drive"), env!("CARGO_BIN_EXE_promises"));
        let programs = [lanemark(), Path::new(read), Path::new(promises)];
        Guest::boot(&hardware, &programs, |folder| {
            fs::write(folder.join("image"), image(IMAGE)).unwrap();
            fs::write(folder.join("small"), image(SMALL_IMAGE)).unwrap();
            fs::write(folder.join("metadata"), image(1 << 20)).unwrap();
            fs::write(folder.join("lost"), image(IMAGE)).unwrap();
            fs::write(folder.join("kept"), kept()).unwrap();
        })
    });
    GUESTS.lend()
}

/// Whether a function may be bus master, and its driver.
fn state(guest: &mut Guest, function: &str) -> (bool, String) {
    let folder = format!("/sys/bus/pci/devices/{function}");
    let command = guest.expect(&format!("xxd -s 4 -l 1 -p {folder}/config"));
    let command = u8::from_str_radix(command.trim(), 16).unwrap();
    let driver = guest.expect(&format!("basename $(readlink {folder}/driver)"));
    (command & 4 != 0, driver.trim().to_owned())
}

/// A bench of a drive that is bound for it, which must succeed: its record.
pub fn record(guest: &mut Guest, arguments: &str) -> Value {
    guest.expect(&format!("lanemark bench --bind vfio-pci {arguments} --record drive.json >/dev/null"));
    serde_json::from_str(&guest.expect("cat drive.json")).unwrap()
}

/// Binds a drive to VFIO while `then` runs.
pub fn behind_vfio(guest: &mut Guest, drive: &str, then: impl FnOnce(&mut Guest)) {
    guest.expect(&format!("lanemark bind {drive}"));
    then(guest);
    assert_eq!(state(guest, drive), (false, "vfio-pci".to_owned()), "no bus master after a run");
    guest.expect(&format!("lanemark unbind {drive}"));
}

pub fn reads_of_every_size_and_depth_return_the_bytes_of_the_image() {
    let mut guest = shared();
    // The kernel's view of the same drive, by its own driver.
    guest.expect("dd if=/dev/nvme0n1 of=kernel bs=1M count=2 2>/dev/null; dd if=kernel of=middle bs=512 skip=7 count=512 2>/dev/null");
    behind_vfio(&mut guest, DRIVE, |guest| {
        for (command_bytes, depth) in
            [(512, 1), (4096, 2), (4608, 3), (8192, 4), (12288, 5), (65536, 6), (131_072, 7), (524_288, 8)]
        {
            let count = command_bytes * 4;
            guest.expect(&format!("read-drive {DRIVE} 0 {count} {command_bytes} {depth} >read && dd if=kernel bs=512 count={} 2>/dev/null | cmp - read", count / 512));
        }
        for depth in 1..=8 {
            guest.expect(&format!("read-drive {DRIVE} 3584 262144 512 {depth} >read && cmp middle read"));
        }
        let block = guest.expect(&format!("read-drive {DRIVE} {} 512 512 1 | xxd -p | tr -d '\\n'", IMAGE - 512));
        let block: Vec<u8> = (0..512).map(|n| u8::from_str_radix(&block[2 * n..2 * n + 2], 16).unwrap()).collect();
        assert!(block == image(IMAGE)[IMAGE - 512..], "the last block");
    });
    assert!(fs::read(guest.file("image")).unwrap() == image(IMAGE), "the drive was written to");
}

pub fn a_read_beyond_the_end_is_refused_by_the_drive_with_its_status() {
    let mut guest = shared();
    behind_vfio(&mut guest, DRIVE, |guest| {
        let said = guest.run(&format!("read-drive {DRIVE} {IMAGE} 512 512 1"));
        let words = "the drive refused the command Read: LBA Out of Range (SCT 0x0, SC 0x80)";
        assert!(said.status == 1 && said.stderr.contains(words), "{said:?}");
        let said = guest.run(&format!("read-drive {DRIVE} 0 1048576 1048576 1"));
        assert!(said.status == 1 && said.stderr.contains("a command of this drive moves at most 512KiB"), "{said:?}");
        // The drive works afterwards.
        guest.expect(&format!("read-drive {DRIVE} 0 512 512 1"));
    });
}

pub fn a_drive_answers_questions_about_dma_writes_and_names_the_rest() {
    let mut guest = shared();
    let questions =
        "dma_write_bandwidth,doorbell_to_completion,dma_read_latency,dma_write_read_latency,interrupt_latency";
    let more = "--sizes 512,4KiB,12KiB,1MiB --budget 0.5";
    let found = record(&mut guest, &format!("--on {DRIVE} --question {questions} {more}"));
    assert_eq!(state(&mut guest, DRIVE).1, "nvme", "its driver as before");
    let target = &found["targets"][0];
    assert_eq!((&target["kind"], &target["card"]["driver"]), (&json!("emulated"), &json!("vfio-pci")));
    assert!(target["summary"].to_string().contains("NVMe drive QEMU NVMe Ctrl"), "{target}");
    let answers = found["answers"].as_array().unwrap();
    for (question, sizes) in
        [("dma_write_bandwidth", [512, 4096, 12288]), ("doorbell_to_completion", [512, 4096, 12288])]
    {
        for size in sizes {
            let answer = answers.iter().find(|answer| answer["question"] == question && answer["size_bytes"] == size);
            let answer = answer.unwrap_or_else(|| panic!("{question} {size}: {}", found["skipped"]));
            let bytes = &answer["bytes"];
            assert_eq!(bytes["claimed_bytes"], bytes["confirmed_bytes"], "{question} {size}: {answer}");
            assert!(bytes["confirmed_bytes"].as_u64().unwrap() >= size, "{question} {size}");
            assert!(!answer["samples_ns"].as_array().unwrap().is_empty(), "{answer}");
        }
    }
    let skipped = found["skipped"].to_string();
    for words in
        ["moves at most 512KiB", "only to a namespace that --destructive names", "fetches commands from host memory"]
    {
        assert!(skipped.contains(words), "{words}: {skipped}");
    }
    assert!(found.to_string().contains("includes the drive's access to its medium"), "{}", found["warnings"]);
}

pub fn dma_reads_overwrite_only_the_first_blocks_of_a_namespace_that_is_named() {
    let mut guest = shared();
    fs::write(guest.file("lost"), image(IMAGE)).unwrap();
    fs::write(guest.file("kept"), kept()).unwrap();
    let asked = "--question dma_read_bandwidth,dma_read_latency --sizes 512,4KiB,64KiB --window 1MiB --budget 0.3";
    let bench = format!("--on {LOST} {asked}");
    let unnamed = guest.run(&format!("lanemark bench --bind vfio-pci {bench}"));
    assert!(unnamed.status == 77 && unnamed.stderr.contains("a namespace that --destructive names"), "{unnamed:?}");
    let said = guest.run(&format!("lanemark bench --bind vfio-pci {bench} --destructive 2"));
    let words = "--destructive 2: the namespace in use is 1: to use another one, add --namespace 2";
    assert!(said.status == 77 && said.stderr.contains(words), "{said:?}");
    let dry = guest.expect(&format!("lanemark bench --bind vfio-pci {bench} --destructive 1:1MiB --dry-run"));
    assert!(
        dry.contains("writes to the drive") && dry.contains("the first 1MiB of the namespace is overwritten"),
        "{dry}"
    );
    assert!(
        fs::read(guest.file("lost")).unwrap() == image(IMAGE),
        "nothing is written without the name of the namespace"
    );

    let mut summary = String::new();
    for more in ["", "--nvme-queues cmb", "--nvme-data sgl-list --nvme-completions interrupt"] {
        let found = record(&mut guest, &format!("{bench} --destructive 1:1MiB {more}"));
        assert_eq!(state(&mut guest, LOST).1, "nvme", "its driver as before");
        let answers = found["answers"].as_array().unwrap();
        for (question, size) in [("dma_read_bandwidth", 512), ("dma_read_bandwidth", 65536), ("dma_read_latency", 4096)]
        {
            let answer = answers.iter().find(|answer| answer["question"] == question && answer["size_bytes"] == size);
            let answer = answer.unwrap_or_else(|| panic!("{more}: {question} {size}: {}", found["skipped"]));
            let bytes = &answer["bytes"];
            assert_eq!(bytes["claimed_bytes"], bytes["confirmed_bytes"], "{more}: {answer}");
            assert!(bytes["confirmed_bytes"].as_u64().unwrap() >= size, "{more}: {answer}");
        }
        summary = found["targets"][0]["summary"].to_string();
        assert!(
            found["warnings"].to_string().contains("these runs overwrite at most the first 1MiB of namespace 1"),
            "{}",
            found["warnings"]
        );
    }
    // A question with larger windows, and one whose window is a block too long.
    for more in ["--question iotlb_reach --sizes 4KiB", "--question dma_read_bandwidth --sizes 512 --window 1049088"] {
        let said =
            guest.run(&format!("lanemark bench --bind vfio-pci --on {LOST} {more} --destructive 1:1MiB --budget 0.1"));
        let output = format!("{}{}", said.stdout, said.stderr);
        assert!(output.contains("--destructive permits 1MiB"), "{more}: {said:?}");
    }
    assert!(fs::read(guest.file("kept")).unwrap() == kept(), "another namespace was written to");
    let (now, before) = (fs::read(guest.file("lost")).unwrap(), image(IMAGE));
    let is_lost = |block: usize| now[block..block + 512] != before[block..block + 512];
    assert!((0..1 << 20).step_by(512).all(is_lost), "each block of the window was written");
    assert!(now[1 << 20..] == before[1 << 20..], "a block beyond the window was written");
    // The kernel's driver finds the same bytes, and the same names of the drive.
    let kernel = guest.expect(
        "for n in /sys/class/nvme/nvme*; do grep -q fifth $n/serial && cat $n/model $n/firmware_rev && \
         dd if=/dev/$(basename $n)n1 bs=512 count=1 2>/dev/null | xxd -p | tr -d '\\n'; done",
    );
    let mut kernel = kernel.lines().map(str::trim);
    let name = format!("NVMe drive {}, firmware {}", kernel.next().unwrap(), kernel.next().unwrap());
    assert!(summary.contains(&name), "{name}: {summary}");
    let first = u64::from_str_radix(&kernel.next().unwrap()[..16], 16).unwrap();
    assert_eq!(first.to_be_bytes(), now[..8]);
}

pub fn reads_go_to_the_namespace_that_is_named() {
    let mut guest = shared();
    fs::write(guest.file("kept"), kept()).unwrap();
    guest.expect("for n in /sys/class/nvme/nvme*; do grep -q fifth $n/serial && basename $n >name; done");
    guest.expect("dd if=/dev/$(cat name)n2 of=kernel bs=1M count=1 2>/dev/null");
    behind_vfio(&mut guest, LOST, |guest| {
        guest.expect(&format!("read-drive {LOST} 0 1048576 4096 8 namespace=2 >read && cmp kernel read"));
        guest.expect(&format!("read-drive {LOST} 0 1048576 4096 8 >read && ! cmp -s kernel read"));
        for (nsid, words) in [
            (3, "namespace 3: it is not active; active namespaces: 1, 2: name another one with --namespace"),
            (4_294_967_294_u32, "it is not active"),
        ] {
            let said = guest.run(&format!("read-drive {LOST} 0 512 512 1 namespace={nsid}"));
            assert!(said.status == 1 && said.stderr.contains(words), "{said:?}");
        }
    });
    let asked = "--question dma_write_bandwidth --sizes 4KiB --budget 0.2";
    let found = record(&mut guest, &format!("--on {LOST} --namespace 2 {asked}"));
    let summary = found["targets"][0]["summary"].to_string();
    assert!(summary.contains("namespace 2 of 1MiB in logical blocks of 512B"), "{summary}");
    let bench = format!("lanemark bench --bind vfio-pci --on {LOST} {asked}");
    let dry = guest.expect(&format!("{bench} --namespace 2 --dry-run"));
    assert!(dry.contains("Read and Flush of namespace 2; no command that writes to the medium"), "{dry}");
    let said = guest.run(&format!("{bench} --namespace 2 --destructive 1"));
    let words = "--destructive 1 and --namespace 2: only the namespace in use can be overwritten";
    assert!(said.status == 77 && said.stderr.contains(words), "{said:?}");
    let said = guest.run(&format!("{bench} --namespace 0"));
    assert!(said.status == 2 && said.stderr.contains("--namespace"), "{said:?}");
    assert!(fs::read(guest.file("kept")).unwrap() == kept(), "the drive was written to");
}

pub fn a_drive_behind_vfio_keeps_every_promise() {
    let mut guest = shared();
    for (drive, lost) in [(DRIVE, ""), (LOST, "1:4MiB")] {
        behind_vfio(&mut guest, drive, |guest| {
            let said = guest.run(&format!("promises nvme-vfio {drive} {lost}"));
            assert_eq!(said.status, 0, "{}{}", said.stdout, said.stderr);
            assert!(said.stdout.ends_with(&format!("{} passed, 0 failed\n", PROMISES.len())), "{}", said.stdout);
        });
    }
    assert!(fs::read(guest.file("image")).unwrap() == image(IMAGE), "the drive was written to");
    assert!(
        fs::read(guest.file("lost")).unwrap()[4 << 20..] == image(IMAGE)[4 << 20..],
        "a block beyond the named ones"
    );
}

pub fn queue_depths_are_outstanding_transfers() {
    let mut guest = shared();
    for depth in [1, 2, 8] {
        let asked =
            format!("--on {DRIVE} --question dma_write_bandwidth --sizes 4KiB --outstanding {depth} --budget 0.2");
        let found = record(&mut guest, &asked);
        let answer = &found["answers"][0];
        assert_eq!(
            answer["bytes"]["claimed_bytes"], answer["bytes"]["confirmed_bytes"],
            "{depth}: {}",
            found["skipped"]
        );
        assert_eq!(answer["method"]["outstanding"], depth, "{answer}");
    }
    let asked = "--question dma_write_bandwidth --sizes 4KiB --outstanding 64 --bind vfio-pci";
    let said = guest.run(&format!("lanemark bench --on {DRIVE} {asked}"));
    assert!(format!("{}{}", said.stdout, said.stderr).contains("the queues hold 63 outstanding commands"), "{said:?}");
}

pub fn blocks_of_4_kib_and_a_small_namespace_limit_the_sizes() {
    let mut guest = shared();
    let asked = "--question dma_write_bandwidth --sizes 512,4KiB,64KiB --budget 0.5";
    let found = record(&mut guest, &format!("--on {SMALL} {asked}"));
    let sizes: Vec<&Value> = found["answers"].as_array().unwrap().iter().map(|answer| &answer["size_bytes"]).collect();
    assert_eq!(sizes, [4096, 65536], "{}", found["skipped"]);
    assert!(found["skipped"].to_string().contains("whole logical blocks, of 4KiB here"), "{}", found["skipped"]);
    // The window of 4 MiB is larger than the namespace, so its blocks are read more than once.
    for answer in found["answers"].as_array().unwrap() {
        assert_eq!(answer["bytes"]["claimed_bytes"], answer["bytes"]["confirmed_bytes"], "{answer}");
    }
    assert!(fs::read(guest.file("small")).unwrap() == image(SMALL_IMAGE), "the drive was written to");
}

pub fn a_drive_without_a_namespace_says_so_and_maps_memory() {
    let mut guest = shared();
    let found = record(&mut guest, &format!("--on {EMPTY} --question dma_map_cost --sizes 4KiB --budget 0.2"));
    assert!(found["targets"][0]["summary"].to_string().contains("no active namespace"), "{}", found["targets"]);
    assert!(!found["answers"].as_array().unwrap().is_empty(), "{}", found["skipped"]);
}

pub fn a_drive_that_cannot_be_identified_maps_memory_and_says_why_it_is_not_read() {
    let mut guest = shared();
    let asked = "--question dma_map_cost,dma_write_bandwidth --sizes 4KiB --budget 0.2";
    let found = record(&mut guest, &format!("--on {UNIDENTIFIED} {asked}"));
    let because =
        "namespace 1: its logical blocks have metadata; active namespaces: 1: name another one with --namespace";
    for part in ["targets", "skipped"] {
        assert!(found[part].to_string().contains(because), "{part}: {}", found[part]);
    }
    let answers = found["answers"].as_array().unwrap();
    assert!(answers.iter().any(|answer| answer["question"] == "dma_map_cost"), "{}", found["skipped"]);
    assert_eq!(state(&mut guest, UNIDENTIFIED).1, "nvme", "its driver as before");
}

pub fn a_dry_run_lists_the_commands_of_a_drive_and_changes_nothing() {
    let mut guest = shared();
    let before = state(&mut guest, DRIVE);
    let asked = "--bind vfio-pci --question dma_write_bandwidth --sizes 4KiB --dry-run";
    let said = guest.expect(&format!("lanemark bench --on {DRIVE} {asked}"));
    for words in [
        "echo vfio-pci > /sys/bus/pci/devices/0000:00:05.0/driver_override",
        "NVMe drive, registers in BAR0",
        "no command that writes to the medium",
        "at most 63 outstanding",
        "reads of the drive: 256 x 4KiB per iteration",
        "dry run, nothing was accessed",
    ] {
        assert!(said.contains(words), "{words}:\n{said}");
    }
    assert_eq!(state(&mut guest, DRIVE), before);
}

pub fn a_controller_memory_buffer_answers_questions_about_loads_and_stores() {
    let mut guest = shared();
    let questions = "mmio_write_bandwidth,mmio_read_latency";
    let asked = format!("--bar 2:0..4KiB:storage --question {questions} --access 8 --sizes 4KiB --budget 0.5");
    for drive in [DRIVE, SMALL] {
        let found = record(&mut guest, &format!("--on {drive} {asked}"));
        let answers = found["answers"].as_array().unwrap();
        let stored = answers.iter().find(|answer| answer["question"] == "mmio_write_bandwidth");
        let stored = stored.unwrap_or_else(|| panic!("{}", found["skipped"]));
        assert_eq!(stored["bytes"], json!({ "claimed_bytes": 4096, "confirmed_bytes": 4096 }));
        assert!(answers.iter().any(|answer| answer["question"] == "mmio_read_latency"), "{}", found["skipped"]);
        let summary = found["targets"][0]["summary"].to_string();
        let words = format!("controller memory buffer of {drive} at BAR2+0x0, enabled by CMBMSC while a run uses it");
        assert!(summary.contains(&words), "{summary}");
    }
    let dry = guest.expect(&format!("lanemark bench --bind vfio-pci --on {DRIVE} {asked} --dry-run"));
    assert!(
        dry.contains("controller memory buffer of 0000:00:05.0: CAP loaded; since NVMe 1.4, CMBMSC stored"),
        "{dry}"
    );
}

pub fn queues_in_a_controller_memory_buffer_read_the_same_bytes() {
    let mut guest = shared();
    for (drive, block) in [(DRIVE, 512), (SMALL, 4096)] {
        let node = if drive == DRIVE { "nvme0n1" } else { "nvme1n1" };
        guest.expect(&format!("dd if=/dev/{node} of=kernel bs=256k count=1 2>/dev/null"));
        behind_vfio(&mut guest, drive, |guest| {
            // 64 and more commands: the queues wrap.
            for depth in [1, 8, 63] {
                guest.expect(&format!(
                    "read-drive {drive} 0 262144 {block} {depth} queues=cmb >read && cmp kernel read"
                ));
            }
            // The same drive with its queues in host memory again.
            guest.expect(&format!("read-drive {drive} 0 262144 {block} 8 >read && cmp kernel read"));
        });
    }
    assert!(fs::read(guest.file("image")).unwrap() == image(IMAGE), "the drive was written to");
}

pub fn who_moves_a_command_is_answered_in_both_ways_side_by_side() {
    let mut guest = shared();
    let asked = format!("--on {DRIVE} --nvme-queues cmb --sizes 4KiB --budget 0.3 --question");
    let found = record(&mut guest, &format!("{asked} doorbell_to_completion"));
    let summary = found["targets"][0]["summary"].to_string();
    let words = "I/O submission queue in the controller memory buffer of 1MiB at BAR2+0x0, mapped as UC";
    assert!(summary.contains(words), "{summary}");
    for descriptors in ["uc", "fetched"] {
        let is_this = |answer: &&Value| {
            answer["question"] == "doorbell_to_completion"
                && answer["method"]["completion"] == "flag"
                && answer["method"]["descriptors"].to_string().contains(descriptors)
        };
        let answer = found["answers"].as_array().unwrap().iter().find(is_this);
        let answer = answer.unwrap_or_else(|| panic!("{descriptors}: {found}"));
        assert_eq!(answer["bytes"], json!({ "claimed_bytes": 4096, "confirmed_bytes": 4096 }), "{descriptors}");
    }
    assert!(found["skipped"].to_string().contains("cannot hold completion queues (CMBSZ.CQS)"), "{found}");
    for (queues, words) in [("cmb", words), ("host", "I/O queues in host memory")] {
        let asked = asked.replace("cmb", queues);
        let found = record(&mut guest, &format!("{asked} dma_write_bandwidth --outstanding 4"));
        let answer = &found["answers"][0];
        assert_eq!(answer["bytes"]["claimed_bytes"], answer["bytes"]["confirmed_bytes"], "{}", found["skipped"]);
        assert!(found["targets"][0]["summary"].to_string().contains(words), "{}", found["targets"]);
    }
    assert_eq!(state(&mut guest, DRIVE).1, "nvme", "its driver as before");
}

pub fn queues_in_a_controller_memory_buffer_need_one() {
    let mut guest = shared();
    let asked = "--bind vfio-pci --question dma_write_bandwidth --sizes 4KiB --nvme-queues cmb";
    let said = guest.run(&format!("lanemark bench --on {EMPTY} {asked}"));
    let words = "0000:00:07.0: the drive has no controller memory buffer (CMBSZ): use another drive, or remove the option --nvme-queues";
    assert!(said.status == 77 && said.stderr.contains(words), "{said:?}");
    assert_eq!(state(&mut guest, EMPTY).1, "nvme", "its driver as before");
    let said = guest.run(&format!("lanemark bench --on {DRIVE} --question dma_write_bandwidth --nvme-queues cmb"));
    assert!(
        said.status == 2 && said.stderr.contains("--nvme-queues: the target 0000:00:05.0 is not bound to vfio-pci"),
        "{said:?}"
    );
    let said = guest.expect(&format!("lanemark bench --on {DRIVE} {asked} --dry-run"));
    for words in [
        "its first 4 KiB are overwritten by the submission queue",
        "by a submission queue in the controller memory buffer",
    ] {
        assert!(said.contains(words), "{words}:\n{said}");
    }
}

pub fn data_described_by_sgls_are_the_bytes_of_the_image() {
    let mut guest = shared();
    guest.expect("dd if=/dev/nvme0n1 of=kernel bs=1M count=4 2>/dev/null");
    behind_vfio(&mut guest, DRIVE, |guest| {
        for data in ["sgl", "sgl-list"] {
            for (command_bytes, depth) in [(512, 1), (4096, 8), (4608, 3), (12288, 5), (524_288, 8)] {
                let count = command_bytes * 8;
                let read = format!("read-drive {DRIVE} 0 {count} {command_bytes} {depth} data={data}");
                guest.expect(&format!(
                    "{read} >read && dd if=kernel bs=512 count={} 2>/dev/null | cmp - read",
                    count / 512
                ));
            }
        }
        let said = guest.run(&format!("read-drive {DRIVE} {IMAGE} 512 512 1 data=sgl"));
        assert!(said.status == 1 && said.stderr.contains("LBA Out of Range"), "{said:?}");
    });
    // The 384 descriptors of this command need two segments. (QEMU confuses the second segment of three with the last one.)
    guest.expect("dd if=/dev/nvme1n1 of=kernel bs=1M count=2 2>/dev/null");
    behind_vfio(&mut guest, SMALL, |guest| {
        guest.expect(&format!(
            "read-drive {SMALL} 0 1572864 1572864 1 data=sgl-list >read && cmp -n 1572864 kernel read"
        ));
    });
    let found = record(
        &mut guest,
        &format!("--on {DRIVE} --nvme-data sgl-list --question dma_write_bandwidth --sizes 512,64KiB --budget 0.3"),
    );
    let summary = found["targets"][0]["summary"].to_string();
    assert!(summary.contains("data by an SGL descriptor for each page"), "{summary}");
    let answers = found["answers"].as_array().unwrap();
    assert_eq!(answers.len(), 2, "{}", found["skipped"]);
    for answer in answers {
        assert_eq!(answer["bytes"]["claimed_bytes"], answer["bytes"]["confirmed_bytes"], "{answer}");
    }
    assert!(fs::read(guest.file("image")).unwrap() == image(IMAGE), "the drive was written to");
}

pub fn completions_by_interrupt_answer_the_same_questions_and_the_latency_of_interrupts() {
    let mut guest = shared();
    guest.expect("dd if=/dev/nvme0n1 of=kernel bs=256k count=1 2>/dev/null");
    behind_vfio(&mut guest, DRIVE, |guest| {
        for depth in [1, 8, 63] {
            let read = format!("read-drive {DRIVE} 0 262144 512 {depth} completions=interrupt");
            guest.expect(&format!("{read} >read && cmp kernel read"));
        }
    });
    let asked = "--question interrupt_latency,doorbell_to_completion --sizes 4KiB --budget 0.5";
    for (queues, descriptors) in [("host", "fetched"), ("cmb", "uc")] {
        let found = record(&mut guest, &format!("--on {DRIVE} --nvme-queues {queues} {asked}"));
        for question in ["interrupt_latency", "doorbell_to_completion"] {
            let is_this = |answer: &&Value| {
                answer["question"] == question
                    && answer["method"]["completion"] == "interrupt"
                    && answer["method"]["descriptors"].to_string().contains(descriptors)
            };
            let answer = found["answers"].as_array().unwrap().iter().find(is_this);
            let answer = answer.unwrap_or_else(|| panic!("{question}, {queues}: {found}"));
            assert_eq!(answer["bytes"], json!({ "claimed_bytes": 4096, "confirmed_bytes": 4096 }), "{question}");
        }
    }
    let asked = "--question dma_write_bandwidth --sizes 4KiB --outstanding 8 --budget 0.3";
    let found = record(&mut guest, &format!("--on {DRIVE} --nvme-completions interrupt {asked}"));
    let answer = &found["answers"][0];
    assert_eq!(answer["bytes"]["claimed_bytes"], answer["bytes"]["confirmed_bytes"], "{}", found["skipped"]);
    assert!(found["targets"][0]["summary"].to_string().contains("completions by MSI-X interrupt"), "{found}");
    assert_eq!(state(&mut guest, DRIVE).1, "nvme", "its driver as before");
    // The kernel's driver works with its own interrupts afterwards.
    guest.expect("dd if=/dev/nvme0n1 bs=4k count=1 iflag=direct 2>/dev/null | cmp -n 4096 - kernel");
}

pub fn a_read_to_memory_that_was_just_unmapped_is_blocked_and_reported_with_address_and_direction() {
    let mut guest = shared();
    behind_vfio(&mut guest, DRIVE, |guest| {
        blocked_after_unmapping(guest, DRIVE, |address, fault| {
            fault.contains("DMAR: [DMA Write") && fault.contains(&format!("fault addr {address} "))
        });
    });
}

/// Lets a drive read to memory that was unmapped just before. One of the kernel's reports must be `is_right`, given the address.
pub fn blocked_after_unmapping(guest: &mut Guest, drive: &str, is_right: impl Fn(&str, &str) -> bool) {
    let said = guest.expect(&format!("read-drive {drive} unmapped"));
    let value = |word: &str| said.lines().find_map(|line| line.strip_prefix(word)).unwrap_or_else(|| panic!("{said}"));
    assert_eq!(value("unchanged "), "true", "{said}");
    let mut faults = said.lines().filter_map(|line| line.strip_prefix("fault "));
    assert!(faults.any(|fault| is_right(value("address "), fault)), "{said}");
    // The drive works afterwards.
    guest.expect(&format!("read-drive {drive} 0 4096 4096 1 >/dev/null"));
}

pub fn a_signal_ends_the_reads_of_a_drive_and_restores_its_driver() {
    let mut guest = shared();
    let asked = "--bind vfio-pci --question dma_write_bandwidth --sizes 4KiB --full --budget 900";
    guest.expect("rm -f status");
    guest.expect(&format!("(lanemark bench --on {DRIVE} {asked} >said 2>&1; echo $? >status) >/dev/null 2>&1 &"));
    let master = format!("$(( 0x$(xxd -s 4 -l 1 -p /sys/bus/pci/devices/{DRIVE}/config) & 4 ))");
    let is_bound = format!("[ \"$(basename $(readlink /sys/bus/pci/devices/{DRIVE}/driver))\" = vfio-pci ]");
    let runs = format!("{{ {is_bound} && [ {master} -ne 0 ]; }}");
    // Bus mastering is on only while a plan runs, so what was seen once is not asked again.
    guest.expect(&format!("for i in $(seq 600); do {runs} && exit 0; sleep 0.1; done; exit 1"));
    guest.expect("kill -TERM $(pidof lanemark)");
    let status = guest.expect("for i in $(seq 900); do [ -s status ] && break; sleep 0.1; done; cat status");
    let said = guest.expect("cat said");
    assert!(status.trim() == "130" && said.contains("restored; driver now: nvme"), "{status} {said}");
    // After SIGKILL the kernel closes the files of VFIO: pages are unpinned, and bus mastering is off.
    let before = guest.expect(PINNED);
    let pins = format!("[ \"$({PINNED})\" != {} ]", before.trim());
    guest.expect("rm -f status");
    guest.expect(&format!("(lanemark bench --on {DRIVE} {asked} >said 2>&1; echo $? >status) >/dev/null 2>&1 &"));
    guest.expect(&format!("for i in $(seq 600); do {runs} && exit 0; sleep 0.1; done; exit 1"));
    guest.expect(&format!("for i in $(seq 300); do {pins} && exit 0; sleep 0.1; done; cat said; exit 1"));
    guest.expect("kill -KILL $(pidof lanemark)");
    guest.expect("for i in $(seq 900); do [ -s status ] && exit 0; sleep 0.1; done; exit 1");
    guest.expect(&format!("{is_bound} && [ {master} -eq 0 ]"));
    assert_eq!(guest.expect(PINNED), before, "pages are pinned");
    guest.expect(&format!("lanemark unbind {DRIVE}"));
    // The drive works afterwards.
    behind_vfio(&mut guest, DRIVE, |guest| {
        guest.expect(&format!("read-drive {DRIVE} 0 4096 4096 1 >/dev/null"));
    });
}
