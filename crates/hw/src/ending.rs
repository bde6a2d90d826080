//! Process exit that skips the exit handlers of loaded runtimes.

#![allow(unsafe_code)]

/// Ends the process immediately with `status`, without exit handlers.
///
/// Exit handlers of runtime libraries free memory that their own threads may still use, which crashes the process.
///
/// ```
/// lanemark_hw::end_at_once(0)
/// ```
pub fn end_at_once(status: u8) -> ! {
    #[cfg(unix)]
    {
        // SAFETY: `_exit` has this type in every C library and has no precondition.
        unsafe extern "C" {
            safe fn _exit(status: i32) -> !;
        }
        _exit(status.into())
    }
    #[cfg(not(unix))]
    std::process::exit(status.into())
}
