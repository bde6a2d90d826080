//! Check of link integrity: several kinds of corrected errors of one link.

use super::case::{Case, Collector, by_hand, command, unknown};
use super::error_counts::{Corrected, corrected_of};
use lanemark_inventory::Function;
use lanemark_record::diagnosis::{End, Severity};
use std::collections::BTreeSet;

/// Corrected errors of the physical and the data link layer, as lspci and Linux name them. The remaining kinds do not
/// come from the link.
///
/// Source: PCI Express Base Specification 6.0, section 6.2.7, lists of the two layers.
const OF_THE_LINK: [&str; 5] = [
    "RxErr",    // Receiver Error
    "BadTLP",   // Bad TLP: wrong LCRC or sequence number
    "BadDLLP",  // Bad DLLP: wrong CRC
    "Rollover", // REPLAY_NUM Rollover: four replays of one TLP
    "Timeout",  // Replay Timer Timeout: no acknowledgement
];

/// Number of kinds from which errors are no remains of training: training sets one kind, `RxErr`.
const SEVERAL: usize = 2;

/// The ends of a link with errors.
struct Faulty<'a> {
    ends: Vec<(&'a Function, Corrected)>,
    kinds: BTreeSet<String>,
}

/// Functions at the ends of each link; a port without a visible device below is an end of its own.
fn links(case: &Case<'_>) -> Vec<Vec<usize>> {
    let mut links: Vec<Vec<usize>> =
        case.edges.iter().map(|edge| edge.upper.into_iter().chain([edge.lower]).collect()).collect();
    let placed: BTreeSet<usize> = links.iter().flatten().copied().collect();
    links.extend((0..case.inventory.functions.len()).filter(|place| !placed.contains(place)).map(|place| vec![place]));
    links
}

fn faulty<'a>(case: &Case<'a>) -> Vec<Faulty<'a>> {
    let of_link = |places: Vec<usize>| {
        let ends = places.into_iter().filter_map(|place| {
            let function = case.function(place);
            let corrected = corrected_of(case, function)?;
            let is_of_link = corrected.kinds.iter().any(|kind| OF_THE_LINK.contains(&kind.as_str()));
            is_of_link.then_some((function, corrected))
        });
        let ends: Vec<_> = ends.collect();
        let kinds = ends.iter().flat_map(|(_, corrected)| corrected.kinds.iter().cloned());
        let kinds: BTreeSet<String> = kinds.filter(|kind| OF_THE_LINK.contains(&kind.as_str())).collect();
        (kinds.len() >= SEVERAL).then_some(Faulty { ends, kinds })
    };
    links(case).into_iter().filter_map(of_link).collect()
}

/// Whether the errors of a function are part of a finding of [`link`].
pub(super) fn covers(case: &Case<'_>) -> BTreeSet<String> {
    let functions = faulty(case).into_iter().flat_map(|link| link.ends);
    functions.map(|(function, _)| function.address.to_string()).collect()
}

/// Finds links with several kinds of link-layer errors: their signal integrity may be poor.
pub(crate) fn link(case: &Case<'_>, found: &mut Collector) {
    for faulty in faulty(case) {
        let of_end = |(function, corrected): &(&Function, Corrected)| {
            format!("{} at {}", corrected.in_words(), function.address)
        };
        let reason = format!(
            "the link has corrected {} kinds of errors, so its signal integrity may be poor: {}{}",
            faulty.kinds.len(),
            faulty.ends.iter().map(of_end).collect::<Vec<_>>().join("; "),
            if faulty.ends.iter().any(|(_, corrected)| corrected.is_new) {
                ", since the earlier inventory"
            } else {
                ""
            },
        );
        let words = "reseat the card; shorten, replace or remove its riser or cable; clean the contacts";
        let edge = case.edges.iter().find(|edge| {
            let ends = [Some(edge.lower(case)), edge.upper(case)];
            faulty.ends.iter().any(|(function, _)| ends.contains(&Some(*function)))
        });
        let slower = edge.and_then(|edge| {
            let generation = edge.trained(case)?.generation.checked_sub(1).filter(|slower| *slower > 0)?;
            Some((edge.upper(case)?.address, generation))
        });
        let fix = match slower {
            Some((port, generation)) => command(
                format!("setpci -s {port} CAP_EXP+30.w={generation}:f && setpci -s {port} CAP_EXP+10.w=20:20"),
                &format!("first {words}; the command runs the link at Gen{generation}, which may avoid the errors"),
            ),
            None => by_hand(&format!("{words}; a lower link speed may avoid the errors")),
        };
        let functions = faulty.ends.iter().map(|(function, _)| *function);
        let gain = unknown("each error costs a replay of some microseconds; compare two inventories with --earlier");
        found.add(Severity::Costly, functions, Some(End::Both), reason, gain, fix);
    }
}

#[cfg(test)]
mod tests {
    use crate::doctor::DiagnosisRequest;
    use crate::doctor::diagnose;
    use crate::doctor::sample::{self, CARD, PORT, findings_of, known};
    use lanemark_inventory::{Aer, ErrorCount, Inventory, Why};
    use lanemark_record::diagnosis::Severity;

    const RX_ERR: u32 = 1;
    const BAD_TLP: u32 = 1 << 6;
    const ADVISORY: u32 = 1 << 13;
    const INTERNAL: u32 = 1 << 14;

    fn with(port: u32, card: u32) -> Inventory {
        let mut machine = sample::healthy();
        for (place, bits) in [(PORT, port), (CARD, card)] {
            let aer = Aer { correctable_status: known(bits), ..Aer::unseen(&Why::NotInDump) };
            machine.functions[place].aer = known(Some(aer));
        }
        machine
    }

    #[test]
    fn two_kinds_of_link_errors_are_costly_and_one_is_minor() {
        let found = findings_of(&with(0, RX_ERR | BAD_TLP), "link_integrity");
        assert_eq!((found.len(), found[0].severity), (1, Severity::Costly));
        assert_eq!(found[0].functions, ["0000:01:00.0"]);
        assert!(found[0].reason.ends_with("may be poor: RxErr, BadTLP at 0000:01:00.0"), "{}", found[0].reason);
        assert!(found[0].fix.words.contains("reseat the card"), "{}", found[0].fix.words);
        assert_eq!(
            found[0].fix.command.as_deref(),
            Some("setpci -s 0000:00:01.0 CAP_EXP+30.w=3:f && setpci -s 0000:00:01.0 CAP_EXP+10.w=20:20")
        );
        assert_eq!(findings_of(&with(0, RX_ERR | BAD_TLP), "corrected_errors"), [], "reported once");
        for bits in [RX_ERR, RX_ERR | ADVISORY, BAD_TLP | INTERNAL] {
            assert_eq!(findings_of(&with(0, bits), "link_integrity"), []);
            assert_eq!(findings_of(&with(0, bits), "corrected_errors")[0].severity, Severity::Minor);
        }
    }

    #[test]
    fn errors_of_both_ends_of_a_link_count_together() {
        let found = findings_of(&with(RX_ERR, BAD_TLP), "link_integrity");
        assert_eq!(found[0].functions, ["0000:00:01.0", "0000:01:00.0"]);
        assert_eq!(findings_of(&with(BAD_TLP, BAD_TLP), "link_integrity"), []);
        // Another link.
        let mut machine = sample::switch(2);
        for (port, bits) in sample::switch_ports(2).zip([RX_ERR, BAD_TLP]) {
            let aer = Aer { correctable_status: known(bits), ..Aer::unseen(&Why::NotInDump) };
            machine.functions[port].aer = known(Some(aer));
        }
        assert_eq!(findings_of(&machine, "link_integrity"), []);
    }

    #[test]
    fn counters_are_shown_and_with_an_earlier_inventory_only_increases_count() {
        let counted = |rx_err: u64, bad_tlp: u64| {
            let mut machine = sample::healthy();
            let of = |name: &str, count| ErrorCount { name: name.to_owned(), count };
            let counts = vec![of("RxErr", rx_err), of("BadTLP", bad_tlp), of("TOTAL_ERR_COR", rx_err + bad_tlp)];
            machine.functions[CARD].aer =
                known(Some(Aer { correctable: known(counts), ..Aer::unseen(&Why::NotInDump) }));
            machine
        };
        let found = findings_of(&counted(3, 12), "link_integrity");
        assert!(found[0].reason.ends_with("3 RxErr, 12 BadTLP at 0000:01:00.0"), "{}", found[0].reason);
        let since = |before: &Inventory, now: &Inventory| {
            let ask = DiagnosisRequest { earlier: Some(before), ..DiagnosisRequest::default() };
            let found = diagnose(now, &ask).findings;
            found.first().map(|finding| (finding.check.clone(), finding.reason.clone()))
        };
        assert_eq!(since(&counted(3, 12), &counted(3, 12)), None);
        let (check, _) = since(&counted(3, 12), &counted(3, 13)).unwrap();
        assert_eq!(check, "corrected_errors", "one kind has increased");
        let (check, reason) = since(&counted(3, 12), &counted(4, 14)).unwrap();
        assert_eq!(check, "link_integrity");
        assert!(reason.ends_with("1 RxErr, 2 BadTLP at 0000:01:00.0, since the earlier inventory"), "{reason}");
    }
}
