//! Advice for a workload, for a terminal: methods, goals, changes.

use crate::figures;
use crate::grid::{Column, Grid, wrap};
use crate::table::origins_in_words;
use lanemark_method::CopyDirection;
use lanemark_record::WaitShare;
use lanemark_record::guidance::{
    ChangeKind, Choice, Effect, Goal, Guidance, LEAST_GAIN_PERCENT, MachineChange, Ranked, Traffic,
};

/// Largest number of methods shown for one size.
const MOST: usize = 4;

/// Renders the guidance for a terminal of `width` characters; without a width nothing is wrapped.
#[must_use]
pub fn guidance(guidance: &Guidance, width: Option<u16>) -> String {
    let mut blocks = vec![head(guidance, width)];
    if !guidance.goals.is_empty() {
        blocks.push(goals(&guidance.goals, width));
    }
    for direction in &guidance.workload.directions {
        for traffic in [Traffic::Single, Traffic::Stream] {
            let of = |choice: &&Choice| (choice.direction, choice.traffic) == (*direction, traffic);
            let choices: Vec<&Choice> = guidance.choices.iter().filter(of).collect();
            if !choices.is_empty() {
                blocks.push(methods(*direction, traffic, &choices, width));
            }
        }
    }
    blocks.push(changes(guidance, width));
    let unanswered = guidance.unanswered.iter().map(|text| wrap(&format!("not answered: {text}"), width, 2));
    blocks.extend(unanswered.reduce(|all, one| format!("{all}\n{one}")));
    blocks.join("\n\n") + "\n"
}

/// The goals that are not met, in one line; `None` if all are met.
#[must_use]
pub fn unmet_goals(guidance: &Guidance) -> Option<String> {
    let unmet: Vec<String> = guidance.goals.iter().filter(|goal| !goal.is_met).map(in_short).collect();
    (!unmet.is_empty()).then(|| format!("not met: {}", unmet.join("; ")))
}

fn in_short(goal: &Goal) -> String {
    let (direction, size) = (in_words(goal.direction), figures::size(goal.size_bytes));
    let wanted = figure(goal.traffic, goal.wanted);
    match (goal.best, goal.margin_percent) {
        (Some(best), Some(margin)) => format!(
            "{direction} {size}: at best {} instead of {wanted} ({}), bound by {}",
            figure(goal.traffic, best),
            figures::difference(margin),
            bound(goal.bound.as_ref())
        ),
        _ => format!("{direction} {size}: no method has an answer, instead of {wanted}"),
    }
}

fn head(guidance: &Guidance, width: Option<u16>) -> String {
    let origins = origins_in_words(guidance.origins);
    let mut lines = vec![format!("{} (simulated): {}; {origins}", guidance.target, guidance.summary)];
    lines.extend(guidance.warnings.iter().cloned());
    lines.push(
        "Figures are predictions of the simulation; they are as good as the parameters of the platform.".to_owned(),
    );
    let lines: Vec<String> = lines.iter().map(|line| wrap(line, width, 2)).collect();
    lines.join("\n")
}

fn goals(goals: &[Goal], width: Option<u16>) -> String {
    let mut lines = vec!["Goals".to_owned()];
    for goal in goals {
        let (relation, what) = match goal.traffic {
            Traffic::Single => ("below", "latency"),
            Traffic::Stream => ("at least", "rate"),
        };
        let direction = in_words(goal.direction);
        let asked = format!(
            "{direction}, {}: {what} {relation} {}",
            figures::size(goal.size_bytes),
            figure(goal.traffic, goal.wanted)
        );
        let best = match (goal.best, &goal.method) {
            (Some(best), Some(method)) => format!("{} by {method}", figure(goal.traffic, best)),
            _ => "no method has an answer".to_owned(),
        };
        let margin = goal.margin_percent.map(figures::percent).unwrap_or_default();
        let text = if goal.is_met {
            format!("met, {asked}: {best}, margin {margin}")
        } else if goal.best.is_none() {
            format!("NOT met, {asked}: {best}")
        } else {
            let bound = bound(goal.bound.as_ref());
            let changes = match goal.met_with.as_slice() {
                [] => "no single change of those below meets it".to_owned(),
                some => format!("met with: {}", some.join("; or ")),
            };
            format!("NOT met, {asked}: the best is {best}, bound by {bound}; {changes}")
        };
        lines.push(wrap(&format!("  - {text}"), width, 4));
    }
    lines.join("\n")
}

fn methods(direction: CopyDirection, traffic: Traffic, choices: &[&Choice], width: Option<u16>) -> String {
    let (what, head) = match (traffic, direction) {
        (Traffic::Single, CopyDirection::ToDevice) => (
            "one transfer: until the device has stored the bytes, or the core sees that its DMA has read them",
            "latency",
        ),
        (Traffic::Single, CopyDirection::FromDevice) => {
            ("one transfer: until the core has the bytes, or sees that they are in host memory", "latency")
        }
        (Traffic::Stream, _) => ("a stream of transfers: delivered rate", "rate"),
    };
    let columns = vec![
        Column::figures("size"),
        Column::words("method"),
        Column::figures(head),
        Column::figures("slower"),
        Column::figures("of limit"),
        Column::words("bound by"),
        Column::figures("formula"),
    ];
    let mut grid = Grid { columns, rows: Vec::new() };
    let mut far_slower = 0;
    let mut rules: Vec<(String, &str)> = Vec::new();
    for choice in choices {
        far_slower = far_slower.max(choice.far_slower);
        for (place, one) in choice.ranked.iter().take(MOST).enumerate() {
            grid.rows.push(row(choice, place, one));
            for rule in &one.rules {
                let known = rules.iter_mut().find(|(_, other)| other == rule);
                let method = one.method.to_string();
                match known {
                    Some((methods, _)) if methods.split(" / ").any(|other| other == method) => {}
                    Some((methods, _)) => *methods = format!("{methods} / {method}"),
                    None => rules.push((method, rule)),
                }
            }
        }
    }
    grid.drop_empty_columns();
    let mut lines = vec![wrap(&format!("{}, {what}", sentence(direction)), width, 2)];
    lines.extend(grid.lines(width));
    if far_slower > 0 {
        let kinds = figures::counted(far_slower as usize, "kind");
        lines.push(format!("not shown: methods more than 20 times slower (at most {kinds} per size)"));
    }
    for (method, rule) in rules {
        lines.push(wrap(&format!("  ! {method}: {rule}"), width, 4));
    }
    lines.join("\n")
}

fn row(choice: &Choice, place: usize, one: &Ranked) -> Vec<String> {
    let percent = one.formula.map(|formula| 100.0 * (formula / one.figure - 1.0));
    vec![
        if place == 0 { figures::size(choice.size_bytes) } else { String::new() },
        one.method.to_string(),
        figure(choice.traffic, one.figure),
        if place == 0 { String::new() } else { figures::times(one.times_slower) },
        one.share_of_ceiling_percent.map(figures::percent).unwrap_or_default(),
        bound(one.bound.as_ref()),
        percent.map(figures::difference).unwrap_or_default(),
    ]
}

fn changes(guidance: &Guidance, width: Option<u16>) -> String {
    let of = |kind: ChangeKind| guidance.changes.iter().filter(move |change| change.kind == kind).collect::<Vec<_>>();
    let sizes = &guidance.workload.sizes_bytes;
    let mut blocks = Vec::new();
    let software = of(ChangeKind::Software);
    let mut usual: Vec<&str> = software.iter().map(|change| change.how.as_str()).collect();
    usual.dedup();
    usual.sort_unstable();
    usual.dedup();
    for usual in usual {
        let of: Vec<&MachineChange> = software.iter().filter(|change| change.how == usual).copied().collect();
        blocks.push(table(&format!("Gain over {usual}"), &of, sizes, width));
    }
    let settings = of(ChangeKind::Setting);
    if !settings.is_empty() {
        let all = [settings.clone(), of(ChangeKind::AllSettings)].concat();
        let mut lines = vec![table("Gain of settings, each alone", &all, sizes, width)];
        lines.extend(settings.iter().map(|change| wrap(&format!("  {}: {}", change.what, change.how), width, 4)));
        blocks.push(lines.join("\n"));
    }
    let hardware = of(ChangeKind::Hardware);
    if !hardware.is_empty() {
        blocks.push(table("Gain of other hardware, each alone", &hardware, sizes, width));
    }
    if !guidance.without_effect.is_empty() {
        let text = format!("no gain of {LEAST_GAIN_PERCENT} % or more: {}", guidance.without_effect.join("; "));
        blocks.push(wrap(&text, width, 2));
    }
    blocks.join("\n\n")
}

/// Changes with their gain at each size.
fn table(head: &str, changes: &[&MachineChange], sizes: &[u64], width: Option<u16>) -> String {
    let mut columns = vec![Column::words("change")];
    columns.extend(sizes.iter().map(|size| Column::figures(figures::size(*size))));
    columns.push(Column::words("bound by, before -> after (largest gain)"));
    let mut grid = Grid { columns, rows: Vec::new() };
    for change in changes {
        let mut name = vec![String::new(); grid.columns.len()];
        name[0].clone_from(&change.what);
        grid.rows.push(name);
        grid.rows.extend(effects(&change.effects, sizes));
    }
    format!("{head}\n{}", grid.lines(width).join("\n"))
}

/// A row for each direction and traffic with an effect: the gain at each size, and the bounds at the largest gain.
fn effects(effects: &[Effect], sizes: &[u64]) -> Vec<Vec<String>> {
    let mut groups: Vec<Vec<&Effect>> = Vec::new();
    for effect in effects {
        match groups
            .iter_mut()
            .find(|group| group.iter().any(|one| (one.direction, one.traffic) == (effect.direction, effect.traffic)))
        {
            Some(group) => group.push(effect),
            None => groups.push(vec![effect]),
        }
    }
    let rows = groups.iter().filter_map(|group| {
        let best = group.iter().max_by(|one, other| one.gain_percent.total_cmp(&other.gain_percent))?;
        if group.iter().all(|effect| effect.gain_percent.abs() < LEAST_GAIN_PERCENT) {
            return None;
        }
        let what = match best.traffic {
            Traffic::Single => "one transfer",
            Traffic::Stream => "a stream",
        };
        let mut row = vec![format!("  {}, {what}", in_words(best.direction))];
        let at = |size: &u64| group.iter().find(|effect| effect.size_bytes == *size);
        row.extend(
            sizes.iter().map(|size| at(size).map_or_else(|| "-".to_owned(), |effect| gain(effect.gain_percent))),
        );
        row.push(match (bound(best.bound_before.as_ref()), bound(best.bound_after.as_ref())) {
            (was, is) if was == is => was,
            (was, is) => format!("{was} -> {is}"),
        });
        Some(row)
    });
    rows.collect()
}

/// A gain in percent, as a factor from twice as fast on.
fn gain(percent: f64) -> String {
    if percent >= 100.0 { figures::times(1.0 + percent / 100.0) } else { figures::difference(percent) }
}

fn figure(traffic: Traffic, figure: f64) -> String {
    match traffic {
        Traffic::Single => figures::time(figure),
        Traffic::Stream => figures::rate(figure),
    }
}

fn bound(bound: Option<&WaitShare>) -> String {
    bound.map(WaitShare::in_words).unwrap_or_default()
}

const fn in_words(direction: CopyDirection) -> &'static str {
    match direction {
        CopyDirection::ToDevice => "to device",
        CopyDirection::FromDevice => "from device",
    }
}

const fn sentence(direction: CopyDirection) -> &'static str {
    match direction {
        CopyDirection::ToDevice => "To the device",
        CopyDirection::FromDevice => "From the device",
    }
}
