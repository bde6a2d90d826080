//! A device behind a runtime, and which programs are in between.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A device that takes work from the queue of a runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Runtime {
    /// What the runtime says that it is.
    pub device_kind: DeviceKind,
    /// Whether the runtime says that it only behaves like one.
    pub is_emulated: bool,
    /// The programs between a caller and it; absent where it is simulated.
    pub software: Option<Software>,
}

/// What a device of a runtime is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// The processor of the machine.
    Cpu,
    /// A graphics processor.
    Gpu,
    /// Something else that computes, an FPGA for instance.
    Accelerator,
    /// What the runtime has no word for.
    Other,
}

/// The programs between a caller and a device, as they name themselves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Software {
    /// The runtime (OpenCL: platform).
    pub platform_name: String,
    /// Its version.
    pub platform_version: String,
    /// The device.
    pub device_name: String,
    /// Which version of the standard it has.
    pub device_version: String,
    /// The version of its driver.
    pub driver_version: String,
    /// The library that found the runtime; absent if the system does not tell.
    pub loader_library: Option<String>,
}

impl Runtime {
    /// Why its times say nothing about a card, if they do not: it is emulated, or it is the processor itself.
    ///
    /// ```
    /// use lanemark_record::{DeviceKind, Runtime};
    /// let card = Runtime { device_kind: DeviceKind::Accelerator, is_emulated: false, software: None };
    /// assert_eq!(card.no_card_because(), None);
    /// let processor = Runtime { device_kind: DeviceKind::Cpu, ..card.clone() };
    /// assert!(processor.no_card_because().unwrap().contains("processor"));
    /// assert!(Runtime { is_emulated: true, ..card }.no_card_because().unwrap().contains("emulated"));
    /// ```
    #[must_use]
    pub const fn no_card_because(&self) -> Option<&'static str> {
        match (self.is_emulated, self.device_kind) {
            (true, _) => Some("the device is emulated: its times say nothing about a real one"),
            (false, DeviceKind::Cpu) => Some("the device is the processor itself: nothing lies between it and memory"),
            (false, _) => None,
        }
    }

    /// What kind of device it is, in a word or two.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match (self.is_emulated, self.device_kind) {
            (true, _) => "emulated device",
            (false, DeviceKind::Cpu) => "CPU device, no card",
            (false, DeviceKind::Gpu) => "GPU",
            (false, DeviceKind::Accelerator) => "accelerator",
            (false, DeviceKind::Other) => "device of no known kind",
        }
    }
}
