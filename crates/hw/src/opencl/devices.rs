//! Devices of all OpenCL runtimes, in the order in which the runtimes list them.

#![allow(unsafe_code)]

use super::api::Api;
use super::device::{Device, Id};
use super::error::OpenClError;
use super::status::{NO_PLATFORM, Status};
use lanemark_machine::DeviceKind;
use opencl_sys as cl;
use std::ffi::c_void;
use std::ptr;

/// Longest text that is read from a runtime, in bytes; compiler logs may be long.
const MOST_TEXT: usize = 1 << 26;
/// Maximum number of platforms, and of devices per platform.
const MOST_LISTED: u32 = 256;

impl Device {
    /// All devices of the runtimes on this machine that respond, and the errors of those that do not.
    ///
    /// Blocks for ever if a runtime hangs.
    ///
    /// # Errors
    /// [`OpenClError::NoLoader`] if OpenCL is not installed, and [`OpenClError::Nothing`] if no runtime has a device, with
    /// the installed runtimes that cannot be loaded.
    pub fn all() -> Result<(Vec<Device>, Vec<String>), OpenClError> {
        let api = Api::loaded()?;
        let (mut devices, mut refused) = (Vec::new(), Vec::new());
        for platform in platforms(&api)? {
            let about = |what| {
                text(|len, into, used| {
                    // SAFETY: `text` passes a buffer of `len` bytes and a valid pointer for the length.
                    unsafe { (api.platform_info)(platform, what, len, into, used) }
                })
            };
            let name = about(cl::CL_PLATFORM_NAME);
            let name = name.unwrap_or_else(|error| format!("a runtime without a name ({error})"));
            let version = about(cl::CL_PLATFORM_VERSION).unwrap_or_else(|error| format!("unknown ({error})"));
            let mut refuse = |error: OpenClError| refused.push(format!("{name}: {error}"));
            // A broken runtime must not hide the others.
            let ids = of_platform(&api, platform).unwrap_or_else(|error| {
                refuse(error);
                Vec::new()
            });
            for device in ids {
                let id = Id { device, platform };
                match Device::of(&api, id, devices.len(), [&name, &version]) {
                    Ok(device) => devices.push(device),
                    Err(error) => refuse(error),
                }
            }
        }
        if devices.is_empty() { Err(OpenClError::nothing(refused)) } else { Ok((devices, refused)) }
    }

    fn of(api: &Api, id: Id, number: usize, [platform, platform_version]: [&str; 2]) -> Result<Device, OpenClError> {
        let text = |what| id.text(api, what);
        let bits = id.number(api, cl::CL_DEVICE_TYPE)?;
        let name = text(cl::CL_DEVICE_NAME)?;
        Ok(Device {
            number,
            // The name is the only place where runtimes say so.
            is_emulated: [&name, platform].iter().any(|text| text.to_lowercase().contains("emulat")),
            name,
            platform: platform.to_owned(),
            platform_version: platform_version.to_owned(),
            loader: api.loader(),
            version: text(cl::CL_DEVICE_VERSION)?,
            driver: text(cl::CL_DRIVER_VERSION)?,
            kind: match bits {
                bits if bits & cl::CL_DEVICE_TYPE_ACCELERATOR != 0 => DeviceKind::Accelerator,
                bits if bits & cl::CL_DEVICE_TYPE_GPU != 0 => DeviceKind::Gpu,
                bits if bits & cl::CL_DEVICE_TYPE_CPU != 0 => DeviceKind::Cpu,
                _ => DeviceKind::Other,
            },
            id,
        })
    }
}

impl Id {
    /// Text property of the device.
    pub(super) fn text(self, api: &Api, what: cl::cl_device_info) -> Result<String, OpenClError> {
        text(|len, into, used| {
            // SAFETY: as in `all`.
            unsafe { (api.device_info)(self.device, what, len, into, used) }
        })
    }

    /// Whether the device has this extension.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub(super) fn has(self, api: &Api, extension: &str) -> Result<bool, OpenClError> {
        let all = self.text(api, cl::CL_DEVICE_EXTENSIONS)?;
        Ok(all.split(' ').any(|name| name == extension))
    }

    /// Numeric property of the device, up to 64 bits: a size or a set of flags.
    pub(super) fn number(self, api: &Api, what: cl::cl_device_info) -> Result<u64, OpenClError> {
        let mut number = 0_u64;
        // SAFETY: the buffer holds the largest numeric property; the runtime rejects a buffer that is too short.
        let status = unsafe {
            let into = (&raw mut number).cast::<c_void>();
            (api.device_info)(self.device, what, size_of_val(&number), into, ptr::null_mut())
        };
        check("querying a device property", status)?;
        Ok(number)
    }
}

fn platforms(api: &Api) -> Result<Vec<cl::cl_platform_id>, OpenClError> {
    let mut all = vec![ptr::null_mut(); MOST_LISTED as usize];
    let mut count = 0;
    // SAFETY: the array has `MOST_LISTED` entries.
    let status = unsafe { (api.platforms)(MOST_LISTED, all.as_mut_ptr(), &raw mut count) };
    if status == NO_PLATFORM {
        return Err(OpenClError::nothing(Vec::new()));
    }
    check("listing the OpenCL platforms", status)?;
    all.truncate(count as usize);
    Ok(all)
}

fn of_platform(api: &Api, platform: cl::cl_platform_id) -> Result<Vec<cl::cl_device_id>, OpenClError> {
    let mut all = vec![ptr::null_mut(); MOST_LISTED as usize];
    let mut count = 0;
    // SAFETY: the array has `MOST_LISTED` entries.
    let status =
        unsafe { (api.devices)(platform, cl::CL_DEVICE_TYPE_ALL, MOST_LISTED, all.as_mut_ptr(), &raw mut count) };
    if status == cl::CL_DEVICE_NOT_FOUND {
        return Ok(Vec::new());
    }
    check("listing the devices of a platform", status)?;
    all.truncate(count as usize);
    Ok(all)
}

/// Reads a text property: `ask` is called for the length first, then for the text.
pub(super) fn text(mut ask: impl FnMut(usize, *mut c_void, *mut usize) -> i32) -> Result<String, OpenClError> {
    let mut len = 0;
    check("querying a text property", ask(0, ptr::null_mut(), &raw mut len))?;
    if len > MOST_TEXT {
        return Ok(format!("(a text of {len} B, more than the {MOST_TEXT} B that are read)"));
    }
    let mut bytes = vec![0_u8; len];
    if bytes.is_empty() {
        return Ok(String::new());
    }
    check("querying a text property", ask(bytes.len(), bytes.as_mut_ptr().cast(), ptr::null_mut()))?;
    Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\0').trim().to_owned())
}

/// Converts a status code to a result.
pub(super) fn check(doing: &'static str, status: i32) -> Result<(), OpenClError> {
    if status == cl::CL_SUCCESS { Ok(()) } else { Err(OpenClError::Refused { doing, status: Status(status) }) }
}
