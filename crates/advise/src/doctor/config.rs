//! Config space that does not answer, or whose lists are broken.

use super::case::{Case, Found, by_hand, command, unknown};
use lanemark_inventory::Why;
use lanemark_record::diagnosis::Severity;
use lanemark_wire::config::{BreakKind, ConfigSpace};

/// Functions that read as all ones, and capability lists that loop or lead nowhere.
pub(crate) fn space(case: &Case<'_>, found: &mut Found) {
    for function in &case.inventory.functions {
        if matches!(function.config.why(), Some(Why::AllOnes))
            || function.config.known().is_some_and(|bytes| ConfigSpace::new(bytes).is_absent())
        {
            let reason = "config space reads as all ones: the function does not answer".to_owned();
            let again =
                format!("echo 1 > /sys/bus/pci/devices/{}/remove && echo 1 > /sys/bus/pci/rescan", function.address);
            let words = "removes it and looks for it again; if that does not help, a power cycle";
            found.note(
                Severity::Broken,
                [function],
                None,
                reason,
                unknown("nothing of it works now"),
                command(again, words),
            );
            continue;
        }
        let Some(bytes) = function.config.known() else { continue };
        // What was cut off by the reading is unseen, not broken.
        let cut = |what: &BreakKind| matches!(what, BreakKind::NotVisible { .. } | BreakKind::BodyCut { .. });
        let faults: Vec<String> = ConfigSpace::new(bytes)
            .chain_faults()
            .filter(|fault| !cut(&fault.what))
            .map(|fault| fault.to_string())
            .collect();
        if !faults.is_empty() {
            let reason = format!("a list of capabilities is broken: {}", faults.join("; "));
            let gain = unknown("what stands behind the break cannot be used by any driver");
            found.note(
                Severity::Minor,
                [function],
                None,
                reason,
                gain,
                by_hand("newer firmware of the device, or of its emulation"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::doctor::sample::{self, CARD, findings_of, known};
    use lanemark_record::diagnosis::Severity;

    #[test]
    fn all_ones_are_a_dead_function_and_one_bit_less_is_not() {
        let mut machine = sample::healthy();
        machine.functions[CARD].config = known(vec![0xff; 64]);
        assert_eq!(findings_of(&machine, "config_space")[0].severity, Severity::Broken);
        let mut bytes = vec![0xff; 64];
        bytes[6] = 0xef; // no capability list
        machine.functions[CARD].config = known(bytes);
        assert_eq!(findings_of(&machine, "config_space"), []);
    }

    #[test]
    fn a_list_that_loops_is_found_and_one_that_was_cut_by_the_reading_is_not() {
        let mut machine = sample::healthy();
        machine.functions[CARD].config = known(sample::config(|bytes| bytes[0x41] = 0x40));
        assert!(findings_of(&machine, "config_space")[0].reason.contains("leads back to 0x040"));
        machine.functions[CARD].config = known(sample::config(|bytes| bytes[0x41] = 0)[..64].to_vec());
        assert_eq!(findings_of(&machine, "config_space"), []);
    }
}
