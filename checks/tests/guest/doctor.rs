//! `lanemark doctor` on a real kernel's device tree, which it must not change.

use crate::guest::{Guest, Hardware, usual_kernel};
use crate::{LARGE_BYTES, STORAGE_BYTES, shared};
use lanemark_checks::lanemark;
use serde_json::{Value, json};
use std::fs;

/// Every byte of configuration space, and whether each device is enabled.
fn state(guest: &mut Guest) -> String {
    guest.expect("cd /sys/bus/pci/devices; for f in *; do echo $f $(cat $f/enable); xxd $f/config; done")
}

pub fn the_tree_shows_the_slow_switch_and_nothing_is_changed() {
    let mut guest = shared();
    let before = state(&mut guest);
    let said = guest.expect("lanemark doctor");
    assert_eq!(state(&mut guest), before);
    let drawn = |line: &str| assert!(said.lines().any(|drawn| drawn == line), "'{line}' is not in:\n{said}");
    drawn("├─ 00:02.0 PCI bridge, root port, driver pcieport");
    drawn("│  └─ 01:00.0 RAM memory");
    drawn("│  └─ 02:00.0 PCI bridge, upstream port, driver pcieport   Gen1 x1 (Gen3 x8 above)");
    drawn("│     └─ 03:00.0 PCI bridge, downstream port, driver pcieport");
    drawn("│        └─ 04:00.0 Class 00ff");
    assert!(said.contains("00:07.0 Non-Volatile memory controller, integrated endpoint, driver nvme"), "{said}");
    assert!(said.contains("Linux 6.") && said.contains("1 IOMMU unit"), "{said}");
}

pub fn the_json_document_matches_the_kernels_bars_drivers_and_groups() {
    let mut guest = shared();
    let document: Value = serde_json::from_str(&guest.expect("lanemark doctor --json")).unwrap();
    let functions = document["functions"].as_array().unwrap();
    let listed: Vec<&str> = functions.iter().map(|function| function["address"].as_str().unwrap()).collect();
    let there = guest.expect("ls /sys/bus/pci/devices");
    assert_eq!(listed, there.split_whitespace().collect::<Vec<_>>());
    for function in functions {
        let at = format!("/sys/bus/pci/devices/{}", function["address"].as_str().unwrap());
        let driver = guest.expect(&format!("basename $(readlink {at}/driver) 2>/dev/null || true"));
        let said = function["driver"]["value"].as_str().unwrap_or("");
        assert_eq!(said, driver.trim(), "{at}");
        let group = guest.expect(&format!("basename $(readlink {at}/iommu_group)"));
        assert_eq!(function["iommu_group"]["value"].to_string(), group.trim(), "{at}");
    }
    let large = functions.iter().find(|function| function["address"] == "0000:05:00.0").unwrap();
    let bars = large["bars"]["value"].as_array().unwrap();
    let sizes: Vec<(u64, u64)> =
        bars.iter().map(|bar| (bar["index"].as_u64().unwrap(), bar["size_bytes"]["value"].as_u64().unwrap())).collect();
    assert_eq!(sizes, [(0, 256), (2, LARGE_BYTES)]);
    assert!(bars[1]["address_bytes"]["value"].as_u64() >= Some(4 << 30), "{bars:?}");
}

pub fn without_root_it_reports_unseen_facts() {
    let said = shared().run_as_somebody("lanemark", "doctor");
    assert_eq!(said.status, 0, "{said:?}");
    assert!(said.stdout.contains("not visible") && said.stdout.contains("root"), "{}", said.stdout);
}

/// Findings of a check in the machine, with more arguments for `doctor`.
fn findings(guest: &mut Guest, more: &str, check: &str) -> Vec<Value> {
    let mut document: Value = serde_json::from_str(&guest.expect(&format!("lanemark doctor --json {more}"))).unwrap();
    let Value::Array(all) = document["findings"].take() else { panic!("{document}") };
    all.into_iter().filter(|finding| finding["check"] == check).collect()
}

/// Two NUMA nodes with a processor each. On the second one, 41:00.0 is nvme below a root port of another host bridge.
const TWO_NODES: &[&str] = &[
    "-smp 2",
    "-object memory-backend-ram,id=here,size=256M",
    "-object memory-backend-ram,id=there,size=256M",
    "-numa node,nodeid=0,cpus=0,memdev=here",
    "-numa node,nodeid=1,cpus=1,memdev=there",
    "-device pxb-pcie,id=other,bus_nr=0x40,numa_node=1",
    "-device pcie-root-port,id=rp1,bus=other,chassis=1,slot=1",
    "-drive if=none,id=medium,format=raw,file={folder}/drive",
    "-device nvme,bus=rp1,serial=none,drive=medium",
];

pub fn a_drive_on_another_node_is_found_by_the_processors_that_its_interrupts_go_to() {
    let hardware = Hardware { packages: usual_kernel(), devices: TWO_NODES, kernel: "" };
    let mut guest = Guest::boot(&hardware, &[lanemark()], |folder| {
        fs::write(folder.join("drive"), vec![0; STORAGE_BYTES]).unwrap();
    });
    let socket = findings(&mut guest, "--cpus 0", "socket");
    let reason = "the card is on NUMA node 1 but processors 0 are on node 0 (distance 20, local 10)";
    assert_eq!((socket.len(), &socket[0]["reason"]), (1, &json!(reason)));
    assert_eq!(findings(&mut guest, "--cpus 1", "socket"), [] as [Value; 0]);
    // This driver has a queue for each processor, whose interrupts go to the processor that reads.
    let read = |guest: &mut Guest, processor: u32, count: u32| {
        let dd = format!("dd if=/dev/nvme0n1 of=/dev/null iflag=direct bs=4k count={count}");
        guest.expect(&format!("taskset {:x} {dd}", 1 << processor));
        findings(guest, "", "interrupts")
    };
    assert_eq!(read(&mut guest, 1, 64), [] as [Value; 0]);
    let found = read(&mut guest, 0, 128);
    let count = "awk '/nvme/ { far += $2; near += $3 } END { print far \" of \" far + near }' /proc/interrupts";
    let counted = guest.expect(count);
    assert_eq!((found.len(), &found[0]["functions"]), (1, &json!(["0000:41:00.0"])));
    let reason = found[0]["reason"].as_str().unwrap();
    assert!(reason.starts_with(&format!("{} interrupts since boot", counted.trim())), "{reason} {counted}");
    // The kernel refuses to move the interrupt of a queue. That of other commands it moves when the next one occurs.
    let moved = guest.run(found[0]["fix"]["command"].as_str().unwrap());
    assert_eq!(moved.stderr.matches("Input/output error").count(), 1, "{moved:?}");
    let [others, queue] = ["nvme0q0", "nvme0q1"].map(|name| {
        let number = guest.expect(&format!("awk -F '[ :]+' '/{name}/ {{ print $2 }}' /proc/interrupts"));
        number.trim().to_owned()
    });
    let is_moved = format!("[ $(cat /proc/irq/{others}/effective_affinity_list) = 1 ]");
    guest.expect(&format!(
        "echo 1 >/sys/class/nvme/nvme0/rescan_controller; for i in $(seq 100); do {is_moved} && break; sleep 0.1; done; {is_moved}"
    ));
    let found = findings(&mut guest, "", "interrupts");
    let left = format!("for i in {queue}; do echo 1 > /proc/irq/$i/smp_affinity_list; done");
    assert_eq!(found[0]["fix"]["command"], json!(left));
    assert_eq!(read(&mut guest, 1, 256), [] as [Value; 0]);
}

/// A machine that does not look virtual: no flag of its processor says so, and its devices are Intel's and Huawei's.
///
/// | address | device |
/// | --- | --- |
/// | 01:00.0 | nvme, Gen1 x1 |
/// | 02:00.0 | the upstream port of a switch, Gen3 x4 |
/// | 04:00.0, 05:00.0 | memory with CXL below this switch, Gen5 x16 |
const NOT_VIRTUAL: &[&str] = &[
    "-cpu max,+invtsc,x-force-features=on,erms=off,fsrm=off,smap=off,la57=off,-hypervisor",
    "-device intel-iommu,intremap=on,caching-mode=on",
    "-device ioh3420,id=rp1,chassis=1,slot=1,addr=0x2",
    "-device nvme,bus=rp1,serial=none,use-intel-id=on",
    "-device cxl-rp,id=rp2,chassis=2,slot=2,addr=0x3,x-speed=8,x-width=4",
    "-device cxl-upstream,id=up,bus=rp2,x-speed=8,x-width=4",
    "-device cxl-downstream,id=dn1,bus=up,chassis=3,slot=3,x-speed=32,x-width=16",
    "-object memory-backend-ram,id=memory1,size=256M",
    "-device cxl-type3,bus=dn1,x-speed=32,x-width=16,volatile-memdev=memory1",
    "-device cxl-downstream,id=dn2,bus=up,chassis=4,slot=4,x-speed=32,x-width=16",
    "-object memory-backend-ram,id=memory2,size=256M",
    "-device cxl-type3,bus=dn2,x-speed=32,x-width=16,volatile-memdev=memory2",
];

pub fn cards_below_a_narrower_uplink_and_what_is_between_peers_are_found() {
    let hardware = Hardware { packages: usual_kernel(), devices: NOT_VIRTUAL, kernel: "" };
    let mut guest = Guest::boot(&hardware, &[lanemark()], |_| ());
    let cards = ["0000:04:00.0", "0000:05:00.0"];
    let narrow = findings(&mut guest, "", "narrow_uplink");
    let reason = "its link of Gen5 x16 is below the uplink of 0000:02:00.0 with Gen3 x4, which carries less";
    let found: Vec<Value> = narrow.iter().map(|finding| json!([finding["functions"][0], finding["reason"]])).collect();
    assert_eq!(found, cards.map(|card| json!([card, reason])));
    let shared = findings(&mut guest, "", "uplink");
    assert_eq!((shared.len(), &shared[0]["functions"]), (1, &json!(cards)));
    let document: Value = serde_json::from_str(&guest.expect("lanemark doctor --json")).unwrap();
    let peers: Vec<&str> = document["peers"].as_array().unwrap().iter().map(|said| said.as_str().unwrap()).collect();
    let [path, redirect, groups] = peers[..] else { panic!("{peers:#?}") };
    assert!(path.starts_with("devices are below 2 root ports (0000:00:02.0, 0000:00:03.0)"), "{path}");
    // Only the second port has ACS, and the kernel has enabled it.
    assert!(redirect.starts_with("ACS P2P Request Redirect is on at 1 of 2 root ports: "), "{redirect}");
    assert!(groups.starts_with("3 IOMMU groups, none spans two root ports: "), "{groups}");
}
