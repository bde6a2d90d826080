//! Whether goals are met, and the changes that would meet them.

use lanemark_record::guidance::{Choice, Goal, MachineChange, Traffic, Workload};

/// The goals of a workload, one for each choice that it is about.
pub(super) fn goals(workload: &Workload, choices: &[Choice], changes: &[MachineChange]) -> Vec<Goal> {
    choices.iter().filter_map(|choice| goal(workload, choice, changes)).collect()
}

fn goal(workload: &Workload, choice: &Choice, changes: &[MachineChange]) -> Option<Goal> {
    let Choice { direction, traffic, size_bytes, .. } = *choice;
    let wanted = match traffic {
        Traffic::Single => workload.latency_below_ns?,
        Traffic::Stream => workload.rate_bytes_per_s?,
    };
    let best = choice.ranked.first()?;
    let is_met = meets(traffic, best.figure, wanted);
    let at = |change: &&MachineChange| {
        !change.with.is_empty()
            && change.effects.iter().any(|effect| {
                (effect.direction, effect.traffic, effect.size_bytes) == (direction, traffic, size_bytes)
                    && meets(traffic, effect.after, wanted)
            })
    };
    let met_with = if is_met { Vec::new() } else { changes.iter().filter(at).map(|one| one.what.clone()).collect() };
    let margin = match traffic {
        Traffic::Single => wanted - best.figure,
        Traffic::Stream => best.figure - wanted,
    };
    Some(Goal {
        direction,
        traffic,
        size_bytes,
        wanted,
        best: best.figure,
        method: best.method.clone(),
        is_met,
        margin_percent: 100.0 * margin / wanted,
        bound: best.bound.clone(),
        met_with,
    })
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
