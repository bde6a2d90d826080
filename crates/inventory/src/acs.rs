//! Access control services: may peers talk below the root?

/// The access control services of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Acs {
    /// What it can.
    pub supported: AcsBits,
    /// What is on.
    pub enabled: AcsBits,
}

/// The bits of ACS Capability and ACS Control, which have the same places.
///
/// Source: PCI Express Base Specification 5.0, section 7.7.8.
///
/// ```
/// use lanemark_inventory::AcsBits;
/// let on = AcsBits(0x1d); // what Linux switches on where an IOMMU isolates
/// assert!(on.request_redirect() && on.completion_redirect() && !on.direct_translated());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct AcsBits(pub u16);

impl AcsBits {
    /// Bit 0: a requester may only use bus numbers below its port.
    #[must_use]
    pub const fn source_validation(self) -> bool {
        self.0 & 1 != 0
    }

    /// Bit 1: translated requests from below are refused.
    #[must_use]
    pub const fn translation_blocking(self) -> bool {
        self.0 & 1 << 1 != 0
    }

    /// Bit 2: requests to a peer go up to the root first.
    #[must_use]
    pub const fn request_redirect(self) -> bool {
        self.0 & 1 << 2 != 0
    }

    /// Bit 3: completions to a peer go up to the root first.
    #[must_use]
    pub const fn completion_redirect(self) -> bool {
        self.0 & 1 << 3 != 0
    }

    /// Bit 4: what comes from below for below is sent up.
    #[must_use]
    pub const fn upstream_forwarding(self) -> bool {
        self.0 & 1 << 4 != 0
    }

    /// Bit 5: peers may be refused one by one.
    #[must_use]
    pub const fn egress_control(self) -> bool {
        self.0 & 1 << 5 != 0
    }

    /// Bit 6: translated requests go straight to the peer.
    #[must_use]
    pub const fn direct_translated(self) -> bool {
        self.0 & 1 << 6 != 0
    }
}
