//! Links that may fall asleep.

use super::case::{Case, Found, command, unknown};
use lanemark_inventory::Function;
use lanemark_record::diagnosis::{Gain, Severity, Unit};
use lanemark_wire::config::ConfigSpace;

/// L1 exit latencies by code, in nanoseconds, each the upper end of its range; code 7 has none.
///
/// Source: PCI Express Base Specification 6.0, section 7.5.3.6.
const L1_EXIT_NS: [f64; 7] = [1e3, 2e3, 4e3, 8e3, 16e3, 32e3, 64e3];

/// How long a port takes at most to leave L1, as Link Capabilities say.
fn l1_exit_ns(function: &Function) -> Option<f64> {
    let pcie = ConfigSpace::new(function.config.known()?).pcie().ok()?;
    let code = pcie.region().read(0x0c, 4)? >> 15 & 7;
    L1_EXIT_NS.get(usize::try_from(code).ok()?).copied()
}

/// Active state power management that is on: whoever uses the link after a pause waits for it.
pub(crate) fn aspm(case: &Case<'_>, found: &mut Found) {
    let mut asleep = Vec::new();
    let (mut l0s, mut l1, mut exit_ns) = (0, 0, None::<f64>);
    for edge in &case.edges {
        let ends = [edge.upper_link(case), edge.lower_link(case)];
        let on: Vec<_> = ends.into_iter().flatten().filter_map(|link| link.aspm_enabled.get()).collect();
        if on.iter().any(|aspm| aspm.l1) {
            l1 += 1;
            // Both ends leave at once: the slower one counts.
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
        "the link may fall asleep when idle ({}), and the next access waits until it is awake",
        states.join(", ")
    );
    let gain = match exit_ns {
        Some(now) => Gain::Computed {
            quantity: "wait of the first access after a pause, at most".to_owned(),
            now,
            then: 0.0,
            unit: Unit::Ns,
            assumes: "the L1 exit latency of the slowest of them, as its Link Capabilities say".to_owned(),
        },
        None => unknown("the exit latencies were not seen, or have no upper bound"),
    };
    let set = "echo performance > /sys/module/pcie_aspm/parameters/policy";
    let words = "it takes more power; at every boot: pcie_aspm.policy=performance on the kernel's command line";
    found.note(Severity::Minor, asleep, None, reason, gain, command(set.to_owned(), words));
}

/// L1 substates switch off more, and waking takes longer.
pub(crate) fn l1_substates(case: &Case<'_>, found: &mut Found) {
    let on = case.edges.iter().filter(|edge| {
        let ends = || [edge.upper_link(case), edge.lower_link(case)].into_iter().flatten();
        // They are states of L1: without it they are settings that do nothing.
        let is_l1_on = ends().filter_map(|link| link.aspm_enabled.get()).any(|aspm| aspm.l1);
        let mut states = ends().filter_map(|link| link.l1_substates.present());
        is_l1_on && states.any(|states| states.aspm_l1_1 || states.aspm_l1_2)
    });
    let on: Vec<&Function> = on.map(|edge| edge.lower(case)).collect();
    if on.is_empty() {
        return;
    }
    let reason =
        "L1 substates are on: an idle link switches off its reference clock, and waking takes tens of microseconds"
            .to_owned();
    let gain = unknown("the time to wake is the sum of what both ends and the board need");
    let set = "echo performance > /sys/module/pcie_aspm/parameters/policy";
    found.note(
        Severity::Minor,
        on,
        None,
        reason,
        gain,
        command(set.to_owned(), "or the BIOS's setting for L1 substates"),
    );
}

#[cfg(test)]
mod tests {
    use crate::doctor::sample::{self, CARD, PORT, findings_of, known, link};
    use lanemark_record::diagnosis::Gain;
    use lanemark_wire::config::{Aspm, L1Substates};

    #[test]
    fn a_link_that_may_sleep_is_found_at_either_end() {
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
    fn what_waking_takes_comes_from_link_capabilities() {
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
    fn l1_substates_are_found_if_aspm_may_use_them() {
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
