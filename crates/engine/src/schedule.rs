//! The schedule: which port is due next.

use super::Visitor;
use lanemark_units::Ticks;

/// One due time for each port, kept in a winner tree: each node holds the earlier of its two children. Ties go to the
/// lower port.
///
/// Only ports that have been due have a leaf, in the order in which they first were: a board has many ports, and most
/// traffic uses a few of them. [`Schedule::set`] compares with one sibling a level and stops where the winner is
/// unchanged. [`Schedule::first`] reads the winner of the whole tree.
/// The comparison is a branch, which processors predict well. Alternatives were measured and are slower: branch-free
/// groups of eight, groups of four, and a binary heap of the due ports.
///
/// ```
/// use lanemark_engine::Schedule;
/// use lanemark_units::Ticks;
/// let mut schedule = Schedule::new(3);
/// schedule.set(2, Ticks(5));
/// schedule.set(1, Ticks(5));
/// assert_eq!(schedule.first(), Some((Ticks(5), 1)));
/// schedule.set(1, Ticks::NEVER);
/// assert_eq!(schedule.first(), Some((Ticks(5), 2)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The nodes: the root is at 1, and the children of node `n` are at `2n` and `2n + 1`.
    nodes: Vec<Due>,
    /// Index of the first leaf, and number of leaves: a power of two.
    leaves: usize,
    /// The node of each port's leaf; [`NO_LEAF`] for a port that has never been due.
    leaf_of: Vec<usize>,
    /// Number of leaves in use.
    used: usize,
}

/// No leaf: beyond every node.
const NO_LEAF: usize = usize::MAX;

/// Number of leaves of a new schedule.
const FEWEST_LEAVES: usize = 4;

/// A due time and its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Due {
    at: Ticks,
    port: usize,
}

impl Due {
    /// No port.
    const NONE: Due = Due { at: Ticks::NEVER, port: usize::MAX };
}

impl Schedule {
    /// Creates a schedule of `ports` ports, none of them due.
    #[must_use]
    pub fn new(ports: usize) -> Schedule {
        let nodes = vec![Due::NONE; 2 * FEWEST_LEAVES];
        Schedule { nodes, leaves: FEWEST_LEAVES, leaf_of: vec![NO_LEAF; ports], used: 0 }
    }

    /// Makes `port` due at `at`; [`Ticks::NEVER`] makes it idle.
    ///
    /// # Panics
    /// If `port` is out of range.
    #[inline]
    pub fn set(&mut self, port: usize, at: Ticks) {
        let leaf = self.leaf_of[port];
        if leaf == NO_LEAF {
            return self.add_leaf(port, at);
        }
        let due = Due { at, port };
        if self.nodes[1].port == port { self.replace_first(leaf, due) } else { self.climb(leaf, due) }
    }

    /// Changes the time of the first port, which is the winner of every node above its leaf.
    #[inline]
    fn replace_first(&mut self, leaf: usize, mut due: Due) {
        let mut node = leaf;
        while node > 1 {
            self.nodes[node] = due;
            let other = &self.nodes[node ^ 1];
            if other.at < due.at || other.at == due.at && other.port < due.port {
                due = *other;
            }
            node /= 2;
        }
        self.nodes[1] = due;
    }

    /// Changes the time of another port, up to the first node whose winner is unchanged.
    #[inline]
    fn climb(&mut self, leaf: usize, mut due: Due) {
        let mut node = leaf;
        while self.nodes[node] != due {
            self.nodes[node] = due;
            if node == 1 {
                break;
            }
            let other = &self.nodes[node ^ 1];
            if other.at < due.at || other.at == due.at && other.port < due.port {
                due = *other;
            }
            node /= 2;
        }
    }

    /// Gives a port a leaf, if it is due.
    #[cold]
    fn add_leaf(&mut self, port: usize, at: Ticks) {
        if at == Ticks::NEVER {
            return;
        }
        if self.used == self.leaves {
            let old = self.nodes.split_off(self.leaves);
            self.leaves *= 2;
            self.nodes = vec![Due::NONE; 2 * self.leaves];
            for (leaf, due) in (self.leaves..).zip(old) {
                self.leaf_of[due.port] = leaf;
                self.climb(leaf, due);
            }
        }
        let leaf = self.leaves + self.used;
        self.leaf_of[port] = leaf;
        self.used += 1;
        self.climb(leaf, Due { at, port });
    }

    /// Returns the due time of a port.
    fn at(&self, port: usize) -> Ticks {
        self.nodes.get(self.leaf_of[port]).map_or(Ticks::NEVER, |due| due.at)
    }

    /// Visits the due time of each port. The tree is rebuilt from these times.
    pub fn visit(&mut self, view: &mut impl Visitor) {
        for port in 0..self.leaf_of.len() {
            let mut at = self.at(port);
            view.moment(&mut at);
            self.set(port, at);
        }
    }

    /// Returns the earliest due port and its time; `None` if no port is due.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<(Ticks, usize)> {
        let Due { at, port } = self.nodes[1];
        (at < Ticks::NEVER).then_some((at, port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_schedule_has_no_first_port() {
        assert_eq!(Schedule::new(5).first(), None);
        assert_eq!(Schedule::new(0).first(), None);
    }

    #[test]
    fn a_schedule_agrees_with_a_linear_search_over_random_times() {
        for ports in [1, 16, 17, 256, 257, 4097] {
            let mut schedule = Schedule::new(ports);
            let mut plain = vec![Ticks::NEVER; ports];
            let mut state = 1_u64;
            for turn in 0..5000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let (port, at) = ((state >> 33) as usize % ports, (state >> 50) % 20);
                let at = if at == 19 { Ticks::NEVER } else { Ticks(at) };
                schedule.set(port, at);
                plain[port] = at;
                if turn % 3 == 0 {
                    let first = plain.iter().copied().enumerate().map(|(port, at)| (at, port)).min().unwrap();
                    assert_eq!(schedule.first(), (first.0 < Ticks::NEVER).then_some(first), "of {ports}");
                }
            }
        }
    }
}
