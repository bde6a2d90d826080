//! Permission and attributes of a mapped page.

use std::fmt;

/// What a device may do with mapped memory. A *read* is the device reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// The device reads: host to device.
    Read = 0b01,
    /// The device writes: device to host.
    Write = 0b10,
    /// Reads and writes.
    ReadWrite = 0b11,
}

impl Permission {
    /// Whether the device may read.
    #[must_use]
    pub const fn reads(self) -> bool {
        self as u8 & Permission::Read as u8 != 0
    }

    /// Whether the device may write.
    #[must_use]
    pub const fn writes(self) -> bool {
        self as u8 & Permission::Write as u8 != 0
    }
}

/// The attributes of a mapping: the same for each of its pages.
///
/// Prefetch and fast half-line writes are permissions that a platform need not use. Their opposites, no prefetch and
/// safe, are guarantees, and so is atomic: only a backend with the [`Ability`](crate::Ability) gives them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Attributes(u8);

/// Bits shared with [`Hints`](crate::Hints) and [`Ability`](crate::Ability), so that masking converts them.
pub(crate) const PREFETCH: u8 = 1 << 2;
pub(crate) const ATOMIC: u8 = 1 << 3;
pub(crate) const SAFE: u8 = 1 << 4;

impl Attributes {
    /// The attributes of `bits`.
    pub(crate) const fn from_bits(bits: u8) -> Attributes {
        Attributes(bits & 0b1_1111)
    }

    /// Adds safe half-line writes.
    pub(crate) const fn and_safe(self) -> Attributes {
        Attributes(self.0 | SAFE)
    }

    /// Whether the device reads, writes or both.
    #[must_use]
    pub const fn permission(self) -> Permission {
        match self.0 & 0b11 {
            0b01 => Permission::Read,
            0b10 => Permission::Write,
            _ => Permission::ReadWrite,
        }
    }

    /// Whether the translation hardware may prefetch. Prefetched data is not coherent with later writes of the CPU.
    #[must_use]
    pub const fn may_prefetch(self) -> bool {
        self.0 & PREFETCH != 0
    }

    /// Whether a transfer locks all of memory while it lasts (a locked bus).
    #[must_use]
    pub const fn is_atomic(self) -> bool {
        self.0 & ATOMIC != 0
    }

    /// Whether a write of half a line preserves the other half by read-modify-write (*safe*). If not, it may purge the
    /// line from all caches and write its half to memory (*fast*).
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adding_safe_half_line_writes_twice_is_the_same_as_once() {
        let once = Attributes::from_bits(Permission::Read as u8 | PREFETCH).and_safe();
        assert!(once.is_safe() && once.may_prefetch() && !once.is_atomic());
        assert_eq!(once.and_safe(), once);
    }
}
