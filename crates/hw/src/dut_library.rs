//! A device under test in a shared library with the functions of `rtl/lanemark_dut.h`, such as a Verilated module.
//!
//! The library runs in this process: it can do whatever a program can. Only a library that the user names is loaded, and a
//! [`Watchdog`] reports a call that does not return.

#![allow(unsafe_code)]

mod watchdog;

pub use watchdog::{Hang, Watchdog};

use lanemark_dut::{Dut, Inputs, MOST_BEAT_BYTES, Outputs};
use libloading::Library;
use std::ffi::{CStr, c_char, c_void};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use watchdog::{Calls, Function};

/// Version of the interface, `LANEMARK_DUT_ABI`.
const ABI: u32 = 1;

type Abi = unsafe extern "C" fn() -> u32;
type New = unsafe extern "C" fn() -> *mut c_void;
type Free = unsafe extern "C" fn(*mut c_void);
type Clock = unsafe extern "C" fn(*mut c_void, *const Inputs, *mut Outputs);
type Failure = unsafe extern "C" fn(*mut c_void) -> *const c_char;

/// Reason why a library is no device under test.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DutError {
    /// It cannot be loaded.
    #[error("{path} cannot be loaded: {why}; rtl/build makes such a library of SystemVerilog")]
    NotLoaded {
        /// Its path.
        path: String,
        /// Message of the loader.
        why: String,
    },
    /// It has other functions.
    #[error("{path}: {what}; a device under test has the functions of rtl/lanemark_dut.h")]
    OtherInterface {
        /// Its path.
        path: String,
        /// What is missing or different.
        what: String,
    },
    /// It made no device.
    #[error("{path}: lanemark_dut_new returned no device")]
    NoDevice {
        /// Its path.
        path: String,
    },
}

/// A loaded library.
#[derive(Clone, Debug)]
pub struct DutLibrary {
    path: Arc<str>,
    new: New,
    free: Free,
    clock: Clock,
    failure: Failure,
    beat_bytes: usize,
    watchdog: Watchdog,
    /// Keeps the functions in memory.
    _library: Arc<Loaded>,
}

/// A library in memory; its finaliser is a call, too.
#[derive(Debug)]
struct Loaded {
    library: Option<Library>,
    calls: Arc<Calls>,
}

impl Drop for Loaded {
    fn drop(&mut self) {
        let library = self.library.take();
        self.calls.call(Function::Unload, || drop(library));
    }
}

impl DutLibrary {
    /// Loads a library whose calls a watchdog watches.
    ///
    /// # Errors
    /// [`DutError`] if it is absent or has another interface.
    pub fn load(path: &Path, watchdog: &Watchdog) -> Result<DutLibrary, DutError> {
        let name = path.display().to_string();
        let shared: Arc<str> = name.as_str().into();
        let calls = watchdog.watch(&shared, "");
        let not_loaded = |why: String| DutError::NotLoaded { path: name.clone(), why };
        // A name without a folder would be searched in the folders of the system.
        let whole = path.canonicalize().map_err(|error| not_loaded(error.to_string()))?;
        // SAFETY: initialisers of the library run. The user named it to be run.
        let library = calls.call(Function::Load, || unsafe { Library::new(&whole) });
        let library = library.map_err(|error| not_loaded(error.to_string()))?;
        let other = |what: String| DutError::OtherInterface { path: name.clone(), what };
        macro_rules! function {
            ($type:ty, $symbol:literal) => {{
                // SAFETY: the type is that of `rtl/lanemark_dut.h`, whose version is compared below.
                let found = unsafe { library.get::<$type>($symbol) };
                *found.map_err(|_| other(format!("no function {}", String::from_utf8_lossy($symbol))))?
            }};
        }
        let abi = function!(Abi, b"lanemark_dut_abi");
        // SAFETY: takes nothing and returns a number.
        let version = calls.call(Function::Abi, || unsafe { abi() });
        if version != ABI {
            return Err(other(format!("it has version {version} of the interface, and this program version {ABI}")));
        }
        let beat_bytes = function!(Abi, b"lanemark_dut_beat_bytes");
        // SAFETY: takes nothing and returns a number.
        let beat_bytes = calls.call(Function::BeatBytes, || unsafe { beat_bytes() }) as usize;
        if beat_bytes == 0 || !beat_bytes.is_multiple_of(4) || beat_bytes > MOST_BEAT_BYTES {
            return Err(other(format!(
                "beats of {beat_bytes} B; a multiple of 4, at most {MOST_BEAT_BYTES}, is needed"
            )));
        }
        Ok(DutLibrary {
            new: function!(New, b"lanemark_dut_new"),
            free: function!(Free, b"lanemark_dut_free"),
            clock: function!(Clock, b"lanemark_dut_clock"),
            failure: function!(Failure, b"lanemark_dut_failure"),
            beat_bytes,
            path: shared,
            watchdog: watchdog.clone(),
            _library: Arc::new(Loaded { library: Some(library), calls }),
        })
    }

    /// A device in its initial state; `run` names the run in messages, such as `seed 7`.
    ///
    /// # Errors
    /// [`DutError::NoDevice`] if the library returns none.
    pub fn open(&self, run: &str) -> Result<LoadedDut, DutError> {
        let calls = self.watchdog.watch(&self.path, run);
        // SAFETY: the function of the interface; it may be called by any thread.
        let device = NonNull::new(calls.call(Function::New, || unsafe { (self.new)() }));
        let device = device.ok_or_else(|| DutError::NoDevice { path: self.path.to_string() })?;
        Ok(LoadedDut { device, calls, library: self.clone() })
    }
}

/// A device of a library.
#[derive(Debug)]
pub struct LoadedDut {
    device: NonNull<c_void>,
    calls: Arc<Calls>,
    library: DutLibrary,
}

// SAFETY: by `rtl/lanemark_dut.h`, a device may move between threads; `&mut self` keeps its calls apart.
unsafe impl Send for LoadedDut {}

impl Dut for LoadedDut {
    fn beat_bytes(&self) -> usize {
        self.library.beat_bytes
    }

    fn clock(&mut self, inputs: &Inputs, outputs: &mut Outputs) {
        // SAFETY: the device is open, and both structures have the layout of `rtl/lanemark_dut.h`.
        self.calls.call(Function::Clock, || unsafe { (self.library.clock)(self.device.as_ptr(), inputs, outputs) });
    }

    fn failed_assertion(&mut self) -> Option<String> {
        // SAFETY: the device is open.
        let text = self.calls.call(Function::Failure, || unsafe { (self.library.failure)(self.device.as_ptr()) });
        // SAFETY: the text is valid until the next call of the device.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }
}

impl Drop for LoadedDut {
    fn drop(&mut self) {
        // SAFETY: the device is open, and is not used afterwards.
        self.calls.call(Function::Free, || unsafe { (self.library.free)(self.device.as_ptr()) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    #[test]
    fn the_structures_have_the_layout_of_the_header() {
        assert_eq!((size_of::<Inputs>(), size_of::<Outputs>()), (104, 67));
        let offsets = [
            offset_of!(Inputs, rx_bytes),
            offset_of!(Inputs, posted_data),
            offset_of!(Inputs, tags),
            offset_of!(Inputs, timeout_clocks),
            offset_of!(Inputs, msi_address),
        ];
        assert_eq!(offsets, [64, 74, 82, 84, 96]);
        assert_eq!(offset_of!(Outputs, rx_ready), 66);
    }

    #[test]
    fn a_file_that_is_no_library_is_refused_with_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.so");
        std::fs::write(&path, "no library\n").unwrap();
        let watchdog = Watchdog::start(std::time::Duration::from_secs(10), |_| {}).unwrap();
        let error = DutLibrary::load(&path, &watchdog).unwrap_err().to_string();
        assert!(error.contains("text.so cannot be loaded") && error.contains("rtl/build"), "{error}");
        assert!(DutLibrary::load(&folder.path().join("absent.so"), &watchdog).is_err());
    }
}
