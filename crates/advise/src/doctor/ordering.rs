//! Checks of request attributes.

use super::case::{Case, Collector, command, setpci, unknown};
use lanemark_inventory::Function;
use lanemark_record::diagnosis::Severity;

/// Finds disabled relaxed ordering, without which writes and completions of a device keep their order.
pub(crate) fn relaxed(case: &Case<'_>, found: &mut Collector) {
    let off = case.requesters().filter(|(_, _, express)| express.relaxed_ordering_enabled.get() == Some(false));
    let off: Vec<&Function> = off.map(|(_, function, _)| function).collect();
    if off.is_empty() {
        return;
    }
    let reason = "relaxed ordering is disabled: writes cannot pass each other, and completions wait for earlier writes"
        .to_owned();
    let gain = unknown("it depends on whether the device sets the attribute, and on the queues of the root complex");
    let words = "only if the driver does not rely on order between buffers; Linux disables it below root ports that are \
                 known to be slow with it";
    let fix = command(setpci(off.iter().copied(), "CAP_EXP+8.w=0010:0010"), words);
    found.add(Severity::Hint, off, None, reason, gain, fix);
}

#[cfg(test)]
mod tests {
    use crate::doctor::sample::{self, CARD, express, findings_of, known};

    #[test]
    fn disabled_relaxed_ordering_is_found() {
        let mut machine = sample::healthy();
        express(&mut machine, CARD).relaxed_ordering_enabled = known(false);
        let found = findings_of(&machine, "relaxed_ordering");
        assert_eq!(found[0].fix.command.as_deref(), Some("setpci -s 0000:01:00.0 CAP_EXP+8.w=0010:0010"));
        express(&mut machine, CARD).relaxed_ordering_enabled = sample::unseen();
        assert_eq!(findings_of(&machine, "relaxed_ordering"), []);
    }
}
