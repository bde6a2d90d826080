//! The cores of threads.

use crate::measured::Measured;
use lanemark_machine::{Facts, Placement, Plan, TimeBase, Work};
use lanemark_record::{CallerCores, CorePair, CpuSamples};
use std::collections::BTreeMap;

/// The cores of a case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Caller {
    /// The cores of the question's plan.
    #[default]
    AsPlanned,
    /// Pinned to this core, numbered as in plans.
    Core(u32),
    /// Not pinned.
    Unpinned,
    /// Two cores that exchange messages.
    Between(CorePair),
}

/// Cores of a thread that calls a runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cores {
    /// Every core.
    All,
    /// These cores.
    These(Vec<u32>),
}

/// Largest default number of cores.
pub(crate) const MOST_CORES: u32 = 12;

impl Caller {
    /// All callers: each core in turn, and an unpinned thread if the operating system can move it.
    pub(crate) fn all(facts: &Facts, cores: Option<&Cores>) -> Vec<Caller> {
        let held = match cores {
            None => spread(facts.cores),
            Some(Cores::All) => (0..facts.cores).collect(),
            Some(Cores::These(cores)) => cores.clone(),
        };
        let free = (facts.time_base != TimeBase::Simulated).then_some(Caller::Unpinned);
        held.into_iter().map(Caller::Core).chain(free).collect()
    }

    /// The plan with its request to a runtime made from this core; unchanged without a request.
    pub(crate) fn calling(self, mut plan: Plan) -> Plan {
        if let Work::Queue(queue) = &mut plan.work {
            match self {
                Caller::AsPlanned | Caller::Between(_) => {}
                Caller::Core(core) => queue.core = core,
                Caller::Unpinned => queue.placement = Placement::Unpinned,
            }
        }
        plan
    }

    /// The two cores of an exchange; `None` for other callers.
    pub(crate) const fn pair(self) -> Option<CorePair> {
        match self {
            Caller::Between(pair) => Some(pair),
            Caller::AsPlanned | Caller::Core(_) | Caller::Unpinned => None,
        }
    }

    /// The caller as in records: the requested core, and the processors of the counted samples.
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

/// At most twelve of `cores` cores, spread evenly, with the first and the last.
pub(crate) fn spread(cores: u32) -> Vec<u32> {
    let count = cores.min(MOST_CORES);
    let gaps = u64::from(count).saturating_sub(1).max(1);
    (0..u64::from(count)).map(|nth| (nth * u64::from(cores - 1) / gaps) as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_machine::{Arguments, HostWait, Launch, LaunchBy};

    #[test]
    fn twelve_cores_are_selected_with_the_first_and_the_last() {
        assert_eq!(spread(0), [] as [u32; 0]);
        assert_eq!(spread(1), [0]);
        assert_eq!(spread(12), (0..12).collect::<Vec<_>>());
        assert_eq!(spread(13), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12]);
        let many = spread(128);
        assert_eq!((many.len(), many[0], many[11]), (12, 0, 127));
    }

    #[test]
    fn pinned_callers_pin_their_thread_and_unpinned_ones_do_not() {
        let launch = Launch { kernels: 1, by: LaunchBy::Calls, wait: HostWait::Finish, arguments: Arguments::NONE };
        let plan = Plan::new(launch, 1);
        assert_eq!(Caller::AsPlanned.calling(plan.clone()), plan);
        let held = Caller::Core(7).calling(plan.clone());
        assert_eq!((held.work.cores(), held.work.placement()), (vec![7], Placement::Pinned));
        assert_eq!(Caller::Unpinned.calling(plan).work.placement(), Placement::Unpinned);
    }
}
