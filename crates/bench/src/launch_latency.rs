//! How long does it take to launch an empty kernel and to wait for it?
//!
//! Traffic: only what the runtime sends to its device.
//!
//! Unit: nanoseconds per launch. With `finish`, the program waits until the queue is empty; with
//! `event`, it waits for the event of the launch. A batch is enqueued back to back with one wait,
//! and the time is divided by the number of launches.
//!
//! A graph is enqueued by one call; its kernels start one after the other, and its time too is
//! divided by their number. A launch by a word that the stream waits for was enqueued before: the
//! time begins with the store of the word, so it is that of the device and of the wait.
//!
//! Spoiled by: other programs on the cores of the runtime's threads; idle states between launches.
//!
//! The calling thread is pinned to one core after another: twelve, spread evenly, unless others are
//! requested. An unpinned thread is a separate method. Virtual cores have no operating system that
//! moves threads, so all calls there are pinned.
//!
//! Most of the time is the runtime's, not the device's. The kind of wait can make a factor of five,
//! so the three figures are kept apart.

use crate::caller::{Caller, MOST_CORES, spread};
use crate::case::{Axes, Case};
use crate::needs;
use crate::question::{LeftOut, Question};
use lanemark_machine::{Arguments, Facts, HostWait, Launch, LaunchBy, Plan};
use lanemark_method::Method;
use lanemark_record::Quantity;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "launch_latency",
    summary: "time to launch an empty kernel and wait for it, alone and in a batch",
    quantity: Quantity::Cost,
    cases,
    plan,
    simulated_passes: |_| 1,
    most_passes: |_| 64,
    accesses_per_pass: |case| launch(case).map_or(1, |launch| u64::from(launch.kernels)),
    ask: None,
    is_usual: false,
    left_out,
};

/// Launches per wait in a batch.
const MANY: u32 = 100;
/// Kernels of a graph, a factor of four apart: the line through them has the cost of a graph and that of a kernel.
const NODES: [u32; 5] = [1, 4, 16, 64, 256];

fn launch(case: &Case) -> Option<Launch> {
    let Method::Launch { kernels, by, wait, arguments, pinned: _ } = case.method else { return None };
    Some(Launch { kernels, by, wait, arguments: arguments.unwrap_or(Arguments::NONE) })
}

fn left_out(facts: &Facts) -> Option<LeftOut> {
    if let Some(all) = needs::kernel_runtime(facts) {
        return Some(all);
    }
    let asked = spread(facts.cores);
    ((asked.len() as u32) < facts.cores).then(|| LeftOut {
        what: format!("launches from cores other than {asked:?}"),
        because: format!(
            "{MOST_CORES} of {} cores are measured, spread evenly; --cores all measures every core",
            facts.cores
        ),
    })
}

fn cases(facts: &Facts, axes: &Axes) -> Vec<Case> {
    if !needs::has_queue(facts) {
        return Vec::new();
    }
    let alone = HostWait::ALL.map(|wait| Launch { kernels: 1, by: LaunchBy::Calls, wait, arguments: Arguments::NONE });
    let many = Launch { kernels: MANY, by: LaunchBy::Calls, wait: HostWait::Finish, arguments: Arguments::NONE };
    let callers = Caller::all(facts, axes.cores.as_ref());
    let launches = alone.into_iter().chain([many]);
    let of_calls = launches.flat_map(|launch| callers.iter().map(move |caller| case(launch, *caller)));
    let has = |by: LaunchBy| facts.runtime.as_ref().is_some_and(|runtime| runtime.launches.contains(&by));
    let wait = HostWait::Finish;
    let graphs = NODES.map(|kernels| Launch { kernels, by: LaunchBy::Graph, wait, arguments: Arguments::NONE });
    let waits = Launch { kernels: 1, by: LaunchBy::StreamWait, wait, arguments: Arguments::NONE };
    let others = graphs.into_iter().chain([waits]).filter(|launch| has(launch.by));
    // What differs between cores is the cost of a call, which the cases above show.
    of_calls.chain(others.flat_map(|launch| callers.iter().take(1).map(move |caller| case(launch, *caller)))).collect()
}

fn case(launch: Launch, caller: Caller) -> Case {
    let method = Method::Launch {
        kernels: launch.kernels,
        by: launch.by,
        wait: launch.wait,
        arguments: None,
        pinned: caller != Caller::Unpinned,
    };
    Case { caller, ..Case::of_runtime(0, method) }
}

fn plan(case: &Case, passes: u64) -> Plan {
    // The first launches of a kernel compile it.
    let plan = launch(case).map_or_else(Plan::empty, |launch| Plan::new(launch, passes));
    let plan = Plan { warmup_passes: 1, ..plan };
    case.caller.calling(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Cores;
    use lanemark_machine::{Allocation, DeviceKind, Placement, QueueRequest, RuntimeFacts, TimeBase};

    #[test]
    fn each_wait_and_batches_are_separate_cases() {
        let case = |launch| case(launch, Caller::Core(0));
        let words = |launch| case(launch).method.to_string();
        assert_eq!(
            words(Launch { kernels: 1, by: LaunchBy::Calls, wait: HostWait::Finish, arguments: Arguments::NONE }),
            "launch, wait by finish"
        );
        assert_eq!(
            words(Launch { kernels: 1, by: LaunchBy::Calls, wait: HostWait::Event, arguments: Arguments::NONE }),
            "launch, wait by event"
        );
        let many = Launch { kernels: 100, by: LaunchBy::Calls, wait: HostWait::Finish, arguments: Arguments::NONE };
        assert_eq!(words(many), "100 launches, wait by finish");
        assert_eq!((QUESTION.accesses_per_pass)(&case(many)), 100);
        assert_eq!((QUESTION.plan)(&case(many), 7).work.request(), Some(&QueueRequest::Launch(many)));
    }

    fn facts(time_base: TimeBase, cores: u32) -> Facts {
        Facts {
            name: "a runtime".to_owned(),
            summary: String::new(),
            time_base,
            cores,
            regions: vec![],
            memory_types: vec![],
            stores: vec![],
            loads: vec![],
            memcpy: String::new(),
            dma: None,
            driver_width: None,
            tables: vec![],
            disciplines: vec![],
            line_sources: vec![],
            runtime: Some(RuntimeFacts {
                kind: DeviceKind::Accelerator,
                is_emulated: false,
                allocations: vec![Allocation::Buffer],
                launches: vec![LaunchBy::Calls],
                small_copies: Vec::new(),
                memory_ports: 1,
                computes: false,
            }),
        }
    }

    #[test]
    fn every_launch_is_called_from_each_core_and_unpinned_on_real_machines() {
        let callers = |time_base, cores, axes: &Axes| {
            let all = cases(&facts(time_base, cores), axes);
            let finish = all.into_iter().filter(|case| case.method.to_string().starts_with("launch, wait by finish"));
            finish.map(|case| case.caller).collect::<Vec<_>>()
        };
        let usual = Axes::default();
        let (zero, one) = (Caller::Core(0), Caller::Core(1));
        assert_eq!(callers(TimeBase::Real, 2, &usual), [zero, one, Caller::Unpinned]);
        assert_eq!(callers(TimeBase::Simulated, 2, &usual), [zero, one]);
        assert_eq!(callers(TimeBase::Real, 13, &usual).len(), 13);
        let asked = |cores| Axes { cores: Some(cores), ..Axes::default() };
        assert_eq!(callers(TimeBase::Real, 13, &asked(Cores::All)).len(), 14);
        assert_eq!(callers(TimeBase::Real, 2, &asked(Cores::These(vec![1]))), [one, Caller::Unpinned]);
        assert_eq!(left_out(&facts(TimeBase::Real, 12)), None);
        assert!(left_out(&facts(TimeBase::Real, 13)).unwrap().because.contains("--cores all"));
    }

    #[test]
    fn graphs_and_stream_waits_are_asked_from_one_core_where_a_runtime_has_them() {
        let mut facts = facts(TimeBase::Real, 2);
        let calls = cases(&facts, &Axes::default());
        assert!(calls.iter().all(|case| launch(case).unwrap().by.is_calls()));
        facts.runtime.as_mut().unwrap().launches = LaunchBy::ALL.to_vec();
        let all = cases(&facts, &Axes::default());
        let others: Vec<String> = all[calls.len()..].iter().map(|case| case.method.to_string()).collect();
        assert_eq!(others[0], "graph of 1 kernel, wait by finish");
        assert_eq!(others[4], "graph of 256 kernels, wait by finish");
        assert_eq!(others[5..], ["launch by a word that the stream waits for, wait by finish"]);
        assert_eq!((QUESTION.accesses_per_pass)(&all[calls.len() + 4]), 256);
    }

    #[test]
    fn an_unpinned_case_names_it_in_its_method_and_pins_no_lane() {
        let all = cases(&facts(TimeBase::Real, 1), &Axes::default());
        let free = all.iter().find(|case| case.caller == Caller::Unpinned).unwrap();
        assert_eq!(free.method.to_string(), "launch, wait by finish, unpinned");
        assert_eq!((QUESTION.plan)(free, 1).work.placement(), Placement::Unpinned);
        assert_eq!((QUESTION.plan)(&all[0], 1).work.placement(), Placement::Pinned);
    }
}
