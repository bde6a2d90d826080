//! Errors that were counted or that nobody has cleared.

use super::case::{Case, Found, by_hand, command, unknown};
use lanemark_inventory::{ErrorCount, Function, Inventory};
use lanemark_record::diagnosis::Severity;
use lanemark_wire::config::{CapabilityId, ConfigSpace, Errors};

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

fn corrected_before(earlier: &Inventory, function: &Function) -> Option<u64> {
    Some(sum(earlier.function(function.address)?.aer.present()?.correctable.known()?))
}

/// Corrected errors: each is a packet sent again. Growing ones are a signal problem now, old ones may be of a
/// boot.
pub(crate) fn corrected(case: &Case<'_>, found: &mut Found) {
    for function in &case.inventory.functions {
        let Some(aer) = function.aer.present() else { continue };
        let Some(counts) = aer.correctable.known() else {
            latched(found, function, aer.correctable_status.get().unwrap_or(0));
            continue;
        };
        let now = sum(counts);
        let (severity, reason) = match case.earlier.map(|earlier| corrected_before(earlier, function)) {
            _ if now == 0 => continue,
            Some(Some(before)) if now <= before => continue,
            Some(Some(before)) => {
                let grown = now - before;
                (
                    Severity::Costly,
                    format!("corrected errors are counting up: {grown} more than before ({})", in_words(counts)),
                )
            }
            _ => (Severity::Minor, format!("corrected errors since boot: {}", in_words(counts))),
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

/// Errors that lost something: counted by the kernel, or still latched in the device.
pub(crate) fn uncorrectable(case: &Case<'_>, found: &mut Found) {
    for function in &case.inventory.functions {
        let Some(aer) = function.aer.present() else { continue };
        let counts = [&aer.nonfatal, &aer.fatal].into_iter().filter_map(|counts| counts.known());
        let counted: Vec<String> = counts.map(|counts| in_words(counts)).filter(|text| !text.is_empty()).collect();
        let latched = aer.uncorrectable_status.get().unwrap_or(0) & !UNSUPPORTED_REQUEST;
        let names: Vec<&str> = Errors::uncorrectable(latched).names().collect();
        let reason = match (counted.is_empty(), names.is_empty()) {
            (true, true) => continue,
            (false, _) => format!("uncorrectable errors since boot: {}", counted.join(", ")),
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
        assert!(reason.starts_with("corrected errors are counting up: 1 more"), "{reason}");
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
