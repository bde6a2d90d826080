//! The tree of functions.

use crate::{Address, Function};
use std::collections::BTreeMap;

/// The functions of an inventory as a tree, by index in [`crate::Inventory::functions`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree {
    /// Root buses, by domain and bus.
    pub roots: Vec<Root>,
    parents: Vec<Option<usize>>,
    children: Vec<Vec<usize>>,
}

/// A bus without a known bridge above it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Root {
    /// Domain.
    pub domain: u32,
    /// Bus number.
    pub bus: u8,
    /// Functions on it, by address.
    pub functions: Vec<usize>,
}

impl Tree {
    /// The tree given by the `parent` of functions sorted by address. A missing parent, and one parent of each cycle,
    /// is ignored.
    #[must_use]
    pub fn of(functions: &[Function]) -> Tree {
        let place = |address: Address| functions.binary_search_by_key(&address, |function| function.address).ok();
        let mut parents: Vec<Option<usize>> =
            functions.iter().map(|function| function.parent.present().and_then(|parent| place(*parent))).collect();
        cut_loops(&mut parents);
        let mut children = vec![Vec::new(); functions.len()];
        let mut roots: BTreeMap<(u32, u8), Vec<usize>> = BTreeMap::new();
        for (at, function) in functions.iter().enumerate() {
            match parents[at] {
                Some(parent) => children[parent].push(at),
                None => roots.entry((function.address.domain, function.address.bus())).or_default().push(at),
            }
        }
        let roots = roots.into_iter().map(|((domain, bus), functions)| Root { domain, bus, functions }).collect();
        Tree { roots, parents, children }
    }

    /// The parent of a function.
    ///
    /// # Panics
    /// If `function` is out of range.
    #[must_use]
    pub fn parent(&self, function: usize) -> Option<usize> {
        self.parents[function]
    }

    /// The children of a function, by address.
    ///
    /// # Panics
    /// If `function` is out of range.
    #[must_use]
    pub fn children(&self, function: usize) -> &[usize] {
        &self.children[function]
    }

    /// The function and its ancestors up to the root bus.
    pub fn path_up(&self, function: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(function), |at| self.parents[*at])
    }
}

/// Removes one parent of every cycle; visits each function once.
fn cut_loops(parents: &mut [Option<usize>]) {
    let mut walk_of = vec![0; parents.len()];
    for start in 0..parents.len() {
        let mut at = start;
        while walk_of[at] == 0 {
            walk_of[at] = start + 1;
            match parents[at] {
                Some(parent) if walk_of[parent] == start + 1 => parents[at] = None,
                Some(parent) => at = parent,
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Seen, Why};

    fn functions(rows: &[(&str, Option<&str>)]) -> Vec<Function> {
        let of = |(address, parent): &(&str, Option<&str>)| {
            let mut function = Function::unseen(address.parse().unwrap(), &Why::NotInDump);
            function.parent = Seen::Known(parent.map(|parent| parent.parse().unwrap()));
            function
        };
        rows.iter().map(of).collect()
    }

    #[test]
    fn children_are_below_their_bridge_and_the_rest_on_root_buses() {
        let functions = functions(&[
            ("0000:00:00.0", None),
            ("0000:00:01.0", None),
            ("0000:01:00.0", Some("0000:00:01.0")),
            ("0000:3a:00.0", None),
            ("0001:00:00.0", None),
        ]);
        let tree = Tree::of(&functions);
        let roots: Vec<_> = tree.roots.iter().map(|root| (root.domain, root.bus, root.functions.clone())).collect();
        assert_eq!(roots, [(0, 0, vec![0, 1]), (0, 0x3a, vec![3]), (1, 0, vec![4])]);
        assert_eq!(tree.children(1), [2]);
        assert_eq!(tree.path_up(2).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn a_cycle_is_cut_and_no_function_is_lost() {
        let functions = functions(&[
            ("0000:00:01.0", Some("0000:02:00.0")),
            ("0000:01:00.0", Some("0000:00:01.0")),
            ("0000:02:00.0", Some("0000:01:00.0")),
            ("0000:03:00.0", Some("0000:03:00.0")),
            ("0000:04:00.0", Some("0000:02:00.0")),
        ]);
        let tree = Tree::of(&functions);
        assert_eq!(tree.roots.len(), 2);
        for at in 0..functions.len() {
            assert!(tree.path_up(at).count() <= functions.len());
        }
        let below: usize = (0..functions.len()).map(|at| tree.children(at).len()).sum();
        assert_eq!(below + tree.roots.iter().map(|root| root.functions.len()).sum::<usize>(), functions.len());
    }

    #[test]
    fn a_missing_parent_is_ignored() {
        let tree = Tree::of(&functions(&[("0000:05:00.0", Some("0000:00:01.0"))]));
        assert_eq!(tree.roots[0].bus, 5);
    }
}
