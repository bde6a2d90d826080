//! Other IOMMUs than VT-d with caching mode, which the other tests have.

use crate::drive::blocked_after_unmapping;
use crate::guest::{Guest, Hardware, KERNEL, KERNEL_WITH_VIRTIO_IOMMU, usual_kernel};
use crate::sharing::{Guests, Lent};
use lanemark_checks::lanemark;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Devices behind each IOMMU:
///
/// | address | device |
/// | --- | --- |
/// | 00:06.0 | edu, whose engine reaches 28 address bits |
/// | 00:07.0 | edu, whose engine drops all but 20 bits of an address |
/// | 00:08.0 | nvme with 1 MiB, the file `medium` on the outside |
///
/// Time is that of instructions, as in the guest of `dma`.
const DEVICES: [&str; 5] = [
    "-icount shift=6,sleep=off",
    "-device edu,addr=0x6",
    "-device edu,dma_mask=0xfffff,addr=0x7",
    "-drive if=none,id=medium,format=raw,file={folder}/medium",
    "-device nvme,addr=0x8,serial=none,drive=medium",
];

const EDU: &str = "0000:00:06.0";
const WRONG: &str = "0000:00:07.0";
const DRIVE: &str = "0000:00:08.0";

/// The setting of VFIO without interrupt remapping, which virtio-iommu does not have.
const UNSAFE_INTERRUPTS: &str = "/sys/module/vfio_iommu_type1/parameters/allow_unsafe_interrupts";

fn boot(iommu: &str) -> Guest {
    let devices: Vec<&str> = DEVICES.into_iter().chain([iommu]).collect();
    let packages = if usual_kernel() == KERNEL { KERNEL_WITH_VIRTIO_IOMMU } else { usual_kernel() };
    let hardware = Hardware { packages, devices: &devices, kernel: "" };
    let programs = [lanemark(), Path::new(env!("CARGO_BIN_EXE_read-drive"))];
    Guest::boot(&hardware, &programs, |folder| fs::write(folder.join("medium"), vec![0xa7; 1 << 20]).unwrap())
}

/// A guest with virtio-iommu.
fn with_virtio_iommu() -> Lent {
    static GUESTS: Guests = Guests::new(|| {
        let mut guest = boot("-device virtio-iommu-pci,addr=0x5");
        // This kernel creates the group of a device when it first looks for its driver.
        for card in [EDU, WRONG] {
            guest.expect(&format!(
                "cd /sys/bus/pci; echo vfio-pci >devices/{card}/driver_override; echo {card} >drivers_probe; \
                 echo {card} >drivers/vfio-pci/unbind; echo >devices/{card}/driver_override"
            ));
        }
        guest
    });
    let mut guest = GUESTS.lend();
    guest.expect(&format!("echo 1 >{UNSAFE_INTERRUPTS}"));
    guest
}

/// A bench of a card that is bound for it, which must succeed: its record.
fn record(guest: &mut Guest, arguments: &str) -> Value {
    guest.expect(&format!("lanemark bench --bind vfio-pci --budget 0.3 {arguments} --record it.json >/dev/null"));
    serde_json::from_str(&guest.expect("cat it.json")).unwrap()
}

/// Every question about DMA and its mappings has an answer, and the bytes arrive.
fn answers_questions_about_dma(guest: &mut Guest) {
    let costs = record(guest, &format!("--on {DRIVE} --question dma_map_cost --sizes 4KiB --csv cost.csv"));
    let csv = guest.expect("cat cost.csv");
    for strategy in ["ranges", "sequential", "magazine", "baseline free list"] {
        assert!(csv.contains(strategy), "{strategy}: {csv}\n{}", costs["skipped"]);
    }
    let drive = record(guest, &format!("--on {DRIVE} --question dma_write_bandwidth --sizes 4KiB"));
    let confirmed = |record: &Value, question: &str| {
        let answers = record["answers"].as_array().unwrap();
        let answer = answers.iter().find(|answer| answer["question"] == question);
        let answer = answer.unwrap_or_else(|| panic!("{question}: {}", record["skipped"]));
        let bytes = &answer["bytes"];
        assert!(bytes["claimed_bytes"].as_u64() > Some(0), "{question}: {bytes}");
        assert_eq!(bytes["claimed_bytes"], bytes["confirmed_bytes"], "{question}");
    };
    confirmed(&drive, "dma_write_bandwidth");
    guest.expect("echo 4 >/proc/sys/vm/nr_hugepages");
    let questions = "dma_read_latency,iotlb_reach,iotlb_thrash";
    let engine = record(
        guest,
        &format!("--on {EDU} --device edu --question {questions} --sizes 64 --window 8MiB --stride 4MiB"),
    );
    guest.expect("echo 0 >/proc/sys/vm/nr_hugepages");
    questions.split(',').for_each(|question| confirmed(&engine, question));
}

pub fn a_virtual_iommu_answers_the_questions_of_a_real_one() {
    let mut guest = with_virtio_iommu();
    answers_questions_about_dma(&mut guest);
    let target =
        record(&mut guest, &format!("--on {DRIVE} --question dma_map_cost --sizes 4KiB"))["targets"][0].clone();
    assert!(target["summary"].as_str().unwrap().contains("pages of 4KiB and every larger power of two"), "{target}");
}

pub fn vt_d_without_caching_mode_answers_the_same_questions() {
    let mut guest = boot("-device intel-iommu,intremap=on,caching-mode=off");
    answers_questions_about_dma(&mut guest);
}

pub fn vfio_without_interrupt_remapping_is_refused_with_the_setting_that_permits_it() {
    let mut guest = with_virtio_iommu();
    guest.expect(&format!("echo 0 >{UNSAFE_INTERRUPTS}"));
    let said = guest.run(&format!("lanemark bench --on {EDU} --bind vfio-pci --question dma_map_cost"));
    assert!(said.status == 2 && said.stderr.contains("does not remap interrupts"), "{said:?}");
    assert!(said.stderr.contains(UNSAFE_INTERRUPTS), "{said:?}");
    assert!(said.stdout.ends_with("restored; driver now: none\n"), "{said:?}");
}

pub fn dma_blocked_by_a_virtual_iommu_is_an_error_with_the_report_of_the_kernel() {
    let mut guest = with_virtio_iommu();
    // This engine drops the upper bits of addresses, so that its requests go to pages that are not mapped.
    let said = guest.run(&format!(
        "lanemark bench --on {WRONG} --bind vfio-pci --device edu --question dma_read_latency --sizes 64"
    ));
    assert_eq!(said.status, 1, "{said:?}");
    for words in [&format!("{WRONG}: the IOMMU has blocked"), "virtio_iommu", "fault from EP 56 at 0x", "address_bits"]
    {
        assert!(said.stderr.contains(words), "{words}: {said:?}");
    }
    guest.expect(&format!("[ ! -e /sys/bus/pci/devices/{WRONG}/driver ]"));
}

pub fn a_read_to_memory_that_was_just_unmapped_is_blocked_by_a_virtual_iommu() {
    let mut guest = with_virtio_iommu();
    guest.expect(&format!("lanemark bind {DRIVE}"));
    blocked_after_unmapping(&mut guest, DRIVE, |address, fault| {
        // QEMU reports no direction of a request to an address that is not mapped.
        fault.contains("fault from EP 64") && fault.contains(&format!("at {address} ["))
    });
    guest.expect(&format!("lanemark unbind {DRIVE}"));
}

pub fn without_an_iommu_a_card_is_not_bound_to_vfio() {
    let hardware = Hardware { packages: usual_kernel(), devices: &["-device edu,addr=0x5"], kernel: "" };
    let mut guest = Guest::boot(&hardware, &[lanemark()], |_| {});
    for command in ["bind 0000:00:05.0", "bench --on 0000:00:05.0 --bind vfio-pci --device edu"] {
        let said = guest.run(&format!("lanemark {command}"));
        assert!(said.status == 2 && said.stderr.contains("IOMMU") && said.stderr.contains("iommu=on"), "{said:?}");
        assert_eq!(
            guest.run("[ -e /sys/bus/pci/devices/0000:00:05.0/driver ]").status,
            1,
            "it has no driver, as before"
        );
    }
}

/// The bytes of the first answer, of which all must be confirmed.
fn confirmed_bytes(record: &Value) -> u64 {
    let bytes = &record["answers"][0]["bytes"];
    assert_eq!(bytes["claimed_bytes"], bytes["confirmed_bytes"], "{}", record["skipped"]);
    bytes["confirmed_bytes"].as_u64().unwrap_or_default()
}

pub fn pages_of_1_gib_and_of_4_kib_are_mapped_if_they_are_named() {
    let devices: Vec<&str> =
        DEVICES.into_iter().chain(["-device intel-iommu,intremap=on,caching-mode=on", "-m 6G"]).collect();
    // Later, the kernel would have to move other pages out of the way.
    let hardware = Hardware { packages: usual_kernel(), devices: &devices, kernel: "hugepagesz=1G hugepages=1" };
    let mut guest = Guest::boot(&hardware, &[lanemark()], |folder| {
        fs::write(folder.join("medium"), vec![0xa7; 1 << 20]).unwrap();
    });
    let (asked, short) = ("--question dma_write_bandwidth --sizes 4KiB", "--question dma_write_bandwidth --sizes 64");
    let large = record(&mut guest, &format!("--on {DRIVE} {asked} --host-pages 1GiB"));
    assert!(confirmed_bytes(&large) > 0);
    // Its engine has no address of more than 28 bits.
    let narrow =
        guest.run(&format!("lanemark bench --on {EDU} --bind vfio-pci --device edu {short} --host-pages 1GiB"));
    assert!(narrow.status != 0 && narrow.stderr.contains("mapping"), "{narrow:?}");
    // None of this size is reserved.
    let refused =
        guest.run(&format!("lanemark bench --on {EDU} --bind vfio-pci --device edu {short} --host-pages 2MiB"));
    let words = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
    assert!(refused.status == 77 && refused.stderr.contains(words), "{refused:?}");
    guest.expect("echo 40 >/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages");
    for (size, bytes, window) in [("4KiB", 4 << 10, "16KiB"), ("2MiB", 2 << 20, "8MiB")] {
        let reach = format!("--question iotlb_reach --window {window} --host-pages {size}");
        let record = record(&mut guest, &format!("--on {EDU} --device edu {reach}"));
        assert_eq!(record["answers"][0]["method"]["reach"]["stride_bytes"], bytes, "{size}: {}", record["skipped"]);
        assert!(confirmed_bytes(&record) > 0, "{size}");
    }
}

pub fn without_an_iommu_a_card_is_used_only_if_both_kernel_and_user_permit_it() {
    const PERMITS: &str = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode";
    let hardware = Hardware { packages: usual_kernel(), devices: &DEVICES, kernel: "hugepages=40" };
    let mut guest = Guest::boot(&hardware, &[lanemark()], |folder| {
        fs::write(folder.join("medium"), vec![0xa7; 1 << 20]).unwrap();
    });
    let bench = |more: &str| format!("lanemark bench --budget 0.3 --bind vfio-pci {more}");
    let of_drive = format!("--on {DRIVE} --question dma_write_bandwidth,dma_map_cost,iotlb_reach --sizes 4KiB");
    let refused = |guest: &mut Guest, status: i32, more: &str, words: &[&str]| {
        let said = guest.run(&bench(&format!("{of_drive} {more}")));
        assert_eq!(said.status, status, "{said:?}");
        for words in words {
            assert!(said.stderr.contains(words), "{words}: {said:?}");
        }
    };
    refused(&mut guest, 2, "--vfio no-iommu", &["is behind no IOMMU", PERMITS]);
    guest.expect(&format!("echo 1 >{PERMITS}"));
    refused(&mut guest, 2, "", &["its DMA reaches all memory", "--vfio no-iommu"]);
    refused(&mut guest, 77, "--vfio no-iommu --host-pages 4KiB", &["the kernel may move them"]);

    let drive = record(&mut guest, &format!("{of_drive} --vfio no-iommu"));
    assert!(confirmed_bytes(&drive) > 0);
    assert!(
        drive["targets"][0]["summary"].as_str().unwrap().contains("VFIO without an IOMMU"),
        "{}",
        drive["targets"][0]
    );
    let warnings = drive["warnings"].to_string();
    assert!(warnings.contains("nothing kept its DMA from other memory"), "{warnings}");
    let skipped = drive["skipped"].to_string();
    assert!(["dma_map_cost", "iotlb_reach"].iter().all(|question| skipped.contains(question)), "{skipped}");

    let engine = format!("--on {EDU} --device edu --vfio no-iommu");
    let questions = "--question dma_read_latency,dma_write_bandwidth,interrupt_latency --sizes 64";
    let said = guest.run(&bench(&format!("{engine} {questions}")));
    assert!(said.status != 0 && said.stderr.contains("cannot be reset"), "{said:?}");
    let dry = guest.expect(&bench(&format!("{engine} {questions} --dry-run")));
    assert!(
        dry.contains("no IOMMU: the card is given physical addresses") && dry.contains("/dev/vfio/noiommu-"),
        "{dry}"
    );
    guest.expect("echo 0 >/proc/sys/vm/nr_hugepages");
    refused(&mut guest, 77, "--vfio no-iommu", &["hugepages-2048kB/nr_hugepages"]);
}
