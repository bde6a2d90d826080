//! What a function's PCI Express capability says.

use crate::{Link, Seen, Why};
use lanemark_wire::config::PortType;
use lanemark_wire::{Mps, Mrrs};

/// The PCI Express capability, from its bytes, from a listing, or what sysfs says without root.
///
/// Source of the fields: PCI Express Base Specification 6.0, section 7.5.3.
#[derive(Clone, PartialEq, Debug)]
pub struct Express {
    /// What stands here in the hierarchy.
    pub kind: Seen<PortType>,
    /// The link at this port: of an endpoint or upstream port the one above it, of a root or downstream
    /// port the one below it. `Known(None)` for what is integrated into the root complex.
    pub link: Seen<Option<Link>>,
    /// The largest payload the function could take.
    pub mps_supported: Seen<Mps>,
    /// The largest payload it is set to.
    pub mps: Seen<Mps>,
    /// The largest read request it is set to.
    pub mrrs: Seen<Mrrs>,
    /// Tags of 8 bits instead of 5.
    pub extended_tags: Feature,
    /// Tags of 10 bits as a requester.
    pub ten_bit_tags: Feature,
    /// Whether, as a completer, it takes tags of 10 bits.
    pub ten_bit_tag_completer: Seen<bool>,
    /// Whether it may set the relaxed ordering attribute.
    pub relaxed_ordering_enabled: Seen<bool>,
    /// Whether it may set the no snoop attribute.
    pub no_snoop_enabled: Seen<bool>,
    /// Latency tolerance reporting.
    pub latency_tolerance_reporting: Feature,
    /// The number of the slot, of a port that has one.
    pub slot: Seen<Option<u32>>,
}

impl Express {
    /// One of which nothing is seen yet.
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

/// Something that hardware may be able to do and software may have switched on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Feature {
    /// The capability register says it can.
    pub supported: Seen<bool>,
    /// The control register says it does.
    pub enabled: Seen<bool>,
}

impl Feature {
    /// One of which nothing is seen yet.
    #[must_use]
    pub fn unseen(why: &Why) -> Feature {
        Feature { supported: Seen::Unseen(why.clone()), enabled: Seen::Unseen(why.clone()) }
    }
}
