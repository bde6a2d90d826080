//! Merges the facts of two sources about one function.

use crate::{Aer, Express, Feature, Function, Link, Seen, Why, config};

/// Merges two functions: facts of `first` take precedence, `second` fills the gaps, also inside capabilities.
pub(crate) fn functions(first: Function, second: Function) -> Function {
    let mut function = Function {
        address: first.address,
        vendor: or(first.vendor, second.vendor),
        device: or(first.device, second.device),
        subsystem: or(first.subsystem, second.subsystem),
        revision: or(first.revision, second.revision),
        class: or(first.class, second.class),
        name: or(first.name, second.name),
        config: or(first.config, second.config),
        command: or(first.command, second.command),
        buses: or(first.buses, second.buses),
        regions: or(first.regions, second.regions),
        resizable_bars: or(first.resizable_bars, second.resizable_bars),
        express: both(first.express, second.express, express),
        acs: or(first.acs, second.acs),
        aer: both(first.aer, second.aer, aer),
        containment: or(first.containment, second.containment),
        sriov: or(first.sriov, second.sriov),
        driver: or(first.driver, second.driver),
        numa_node: or(first.numa_node, second.numa_node),
        local_cpus: or(first.local_cpus, second.local_cpus),
        iommu_group: or(first.iommu_group, second.iommu_group),
        iommu_domain: or(first.iommu_domain, second.iommu_domain),
        power_state: or(first.power_state, second.power_state),
        d3cold_allowed: or(first.d3cold_allowed, second.d3cold_allowed),
        enable_count: or(first.enable_count, second.enable_count),
        interrupts: or(first.interrupts, second.interrupts),
        parent: or(first.parent, second.parent),
    };
    config::clear_physical_settings(&mut function);
    function
}

/// The known fact, `first` before `second`. If neither is known, the reason of `first` unless it is `NotInDump`.
fn or<T>(first: Seen<T>, second: Seen<T>) -> Seen<T> {
    match (first, second) {
        (Seen::Unseen(why), Seen::Unseen(other)) => Seen::Unseen(if why == Why::NotInDump { other } else { why }),
        (Seen::Unseen(_), second) => second,
        (first, _) => first,
    }
}

fn both<T>(first: Seen<Option<T>>, second: Seen<Option<T>>, merge: fn(T, T) -> T) -> Seen<Option<T>> {
    match (first, second) {
        (Seen::Known(Some(first)), Seen::Known(Some(second))) => Seen::Known(Some(merge(first, second))),
        (first, second) => or(first, second),
    }
}

fn feature(first: Feature, second: Feature) -> Feature {
    Feature { supported: or(first.supported, second.supported), enabled: or(first.enabled, second.enabled) }
}

fn express(first: Express, second: Express) -> Express {
    Express {
        kind: or(first.kind, second.kind),
        link: both(first.link, second.link, link),
        mps_supported: or(first.mps_supported, second.mps_supported),
        mps: or(first.mps, second.mps),
        mrrs: or(first.mrrs, second.mrrs),
        extended_tags: feature(first.extended_tags, second.extended_tags),
        ten_bit_tags: feature(first.ten_bit_tags, second.ten_bit_tags),
        ten_bit_tag_completer: or(first.ten_bit_tag_completer, second.ten_bit_tag_completer),
        relaxed_ordering_enabled: or(first.relaxed_ordering_enabled, second.relaxed_ordering_enabled),
        no_snoop_enabled: or(first.no_snoop_enabled, second.no_snoop_enabled),
        latency_tolerance_reporting: feature(first.latency_tolerance_reporting, second.latency_tolerance_reporting),
        slot: or(first.slot, second.slot),
    }
}

fn link(first: Link, second: Link) -> Link {
    Link {
        fastest: or(first.fastest, second.fastest),
        widest: or(first.widest, second.widest),
        speed: or(first.speed, second.speed),
        width: or(first.width, second.width),
        target: or(first.target, second.target),
        aspm_supported: or(first.aspm_supported, second.aspm_supported),
        aspm_enabled: or(first.aspm_enabled, second.aspm_enabled),
        l1_substates: or(first.l1_substates, second.l1_substates),
        data_link_active: or(first.data_link_active, second.data_link_active),
    }
}

fn aer(first: Aer, second: Aer) -> Aer {
    Aer {
        correctable: or(first.correctable, second.correctable),
        nonfatal: or(first.nonfatal, second.nonfatal),
        fatal: or(first.fatal, second.fatal),
        correctable_status: or(first.correctable_status, second.correctable_status),
        uncorrectable_status: or(first.uncorrectable_status, second.uncorrectable_status),
    }
}
