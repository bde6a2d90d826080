//! Check of peer-to-peer traffic below one switch.

use super::case::{Case, Collector, command, setpci, unknown};
use super::gain;
use super::uplink::switches;
use lanemark_record::diagnosis::Gain;

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

#[cfg(test)]
mod tests {
    use crate::doctor::sample::{self, findings_of, known};
    use lanemark_inventory::Acs;
    use lanemark_wire::config::AccessControl;

    #[test]
    fn redirect_between_two_peers_is_found() {
        let off = AccessControl {
            source_validation: true,
            translation_blocking: false,
            request_redirect: false,
            completion_redirect: true,
            upstream_forwarding: true,
            egress_control: false,
            direct_translated: false,
        };
        let on = AccessControl { request_redirect: true, ..off };
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
        assert_eq!(with(off, 2), []);
        assert_eq!(with(on, 1), []);
    }
}
