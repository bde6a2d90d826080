//! Attributes a requester may set.

use super::case::{Case, Found, command, setpci, unknown};
use lanemark_inventory::Function;
use lanemark_record::diagnosis::Severity;

/// Without relaxed ordering, a device's writes and completions queue behind each other.
pub(crate) fn relaxed(case: &Case<'_>, found: &mut Found) {
    let off = case.requesters().filter(|(_, _, express)| express.relaxed_ordering_enabled.get() == Some(false));
    let off: Vec<&Function> = off.map(|(_, function, _)| function).collect();
    if off.is_empty() {
        return;
    }
    let reason =
        "relaxed ordering is off: their writes may not pass each other, and completions wait behind writes".to_owned();
    let gain = unknown("it depends on whether the device uses the attribute, and on the root complex's queues");
    let words = "only where the driver expects no order between its buffers; Linux turns it off below root ports that \
                 are known to be slow with it";
    let mend = command(setpci(off.iter().copied(), "CAP_EXP+8.w=0010:0010"), words);
    found.note(Severity::Hint, off, None, reason, gain, mend);
}

#[cfg(test)]
mod tests {
    use crate::doctor::sample::{self, CARD, express, findings_of, known};

    #[test]
    fn relaxed_ordering_off_is_found_on_or_unseen_is_not() {
        let mut machine = sample::healthy();
        express(&mut machine, CARD).relaxed_ordering_enabled = known(false);
        let found = findings_of(&machine, "relaxed_ordering");
        assert_eq!(found[0].mend.command.as_deref(), Some("setpci -s 0000:01:00.0 CAP_EXP+8.w=0010:0010"));
        express(&mut machine, CARD).relaxed_ordering_enabled = sample::unseen();
        assert_eq!(findings_of(&machine, "relaxed_ordering"), []);
    }
}
