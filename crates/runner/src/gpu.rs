//! A GPU behind the CUDA driver: its link, and the ceilings of transfers on it.

use crate::cancel::Cancel;
use crate::dma_ceiling::{dma_ceiling, payload};
use crate::error::RunError;
use lanemark_bench::Case;
use lanemark_hw::cuda::{CudaMachine, Device, Health};
use lanemark_hw::linux_sysfs::{Device as PciDevice, State, System};
use lanemark_record::{Ceiling, CeilingKind, Software};
use lanemark_units::Ticks;
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
    let mps = device.bus_id.parse().ok().and_then(payload);
    let gpu = Gpu { software: software(&device), bus_id: device.bus_id, health, function, before, mps };
    let [short, page] = machine.own_reads().map(Ticks::as_ns);
    let own_reads = format!(
        "cuda:{number}: a read of 64 B from the device's own memory takes {short:.0} ns by the kernel that makes DMA reads, and one of 4 KiB {page:.0} ns (random in 4 MiB); the difference to a DMA read is the link, the root complex and the access to host memory"
    );
    Ok((machine, gpu, vec![state, own_reads]))
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
        dma_ceiling(case, self.mps, link, reporter)
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
