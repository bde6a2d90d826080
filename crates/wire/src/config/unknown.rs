//! Why a question about a configuration space has no answer.

/// Why a value cannot be given. Nothing unknown becomes 0.
///
/// ```
/// use lanemark_wire::config::{ConfigSpace, Unknown};
/// // 64 bytes, as seen without root: the capability list begins outside.
/// let mut bytes = [0u8; 64];
/// bytes[0x06] = 0x10;
/// bytes[0x34] = 0x40;
/// let error = ConfigSpace::new(&bytes).pcie().unwrap_err();
/// assert_eq!(error.to_string(), "PCI Express: not found, and the capability list could be seen only in part (64 B)");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unknown {
    /// The function has no such capability; its whole list was read.
    #[error("{structure}: the function has no such capability")]
    NoCapability {
        /// Which.
        structure: &'static str,
    },
    /// No such capability was found, but the list is broken or could not be read to its end.
    #[error("{structure}: not found, and the capability list could be seen only in part ({visible} B)")]
    ListCut {
        /// Which.
        structure: &'static str,
        /// Bytes that could be read.
        visible: usize,
    },
    /// The register lies behind the bytes that could be read.
    #[error("{structure}: {register} at {offset:#05x} lies outside the {visible} B that could be read; try as root")]
    NotVisible {
        /// In which structure.
        structure: &'static str,
        /// Which register.
        register: &'static str,
        /// Its offset in configuration space.
        offset: u16,
        /// Bytes that could be read.
        visible: usize,
    },
    /// The structure is there, but not with this register.
    #[error("{structure}: there is no {register} here, only {only}")]
    NotThere {
        /// In which structure.
        structure: &'static str,
        /// Which register.
        register: &'static str,
        /// When it would be there, as in `with a slot`.
        only: &'static str,
    },
    /// The code is reserved by the specification.
    #[error("{structure}: {register} {field} is {raw:#x}, which is reserved")]
    Reserved {
        /// In which structure.
        structure: &'static str,
        /// Which register.
        register: &'static str,
        /// Which field.
        field: &'static str,
        /// What it is.
        raw: u64,
    },
}
