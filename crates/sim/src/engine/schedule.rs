//! Which port is due next.

use super::Visitor;
use lanemark_units::Ticks;

/// Due times compared with each other: a cache line of them.
const GROUP: usize = 8;

/// One due time a port, and the earliest of them as in a tournament: eight ports a group, the winners of eight groups in a
/// group again, and so on. Ties go to the lower port.
///
/// Setting a time looks at one group a level, and ends where the winner stays the same: most often at the first. Each winner
/// is known by its port, so finding the earliest looks at one place. A heap of those that are due was tried and took longer, and so did
/// groups of four.
///
/// ```
/// use lanemark_sim::engine::Schedule;
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
    /// The top one first; what is below a group begins at eight times its number and one. Those of the ports are the last.
    groups: Vec<Group>,
    /// Where those of the ports begin.
    ports: usize,
    /// The earliest of all.
    first: Due,
}

/// A due time and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Due {
    at: Ticks,
    port: usize,
}

/// Times and ports apart: then the earliest is found among values, and no load waits for what was found before it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Group {
    at: [Ticks; GROUP],
    port: [usize; GROUP],
}

const NOBODY: Due = Due { at: Ticks::NEVER, port: 0 };

impl Group {
    const EMPTY: Group = Group { at: [NOBODY.at; GROUP], port: [NOBODY.port; GROUP] };

    /// The earliest, the first of those that are equal.
    #[inline]
    fn earliest(&self) -> Due {
        let lower = |one: (Ticks, usize), other: (Ticks, usize)| if other.0 < one.0 { other } else { one };
        let of = |place: usize| (self.at[place], place);
        let low = lower(lower(of(0), of(1)), lower(of(2), of(3)));
        let high = lower(lower(of(4), of(5)), lower(of(6), of(7)));
        let (at, place) = lower(low, high);
        Due { at, port: self.port[place] }
    }
}

impl Schedule {
    /// A schedule for this many ports, none of them due.
    #[must_use]
    pub fn new(ports: usize) -> Schedule {
        let (mut above, mut level) = (0, 1);
        while level * GROUP < ports {
            above += level;
            level *= GROUP;
        }
        Schedule { groups: vec![Group::EMPTY; above + ports.div_ceil(GROUP).max(1)], ports: above, first: NOBODY }
    }

    /// Makes `port` due at `at`; [`Ticks::NEVER`] if it has nothing to do.
    ///
    /// # Panics
    /// If there is no such port.
    #[inline]
    pub fn set(&mut self, port: usize, at: Ticks) {
        let (mut number, mut place, mut due) = (self.ports + port / GROUP, port % GROUP, Due { at, port });
        loop {
            let group = &mut self.groups[number];
            if group.at[place] == due.at && group.port[place] == due.port {
                return;
            }
            (group.at[place], group.port[place]) = (due.at, due.port);
            due = group.earliest();
            if number == 0 {
                break;
            }
            (number, place) = ((number - 1) / GROUP, (number - 1) % GROUP);
        }
        self.first = due;
    }

    /// Shows when each port is due; the rest follows from that.
    pub fn visit(&mut self, view: &mut impl Visitor) {
        for port in 0..(self.groups.len() - self.ports) * GROUP {
            let mut at = self.groups[self.ports + port / GROUP].at[port % GROUP];
            view.moment(&mut at);
            self.set(port, at);
        }
    }

    /// The earliest due port and its time; `None` if nothing will ever happen.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<(Ticks, usize)> {
        (self.first.at < Ticks::NEVER).then_some((self.first.at, self.first.port))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_schedule_has_nothing_next() {
        assert_eq!(Schedule::new(5).first(), None);
        assert_eq!(Schedule::new(0).first(), None);
    }

    #[test]
    fn it_agrees_with_a_plain_search_over_random_settings() {
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
