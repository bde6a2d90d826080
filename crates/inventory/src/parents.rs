//! Bridges and their bus numbers: who is above whom, and which numbers fit no tree.

use crate::{Address, Function, Note, Seen};
use lanemark_wire::config::BusNumbers;
use std::collections::BTreeMap;

/// Gives every function without a known parent the bridge that leads to its bus, and notes bus numbers
/// that fit no tree.
///
/// A bridge leads to higher buses than its own only, so that nothing is followed in a circle.
pub(crate) fn place(functions: &mut [Function], notes: &mut Vec<Note>) {
    let mut bridges: BTreeMap<u32, Vec<(Address, BusNumbers)>> = BTreeMap::new();
    let mut note = |at: Address, what: String| notes.push(Note { at: at.to_string(), what });
    for function in functions.iter() {
        let Some(buses) = function.buses.present() else { continue };
        let at = function.address;
        // A bridge that nobody has configured.
        if buses.secondary == 0 && buses.subordinate == 0 {
            continue;
        }
        if buses.secondary <= at.bus() {
            note(
                at,
                format!(
                    "the bridge leads to bus {:02x}, which is not below its own; it is taken to lead nowhere",
                    buses.secondary
                ),
            );
            continue;
        }
        if buses.subordinate < buses.secondary {
            note(
                at,
                format!(
                    "subordinate bus {:02x} lies below secondary bus {:02x}; it is not believed",
                    buses.subordinate, buses.secondary
                ),
            );
        }
        if buses.primary != at.bus() {
            note(
                at,
                format!(
                    "primary bus is {:02x}, but the bridge stands on bus {:02x}; it is not believed",
                    buses.primary,
                    at.bus()
                ),
            );
        }
        let subordinate = buses.subordinate.max(buses.secondary);
        bridges.entry(at.domain).or_default().push((at, BusNumbers { subordinate, ..*buses }));
    }
    let mut above: BTreeMap<(u32, u8), Address> = BTreeMap::new();
    for (domain, bridges) in &mut bridges {
        bridges.sort_by_key(|(at, buses)| (buses.secondary, *at));
        for (at, buses) in bridges.iter() {
            let first = *above.entry((*domain, buses.secondary)).or_insert(*at);
            if first != *at {
                note(
                    *at,
                    format!(
                        "{first} leads to bus {:02x} too; what is there is taken as below {first}",
                        buses.secondary
                    ),
                );
            }
        }
        overlaps(bridges, &mut note);
    }
    let mut orphans: BTreeMap<(u32, u8), Option<Address>> = BTreeMap::new();
    for function in functions.iter_mut().filter(|function| function.parent.known().is_none()) {
        let bus = (function.address.domain, function.address.bus());
        let parent = above.get(&bus).copied().or_else(|| {
            *orphans.entry(bus).or_insert_with(|| {
                let around = innermost(bridges.get(&bus.0).map_or(&[], Vec::as_slice), bus.1)?;
                note(
                    function.address,
                    format!(
                        "no bridge leads right to bus {:02x}; it is taken as below {around}, which passes it on",
                        bus.1
                    ),
                );
                Some(around)
            })
        });
        function.parent = Seen::Known(parent);
    }
}

/// The bridge with the narrowest range of buses that holds this one.
fn innermost(bridges: &[(Address, BusNumbers)], bus: u8) -> Option<Address> {
    let around = bridges.iter().filter(|(_, buses)| (buses.secondary..=buses.subordinate).contains(&bus));
    around.min_by_key(|(_, buses)| buses.subordinate - buses.secondary).map(|(at, _)| *at)
}

/// Notes where a bridge, sorted by secondary bus, begins inside another's range and ends outside.
fn overlaps(bridges: &[(Address, BusNumbers)], note: &mut impl FnMut(Address, String)) {
    let mut open: Vec<(Address, BusNumbers)> = Vec::new();
    for (at, buses) in bridges {
        while open.last().is_some_and(|(_, outer)| outer.subordinate < buses.secondary) {
            open.pop();
        }
        if let Some((outer, outer_buses)) = open.last() {
            let range = |buses: &BusNumbers| format!("{:02x}-{:02x}", buses.secondary, buses.subordinate);
            let same_bus = at.bus() == outer.bus() && buses.secondary != outer_buses.secondary;
            if buses.subordinate > outer_buses.subordinate || same_bus {
                note(*at, format!("its buses {} overlap {} of {outer}", range(buses), range(outer_buses)));
            }
        }
        open.push((*at, *buses));
    }
}
