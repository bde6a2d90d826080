//! Classes of rows, from what the rows depend on.
//!
//! The classes, in the order in which they are decided:
//! 1. *unanswered*: nothing computes the row;
//! 2. *rule*: the row is a statement that is tested on a simulated machine;
//! 3. *given*: an input, arithmetic on inputs, or a row that only values move whose origin names this row;
//! 4. *fitted*: a `[[fit]]` or the origin of a value of the platform names it;
//! 5. *identity*: it repeats given and fitted rows: its effects equal those of one of them, or its time is the sum of the times
//!    of two of them in value and effects, or it is arithmetic on given, fitted and identity rows;
//! 6. *predicted*: all others.
//!
//! A predicted row repeats an earlier one with the same question and case, or with the same effects, or if it is arithmetic on
//! compared rows.
//!
//! The effect of a whole number with two neighbours is the smaller of their effects, and 0 if these have different signs: a
//! row does not depend on a resource that becomes the bound only after the step.

use crate::effect::{Dependency, Effect, name};
use crate::experiment::Experiment;
use crate::items::{Item, Source, items};
use crate::reproduce::names;
use lanemark_platform::{Origin, Platform};
use lanemark_record::Class;

/// Largest difference of two effects that count as equal.
const TOLERANCE: f64 = 0.02;

/// Determines `class` and `same_as` of every row from its value and effects.
///
/// `found` has the rows of `experiment` in their order.
pub(crate) fn classify(experiment: &Experiment, platform: Option<&Platform>, found: &mut [Dependency]) {
    let rows = items(experiment);
    let origins = platform.map(Platform::value_origins).unwrap_or_default();
    let neighbours = neighbours(platform);
    let mut local: Vec<Dependency> = found.iter().map(|row| with_local_effects(row, &neighbours)).collect();
    let mut classes: Vec<Option<Class>> =
        rows.iter().zip(&local).map(|(row, own)| first_class(experiment, &origins, &rows, row, own)).collect();
    for place in 0..rows.len() {
        let repeated = if classes[place].is_none() { identity(&rows, &local, &classes, place) } else { Vec::new() };
        let class = match (classes[place], repeated.is_empty()) {
            (Some(class), _) => class,
            (None, false) if repeated.iter().all(|place| classes[*place] == Some(Class::Given)) => Class::Given,
            (None, false) => Class::Identity,
            (None, true) => arithmetic(&rows, &classes, place).unwrap_or(Class::Predicted),
        };
        classes[place] = Some(class);
        let repeated = if class == Class::Predicted { repeats(&rows, &local, &classes, place) } else { repeated };
        let repeated: Vec<String> = repeated.into_iter().map(|place| rows[place].id().to_owned()).collect();
        local[place].same_as.clone_from(&repeated);
        (found[place].class, found[place].same_as) = (class, repeated);
    }
}

/// Keys of whole numbers with two neighbours, and the steps to these.
fn neighbours(platform: Option<&Platform>) -> Vec<(String, [String; 2])> {
    let steps = platform.map(Platform::steps).unwrap_or_default();
    let pairs =
        steps.windows(2).filter(|pair| pair[0].key == pair[1].key && pair.iter().all(|one| one.ratio.is_some()));
    pairs.map(|pair| (pair[0].key.clone(), [&pair[0], &pair[1]].map(name))).collect()
}

/// The row with one effect for each pair of neighbours: the smaller one. A neighbour without a value is left out.
fn with_local_effects(row: &Dependency, neighbours: &[(String, [String; 2])]) -> Dependency {
    let is_single = |effect: &&Effect| !neighbours.iter().any(|(_, pair)| pair.contains(&effect.step));
    let mut effects: Vec<Effect> = row.effects.iter().filter(is_single).cloned().collect();
    for (key, pair) in neighbours {
        let size = match [size(row, &pair[0]), size(row, &pair[1])] {
            [Some(up), Some(down)] if up * down <= 0.0 => Some(0.0),
            [Some(up), Some(down)] => Some(if up.abs() < down.abs() { up } else { down }),
            [up, down] => up.or(down),
        };
        if size != Some(0.0) {
            effects.push(Effect { step: key.clone(), size });
        }
    }
    Dependency { effects, ..row.clone() }
}

/// The class of a row that does not depend on the classes of others.
fn first_class(
    experiment: &Experiment,
    origins: &[(String, Origin)],
    rows: &[Item<'_>],
    row: &Item<'_>,
    own: &Dependency,
) -> Option<Class> {
    let is_target = experiment.fits.iter().any(|fit| fit.to.iter().any(|id| id == row.id()));
    match row.source {
        Source::Later => Some(Class::Unanswered),
        Source::Rules => Some(Class::Rule),
        Source::Input => Some(Class::Given),
        _ if is_target => Some(Class::Fitted),
        // A value of the platform may be explained by such arithmetic, and is no fit to it.
        Source::Derive(expression) if is_of_numbers(rows, expression) => Some(Class::Given),
        _ => {
            let naming: Vec<&(String, Origin)> =
                origins.iter().filter(|(_, origin)| names_row(origin, row.id())).collect();
            let is_fitted = naming.iter().any(|(_, origin)| matches!(origin.stated(), Origin::FittedTo(_)));
            let mut moving = own.effects.iter().filter(|effect| moves(effect)).map(key).peekable();
            if naming.is_empty() {
                None
            } else if !is_fitted
                && moving.peek().is_some()
                && moving.all(|key| naming.iter().any(|(other, _)| other == key))
            {
                Some(Class::Given)
            } else {
                Some(Class::Fitted)
            }
        }
    }
}

/// Whether an origin names the row `id`, or the figure that it is a row of. A cell of a table (`F1:burst:64`) must be named
/// itself.
fn names_row(origin: &Origin, id: &str) -> bool {
    let figure = match id.split_once(':') {
        Some((figure, row)) if !row.contains(':') && figure.contains(|c: char| c.is_ascii_digit()) => figure,
        _ => id,
    };
    match origin.stated() {
        Origin::FittedTo(ids) => ids.iter().any(|other| other == id || other == figure),
        Origin::Given(text) | Origin::Assumed(text) => {
            let mut words =
                text.split(|c: char| !(c.is_ascii_alphanumeric() || c == ':')).map(|word| word.trim_end_matches(':'));
            // Skips units, such as the B of 8 B.
            id.contains(|c: char| c.is_ascii_digit()) && words.any(|word| word == id || word == figure)
        }
        Origin::Default(_) | Origin::Unknown(_) | Origin::Inherited { .. } => false,
    }
}

fn key(effect: &Effect) -> &str {
    effect.step.split_once('=').map_or(&effect.step, |(key, _)| key)
}

fn moves(effect: &Effect) -> bool {
    effect.size.is_some_and(|size| size.abs() > TOLERANCE)
}

/// Places of the given and fitted rows that the row at `place` repeats; empty if it repeats none.
fn identity(rows: &[Item<'_>], found: &[Dependency], classes: &[Option<Class>], place: usize) -> Vec<usize> {
    let own = &found[place];
    let is_source = |other: &usize| matches!(classes[*other], Some(Class::Fitted | Class::Given));
    let sources: Vec<usize> = (0..rows.len()).filter(is_source).collect();
    if let Some(same) = sources.iter().find(|other| is_copy(&rows[place], own, &rows[**other], &found[**other])) {
        return vec![*same];
    }
    let time = |place: usize| time_s(&rows[place], &found[place]);
    let Some(whole) = time(place) else { return Vec::new() };
    for (at, one) in sources.iter().enumerate() {
        for other in &sources[at + 1..] {
            let (Some(first), Some(second)) = (time(*one), time(*other)) else { continue };
            let shares = [first / whole, second / whole];
            let is_sum =
                (shares[0] + shares[1] - 1.0).abs() <= TOLERANCE && shares.iter().all(|share| *share > TOLERANCE);
            let parts = [(&found[*one], shares[0]), (&found[*other], shares[1])];
            if is_sum && is_combination(own, &parts) {
                return vec![*one, *other];
            }
        }
    }
    Vec::new()
}

/// The class of arithmetic on rows that are not predicted; `None` for all others.
fn arithmetic(rows: &[Item<'_>], classes: &[Option<Class>], place: usize) -> Option<Class> {
    let Source::Derive(expression) = rows[place].source else { return None };
    let used: Vec<Class> = inputs(rows, expression).filter_map(|input| classes[input]).collect();
    if expression.contains("wire:") || used.contains(&Class::Predicted) {
        None
    } else if used.iter().all(|class| *class == Class::Given) {
        Some(Class::Given)
    } else {
        Some(Class::Identity)
    }
}

/// Whether an expression has numbers only, also those of the standard that no platform changes.
fn is_of_numbers(rows: &[Item<'_>], expression: &str) -> bool {
    inputs(rows, expression).next().is_none() && !expression.contains("wire:")
}

fn inputs<'a>(rows: &'a [Item<'_>], expression: &'a str) -> impl Iterator<Item = usize> + 'a {
    rows.iter().enumerate().filter(|(_, row)| names(expression, row.id())).map(|(place, _)| place)
}

/// Places of the predicted rows that the predicted row at `place` repeats; empty for a distinct row.
fn repeats(rows: &[Item<'_>], found: &[Dependency], classes: &[Option<Class>], place: usize) -> Vec<usize> {
    let is_distinct = |other: &usize| classes[*other] == Some(Class::Predicted) && found[*other].same_as.is_empty();
    if let Source::Derive(expression) = rows[place].source {
        let mut used: Vec<usize> =
            inputs(rows, expression).filter(|input| classes[*input] == Some(Class::Predicted)).collect();
        if !used.is_empty() && used.iter().all(|input| rows[*input].is_compared) {
            // A row that repeats another is replaced by it.
            for input in &mut used {
                let first = found[*input].same_as.first();
                *input = rows.iter().position(|row| Some(row.id()) == first.map(String::as_str)).unwrap_or(*input);
            }
            used.dedup();
            return used;
        }
    }
    let mut earlier = (0..place).filter(is_distinct);
    let same = earlier.find(|other| {
        rows[*other].is_compared == rows[place].is_compared
            && is_copy(&rows[place], &found[place], &rows[*other], &found[*other])
    });
    same.into_iter().collect()
}

/// Whether two rows have the same question and case, or the same effects. Two rows without effects are not equal.
fn is_copy(row: &Item<'_>, own: &Dependency, other_row: &Item<'_>, other: &Dependency) -> bool {
    let is_asked = matches!(row.source, Source::Ask(..));
    if is_asked && row.source == other_row.source {
        return true;
    }
    own.effects.iter().any(moves) && is_combination(own, &[(other, 1.0)])
}

/// Whether the effects of `own` are the sum of those of `parts`, each times its factor. A step after which one of the rows
/// has no value is left out.
fn is_combination(own: &Dependency, parts: &[(&Dependency, f64)]) -> bool {
    let rows = parts.iter().map(|part| part.0).chain([own]);
    let steps: Vec<&str> = rows.flat_map(|row| &row.effects).map(|effect| effect.step.as_str()).collect();
    steps.iter().all(|step| {
        let sum: Option<f64> = parts.iter().map(|(row, factor)| Some(size(row, step)? * factor)).sum();
        match (size(own, step), sum) {
            (Some(own), Some(sum)) => (own - sum).abs() <= TOLERANCE,
            _ => true,
        }
    })
}

/// Effect of `step` on `row`: 0 if it is not kept, `None` if the row has no value after it.
fn size(row: &Dependency, step: &str) -> Option<f64> {
    row.effects.iter().find(|effect| effect.step == step).map_or(Some(0.0), |effect| effect.size)
}

/// The time of a row in s: for a rate, that of the bytes of its question.
fn time_s(row: &Item<'_>, own: &Dependency) -> Option<f64> {
    let Source::Ask(ask, size) = row.source else { return None };
    ask.figure.time_s(own.value?, size.or(ask.size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    const HEAD: &str = "title = \"t\"\nplatform = \"tacc-stratix4\"\n";

    /// A row: an ID, its source in TOML, its value and its effects.
    type TestRow<'a> = (&'a str, &'a str, f64, &'a [(&'a str, f64)]);

    /// Classifies rows.
    fn classified(fits: &str, rows: &[TestRow<'_>]) -> Vec<(Class, Vec<String>)> {
        let (mut figures, mut published) = (String::new(), "id,what,published,corrected,unit\n".to_owned());
        for (id, source, ..) in rows {
            let _ = write!(figures, "[[figure]]\nid = \"{id}\"\ntolerance_percent = 1\n{source}\n");
            let _ = writeln!(published, "{id},w,1,,ns");
        }
        let experiment = Experiment::read("x", &format!("{HEAD}{figures}{fits}"), &published).unwrap();
        let platform = lanemark_platform::preset("tacc-stratix4").unwrap().unwrap();
        let mut found: Vec<Dependency> = rows
            .iter()
            .map(|(id, _, value, effects)| Dependency {
                id: (*id).to_owned(),
                class: Class::Predicted,
                same_as: Vec::new(),
                value: Some(*value),
                effects: effects
                    .iter()
                    .map(|(step, size)| Effect {
                        step: (*step).to_owned(),
                        size: Some(*size).filter(|size| size.is_finite()),
                    })
                    .collect(),
            })
            .collect();
        classify(&experiment, Some(&platform), &mut found);
        found.into_iter().map(|row| (row.class, row.same_as)).collect()
    }

    fn ask(size: u64) -> String {
        format!("ask = {{ question = \"q\", size = {size}, figure = \"latency_ns\" }}")
    }

    const FIT: &str = "[[fit]]\nto = [\"A\"]\nparameters = [{ key = \"dma.tags\", low = 1, high = 2 }]\n";

    #[test]
    fn equal_effects_are_an_identity_up_to_the_tolerance() {
        let class = |effect| {
            let found =
                classified(FIT, &[("A", &ask(1), 1.0, &[("a=1", 1.0)]), ("B", &ask(2), 32.0, &[("a=1", effect)])]);
            assert_eq!(found[0], (Class::Fitted, vec![]));
            found[1].clone()
        };
        assert_eq!(class(1.0), (Class::Identity, vec!["A".to_owned()]));
        assert_eq!(class(0.981).0, Class::Identity);
        assert_eq!(class(0.979), (Class::Predicted, vec![]));
    }

    #[test]
    fn a_row_that_one_more_value_moves_is_predicted() {
        let effects: &[(&str, f64)] = &[("a=1", 1.0), ("b=true", 0.03)];
        let found = classified(FIT, &[("A", &ask(1), 1.0, &[("a=1", 1.0)]), ("B", &ask(2), 1.0, effects)]);
        assert_eq!(found[1].0, Class::Predicted);
        let found = classified(
            FIT,
            &[("A", &ask(1), 1.0, effects), ("B", &ask(2), 1.0, &[("a=1", 1.0), ("b=true", f64::NAN)])],
        );
        assert_eq!(found[1].0, Class::Identity, "a step without a value says nothing");
    }

    #[test]
    fn the_same_question_is_an_identity_without_any_effect() {
        let found = classified(FIT, &[("A", &ask(1), 1.0, &[]), ("B", &ask(1), 1.0, &[]), ("C", &ask(2), 1.0, &[])]);
        assert_eq!(found[1], (Class::Identity, vec!["A".to_owned()]));
        assert_eq!(found[2], (Class::Predicted, vec![]));
    }

    #[test]
    fn a_sum_of_two_fitted_times_is_an_identity_in_value_and_effects() {
        let fit = FIT.replace("[\"A\"]", "[\"A\", \"B\"]");
        let class = |value, effect| {
            let rows: [TestRow<'_>; 3] = [
                ("A", &ask(1), 100.0, &[("a=1", 1.0)]),
                ("B", &ask(2), 300.0, &[("b=1", 1.0)]),
                ("C", &ask(3), value, &[("a=1", 0.25), ("b=1", effect)]),
            ];
            classified(&fit, &rows)[2].0
        };
        assert_eq!(class(400.0, 0.75), Class::Identity);
        assert_eq!(class(407.0, 0.75), Class::Identity);
        assert_eq!(class(410.0, 0.75), Class::Predicted, "the value is another one");
        assert_eq!(class(400.0, 0.78), Class::Predicted, "the effects are others");
    }

    #[test]
    fn arithmetic_adds_nothing_to_its_inputs() {
        let none: &[(&str, f64)] = &[];
        let rows: [TestRow<'_>; 7] = [
            ("A", &ask(1), 1.0, &[("a=1", 1.0)]),
            ("B", "given = true", 1.0, none),
            ("C", &ask(2), 1.0, &[("b=1", 1.0)]),
            ("D", "derive = \"2*B\"", 1.0, none),
            ("E", "derive = \"A/B\"", 1.0, &[("a=1", 2.0)]),
            ("F", "derive = \"C/A\"", 1.0, &[("b=1", 1.0), ("a=1", -1.0)]),
            ("G", "derive = \"6.4*60\"", 1.0, none),
        ];
        let found = classified(FIT, &rows);
        let classes: Vec<Class> = found.iter().map(|row| row.0).collect();
        let expected = [
            Class::Fitted,
            Class::Given,
            Class::Predicted,
            Class::Given,
            Class::Identity,
            Class::Predicted,
            Class::Given,
        ];
        assert_eq!(classes, expected);
        assert_eq!(found[5].1, ["C"], "the ratio of a predicted and a fitted row");
    }

    #[test]
    fn a_plateau_is_one_predicted_row() {
        let rows: [TestRow<'_>; 3] = [
            ("A", &ask(1), 1.0, &[("a=1", 1.0)]),
            ("B", &ask(2), 1.0, &[("a=1", 1.0)]),
            ("C", &ask(3), 1.0, &[("a=1", 0.9)]),
        ];
        let found = classified("", &rows);
        assert!(found.iter().all(|row| row.0 == Class::Predicted));
        assert_eq!([&found[0].1[..], &found[1].1[..], &found[2].1[..]], [&[][..], &["A".to_owned()][..], &[][..]]);
    }

    #[test]
    fn the_origin_of_a_value_names_its_row() {
        // core.memory_load_ns of this platform is taken from T16, and region.sram.read_ns is fitted to T7.
        let rows: [TestRow<'_>; 4] = [
            ("T16:local", &ask(1), 1.0, &[("core.memory_load_ns=68", 1.0)]),
            ("T16:remote", &ask(2), 1.0, &[("core.memory_load_ns=68", 0.5), ("core.clock_ghz=3", 0.5)]),
            ("T7", &ask(3), 1.0, &[("region.sram.read_ns=208", 1.0)]),
            ("T6", &ask(4), 1.0, &[("region.registers.read_ns=143", 1.0)]),
        ];
        let classes: Vec<Class> = classified("", &rows).into_iter().map(|row| row.0).collect();
        assert_eq!(classes, [Class::Given, Class::Fitted, Class::Fitted, Class::Predicted]);
        assert!(names_row(&Origin::Given("T16: local memory".to_owned()), "T16:local"));
        assert!(!names_row(&Origin::Given("T16: local memory".to_owned()), "T1"));
        assert!(!names_row(&Origin::Given("a map: of ports".to_owned()), "map:1"), "a word is no figure");
        assert!(!names_row(&Origin::Given("F1 instance types".to_owned()), "F1:burst:64"), "a table is no cell");
    }

    #[test]
    fn a_bound_beyond_the_next_whole_number_is_no_dependency() {
        // Half of the lanes would be the bound of B; A depends on more lanes too.
        let lanes: [&[(&str, f64)]; 3] = [
            &[("a=1", 1.0), ("link.width_lanes=12", -0.4), ("link.width_lanes=4", -1.5)],
            &[("a=1", 1.0), ("link.width_lanes=4", -1.5)],
            &[("a=1", 1.0)],
        ];
        let rows = [("A", &*ask(1), 1.0, lanes[0]), ("B", &ask(2), 1.0, lanes[1]), ("C", &ask(3), 1.0, lanes[2])];
        let found = classified("", &rows);
        assert_eq!([&found[0].1[..], &found[1].1[..]], [&[] as &[String], &[]]);
        assert_eq!(found[2].1, ["B"]);
    }

    #[test]
    fn a_rule_and_an_unanswered_row_have_their_own_classes() {
        let found = classified("", &[("A", "later = \"no\"", 1.0, &[]), ("B", "rules = [\"r\"]", 1.0, &[])]);
        assert_eq!([found[0].0, found[1].0], [Class::Unanswered, Class::Rule]);
    }
}
