//! Description of the measuring machine for the record.

use lanemark_inventory::{CpuTime, Load as SeenLoad, Processors, Seen};
use lanemark_record::diagnosis::Fact;
use lanemark_record::{Governor, Host, IdleState, Load, SocketCpus};

/// The load of this machine at an instant, and the CPU time used since boot.
pub(crate) struct Activity {
    pub(crate) load: Seen<SeenLoad>,
    pub(crate) cpu_time: Seen<CpuTime>,
}

impl Activity {
    /// Reads the present activity of this machine.
    pub(crate) fn now() -> Activity {
        Activity { load: SeenLoad::of_this_machine(), cpu_time: CpuTime::of_this_machine() }
    }
}

/// Describes a machine by its processors and its activity before and after a run.
pub(crate) fn host(processors: &Processors, before: &Activity, after: &Activity) -> Host {
    Host {
        processor: fact(&processors.model),
        sockets: each(&processors.packages, |package| SocketCpus {
            socket: package.number,
            cpus: package.cpus.iter().collect(),
            first_threads: package.first_threads.iter().collect(),
        }),
        governors: each(&processors.governors, |governor| Governor {
            name: governor.name.clone(),
            driver: fact(&governor.driver),
            cpus: governor.cpus.iter().collect(),
        }),
        idle_states: each(&processors.idle_states, |state| IdleState {
            name: state.name.clone(),
            exit_latency_ns: fact(&state.exit_latency_us.clone().map(|us| us.saturating_mul(1000))),
            is_disabled: fact(&state.disabled),
        }),
        load_before: load(&before.load),
        load_after: load(&after.load),
        stolen_percent: match (&before.cpu_time, &after.cpu_time) {
            (Seen::Known(before), Seen::Known(after)) => Fact::Seen { value: after.stolen_percent_since(before) },
            (Seen::Unseen(why), _) | (_, Seen::Unseen(why)) => Fact::Unseen { unseen: why.because() },
        },
    }
}

/// An inventory fact, or the reason why it is unknown.
fn fact<T: Clone>(seen: &Seen<T>) -> Fact<T> {
    match seen {
        Seen::Known(value) => Fact::Seen { value: value.clone() },
        Seen::Unseen(why) => Fact::Unseen { unseen: why.because() },
    }
}

fn each<T, U>(seen: &Seen<Vec<T>>, of: impl Fn(&T) -> U) -> Fact<Vec<U>> {
    match seen {
        Seen::Known(all) => Fact::Seen { value: all.iter().map(of).collect() },
        Seen::Unseen(why) => Fact::Unseen { unseen: why.because() },
    }
}

fn load(seen: &Seen<SeenLoad>) -> Fact<Load> {
    let of = |load: SeenLoad| {
        let [one_minute, five_minutes, fifteen_minutes] = load.means;
        Load { one_minute, five_minutes, fifteen_minutes, runnable: load.runnable, threads: load.threads }
    };
    fact(&seen.clone().map(of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_inventory::Why;

    #[test]
    fn unknown_facts_keep_their_reason_and_exit_latencies_are_converted_to_ns() {
        let why = Why::NotShown("it is a test");
        let mut processors = Processors::unseen(&why);
        processors.idle_states = Seen::Known(vec![lanemark_inventory::machine::IdleState {
            name: "C6".to_owned(),
            exit_latency_us: Seen::Known(133),
            disabled: Seen::Unseen(why.clone()),
        }]);
        let before = Activity {
            load: Seen::Known(SeenLoad { means: [3.0, 2.0, 1.0], runnable: 5, threads: 90 }),
            cpu_time: Seen::Known(CpuTime { stolen_ticks: 10, all_ticks: 1000 }),
        };
        let cpu_time = Seen::Known(CpuTime { stolen_ticks: 30, all_ticks: 2000 });
        let host = host(&processors, &before, &Activity { load: Seen::Unseen(why), cpu_time });
        assert_eq!(host.stolen_percent.value(), Some(&2.0));
        let unseen = Fact::Unseen { unseen: "it is a test".to_owned() };
        assert_eq!(host.processor, unseen);
        assert_eq!(host.load_before.value().map(|load| (load.one_minute, load.runnable)), Some((3.0, 5)));
        assert_eq!(host.load_after.value(), None);
        let states = host.idle_states.value().unwrap();
        assert_eq!(states[0].exit_latency_ns.value(), Some(&133_000));
        assert_eq!(states[0].is_disabled, Fact::Unseen { unseen: "it is a test".to_owned() });
    }
}
