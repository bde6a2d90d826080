//! Check of switch uplinks.

use super::case::{Case, Collector, by_hand};
use super::edge::Edge;
use super::gain;
use lanemark_record::diagnosis::Severity;
use lanemark_wire::config::PortType;

/// Switch: the link above it, and the links below it that lead to endpoints.
pub(crate) struct Switch<'e> {
    pub(crate) uplink: &'e Edge,
    pub(crate) ports: Vec<&'e Edge>,
}

impl Switch<'_> {
    pub(crate) fn uplink_ceiling(&self, case: &Case<'_>) -> Option<f64> {
        ceiling(case, self.uplink)
    }

    pub(crate) fn sum_of_ceilings(&self, case: &Case<'_>) -> Option<f64> {
        self.ports.iter().map(|edge| ceiling(case, edge)).sum()
    }
}

fn ceiling(case: &Case<'_>, edge: &Edge) -> Option<f64> {
    gain::write_ceiling(edge.trained(case)?, edge.mps(case)?)
}

/// All switches in the inventory.
pub(crate) fn switches<'e>(case: &'e Case<'_>) -> Vec<Switch<'e>> {
    let kind = |place: usize| case.function(place).pcie().and_then(|express| express.kind.get());
    let uplinks = case.edges.iter().filter(|edge| kind(edge.lower) == Some(PortType::UpstreamPort));
    let with_ports = uplinks.map(|uplink| {
        let below = case.edges.iter().filter(|edge| {
            let is_end = matches!(kind(edge.lower), Some(PortType::Endpoint | PortType::LegacyEndpoint));
            is_end && edge.upper.and_then(|port| case.tree.parent(port)) == Some(uplink.lower)
        });
        Switch { uplink, ports: below.collect() }
    });
    with_ports.collect()
}

/// Finds switches whose uplink carries less than the sum of the links below.
pub(crate) fn shared(case: &Case<'_>, found: &mut Collector) {
    for switch in switches(case).into_iter().filter(|switch| switch.ports.len() > 1) {
        let (Some(above), Some(sum)) = (switch.uplink_ceiling(case), switch.sum_of_ceilings(case)) else { continue };
        let Some(rate) = switch.uplink.trained(case).filter(|_| sum > above * SLACK) else { continue };
        let count = switch.ports.len();
        let reason = format!(
            "{count} devices share an uplink of {rate}; their links together have {:.1} times its bandwidth",
            sum / above
        );
        let assumes = "all devices write concurrently with fair shares, payload sizes as set".to_owned();
        let share = |whole: f64| Some(whole / count as f64);
        let gain = gain::bytes_per_s("DMA ceiling per device while all are active", share(above), share(sum), assumes);
        let words = "move active devices to slots of their own; nothing is lost while only one is active";
        let devices = switch.ports.iter().map(|edge| edge.lower(case));
        found.add(Severity::Hint, devices, None, reason, gain, by_hand(words));
    }
}

/// Finds devices whose own link carries more than a link above it.
///
/// Thunderbolt ports report Gen1 x4 whatever they carry, so this is a hint only.
pub(crate) fn narrow(case: &Case<'_>, found: &mut Collector) {
    for (place, function, _) in case.requesters() {
        let Some(own) = case.edge_above(place).filter(|edge| edge.lower == place) else { continue };
        let above =
            case.tree.path_up(place).skip(1).filter_map(|port| case.edges.iter().find(|edge| edge.lower == port));
        let ceilings = above.filter_map(|edge| Some((edge, ceiling(case, edge)?)));
        let Some((narrowest, least)) = ceilings.min_by(|a, b| a.1.total_cmp(&b.1)) else { continue };
        let (Some(now), Some(rate)) = (ceiling(case, own), own.trained(case)) else { continue };
        let Some(uplink) = narrowest.trained(case).filter(|_| now > least * SLACK) else { continue };
        let reason = format!(
            "its link of {rate} is below the uplink of {} with {uplink}, which carries less",
            narrowest.lower(case).address
        );
        let assumes = format!("back-to-back writes with the payload sizes as set; {uplink} now, {rate} after");
        let gain = gain::bytes_per_s("DMA ceiling between device and host", Some(least), Some(now), assumes);
        let words = "move the device to a slot of a root port or below a faster uplink, and see whether the uplink itself is below its capability; \
                     nothing is lost for a device slower than the uplink, or below Thunderbolt, whose ports report Gen1 x4 whatever they carry";
        found.add(Severity::Hint, [function], None, reason, gain, by_hand(words));
    }
}

/// Tolerance for different payload sizes on the links.
const SLACK: f64 = 1.05;

#[cfg(test)]
mod tests {
    use crate::doctor::sample::{self, findings_of};
    use lanemark_wire::config::LinkSpeed;

    #[test]
    fn two_cards_below_one_uplink_share_it() {
        let found = findings_of(&sample::switch(2), "uplink");
        assert_eq!((found.len(), found[0].functions.len()), (1, 2));
        assert!(found[0].reason.contains("have 2.0 times its bandwidth"), "{}", found[0].reason);
        assert_eq!(findings_of(&sample::switch(1), "uplink"), []);
    }

    #[test]
    fn a_device_below_a_slower_uplink_is_found() {
        let with = |uplink: LinkSpeed, lanes: u8| {
            let mut machine = sample::switch(1);
            // The root port and the upstream port of the switch.
            for place in [0, 1] {
                sample::link(&mut machine, place).speed = sample::known(uplink);
                sample::link(&mut machine, place).width = sample::known(lanemark_inventory::Width(lanes));
            }
            findings_of(&machine, "narrow_uplink")
        };
        let found = with(LinkSpeed::Gt8, 16);
        assert_eq!((found.len(), found[0].functions.as_slice()), (1, &["0000:03:00.0".to_owned()][..]));
        assert_eq!(
            found[0].reason,
            "its link of Gen4 x16 is below the uplink of 0000:01:00.0 with Gen3 x16, which carries less"
        );
        assert!((found[0].gain.factor().unwrap() - 2.0).abs() < 0.02, "{:?}", found[0].gain);
        assert_eq!(with(LinkSpeed::Gt16, 8).len(), 1);
        assert_eq!(with(LinkSpeed::Gt16, 16), []);
        assert_eq!(findings_of(&sample::healthy(), "narrow_uplink"), []);
    }

    #[test]
    fn an_uplink_as_fast_as_its_ports_together_is_not_shared() {
        let mut machine = sample::switch(2);
        for port in sample::switch_ports(2) {
            for place in [port, sample::card_below(port)] {
                sample::link(&mut machine, place).width = sample::known(lanemark_inventory::Width(8));
            }
        }
        assert_eq!(findings_of(&machine, "uplink"), []);
    }
}
