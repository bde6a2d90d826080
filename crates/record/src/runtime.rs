//! Runtime devices (OpenCL, SYCL) and their software.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A device driven by the command queue of a runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Runtime {
    /// Kind of the device, as reported by the runtime.
    pub device_kind: DeviceKind,
    /// Whether the runtime reports an emulated device.
    pub is_emulated: bool,
    /// Software between caller and device; absent for simulated targets.
    pub software: Option<Software>,
}

/// Kind of a runtime's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// The processor of the machine.
    Cpu,
    /// A graphics processor.
    Gpu,
    /// Another accelerator, such as an FPGA.
    Accelerator,
    /// A kind that the runtime does not name.
    Other,
}

/// Software between a caller and a device, by its own names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Software {
    /// The runtime (OpenCL: platform).
    pub platform_name: String,
    /// Version of the runtime.
    pub platform_version: String,
    /// The device.
    pub device_name: String,
    /// Version of the standard that it supports.
    pub device_version: String,
    /// The version of its driver.
    pub driver_version: String,
    /// The library that loaded the runtime; absent if unknown.
    pub loader_library: Option<String>,
}

impl Runtime {
    /// Reason why its times are not those of a card, if any: it is emulated, or it is the processor
    /// itself.
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
            (true, _) => Some("the device is emulated: timings are not meaningful"),
            (false, DeviceKind::Cpu) => {
                Some("the device is the processor itself: there is no link between it and memory")
            }
            (false, _) => None,
        }
    }

    /// Kind of the device in a few words.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match (self.is_emulated, self.device_kind) {
            (true, _) => "emulated device",
            (false, DeviceKind::Cpu) => "CPU device, no card",
            (false, DeviceKind::Gpu) => "GPU",
            (false, DeviceKind::Accelerator) => "accelerator",
            (false, DeviceKind::Other) => "device of unknown kind",
        }
    }
}
