//! Input of a check, and the collector of its findings.

use super::edge::{Edge, edges};
use lanemark_inventory::{CpuSet, Express, Function, Inventory, Tree};
use lanemark_record::diagnosis::{End, Finding, Fix, Gain, Severity, Unseen};
use lanemark_wire::config::PortType;

/// Parameters of a diagnosis beyond the inventory.
#[derive(Clone, Default)]
pub struct DiagnosisRequest<'a> {
    /// Round-trip time of device reads; a default is assumed.
    pub round_trip: RoundTrip,
    /// Processors that will access cards; findings about sockets need them.
    pub cpus: Option<CpuSet>,
    /// Earlier inventory of the same machine, to separate new errors from old ones.
    pub earlier: Option<&'a Inventory>,
    /// Whether to list every field of every capability.
    pub fields: bool,
}

/// Time of a device's read of host memory, from request to completion.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundTrip {
    /// Nanoseconds.
    pub ns: f64,
    /// Origin of the value, as a clause.
    pub origin: String,
}

impl Default for RoundTrip {
    /// 1 us, as on a loaded server. Unloaded servers complete a read of 64 B in 400 to 900 ns.
    ///
    /// Source of the range: Neugebauer et al., Understanding PCIe performance for end host networking, SIGCOMM
    /// 2018, figure 4 and section 6.
    fn default() -> RoundTrip {
        RoundTrip { ns: 1000.0, origin: "assumed for a loaded server; set it with --round-trip".to_owned() }
    }
}

/// Machine under diagnosis.
pub(crate) struct Case<'a> {
    pub(crate) inventory: &'a Inventory,
    pub(crate) tree: Tree,
    pub(crate) edges: Vec<Edge>,
    pub(crate) round_trip: &'a RoundTrip,
    pub(crate) cpus: Option<&'a CpuSet>,
    pub(crate) earlier: Option<&'a Inventory>,
}

impl<'a> Case<'a> {
    pub(crate) fn new(inventory: &'a Inventory, ask: &'a DiagnosisRequest<'a>) -> Case<'a> {
        let tree = inventory.tree();
        let edges = edges(inventory, &tree);
        let (round_trip, cpus, earlier) = (&ask.round_trip, ask.cpus.as_ref(), ask.earlier);
        Case { inventory, tree, edges, round_trip, cpus, earlier }
    }

    pub(crate) fn function(&self, place: usize) -> &'a Function {
        &self.inventory.functions[place]
    }

    /// Functions that can issue DMA: endpoints with a link, without virtual functions, whose control registers are not
    /// their own.
    pub(crate) fn requesters(&self) -> impl Iterator<Item = (usize, &'a Function, &'a Express)> + '_ {
        self.inventory.functions.iter().enumerate().filter_map(|(place, function)| {
            let express = function.pcie()?;
            let kind = express.kind.get()?;
            let has_link = matches!(kind, PortType::Endpoint | PortType::LegacyEndpoint);
            (has_link && !function.is_virtual()).then_some((place, function, express))
        })
    }

    /// Link above a function: its own, or that of the first function of its device.
    pub(crate) fn edge_above(&self, place: usize) -> Option<&Edge> {
        let Some(parent) = self.tree.parent(place) else {
            let device = |place: usize| (self.function(place).address.domain, self.function(place).address.bus());
            let number = |place: usize| self.function(place).address.function.device();
            return self.edges.iter().find(|edge| {
                edge.upper.is_none() && device(edge.lower) == device(place) && number(edge.lower) == number(place)
            });
        };
        self.edges.iter().find(|edge| edge.upper == Some(parent))
    }

    /// Whether the machine is known to be virtual: by the processor, or by devices of a hypervisor.
    pub(crate) fn is_virtual_machine(&self) -> bool {
        let flags = self.inventory.processors.flags.known();
        flags.is_some_and(|flags| flags.iter().any(|flag| flag == "hypervisor"))
            || self
                .inventory
                .functions
                .iter()
                .any(|function| function.vendor.get().is_some_and(|vendor| VENDORS_OF_HYPERVISORS.contains(&vendor)))
    }
}

/// Vendor IDs of emulated devices: Red Hat (two), `VMware`, Microsoft.
///
/// Source: pci.ids of 2026.
const VENDORS_OF_HYPERVISORS: [u16; 4] = [0x1af4, 0x1b36, 0x15ad, 0x1414];

/// Collector of findings.
#[derive(Default)]
pub(crate) struct Collector {
    /// Name of the running check.
    pub(crate) check: &'static str,
    pub(crate) findings: Vec<Finding>,
    pub(crate) unseen: Vec<Unseen>,
}

impl Collector {
    /// Adds a finding about some functions.
    pub(crate) fn add<'f>(
        &mut self,
        severity: Severity,
        functions: impl IntoIterator<Item = &'f Function>,
        end: Option<End>,
        reason: String,
        gain: Gain,
        fix: Fix,
    ) {
        let functions = functions.into_iter().map(|function| function.address.to_string()).collect();
        self.findings.push(Finding { check: self.check.to_owned(), severity, functions, end, reason, gain, fix });
    }

    /// Adds a fact that the check could not see, of a function or of the machine; equal facts of several functions are merged.
    pub(crate) fn add_unseen<'f>(
        &mut self,
        what: &str,
        because: &str,
        enable: &str,
        function: impl Into<Option<&'f Function>>,
    ) {
        let address = function.into().map(|function| function.address.to_string());
        let same = |other: &&mut Unseen| other.what == what && other.because == because && other.enable == enable;
        match (self.unseen.iter_mut().find(same), address) {
            (Some(other), Some(address)) if !other.functions.contains(&address) => other.functions.push(address),
            (Some(_), _) => {}
            (None, address) => self.unseen.push(Unseen {
                what: what.to_owned(),
                because: because.to_owned(),
                enable: enable.to_owned(),
                functions: address.into_iter().collect(),
            }),
        }
    }
}

/// Remedy by a command, which is never run, with a note.
pub(crate) fn command(command: String, words: &str) -> Fix {
    Fix { command: Some(command), words: words.to_owned() }
}

/// Remedy without a command.
pub(crate) fn by_hand(words: &str) -> Fix {
    Fix { command: None, words: words.to_owned() }
}

/// Gain that cannot be computed.
pub(crate) fn unknown(because: &str) -> Gain {
    Gain::Unknown { because: because.to_owned() }
}

/// `setpci` command for one function, or a loop over several.
pub(crate) fn setpci<'f>(functions: impl IntoIterator<Item = &'f Function>, register: &str) -> String {
    let all: Vec<String> = functions.into_iter().map(|function| function.address.to_string()).collect();
    match all.as_slice() {
        [one] => format!("setpci -s {one} {register}"),
        several => format!("for f in {}; do setpci -s $f {register}; done", several.join(" ")),
    }
}
