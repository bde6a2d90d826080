//! Peer-to-peer traffic: a check of peers below one switch, and facts about peers below different root ports.

use super::case::{Case, Collector, command, setpci, unknown};
use super::gain;
use super::uplink::switches;
use lanemark_inventory::Function;
use lanemark_record::diagnosis::Gain;
use lanemark_wire::config::PortType;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

/// Finds ACS request redirect, which sends peer-to-peer writes up to the root and back down.
pub(crate) fn redirect(case: &Case<'_>, found: &mut Collector) {
    for switch in switches(case).into_iter().filter(|switch| switch.ports.len() > 1) {
        let ports: Vec<_> = switch.ports.iter().map(|edge| edge.upper(case)).collect::<Option<_>>().unwrap_or_default();
        let on =
            |port: &&&lanemark_inventory::Function| port.acs.present().is_some_and(|acs| acs.enabled.request_redirect);
        let redirecting: Vec<_> = ports.iter().filter(on).copied().collect();
        for port in ports.iter().filter(|port| port.acs.why().is_some()) {
            found.add_unseen(
                "whether peers below a switch can communicate directly (ACS)",
                "configuration space beyond 256 B was not read",
                "run as root, or make the dump with sudo lspci -xxxx",
                *port,
            );
        }
        if redirecting.is_empty() {
            continue;
        }
        let reason = format!(
            "{} of {} ports of one switch redirect requests (ACS): peer-to-peer traffic goes up to the root and back down",
            redirecting.len(),
            ports.len()
        );
        let (uplink, sum) = (switch.uplink_ceiling(case), switch.sum_of_ceilings(case));
        let gain = match (uplink, sum) {
            (Some(uplink), Some(sum)) if sum > uplink => {
                let assumes =
                    "all peers send concurrently, payload sizes as set; at present the uplink carries all of it";
                gain::bytes_per_s("total of all peer-to-peer writes", Some(uplink), Some(sum), assumes.to_owned())
            }
            (Some(_), Some(_)) => unknown("the uplink has the bandwidth of the ports; the added latency is unknown"),
            _ => Gain::Unknown { because: "link state or payload size of a port was not seen".to_owned() },
        };
        let list: Vec<String> = redirecting.iter().map(|port| port.address.to_string()).collect();
        let words = format!(
            "disables the isolation that virtual machines need; at every boot: pci=disable_acs_redir={}",
            list.join(";")
        );
        let fix = command(setpci(redirecting.iter().copied(), "ECAP_ACS+6.w=0:000c"), &words);
        found.add(gain::severity(&gain), redirecting, None, reason, gain, fix);
    }
}

/// What is known about requests between devices below different root ports, one sentence each; nothing if fewer than two root
/// ports have devices.
///
/// These are facts and no findings: no setting is wrong by itself.
pub(crate) fn across_root_ports(case: &Case<'_>) -> Vec<String> {
    let mut below: BTreeMap<usize, Vec<&Function>> = BTreeMap::new();
    for (place, function, _) in case.requesters() {
        if let Some(port) = case.tree.path_up(place).last().filter(|port| is_root_port(case.function(*port))) {
            below.entry(port).or_default().push(function);
        }
    }
    if below.len() < 2 {
        return Vec::new();
    }
    let ports: Vec<&Function> = below.keys().map(|port| case.function(*port)).collect();
    let names = some(ports.iter().map(|port| port.address));
    if case.is_virtual_machine() {
        return vec![format!(
            "devices are below {} root ports ({names}), but this machine is virtual: the paths between the real devices are not \
             visible",
            ports.len()
        )];
    }
    let path = format!(
        "devices are below {} root ports ({names}): a request between two of them crosses the root complex; no register shows \
         whether it forwards it; most server processors do within a socket, some with less bandwidth than a switch",
        ports.len()
    );
    let devices: Vec<&[&Function]> = below.values().map(Vec::as_slice).collect();
    [Some(path), across_nodes(case, &devices), redirect_at_root_ports(&ports), across_groups(&devices)]
        .into_iter()
        .flatten()
        .collect()
}

fn is_root_port(function: &Function) -> bool {
    function.pcie().and_then(|express| express.kind.get()) == Some(PortType::RootPort)
}

/// NUMA nodes of the devices, if there are several.
fn across_nodes(case: &Case<'_>, devices: &[&[&Function]]) -> Option<String> {
    let nodes: BTreeSet<u32> =
        devices.iter().flat_map(|of| of.iter()).filter_map(|function| function.numa_node.present().copied()).collect();
    let effect = match case.inventory.processors.sockets.known() {
        Some(1) => "parts of one socket",
        _ => "between sockets, forwarding is usually slow; nodes may also be parts of one socket",
    };
    (nodes.len() > 1).then(|| format!("NUMA nodes {}: {effect}", some(nodes)))
}

/// ACS request redirect at root ports.
fn redirect_at_root_ports(ports: &[&Function]) -> Option<String> {
    let seen: Vec<bool> = ports
        .iter()
        .filter_map(|port| Some(port.acs.known()?.is_some_and(|acs| acs.enabled.request_redirect)))
        .collect();
    let on = seen.iter().filter(|on| **on).count();
    let hidden = match ports.len() - seen.len() {
        0 => String::new(),
        hidden => format!("; not known at {hidden}, whose ACS capability the source does not show"),
    };
    let effect = if on > 0 {
        ": requests from below them go to the IOMMU, which translates or blocks them if DMA translation is on"
    } else {
        ""
    };
    (!seen.is_empty())
        .then(|| format!("ACS P2P Request Redirect is on at {on} of {} root ports{effect}{hidden}", ports.len()))
}

/// IOMMU groups of the devices.
fn across_groups(devices: &[&[&Function]]) -> Option<String> {
    let mut ports_of: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
    for (port, of) in devices.iter().enumerate() {
        for group in of.iter().filter_map(|function| function.iommu_group.present()) {
            ports_of.entry(*group).or_default().insert(port);
        }
    }
    let shared: Vec<u32> = ports_of.iter().filter(|(_, ports)| ports.len() > 1).map(|(group, _)| *group).collect();
    match (shared.len(), ports_of.len()) {
        (_, 0) => None,
        (0, count) => Some(format!(
            "{count} IOMMU groups, none spans two root ports: if DMA translation is on, the driver of a device must map the BAR of \
             its peer"
        )),
        _ => Some(format!(
            "IOMMU group {} spans several root ports: its devices are not isolated from each other",
            some(shared)
        )),
    }
}

/// The first names, and the number of the others.
fn some<T: Display>(names: impl IntoIterator<Item = T>) -> String {
    const MOST: usize = 4;
    let names: Vec<String> = names.into_iter().map(|name| name.to_string()).collect();
    match names.len() {
        0..=MOST => names.join(", "),
        count => format!("{} and {} more", names[..MOST].join(", "), count - MOST),
    }
}

#[cfg(test)]
mod tests {
    use crate::doctor::sample::{self, findings_of, known};
    use crate::doctor::{DiagnosisRequest, diagnose};
    use lanemark_inventory::{Acs, Inventory, Why};
    use lanemark_wire::config::AccessControl;

    const OFF: AccessControl = AccessControl {
        source_validation: true,
        translation_blocking: false,
        request_redirect: false,
        completion_redirect: true,
        upstream_forwarding: true,
        egress_control: false,
        direct_translated: false,
    };

    #[test]
    fn redirect_between_two_peers_is_found() {
        let on = AccessControl { request_redirect: true, ..OFF };
        let with = |enabled: AccessControl, cards: usize| {
            let mut machine = sample::switch(cards);
            for port in sample::switch_ports(cards) {
                machine.functions[port].acs = known(Some(Acs { supported: on, enabled }));
            }
            findings_of(&machine, "peers")
        };
        let found = with(on, 2);
        assert_eq!((found.len(), found[0].functions.len()), (1, 2));
        assert!(
            found[0].fix.words.ends_with("pci=disable_acs_redir=0000:02:00.0;0000:02:01.0"),
            "{}",
            found[0].fix.words
        );
        assert_eq!(with(OFF, 2), []);
        assert_eq!(with(on, 1), []);
    }

    fn peers(machine: &Inventory) -> Vec<String> {
        diagnose(machine, &DiagnosisRequest::default()).peers
    }

    #[test]
    fn devices_below_different_root_ports_have_one_sentence_however_many_there_are() {
        let path = peers(&sample::root_ports(2));
        assert_eq!(path.len(), 2, "{path:?}");
        assert!(path[0].starts_with("devices are below 2 root ports (0000:00:01.0, 0000:00:02.0): "), "{}", path[0]);
        assert_eq!(path[1], "ACS P2P Request Redirect is on at 0 of 2 root ports");
        let many = peers(&sample::root_ports(16));
        assert!(many[0].contains("16 root ports (0000:00:01.0, 0000:00:02.0, 0000:00:03.0, 0000:00:04.0 and 12 more)"));
        assert_eq!(many.len(), 2);
        assert_eq!((peers(&sample::healthy()), peers(&sample::switch(2))), (vec![], vec![]));
        assert_eq!(diagnose(&sample::root_ports(2), &DiagnosisRequest::default()).findings, []);
    }

    #[test]
    fn nodes_groups_and_redirect_at_root_ports_are_named_as_far_as_they_were_seen() {
        let mut machine = sample::root_ports(2);
        let (ports, cards) = ([0, 1], [2, 3]);
        let said = |machine: &Inventory, words: &str| peers(machine).iter().any(|peers| peers.contains(words));
        for (node, card) in cards.into_iter().enumerate() {
            machine.functions[card].numa_node = known(Some(node as u32));
            machine.functions[card].iommu_group = known(Some(7));
        }
        assert!(said(&machine, "NUMA nodes 0, 1:") && said(&machine, "IOMMU group 7 spans several"));
        machine.processors.sockets = known(1);
        assert!(said(&machine, "NUMA nodes 0, 1: parts of one socket"));
        machine.functions[cards[1]].numa_node = known(Some(0));
        machine.functions[cards[1]].iommu_group = known(Some(8));
        assert!(!said(&machine, "NUMA") && said(&machine, "2 IOMMU groups, none spans two root ports"));
        let enabled = AccessControl { request_redirect: true, ..OFF };
        machine.functions[ports[0]].acs = known(Some(Acs { supported: enabled, enabled }));
        assert!(said(&machine, "Redirect is on at 1 of 2 root ports: requests from below them go to the IOMMU"));
        machine.functions[ports[1]].acs = sample::unseen();
        assert!(said(&machine, "DMA translation is on; not known at 1, whose ACS capability the source does not show"));
        machine.functions[ports[0]].acs = sample::unseen();
        assert!(!said(&machine, "ACS"));
        // Red Hat's root port: the emulator's.
        machine.functions[ports[0]].vendor = known(0x1b36);
        assert!(peers(&machine).len() == 1 && said(&machine, "this machine is virtual"));
        machine.functions[ports[0]].express = lanemark_inventory::Seen::Unseen(Why::NotInDump);
        assert_eq!(peers(&machine), [""; 0]);
    }
}
