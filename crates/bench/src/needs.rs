//! What questions need of a machine, said where it has not got it.

use crate::question::LeftOut;
use lanemark_machine::{Discipline, Facts, TimeBase};

/// Devices that move bytes by themselves.
pub(crate) fn an_engine(facts: &Facts) -> Option<LeftOut> {
    match (facts.dma, facts.time_base) {
        (Some(_), _) => None,
        (None, TimeBase::Simulated) => {
            Some(LeftOut::all("its card moves nothing by itself: its platform file has no section [dma]"))
        }
        (None, _) => {
            Some(LeftOut::all("nothing here can be told to move bytes by itself: ask a platform with a section [dma]"))
        }
    }
}

/// Something that translates what devices ask for.
pub(crate) fn translation(facts: &Facts) -> Option<LeftOut> {
    an_engine(facts).or_else(|| {
        let needs = "its devices name memory as it is: its platform file has no section [iommu], or one that passes addresses through";
        facts.dma?.page_bytes.is_none().then(|| LeftOut::all(needs))
    })
}

/// A core to tell something to; a real one also waits for its own memory.
pub(crate) fn another_core(facts: &Facts) -> Option<LeftOut> {
    let is_alone = facts.time_base == TimeBase::Simulated && facts.cores < 2;
    is_alone.then(|| LeftOut::all("it has one core, and nobody to tell anything"))
}

/// A last-level cache that devices' reads are answered from.
pub(crate) fn a_cache(facts: &Facts) -> Option<LeftOut> {
    an_engine(facts).or_else(|| {
        let needs = "its devices read no line any sooner from a cache, whoever wrote it: that takes memory.cache_bytes and \
                     memory.cached_read_ns";
        facts.dma?.cache.is_none().then(|| LeftOut::all(needs))
    })
}

/// Memory to which a line that is not filled makes a difference.
pub(crate) fn partial_lines(facts: &Facts) -> Option<LeftOut> {
    an_engine(facts).or_else(|| {
        let needs = "its memory takes a part of a line as soon as all of it: memory.partial_line_ns is 0";
        (!facts.dma?.is_partial_dearer).then(|| LeftOut::all(needs))
    })
}

/// A driver that lets devices move bytes.
pub(crate) fn an_engine_with_a_driver(facts: &Facts) -> Option<LeftOut> {
    an_engine(facts).or_else(|| {
        let has_driver = facts.dma.is_none_or(|dma| dma.has_driver);
        let needs = "nobody calls its engine: that takes a section [driver], registers of 256 B and of 128 B for each channel, and lent memory of 256 KiB for each card, or 512 KiB with more than 32 channels";
        (!has_driver).then(|| LeftOut::all(needs))
    })
}

/// Calls of a driver that copies.
pub(crate) fn a_driver(facts: &Facts) -> Option<LeftOut> {
    match (facts.driver_width, facts.time_base) {
        (Some(_), _) => None,
        (None, TimeBase::Simulated) => Some(LeftOut::all("its platform file has no section [driver]")),
        (None, _) => Some(LeftOut::all("there is no driver to call: ask a platform with a section [driver]")),
    }
}

/// Cores that run a program: what a library costs is not simulated.
pub(crate) fn a_program(facts: &Facts) -> Option<LeftOut> {
    let needs = "a simulated core does not run a program's instructions, and this times a library's: ask a real machine, --on host";
    (facts.time_base == TimeBase::Simulated).then(|| LeftOut::all(needs))
}

/// A runtime that launches kernels.
pub(crate) fn a_runtime(facts: &Facts) -> Option<LeftOut> {
    let needs = "it is no runtime that launches kernels: ask one, --on opencl:0";
    (!has_queue(facts)).then(|| LeftOut::all(needs))
}

/// Whether a program can put copies and launches into a queue of it.
pub(crate) fn has_queue(facts: &Facts) -> bool {
    facts.runtime.as_ref().is_some_and(|runtime| !runtime.allocations.is_empty())
}

/// Kernels that compute.
pub(crate) fn kernels(facts: &Facts) -> Option<LeftOut> {
    let needs = match facts.time_base {
        TimeBase::Simulated => {
            "its card runs no kernels: its platform file has no sections [device_memory] and [kernel]"
        }
        _ => {
            "it runs no kernels that compute: ask a device behind a runtime, --on opencl:0, or a platform with sections [device_memory] and [kernel]"
        }
    };
    let computes = facts.runtime.as_ref().is_some_and(|runtime| runtime.computes);
    (!computes).then(|| LeftOut::all(needs))
}

/// Ways to share memory with devices.
pub(crate) fn disciplines(facts: &Facts) -> Option<LeftOut> {
    if facts.disciplines.is_empty() {
        let needs = match facts.time_base {
            TimeBase::Simulated => {
                "nothing is known of how its cores reach memory: its platform file has no section [coherence]"
            }
            _ => {
                "this is about memory of the machine, and not of a card: ask --on host, or a platform with a section [coherence]"
            }
        };
        return Some(LeftOut::all(needs));
    }
    let mapped = [Discipline::Uncached, Discipline::Combining, Discipline::BouncedCombining];
    let missing: Vec<String> =
        mapped.iter().filter(|way| !facts.disciplines.contains(way)).map(ToString::to_string).collect();
    let because = "ordinary memory is WB, and a program cannot change that: ask a platform with a section [coherence]";
    (!missing.is_empty()).then(|| LeftOut { what: missing.join(", "), because: because.to_owned() })
}

/// Cards that write to each other.
pub(crate) fn peers(facts: &Facts) -> Option<LeftOut> {
    an_engine(facts).or_else(|| {
        let dma = facts.dma?;
        if dma.cards < 2 {
            return Some(LeftOut::all(
                "it has one card, and this is about two: a platform file has one for each [[slot]]",
            ));
        }
        let has_storage = facts.storage().is_some();
        (!has_storage).then(|| LeftOut::all("its cards have no storage that another one could reach"))
    })
}

/// Flows that share a link.
pub(crate) fn several_cards(facts: &Facts) -> Option<LeftOut> {
    an_engine(facts).or_else(|| {
        let cards = facts.dma?.cards.min(facts.cores);
        let needs = "it has one card, or one core to start them, and this is about several: name flows with --flows";
        (cards < 2).then(|| LeftOut::all(needs))
    })
}

/// Cards that hand on what comes to them.
pub(crate) fn a_relay(facts: &Facts) -> Option<LeftOut> {
    an_engine(facts).or_else(|| {
        let dma = facts.dma?;
        match (dma.relays_at, dma.channels) {
            (Some(_), _) => None,
            (None, 1) => Some(LeftOut::all(
                "a card that hands on reads and writes at once, from queue to queue: that takes a section [fifos], and two \
                 channels, and dma.channels is 1",
            )),
            (None, _) => Some(LeftOut::all("its cards have no queues to hand on from: its platform file has no section [fifos]")),
        }
    })
}
