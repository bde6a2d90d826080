//! A table of the fastest methods for many small copies, from the answers of a record.

use lanemark_copy_plan::{CopyPoint, CopyTable, TableError};
use lanemark_method::Method;
use lanemark_record::{Record, Runtime};

/// A record from which no table of copies can be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoCopyTable {
    /// The record has the question for several targets.
    #[error("small_copies was answered by {0}: make a table for each target alone, with one --on")]
    Several(String),
    /// The answers are no table.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// Makes a table of the median times of `small_copies`; the target of the answers is its machine, with the reason why it
/// is no card, if there is one.
///
/// # Errors
/// [`NoCopyTable`].
pub fn copy_table(record: &Record) -> Result<CopyTable, NoCopyTable> {
    let mut targets: Vec<&str> = Vec::new();
    let mut points = Vec::new();
    for answer in &record.answers {
        let Method::SmallCopies { direction, copies, by } = answer.method else { continue };
        let Some(latency) = &answer.latency_ns else { continue };
        if !targets.contains(&answer.target.as_str()) {
            targets.push(&answer.target);
        }
        points.push(CopyPoint { direction, by, copies, size_bytes: answer.size_bytes, ns: latency.median });
    }
    if targets.len() > 1 {
        return Err(NoCopyTable::Several(targets.join(" and ")));
    }
    let summary = |name: &&str| record.targets.iter().find(|target| target.name == *name);
    let machine = targets.first().map_or_else(String::new, |name| {
        let Some(target) = summary(name) else { return (*name).to_owned() };
        let no_card = target.runtime.as_ref().and_then(Runtime::no_card_because);
        let doubt = no_card.map_or_else(String::new, |because| format!(" ({because})"));
        format!("{name}: {}{doubt}", target.summary)
    });
    Ok(CopyTable::new(machine, points)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{answer, record, target};
    use lanemark_method::{CopyBy, CopyDirection};
    use lanemark_record::{Answer, DeviceKind, Summary, TargetKind};

    fn timed(by: CopyBy, ns: &[f64]) -> Answer {
        let method = Method::SmallCopies { direction: CopyDirection::ToDevice, copies: 8, by };
        Answer { method, latency_ns: Summary::of(ns), ..answer("8", 64, None) }
    }

    #[test]
    fn the_points_are_the_medians_of_the_answers() {
        let other = answer("8", 64, None);
        let table = copy_table(&record(vec![timed(CopyBy::Loop, &[7.0, 5.0, 90.0]), other])).unwrap();
        let direction = CopyDirection::ToDevice;
        let point = CopyPoint { direction, by: CopyBy::Loop, copies: 8, size_bytes: 64, ns: 7.0 };
        assert_eq!(table.points, [point]);
    }

    #[test]
    fn a_table_of_an_emulated_device_says_so() {
        let mut record = record(vec![timed(CopyBy::Loop, &[7.0])]);
        record.targets = vec![target(TargetKind::Emulated)];
        assert!(!copy_table(&record).unwrap().machine.contains("emulated"));
        let runtime = Runtime { device_kind: DeviceKind::Gpu, is_emulated: true, software: None };
        record.targets[0].runtime = Some(runtime);
        let machine = copy_table(&record).unwrap().machine;
        assert!(machine.ends_with(" (the device is emulated: timings are not meaningful)"), "{machine}");
    }

    #[test]
    fn a_record_without_the_question_or_with_two_targets_is_refused() {
        let empty = copy_table(&record(vec![answer("8", 64, None)])).unwrap_err();
        assert!(empty.to_string().contains("has no points"), "{empty}");
        let other = Answer { target: "other".to_owned(), ..timed(CopyBy::Batch, &[1.0]) };
        let several = copy_table(&record(vec![timed(CopyBy::Loop, &[1.0]), other])).unwrap_err().to_string();
        assert!(several.contains("and other: make a table for each target alone"), "{several}");
    }
}
