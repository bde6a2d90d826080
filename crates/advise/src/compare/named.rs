//! Records with names.

use lanemark_record::{Answer, Record, TargetKind};

/// A record, and its name in messages, such as its file.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// The name.
    pub name: &'a str,
    /// The record.
    pub record: &'a Record,
}

pub(super) fn question(answer: &Answer) -> &str {
    &answer.question
}

pub(super) fn target(answer: &Answer) -> &str {
    &answer.target
}

/// Distinct names of questions or targets of some records.
pub(super) fn names<'a>(records: &[Named<'a>], of: fn(&Answer) -> &str) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for answer in records.iter().flat_map(|one| &one.record.answers) {
        if !names.contains(&of(answer)) {
            names.push(of(answer));
        }
    }
    names
}

pub(super) fn kind(record: &Record, name: &str) -> Option<TargetKind> {
    record.targets.iter().find(|target| target.name == name).map(|target| target.kind)
}
