//! The links beside which imported rates stand: that of a platform, or those of the cards in a listing.

use lanemark_import::LinkLimit;
use lanemark_inventory::{Class, Function, Inventory, Link, Width};
use lanemark_platform::Platform;
use lanemark_record::{Imported, ImportedFigure};
use lanemark_wire::config::{LinkSpeed, PortType};
use lanemark_wire::{Generation, Lanes, Mps};

/// Links of cards, which limit imported rates.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportLimits {
    cards: Vec<Card>,
}

/// A card and its link.
#[derive(Clone, Debug, PartialEq)]
struct Card {
    /// Domain, bus and device; `None` for the card of a platform.
    place: Option<(u32, u8, u8)>,
    /// Base class: 01 storage, 02 network, 03 display; `None` if unknown.
    class: Option<u8>,
    link: LinkLimit,
}

/// No link is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoLimit {
    /// The platform's link has no rate.
    #[error("the link of {platform} has no payload rate")]
    Platform {
        /// Its name.
        platform: String,
    },
    /// No card of the listing shows its link and payload size.
    #[error("no card in {source_name} shows link capability and payload size: list them with sudo lspci -vvv")]
    Listing {
        /// Name of the listing.
        source_name: String,
    },
}

impl ImportLimits {
    /// The link of a platform's card.
    ///
    /// # Errors
    /// [`NoLimit::Platform`] for a link that the tables of PCIe do not have.
    pub fn of_platform(platform: &Platform) -> Result<ImportLimits, NoLimit> {
        let link = &platform.link;
        let found = u8::try_from(link.generation.value)
            .ok()
            .and_then(Generation::from_number)
            .zip(u8::try_from(link.width_lanes.value).ok().and_then(Lanes::new))
            .zip(Mps::new(link.mps_bytes.value));
        let Some(((generation, lanes), mps)) = found else {
            return Err(NoLimit::Platform { platform: platform.name.clone() });
        };
        let link = LinkLimit { source: platform.name.clone(), generation, lanes, mps };
        Ok(ImportLimits { cards: vec![Card { place: None, class: None, link }] })
    }

    /// The links of the endpoints in a listing, at the best state that both ends support: an idle card may be slower.
    ///
    /// # Errors
    /// [`NoLimit::Listing`] if none shows its link and payload size.
    pub fn of_listing(inventory: &Inventory) -> Result<ImportLimits, NoLimit> {
        let tree = inventory.tree();
        let cards: Vec<Card> = (0..inventory.functions.len())
            .filter_map(|place| card(inventory, &inventory.functions[place], tree.parent(place)))
            .collect();
        if cards.is_empty() {
            return Err(NoLimit::Listing { source_name: inventory.source.to_string() });
        }
        Ok(ImportLimits { cards })
    }

    /// The link of a figure: that of the card at its address, or else the fastest one among the cards of its tool's class,
    /// so that no rate is called impossible because of another card.
    pub(super) fn of(&self, imported: &Imported, figure: &ImportedFigure) -> Option<&LinkLimit> {
        let place = figure.device.as_deref().and_then(place_in);
        if let Some(card) = self.cards.iter().find(|card| place.is_some() && card.place == place) {
            return Some(&card.link);
        }
        let class = match imported.tool.as_str() {
            "nvbandwidth" | "gdrcopy" | "bandwidthTest" => Some(0x03),
            "perftest" | "osu" => Some(0x02),
            "fio" => Some(0x01),
            _ => None,
        };
        let fastest = |is_candidate: &dyn Fn(&&Card) -> bool| {
            let rate = |card: &&Card| card.link.one_way().unwrap_or(0.0);
            self.cards.iter().filter(is_candidate).max_by(|one, other| rate(one).total_cmp(&rate(other)))
        };
        let of_class = |card: &&Card| card.class.is_some() && card.class == class;
        fastest(&of_class).or_else(|| fastest(&|_| true)).map(|card| &card.link)
    }
}

/// An endpoint with its link; `None` for other functions, and if its link or payload size was not seen.
fn card(inventory: &Inventory, function: &Function, parent: Option<usize>) -> Option<Card> {
    let express = function.pcie()?;
    if !matches!(express.kind.get(), Some(PortType::Endpoint | PortType::LegacyEndpoint)) {
        return None;
    }
    let own = function.link()?;
    let above = parent.and_then(|place| inventory.functions[place].link());
    let generation = |link: &Link| link.fastest.get().and_then(LinkSpeed::generation);
    let lanes = |link: &Link| link.widest.get().and_then(Width::lanes);
    let slowest = |own: Generation, above: Option<Generation>| above.filter(|above| *above < own).unwrap_or(own);
    let narrowest = |own: Lanes, above: Option<Lanes>| above.filter(|above| above.count() < own.count()).unwrap_or(own);
    let generation = slowest(generation(own)?, above.and_then(generation));
    let lanes = narrowest(lanes(own)?, above.and_then(lanes));
    let mps = express.mps.get().or(express.mps_supported.get())?;
    let address = function.address;
    Some(Card {
        place: Some((address.domain, address.bus(), address.function.device())),
        class: function.class.get().map(Class::base),
        link: LinkLimit { source: address.to_string(), generation, lanes, mps },
    })
}

/// Domain, bus and device in the name of a device, such as `GPU 0 (00000000:41:00)`.
fn place_in(device: &str) -> Option<(u32, u8, u8)> {
    let (_, rest) = device.rsplit_once('(')?;
    let mut parts = rest.trim_end_matches(')').split(':');
    let domain = u32::from_str_radix(parts.next()?, 16).ok()?;
    let bus = u8::from_str_radix(parts.next()?, 16).ok()?;
    let device = parts.next()?.split('.').next()?;
    Some((domain, bus, u8::from_str_radix(device, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_in_the_name_of_a_device_is_read() {
        assert_eq!(place_in("GPU 0 (00000000:41:00)"), Some((0, 0x41, 0)));
        assert_eq!(place_in("GPU 0 (00000001:C1:1f.0)"), Some((1, 0xc1, 0x1f)));
        for other in ["GPU 0", "GPU 0 (NVIDIA H100)", "GPU 0 (0:41)", "GPU 0 ()"] {
            assert_eq!(place_in(other), None, "{other}");
        }
    }
}
