//! How BARs are mapped: write-combining where it pays, and as the page tables say.

use super::case::{Case, Found, by_hand, unknown};
use super::gain;
use lanemark_inventory::{Function, Inventory, Mtrr, PatRange, Region};
use lanemark_platform::memory_type::{Effective, Manual, Pat, effective};
use lanemark_platform::preset;
use lanemark_record::diagnosis::{Gain, Severity};
use lanemark_units::format_size;
use lanemark_wire::Mps;
use lanemark_wire::config::BarKind;

/// Memory BARs with a place and a size.
pub(crate) fn memory_bars(function: &Function) -> impl Iterator<Item = (u8, &Region, u64, u64)> {
    let regions = function.regions.known().map(Vec::as_slice).unwrap_or_default();
    regions
        .iter()
        .filter(|region| region.space != BarKind::Io)
        .filter_map(|region| Some((region.bar()?, region, region.base.present()?.0, *region.bytes.known()?)))
}

fn overlaps(base: u64, bytes: u64, other: u64, other_bytes: u64) -> bool {
    base < other.saturating_add(other_bytes) && other < base.saturating_add(bytes)
}

/// Ranges that are mapped inside a BAR.
fn mapped_in(mapped: &[PatRange], base: u64, bytes: u64) -> impl Iterator<Item = &PatRange> {
    mapped.iter().filter(move |range| overlaps(base, bytes, range.base.0, range.bytes))
}

/// A prefetchable BAR smaller than this holds registers, whatever its bit says.
const REGISTERS: u64 = 64 << 10;

/// A prefetchable BAR that is mapped, and nowhere write-combining: each store is a packet of its own.
pub(crate) fn combining(case: &Case<'_>, found: &mut Found) {
    let Some(mapped) = case.inventory.pat.mapped.known() else { return };
    for (place, function) in case.inventory.functions.iter().enumerate() {
        for (bar, region, base, bytes) in memory_bars(function) {
            let mut types = mapped_in(mapped, base, bytes).map(|range| Pat::from_encoding(range.encoding)).peekable();
            let is_mapped = types.peek().is_some();
            if !region.prefetchable || bytes < REGISTERS || !is_mapped || types.any(|kind| kind == Some(Pat::Wc)) {
                continue;
            }
            let reason =
                format!("BAR{bar} ({}) is prefetchable and mapped, but nowhere write-combining", format_size(bytes));
            let gain = stores_gain(case, place);
            let severity = gain::severity(&gain);
            let words = format!(
                "the driver must ask for it (ioremap_wc, io_mapping_create_wc); a program maps /sys/bus/pci/devices/{}/resource{bar}_wc",
                function.address
            );
            found.note(severity, [function], None, reason, gain, by_hand(&words));
        }
    }
}

/// Stores of one core: one of 8 B a core round trip, against lines of 64 B back to back.
///
/// The round trip is the one fitted to a published Broadwell server (preset `aws-f1`).
fn stores_gain(case: &Case<'_>, place: usize) -> Gain {
    let round_trip =
        preset("aws-f1").and_then(Result::ok).and_then(|host| host.number("root_complex.core_round_trip_ns"));
    let rate = case.edge_above(place).and_then(|edge| edge.trained(case));
    let (Some((ns, _)), Some(rate)) = (round_trip, rate) else {
        return unknown("the link was not seen");
    };
    // A line of 64 B costs as much framing as a payload of 128 B: scale the ceiling of the latter down.
    let lines =
        Mps::new(128).and_then(|mps| gain::write_ceiling(rate, mps)).map(|full| full * 64.0 / 88.0 * 152.0 / 128.0);
    let assumes =
        format!("8 B stores of one core, {ns:.0} ns each, as fitted to a Broadwell server; lines of 64 B on {rate}");
    gain::bytes_per_s("stores to the BAR, at most", Some(8e9 / ns), lines, assumes)
}

/// Where an MTRR covers a BAR, the page table may not get what it asks for.
pub(crate) fn overridden(case: &Case<'_>, found: &mut Found) {
    let (Some(mtrrs), Some(mapped), Some(manual)) =
        (case.inventory.mtrrs.known(), case.inventory.pat.mapped.known(), manual(case.inventory))
    else {
        return;
    };
    for function in &case.inventory.functions {
        for (bar, _, base, bytes) in memory_bars(function) {
            let covering = |mtrr: &&Mtrr| overlaps(base, bytes, mtrr.base.0, mtrr.bytes);
            for mtrr in mtrrs.iter().filter(covering) {
                // What is mapped in the BAR beside the MTRR gets what it asks for.
                let first = base.max(mtrr.base.0);
                let end = base.saturating_add(bytes).min(mtrr.base.0.saturating_add(mtrr.bytes));
                let asked =
                    mapped_in(mapped, first, end - first).filter_map(|range| Pat::from_encoding(range.encoding));
                let Some((pat, result)) = asked
                    .map(|pat| (pat, effective(manual, mtrr.memory_type, pat)))
                    .find(|(pat, result)| !gets(*pat, *result))
                else {
                    continue;
                };
                let reason = format!(
                    "BAR{bar} lies in MTRR {} of type {}: the page tables ask for {pat:?} and get {result}",
                    mtrr.number, mtrr.memory_type
                );
                let gain = unknown("it depends on what the driver does with the BAR");
                let words = format!(
                    "a BIOS setting made the range; to take it away until the next boot: echo disable={} > /proc/mtrr",
                    mtrr.number
                );
                found.note(Severity::Minor, [function], None, reason, gain, by_hand(&words));
            }
        }
    }
}

/// Whether a page gets what it asks for; `UC-` asks for uncached memory.
fn gets(pat: Pat, result: Effective) -> bool {
    use lanemark_units::MemoryType;
    let wanted = match pat {
        Pat::Uc | Pat::UcMinus => MemoryType::Uc,
        Pat::Wc => MemoryType::Wc,
        Pat::Wt => MemoryType::Wt,
        Pat::Wp => MemoryType::Wp,
        Pat::Wb => MemoryType::Wb,
    };
    result == Effective::Type(wanted)
}

/// Whose table of effective types holds.
fn manual(inventory: &Inventory) -> Option<Manual> {
    match inventory.processors.vendor.known()?.as_str() {
        "GenuineIntel" => Some(Manual::Intel),
        "AuthenticAMD" => Some(Manual::Amd),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::doctor::sample::{self, CARD, findings_of, known};
    use lanemark_inventory::{Inventory, Mtrr, PatRange};
    use lanemark_record::diagnosis::Severity;
    use lanemark_units::{HostPhys, MemoryType};

    fn mapped(encoding: u8) -> Inventory {
        let mut machine = sample::healthy();
        let base = HostPhys(sample::BAR_BASE);
        machine.pat.mapped = known(vec![PatRange { base, bytes: 4096, encoding }]);
        machine
    }

    #[test]
    fn a_bar_mapped_uncached_is_found_and_one_mapped_write_combining_is_not() {
        let found = findings_of(&mapped(7), "write_combining");
        assert_eq!((found.len(), found[0].severity), (1, Severity::Costly));
        assert!(found[0].gain.factor().unwrap() > 100.0, "{:?}", found[0].gain);
        assert_eq!(findings_of(&mapped(1), "write_combining"), []);
        let mut nobody = mapped(7);
        nobody.pat.mapped = known(vec![]);
        assert_eq!(findings_of(&nobody, "write_combining"), []);
        nobody.pat.mapped = sample::unseen();
        assert_eq!(findings_of(&nobody, "write_combining"), []);
    }

    #[test]
    fn registers_need_no_write_combining() {
        let mut machine = mapped(7);
        let region = sample::bar(&mut machine, CARD);
        (region.prefetchable, region.bytes) = (false, known(1 << 28));
        assert_eq!(findings_of(&machine, "write_combining"), []);
        let region = sample::bar(&mut machine, CARD);
        (region.prefetchable, region.bytes) = (true, known((64 << 10) - 1));
        assert_eq!(findings_of(&machine, "write_combining"), []);
        sample::bar(&mut machine, CARD).bytes = known(64 << 10);
        assert_eq!(findings_of(&machine, "write_combining").len(), 1);
    }

    fn with_mtrr(memory_type: MemoryType, encoding: u8, base: u64) -> Inventory {
        let mut machine = mapped(encoding);
        let base = HostPhys(base);
        machine.mtrrs = known(vec![Mtrr { number: 3, base, bytes: 1 << 28, memory_type }]);
        machine
    }

    #[test]
    fn an_mtrr_that_changes_what_a_page_gets_is_found_and_one_beside_the_bar_is_not() {
        let found = findings_of(&with_mtrr(MemoryType::Uc, 6, sample::BAR_BASE), "mtrr");
        assert!(found[0].reason.ends_with("ask for Wb and get UC"), "{}", found[0].reason);
        assert_eq!(findings_of(&with_mtrr(MemoryType::Uc, 1, sample::BAR_BASE), "mtrr"), [], "WC wins");
        assert_eq!(findings_of(&with_mtrr(MemoryType::Uc, 7, sample::BAR_BASE), "mtrr"), []);
        assert_eq!(findings_of(&with_mtrr(MemoryType::Wc, 7, sample::BAR_BASE), "mtrr").len(), 1);
        assert_eq!(findings_of(&with_mtrr(MemoryType::Uc, 6, sample::BAR_BASE - (1 << 28)), "mtrr"), []);
        // The page that is mapped ends where the MTRR begins, in the same BAR.
        assert_eq!(findings_of(&with_mtrr(MemoryType::Uc, 6, sample::BAR_BASE + 4096), "mtrr"), []);
        assert_eq!(findings_of(&with_mtrr(MemoryType::Uc, 6, sample::BAR_BASE + 4095), "mtrr").len(), 1);
    }

    #[test]
    fn without_a_vendor_there_is_no_table_and_no_finding() {
        let mut machine = with_mtrr(MemoryType::Uc, 6, sample::BAR_BASE);
        machine.processors.vendor = sample::unseen();
        assert_eq!(findings_of(&machine, "mtrr"), []);
    }
}
