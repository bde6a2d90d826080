//! Checks of link power management.

use super::case::{Case, Collector, command, unknown};
use lanemark_inventory::Function;
use lanemark_record::diagnosis::{Gain, Severity, Unit};
use lanemark_wire::config::ConfigSpace;

/// L1 exit latencies by code, in nanoseconds, each the upper end of its range; code 7 has no upper end.
///
/// Source: PCI Express Base Specification 6.0, section 7.5.3.6.
const L1_EXIT_NS: [f64; 7] = [1e3, 2e3, 4e3, 8e3, 16e3, 32e3, 64e3];

/// Maximum L1 exit latency of a port, from Link Capabilities.
fn l1_exit_ns(function: &Function) -> Option<f64> {
    let pcie = ConfigSpace::new(function.config.known()?).pcie().ok()?;
    let code = pcie.region().read(0x0c, 4)? >> 15 & 7;
    L1_EXIT_NS.get(usize::try_from(code).ok()?).copied()
}

/// Finds links with ASPM enabled: the first access after an idle period waits for the link to leave its low-power state.
pub(crate) fn aspm(case: &Case<'_>, found: &mut Collector) {
    let mut asleep = Vec::new();
    let (mut l0s, mut l1, mut exit_ns) = (0, 0, None::<f64>);
    for edge in &case.edges {
        let ends = [edge.upper_link(case), edge.lower_link(case)];
        let on: Vec<_> = ends.into_iter().flatten().filter_map(|link| link.aspm_enabled.get()).collect();
        if on.iter().any(|aspm| aspm.l1) {
            l1 += 1;
            // Both ends leave L1 concurrently: the slower one counts.
            let slower = [edge.upper(case), Some(edge.lower(case))].into_iter().flatten().filter_map(l1_exit_ns);
            exit_ns = slower.fold(exit_ns, |most, ns| Some(most.map_or(ns, |most| most.max(ns))));
        } else if on.iter().any(|aspm| aspm.l0s) {
            l0s += 1;
        } else {
            continue;
        }
        asleep.push(edge.lower(case));
    }
    if asleep.is_empty() {
        return;
    }
    let of = |count: usize, state: &str| {
        (count > 0).then(|| format!("{state} above {count} {}", if count == 1 { "device" } else { "devices" }))
    };
    let states: Vec<String> = [of(l1, "L1"), of(l0s, "L0s")].into_iter().flatten().collect();
    let reason = format!(
        "ASPM is enabled ({}): after an idle period, the next access waits for the link to leave its low-power state",
        states.join(", ")
    );
    let gain = match exit_ns {
        Some(now) => Gain::Computed {
            quantity: "maximum delay of the first access after an idle period".to_owned(),
            now,
            then: 0.0,
            unit: Unit::Ns,
            assumes: "the largest L1 exit latency in their Link Capabilities".to_owned(),
        },
        None => unknown("the exit latencies were not seen, or have no upper bound"),
    };
    let set = "echo performance > /sys/module/pcie_aspm/parameters/policy";
    let words = "increases power consumption; at every boot: pcie_aspm.policy=performance on the kernel's command line";
    found.add(Severity::Minor, asleep, None, reason, gain, command(set.to_owned(), words));
}

/// Finds L1 substates enabled, which save more power and take longer to leave.
pub(crate) fn l1_substates(case: &Case<'_>, found: &mut Collector) {
    let on = case.edges.iter().filter(|edge| {
        let ends = || [edge.upper_link(case), edge.lower_link(case)].into_iter().flatten();
        // L1 substates have no effect unless L1 is enabled.
        let is_l1_on = ends().filter_map(|link| link.aspm_enabled.get()).any(|aspm| aspm.l1);
        let mut states = ends().filter_map(|link| link.l1_substates.present());
        is_l1_on && states.any(|states| states.aspm_l1_1 || states.aspm_l1_2)
    });
    let on: Vec<&Function> = on.map(|edge| edge.lower(case)).collect();
    if on.is_empty() {
        return;
    }
    let reason =
        "L1 substates are enabled: an idle link turns off its reference clock, and leaving takes tens of microseconds"
            .to_owned();
    let gain = unknown("the exit time is the sum of what both ends and the board need");
    let set = "echo performance > /sys/module/pcie_aspm/parameters/policy";
    found.add(
        Severity::Minor,
        on,
        None,
        reason,
        gain,
        command(set.to_owned(), "or disable L1 substates in the firmware setup"),
    );
}

#[cfg(test)]
mod tests {
    use crate::doctor::sample::{self, CARD, PORT, findings_of, known, link};
    use lanemark_record::diagnosis::Gain;
    use lanemark_wire::config::{Aspm, L1Substates};

    #[test]
    fn aspm_enabled_at_either_end_is_found() {
        for place in [PORT, CARD] {
            for (l0s, l1, says) in [(true, false, "L0s above 1 device"), (true, true, "L1 above 1 device")] {
                let mut machine = sample::healthy();
                link(&mut machine, place).aspm_enabled = known(Aspm { l0s, l1 });
                let found = findings_of(&machine, "aspm");
                assert!(found[0].reason.contains(says), "{}", found[0].reason);
                link(&mut machine, place).aspm_enabled = known(Aspm { l0s: false, l1: false });
                assert_eq!(findings_of(&machine, "aspm"), []);
            }
        }
    }

    #[test]
    fn the_exit_latency_comes_from_link_capabilities() {
        let mut machine = sample::healthy();
        link(&mut machine, CARD).aspm_enabled = known(Aspm { l0s: false, l1: true });
        let gain = |machine: &_| findings_of(machine, "aspm")[0].gain.clone();
        assert!(matches!(gain(&machine), Gain::Unknown { .. }));
        // Bits 17:15 of Link Capabilities at 0x4c.
        machine.functions[CARD].config = known(sample::config(|bytes| bytes[0x4e] = 0b11));
        assert!(matches!(gain(&machine), Gain::Computed { now: 64_000.0, .. }));
        machine.functions[CARD].config = known(sample::config(|bytes| (bytes[0x4d], bytes[0x4e]) = (0x80, 0b11)));
        assert!(matches!(gain(&machine), Gain::Unknown { .. }), "code 7 has no upper bound");
    }

    #[test]
    fn l1_substates_are_found_if_aspm_can_use_them() {
        let off = L1Substates { pci_pm_l1_2: false, pci_pm_l1_1: false, aspm_l1_2: false, aspm_l1_1: false };
        let mut machine = sample::healthy();
        link(&mut machine, CARD).l1_substates = known(Some(L1Substates { aspm_l1_2: true, ..off }));
        assert_eq!(findings_of(&machine, "l1_substates"), [], "L1 is off");
        link(&mut machine, CARD).aspm_enabled = known(Aspm { l0s: false, l1: true });
        assert_eq!(findings_of(&machine, "l1_substates").len(), 1);
        link(&mut machine, CARD).l1_substates = known(Some(L1Substates { pci_pm_l1_2: true, ..off }));
        assert_eq!(findings_of(&machine, "l1_substates"), []);
    }
}
