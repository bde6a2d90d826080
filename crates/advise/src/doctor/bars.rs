//! Checks of BAR addresses and sizes.

use super::case::{Case, Collector, by_hand, command, unknown};
use super::memory_type::memory_bars;
use lanemark_record::diagnosis::Severity;
use lanemark_units::format_size;
use lanemark_wire::config::BarKind;

/// Finds resizable BARs at their smallest size.
pub(crate) fn resizable(case: &Case<'_>, found: &mut Collector) {
    for function in &case.inventory.functions {
        for bar in function.resizable_bars.known().into_iter().flatten() {
            let (Some(size), Some(least), Some(most)) =
                (bar.size_bytes(), bar.sizes_bytes().next(), bar.largest_bytes())
            else {
                continue;
            };
            if size != least || most == least {
                continue;
            }
            let reason = format!(
                "BAR{} is {}, its smallest size; it can be resized to {}",
                bar.bar,
                format_size(size),
                format_size(most)
            );
            let gain = unknown("it depends on how often the driver moves the BAR's window over the device memory");
            // The file takes log2 of the size in MiB.
            let code = most.trailing_zeros().saturating_sub(20);
            let set = format!("echo {code} > /sys/bus/pci/devices/{}/resource{}_resize", function.address, bar.bar);
            let words = "with no driver bound; alternatively enable \"Resizable BAR\" and \"Above 4G Decoding\" in the firmware setup";
            found.add(Severity::Minor, [function], None, reason, gain, command(set, words));
        }
    }
}

/// Size from which a BAR takes much of the address space below 4 GiB.
const LARGE: u64 = 64 << 20;

/// Finds large 64-bit BARs below 4 GiB, where firmware places them without "Above 4G Decoding".
pub(crate) fn low(case: &Case<'_>, found: &mut Collector) {
    for function in &case.inventory.functions {
        for (bar, region, base, bytes) in memory_bars(function) {
            if region.space != BarKind::Memory64 || base >= 1 << 32 || bytes < LARGE {
                continue;
            }
            let reason = format!("BAR{bar} ({}) is below 4 GiB although it is a 64-bit BAR", format_size(bytes));
            let gain = unknown(
                "no bandwidth is lost (TLP headers below 4 GiB are 4 B shorter), but the BAR cannot be made larger",
            );
            let fix = by_hand("enable \"Above 4G Decoding\" in the firmware setup");
            found.add(Severity::Hint, [function], None, reason, gain, fix);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::doctor::sample::{self, CARD, findings_of, known};
    use lanemark_units::HostPhys;
    use lanemark_wire::config::ResizableBar;

    #[test]
    fn a_resizable_bar_at_its_smallest_size_is_found() {
        let with = |size_code: u8, possible: u64| {
            let mut machine = sample::healthy();
            machine.functions[CARD].resizable_bars = known(vec![ResizableBar { bar: 2, possible, size_code }]);
            findings_of(&machine, "resizable_bar")
        };
        // 256 MiB, 512 MiB and 16 GiB.
        let possible = 1 << 8 | 1 << 9 | 1 << 14;
        let found = with(8, possible);
        assert_eq!(
            found[0].fix.command.as_deref(),
            Some("echo 14 > /sys/bus/pci/devices/0000:01:00.0/resource2_resize")
        );
        assert_eq!(with(9, possible), []);
        assert_eq!(with(8, 1 << 8), [], "no other size is supported");
    }

    #[test]
    fn a_large_bar_below_4_gib_is_found() {
        let with = |base: u64, bytes: u64| {
            let mut machine = sample::healthy();
            let region = sample::bar(&mut machine, CARD);
            (region.base, region.bytes) = (known(Some(HostPhys(base))), known(bytes));
            findings_of(&machine, "low_bar")
        };
        assert_eq!(with((1 << 32) - (64 << 20), 64 << 20).len(), 1);
        assert_eq!(with(1 << 32, 64 << 20), []);
        assert_eq!(with(1 << 31, (64 << 20) - 1), []);
    }
}
