//! Checks of BAR mappings: write-combining, and MTRRs against page tables.

use super::case::{Case, Collector, by_hand, unknown};
use super::gain;
use lanemark_inventory::{Function, Inventory, Mtrr, PatRange, Region};
use lanemark_platform::memory_type::{Effective, Manual, Pat, effective};
use lanemark_platform::preset;
use lanemark_record::diagnosis::{Gain, Severity};
use lanemark_units::format_size;
use lanemark_wire::Mps;
use lanemark_wire::config::BarKind;

/// Memory BARs with a known address and size.
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

/// Mapped ranges that overlap a BAR.
fn mapped_in(mapped: &[PatRange], base: u64, bytes: u64) -> impl Iterator<Item = &PatRange> {
    mapped.iter().filter(move |range| overlaps(base, bytes, range.base.0, range.bytes))
}

/// Size below which a prefetchable BAR is taken for registers.
const REGISTERS: u64 = 64 << 10;

/// Finds prefetchable BARs that are mapped but not write-combining, so that each store is a TLP of its own.
pub(crate) fn combining(case: &Case<'_>, found: &mut Collector) {
    let Some(mapped) = case.inventory.pat.mapped.known() else { return };
    for (place, function) in case.inventory.functions.iter().enumerate() {
        for (bar, region, base, bytes) in memory_bars(function) {
            let mut types = mapped_in(mapped, base, bytes).map(|range| Pat::from_encoding(range.encoding)).peekable();
            let is_mapped = types.peek().is_some();
            if !region.prefetchable || bytes < REGISTERS || !is_mapped || types.any(|kind| kind == Some(Pat::Wc)) {
                continue;
            }
            let reason =
                format!("BAR{bar} ({}) is prefetchable and mapped, but not write-combining", format_size(bytes));
            let gain = stores_gain(case, place);
            let severity = gain::severity(&gain);
            let words = format!(
                "the driver must request it (ioremap_wc, io_mapping_create_wc); a program can map /sys/bus/pci/devices/{}/resource{bar}_wc",
                function.address
            );
            found.add(severity, [function], None, reason, gain, by_hand(&words));
        }
    }
}

/// Gain of write-combining for one core: one 8 B store per core round trip, against back-to-back lines of 64 B.
///
/// The round trip is that of the preset `aws-f1`, fitted to a published Broadwell server.
fn stores_gain(case: &Case<'_>, place: usize) -> Gain {
    let round_trip =
        preset("aws-f1").and_then(Result::ok).and_then(|host| host.number("root_complex.core_round_trip_ns"));
    let rate = case.edge_above(place).and_then(|edge| edge.trained(case));
    let (Some((ns, _)), Some(rate)) = (round_trip, rate) else {
        return unknown("the link was not seen");
    };
    // A 64 B line has the same framing as a 128 B payload: scale that ceiling.
    let lines =
        Mps::new(128).and_then(|mps| gain::write_ceiling(rate, mps)).map(|full| full * 64.0 / 88.0 * 152.0 / 128.0);
    let assumes =
        format!("8 B stores of one core at {ns:.0} ns each, as fitted to a Broadwell server; lines of 64 B on {rate}");
    gain::bytes_per_s("upper bound of stores to the BAR", Some(8e9 / ns), lines, assumes)
}

/// Finds BARs whose MTRR overrides the memory type in the page tables.
pub(crate) fn overridden(case: &Case<'_>, found: &mut Collector) {
    let (Some(mtrrs), Some(mapped), Some(manual)) =
        (case.inventory.mtrrs.known(), case.inventory.pat.mapped.known(), manual(case.inventory))
    else {
        return;
    };
    for function in &case.inventory.functions {
        for (bar, _, base, bytes) in memory_bars(function) {
            let covering = |mtrr: &&Mtrr| overlaps(base, bytes, mtrr.base.0, mtrr.bytes);
            for mtrr in mtrrs.iter().filter(covering) {
                // Only mappings inside the MTRR are affected.
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
                    "BAR{bar} lies in MTRR {} of type {}: the page tables request {pat:?} but get {result}",
                    mtrr.number, mtrr.memory_type
                );
                let gain = unknown("it depends on how the driver uses the BAR");
                let words = format!(
                    "firmware set the MTRR; to remove it until the next boot: echo disable={} > /proc/mtrr",
                    mtrr.number
                );
                found.add(Severity::Minor, [function], None, reason, gain, by_hand(&words));
            }
        }
    }
}

/// Whether a page has the memory type that it requests; `UC-` requests UC.
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

/// Vendor whose table of effective memory types applies.
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
    fn an_uncached_mapping_of_a_prefetchable_bar_is_found() {
        let found = findings_of(&mapped(7), "write_combining");
        assert_eq!((found.len(), found[0].severity), (1, Severity::Costly));
        assert!(found[0].gain.factor().unwrap() > 100.0, "{:?}", found[0].gain);
        assert_eq!(findings_of(&mapped(1), "write_combining"), []);
        let mut unmapped = mapped(7);
        unmapped.pat.mapped = known(vec![]);
        assert_eq!(findings_of(&unmapped, "write_combining"), []);
        unmapped.pat.mapped = sample::unseen();
        assert_eq!(findings_of(&unmapped, "write_combining"), []);
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
    fn an_mtrr_that_overrides_a_page_is_found() {
        let found = findings_of(&with_mtrr(MemoryType::Uc, 6, sample::BAR_BASE), "mtrr");
        assert!(found[0].reason.ends_with("request Wb but get UC"), "{}", found[0].reason);
        assert_eq!(findings_of(&with_mtrr(MemoryType::Uc, 1, sample::BAR_BASE), "mtrr"), [], "WC wins");
        assert_eq!(findings_of(&with_mtrr(MemoryType::Uc, 7, sample::BAR_BASE), "mtrr"), []);
        assert_eq!(findings_of(&with_mtrr(MemoryType::Wc, 7, sample::BAR_BASE), "mtrr").len(), 1);
        assert_eq!(findings_of(&with_mtrr(MemoryType::Uc, 6, sample::BAR_BASE - (1 << 28)), "mtrr"), []);
        // The mapping ends where the MTRR begins, in the same BAR.
        assert_eq!(findings_of(&with_mtrr(MemoryType::Uc, 6, sample::BAR_BASE + 4096), "mtrr"), []);
        assert_eq!(findings_of(&with_mtrr(MemoryType::Uc, 6, sample::BAR_BASE + 4095), "mtrr").len(), 1);
    }

    #[test]
    fn without_a_known_vendor_there_is_no_finding() {
        let mut machine = with_mtrr(MemoryType::Uc, 6, sample::BAR_BASE);
        machine.processors.vendor = sample::unseen();
        assert_eq!(findings_of(&machine, "mtrr"), []);
    }
}
