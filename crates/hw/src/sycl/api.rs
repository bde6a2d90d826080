//! The functions of the shim, found when they are first needed.
//!
//! What is declared here is what `shim.cpp` defines: who changes one changes the other, and [`SHIM`].

#![allow(unsafe_code)]

use super::SyclError;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use crate::x86::sample::{Ending, Stamps};
use libloading::Library;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
use rustix::io::Errno;
use std::ffi::{CStr, c_char, c_void};
use std::fmt;
use std::sync::OnceLock;

/// What names the shim; without it the system is asked for `NAME`.
const VARIABLE: &str = "LANEMARK_SYCL";
const NAME: &str = "liblanemark_sycl.so";
/// The shim that this program was written for.
const SHIM: u32 = 2;

/// What the shim calls a queue with all that belongs to it.
#[repr(C)]
pub(super) struct Handle {
    _opaque: [u8; 0],
}

/// And kernels with queues of their own.
#[repr(C)]
pub(super) struct Workers {
    _opaque: [u8; 0],
}

/// What went wrong, in the runtime's words.
#[repr(C)]
pub(super) struct Said([u8; 2048]);

impl Said {
    pub(super) const NOTHING: Said = Said([0; 2048]);

    /// What a call came to that gave `status`.
    pub(super) fn good(&self, doing: &'static str, status: i32) -> Result<(), SyclError> {
        if status == 0 { Ok(()) } else { Err(SyclError::Refused { doing, said: text(&self.0) }) }
    }

    /// A sample that was taken, if no call in it failed.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub(super) fn over(&self, stamps: Stamps, doing: &'static str) -> Result<Stamps, SyclError> {
        self.good(doing, i32::from(stamps.ending == Ending::Failed(Errno::IO)))?;
        Ok(stamps)
    }
}

impl fmt::Debug for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(&self.0))
    }
}

/// A device as the shim describes it; texts that are too long are cut.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Described {
    pub(super) name: [u8; 256],
    pub(super) platform: [u8; 256],
    pub(super) version: [u8; 256],
    pub(super) driver: [u8; 256],
    pub(super) backend: [u8; 64],
    pub(super) memory_bytes: u64,
    pub(super) largest_bytes: u64,
    /// 0 a processor, 1 a graphics processor, 2 an accelerator, 3 something else.
    pub(super) kind: u32,
    pub(super) is_opencl: u8,
    pub(super) has_device_usm: u8,
    pub(super) has_host_usm: u8,
}

impl Described {
    pub(super) const NOTHING: Described = Described {
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

/// A text that ends with a zero, or where its room does.
pub(super) fn text(of: &[u8]) -> String {
    let end = of.iter().position(|byte| *byte == 0).unwrap_or(of.len());
    String::from_utf8_lossy(&of[..end]).trim().to_owned()
}

macro_rules! functions {
    ($($field:ident: $name:literal, fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// What is called, as the shim has it.
        #[derive(Clone, Copy)]
        #[cfg_attr(
            not(all(target_arch = "x86_64", target_os = "linux")),
            allow(dead_code, reason = "elsewhere devices are listed and not asked")
        )]
        pub(super) struct Api {
            $(pub(super) $field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Api {
            fn of(library: &Library, place: &str) -> Result<Api, SyclError> {
                $(
                    // SAFETY: the type is that of the function of this name in `shim.cpp`, as its number says.
                    let $field = unsafe { library.get::<unsafe extern "C" fn($($argument),*) $(-> $result)?>($name.as_bytes()) };
                    let $field = *$field.map_err(|_| SyclError::OtherShim {
                        place: place.to_owned(),
                        what: format!("has no function {}", $name),
                    })?;
                )*
                Ok(Api { $($field,)* })
            }
        }
    };
}

functions! {
    version: "lanemark_sycl_version", fn() -> *const c_char;
    count: "lanemark_sycl_count", fn(*mut usize, *mut Said) -> i32;
    device: "lanemark_sycl_device", fn(usize, *mut Described, *mut Said) -> i32;
    open: "lanemark_sycl_open", fn(usize, *mut *mut Handle, *mut *mut c_void, *mut *mut c_void, *mut Said) -> i32;
    close: "lanemark_sycl_close", fn(*mut Handle);
    kernel: "lanemark_sycl_kernel", fn(*mut Handle, u32, *mut c_void, *mut Said) -> i32;
    arguments: "lanemark_sycl_arguments", fn(*mut Handle, u32, i32, *mut Said) -> i32;
    launch: "lanemark_sycl_launch", fn(*mut Handle, u32, u32, u32, i32, *mut Said) -> i32;
    copies: "lanemark_sycl_copies", fn(*mut Handle, usize, i32, *mut *mut c_void, *mut Said) -> i32;
    copy: "lanemark_sycl_copy", fn(*mut Handle, u32, u32, *mut u8, *mut Said) -> i32;
    failed: "lanemark_sycl_failed", fn(*mut Handle, *mut Said) -> i32;
    workers: "lanemark_sycl_workers", fn(*mut Handle, *mut *mut Workers, *mut Said) -> i32;
    no_workers: "lanemark_sycl_no_workers", fn(*mut Workers);
    worker: "lanemark_sycl_worker", fn(*mut Workers, *mut c_void, *const usize, usize, *const u64, *const u8, usize, *mut Said) -> i32;
    bring: "lanemark_sycl_bring", fn(*mut Workers, usize, usize, u32, *mut u8, usize, *mut Said) -> i32;
    compute: "lanemark_sycl_compute", fn(*mut Workers, u32, *mut Said) -> i32;
}

impl fmt::Debug for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Api")
    }
}

impl Api {
    /// The functions of this machine's shim.
    ///
    /// # Errors
    /// [`SyclError::NoShim`] with what the system said, and [`SyclError::OtherShim`].
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
        // SAFETY: what a library does when it is loaded is its own affair; this one is asked for by name.
        let library = unsafe { Library::new(place) };
        let library = library.map_err(|error| SyclError::NoShim(crate::opencl::said(&error)))?;
        let other = |what: String| SyclError::OtherShim { place: place.to_owned(), what };
        // SAFETY: the one function whose type stays the same in every shim.
        let number = unsafe { library.get::<unsafe extern "C" fn() -> u32>("lanemark_sycl_shim") };
        let number = *number.map_err(|_| other("is none: it has no function lanemark_sycl_shim".to_owned()))?;
        // SAFETY: as above.
        match unsafe { number() } {
            SHIM => {}
            found => return Err(other(format!("is number {found}, and number {SHIM} is wanted"))),
        }
        let api = Api::of(&library, place)?;
        Ok((library, api))
    }

    /// Which SYCL the shim was compiled for.
    pub(super) fn version(&self) -> String {
        // SAFETY: the shim gives a text that lives as long as it does, which is for ever.
        unsafe { CStr::from_ptr((self.version)()) }.to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_without_a_shim_says_so_and_what_makes_one() {
        let nowhere = Api::from("/nowhere/liblanemark_sycl.so").unwrap_err().to_string();
        assert!(nowhere.contains("/nowhere/liblanemark_sycl.so") && nowhere.contains("make runtimes"), "{nowhere}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn another_library_is_no_shim() {
        let other = Api::from("libc.so.6").unwrap_err().to_string();
        assert!(other.contains("libc.so.6 is none") && other.contains("make runtimes"), "{other}");
    }

    #[test]
    fn what_a_runtime_said_ends_with_a_zero_or_with_its_room() {
        let mut said = Said::NOTHING;
        said.0[..3].copy_from_slice(b"no\n");
        assert_eq!(said.good("asking", 1).unwrap_err().to_string(), "asking: no");
        assert_eq!(said.good("asking", 0), Ok(()));
        assert_eq!(text(b"xxxx"), "xxxx");
    }
}
