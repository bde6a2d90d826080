//! Which port is due next.

use super::Visitor;
use lanemark_units::Ticks;

/// One due time a port, and the earliest of them as in a tournament: of two ports next to each other, of two such pairs, and so
/// on. Ties go to the lower port.
///
/// Setting a time looks at one neighbour a round, and ends where the winner stays the same: most often at the first. Each winner
/// is known by its port, so finding the earliest looks at one place. Who wins is a branch, which a processor foresees, so that nothing
/// waits for it: groups of eight whose earliest was found without branches took fewer instructions and longer. Groups of four took
/// longer too, and so did a heap of those that are due.
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
    /// The winner of all at 1, and of those two at twice a number and one more. Ports are the last.
    winners: Vec<Due>,
    /// Where the ports begin.
    ports: usize,
}

/// A due time and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Due {
    at: Ticks,
    port: usize,
}

impl Schedule {
    /// A schedule for this many ports, none of them due.
    #[must_use]
    pub fn new(ports: usize) -> Schedule {
        let ports = ports.next_power_of_two();
        Schedule { winners: vec![Due { at: Ticks::NEVER, port: 0 }; 2 * ports], ports }
    }

    /// Makes `port` due at `at`; [`Ticks::NEVER`] if it has nothing to do.
    ///
    /// # Panics
    /// If there is no such port.
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

    /// Shows when each port is due; the rest follows from that.
    pub fn visit(&mut self, view: &mut impl Visitor) {
        for port in 0..self.ports {
            let mut at = self.winners[self.ports + port].at;
            view.moment(&mut at);
            self.set(port, at);
        }
    }

    /// The earliest due port and its time; `None` if nothing will ever happen.
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
