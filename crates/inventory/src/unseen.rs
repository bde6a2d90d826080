//! Gathers unseen facts for display.

use crate::{Address, Aer, Express, Feature, Function, Inventory, Link, Region, Seen, Unseen, Why};

/// Maximum number of reasons for one fact; a manipulated source could give every function its own.
const MOST_REASONS: usize = 32;

/// Reasons by fact, in the order of the walk over every function.
struct Gathered<'a> {
    things: Vec<(&'static str, Vec<Reason<'a>>)>,
    at: usize,
}

struct Reason<'a> {
    why: &'a Why,
    functions: Vec<Address>,
}

impl<'a> Gathered<'a> {
    /// Adds the next fact of a walk; every walk visits the same facts in the same order.
    fn thing<T>(&mut self, what: &'static str, fact: Option<&'a Seen<T>>, of: Option<Address>) {
        if self.at == self.things.len() {
            self.things.push((what, Vec::new()));
        }
        let reasons = &mut self.things[self.at].1;
        self.at += 1;
        let Some(why) = fact.and_then(Seen::why) else { return };
        let known = reasons.iter().position(|reason| reason.why == why);
        let last = (reasons.len() >= MOST_REASONS).then(|| reasons.len() - 1);
        let at = known.or(last).unwrap_or_else(|| {
            reasons.push(Reason { why, functions: Vec::new() });
            reasons.len() - 1
        });
        reasons[at].functions.extend(of);
    }
}

impl Inventory {
    /// Fills [`Inventory::unseen`] from the reasons in the facts. Readers call it; call it again after changing facts.
    pub fn gather_unseen(&mut self) {
        self.unseen = gather(self);
    }
}

/// All unseen facts, each with each reason once.
fn gather(inventory: &Inventory) -> Vec<Unseen> {
    let mut machine = Gathered { things: Vec::new(), at: 0 };
    of_machine(inventory, &mut machine);
    let mut functions = Gathered { things: Vec::new(), at: 0 };
    for function in &inventory.functions {
        functions.at = 0;
        of_function(function, &mut functions);
    }
    let row = |what: &'static str, reason: Reason<'_>| Unseen {
        what: what.to_owned(),
        because: reason.why.because(),
        enable: reason.why.enable(),
        functions: reason.functions,
    };
    let things = functions.things.into_iter().chain(machine.things);
    things.flat_map(|(what, reasons)| reasons.into_iter().map(move |reason| row(what, reason))).collect()
}

fn of_machine<'a>(inventory: &'a Inventory, gathered: &mut Gathered<'a>) {
    let processors = &inventory.processors;
    gathered.thing("processor vendor", Some(&processors.vendor), None);
    gathered.thing("processor model", Some(&processors.model), None);
    gathered.thing("processor family, model and stepping", Some(&processors.signature), None);
    gathered.thing("microcode revision", Some(&processors.microcode), None);
    gathered.thing("processor features", Some(&processors.flags), None);
    gathered.thing("online CPUs", Some(&processors.online), None);
    gathered.thing("sockets", Some(&processors.sockets), None);
    gathered.thing("CPUs of each socket", Some(&processors.packages), None);
    gathered.thing("NUMA nodes", Some(&processors.nodes), None);
    gathered.thing("frequency governors", Some(&processors.governors), None);
    gathered.thing("idle states", Some(&processors.idle_states), None);
    gathered.thing("memory type ranges (MTRR)", Some(&inventory.mtrrs), None);
    gathered.thing("page attribute table", Some(&inventory.pat.entries), None);
    gathered.thing("ranges mapped by page attributes", Some(&inventory.pat.mapped), None);
    gathered.thing("IOMMU units", Some(&inventory.iommu.units), None);
    gathered.thing("IOMMU groups", Some(&inventory.iommu.groups), None);
    gathered.thing("IOMMU faults", Some(&inventory.iommu.faults), None);
    gathered.thing("kernel release", Some(&inventory.kernel.release), None);
    gathered.thing("kernel command line", Some(&inventory.kernel.command_line), None);
    gathered.thing("kernel lockdown", Some(&inventory.kernel.lockdown), None);
    gathered.thing("ASPM policy", Some(&inventory.kernel.aspm_policy), None);
}

fn of_function<'a>(function: &'a Function, gathered: &mut Gathered<'a>) {
    let of = Some(function.address);
    gathered.thing("config space", Some(&function.config), of);
    gathered.thing("vendor ID", Some(&function.vendor), of);
    gathered.thing("device ID", Some(&function.device), of);
    gathered.thing("subsystem", Some(&function.subsystem), of);
    gathered.thing("revision", Some(&function.revision), of);
    gathered.thing("class", Some(&function.class), of);
    gathered.thing("command register", Some(&function.command), of);
    gathered.thing("bus numbers", Some(&function.buses), of);
    gathered.thing("regions", Some(&function.regions), of);
    let regions = function.regions.known().map_or(&[][..], Vec::as_slice);
    // The first region with an unseen size represents all of them.
    let first_unseen = |is: fn(&Region) -> bool| regions.iter().find(|region| is(region));
    gathered.thing(
        "size of regions",
        first_unseen(|region| region.bytes.why().is_some()).map(|region| &region.bytes),
        of,
    );
    let wc = first_unseen(|region| region.prefetchable && region.write_combining_file.why().is_some());
    gathered.thing("write-combining files of regions", wc.map(|region| &region.write_combining_file), of);
    gathered.thing("resizable BARs", Some(&function.resizable_bars), of);
    gathered.thing("PCI Express capability", Some(&function.express), of);
    of_express(function.pcie(), of, gathered);
    of_link(function.link(), of, gathered);
    gathered.thing("access control services", Some(&function.acs), of);
    gathered.thing("advanced error reporting", Some(&function.aer), of);
    of_aer(function.aer.present(), of, gathered);
    gathered.thing("downstream port containment", Some(&function.containment), of);
    gathered.thing("virtual functions", Some(&function.sriov), of);
    gathered.thing("driver", Some(&function.driver), of);
    gathered.thing("NUMA node", Some(&function.numa_node), of);
    gathered.thing("local CPUs", Some(&function.local_cpus), of);
    gathered.thing("IOMMU group", Some(&function.iommu_group), of);
    gathered.thing("IOMMU domain", Some(&function.iommu_domain), of);
    gathered.thing("power state", Some(&function.power_state), of);
    gathered.thing("whether D3cold is allowed", Some(&function.d3cold_allowed), of);
    gathered.thing("enable count", Some(&function.enable_count), of);
    gathered.thing("interrupts", Some(&function.interrupts), of);
    let interrupts = function.interrupts.known().map_or(&[][..], Vec::as_slice);
    let counts = interrupts.iter().find(|interrupt| interrupt.count.why().is_some());
    gathered.thing("number of interrupts", counts.map(|interrupt| &interrupt.count), of);
    let cpus = interrupts.iter().find(|interrupt| interrupt.cpus.why().is_some());
    gathered.thing("CPUs of interrupts", cpus.map(|interrupt| &interrupt.cpus), of);
    gathered.thing("parent", Some(&function.parent), of);
}

fn of_express<'a>(express: Option<&'a Express>, of: Option<Address>, gathered: &mut Gathered<'a>) {
    gathered.thing("kind of port", express.map(|express| &express.kind), of);
    gathered.thing("link", express.map(|express| &express.link), of);
    gathered.thing("supported MPS", express.map(|express| &express.mps_supported), of);
    gathered.thing("MPS", express.map(|express| &express.mps), of);
    gathered.thing("MRRS", express.map(|express| &express.mrrs), of);
    let [tags, long_tags, latency] = [
        express.map(|express| &express.extended_tags),
        express.map(|express| &express.ten_bit_tags),
        express.map(|express| &express.latency_tolerance_reporting),
    ];
    let supported = |feature: Option<&'a Feature>| feature.map(|feature| &feature.supported);
    let enabled = |feature: Option<&'a Feature>| feature.map(|feature| &feature.enabled);
    gathered.thing("extended tags supported", supported(tags), of);
    gathered.thing("extended tags enabled", enabled(tags), of);
    gathered.thing("10-bit tags supported", supported(long_tags), of);
    gathered.thing("10-bit tags enabled", enabled(long_tags), of);
    gathered.thing("LTR supported", supported(latency), of);
    gathered.thing("LTR enabled", enabled(latency), of);
    gathered.thing("10-bit tag completer", express.map(|express| &express.ten_bit_tag_completer), of);
    gathered.thing("relaxed ordering", express.map(|express| &express.relaxed_ordering_enabled), of);
    gathered.thing("no snoop", express.map(|express| &express.no_snoop_enabled), of);
    gathered.thing("slot number", express.map(|express| &express.slot), of);
}

fn of_link<'a>(link: Option<&'a Link>, of: Option<Address>, gathered: &mut Gathered<'a>) {
    gathered.thing("maximum link speed", link.map(|link| &link.fastest), of);
    gathered.thing("maximum link width", link.map(|link| &link.widest), of);
    gathered.thing("link speed", link.map(|link| &link.speed), of);
    gathered.thing("link width", link.map(|link| &link.width), of);
    gathered.thing("target link speed", link.map(|link| &link.target), of);
    gathered.thing("ASPM supported", link.map(|link| &link.aspm_supported), of);
    gathered.thing("ASPM enabled", link.map(|link| &link.aspm_enabled), of);
    gathered.thing("L1 substates", link.map(|link| &link.l1_substates), of);
    gathered.thing("data link layer state", link.map(|link| &link.data_link_active), of);
}

fn of_aer<'a>(aer: Option<&'a Aer>, of: Option<Address>, gathered: &mut Gathered<'a>) {
    gathered.thing("correctable error counters", aer.map(|aer| &aer.correctable), of);
    gathered.thing("non-fatal error counters", aer.map(|aer| &aer.nonfatal), of);
    gathered.thing("fatal error counters", aer.map(|aer| &aer.fatal), of);
    gathered.thing("correctable error status", aer.map(|aer| &aer.correctable_status), of);
    gathered.thing("uncorrectable error status", aer.map(|aer| &aer.uncorrectable_status), of);
}
