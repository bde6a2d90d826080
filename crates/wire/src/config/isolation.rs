//! Who may reach whom: access control services, and the numbering of functions they work by.

use super::table::{Layout, Spot, always, flag, layout, number, one_of, register};
use super::{CapabilityId, ConfigSpace, Unknown};

const MEMORY_ACCESS: &[(u64, &str)] = &[(0, "direct"), (1, "blocked"), (2, "redirected")];

/// Access control services.
pub const ACCESS_CONTROL: Layout = layout(
    "Access Control Services",
    &[always(&[
        register(
            "ACSCap",
            4,
            2,
            "7.7.11.2",
            &[
                flag("SrcValid", 0),
                flag("TransBlk", 1),
                flag("ReqRedir", 2),
                flag("CmpltRedir", 3),
                flag("UpstreamFwd", 4),
                flag("EgressCtrl", 5),
                flag("DirectTrans", 6),
                flag("Enhanced", 7),
                number("EgressVectorBits", 15, 8),
            ],
        ),
        register(
            "ACSCtl",
            6,
            2,
            "7.7.11.3",
            &[
                flag("SrcValid", 0),
                flag("TransBlk", 1),
                flag("ReqRedir", 2),
                flag("CmpltRedir", 3),
                flag("UpstreamFwd", 4),
                flag("EgressCtrl", 5),
                flag("DirectTrans", 6),
                flag("IOReqBlk", 7),
                one_of("DSPMemTarget", 9, 8, MEMORY_ACCESS),
                one_of("USPMemTarget", 11, 10, MEMORY_ACCESS),
                flag("UnclaimedRedir", 12),
            ],
        ),
    ])],
);

/// Alternative routing ID interpretation: 256 functions of one device.
pub const ALTERNATIVE_ROUTING_ID: Layout = layout(
    "Alternative Routing-ID Interpretation (ARI)",
    &[always(&[
        register("ARICap", 4, 2, "7.8.8.2", &[flag("MFVC", 0), flag("ACS", 1), number("Next Function", 15, 8)]),
        register("ARICtl", 6, 2, "7.8.8.3", &[flag("MFVC", 0), flag("ACS", 1), number("Function Group", 6, 4)]),
    ])],
);

/// What access control services can do, or do.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(clippy::struct_excessive_bools)] // seven bits that the specification names
pub struct AccessControl {
    /// Requests whose Requester ID is not of the bus below are refused.
    pub source_validation: bool,
    /// Requests with translated addresses are refused.
    pub translation_blocking: bool,
    /// Requests from peer to peer go by way of the root complex.
    pub request_redirect: bool,
    /// Completions from peer to peer go by way of the root complex.
    pub completion_redirect: bool,
    /// What is meant for the port itself goes upstream all the same.
    pub upstream_forwarding: bool,
    /// Peers are allowed one by one.
    pub egress_control: bool,
    /// Requests with translated addresses may go straight to a peer.
    pub direct_translated: bool,
}

impl AccessControl {
    const fn of(raw: u64) -> AccessControl {
        AccessControl {
            source_validation: raw & 1 != 0,
            translation_blocking: raw & 2 != 0,
            request_redirect: raw & 4 != 0,
            completion_redirect: raw & 8 != 0,
            upstream_forwarding: raw & 16 != 0,
            egress_control: raw & 32 != 0,
            direct_translated: raw & 64 != 0,
        }
    }
}

#[allow(clippy::missing_errors_doc)]
impl ConfigSpace<'_> {
    /// What access control the function can do.
    pub fn access_control_supported(&self) -> Result<AccessControl, Unknown> {
        let region = self.capability(CapabilityId::ACCESS_CONTROL)?.region();
        region.register(const { Spot::of(&ACCESS_CONTROL, "ACSCap", "SrcValid") }).map(AccessControl::of)
    }

    /// What access control is switched on.
    pub fn access_control(&self) -> Result<AccessControl, Unknown> {
        let region = self.capability(CapabilityId::ACCESS_CONTROL)?.region();
        region.register(const { Spot::of(&ACCESS_CONTROL, "ACSCtl", "SrcValid") }).map(AccessControl::of)
    }
}
