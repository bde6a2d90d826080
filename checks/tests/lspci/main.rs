//! Our decode of configuration space against what the real `lspci -n -vvv -F` prints for the same bytes.
//!
//! | bytes | held against |
//! | --- | --- |
//! | the devices of `devices.rs`, as `dumps/*.txt` | `dumps/*.lspci`, and lspci itself |
//! | a few spaces at random | `dumps/random.lspci`, and lspci itself |
//! | every bit of every register alone, and alone missing; many spaces at random | lspci itself |
//!
//! lspci itself is fetched by `checks/tools/lspci`. Where that cannot be done the test says why on standard error, and
//! holds what is committed. `LANEMARK_BLESS=1 cargo test -p lanemark-checks --test lspci` writes `dumps/` anew.
//!
//! Where lspci 3.15.0 prints something else than the specification says, the place that expects it says so; the words
//! to look for are "lspci" and a section.

// Lines are put together piece by piece, and nobody waits for them.
#![allow(clippy::format_push_string)]

mod comparison;
mod compose;
mod coverage;
mod decoded;
mod devices;
mod express;
mod extended;
mod live;
mod printed;
mod standard;

use comparison::differences;
use compose::{Space, dump, random, undump, walking};
use decoded::Seen;
use lanemark_wire::config::{BreakKind, ConfigSpace};
use std::io::Write as _;
use std::path::PathBuf;

/// How many spaces at random are committed with what lspci printed for them.
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

/// What lspci prints for these spaces, or nothing where it cannot be had; then standard error has the reason.
fn live(spaces: &[Vec<u8>]) -> Option<String> {
    live::listing(&text(spaces))
        .map_err(|why| {
            // Not eprintln: the harness keeps that to itself when a test passes.
            let _ = writeln!(std::io::stderr(), "not compared with the real lspci, only with what is committed: {why}");
        })
        .ok()
}

fn hold(name: &str, spaces: &[Vec<u8>], listing: &str, seen: &Seen) {
    let functions = printed::functions(listing);
    assert_eq!(functions.len(), spaces.len(), "{name}: lspci prints another number of functions");
    let mut found = Vec::new();
    for (index, (bytes, function)) in spaces.iter().zip(&functions).enumerate() {
        found.extend(differences(bytes, function, seen).into_iter().map(|text| format!("{name}, {index}: {text}")));
    }
    assert!(found.is_empty(), "{} differences:\n{}", found.len(), found[..found.len().min(40)].join("\n"));
}

/// With `LANEMARK_BLESS` set: dumps, and what lspci prints for them, written anew.
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

#[test]
fn every_field_that_lspci_prints_is_decoded_alike() {
    bless();
    let seen = Seen::default();
    let mut live_spaces = Vec::new();
    for (name, space) in devices::all() {
        let spaces = undump(&committed(&format!("{name}.txt")));
        assert!(spaces == [space.bytes], "{name}.txt is not what devices.rs composes: LANEMARK_BLESS=1 renews it");
        hold(name, &spaces, &golden(name), &seen);
        live_spaces.extend(spaces);
    }
    let some = bytes(random(0, COMMITTED));
    hold("random", &some, &golden("random"), &seen);
    live_spaces.extend(some);
    let names = seen.names();
    live_spaces.extend(bytes(walking()));
    live_spaces.extend(bytes(random(1, 200)));
    if let Some(listing) = live(&live_spaces) {
        hold("live", &live_spaces, &listing, &seen);
        assert_eq!(seen.names(), names, "what is committed does not show every field that lspci can print");
    }
    coverage::check(&names);
}

#[test]
fn a_flipped_bit_is_noticed() {
    let space = devices::all().into_iter().find(|(name, _)| *name == "nvme").unwrap().1.bytes;
    let listing = golden("nvme");
    let function = &printed::functions(&listing)[0];
    let seen = Seen::default();
    assert_eq!(differences(&space, function, &seen), [""; 0]);
    let express = ConfigSpace::new(&space).pcie().unwrap().region().offset();
    // Every bit of Device Control and Link Status, and one here and there.
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

#[test]
fn a_line_that_we_do_not_decode_is_noticed() {
    let space = devices::all().into_iter().find(|(name, _)| *name == "gpu").unwrap().1.bytes;
    let listing = golden("gpu").replace("\t\tDevSta:\t", "\t\tDevNew:\tAll+\n\t\tDevSta:\t");
    let found = differences(&space, &printed::functions(&listing)[0], &Seen::default());
    assert!(found.iter().any(|text| text.contains("DevNew")), "{found:?}");
    let listing = golden("gpu").replace("TransPend-", "TransPend- New+");
    let found = differences(&space, &printed::functions(&listing)[0], &Seen::default());
    assert_eq!(found.len(), 1, "{found:?}");
}

/// A broken list, what we say, and how lspci shows it (if at all).
#[test]
fn broken_lists_end_where_lspci_ends_them() {
    let base = || Space::new(0, 0x10ee, 1, 0x02_00_00).standard(0x10, &[0; 58]).standard(0x05, &[0; 8]);
    const AT: u16 = 0x7c;
    let at = usize::from(AT);
    let serial = || base().extended(0x03, 1, &[0, 0]);
    let next = |to: u64| 0x0001_0003 | to << 20;
    let cases: Vec<(Space, &[BreakKind], &str)> = vec![
        (base().put(at + 1, 1, 0x40), &[BreakKind::Loop { target: 0x40 }], "[40] <chain looped>"),
        (base().put(at + 1, 1, at as u64), &[BreakKind::Loop { target: AT }], "[7c] <chain looped>"),
        (base().put(at, 2, 0xffff), &[BreakKind::AllOnes], "[7c] <chain broken>"),
        // lspci follows a pointer into the header (section 7.5.1.1.11: capabilities begin at 0x40).
        (base().put(at + 1, 1, 0x30), &[BreakKind::BelowStart { target: 0x30 }], "[30] Null"),
        (serial().put(0x100, 4, next(0x100)), &[BreakKind::Loop { target: 0x100 }], "[100 v1] <chain looped>"),
        // Here lspci stops and says nothing.
        (serial().put(0x100, 4, next(0xf0)), &[BreakKind::BelowStart { target: 0xf0 }], ""),
        (serial().put(0x100, 4, next(0x200)).put(0x200, 4, 0xffff_ffff), &[BreakKind::AllOnes], ""),
        (base().put(0x100, 4, 0xffff_ffff), &[BreakKind::AllOnes], ""),
        (base().put(0x41, 1, at as u64 | 2), &[BreakKind::Unaligned { target: AT | 2 }], ""),
    ];
    for (space, expected, _) in &cases {
        let faults: Vec<BreakKind> = ConfigSpace::new(&space.bytes).chain_faults().map(|fault| fault.what).collect();
        assert_eq!(&faults, expected);
    }
    let (spaces, marks): (Vec<_>, Vec<_>) = cases.into_iter().map(|(space, _, mark)| (space.bytes, mark)).unzip();
    let Some(listing) = live(&spaces) else { return };
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
