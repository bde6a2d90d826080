//! Figures that another tool measured, and what is remarkable about them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The output of another tool, as figures. What the tool does not say is absent, never a default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Imported {
    /// Name of the tool.
    pub tool: String,
    /// Version of the tool; absent if it is not printed.
    pub version: Option<String>,
    /// Name of the file, without its folder; of several files, all names.
    pub file: String,
    /// The figures, in the order of the file.
    pub figures: Vec<ImportedFigure>,
    /// Facts that the tool does not say, one phrase each.
    pub unknown: Vec<String>,
    /// Properties of all figures.
    pub notes: Vec<String>,
    /// Figures that were left out.
    pub left_out: Vec<LeftOut>,
    /// Number of lines of other kinds.
    pub skipped_lines: u64,
    /// Remarkable figures; empty if nothing is remarkable, or if there was nothing to hold them against.
    pub findings: Vec<ImportFinding>,
}

/// One figure of another tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportedFigure {
    /// Line of the file, from 1; of several files, that of which the device has the name.
    pub line: u64,
    /// Name of the test, in the words of the tool.
    pub test: String,
    /// Way of the bytes.
    pub path: BytePath,
    /// The device, in the words of the tool; absent if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// Bytes of one transfer; absent if the tool does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Outstanding transfers; absent if the tool does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outstanding: Option<u32>,
    /// Whether other devices move bytes during the measurement.
    pub is_concurrent: bool,
    /// The value.
    pub value: Measured,
    /// Limit of the rate; absent for latencies, and if nothing is known about the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_bytes_per_s: Option<f64>,
}

/// Value of an imported figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Measured {
    /// A rate in bytes per second.
    RateBytesPerS(f64),
    /// A time in nanoseconds.
    LatencyNs(f64),
}

impl Measured {
    /// The rate, if it is one.
    #[must_use]
    pub const fn rate(self) -> Option<f64> {
        match self {
            Measured::RateBytesPerS(rate) => Some(rate),
            Measured::LatencyNs(_) => None,
        }
    }
}

/// Way of the bytes of an imported figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BytePath {
    /// The device reads host memory.
    ToDevice,
    /// The device writes host memory.
    FromDevice,
    /// One direction of two that run at once; the figure is that of the device's reads.
    ToDeviceOfBoth,
    /// One direction of two that run at once; the figure is that of the device's writes.
    FromDeviceOfBoth,
    /// Both directions at once, counted together.
    Both,
    /// A core stores to the device.
    CoreStores,
    /// A core loads from the device.
    CoreLoads,
    /// Cores access host memory; no byte crosses PCIe.
    HostMemory,
    /// Inside a device, or between devices by another link; the tool does not say whether PCIe is crossed.
    OtherLink,
    /// All devices of a socket read host memory, counted together.
    DevicesRead,
    /// All devices of a socket write host memory, counted together.
    DevicesWrite,
    /// Through a device to a network, in a direction that the tool does not say.
    Network,
    /// Through a device to a network in both directions, counted together.
    NetworkBoth,
}

impl BytePath {
    /// The path in a few words.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            BytePath::ToDevice => "to device",
            BytePath::FromDevice => "from device",
            BytePath::ToDeviceOfBoth => "to device, of both",
            BytePath::FromDeviceOfBoth => "from device, of both",
            BytePath::Both => "both directions",
            BytePath::CoreStores => "stores to device",
            BytePath::CoreLoads => "loads from device",
            BytePath::HostMemory => "host memory",
            BytePath::OtherLink => "device to device",
            BytePath::DevicesRead => "all devices read",
            BytePath::DevicesWrite => "all devices write",
            BytePath::Network => "network",
            BytePath::NetworkBoth => "network, both directions",
        }
    }

    /// Number of directions of a PCIe link whose bytes the figure counts; `None` if it need not cross one.
    #[must_use]
    pub const fn directions(self) -> Option<u32> {
        match self {
            BytePath::Both | BytePath::NetworkBoth => Some(2),
            BytePath::HostMemory | BytePath::OtherLink | BytePath::DevicesRead | BytePath::DevicesWrite => None,
            _ => Some(1),
        }
    }
}

/// A figure that was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// Line of the file, from 1.
    pub line: u64,
    /// The reason.
    pub because: String,
}

/// A remarkable figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportFinding {
    /// Kind of the finding.
    pub kind: ImportFindingKind,
    /// Line of the first figure.
    pub line: u64,
    /// Name of its test.
    pub test: String,
    /// The figure, the limit, and the relation, without a full stop.
    pub text: String,
    /// Advice, without a full stop.
    pub try_this: String,
}

/// Kind of a remarkable figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ImportFindingKind {
    /// Above the limit.
    Impossible,
    /// Above the limit, or unlike another figure, by the factor between a decimal and a binary unit.
    Units,
    /// Far below the limit.
    FarBelow,
    /// Unlike the figures of the other devices.
    UnlikeSiblings,
    /// Concurrent figures that add up to the limit of one link.
    SharedPort,
    /// As fast as a slower state of the link.
    SlowLink,
}

impl ImportFindingKind {
    /// The kind in a few words.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            ImportFindingKind::Impossible => "impossible",
            ImportFindingKind::Units => "units mixed up?",
            ImportFindingKind::FarBelow => "far below every bound",
            ImportFindingKind::UnlikeSiblings => "unlike its siblings",
            ImportFindingKind::SharedPort => "shared port?",
            ImportFindingKind::SlowLink => "slow link?",
        }
    }
}
