//! Diagnosis of a machine: findings from an inventory, ranked by cost.
//!
//! [`diagnose`] converts an inventory to a [`Diagnosis`]: its functions, links and peers as data, and the findings of
//! [`CHECKS`].
//! Each file holds one family of checks. A check uses only facts that were seen, and reports facts that it needs but
//! cannot see. Each finding has its reason, the gain of the remedy by the model, and the command of the remedy. No command is
//! run here, and no device is written to.

mod bars;
mod case;
mod config;
mod edge;
mod error_counts;
mod errors;
mod facts;
mod gain;
mod incomplete;
mod integrity;
mod interrupts;
mod link;
mod link_state;
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
mod tags;
mod translation;
mod uplink;

pub use case::{DiagnosisRequest, RoundTrip};
pub use platform::{Figures, NoPlatform, as_platform};

use case::{Case, Collector};
use lanemark_inventory::Inventory;
use lanemark_record::diagnosis::{Diagnosis, Finding, Unseen};

/// Check of a machine.
pub struct Check {
    /// Name, as in findings.
    pub name: &'static str,
    /// Description in one line.
    pub looks_for: &'static str,
    find: fn(&Case<'_>, &mut Collector),
}

/// All checks.
pub const CHECKS: &[Check] = &[
    Check {
        name: "config_space",
        looks_for: "functions that do not respond, broken capability lists",
        find: config::space,
    },
    Check {
        name: "containment",
        looks_for: "ports disabled after an uncorrectable error (DPC)",
        find: errors::containment,
    },
    Check { name: "errors", looks_for: "uncorrectable errors, counted or in status bits", find: errors::uncorrectable },
    Check { name: "link_integrity", looks_for: "links with several kinds of corrected errors", find: integrity::link },
    Check {
        name: "corrected_errors",
        looks_for: "corrected errors, especially increasing ones",
        find: errors::corrected,
    },
    Check {
        name: "iommu_faults",
        looks_for: "requests that the IOMMU refused, in the kernel's log",
        find: translation::faults,
    },
    Check { name: "payload_mismatch", looks_for: "payload sizes that differ along a path", find: payload::mismatch },
    Check { name: "link_speed", looks_for: "links slower than both ends support", find: link::speed },
    Check { name: "link_width", looks_for: "links narrower than both ends support", find: link::width },
    Check { name: "equalization", looks_for: "links without completed equalization", find: link::equalization },
    Check { name: "payload_size", looks_for: "payloads smaller than the whole path supports", find: payload::size },
    Check { name: "read_requests", looks_for: "read requests too small for latency x bandwidth", find: requests::size },
    Check { name: "extended_tags", looks_for: "extended tags disabled", find: requests::extended_tags },
    Check { name: "ten_bit_tags", looks_for: "10-bit tags disabled, from Gen4 on", find: requests::ten_bit_tags },
    Check { name: "relaxed_ordering", looks_for: "relaxed ordering disabled", find: ordering::relaxed },
    Check { name: "aspm", looks_for: "ASPM enabled", find: power::aspm },
    Check { name: "l1_substates", looks_for: "L1 substates enabled", find: power::l1_substates },
    Check { name: "peers", looks_for: "ACS redirect between peers below one switch", find: peers::redirect },
    Check {
        name: "write_combining",
        looks_for: "prefetchable BARs that are mapped but not write-combining",
        find: memory_type::combining,
    },
    Check { name: "mtrr", looks_for: "MTRRs that override the page tables", find: memory_type::overridden },
    Check { name: "resizable_bar", looks_for: "resizable BARs at their smallest size", find: bars::resizable },
    Check { name: "low_bar", looks_for: "large 64-bit BARs below 4 GiB", find: bars::low },
    Check {
        name: "socket",
        looks_for: "cards on another NUMA node than the given processors",
        find: placement::socket,
    },
    Check {
        name: "interrupts",
        looks_for: "interrupts that go to processors of another NUMA node",
        find: interrupts::far,
    },
    Check { name: "governor", looks_for: "governors that lower the core clock", find: placement::governor },
    Check { name: "uplink", looks_for: "switch uplinks slower than the sum of the links below", find: uplink::shared },
    Check {
        name: "narrow_uplink",
        looks_for: "devices below a link that is slower than their own",
        find: uplink::narrow,
    },
    Check { name: "iommu_strict", looks_for: "IOTLB flushes at every unmap", find: translation::strict },
    Check { name: "completion_timeout", looks_for: "completion timeouts disabled", find: requests::completion_timeout },
];

/// Diagnoses the machine of `inventory`: findings, and facts that could not be seen.
#[must_use]
pub fn diagnose(inventory: &Inventory, ask: &DiagnosisRequest<'_>) -> Diagnosis {
    let case = Case::new(inventory, ask);
    let mut diagnosis = Diagnosis::new(inventory.source.to_string(), facts::machine(inventory));
    diagnosis.incomplete = incomplete::reasons(inventory);
    diagnosis.functions = inventory.functions.iter().map(|function| facts::function(function, ask.fields)).collect();
    diagnosis.links = case.edges.iter().map(|edge| edge.to_record(&case)).collect();
    diagnosis.peers = peers::across_root_ports(&case);
    let mut found = Collector::default();
    for check in CHECKS {
        found.check = check.name;
        (check.find)(&case, &mut found);
    }
    diagnosis.findings = ranked(found.findings);
    diagnosis.unseen = inventory.unseen.iter().map(unseen).chain(found.unseen).collect();
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

/// Orders findings by severity, then by the lost factor; equal ones keep their order.
fn ranked(mut findings: Vec<Finding>) -> Vec<Finding> {
    let lost = |finding: &Finding| finding.gain.factor().unwrap_or(1.0);
    findings.sort_by(|a, b| a.severity.cmp(&b.severity).then_with(|| lost(b).total_cmp(&lost(a))));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::sample;
    use lanemark_record::diagnosis::{End, Fix, Gain, Severity, Unit};

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
            fix: Fix { command: None, words: String::new() },
        }
    }

    #[test]
    fn findings_are_ranked_by_severity_and_then_by_loss() {
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
    fn check_names_are_unique() {
        let mut names: Vec<_> = CHECKS.iter().map(|check| check.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CHECKS.len());
    }

    #[test]
    fn a_healthy_machine_has_no_finding() {
        let diagnosis = diagnose(&sample::healthy(), &DiagnosisRequest::default());
        assert_eq!(diagnosis.findings, []);
        assert_eq!(diagnosis.unseen, []);
        assert_eq!(diagnosis.links.len(), 1);
        assert_eq!(diagnosis.links[0].state, "Gen4 x16");
    }

    #[test]
    fn a_machine_with_only_unseen_facts_has_no_finding() {
        let mut inventory = sample::healthy();
        for function in &mut inventory.functions {
            let parent = function.parent.clone();
            *function = lanemark_inventory::Function::unseen(function.address, &lanemark_inventory::Why::NotInDump);
            function.parent = parent;
        }
        assert_eq!(diagnose(&inventory, &DiagnosisRequest::default()).findings, []);
    }
}
