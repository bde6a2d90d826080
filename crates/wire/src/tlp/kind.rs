//! Which packets there are: one row per kind.

use std::fmt;

/// The class of flow control and ordering a TLP belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FlowClass {
    /// No completion comes back: memory writes and messages.
    Posted,
    /// A completion comes back.
    NonPosted,
    /// The answer to a non-posted request.
    Completion,
}

impl FlowClass {
    /// Every class, in the order of the flow control DLLPs.
    pub const ALL: [FlowClass; 3] = [FlowClass::Posted, FlowClass::NonPosted, FlowClass::Completion];
}

/// A kind of TLP, under the specification's name.
///
/// Not here: deferrable memory writes (`DMWr`) and the deprecated trusted configuration requests (`TCfgRd`, `TCfgWr`).
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
    /// Configuration read for the bus at the other end of the link.
    CfgRd0,
    /// Configuration write for the bus at the other end of the link.
    CfgWr0,
    /// Configuration read for a bus further down.
    CfgRd1,
    /// Configuration write for a bus further down.
    CfgWr1,
    /// Message without data.
    Msg,
    /// Message with data.
    MsgD,
    /// Completion without data.
    Cpl,
    /// Completion with data.
    CplD,
    /// Completion of a locked read without data: it failed.
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

/// What the specification fixes about one kind: a row of [`TLP_KINDS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KindRow {
    /// Which kind.
    pub kind: TlpKind,
    /// Its name in the specification.
    pub name: &'static str,
    /// Fmt with a 3 DW header, if it has one.
    pub fmt_3dw: Option<u8>,
    /// Fmt with a 4 DW header, if it has one.
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

/// Ways to route a message that are defined; 6 and 7 are reserved.
pub(super) const ROUTINGS: u8 = 6;

/// The kind that each value of byte 0 (Fmt and Type) begins.
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

/// Fmt with a 3 DW header and Type of every kind, as byte 0.
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
    /// The first DW of a 3 DW header, all other fields 0.
    #[inline]
    pub(super) const fn first_dw(self) -> u32 {
        (BYTE0[self as usize] as u32) << 24
    }

    /// The kind that a header with this first byte has; `None` if the byte is reserved or begins a prefix.
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

    /// Its row of [`TLP_KINDS`].
    #[inline]
    #[must_use]
    pub const fn row(self) -> &'static KindRow {
        &TLP_KINDS[self as usize]
    }

    /// Its name in the specification.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Its class of flow control and ordering.
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
    fn every_row_stands_where_its_kind_points() {
        for (index, row) in TLP_KINDS.iter().enumerate() {
            assert_eq!(row.kind as usize, index);
            assert_eq!(row.kind.row(), row);
        }
    }

    /// Byte 0 as everybody prints it, read off the specification's table once more.
    #[test]
    fn first_bytes_that_everybody_knows() {
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
    fn no_two_rows_share_a_first_byte_and_the_rest_is_reserved() {
        let fmts = |row: &KindRow| row.fmt_3dw.iter().len() + row.fmt_4dw.iter().len();
        let messages = 2 * usize::from(ROUTINGS - 1);
        let wanted = TLP_KINDS.iter().map(fmts).sum::<usize>() + messages;
        assert_eq!((0..=u8::MAX).filter(|byte0| TlpKind::from_byte0(*byte0).is_some()).count(), wanted);
        for reserved in [0x36, 0x37, 0x76, 0x22, 0x24, 0x2a, 0x03, 0x0c, 0x5b, 0x80, 0xa0, 0xff] {
            assert_eq!(TlpKind::from_byte0(reserved), None, "{reserved:#04x}");
        }
    }

    #[test]
    fn data_follow_writes_atomics_and_the_kinds_with_a_d() {
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
