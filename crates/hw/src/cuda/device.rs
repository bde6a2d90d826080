//! A device of the CUDA driver.

#![allow(unsafe_code)]

use super::api::Api;
use super::error::CudaError;
use super::status::SUCCESS;
use std::ffi::{CStr, c_char, c_int};
use std::fmt;

/// CUDA device, as described by its driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// Number among the devices that the driver shows to this process: `cuda:0` is the first.
    pub number: usize,
    /// Device name.
    pub name: String,
    /// PCI address, such as `0000:01:00.0`.
    pub bus_id: String,
    /// Compute capability, such as `9.0`.
    pub capability: String,
    /// Newest CUDA version that the driver supports, such as `13.0`.
    pub driver_api: String,
    /// Version of the driver, such as `580.65.06`; `None` if the kernel does not report it.
    pub driver_version: Option<String>,
    /// Memory of the device in bytes.
    pub memory_bytes: u64,
    /// Number of multiprocessors.
    pub multiprocessors: u32,
    /// Largest number of blocks that a multiprocessor runs concurrently.
    pub blocks_per_multiprocessor: u32,
    /// Whether host and device share one memory.
    pub is_integrated: bool,
    pub(super) handle: c_int,
}

/// Attributes of a device. Source: CUDA Driver API 12.8, `CUdevice_attribute`.
mod attribute {
    use std::ffi::c_int;
    pub(super) const MULTIPROCESSOR_COUNT: c_int = 16;
    pub(super) const INTEGRATED: c_int = 18;
    pub(super) const COMPUTE_CAPABILITY_MAJOR: c_int = 75;
    pub(super) const COMPUTE_CAPABILITY_MINOR: c_int = 76;
    pub(super) const MAX_BLOCKS_PER_MULTIPROCESSOR: c_int = 106;
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cuda:{}: {}", self.number, self.described())
    }
}

impl Device {
    /// Devices that the driver shows to this process, in its order.
    ///
    /// Blocks for ever if the driver hangs.
    ///
    /// # Errors
    /// [`CudaError::NoDriver`], [`CudaError::NoFunction`], [`CudaError::Nothing`], and [`CudaError::NotListed`].
    pub fn all() -> Result<Vec<Device>, CudaError> {
        Device::listed().map_err(|error| match error {
            CudaError::Refused { status, .. } if status.is_no_device() => CudaError::Nothing(status.to_string()),
            CudaError::Refused { doing, status } => CudaError::NotListed { doing, status },
            error => error,
        })
    }

    fn listed() -> Result<Vec<Device>, CudaError> {
        let api = Api::loaded()?;
        let mut count = 0;
        // SAFETY: the pointer is valid.
        CudaError::check("counting the devices", unsafe { (api.device_count)(&raw mut count) })?;
        let devices: Vec<Device> = (0..count).map(|number| Device::of(&api, number)).collect::<Result<_, _>>()?;
        if devices.is_empty() { Err(CudaError::Nothing("it counts 0".to_owned())) } else { Ok(devices) }
    }

    fn of(api: &Api, number: c_int) -> Result<Device, CudaError> {
        let (mut handle, mut version, mut bytes) = (0, 0, 0);
        // SAFETY: the pointers are valid, and the number is below the count of devices.
        unsafe {
            CudaError::check("opening a device", (api.device)(&raw mut handle, number))?;
            CudaError::check("asking for the version of the driver", (api.driver_version)(&raw mut version))?;
            CudaError::check("asking for the memory of a device", (api.device_bytes)(&raw mut bytes, handle))?;
        }
        let attribute = |attribute| {
            let mut value = 0;
            // SAFETY: the pointer is valid.
            let status = unsafe { (api.device_attribute)(&raw mut value, attribute, handle) };
            CudaError::check("asking for an attribute of a device", status).map(|()| value)
        };
        let count = |of| attribute(of).map(|value| u32::try_from(value).unwrap_or(0).max(1));
        let (major, minor) =
            (attribute(attribute::COMPUTE_CAPABILITY_MAJOR)?, attribute(attribute::COMPUTE_CAPABILITY_MINOR)?);
        Ok(Device {
            number: usize::try_from(number).unwrap_or(0),
            name: text("asking for the name of a device", |into, len| {
                // SAFETY: `text` passes a buffer of `len` bytes.
                unsafe { (api.device_name)(into, len, handle) }
            })?,
            bus_id: text("asking for the PCI address of a device", |into, len| {
                // SAFETY: as above.
                unsafe { (api.device_bus_id)(into, len, handle) }
            })?
            .to_ascii_lowercase(),
            capability: format!("{major}.{minor}"),
            driver_api: format!("{}.{}", version / 1000, version % 1000 / 10),
            driver_version: driver_version(),
            memory_bytes: bytes as u64,
            multiprocessors: count(attribute::MULTIPROCESSOR_COUNT)?,
            // Drivers before 11.0 lack this attribute; every device runs 16 blocks.
            blocks_per_multiprocessor: count(attribute::MAX_BLOCKS_PER_MULTIPROCESSOR).unwrap_or(16),
            is_integrated: attribute(attribute::INTEGRATED)? != 0,
            handle,
        })
    }

    /// Name, PCI address and versions, in one line.
    #[must_use]
    pub fn described(&self) -> String {
        let Device { name, bus_id, driver_api, driver_version, .. } = self;
        let driver = driver_version.as_ref().map_or_else(|| "driver".to_owned(), |version| format!("driver {version}"));
        format!("{name} at {bus_id}, {driver} for CUDA {driver_api}")
    }
}

/// Version of the kernel's part of the driver.
fn driver_version() -> Option<String> {
    let text = std::fs::read_to_string("/sys/module/nvidia/version").ok()?;
    Some(text.trim().to_owned()).filter(|version| !version.is_empty())
}

/// Text that the driver writes into a buffer.
fn text(doing: &'static str, write: impl FnOnce(*mut c_char, c_int) -> c_int) -> Result<String, CudaError> {
    const ROOM: c_int = 255;
    let mut bytes = [0_u8; ROOM as usize + 1];
    let status = write(bytes.as_mut_ptr().cast(), ROOM);
    CudaError::check(doing, status)?;
    debug_assert_eq!(status, SUCCESS);
    let text = CStr::from_bytes_until_nul(&bytes).map_err(|error| CudaError::System(error.to_string()))?;
    Ok(text.to_string_lossy().into_owned())
}
