//! Checks of injected faults.

use crate::notes::Notes;
use crate::platform::{Platform, ROOT};
use crate::spec::{Fault, FaultKind, Iommu};
use lanemark_units::Ticks;

/// Each fault is at an existing port, where it can occur, and has only the keys of its kind.
pub(crate) fn check_faults(platform: &Platform, notes: &mut Notes<'_>) {
    let names = platform.port_names();
    let ends = ports_where_tlps_end(platform);
    for (place, fault) in platform.faults.iter().enumerate() {
        let is_like = |other: &Fault| other.kind.value == fault.kind.value && other.port == fault.port;
        if fault.kind.value.is_of_driver() && platform.faults[..place].iter().any(is_like) {
            let message = format!("is {}, but {} already has one", fault.kind.value.word(), fault.port);
            notes.at_line(fault.kind.line, format!("fault.{}.kind", fault.name), message);
        }
        let (kind, port) = (fault.kind.value, &fault.port);
        let mut note = |key: &str, line, message| notes.at_line(line, format!("fault.{}.{key}", fault.name), message);
        let line = fault.kind.line;
        if !names.contains(port) {
            note("port", line, format!("is {port:?}, not a port of this platform; its ports: {}", names.join(", ")));
        } else if kind.is_at_the_end() && !ends.contains(port) {
            let message = format!(
                "is {port}, a port of a switch; {} can occur only at root ports and cards: {}",
                kind.word(),
                ends.join(", ")
            );
            note("port", line, message);
        } else if kind.is_of_driver()
            && !(0..platform.cards() as usize).any(|card| platform.card_name(card) == Some(port))
        {
            let message = format!("is {port}; {} occurs in the driver of a card only", kind.word());
            note("port", line, message);
        } else if kind.is_of_driver() && platform.driver.is_none() {
            note("kind", line, format!("is {}, but there is no section [driver]", kind.word()));
        } else if kind.is_of_iommu() && !platform.iommu.as_ref().is_some_and(Iommu::translates) {
            note("kind", line, format!("is {}, but no [iommu] section translates addresses", kind.word()));
        } else if kind.is_of_iommu()
            && !platform.links().iter().any(|link| link.upper_port() == *port && link.above == ROOT)
        {
            let message = format!("is {port}; {} occurs behind root ports only: {ROOT}, {ROOT}/...", kind.word());
            note("port", line, message);
        }
        if fault.down_ns.value > Ticks::ZERO && kind != FaultKind::LinkDown {
            note(
                "down_ns",
                fault.down_ns.line,
                format!("applies to {} only, but this is {}", FaultKind::LinkDown.word(), kind.word()),
            );
        }
    }
}

/// Ports that consume TLPs: root ports and those of cards.
fn ports_where_tlps_end(platform: &Platform) -> Vec<String> {
    let of_root = platform.links().into_iter().filter(|link| link.above == ROOT).map(|link| link.upper_port());
    of_root
        .chain((0..platform.cards() as usize).filter_map(|card| platform.card_name(card).map(str::to_owned)))
        .collect()
}
