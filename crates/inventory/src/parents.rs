//! The parent bridge of each function, from bus numbers; notes on inconsistent numbers.

use crate::{Address, Function, Note, Seen, Why};
use lanemark_wire::config::BusNumbers;
use std::collections::BTreeMap;

/// Maximum depth of the tree: each level has a bus of its own, and a domain has 256 buses.
const MOST_DEPTH: usize = 256;

/// Sets the parent bridge of every function without a known parent, and notes bus numbers and parents that are
/// inconsistent.
pub(crate) fn place(functions: &mut [Function], notes: &mut Vec<Note>) {
    by_buses(functions, notes);
    cut(functions, notes);
}

/// Removes parents that form a cycle or exceed the maximum depth, which a manipulated copy may contain.
fn cut(functions: &mut [Function], notes: &mut Vec<Note>) {
    let index = |address: Address| functions.binary_search_by_key(&address, |function| function.address).ok();
    let parents: Vec<Option<usize>> =
        functions.iter().map(|function| function.parent.present().and_then(|parent| index(*parent))).collect();
    let mut remove_parent = |at: usize, what: &str| {
        let function = &mut functions[at];
        notes.push(Note { at: function.address.to_string(), what: what.to_owned() });
        function.parent = Seen::Unseen(Why::NotShown("the parent in the source is impossible"));
    };
    // Depth of each function, itself included; 0 while unknown.
    let mut depths = vec![0; parents.len()];
    let mut visited_by = vec![0; parents.len()];
    for start in 0..parents.len() {
        let mut chain = Vec::new();
        let mut next = Some(start);
        while let Some(at) = next.filter(|at| depths[*at] == 0) {
            if visited_by[at] == start + 1 {
                break;
            }
            visited_by[at] = start + 1;
            chain.push(at);
            next = parents[at];
        }
        // The depth above is known, or the walk has reached itself.
        let mut depth = next.map_or(0, |above| depths[above]);
        if next.is_some()
            && depth == 0
            && let Some(last) = chain.last()
        {
            remove_parent(*last, "the function is below itself; it is placed on a root bus");
        }
        for at in chain.into_iter().rev() {
            depth += 1;
            if depth > MOST_DEPTH {
                remove_parent(at, "the tree is deeper than 256 functions; the function is placed on a root bus");
                depth = 1;
            }
            depths[at] = depth;
        }
    }
}

/// Sets the parent of every function without a known parent to the bridge with its bus as secondary bus. Only bridges
/// to a higher bus number count, which excludes cycles.
fn by_buses(functions: &mut [Function], notes: &mut Vec<Note>) {
    let mut bridges: BTreeMap<u32, Vec<(Address, BusNumbers)>> = BTreeMap::new();
    let mut note = |at: Address, what: String| notes.push(Note { at: at.to_string(), what });
    for function in functions.iter() {
        let Some(buses) = function.buses.present() else { continue };
        let at = function.address;
        // An unconfigured bridge.
        if buses.secondary == 0 && buses.subordinate == 0 {
            continue;
        }
        if buses.secondary <= at.bus() {
            note(
                at,
                format!(
                    "secondary bus {:02x} is not above the bridge's own bus; the bridge is ignored",
                    buses.secondary
                ),
            );
            continue;
        }
        if buses.subordinate < buses.secondary {
            note(
                at,
                format!(
                    "subordinate bus {:02x} is below secondary bus {:02x}; it is ignored",
                    buses.subordinate, buses.secondary
                ),
            );
        }
        if buses.primary != at.bus() {
            note(
                at,
                format!(
                    "primary bus is {:02x}, but the bridge is on bus {:02x}; it is ignored",
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
                        "{first} has secondary bus {:02x} too; functions there are placed below {first}",
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
                        "no bridge has secondary bus {:02x}; its functions are placed below {around}, whose range contains it",
                        bus.1
                    ),
                );
                Some(around)
            })
        });
        function.parent = Seen::Known(parent);
    }
}

/// The bridge with the narrowest bus range that contains `bus`.
fn innermost(bridges: &[(Address, BusNumbers)], bus: u8) -> Option<Address> {
    let around = bridges.iter().filter(|(_, buses)| (buses.secondary..=buses.subordinate).contains(&bus));
    around.min_by_key(|(_, buses)| buses.subordinate - buses.secondary).map(|(at, _)| *at)
}

/// Notes bridges, sorted by secondary bus, whose bus range partly overlaps that of another.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tree;

    /// A chain of `count` functions, the first one below `top`.
    fn chain(count: u32, top: Option<Address>) -> Vec<Function> {
        let address = |at: u32| Address::new(at, 0, 0, 0).unwrap();
        let of = |at: u32| {
            let mut function = Function::unseen(address(at), &Why::NotInDump);
            function.parent = Seen::Known(if at == 0 { top } else { Some(address(at - 1)) });
            function
        };
        (0..count).map(of).collect()
    }

    #[test]
    fn a_chain_of_256_functions_is_accepted_and_a_longer_one_is_cut() {
        for (count, depths) in [(256, vec![256]), (257, vec![256, 1]), (65_536, vec![256; 256])] {
            let mut functions = chain(count, None);
            let mut notes = Vec::new();
            place(&mut functions, &mut notes);
            assert_eq!(notes.len(), depths.len() - 1, "{count}");
            let tree = Tree::of(&functions);
            let last: Vec<usize> = (0..functions.len()).filter(|at| tree.children(*at).is_empty()).collect();
            assert_eq!(last.iter().map(|at| tree.path_up(*at).count()).collect::<Vec<_>>(), depths, "{count}");
        }
    }

    #[test]
    fn a_cycle_of_parents_is_cut_once_and_noted() {
        let mut functions = chain(3, Some(Address::new(2, 0, 0, 0).unwrap()));
        let mut notes = Vec::new();
        place(&mut functions, &mut notes);
        assert_eq!(notes.len(), 1);
        assert!(notes[0].what.starts_with("the function is below itself"), "{notes:?}");
        assert_eq!(functions.iter().filter(|function| function.parent.why().is_some()).count(), 1);
        let tree = Tree::of(&functions);
        assert_eq!(tree.path_up(0).count() + tree.path_up(1).count() + tree.path_up(2).count(), 6);
    }
}
