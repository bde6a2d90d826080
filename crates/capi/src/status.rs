//! What a C function returns.

use lanemark_hw::linux_sysfs::CardError;

/// How a call ended; `lanemark_message` says it in words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub enum lanemark_status {
    /// It was done.
    Ok = 0,
    /// A null pointer, or a text or number that means nothing.
    BadArgument = 1,
    /// The device is not there.
    NotThere = 2,
    /// A range that is not in a memory BAR of the device, or none was named.
    BadRange = 3,
    /// A driver is bound to the device.
    DriverBound = 4,
    /// The device sleeps, or its memory decoding is off.
    NotReady = 5,
    /// The system forbids it: permissions, lockdown, a claimed BAR, no resource file.
    Forbidden = 6,
    /// The memory type is not to be had, or another one came of it, or the BAR is mapped with another.
    MemoryType = 7,
    /// An access outside the range.
    OutOfRange = 8,
    /// An access at no multiple of its width.
    Unaligned = 9,
    /// What stands behind the range forbids the access.
    NotAllowed = 10,
    /// The device is gone, or its BAR is.
    Gone = 11,
    /// A card that is still mapped cannot be detached.
    StillMapped = 12,
    /// The operating system refused, or said something that is not understood.
    System = 13,
    /// A defect of this library.
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
            CardError::DriverBound { .. } => lanemark_status::DriverBound,
            CardError::DecodingOff { .. } | CardError::Asleep { .. } => lanemark_status::NotReady,
            CardError::NoResourceFile { .. }
            | CardError::Permission { .. }
            | CardError::LockedDown { .. }
            | CardError::Claimed { .. } => lanemark_status::Forbidden,
            CardError::NoWriteCombining { .. } | CardError::OtherType { .. } | CardError::HeldOtherwise { .. } => {
                lanemark_status::MemoryType
            }
            CardError::OutOfRange { .. } => lanemark_status::OutOfRange,
            CardError::Unaligned { .. } => lanemark_status::Unaligned,
            CardError::NotAllowed { .. } | CardError::Unsupported { .. } => lanemark_status::NotAllowed,
            CardError::Gone { .. } | CardError::BusError { .. } | CardError::AllOnes { .. } => lanemark_status::Gone,
            CardError::NotUnderstood { .. } | CardError::Os { .. } => lanemark_status::System,
        }
    }
}
