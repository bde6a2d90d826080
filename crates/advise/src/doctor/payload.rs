//! Checks of `Max_Payload_Size` along a path: mismatches, and sizes below the supported one.

use super::case::{Case, Collector, command, setpci};
use super::gain;
use lanemark_inventory::{Function, Width};
use lanemark_record::diagnosis::{Gain, Severity};
use lanemark_wire::Mps;

/// Functions from a device to the root, each with its set and its supported payload size; `None` if one was not seen.
fn path<'a>(case: &Case<'a>, place: usize) -> Option<Vec<(&'a Function, Mps, Mps)>> {
    let ports = case.tree.path_up(place).map(|at| {
        let function = case.function(at);
        let express = function.pcie()?;
        Some((function, express.mps.get()?, express.mps_supported.get()?))
    });
    ports.collect::<Option<Vec<_>>>().filter(|ports| ports.len() > 1)
}

/// Finds payload sizes that differ along a path: a receiver drops a packet larger than its own setting as malformed.
///
/// A larger setting above is harmless if the function reads no more per request than its own setting, as with
/// `pci=pcie_bus_perf`. Source: PCI Express Base Specification 6.0, sections 2.2.2 and 7.5.3.4.
pub(crate) fn mismatch(case: &Case<'_>, found: &mut Collector) {
    for (place, function, express) in case.requesters() {
        let Some(path) = path(case, place) else { continue };
        let own = path[0].1;
        let reads_little = express.mrrs.get().is_some_and(|mrrs| mrrs.bytes() <= own.bytes());
        let bad = path[1..].iter().find(|(_, mps, _)| *mps < own || *mps > own && !reads_little);
        let Some((port, mps, _)) = bad else { continue };
        let (own_bytes, port_bytes) = (own.bytes(), mps.bytes());
        let consequence =
            if *mps < own { "drops its larger writes as malformed" } else { "may send larger packets than it accepts" };
        let reason = format!(
            "its payload size is {own_bytes} B but that of {} above it is {port_bytes} B, which {consequence}",
            port.address
        );
        let least = path.iter().map(|port| port.2).min().unwrap_or(own);
        let because = "dropped packets make transfers fail, or the device";
        found.add(
            Severity::Broken,
            [function],
            None,
            reason,
            Gain::Unknown { because: because.to_owned() },
            fix(&path, least),
        );
    }
}

/// Finds payload sizes below what the whole path supports.
pub(crate) fn size(case: &Case<'_>, found: &mut Collector) {
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
        let reason = format!(
            "the payload size is {} B although the whole path to the root supports {} B",
            own.bytes(),
            most.bytes()
        );
        let severity = if is_narrow(case, place) { Severity::Minor } else { gain::severity(&gain) };
        found.add(severity, [function], None, reason, gain, fix(&path, most));
    }
}

/// Whether the device supports one lane only: an on-board network controller or a wireless card, whose medium is slower
/// than the link, so that the efficiency of the link is no bound.
fn is_narrow(case: &Case<'_>, place: usize) -> bool {
    let edge = case.edge_above(place);
    let widest = edge.and_then(|edge| edge.lower_link(case)).and_then(|link| link.widest.get());
    widest.is_some_and(|widest| widest <= Width(1))
}

/// Remedy: sets the size from the root down, so that no packet reaches a receiver with a smaller setting.
fn fix(path: &[(&Function, Mps, Mps)], most: Mps) -> lanemark_record::diagnosis::Fix {
    let code = most.bytes().trailing_zeros() - 7;
    let all = path.iter().rev().map(|port| port.0);
    let words = "sets it from the root down, while the device is idle; all devices below one root port must use the same \
                 size; at every boot: pci=pcie_bus_perf on the kernel's command line";
    command(setpci(all, &format!("CAP_EXP+8.w={:04x}:00e0", code << 5)), words)
}

#[cfg(test)]
mod tests {
    use crate::doctor::sample::{self, CARD, PORT, express, findings_of, known};
    use lanemark_inventory::Width;
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
    fn different_payload_sizes_are_broken() {
        let found = findings_of(&machine(128, 256, 256), "payload_mismatch");
        assert_eq!((found.len(), found[0].severity), (1, Severity::Broken));
        assert!(found[0].reason.contains("drops its larger writes"), "{}", found[0].reason);
        assert_eq!(
            found[0].fix.command.as_deref(),
            Some("for f in 0000:00:01.0 0000:01:00.0; do setpci -s $f CAP_EXP+8.w=0020:00e0; done")
        );
        assert_eq!(findings_of(&machine(256, 256, 256), "payload_mismatch"), []);
    }

    #[test]
    fn a_larger_setting_above_is_harmless_to_a_card_with_small_read_requests() {
        let mut machine = machine(512, 256, 512);
        assert_eq!(findings_of(&machine, "payload_mismatch").len(), 1);
        express(&mut machine, CARD).mrrs = known(Mrrs::new(256).unwrap());
        assert_eq!(findings_of(&machine, "payload_mismatch"), []);
    }

    #[test]
    fn payloads_smaller_than_the_path_supports_are_found() {
        let found = findings_of(&machine(128, 128, 256), "payload_size");
        assert_eq!((found.len(), found[0].severity), (1, Severity::Costly));
        assert!((found[0].gain.factor().unwrap() - 1.0857).abs() < 1e-3, "{:?}", found[0].gain.factor());
        assert_eq!(findings_of(&machine(128, 128, 128), "payload_size"), []);
        let mut limited = machine(128, 128, 256);
        express(&mut limited, PORT).mps_supported = known(Mps::new(128).unwrap());
        assert_eq!(findings_of(&limited, "payload_size"), []);
    }

    #[test]
    fn the_payload_of_a_device_with_one_lane_is_minor() {
        for (lanes, severity) in [(1, Severity::Minor), (2, Severity::Costly)] {
            let mut machine = machine(128, 128, 256);
            for place in [PORT, CARD] {
                sample::link(&mut machine, place).width = known(Width(lanes));
            }
            sample::link(&mut machine, CARD).widest = known(Width(lanes));
            assert_eq!(findings_of(&machine, "payload_size")[0].severity, severity);
        }
        // A device with more lanes that trained on one of them.
        let mut trained = machine(128, 128, 256);
        for place in [PORT, CARD] {
            sample::link(&mut trained, place).width = known(Width(1));
        }
        assert_eq!(findings_of(&trained, "payload_size")[0].severity, Severity::Costly);
    }

    #[test]
    fn an_unseen_port_makes_no_finding() {
        let mut machine = machine(128, 256, 512);
        express(&mut machine, PORT).mps = sample::unseen();
        assert_eq!(findings_of(&machine, "payload_mismatch"), []);
        assert_eq!(findings_of(&machine, "payload_size"), []);
    }
}
