//! IDs of capabilities.

/// ID of a capability, with its list.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CapabilityId {
    /// A capability of the standard list.
    Standard(u8),
    /// A capability of the extended list.
    Extended(u16),
}

impl CapabilityId {
    /// Power management.
    pub const POWER_MANAGEMENT: CapabilityId = CapabilityId::Standard(0x01);
    /// MSI.
    pub const MSI: CapabilityId = CapabilityId::Standard(0x05);
    /// Subsystem IDs of a bridge.
    pub const BRIDGE_SUBSYSTEM: CapabilityId = CapabilityId::Standard(0x0d);
    /// PCI Express.
    pub const PCI_EXPRESS: CapabilityId = CapabilityId::Standard(0x10);
    /// MSI-X.
    pub const MSI_X: CapabilityId = CapabilityId::Standard(0x11);
    /// Advanced error reporting.
    pub const ADVANCED_ERROR_REPORTING: CapabilityId = CapabilityId::Extended(0x01);
    /// Device serial number.
    pub const SERIAL_NUMBER: CapabilityId = CapabilityId::Extended(0x03);
    /// Access control services.
    pub const ACCESS_CONTROL: CapabilityId = CapabilityId::Extended(0x0d);
    /// Alternative routing ID interpretation.
    pub const ALTERNATIVE_ROUTING_ID: CapabilityId = CapabilityId::Extended(0x0e);
    /// Address translation service.
    pub const ADDRESS_TRANSLATION: CapabilityId = CapabilityId::Extended(0x0f);
    /// Single Root I/O Virtualization.
    pub const SINGLE_ROOT: CapabilityId = CapabilityId::Extended(0x10);
    /// Page request interface.
    pub const PAGE_REQUEST: CapabilityId = CapabilityId::Extended(0x13);
    /// Resizable BARs.
    pub const RESIZABLE_BAR: CapabilityId = CapabilityId::Extended(0x15);
    /// Latency tolerance reporting.
    pub const LATENCY_TOLERANCE: CapabilityId = CapabilityId::Extended(0x18);
    /// Secondary PCI Express.
    pub const SECONDARY: CapabilityId = CapabilityId::Extended(0x19);
    /// Process Address Space IDs.
    pub const PROCESS_ADDRESS_SPACE: CapabilityId = CapabilityId::Extended(0x1b);
    /// Downstream port containment.
    pub const DOWNSTREAM_PORT_CONTAINMENT: CapabilityId = CapabilityId::Extended(0x1d);
    /// L1 PM substates.
    pub const L1_SUBSTATES: CapabilityId = CapabilityId::Extended(0x1e);
    /// Designated vendor-specific.
    pub const DESIGNATED_VENDOR: CapabilityId = CapabilityId::Extended(0x23);
    /// Resizable BARs of virtual functions.
    pub const VIRTUAL_RESIZABLE_BAR: CapabilityId = CapabilityId::Extended(0x24);
    /// Data link feature.
    pub const DATA_LINK_FEATURE: CapabilityId = CapabilityId::Extended(0x25);
    /// Physical layer 16 GT/s.
    pub const PHYSICAL_16: CapabilityId = CapabilityId::Extended(0x26);
    /// Physical layer 32 GT/s.
    pub const PHYSICAL_32: CapabilityId = CapabilityId::Extended(0x2a);
    /// Device 3.
    pub const DEVICE_3: CapabilityId = CapabilityId::Extended(0x2f);
    /// Physical layer 64 GT/s.
    pub const PHYSICAL_64: CapabilityId = CapabilityId::Extended(0x31);
}
