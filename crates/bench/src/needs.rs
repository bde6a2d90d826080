//! Requirements of questions, with a message for each that a machine does not meet.

use crate::question::LeftOut;
use lanemark_machine::{Discipline, Facts, TimeBase};

/// DMA engines.
pub(crate) fn dma_engine(facts: &Facts) -> Option<LeftOut> {
    match (facts.dma, facts.time_base) {
        (Some(_), _) => None,
        (None, TimeBase::Simulated) => Some(LeftOut::all(
            "the card has no DMA engine: the platform file has no section [dma], or a compiled card has no device file with its engine (--device)",
        )),
        (None, _) => Some(LeftOut::all("this target has no DMA engine: use a platform with a section [dma]")),
    }
}

/// An IOMMU that translates addresses of devices.
pub(crate) fn iommu(facts: &Facts) -> Option<LeftOut> {
    dma_engine(facts).or_else(|| {
        let needs = match facts.time_base {
            TimeBase::Simulated => {
                "no IOMMU, devices use physical addresses: the platform file has no section [iommu], or its IOMMU is in pass-through mode"
            }
            _ => "this target maps its memory itself: bind the card to vfio-pci, or use a platform with a section [iommu]",
        };
        facts.dma?.page_bytes.is_none().then(|| LeftOut::all(needs))
    })
}

/// A second core; real machines are not checked, because some cases need only one core.
pub(crate) fn second_core(facts: &Facts) -> Option<LeftOut> {
    let is_alone = facts.time_base == TimeBase::Simulated && facts.cores < 2;
    is_alone.then(|| LeftOut::all("a second core is required, and this target has one core"))
}

/// A last-level cache that serves DMA reads.
pub(crate) fn last_level_cache(facts: &Facts) -> Option<LeftOut> {
    dma_engine(facts).or_else(|| {
        let needs = "the last-level cache does not speed up DMA reads here: set memory.cache_bytes and \
                     memory.cached_read_ns";
        facts.dma?.cache.is_none().then(|| LeftOut::all(needs))
    })
}

/// Memory with a penalty for partial-line writes.
pub(crate) fn partial_line_penalty(facts: &Facts) -> Option<LeftOut> {
    dma_engine(facts).or_else(|| {
        let needs = "partial-line writes cost nothing here: memory.partial_line_ns is 0";
        (!facts.dma?.is_partial_dearer).then(|| LeftOut::all(needs))
    })
}

/// A driver for DMA.
pub(crate) fn dma_driver(facts: &Facts) -> Option<LeftOut> {
    dma_engine(facts).or_else(|| {
        let has_driver = facts.dma.is_none_or(|dma| dma.has_driver);
        let needs = "the DMA engine has no driver: this requires a section [driver], registers of 256 B and of 128 B per channel, and mapped memory of 256 KiB per card, or 512 KiB with more than 32 channels";
        (!has_driver).then(|| LeftOut::all(needs))
    })
}

/// A device that shows the end of a request in a status register.
pub(crate) fn responding_device(facts: &Facts) -> Option<LeftOut> {
    if facts.time_base != TimeBase::Simulated {
        let needs = "no register of this target is known that shows the end of a request: use a platform";
        return Some(LeftOut::all(needs));
    }
    let has_region = facts.registers().or(facts.storage()).is_some();
    (!has_region).then(|| LeftOut::all("the card has neither registers nor storage"))
}

/// A driver with calls that copy.
pub(crate) fn copy_driver(facts: &Facts) -> Option<LeftOut> {
    match (facts.driver_width, facts.time_base) {
        (Some(_), _) => None,
        (None, TimeBase::Simulated) => Some(LeftOut::all("the platform file has no section [driver]")),
        (None, _) => Some(LeftOut::all("this target has no driver: use a platform with a section [driver]")),
    }
}

/// A real machine: the cost of software libraries is not simulated.
pub(crate) fn real_machine(facts: &Facts) -> Option<LeftOut> {
    let needs = "software libraries are not simulated: use a real machine, --on host";
    (facts.time_base == TimeBase::Simulated).then(|| LeftOut::all(needs))
}

/// A table that a DMA mapping can update.
pub(crate) fn table(facts: &Facts) -> Option<LeftOut> {
    let needs = "no mapping can be timed here: use --on host, bind the card to vfio-pci (lanemark bind) and name no --bar, or use \
         --bind lanemark with a --bar";
    facts.tables.is_empty().then(|| LeftOut::all(needs))
}

/// A runtime that launches kernels.
pub(crate) fn kernel_runtime(facts: &Facts) -> Option<LeftOut> {
    let needs = "this target is not a runtime that launches kernels: use one, such as --on opencl:0";
    (!has_queue(facts)).then(|| LeftOut::all(needs))
}

/// Whether a runtime has a queue for copies and launches.
pub(crate) fn has_queue(facts: &Facts) -> bool {
    facts.runtime.as_ref().is_some_and(|runtime| !runtime.allocations.is_empty())
}

/// Compute kernels.
pub(crate) fn compute_kernels(facts: &Facts) -> Option<LeftOut> {
    let needs = match facts.time_base {
        TimeBase::Simulated => {
            "the card has no kernels: the platform file has no sections [device_memory] and [kernel]"
        }
        _ => {
            "this target has no compute kernels: use a runtime, such as --on opencl:0, or a platform with sections [device_memory] and [kernel]"
        }
    };
    let computes = facts.runtime.as_ref().is_some_and(|runtime| runtime.computes);
    (!computes).then(|| LeftOut::all(needs))
}

/// Methods of sharing memory with devices.
pub(crate) fn memory_sharing(facts: &Facts) -> Option<LeftOut> {
    if facts.disciplines.is_empty() {
        let needs = match facts.time_base {
            TimeBase::Simulated => "the platform file has no section [coherence]",
            _ => "this question is about host memory: use --on host, or a platform with a section [coherence]",
        };
        return Some(LeftOut::all(needs));
    }
    let mapped = [Discipline::Uncached, Discipline::Combining, Discipline::BouncedCombining];
    let missing: Vec<String> =
        mapped.iter().filter(|one| !facts.disciplines.contains(one)).map(ToString::to_string).collect();
    let because =
        "ordinary memory is WB, and a program cannot change its type: use a platform with a section [coherence]";
    (!missing.is_empty()).then(|| LeftOut { what: missing.join(", "), because: because.to_owned() })
}

/// Several cards with storage for peer access.
pub(crate) fn peer_access(facts: &Facts) -> Option<LeftOut> {
    dma_engine(facts).or_else(|| {
        let dma = facts.dma?;
        if dma.cards < 2 {
            let needs = match facts.time_base {
                TimeBase::Simulated => "two cards are required: a platform file has one for each [[slot]]",
                _ => {
                    "two cards are required: add --peer to an NVMe drive or a card with a device file; or use a platform"
                }
            };
            return Some(LeftOut::all(needs));
        }
        let has_storage = dma.peer.is_some() || facts.storage().is_some();
        (!has_storage).then(|| LeftOut::all("the cards have no storage for peer access"))
    })
}

/// Several cards.
pub(crate) fn several_cards(facts: &Facts) -> Option<LeftOut> {
    dma_engine(facts).or_else(|| {
        let cards = facts.dma?.cards;
        let needs = "several cards are required, or flows named with --flows";
        (cards < 2).then(|| LeftOut::all(needs))
    })
}

/// Cards that relay.
pub(crate) fn relay(facts: &Facts) -> Option<LeftOut> {
    dma_engine(facts).or_else(|| {
        let dma = facts.dma?;
        let needs = "relaying requires a section [fifos], and an engine that reads and writes concurrently: \
                     dma.channels of 2 or more, or dma.full_duplex";
        dma.relays_at.is_none().then(|| LeftOut::all(needs))
    })
}
