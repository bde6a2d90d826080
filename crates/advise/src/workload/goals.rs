//! Whether goals are met, and the changes that would meet them.

use super::figure::fastest;
use lanemark_method::CopyDirection;
use lanemark_record::guidance::{Choice, Goal, MachineChange, Traffic, Workload};

/// The goals of a workload, for each direction and size.
pub(super) fn goals(workload: &Workload, choices: &[Choice], changes: &[MachineChange]) -> Vec<Goal> {
    let wanted = [(Traffic::Single, workload.latency_below_ns), (Traffic::Stream, workload.rate_bytes_per_s)];
    let mut goals = Vec::new();
    for direction in &workload.directions {
        for (traffic, wanted) in wanted {
            let Some(wanted) = wanted else { continue };
            for size in &workload.sizes_bytes {
                goals.push(goal(*direction, traffic, *size, wanted, choices, changes));
            }
        }
    }
    goals
}

fn goal(
    direction: CopyDirection,
    traffic: Traffic,
    size_bytes: u64,
    wanted: f64,
    choices: &[Choice],
    changes: &[MachineChange],
) -> Goal {
    let here = (direction, traffic, size_bytes);
    let choice = choices.iter().find(|choice| (choice.direction, choice.traffic, choice.size_bytes) == here);
    let best = choice.and_then(fastest);
    let is_met = best.is_some_and(|best| meets(traffic, best.figure, wanted));
    let would_meet = |change: &&MachineChange| {
        !change.with.is_empty()
            && change.effects.iter().any(|effect| {
                (effect.direction, effect.traffic, effect.size_bytes) == here && meets(traffic, effect.after, wanted)
            })
    };
    let met_with =
        if is_met { Vec::new() } else { changes.iter().filter(would_meet).map(|one| one.what.clone()).collect() };
    let margin = |best: f64| match traffic {
        Traffic::Single => 100.0 * (wanted - best) / wanted,
        Traffic::Stream => 100.0 * (best - wanted) / wanted,
    };
    Goal {
        direction,
        traffic,
        size_bytes,
        wanted,
        best: best.map(|best| best.figure),
        method: best.map(|best| best.method.clone()),
        is_met,
        margin_percent: best.map(|best| margin(best.figure)),
        bound: best.and_then(|best| best.bound.clone()),
        met_with,
    }
}

/// Whether a figure meets a goal: a latency below it, or a rate of at least it.
fn meets(traffic: Traffic, figure: f64, wanted: f64) -> bool {
    match traffic {
        Traffic::Single => figure < wanted,
        Traffic::Stream => figure >= wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_equal_to_its_goal_meets_it_and_a_latency_does_not() {
        assert!(meets(Traffic::Stream, 5.0, 5.0) && !meets(Traffic::Stream, 4.999, 5.0));
        assert!(meets(Traffic::Single, 4.999, 5.0) && !meets(Traffic::Single, 5.0, 5.0));
    }
}
