//! Functions of the SYCL shim, loaded when first needed.
//!
//! The declarations here match `shim.cpp`: change both together, and increment [`SHIM`].

#![allow(unsafe_code)]

use super::error::SyclError;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use crate::x86::sample::{Ending, Stamps};
use libloading::Library;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use rustix::io::Errno;
use std::ffi::{CStr, c_char, c_void};
use std::fmt;
use std::sync::OnceLock;

/// Environment variable with the path of the shim; by default `NAME` is loaded from the library search path.
const VARIABLE: &str = "LANEMARK_SYCL";
const NAME: &str = "liblanemark_sycl.so";
/// Version of the shim interface that this program uses.
const SHIM: u32 = 2;

/// Queue of the shim, with everything that belongs to it.
#[repr(C)]
pub(super) struct Handle {
    _opaque: [u8; 0],
}

/// Compute kernels of the shim, each with a queue of its own.
#[repr(C)]
pub(super) struct WorkersHandle {
    _opaque: [u8; 0],
}

/// Buffer for the runtime's error message.
#[repr(C)]
pub(super) struct Message([u8; 2048]);

impl Message {
    pub(super) const EMPTY: Message = Message([0; 2048]);

    /// Converts the status of a call to a result, with the message.
    pub(super) fn check(&self, doing: &'static str, status: i32) -> Result<(), SyclError> {
        if status == 0 { Ok(()) } else { Err(SyclError::Refused { doing, said: text(&self.0) }) }
    }

    /// Returns the stamps of a sample, or the error of a call in it.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub(super) fn stamps(&self, stamps: Stamps, doing: &'static str) -> Result<Stamps, SyclError> {
        self.check(doing, i32::from(stamps.ending == Ending::Failed(Errno::IO)))?;
        Ok(stamps)
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(&self.0))
    }
}

/// Device description of the shim; long texts are truncated.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct DeviceInfo {
    pub(super) name: [u8; 256],
    pub(super) platform: [u8; 256],
    pub(super) version: [u8; 256],
    pub(super) driver: [u8; 256],
    pub(super) backend: [u8; 64],
    pub(super) memory_bytes: u64,
    pub(super) largest_bytes: u64,
    /// 0 CPU, 1 GPU, 2 accelerator, 3 other.
    pub(super) kind: u32,
    pub(super) is_opencl: u8,
    pub(super) has_device_usm: u8,
    pub(super) has_host_usm: u8,
}

impl DeviceInfo {
    pub(super) const EMPTY: DeviceInfo = DeviceInfo {
        name: [0; 256],
        platform: [0; 256],
        version: [0; 256],
        driver: [0; 256],
        backend: [0; 64],
        memory_bytes: 0,
        largest_bytes: 0,
        kind: 3,
        is_opencl: 0,
        has_device_usm: 0,
        has_host_usm: 0,
    };
}

/// Reads a text that ends at the first NUL or at the end of the buffer.
pub(super) fn text(of: &[u8]) -> String {
    let end = of.iter().position(|byte| *byte == 0).unwrap_or(of.len());
    String::from_utf8_lossy(&of[..end]).trim().to_owned()
}

macro_rules! functions {
    ($($field:ident: $name:literal, fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// Functions of the loaded shim.
        #[derive(Clone, Copy)]
        #[cfg_attr(
            not(all(target_arch = "x86_64", target_os = "linux")),
            allow(dead_code, reason = "on other targets devices are listed but not measured")
        )]
        pub(super) struct Api {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Api {
            fn of(library: &Library, place: &str) -> Result<Api, SyclError> {
                $(
                    // SAFETY: the type is that of the function of this name in `shim.cpp`; the version was compared before.
                    let $field = unsafe { library.get::<unsafe extern "C" fn($($argument),*) $(-> $result)?>($name.as_bytes()) };
                    let $field = *$field.map_err(|_| SyclError::OtherShim {
                        place: place.to_owned(),
                        what: format!("lacks the function {}", $name),
                    })?;
                )*
                Ok(Api { $($field,)* })
            }
        }
    };
}

functions! {
    version: "lanemark_sycl_version", fn() -> *const c_char;
    count: "lanemark_sycl_count", fn(*mut usize, *mut Message) -> i32;
    device: "lanemark_sycl_device", fn(usize, *mut DeviceInfo, *mut Message) -> i32;
    open: "lanemark_sycl_open", fn(usize, *mut *mut Handle, *mut *mut c_void, *mut *mut c_void, *mut Message) -> i32;
    close: "lanemark_sycl_close", fn(*mut Handle);
    kernel: "lanemark_sycl_kernel", fn(*mut Handle, u32, *mut c_void, *mut Message) -> i32;
    arguments: "lanemark_sycl_arguments", fn(*mut Handle, u32, i32, *mut Message) -> i32;
    launch: "lanemark_sycl_launch", fn(*mut Handle, u32, u32, u32, i32, *mut Message) -> i32;
    copies: "lanemark_sycl_copies", fn(*mut Handle, usize, i32, *mut *mut c_void, *mut Message) -> i32;
    copy: "lanemark_sycl_copy", fn(*mut Handle, u32, u32, *mut u8, *mut Message) -> i32;
    failed: "lanemark_sycl_failed", fn(*mut Handle, *mut Message) -> i32;
    workers: "lanemark_sycl_workers", fn(*mut Handle, *mut *mut WorkersHandle, *mut Message) -> i32;
    no_workers: "lanemark_sycl_no_workers", fn(*mut WorkersHandle);
    worker: "lanemark_sycl_worker", fn(*mut WorkersHandle, *mut c_void, *const usize, usize, *const u64, *const u8, usize, *mut Message) -> i32;
    bring: "lanemark_sycl_bring", fn(*mut WorkersHandle, usize, usize, u32, *mut u8, usize, *mut Message) -> i32;
    compute: "lanemark_sycl_compute", fn(*mut WorkersHandle, u32, *mut Message) -> i32;
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Api")
    }
}

impl Api {
    /// Returns the functions of this machine's shim, loading it at the first call.
    ///
    /// # Errors
    /// [`SyclError::NoShim`] with the message of the system, and [`SyclError::OtherShim`].
    pub(super) fn loaded() -> Result<Api, SyclError> {
        static LOADED: OnceLock<Result<(Library, Api), SyclError>> = OnceLock::new();
        let load = || {
            let place = std::env::var(VARIABLE).unwrap_or_else(|_| NAME.to_owned());
            Api::from(&place)
        };
        match LOADED.get_or_init(load) {
            Ok((_, api)) => Ok(*api),
            Err(error) => Err(error.clone()),
        }
    }

    fn from(place: &str) -> Result<(Library, Api), SyclError> {
        // SAFETY: loading runs the library's initialisers; the library is loaded by its well-known name or the user's choice.
        let library = unsafe { Library::new(place) };
        let library = library.map_err(|error| SyclError::NoShim(crate::opencl::load_error(&error)))?;
        let other = |what: String| SyclError::OtherShim { place: place.to_owned(), what };
        // SAFETY: every shim version exports this function with this type.
        let number = unsafe { library.get::<unsafe extern "C" fn() -> u32>("lanemark_sycl_shim") };
        let number =
            *number.map_err(|_| other("is not a shim: it lacks the function lanemark_sycl_shim".to_owned()))?;
        // SAFETY: as above.
        match unsafe { number() } {
            SHIM => {}
            found => return Err(other(format!("has interface version {found} instead of {SHIM}"))),
        }
        let api = Api::of(&library, place)?;
        Ok((library, api))
    }

    /// SYCL version that the shim was compiled for.
    pub(super) fn version(&self) -> String {
        // SAFETY: the shim returns a static string and is never unloaded.
        unsafe { CStr::from_ptr((self.version)()) }.to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_shim_is_reported_with_the_command_that_builds_it() {
        let nowhere = Api::from("/nowhere/liblanemark_sycl.so").unwrap_err().to_string();
        assert!(nowhere.contains("/nowhere/liblanemark_sycl.so") && nowhere.contains("make runtimes"), "{nowhere}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn another_library_is_not_accepted_as_a_shim() {
        let other = Api::from("libc.so.6").unwrap_err().to_string();
        assert!(other.contains("libc.so.6 is not a shim") && other.contains("make runtimes"), "{other}");
    }

    #[test]
    fn a_message_ends_at_nul_or_at_the_end_of_its_buffer() {
        let mut said = Message::EMPTY;
        said.0[..3].copy_from_slice(b"no\n");
        assert_eq!(said.check("asking", 1).unwrap_err().to_string(), "asking: no");
        assert_eq!(said.check("asking", 0), Ok(()));
        assert_eq!(text(b"xxxx"), "xxxx");
    }
}
