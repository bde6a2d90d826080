//! Output of `lspci`, complete or malformed.

use lanemark_inventory::{Inventory, InventoryError, RegionKind, Seen, Source, Why};
use lanemark_units::HostPhys;
use lanemark_wire::config::BarKind;
use proptest::prelude::*;
use std::fmt::Write;
use std::path::Path;

/// Two listings of the application note "How to Use Write Combining to Improve PCIe Bus Performance" of 2017.
const F1: [&str; 2] = [include_str!("vectors/f1-16xlarge.txt"), include_str!("vectors/f1-2xlarge.txt")];

fn read(text: &str) -> Result<Inventory, InventoryError> {
    Inventory::from_lspci(text, Path::new("here.txt"))
}

/// A dump of `bytes`.
fn rows(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (at, row) in bytes.chunks(16).enumerate() {
        write!(text, "{:02x}:", at * 16).unwrap();
        for byte in row {
            write!(text, " {byte:02x}").unwrap();
        }
        text.push('\n');
    }
    text
}

fn refusal(text: &str) -> String {
    read(text).unwrap_err().to_string()
}

#[test]
fn the_cards_of_the_application_note_have_their_four_bars() {
    let bars = F1.map(|text| {
        let inventory = read(text).unwrap();
        assert_eq!((inventory.functions.len(), inventory.notes.len()), (1, 0));
        let card = &inventory.functions[0];
        let row = |bar: u8| {
            let region = card.bar(bar)?;
            Some((
                region.base.present()?.0,
                region.bytes.get()?,
                region.space == BarKind::Memory64,
                region.prefetchable,
            ))
        };
        [0, 2, 4, 1, 3].map(row)
    });
    let (mib, gib) = (1 << 20, 1 << 30);
    assert_eq!(
        bars[0],
        [
            Some((0xc400_0000, 32 * mib, false, false)),
            Some((0x5e0_0041_0000, 64 << 10, true, true)),
            Some((0x5c0_0000_0000, 128 * gib, true, true)),
            Some((0xc600_0000, 2 * mib, false, false)),
            None,
        ]
    );
    assert_eq!(
        bars[1],
        [
            Some((0x8200_0000, 32 * mib, false, false)),
            Some((0x8560_0000, 64 << 10, true, true)),
            Some((0x20_0000_0000, 128 * gib, true, true)),
            Some((0x8540_0000, 2 * mib, false, false)),
            None,
        ]
    );
}

#[test]
fn the_cards_of_the_application_note_have_the_printed_ids() {
    let cards = F1.map(|text| read(text).unwrap().functions.remove(0));
    assert_eq!((cards[0].vendor.get(), cards[1].vendor.get()), (Some(0x1d0f), None));
    for (card, address) in cards.iter().zip(["0000:00:0f.0", "0000:00:1d.0"]) {
        assert_eq!(card.address.to_string(), address);
        assert_eq!((card.device.get(), card.subsystem.get()), (Some(0xf001), Some(Some((0xfedc, 0x1d51)))));
        assert_eq!(card.class.get().unwrap().0, 0x05_80_00);
        assert_eq!(card.command.get(), Some(0x0006)); // memory, bus master
    }
}

#[test]
fn facts_that_the_application_note_does_not_list_are_unseen_and_not_absent() {
    for text in F1 {
        let inventory = read(text).unwrap();
        let card = &inventory.functions[0];
        // The status register reports capabilities, but the listing ends before them.
        assert!(card.express.why().is_some() && card.aer.why().is_some() && card.resizable_bars.why().is_some());
        assert!(card.driver.why().is_some() && card.numa_node.why().is_some());
        assert!(card.bar(4).unwrap().write_combining_file.why().is_some());
        assert!(inventory.mtrrs.why().is_some());
        let express = inventory.unseen.iter().find(|unseen| unseen.what == "PCI Express capability").unwrap();
        assert_eq!((express.because.as_str(), express.functions.len()), ("the listing has no line Capabilities", 1));
        assert!(express.enable.contains("lspci -D -nn -vvv"));
        assert!(matches!(inventory.source, Source::Lspci { hex: false, text: true, .. }));
    }
}

const FULL: &str = "\
3b:00.0 Non-Volatile memory controller [0108]: Some Vendor SSD [1234:5678] (rev 01) (prog-if 02 [NVM Express])
\tSubsystem: Some Vendor Fast One [1234:0001]
\tPhysical Slot: 7
\tControl: I/O- Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr+ Stepping- SERR+ FastB2B- DisINTx+
\tStatus: Cap+ 66MHz- UDF- FastB2B- ParErr- DEVSEL=fast >TAbort- <TAbort- <MAbort- >SERR- <PERR- INTx-
\tNUMA node: 1
\tIOMMU group: 32
\tRegion 0: Memory at b8700000 (64-bit, non-prefetchable) [size=32K]
\tRegion 4: I/O ports at 6000 [disabled] [size=256]
\tExpansion ROM at b8600000 [disabled] [size=1M]
\tCapabilities: [60] Express (v2) Endpoint, MSI 00
\t\tDevCap:\tMaxPayload 512 bytes, PhantFunc 0, Latency L0s unlimited, L1 unlimited
\t\t\tExtTag+ AttnBtn- AttnInd- PwrInd- RBE+ FLReset+ SlotPowerLimit 25.000W
\t\tDevCtl:\tCorrErr- NonFatalErr+ FatalErr+ UnsupReq+
\t\t\tRlxdOrd+ ExtTag- PhantFunc- AuxPwr- NoSnoop- FLReset-
\t\t\tMaxPayload 256 bytes, MaxReadReq 512 bytes
\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x4, ASPM not supported
\t\t\tClockPM- Surprise- LLActRep- BwNot- ASPMOptComp+
\t\tLnkCtl:\tASPM Disabled; RCB 64 bytes, Disabled- CommClk+
\t\tLnkSta:\tSpeed 8GT/s (downgraded), Width x2 (downgraded)
\t\t\tTrErr- Train- SlotClk+ DLActive- BWMgmt- ABWMgmt-
\tCapabilities: [178 v1] Single Root I/O Virtualization (SR-IOV)
\t\tIOVCtl:\tEnable+ Migration- Interrupt- MSE+ ARIHierarchy+
\t\tInitial VFs: 16, Total VFs: 16, Number of VFs: 2, Function Dependency Link: 00
\t\tRegion 0: Memory at 00000000b8800000 (64-bit, non-prefetchable)
\tCapabilities: [240 v1] Physical Resizable BAR
\t\tBAR 0: current size: 256MB, supported: 256MB 512MB 1GB
\tKernel driver in use: nvme
\tKernel modules: nvme

3c:00.0 Host bridge [0600]: Device [1234:0000]
\tControl: I/O- Mem- BusMaster- SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR- FastB2B- DisINTx-
\tStatus: Cap- 66MHz- UDF- FastB2B- ParErr- DEVSEL=fast >TAbort- <TAbort- <MAbort- >SERR- <PERR- INTx-
";

#[test]
fn a_full_listing_shows_a_link_trained_below_its_maximum() {
    let inventory = read(FULL).unwrap();
    let ssd = &inventory.functions[0];
    let link = ssd.link().unwrap();
    let speeds = (link.fastest.get().unwrap().to_string(), link.speed.get().unwrap().to_string());
    assert_eq!(speeds, ("16GT/s".to_owned(), "8GT/s".to_owned()));
    assert_eq!((link.widest.get().unwrap().0, link.width.get().unwrap().0), (4, 2));
    assert_eq!((link.data_link_active.get(), link.target.get()), (Some(None), None));
    let express = ssd.pcie().unwrap();
    let sizes = (express.mps_supported.get(), express.mps.get(), express.mrrs.get());
    assert_eq!((sizes.0.unwrap().bytes(), sizes.1.unwrap().bytes(), sizes.2.unwrap().bytes()), (512, 256, 512));
    assert_eq!((express.extended_tags.supported.get(), express.extended_tags.enabled.get()), (Some(true), Some(false)));
    assert_eq!((express.relaxed_ordering_enabled.get(), express.no_snoop_enabled.get()), (Some(true), Some(false)));
    assert_eq!(express.slot.get(), Some(Some(7)));
    assert_eq!(ssd.class.get().unwrap().0, 0x01_08_02);
    assert_eq!((ssd.numa_node.get(), ssd.iommu_group.get()), (Some(Some(1)), Some(Some(32))));
    assert_eq!(ssd.driver, Seen::Known(Some("nvme".to_owned())));
    assert_eq!(ssd.resizable_bars.known().unwrap()[0].largest_bytes(), Some(1 << 30));
    let sriov = ssd.sriov.present().unwrap();
    assert_eq!((sriov.total.get(), sriov.enabled.get()), (Some(16), Some(2)));
}

#[test]
fn every_error_name_of_lspci_is_parsed() {
    let listing = "3b:00.0 Memory controller: Device 1d0f:f001\n\tCapabilities: [100 v2] Advanced Error Reporting\n\
                   \t\tUESta: DLP- SDES- TLP- FCP- CmpltTO- CmpltAbrt- UnxCmplt- RxOF- MalfTLP-\n\
                   \t\t\t ECRC- UnsupReq- ACSViol- UncorrIntErr- BlockedTLP- AtomicOpBlocked- TLPBlockedErr-\n\
                   \t\t\t PoisonTLPBlocked- DMWrReqBlocked- IDECheck- MisIDETLP- PCRC_CHECK- TLPXlatBlocked-\n\
                   \t\tUEMsk: DLP+ SDES-\n\
                   \t\tCESta: RxErr- BadTLP- BadDLLP- Rollover- Timeout- AdvNonFatalErr- CorrIntErr- HeaderOF-\n";
    let status = |set: &str| {
        let text = listing.replacen(&format!(" {set}-"), &format!(" {set}+"), 1);
        let aer = read(&text).unwrap().functions.remove(0).aer;
        let aer = aer.present().unwrap();
        (aer.uncorrectable_status.get(), aer.correctable_status.get())
    };
    for (bit, name) in (4..=5).chain(12..=31).zip([
        "DLP",
        "SDES",
        "TLP",
        "FCP",
        "CmpltTO",
        "CmpltAbrt",
        "UnxCmplt",
        "RxOF",
        "MalfTLP",
        "ECRC",
        "UnsupReq",
        "ACSViol",
        "UncorrIntErr",
        "BlockedTLP",
        "AtomicOpBlocked",
        "TLPBlockedErr",
        "PoisonTLPBlocked",
        "DMWrReqBlocked",
        "IDECheck",
        "MisIDETLP",
        "PCRC_CHECK",
        "TLPXlatBlocked",
    ]) {
        assert_eq!(status(name), (Some(1_u32 << bit), Some(0)), "{name}");
    }
    assert_eq!(status("HeaderOF"), (Some(0), Some(1 << 15)));
}

#[test]
fn facts_that_lspci_never_prints_suggest_capture_sh_and_not_another_listing() {
    let inventory = read(FULL).unwrap();
    let ssd = &inventory.functions[0];
    let whys = [ssd.local_cpus.why(), ssd.iommu_domain.why(), ssd.d3cold_allowed.why(), ssd.enable_count.why()];
    assert_eq!(whys, [Some(&Why::NotPrinted); 4]);
    assert_eq!(ssd.bar(0).unwrap().write_combining_file.why(), Some(&Why::NotPrinted));
    let unseen = inventory.unseen.iter().find(|unseen| unseen.what == "enable count").unwrap();
    assert!(!unseen.enable.contains("lspci") && unseen.enable.contains("capture.sh"), "{}", unseen.enable);
}

#[test]
fn regions_of_virtual_functions_are_separate_from_those_of_the_function() {
    let inventory = read(FULL).unwrap();
    let regions = inventory.functions[0].regions.known().unwrap();
    let rows: Vec<_> =
        regions.iter().map(|region| (region.kind, region.base.present().copied(), region.bytes.get())).collect();
    assert_eq!(
        rows,
        [
            (RegionKind::Bar(0), Some(HostPhys(0xb870_0000)), Some(32 << 10)),
            (RegionKind::Bar(4), Some(HostPhys(0x6000)), Some(256)),
            (RegionKind::Rom, Some(HostPhys(0xb860_0000)), Some(1 << 20)),
            (RegionKind::VirtualFunctionBar(0), Some(HostPhys(0xb880_0000)), None),
        ]
    );
}

#[test]
fn a_line_that_only_other_functions_have_is_absent_and_one_that_none_has_is_unseen() {
    let inventory = read(FULL).unwrap();
    let bridge = &inventory.functions[1];
    assert!(bridge.driver.is_absent() && bridge.numa_node.is_absent() && bridge.iommu_group.is_absent());
    assert!(bridge.express.is_absent() && bridge.aer.is_absent());
    let without = FULL.replace("\tKernel driver in use: nvme\n", "");
    assert!(read(&without).unwrap().functions[1].driver.why().is_some());
}

#[test]
fn a_capability_that_lspci_does_not_decode_is_unseen() {
    let decoded = "Physical Resizable BAR\n\t\tBAR 0: current size: 256MB, supported: 256MB 512MB 1GB\n";
    let resizable = |title: &str| read(&FULL.replace(decoded, title)).unwrap().functions.remove(0).resizable_bars;
    assert_eq!(resizable(decoded).known().map(Vec::len), Some(1));
    assert_eq!(
        resizable("Resizable BAR <?>\n").why(),
        Some(&Why::NotListed("of the kind, which a newer lspci prints"))
    );
    assert_eq!(resizable("Virtual Resizable BAR\n"), Seen::Known(vec![]));
    assert_eq!(resizable("Dynamic Power Allocation <?>\n"), Seen::Known(vec![]));
}

#[test]
fn a_listing_without_root_suggests_sudo() {
    let text = "3b:00.0 Memory controller: Device 1d0f:f001\n\tFlags: fast devsel\n\
                \tMemory at 82000000 (32-bit, non-prefetchable) [size=32M]\n\tCapabilities: <access denied>\n";
    let inventory = read(text).unwrap();
    let card = &inventory.functions[0];
    assert!(card.express.why().unwrap().enable().contains("sudo"));
    assert!(card.regions.why().unwrap().because().contains("-vv"), "lspci -v prints no BAR numbers");
}

#[test]
fn a_virtual_function_gets_its_ids_from_the_heading() {
    let dump = |heading: &str| {
        let text = format!("3b:00.1 {heading}\n00: ff ff ff ff 06 04 00 00 00 00 80 05 00 00 00 00\n");
        read(&text).unwrap().functions.remove(0)
    };
    let card = dump("Memory controller: Device 1d0f:f001");
    assert_eq!((card.vendor.get(), card.device.get()), (Some(0x1d0f), Some(0xf001)));
    // lspci -F prints only the IDs in the dump.
    let card = dump("Memory controller: Device ffff:ffff");
    assert_eq!(
        (card.vendor.why(), card.device.why()),
        (Some(&Why::OfPhysicalFunction), Some(&Why::OfPhysicalFunction))
    );
}

#[test]
fn a_dump_and_a_listing_in_one_file_complement_each_other() {
    let text = "3b:00.0 Memory controller: Device 1d0f:f001\n\
                \tRegion 0: Memory at 82000000 (32-bit, non-prefetchable) [size=32M]\n\
                \tKernel driver in use: xdma\n\
                00: 0f 1d 02 f0 06 04 00 00 00 00 80 05 00 00 00 00\n\
                10: 00 00 00 82 00 00 00 00 00 00 00 00 00 00 00 00\n";
    let inventory = read(text).unwrap();
    let card = &inventory.functions[0];
    assert_eq!(card.device.get(), Some(0xf002), "the dump takes precedence");
    assert_eq!(card.bar(0).unwrap().bytes.get(), Some(32 << 20));
    assert_eq!(card.driver, Seen::Known(Some("xdma".to_owned())));
    assert!(matches!(inventory.source, Source::Lspci { hex: true, text: true, .. }));
}

const HEAD: &str = "00:00.0 Host bridge: Device 8086:0d57\n";
const ROW: &str = "00: 86 80 57 0d 06 00 00 00 00 00 00 06 00 00 00 00\n";

#[test]
fn a_malformed_row_is_refused_with_its_line_number() {
    for (text, line, what) in [
        (format!("{ROW}{HEAD}"), 1, "before the first function"),
        (format!("{HEAD}{ROW}{ROW}"), 3, "row 0x0 where row 0x10 is expected"),
        (format!("{HEAD}{ROW}20: 00\n"), 3, "is a line missing?"),
        (format!("{HEAD}{ROW}10: 0g\n"), 3, "'0g' is not a byte"),
        (format!("{HEAD}{ROW}10: 000\n"), 3, "'000' is not a byte"),
        (format!("{HEAD}00:{}\n", " 00".repeat(17)), 2, "1 to 16 bytes; this one has 17"),
        ("00:00.0 \"Host bridge\" \"Intel\" \"Device\"\n".to_owned(), 1, "without -m"),
    ] {
        let message = refusal(&text);
        assert!(message.starts_with(&format!("here.txt:{line}: ")) && message.contains(what), "{message}");
    }
}

#[test]
fn config_space_ends_at_4096_bytes() {
    let message = refusal(&format!("{HEAD}{}", rows(&[0; 257 * 16])));
    assert!(message.starts_with("here.txt:258: "), "{message}");
    let whole = read(&format!("{HEAD}{}", rows(&[0; 4096]))).unwrap();
    assert_eq!(whole.functions[0].config.known().unwrap().len(), 4096);
}

#[test]
fn a_duplicate_address_is_dropped_and_noted() {
    let inventory = read(&format!("{HEAD}{ROW}\n{HEAD}00: ff ff\n\tNUMA node: 7\n")).unwrap();
    assert_eq!(inventory.functions.len(), 1);
    assert_eq!(inventory.functions[0].vendor.get(), Some(0x8086));
    assert_eq!(inventory.notes[0].at, "here.txt:4");
    assert!(inventory.notes[0].what.contains("line 1"), "{:?}", inventory.notes);
}

#[test]
fn foreign_lines_are_noted_up_to_a_limit() {
    let inventory = read(&format!("$ sudo lspci -x\n{HEAD}{ROW}{}", "no line\n".repeat(1000))).unwrap();
    assert_eq!(inventory.notes[0].at, "here.txt:1");
    assert_eq!(inventory.notes.len(), 21);
    assert!(inventory.notes[20].what.starts_with("981 more lines"), "{:?}", inventory.notes[20]);
}

#[test]
fn a_text_without_a_function_is_refused() {
    for text in ["", "\n\n", "Lorem ipsum\n", "00:20.0 Device\n", "\tControl: I/O-\n"] {
        assert!(refusal(text).contains("no line begins with an address"), "{text}");
    }
}

#[test]
fn a_function_that_reads_all_ones_has_no_other_facts() {
    let inventory = read(&format!("{HEAD}{}", rows(&[0xff; 256]))).unwrap();
    let dead = &inventory.functions[0];
    assert!(dead.express.why().unwrap().because().contains("all ones") && dead.config.known().is_some());
    assert!(inventory.notes[0].what.contains("does not answer"));
}

#[test]
fn facts_beyond_the_bytes_read_are_unseen() {
    // The capability list starts beyond the 64 bytes that `lspci -x` reads without root.
    let mut bytes = [0; 64];
    bytes[..8].copy_from_slice(&[0x86, 0x80, 0x57, 0x0d, 6, 0, 0x10, 0]);
    bytes[0x34] = 0x40;
    let inventory = read(&format!("{HEAD}{}", rows(&bytes))).unwrap();
    let express = inventory.functions[0].express.why().unwrap();
    assert_eq!(express.because(), "only 64 B of config space could be read");
    assert!(express.enable().contains("root"));
    assert!(inventory.functions[0].bar(0).is_none() && inventory.functions[0].regions.known().is_some());
}

#[test]
fn a_broken_capability_list_is_noted_and_later_capabilities_are_unseen() {
    let mut bytes = [0; 256];
    bytes[..8].copy_from_slice(&[0x86, 0x80, 0x57, 0x0d, 6, 0, 0x10, 0]);
    bytes[0x34] = 0x40;
    bytes[0x40..0x42].copy_from_slice(&[0x01, 0x40]); // Power Management, with itself as the next capability
    let inventory = read(&format!("{HEAD}{}", rows(&bytes))).unwrap();
    assert!(inventory.notes[0].what.contains("leads back to 0x040"), "{:?}", inventory.notes);
    assert_eq!(inventory.functions[0].express.why().unwrap().because(), "the capability list is broken before it");
}

proptest! {
    #[test]
    fn arbitrary_text_does_not_make_the_parser_panic(text in "(\\PC|\n|\t){0,400}") {
        let _ = read(&text);
    }

    #[test]
    fn shuffled_and_truncated_lines_do_not_make_the_parser_panic(
        pieces in prop::collection::vec((0..FULL.lines().count() + 4, 0_usize..60), 0..80),
    ) {
        let lines: Vec<&str> = FULL.lines().chain([HEAD.trim(), ROW.trim(), "10: 00 00", "01:00.0 PCI bridge"]).collect();
        let mut text = String::new();
        for (line, cut) in pieces {
            let line = lines[line];
            // A third of the lines is truncated.
            let end = if cut % 3 == 0 { line.floor_char_boundary(cut) } else { line.len() };
            text += &line[..end];
            text.push('\n');
        }
        if let Ok(inventory) = read(&text) {
            prop_assert!(inventory.functions.is_sorted_by(|a, b| a.address < b.address));
            let tree = inventory.tree();
            for at in 0..inventory.functions.len() {
                prop_assert!(tree.path_up(at).count() <= inventory.functions.len());
            }
        }
    }
}
