//! A link, by the registers of one of its ports.

use crate::{Seen, Why};
use lanemark_wire::Lanes;
use lanemark_wire::config::{Aspm, L1Substates, LinkSpeed};
use std::fmt;

/// A link, by the registers of one of its ports: what the port supports, and what was negotiated.
#[derive(Clone, PartialEq, Debug)]
pub struct Link {
    /// Max Link Speed of this port.
    pub fastest: Seen<LinkSpeed>,
    /// Maximum Link Width of this port, in lanes.
    pub widest: Seen<Width>,
    /// Current Link Speed.
    pub speed: Seen<LinkSpeed>,
    /// Negotiated Link Width.
    pub width: Seen<Width>,
    /// Target Link Speed, set by software.
    pub target: Seen<LinkSpeed>,
    /// ASPM Support.
    pub aspm_supported: Seen<Aspm>,
    /// ASPM Control: the enabled states.
    pub aspm_enabled: Seen<Aspm>,
    /// Enabled L1 PM Substates: `Known(None)` without the capability.
    pub l1_substates: Seen<Option<L1Substates>>,
    /// Data Link Layer Link Active; `Known(None)` if the port does not report it.
    pub data_link_active: Seen<Option<bool>>,
}

impl Link {
    /// A link with every field unseen, for `why`.
    #[must_use]
    pub fn unseen(why: &Why) -> Link {
        Link {
            fastest: Seen::Unseen(why.clone()),
            widest: Seen::Unseen(why.clone()),
            speed: Seen::Unseen(why.clone()),
            width: Seen::Unseen(why.clone()),
            target: Seen::Unseen(why.clone()),
            aspm_supported: Seen::Unseen(why.clone()),
            aspm_enabled: Seen::Unseen(why.clone()),
            l1_substates: Seen::Unseen(why.clone()),
            data_link_active: Seen::Unseen(why.clone()),
        }
    }
}

/// A link width as a register or sysfs reports it. 0 means that the link is down; values other than those of [`Lanes`]
/// occur in broken devices.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Width(pub u8);

impl Width {
    /// The width as [`Lanes`], if the specification defines it; `None` for a link that is down.
    #[must_use]
    pub const fn lanes(self) -> Option<Lanes> {
        Lanes::new(self.0)
    }
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "x{}", self.0)
    }
}

/// Parses a link speed in the formats of sysfs (`8.0 GT/s PCIe`) and lspci (`8GT/s`).
pub(crate) fn speed_in(text: &str) -> Option<LinkSpeed> {
    let number: f64 = text.split_once("GT/s")?.0.trim().parse().ok()?;
    LinkSpeed::ALL.into_iter().find(|speed| number * 1e3 == f64::from(speed.megatransfers_per_s()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_speeds_are_parsed_in_the_formats_of_sysfs_and_lspci() {
        for (text, code) in [("2.5 GT/s PCIe", 1), ("5.0 GT/s PCIe", 2), ("8GT/s", 3), ("64.0 GT/s PCIe", 6)] {
            assert_eq!(speed_in(text), LinkSpeed::from_code(code), "{text}");
        }
        for text in ["", "Unknown", "Unknown speed", "GT/s", "9GT/s", "8 GHz", "nanGT/s"] {
            assert_eq!(speed_in(text), None, "{text}");
        }
    }
}
