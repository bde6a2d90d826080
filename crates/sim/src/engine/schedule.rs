//! Which port is due next.

use lanemark_units::Ticks;

/// Due times looked through together: two cache lines of them.
const GROUP: usize = 16;

/// One due time a port; the earliest is found group by group, and the earliest of groups in the same way. Ties go to
/// the lower port.
///
/// Setting a time costs a store; finding the earliest costs a look at each group in which a time was set since, and at
/// one group of each level above. For the few ports of one link this is faster than any tree that is kept in order, and
/// for thousands it grows by one look a factor of sixteen.
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
    /// The earliest of all, as of the last look.
    earliest: Ticks,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Level {
    due: Vec<[Ticks; GROUP]>,
    /// Where the earliest of each group is, unless the group is stale.
    place: Vec<usize>,
    is_stale: Vec<bool>,
    /// The stale ones, in any order.
    stale: Vec<usize>,
}

impl Level {
    fn new(times: usize) -> Level {
        let groups = times.div_ceil(GROUP).max(1);
        Level {
            due: vec![[Ticks::NEVER; GROUP]; groups],
            place: vec![0; groups],
            is_stale: vec![false; groups],
            stale: Vec::with_capacity(groups),
        }
    }

    #[inline]
    fn set(&mut self, number: usize, at: Ticks) {
        let group = number / GROUP;
        let due = &mut self.due[group][number % GROUP];
        if *due == at {
            return;
        }
        *due = at;
        if !self.is_stale[group] {
            self.is_stale[group] = true;
            self.stale.push(group);
        }
    }

    /// Looks at a stale group, if there is one: which, and its earliest.
    #[inline]
    fn look(&mut self) -> Option<(usize, Ticks)> {
        let group = self.stale.pop()?;
        self.is_stale[group] = false;
        let (at, place) = earliest(&self.due[group]);
        self.place[group] = place;
        Some((group, at))
    }
}

impl Schedule {
    /// A schedule for this many ports, none of them due.
    #[must_use]
    pub fn new(ports: usize) -> Schedule {
        let mut levels = vec![Level::new(ports)];
        while let Some(groups) = levels.last().map(|level| level.due.len())
            && groups > 1
        {
            levels.push(Level::new(groups));
        }
        Schedule { levels, earliest: Ticks::NEVER }
    }

    /// Makes `port` due at `at`; [`Ticks::NEVER`] if it has nothing to do.
    #[inline]
    pub fn set(&mut self, port: usize, at: Ticks) {
        self.levels[0].set(port, at);
    }

    /// The earliest due port and its time; `None` if nothing will ever happen.
    #[inline]
    #[must_use]
    pub fn first(&mut self) -> Option<(Ticks, usize)> {
        for number in 0..self.levels.len() {
            while let Some((group, at)) = self.levels[number].look() {
                match self.levels.get_mut(number + 1) {
                    Some(above) => above.set(group, at),
                    None => self.earliest = at,
                }
            }
        }
        let place = self.levels.iter().rev().fold(0, |group, level| group * GROUP + level.place[group]);
        (self.earliest < Ticks::NEVER).then_some((self.earliest, place))
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
