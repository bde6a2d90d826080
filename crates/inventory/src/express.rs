//! The PCI Express capability of a function.

use crate::{Link, Seen, Why};
use lanemark_wire::config::PortType;
use lanemark_wire::{Mps, Mrrs};

/// The PCI Express capability, from configuration space, a listing, or the sysfs files readable without root.
///
/// Source of the fields: PCI Express Base Specification 6.0, section 7.5.3.
#[derive(Clone, PartialEq, Debug)]
pub struct Express {
    /// Device/Port Type.
    pub kind: Seen<PortType>,
    /// The link of this port: of an endpoint or upstream port, the link above it; of a root or downstream port, the
    /// link below it. `Known(None)` for a function integrated into the root complex.
    pub link: Seen<Option<Link>>,
    /// `Max_Payload_Size` Supported.
    pub mps_supported: Seen<Mps>,
    /// `Max_Payload_Size`, as configured.
    pub mps: Seen<Mps>,
    /// `Max_Read_Request_Size`, as configured.
    pub mrrs: Seen<Mrrs>,
    /// Extended tags: 8 bits instead of 5.
    pub extended_tags: Feature,
    /// 10-bit tags as a requester.
    pub ten_bit_tags: Feature,
    /// Whether it supports 10-bit tags as a completer.
    pub ten_bit_tag_completer: Seen<bool>,
    /// Whether Relaxed Ordering is enabled.
    pub relaxed_ordering_enabled: Seen<bool>,
    /// Whether No Snoop is enabled.
    pub no_snoop_enabled: Seen<bool>,
    /// Latency Tolerance Reporting (LTR).
    pub latency_tolerance_reporting: Feature,
    /// Physical slot number of a port with a slot.
    pub slot: Seen<Option<u32>>,
}

impl Express {
    /// A value with every field unseen, for `why`.
    #[must_use]
    pub fn unseen(why: &Why) -> Express {
        Express {
            kind: Seen::Unseen(why.clone()),
            link: Seen::Unseen(why.clone()),
            mps_supported: Seen::Unseen(why.clone()),
            mps: Seen::Unseen(why.clone()),
            mrrs: Seen::Unseen(why.clone()),
            extended_tags: Feature::unseen(why),
            ten_bit_tags: Feature::unseen(why),
            ten_bit_tag_completer: Seen::Unseen(why.clone()),
            relaxed_ordering_enabled: Seen::Unseen(why.clone()),
            no_snoop_enabled: Seen::Unseen(why.clone()),
            latency_tolerance_reporting: Feature::unseen(why),
            slot: Seen::Unseen(why.clone()),
        }
    }
}

/// An optional feature: supported by hardware, enabled by software.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Feature {
    /// Bit of the capability register.
    pub supported: Seen<bool>,
    /// Bit of the control register.
    pub enabled: Seen<bool>,
}

impl Feature {
    /// A value with both fields unseen, for `why`.
    #[must_use]
    pub fn unseen(why: &Why) -> Feature {
        Feature { supported: Seen::Unseen(why.clone()), enabled: Seen::Unseen(why.clone()) }
    }
}
