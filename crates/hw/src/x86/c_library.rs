//! Name of the C library whose `memcpy` is called.

/// Name and version of the C library.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
pub(crate) fn c_library() -> String {
    unsafe extern "C" {
        safe fn gnu_get_libc_version() -> *const std::ffi::c_char;
    }
    // SAFETY: glibc returns a static NUL-terminated string.
    let version = unsafe { std::ffi::CStr::from_ptr(gnu_get_libc_version()) };
    format!("glibc {}", version.to_string_lossy())
}

/// Name and version of the C library.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn c_library() -> String {
    "this machine's C library".to_owned()
}
