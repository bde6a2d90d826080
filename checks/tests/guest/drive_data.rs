//! An NVMe drive behind VFIO: several queue pairs, reads and writes at once, and data in the drive. The guest is that of `drive`.

use crate::drive::{DRIVE, EMPTY, IMAGE, LOST, SMALL, behind_vfio, image, record, shared};
use std::fs;

pub fn channels_are_queue_pairs_of_a_drive_and_their_bytes_are_those_of_the_image() {
    let mut guest = shared();
    guest.expect("dd if=/dev/nvme0n1 of=kernel bs=256k count=1 2>/dev/null");
    behind_vfio(&mut guest, DRIVE, |guest| {
        for (pairs, depth) in [(2, 1), (2, 63), (4, 1), (4, 5)] {
            for more in ["", "queues=cmb", "completions=interrupt", "queues=cmb completions=interrupt"] {
                let read = format!("read-drive {DRIVE} 0 262144 512 {depth} pairs={pairs} {more}");
                guest.expect(&format!("{read} >read && cmp kernel read"));
            }
        }
        // The same drive with one pair again.
        guest.expect(&format!("read-drive {DRIVE} 0 262144 512 8 >read && cmp kernel read"));
    });
    let asked = "--question dma_write_bandwidth --sizes 4KiB --budget 0.2";
    for (channels, more) in
        [(2, "--outstanding 1"), (4, ""), (2, "--nvme-queues cmb"), (4, "--nvme-completions interrupt --outstanding 8")]
    {
        let found = record(&mut guest, &format!("--on {DRIVE} {asked} --channels {channels} {more}"));
        let answer = &found["answers"][0];
        assert_eq!(answer["method"]["reach"]["channels"], channels, "{}", found["skipped"]);
        assert_eq!(answer["bytes"]["claimed_bytes"], answer["bytes"]["confirmed_bytes"], "{channels} {more}: {answer}");
        assert!(answer["bytes"]["confirmed_bytes"].as_u64().unwrap() >= 1 << 20, "{answer}");
        let summary = found["targets"][0]["summary"].to_string();
        assert!(summary.contains("up to 64 I/O queue pairs"), "{summary}");
    }
    // This one grants two.
    let summary = {
        let found = record(&mut guest, &format!("--on {LOST} {asked} --channels 2 --nvme-completions interrupt"));
        let answer = &found["answers"][0];
        assert_eq!(answer["bytes"]["claimed_bytes"], answer["bytes"]["confirmed_bytes"], "{}", found["skipped"]);
        found["targets"][0]["summary"].to_string()
    };
    assert!(summary.contains("by MSI-X interrupt, 1 vector for all queue pairs"), "{summary}");
    let said = guest.run(&format!("lanemark bench --bind vfio-pci --on {LOST} {asked} --channels 3"));
    let words = "2 I/O queue pairs can be used";
    assert!(format!("{}{}", said.stdout, said.stderr).contains(words), "{said:?}");
    let dry = guest.expect(&format!("lanemark bench --bind vfio-pci --on {DRIVE} {asked} --channels 4 --dry-run"));
    assert!(dry.contains("at most 63 outstanding on each of 4 I/O queue pairs"), "{dry}");
    assert!(fs::read(guest.file("image")).unwrap() == image(IMAGE), "the drive was written to");
}

pub fn pages_of_each_size_that_the_system_has_hold_the_data_of_reads_and_writes() {
    let mut guest = shared();
    fs::write(guest.file("lost"), image(IMAGE)).unwrap();
    guest.expect("echo 40 >/proc/sys/vm/nr_hugepages");
    for pages in ["4KiB", "2MiB"] {
        for (questions, more) in [
            ("doorbell_to_completion", ""),
            ("dma_write_bandwidth", "--outstanding 1"),
            ("dma_write_bandwidth,dma_read_bandwidth", "--outstanding 8 --destructive 1:1MiB --window 1MiB"),
        ] {
            let asked = format!("--question {questions} --sizes 512,64KiB --host-pages {pages} {more} --budget 0.5");
            let found = record(&mut guest, &format!("--on {LOST} {asked}"));
            let summary = found["targets"][0]["summary"].to_string();
            assert!(summary.contains(&format!("host memory in pages of {pages}")), "{summary}");
            let answers = found["answers"].as_array().unwrap();
            let of = |question: &str| answers.iter().filter(|answer| answer["question"] == question).count();
            assert!(questions.split(',').all(|question| of(question) >= 2), "{asked}: {}", found["skipped"]);
            for answer in answers {
                let bytes = &answer["bytes"];
                assert!(bytes["claimed_bytes"].as_u64().is_some_and(|bytes| bytes >= 512), "{asked}: {answer}");
                assert_eq!(bytes["claimed_bytes"], bytes["confirmed_bytes"], "{asked}: {answer}");
            }
        }
    }
    guest.expect("echo 0 >/proc/sys/vm/nr_hugepages");
}

pub fn reads_and_writes_of_a_drive_alternate_and_both_directions_are_compared() {
    let mut guest = shared();
    fs::write(guest.file("lost"), image(IMAGE)).unwrap();
    let asked = "--question dma_read_write_mix --sizes 512,4KiB,64KiB --window 1MiB --budget 1";
    let bench = format!("--on {LOST} {asked}");
    let unnamed = guest.run(&format!("lanemark bench --bind vfio-pci {bench}"));
    assert!(unnamed.status == 77 && unnamed.stderr.contains("a namespace that --destructive names"), "{unnamed:?}");
    let dry = guest.expect(&format!("lanemark bench --bind vfio-pci {bench} --destructive 1:1MiB --dry-run"));
    for words in [
        "reads of the drive and writes to it, alternately: 256 x 4KiB of each per iteration",
        "the first 1MiB of the namespace is overwritten, and blocks behind it are read",
    ] {
        assert!(dry.contains(words), "{words}: {dry}");
    }
    assert!(fs::read(guest.file("lost")).unwrap() == image(IMAGE), "nothing is written without the name");
    for more in
        ["", "--channels 2", "--outstanding 4 --nvme-queues cmb", "--nvme-data sgl-list --nvme-completions interrupt"]
    {
        let found = record(&mut guest, &format!("{bench} --destructive 1:1MiB {more}"));
        let answers = found["answers"].as_array().unwrap();
        assert_eq!(answers.len(), 3, "{more}: {}", found["skipped"]);
        for answer in answers {
            let bytes = &answer["bytes"];
            assert_eq!(bytes["claimed_bytes"], bytes["confirmed_bytes"], "{more}: {answer}");
            // Both directions of the last iteration.
            assert!(bytes["confirmed_bytes"].as_u64() >= Some(1 << 20), "{more}: {answer}");
        }
    }
    let (now, before) = (fs::read(guest.file("lost")).unwrap(), image(IMAGE));
    let is_lost = |block: usize| now[block..block + 512] != before[block..block + 512];
    assert!((0..1 << 20).step_by(512).all(is_lost), "each block of the window was written");
    assert!(now[1 << 20..] == before[1 << 20..], "a block beyond the window was written");
    let said = guest.run(&format!("lanemark bench --bind vfio-pci {bench} --destructive 1:1MiB --channels 4"));
    assert!(format!("{}{}", said.stdout, said.stderr).contains("use --channels 2"), "{said:?}");
}

pub fn data_in_the_controller_memory_buffer_are_the_bytes_of_the_image_and_cross_no_link() {
    let mut guest = shared();
    fs::write(guest.file("lost"), image(IMAGE)).unwrap();
    for (drive, block, node) in [(DRIVE, 512, "nvme0n1"), (SMALL, 4096, "nvme1n1")] {
        guest.expect(&format!("dd if=/dev/{node} of=kernel bs=256k count=1 2>/dev/null"));
        behind_vfio(&mut guest, drive, |guest| {
            // QEMU refuses segments in host memory for data in the buffer, which the standard permits.
            for more in ["", "data=sgl", "queues=cmb", "queues=cmb pairs=4", "completions=interrupt"] {
                for bytes in [block, 16384] {
                    let read = format!("read-drive {drive} 0 262144 {bytes} 8 place=cmb {more}");
                    guest.expect(&format!("{read} >read && cmp kernel read"));
                }
            }
        });
    }
    let asked = "--nvme-data-place cmb --sizes 512,4KiB,64KiB --budget 0.3 --question";
    for more in ["", "--nvme-queues cmb", "--channels 4 --window 512KiB"] {
        let found = record(&mut guest, &format!("--on {DRIVE} {asked} dma_write_bandwidth {more}"));
        let answers = found["answers"].as_array().unwrap();
        assert_eq!(answers.len(), 3, "{more}: {}", found["skipped"]);
        for answer in answers {
            assert_eq!(answer["bytes"]["claimed_bytes"], answer["bytes"]["confirmed_bytes"], "{more}: {answer}");
        }
        let summary = found["targets"][0]["summary"].to_string();
        assert!(
            summary.contains("in the controller memory buffer of 1MiB at BAR2+0x0")
                && summary.contains("off the link in samples")
        );
        assert!(found["warnings"].to_string().contains("is no measure of link bandwidth"), "{found}");
    }
    let bench = format!("{asked} dma_read_bandwidth,dma_read_write_mix --window 256KiB --destructive 1:256KiB");
    let found = record(&mut guest, &format!("--on {LOST} {bench}"));
    let answers = found["answers"].as_array().unwrap();
    assert_eq!(answers.len(), 6, "{}", found["skipped"]);
    for answer in answers {
        assert_eq!(answer["bytes"]["claimed_bytes"], answer["bytes"]["confirmed_bytes"], "{answer}");
    }
    let (now, before) = (fs::read(guest.file("lost")).unwrap(), image(IMAGE));
    assert!((0..256 << 10).step_by(512).all(|block| now[block..block + 512] != before[block..block + 512]));
    assert!(now[256 << 10..] == before[256 << 10..], "a block beyond the window was written");
    let dry =
        guest.expect(&format!("lanemark bench --bind vfio-pci --on {DRIVE} {asked} dma_write_bandwidth --dry-run"));
    for words in ["of the controller memory buffer; the blocks", "filled by stores and verified by loads"] {
        assert!(dry.contains(words), "{words}: {dry}");
    }
    let said = guest.run(&format!("lanemark bench --bind vfio-pci --on {EMPTY} {asked} dma_write_bandwidth"));
    let words =
        "the drive has no controller memory buffer (CMBSZ): use another drive, or remove the option --nvme-data-place";
    assert!(said.status == 77 && said.stderr.contains(words), "{said:?}");
    let asked = format!("{asked} dma_write_bandwidth --nvme-queues cmb --window 1020KiB");
    let said = guest.run(&format!("lanemark bench --bind vfio-pci --on {DRIVE} {asked} --channels 4"));
    let said = format!("{}{}", said.stdout, said.stderr);
    assert!(said.contains("1008KiB are free behind the queues: use a smaller --window"), "{said}");
    assert!(fs::read(guest.file("image")).unwrap() == image(IMAGE), "the drive was written to");
}
