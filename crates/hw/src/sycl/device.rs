//! A device of a SYCL runtime.

use lanemark_machine::DeviceKind;
use std::fmt;

/// SYCL device, as described by its runtime.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// Number among all devices of all platforms: `sycl:0` is the first.
    pub number: usize,
    /// Device name.
    pub name: String,
    /// Platform name.
    pub platform: String,
    /// SYCL backend: `opencl`, `ext_oneapi_level_zero`.
    pub backend: String,
    /// Version of the backend that the device supports.
    pub version: String,
    /// Driver version.
    pub driver: String,
    /// SYCL version.
    pub sycl: String,
    /// Kind of device.
    pub kind: DeviceKind,
    /// Whether the runtime describes the device as emulated.
    pub is_emulated: bool,
    /// Whether USM device allocations and USM host allocations are supported.
    pub(super) has_usm: [bool; 2],
    pub(super) is_opencl: bool,
    /// Total device memory in bytes.
    pub(super) memory_bytes: u64,
    /// Largest single allocation in bytes.
    pub(super) largest_bytes: u64,
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sycl:{}: {}", self.number, self.described())
    }
}

impl Device {
    /// Name, kind, platform and versions, in one line.
    #[must_use]
    pub fn described(&self) -> String {
        let Device { name, platform, backend, version, driver, sycl, kind, is_emulated, .. } = self;
        let emulated = if *is_emulated { ", emulated" } else { "" };
        format!("{name} ({kind}{emulated}), {sycl} on {backend}: {platform}, {version}, driver {driver}")
    }
}
