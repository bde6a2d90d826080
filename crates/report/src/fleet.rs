//! Machines of a fleet that differ from the others, for a terminal.

use crate::figures;
use crate::grid::{Column, Grid, wrap};
use lanemark_record::Quantity;
use lanemark_record::fleet::{Fleet, Machine, Outlier};

/// Most outliers of a machine that are shown; JSON has all.
const SHOWN: usize = 5;

/// Renders a fleet for a terminal of `width` characters: a line for each machine, then for each one that differs its
/// largest differences and what `doctor` finds there only.
#[must_use]
pub fn fleet_table(fleet: &Fleet, width: Option<u16>) -> String {
    let Fleet { machines, judged, not_judged, min_effect_percent, outliers, .. } = fleet;
    let few = match *not_judged as usize {
        0 => String::new(),
        1 => "; 1 answer is not judged, because fewer than 4 machines have it".to_owned(),
        count => format!("; {count} answers are not judged, because fewer than 4 machines have them"),
    };
    let text = format!(
        "{}, {} compared{few}; an answer is an outlier if its time differs from those of the others by more than {min_effect_percent} %, and by so many of their standard deviations that a fleet of equal machines has one in 1 of 20 runs",
        figures::counted(machines.len(), "machine"),
        figures::counted(*judged as usize, "answer")
    );
    let mut columns = vec![Column::words("machine")];
    columns.extend(["answers", "outliers"].map(Column::figures));
    columns.push(Column::words("problem"));
    let row = |machine: &Machine| {
        let problem = machine.problem.clone().unwrap_or_default();
        vec![machine.name.clone(), machine.answers.to_string(), machine.outliers.to_string(), problem]
    };
    let mut grid = Grid { columns, rows: machines.iter().map(row).collect() };
    grid.drop_empty_columns();
    let mut blocks = vec![wrap(&text, width, 2), grid.lines(width).join("\n")];
    for machine in machines.iter().filter(|machine| machine.outliers > 0) {
        let own: Vec<&Outlier> = outliers.iter().filter(|outlier| outlier.machine == machine.name).collect();
        let mut lines = vec![format!("{}:", machine.name)];
        lines.extend(own.iter().take(SHOWN).map(|outlier| wrap(&format!("  - {}", in_words(outlier)), width, 4)));
        if own.len() > SHOWN {
            lines.push(format!("  {} more; --json lists all", own.len() - SHOWN));
        }
        lines.extend(causes(machine, width));
        blocks.push(lines.join("\n"));
    }
    let failed = |machine: &Machine| Some((machine.outliers == 0).then_some(machine.no_diagnosis.as_ref()?)?.clone());
    let failed = machines.iter().filter_map(|machine| Some((&machine.name, failed(machine)?)));
    let failed: Vec<String> =
        failed.map(|(name, because)| wrap(&format!("no diagnosis of {name}: {because}"), width, 2)).collect();
    if !failed.is_empty() {
        blocks.push(failed.join("\n"));
    }
    blocks.join("\n\n") + "\n"
}

/// What only this machine has, as possible causes.
fn causes(machine: &Machine, width: Option<u16>) -> Vec<String> {
    let Some(only_here) = &machine.only_here else {
        let because = machine.no_diagnosis.clone();
        let because = because.unwrap_or_else(|| "there are no diagnoses of this machine and of another one".to_owned());
        return vec![wrap(&format!("  causes unknown: {because}"), width, 4)];
    };
    if only_here.is_empty() {
        return vec!["  causes unknown: doctor finds nothing that most of the others do not have".to_owned()];
    }
    let cause = |found: &lanemark_record::fleet::OnlyHere| {
        let functions = found.functions.join(", ");
        let at = if functions.is_empty() { String::new() } else { format!("{functions}: ") };
        wrap(&format!("  only here: {at}{} ({})", found.reason, found.check), width, 4)
    };
    only_here.iter().map(cause).collect()
}

fn in_words(outlier: &Outlier) -> String {
    let Outlier { question, method, size_bytes, quantity, machines, time_ns, others_ns, ratio, .. } = outlier;
    let figure = |ns: f64| match quantity {
        Quantity::Bandwidth => figures::rate(*size_bytes as f64 * 1e9 / ns),
        _ => figures::time(ns),
    };
    let (word, times) = if *ratio > 1.0 { ("slower", *ratio) } else { ("faster", 1.0 / ratio) };
    format!(
        "{question}, {method}, {}: {}, {times:.2} times {word} than the median of the others of {machines} machines, {}",
        figures::size(*size_bytes),
        figure(*time_ns),
        figure(*others_ns)
    )
}
