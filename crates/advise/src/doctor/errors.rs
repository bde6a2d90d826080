//! Errors that were counted or that nobody has cleared.

use super::case::{Case, Found, by_hand, command, unknown};
use lanemark_inventory::{Aer, ErrorCount, Function, Seen};
use lanemark_record::diagnosis::Severity;
use lanemark_wire::config::{CapabilityId, ConfigSpace, Errors};
use std::collections::BTreeMap;

/// All but the sums.
fn kinds(counts: &[ErrorCount]) -> impl Iterator<Item = &ErrorCount> {
    counts.iter().filter(|count| count.count > 0 && !count.name.starts_with("TOTAL"))
}

fn in_words(counts: &[ErrorCount]) -> String {
    kinds(counts).map(|count| format!("{} {}", count.count, count.name)).collect::<Vec<_>>().join(", ")
}

fn sum(counts: &[ErrorCount]) -> u64 {
    kinds(counts).fold(0, |sum, count| sum.saturating_add(count.count))
}

/// What a function said of its errors in the earlier reading.
fn before<'a>(case: &Case<'a>, function: &Function) -> Option<&'a Aer> {
    case.earlier?.function(function.address)?.aer.present()
}

/// What has been counted since, kind by kind. A kind that has fallen says that all counters began again at zero.
fn since(now: &[ErrorCount], before: &[ErrorCount]) -> Vec<ErrorCount> {
    let before: BTreeMap<&str, u64> = before.iter().map(|count| (count.name.as_str(), count.count)).collect();
    let of = |count: &ErrorCount| before.get(count.name.as_str()).copied().unwrap_or(0);
    let began_again = now.iter().any(|count| count.count < of(count));
    let grown = |count: &ErrorCount| ErrorCount {
        name: count.name.clone(),
        count: if began_again { count.count } else { count.count - of(count) },
    };
    now.iter().map(grown).collect()
}

/// Bits that were not set before; without an earlier reading, all.
fn new_bits(now: &Seen<u32>, before: Option<&Seen<u32>>) -> u32 {
    now.get().unwrap_or(0) & !before.and_then(Seen::get).unwrap_or(0)
}

/// Corrected errors: each is a packet sent again. Growing ones are a signal problem now, old ones may be of a
/// boot.
pub(crate) fn corrected(case: &Case<'_>, found: &mut Found) {
    for function in &case.inventory.functions {
        let Some(aer) = function.aer.present() else { continue };
        let before = before(case, function);
        let Some(counts) = aer.correctable.known() else {
            latched(found, function, new_bits(&aer.correctable_status, before.map(|aer| &aer.correctable_status)));
            continue;
        };
        let grown = before.and_then(|aer| aer.correctable.known()).map(|before| since(counts, before));
        let (severity, reason) = match grown {
            _ if sum(counts) == 0 => continue,
            Some(grown) if sum(&grown) == 0 => continue,
            Some(grown) => (
                Severity::Costly,
                format!("corrected errors are counting up: {} more than before ({})", sum(&grown), in_words(&grown)),
            ),
            None => (Severity::Minor, format!("corrected errors since boot: {}", in_words(counts))),
        };
        let gain = unknown("each costs a replay of microseconds; how many a second, two readings would tell");
        let words =
            "reseat or replace card, riser or cable; a lower speed may run clean; read it twice: --earlier FILE";
        found.note(severity, [function], None, reason, gain, by_hand(words));
    }
}

/// Without counters, the status bits tell that there were some.
fn latched(found: &mut Found, function: &Function, status: u32) {
    let names: Vec<&str> = Errors::correctable(status & !ADVISORY_NON_FATAL).names().collect();
    if names.is_empty() {
        return;
    }
    let reason = format!("corrected errors are latched: {}; how many, the kernel's counters know", names.join(", "));
    let gain = unknown("each costs a replay of microseconds; how many there are was not seen");
    let look = format!("cat /sys/bus/pci/devices/{}/aer_dev_correctable", function.address);
    found.note(Severity::Minor, [function], None, reason, gain, command(look, "twice, to see whether they grow"));
}

/// Advisory Non-Fatal Error: enumeration leaves it behind too.
const ADVISORY_NON_FATAL: u32 = 1 << 13;

/// Unsupported Request: enumeration leaves it behind in most machines.
const UNSUPPORTED_REQUEST: u32 = 1 << 20;

/// Errors that lost something: counted by the kernel, or still latched in the device. Of two readings, what is new.
pub(crate) fn uncorrectable(case: &Case<'_>, found: &mut Found) {
    for function in &case.inventory.functions {
        let Some(aer) = function.aer.present() else { continue };
        let before = before(case, function);
        let counters = [(&aer.nonfatal, before.map(|aer| &aer.nonfatal)), (&aer.fatal, before.map(|aer| &aer.fatal))];
        let (mut counted, mut compared) = (Vec::new(), false);
        for (now, earlier) in counters {
            let Some(now) = now.known() else { continue };
            let earlier = earlier.and_then(Seen::known);
            compared |= earlier.is_some();
            counted.push(in_words(&earlier.map_or_else(|| now.clone(), |earlier| since(now, earlier))));
        }
        counted.retain(|text| !text.is_empty());
        let latched = new_bits(&aer.uncorrectable_status, before.map(|aer| &aer.uncorrectable_status));
        let names: Vec<&str> = Errors::uncorrectable(latched & !UNSUPPORTED_REQUEST).names().collect();
        let reason = match (counted.is_empty(), names.is_empty()) {
            (true, true) => continue,
            (false, _) => {
                let since = if compared { "the earlier reading" } else { "boot" };
                format!("uncorrectable errors since {since}: {}", counted.join(", "))
            }
            (true, false) => format!("uncorrectable errors are latched: {}", names.join(", ")),
        };
        let gain = unknown("what was lost ended with an error somewhere: see the kernel's log");
        let look = format!("journalctl -k --grep '{}'", function.address);
        found.note(
            Severity::Broken,
            [function],
            None,
            reason,
            gain,
            command(look, "tells which request; the bits stay until somebody clears them"),
        );
    }
}

/// Downstream port containment has triggered: the link below is held down.
pub(crate) fn containment(case: &Case<'_>, found: &mut Found) {
    for function in &case.inventory.functions {
        let Some(bytes) = function.config.known() else { continue };
        // Status is at 8; bit 0 is DPC Trigger Status. Source: PCI Express Base Specification 6.0, section 7.9.14.4.
        let capability = ConfigSpace::new(bytes).capability(CapabilityId::DOWNSTREAM_PORT_CONTAINMENT);
        let status = capability.ok().and_then(|capability| capability.region().read(8, 2));
        if status.is_some_and(|status| status & 1 != 0) {
            let reason = "the port has cut off everything below it after an uncorrectable error (DPC)".to_owned();
            let clear = format!("setpci -s {} ECAP_DPC+8.w=1:1", function.address);
            let words = "lets the link come up again; find out first what the error was: see the kernel's log";
            found.note(
                Severity::Broken,
                [function],
                None,
                reason,
                unknown("nothing below works now"),
                command(clear, words),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::Ask;
    use crate::doctor::diagnose;
    use crate::doctor::sample::{self, CARD, findings_of, known};
    use lanemark_inventory::{Aer, ErrorCount, Inventory, Why};
    use lanemark_record::diagnosis::Severity;

    fn counted(count: u64) -> Inventory {
        let mut machine = sample::healthy();
        let mut aer = Aer::unseen(&Why::NotInDump);
        let of = |name: &str, count| ErrorCount { name: name.to_owned(), count };
        aer.correctable = known(vec![of("RxErr", 0), of("BadTLP", count), of("TOTAL_ERR_COR", count)]);
        machine.functions[CARD].aer = known(Some(aer));
        machine
    }

    fn aer(machine: &mut Inventory) -> &mut Aer {
        let lanemark_inventory::Seen::Known(Some(aer)) = &mut machine.functions[CARD].aer else { panic!("no AER") };
        aer
    }

    #[test]
    fn one_corrected_error_is_found_and_none_is_not() {
        let found = findings_of(&counted(1), "corrected_errors");
        assert_eq!(
            (found[0].severity, found[0].reason.as_str()),
            (Severity::Minor, "corrected errors since boot: 1 BadTLP")
        );
        assert_eq!(findings_of(&counted(0), "corrected_errors"), []);
    }

    #[test]
    fn without_counters_the_status_bits_tell_but_for_what_enumeration_leaves() {
        let mut machine = counted(0);
        aer(&mut machine).correctable = sample::unseen();
        aer(&mut machine).correctable_status = known(1 << 13);
        assert_eq!(findings_of(&machine, "corrected_errors"), []);
        aer(&mut machine).correctable_status = known(1 << 13 | 1 << 6);
        let found = findings_of(&machine, "corrected_errors");
        assert!(found[0].reason.starts_with("corrected errors are latched: BadTLP;"), "{}", found[0].reason);
    }

    #[test]
    fn of_two_readings_only_growth_counts() {
        let since = |before, now| {
            let earlier = counted(before);
            let found = diagnose(&counted(now), &Ask { earlier: Some(&earlier), ..Ask::default() }).findings;
            found.first().map(|finding| (finding.severity, finding.reason.clone()))
        };
        assert_eq!(since(7, 7), None);
        let (severity, reason) = since(7, 8).unwrap();
        assert_eq!(severity, Severity::Costly);
        assert_eq!(reason, "corrected errors are counting up: 1 more than before (1 BadTLP)");
        // Fewer than before: the counter began again, and all of them are new.
        let (_, reason) = since(7, 6).unwrap();
        assert!(reason.starts_with("corrected errors are counting up: 6 more"), "{reason}");
        assert_eq!(since(7, 0), None);
    }

    #[test]
    fn kinds_are_compared_each_with_its_own() {
        let count = |name: &str, count| ErrorCount { name: name.to_owned(), count };
        let rows = |counts: &[ErrorCount]| counts.iter().map(|count| count.count).collect::<Vec<_>>();
        let before = [count("RxErr", 5), count("BadTLP", 1)];
        assert_eq!(rows(&super::since(&[count("RxErr", 5), count("BadTLP", 4), count("New", 2)], &before)), [0, 3, 2]);
        // The sum is the same, and yet one has grown since the counters began again.
        assert_eq!(rows(&super::since(&[count("RxErr", 2), count("BadTLP", 4)], &before)), [2, 4]);
    }

    #[test]
    fn of_two_readings_only_new_uncorrectable_errors_are_found() {
        let with = |nonfatal: u64, fatal: u64, status: u32| {
            let mut machine = counted(0);
            let of = |name: &str, count| known(vec![ErrorCount { name: name.to_owned(), count }]);
            (aer(&mut machine).nonfatal, aer(&mut machine).fatal) = (of("CmpltTO", nonfatal), of("MalfTLP", fatal));
            aer(&mut machine).uncorrectable_status = known(status);
            machine
        };
        let since = |before: &Inventory, now: &Inventory| {
            let found = diagnose(now, &Ask { earlier: Some(before), ..Ask::default() }).findings;
            found.first().map(|finding| (finding.severity, finding.reason.clone()))
        };
        let before = with(2, 1, 1 << 14);
        assert_eq!(since(&before, &before), None);
        let broken = |reason: &str| Some((Severity::Broken, reason.to_owned()));
        let said = "uncorrectable errors since the earlier reading: 1 CmpltTO";
        assert_eq!(since(&before, &with(3, 1, 1 << 14)), broken(said));
        let said = "uncorrectable errors since the earlier reading: 2 MalfTLP";
        assert_eq!(since(&before, &with(2, 3, 1 << 14)), broken(said));
        assert_eq!(since(&before, &with(2, 1, 1 << 14 | 1 << 18)), broken("uncorrectable errors are latched: MalfTLP"));
        // What the earlier reading does not have is not new for that.
        let said = "uncorrectable errors since boot: 2 CmpltTO, 1 MalfTLP";
        assert_eq!(since(&sample::healthy(), &before), broken(said));
    }

    #[test]
    fn latched_bits_are_named_but_for_what_enumeration_leaves() {
        let mut machine = counted(0);
        aer(&mut machine).uncorrectable_status = known(1 << 20);
        assert_eq!(findings_of(&machine, "errors"), []);
        aer(&mut machine).uncorrectable_status = known(1 << 20 | 1 << 14);
        assert_eq!(findings_of(&machine, "errors")[0].reason, "uncorrectable errors are latched: CmpltTO");
        aer(&mut machine).nonfatal = known(vec![ErrorCount { name: "CmpltTO".to_owned(), count: 2 }]);
        assert_eq!(findings_of(&machine, "errors")[0].reason, "uncorrectable errors since boot: 2 CmpltTO");
    }

    #[test]
    fn a_port_that_has_cut_off_its_link_is_found() {
        let dpc = |status: u8| {
            sample::config(|bytes| {
                bytes[0x100..0x104].copy_from_slice(&[0x1d, 0, 1, 0]);
                bytes[0x108] = status;
            })
        };
        let mut machine = sample::healthy();
        machine.functions[CARD].config = known(dpc(1));
        assert_eq!(findings_of(&machine, "containment").len(), 1);
        machine.functions[CARD].config = known(dpc(2));
        assert_eq!(findings_of(&machine, "containment"), []);
    }
}
