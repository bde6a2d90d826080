//! A diagnosis for a terminal: machine, tree, links, peers, findings, and invisible facts.

use crate::doctor_findings::{findings, unseen};
use crate::doctor_tree::tree;
use crate::figures;
use crate::grid::{Column, Grid, wrap};
use lanemark_record::diagnosis::{Diagnosis, Fact, Function, Link, LinkRate};
use std::collections::BTreeMap;

/// Renders the diagnosis for a terminal of `width` characters; without a width nothing is wrapped.
#[must_use]
pub fn diagnosis(diagnosis: &Diagnosis, width: Option<u16>) -> String {
    let mut blocks = vec![incomplete(diagnosis, width), machine(diagnosis, width), tree(diagnosis, width)];
    if !diagnosis.links.is_empty() {
        blocks.push(links(diagnosis).lines(width).join("\n"));
    }
    blocks.push(list("peers below different root ports:", &diagnosis.peers, width));
    blocks.push(findings(&diagnosis.findings, width));
    if !diagnosis.unseen.is_empty() {
        blocks.push(unseen(&diagnosis.unseen, width));
    }
    blocks.push(list("inconsistencies of the source:", &diagnosis.notes, width));
    blocks.retain(|block| !block.is_empty());
    blocks.join("\n\n") + "\n"
}

/// Sentences below a title; nothing without one.
fn list(title: &str, sentences: &[String], width: Option<u16>) -> String {
    if sentences.is_empty() {
        return String::new();
    }
    let lines = sentences.iter().map(|sentence| wrap(&format!("  - {sentence}"), width, 4));
    std::iter::once(title.to_owned()).chain(lines).collect::<Vec<_>>().join("\n")
}

/// Missing groups of facts, which the reader must know before the findings.
fn incomplete(diagnosis: &Diagnosis, width: Option<u16>) -> String {
    let lines = diagnosis.incomplete.iter().map(|reason| wrap(&format!("INCOMPLETE: {reason}"), width, 2));
    lines.collect::<Vec<_>>().join("\n")
}

/// The source, and the visible facts about the processors.
fn machine(diagnosis: &Diagnosis, width: Option<u16>) -> String {
    let machine = &diagnosis.machine;
    let functions = figures::counted(diagnosis.functions.len(), "function");
    let mut parts = vec![format!("{}: {functions}", diagnosis.source)];
    let mut add = |fact: Option<String>| parts.extend(fact);
    add(machine.processor.value().cloned());
    add(machine.sockets.value().map(|count| figures::counted(*count as usize, "socket")));
    add(machine.numa_nodes.value().map(|count| figures::counted(*count as usize, "NUMA node")));
    add(machine
        .governors
        .value()
        .filter(|names| !names.is_empty())
        .map(|names| format!("governor {}", names.join(", "))));
    add(machine.iommu_units.value().map(|units| match units.len() {
        0 => "no IOMMU".to_owned(),
        count => figures::counted(count, "IOMMU unit"),
    }));
    add(machine.aspm_policy.value().map(|policy| format!("ASPM policy {policy}")));
    add(machine.kernel.value().map(|release| format!("Linux {release}")));
    wrap(&parts.join(", "), width, 2)
}

/// One row per link: its trained state and the settings of its lower end.
fn links(diagnosis: &Diagnosis) -> Grid {
    let lower: BTreeMap<&str, &Function> =
        diagnosis.functions.iter().map(|function| (function.address.as_str(), function)).collect();
    let mut grid = Grid {
        columns: vec![
            Column::words("link to"),
            Column::words("trained"),
            Column::words("both ends can"),
            Column::figures("DMA ceiling"),
            Column::figures("MPS"),
            Column::figures("MRRS"),
            Column::figures("tags"),
            Column::words("ASPM"),
        ],
        rows: diagnosis.links.iter().map(|link| row(link, lower.get(link.lower.as_str()).copied())).collect(),
    };
    grid.drop_empty_columns();
    grid
}

fn row(link: &Link, lower: Option<&Function>) -> Vec<String> {
    let rate = |fact: &Fact<LinkRate>| fact.value().map_or("?".to_owned(), ToString::to_string);
    let of =
        |fact: fn(&Function) -> &Fact<u32>| lower.and_then(|function| fact(function).value()).map(ToString::to_string);
    let or_unseen = |text: Option<String>| text.unwrap_or_else(|| "?".to_owned());
    vec![
        link.lower.clone(),
        rate(&link.trained),
        rate(&link.both_can),
        or_unseen(link.ceiling_bytes_per_s.value().map(|rate| figures::rate(*rate))),
        or_unseen(of(|function| &function.mps_bytes)),
        or_unseen(of(|function| &function.mrrs_bytes)),
        or_unseen(lower.and_then(|function| function.tags.value()).map(ToString::to_string)),
        or_unseen(link.aspm.value().cloned()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor_fixture::sample;

    #[test]
    fn a_diagnosis_is_rendered_with_tree_links_and_findings() {
        let expected = "\
this machine: 3 functions, A Processor, 1 socket, no IOMMU

bus 0000:00
├─ 00:01.0 PCI bridge, root port
│  └─ 01:00.0 Someone's Accelerator, driver accel   Gen3 x8 of Gen4 x16 ▼
└─ 00:1f.0 ISA bridge

link to       trained  both ends can  DMA ceiling  MPS  MRRS  tags  ASPM
────────────────────────────────────────────────────────────────────────
0000:01:00.0  Gen3 x8  Gen4 x16         7.20 GB/s  256   512     ?  none

2 findings, the costliest first; nothing was changed, and no command was run

1. costly: link_speed at 0000:01:00.0, both ends
   the link runs at Gen3 although both ends support Gen4
   gain: DMA ceiling 7.20 GB/s now, 14.4 GB/s then (2.0x); assumes writes of 256 B
   fix: setpci -s 0000:00:01.0 CAP_EXP+30.w=4:f
        trains again

2. hint: governor of the machine
   the governor is powersave
   gain: unknown, because it was not measured
   fix: ask a colleague

not visible:
  - link state of 2 functions: no root; to make it visible: run as root
  - MTRRs: there is no file; to make it visible: another kernel
";
        assert_eq!(diagnosis(&sample(), None), expected);
    }

    #[test]
    fn only_commands_are_wider_than_the_terminal() {
        for width in [60, 80, 120] {
            for line in diagnosis(&sample(), Some(width)).lines().filter(|line| !line.contains("setpci")) {
                assert!(line.chars().count() <= usize::from(width), "{width}: {line}");
            }
        }
    }

    #[test]
    fn a_machine_without_findings_is_reported_as_such() {
        let mut quiet = sample();
        quiet.findings.clear();
        quiet.unseen.clear();
        quiet.links.clear();
        let text = diagnosis(&quiet, None);
        assert!(text.ends_with("no findings in the visible settings\n"), "{text}");
    }

    #[test]
    fn missing_groups_of_facts_come_first() {
        let mut partial = sample();
        partial.incomplete = vec!["made without root".to_owned()];
        let text = diagnosis(&partial, None);
        assert!(text.starts_with("INCOMPLETE: made without root\n\nthis machine: 3 functions"), "{text}");
    }

    #[test]
    fn peers_are_listed_before_the_findings() {
        let mut pair = sample();
        pair.peers = vec!["one".to_owned(), "two".to_owned()];
        let text = diagnosis(&pair, None);
        assert!(text.contains("\n\npeers below different root ports:\n  - one\n  - two\n\n2 findings"), "{text}");
        assert!(!diagnosis(&sample(), None).contains("peers"));
    }

    #[test]
    fn untrusted_text_cannot_control_the_terminal() {
        let mut strange = sample();
        strange.functions[1].name = Fact::Seen { value: "a\u{1b}[2Jb".to_owned() };
        strange.findings[0].reason = "x\u{7}".to_owned();
        strange.notes.push("\u{1b}]0;".to_owned());
        strange.incomplete.push("\u{1b}]0;".to_owned());
        assert!(!diagnosis(&strange, Some(80)).contains(['\u{1b}', '\u{7}']));
    }
}
