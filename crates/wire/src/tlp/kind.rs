//! Kinds of TLPs: one table row each.

use std::fmt;

/// Class of a TLP for flow control and ordering.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FlowClass {
    /// Requests without a completion: memory writes and messages.
    Posted,
    /// Requests with a completion.
    NonPosted,
    /// Completions of non-posted requests.
    Completion,
}

impl FlowClass {
    /// Every class, in the order of the flow control DLLPs.
    pub const ALL: [FlowClass; 3] = [FlowClass::Posted, FlowClass::NonPosted, FlowClass::Completion];
}

/// A kind of TLP, named as in the specification.
///
/// Not included: deferrable memory writes (`DMWr`) and the deprecated trusted configuration requests (`TCfgRd`,
/// `TCfgWr`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TlpKind {
    /// Memory read request.
    MRd,
    /// Locked memory read request.
    MRdLk,
    /// Memory write request.
    MWr,
    /// I/O read request.
    IORd,
    /// I/O write request.
    IOWr,
    /// Type 0 configuration read.
    CfgRd0,
    /// Type 0 configuration write.
    CfgWr0,
    /// Type 1 configuration read, forwarded by bridges.
    CfgRd1,
    /// Type 1 configuration write, forwarded by bridges.
    CfgWr1,
    /// Message without data.
    Msg,
    /// Message with data.
    MsgD,
    /// Completion without data.
    Cpl,
    /// Completion with data.
    CplD,
    /// Completion of a locked read without data: an error.
    CplLk,
    /// Completion of a locked read with data.
    CplDLk,
    /// `AtomicOp`: fetch and add.
    FetchAdd,
    /// `AtomicOp`: unconditional swap.
    Swap,
    /// `AtomicOp`: compare and swap.
    Cas,
}

/// Properties of one kind: a row of [`TLP_KINDS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KindRow {
    /// The kind.
    pub kind: TlpKind,
    /// Name in the specification.
    pub name: &'static str,
    /// Fmt with a 3 DW header, if allowed.
    pub fmt_3dw: Option<u8>,
    /// Fmt with a 4 DW header, if allowed.
    pub fmt_4dw: Option<u8>,
    /// Type; the low 3 bits of a message hold its [`super::Routing`] and are 0 here.
    pub type_bits: u8,
    /// Flow control class.
    pub class: FlowClass,
}

impl KindRow {
    /// Whether data follow the header.
    #[must_use]
    pub const fn has_data(&self) -> bool {
        matches!((self.fmt_3dw, self.fmt_4dw), (Some(0b010), _) | (_, Some(0b011)))
    }
}

const fn row(
    kind: TlpKind,
    name: &'static str,
    fmt_3dw: Option<u8>,
    fmt_4dw: Option<u8>,
    type_bits: u8,
    class: FlowClass,
) -> KindRow {
    KindRow { kind, name, fmt_3dw, fmt_4dw, type_bits, class }
}

/// Fmt and Type of every kind, in the order of [`TlpKind`].
///
/// Source: PCI Express Base Specification 5.0, section 2.2.1 (table of Fmt and Type encodings); classes: section 2.4.
#[rustfmt::skip]
pub const TLP_KINDS: [KindRow; 18] = {
    use FlowClass::{Completion, NonPosted, Posted};
    use TlpKind::{
        Cas, CfgRd0, CfgRd1, CfgWr0, CfgWr1, Cpl, CplD, CplDLk, CplLk, FetchAdd, IORd, IOWr, MRd, MRdLk, MWr, Msg,
        MsgD, Swap,
    };
    [
        row(MRd,      "MRd",      Some(0b000), Some(0b001), 0b0_0000, NonPosted),
        row(MRdLk,    "MRdLk",    Some(0b000), Some(0b001), 0b0_0001, NonPosted),
        row(MWr,      "MWr",      Some(0b010), Some(0b011), 0b0_0000, Posted),
        row(IORd,     "IORd",     Some(0b000), None,        0b0_0010, NonPosted),
        row(IOWr,     "IOWr",     Some(0b010), None,        0b0_0010, NonPosted),
        row(CfgRd0,   "CfgRd0",   Some(0b000), None,        0b0_0100, NonPosted),
        row(CfgWr0,   "CfgWr0",   Some(0b010), None,        0b0_0100, NonPosted),
        row(CfgRd1,   "CfgRd1",   Some(0b000), None,        0b0_0101, NonPosted),
        row(CfgWr1,   "CfgWr1",   Some(0b010), None,        0b0_0101, NonPosted),
        row(Msg,      "Msg",      None,        Some(0b001), 0b1_0000, Posted),
        row(MsgD,     "MsgD",     None,        Some(0b011), 0b1_0000, Posted),
        row(Cpl,      "Cpl",      Some(0b000), None,        0b0_1010, Completion),
        row(CplD,     "CplD",     Some(0b010), None,        0b0_1010, Completion),
        row(CplLk,    "CplLk",    Some(0b000), None,        0b0_1011, Completion),
        row(CplDLk,   "CplDLk",   Some(0b010), None,        0b0_1011, Completion),
        row(FetchAdd, "FetchAdd", Some(0b010), Some(0b011), 0b0_1100, NonPosted),
        row(Swap,     "Swap",     Some(0b010), Some(0b011), 0b0_1101, NonPosted),
        row(Cas,      "CAS",      Some(0b010), Some(0b011), 0b0_1110, NonPosted),
    ]
};

/// Number of defined message routings; codes 6 and 7 are reserved.
pub(super) const ROUTINGS: u8 = 6;

/// The kind for each value of byte 0 (Fmt and Type).
const KIND_OF_BYTE0: [Option<TlpKind>; 256] = {
    let mut kinds = [None; 256];
    let mut index = 0;
    while index < TLP_KINDS.len() {
        let row = &TLP_KINDS[index];
        let types = if matches!(row.kind, TlpKind::Msg | TlpKind::MsgD) { ROUTINGS } else { 1 };
        let mut extra = 0;
        while extra < types {
            if let Some(fmt) = row.fmt_3dw {
                kinds[((fmt << 5) | (row.type_bits + extra)) as usize] = Some(row.kind);
            }
            if let Some(fmt) = row.fmt_4dw {
                kinds[((fmt << 5) | (row.type_bits + extra)) as usize] = Some(row.kind);
            }
            extra += 1;
        }
        index += 1;
    }
    kinds
};

/// Byte 0 of every kind: Fmt of a 3 DW header, and Type.
const BYTE0: [u8; TLP_KINDS.len()] = {
    let mut bytes = [0; TLP_KINDS.len()];
    let mut index = 0;
    while index < TLP_KINDS.len() {
        let row = &TLP_KINDS[index];
        bytes[index] = if row.has_data() { 0b010 << 5 } else { 0 } | row.type_bits;
        index += 1;
    }
    bytes
};

impl TlpKind {
    /// The first DW of a 3 DW header with all other fields 0.
    #[inline]
    pub(super) const fn first_dw(self) -> u32 {
        (BYTE0[self as usize] as u32) << 24
    }

    /// The kind of a header with this first byte; `None` if the byte is reserved or starts a prefix.
    ///
    /// ```
    /// use lanemark_wire::TlpKind;
    /// assert_eq!(TlpKind::from_byte0(0x4a), Some(TlpKind::CplD));
    /// assert_eq!(TlpKind::from_byte0(0x2a), None); // a completion has no 4 DW header
    /// ```
    #[inline]
    #[must_use]
    pub const fn from_byte0(byte0: u8) -> Option<TlpKind> {
        KIND_OF_BYTE0[byte0 as usize]
    }

    /// The row of this kind in [`TLP_KINDS`].
    #[inline]
    #[must_use]
    pub const fn row(self) -> &'static KindRow {
        &TLP_KINDS[self as usize]
    }

    /// Name in the specification.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// The class for flow control and ordering.
    #[inline]
    #[must_use]
    pub const fn class(self) -> FlowClass {
        self.row().class
    }

    /// Whether data follow the header.
    #[inline]
    #[must_use]
    pub const fn has_data(self) -> bool {
        self.row().has_data()
    }
}

impl fmt::Display for TlpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_the_kinds() {
        for (index, row) in TLP_KINDS.iter().enumerate() {
            assert_eq!(row.kind as usize, index);
            assert_eq!(row.kind.row(), row);
        }
    }

    /// Byte 0 of common TLPs, transcribed from the specification a second time.
    #[test]
    fn first_bytes_match_the_specification() {
        for (byte0, kind) in [
            (0x00, TlpKind::MRd),
            (0x20, TlpKind::MRd),
            (0x01, TlpKind::MRdLk),
            (0x21, TlpKind::MRdLk),
            (0x40, TlpKind::MWr),
            (0x60, TlpKind::MWr),
            (0x02, TlpKind::IORd),
            (0x42, TlpKind::IOWr),
            (0x04, TlpKind::CfgRd0),
            (0x44, TlpKind::CfgWr0),
            (0x05, TlpKind::CfgRd1),
            (0x45, TlpKind::CfgWr1),
            (0x30, TlpKind::Msg),
            (0x35, TlpKind::Msg),
            (0x70, TlpKind::MsgD),
            (0x75, TlpKind::MsgD),
            (0x0a, TlpKind::Cpl),
            (0x4a, TlpKind::CplD),
            (0x0b, TlpKind::CplLk),
            (0x4b, TlpKind::CplDLk),
            (0x4c, TlpKind::FetchAdd),
            (0x6d, TlpKind::Swap),
            (0x6e, TlpKind::Cas),
        ] {
            assert_eq!(TlpKind::from_byte0(byte0), Some(kind), "{byte0:#04x}");
        }
    }

    #[test]
    fn first_bytes_are_unique_and_all_others_are_reserved() {
        let fmts = |row: &KindRow| row.fmt_3dw.iter().len() + row.fmt_4dw.iter().len();
        let messages = 2 * usize::from(ROUTINGS - 1);
        let wanted = TLP_KINDS.iter().map(fmts).sum::<usize>() + messages;
        assert_eq!((0..=u8::MAX).filter(|byte0| TlpKind::from_byte0(*byte0).is_some()).count(), wanted);
        for reserved in [0x36, 0x37, 0x76, 0x22, 0x24, 0x2a, 0x03, 0x0c, 0x5b, 0x80, 0xa0, 0xff] {
            assert_eq!(TlpKind::from_byte0(reserved), None, "{reserved:#04x}");
        }
    }

    #[test]
    fn writes_atomics_and_kinds_named_with_d_carry_data() {
        let without: Vec<&str> = TLP_KINDS.iter().filter(|row| !row.has_data()).map(|row| row.name).collect();
        assert_eq!(without, ["MRd", "MRdLk", "IORd", "CfgRd0", "CfgRd1", "Msg", "Cpl", "CplLk"]);
    }

    #[test]
    fn only_memory_writes_and_messages_are_posted() {
        let posted: Vec<&str> =
            TLP_KINDS.iter().filter(|row| row.class == FlowClass::Posted).map(|row| row.name).collect();
        assert_eq!(posted, ["MWr", "Msg", "MsgD"]);
    }
}
