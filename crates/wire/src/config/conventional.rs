//! Capabilities that are older than PCIe, and small ones beside it.

use super::table::{Layout, Spot, always, hex, layout, register};
use super::{CapabilityId, ConfigSpace, Unknown};

/// Subsystem ID and Subsystem Vendor ID of a bridge.
pub const BRIDGE_SUBSYSTEM: Layout = layout(
    "Subsystem",
    &[always(&[register("Subsystem", 4, 4, "7.9.23", &[hex("Vendor ID", 15, 0), hex("Device ID", 31, 16)])])],
);

pub(super) fn bridge_subsystem(space: ConfigSpace<'_>) -> Result<(u16, u16), Unknown> {
    let region = space.capability(CapabilityId::BRIDGE_SUBSYSTEM)?.region();
    let get = |spot| region.bits(spot).map(|bits| bits as u16);
    let vendor = get(const { Spot::of(&BRIDGE_SUBSYSTEM, "Subsystem", "Vendor ID") })?;
    Ok((vendor, get(const { Spot::of(&BRIDGE_SUBSYSTEM, "Subsystem", "Device ID") })?))
}
