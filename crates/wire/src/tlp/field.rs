//! Fields of the first DW, shared by all headers.

use crate::{TlpKind, WireError};

// Bits of the first DW, numbered as in a big-endian u32: byte 0 holds bits 31 to 24.
pub(super) const FMT_DATA: u32 = 1 << 30;
pub(super) const FMT_4DW: u32 = 1 << 29;
const T9: u32 = 1 << 23;
const TC_SHIFT: u32 = 20;
const T8: u32 = 1 << 19;
const IDO: u32 = 1 << 18;
const LN: u32 = 1 << 17;
pub(super) const TH: u32 = 1 << 16;
const TD: u32 = 1 << 15;
const EP: u32 = 1 << 14;
const RO: u32 = 1 << 13;
const NS: u32 = 1 << 12;
const AT_SHIFT: u32 = 10;
const AT: u32 = 0b11 << AT_SHIFT;
const LENGTH: u32 = 0x3ff;

/// Maximum length of a TLP or of a read request: 1024 DW, 4096 B.
pub const MAX_LENGTH_DW: u16 = 1024;
/// Highest 10-bit tag, with T9 and T8.
pub const MAX_TAG: u16 = 0x3ff;

/// Attr: ordering and snoop attributes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Attr {
    /// RO: may pass older posted requests.
    pub relaxed_ordering: bool,
    /// NS: the host need not snoop its caches.
    pub no_snoop: bool,
    /// IDO: may pass TLPs of other requesters.
    pub id_based_ordering: bool,
}

impl Attr {
    /// `Attr[2:0]`: IDO, RO, NS.
    #[must_use]
    pub const fn bits(self) -> u8 {
        (self.id_based_ordering as u8) << 2 | (self.relaxed_ordering as u8) << 1 | self.no_snoop as u8
    }

    #[inline]
    const fn from_dw0(dw0: u32) -> Attr {
        Attr { relaxed_ordering: dw0 & RO != 0, no_snoop: dw0 & NS != 0, id_based_ordering: dw0 & IDO != 0 }
    }

    #[inline]
    const fn to_dw0(self) -> u32 {
        (IDO * self.id_based_ordering as u32) | (RO * self.relaxed_ordering as u32) | (NS * self.no_snoop as u32)
    }
}

/// AT: type of the address in a memory request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum AddressType {
    /// An untranslated address (IOVA).
    #[default]
    Untranslated,
    /// A translation request of ATS; `MRd` only.
    TranslationRequest {
        /// NW: the device requests read access only.
        no_write: bool,
    },
    /// A translated address, obtained by ATS.
    Translated,
}

impl AddressType {
    #[inline]
    pub(super) const fn bits(self) -> u8 {
        match self {
            AddressType::Untranslated => 0b00,
            AddressType::TranslationRequest { .. } => 0b01,
            AddressType::Translated => 0b10,
        }
    }
}

/// PH: expected access pattern of the data.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ProcessingHint {
    /// Host and device alternate.
    Bidirectional,
    /// The device accesses the data again.
    Requester,
    /// The host accesses the data.
    Target,
    /// The host accesses the data soon.
    TargetWithPriority,
}

impl ProcessingHint {
    /// Every hint, in order of codes.
    pub const ALL: [ProcessingHint; 4] = [
        ProcessingHint::Bidirectional,
        ProcessingHint::Requester,
        ProcessingHint::Target,
        ProcessingHint::TargetWithPriority,
    ];
}

/// TLP processing hint of a request with TH set.
///
/// Source: PCI Express Base Specification 5.0, section 2.2.7.1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Tph {
    /// PH, in the low bits of the address.
    pub ph: ProcessingHint,
    /// `ST[7:0]`, the steering tag: replaces Tag in `MWr`, and the byte enables in other requests.
    pub st: u8,
}

/// Fields of the first DW with the same meaning in every TLP that has them.
///
/// Source: PCI Express Base Specification 5.0, section 2.2.1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct CommonFields {
    /// TC: traffic class, 0 to 7.
    pub tc: u8,
    /// Attr.
    pub attr: Attr,
    /// TD: a digest of 4 B (ECRC) follows the data.
    pub td: bool,
    /// EP: the data are poisoned.
    pub ep: bool,
}

/// A header as DWs: input of `parse` and output of `emit` of each kind.
#[derive(Clone, Copy)]
pub(super) struct Dws {
    pub dw: [u32; 4],
    pub four: bool,
}

impl Dws {
    #[inline]
    pub(super) fn start(kind: TlpKind, four: bool) -> Dws {
        Dws { dw: [kind.first_dw() | (FMT_4DW * u32::from(four)), 0, 0, 0], four }
    }

    #[inline]
    pub(super) fn td(&self) -> bool {
        self.dw[0] & TD != 0
    }

    #[inline]
    pub(super) fn ep(&self) -> bool {
        self.dw[0] & EP != 0
    }

    #[inline]
    pub(super) fn set_td_ep(&mut self, td: bool, ep: bool) {
        self.dw[0] |= (TD * u32::from(td)) | (EP * u32::from(ep));
    }

    #[inline]
    pub(super) fn common(&self) -> CommonFields {
        let dw0 = self.dw[0];
        CommonFields { tc: (dw0 >> TC_SHIFT) as u8 & 7, attr: Attr::from_dw0(dw0), td: self.td(), ep: self.ep() }
    }

    #[inline]
    pub(super) fn set_common(&mut self, common: CommonFields) -> Result<(), WireError> {
        in_range(1, "TC", u16::from(common.tc), 0, 7)?;
        self.dw[0] |= u32::from(common.tc) << TC_SHIFT | common.attr.to_dw0();
        self.set_td_ep(common.td, common.ep);
        Ok(())
    }

    /// Length field as sent: 0 means 1024 DW, or no data.
    #[inline]
    pub(super) fn length_field(&self) -> u16 {
        (self.dw[0] & LENGTH) as u16
    }

    #[inline]
    pub(super) fn length(&self) -> u16 {
        length_dw(self.length_field())
    }

    #[inline]
    pub(super) fn set_length(&mut self, length: u16) -> Result<(), WireError> {
        in_range(2, "Length", length, 1, MAX_LENGTH_DW)?;
        self.dw[0] |= u32::from(length) & LENGTH;
        Ok(())
    }

    /// The 10-bit tag whose low 8 bits are in DW `index`.
    #[inline]
    pub(super) fn tag(&self, index: usize) -> u16 {
        let high = self.dw[0] >> 14 & 0x200 | self.dw[0] >> 11 & 0x100;
        (high | self.dw[index] >> 8 & 0xff) as u16
    }

    #[inline]
    pub(super) fn set_tag(&mut self, index: usize, tag: u16) -> Result<(), WireError> {
        in_range(if index == 1 { 6 } else { 10 }, "Tag", tag, 0, MAX_TAG)?;
        let high = u32::from(tag);
        self.dw[0] |= high << 14 & T9 | high << 11 & T8;
        self.dw[index] |= u32::from(tag & 0xff) << 8;
        Ok(())
    }

    #[inline]
    pub(super) fn at(&self) -> u8 {
        ((self.dw[0] & AT) >> AT_SHIFT) as u8
    }

    #[inline]
    pub(super) fn set_at(&mut self, at: u8) {
        self.dw[0] |= u32::from(at) << AT_SHIFT;
    }

    /// Refuses LN: lightweight notification existed in 3.1 to 5.0 and is not implemented.
    #[inline]
    pub(super) fn no_ln(&self, kind: TlpKind) -> Result<(), WireError> {
        zero(self.dw[0] & LN, 1, "LN", kind)
    }

    /// Refuses the fields of the first DW that only memory requests and `AtomicOps` have.
    #[inline]
    pub(super) fn no_memory_fields(&self, kind: TlpKind) -> Result<(), WireError> {
        if self.dw[0] & (LN | TH | AT) == 0 {
            return Ok(());
        }
        self.no_ln(kind)?;
        zero(self.dw[0] & TH, 1, "TH", kind)?;
        zero(self.dw[0] & AT, 2, "AT", kind)
    }

    /// Checks the fixed fields of I/O and configuration requests: TC 0, Attr 0, Length 1, Last DW BE 0.
    ///
    /// Source: PCI Express Base Specification 5.0, section 2.2.7.
    pub(super) fn one_plain_dw(&self, kind: TlpKind) -> Result<(), WireError> {
        self.no_memory_fields(kind)?;
        let common = self.common();
        prescribed(1, "TC", kind, u16::from(common.tc), 0)?;
        zero(self.dw[0] & IDO, 1, "Attr[2]", kind)?;
        prescribed(2, "Attr", kind, u16::from(common.attr.bits()), 0)?;
        prescribed(2, "Length", kind, self.length(), 1)?;
        prescribed(7, "Last DW BE", kind, (self.dw[1] >> 4) as u16 & 0xf, 0)
    }
}

/// Bytes of data after a legal header with this first DW, and TD.
#[inline]
pub(super) const fn data_bytes_and_td(dw0: u32) -> (usize, bool) {
    let length_dw = if dw0 & FMT_DATA == 0 { 0 } else { length_dw((dw0 & LENGTH) as u16) };
    (length_dw as usize * 4, dw0 & TD != 0)
}

/// Decodes the Length field, in DW.
#[inline]
pub(super) const fn length_dw(field: u16) -> u16 {
    if field == 0 { MAX_LENGTH_DW } else { field }
}

#[inline]
pub(super) fn in_range(byte: u8, field: &'static str, value: u16, min: u16, max: u16) -> Result<(), WireError> {
    if (min..=max).contains(&value) { Ok(()) } else { Err(WireError::OutOfRange { byte, field, value, min, max }) }
}

#[inline]
pub(super) fn zero(bits: u32, byte: u8, field: &'static str, kind: TlpKind) -> Result<(), WireError> {
    if bits == 0 { Ok(()) } else { Err(WireError::Reserved { byte, field, kind }) }
}

#[inline]
pub(super) fn prescribed(
    byte: u8,
    field: &'static str,
    kind: TlpKind,
    value: u16,
    wanted: u16,
) -> Result<(), WireError> {
    if value == wanted { Ok(()) } else { Err(WireError::Prescribed { byte, field, kind, value, wanted }) }
}
