//! The PCI Express capability: port type, payload and request sizes, tags, link, slot.

mod registers;

pub use registers::PCI_EXPRESS;
pub(super) use registers::port_type_code;

use super::table::{Region, Spot};
use super::unknown::Unknown;
use crate::{Generation, Lanes};
use std::fmt;

/// Device/Port Type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PortType {
    /// An endpoint.
    Endpoint,
    /// A legacy endpoint, which may use I/O space and locked reads.
    LegacyEndpoint,
    /// A root port.
    RootPort,
    /// The upstream port of a switch.
    UpstreamPort,
    /// A downstream port of a switch.
    DownstreamPort,
    /// A bridge to PCI or PCI-X.
    PciBridge,
    /// A bridge from PCI or PCI-X.
    ReverseBridge,
    /// An endpoint inside the root complex, without a link.
    IntegratedEndpoint,
    /// A root complex event collector, without a link.
    EventCollector,
}

/// Port types by code. Source: section 7.5.3.2.
const PORT_TYPES: [(u64, PortType); 9] = [
    (0, PortType::Endpoint),
    (1, PortType::LegacyEndpoint),
    (4, PortType::RootPort),
    (5, PortType::UpstreamPort),
    (6, PortType::DownstreamPort),
    (7, PortType::PciBridge),
    (8, PortType::ReverseBridge),
    (9, PortType::IntegratedEndpoint),
    (10, PortType::EventCollector),
];

/// Data rate of a link: codes 1 to 7 of the speed fields.
///
/// ```
/// use lanemark_wire::{Generation, config::LinkSpeed};
/// assert_eq!(LinkSpeed::Gt16.to_string(), "16GT/s");
/// assert_eq!(LinkSpeed::Gt16.generation(), Some(Generation::Gen4));
/// assert_eq!(LinkSpeed::Gt128.generation(), None); // Generation ends at Gen6
/// assert_eq!(LinkSpeed::from_code(8), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LinkSpeed {
    /// 2.5 GT/s.
    Gt2_5,
    /// 5 GT/s.
    Gt5,
    /// 8 GT/s.
    Gt8,
    /// 16 GT/s.
    Gt16,
    /// 32 GT/s.
    Gt32,
    /// 64 GT/s.
    Gt64,
    /// 128 GT/s, of PCI Express Base Specification 7.0.
    Gt128,
}

impl LinkSpeed {
    /// Every speed, slowest first.
    pub const ALL: [LinkSpeed; 7] =
        [Self::Gt2_5, Self::Gt5, Self::Gt8, Self::Gt16, Self::Gt32, Self::Gt64, Self::Gt128];

    /// The speed with code 1 to 7.
    #[must_use]
    pub fn from_code(code: u64) -> Option<LinkSpeed> {
        Self::ALL.into_iter().find(|speed| u64::from(speed.code()) == code)
    }

    /// Code, 1 to 7; equals the number of the generation.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8 + 1
    }

    /// The generation with this maximum speed, if [`Generation`] has it.
    #[must_use]
    pub const fn generation(self) -> Option<Generation> {
        Generation::from_number(self.code())
    }

    /// Transfers per second and lane, in millions.
    #[must_use]
    pub const fn megatransfers_per_s(self) -> u32 {
        match self {
            LinkSpeed::Gt2_5 => 2_500,
            LinkSpeed::Gt5 => 5_000,
            LinkSpeed::Gt8 => 8_000,
            LinkSpeed::Gt16 => 16_000,
            LinkSpeed::Gt32 => 32_000,
            LinkSpeed::Gt64 => 64_000,
            LinkSpeed::Gt128 => 128_000,
        }
    }
}

impl fmt::Display for LinkSpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}GT/s", f64::from(self.megatransfers_per_s()) / 1e3)
    }
}

/// Link states of Active State Power Management.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Aspm {
    /// L0s.
    pub l0s: bool,
    /// L1.
    pub l1: bool,
}

/// Width of a tag.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TagBits {
    /// 32 tags.
    Five,
    /// 256 tags: extended tags.
    Eight,
    /// 768 tags: 10 bits, of which the two upper ones are not both 0.
    Ten,
    /// 15 360 tags: 14 bits, of which the four upper ones are not all 0; flit mode only.
    Fourteen,
}

impl TagBits {
    /// Maximum number of outstanding requests.
    #[must_use]
    pub const fn tags(self) -> u16 {
        match self {
            TagBits::Five => 32,
            TagBits::Eight => 256,
            TagBits::Ten => 768,
            TagBits::Fourteen => 15_360,
        }
    }
}

const fn at(register: &'static str, field: &'static str) -> Spot {
    Spot::of(&PCI_EXPRESS, register, field)
}

/// The PCI Express capability of a function; see [`crate::config::ConfigSpace::pcie`].
#[derive(Clone, Copy, Debug)]
pub struct Pcie<'a> {
    region: Region<'a>,
}

type Answer<T> = Result<T, Unknown>;

/// Every method returns [`Unknown`] if the register is absent, not visible, or holds a reserved code.
#[allow(clippy::missing_errors_doc)]
impl<'a> Pcie<'a> {
    pub(super) const fn new(region: Region<'a>) -> Pcie<'a> {
        Pcie { region }
    }

    /// The registers of the capability.
    #[must_use]
    pub const fn region(&self) -> Region<'a> {
        self.region
    }

    fn flag(&self, spot: Spot) -> Answer<bool> {
        self.region.flag(spot)
    }

    fn bytes(&self, spot: Spot) -> Answer<u32> {
        self.region.quantity(spot).map(|bytes| bytes as u32)
    }

    fn speed(&self, spot: Spot) -> Answer<LinkSpeed> {
        let raw = self.region.bits(spot)?;
        LinkSpeed::from_code(raw).ok_or(self.region.reserved(spot, raw))
    }

    fn width(&self, spot: Spot) -> Answer<Lanes> {
        let raw = self.region.bits(spot)?;
        Lanes::new(raw as u8).ok_or(self.region.reserved(spot, raw))
    }

    fn aspm(&self, spot: Spot) -> Answer<Aspm> {
        self.region.bits(spot).map(|raw| Aspm { l0s: raw & 1 != 0, l1: raw & 2 != 0 })
    }

    /// Version of the capability: 1 or 2.
    pub fn version(&self) -> Answer<u8> {
        self.region.bits(const { at("Express", "Version") }).map(|raw| raw as u8)
    }

    /// Device/Port Type.
    pub fn port_type(&self) -> Answer<PortType> {
        let spot = const { at("Express", "Type") };
        let raw = self.region.bits(spot)?;
        let found = PORT_TYPES.iter().find(|(code, _)| *code == raw).map(|(_, kind)| *kind);
        found.ok_or(self.region.reserved(spot, raw))
    }

    /// Slot Implemented: a slot is connected to this downstream port.
    pub fn has_slot(&self) -> Answer<bool> {
        self.flag(const { at("Express", "Slot") })
    }

    /// Flit Mode Supported.
    pub fn flit_supported(&self) -> Answer<bool> {
        self.flag(const { at("Express", "FLIT Mode Supported") })
    }

    /// Flit Mode Status: the link operates in flit mode.
    pub fn flit_mode(&self) -> Answer<bool> {
        self.flag(const { at("LnkSta2", "FltMode") })
    }

    /// Flit Mode Disable.
    pub fn flit_disabled(&self) -> Answer<bool> {
        self.flag(const { at("LnkCtl", "FltModeDis") })
    }

    /// `Max_Payload_Size` Supported, in bytes.
    pub fn max_payload_supported(&self) -> Answer<u32> {
        self.bytes(const { at("DevCap", "MaxPayload") })
    }

    /// `Max_Payload_Size`, in bytes.
    pub fn max_payload(&self) -> Answer<u32> {
        self.bytes(const { at("DevCtl", "MaxPayload") })
    }

    /// `Max_Read_Request_Size`, in bytes.
    pub fn max_read_request(&self) -> Answer<u32> {
        self.bytes(const { at("DevCtl", "MaxReadReq") })
    }

    /// Read Completion Boundary, in bytes.
    pub fn read_completion_boundary(&self) -> Answer<u32> {
        self.bytes(const { at("LnkCtl", "RCB") })
    }

    /// Extended Tag Field Supported: 8-bit tags.
    pub fn extended_tags_supported(&self) -> Answer<bool> {
        self.flag(const { at("DevCap", "ExtTag") })
    }

    /// Extended Tag Field Enable.
    pub fn extended_tags(&self) -> Answer<bool> {
        self.flag(const { at("DevCtl", "ExtTag") })
    }

    /// 10-Bit Tag Completer Supported.
    pub fn ten_bit_tag_completer(&self) -> Answer<bool> {
        self.flag(const { at("DevCap2", "10BitTagComp") })
    }

    /// 10-Bit Tag Requester Supported.
    pub fn ten_bit_tag_requester_supported(&self) -> Answer<bool> {
        self.flag(const { at("DevCap2", "10BitTagReq") })
    }

    /// 10-Bit Tag Requester Enable.
    pub fn ten_bit_tag_requester(&self) -> Answer<bool> {
        self.flag(const { at("DevCtl2", "10BitTagReq") })
    }

    /// Enable Relaxed Ordering.
    pub fn relaxed_ordering(&self) -> Answer<bool> {
        self.flag(const { at("DevCtl", "RlxdOrd") })
    }

    /// Enable No Snoop.
    pub fn no_snoop(&self) -> Answer<bool> {
        self.flag(const { at("DevCtl", "NoSnoop") })
    }

    /// Max Link Speed.
    pub fn max_link_speed(&self) -> Answer<LinkSpeed> {
        self.speed(const { at("LnkCap", "Speed") })
    }

    /// Maximum Link Width.
    pub fn max_link_width(&self) -> Answer<Lanes> {
        self.width(const { at("LnkCap", "Width") })
    }

    /// Current Link Speed.
    pub fn link_speed(&self) -> Answer<LinkSpeed> {
        self.speed(const { at("LnkSta", "Speed") })
    }

    /// Negotiated Link Width. A port without a link partner often reports 0, which is reserved.
    pub fn link_width(&self) -> Answer<Lanes> {
        self.width(const { at("LnkSta", "Width") })
    }

    /// Target Link Speed.
    pub fn target_link_speed(&self) -> Answer<LinkSpeed> {
        self.speed(const { at("LnkCtl2", "Target Link Speed") })
    }

    /// Supported link speeds, slowest first.
    pub fn supported_link_speeds(&self) -> Answer<impl Iterator<Item = LinkSpeed> + use<>> {
        let vector = self.region.bits(const { at("LnkCap2", "Supported Link Speeds") })?;
        Ok(LinkSpeed::ALL.into_iter().filter(move |speed| vector & 1 << (speed.code() - 1) != 0))
    }

    /// Data Link Layer Link Active; `None` if the port does not report it.
    pub fn link_active(&self) -> Answer<Option<bool>> {
        if !self.flag(const { at("LnkCap", "LLActRep") })? {
            return Ok(None);
        }
        self.flag(const { at("LnkSta", "DLActive") }).map(Some)
    }

    /// ASPM Support.
    pub fn aspm_supported(&self) -> Answer<Aspm> {
        self.aspm(const { at("LnkCap", "ASPM") })
    }

    /// ASPM Control: enabled states.
    pub fn aspm_enabled(&self) -> Answer<Aspm> {
        self.aspm(const { at("LnkCtl", "ASPM") })
    }

    /// Physical slot number, and slot power limit in milliwatts.
    pub fn slot(&self) -> Answer<(u16, u32)> {
        let number = self.region.bits(const { at("SltCap", "Slot #") })? as u16;
        Ok((number, self.region.quantity(const { at("SltCap", "PowerLimit") })? as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{CapabilityId, ConfigSpace};

    /// A function with a PCI Express capability at 0x40 with these register values.
    fn function(values: &[(usize, u32)]) -> Vec<u8> {
        let mut bytes = vec![0; 256];
        bytes[0x06] = 0x10;
        bytes[0x34] = 0x40;
        bytes[0x40] = 0x10;
        for (offset, value) in values {
            bytes[0x40 + offset..][..2].copy_from_slice(&value.to_le_bytes()[..2]);
        }
        bytes
    }

    fn ask<T>(values: &[(usize, u32)], question: fn(&Pcie<'static>) -> Answer<T>) -> Answer<T> {
        question(&ConfigSpace::new(function(values).leak()).pcie().unwrap())
    }

    #[test]
    fn payload_sizes_end_at_4096_and_the_next_code_is_reserved() {
        assert_eq!(ask(&[(0x08, 0)], Pcie::max_payload), Ok(128));
        assert_eq!(ask(&[(0x08, 5 << 5)], Pcie::max_payload), Ok(4096));
        assert!(matches!(ask(&[(0x08, 6 << 5)], Pcie::max_payload), Err(Unknown::Reserved { raw: 6, .. })));
        assert_eq!(ask(&[(0x08, 5 << 12)], Pcie::max_read_request), Ok(4096));
        assert!(matches!(ask(&[(0x08, 7 << 12)], Pcie::max_read_request), Err(Unknown::Reserved { raw: 7, .. })));
        assert_eq!(ask(&[(0x04, 2)], Pcie::max_payload_supported), Ok(512));
    }

    #[test]
    fn reserved_speeds_and_widths_are_reported() {
        assert_eq!(ask(&[(0x12, 7)], Pcie::link_speed), Ok(LinkSpeed::Gt128));
        for reserved in [0, 8] {
            assert!(matches!(ask(&[(0x12, reserved)], Pcie::link_speed), Err(Unknown::Reserved { .. })));
        }
        assert_eq!(ask(&[(0x12, 32 << 4)], Pcie::link_width), Ok(Lanes::X32));
        for reserved in [0, 3, 33] {
            assert!(matches!(ask(&[(0x12, reserved << 4)], Pcie::link_width), Err(Unknown::Reserved { .. })));
        }
    }

    #[test]
    fn link_speeds_match_the_rates_of_the_generations() {
        for speed in LinkSpeed::ALL {
            assert_eq!(LinkSpeed::from_code(speed.code().into()), Some(speed));
            let Some(generation) = speed.generation() else {
                assert!(speed > LinkSpeed::Gt64);
                continue;
            };
            assert_eq!(generation.rate().megatransfers_per_s, speed.megatransfers_per_s());
        }
    }

    #[test]
    fn registers_of_version_2_are_absent_in_version_1() {
        let one = ask(&[(0x02, 1)], Pcie::ten_bit_tag_requester);
        assert!(matches!(one, Err(Unknown::NotThere { only: "in version 2 of the capability", .. })), "{one:?}");
        assert_eq!(ask(&[(0x02, 2)], Pcie::ten_bit_tag_requester), Ok(false));
        assert_eq!(ask(&[(0x02, 2), (0x28, 0x1000)], Pcie::ten_bit_tag_requester), Ok(true));
    }

    #[test]
    fn only_a_downstream_port_with_a_slot_has_slot_registers() {
        let slot = |flags| ask(&[(0x02, flags), (0x14, 0x4b << 7), (0x16, 0x0010)], Pcie::slot);
        assert_eq!(slot(0x0142), Ok((2, 75_000)));
        for without in [0x0042, 0x0152, 0x0102] {
            assert!(matches!(slot(without), Err(Unknown::NotThere { .. })), "{without:#x}");
        }
    }

    #[test]
    fn slot_power_above_239_w_is_in_steps_of_25_w() {
        let power = |value: u32, scale: u32| {
            let raw = value << 7 | scale << 15;
            ask(&[(0x02, 0x0142), (0x14, raw), (0x16, raw >> 16)], Pcie::slot).map(|(_, milliwatts)| milliwatts)
        };
        assert_eq!(power(0xef, 0), Ok(239_000));
        assert_eq!(power(0xf0, 0), Ok(250_000));
        assert_eq!(power(0xfe, 0), Ok(600_000));
        assert!(matches!(power(0xff, 0), Err(Unknown::Reserved { .. })));
        assert_eq!(power(0xff, 1), Ok(25_500));
        assert_eq!(power(0xff, 3), Ok(255));
    }

    #[test]
    fn an_integrated_endpoint_has_no_link() {
        assert!(matches!(ask(&[(0x02, 0x92)], Pcie::link_speed), Err(Unknown::NotThere { .. })));
        assert_eq!(ask(&[(0x02, 0x92)], Pcie::port_type), Ok(PortType::IntegratedEndpoint));
        assert!(matches!(ask(&[(0x02, 0x22)], Pcie::port_type), Err(Unknown::Reserved { raw: 2, .. })));
    }

    #[test]
    fn a_missing_capability_is_distinguished_from_one_that_is_not_visible() {
        let mut bytes = function(&[]);
        bytes[0x40] = 0x05;
        let pcie = |bytes: &[u8]| ConfigSpace::new(bytes).pcie().map(|_| ()).unwrap_err();
        assert_eq!(pcie(&bytes), Unknown::NoCapability { structure: "PCI Express" });
        assert_eq!(pcie(&bytes[..64]), Unknown::ListCut { structure: "PCI Express", visible: 64 });
        assert_eq!(pcie(&[]), Unknown::ListCut { structure: "PCI Express", visible: 0 });
        // With a PCIe capability, the extended list may exist beyond the visible bytes; without one, it cannot.
        let extended = |bytes: &[u8]| ConfigSpace::new(bytes).capability(CapabilityId::SERIAL_NUMBER).unwrap_err();
        assert!(matches!(extended(&function(&[])), Unknown::ListCut { visible: 256, .. }));
        assert!(matches!(extended(&bytes), Unknown::NoCapability { .. }));
    }
}
