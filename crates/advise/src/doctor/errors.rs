//! Checks of error counters and error status bits.

use super::case::{Case, Collector, by_hand, command, unknown};
use super::error_counts::{before, corrected_of, in_words, new_bits, since, sum};
use super::integrity;
use lanemark_inventory::{Function, Seen};
use lanemark_record::diagnosis::Severity;
use lanemark_wire::config::Errors;

/// Finds corrected errors: each is a retransmission. Growing counters show a signal problem, old counts may be from
/// training at boot. Several kinds at one link are a finding of link integrity instead.
pub(crate) fn corrected(case: &Case<'_>, found: &mut Collector) {
    let covered = integrity::covers(case);
    for function in &case.inventory.functions {
        let Some(errors) = corrected_of(case, function) else { continue };
        if covered.contains(&function.address.to_string()) {
            continue;
        }
        let Some(counts) = &errors.counts else {
            latched(found, function, &errors.kinds);
            continue;
        };
        let (severity, reason) = if errors.is_new {
            let reason =
                format!("corrected errors are increasing: {} more than before ({})", sum(counts), in_words(counts));
            (Severity::Costly, reason)
        } else {
            (Severity::Minor, format!("corrected errors since boot: {}", in_words(counts)))
        };
        let gain = unknown("each error costs a replay of some microseconds; two inventories show the rate");
        let words = "reseat or replace the card, riser or cable; a lower link speed may avoid them; compare two inventories with --earlier FILE";
        found.add(severity, [function], None, reason, gain, by_hand(words));
    }
}

/// Finds status bits where the kernel has no counters.
fn latched(found: &mut Collector, function: &Function, names: &[String]) {
    let reason =
        format!("corrected-error status bits are set: {}; the number of errors was not seen", names.join(", "));
    let gain = unknown("each error costs a replay of some microseconds; the number of errors was not seen");
    let look = format!("cat /sys/bus/pci/devices/{}/aer_dev_correctable", function.address);
    found.add(
        Severity::Minor,
        [function],
        None,
        reason,
        gain,
        command(look, "run it twice to see whether the counters increase"),
    );
}

/// Unsupported Request, which enumeration sets in most machines.
const UNSUPPORTED_REQUEST: u32 = 1 << 20;

/// Finds uncorrectable errors: counted by the kernel, or in the status register; only new ones if there is an earlier inventory.
pub(crate) fn uncorrectable(case: &Case<'_>, found: &mut Collector) {
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
                let since = if compared { "the earlier inventory" } else { "boot" };
                format!("uncorrectable errors since {since}: {}", counted.join(", "))
            }
            (true, false) => format!("uncorrectable-error status bits are set: {}", names.join(", ")),
        };
        let gain = unknown("each error made some request fail: see the kernel log");
        let look = format!("journalctl -k --grep '{}'", function.address);
        found.add(
            Severity::Broken,
            [function],
            None,
            reason,
            gain,
            command(look, "shows the failed requests; status bits stay set until they are cleared"),
        );
    }
}

/// Finds ports on which Downstream Port Containment has triggered, which disables the link below.
pub(crate) fn containment(case: &Case<'_>, found: &mut Collector) {
    for function in &case.inventory.functions {
        if function.containment.present() == Some(&true) {
            let reason =
                "the port disabled its link after an uncorrectable error (Downstream Port Containment)".to_owned();
            let clear = format!("setpci -s {} ECAP_DPC+8.w=1:1", function.address);
            let words = "re-enables the link; first find the error in the kernel log";
            found.add(
                Severity::Broken,
                [function],
                None,
                reason,
                unknown("no device below the port works"),
                command(clear, words),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::DiagnosisRequest;
    use crate::doctor::diagnose;
    use crate::doctor::sample::{self, CARD, PORT, findings_of, known};
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
    fn one_corrected_error_is_found() {
        let found = findings_of(&counted(1), "corrected_errors");
        assert_eq!(
            (found[0].severity, found[0].reason.as_str()),
            (Severity::Minor, "corrected errors since boot: 1 BadTLP")
        );
        assert_eq!(findings_of(&counted(0), "corrected_errors"), []);
    }

    #[test]
    fn without_counters_the_status_bits_are_used_except_those_set_by_enumeration() {
        let mut machine = counted(0);
        aer(&mut machine).correctable = sample::unseen();
        aer(&mut machine).correctable_status = known(1 << 13);
        assert_eq!(findings_of(&machine, "corrected_errors"), []);
        aer(&mut machine).correctable_status = known(1 << 13 | 1 << 6);
        let found = findings_of(&machine, "corrected_errors");
        assert!(found[0].reason.starts_with("corrected-error status bits are set: BadTLP;"), "{}", found[0].reason);
    }

    #[test]
    fn with_an_earlier_inventory_only_increases_are_found() {
        let since = |before, now| {
            let earlier = counted(before);
            let found =
                diagnose(&counted(now), &DiagnosisRequest { earlier: Some(&earlier), ..DiagnosisRequest::default() })
                    .findings;
            found.first().map(|finding| (finding.severity, finding.reason.clone()))
        };
        assert_eq!(since(7, 7), None);
        let (severity, reason) = since(7, 8).unwrap();
        assert_eq!(severity, Severity::Costly);
        assert_eq!(reason, "corrected errors are increasing: 1 more than before (1 BadTLP)");
        // Fewer than before: the counter was reset, and all counts are new.
        let (_, reason) = since(7, 6).unwrap();
        assert!(reason.starts_with("corrected errors are increasing: 6 more"), "{reason}");
        assert_eq!(since(7, 0), None);
    }

    #[test]
    fn with_an_earlier_inventory_only_new_uncorrectable_errors_are_found() {
        let with = |nonfatal: u64, fatal: u64, status: u32| {
            let mut machine = counted(0);
            let of = |name: &str, count| known(vec![ErrorCount { name: name.to_owned(), count }]);
            (aer(&mut machine).nonfatal, aer(&mut machine).fatal) = (of("CmpltTO", nonfatal), of("MalfTLP", fatal));
            aer(&mut machine).uncorrectable_status = known(status);
            machine
        };
        let since = |before: &Inventory, now: &Inventory| {
            let found =
                diagnose(now, &DiagnosisRequest { earlier: Some(before), ..DiagnosisRequest::default() }).findings;
            found.first().map(|finding| (finding.severity, finding.reason.clone()))
        };
        let before = with(2, 1, 1 << 14);
        assert_eq!(since(&before, &before), None);
        let broken = |reason: &str| Some((Severity::Broken, reason.to_owned()));
        let reason = "uncorrectable errors since the earlier inventory: 1 CmpltTO";
        assert_eq!(since(&before, &with(3, 1, 1 << 14)), broken(reason));
        let reason = "uncorrectable errors since the earlier inventory: 2 MalfTLP";
        assert_eq!(since(&before, &with(2, 3, 1 << 14)), broken(reason));
        let reason = "uncorrectable-error status bits are set: MalfTLP";
        assert_eq!(since(&before, &with(2, 1, 1 << 14 | 1 << 18)), broken(reason));
        // An earlier inventory without AER does not make the errors new.
        let reason = "uncorrectable errors since boot: 2 CmpltTO, 1 MalfTLP";
        assert_eq!(since(&sample::healthy(), &before), broken(reason));
    }

    #[test]
    fn status_bits_are_named_except_those_set_by_enumeration() {
        let mut machine = counted(0);
        aer(&mut machine).uncorrectable_status = known(1 << 20);
        assert_eq!(findings_of(&machine, "errors"), []);
        aer(&mut machine).uncorrectable_status = known(1 << 20 | 1 << 14);
        assert_eq!(findings_of(&machine, "errors")[0].reason, "uncorrectable-error status bits are set: CmpltTO");
        aer(&mut machine).nonfatal = known(vec![ErrorCount { name: "CmpltTO".to_owned(), count: 2 }]);
        assert_eq!(findings_of(&machine, "errors")[0].reason, "uncorrectable errors since boot: 2 CmpltTO");
    }

    #[test]
    fn a_triggered_containment_is_found() {
        let mut machine = sample::healthy();
        machine.functions[PORT].containment = known(Some(true));
        assert_eq!(findings_of(&machine, "containment")[0].severity, Severity::Broken);
        for other in [known(Some(false)), known(None), sample::unseen()] {
            machine.functions[PORT].containment = other;
            assert_eq!(findings_of(&machine, "containment"), []);
        }
    }
}
