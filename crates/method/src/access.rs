//! Load and store instructions, and instructions that order them.

use crate::UnknownName;
use std::fmt;
use std::str::FromStr;

/// Bytes moved by one instruction.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Width {
    /// 1 B.
    B1,
    /// 2 B.
    B2,
    /// 4 B.
    B4,
    /// 8 B.
    B8,
    /// 16 B, an SSE register.
    B16,
    /// 32 B, an AVX register.
    B32,
    /// 64 B, an AVX-512 register.
    B64,
}

impl Width {
    /// All widths, ascending.
    pub const ALL: [Width; 7] = [Width::B1, Width::B2, Width::B4, Width::B8, Width::B16, Width::B32, Width::B64];

    /// The width in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        match self {
            Width::B1 => 1,
            Width::B2 => 2,
            Width::B4 => 4,
            Width::B8 => 8,
            Width::B16 => 16,
            Width::B32 => 32,
            Width::B64 => 64,
        }
    }

    /// Whether this width needs a vector register.
    #[must_use]
    pub const fn is_vector(self) -> bool {
        matches!(self, Width::B16 | Width::B32 | Width::B64)
    }
}

/// Instruction that moves the bytes. [`Verb`](crate::Verb) gives the direction.
///
/// Names on the command line and in records: `4` (plain, by width in bytes), `memcpy`, `rep_movsb`,
/// `nt16` (non-temporal: `MOVNTI` for 8 B, `MOVNTDQ` and its wider forms to store, `MOVNTDQA` and its
/// wider forms to load), `movdiri4`, `movdiri8`, `movdir64b`, `copy_to_device`.
///
/// ```
/// use lanemark_method::{Access, Width};
/// assert_eq!("nt32".parse(), Ok(Access::NonTemporal(Width::B32)));
/// assert_eq!(Access::Plain(Width::B4).to_string(), "4");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Access {
    /// Ordinary load or store of this width.
    Plain(Width),
    /// Non-temporal load or store. Stores are 8, 16, 32 or 64 B wide, loads 16, 32 or 64 B.
    NonTemporal(Width),
    /// `MOVDIRI`: direct store of 4 or 8 B, never write-combined.
    Movdiri(Width),
    /// `MOVDIR64B`: direct store of one aligned 64 B line.
    Movdir64b,
    /// The `memcpy` of the machine's C library, named in [`Facts::memcpy`](crate::Facts::memcpy).
    Memcpy,
    /// `REP MOVSB`.
    RepMovsb,
    /// Lanemark's own copy routine, which uses the instruction measured to be fastest for each size.
    CopyToDevice,
}

impl Access {
    /// All accesses, in the order shown to users.
    pub const ALL: [Access; 17] = [
        Access::Plain(Width::B1),
        Access::Plain(Width::B2),
        Access::Plain(Width::B4),
        Access::Plain(Width::B8),
        Access::Plain(Width::B16),
        Access::Plain(Width::B32),
        Access::Plain(Width::B64),
        Access::Memcpy,
        Access::RepMovsb,
        Access::NonTemporal(Width::B8),
        Access::NonTemporal(Width::B16),
        Access::NonTemporal(Width::B32),
        Access::NonTemporal(Width::B64),
        Access::Movdiri(Width::B4),
        Access::Movdiri(Width::B8),
        Access::Movdir64b,
        Access::CopyToDevice,
    ];

    /// Width of one instruction; `None` for copy routines, which mix widths.
    #[must_use]
    pub const fn width(self) -> Option<Width> {
        match self {
            Access::Plain(width) | Access::NonTemporal(width) | Access::Movdiri(width) => Some(width),
            Access::Movdir64b => Some(Width::B64),
            Access::Memcpy | Access::RepMovsb | Access::CopyToDevice => None,
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Access::Plain(width) => write!(f, "{}", width.bytes()),
            Access::NonTemporal(width) => write!(f, "nt{}", width.bytes()),
            Access::Movdiri(width) => write!(f, "movdiri{}", width.bytes()),
            Access::Movdir64b => f.write_str("movdir64b"),
            Access::Memcpy => f.write_str("memcpy"),
            Access::RepMovsb => f.write_str("rep_movsb"),
            Access::CopyToDevice => f.write_str("copy_to_device"),
        }
    }
}

impl FromStr for Access {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Access, UnknownName> {
        Access::ALL.into_iter().find(|access| access.to_string() == text).ok_or_else(|| UnknownName {
            name: text.to_owned(),
            what: "an access",
            known: Access::ALL.map(|access| access.to_string()).join(", "),
        })
    }
}

crate::name::by_name!(Access, |access: &Access| access.to_string());

/// Instruction or event that orders earlier accesses before later ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Fence {
    /// `SFENCE`: waits until all earlier stores have left the core, including those in write-combining buffers.
    Sfence,
    /// `LFENCE`: waits until all earlier loads have completed; stores may still be buffered.
    Lfence,
    /// `MFENCE`: waits for earlier loads and stores, and discards buffers of streaming loads.
    Mfence,
    /// Locked instruction on ordinary memory; orders and drains like `MFENCE`.
    Locked,
    /// Interrupt entry and return; drains write-combining buffers.
    Interrupt,
}

impl Fence {
    /// All fences, in the order shown to users.
    pub const ALL: [Fence; 5] = [Fence::Sfence, Fence::Lfence, Fence::Mfence, Fence::Locked, Fence::Interrupt];

    /// Name in files and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Fence::Sfence => "sfence",
            Fence::Lfence => "lfence",
            Fence::Mfence => "mfence",
            Fence::Locked => "locked",
            Fence::Interrupt => "interrupt",
        }
    }

    /// Whether the fence waits until earlier stores have left the core.
    #[must_use]
    pub const fn drains_stores(self) -> bool {
        !matches!(self, Fence::Lfence)
    }

    /// Whether the fence waits until earlier loads have completed.
    #[must_use]
    pub const fn waits_for_loads(self) -> bool {
        !matches!(self, Fence::Sfence)
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Fence {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Fence, UnknownName> {
        Fence::ALL.into_iter().find(|fence| fence.name() == text).ok_or_else(|| UnknownName {
            name: text.to_owned(),
            what: "a fence",
            known: Fence::ALL.map(Fence::name).join(", "),
        })
    }
}

crate::name::by_name!(Fence, |fence: &Fence| fence.name().to_owned());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_access_is_parsed_from_its_display_form() {
        for access in Access::ALL {
            assert_eq!(access.to_string().parse(), Ok(access));
        }
    }

    #[test]
    fn an_unknown_access_is_rejected_with_the_list_of_known_names() {
        let error = "nt128".parse::<Access>().unwrap_err().to_string();
        assert!(error.contains("'nt128'") && error.contains("movdir64b"), "{error}");
    }
}
