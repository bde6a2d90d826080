//! What is wrong with a machine: findings from an inventory, ranked by what they cost.
//!
//! [`diagnose`] turns what was seen into a [`Diagnosis`]: its functions and links as data, and what the
//! checks of [`CHECKS`] find. A check is one file: it looks at facts that were seen and at nothing else; what
//! it would need and cannot see it says. Each finding has its reason, what mending it brings by the model,
//! and the command that would mend it. No command is run here, and nothing is written to a device.

mod bars;
mod case;
mod config;
mod edge;
mod errors;
mod facts;
mod gain;
mod link;
mod memory_type;
mod ordering;
mod payload;
mod peers;
mod placement;
mod platform;
mod power;
mod requests;
#[cfg(test)]
pub(crate) mod sample;
mod translation;
mod uplink;

pub use case::{Ask, RoundTrip};
pub use platform::{NoPlatform, as_platform};

use case::{Case, Found};
use lanemark_inventory::Inventory;
use lanemark_record::diagnosis::{Diagnosis, Finding, Unseen};

/// One thing that is looked for.
pub struct Check {
    /// Its name, as findings carry it.
    pub name: &'static str,
    /// What it looks for, in a line.
    pub looks_for: &'static str,
    find: fn(&Case<'_>, &mut Found),
}

/// Everything that is looked for.
pub const CHECKS: &[Check] = &[
    Check {
        name: "config_space",
        looks_for: "functions that do not answer, broken capability lists",
        find: config::space,
    },
    Check {
        name: "containment",
        looks_for: "a port that has cut off what is below it (DPC)",
        find: errors::containment,
    },
    Check { name: "errors", looks_for: "uncorrectable errors counted or latched", find: errors::uncorrectable },
    Check { name: "corrected_errors", looks_for: "corrected errors, counting up", find: errors::corrected },
    Check { name: "payload_mismatch", looks_for: "payload sizes that differ along a path", find: payload::mismatch },
    Check { name: "link_speed", looks_for: "links slower than both ends can", find: link::speed },
    Check { name: "link_width", looks_for: "links narrower than both ends can", find: link::width },
    Check { name: "equalization", looks_for: "links that were never equalised", find: link::equalization },
    Check { name: "payload_size", looks_for: "payloads smaller than all on the path support", find: payload::size },
    Check { name: "read_requests", looks_for: "read requests too small for latency x bandwidth", find: requests::size },
    Check { name: "extended_tags", looks_for: "extended tags off", find: requests::extended_tags },
    Check { name: "ten_bit_tags", looks_for: "10-bit tags off, from Gen4 on", find: requests::ten_bit_tags },
    Check { name: "relaxed_ordering", looks_for: "relaxed ordering off", find: ordering::relaxed },
    Check { name: "aspm", looks_for: "links that may fall asleep", find: power::aspm },
    Check { name: "l1_substates", looks_for: "L1 substates on", find: power::l1_substates },
    Check { name: "peers", looks_for: "ACS redirect in the way of peers", find: peers::redirect },
    Check {
        name: "write_combining",
        looks_for: "prefetchable BARs mapped, but not write-combining",
        find: memory_type::combining,
    },
    Check { name: "mtrr", looks_for: "MTRRs that override what the page tables say", find: memory_type::overridden },
    Check { name: "resizable_bar", looks_for: "resizable BARs at their smallest", find: bars::resizable },
    Check { name: "low_bar", looks_for: "large 64-bit BARs below 4 GiB", find: bars::low },
    Check { name: "socket", looks_for: "cards on another socket than the cores asked about", find: placement::socket },
    Check { name: "governor", looks_for: "a governor that lowers the clock", find: placement::governor },
    Check { name: "uplink", looks_for: "an uplink that its ports could fill several times", find: uplink::shared },
    Check { name: "iommu_strict", looks_for: "IOMMU flushes at every unmap", find: translation::strict },
    Check { name: "completion_timeout", looks_for: "reads that may wait for ever", find: requests::completion_timeout },
];

/// What is wrong with the machine of `inventory`, and what could not be seen.
#[must_use]
pub fn diagnose(inventory: &Inventory, ask: &Ask<'_>) -> Diagnosis {
    let case = Case::new(inventory, ask);
    let mut diagnosis = Diagnosis::new(inventory.source.to_string(), facts::machine(inventory));
    diagnosis.functions = inventory.functions.iter().map(|function| facts::function(function, ask.fields)).collect();
    diagnosis.links = case.edges.iter().map(|edge| edge.to_record(&case)).collect();
    let mut found = Found::default();
    for check in CHECKS {
        found.check = check.name;
        (check.find)(&case, &mut found);
    }
    diagnosis.findings = ranked(found.findings);
    diagnosis.unseen = inventory.unseen.iter().map(unseen).chain(found.blind).collect();
    diagnosis.notes = inventory.notes.iter().map(|note| format!("{}: {}", note.at, note.what)).collect();
    diagnosis
}

fn unseen(unseen: &lanemark_inventory::Unseen) -> Unseen {
    Unseen {
        what: unseen.what.clone(),
        because: unseen.because.clone(),
        enable: unseen.enable.clone(),
        functions: unseen.functions.iter().map(ToString::to_string).collect(),
    }
}

/// The costliest first: by severity, then by the factor that is lost, then as they were found.
fn ranked(mut findings: Vec<Finding>) -> Vec<Finding> {
    let lost = |finding: &Finding| finding.gain.factor().unwrap_or(1.0);
    findings.sort_by(|a, b| a.severity.cmp(&b.severity).then_with(|| lost(b).total_cmp(&lost(a))));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::sample;
    use lanemark_record::diagnosis::{End, Gain, Mend, Severity, Unit};

    fn finding(severity: Severity, then: f64) -> Finding {
        Finding {
            check: "x".to_owned(),
            severity,
            functions: vec![],
            end: Some(End::Both),
            reason: String::new(),
            gain: Gain::Computed {
                quantity: String::new(),
                now: 1.0,
                then,
                unit: Unit::BytesPerS,
                assumes: String::new(),
            },
            mend: Mend { command: None, words: String::new() },
        }
    }

    #[test]
    fn findings_are_ranked_by_severity_and_then_by_what_is_lost() {
        let order = ranked(vec![
            finding(Severity::Minor, 9.0),
            finding(Severity::Costly, 2.0),
            finding(Severity::Costly, 4.0),
            finding(Severity::Broken, 1.0),
        ]);
        let seen: Vec<_> = order.iter().map(|one| (one.severity, one.gain.factor().unwrap())).collect();
        let wanted =
            [(Severity::Broken, 1.0), (Severity::Costly, 4.0), (Severity::Costly, 2.0), (Severity::Minor, 9.0)];
        assert_eq!(seen, wanted);
    }

    #[test]
    fn no_check_stands_twice() {
        let mut names: Vec<_> = CHECKS.iter().map(|check| check.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CHECKS.len());
    }

    #[test]
    fn a_healthy_machine_has_no_finding() {
        let diagnosis = diagnose(&sample::healthy(), &Ask::default());
        assert_eq!(diagnosis.findings, []);
        assert_eq!(diagnosis.unseen, []);
        assert_eq!(diagnosis.links.len(), 1);
        assert_eq!(diagnosis.links[0].state, "Gen4 x16");
    }

    #[test]
    fn a_machine_of_which_nothing_is_seen_has_no_finding_either() {
        let mut inventory = sample::healthy();
        for function in &mut inventory.functions {
            let parent = function.parent.clone();
            *function = lanemark_inventory::Function::unseen(function.address, &lanemark_inventory::Why::NotInDump);
            function.parent = parent;
        }
        assert_eq!(diagnose(&inventory, &Ask::default()).findings, []);
    }
}
