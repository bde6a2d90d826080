//! The figures of a paper that the machine this runs on can be asked about too.
//!
//! It is another machine than the paper's: what it says stands beside the published figure, and counts as nothing.

use crate::figure::{AskHere, Experiment, ExperimentError, Figure};
use crate::paper::Paper;
use lanemark_bench::{Axes, Case, Effort, ask, question};
use lanemark_machine::Machine;
use lanemark_record::Here;

/// Asks `machine` what `paper` says can be asked here.
///
/// # Errors
/// [`ExperimentError`] if a file of the experiment is wrong; a machine that does not answer is no error but a row
/// that says so.
pub fn here(paper: &Paper, machine: &mut dyn Machine) -> Result<Vec<Here>, ExperimentError> {
    let experiment = Experiment::read(paper.name, paper.experiment, paper.published)?;
    let mut found = Vec::new();
    for figure in &experiment.figures {
        for wanted in &figure.here {
            let published = experiment.published.get(&figure.id).and_then(crate::figure::Published::target);
            found.push(row(figure, wanted, published, machine).map_err(|message| ExperimentError::Figure {
                paper: paper.name.to_owned(),
                id: figure.id.clone(),
                message,
            })?);
        }
    }
    Ok(found)
}

fn row(figure: &Figure, wanted: &AskHere, published: Option<f64>, machine: &mut dyn Machine) -> Result<Here, String> {
    let question = question(&wanted.question).ok_or_else(|| format!("there is no question '{}'", wanted.question))?;
    let cases: Vec<Case> = (question.cases)(machine.facts(), &Axes::default())
        .into_iter()
        .filter(|case| case.way().to_string() == wanted.way)
        .collect();
    let mut row = Here {
        id: figure.id.clone(),
        what: wanted.what.clone(),
        way: format!("{}: {}", wanted.question, wanted.way),
        published_ns: wanted.published_ns.or(published),
        here_ns: None,
        because: if cases.is_empty() { "this machine has nothing to ask it of".to_owned() } else { String::new() },
    };
    for case in cases {
        match ask(question, machine, &case, &Effort::default()) {
            Ok(answer) => {
                let median = answer.latency_ns.map(|summary| summary.median);
                row.here_ns = row.here_ns.into_iter().chain(median).reduce(f64::min);
            }
            Err(error) => row.because = error.to_string(),
        }
    }
    if row.here_ns.is_some() {
        row.because.clear();
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::PAPERS;
    use lanemark_sim::SimulatedMachine;

    #[test]
    fn every_question_to_this_machine_is_one_and_who_cannot_answer_says_so() {
        // A simulated machine has none of the ways, which are those of ordinary memory, or refuses them.
        let platform = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
        let mut machine = SimulatedMachine::new(&platform).unwrap();
        let mut rows = 0;
        for paper in PAPERS {
            for row in here(paper, &mut machine).unwrap_or_else(|error| panic!("{error}")) {
                assert!(row.here_ns.is_none() && !row.because.is_empty(), "{row:?}");
                rows += 1;
            }
        }
        assert!(rows > 0);
    }
}
