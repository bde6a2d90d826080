//! What a check looks at, and where it puts what it found.

use super::edge::{Edge, edges};
use lanemark_inventory::{CpuSet, Express, Function, Inventory, Tree};
use lanemark_record::diagnosis::{End, Finding, Gain, Mend, Severity, Unseen};
use lanemark_wire::config::PortType;

/// What is asked about a machine beyond what can be seen.
#[derive(Clone, Default)]
pub struct Ask<'a> {
    /// How long a device's read takes; assumed where nobody measured it.
    pub round_trip: RoundTrip,
    /// The processors that will talk to cards; findings about sockets need them.
    pub cpus: Option<CpuSet>,
    /// The same machine some time before: errors that have grown since are told from old ones.
    pub earlier: Option<&'a Inventory>,
    /// Whether every field of every capability is wanted.
    pub fields: bool,
}

/// How long a device's read of host memory takes, request to completion.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundTrip {
    /// Nanoseconds.
    pub ns: f64,
    /// Where that comes from, as a clause.
    pub origin: String,
}

impl Default for RoundTrip {
    /// A microsecond: a loaded server. Unloaded ones answer 64 B in 400 to 900 ns.
    ///
    /// Source of the latter: Neugebauer et al., Understanding PCIe performance for end host networking, SIGCOMM
    /// 2018, figure 4 and section 6.
    fn default() -> RoundTrip {
        RoundTrip { ns: 1000.0, origin: "assumed for a loaded server; give yours with --round-trip".to_owned() }
    }
}

/// A machine under examination.
pub(crate) struct Case<'a> {
    pub(crate) inventory: &'a Inventory,
    pub(crate) tree: Tree,
    pub(crate) edges: Vec<Edge>,
    pub(crate) round_trip: &'a RoundTrip,
    pub(crate) cpus: Option<&'a CpuSet>,
    pub(crate) earlier: Option<&'a Inventory>,
}

impl<'a> Case<'a> {
    pub(crate) fn new(inventory: &'a Inventory, ask: &'a Ask<'a>) -> Case<'a> {
        let tree = inventory.tree();
        let edges = edges(inventory, &tree);
        let (round_trip, cpus, earlier) = (&ask.round_trip, ask.cpus.as_ref(), ask.earlier);
        Case { inventory, tree, edges, round_trip, cpus, earlier }
    }

    pub(crate) fn function(&self, place: usize) -> &'a Function {
        &self.inventory.functions[place]
    }

    /// Functions that move data themselves: known to be endpoints with a link, and no virtual ones, whose control
    /// registers say nothing.
    pub(crate) fn requesters(&self) -> impl Iterator<Item = (usize, &'a Function, &'a Express)> + '_ {
        self.inventory.functions.iter().enumerate().filter_map(|(place, function)| {
            let express = function.pcie()?;
            let kind = express.kind.get()?;
            let has_link = matches!(kind, PortType::Endpoint | PortType::LegacyEndpoint);
            (has_link && !function.is_virtual()).then_some((place, function, express))
        })
    }

    /// The link above a function: its own, or that of the first function of its device.
    pub(crate) fn edge_above(&self, place: usize) -> Option<&Edge> {
        let parent = self.tree.parent(place)?;
        self.edges.iter().find(|edge| edge.upper == Some(parent))
    }
}

/// Where a check puts what it found.
#[derive(Default)]
pub(crate) struct Found {
    /// Who is looking.
    pub(crate) check: &'static str,
    pub(crate) findings: Vec<Finding>,
    pub(crate) blind: Vec<Unseen>,
}

impl Found {
    /// Notes a finding about some functions.
    pub(crate) fn note<'f>(
        &mut self,
        severity: Severity,
        functions: impl IntoIterator<Item = &'f Function>,
        end: Option<End>,
        reason: String,
        gain: Gain,
        mend: Mend,
    ) {
        let functions = functions.into_iter().map(|function| function.address.to_string()).collect();
        self.findings.push(Finding { check: self.check.to_owned(), severity, functions, end, reason, gain, mend });
    }

    /// Notes what this check could not see of a function, or of the machine; the same of several stands once.
    pub(crate) fn blind<'f>(
        &mut self,
        what: &str,
        because: &str,
        enable: &str,
        function: impl Into<Option<&'f Function>>,
    ) {
        let address = function.into().map(|function| function.address.to_string());
        let same = |other: &&mut Unseen| other.what == what && other.because == because && other.enable == enable;
        match (self.blind.iter_mut().find(same), address) {
            (Some(other), Some(address)) if !other.functions.contains(&address) => other.functions.push(address),
            (Some(_), _) => {}
            (None, address) => self.blind.push(Unseen {
                what: what.to_owned(),
                because: because.to_owned(),
                enable: enable.to_owned(),
                functions: address.into_iter().collect(),
            }),
        }
    }
}

/// A command that nobody ran, and what to know before it.
pub(crate) fn command(command: String, words: &str) -> Mend {
    Mend { command: Some(command), words: words.to_owned() }
}

/// What no command does.
pub(crate) fn by_hand(words: &str) -> Mend {
    Mend { command: None, words: words.to_owned() }
}

/// A gain that nobody can compute.
pub(crate) fn unknown(because: &str) -> Gain {
    Gain::Unknown { because: because.to_owned() }
}

/// `setpci` for one function, or a loop over several.
pub(crate) fn setpci<'f>(functions: impl IntoIterator<Item = &'f Function>, register: &str) -> String {
    let all: Vec<String> = functions.into_iter().map(|function| function.address.to_string()).collect();
    match all.as_slice() {
        [one] => format!("setpci -s {one} {register}"),
        several => format!("for f in {}; do setpci -s $f {register}; done", several.join(" ")),
    }
}
