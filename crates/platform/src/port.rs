//! The ports of a platform and their Device Control settings.
//!
//! | port | name |
//! | --- | --- |
//! | of an endpoint | its slot; [`CARD`] without slots |
//! | upstream port of a switch | the switch |
//! | downstream port of a switch, or root port | `ABOVE/BELOW`, by the device below it: `root/rha25` |

use crate::{Platform, ROOT};

/// Name of the endpoint if there are no slots.
pub const CARD: &str = "card";

/// A link between two ports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkEnds<'a> {
    /// Device above: [`ROOT`] or a switch.
    pub above: &'a str,
    /// Device below: a switch, a slot, or [`CARD`]. Also the name of the lower port.
    pub below: &'a str,
}

impl LinkEnds<'_> {
    /// Name of the upper port.
    #[must_use]
    pub fn upper_port(&self) -> String {
        upper_port(self.above, self.below)
    }
}

/// Route of requests from one card to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PeerRoute {
    /// Through the lowest common switch.
    BySwitch,
    /// Through the root complex.
    ByRoot,
    /// Blocked: a port below redirects them upstream, and this one neither forwards them upstream nor sends them
    /// back.
    Nowhere(String),
}

/// The port of `above` to which `below` is attached.
///
/// ```
/// assert_eq!(lanemark_platform::upper_port("root", "rha25"), "root/rha25");
/// ```
#[must_use]
pub fn upper_port(above: &str, below: &str) -> String {
    format!("{above}/{below}")
}

impl Platform {
    /// All links: first those above switches, then those above cards, in the order of the file.
    #[must_use]
    pub fn links(&self) -> Vec<LinkEnds<'_>> {
        let switches = self.switches.iter().map(|switch| LinkEnds { above: &switch.below, below: &switch.name });
        let mut links: Vec<LinkEnds<'_>> = switches.collect();
        links.extend(self.slots.iter().map(|slot| LinkEnds { above: &slot.below, below: &slot.name }));
        if self.slots.is_empty() {
            links.push(LinkEnds { above: ROOT, below: CARD });
        }
        links
    }

    /// Trained generation and number of lanes of a link.
    ///
    /// ```
    /// let board = lanemark_platform::preset("rosta-virtex7").unwrap().unwrap();
    /// let trained: Vec<_> = board.links().into_iter().map(|link| board.trained_at(link)).collect();
    /// assert_eq!(trained[..4], [(2, 8), (3, 4), (3, 4), (2, 4)]);
    /// ```
    #[must_use]
    pub fn trained_at(&self, link: LinkEnds<'_>) -> (u32, u32) {
        match self.switches.iter().find(|switch| switch.name == link.below) {
            Some(switch) => (switch.generation.value, switch.width_lanes.value),
            None => (self.link.generation.value, self.link.width_lanes.value),
        }
    }

    /// Links from a card up to the root, starting with the card's own; empty if the card does not exist.
    #[must_use]
    pub fn way_up(&self, card: usize) -> Vec<LinkEnds<'_>> {
        let links = self.links();
        let above = |below: &str| links.iter().find(|link| link.below == below).copied();
        let mut way: Vec<LinkEnds<'_>> = Vec::new();
        let mut next = self.card_name(card).and_then(above);
        // Limit against cycles: no path is longer than the number of links.
        while let Some(link) = next.filter(|_| way.len() < links.len()) {
            way.push(link);
            next = above(link.above);
        }
        way
    }

    /// Whether this port forwards requests from below upstream, even those for peers (ACS P2P Request Redirect).
    #[must_use]
    pub fn redirects(&self, port: &str) -> bool {
        self.ports.iter().any(|other| other.name == port && other.acs_redirect.value)
    }

    /// Whether this port can redirect: it is a downstream port of a switch.
    pub(crate) fn can_redirect(&self, port: &str) -> bool {
        let above = port.split_once('/').map(|(above, _)| above);
        above.is_some_and(|above| self.switches.iter().any(|switch| switch.name == above))
    }

    /// Route of requests from one card to another: up to their lowest common switch, and further if a port on the way
    /// redirects them. `None` if a card does not exist.
    ///
    /// ```
    /// use lanemark_platform::{Origin, PeerRoute, preset};
    /// let rosta = preset("rosta-virtex7").unwrap().unwrap();
    /// assert_eq!(rosta.peer_route(0, 1), Some(PeerRoute::BySwitch));
    /// let all = ["rc47a/fpga0", "rha25/rc47a"];
    /// let redirected = all.iter().try_fold(rosta, |rosta, port| rosta.with_acs_redirect(port, true, Origin::Given("BIOS".to_owned())));
    /// assert_eq!(redirected?.peer_route(0, 1), Some(PeerRoute::ByRoot));
    /// # Ok::<(), lanemark_platform::PlatformError>(())
    /// ```
    #[must_use]
    pub fn peer_route(&self, from: usize, to: usize) -> Option<PeerRoute> {
        let (up, down) = (self.way_up(from), self.way_up(to));
        up.last()?;
        down.last()?;
        for (place, link) in up.iter().enumerate() {
            let is_above_both = link.above != ROOT && down.iter().any(|other| other.above == link.above);
            if !is_above_both || self.redirects(&link.upper_port()) {
                continue;
            }
            // Requests turn around at the lowest common switch; further up, none is sent back to where it came from.
            let came_past = place > 0 && down.contains(link);
            return Some(if came_past { PeerRoute::Nowhere(link.upper_port()) } else { PeerRoute::BySwitch });
        }
        Some(PeerRoute::ByRoot)
    }

    /// Name of the card with this number.
    #[must_use]
    pub fn card_name(&self, card: usize) -> Option<&str> {
        match self.slots.get(card) {
            Some(slot) => Some(&slot.name),
            None => (self.slots.is_empty() && card == 0).then_some(CARD),
        }
    }

    /// Names of all ports: for each link the upper one, then the lower one.
    #[must_use]
    pub fn port_names(&self) -> Vec<String> {
        self.links().iter().flat_map(|link| [link.upper_port(), link.below.to_owned()]).collect()
    }

    /// `Max_Payload_Size` of this port, in bytes.
    ///
    /// ```
    /// let card = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
    /// assert_eq!(card.mps_bytes_of("card"), 512);
    /// ```
    #[must_use]
    pub fn mps_bytes_of(&self, port: &str) -> u32 {
        let own = self.ports.iter().find(|other| other.name == port && other.mps_bytes.value > 0);
        own.map_or(self.link.mps_bytes.value, |port| port.mps_bytes.value)
    }

    /// Maximum payload on a link, in bytes: the smaller `Max_Payload_Size` of its ports.
    #[must_use]
    pub fn mps_bytes_across(&self, link: LinkEnds<'_>) -> u32 {
        self.mps_bytes_of(&link.upper_port()).min(self.mps_bytes_of(link.below))
    }

    /// Largest `Max_Payload_Size` of all ports, in bytes.
    #[must_use]
    pub fn largest_mps_bytes(&self) -> u32 {
        self.port_names().iter().map(|port| self.mps_bytes_of(port)).max().unwrap_or(self.link.mps_bytes.value)
    }

    /// Smallest `Max_Payload_Size` of all ports, in bytes.
    #[must_use]
    pub fn smallest_mps_bytes(&self) -> u32 {
        self.port_names().iter().map(|port| self.mps_bytes_of(port)).min().unwrap_or(self.link.mps_bytes.value)
    }

    /// Largest supported `Max_Payload_Size` of this port, in bytes.
    #[must_use]
    pub fn mps_supported_bytes_of(&self, port: &str) -> u32 {
        let switch = self.switch_of(port).map(|switch| switch.mps_supported_bytes.value);
        let other = match port.split_once('/') {
            Some((ROOT, _)) => self.root_complex.mps_supported_bytes.value,
            _ => self.endpoint.mps_supported_bytes.value,
        };
        switch.unwrap_or(other).max(self.link.mps_bytes.value)
    }

    /// Posted data credits that this port advertises.
    pub(crate) fn posted_data_credits_of(&self, port: &str) -> u32 {
        let switch = self.switch_of(port).map(|switch| switch.posted_data_credits.value);
        let other = match port.split_once('/') {
            Some((ROOT, _)) => self.root_complex.posted_data_credits.value,
            _ => self.link.posted_data_credits.value,
        };
        switch.unwrap_or(other)
    }

    /// The switch to which this port belongs; `None` for a root port or a card.
    fn switch_of(&self, port: &str) -> Option<&crate::Switch> {
        let name = port.split_once('/').map_or(port, |(above, _)| above);
        self.switches.iter().find(|switch| switch.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::PeerRoute::{ByRoot, BySwitch, Nowhere};
    use crate::{CARD, preset};

    #[test]
    fn each_link_has_two_ports_and_a_single_card_is_named_card() {
        let card = preset("card-gen5-x16").unwrap().unwrap();
        assert_eq!(card.port_names(), ["root/card", CARD]);
        let rosta = preset("rosta-virtex7").unwrap().unwrap();
        let names = rosta.port_names();
        assert_eq!(names.len(), 2 * (3 + 8));
        for name in ["root/rha25", "rha25", "rha25/rc47b", "rc47b", "rc47b/fpga7", "fpga7"] {
            assert!(names.iter().any(|other| other == name), "{name}");
        }
        let way: Vec<String> = rosta.way_up(4).iter().map(super::LinkEnds::upper_port).collect();
        assert_eq!(way, ["rc47b/fpga4", "rha25/rc47b", "root/rha25"]);
        assert!(rosta.way_up(8).is_empty());
        assert_eq!((rosta.card_name(7), rosta.card_name(8), card.card_name(1)), (Some("fpga7"), None, None));
    }

    #[test]
    fn redirected_requests_go_upstream_or_are_blocked() {
        let rosta = preset("rosta-virtex7").unwrap().unwrap();
        let way = |ports: &[&str], to| {
            let origin = || crate::Origin::Given("a test".to_owned());
            let set = |rosta: crate::Platform, port: &&str| rosta.with_acs_redirect(port, true, origin());
            ports.iter().try_fold(rosta.clone(), set).unwrap().peer_route(0, to)
        };
        assert_eq!((way(&[], 1), way(&[], 4), way(&[], 8)), (Some(BySwitch), Some(BySwitch), None));
        // The port of the other card does not affect requests that arrive from above.
        assert_eq!(way(&["rc47a/fpga1"], 1), Some(BySwitch));
        assert_eq!(way(&["rc47a/fpga0"], 1), Some(Nowhere("rha25/rc47a".to_owned())));
        assert_eq!(way(&["rc47a/fpga0", "rha25/rc47a"], 1), Some(ByRoot));
        // A card on the other board: the request passes the lower switch in any case.
        assert_eq!(way(&["rc47a/fpga0"], 4), Some(BySwitch));
        assert_eq!(way(&["rha25/rc47a"], 4), Some(ByRoot));
        assert_eq!(way(&["rha25/rc47a"], 1), Some(BySwitch));
    }

    #[test]
    fn supported_payload_is_that_of_the_device_and_at_least_the_setting() {
        let rosta = preset("rosta-virtex7").unwrap().unwrap();
        let supported = |port| rosta.mps_supported_bytes_of(port);
        assert_eq!(
            [supported("root/rha25"), supported("rha25"), supported("rha25/rc47a"), supported("fpga0")],
            [128, 256, 256, 256]
        );
        let card = preset("card-gen5-x16").unwrap().unwrap();
        assert_eq!(card.mps_supported_bytes_of("root/card"), 512);
    }
}
