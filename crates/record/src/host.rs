//! The measuring machine: its processors and their state.

use crate::diagnosis::Fact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The machine of real measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Name of the processor, as reported by itself.
    pub processor: Fact<String>,
    /// The sockets with their processors.
    pub sockets: Fact<Vec<SocketCpus>>,
    /// Frequency governors; empty if none are reported.
    pub governors: Fact<Vec<Governor>>,
    /// Idle states of the first processor, the lightest first; empty if none are reported.
    pub idle_states: Fact<Vec<IdleState>>,
    /// Load before the first question.
    pub load_before: Fact<Load>,
    /// Load after the last question.
    pub load_after: Fact<Load>,
    /// Share of the CPU time of the run that a hypervisor gave to other machines, in percent.
    pub stolen_percent: Fact<f64>,
}

/// The processors of a socket, as numbered by the operating system, ascending.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SocketCpus {
    /// Number of the socket.
    pub socket: u32,
    /// All processors.
    pub cpus: Vec<u32>,
    /// Processors that are the first thread of a core; empty if the sharing of cores is unknown.
    pub first_threads: Vec<u32>,
}

/// A frequency governor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Governor {
    /// `performance`, `powersave`, `schedutil`, ...
    pub name: String,
    /// The driver below it, such as `intel_pstate`.
    pub driver: Fact<String>,
    /// Processors with this governor, as numbered by the operating system, ascending.
    pub cpus: Vec<u32>,
}

/// An idle state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IdleState {
    /// `POLL`, `C1E`, `C6`, ...
    pub name: String,
    /// Exit latency, as reported by the kernel.
    pub exit_latency_ns: Fact<u64>,
    /// Whether the state is disabled.
    pub is_disabled: Fact<bool>,
}

/// Load of the processors at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Threads that ran, were runnable or waited for a disk: mean of the last minute.
    pub one_minute: f64,
    /// Mean of the last five minutes.
    pub five_minutes: f64,
    /// Mean of the last fifteen minutes.
    pub fifteen_minutes: f64,
    /// Running and runnable threads, including the reading one.
    pub runnable: u32,
    /// All threads.
    pub threads: u32,
}

/// Stolen CPU time that disturbs measurements, in percent.
const STOLEN_PERCENT: f64 = 1.0;

impl Host {
    /// The number of CPUs, where it is known.
    #[must_use]
    pub fn cpu_count(&self) -> Option<usize> {
        Some(self.sockets.value()?.iter().map(|socket| socket.cpus.len()).sum())
    }

    /// Describes other work on the CPUs during the run, in a sentence; `None` if there was little, or if it is unknown.
    ///
    /// The machine was busy if more threads were runnable than it has CPUs, at the start or the end, or if a hypervisor
    /// took more than 1 % of the CPU time.
    #[must_use]
    pub fn disturbance(&self) -> Option<String> {
        let cpus = self.cpu_count()?;
        let runnable = |load: &Fact<Load>| load.value().map(|load| load.runnable as usize);
        let (before, after) = (runnable(&self.load_before), runnable(&self.load_after));
        let mut causes = Vec::new();
        if before.max(after).is_some_and(|most| most > cpus) {
            let count = |count: Option<usize>| count.map_or_else(|| "unknown".to_owned(), |count| count.to_string());
            causes.push(format!("runnable threads: {} before, {} after, on {cpus} CPUs", count(before), count(after)));
        }
        if let Some(stolen) = self.stolen_percent.value().filter(|stolen| **stolen > STOLEN_PERCENT) {
            causes.push(format!("{stolen:.1} % of the CPU time went to other virtual machines"));
        }
        let because = causes.join("; ");
        (!causes.is_empty())
            .then(|| format!("the machine was busy ({because}): measured times are too long and scatter"))
    }

    /// The socket of a processor, if known.
    #[must_use]
    pub fn socket_of(&self, cpu: u32) -> Option<u32> {
        let of = |socket: &&SocketCpus| socket.cpus.contains(&cpu);
        self.sockets.value()?.iter().find(of).map(|socket| socket.socket)
    }

    /// The governor of a processor, if known.
    #[must_use]
    pub fn governor_of(&self, cpu: u32) -> Option<&Governor> {
        self.governors.value()?.iter().find(|governor| governor.cpus.contains(&cpu))
    }

    /// Governors, idle states and load, in words.
    #[must_use]
    pub fn in_words(&self) -> String {
        let governors = in_words("governor", &self.governors, |governor: &Governor| {
            let driver = governor.driver.value().map(|driver| format!(" ({driver})")).unwrap_or_default();
            format!("{}{driver}", governor.name)
        });
        let states = in_words("idle states", &self.idle_states, |state: &IdleState| {
            let latency = state.exit_latency_ns.value().map(|ns| format!(" {ns} ns")).unwrap_or_default();
            let off = if state.is_disabled.value() == Some(&true) { " off" } else { "" };
            format!("{}{latency}{off}", state.name)
        });
        let load = |load: &Fact<Load>| match load {
            Fact::Seen { value } => format!("{} ({} runnable)", value.one_minute, value.runnable),
            Fact::Unseen { unseen } => format!("unknown: {unseen}"),
        };
        format!("{governors}; {states}; load before {}, after {}", load(&self.load_before), load(&self.load_after))
    }
}

fn in_words<T>(name: &str, fact: &Fact<Vec<T>>, word: impl Fn(&T) -> String) -> String {
    match fact {
        Fact::Seen { value } if value.is_empty() => format!("{name} not reported"),
        Fact::Seen { value } => format!("{name} {}", value.iter().map(word).collect::<Vec<_>>().join(", ")),
        Fact::Unseen { unseen } => format!("{name} unknown: {unseen}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_in_words_has_governors_idle_states_and_reasons_for_unknown_facts() {
        let seen = Fact::Seen {
            value: Load { one_minute: 0.5, five_minutes: 0.4, fifteen_minutes: 0.3, runnable: 2, threads: 90 },
        };
        let driver = Fact::Seen { value: "intel_pstate".to_owned() };
        let state = |name: &str, ns, off| IdleState {
            name: name.to_owned(),
            exit_latency_ns: Fact::Seen { value: ns },
            is_disabled: Fact::Seen { value: off },
        };
        let host = Host {
            processor: Fact::Seen { value: "a processor".to_owned() },
            sockets: Fact::Seen { value: vec![SocketCpus { socket: 1, cpus: vec![2, 3], first_threads: vec![2] }] },
            governors: Fact::Seen { value: vec![Governor { name: "powersave".to_owned(), driver, cpus: vec![2] }] },
            idle_states: Fact::Seen { value: vec![state("C1E", 10_000, false), state("C6", 133_000, true)] },
            load_before: seen,
            load_after: Fact::Unseen { unseen: "there is no loadavg".to_owned() },
            stolen_percent: Fact::Seen { value: 0.0 },
        };
        assert_eq!(
            host.in_words(),
            "governor powersave (intel_pstate); idle states C1E 10000 ns, C6 133000 ns off; load before 0.5 (2 runnable), \
             after unknown: there is no loadavg"
        );
        assert_eq!((host.socket_of(3), host.socket_of(4)), (Some(1), None));
        assert_eq!((host.governor_of(2).is_some(), host.governor_of(3)), (true, None));
        assert_eq!(host.disturbance(), None, "two runnable threads on two CPUs");
        let busy = |runnable, stolen| {
            let load = Load { one_minute: 0.5, five_minutes: 0.4, fifteen_minutes: 0.3, runnable, threads: 90 };
            let (load_before, stolen_percent) = (Fact::Seen { value: load }, Fact::Seen { value: stolen });
            Host { load_before, stolen_percent, ..host.clone() }.disturbance()
        };
        assert_eq!(busy(2, 1.0), None);
        assert!(busy(3, 0.0).unwrap().contains("runnable threads: 3 before, unknown after, on 2 CPUs"));
        assert!(busy(2, 1.1).unwrap().contains("1.1 % of the CPU time"));
        let bare = Host {
            governors: Fact::Seen { value: vec![] },
            idle_states: Fact::Unseen { unseen: "why".to_owned() },
            ..host
        };
        assert!(bare.in_words().starts_with("governor not reported; idle states unknown: why; "));
    }
}
