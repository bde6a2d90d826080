//! A device of an OpenCL runtime.

#![allow(unsafe_code)]

use lanemark_machine::DeviceKind;
use opencl_sys as cl;
use std::fmt;

/// OpenCL device, as described by its runtime.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// Number among all devices of all runtimes: `opencl:0` is the first.
    pub number: usize,
    /// Device name.
    pub name: String,
    /// Runtime name.
    pub platform: String,
    /// OpenCL version of the runtime, with the vendor's suffix.
    pub platform_version: String,
    /// Path of the loader library; `None` if the system does not report it.
    pub loader: Option<String>,
    /// OpenCL version of the device, with the vendor's suffix.
    pub version: String,
    /// Driver version.
    pub driver: String,
    /// Kind of device.
    pub kind: DeviceKind,
    /// Whether the runtime describes the device as emulated.
    pub is_emulated: bool,
    pub(super) id: Id,
}

/// Handles of a device and its platform; valid on every thread as long as the runtime is loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux")),
    allow(dead_code, reason = "on other targets devices are listed but not measured")
)]
pub(super) struct Id {
    pub(super) device: cl::cl_device_id,
    pub(super) platform: cl::cl_platform_id,
}

// SAFETY: OpenCL handles may be used from any thread (OpenCL 3.0, section 2.1), and devices of a platform are never released.
unsafe impl Send for Id {}
// SAFETY: as above.
unsafe impl Sync for Id {}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "opencl:{}: {}", self.number, self.described())
    }
}

impl Device {
    /// Name, kind, platform and versions, in one line.
    #[must_use]
    pub fn described(&self) -> String {
        let Device { name, platform, version, driver, kind, is_emulated, .. } = self;
        let emulated = if *is_emulated { ", emulated" } else { "" };
        format!("{name} ({kind}{emulated}), {platform}, {version}, driver {driver}")
    }
}
