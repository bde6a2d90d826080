//! An NVMe drive behind VFIO that reads into the memory of another card, and writes from it, below root ports and below a switch.

use crate::dma::{ended, plugged_again, started};
use crate::guest::{Guest, Hardware, usual_kernel};
use crate::peers::{record, redirection};
use crate::sharing::{Guests, Lent};
use lanemark_checks::lanemark;
use serde_json::Value;
use std::fs;

/// Devices of the guest:
///
/// | address | device |
/// | --- | --- |
/// | 01:00.0 | nvme of 1 MiB, the file `first` on the outside |
/// | 02:00.0 | nvme without a namespace: BAR2 is a controller memory buffer of 1 MiB |
/// | 03:00.0 | the upstream port of a switch |
/// | 04:00.0, 04:01.0 | its ports: root ports, because QEMU's downstream port has no ACS |
/// | 05:00.0 | nvme of 1 MiB below the switch, the file `below` on the outside |
/// | 06:00.0 | nvme without a namespace below the switch, with a controller memory buffer of 1 MiB |
const DEVICES: &[&str] = &[
    "-device intel-iommu,intremap=on,caching-mode=on",
    "-device pcie-root-port,id=rp1,chassis=1,slot=1,addr=0x2",
    "-drive if=none,id=first,format=raw,file={folder}/first",
    "-device nvme,bus=rp1,serial=first,drive=first,cmb_size_mb=1",
    "-device pcie-root-port,id=rp2,chassis=2,slot=2,addr=0x3",
    "-device nvme,id=second,bus=rp2,serial=second,cmb_size_mb=1",
    "-device pcie-root-port,id=rp3,chassis=3,slot=3,addr=0x4",
    "-device x3130-upstream,id=up,bus=rp3",
    "-device pcie-root-port,id=down1,bus=up,chassis=4,slot=4,addr=0x0",
    "-device pcie-root-port,id=down2,bus=up,chassis=5,slot=5,addr=0x1",
    "-drive if=none,id=below,format=raw,file={folder}/below",
    "-device nvme,bus=down1,serial=third,drive=below,cmb_size_mb=1",
    "-device nvme,bus=down2,serial=fourth,cmb_size_mb=1",
];

/// A drive with a namespace, one with memory, and the file of the namespace.
type Pair = (&'static str, &'static str, &'static str);
const AT_ROOT_PORTS: Pair = ("0000:01:00.0", "0000:02:00.0", "first");
const BELOW_A_SWITCH: Pair = ("0000:05:00.0", "0000:06:00.0", "below");
/// The ports above the drives below the switch.
const PORTS: [&str; 2] = ["0000:04:00.0", "0000:04:01.0"];

const BYTES: usize = 1 << 20;

/// Bytes of a medium: each word of 8 B is different.
fn image() -> Vec<u8> {
    crate::drive::image(BYTES)
}

fn shared() -> Lent {
    static GUESTS: Guests = Guests::new(|| boot(""));
    GUESTS.lend()
}

fn boot(kernel: &str) -> Guest {
    let hardware = Hardware { packages: usual_kernel(), devices: DEVICES, kernel };
    Guest::boot(&hardware, &[lanemark()], |folder| {
        for file in ["first", "below"] {
            fs::write(folder.join(file), image()).unwrap();
        }
    })
}

/// Runs `then` while the drive with memory is bound to `vfio-pci`; returns the controller memory buffer as QEMU dumps it.
fn buffer_after(guest: &mut Guest, memory: &str, then: impl FnOnce(&mut Guest)) -> Vec<u8> {
    let folder = format!("/sys/bus/pci/devices/{memory}");
    let start = guest.expect(&format!("sed -n 3p {folder}/resource | cut -d ' ' -f 1"));
    let start = u64::from_str_radix(start.trim().trim_start_matches("0x"), 16).unwrap();
    guest.expect(&format!("lanemark bind {memory}"));
    then(guest);
    // Without a driver, memory decoding can be turned on; the drive's own driver would use the buffer.
    guest.expect(&format!("echo {memory} >{folder}/driver/unbind; echo 1 >{folder}/enable"));
    let file = guest.file("buffer");
    guest.monitor(&format!("pmemsave {start} {BYTES} \"{}\"", file.display()));
    guest.expect(&format!("lanemark unbind {memory}"));
    fs::read(&file).unwrap()
}

/// A bench of a drive with the pages from 4 KiB to 12 KiB of another one.
fn bench((drive, memory, _): Pair, more: &str) -> String {
    format!("lanemark bench --on {drive} --bind vfio-pci --peer {memory}:2:4KiB..12KiB {more}")
}

fn answers(record: &Value, question: &str) -> usize {
    let answers = record["answers"].as_array().unwrap();
    answers.iter().filter(|answer| answer["question"] == question).count()
}

/// Checks that the named pages have the first blocks of the medium, and that no other byte of the buffer has changed.
fn check_read(buffer: &[u8]) {
    assert!(buffer[4096..12288] == image()[..8192], "the blocks have not arrived");
    assert!(buffer[..4096].iter().chain(&buffer[12288..]).all(|byte| *byte == 0), "bytes beside the named pages");
}

pub fn a_drive_reads_into_the_memory_of_another_card_and_nothing_beside_it() {
    let mut guest = shared();
    for pair in [AT_ROOT_PORTS, BELOW_A_SWITCH] {
        let buffer = buffer_after(&mut guest, pair.1, |guest| {
            for more in ["", "--nvme-data sgl-list", "--nvme-queues cmb --nvme-completions interrupt", "--channels 2"] {
                let asked = format!("--question p2p_write_bandwidth,p2p_latency --sizes 512,4KiB --budget 0.2 {more}");
                let found = record(guest, &bench(pair, &asked));
                let latencies = if more.contains("channels") { 0 } else { 2 };
                assert_eq!(answers(&found, "p2p_write_bandwidth"), 2, "{more}: {}", found["skipped"]);
                assert!(answers(&found, "p2p_latency") >= latencies, "{more}: {}", found["skipped"]);
                let target = &found["targets"][0];
                let summary = target["summary"].to_string();
                assert!(summary.contains(&format!("transfers to and from {}", pair.1)), "{summary}");
                assert_eq!(target["card"]["peer"]["device"], pair.1);
                assert!(found["warnings"].to_string().contains("DMA writes are measured by Read commands"), "{found}");
            }
            // The last run decides what is there.
            record(guest, &bench(pair, "--question p2p_write_bandwidth --sizes 4KiB --budget 0.2"));
        });
        check_read(&buffer);
        assert!(fs::read(guest.file(pair.2)).unwrap() == image(), "the drive was written to");
    }
}

pub fn a_drive_writes_from_the_memory_of_another_card_only_to_a_namespace_that_is_named() {
    let mut guest = shared();
    let pair = AT_ROOT_PORTS;
    let asked = "--question p2p_read_bandwidth --sizes 4KiB --budget 0.2";
    let buffer = buffer_after(&mut guest, pair.1, |guest| {
        let unnamed = guest.run(&bench(pair, asked));
        assert!(unnamed.status == 77 && unnamed.stdout.contains("DMA reads of another card"), "{unnamed:?}");
        assert!(unnamed.stderr.contains("a namespace that --destructive names"), "{unnamed:?}");
        assert!(fs::read(guest.file(pair.2)).unwrap() == image(), "nothing is written without the name");
        let found = record(guest, &bench(pair, &format!("{asked} --destructive 1:8KiB")));
        assert_eq!(answers(&found, "p2p_read_bandwidth"), 1, "{}", found["skipped"]);
        let said = guest.run(&bench(pair, &format!("{asked} --destructive 1:4KiB")));
        assert!(format!("{}{}", said.stdout, said.stderr).contains("--destructive permits 4KiB"), "{said:?}");
    });
    let now = fs::read(guest.file(pair.2)).unwrap();
    assert!(now[..8192] == buffer[4096..12288] && now[..8192] != image()[..8192], "the bytes of the other card");
    assert!(now[8192..] == image()[8192..], "a block beyond the window was written");
    fs::write(guest.file(pair.2), image()).unwrap();
}

pub fn a_dry_run_of_a_drive_with_another_card_lists_the_steps_and_changes_nothing() {
    let mut guest = shared();
    let pair = BELOW_A_SWITCH;
    let said = {
        let asked = "--question p2p_write_bandwidth,p2p_read_bandwidth --sizes 4KiB --destructive 1:8KiB --dry-run";
        let mut said = String::new();
        buffer_after(&mut guest, pair.1, |guest| said = guest.expect(&bench(pair, asked)));
        said
    };
    for words in [
        "opened in the same container: 0000:06:00.0, which is reset if it can be; BAR2 from 0x1000 to 0x2fff: overwritten",
        "controller memory buffer of 0000:06:00.0: CAP loaded; since NVMe 1.4, CMBMSC stored",
        "NVMe drive, registers in BAR0",
        "reads of the drive: 256 x 4KiB per iteration",
        "to offsets 0x1000 to 0x2fff of BAR2 of 0000:06:00.0",
        "from offsets 0x1000 to 0x2fff of BAR2 of 0000:06:00.0; the first 8KiB of the namespace is overwritten",
        "dry run, nothing was accessed",
    ] {
        assert!(said.contains(words), "{words}:\n{said}");
    }
    assert!(fs::read(guest.file(pair.2)).unwrap() == image(), "the drive was written to");
}

pub fn memory_that_a_drive_cannot_use_is_refused_with_the_reason() {
    let mut guest = shared();
    let (drive, memory, _) = AT_ROOT_PORTS;
    let refused = |guest: &mut Guest, arguments: &str, words: &str| {
        let asked = format!("lanemark bench --on {drive} --question p2p_write_bandwidth --sizes 4KiB {arguments}");
        let said = guest.run(&asked);
        assert!(said.status != 0 && said.stderr.contains(words), "{words}: {said:?}");
        let driver = guest.expect(&format!("basename $(readlink /sys/bus/pci/devices/{drive}/driver)"));
        assert_eq!(driver.trim(), "nvme", "its driver is restored: {said:?}");
    };
    let bind = "--bind vfio-pci";
    // The drive with the memory still has its driver `nvme`, not `vfio-pci`.
    refused(&mut guest, &format!("{bind} --peer {memory}:2:0..4KiB"), &format!("lanemark bind {memory}"));
    refused(&mut guest, &format!("{bind} --peer {drive}:2:0..4KiB"), "is the target itself");
    refused(&mut guest, &format!("{bind} --peer {memory}:2:0..4095"), "multiples of 4096 B");
    refused(
        &mut guest,
        &format!("--peer {memory}:2:0..4KiB"),
        "--peer: the target 0000:01:00.0 is not bound to vfio-pci",
    );
    buffer_after(&mut guest, memory, |guest| {
        refused(guest, &format!("{bind} --peer {memory}:2:0..2MiB"), "2:0..2MiB ends beyond BAR2");
        refused(
            guest,
            &format!("{bind} --peer {memory}:0:0..4KiB"),
            "BAR0 is not prefetchable, so it may be registers",
        );
        let kept = format!("{bind} --peer {memory}:2:0..4KiB --nvme-data-place cmb");
        refused(guest, &kept, "--nvme-data-place cmb keeps all data in the drive: remove it");
    });
    let bridge = "lanemark bench --on 0000:03:00.0 --peer 0000:02:00.0:2:0..4KiB --question p2p_latency";
    let said = guest.run(bridge);
    let words = "--peer needs a target with DMA: an NVMe drive without --device, or a card whose --device file";
    assert!(said.status == 2 && said.stderr.contains(words), "{said:?}");
}

pub fn removing_the_other_card_ends_the_reads_of_a_drive_to_its_memory() {
    let mut guest = shared();
    let (drive, memory, _) = AT_ROOT_PORTS;
    guest.expect(&format!("lanemark bind {memory}"));
    started(&mut guest, drive, &format!("--peer {memory}:2:4KiB..12KiB --question p2p_write_bandwidth --sizes 4KiB"));
    guest.monitor("device_del second");
    let (status, said) = ended(&mut guest);
    // The kernel takes its driver away first.
    let is_named = said.contains(&format!("{memory} is gone")) || said.contains(&format!("lanemark: {memory} was "));
    assert!(status == "1" && is_named, "{status} {said}");
    assert!(said.contains("restored; driver now: nvme\n"), "{said}");
    guest.expect(&format!("rm -f /run/lanemark/{memory}.*"));
    plugged_again(&mut guest, memory, "nvme,id=second,bus=rp2,serial=second,cmb_size_mb=1");
    guest.expect(&format!(
        "for i in $(seq 300); do [ -e /sys/bus/pci/devices/{memory}/driver ] && exit 0; sleep 0.1; done; exit 1"
    ));
}

pub fn below_one_switch_drives_move_data_with_acs_redirect_on_and_off() {
    moves_below_the_switch(&mut shared(), 0b1100);
    moves_below_the_switch(&mut boot(&format!("pci=disable_acs_redir={}", PORTS.join(";"))), 0);
}

/// Checks the ACS bits of the ports of the switch, what follows for groups and for the doctor, and that data move.
fn moves_below_the_switch(guest: &mut Guest, bits: u16) {
    let (drive, memory, _) = BELOW_A_SWITCH;
    for (port, card) in PORTS.into_iter().zip([drive, memory]) {
        assert_eq!(redirection(guest, port), Some(bits), "{port}");
        let mut group = |of| guest.expect(&format!("basename $(readlink /sys/bus/pci/devices/{of}/iommu_group)"));
        // With redirect on, Linux gives the card a group of its own.
        assert_eq!(group(port) == group(card), bits == 0, "{port}");
    }
    let said = guest.expect("lanemark doctor");
    let words =
        "2 of 2 ports of one switch redirect requests (ACS): peer-to-peer traffic goes up to the root and back down";
    assert_eq!(said.contains(words), bits != 0, "{said}");
    let buffer = buffer_after(guest, memory, |guest| {
        let asked = "--question p2p_write_bandwidth --sizes 4KiB --budget 0.2";
        let found = record(guest, &bench(BELOW_A_SWITCH, asked));
        assert_eq!(answers(&found, "p2p_write_bandwidth"), 1, "{}", found["skipped"]);
    });
    check_read(&buffer);
}
