//! The registers of a simulated function, from the values of its platform.

use crate::function::{VENDOR_ID, class_of, device_id_of};
use crate::walk::Seat;
use lanemark_platform::{MsiX, Platform};
use lanemark_wire::config::aer::ADVANCED_ERROR_REPORTING as AER;
use lanemark_wire::config::conventional::{MSI, MSI_X, POWER_MANAGEMENT};
use lanemark_wire::config::header::{self, HEADER};
use lanemark_wire::config::isolation::ACCESS_CONTROL;
use lanemark_wire::config::pcie::PCI_EXPRESS;
use lanemark_wire::config::physical::{PHYSICAL_16, PHYSICAL_32};
use lanemark_wire::config::translation::ADDRESS_TRANSLATION;
use lanemark_wire::config::{BusNumbers, CapabilityId, PortType, Spot, Structure, WriteError, Writer};

const fn express(register: &'static str, field: &'static str) -> Spot {
    Spot::of(&PCI_EXPRESS, register, field)
}

/// BARs of the type 0 header.
const BARS: [Spot; 6] = [
    Spot::of(&HEADER, "BAR0", "BAR0"),
    Spot::of(&HEADER, "BAR1", "BAR1"),
    Spot::of(&HEADER, "BAR2", "BAR2"),
    Spot::of(&HEADER, "BAR3", "BAR3"),
    Spot::of(&HEADER, "BAR4", "BAR4"),
    Spot::of(&HEADER, "BAR5", "BAR5"),
];

impl Seat {
    fn is_endpoint(&self) -> bool {
        self.kind == PortType::Endpoint
    }

    fn looks_down(&self) -> bool {
        matches!(self.kind, PortType::RootPort | PortType::DownstreamPort)
    }

    pub(super) fn bytes(&self, platform: &Platform) -> Result<Vec<u8>, WriteError> {
        let mut writer = Writer::new();
        writer.header(|header| self.header(platform, header));
        writer.capability(CapabilityId::POWER_MANAGEMENT, |power| {
            power.number(const { Spot::of(&POWER_MANAGEMENT, "PMC", "version") }, 3);
            power.flag(const { Spot::of(&POWER_MANAGEMENT, "PMCSR", "NoSoftRst") }, true);
        });
        writer.capability(CapabilityId::MSI, |msi| {
            msi.flag(const { Spot::of(&MSI, "Message Control", "64bit") }, true);
        });
        if let Some(msi_x) = platform.msi_x.as_ref().filter(|_| self.is_endpoint()) {
            let is_enabled = platform.mailbox(0, 0).is_some();
            writer.capability(CapabilityId::MSI_X, |capability| vectors(capability, msi_x, is_enabled));
        }
        writer.capability(CapabilityId::PCI_EXPRESS, |express| self.express(platform, express));
        writer.capability_of(CapabilityId::ADVANCED_ERROR_REPORTING, 2, error_reporting);
        if self.is_endpoint() && platform.has_ats() {
            writer.capability(CapabilityId::ADDRESS_TRANSLATION, |ats| address_translation(platform, ats));
        }
        if self.looks_down() {
            let redirects = platform.redirects(&self.port);
            writer.capability(CapabilityId::ACCESS_CONTROL, |control| access_control(control, redirects));
        }
        if self.generation >= 3 {
            writer.capability(CapabilityId::SECONDARY, |_| {});
        }
        if self.generation >= 4 {
            writer.capability(CapabilityId::DATA_LINK_FEATURE, |_| {});
            writer.capability(CapabilityId::PHYSICAL_16, |physical| {
                for phase in EQUALIZED_16 {
                    physical.flag(phase, true);
                }
            });
        }
        if self.generation >= 5 {
            writer.capability(CapabilityId::PHYSICAL_32, |physical| {
                for phase in EQUALIZED_32 {
                    physical.flag(phase, true);
                }
            });
        }
        writer.finish()
    }

    fn header(&self, platform: &Platform, header: &mut Structure<'_>) {
        let layout = if self.is_endpoint() { "endpoint" } else { "bridge" };
        header.name(const { Spot::of(&HEADER, "Header Type", "Layout") }, layout);
        header.number(const { Spot::of(&HEADER, "Vendor ID", "Vendor ID") }, VENDOR_ID.into());
        header.number(const { Spot::of(&HEADER, "Device ID", "Device ID") }, device_id_of(self.kind).into());
        let class = class_of(self.kind);
        header.number(const { Spot::of(&HEADER, "Class Code", "Base Class") }, (class >> 16).into());
        header.number(const { Spot::of(&HEADER, "Class Code", "Sub-Class") }, (class >> 8 & 0xff).into());
        for enabled in [header::MEMORY_ENABLED, header::INTX_DISABLED] {
            header.flag(enabled, true);
        }
        header.flag(header::BUS_MASTER, !self.is_endpoint() || platform.dma.is_some());
        if let Some(buses) = self.buses {
            return self.bridge(buses, header);
        }
        header.number(const { Spot::of(&HEADER, "Subsystem", "Vendor ID") }, VENDOR_ID.into());
        header.number(const { Spot::of(&HEADER, "Subsystem", "Device ID") }, device_id_of(self.kind).into());
        for bar in &self.bars {
            let index = usize::from(bar.index);
            header.number(BARS[index], bar.raw() & u64::from(u32::MAX));
            if bar.is_64_bit() {
                header.number(BARS[index + 1], bar.raw() >> 32);
            }
        }
    }

    fn bridge(&self, buses: BusNumbers, header: &mut Structure<'_>) {
        header.number(const { Spot::of(&HEADER, "Bus", "primary") }, buses.primary.into());
        header.number(const { Spot::of(&HEADER, "Bus", "secondary") }, buses.secondary.into());
        header.number(const { Spot::of(&HEADER, "Bus", "subordinate") }, buses.subordinate.into());
        // A window whose limit lies below its base is closed.
        let (low, low_end) = self.windows.low.unwrap_or((0xfff0_0000, 0));
        header.number(const { Spot::of(&HEADER, "Memory behind bridge", "Base") }, low >> 20);
        header.number(const { Spot::of(&HEADER, "Memory behind bridge", "Limit") }, low_end >> 20);
        let (high, high_end) = self.windows.high.unwrap_or((0xfff0_0000, 0));
        header.name(const { Spot::of(&HEADER, "Prefetchable memory behind bridge", "Base type") }, "64-bit");
        header.name(const { Spot::of(&HEADER, "Prefetchable memory behind bridge", "Limit type") }, "64-bit");
        header.number(const { Spot::of(&HEADER, "Prefetchable memory behind bridge", "Base") }, high >> 20 & 0xfff);
        header
            .number(const { Spot::of(&HEADER, "Prefetchable memory behind bridge", "Limit") }, high_end >> 20 & 0xfff);
        header.number(const { Spot::of(&HEADER, "Prefetchable Base Upper", "Base") }, high >> 32);
        header.number(const { Spot::of(&HEADER, "Prefetchable Limit Upper", "Limit") }, high_end >> 32);
        // I/O window: zero would mean the range 0 to 0xfff, which the specification allows for a bridge without it. A
        // closed window is clearer.
        header.number(const { Spot::of(&HEADER, "I/O behind bridge", "Base") }, 0xf);
    }

    fn express(&self, platform: &Platform, capability: &mut Structure<'_>) {
        let tags = platform
            .dma
            .as_ref()
            .map_or(1, |dma| if platform.has_ats() { dma.reading_tags() + dma.channels.value } else { dma.tags.value });
        capability.number(const { express("Express", "Version") }, 2);
        capability.name(
            const { express("Express", "Type") },
            match self.kind {
                PortType::RootPort => "Root Port",
                PortType::UpstreamPort => "Upstream Port",
                PortType::DownstreamPort => "Downstream Port",
                _ => "Endpoint",
            },
        );
        capability
            .number(const { express("DevCap", "MaxPayload") }, platform.mps_supported_bytes_of(&self.port).into());
        capability.flag(const { express("DevCap", "RBE") }, true);
        // A port issues no requests; a card supports the tags that its engine uses.
        capability.flag(const { express("DevCap", "ExtTag") }, !self.is_endpoint() || tags > 32);
        capability.number(const { express("DevCtl", "MaxPayload") }, platform.mps_bytes_of(&self.port).into());
        let is_requester = self.is_endpoint() && platform.dma.is_some();
        let mrrs = if self.is_endpoint() { platform.link.mrrs_bytes.value } else { RESET_MRRS };
        capability.number(const { express("DevCtl", "MaxReadReq") }, mrrs.into());
        capability.flag(const { express("DevCtl", "ExtTag") }, is_requester && tags > 32);
        for report in REPORTED {
            capability.flag(report, true);
        }
        // Reset values; ports issue no requests, so their bits read as zero.
        capability.flag(const { express("DevCtl", "RlxdOrd") }, self.is_endpoint());
        capability.flag(const { express("DevCtl", "NoSnoop") }, self.is_endpoint());
        self.link_registers(platform, capability);
        if let Some(card) = self.slot {
            capability.flag(const { express("Express", "Slot") }, true);
            capability.number(const { express("SltCap", "Slot #") }, card as u64);
            capability.flag(const { express("SltCap", "NoCompl") }, true);
            capability.name(const { express("SltCtl", "AttnInd") }, "Off");
            capability.name(const { express("SltCtl", "PwrInd") }, "Off");
            capability.flag(const { express("SltSta", "Status PresDet") }, true);
        }
        let takes_ten_bits = self.generation >= 4 || tags > 256;
        capability.name(const { express("DevCap2", "Completion Timeout") }, "Range ABCD");
        capability.flag(const { express("DevCap2", "TimeoutDis") }, true);
        capability.flag(const { express("DevCap2", "10BitTagComp") }, takes_ten_bits);
        capability.flag(const { express("DevCap2", "10BitTagReq") }, is_requester && tags > 256);
        capability.flag(const { express("DevCtl2", "10BitTagReq") }, is_requester && tags > 256);
    }

    fn link_registers(&self, platform: &Platform, capability: &mut Structure<'_>) {
        let (speed, lanes) = (self.generation.into(), self.lanes.into());
        for (register, width) in [
            (const { express("LnkCap", "Speed") }, const { express("LnkCap", "Width") }),
            (const { express("LnkSta", "Speed") }, const { express("LnkSta", "Width") }),
        ] {
            capability.code(register, speed);
            capability.number(width, lanes);
        }
        capability.flag(const { express("LnkCap", "ASPMOptComp") }, true);
        capability.flag(const { express("LnkCap", "LLActRep") }, self.looks_down());
        capability.number(const { express("LnkCap", "Port #") }, self.number.into());
        capability.number(const { express("LnkCtl", "RCB") }, self.rcb(platform));
        capability.flag(const { express("LnkCtl", "CommClk") }, true);
        capability.flag(const { express("LnkSta", "SlotClk") }, true);
        capability.flag(const { express("LnkSta", "DLActive") }, self.looks_down());
        // Bit 0 is 2.5 GT/s; every slower speed is supported too.
        capability.number(const { express("LnkCap2", "Supported Link Speeds") }, (1 << self.generation) - 1);
        capability.code(const { express("LnkCtl2", "Target Link Speed") }, speed);
        if self.generation >= 3 {
            for phase in EQUALIZED {
                capability.flag(phase, true);
            }
        }
    }

    /// Returns the RCB: of a root port its own, of an endpoint that of the root port above it.
    fn rcb(&self, platform: &Platform) -> u64 {
        match self.kind {
            PortType::RootPort | PortType::Endpoint => platform.link.rcb_bytes.value.into(),
            _ => 64,
        }
    }
}

/// `Max_Read_Request_Size` after a reset, for functions that issue no reads.
const RESET_MRRS: u32 = 512;

/// The error reporting enables of Device Control.
const REPORTED: [Spot; 4] = [
    express("DevCtl", "CorrErr"),
    express("DevCtl", "NonFatalErr"),
    express("DevCtl", "FatalErr"),
    express("DevCtl", "UnsupReq"),
];

/// Equalization at 8 GT/s, complete.
const EQUALIZED: [Spot; 4] = [
    express("LnkSta2", "EqualizationComplete"),
    express("LnkSta2", "EqualizationPhase1"),
    express("LnkSta2", "EqualizationPhase2"),
    express("LnkSta2", "EqualizationPhase3"),
];

/// Equalization at 16 GT/s, complete.
const EQUALIZED_16: [Spot; 4] = [
    Spot::of(&PHYSICAL_16, "Phy16Sta", "EquComplete"),
    Spot::of(&PHYSICAL_16, "Phy16Sta", "EquPhase1"),
    Spot::of(&PHYSICAL_16, "Phy16Sta", "EquPhase2"),
    Spot::of(&PHYSICAL_16, "Phy16Sta", "EquPhase3"),
];

/// Equalization at 32 GT/s, complete.
const EQUALIZED_32: [Spot; 4] = [
    Spot::of(&PHYSICAL_32, "Phy32Sta", "EquComplete"),
    Spot::of(&PHYSICAL_32, "Phy32Sta", "EquPhase1"),
    Spot::of(&PHYSICAL_32, "Phy32Sta", "EquPhase2"),
    Spot::of(&PHYSICAL_32, "Phy32Sta", "EquPhase3"),
];

/// Writes the reset values of Advanced Error Reporting: sections 7.8.4.3, 7.8.4.4 and 7.8.4.6.
fn error_reporting(errors: &mut Structure<'_>) {
    errors.flag(const { Spot::of(&AER, "UEMsk", "UncorrIntErr") }, true);
    // The header of a request that timed out is logged.
    errors.flag(const { Spot::of(&AER, "AERCap", "HdrLogCap") }, true);
    for fatal in FATAL {
        errors.flag(fatal, true);
    }
    for masked in MASKED {
        errors.flag(masked, true);
    }
}

const FATAL: [Spot; 6] = [
    Spot::of(&AER, "UESvrt", "DLP"),
    Spot::of(&AER, "UESvrt", "SDES"),
    Spot::of(&AER, "UESvrt", "FCP"),
    Spot::of(&AER, "UESvrt", "RxOF"),
    Spot::of(&AER, "UESvrt", "MalfTLP"),
    Spot::of(&AER, "UESvrt", "UncorrIntErr"),
];

const MASKED: [Spot; 3] = [
    Spot::of(&AER, "CEMsk", "AdvNonFatalErr"),
    Spot::of(&AER, "CEMsk", "CorrIntErr"),
    Spot::of(&AER, "CEMsk", "HeaderOF"),
];

/// Writes MSI-X, enabled where a driver uses interrupts; table and PBA are those of the platform.
fn vectors(capability: &mut Structure<'_>, msi_x: &MsiX, is_enabled: bool) {
    capability.flag(const { Spot::of(&MSI_X, "Message Control", "Enable") }, is_enabled);
    capability.number(const { Spot::of(&MSI_X, "Message Control", "Count") }, msi_x.vectors.value.into());
    let bar = u64::from(msi_x.bar.value);
    capability.code(const { Spot::of(&MSI_X, "Vector table", "BAR") }, bar);
    capability.number(const { Spot::of(&MSI_X, "Vector table", "offset") }, msi_x.table_offset_bytes.value);
    capability.code(const { Spot::of(&MSI_X, "PBA", "BAR") }, bar);
    capability.number(const { Spot::of(&MSI_X, "PBA", "offset") }, msi_x.pending_offset_bytes.value);
}

/// Writes ATS, enabled, of a device with an Invalidate Queue Depth of 1 and translations of whole IOMMU pages.
fn address_translation(platform: &Platform, ats: &mut Structure<'_>) {
    let page_bits = platform.iommu.as_ref().map_or(12, |iommu| iommu.page_bytes.value.trailing_zeros());
    ats.number(const { Spot::of(&ADDRESS_TRANSLATION, "ATSCap", "Invalidate Queue Depth") }, 1);
    ats.flag(const { Spot::of(&ADDRESS_TRANSLATION, "ATSCap", "PageAligned") }, true);
    let unit = u64::from(page_bits.saturating_sub(12));
    ats.number(const { Spot::of(&ADDRESS_TRANSLATION, "ATSCtl", "Smallest Translation Unit") }, unit);
    ats.flag(const { Spot::of(&ADDRESS_TRANSLATION, "ATSCtl", "Enable") }, true);
}

/// Writes ACS of a port whose only control that can be set is P2P Request Redirect.
fn access_control(control: &mut Structure<'_>, redirects: bool) {
    control.flag(const { Spot::of(&ACCESS_CONTROL, "ACSCtl", "ReqRedir") }, redirects);
    for service in SERVICES {
        control.flag(service, true);
    }
}

const SERVICES: [Spot; 5] = [
    Spot::of(&ACCESS_CONTROL, "ACSCap", "SrcValid"),
    Spot::of(&ACCESS_CONTROL, "ACSCap", "TransBlk"),
    Spot::of(&ACCESS_CONTROL, "ACSCap", "ReqRedir"),
    Spot::of(&ACCESS_CONTROL, "ACSCap", "CmpltRedir"),
    Spot::of(&ACCESS_CONTROL, "ACSCap", "UpstreamFwd"),
];
