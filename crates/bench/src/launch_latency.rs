//! What does it cost to launch a kernel that does nothing, and to know that it is over?
//!
//! Traffic: none that anybody asks for; what a runtime tells its device.
//! Unit: nanoseconds for each launch. By `finish`, the program calls and waits until the queue is empty; by `event`, it waits for
//! the event of that launch; of many, they are put into the queue one behind the other, one wait ends them all, and the time is divided
//! by their number.
//! Spoiled by: other programs on the cores where the runtime has its threads; a processor that sleeps between launches.
//! Nearly all of it is the runtime, and not the device. Which wait it is can make a factor of five, so the three are never one figure.

use crate::case::{Axes, Case, Through};
use crate::needs;
use crate::question::Question;
use lanemark_machine::{Arguments, Facts, Launch, Op, Plan, Told, Verb};
use lanemark_record::Quantity;

/// The catalogue row.
pub const QUESTION: Question = Question {
    name: "launch_latency",
    summary: "time of launching a kernel that does nothing and waiting, alone and of many",
    quantity: Quantity::Cost,
    cases,
    plan,
    simulated_passes: |_| 1,
    most_passes: |_| 64,
    accesses_per_pass: |case| launch(case).map_or(1, |launch| u64::from(launch.kernels)),
    ask: None,
    is_usual: false,
    left_out: needs::a_runtime,
};

/// Launches behind one wait, where that is asked for.
const MANY: u32 = 100;

fn launch(case: &Case) -> Option<Launch> {
    if let Through::Launch(launch) = case.through { Some(launch) } else { None }
}

fn cases(facts: &Facts, _: &Axes) -> Vec<Case> {
    if !needs::has_queue(facts) {
        return Vec::new();
    }
    let alone = Told::ALL.map(|told| Launch { kernels: 1, told, arguments: Arguments::NONE });
    let many = Launch { kernels: MANY, told: Told::Finish, arguments: Arguments::NONE };
    alone.into_iter().chain([many]).map(case).collect()
}

fn case(launch: Launch) -> Case {
    Case::of_runtime(Verb::Store, 0, Through::Launch(launch))
}

fn plan(case: &Case, passes: u64) -> Plan {
    let body = launch(case).map(Op::Launch).into_iter().collect();
    // The first launches of a kernel build what no later one needs.
    Plan { warmup_passes: 1, ..Plan::on_one_core(body, passes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_wait_and_many_launches_are_cases_of_their_own() {
        let words = |launch| case(launch).way().to_string();
        assert_eq!(
            words(Launch { kernels: 1, told: Told::Finish, arguments: Arguments::NONE }),
            "launch, told by finish"
        );
        assert_eq!(
            words(Launch { kernels: 1, told: Told::Event, arguments: Arguments::NONE }),
            "launch, told by event"
        );
        let many = Launch { kernels: 100, told: Told::Finish, arguments: Arguments::NONE };
        assert_eq!(words(many), "100 launches, told by finish");
        assert_eq!((QUESTION.accesses_per_pass)(&case(many)), 100);
        assert_eq!((QUESTION.plan)(&case(many), 7).lanes[0].body, [Op::Launch(many)]);
    }
}
