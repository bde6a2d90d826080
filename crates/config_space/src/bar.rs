//! A BAR of an endpoint: its address, its size and its registers.

/// A BAR of a simulated endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SimulatedBar {
    /// Index of the BAR, 0 to 5.
    pub index: u8,
    /// Address at which the host mapped it.
    pub address: u64,
    /// Size of its window.
    pub size_bytes: u64,
    /// Whether it is prefetchable.
    pub prefetchable: bool,
}

impl SimulatedBar {
    /// Returns whether the BAR is 64 bits wide, hence takes two registers: it ends above 4 GiB.
    #[must_use]
    pub const fn is_64_bit(&self) -> bool {
        self.address + (self.size_bytes - 1) > u32::MAX as u64
    }

    /// Returns the value of its registers: the address and the type bits.
    ///
    /// Source: PCI Express Base Specification 6.0, section 7.5.1.2.1.
    pub(crate) const fn raw(&self) -> u64 {
        self.address | (self.is_64_bit() as u64) << 2 | (self.prefetchable as u64) << 3
    }
}
