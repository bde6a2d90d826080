//! `Max_Payload_Size` along a path: everybody must agree, and might agree on more.

use super::case::{Case, Found, command, setpci};
use super::gain;
use lanemark_inventory::Function;
use lanemark_record::diagnosis::{Gain, Severity};
use lanemark_wire::Mps;

/// The ports from a function to the root, each with what it is set to; `None` if one of them was not seen.
fn path<'a>(case: &Case<'a>, place: usize) -> Option<Vec<(&'a Function, Mps, Mps)>> {
    let ports = case.tree.path_up(place).map(|at| {
        let function = case.function(at);
        let express = function.pcie()?;
        Some((function, express.mps.get()?, express.mps_supported.get()?))
    });
    ports.collect::<Option<Vec<_>>>().filter(|ports| ports.len() > 1)
}

/// A receiver takes a packet above its own size for malformed; so all on a path must be set alike.
///
/// A port above that is set higher does no harm where the function asks for no more at once than it takes: that is
/// what `pci=pcie_bus_perf` does. Source: PCI Express Base Specification 6.0, sections 2.2.2 and 7.5.3.4.
pub(crate) fn mismatch(case: &Case<'_>, found: &mut Found) {
    for (place, function, express) in case.requesters() {
        let Some(path) = path(case, place) else { continue };
        let own = path[0].1;
        let asks_little = express.mrrs.get().is_some_and(|mrrs| mrrs.bytes() <= own.bytes());
        let bad = path[1..].iter().find(|(_, mps, _)| *mps < own || *mps > own && !asks_little);
        let Some((port, mps, _)) = bad else { continue };
        let (own_bytes, port_bytes) = (own.bytes(), mps.bytes());
        let consequence =
            if *mps < own { "drops its larger writes as malformed" } else { "may send it more than it takes" };
        let reason = format!(
            "its payloads are set to {own_bytes} B and those of {} above to {port_bytes} B, which {consequence}",
            port.address
        );
        let least = path.iter().map(|port| port.2).min().unwrap_or(own);
        let because = "packets that are dropped end a transfer with an error, or the device";
        found.note(
            Severity::Broken,
            [function],
            None,
            reason,
            Gain::Unknown { because: because.to_owned() },
            mend(&path, least),
        );
    }
}

/// Everything on the path could take more.
pub(crate) fn size(case: &Case<'_>, found: &mut Found) {
    for (place, function, _) in case.requesters() {
        let Some(path) = path(case, place) else { continue };
        let own = path[0].1;
        let Some(most) = path.iter().map(|port| port.2).min() else { continue };
        let alike = path.iter().all(|port| port.1 == own);
        let rate = case.edge_above(place).and_then(|edge| edge.trained(case));
        let Some(rate) = rate.filter(|_| alike && own < most) else { continue };
        let (now, then) = (gain::write_ceiling(rate, own), gain::write_ceiling(rate, most));
        let assumes = format!("back-to-back writes of that size on {rate}");
        let gain = gain::bytes_per_s("device-to-host DMA ceiling", now, then, assumes);
        let reason =
            format!("payloads are {} B although everything up to the root takes {} B", own.bytes(), most.bytes());
        found.note(gain::severity(&gain), [function], None, reason, gain, mend(&path, most));
    }
}

/// From the root down, so that no packet meets a receiver that does not take it yet.
fn mend(path: &[(&Function, Mps, Mps)], most: Mps) -> lanemark_record::diagnosis::Mend {
    let code = most.bytes().trailing_zeros() - 7;
    let all = path.iter().rev().map(|port| port.0);
    let words = "from the root down, while the device is idle; all below one root port must agree, so other devices \
                 there need it too; at every boot: pci=pcie_bus_perf on the kernel's command line";
    command(setpci(all, &format!("CAP_EXP+8.w={:04x}:00e0", code << 5)), words)
}

#[cfg(test)]
mod tests {
    use crate::doctor::sample::{self, CARD, PORT, express, findings_of, known};
    use lanemark_record::diagnosis::Severity;
    use lanemark_wire::{Mps, Mrrs};

    fn machine(port: u32, card: u32, supported: u32) -> lanemark_inventory::Inventory {
        let mut machine = sample::healthy();
        for (place, bytes) in [(PORT, port), (CARD, card)] {
            express(&mut machine, place).mps = known(Mps::new(bytes).unwrap());
            express(&mut machine, place).mps_supported = known(Mps::new(supported).unwrap());
        }
        machine
    }

    #[test]
    fn sizes_that_differ_are_broken_and_equal_ones_are_not() {
        let found = findings_of(&machine(128, 256, 256), "payload_mismatch");
        assert_eq!((found.len(), found[0].severity), (1, Severity::Broken));
        assert!(found[0].reason.contains("drops its larger writes"), "{}", found[0].reason);
        assert_eq!(
            found[0].mend.command.as_deref(),
            Some("for f in 0000:00:01.0 0000:01:00.0; do setpci -s $f CAP_EXP+8.w=0020:00e0; done")
        );
        assert_eq!(findings_of(&machine(256, 256, 256), "payload_mismatch"), []);
    }

    #[test]
    fn a_port_set_higher_does_no_harm_to_a_card_that_asks_for_no_more_than_it_takes() {
        let mut machine = machine(512, 256, 512);
        assert_eq!(findings_of(&machine, "payload_mismatch").len(), 1);
        express(&mut machine, CARD).mrrs = known(Mrrs::new(256).unwrap());
        assert_eq!(findings_of(&machine, "payload_mismatch"), []);
    }

    #[test]
    fn small_payloads_are_found_where_all_support_more() {
        let found = findings_of(&machine(128, 128, 256), "payload_size");
        assert_eq!((found.len(), found[0].severity), (1, Severity::Costly));
        assert!((found[0].gain.factor().unwrap() - 1.0857).abs() < 1e-3, "{:?}", found[0].gain.factor());
        assert_eq!(findings_of(&machine(128, 128, 128), "payload_size"), []);
        let mut limited = machine(128, 128, 256);
        express(&mut limited, PORT).mps_supported = known(Mps::new(128).unwrap());
        assert_eq!(findings_of(&limited, "payload_size"), []);
    }

    #[test]
    fn a_port_that_was_not_seen_makes_no_finding() {
        let mut machine = machine(128, 256, 512);
        express(&mut machine, PORT).mps = sample::unseen();
        assert_eq!(findings_of(&machine, "payload_mismatch"), []);
        assert_eq!(findings_of(&machine, "payload_size"), []);
    }
}
