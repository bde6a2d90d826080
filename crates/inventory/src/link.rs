//! A link as one of its two ports sees it.

use crate::{Seen, Why};
use lanemark_wire::{Generation, Lanes};
use std::fmt;

/// A link as one of its two ports sees it: what the port could do, and what was trained.
#[derive(Clone, PartialEq, Debug)]
pub struct Link {
    /// The fastest this port can.
    pub fastest: Seen<Speed>,
    /// The widest this port can, in lanes.
    pub widest: Seen<Width>,
    /// What it runs at.
    pub speed: Seen<Speed>,
    /// How wide it was trained.
    pub width: Seen<Width>,
    /// The speed that software allows, Target Link Speed.
    pub target: Seen<Speed>,
    /// Active state power management that this port can.
    pub aspm_supported: Seen<Aspm>,
    /// Active state power management that is on.
    pub aspm_enabled: Seen<Aspm>,
    /// L1 substates: `Known(None)` if the function has no such capability.
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

/// Transfers per second and lane, in millions: 8000 is 8 GT/s, Gen3.
///
/// ```
/// use lanemark_inventory::Speed;
/// use lanemark_wire::Generation;
/// let speed = Speed::from_code(3).unwrap();
/// assert_eq!((speed.megatransfers_per_s(), speed.to_string()), (8000, "8 GT/s".to_owned()));
/// assert_eq!(speed.generation(), Some(Generation::Gen3));
/// assert_eq!("2.5 GT/s PCIe".parse(), Ok(Speed::from_code(1).unwrap()));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Speed(u32);

impl Speed {
    /// Every speed, by its code in Link Capabilities less one.
    pub const ALL: [Speed; 6] = [Speed(2_500), Speed(5_000), Speed(8_000), Speed(16_000), Speed(32_000), Speed(64_000)];

    /// The speed with this code (1 to 6) in Link Capabilities, Link Status or Link Control 2.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Speed> {
        if code >= 1 && code <= 6 { Some(Speed::ALL[code as usize - 1]) } else { None }
    }

    /// Transfers per second and lane, in millions.
    #[must_use]
    pub const fn megatransfers_per_s(self) -> u32 {
        self.0
    }

    /// 1 to 6.
    #[must_use]
    pub fn number(self) -> u8 {
        Speed::ALL.iter().position(|speed| *speed == self).map_or(0, |at| at as u8 + 1)
    }

    /// The generation of `wire`, which does not know Gen6 yet.
    #[must_use]
    pub fn generation(self) -> Option<Generation> {
        Generation::from_number(self.number())
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} GT/s", f64::from(self.0) / 1e3)
    }
}

impl std::str::FromStr for Speed {
    type Err = ();

    /// Reads what sysfs (`8.0 GT/s PCIe`) and lspci (`8GT/s`) write.
    fn from_str(text: &str) -> Result<Speed, ()> {
        let (number, _) = text.split_once("GT/s").ok_or(())?;
        let number: f64 = number.trim().parse().map_err(|_| ())?;
        Speed::ALL.into_iter().find(|speed| number * 1e3 == f64::from(speed.0)).ok_or(())
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

/// States of active state power management.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Aspm {
    /// L0s: one direction asleep, back in well under a microsecond.
    pub l0s: bool,
    /// L1: both directions asleep, back in microseconds.
    pub l1: bool,
}

impl Aspm {
    /// From the two bits of Link Capabilities or Link Control: 1 is L0s, 2 is L1.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Aspm {
        Aspm { l0s: bits & 1 != 0, l1: bits & 2 != 0 }
    }

    /// Whether any is.
    #[must_use]
    pub const fn any(self) -> bool {
        self.l0s || self.l1
    }
}

impl fmt::Display for Aspm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.l0s, self.l1) {
            (false, false) => "none",
            (true, false) => "L0s",
            (false, true) => "L1",
            (true, true) => "L0s L1",
        })
    }
}

/// Which L1 substates are on: the low four bits of L1 PM Substates Control 1.
///
/// Source: PCI Express Base Specification 5.0, section 7.8.3.3.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct L1Substates(pub u8);

impl L1Substates {
    /// Bit 0: PCI-PM L1.2.
    #[must_use]
    pub const fn pcipm_l1_2(self) -> bool {
        self.0 & 1 != 0
    }

    /// Bit 1: PCI-PM L1.1.
    #[must_use]
    pub const fn pcipm_l1_1(self) -> bool {
        self.0 & 1 << 1 != 0
    }

    /// Bit 2: ASPM L1.2.
    #[must_use]
    pub const fn aspm_l1_2(self) -> bool {
        self.0 & 1 << 2 != 0
    }

    /// Bit 3: ASPM L1.1.
    #[must_use]
    pub const fn aspm_l1_1(self) -> bool {
        self.0 & 1 << 3 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_speeds_and_generations_agree() {
        for code in 1..=6 {
            let speed = Speed::from_code(code).unwrap();
            assert_eq!(speed.number(), code);
            if let Some(generation) = speed.generation() {
                assert_eq!(generation.rate().megatransfers_per_s, speed.megatransfers_per_s());
            }
        }
        assert_eq!((Speed::from_code(0), Speed::from_code(7)), (None, None));
    }

    #[test]
    fn speeds_are_read_as_sysfs_and_lspci_write_them_and_no_other() {
        for (text, code) in [("2.5 GT/s PCIe", 1), ("5.0 GT/s PCIe", 2), ("8GT/s", 3), ("64.0 GT/s PCIe", 6)] {
            assert_eq!(text.parse(), Ok(Speed::from_code(code).unwrap()), "{text}");
        }
        for text in ["", "Unknown", "Unknown speed", "GT/s", "9GT/s", "8 GHz", "nanGT/s"] {
            assert_eq!(text.parse::<Speed>(), Err(()), "{text}");
        }
    }
}
