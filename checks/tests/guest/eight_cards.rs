//! Eight cards below a tree of switches that move data between them, as eight FPGAs on one PCIe cable do.

use crate::guest::{Guest, Hardware, usual_kernel};
use lanemark_checks::lanemark;
use serde_json::Value;
use std::fs;

const CARDS: usize = 8;
/// Bus of each card: a top switch has two switches below it, with four cards each.
const BUSES: [&str; CARDS] = ["05", "06", "07", "08", "0b", "0c", "0d", "0e"];
const BEFORE: u8 = 0xa7;
const BYTES: usize = 64 << 10;

/// Each card is a device with two functions: edu, which has an engine, and ivshmem, whose BAR2 is the file `memoryN` on the
/// outside. As for `dma`, time jumps to the next event where the guest waits.
fn devices() -> Vec<String> {
    let mut devices = vec![
        "-icount shift=6,sleep=off".to_owned(),
        "-device intel-iommu,intremap=on,caching-mode=on".to_owned(),
        "-device pcie-root-port,id=root,chassis=1,slot=1,addr=0x2".to_owned(),
        "-device x3130-upstream,id=top,bus=root".to_owned(),
    ];
    for switch in 0..2 {
        devices.push(format!("-device xio3130-downstream,id=down{switch},bus=top,chassis={},slot=0", 10 + switch));
        devices.push(format!("-device x3130-upstream,id=switch{switch},bus=down{switch}"));
        for card in 4 * switch..4 * switch + 4 {
            let memory =
                format!("-object memory-backend-file,id=memory{card},share=on,mem-path={{folder}}/memory{card}");
            devices.push(format!(
                "-device xio3130-downstream,id=slot{card},bus=switch{switch},chassis={},slot=0",
                20 + card
            ));
            devices.push(format!("{memory},size=64K"));
            devices.push(format!("-device edu,bus=slot{card},addr=0x0.0,multifunction=on"));
            devices.push(format!("-device ivshmem-plain,memdev=memory{card},bus=slot{card},addr=0x0.1"));
        }
    }
    devices
}

pub fn eight_cards_move_data_in_a_ring_and_touch_nothing_beside_the_named_pages() {
    let devices = devices();
    let devices: Vec<&str> = devices.iter().map(String::as_str).collect();
    let hardware = Hardware { packages: usual_kernel(), devices: &devices, kernel: "" };
    let mut guest = Guest::boot(&hardware, &[lanemark()], |folder| {
        for card in 0..CARDS {
            fs::write(folder.join(format!("memory{card}")), vec![BEFORE; BYTES]).unwrap();
        }
    });
    let tree = guest.expect("lanemark doctor");
    for bus in BUSES {
        assert!(
            tree.contains(&format!("{bus}:00.0 Class 00ff")) && tree.contains(&format!("{bus}:00.1 RAM memory")),
            "{tree}"
        );
        guest.expect(&format!("lanemark bind 0000:{bus}:00.1 >/dev/null"));
    }
    for (card, bus) in BUSES.into_iter().enumerate() {
        let next = (card + 1) % CARDS;
        let peer = format!("0000:{}:00.1", BUSES[next]);
        guest.expect(&format!(
            "lanemark bench --on 0000:{bus}:00.0 --bind vfio-pci --device edu --peer {peer}:2:4KiB..8KiB --question p2p_latency \
             --sizes 2KiB --budget 0.1 --record ring.json >/dev/null"
        ));
        let record: Value = serde_json::from_str(&guest.expect("cat ring.json")).unwrap();
        let bytes = &record["answers"][0]["bytes"];
        assert!(bytes["claimed_bytes"] == 2048 && bytes["confirmed_bytes"] == 2048, "{card}: {}", record["skipped"]);
        let of_peer = &record["targets"][0]["card"]["peer"];
        assert_eq!(
            (&of_peer["device"], &of_peer["offset_bytes"]),
            (&Value::from(peer), &Value::from(4096)),
            "{of_peer}"
        );
        // The memories of the cards up to the next one have changed, and no others.
        for (other, memory) in (0..CARDS).map(|other| (other, fs::read(guest.file(&format!("memory{other}"))).unwrap()))
        {
            let is_changed = |range: std::ops::Range<usize>| memory[range].iter().any(|byte| *byte != BEFORE);
            assert_eq!(
                is_changed(4096..8192),
                (1..=card + 1).any(|done| done % CARDS == other),
                "{card} to {next}: {other}"
            );
            assert!(
                !is_changed(0..4096) && !is_changed(8192..BYTES),
                "{card} to {next}: bytes beside the pages of {other}"
            );
        }
    }
}
