//! A BAR of an endpoint: where the host mapped it, and its registers.

/// A BAR of a simulated endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SimulatedBar {
    /// Which: 0 to 5.
    pub index: u8,
    /// Where the host mapped it.
    pub address: u64,
    /// Length of its window.
    pub size_bytes: u64,
    /// Whether it is prefetchable.
    pub prefetchable: bool,
}

impl SimulatedBar {
    /// Whether it takes two registers: it ends above 4 GiB.
    #[must_use]
    pub const fn is_64_bit(&self) -> bool {
        self.address + (self.size_bytes - 1) > u32::MAX as u64
    }

    /// The registers: address and the bits that say the kind.
    ///
    /// Source: PCI Express Base Specification 6.0, section 7.5.1.2.1.
    pub(crate) const fn raw(&self) -> u64 {
        self.address | (self.is_64_bit() as u64) << 2 | (self.prefetchable as u64) << 3
    }
}
