//! The cores that threads run on.

use crate::measured::Measured;
use lanemark_machine::{Facts, Lane, Placement, Plan, TimeBase};
use lanemark_record::{CallerCores, CorePair, CpuSamples};
use std::collections::BTreeMap;

/// The cores that a case runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Caller {
    /// On the cores that the question's plan names.
    #[default]
    AsPlanned,
    /// Held on this core, counted as plans count them.
    Core(u32),
    /// Wherever the system puts it.
    Unpinned,
    /// On two cores, one of which answers the other.
    Between(CorePair),
}

/// Cores that a thread is to call from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cores {
    /// Every one.
    All,
    /// These.
    These(Vec<u32>),
}

/// The most cores that are asked where nobody said which.
pub(crate) const MOST_CORES: u32 = 12;

impl Caller {
    /// All that are asked: each core in turn, and where there is a system that would move the thread, none.
    pub(crate) fn all(facts: &Facts, cores: Option<&Cores>) -> Vec<Caller> {
        let held = match cores {
            None => spread(facts.cores),
            Some(Cores::All) => (0..facts.cores).collect(),
            Some(Cores::These(cores)) => cores.clone(),
        };
        let free = (facts.time_base != TimeBase::Simulated).then_some(Caller::Unpinned);
        held.into_iter().map(Caller::Core).chain(free).collect()
    }

    /// The plan of one lane, called from here.
    pub(crate) fn calling(self, plan: Plan) -> Plan {
        match self {
            Caller::AsPlanned | Caller::Between(_) => plan,
            Caller::Core(core) => {
                let lanes = plan.lanes.into_iter().map(|lane| Lane { core, ..lane }).collect();
                Plan { lanes, ..plan }
            }
            Caller::Unpinned => Plan { placement: Placement::Unpinned, ..plan },
        }
    }

    /// The two cores of an exchange; `None` where there are not two.
    pub(crate) const fn pair(self) -> Option<CorePair> {
        match self {
            Caller::Between(pair) => Some(pair),
            Caller::AsPlanned | Caller::Core(_) | Caller::Unpinned => None,
        }
    }

    /// As records show it: what was asked for, and where the samples that count were taken.
    pub(crate) fn cores(self, measured: &Measured) -> Option<CallerCores> {
        let core = match self {
            Caller::AsPlanned | Caller::Between(_) => return None,
            Caller::Core(core) => Some(core),
            Caller::Unpinned => None,
        };
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        for cpu in &measured.samples.cpus {
            *counts.entry(*cpu).or_default() += 1;
        }
        let cpus = counts.into_iter().map(|(cpu, samples)| CpuSamples { cpu, samples }).collect();
        Some(CallerCores { core, cpus })
    }
}

/// At most twelve of so many cores, spread evenly, the first and the last among them.
pub(crate) fn spread(cores: u32) -> Vec<u32> {
    let count = cores.min(MOST_CORES);
    let gaps = u64::from(count).saturating_sub(1).max(1);
    (0..u64::from(count)).map(|nth| (nth * u64::from(cores - 1) / gaps) as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_cores_twelve_are_asked_the_first_and_the_last_among_them() {
        assert_eq!(spread(0), [] as [u32; 0]);
        assert_eq!(spread(1), [0]);
        assert_eq!(spread(12), (0..12).collect::<Vec<_>>());
        assert_eq!(spread(13), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12]);
        let many = spread(128);
        assert_eq!((many.len(), many[0], many[11]), (12, 0, 127));
    }

    #[test]
    fn who_is_held_is_held_by_the_lane_and_who_is_not_by_none() {
        let plan = Plan::on_one_core(Vec::new(), 1);
        assert_eq!(Caller::AsPlanned.calling(plan.clone()), plan);
        let held = Caller::Core(7).calling(plan.clone());
        assert_eq!((held.lanes[0].core, held.placement), (7, Placement::Pinned));
        assert_eq!(Caller::Unpinned.calling(plan).placement, Placement::Unpinned);
    }
}
