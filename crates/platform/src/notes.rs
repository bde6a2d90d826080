//! Collects problems while a file is read.

use crate::problem::Problem;
use crate::unknown::Unknown;

/// Collects problems while a file is read.
pub(crate) struct Notes<'a> {
    file: &'a str,
    /// Start of each line but the first, in bytes.
    starts: Vec<usize>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) unknowns: Vec<Unknown>,
}

impl<'a> Notes<'a> {
    pub(crate) fn new(file: &'a str, text: &[u8]) -> Notes<'a> {
        let newlines = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        Notes { file, starts: newlines.map(|(at, _)| at + 1).collect(), problems: Vec::new(), unknowns: Vec::new() }
    }

    pub(crate) fn line(&self, byte: usize) -> usize {
        self.starts.partition_point(|start| *start <= byte) + 1
    }

    pub(crate) fn at_byte(&mut self, byte: usize, key: String, message: String) {
        self.at_line(self.line(byte), key, message);
    }

    pub(crate) fn at_line(&mut self, line: usize, key: String, message: String) {
        self.problems.push(Problem { file: self.file.to_owned(), line, key, message });
    }

    /// The problems in the order of their lines.
    pub(crate) fn problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| problem.line);
        self.problems
    }
}
