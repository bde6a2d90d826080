//! A link as one of its two ports sees it.

use crate::{Seen, Why};
use lanemark_wire::Lanes;
use lanemark_wire::config::{Aspm, L1Substates, LinkSpeed};
use std::fmt;

/// A link as one of its two ports sees it: what the port could do, and what was trained.
#[derive(Clone, PartialEq, Debug)]
pub struct Link {
    /// The fastest this port can.
    pub fastest: Seen<LinkSpeed>,
    /// The widest this port can, in lanes.
    pub widest: Seen<Width>,
    /// What it runs at.
    pub speed: Seen<LinkSpeed>,
    /// How wide it was trained.
    pub width: Seen<Width>,
    /// The speed that software allows, Target Link Speed.
    pub target: Seen<LinkSpeed>,
    /// Active state power management that this port can.
    pub aspm_supported: Seen<Aspm>,
    /// Active state power management that is on.
    pub aspm_enabled: Seen<Aspm>,
    /// L1 substates that are on: `Known(None)` if the function has no such capability.
    pub l1_substates: Seen<Option<L1Substates>>,
    /// Whether the data link layer is up, where the port can tell: `Known(None)` where it cannot.
    pub data_link_active: Seen<Option<bool>>,
}

impl Link {
    /// One of which nothing is seen yet.
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

/// A number of lanes as a register or sysfs gives it: 0 is a link that is down, others than those of
/// [`Lanes`] occur in broken devices.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Width(pub u8);

impl Width {
    /// The width of `wire`, if the standard has it; none for a link that is down.
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

/// The speed in what sysfs (`8.0 GT/s PCIe`) and lspci (`8GT/s`) write.
pub(crate) fn speed_in(text: &str) -> Option<LinkSpeed> {
    let number: f64 = text.split_once("GT/s")?.0.trim().parse().ok()?;
    LinkSpeed::ALL.into_iter().find(|speed| number * 1e3 == f64::from(speed.megatransfers_per_s()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_read_as_sysfs_and_lspci_write_them_and_no_other() {
        for (text, code) in [("2.5 GT/s PCIe", 1), ("5.0 GT/s PCIe", 2), ("8GT/s", 3), ("64.0 GT/s PCIe", 6)] {
            assert_eq!(speed_in(text), LinkSpeed::from_code(code), "{text}");
        }
        for text in ["", "Unknown", "Unknown speed", "GT/s", "9GT/s", "8 GHz", "nanGT/s"] {
            assert_eq!(speed_in(text), None, "{text}");
        }
    }
}
