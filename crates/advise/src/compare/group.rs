//! Answers of one side that correspond to each other.

use crate::compare::between_runs::{Figures, Unusable};
use crate::compare::named::{Named, kind};
use lanemark_record::{Alone, Answer, Side, TargetKind};

/// Whether two answers are of the same question, method, size, alignment, quantity and cores.
pub(crate) fn is_same(before: &Answer, after: &Answer) -> bool {
    before.question == after.question
        && before.method == after.method
        && before.size_bytes == after.size_bytes
        && before.alignment_bytes == after.alignment_bytes
        && before.quantity == after.quantity
        && before.cores() == after.cores()
}

/// The answers of the records of one side that correspond to each other.
pub(super) struct Group<'a> {
    /// The answers, each with the number of its record, from 1.
    pub(super) runs: Vec<(usize, &'a Answer)>,
    pub(super) is_simulated: bool,
}

/// Groups the answers of one side, in order of appearance.
pub(super) fn grouped<'a>(side: &[Named<'a>], are_single: bool) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (place, one) in side.iter().enumerate() {
        let number = place + 1;
        for answer in &one.record.answers {
            let is_here = |group: &&mut Group<'_>| {
                let other = group.answer();
                is_same(other, answer)
                    && (are_single || other.target == answer.target)
                    && group.runs.last().is_some_and(|(last, _)| *last != number)
            };
            match groups.iter_mut().find(is_here) {
                Some(group) => group.runs.push((number, answer)),
                None => groups.push(Group {
                    runs: vec![(number, answer)],
                    is_simulated: kind(one.record, &answer.target) == Some(TargetKind::Simulated),
                }),
            }
        }
    }
    groups
}

impl<'a> Group<'a> {
    /// The first of its answers.
    pub(super) fn answer(&self) -> &'a Answer {
        self.runs[0].1
    }

    pub(super) fn is_same(&self, after: &Group<'_>, are_single: bool) -> bool {
        let (before, after) = (self.answer(), after.answer());
        is_same(before, after) && (are_single || before.target == after.target)
    }

    pub(super) fn figures(&self) -> Result<Figures, Unusable> {
        Figures::of(self.runs.iter().map(|(_, answer)| &*answer.samples_ns).filter(|samples| !samples.is_empty()))
    }

    /// Number of records with samples.
    pub(super) fn measured(&self) -> u64 {
        self.runs.iter().filter(|(_, answer)| !answer.samples_ns.is_empty()).count() as u64
    }

    pub(super) fn doubts(&self, side: &str) -> Vec<String> {
        let of_run = |(number, answer): &(usize, &Answer)| {
            let run = if self.runs.len() == 1 { side.to_owned() } else { format!("{side}, record {number}") };
            answer.doubts.iter().map(move |doubt| format!("{run}: {}", doubt.text)).collect::<Vec<_>>()
        };
        self.runs.iter().flat_map(of_run).collect()
    }

    pub(super) fn alone(&self, side: Side) -> Alone {
        let answer = self.answer();
        Alone {
            side,
            question: answer.question.clone(),
            target: answer.target.clone(),
            method: answer.method.clone(),
            cores: answer.cores(),
            size_bytes: answer.size_bytes,
            alignment_bytes: answer.alignment_bytes,
        }
    }
}
