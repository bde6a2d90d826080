//! Access control services: may peers talk below the root?

use lanemark_wire::config::AccessControl;

/// The access control services of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Acs {
    /// What it can.
    pub supported: AccessControl,
    /// What is on.
    pub enabled: AccessControl,
}
