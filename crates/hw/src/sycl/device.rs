//! What SYCL offers: devices, in the order in which it lists them.

#![allow(unsafe_code)]

use super::SyclError;
use super::api::{Api, Described, Said, text};
use crate::opencl::vendors;
use lanemark_machine::DeviceKind;
use std::fmt;

/// A device as SYCL describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// Its number among all devices of all platforms: `sycl:0` is the first.
    pub number: usize,
    /// Its name.
    pub name: String,
    /// Its platform's name.
    pub platform: String,
    /// What SYCL uses below itself: `opencl`, `ext_oneapi_level_zero`.
    pub backend: String,
    /// The version of that which the device has.
    pub version: String,
    /// The version of the driver.
    pub driver: String,
    /// The SYCL that is above it.
    pub sycl: String,
    /// What it is.
    pub kind: DeviceKind,
    /// Whether its runtime says that it only behaves like one.
    pub is_emulated: bool,
    /// Whether memory of it can be an address, and memory of the program one that the runtime gives.
    pub(super) has_usm: [bool; 2],
    pub(super) is_opencl: bool,
    /// Bytes of its memory.
    pub(super) memory_bytes: u64,
    /// Bytes of one piece of it, at most.
    pub(super) largest_bytes: u64,
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sycl:{}: {}", self.number, self.described())
    }
}

impl Device {
    /// All that it says of itself, in one line.
    #[must_use]
    pub fn described(&self) -> String {
        let Device { name, platform, backend, version, driver, sycl, kind, is_emulated, .. } = self;
        let emulated = if *is_emulated { ", emulated" } else { "" };
        format!("{name} ({kind}{emulated}), {sycl} on {backend}: {platform}, {version}, driver {driver}")
    }

    /// Every device.
    ///
    /// A call into a runtime that hangs does not come back, and neither does this then.
    ///
    /// # Errors
    /// [`SyclError::NoShim`] and [`SyclError::OtherShim`] where there is no SYCL, [`SyclError::Nothing`] where it has no device, and
    /// [`SyclError::Refused`] where one does not say what it is.
    pub fn all() -> Result<Vec<Device>, SyclError> {
        let api = Api::loaded()?;
        let (mut count, mut said) = (0, Said::NOTHING);
        // SAFETY: there is room for what is asked for.
        let status = unsafe { (api.count)(&raw mut count, &raw mut said) };
        // Without a runtime of OpenCL this is an error to some versions, and to others an empty list.
        let error = said.good("asking it for devices", status).err();
        if error.is_some() || count == 0 {
            return Err(SyclError::Nothing { said: error.map(|error| error.to_string()), vendors: vendors() });
        }
        (0..count).map(|number| Device::of(&api, number)).collect()
    }

    fn of(api: &Api, number: usize) -> Result<Device, SyclError> {
        let (mut found, mut said) = (Described::NOTHING, Said::NOTHING);
        // SAFETY: as in `all`.
        let status = unsafe { (api.device)(number, &raw mut found, &raw mut said) };
        said.good("asking a device what it is", status)?;
        let (name, platform) = (text(&found.name), text(&found.platform));
        Ok(Device {
            number,
            // Runtimes say so in the name; there is no other place.
            is_emulated: [&name, &platform].iter().any(|text| text.to_lowercase().contains("emulat")),
            name,
            platform,
            backend: text(&found.backend),
            version: text(&found.version),
            driver: text(&found.driver),
            sycl: api.version(),
            kind: match found.kind {
                0 => DeviceKind::Cpu,
                1 => DeviceKind::Gpu,
                2 => DeviceKind::Accelerator,
                _ => DeviceKind::Other,
            },
            has_usm: [found.has_device_usm != 0, found.has_host_usm != 0],
            is_opencl: found.is_opencl != 0,
            memory_bytes: found.memory_bytes,
            largest_bytes: found.largest_bytes,
        })
    }
}
