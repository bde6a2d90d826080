//! A device of a library, and the library in memory.

use super::watchdog::{Calls, Function, Watchdog};
use libloading::Library;
use std::ffi::{CStr, c_char, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

/// `lanemark_dut_free`.
pub(super) type Free = unsafe extern "C" fn(*mut c_void);
/// `lanemark_dut_failure`.
pub(super) type Failure = unsafe extern "C" fn(*mut c_void) -> *const c_char;

/// A library in memory; its finaliser is a call, too.
#[derive(Debug)]
pub(super) struct InMemory {
    pub library: Option<Library>,
    pub calls: Arc<Calls>,
}

impl Drop for InMemory {
    fn drop(&mut self) {
        let library = self.library.take();
        self.calls.call(Function::Unload, || drop(library));
    }
}

/// A device of a library, which is freed with it.
#[derive(Debug)]
pub(super) struct Device {
    pub pointer: NonNull<c_void>,
    pub calls: Arc<Calls>,
    pub failure: Failure,
    pub free: Free,
    /// Keeps the functions in memory.
    pub _library: Arc<InMemory>,
    /// Keeps the thread that watches the calls.
    pub _watchdog: Watchdog,
}

// SAFETY: by `rtl/lanemark_dut.h`, a device may move between threads; only one owner has it, so its calls do not overlap.
unsafe impl Send for Device {}

impl Device {
    pub fn failed_assertion(&mut self) -> Option<String> {
        // SAFETY: the device is open.
        let text = self.calls.call(Function::Failure, || unsafe { (self.failure)(self.pointer.as_ptr()) });
        // SAFETY: the text is valid until the next call of the device.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: the device is open, and is not used afterwards.
        self.calls.call(Function::Free, || unsafe { (self.free)(self.pointer.as_ptr()) });
    }
}
