//! A device under test in a shared library with the functions of `rtl/lanemark_dut.h`, such as a Verilated module.
//!
//! The library runs in this process: it can do whatever a program can. Only a library that the user names is loaded, and a
//! [`Watchdog`] reports a call that does not return.

#![allow(unsafe_code)]

mod design;
mod device;
mod watchdog;

pub use watchdog::{Hang, Watchdog};

use design::{Evaluate, LoadedDesign, Ports};
use device::{Device, Failure, Free, InMemory};
use lanemark_dut::{Dut, Inputs, MOST_BEAT_BYTES, Outputs};
use lanemark_hard_blocks::{AttachError, BehindBlock};
use libloading::Library;
use std::ffi::c_void;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use watchdog::Function;

/// Versions of the interface.
const STREAM: u32 = 1;
const PORTS: u32 = 2;

type Abi = unsafe extern "C" fn() -> u32;
type New = unsafe extern "C" fn() -> *mut c_void;
type Clock = unsafe extern "C" fn(*mut c_void, *const Inputs, *mut Outputs);

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
    /// Its list of ports is invalid.
    #[error("{path}: lanemark_dut_ports: {what}")]
    BadPorts {
        /// Its path.
        path: String,
        /// The number of the port without a name, a value or a width; or the number of ports.
        what: String,
    },
    /// Its ports match no interface.
    #[error("{path}: {why}; docs/guide/rtl.md lists the interfaces")]
    NotAttached {
        /// Its path.
        path: String,
        /// The reason.
        why: AttachError,
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
    failure: Failure,
    kind: Kind,
    watchdog: Watchdog,
    /// Keeps the functions in memory.
    library: Arc<InMemory>,
}

/// The functions that only one version of the interface has.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Stream { clock: Clock, beat_bytes: usize },
    Ports { ports: Ports, evaluate: Evaluate },
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
        let kind = match version {
            STREAM => {
                let beat_bytes = function!(Abi, b"lanemark_dut_beat_bytes");
                // SAFETY: takes nothing and returns a number.
                let beat_bytes = calls.call(Function::BeatBytes, || unsafe { beat_bytes() }) as usize;
                if beat_bytes == 0 || !beat_bytes.is_multiple_of(4) || beat_bytes > MOST_BEAT_BYTES {
                    return Err(other(format!(
                        "beats of {beat_bytes} B; a multiple of 4, at most {MOST_BEAT_BYTES}, is needed"
                    )));
                }
                Kind::Stream { clock: function!(Clock, b"lanemark_dut_clock"), beat_bytes }
            }
            PORTS => Kind::Ports {
                ports: function!(Ports, b"lanemark_dut_ports"),
                evaluate: function!(Evaluate, b"lanemark_dut_evaluate"),
            },
            _ => {
                return Err(other(format!(
                    "lanemark_dut_abi returned {version}, and this program supports {STREAM} (TLPs) and {PORTS} (ports); build it \
                     again with rtl/build"
                )));
            }
        };
        let loaded = DutLibrary {
            new: function!(New, b"lanemark_dut_new"),
            free: function!(Free, b"lanemark_dut_free"),
            failure: function!(Failure, b"lanemark_dut_failure"),
            kind,
            path: shared,
            watchdog: watchdog.clone(),
            library: Arc::new(InMemory { library: Some(library), calls }),
        };
        // Unknown interfaces are reported before the first run.
        if let Kind::Ports { .. } = kind {
            loaded.open("")?;
        }
        Ok(loaded)
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
        let device = Device {
            pointer: device,
            calls,
            failure: self.failure,
            free: self.free,
            _library: self.library.clone(),
            _watchdog: self.watchdog.clone(),
        };
        match self.kind {
            Kind::Stream { clock, beat_bytes } => Ok(LoadedDut(Loaded::Stream { device, clock, beat_bytes })),
            Kind::Ports { ports, evaluate } => {
                let path = || self.path.to_string();
                let design = LoadedDesign::new(device, ports, evaluate)
                    .map_err(|what| DutError::BadPorts { path: path(), what })?;
                let design = BehindBlock::new(design).map_err(|why| DutError::NotAttached { path: path(), why })?;
                Ok(LoadedDut(Loaded::Ports(Box::new(design))))
            }
        }
    }
}

impl LoadedDut {
    /// Its interface and the width of its streams, such as `plain stream of TLPs, 32 bits`.
    #[must_use]
    pub fn interface(&self) -> String {
        match &self.0 {
            Loaded::Stream { beat_bytes, .. } => format!("software model, TLPs in beats of {} bits", beat_bytes * 8),
            Loaded::Ports(design) => design.attached().described(),
        }
    }

    /// Inputs of the design that the model of its interface does not have: they are 0.
    #[must_use]
    pub fn undriven(&self) -> Vec<&str> {
        match &self.0 {
            Loaded::Stream { .. } => Vec::new(),
            Loaded::Ports(design) => design.attached().undriven(),
        }
    }
}

/// A device of a library.
#[derive(Debug)]
pub struct LoadedDut(Loaded);

#[derive(Debug)]
enum Loaded {
    Stream { device: Device, clock: Clock, beat_bytes: usize },
    Ports(Box<BehindBlock<LoadedDesign>>),
}

impl Dut for LoadedDut {
    fn beat_bytes(&self) -> usize {
        match &self.0 {
            Loaded::Stream { beat_bytes, .. } => *beat_bytes,
            Loaded::Ports(design) => design.beat_bytes(),
        }
    }

    fn clock(&mut self, inputs: &Inputs, outputs: &mut Outputs) {
        match &mut self.0 {
            Loaded::Stream { device, clock, .. } => {
                // SAFETY: the device is open, and both structures have the layout of `rtl/lanemark_dut.h`.
                device.calls.call(Function::Clock, || unsafe { clock(device.pointer.as_ptr(), inputs, outputs) });
            }
            Loaded::Ports(design) => design.clock(inputs, outputs),
        }
    }

    fn failed_assertion(&mut self) -> Option<String> {
        match &mut self.0 {
            Loaded::Stream { device, .. } => device.failed_assertion(),
            Loaded::Ports(design) => design.failed_assertion(),
        }
    }

    fn has_function_level_reset(&self) -> bool {
        match &self.0 {
            Loaded::Stream { .. } => true,
            Loaded::Ports(design) => design.has_function_level_reset(),
        }
    }

    fn timer_slack_clocks(&self) -> u32 {
        match &self.0 {
            Loaded::Stream { .. } => 0,
            Loaded::Ports(design) => design.timer_slack_clocks(),
        }
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
