//! The ceiling of DMA by a real device: the payload rate of the slowest link on its path.

use lanemark_bench::Case;
use lanemark_hw::linux_sysfs::{Address, Link};
use lanemark_inventory::Inventory;
use lanemark_machine::Verb;
use lanemark_method::Method;
use lanemark_model::completion_ceiling;
use lanemark_record::{Ceiling, CeilingKind};
use lanemark_units::Rate;
use lanemark_wire::Mps;

/// The ceiling of a case whose data cross `link`, as reported by `reporter`, with this `Max_Payload_Size`.
pub(crate) fn dma_ceiling(case: &Case, mps: Option<Mps>, link: Link, reporter: Address) -> Ceiling {
    let unknown =
        |because: &str| Ceiling { kind: CeilingKind::Unknown, rate_bytes_per_s: None, because: because.to_owned() };
    let verbs = verbs(case);
    if verbs.is_empty() {
        return unknown("no data of this case cross the link");
    }
    let (payload, of) = match mps {
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

/// Whether a device moves the data of a case.
pub(crate) fn is_dma(case: &Case) -> bool {
    !case.counted_transfers().is_empty()
}

/// `Max_Payload_Size` of a function, as configured, or as supported in a virtual machine; `None` if it cannot be read.
pub(crate) fn payload(address: Address) -> Option<Mps> {
    let inventory = Inventory::of_this_machine().ok()?;
    let express = inventory.function(address.to_string().parse().ok()?)?.express.present()?;
    // Source of the flag: Intel SDM and AMD APM, CPUID leaf 1, ECX bit 31, as /proc/cpuinfo names it.
    let flags = inventory.processors.flags.known();
    let is_guest = flags.is_some_and(|flags| flags.iter().any(|flag| flag == "hypervisor"));
    if is_guest { express.mps_supported.get() } else { express.mps.get() }
}

/// Largest payload of the PCI Express specification.
const LARGEST: Mps = match Mps::new(4096) {
    Some(mps) => mps,
    None => unreachable!(),
};

/// The directions of a case, as its device sees them.
fn verbs(case: &Case) -> Vec<Verb> {
    match &case.method {
        Method::Dma { flows, .. }
        | Method::DmaUnderLoad { flows, .. }
        | Method::DmaPages { flows, .. }
        | Method::DmaCall { flows, .. } => flows.iter().map(|flow| flow.verb).collect(),
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
