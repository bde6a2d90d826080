//! What a runtime offers: devices, in the order in which runtimes list them.

#![allow(unsafe_code)]

use super::OpenClError;
use super::api::Api;
use super::status::{NO_PLATFORM, Status};
use lanemark_machine::DeviceKind;
use opencl_sys as cl;
use std::ffi::c_void;
use std::fmt;
use std::ptr;

/// Longest text that is taken from a runtime, in bytes: a compiler may have much to say.
const MOST_TEXT: usize = 1 << 26;
/// Most platforms, and devices of one, that are listed.
const MOST_LISTED: u32 = 256;

/// A device as its runtime describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// Its number among all devices of all runtimes: `opencl:0` is the first.
    pub number: usize,
    /// Its name.
    pub name: String,
    /// The runtime's name.
    pub platform: String,
    /// The version of OpenCL that the runtime has, and what its vendor adds.
    pub platform_version: String,
    /// The path of the library that found the runtime; `None` if the system does not tell.
    pub loader: Option<String>,
    /// The version of OpenCL that the device has, and what its vendor adds.
    pub version: String,
    /// The version of the driver.
    pub driver: String,
    /// What it is.
    pub kind: DeviceKind,
    /// Whether the runtime says that it only behaves like one.
    pub is_emulated: bool,
    pub(super) id: Id,
}

/// A device's handle, and its runtime's: valid as long as the runtime is loaded, and from every thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux")),
    allow(dead_code, reason = "elsewhere devices are listed and not asked")
)]
pub(super) struct Id {
    pub(super) device: cl::cl_device_id,
    pub(super) platform: cl::cl_platform_id,
}

// SAFETY: OpenCL's handles may be used from any thread (OpenCL 3.0, section 2.1); devices of a platform are never released.
unsafe impl Send for Id {}
// SAFETY: as above.
unsafe impl Sync for Id {}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "opencl:{}: {}", self.number, self.described())
    }
}

impl Device {
    /// All that it says of itself, in one line.
    #[must_use]
    pub fn described(&self) -> String {
        let Device { name, platform, version, driver, kind, is_emulated, .. } = self;
        let emulated = if *is_emulated { ", emulated" } else { "" };
        format!("{name} ({kind}{emulated}), {platform}, {version}, driver {driver}")
    }

    /// Every device of every runtime on this machine that answers, and what those said that do not.
    ///
    /// A call into a runtime that hangs does not come back, and neither does this then.
    ///
    /// # Errors
    /// [`OpenClError::NoLoader`] where there is no OpenCL at all, and [`OpenClError::Nothing`] where no runtime has a device, with the runtimes
    /// that are installed and cannot be loaded.
    pub fn all() -> Result<(Vec<Device>, Vec<String>), OpenClError> {
        let api = Api::loaded()?;
        let (mut devices, mut refused) = (Vec::new(), Vec::new());
        for platform in platforms(&api)? {
            let about = |what| {
                text(|len, into, used| {
                    // SAFETY: `text` gives room for `len` bytes, and a place for how many there are.
                    unsafe { (api.platform_info)(platform, what, len, into, used) }
                })
            };
            let name = about(cl::CL_PLATFORM_NAME);
            let name = name.unwrap_or_else(|error| format!("a runtime without a name ({error})"));
            let version = about(cl::CL_PLATFORM_VERSION).unwrap_or_else(|error| format!("unknown ({error})"));
            let mut refuse = |error: OpenClError| refused.push(format!("{name}: {error}"));
            // One that is broken does not hide the others.
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
            // Runtimes say so in the name; there is no other place.
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
    /// What the device says in words.
    pub(super) fn text(self, api: &Api, what: cl::cl_device_info) -> Result<String, OpenClError> {
        text(|len, into, used| {
            // SAFETY: as in `all`.
            unsafe { (api.device_info)(self.device, what, len, into, used) }
        })
    }

    /// Whether it has an extension.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub(super) fn has(self, api: &Api, extension: &str) -> Result<bool, OpenClError> {
        let all = self.text(api, cl::CL_DEVICE_EXTENSIONS)?;
        Ok(all.split(' ').any(|name| name == extension))
    }

    /// What the device says in a number of 64 bits: a size, or a set of flags.
    pub(super) fn number(self, api: &Api, what: cl::cl_device_info) -> Result<u64, OpenClError> {
        let mut number = 0_u64;
        // SAFETY: there is room for a value of the type that is asked for; a shorter one is refused by the runtime.
        let status = unsafe {
            let into = (&raw mut number).cast::<c_void>();
            (api.device_info)(self.device, what, size_of_val(&number), into, ptr::null_mut())
        };
        good("asking a device what it is", status)?;
        Ok(number)
    }
}

fn platforms(api: &Api) -> Result<Vec<cl::cl_platform_id>, OpenClError> {
    let mut all = vec![ptr::null_mut(); MOST_LISTED as usize];
    let mut count = 0;
    // SAFETY: there is room for as many as are asked for.
    let status = unsafe { (api.platforms)(MOST_LISTED, all.as_mut_ptr(), &raw mut count) };
    if status == NO_PLATFORM {
        return Err(OpenClError::nothing(Vec::new()));
    }
    good("asking which runtimes there are", status)?;
    all.truncate(count as usize);
    Ok(all)
}

fn of_platform(api: &Api, platform: cl::cl_platform_id) -> Result<Vec<cl::cl_device_id>, OpenClError> {
    let mut all = vec![ptr::null_mut(); MOST_LISTED as usize];
    let mut count = 0;
    // SAFETY: there is room for as many as are asked for.
    let status =
        unsafe { (api.devices)(platform, cl::CL_DEVICE_TYPE_ALL, MOST_LISTED, all.as_mut_ptr(), &raw mut count) };
    if status == cl::CL_DEVICE_NOT_FOUND {
        return Ok(Vec::new());
    }
    good("asking a runtime for its devices", status)?;
    all.truncate(count as usize);
    Ok(all)
}

/// A text of a runtime, which is asked how long it is first.
pub(super) fn text(mut ask: impl FnMut(usize, *mut c_void, *mut usize) -> i32) -> Result<String, OpenClError> {
    let mut len = 0;
    good("asking for a text", ask(0, ptr::null_mut(), &raw mut len))?;
    if len > MOST_TEXT {
        return Ok(format!("(a text of {len} B, of which at most {MOST_TEXT} B would be taken)"));
    }
    let mut bytes = vec![0_u8; len];
    if bytes.is_empty() {
        return Ok(String::new());
    }
    good("asking for a text", ask(bytes.len(), bytes.as_mut_ptr().cast(), ptr::null_mut()))?;
    Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\0').trim().to_owned())
}

/// Whether a call succeeded.
pub(super) fn good(doing: &'static str, status: i32) -> Result<(), OpenClError> {
    if status == cl::CL_SUCCESS { Ok(()) } else { Err(OpenClError::Refused { doing, status: Status(status) }) }
}
