//! The figures of a paper that the machine this runs on, or a runtime on it, can be asked about too.
//!
//! It is another machine than the paper's: what it says stands beside the published figure, and counts as nothing.

use crate::asked::{figure_of, spread_of};
use crate::figure::{AskHere, Experiment, ExperimentError, Figure, Whom};
use crate::paper::Paper;
use lanemark_bench::{Axes, Case, Effort, ask, question};
use lanemark_machine::{Facts, Machine};
use lanemark_record::Here;

/// Asks `machine` what `paper` says can be asked here; `watch` hears how many figures are done, and of how many, before each of them.
///
/// # Errors
/// [`ExperimentError`] if a file of the experiment is wrong; a machine that does not answer is no error but a row
/// that says so.
pub fn here(
    paper: &Paper,
    machine: &mut dyn Machine,
    watch: &mut dyn FnMut(usize, usize),
) -> Result<Vec<Here>, ExperimentError> {
    let experiment = Experiment::read(paper.name, paper.experiment, paper.published)?;
    let whom = if machine.facts().runtime.is_some() { Whom::Runtimes } else { Whom::Host };
    let all = experiment.figures.iter().flat_map(|figure| figure.here.iter().map(move |wanted| (figure, wanted)));
    let all: Vec<_> = all.filter(|(_, wanted)| wanted.of == whom).collect();
    let mut found = Vec::new();
    for (done, (figure, wanted)) in all.iter().enumerate() {
        watch(done, all.len());
        let published = experiment.published.get(&figure.id).filter(|row| row.unit == wanted.figure.unit());
        let published = published.and_then(crate::figure::Published::target);
        found.push(row(figure, wanted, published, machine).map_err(|message| ExperimentError::Figure {
            paper: paper.name.to_owned(),
            id: figure.id.clone(),
            message,
        })?);
    }
    Ok(found)
}

/// Whether `paper` has something to ask of runtimes.
///
/// # Errors
/// [`ExperimentError`] if a file of the experiment is wrong.
pub fn asks_runtimes(paper: &Paper) -> Result<bool, ExperimentError> {
    let experiment = Experiment::read(paper.name, paper.experiment, paper.published)?;
    let mut wanted = experiment.figures.iter().flat_map(|figure| &figure.here);
    Ok(wanted.any(|wanted| wanted.of == Whom::Runtimes))
}

/// Who was asked: what a runtime's device is belongs to its name, or its figures would be read as those of something else.
fn asked(facts: &Facts) -> String {
    match &facts.runtime {
        None => facts.name.clone(),
        Some(runtime) if runtime.is_emulated => format!("{} (emulated {})", facts.name, runtime.kind),
        Some(runtime) => format!("{} ({})", facts.name, runtime.kind),
    }
}

fn row(figure: &Figure, wanted: &AskHere, published: Option<f64>, machine: &mut dyn Machine) -> Result<Here, String> {
    let question = question(&wanted.question).ok_or_else(|| format!("there is no question '{}'", wanted.question))?;
    let axes = Axes { sizes: wanted.size.map(|size| vec![size]), ..Axes::default() };
    let cases: Vec<Case> = (question.cases)(machine.facts(), &axes)
        .into_iter()
        .filter(|case| case.way().to_string() == wanted.way)
        .collect();
    let mut row = Here {
        id: figure.id.clone(),
        what: wanted.what.clone(),
        asked: asked(machine.facts()),
        way: format!("{}: {}", wanted.question, wanted.way),
        published: wanted.published.or(published),
        here: None,
        from: None,
        to: None,
        unit: wanted.figure.unit().to_owned(),
        because: if cases.is_empty() { "this machine has nothing to ask it of".to_owned() } else { String::new() },
    };
    for case in cases {
        match ask(question, machine, &case, &Effort::default()) {
            Ok(answer) => {
                let found = figure_of(&answer, wanted.figure);
                if found.is_some_and(|found| row.here.is_none_or(|least| found < least)) {
                    row.here = found;
                    [row.from, row.to] = spread_of(&answer, wanted.figure).map_or([None, None], |ends| ends.map(Some));
                }
            }
            Err(error) => row.because = error.to_string(),
        }
    }
    if row.here.is_some() {
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
            let mut heard = Vec::new();
            let mut watch = |done, of| heard.push((done, of));
            let all = here(paper, &mut machine, &mut watch).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(heard, (0..all.len()).map(|done| (done, all.len())).collect::<Vec<_>>());
            for row in &all {
                assert!(row.here.is_none() && !row.because.is_empty(), "{row:?}");
            }
            rows += all.len();
        }
        assert!(rows > 0);
    }
}
