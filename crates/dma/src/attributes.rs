//! What a device may do with a page that is lent to it, and how.

use std::fmt;

/// What a device may do with lent memory. A *read* is the device reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// The device reads: host to device.
    Read = 0b01,
    /// The device writes: device to host.
    Write = 0b10,
    /// Both.
    ReadWrite = 0b11,
}

impl Permission {
    /// May the device read?
    #[must_use]
    pub const fn reads(self) -> bool {
        self as u8 & Permission::Read as u8 != 0
    }

    /// May the device write?
    #[must_use]
    pub const fn writes(self) -> bool {
        self as u8 & Permission::Write as u8 != 0
    }
}

/// The attributes of a mapping: the same for each of its pages.
///
/// Prefetch and fast half-line writes are licences: a platform need not use them. Their opposites, no prefetch and
/// safe, are promises, and so is atomic: only a backend with the [`Ability`](crate::Ability) gives them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Attributes(u8);

/// Bits shared with [`Hints`](crate::Hints) and [`Ability`](crate::Ability), so that one is made of the other by masking.
pub(crate) const PREFETCH: u8 = 1 << 2;
pub(crate) const ATOMIC: u8 = 1 << 3;
pub(crate) const SAFE: u8 = 1 << 4;

impl Attributes {
    /// The attributes of these bits.
    pub(crate) const fn from_bits(bits: u8) -> Attributes {
        Attributes(bits & 0b1_1111)
    }

    /// The same, with half-line writes that keep the rest of the line.
    pub(crate) const fn and_safe(self) -> Attributes {
        Attributes(self.0 | SAFE)
    }

    /// What the device may do.
    #[must_use]
    pub const fn permission(self) -> Permission {
        match self.0 & 0b11 {
            0b01 => Permission::Read,
            0b10 => Permission::Write,
            _ => Permission::ReadWrite,
        }
    }

    /// May whoever translates read ahead of the device? It is not coherent with what the CPU writes meanwhile.
    #[must_use]
    pub const fn may_prefetch(self) -> bool {
        self.0 & PREFETCH != 0
    }

    /// Does a transfer own all of memory while it lasts (a locked bus)? Everybody else waits.
    #[must_use]
    pub const fn is_atomic(self) -> bool {
        self.0 & ATOMIC != 0
    }

    /// Does a write of half a line keep the other half, by reading and writing the whole of it (*safe*), or may it
    /// purge the line from all caches and write its half to memory (*fast*)?
    #[must_use]
    pub const fn is_safe(self) -> bool {
        self.0 & SAFE != 0
    }
}

impl fmt::Debug for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?}{}{}{}",
            self.permission(),
            if self.may_prefetch() { " prefetch" } else { "" },
            if self.is_atomic() { " atomic" } else { "" },
            if self.is_safe() { " safe" } else { " fast" },
        )
    }
}
