//! Return values of the C functions.

use lanemark_hw::linux_sysfs::CardError;

/// Outcome of a call; `lanemark_message` returns the details.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub enum lanemark_status {
    /// Success.
    Ok = 0,
    /// Null pointer, or invalid text or number.
    BadArgument = 1,
    /// The device does not exist.
    NotThere = 2,
    /// The range is not within a memory BAR of the device, or no range was named.
    BadRange = 3,
    /// A driver is bound to the device, or another process has locked it.
    DriverBound = 4,
    /// The device is in a low-power state, or its memory decoding is off.
    NotReady = 5,
    /// The system denies access: permissions, lockdown, a claimed BAR, no resource file.
    Forbidden = 6,
    /// The memory type is unavailable, the mapping has another one, or the BAR is already mapped with another one.
    MemoryType = 7,
    /// The access is outside the range.
    OutOfRange = 8,
    /// The access is not aligned to its width.
    Unaligned = 9,
    /// The kind of the range forbids the access.
    NotAllowed = 10,
    /// The device or its BAR is gone, or the device or its driver has changed.
    Gone = 11,
    /// The card still has mappings and cannot be detached.
    StillMapped = 12,
    /// A system call failed, or a system file has unexpected contents.
    System = 13,
    /// Internal error of this library.
    Internal = 14,
}

impl From<&CardError> for lanemark_status {
    fn from(error: &CardError) -> lanemark_status {
        match error {
            CardError::NotThere { .. } => lanemark_status::NotThere,
            CardError::NoRange { .. }
            | CardError::NoSuchBar { .. }
            | CardError::NotMemory { .. }
            | CardError::Unassigned { .. }
            | CardError::BeyondBar { .. }
            | CardError::Overlap { .. } => lanemark_status::BadRange,
            CardError::DriverBound { .. } | CardError::InUse { .. } => lanemark_status::DriverBound,
            CardError::DecodingOff { .. } | CardError::Asleep { .. } => lanemark_status::NotReady,
            CardError::NoResourceFile { .. }
            | CardError::Permission { .. }
            | CardError::LockedDown { .. }
            | CardError::NotMappable { .. }
            | CardError::Claimed { .. } => lanemark_status::Forbidden,
            CardError::NoWriteCombining { .. } | CardError::OtherType { .. } | CardError::HeldOtherwise { .. } => {
                lanemark_status::MemoryType
            }
            CardError::OutOfRange { .. } => lanemark_status::OutOfRange,
            CardError::Unaligned { .. } => lanemark_status::Unaligned,
            CardError::NotAllowed { .. } | CardError::Unsupported { .. } => lanemark_status::NotAllowed,
            CardError::Gone { .. }
            | CardError::Unbound { .. }
            | CardError::Changed { .. }
            | CardError::BusError { .. }
            | CardError::AllOnes { .. } => lanemark_status::Gone,
            CardError::NotUnderstood { .. } | CardError::Os { .. } => lanemark_status::System,
        }
    }
}
