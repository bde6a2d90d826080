//! The schedule: which port is due next.

use super::Visitor;
use lanemark_units::Ticks;

/// One due time for each port, kept in a winner tree: each node holds the earlier of its two children. Ties go to the
/// lower port.
///
/// [`Schedule::set`] compares with one sibling a level and stops where the winner is unchanged, which is usually the
/// first level. [`Schedule::first`] reads the root.
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
    /// The winner tree: the root is at 1, the children of node `n` are at `2n` and `2n + 1`, and the leaves are the
    /// ports.
    winners: Vec<Due>,
    /// Index of the first leaf.
    ports: usize,
}

/// A due time and its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Due {
    at: Ticks,
    port: usize,
}

impl Schedule {
    /// Creates a schedule of `ports` ports, none of them due.
    #[must_use]
    pub fn new(ports: usize) -> Schedule {
        let ports = ports.next_power_of_two();
        Schedule { winners: vec![Due { at: Ticks::NEVER, port: 0 }; 2 * ports], ports }
    }

    /// Makes `port` due at `at`; [`Ticks::NEVER`] makes it idle.
    ///
    /// # Panics
    /// If `port` is out of range.
    #[inline]
    pub fn set(&mut self, port: usize, at: Ticks) {
        let mut place = self.ports + port;
        let mut due = Due { at, port };
        while self.winners[place] != due {
            self.winners[place] = due;
            if place == 1 {
                break;
            }
            let other = self.winners[place ^ 1];
            if other.at < due.at || other.at == due.at && place % 2 == 1 {
                due = other;
            }
            place /= 2;
        }
    }

    /// Visits the due time of each port. The tree is rebuilt from these times.
    pub fn visit(&mut self, view: &mut impl Visitor) {
        for port in 0..self.ports {
            let mut at = self.winners[self.ports + port].at;
            view.moment(&mut at);
            self.set(port, at);
        }
    }

    /// Returns the earliest due port and its time; `None` if no port is due.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<(Ticks, usize)> {
        let Due { at, port } = self.winners[1];
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
