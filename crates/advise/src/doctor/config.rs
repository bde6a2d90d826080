//! Checks of configuration space: no response, broken capability lists.

use super::case::{Case, Collector, by_hand, command, unknown};
use lanemark_inventory::Why;
use lanemark_record::diagnosis::Severity;
use lanemark_wire::config::{BreakKind, ConfigSpace};

/// Finds functions that read as all ones, and capability lists with loops or invalid pointers.
pub(crate) fn space(case: &Case<'_>, found: &mut Collector) {
    for function in &case.inventory.functions {
        if matches!(function.config.why(), Some(Why::AllOnes))
            || function.config.known().is_some_and(|bytes| ConfigSpace::new(bytes).is_absent())
        {
            let reason = "configuration space reads as all ones: the function does not respond".to_owned();
            let again =
                format!("echo 1 > /sys/bus/pci/devices/{}/remove && echo 1 > /sys/bus/pci/rescan", function.address);
            let words = "removes the function and rescans the bus; if that does not help, power-cycle the machine";
            found.add(
                Severity::Broken,
                [function],
                None,
                reason,
                unknown("the function does not work at all"),
                command(again, words),
            );
            continue;
        }
        let Some(bytes) = function.config.known() else { continue };
        // A list that was cut off by an incomplete dump is not broken.
        let cut = |what: &BreakKind| matches!(what, BreakKind::NotVisible { .. } | BreakKind::BodyCut { .. });
        let faults: Vec<String> = ConfigSpace::new(bytes)
            .chain_faults()
            .filter(|fault| !cut(&fault.what))
            .map(|fault| fault.to_string())
            .collect();
        if !faults.is_empty() {
            let reason = format!("a capability list is broken: {}", faults.join("; "));
            let gain = unknown("drivers cannot find the capabilities after the break");
            found.add(
                Severity::Minor,
                [function],
                None,
                reason,
                gain,
                by_hand("update the firmware of the device, or its emulator"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::doctor::sample::{self, CARD, findings_of, known};
    use lanemark_record::diagnosis::Severity;

    #[test]
    fn all_ones_are_a_dead_function() {
        let mut machine = sample::healthy();
        machine.functions[CARD].config = known(vec![0xff; 64]);
        assert_eq!(findings_of(&machine, "config_space")[0].severity, Severity::Broken);
        let mut bytes = vec![0xff; 64];
        bytes[6] = 0xef; // no capability list
        machine.functions[CARD].config = known(bytes);
        assert_eq!(findings_of(&machine, "config_space"), []);
    }

    #[test]
    fn a_looping_list_is_found_and_an_incomplete_dump_is_not() {
        let mut machine = sample::healthy();
        machine.functions[CARD].config = known(sample::config(|bytes| bytes[0x41] = 0x40));
        assert!(findings_of(&machine, "config_space")[0].reason.contains("leads back to 0x040"));
        machine.functions[CARD].config = known(sample::config(|bytes| bytes[0x41] = 0)[..64].to_vec());
        assert_eq!(findings_of(&machine, "config_space"), []);
    }
}
