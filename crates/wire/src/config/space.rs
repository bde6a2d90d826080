//! The bytes of the configuration space of one function.

/// The configuration space of one function, as far as it could be read.
///
/// Linux exposes 64 bytes without root; with root 256, or 4096 of a PCIe function. Any other length is accepted. Bytes
/// beyond 4096 are ignored.
///
/// ```
/// use lanemark_wire::config::ConfigSpace;
/// assert!(ConfigSpace::new(&[0xff; 64]).is_absent());
/// assert!(ConfigSpace::new(&[]).vendor_id().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConfigSpace<'a> {
    bytes: &'a [u8],
}

impl<'a> ConfigSpace<'a> {
    /// Size of the configuration space of a PCIe function, in bytes.
    pub const BYTES: usize = 4096;

    /// A view over `bytes`, starting at offset 0.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> ConfigSpace<'a> {
        ConfigSpace { bytes: &bytes[..bytes.len().min(Self::BYTES)] }
    }

    /// The visible bytes.
    #[must_use]
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Reads `bytes` (1 to 8) little-endian bytes at `offset`; `None` if they are not all visible.
    ///
    /// ```
    /// use lanemark_wire::config::ConfigSpace;
    /// let space = ConfigSpace::new(&[0x86, 0x80, 0x34]);
    /// assert_eq!(space.read(0, 2), Some(0x8086));
    /// assert_eq!(space.read(2, 2), None);
    /// ```
    #[must_use]
    pub fn read(&self, offset: u16, bytes: u8) -> Option<u64> {
        let at = usize::from(offset);
        let part = self.bytes.get(at..at + usize::from(bytes)).filter(|part| part.len() <= 8)?;
        Some(part.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// Whether every visible byte is 0xff, as read from a missing or dead function.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        !self.bytes.is_empty() && self.bytes.iter().all(|byte| *byte == 0xff)
    }
}
