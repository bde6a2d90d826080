//! Published results are still reproduced: every row, every bound, every fitted number.

use lanemark_experiment::{
    Dependency, Effect, PAPERS, classified, dependency_table, effect_of, fittings, known_dependencies, reproduce,
    steps_of,
};
use lanemark_record::{Class, Reproduction, Row, Verdict};
use std::fmt::Write;
use std::sync::OnceLock;

/// Reproductions of all papers, computed once for all tests of this file.
fn all() -> &'static [Reproduction] {
    static ALL: OnceLock<Vec<Reproduction>> = OnceLock::new();
    let one = |paper| reproduce(paper, &mut |_, _| true).unwrap_or_else(|error| panic!("{error}"));
    ALL.get_or_init(|| PAPERS.iter().map(one).collect())
}

/// Our figures in the format of `expected.csv`.
fn table(reproduction: &Reproduction) -> String {
    let mut text = "id,simulated,formula,class,verdict\n".to_owned();
    for row in &reproduction.rows {
        let digits = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.6}"));
        let class = row.class.name();
        let verdict = format!("{:?}", row.verdict);
        let _ = writeln!(text, "{},{},{},{class},{verdict}", row.id, digits(row.simulated), digits(row.formula));
    }
    text
}

/// Number of distinct predicted figures, by paper.
const DISTINCT: [usize; 5] = [4, 12, 17, 2, 3];

#[test]
fn every_row_agrees_or_is_explained_and_every_bound_is_met() {
    for reproduction in all() {
        for row in &reproduction.rows {
            assert_ne!(row.verdict, Verdict::Disagrees, "{}: {row:?}", reproduction.paper);
        }
        for bound in &reproduction.bounds {
            assert!(bound.met, "{}: {bound:?}", reproduction.paper);
        }
    }
}

#[test]
fn figures_match_the_committed_ones() {
    for reproduction in all() {
        let path = format!("{}/../experiments/{}/expected.csv", env!("CARGO_MANIFEST_DIR"), reproduction.paper);
        let ours = table(reproduction);
        if std::env::var_os("LANEMARK_WRITE_EXPECTED").is_some() {
            std::fs::write(&path, &ours).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        let hint = "check the difference; if it is intended, run the test with LANEMARK_WRITE_EXPECTED=1";
        assert_eq!(ours, committed, "experiments/{}/expected.csv: {hint}", reproduction.paper);
    }
}

/// Distinct predicted rows that are compared with a published figure.
fn distinct(reproduction: &Reproduction) -> usize {
    let is_compared = |row: &&Row| row.error_percent.is_some() && row.tolerance_percent.is_some();
    let rows = reproduction.rows.iter().filter(|row| row.class == Class::Predicted).filter(is_compared);
    rows.filter(|row| row.same_as.is_empty() && row.verdict != Verdict::Sic).count()
}

#[test]
fn no_predicted_figure_is_lost() {
    for (reproduction, expected) in all().iter().zip(DISTINCT) {
        assert_eq!(
            distinct(reproduction),
            expected,
            "{}: adapt the number if more or fewer are right",
            reproduction.paper
        );
    }
}

#[test]
fn classes_follow_from_the_dependencies() {
    for paper in PAPERS {
        let again = classified(paper).unwrap_or_else(|error| panic!("{error}"));
        if std::env::var_os("LANEMARK_BLESS").is_some() {
            let path = format!("{}/../experiments/{}/dependencies.csv", env!("CARGO_MANIFEST_DIR"), paper.name);
            std::fs::write(path, dependency_table(&again)).unwrap();
            continue;
        }
        let known = known_dependencies(paper).unwrap();
        for (known, again) in known.iter().zip(&again) {
            let class = |row: &Dependency| (row.class, row.same_as.clone());
            assert_eq!(class(known), class(again), "{}: {}: LANEMARK_BLESS=1 writes it", paper.name, known.id);
        }
    }
}

/// All steps and rows take minutes (`make dependencies`); a random sample, half of it effects of the file, takes seconds.
#[test]
fn a_sample_of_the_dependencies_is_computed_again() {
    let mut random = fastrand::Rng::with_seed(22);
    for paper in PAPERS {
        let (known, steps) = (known_dependencies(paper).unwrap(), steps_of(paper).unwrap());
        let computed: Vec<&Dependency> = known.iter().filter(|row| row.value.is_some()).collect();
        for number in 0..if steps.is_empty() { 0 } else { 2 * SAMPLED } {
            let row = random.choice(&computed).unwrap();
            let known = if number % 2 == 0 { random.choice(&row.effects) } else { None };
            let step = known.map_or_else(|| random.choice(&steps).unwrap(), |effect| &effect.step);
            let known = row.effects.iter().find(|effect| effect.step == *step);
            let again = effect_of(paper, &row.id, step).unwrap_or_else(|error| panic!("{error}"));
            let size = |effect: Option<&Effect>| effect.map_or(Some(0.0), |effect| effect.size);
            let is_same = match (size(known), size(again.as_ref())) {
                (Some(known), Some(again)) => (known - again).abs() < 0.006,
                (known, again) => known == again,
            };
            assert!(is_same, "{}: {} after {step}: {known:?} in the file, {again:?} now", paper.name, row.id);
        }
    }
}

/// Steps that are computed again, of either kind and per paper.
const SAMPLED: usize = 20;

#[test]
fn figures_that_parameters_are_fitted_to_are_not_predicted() {
    for (paper, reproduction) in PAPERS.iter().zip(all()) {
        for fitting in fittings(paper).unwrap() {
            for id in fitting.data() {
                let row = reproduction.rows.iter().find(|row| row.id == *id);
                assert_eq!(row.map(|row| row.class), Some(Class::Fitted), "{}: {id}", paper.name);
            }
        }
    }
}

#[test]
fn fitted_rows_are_data_of_a_fit_or_named_by_a_value() {
    for (paper, reproduction) in PAPERS.iter().zip(all()) {
        let data: Vec<String> = fittings(paper).unwrap().iter().flat_map(|fit| fit.data().to_vec()).collect();
        for row in reproduction.rows.iter().filter(|row| row.class == Class::Fitted) {
            // A cited figure may have rows of its own: R7:8 is a point of R7.
            let figure = row.id.split_once(':').map_or(row.id.as_str(), |(figure, _)| figure);
            let cited = cited(text_of(&reproduction.platform));
            let known = data.contains(&row.id) || cited.iter().any(|id| *id == row.id || *id == figure);
            assert!(known, "{}: {} has class fitted, but no fit or source contains it", paper.name, row.id);
        }
    }
}

#[test]
fn fitted_numbers_are_local_optima() {
    for paper in PAPERS {
        for fitting in fittings(paper).unwrap() {
            let now: Vec<f64> = fitting.parameters().iter().map(|parameter| parameter.1).collect();
            let squares = |values: &[f64]| -> f64 {
                fitting.residuals(values).unwrap().iter().map(|residual| residual * residual).sum()
            };
            let best = squares(&now);
            for place in 0..now.len() {
                for factor in [0.99, 1.01] {
                    let mut beside = now.clone();
                    beside[place] *= factor;
                    let key = &fitting.parameters()[place].0;
                    assert!(
                        best < squares(&beside),
                        "{}: {key} = {} fits better than {}",
                        paper.name,
                        beside[place],
                        now[place]
                    );
                }
            }
        }
    }
}

/// The text of a preset; empty for a machine without one.
fn text_of(name: &str) -> &'static str {
    lanemark_platform::PRESETS.iter().find(|preset| preset.name == name).map_or("", |preset| preset.text)
}

/// IDs of figures cited in the sources of a platform: a letter, a number, an optional letter, an optional row.
fn cited(platform: &str) -> Vec<String> {
    let words = platform.split(|c: char| !c.is_ascii_alphanumeric() && c != ':').map(|word| word.trim_end_matches(':'));
    let is_id = |word: &&str| {
        let figure = word.split_once(':').map_or(*word, |(figure, _)| figure);
        let mut rest = figure.trim_start_matches(|c: char| c.is_ascii_uppercase());
        let letters = figure.len() - rest.len();
        rest = rest.trim_end_matches(|c: char| c.is_ascii_lowercase());
        letters == 1 && !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit())
    };
    words.filter(is_id).map(str::to_owned).collect()
}

#[test]
fn figures_cited_as_source_of_a_number_are_not_predicted() {
    assert_eq!(cited("value = 2, source = \"T12: two\" } F6a, 0xF7D00000 Gen2; [\"R9:1\"]"), ["T12", "F6a", "R9:1"]);
    for reproduction in all() {
        for id in cited(text_of(&reproduction.platform)) {
            let named = reproduction.rows.iter().filter(|row| row.id == id || row.id.starts_with(&format!("{id}:")));
            for row in named {
                let is_cell = row.id.matches(':').count() == 2;
                assert!(is_cell || row.class != Class::Predicted, "{}: {id} is a source of the platform", row.id);
            }
        }
    }
}

/// A row of `DEVIATIONS.md`: the first ID, and our number as text; `None` for a heading or words.
fn deviation(line: &str) -> Option<(&str, &str)> {
    let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
    let (id, ours) = (cells.next()?, cells.next()?);
    let id = id.split(['-', ',']).next()?;
    let number = ours.split_whitespace().next()?;
    number.parse::<f64>().is_ok().then_some((id, number))
}

#[test]
fn our_numbers_in_the_lists_of_deviations_are_those_of_the_run() {
    assert_eq!(deviation("| R9:1-R9:3 | 967 MiB/s | 1000 MiB/s |"), Some(("R9:1", "967")));
    assert_eq!(deviation("| S1:worst | none | 120 s |"), None);
    assert_eq!(deviation("| --- | --- |"), None);
    let mut compared = 0;
    for reproduction in all() {
        let path = format!("{}/../experiments/{}/DEVIATIONS.md", env!("CARGO_MANIFEST_DIR"), reproduction.paper);
        let text = std::fs::read_to_string(&path).unwrap();
        for (id, number) in text.lines().filter_map(deviation) {
            let row = reproduction.rows.iter().find(|row| row.id == id);
            let Some(ours) = row.and_then(|row| row.simulated.or(row.formula)) else { continue };
            let decimals = number.split_once('.').map_or(0, |(_, behind)| behind.len());
            assert_eq!(format!("{ours:.decimals$}"), number, "{}: {id} in DEVIATIONS.md", reproduction.paper);
            compared += 1;
        }
    }
    assert!(compared >= 12, "{compared}");
}
