//! Results of `lanemark doctor`: functions of a machine, links, and problems.

use crate::Tool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the diagnosis format that this code writes.
pub const SCHEMA: u32 = 1;

/// A machine and its problems.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Diagnosis {
    /// Version of this format.
    pub schema: u32,
    /// The program that wrote it.
    pub tool: Tool,
    /// Source of the facts: `this machine`, or a file.
    pub source: String,
    /// Reasons why whole groups of facts are missing, such as a listing made without root, with the remedy.
    #[serde(default)]
    pub incomplete: Vec<String>,
    /// Facts about the processors and the kernel.
    pub machine: Machine,
    /// The functions, by address.
    pub functions: Vec<Function>,
    /// The links, by the address of their lower end.
    pub links: Vec<Link>,
    /// Facts about peer-to-peer requests between devices below different root ports, one sentence each; empty if fewer than two
    /// root ports have devices.
    #[serde(default)]
    pub peers: Vec<String>,
    /// Problems, the costliest first.
    pub findings: Vec<Finding>,
    /// Facts that were not visible, with the way to see them.
    pub unseen: Vec<Unseen>,
    /// Inconsistencies of the source.
    pub notes: Vec<String>,
}

impl Diagnosis {
    /// An empty diagnosis of this program.
    #[must_use]
    pub fn new(source: String, machine: Machine) -> Diagnosis {
        Diagnosis {
            schema: SCHEMA,
            tool: Tool { name: "lanemark".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
            source,
            incomplete: Vec::new(),
            machine,
            functions: Vec::new(),
            links: Vec::new(),
            peers: Vec::new(),
            findings: Vec::new(),
            unseen: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// A fact, or the reason why it is unknown. If something can be absent, `value` is null for "there
/// is none".
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum Fact<T> {
    /// The fact is known.
    Seen {
        /// The fact.
        value: T,
    },
    /// The fact is unknown.
    Unseen {
        /// The reason.
        unseen: String,
    },
}

impl<T> Fact<T> {
    /// The fact, if it is known.
    pub const fn value(&self) -> Option<&T> {
        match self {
            Fact::Seen { value } => Some(value),
            Fact::Unseen { .. } => None,
        }
    }
}

/// Facts about the processors and the kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Name of the processor, as reported by itself.
    pub processor: Fact<String>,
    /// Number of sockets.
    pub sockets: Fact<u32>,
    /// Number of NUMA nodes.
    pub numa_nodes: Fact<u32>,
    /// Release of the kernel.
    pub kernel: Fact<String>,
    /// Frequency governors, each name once.
    pub governors: Fact<Vec<String>>,
    /// The kernel's policy for active state power management.
    pub aspm_policy: Fact<String>,
    /// IOMMU units; empty without an IOMMU.
    pub iommu_units: Fact<Vec<String>>,
}

/// One function of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Function {
    /// Domain, bus, device and function: `0000:3b:00.0`.
    pub address: String,
    /// The bridge above it; null on a root bus.
    pub parent: Fact<Option<String>>,
    /// Vendor ID.
    pub vendor_id: Fact<u16>,
    /// Device ID.
    pub device_id: Fact<u16>,
    /// Class, subclass and programming interface.
    pub class_code: Fact<u32>,
    /// The class in words.
    pub class: Fact<String>,
    /// Vendor and device in words.
    pub name: Fact<String>,
    /// The driver that is bound.
    pub driver: Fact<Option<String>>,
    /// NUMA node of the function.
    pub numa_node: Fact<Option<u32>>,
    /// The IOMMU group.
    pub iommu_group: Fact<Option<u32>>,
    /// Power state, as reported by the kernel.
    pub power_state: Fact<String>,
    /// Number of readable bytes of configuration space.
    pub config_bytes: Fact<u32>,
    /// Type of port in the PCI Express hierarchy; null for conventional PCI.
    pub port: Fact<Option<String>>,
    /// Current `Max_Payload_Size`.
    pub mps_bytes: Fact<u32>,
    /// Largest supported payload.
    pub mps_supported_bytes: Fact<u32>,
    /// Current `Max_Read_Request_Size`.
    pub mrrs_bytes: Fact<u32>,
    /// Largest number of outstanding reads: 32, 256 or 768.
    pub tags: Fact<u16>,
    /// Base address registers of the function.
    pub bars: Fact<Vec<Bar>>,
    /// Capabilities with every readable field; empty unless fields are requested.
    pub capabilities: Vec<Capability>,
}

/// One base address register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bar {
    /// Number of the register.
    pub index: u8,
    /// Address of the window; null without an assigned address.
    pub address_bytes: Fact<Option<u64>>,
    /// Size of the window.
    pub size_bytes: Fact<u64>,
    /// Whether it is prefetchable.
    pub prefetchable: bool,
}

/// A capability, or the configuration header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capability {
    /// Name, or the ID of an unknown capability.
    pub name: String,
    /// Offset in configuration space.
    pub offset: u16,
    /// Fields; empty for an unknown capability.
    pub fields: Vec<Field>,
    /// Bytes in hexadecimal, for an unknown capability.
    pub raw: Option<String>,
}

/// One field of a register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// The register, with its instance number if there are several.
    pub register: String,
    /// The field.
    pub field: String,
    /// Value of the field.
    pub raw: u64,
    /// Meaning of the value.
    pub means: String,
}

/// A link between two ports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The downstream port above the link; null if it was not visible.
    pub upper: Option<String>,
    /// The first function of the device below the link.
    pub lower: String,
    /// Trained speed and width.
    pub trained: Fact<LinkRate>,
    /// Capability of the upper end.
    pub upper_can: Fact<LinkRate>,
    /// Capability of the lower end.
    pub lower_can: Fact<LinkRate>,
    /// Common capability of both ends, the reference for the trained link; unknown if that of an
    /// end is.
    pub both_can: Fact<LinkRate>,
    /// Payload rate of back-to-back memory writes on the trained link, in one direction.
    pub ceiling_bytes_per_s: Fact<f64>,
    /// ASPM states enabled at either end: `none`, `L0s`, `L1`, `L0s L1`.
    pub aspm: Fact<String>,
    /// State in one line: `Gen3 x8 of Gen4 x16`.
    pub state: String,
}

/// Speed and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkRate {
    /// Generation of the speed, 1 to 6.
    pub generation: u8,
    /// Lanes.
    pub width_lanes: u8,
}

impl std::fmt::Display for LinkRate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Gen{} x{}", self.generation, self.width_lanes)
    }
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Something fails or is lost.
    Broken,
    /// Bandwidth or latency is lost; `gain` has the figure.
    Costly,
    /// There may be a cost under some loads.
    Minor,
    /// For information.
    Hint,
}

/// End of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The port nearer to the root complex.
    Upper,
    /// The port further from the root complex.
    Lower,
    /// Both ends, or the connection between them.
    Both,
}

/// A problem.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Name of the check.
    pub check: String,
    /// Severity.
    pub severity: Severity,
    /// Affected functions; empty for the machine as a whole.
    pub functions: Vec<String>,
    /// Affected end of a link.
    pub end: Option<End>,
    /// The problem and its reason, without a full stop.
    pub reason: String,
    /// Expected gain of the fix.
    pub gain: Gain,
    /// Proposed fix, which was not applied.
    pub fix: Fix,
}

/// Expected gain of a fix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Gain {
    /// Computed by the model.
    Computed {
        /// The quantity: `device-to-host DMA`.
        quantity: String,
        /// Current value.
        now: f64,
        /// Value after the fix.
        then: f64,
        /// Unit of both values: `bytes_per_s` or `ns`.
        unit: Unit,
        /// Assumptions of the computation.
        assumes: String,
    },
    /// Unknown.
    Unknown {
        /// The reason.
        because: String,
    },
}

/// The unit of a gain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Bytes per second; more is better.
    BytesPerS,
    /// Nanoseconds; less is better.
    Ns,
}

impl Gain {
    /// Improvement factor; `None` if unknown.
    #[must_use]
    pub fn factor(&self) -> Option<f64> {
        match self {
            Gain::Computed { now, then, unit: Unit::BytesPerS, .. } if *now > 0.0 => Some(then / now),
            Gain::Computed { now, then, unit: Unit::Ns, .. } if *then > 0.0 => Some(now / then),
            _ => None,
        }
    }
}

/// Proposed fix of a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fix {
    /// The exact command, if there is one. It was not run.
    pub command: Option<String>,
    /// The fix in words, or conditions of the command.
    pub words: String,
}

/// A fact that was not visible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unseen {
    /// The fact.
    pub what: String,
    /// The reason.
    pub because: String,
    /// A way to make it visible.
    pub enable: String,
    /// Affected functions; empty for a fact about the machine.
    pub functions: Vec<String>,
}

/// The JSON Schema of [`Diagnosis`] as text, with a final newline.
#[must_use]
pub fn schema() -> String {
    let schema = schemars::schema_for!(Diagnosis);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_and_unknown_facts_differ_in_json() {
        let none: Fact<Option<u32>> = Fact::Seen { value: None };
        let unseen: Fact<Option<u32>> = Fact::Unseen { unseen: "no root".to_owned() };
        assert_eq!(serde_json::to_string(&none).unwrap(), r#"{"value":null}"#);
        assert_eq!(serde_json::to_string(&unseen).unwrap(), r#"{"unseen":"no root"}"#);
        for fact in [none, unseen] {
            let text = serde_json::to_string(&fact).unwrap();
            assert_eq!(serde_json::from_str::<Fact<Option<u32>>>(&text).unwrap(), fact);
        }
    }

    #[test]
    fn a_gain_is_a_factor_for_rates_and_times() {
        let gain =
            |now, then, unit| Gain::Computed { quantity: String::new(), now, then, unit, assumes: String::new() };
        assert_eq!(gain(1.0, 4.0, Unit::BytesPerS).factor(), Some(4.0));
        assert_eq!(gain(10.0, 5.0, Unit::Ns).factor(), Some(2.0));
        assert_eq!(gain(0.0, 5.0, Unit::BytesPerS).factor(), None);
        assert_eq!(Gain::Unknown { because: String::new() }.factor(), None);
    }

    #[test]
    fn the_costliest_sorts_first() {
        assert!(Severity::Broken < Severity::Costly && Severity::Minor < Severity::Hint);
    }
}
