//! Which port is due next.

use lanemark_units::Ticks;

/// Ports looked through together: two cache lines of due times.
const GROUP: usize = 16;

/// One due time a port; the earliest is found group by group, ties go to the lower port.
///
/// Setting a time costs a store; finding the earliest costs a look at one group and at the earliest of
/// each other. For the few ports of one link this is faster than any tree, and for hundreds still short.
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
    due: Vec<[Ticks; GROUP]>,
    /// The earliest of each group and where it is, unless the group is stale.
    earliest: Vec<(Ticks, usize)>,
    stale: Vec<bool>,
}

impl Schedule {
    /// A schedule for this many ports, none of them due.
    #[must_use]
    pub fn new(ports: usize) -> Schedule {
        let groups = ports.div_ceil(GROUP).max(1);
        Schedule {
            due: vec![[Ticks::NEVER; GROUP]; groups],
            earliest: vec![(Ticks::NEVER, 0); groups],
            stale: vec![false; groups],
        }
    }

    /// Makes `port` due at `at`; [`Ticks::NEVER`] if it has nothing to do.
    #[inline]
    pub fn set(&mut self, port: usize, at: Ticks) {
        let group = port / GROUP;
        self.due[group][port % GROUP] = at;
        self.stale[group] = true;
    }

    /// The earliest due port and its time; `None` if nothing will ever happen.
    #[inline]
    #[must_use]
    pub fn first(&mut self) -> Option<(Ticks, usize)> {
        let mut first = (Ticks::NEVER, 0);
        for group in 0..self.due.len() {
            if self.stale[group] {
                self.earliest[group] = earliest(&self.due[group]);
                self.stale[group] = false;
            }
            let (at, place) = self.earliest[group];
            if at < first.0 {
                first = (at, group * GROUP + place);
            }
        }
        (first.0 < Ticks::NEVER).then_some(first)
    }
}

/// The least of a group and its place, by halving: four steps that depend on each other instead of sixteen.
#[inline]
fn earliest(due: &[Ticks; GROUP]) -> (Ticks, usize) {
    let lower = |one: (Ticks, usize), other: (Ticks, usize)| if other.0 < one.0 { other } else { one };
    let eight: [_; 8] =
        std::array::from_fn(|place| lower((due[2 * place], 2 * place), (due[2 * place + 1], 2 * place + 1)));
    let four: [_; 4] = std::array::from_fn(|place| lower(eight[2 * place], eight[2 * place + 1]));
    let two: [_; 2] = std::array::from_fn(|place| lower(four[2 * place], four[2 * place + 1]));
    lower(two[0], two[1])
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
        let mut schedule = Schedule::new(37);
        let mut plain = [Ticks::NEVER; 37];
        let mut state = 1_u64;
        for _ in 0..10_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (port, at) = ((state >> 33) as usize % 37, (state >> 50) % 20);
            let at = if at == 19 { Ticks::NEVER } else { Ticks(at) };
            schedule.set(port, at);
            plain[port] = at;
            let first = plain.iter().copied().enumerate().map(|(port, at)| (at, port)).min().unwrap();
            assert_eq!(schedule.first(), (first.0 < Ticks::NEVER).then_some(first));
        }
    }
}
