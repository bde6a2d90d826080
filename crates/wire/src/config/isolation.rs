//! Access Control Services (ACS) and Alternative Routing-ID Interpretation (ARI).

use super::table::{Layout, Spot, always, flag, layout, number, one_of, register};
use super::{CapabilityId, ConfigSpace, Unknown};

const MEMORY_ACCESS: &[(u64, &str)] = &[(0, "direct"), (1, "blocked"), (2, "redirected")];

/// Access Control Services.
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

/// Alternative Routing-ID Interpretation: up to 256 functions per device.
pub const ALTERNATIVE_ROUTING_ID: Layout = layout(
    "Alternative Routing-ID Interpretation (ARI)",
    &[always(&[
        register("ARICap", 4, 2, "7.8.8.2", &[flag("MFVC", 0), flag("ACS", 1), number("Next Function", 15, 8)]),
        register("ARICtl", 6, 2, "7.8.8.3", &[flag("MFVC", 0), flag("ACS", 1), number("Function Group", 6, 4)]),
    ])],
);

/// Access Control Services, as supported or as enabled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(clippy::struct_excessive_bools)] // seven bits that the specification names
pub struct AccessControl {
    /// Blocks requests with a Requester ID outside the bus range of the port.
    pub source_validation: bool,
    /// Blocks requests with translated addresses.
    pub translation_blocking: bool,
    /// Redirects peer-to-peer requests upstream.
    pub request_redirect: bool,
    /// Redirects peer-to-peer completions upstream.
    pub completion_redirect: bool,
    /// Forwards requests upstream even if they target the port's own downstream range.
    pub upstream_forwarding: bool,
    /// Controls peer-to-peer requests per egress port.
    pub egress_control: bool,
    /// Lets requests with translated addresses go directly to a peer.
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
    /// Services that the function supports.
    pub fn access_control_supported(&self) -> Result<AccessControl, Unknown> {
        let region = self.capability(CapabilityId::ACCESS_CONTROL)?.region();
        region.register(const { Spot::of(&ACCESS_CONTROL, "ACSCap", "SrcValid") }).map(AccessControl::of)
    }

    /// Services that are enabled.
    pub fn access_control(&self) -> Result<AccessControl, Unknown> {
        let region = self.capability(CapabilityId::ACCESS_CONTROL)?.region();
        region.register(const { Spot::of(&ACCESS_CONTROL, "ACSCtl", "SrcValid") }).map(AccessControl::of)
    }
}
