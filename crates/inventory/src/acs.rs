//! Access Control Services (ACS).

use lanemark_wire::config::AccessControl;

/// Access Control Services of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Acs {
    /// Services the port supports (ACS Capability register).
    pub supported: AccessControl,
    /// Services that are enabled (ACS Control register).
    pub enabled: AccessControl,
}
