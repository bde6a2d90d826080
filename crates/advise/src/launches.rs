//! Findings about processor settings that may lengthen launches.

use lanemark_method::{LaunchBy, Method};
use lanemark_record::{Answer, Detail, Finding, Host, Record, TargetKind};
use std::collections::BTreeSet;

const QUESTION: &str = "launch_latency";

/// Names processor settings that may have made launches longer: a governor that keeps the clock
/// low, and an idle state whose exit latency is at least that of the fastest launch.
pub(crate) fn launches(record: &Record) -> Vec<Finding> {
    let Some(host) = &record.host else { return Vec::new() };
    let real = record.targets.iter().filter(|target| target.kind == TargetKind::Real);
    real.flat_map(|target| {
        let of_target = |answer: &&Answer| answer.target == target.name && answer.question == QUESTION;
        let answers: Vec<&Answer> = record.answers.iter().filter(of_target).collect();
        let texts = powersave(host, &answers).into_iter().chain(sleep(host, &answers));
        let finding = |text| Finding { question: QUESTION.to_owned(), target: target.name.clone(), text };
        texts.map(finding).collect::<Vec<_>>()
    })
    .collect()
}

fn powersave(host: &Host, answers: &[&Answer]) -> Option<String> {
    let callers = answers.iter().filter_map(|answer| match &answer.detail {
        Some(Detail::Caller(caller)) => Some(caller),
        _ => None,
    });
    let cpus: BTreeSet<u32> = callers.flat_map(|caller| caller.cpus.iter().map(|seen| seen.cpu)).collect();
    let slow = cpus.into_iter().filter(|cpu| host.governor_of(*cpu).is_some_and(|found| found.name == "powersave"));
    let slow: Vec<String> = slow.map(|cpu| cpu.to_string()).collect();
    (!slow.is_empty()).then(|| {
        format!(
            "the governor of processors {} is powersave, which keeps the clock low or raises it late: measure again with \
             performance, and compare the two records with `lanemark compare`",
            slow.join(", ")
        )
    })
}

fn sleep(host: &Host, answers: &[&Answer]) -> Option<String> {
    let alone =
        answers.iter().filter(|answer| matches!(answer.method, Method::Launch { kernels: 1, by: LaunchBy::Calls, .. }));
    let fastest_ns = alone.filter_map(|answer| Some(answer.latency_ns?.median)).min_by(f64::total_cmp)?;
    let states = host.idle_states.value()?.iter().filter(|state| state.is_disabled.value() != Some(&true));
    let latency = |name: &str, ns: u64| (ns as f64 >= fastest_ns).then(|| (name.to_owned(), ns));
    let deepest =
        states.filter_map(|state| latency(&state.name, *state.exit_latency_ns.value()?)).max_by_key(|(_, ns)| *ns);
    let (name, ns) = deepest?;
    Some(format!(
        "leaving idle state {name} takes {ns} ns, and the fastest launch takes {fastest_ns:.0} ns: a launch that wakes a thread from this state \
         takes at least twice as long; disable the state (cpuidle/state*/disable) and measure again"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use lanemark_method::HostWait;
    use lanemark_record::diagnosis::Fact;
    use lanemark_record::{CallerCores, CpuSamples, Governor, IdleState, Summary};

    fn seen<T>(value: T) -> Fact<T> {
        Fact::Seen { value }
    }

    fn unseen<T>() -> Fact<T> {
        Fact::Unseen { unseen: "a test".to_owned() }
    }

    /// One launch of 40 us from processor 3.
    fn record(governor: &str, exit_latency_ns: u64, is_disabled: bool) -> Record {
        let mut answer = fixture::answer("8", 0, None);
        QUESTION.clone_into(&mut answer.question);
        answer.method =
            Method::Launch { kernels: 1, by: LaunchBy::Calls, wait: HostWait::Finish, arguments: None, pinned: true };
        answer.latency_ns = Summary::of(&[40e3]);
        let cpus = vec![CpuSamples { cpu: 3, samples: 1 }];
        answer.detail = Some(Detail::Caller(CallerCores { core: Some(3), cpus }));
        let governor = Governor { name: governor.to_owned(), driver: unseen(), cpus: vec![3] };
        let (exit_latency_ns, is_disabled) = (seen(exit_latency_ns), seen(is_disabled));
        let host = Host {
            processor: unseen(),
            sockets: unseen(),
            governors: seen(vec![governor]),
            idle_states: seen(vec![IdleState { name: "C6".to_owned(), exit_latency_ns, is_disabled }]),
            load_before: unseen(),
            load_after: unseen(),
            stolen_percent: Fact::Unseen { unseen: "a test".to_owned() },
        };
        Record { host: Some(host), targets: vec![fixture::target(TargetKind::Real)], ..fixture::record(vec![answer]) }
    }

    #[test]
    fn powersave_on_the_calling_processor_is_reported_and_performance_is_not() {
        let texts = |record: &Record| launches(record).into_iter().map(|finding| finding.text).collect::<Vec<_>>();
        let [text] = &texts(&record("powersave", 39_999, false))[..] else { panic!("one finding") };
        assert!(text.starts_with("the governor of processors 3 is powersave"), "{text}");
        assert!(texts(&record("performance", 39_999, false)).is_empty());
        let mut elsewhere = record("powersave", 39_999, false);
        elsewhere.targets[0].kind = TargetKind::Simulated;
        assert!(texts(&elsewhere).is_empty());
    }

    #[test]
    fn an_enabled_idle_state_with_a_long_exit_latency_is_reported() {
        let count = |ns, is_disabled| launches(&record("performance", ns, is_disabled)).len();
        assert_eq!([count(40_000, false), count(39_999, false), count(133_000, true)], [1, 0, 0]);
    }
}
