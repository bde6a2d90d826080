//! Size of a flit.
//!
//! Source: PCI Express Base Specification 6.0, section 4.2.3, FLIT Mode Operation.

/// DWs for TLPs in a flit.
pub const TLP_DWS: u64 = 59;
/// DWs of a flit.
pub const DWS: u64 = 64;
