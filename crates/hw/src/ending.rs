//! The end of a process in which threads of runtimes may be at work.

#![allow(unsafe_code)]

/// Ends the process with this status, at once: nothing is done that libraries do at the end of one. They take down what their own threads may still
/// be using, and the process ends with a fault instead.
///
/// ```
/// lanemark_hw::end_at_once(0)
/// ```
pub fn end_at_once(status: u8) -> ! {
    #[cfg(unix)]
    {
        // SAFETY: every C library has it with this type, and nothing has to hold before it is called.
        unsafe extern "C" {
            safe fn _exit(status: i32) -> !;
        }
        _exit(status.into())
    }
    #[cfg(not(unix))]
    std::process::exit(status.into())
}
