//! A synthetic machine as a folder, a tar and a compressed tar; and the machine that runs the test.

use lanemark_inventory::{Inventory, InventoryError, Seen, Source, Why};
use lanemark_units::{HostPhys, MemoryType};
use lanemark_wire::config::LinkSpeed;
use proptest::prelude::*;
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

const PORT: &str = "sys/devices/pci0000:3a/0000:3a:00.0";
const CARD: &str = "sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0";

/// Configuration space of a Gen4 x16 card trained at Gen3 x8: a 64-byte header, and PCI Express at 0x40.
fn config() -> Vec<u8> {
    let mut bytes = vec![0; 256];
    bytes[..12].copy_from_slice(&[0x0f, 0x1d, 0x01, 0xf0, 6, 0, 0x10, 0, 2, 0, 0x80, 0x05]);
    bytes[0x34] = 0x40;
    bytes[0x40..0x44].copy_from_slice(&[0x10, 0, 2, 0]);
    bytes[0x4c..0x50].copy_from_slice(&[0x04, 0x01, 0, 0]);
    bytes[0x52..0x54].copy_from_slice(&[0x83, 0]);
    bytes
}

fn write(root: &Path, path: &str, contents: impl AsRef<[u8]>) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, contents).unwrap();
}

fn link(root: &Path, path: &str, target: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    symlink(target, path).unwrap();
}

/// A root port, a card with a BAR of 128 GiB, two sockets, and a write-combining MTRR.
fn machine(root: &Path) {
    for (folder, address, ids) in
        [(PORT, "0000:3a:00.0", ["0x8086", "0x2030"]), (CARD, "0000:3b:00.0", ["0x1d0f", "0xf001"])]
    {
        link(root, &format!("sys/bus/pci/devices/{address}"), &format!("../../../../{folder}"));
        write(root, &format!("{folder}/vendor"), format!("{}\n", ids[0]));
        write(root, &format!("{folder}/device"), format!("{}\n", ids[1]));
        write(root, &format!("{folder}/numa_node"), "1\n");
        write(root, &format!("{folder}/power_state"), "D0\n");
    }
    let mut port = vec![0; 64];
    port[..12].copy_from_slice(&[0x86, 0x80, 0x30, 0x20, 6, 0, 0, 0, 0, 0, 0x04, 0x06]);
    port[0x0e] = 1;
    port[0x18..0x1b].copy_from_slice(&[0x3a, 0x3b, 0x3b]);
    write(root, &format!("{PORT}/config"), port);
    write(root, &format!("{CARD}/config"), config());
    let mut resource = ["0x0000000000000000 0x0000000000000000 0x0000000000000000"; 7];
    resource[0] = "0x00000000c4000000 0x00000000c5ffffff 0x0000000000040200";
    resource[4] = "0x000005c000000000 0x000005dfffffffff 0x000000000014220c";
    write(root, &format!("{CARD}/resource"), format!("{}\n", resource.join("\n")));
    for file in ["resource0", "resource4", "resource4_wc"] {
        write(root, &format!("{CARD}/{file}"), "");
    }
    write(root, &format!("{CARD}/resource4_resize"), "00000000000ff000\n");
    write(root, &format!("{CARD}/local_cpulist"), "8-15\n");
    write(root, &format!("{CARD}/aer_dev_correctable"), "RxErr 0\nBadTLP 12\nTOTAL_ERR_COR 12\n");
    link(root, &format!("{CARD}/driver"), "../../../../bus/pci/drivers/xdma");
    link(root, &format!("{CARD}/iommu_group"), "../../../../kernel/iommu_groups/42");
    write(root, "sys/kernel/iommu_groups/42/type", "DMA-FQ\n");
    write(root, "proc/mtrr", "reg00: base=0x5c000000000 (6029312MB), size=131072MB, count=1: write-combining\n");
    write(
        root,
        "proc/cpuinfo",
        "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: Some Xeon\nstepping\t: 4\n\
         microcode\t: 0x2007006\nphysical id\t: 0\nflags\t\t: sse2 pat mtrr\n\nprocessor\t: 1\nphysical id\t: 1\n",
    );
    write(root, "proc/cmdline", "root=/dev/sda quiet\n");
    write(root, "proc/sys/kernel/osrelease", "6.12.4\n");
    write(root, "sys/module/pcie_aspm/parameters/policy", "default [performance] powersave powersupersave\n");
    write(root, "sys/devices/system/cpu/online", "0-1\n");
    for cpu in 0..2 {
        write(root, &format!("sys/devices/system/cpu/cpufreq/policy{cpu}/scaling_governor"), "powersave\n");
        write(root, &format!("sys/devices/system/cpu/cpufreq/policy{cpu}/scaling_driver"), "intel_pstate\n");
        link(root, &format!("sys/devices/system/cpu/cpu{cpu}/cpufreq"), &format!("../cpufreq/policy{cpu}"));
        write(root, &format!("sys/devices/system/node/node{cpu}/cpulist"), format!("{cpu}\n"));
        write(root, &format!("sys/devices/system/node/node{cpu}/meminfo"), format!("Node {cpu} MemTotal:  1024 kB\n"));
        write(root, &format!("sys/devices/system/node/node{cpu}/distance"), "10 21\n");
    }
    write(root, &format!("{CARD}/irq"), "11\n");
    write(root, &format!("{PORT}/irq"), "0\n");
    for (number, cpu) in [(130, 0), (131, 1)] {
        write(root, &format!("{CARD}/msi_irqs/{number}"), "msix\n");
        write(root, &format!("proc/irq/{number}/effective_affinity_list"), format!("{cpu}\n"));
    }
    write(
        root,
        "proc/interrupts",
        "            CPU0       CPU1\n  9:   5   5  IO-APIC   9-fasteoi   acpi\n130:   7   3  PCI-MSIX   0-edge   xdma\n",
    );
    write(
        root,
        "dev/kmsg",
        "[ 9.1] DMAR: [DMA Read NO_PASID] Request device [3b:00.0] fault addr 0xfe000000 [fault]\n",
    );
    write(root, "sys/devices/system/cpu/cpu0/cpuidle/state1/name", "C6\n");
    write(root, "sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "133\n");
    write(root, "sys/devices/system/cpu/cpu0/cpuidle/state1/disable", "0\n");
}

fn tar_of(root: &Path, top: &str) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    tar.follow_symlinks(false);
    tar.append_dir_all(top, root).unwrap();
    tar.into_inner().unwrap()
}

fn read(bytes: &[u8]) -> Result<Inventory, InventoryError> {
    Inventory::from_bytes(bytes, Path::new("here.tar"))
}

fn without_source(mut inventory: Inventory) -> Inventory {
    inventory.source = Source::ThisMachine;
    inventory
}

#[test]
fn a_folder_provides_the_facts_of_sysfs() {
    let folder = tempfile::tempdir().unwrap();
    machine(folder.path());
    let inventory = Inventory::from_path(folder.path()).unwrap();
    assert_eq!((inventory.functions.len(), inventory.notes.len()), (2, 0));
    let card = inventory.function("3b:00.0".parse().unwrap()).unwrap();
    assert_eq!(card.parent.get(), Some(Some("3a:00.0".parse().unwrap())));
    assert_eq!((card.vendor.get(), card.numa_node.get()), (Some(0x1d0f), Some(Some(1))));
    assert_eq!(card.driver, Seen::Known(Some("xdma".to_owned())));
    assert_eq!(
        (card.iommu_group.get(), card.iommu_domain.clone()),
        (Some(Some(42)), Seen::Known(Some("DMA-FQ".to_owned())))
    );
    let bar = card.bar(4).unwrap();
    assert_eq!((bar.base.get(), bar.bytes.get()), (Some(Some(HostPhys(0x5c0_0000_0000))), Some(128 << 30)));
    assert_eq!(
        (bar.write_combining_file.get(), card.bar(0).unwrap().write_combining_file.get()),
        (Some(true), Some(false))
    );
    let resizable = card.resizable_bars.known().unwrap()[0];
    assert_eq!(
        (resizable.bar, resizable.size_bytes(), resizable.largest_bytes()),
        (4, Some(128 << 30), Some(512 << 30))
    );
    let errors = card.aer.present().unwrap();
    assert_eq!(errors.correctable.known().unwrap()[1].count, 12);
    assert!(errors.fatal.why().is_some());
    let link = card.link().unwrap();
    assert_eq!((link.widest.get().unwrap().0, link.width.get().unwrap().0), (16, 8));
}

#[test]
fn a_folder_provides_interrupts_and_faults_of_the_iommu() {
    let folder = tempfile::tempdir().unwrap();
    machine(folder.path());
    let inventory = Inventory::from_path(folder.path()).unwrap();
    let interrupts = |at: &str| {
        let function = inventory.function(at.parse().unwrap()).unwrap();
        let row =
            |of: &lanemark_inventory::Interrupt| (of.number, of.count.get(), of.cpus.known().map(ToString::to_string));
        function.interrupts.known().unwrap().iter().map(row).collect::<Vec<_>>()
    };
    let cpu = |cpu: &str| Some(cpu.to_owned());
    assert_eq!(interrupts("3b:00.0"), [(130, Some(10), cpu("0")), (131, Some(0), cpu("1"))], "MSI-X before the pin");
    assert_eq!(interrupts("3a:00.0"), []);
    let faults = inventory.iommu.faults.known().unwrap();
    assert_eq!((faults.len(), faults[0].function.to_string()), (1, "0000:3b:00.0".to_owned()));
    fs::remove_file(folder.path().join("dev/kmsg")).unwrap();
    let inventory = Inventory::from_path(folder.path()).unwrap();
    assert_eq!(inventory.iommu.faults.why(), Some(&Why::NoFile("dev/kmsg".into())));
}

#[test]
fn a_folder_provides_the_facts_about_cpus() {
    let folder = tempfile::tempdir().unwrap();
    machine(folder.path());
    let inventory = Inventory::from_path(folder.path()).unwrap();
    let processors = &inventory.processors;
    assert_eq!((processors.sockets.get(), processors.signature.get()), (Some(2), Some((6, 85, 4))));
    assert_eq!(processors.microcode.get(), Some(0x200_7006));
    let governor = &processors.governors.known().unwrap()[0];
    assert_eq!((governor.name.as_str(), governor.cpus.to_string()), ("powersave", "0-1".to_owned()));
    let nodes = processors.nodes.known().unwrap();
    assert_eq!(
        (nodes.len(), nodes[1].memory_bytes.get(), nodes[1].cpus.known().unwrap().first()),
        (2, Some(1 << 20), Some(1))
    );
    assert_eq!(processors.idle_states.known().unwrap()[0].exit_latency_us.get(), Some(133));
    let mtrr = inventory.mtrrs.known().unwrap()[0];
    assert_eq!((mtrr.base, mtrr.bytes, mtrr.memory_type), (HostPhys(0x5c0_0000_0000), 128 << 30, MemoryType::Wc));
    assert_eq!(inventory.pat.entries.known().unwrap()[1], 1);
    assert_eq!(inventory.kernel.aspm_policy, Seen::Known("performance".to_owned()));
    let mapped = inventory.unseen.iter().find(|unseen| unseen.what == "ranges mapped by page attributes").unwrap();
    assert_eq!(mapped.because, "there is no pat_memtype_list");
}

#[test]
fn a_folder_a_tar_and_a_compressed_tar_give_the_same_inventory() {
    let folder = tempfile::tempdir().unwrap();
    machine(folder.path());
    let of_folder = without_source(Inventory::from_path(folder.path()).unwrap());
    for top in [".", "", "machine", "some/machine"] {
        let tar = tar_of(folder.path(), if top.is_empty() { "./" } else { top });
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&tar).unwrap();
        let packed = gzip.finish().unwrap();
        if top == "some/machine" {
            // The tree is searched one folder deep, not two.
            assert!(matches!(read(&tar), Err(InventoryError::Unrecognised { .. })));
            continue;
        }
        for bytes in [tar, packed] {
            assert_eq!(without_source(read(&bytes).unwrap()), of_folder, "{top}");
        }
    }
}

#[test]
fn a_virtual_function_has_the_ids_of_sysfs_and_no_settings_of_its_physical_function() {
    let folder = tempfile::tempdir().unwrap();
    machine(folder.path());
    let mut bytes = config();
    bytes[..4].fill(0xff);
    bytes[0x52..0x54].fill(0);
    write(folder.path(), &format!("{CARD}/config"), &bytes);
    for (name, text) in
        [("max_link_speed", "16.0 GT/s PCIe"), ("max_link_width", "16"), ("current_link_speed", "Unknown")]
    {
        write(folder.path(), &format!("{CARD}/{name}"), text);
    }
    write(folder.path(), &format!("{CARD}/current_link_width"), "0");
    let inventory = Inventory::from_path(folder.path()).unwrap();
    let card = inventory.function("3b:00.0".parse().unwrap()).unwrap();
    assert!(card.is_virtual());
    assert_eq!((card.vendor.get(), card.device.get()), (Some(0x1d0f), Some(0xf001)));
    let (express, link) = (card.pcie().unwrap(), card.link().unwrap());
    let why = Some(&Why::OfPhysicalFunction);
    assert_eq!((express.mps.why(), express.mrrs.why(), express.extended_tags.enabled.why()), (why, why, why));
    assert_eq!((link.speed.why(), link.width.why(), link.aspm_enabled.why()), (why, why, why));
    // Its capability registers are its own.
    assert_eq!((express.mps_supported.get().unwrap().bytes(), link.fastest.get().map(LinkSpeed::code)), (128, Some(4)));
    // An ID other than all ones is used.
    bytes[0] = 0xfe;
    write(folder.path(), &format!("{CARD}/config"), &bytes);
    let inventory = Inventory::from_path(folder.path()).unwrap();
    let card = inventory.function("3b:00.0".parse().unwrap()).unwrap();
    assert_eq!((card.vendor.get(), card.pcie().unwrap().mps.get().unwrap().bytes()), (Some(0xfffe), 128));
}

#[test]
fn zeros_that_pad_64_bytes_of_config_space_are_ignored() {
    let folder = tempfile::tempdir().unwrap();
    machine(folder.path());
    let mut padded = config();
    padded[64..].fill(0);
    write(folder.path(), &format!("{CARD}/config"), padded);
    let inventory = Inventory::from_path(folder.path()).unwrap();
    let card = inventory.function("3b:00.0".parse().unwrap()).unwrap();
    assert_eq!(card.config.known().unwrap().len(), 64);
    assert_eq!(card.acs.why(), Some(&Why::BeyondConfig { bytes: 64 }));
    assert!(inventory.notes[0].what.contains("padded"));
}

#[test]
fn the_link_is_known_without_root() {
    let folder = tempfile::tempdir().unwrap();
    machine(folder.path());
    write(folder.path(), &format!("{CARD}/config"), &config()[..64]);
    for (name, text) in [
        ("max_link_speed", "16.0 GT/s PCIe"),
        ("max_link_width", "16"),
        ("current_link_speed", "Unknown"),
        ("current_link_width", "255"),
    ] {
        write(folder.path(), &format!("{CARD}/{name}"), text);
    }
    let inventory = Inventory::from_path(folder.path()).unwrap();
    let card = inventory.function("3b:00.0".parse().unwrap()).unwrap();
    let link = card.link().unwrap();
    assert_eq!((link.fastest.get().map(LinkSpeed::code), link.widest.get().unwrap().0), (Some(4), 16));
    assert_eq!(link.speed.why().unwrap().because(), "current_link_speed cannot be read: the kernel says 'Unknown'");
    assert_eq!(link.width.why().unwrap().because(), "current_link_width cannot be read: the kernel says '255'");
    assert_eq!(
        (link.speed.why().unwrap().enable(), link.width.why().unwrap().enable()),
        ("run as root".into(), "run as root".into())
    );
    write(folder.path(), &format!("{CARD}/current_link_speed"), "fast");
    let inventory = Inventory::from_path(folder.path()).unwrap();
    let link = inventory.function("3b:00.0".parse().unwrap()).unwrap().link().unwrap();
    assert!(link.speed.why().unwrap().enable().contains("report it as an issue"));
    assert_eq!(card.pcie().unwrap().mps.why(), Some(&Why::BeyondConfig { bytes: 64 }));
}

#[test]
fn a_copy_without_resource_files_does_not_show_write_combining_support() {
    let folder = tempfile::tempdir().unwrap();
    machine(folder.path());
    for file in ["resource0", "resource4_wc", "resource4"] {
        fs::remove_file(folder.path().join(CARD).join(file)).unwrap();
    }
    let inventory = Inventory::from_path(folder.path()).unwrap();
    let bar = inventory.function("3b:00.0".parse().unwrap()).unwrap().bar(4).unwrap();
    assert_eq!(bar.write_combining_file.why(), Some(&Why::NoFile("resource4".into())));
}

#[test]
fn unexpected_contents_of_a_file_are_a_reason_and_not_a_fact() {
    let folder = tempfile::tempdir().unwrap();
    machine(folder.path());
    for (file, text) in [("numa_node", "-7\n"), ("vendor", "1d0f"), ("resource", "0x0 0x0"), ("local_cpulist", "5-3")] {
        write(folder.path(), &format!("{CARD}/{file}"), text);
    }
    write(folder.path(), &format!("{CARD}/config"), "");
    write(folder.path(), "proc/mtrr", "\u{0}\u{1}");
    let inventory = Inventory::from_path(folder.path()).unwrap();
    let card = inventory.function("3b:00.0".parse().unwrap()).unwrap();
    assert!(matches!(card.numa_node.why(), Some(Why::Garbled { .. })));
    assert!(matches!(card.vendor.why(), Some(Why::Garbled { .. })));
    assert!(card.regions.why().is_some() && card.local_cpus.why().is_some() && card.express.why().is_some());
    assert!(inventory.mtrrs.why().is_some());
}

#[test]
fn an_unsupported_file_is_refused_with_the_formats_tried() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = |path: &Path| Inventory::from_path(path).unwrap_err().to_string();
    assert!(refusal(folder.path()).contains("it lacks sys/bus/pci/devices"));
    assert!(refusal(&folder.path().join("nobody")).contains("nobody"));
    let file = folder.path().join("file");
    for (contents, what) in [
        (&b"Lorem ipsum"[..], "no line begins with an address"),
        (&b"\x28\xb5\x2f\xfd...."[..], "zstd -d"),
        (&b"\xfd7zXZ\0"[..], "xz -d"),
        (&b"\x1f\x8b\x08\x00garbage"[..], "as gzip it is corrupt"),
        (&b"MZ\0\0\0"[..], "NUL bytes"),
        (&b""[..], "no line begins with an address"),
    ] {
        fs::write(&file, contents).unwrap();
        let message = refusal(&file);
        assert!(message.contains(what) && message.contains("file"), "{message}");
    }
    assert!(read(&tar_of(folder.path(), "./")).unwrap_err().to_string().contains("it lacks sys/bus/pci/devices"));
}

#[test]
fn a_truncated_tar_is_refused_with_its_entry() {
    let folder = tempfile::tempdir().unwrap();
    machine(folder.path());
    let tar = tar_of(folder.path(), "./");
    // Inside the header of some entry.
    let error = read(&tar[..10 * 512 + 100]).unwrap_err();
    assert!(matches!(error, InventoryError::Malformed { line: 1.., .. }), "{error}");
}

fn tar_with(entries: &[(&str, u64, &[u8])]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (name, size, contents) in entries {
        let mut header = tar::Header::new_ustar();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_size(*size);
        header.set_cksum();
        tar.append(&header, *contents).unwrap();
    }
    tar.into_inner().unwrap()
}

#[test]
fn an_oversized_tar_entry_is_refused_before_it_is_read() {
    let error = read(&tar_with(&[("sys/huge", (16 << 20) + 1, b"")])).unwrap_err();
    assert!(matches!(error, InventoryError::TooLarge { most: 0x100_0000, .. }), "{error}");
    // The largest accepted entry is truncated here, which is another error.
    let error = read(&tar_with(&[("sys/large", 16 << 20, b"")])).unwrap_err();
    assert!(!matches!(error, InventoryError::TooLarge { .. }), "{error}");
}

#[test]
fn a_tar_entry_outside_the_archive_is_refused() {
    let error = read(&tar_with(&[("sys/../../etc/passwd", 0, b"")])).unwrap_err();
    assert!(error.to_string().starts_with("here.tar:1: the entry 'sys/../../etc/passwd' leads out"), "{error}");
}

fn tar_of_names(names: impl Iterator<Item = String>) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for name in names {
        let mut header = tar::Header::new_gnu();
        header.set_size(0);
        tar.append_data(&mut header, name, &b""[..]).unwrap();
    }
    tar.into_inner().unwrap()
}

#[test]
fn a_path_of_4096_bytes_is_accepted_and_a_longer_one_is_refused() {
    let refusal = |bytes: usize| {
        let name = format!("sys/{}", "a/".repeat(8));
        let name = format!("{name}{}", "b".repeat(bytes - name.len()));
        read(&tar_of_names(std::iter::once(name))).unwrap_err()
    };
    assert!(matches!(refusal(4096), InventoryError::Unrecognised { .. }));
    assert!(refusal(4097).to_string().starts_with("here.tar:1: the name 'sys/a/"), "{}", refusal(4097));
    assert!(refusal(4097).to_string().contains("has 4097 B, more than the 4096 B of Linux"));
}

#[test]
fn folders_implied_by_long_names_count_towards_the_size_of_an_archive() {
    // Each name implies folders whose names have 96 KB in total: as many as fit, and one more.
    let folders = |top: usize| format!("{top:084}/{}", format!("{}/", "a".repeat(84)).repeat(46));
    let implied: u64 = (1..=47).map(|depth| 85 * depth - 1).sum();
    let most = usize::try_from((256 << 20) / implied).unwrap();
    let of = |count: usize| read(&tar_of_names((0..count).map(|top| format!("{}x", folders(top))))).unwrap_err();
    assert!(matches!(of(most + 1), InventoryError::TooLarge { .. }), "{}", of(most + 1));
    assert!(matches!(of(most), InventoryError::Unrecognised { .. }), "{}", of(most));
}

#[test]
fn a_decompression_bomb_is_refused_at_the_size_limit() {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let zeros = vec![0; 1 << 20];
    for _ in 0..257 {
        gzip.write_all(&zeros).unwrap();
    }
    let error = read(&gzip.finish().unwrap()).unwrap_err();
    assert!(matches!(error, InventoryError::TooLarge { .. }), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn arbitrary_bytes_do_not_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let _ = read(&bytes);
    }

    #[test]
    fn arbitrary_file_contents_do_not_make_the_reader_panic(which in 0_usize..40, text in "(\\PC|\n){0,60}") {
        let folder = tempfile::tempdir().unwrap();
        machine(folder.path());
        let files = files_below(folder.path());
        fs::write(&files[which % files.len()], text).unwrap();
        prop_assert_eq!(Inventory::from_path(folder.path()).unwrap().functions.len(), 2);
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => folders.push(entry.path()),
                kind if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files.sort();
    files
}

/// Runs the capture script on the synthetic machine, with its `cd /` replaced.
#[test]
fn the_capture_script_copies_what_is_read_and_does_not_wake_devices() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    machine(&root);
    write(&root, &format!("{CARD}/power_state"), "D3cold\n");
    for folder in [PORT, CARD] {
        write(&root, &format!("{folder}/max_link_speed"), "16.0 GT/s PCIe\n");
        write(&root, &format!("{folder}/max_link_width"), "16\n");
        write(&root, &format!("{folder}/current_link_speed"), "8.0 GT/s PCIe\n");
        write(&root, &format!("{folder}/current_link_width"), "8\n");
    }
    let script = lanemark_inventory::CAPTURE_SCRIPT;
    assert_eq!(script.matches("\ncd / ||").count(), 1);
    assert_eq!(script.matches("$(dmesg 2>/dev/null)").count(), 1);
    let here = script
        .replace("$(dmesg 2>/dev/null)", "$(cat dev/kmsg)")
        .replace("\ncd / ||", &format!("\ncd '{}' ||", root.display()))
        .replace(
            "function=${function#/}",
            &format!("function=${{function#'{}'/}}", fs::canonicalize(&root).unwrap().display()),
        );
    let tar = folder.path().join("machine.tar.gz");
    let done = Command::new("sh").args(["-c", &here, "capture.sh"]).arg(&tar).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let captured = without_source(Inventory::from_path(&tar).unwrap());
    let mut wanted = without_source(Inventory::from_path(&root).unwrap());
    // Configuration space and the files that read registers are missing for the function in D3cold.
    let (asleep, awake) = (captured.functions[1].clone(), wanted.functions[1].clone());
    assert_eq!(asleep.config.why(), Some(&Why::NoFile("config".into())));
    let link = asleep.link().unwrap();
    assert_eq!(link.fastest.get().map(LinkSpeed::code), Some(4));
    assert!(link.widest.why().is_some() && link.speed.why().is_some() && link.width.why().is_some());
    assert_eq!((asleep.regions, asleep.driver, asleep.power_state), (awake.regions, awake.driver, awake.power_state));
    wanted.functions[1] = captured.functions[1].clone();
    wanted.gather_unseen();
    assert_eq!(captured, wanted);
}
