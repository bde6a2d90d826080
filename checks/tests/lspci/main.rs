//! Comparison of our decoder of configuration space with the output of the real `lspci -n -vvv -F` for the same bytes.
//!
//! | bytes | compared with |
//! | --- | --- |
//! | the devices of `devices.rs`, as `dumps/*.txt` | `dumps/*.lspci`, and lspci itself |
//! | a few random spaces | `dumps/random.lspci`, and lspci itself |
//! | the presets, in `simulated.rs` | the platform; `dumps/simulated-*.lspci`, and lspci itself |
//! | every bit of every register alone set and alone cleared; many random spaces | lspci itself |
//!
//! `checks/tools/lspci` fetches lspci. If that fails, the tests that run it are ignored, with the reason; with
//! `LANEMARK_REQUIRE_LSPCI=1` they fail. `LANEMARK_BLESS=1 cargo test -p lanemark-checks --test
//! lspci` rewrites `dumps/`.
//!
//! Errors of lspci 3.15.0 (sections of the PCI Express Base Specification 6.0), also noted where each is expected:
//!
//! | lspci prints | but |
//! | --- | --- |
//! | interrupt pins 1 to 4 as B to E | 1 is INTA, 7.5.1.1.13; lspci 3.13.0 had it right |
//! | the upper half of a 64-bit BAR as a BAR of its own (`-F` only) | it is no BAR, 7.5.1.2.1 |
//! | payload sizes above 4096 bytes | codes 6 and 7 are reserved, 7.5.3.3 |
//! | target speed 0 as 2.5 GT/s | 0 is reserved, 7.5.3.19 |
//! | 128 GT/s as code 8 | a code is the number of a bit of the vector, 7.5.3.6, and 128 GT/s is bit 6 |
//! | transmit margins 2 to 5 as the last step | how many steps there are is up to the device, 7.5.3.19 |
//! | no `TPHComp` of endpoints whose code is 2; no atomic completer of a function without memory BARs | 7.5.3.15 |
//! | lanes 0 to 15 only of lane errors | there are 32, 7.7.3.3 |
//! | latencies with a scale of 6 or 7 | those are not permitted, 7.8.2.2; it shifts an int by more than it has |
//! | a VC arbitration table as `Port Arbitration Table` | 7.9.1.3 |
//! | element types of root complex links with eight bits | it has four, 7.9.8.2 |
//! | VF BARs of types 01 and 11 as 64-bit; VF Migration as the upper half of VF BAR 5 | 9.3.3.14 |
//! | multicast overlays of bridges to PCI and legacy endpoints; no line feed after `McastCap` | ports only, 7.9.11.8 |
//! | bit 2 of the flit counter's status as its interrupt | that is of the width, the interrupt is bit 3, 7.7.8.5 |
//! | bit 0 of a link IDE stream's control as PCRC | that enables the stream, PCRC is bit 8, 7.9.26.4.1 |
//! | bits 0 to 4 of `CXLCtl2`, and 0 to 3 of `CXLCap3`, by the masks 1 to 5 | CXL 3.1, 8.1.3.4 |
//! | SATA offsets in DWs as if they were bytes | AHCI 1.3.1, 2.4.2 |
//! | nothing more: it crashes on reserved types or classes of CXL memory | `compose.rs` leaves them out |

// Lines are put together piece by piece, and nobody waits for them.
#![allow(clippy::format_push_string)]

mod answers;
mod comparison;
mod compose;
mod coverage;
mod decoded;
mod devices;
mod express;
mod extended;
mod live;
mod printed;
mod simulated;
mod standard;

use comparison::differences;
use compose::{Space, dump, random, undump, walking};
use decoded::Seen;
use lanemark_checks::trials;
use lanemark_checks::trials::{Available, Trial, run};
use lanemark_wire::config::{BreakKind, ConfigSpace};
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let [lspci, same_lspci] = available();
    let mut tests: Vec<Trial> = trials!(
        Available::ALWAYS;
        all_committed_fields_of_lspci_are_decoded_equally,
        a_flipped_bit_is_detected,
        a_line_without_decoder_is_detected,
        broken_lists_have_our_errors,
        simulated::the_committed_listing_has_every_field_of_the_default_card,
        answers::an_nvme_drive_that_trained_below_its_capability,
        answers::a_network_card_with_virtual_functions,
        answers::a_gpu_whose_bar_could_be_larger,
        answers::a_root_port_with_a_slot_and_access_control,
        answers::a_cxl_device_in_flit_mode,
    )
    .into();
    tests.extend(trials!(lspci; simulated::lspci_decodes_every_field_of_every_preset_correctly));
    tests.extend(trials!(
        same_lspci;
        all_fields_printed_by_lspci_are_decoded_equally,
        broken_lists_end_where_lspci_ends_them,
        simulated::lspci_prints_the_committed_listing,
        simulated::lspci_and_our_decoder_agree_on_written_registers,
    ));
    run(tests)
}

/// Number of random spaces that are committed with the output of lspci.
const COMMITTED: u64 = 12;

fn dumps(name: &str) -> PathBuf {
    live::house("checks/tests/lspci/dumps").join(name)
}

fn committed(name: &str) -> String {
    let path = dumps(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn bytes(spaces: Vec<Space>) -> Vec<Vec<u8>> {
    spaces.into_iter().map(|space| space.bytes).collect()
}

fn text(spaces: &[Vec<u8>]) -> String {
    spaces.iter().enumerate().map(|(index, bytes)| dump(index, bytes)).collect()
}

/// Whether lspci is available; and whether its version is that of the committed output: another one may have corrected
/// what the expectations say that 3.15.0 gets wrong.
fn available() -> [Available; 2] {
    let version = live::version();
    let same = match &version {
        Ok(version) if !committed("nvme.lspci").starts_with(&format!("# {}\n", version.trim())) => Err(format!(
            "the lspci that printed checks/tests/lspci/dumps; LANEMARK_BLESS=1 cargo test -p lanemark-checks --test lspci \
             makes {} that one",
            version.trim()
        )),
        _ => Ok(()),
    };
    let lspci = Available::new(version.map(|_| ()), "LANEMARK_REQUIRE_LSPCI");
    let same = lspci.and(&Available::optional(same));
    [lspci, same]
}

/// Output of lspci for these spaces.
fn live(spaces: &[Vec<u8>]) -> String {
    live_of(&text(spaces))
}

/// As [`live`], for a dump.
fn live_of(dump: &str) -> String {
    live::listing(dump).unwrap_or_else(|why| panic!("{why}"))
}

fn compare(name: &str, spaces: &[Vec<u8>], listing: &str, seen: &Seen) -> Vec<String> {
    let functions = printed::functions(listing);
    assert_eq!(functions.len(), spaces.len(), "{name}: lspci prints another number of functions");
    let mut found = Vec::new();
    for (index, (bytes, function)) in spaces.iter().zip(&functions).enumerate() {
        found.extend(differences(bytes, function, seen).into_iter().map(|text| format!("{name}, {index}: {text}")));
    }
    found
}

fn hold(name: &str, spaces: &[Vec<u8>], listing: &str, seen: &Seen) {
    let found = compare(name, spaces, listing, seen);
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found[..found.len().min(40)].join("\n"));
}

/// Rewrites the dumps and the output of lspci for them, if `LANEMARK_BLESS` is set.
fn bless() {
    if std::env::var_os("LANEMARK_BLESS").is_none() {
        return;
    }
    let version = live::version().unwrap_or_else(|why| panic!("nothing to bless with: {why}"));
    let mut groups: Vec<(&str, Vec<Vec<u8>>)> =
        devices::all().into_iter().map(|(name, space)| (name, vec![space.bytes])).collect();
    groups.push(("random", bytes(random(0, COMMITTED))));
    for (name, spaces) in groups {
        let listing = live::listing(&text(&spaces)).unwrap_or_else(|why| panic!("{name}: {why}"));
        std::fs::write(dumps(&format!("{name}.lspci")), format!("# {}\n{listing}", version.trim())).unwrap();
        if name != "random" {
            std::fs::write(dumps(&format!("{name}.txt")), text(&spaces)).unwrap();
        }
    }
}

/// The listing that is committed under this name, behind the line with the version.
fn golden(name: &str) -> String {
    let text = committed(&format!("{name}.lspci"));
    let (version, listing) = text.split_once('\n').unwrap();
    assert!(version.starts_with("# lspci version "), "{name}.lspci does not say which lspci printed it");
    listing.to_owned()
}

/// Checks the committed output, and returns its spaces and the names of the fields in it.
fn check_committed(seen: &Seen) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for (name, space) in devices::all() {
        let spaces = undump(&committed(&format!("{name}.txt")));
        assert!(spaces == [space.bytes], "{name}.txt is not what devices.rs composes: LANEMARK_BLESS=1 renews it");
        hold(name, &spaces, &golden(name), seen);
        all.extend(spaces);
    }
    let some = bytes(random(0, COMMITTED));
    hold("random", &some, &golden("random"), seen);
    all.extend(some);
    all
}

fn all_committed_fields_of_lspci_are_decoded_equally() {
    bless();
    let seen = Seen::default();
    check_committed(&seen);
    coverage::check(&seen.names());
}

fn all_fields_printed_by_lspci_are_decoded_equally() {
    let seen = Seen::default();
    let mut spaces = check_committed(&seen);
    let names = seen.names();
    spaces.extend(bytes(walking()));
    spaces.extend(bytes(random(1, 200)));
    hold("live", &spaces, &live(&spaces), &seen);
    assert_eq!(seen.names(), names, "what is committed does not show every field that lspci can print");
}

fn a_flipped_bit_is_detected() {
    let space = devices::all().into_iter().find(|(name, _)| *name == "nvme").unwrap().1.bytes;
    let listing = golden("nvme");
    let function = &printed::functions(&listing)[0];
    let seen = Seen::default();
    assert_eq!(differences(&space, function, &seen), [""; 0]);
    let express = ConfigSpace::new(&space).pcie().unwrap().region().offset();
    // Every bit of Device Control and Link Status, and some others.
    let bits = |offset: u16| (0..16).map(move |bit| (express + offset, bit));
    let whole = bits(0x08).chain(bits(0x12));
    for (offset, bit) in whole.chain([(0x04, 2), (0x10, 20), (0x2c, 0), (0x104, 20), (0x110, 13)]) {
        let mut space = space.clone();
        space[usize::from(offset) + bit / 8] ^= 1 << (bit % 8);
        let found = differences(&space, function, &seen);
        assert!(!found.is_empty(), "bit {bit} of {offset:#05x} was flipped and nothing noticed");
    }
    let mut narrower = space.clone();
    narrower[usize::from(express) + 0x12] ^= 0x30;
    let found = differences(&narrower, function, &seen);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("PCI Express at 0x058, LnkSta: we say x1, lspci x2"), "{}", found[0]);
}

fn a_line_without_decoder_is_detected() {
    let space = devices::all().into_iter().find(|(name, _)| *name == "gpu").unwrap().1.bytes;
    let listing = golden("gpu").replace("\t\tDevSta:\t", "\t\tDevNew:\tAll+\n\t\tDevSta:\t");
    let found = differences(&space, &printed::functions(&listing)[0], &Seen::default());
    assert!(found.iter().any(|text| text.contains("DevNew")), "{found:?}");
    let listing = golden("gpu").replace("TransPend-", "TransPend- New+");
    let found = differences(&space, &printed::functions(&listing)[0], &Seen::default());
    assert_eq!(found.len(), 1, "{found:?}");
}

/// Offset of the second capability of a broken list.
const AT: u16 = 0x7c;

/// A space with a broken list, our errors, and a part of the output of lspci.
type Broken = (Space, &'static [BreakKind], &'static str);

/// Broken lists.
fn broken() -> Vec<Broken> {
    let base = || Space::new(0, 0x10ee, 1, 0x02_00_00).standard(0x10, &[0; 58]).standard(0x05, &[0; 8]);
    let at = usize::from(AT);
    let serial = || base().extended(0x03, 1, &[0, 0]);
    let next = |to: u64| 0x0001_0003 | to << 20;
    vec![
        (base().put(at + 1, 1, 0x40), &[BreakKind::Loop { target: 0x40 }], "[40] <chain looped>"),
        (base().put(at + 1, 1, at as u64), &[BreakKind::Loop { target: AT }], "[7c] <chain looped>"),
        (base().put(at, 2, 0xffff), &[BreakKind::AllOnes], "[7c] <chain broken>"),
        // lspci follows a pointer into the header (section 7.5.1.1.11: capabilities begin at 0x40).
        (base().put(at + 1, 1, 0x30), &[BreakKind::BelowStart { target: 0x30 }], "[30] Null"),
        (serial().put(0x100, 4, next(0x100)), &[BreakKind::Loop { target: 0x100 }], "[100 v1] <chain looped>"),
        // lspci stops here without a message.
        (serial().put(0x100, 4, next(0xf0)), &[BreakKind::BelowStart { target: 0xf0 }], ""),
        (serial().put(0x100, 4, next(0x200)).put(0x200, 4, 0xffff_ffff), &[BreakKind::AllOnes], ""),
        (base().put(0x100, 4, 0xffff_ffff), &[BreakKind::AllOnes], ""),
        (base().put(0x41, 1, at as u64 | 2), &[BreakKind::Unaligned { target: AT | 2 }], ""),
    ]
}

fn broken_lists_have_our_errors() {
    for (space, expected, _) in broken() {
        let faults: Vec<BreakKind> = ConfigSpace::new(&space.bytes).chain_faults().map(|fault| fault.what).collect();
        assert_eq!(faults, expected);
    }
}

fn broken_lists_end_where_lspci_ends_them() {
    let (spaces, marks): (Vec<_>, Vec<_>) = broken().into_iter().map(|(space, _, mark)| (space.bytes, mark)).unzip();
    let listing = live(&spaces);
    let functions: Vec<&str> = listing.trim().split("\n\n").collect();
    assert_eq!(functions.len(), marks.len());
    for ((function, mark), bytes) in functions.iter().zip(marks).zip(&spaces) {
        assert!(function.contains(mark), "no '{mark}' in {function}");
        let ours: Vec<u16> = ConfigSpace::new(bytes).capabilities().map(|capability| capability.offset()).collect();
        let theirs: Vec<u16> = printed::functions(function)[0]
            .capabilities
            .iter()
            .filter(|capability| !capability.title.starts_with('<') && capability.offset >= 0x40)
            .map(|capability| capability.offset)
            .collect();
        assert_eq!(ours, theirs, "{function}");
    }
}
