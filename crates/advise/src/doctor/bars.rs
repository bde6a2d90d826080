//! Where BARs lie and how large they are.

use super::case::{Case, Found, by_hand, command, unknown};
use super::memory_type::memory_bars;
use lanemark_record::diagnosis::Severity;
use lanemark_units::format_size;
use lanemark_wire::config::BarKind;

/// A resizable BAR that shows the least of the memory behind it.
pub(crate) fn resizable(case: &Case<'_>, found: &mut Found) {
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
                "BAR{} is {}, the least it can be; it could be {}",
                bar.bar,
                format_size(size),
                format_size(most)
            );
            let gain = unknown("it saves moving a window; how often one is moved, the driver knows");
            // The file takes the size as a power of two of MiB.
            let code = most.trailing_zeros().saturating_sub(20);
            let set = format!("echo {code} > /sys/bus/pci/devices/{}/resource{}_resize", function.address, bar.bar);
            let words = "with no driver bound; or \"Resizable BAR\" and \"Above 4G decoding\" in the BIOS";
            found.note(Severity::Minor, [function], None, reason, gain, command(set, words));
        }
    }
}

/// A BAR from this size on crowds the addresses below 4 GiB.
const LARGE: u64 = 64 << 20;

/// A large BAR below 4 GiB although its register has 64 bits: the BIOS keeps everything low.
pub(crate) fn low(case: &Case<'_>, found: &mut Found) {
    for function in &case.inventory.functions {
        for (bar, region, base, bytes) in memory_bars(function) {
            if region.space != BarKind::Memory64 || base >= 1 << 32 || bytes < LARGE {
                continue;
            }
            let reason = format!("BAR{bar} of {} lies below 4 GiB although it has 64 bits", format_size(bytes));
            let gain = unknown(
                "no speed is lost (headers below 4 GiB are 4 B shorter), but there is no room to make it larger",
            );
            found.note(Severity::Hint, [function], None, reason, gain, by_hand("\"Above 4G decoding\" in the BIOS"));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::doctor::sample::{self, CARD, findings_of, known};
    use lanemark_units::HostPhys;
    use lanemark_wire::config::ResizableBar;

    #[test]
    fn a_resizable_bar_at_its_least_is_found_and_one_step_up_is_not() {
        let with = |size_code: u8, possible: u64| {
            let mut machine = sample::healthy();
            machine.functions[CARD].resizable_bars = known(vec![ResizableBar { bar: 2, possible, size_code }]);
            findings_of(&machine, "resizable_bar")
        };
        // 256 MiB, 512 MiB and 16 GiB.
        let possible = 1 << 8 | 1 << 9 | 1 << 14;
        let found = with(8, possible);
        assert_eq!(
            found[0].mend.command.as_deref(),
            Some("echo 14 > /sys/bus/pci/devices/0000:01:00.0/resource2_resize")
        );
        assert_eq!(with(9, possible), []);
        assert_eq!(with(8, 1 << 8), [], "there is nothing to choose");
    }

    #[test]
    fn a_large_bar_just_below_4_gib_is_found_and_at_4_gib_or_smaller_is_not() {
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
