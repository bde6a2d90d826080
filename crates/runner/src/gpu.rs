//! A GPU behind the CUDA driver: its link, and the ceilings of transfers on it.

use crate::cancel::Cancel;
use crate::error::RunError;
use lanemark_bench::Case;
use lanemark_hw::cuda::{CudaMachine, Device, Health};
use lanemark_hw::linux_sysfs::{Device as PciDevice, State, System};
use lanemark_inventory::Inventory;
use lanemark_machine::Verb;
use lanemark_method::Method;
use lanemark_model::completion_ceiling;
use lanemark_record::{Ceiling, CeilingKind, Software};
use lanemark_units::{Rate, Ticks};
use lanemark_wire::Mps;

/// An open GPU without its machine: its function of the PCI tree, and its links at the start.
pub(crate) struct Gpu {
    pub(crate) software: Software,
    bus_id: String,
    /// State at the start under traffic, or the reason why it is not known.
    health: Result<Health, String>,
    /// The function; `None` if the system does not show it.
    function: Option<PciDevice>,
    before: State,
    /// Largest payload of its packets; `None` if its configuration space cannot be read. In a virtual machine
    /// `Max_Payload_Size` may be invented, so there it is the largest payload that the device supports.
    mps: Option<Mps>,
}

/// Opens `cuda:NUMBER`: its machine, the rest of it, and notes about its state.
pub(crate) fn open(number: usize, cancel: &Cancel) -> Result<(CudaMachine, Gpu, Vec<String>), RunError> {
    let mut machine = CudaMachine::open(number, cancel.flag())?;
    let device = machine.device().clone();
    let address = device.bus_id.parse();
    let function = address.ok().and_then(|address| PciDevice::find(&System::this(), address).ok());
    // The first reading opens the management library, which takes longer than the traffic.
    let _ = Health::now(&device.bus_id);
    let (asked, bus_id) = (function.clone(), device.bus_id.clone());
    let (before, health) = machine
        .under_traffic(move || (asked.as_ref().map_or_else(State::default, State::now), Health::now(&bus_id)))?;
    let state = match &health {
        Ok(health) => format!("cuda:{number}: under traffic before the run: {health}"),
        Err(because) => format!("cuda:{number}: clocks and temperature are not known: {because}"),
    };
    let mps = payload(&device.bus_id);
    let gpu = Gpu { software: software(&device), bus_id: device.bus_id, health, function, before, mps };
    let [short, page] = machine.own_reads().map(Ticks::as_ns);
    let own_reads = format!(
        "cuda:{number}: a read of 64 B from the device's own memory takes {short:.0} ns by the kernel that makes DMA reads, and one of 4 KiB {page:.0} ns (random in 4 MiB); the difference to a DMA read is the link, the root complex and the access to host memory"
    );
    Ok((machine, gpu, vec![state, own_reads]))
}

/// `Max_Payload_Size` of a function, as configured, or as supported in a virtual machine; `None` if it cannot be read.
fn payload(bus_id: &str) -> Option<Mps> {
    let inventory = Inventory::of_this_machine().ok()?;
    let express = inventory.function(bus_id.parse().ok()?)?.express.present()?;
    // Source of the flag: Intel SDM and AMD APM, CPUID leaf 1, ECX bit 31, as /proc/cpuinfo names it.
    let flags = inventory.processors.flags.known();
    let is_guest = flags.is_some_and(|flags| flags.iter().any(|flag| flag == "hypervisor"));
    if is_guest { express.mps_supported.get() } else { express.mps.get() }
}

impl Gpu {
    /// The ceiling of a case: the payload rate of the slowest link on the path.
    pub(crate) fn ceiling(&self, case: &Case) -> Ceiling {
        let unknown =
            |because: &str| Ceiling { kind: CeilingKind::Unknown, rate_bytes_per_s: None, because: because.to_owned() };
        let Some(function) = &self.function else {
            return unknown(
                "the PCI function of the GPU is not in /sys (as in some containers), so its link is not known",
            );
        };
        // The link of an idle GPU may be slower: the fastest state seen counts.
        let now = State::now(function);
        let Some((reporter, link)) = now.fastest_since(&self.before).slowest_link() else {
            return unknown("no link on the path to the device reports its speed");
        };
        let verbs = verbs(case);
        if verbs.is_empty() {
            return unknown("no data of this case cross the link");
        }
        let (payload, of) = match self.mps {
            Some(mps) => (merged(case, mps), format!("payloads of {} B", merged(case, mps).bytes())),
            None => (LARGEST, "the largest payloads of the specification, because MPS is not visible".to_owned()),
        };
        let rate = || {
            // Completions have 3 DW of header, and so have writes to the lowest 4 GiB, which an IOMMU may have chosen.
            completion_ceiling(link.generation, link.lanes, payload).map(Rate::bytes_per_s)
        };
        let Some(rates) = verbs.iter().map(|_| rate()).collect::<Option<Vec<f64>>>() else {
            return unknown("the payload rate of the link is not known");
        };
        let ways = if rates.len() > 1 { "both directions together, " } else { "" };
        Ceiling {
            kind: CeilingKind::Computed,
            rate_bytes_per_s: Some(rates.iter().sum()),
            because: format!("{link}, {ways}{of}; the slowest link on the path, as reported by {reporter}"),
        }
    }

    /// Changes at the device and at the links above it since opening, one warning each.
    pub(crate) fn changes(&self) -> Vec<String> {
        let now = self.function.as_ref().map(State::now);
        // The link of an idle device may be slower, so only the counters of errors are compared.
        let counters = now.map(|now| State { links: self.before.links.clone(), errors: now.errors });
        let mut changes = counters.map_or_else(Vec::new, |now| now.changes_since(&self.before));
        if let (Ok(before), Ok(now)) = (&self.health, Health::now(&self.bus_id)) {
            changes.extend(now.changes_since(before));
        }
        changes
    }
}

/// Largest payload of the PCI Express specification.
const LARGEST: Mps = match Mps::new(4096) {
    Some(mps) => mps,
    None => unreachable!(),
};

/// The directions of a case, as its device sees them.
fn verbs(case: &Case) -> Vec<Verb> {
    match &case.method {
        Method::Dma { flows, .. } | Method::DmaUnderLoad { flows, .. } | Method::DmaPages { flows, .. } => {
            flows.iter().map(|flow| flow.verb).collect()
        }
        // The device reads what a program stores.
        Method::RuntimeCopy { direction, .. } | Method::SmallCopies { direction, .. } => {
            vec![if direction.verb() == Verb::Store { Verb::Load } else { Verb::Store }]
        }
        _ => Vec::new(),
    }
}

/// The largest payload of a case: a device may merge transfers that lie side by side, and no others.
fn merged(case: &Case, mps: Mps) -> Mps {
    let is_apart = case
        .counted_transfers()
        .iter()
        .any(|transfer| transfer.window.pattern.is_random() || transfer.window.step(transfer.bytes) > transfer.bytes);
    let of_transfer = u32::try_from(case.size).ok().and_then(|size| Mps::new(size.next_power_of_two().max(128)));
    match of_transfer {
        Some(own) if is_apart && own.bytes() < mps.bytes() => own,
        _ => mps,
    }
}

/// Version information of a driver and its device.
fn software(device: &Device) -> Software {
    Software {
        platform_name: "CUDA".to_owned(),
        platform_version: device.driver_api.clone(),
        device_name: device.name.clone(),
        device_version: format!("compute capability {}", device.capability),
        driver_version: device.driver_version.clone().unwrap_or_else(|| format!("for CUDA {}", device.driver_api)),
        loader_library: Some("libcuda.so.1".to_owned()),
    }
}
