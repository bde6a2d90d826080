//! Checks of cards and cores: NUMA node, clock governor.

use super::case::{Case, Collector, by_hand, command, unknown};
use lanemark_inventory::{CpuSet, Function, NumaNode};
use lanemark_record::diagnosis::Severity;

/// Finds cards on another NUMA node than the given processors.
pub(crate) fn socket(case: &Case<'_>, found: &mut Collector) {
    let (Some(cpus), Some(nodes)) = (case.cpus, case.inventory.processors.nodes.known()) else { return };
    let of_node = |cpu: u32| nodes.iter().any(|node| node.cpus.known().is_some_and(|cpus| cpus.contains(cpu)));
    let nowhere: CpuSet = cpus.iter().filter(|cpu| !of_node(*cpu)).collect();
    if !nowhere.is_empty() {
        let what = format!("the NUMA node of processors {nowhere}");
        found.add_unseen(&what, "no NUMA node that was seen lists them", "give processors that the machine has", None);
    }
    if nodes.len() < 2 {
        return;
    }
    let near = |node: &NumaNode| node.cpus.known().is_some_and(|of_node| cpus.iter().any(|cpu| of_node.contains(cpu)));
    let asked: Vec<&NumaNode> = nodes.iter().filter(|node| near(node)).collect();
    for (_, function, _) in case.requesters() {
        let Some(own) = function.numa_node.present() else { continue };
        if asked.is_empty() || asked.iter().any(|node| node.number == *own) {
            continue;
        }
        // The kernel lists distances to existing nodes only, ordered by number.
        let place = nodes.iter().position(|node| node.number == *own);
        let distances = asked[0].distances.known().filter(|distances| distances.len() == nodes.len());
        let distance = distances.zip(place).and_then(|(distances, place)| distances.get(place));
        let far = distance.map_or_else(String::new, |distance| format!(" (distance {distance}, local 10)"));
        let reason =
            format!("the card is on NUMA node {own} but processors {cpus} are on node {}{far}", asked[0].number);
        let gain = unknown("the cost of crossing sockets does not follow from PCIe: measure from both");
        let run = format!("numactl --cpunodebind={own} --membind={own} PROGRAM");
        found.add(
            Severity::Minor,
            [function],
            None,
            reason,
            gain,
            command(run, "or move the card to a slot of the other socket"),
        );
    }
}

/// Finds governors that lower the clock, which slows every load and store.
pub(crate) fn governor(case: &Case<'_>, found: &mut Collector) {
    let Some(governors) = case.inventory.processors.governors.known() else { return };
    for governor in governors.iter().filter(|governor| governor.name == "powersave") {
        // These drivers raise the clock under load even with this governor.
        let driver = governor.driver.known().map(String::as_str);
        let adapts = matches!(driver, Some("intel_pstate" | "amd-pstate-epp"));
        let (severity, effect) = if adapts {
            (Severity::Hint, "raises the clock only after some time under load")
        } else {
            (Severity::Minor, "keeps the clock at its lowest")
        };
        let reason = format!("the governor of processors {} is powersave, which {effect}", governor.cpus);
        let gain = unknown("the maximum clock was not read; core-bound times scale with the clock");
        let set = "for f in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor; do echo performance > $f; done";
        let no_function: [&Function; 0] = [];
        let fix = if governor.cpus.is_empty() {
            by_hand(set)
        } else {
            command(set.to_owned(), "increases power consumption")
        };
        found.add(severity, no_function, None, reason, gain, fix);
    }
}

#[cfg(test)]
mod tests {
    use super::super::case::DiagnosisRequest;
    use crate::doctor::diagnose;
    use crate::doctor::sample::{self, CARD, findings_of, known};
    use lanemark_inventory::{Governor, Inventory, NumaNode};
    use lanemark_record::diagnosis::Severity;

    fn two_sockets() -> Inventory {
        let mut machine = sample::healthy();
        let node = |number: u32, cpus: &str| NumaNode {
            number,
            cpus: known(cpus.parse().unwrap()),
            memory_bytes: sample::unseen(),
            distances: known(if number == 0 { vec![10, 21] } else { vec![21, 10] }),
        };
        machine.processors.nodes = known(vec![node(0, "0-3"), node(1, "4-7")]);
        machine.functions[CARD].numa_node = known(Some(1));
        machine
    }

    fn asked(machine: &Inventory, cpus: &str) -> usize {
        let ask = DiagnosisRequest { cpus: Some(cpus.parse().unwrap()), ..DiagnosisRequest::default() };
        diagnose(machine, &ask).findings.iter().filter(|finding| finding.check == "socket").count()
    }

    #[test]
    fn a_card_on_another_node_than_the_given_processors_is_found() {
        assert_eq!((asked(&two_sockets(), "3"), asked(&two_sockets(), "4"), asked(&two_sockets(), "3-4")), (1, 0, 0));
        assert_eq!(findings_of(&two_sockets(), "socket"), []);
        let mut one = two_sockets();
        one.processors.nodes = one.processors.nodes.clone().map(|nodes| nodes[..1].to_vec());
        assert_eq!(asked(&one, "3"), 0);
    }

    #[test]
    fn distances_are_indexed_by_existing_nodes_and_not_by_node_number() {
        let mut machine = two_sockets();
        let node = |number: u32, cpus: &str, distances: &[u32]| NumaNode {
            number,
            cpus: known(cpus.parse().unwrap()),
            memory_bytes: sample::unseen(),
            distances: known(distances.to_vec()),
        };
        let nodes = vec![node(0, "0-3", &[10, 21, 31]), node(2, "4-7", &[21, 10, 41]), node(3, "8", &[31, 41, 10])];
        machine.processors.nodes = known(nodes);
        let reason = |machine: &Inventory, own: u32| {
            let mut machine = machine.clone();
            machine.functions[CARD].numa_node = known(Some(own));
            let ask = DiagnosisRequest { cpus: Some("0".parse().unwrap()), ..DiagnosisRequest::default() };
            let found = diagnose(&machine, &ask).findings;
            found.into_iter().find(|finding| finding.check == "socket").unwrap().reason
        };
        assert!(reason(&machine, 2).ends_with("on node 0 (distance 21, local 10)"), "{}", reason(&machine, 2));
        assert!(reason(&machine, 3).ends_with("on node 0 (distance 31, local 10)"), "{}", reason(&machine, 3));
        // An inventory without some node cannot assign the distances.
        machine.processors.nodes = machine.processors.nodes.map(|nodes| nodes[..2].to_vec());
        assert!(reason(&machine, 2).ends_with("on node 0"), "{}", reason(&machine, 2));
    }

    #[test]
    fn processors_without_a_node_are_reported_as_unseen() {
        let blind = |machine: &Inventory, cpus: &str| {
            let ask = DiagnosisRequest { cpus: Some(cpus.parse().unwrap()), ..DiagnosisRequest::default() };
            let unseen = diagnose(machine, &ask).unseen;
            unseen.into_iter().find_map(|unseen| Some(unseen.what.strip_prefix("the NUMA node of ")?.to_owned()))
        };
        let machine = two_sockets();
        assert_eq!(blind(&machine, "0-7"), None);
        assert_eq!(blind(&machine, "7-9").as_deref(), Some("processors 8-9"));
        let mut one = machine;
        one.processors.nodes = one.processors.nodes.map(|nodes| nodes[..1].to_vec());
        assert_eq!(blind(&one, "4").as_deref(), Some("processors 4"));
    }

    #[test]
    fn powersave_is_found_and_is_less_severe_if_the_driver_adapts() {
        let with = |name: &str, driver: &str| {
            let mut machine = sample::healthy();
            let governor =
                Governor { name: name.to_owned(), driver: known(driver.to_owned()), cpus: "0-3".parse().unwrap() };
            machine.processors.governors = known(vec![governor]);
            findings_of(&machine, "governor").first().map(|finding| finding.severity)
        };
        assert_eq!(with("powersave", "acpi-cpufreq"), Some(Severity::Minor));
        assert_eq!(with("powersave", "intel_pstate"), Some(Severity::Hint));
        assert_eq!(with("performance", "acpi-cpufreq"), None);
    }
}
