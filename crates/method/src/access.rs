//! The instructions that move bytes, and those that order them.

use crate::UnknownName;
use std::fmt;
use std::str::FromStr;

/// Bytes one instruction moves.
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
    /// Every width, ascending.
    pub const ALL: [Width; 7] = [Width::B1, Width::B2, Width::B4, Width::B8, Width::B16, Width::B32, Width::B64];

    /// In bytes.
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

    /// Whether a vector register is needed.
    #[must_use]
    pub const fn is_vector(self) -> bool {
        matches!(self, Width::B16 | Width::B32 | Width::B64)
    }
}

/// Which instruction moves the bytes. The direction is the plan's: see [`Verb`](crate::Verb).
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
    /// An ordinary load or store of this width.
    Plain(Width),
    /// A non-temporal one: store 8, 16, 32 or 64 B; load 16, 32 or 64 B.
    NonTemporal(Width),
    /// `MOVDIRI`: a direct store of 4 or 8 B, never combined.
    Movdiri(Width),
    /// `MOVDIR64B`: one direct store of an aligned 64 B line.
    Movdir64b,
    /// The machine's own `memcpy`; which one it is stands in its facts.
    Memcpy,
    /// `REP MOVSB`.
    RepMovsb,
    /// Lanemark's own copy, which takes for each size the instruction that was measured to be the fastest.
    CopyToDevice,
}

impl Access {
    /// Every access, in the order they are listed to users.
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

    /// The bytes of one instruction, where that is one number; `None` for `memcpy` and other copies.
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

/// What orders the accesses before it against those after it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Fence {
    /// `SFENCE`: all earlier stores, those in write-combining buffers too, are on their way first.
    Sfence,
    /// `LFENCE`: all earlier loads are done first; stores may still be buffered.
    Lfence,
    /// `MFENCE`: both, and buffers of streaming loads are emptied.
    Mfence,
    /// A locked instruction on ordinary memory: drains like `MFENCE`.
    Locked,
    /// An interrupt taken and returned from: drains write-combining buffers.
    Interrupt,
}

impl Fence {
    /// Every fence, in the order they are listed to users.
    pub const ALL: [Fence; 5] = [Fence::Sfence, Fence::Lfence, Fence::Mfence, Fence::Locked, Fence::Interrupt];

    /// The name in files and on the command line.
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

    /// Whether earlier stores must have left the core before it ends.
    #[must_use]
    pub const fn drains_stores(self) -> bool {
        !matches!(self, Fence::Lfence)
    }

    /// Whether earlier loads must have returned before it ends.
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
    fn every_listed_access_reads_back_as_itself() {
        for access in Access::ALL {
            assert_eq!(access.to_string().parse(), Ok(access));
        }
    }

    #[test]
    fn an_unknown_access_is_refused_and_the_known_ones_are_named() {
        let error = "nt128".parse::<Access>().unwrap_err().to_string();
        assert!(error.contains("'nt128'") && error.contains("movdir64b"), "{error}");
    }
}
