//! The error of reading configuration space.

/// Reasons why a value cannot be read. An unknown value is never reported as 0.
///
/// ```
/// use lanemark_wire::config::{ConfigSpace, Unknown};
/// // 64 bytes, as visible without root: the capability list is beyond them.
/// let mut bytes = [0u8; 64];
/// bytes[0x06] = 0x10;
/// bytes[0x34] = 0x40;
/// let error = ConfigSpace::new(&bytes).pcie().unwrap_err();
/// assert_eq!(error.to_string(), "PCI Express: not found, but only part of the capability list could be read (64 B)");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unknown {
    /// The function does not have the capability; its whole list was read.
    #[error("{structure}: the function has no such capability")]
    NoCapability {
        /// The capability.
        structure: &'static str,
    },
    /// The capability was not found, but the list is broken or could not be read to its end.
    #[error("{structure}: not found, but only part of the capability list could be read ({visible} B)")]
    ListCut {
        /// The capability.
        structure: &'static str,
        /// Number of visible bytes.
        visible: usize,
    },
    /// The register is beyond the visible bytes.
    #[error("{structure}: {register} at {offset:#05x} is beyond the {visible} B that could be read; try as root")]
    NotVisible {
        /// The structure.
        structure: &'static str,
        /// The register.
        register: &'static str,
        /// Offset in configuration space.
        offset: u16,
        /// Number of visible bytes.
        visible: usize,
    },
    /// The structure exists, but without this register.
    #[error("{structure}: there is no {register} here, only {only}")]
    NotThere {
        /// The structure.
        structure: &'static str,
        /// The register.
        register: &'static str,
        /// Condition under which it exists, such as `with a slot`.
        only: &'static str,
    },
    /// The value is reserved by the specification.
    #[error("{structure}: {register} {field} is {raw:#x}, which is reserved")]
    Reserved {
        /// The structure.
        structure: &'static str,
        /// The register.
        register: &'static str,
        /// The field.
        field: &'static str,
        /// The value.
        raw: u64,
    },
}
