//! Which port is due next.

use super::Visitor;
use lanemark_units::Ticks;

/// Due times compared with each other: half a cache line of them.
const GROUP: usize = 4;

/// One due time a port, and the earliest of them as in a tournament: four ports a group, the winners of four groups in a
/// group again, and so on. Ties go to the lower port.
///
/// Setting a time looks at one group a level, and ends where the winner's time stays the same: most often at the first.
/// Finding the earliest costs one load a level. A heap would have to find a port before it could change its time.
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
    /// The due times, then the earliest of each group of them, and so on up to a single group.
    levels: Vec<Level>,
    /// The earliest of all.
    earliest: Ticks,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Level {
    due: Vec<[Ticks; GROUP]>,
    /// Where the earliest of each group is.
    place: Vec<usize>,
}

impl Schedule {
    /// A schedule for this many ports, none of them due.
    #[must_use]
    pub fn new(ports: usize) -> Schedule {
        let level = |times: usize| {
            let groups = times.div_ceil(GROUP).max(1);
            Level { due: vec![[Ticks::NEVER; GROUP]; groups], place: vec![0; groups] }
        };
        let mut levels = vec![level(ports)];
        while let Some(groups) = levels.last().map(|level| level.due.len())
            && groups > 1
        {
            levels.push(level(groups));
        }
        Schedule { levels, earliest: Ticks::NEVER }
    }

    /// Makes `port` due at `at`; [`Ticks::NEVER`] if it has nothing to do.
    #[inline]
    pub fn set(&mut self, port: usize, at: Ticks) {
        let (mut number, mut at) = (port, at);
        for level in &mut self.levels {
            let group = number / GROUP;
            let due = &mut level.due[group];
            if due[number % GROUP] == at {
                return;
            }
            due[number % GROUP] = at;
            (at, level.place[group]) = earliest(due);
            number = group;
        }
        self.earliest = at;
    }

    /// Shows when each port is due; the rest follows from that.
    pub fn visit(&mut self, view: &mut impl Visitor) {
        for port in 0..self.levels[0].due.len() * GROUP {
            let mut at = self.levels[0].due[port / GROUP][port % GROUP];
            view.moment(&mut at);
            self.set(port, at);
        }
    }

    /// The earliest due port and its time; `None` if nothing will ever happen.
    #[inline]
    #[must_use]
    pub fn first(&self) -> Option<(Ticks, usize)> {
        let place = self.levels.iter().rev().fold(0, |group, level| group * GROUP + level.place[group]);
        (self.earliest < Ticks::NEVER).then_some((self.earliest, place))
    }
}

/// The least of a group and its place.
#[inline]
fn earliest(due: &[Ticks; GROUP]) -> (Ticks, usize) {
    let lower = |one: (Ticks, usize), other: (Ticks, usize)| if other.0 < one.0 { other } else { one };
    lower(lower((due[0], 0), (due[1], 1)), lower((due[2], 2), (due[3], 3)))
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
