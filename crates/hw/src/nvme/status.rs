//! The status of a completion.

use std::fmt;

/// Status field of a completion queue entry, without the phase bit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Status(pub(super) u16);

/// Status code type, status code, and name. Source: NVM Express Base Specification 2.0, figures "Status Code - Generic
/// Command Status Values", "- Command Specific Status Values", "- Media and Data Integrity Error Values" and "- Path
/// Related Status Values".
const NAMES: &[(u16, u16, &str)] = &[
    (0, 0x01, "Invalid Command Opcode"),
    (0, 0x02, "Invalid Field in Command"),
    (0, 0x03, "Command ID Conflict"),
    (0, 0x04, "Data Transfer Error"),
    (0, 0x05, "Commands Aborted due to Power Loss Notification"),
    (0, 0x06, "Internal Error"),
    (0, 0x07, "Command Abort Requested"),
    (0, 0x08, "Command Aborted due to SQ Deletion"),
    (0, 0x0b, "Invalid Namespace or Format"),
    (0, 0x0c, "Command Sequence Error"),
    (0, 0x0d, "Invalid SGL Segment Descriptor"),
    (0, 0x0e, "Invalid Number of SGL Descriptors"),
    (0, 0x0f, "Data SGL Length Invalid"),
    (0, 0x11, "SGL Descriptor Type Invalid"),
    (0, 0x12, "Invalid Use of Controller Memory Buffer"),
    (0, 0x13, "PRP Offset Invalid"),
    (0, 0x1e, "SGL Data Block Granularity Invalid"),
    (0, 0x80, "LBA Out of Range"),
    (0, 0x81, "Capacity Exceeded"),
    (0, 0x82, "Namespace Not Ready"),
    (1, 0x00, "Completion Queue Invalid"),
    (1, 0x01, "Invalid Queue Identifier"),
    (1, 0x02, "Invalid Queue Size"),
    (1, 0x08, "Invalid Interrupt Vector"),
    (2, 0x81, "Unrecovered Read Error"),
    (2, 0x82, "End-to-end Guard Check Error"),
    (2, 0x86, "Access Denied"),
    (2, 0x87, "Deallocated or Unwritten Logical Block"),
    (3, 0x70, "Host Pathing Error"),
    (3, 0x71, "Command Aborted By Host"),
];

impl Status {
    /// Status code type. Source: NVM Express Base Specification 2.0, figure "Completion Queue Entry: Status Field".
    const fn kind(self) -> u16 {
        self.0 >> 8 & 0x7
    }

    const fn code(self) -> u16 {
        self.0 & 0xff
    }

    /// The status of a completion without its phase bit.
    pub(crate) const fn of(field: u16) -> Status {
        Status(field)
    }

    /// Whether the command succeeded.
    pub(super) const fn is_success(self) -> bool {
        self.kind() == 0 && self.code() == 0
    }
}

impl fmt::Display for Status {
    /// Name, status code type and status code.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, code) = (self.kind(), self.code());
        let name = NAMES.iter().find(|(k, c, _)| (*k, *c) == (kind, code)).map_or("status", |(_, _, name)| name);
        write!(f, "{name} (SCT {kind:#x}, SC {code:#04x})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_named_by_type_and_code_without_the_other_bits() {
        assert_eq!(Status(0x4080).to_string(), "LBA Out of Range (SCT 0x0, SC 0x80)");
        assert_eq!(Status(0x0281).to_string(), "Unrecovered Read Error (SCT 0x2, SC 0x81)");
        assert_eq!(Status(0x07c1).to_string(), "status (SCT 0x7, SC 0xc1)");
        assert!(Status(0x4000).is_success() && !Status(0x0100).is_success() && !Status(1).is_success());
    }
}
