//! What `lanemark doctor` found: a machine's functions, its links, and what is wrong with them.

use crate::Tool;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the diagnosis format this code writes.
pub const SCHEMA: u32 = 1;

/// A machine as it was seen, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Diagnosis {
    /// The version of this format.
    pub schema: u32,
    /// The program that wrote it.
    pub tool: Tool,
    /// What was read: `this machine`, or which file.
    pub source: String,
    /// The side of the processors.
    pub machine: Machine,
    /// The functions, by address.
    pub functions: Vec<Function>,
    /// The links, by the address of their lower end.
    pub links: Vec<Link>,
    /// What is wrong, the costliest first.
    pub findings: Vec<Finding>,
    /// What could not be seen, and what would show it.
    pub unseen: Vec<Unseen>,
    /// What is strange about what was read.
    pub notes: Vec<String>,
}

impl Diagnosis {
    /// One of this program with nothing in it yet.
    #[must_use]
    pub fn new(source: String, machine: Machine) -> Diagnosis {
        Diagnosis {
            schema: SCHEMA,
            tool: Tool { name: "lanemark".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() },
            source,
            machine,
            functions: Vec::new(),
            links: Vec::new(),
            findings: Vec::new(),
            unseen: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// A fact, or the reason why it is none. Where there may be none of something, `value` is null for "there is none".
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum Fact<T> {
    /// It was seen.
    Seen {
        /// The fact.
        value: T,
    },
    /// It was not.
    Unseen {
        /// Why not.
        unseen: String,
    },
}

impl<T> Fact<T> {
    /// The fact, if it is one.
    pub const fn value(&self) -> Option<&T> {
        match self {
            Fact::Seen { value } => Some(value),
            Fact::Unseen { .. } => None,
        }
    }
}

/// The side of the processors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The processor's name for itself.
    pub processor: Fact<String>,
    /// How many sockets.
    pub sockets: Fact<u32>,
    /// How many NUMA nodes.
    pub numa_nodes: Fact<u32>,
    /// The kernel's release.
    pub kernel: Fact<String>,
    /// Governors of the frequency, each name once.
    pub governors: Fact<Vec<String>>,
    /// The kernel's policy for active state power management.
    pub aspm_policy: Fact<String>,
    /// Units of the IOMMU; empty where there is none.
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
    /// The NUMA node it hangs on.
    pub numa_node: Fact<Option<u32>>,
    /// The IOMMU group.
    pub iommu_group: Fact<Option<u32>>,
    /// The power state as the kernel says it.
    pub power_state: Fact<String>,
    /// Bytes of config space that could be read.
    pub config_bytes: Fact<u32>,
    /// What stands here in the PCI Express hierarchy; null for conventional PCI.
    pub port: Fact<Option<String>>,
    /// `Max_Payload_Size` it is set to.
    pub mps_bytes: Fact<u32>,
    /// The largest payload it could take.
    pub mps_supported_bytes: Fact<u32>,
    /// `Max_Read_Request_Size` it is set to.
    pub mrrs_bytes: Fact<u32>,
    /// How many reads it may have under way: 32, 256 or 768.
    pub tags: Fact<u16>,
    /// Its base address registers.
    pub bars: Fact<Vec<Bar>>,
    /// Its capabilities with every field, as far as the bytes could be read; empty unless fields were asked for.
    pub capabilities: Vec<Capability>,
}

/// One base address register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Bar {
    /// Which.
    pub index: u8,
    /// Where its window is; null where no address was assigned.
    pub address_bytes: Fact<Option<u64>>,
    /// How long it is.
    pub size_bytes: Fact<u64>,
    /// Whether it is prefetchable.
    pub prefetchable: bool,
}

/// A capability, or the header.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Capability {
    /// Its name; its id where it is not known by name.
    pub name: String,
    /// Where it begins.
    pub offset: u16,
    /// Its fields; empty where it is not known by name.
    pub fields: Vec<Field>,
    /// Its bytes in hexadecimal, where it is not known by name.
    pub raw: Option<String>,
}

/// One field of a register.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// The register, with the number of its instance where there are several.
    pub register: String,
    /// The field.
    pub field: String,
    /// Its bits.
    pub raw: u64,
    /// What they mean.
    pub means: String,
}

/// A link between two ports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// The port that looks away from the root; null where it was not seen.
    pub upper: Option<String>,
    /// The device below it, by its first function.
    pub lower: String,
    /// What it was trained to.
    pub trained: Fact<LinkRate>,
    /// What the upper end can.
    pub upper_can: Fact<LinkRate>,
    /// What the lower end can.
    pub lower_can: Fact<LinkRate>,
    /// What both ends can, and the trained link is to be measured against; unseen where an end is.
    pub both_can: Fact<LinkRate>,
    /// Payload of back-to-back memory writes of the trained link, one way.
    pub ceiling_bytes_per_s: Fact<f64>,
    /// Active state power management that is on at either end: `none`, `L0s`, `L1`, `L0s L1`.
    pub aspm: Fact<String>,
    /// One line for people: `Gen3 x8 of Gen4 x16`.
    pub state: String,
}

/// Speed and width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkRate {
    /// The generation whose speed it is, 1 to 6.
    pub generation: u8,
    /// Lanes.
    pub width_lanes: u8,
}

impl std::fmt::Display for LinkRate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Gen{} x{}", self.generation, self.width_lanes)
    }
}

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Something fails or is lost.
    Broken,
    /// Bandwidth or latency is lost, by the figure in `gain`.
    Costly,
    /// It may cost something under some loads.
    Minor,
    /// Worth knowing.
    Hint,
}

/// Which end of a link is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The port nearer to the root.
    Upper,
    /// The port further from it.
    Lower,
    /// Both, or what lies between them.
    Both,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Which check found it.
    pub check: String,
    /// How much it matters.
    pub severity: Severity,
    /// At which functions; none if it is about the machine.
    pub functions: Vec<String>,
    /// At which end of a link, where it is about one.
    pub end: Option<End>,
    /// What and why, in a sentence without a full stop.
    pub reason: String,
    /// What mending it would bring.
    pub gain: Gain,
    /// What would mend it. Nothing of it was done.
    pub mend: Mend,
}

/// What mending brings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Gain {
    /// The model says.
    Computed {
        /// Of what: `device-to-host DMA`.
        quantity: String,
        /// How it is now.
        now: f64,
        /// How it would be.
        then: f64,
        /// The unit of both: `bytes_per_s` or `ns`.
        unit: Unit,
        /// From which assumptions.
        assumes: String,
    },
    /// Nobody can say.
    Unknown {
        /// Why not.
        because: String,
    },
}

/// The unit of a gain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Bytes per second: more is better.
    BytesPerS,
    /// Nanoseconds: less is better.
    Ns,
}

impl Gain {
    /// How many times better it would be; `None` where that is unknown.
    #[must_use]
    pub fn factor(&self) -> Option<f64> {
        match self {
            Gain::Computed { now, then, unit: Unit::BytesPerS, .. } if *now > 0.0 => Some(then / now),
            Gain::Computed { now, then, unit: Unit::Ns, .. } if *then > 0.0 => Some(now / then),
            _ => None,
        }
    }
}

/// What would mend a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mend {
    /// The exact command, if there is one. It was not run.
    pub command: Option<String>,
    /// What to do in words, or what to know before the command.
    pub words: String,
}

/// Something that could not be seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Unseen {
    /// What.
    pub what: String,
    /// Why not.
    pub because: String,
    /// What would show it.
    pub enable: String,
    /// Of which functions; none if it is a fact of the machine.
    pub functions: Vec<String>,
}

/// The JSON Schema of [`Diagnosis`], as text with a final newline.
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
    fn none_and_unseen_are_told_apart_in_json() {
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
    fn a_gain_is_a_factor_of_more_bytes_or_of_less_time() {
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
