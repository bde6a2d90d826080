//! A record's answers as data for the parameters of a platform.

use crate::Parameter;
use lanemark_bench::{Axes, Case, Effort, Question, ask, question};
use lanemark_machine::Machine;
use lanemark_platform::{Origin, Platform};
use lanemark_record::{Answer, Record};
use lanemark_sim::SimulatedMachine;

/// Answers of one target of a record, asked again of a platform while some of its numbers are varied.
#[derive(Clone)]
pub struct OfRecord {
    platform: Platform,
    keys: Vec<String>,
    data: Vec<Datum>,
}

#[derive(Clone)]
struct Datum {
    question: &'static Question,
    case: Case,
    passes: u64,
    measured: f64,
    name: String,
}

/// Why a record cannot be fitted to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OfRecordError {
    /// Several targets, or one that is not there.
    #[error("the record has answers of {targets}: name one of them")]
    WhichTarget {
        /// Those it has.
        targets: String,
    },
    /// A key that is no number of the platform.
    #[error(
        "{platform} has no number '{key}': use a path such as root_complex.core_round_trip_ns or region.NAME.read_ns"
    )]
    Key {
        /// Which platform.
        platform: String,
        /// What was asked for.
        key: String,
    },
    /// A key whose numbers are whole.
    #[error("'{key}' is a whole number in {platform}, and a fit takes small steps: fit times, rates and cycles")]
    Whole {
        /// Which platform.
        platform: String,
        /// What was asked for.
        key: String,
    },
    /// Nothing in the record can be asked of the platform.
    #[error(
        "none of the {answers} answers can be asked of {platform}: it has other regions, instructions or memory types"
    )]
    Nothing {
        /// Answers of the target.
        answers: usize,
        /// Which platform.
        platform: String,
    },
}

impl OfRecord {
    /// The answers of `target` (or of the only one), to vary `keys` of `platform`.
    ///
    /// # Errors
    /// [`OfRecordError`] if target or key are not there, or no answer can be asked of the platform.
    pub fn new(
        record: &Record,
        target: Option<&str>,
        platform: &Platform,
        keys: &[String],
    ) -> Result<OfRecord, OfRecordError> {
        let mut targets: Vec<&str> = Vec::new();
        for answer in &record.answers {
            if !targets.contains(&answer.target.as_str()) {
                targets.push(&answer.target);
            }
        }
        let target = match (target, targets.as_slice()) {
            (Some(name), names) if names.contains(&name) => name,
            (None, [only]) => only,
            _ => return Err(OfRecordError::WhichTarget { targets: targets.join(", ") }),
        };
        let mut distinct: Vec<String> = Vec::new();
        for key in keys {
            let (name, key) = (platform.name.clone(), key.clone());
            match platform.number(&key) {
                None => return Err(OfRecordError::Key { platform: name, key }),
                Some((now, origin)) if platform.with(&key, now + now.max(1.0) / 8192.0, origin.clone()).is_err() => {
                    return Err(OfRecordError::Whole { platform: name, key });
                }
                Some(_) if distinct.contains(&key) => {}
                Some(_) => distinct.push(key),
            }
        }
        let answers: Vec<&Answer> = record.answers.iter().filter(|answer| answer.target == target).collect();
        let data: Vec<Datum> = answers.iter().filter_map(|answer| datum(platform, answer)).collect();
        if data.is_empty() {
            return Err(OfRecordError::Nothing { answers: answers.len(), platform: platform.name.clone() });
        }
        Ok(OfRecord { platform: platform.clone(), keys: distinct, data })
    }

    /// The keys as parameters, from a tenth to ten times of what the platform has now.
    #[must_use]
    pub fn parameters(&self) -> Vec<Parameter> {
        let parameter = |key: &String| {
            let start = self.platform.number(key).map_or(0.0, |number| number.0);
            Parameter { name: key.clone(), start, low: start / 10.0, high: start * 10.0 }
        };
        self.keys.iter().map(parameter).collect()
    }

    /// What each residual is about.
    pub fn data(&self) -> impl Iterator<Item = &str> {
        self.data.iter().map(|datum| datum.name.as_str())
    }

    /// The natural logarithm of simulated over measured, for each answer, with these values of the keys:
    /// twice too much weighs as heavily as half of it.
    ///
    /// # Errors
    /// What the platform or the simulation says against the values.
    pub fn residuals(&self, values: &[f64]) -> Result<Vec<f64>, String> {
        let mut platform = self.platform.clone();
        for (key, value) in self.keys.iter().zip(values) {
            let origin = Origin::FittedTo(vec!["a record".to_owned()]);
            platform = platform.with(key, *value, origin).map_err(|error| error.to_string())?;
        }
        let mut machine = SimulatedMachine::new(&platform).map_err(|error| error.to_string())?;
        let mut residual = |datum: &Datum| {
            let effort = Effort { simulated_passes: Some(datum.passes), ..Effort::default() };
            let answer = ask(datum.question, &mut machine, &datum.case, &effort).map_err(|error| error.to_string())?;
            let simulated = headline(&answer).ok_or("the simulation gave no figure")?;
            Ok((simulated / datum.measured).ln())
        };
        self.data.iter().map(&mut residual).collect()
    }
}

/// The figure an answer is about.
fn headline(answer: &Answer) -> Option<f64> {
    let summary = answer.delivered_rate_bytes_per_s.or(answer.latency_ns)?;
    Some(summary.median).filter(|median| *median > 0.0)
}

/// The most passes that are simulated again; a real sample has as many as its timer needs.
const MOST_PASSES: u64 = 64;

fn datum(platform: &Platform, answer: &Answer) -> Option<Datum> {
    let question = question(&answer.question)?;
    let machine = SimulatedMachine::new(platform).ok()?;
    let axes = Axes {
        sizes: (answer.way.through == "user").then(|| vec![answer.size_bytes]),
        memory_types: Some(vec![answer.way.memory_type.parse().ok()?]),
        accesses: Some(vec![answer.way.access.parse().ok()?]),
        fences: Some(vec![answer.way.fence.as_ref().map(|name| name.parse()).transpose().ok()?]),
        alignments: Some(vec![answer.alignment_bytes]),
        region: None,
    };
    let case = (question.cases)(machine.facts(), &axes)
        .into_iter()
        .find(|case| case.way() == answer.way && case.size == answer.size_bytes)?;
    Some(Datum {
        question,
        case,
        passes: answer.passes.clamp(1, MOST_PASSES),
        measured: headline(answer)?,
        name: format!("{} {} {} B", answer.question, answer.way, answer.size_bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit;
    use lanemark_record::Record;

    const ROUND_TRIP: &str = "root_complex.core_round_trip_ns";

    fn card(round_trip: f64) -> Platform {
        let card = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
        card.with(ROUND_TRIP, round_trip, Origin::Given("a test".to_owned())).unwrap()
    }

    /// What a card answers to 8 B stores of three sizes to UC and WC memory.
    fn record(card: &Platform) -> Record {
        let mut machine = SimulatedMachine::new(card).unwrap();
        let question = question("mmio_write_bandwidth").unwrap();
        let axes = Axes {
            sizes: Some(vec![64, 256, 1024]),
            accesses: Some(vec!["8".parse().unwrap()]),
            memory_types: Some(vec!["uc".parse().unwrap(), "wc".parse().unwrap()]),
            ..Axes::default()
        };
        let cases = (question.cases)(machine.facts(), &axes);
        let answers = cases.iter().map(|case| ask(question, &mut machine, case, &Effort::default()).unwrap()).collect();
        Record { answers, ..Record::new(vec![]) }
    }

    #[test]
    fn the_number_a_record_was_made_with_is_recovered() {
        let made_with = record(&card(217.0));
        let problem = OfRecord::new(&made_with, None, &card(120.0), &[ROUND_TRIP.to_owned()]).unwrap();
        assert_eq!(problem.data().count(), 6);
        let found = fit(&problem.parameters(), |values| problem.residuals(values)).unwrap();
        assert!((found.found[0].value - 217.0).abs() < 0.5, "{found:?}");
    }

    #[test]
    fn a_target_or_key_that_is_not_there_is_refused() {
        let made_with = record(&card(120.0));
        let new = |target, key: &str| OfRecord::new(&made_with, target, &card(120.0), &[key.to_owned()]).err();
        assert!(matches!(new(Some("other"), ROUND_TRIP), Some(OfRecordError::WhichTarget { .. })));
        assert!(matches!(new(None, "link.speed"), Some(OfRecordError::Key { .. })));
        assert!(matches!(new(None, "core.wc_buffers"), Some(OfRecordError::Whole { .. })));
        assert_eq!(new(Some("card-gen5-x16"), ROUND_TRIP), None);
    }
}
