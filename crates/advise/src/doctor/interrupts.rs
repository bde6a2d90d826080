//! Check of interrupts: the NUMA node of the CPUs that they go to.

use super::case::{Case, Collector, command, unknown};
use lanemark_inventory::{CpuSet, Interrupt};
use lanemark_record::diagnosis::Severity;

/// Number of interrupts that go to some set of CPUs.
#[derive(Default)]
struct Share {
    numbers: Vec<u32>,
    count: u64,
}

impl Share {
    fn add(&mut self, number: u32, count: u64) {
        self.numbers.push(number);
        self.count = self.count.saturating_add(count);
    }
}

/// Finds devices most of whose interrupts since boot are those that go to CPUs of other NUMA nodes.
///
/// Drivers with a queue per CPU spread their interrupts over all nodes on purpose, so a far interrupt alone is no
/// finding: the interrupts that occurred decide.
pub(crate) fn far(case: &Case<'_>, found: &mut Collector) {
    let Some(nodes) = case.inventory.processors.nodes.known().filter(|nodes| nodes.len() > 1) else { return };
    for function in &case.inventory.functions {
        let Some(own) = function.numa_node.present() else { continue };
        let Some(near) = nodes.iter().find(|node| node.number == *own).and_then(|node| node.cpus.known()) else {
            continue;
        };
        let Some(interrupts) = function.interrupts.known() else { continue };
        let Some((at_home, away)) = shares(interrupts, near) else { continue };
        if near.is_empty() || away.count <= at_home.count {
            continue;
        }
        let total = away.count.saturating_add(at_home.count);
        let reason = format!(
            "{} of {total} interrupts since boot have numbers that go to processors of other nodes, but the device is on NUMA node {own} (processors {near})",
            away.count
        );
        // Where others are near, the programs that use the device may run on the far processors.
        let severity = if at_home.count == 0 { Severity::Minor } else { Severity::Hint };
        let list: Vec<String> = away.numbers.iter().map(u32::to_string).collect();
        let set = format!("for i in {}; do echo {near} > /proc/irq/$i/smp_affinity_list; done", list.join(" "));
        let words = "as root; irqbalance may move them again, and the kernel refuses it for a driver that manages a queue per processor: run its programs on the near processors instead";
        let gain = unknown("the cost of crossing sockets does not follow from PCIe: measure from both");
        found.add(severity, [function], None, reason, gain, command(set, words));
    }
}

/// Interrupts that occurred, by whether they can go to a near CPU; `None` if a fact is missing.
fn shares(interrupts: &[Interrupt], near: &CpuSet) -> Option<(Share, Share)> {
    let (mut at_home, mut away) = (Share::default(), Share::default());
    for interrupt in interrupts {
        let count = interrupt.count.get()?;
        if count == 0 {
            continue;
        }
        let is_near = interrupt.cpus.known()?.iter().any(|cpu| near.contains(cpu));
        if is_near { &mut at_home } else { &mut away }.add(interrupt.number, count);
    }
    Some((at_home, away))
}

#[cfg(test)]
mod tests {
    use crate::doctor::sample::{self, CARD, findings_of, known};
    use lanemark_inventory::{Interrupt, Inventory, NumaNode};
    use lanemark_record::diagnosis::Severity;

    /// Two nodes; the card is on node 1, and its interrupts have the given counts and CPUs.
    fn machine(interrupts: &[(u64, &str)]) -> Inventory {
        let mut machine = sample::healthy();
        let node = |number: u32, cpus: &str| NumaNode {
            number,
            cpus: known(cpus.parse().unwrap()),
            memory_bytes: sample::unseen(),
            distances: sample::unseen(),
        };
        machine.processors.nodes = known(vec![node(0, "0-3"), node(1, "4-7")]);
        machine.functions[CARD].numa_node = known(Some(1));
        let interrupt = |(number, (count, cpus)): (u32, &(u64, &str))| Interrupt {
            number,
            count: known(*count),
            cpus: known(cpus.parse().unwrap()),
        };
        machine.functions[CARD].interrupts = known((130..).zip(interrupts).map(interrupt).collect());
        machine
    }

    fn severity(interrupts: &[(u64, &str)]) -> Option<Severity> {
        findings_of(&machine(interrupts), "interrupts").first().map(|finding| finding.severity)
    }

    #[test]
    fn a_device_whose_interrupts_go_to_another_node_is_found() {
        assert_eq!(severity(&[(1, "3")]), Some(Severity::Minor));
        assert_eq!(severity(&[(1, "4")]), None);
        assert_eq!(severity(&[(0, "3")]), None, "it never occurred");
        assert_eq!(severity(&[(1, "3-4")]), None, "it may go to a near processor");
        let found = findings_of(&machine(&[(5, "0"), (0, "1"), (7, "2")]), "interrupts");
        assert!(found[0].reason.starts_with("12 of 12 interrupts since boot"), "{}", found[0].reason);
        assert_eq!(
            found[0].fix.command.as_deref(),
            Some("for i in 130 132; do echo 4-7 > /proc/irq/$i/smp_affinity_list; done")
        );
    }

    #[test]
    fn interrupts_spread_over_all_nodes_are_found_only_if_most_occur_on_far_ones() {
        assert_eq!(severity(&[(10, "0"), (10, "4")]), None);
        assert_eq!(severity(&[(11, "0"), (10, "4")]), Some(Severity::Hint));
    }

    #[test]
    fn an_unseen_affinity_or_a_single_node_gives_no_finding() {
        let mut blind = machine(&[(1, "0"), (1, "0")]);
        let lanemark_inventory::Seen::Known(interrupts) = &mut blind.functions[CARD].interrupts else { panic!() };
        interrupts[1].cpus = sample::unseen();
        assert_eq!(findings_of(&blind, "interrupts"), []);
        let mut single = machine(&[(1, "0")]);
        single.processors.nodes = single.processors.nodes.map(|nodes| nodes[1..].to_vec());
        assert_eq!(findings_of(&single, "interrupts"), []);
    }
}
