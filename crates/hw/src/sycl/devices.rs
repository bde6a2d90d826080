//! SYCL devices, in the order in which SYCL lists them.

#![allow(unsafe_code)]

use super::api::{Api, DeviceInfo, Message, text};
use super::device::Device;
use super::error::SyclError;
use crate::opencl::vendors;
use lanemark_machine::DeviceKind;

impl Device {
    /// All devices of this machine.
    ///
    /// Blocks for ever if a runtime hangs.
    ///
    /// # Errors
    /// [`SyclError::NoShim`] and [`SyclError::OtherShim`] without a usable SYCL shim, [`SyclError::Nothing`] without devices, and
    /// [`SyclError::Refused`] if a device cannot be queried.
    pub fn all() -> Result<Vec<Device>, SyclError> {
        let api = Api::loaded()?;
        let (mut count, mut said) = (0, Message::EMPTY);
        // SAFETY: both pointers are valid.
        let status = unsafe { (api.count)(&raw mut count, &raw mut said) };
        // Without an OpenCL runtime, some SYCL versions return an error and others an empty list.
        let error = said.check("listing the SYCL devices", status).err();
        if error.is_some() || count == 0 {
            return Err(SyclError::Nothing { said: error.map(|error| error.to_string()), vendors: vendors() });
        }
        (0..count).map(|number| Device::of(&api, number)).collect()
    }

    fn of(api: &Api, number: usize) -> Result<Device, SyclError> {
        let (mut found, mut said) = (DeviceInfo::EMPTY, Message::EMPTY);
        // SAFETY: both pointers are valid.
        let status = unsafe { (api.device)(number, &raw mut found, &raw mut said) };
        said.check("querying a device's properties", status)?;
        let (name, platform) = (text(&found.name), text(&found.platform));
        Ok(Device {
            number,
            // The name is the only place where runtimes say so.
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
