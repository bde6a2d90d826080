//! Effective memory type of a mapping: the PAT type in the kernel's page tables, combined with the MTRRs.

// Used by mappings only, which other targets do not have.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]

use super::system::text;
use super::{Device, Range};
use lanemark_platform::memory_type::{Effective, Manual, Pat, effective};
use lanemark_units::{HostPhys, MemoryType};
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

/// Effective memory type of a mapping, and how it was determined.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MappedType {
    /// Memory type; `None` if it could not be read back and is assumed to be the requested one.
    pub found: Option<MemoryType>,
    /// Source of the type, or the reason why it is unknown.
    pub because: String,
}

/// Outcome of mapping a named range with one memory type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mapping {
    /// Index of the place in its attachment.
    pub place: usize,
    /// Requested memory type.
    pub memory_type: MemoryType,
    /// Mapped file.
    pub file: PathBuf,
    /// Type of the mapping, or the reason why it cannot be made.
    pub outcome: Result<MappedType, String>,
}

/// Effective memory type of `range` in a BAR that starts at `start`.
///
/// `found` is `None` if the system does not report the type. Pages of different types are an error.
pub(super) fn mapped_type(device: &Device, range: &Range, start: HostPhys) -> Result<MappedType, String> {
    let list = device.system().path("sys/kernel/debug/x86/pat_memtype_list");
    let not_read = |why: String| MappedType { found: None, because: format!("not read back: {why}") };
    let list_text = match text(&list) {
        Ok(text) => text,
        Err(error) => {
            let advice = match error.kind() {
                io::ErrorKind::NotFound => "mount -t debugfs none /sys/kernel/debug",
                _ => "run as root",
            };
            return Ok(not_read(format!("{}: {error}; {advice}", list.display())));
        }
    };
    let (from, to) = (start.0.saturating_add(range.from), start.0.saturating_add(range.to));
    let pats = pats_over(&list_text, from, to);
    let pat = match pats.iter().collect::<Vec<_>>().as_slice() {
        [] => return Ok(not_read(format!("{} has no entry for {from:#x}..{to:#x}", list.display()))),
        [pat] => pat_of(pat).ok_or_else(|| format!("the kernel reports the unknown PAT type '{pat}'"))?,
        several => {
            let names: Vec<&str> = several.iter().map(|name| name.as_str()).collect();
            return Err(format!("its pages have different types: {}", names.join(", ")));
        }
    };
    let mtrr_text = text(&device.system().path("proc/mtrr")).ok();
    let found = combine(pat, mtrr_text.as_deref(), from, to)?;
    let by_mtrr = match (&mtrr_text, found) {
        (None, _) => ", /proc/mtrr is unreadable",
        (Some(_), Some(_)) => " and /proc/mtrr",
        (Some(_), None) => ", and /proc/mtrr does not determine the type",
    };
    Ok(MappedType { found, because: format!("PAT type {} in pat_memtype_list{by_mtrr}", pat_name(pat)) })
}

const NAMES: [(&str, Pat); 6] = [
    ("uncached", Pat::Uc),
    ("uncached-minus", Pat::UcMinus),
    ("write-combining", Pat::Wc),
    ("write-through", Pat::Wt),
    ("write-protected", Pat::Wp),
    ("write-back", Pat::Wb),
];

fn pat_of(name: &str) -> Option<Pat> {
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, pat)| *pat)
}

fn pat_name(pat: Pat) -> &'static str {
    NAMES.iter().find(|(_, known)| *known == pat).map_or("unknown", |(name, _)| name)
}

/// PAT types of the kernel's mappings that overlap `from..to`.
///
/// Lines are `PAT: [mem 0xfe000000-0xfe001000] uncached-minus`, and `uncached-minus @ 0xfe000000-0xfe001000` before
/// Linux 5.7; the end is exclusive. Source: Linux, `arch/x86/mm/pat/memtype.c`.
fn pats_over(list: &str, from: u64, to: u64) -> BTreeSet<String> {
    let entry = |line: &str| {
        let line = line.trim();
        let (range, name) = match line.strip_prefix("PAT: [mem ") {
            Some(rest) => rest.split_once("] ")?,
            None => line.split_once(" @ ").map(|(name, range)| (range, name))?,
        };
        let (start, end) = range.split_once('-')?;
        let number = |text: &str| u64::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok();
        Some((number(start)?, number(end)?, name.trim().to_owned()))
    };
    list.lines()
        .filter_map(entry)
        .filter(|(start, end, _)| *start < to && from < *end)
        .map(|(_, _, name)| name)
        .collect()
}

/// Combines a PAT type with the MTRRs over `from..to`; `None` if the MTRRs do not determine the result.
///
/// `/proc/mtrr` lists the variable ranges but not the default type, which firmware sets to UC or WB. An uncovered range
/// has a result only if both defaults give the same one. For the same reason the Intel and AMD tables must agree.
fn combine(pat: Pat, mtrr: Option<&str>, from: u64, to: u64) -> Result<Option<MemoryType>, String> {
    let possible: Vec<MemoryType> = match mtrr.map(|text| mtrrs_over(text, from, to)) {
        // The result can still be unique: PAT WC overrides every MTRR type.
        None => MemoryType::ALL.to_vec(),
        Some(covering) if covering.is_empty() => vec![MemoryType::Uc, MemoryType::Wb],
        // UC wins where ranges overlap. Source: Intel SDM volume 3, "MTRR Precedences".
        Some(covering) if covering.contains(&(MemoryType::Uc, true)) => vec![MemoryType::Uc],
        Some(covering) => {
            let partly = covering.iter().any(|(_, whole)| !whole);
            let mut types: Vec<MemoryType> = covering.iter().map(|(kind, _)| *kind).collect();
            types.extend(partly.then_some([MemoryType::Uc, MemoryType::Wb]).into_iter().flatten());
            types
        }
    };
    let results: BTreeSet<MemoryType> = possible
        .iter()
        .flat_map(|mtrr| [Manual::Intel, Manual::Amd].map(|manual| effective(manual, *mtrr, pat)))
        .map(|result| match result {
            Effective::Type(kind) => Ok(kind),
            // Cache-disabled behaves as UC.
            Effective::Cd => Ok(MemoryType::Uc),
            Effective::Undefined => Err(format!("PAT type {} is undefined over these MTRRs", pat_name(pat))),
        })
        .collect::<Result<_, _>>()?;
    let mut results = results.into_iter();
    Ok(results.next().filter(|_| results.next().is_none()))
}

/// Types of the MTRRs that overlap `from..to`, each with whether it covers all of it.
fn mtrrs_over(text: &str, from: u64, to: u64) -> Vec<(MemoryType, bool)> {
    let entry = |line: &str| {
        let base = line.split_once("base=0x")?.1.split(|c: char| !c.is_ascii_hexdigit()).next()?;
        let base = u64::from_str_radix(base, 16).ok()?;
        let size = line.split_once("size=")?.1.trim_start();
        let (number, unit) = size.split_at(size.find(|c: char| !c.is_ascii_digit())?);
        let shift = if unit.starts_with("MB") { 20 } else { 10 };
        let end = base.saturating_add(number.parse::<u64>().ok()?.checked_shl(shift)?);
        let kind = match line.rsplit_once(": ")?.1.trim() {
            "uncachable" => MemoryType::Uc,
            "write-combining" => MemoryType::Wc,
            "write-through" => MemoryType::Wt,
            "write-protect" => MemoryType::Wp,
            "write-back" => MemoryType::Wb,
            _ => return None,
        };
        Some((base, end, kind))
    };
    text.lines()
        .filter_map(entry)
        .filter(|(base, end, _)| *base < to && from < *end)
        .map(|(base, end, kind)| (kind, base <= from && to <= end))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "\
PAT memtype list:
PAT: [mem 0x00000000fe800000-0x00000000fe801000] uncached-minus
PAT: [mem 0x000000c000000000-0x000000c000002000] write-combining
PAT: [mem 0x000000c000002000-0x000000c000003000] uncached-minus
";

    fn names(from: u64, to: u64) -> Vec<String> {
        pats_over(LIST, from, to).into_iter().collect()
    }

    #[test]
    fn pat_entries_are_matched_to_the_byte() {
        assert_eq!(names(0xc0_0000_0000, 0xc0_0000_2000), ["write-combining"]);
        assert_eq!(names(0xc0_0000_1fff, 0xc0_0000_2001), ["uncached-minus", "write-combining"]);
        assert_eq!(names(0xc0_0000_3000, 0xc0_0000_4000), Vec::<String>::new());
        assert_eq!(names(0xfe80_0000 - 64, 0xfe80_0000), Vec::<String>::new());
        let old = pats_over("write-back @ 0x1000-0x2000\nuncached-minus @ 0x2000-0x3000\n", 0x2000, 0x2004);
        assert_eq!(old.into_iter().collect::<Vec<_>>(), ["uncached-minus"]);
    }

    const MTRR: &str = "\
reg00: base=0x0c0000000 ( 3072MB), size= 1024MB, count=1: uncachable
reg01: base=0xc000000000 (786432MB), size=    4MB, count=1: write-combining
reg02: base=0x000100000 (    1MB), size=   64KB, count=1: write-through
";

    #[test]
    fn mtrrs_cover_a_range_fully_or_partly() {
        assert_eq!(mtrrs_over(MTRR, 0xfe80_0000, 0xfe80_1000), [(MemoryType::Uc, true)]);
        assert_eq!(mtrrs_over(MTRR, 0xc0_0000_0000, 0xc0_0040_0000), [(MemoryType::Wc, true)]);
        assert_eq!(mtrrs_over(MTRR, 0xc0_0000_0000, 0xc0_0040_0001), [(MemoryType::Wc, false)]);
        assert_eq!(mtrrs_over(MTRR, 0x11_0000, 0x11_0001), []);
        assert_eq!(mtrrs_over(MTRR, 0x10_ffff, 0x11_0000), [(MemoryType::Wt, true)]);
    }

    #[test]
    fn pat_and_mtrrs_give_one_type_or_none() {
        let kind = |pat, mtrr, from, to| combine(pat, mtrr, from, to).unwrap();
        let (low, high) = ((0xfe80_0000, 0xfe80_1000), (0xc0_0000_0000, 0xc0_0000_1000));
        assert_eq!(kind(Pat::UcMinus, Some(MTRR), low.0, low.1), Some(MemoryType::Uc));
        assert_eq!(kind(Pat::UcMinus, Some(MTRR), high.0, high.1), Some(MemoryType::Wc), "an MTRR overrides UC-");
        assert_eq!(kind(Pat::UcMinus, Some(""), high.0, high.1), Some(MemoryType::Uc));
        assert_eq!(kind(Pat::UcMinus, None, high.0, high.1), None, "WC or UC, depending on the MTRRs");
        for mtrr in [Some(MTRR), Some(""), None] {
            assert_eq!(kind(Pat::Wc, mtrr, low.0, low.1), Some(MemoryType::Wc));
        }
        assert_eq!(kind(Pat::Wb, Some(""), high.0, high.1), None, "UC or WB, depending on the default type");
    }
}
