//! Whose `memcpy` a program calls.

/// Whose `memcpy` it is.
#[cfg(target_env = "gnu")]
#[allow(unsafe_code)]
pub(crate) fn c_library() -> String {
    unsafe extern "C" {
        safe fn gnu_get_libc_version() -> *const std::ffi::c_char;
    }
    // SAFETY: glibc returns a string that ends in zero and stays as long as the program.
    let version = unsafe { std::ffi::CStr::from_ptr(gnu_get_libc_version()) };
    format!("glibc {}", version.to_string_lossy())
}

/// Whose `memcpy` it is.
#[cfg(not(target_env = "gnu"))]
pub(crate) fn c_library() -> String {
    "this machine's C library".to_owned()
}
