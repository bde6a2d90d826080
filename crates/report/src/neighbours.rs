//! The nearest machines of a corpus, for a terminal.

use crate::figures;
use crate::grid::{Column, Grid, wrap};
use lanemark_record::corpus::{
    Differences, FactDifference, Neighbour, Neighbourhood, QuestionDifference, TargetNeighbours, TimedCase,
};
use lanemark_record::{Quantity, TargetKind};

/// Renders the neighbours of a record for a terminal of `width` characters: for each target a table of the nearest `most`
/// machines, then the differences from the nearest.
#[must_use]
pub fn neighbours_table(all: &Neighbourhood, name: &str, most: usize, width: Option<u16>) -> String {
    let blocks: Vec<String> = all.targets.iter().flat_map(|target| blocks(target, all, name, most, width)).collect();
    blocks.join("\n\n") + "\n"
}

/// Kind of answers in words.
fn kind(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::Simulated => "simulated",
        TargetKind::Real => "real",
        TargetKind::Emulated => "emulated",
        TargetKind::Formula => "formulas",
        TargetKind::Imported => "imported",
    }
}

fn blocks(target: &TargetNeighbours, all: &Neighbourhood, name: &str, most: usize, width: Option<u16>) -> Vec<String> {
    let own = kind(target.kind);
    let head = format!(
        "{} of {name} ({own}), {}: distance is the typical factor between the times of the same cases, each question once; \
         time is that of {name} over that of the machine",
        target.target,
        figures::counted(target.cases as usize, "case")
    );
    let mut blocks = vec![wrap(&head, width, 2)];
    if !target.itself.is_empty() {
        let files = target.itself.join(", ");
        blocks.push(wrap(&format!("it is {files} of the corpus itself, which is left out below"), width, 2));
    }
    if target.neighbours.is_empty() {
        let text = format!(
            "no machine of the {} in the corpus has {} cases in common with it; ask the questions of one of them \
             (records/README.md)",
            all.machines, all.least_cases
        );
        blocks.push(wrap(&text, width, 2));
    }
    for kinds in target.neighbours.chunk_by(|one, other| one.kind == other.kind) {
        blocks.push(table(&title(target.kind, kinds[0].kind), kinds, most, width));
    }
    if !target.too_few.is_empty() {
        let few = target.too_few.iter().map(|few| format!("{} ({} of {})", few.file, few.cases, few.needed));
        let text = format!("too few common cases for a distance: {}", few.collect::<Vec<_>>().join(", "));
        blocks.push(wrap(&text, width, 2));
    }
    if let Some(differences) = &target.differences {
        blocks.extend(difference_blocks(target, differences, width));
    }
    blocks
}

/// Title of the machines of one kind, beside a record of the kind `own`.
fn title(own: TargetKind, theirs: TargetKind) -> String {
    let because = match (own, theirs) {
        _ if own == theirs => return format!("Nearest machines ({}, as this record)", kind(own)),
        (TargetKind::Imported, _) => "the figures of this record are of another tool, measured in its own way",
        (TargetKind::Simulated, _) => "real times beside a simulation",
        _ => "their times follow from parameters, those of this record from a machine",
    };
    match theirs {
        TargetKind::Simulated => format!("Nearest simulated platforms: {because}"),
        _ => format!("Nearest measured machines: {because}"),
    }
}

fn table(title: &str, neighbours: &[Neighbour], most: usize, width: Option<u16>) -> String {
    let mut columns = vec![Column::words("machine")];
    columns.extend(["distance", "time", "middle half", "cases", "questions"].map(Column::figures));
    columns.push(Column::words("record"));
    let row = |neighbour: &Neighbour| {
        vec![
            neighbour.summary.clone(),
            format!("{:.2}", neighbour.distance),
            format!("{:.2}", neighbour.ratio_median),
            format!("{:.2} to {:.2}", neighbour.ratio_low, neighbour.ratio_high),
            neighbour.cases.to_string(),
            neighbour.questions.to_string(),
            neighbour.file.clone(),
        ]
    };
    let grid = Grid { columns, rows: neighbours.iter().take(most).map(row).collect() };
    let mut lines = vec![wrap(title, width, 2)];
    lines.extend(grid.lines(width));
    if neighbours.len() > most {
        lines.push(format!("  and {} more; --json lists all", neighbours.len() - most));
    }
    lines.join("\n")
}

fn difference_blocks(target: &TargetNeighbours, differences: &Differences, width: Option<u16>) -> Vec<String> {
    let mut blocks = Vec::new();
    let nearest = target.neighbours.first().map(|nearest| nearest.kind);
    if let Some(theirs) = nearest.filter(|theirs| *theirs != target.kind) {
        let (own, theirs) = (kind(target.kind), kind(theirs));
        let text = format!(
            "warning: no {own} machine of the corpus has enough cases in common: the differences below are between \
             {own} times and {theirs} ones"
        );
        blocks.push(wrap(&text, width, 2));
    }
    let mut columns = vec![Column::words("question")];
    columns.extend(["cases", "time", "from", "to"].map(Column::figures));
    columns.push(Column::words("farthest case"));
    columns.extend(["here", "there"].map(Column::figures));
    let rows = differences.questions.iter().map(question_row).collect();
    let mut lines = vec![wrap(&format!("Differences from {}, by question", differences.file), width, 2)];
    lines.extend(Grid { columns, rows }.lines(width));
    blocks.push(lines.join("\n"));
    if differences.facts.is_empty() {
        blocks.push("No described fact differs".to_owned());
    } else {
        let mut lines = vec![format!("Described facts that differ from {}", differences.file)];
        lines.extend(differences.facts.iter().map(|fact| wrap(&fact_line(fact), width, 4)));
        blocks.push(lines.join("\n"));
    }
    blocks
}

fn question_row(difference: &QuestionDifference) -> Vec<String> {
    let TimedCase { method, size_bytes, quantity, median_ns, .. } = &difference.farthest;
    let figure = |ns: f64| match quantity {
        Quantity::Bandwidth => figures::rate(*size_bytes as f64 * 1e9 / ns),
        _ => figures::time(ns),
    };
    let ratio = |ratio: f64| format!("{ratio:.2}");
    vec![
        difference.question.clone(),
        difference.cases.to_string(),
        ratio(difference.ratio_median),
        ratio(difference.ratio_min),
        ratio(difference.ratio_max),
        format!("{method}, {}", figures::size(*size_bytes)),
        figure(*median_ns),
        figure(difference.farthest_there_ns),
    ]
}

fn fact_line(fact: &FactDifference) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    format!("  - {}: {} here, {} there", fact.name, text(&fact.here), text(&fact.there))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use lanemark_record::corpus::{MachineFacts, TooFew};

    fn neighbour(file: &str, kind: TargetKind, distance: f64) -> Neighbour {
        Neighbour {
            file: file.to_owned(),
            target: "card".to_owned(),
            summary: format!("machine of {file}"),
            kind,
            cases: 7,
            questions: 2,
            distance,
            ratio_median: distance,
            ratio_low: 1.0,
            ratio_high: distance,
        }
    }

    fn neighbourhood(neighbours: Vec<Neighbour>) -> Neighbourhood {
        let farthest = TimedCase {
            question: "mmio_write_bandwidth".to_owned(),
            method: fixture::method("wc", "8", None),
            cores: vec![],
            size_bytes: 4096,
            alignment_bytes: 0,
            quantity: Quantity::Bandwidth,
            median_ns: 1000.0,
        };
        let question = QuestionDifference {
            question: "mmio_write_bandwidth".to_owned(),
            cases: 7,
            ratio_median: 1.5,
            ratio_min: 1.0,
            ratio_max: 2.0,
            farthest,
            farthest_there_ns: 500.0,
        };
        let fact = FactDifference { name: "MPS".to_owned(), here: None, there: Some("256 B".to_owned()) };
        let differences = neighbours.first().map(|nearest| Differences {
            file: nearest.file.clone(),
            questions: vec![question],
            facts: vec![fact],
        });
        let target = TargetNeighbours {
            target: "card".to_owned(),
            kind: TargetKind::Real,
            facts: MachineFacts::default(),
            cases: 9,
            itself: vec![],
            neighbours,
            too_few: vec![TooFew { file: "few.json".to_owned(), kind: TargetKind::Real, cases: 3, needed: 5 }],
            differences,
        };
        Neighbourhood { machines: 3, least_cases: 5, targets: vec![target] }
    }

    #[test]
    fn the_nearest_come_first_with_figures_of_both_and_unknown_facts() {
        let kinds = [TargetKind::Real, TargetKind::Real, TargetKind::Simulated];
        let files = ["near.json", "far.json", "sim.json"];
        let all = kinds.iter().zip(files).map(|(kind, file)| neighbour(file, *kind, 1.25)).collect();
        let text = neighbours_table(&neighbourhood(all), "my.json", 1, None);
        for words in [
            "card of my.json (real), 9 cases",
            "machine of near.json      1.25  1.25  1.00 to 1.25      7          2  near.json",
            "  and 1 more; --json lists all",
            "Nearest simulated platforms: ",
            "too few common cases for a distance: few.json (3 of 5)",
            "4.10 GB/s  8.19 GB/s",
            "  - MPS: unknown here, 256 B there",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(!text.contains("far.json") && !text.contains("warning"), "{text}");
    }

    #[test]
    fn a_nearest_machine_of_another_kind_has_a_warning() {
        let text = neighbours_table(
            &neighbourhood(vec![neighbour("sim.json", TargetKind::Simulated, 2.0)]),
            "my.json",
            5,
            None,
        );
        assert!(text.contains("warning: no real machine of the corpus has enough cases in common"), "{text}");
    }

    #[test]
    fn without_a_neighbour_the_least_number_of_cases_is_named() {
        let text = neighbours_table(&neighbourhood(vec![]), "my.json", 5, None);
        assert!(text.contains("no machine of the 3 in the corpus has 5 cases in common"), "{text}");
        assert!(!text.contains("Differences"), "{text}");
    }
}
