//! Collects problems while the files of a platform are read.

use crate::document::Member;
use crate::lesser::Lesser;
use crate::problem::Problem;
use crate::unknown::Unknown;

/// Name and lines of one file.
struct Lines<'a> {
    file: &'a str,
    /// Position of its first byte; the files follow each other.
    offset: usize,
    /// Position of each line but the first.
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(file: &'a str, text: &[u8], offset: usize) -> Lines<'a> {
        let newlines = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        Lines { file, offset, starts: newlines.map(|(at, _)| offset + at + 1).collect() }
    }
}

/// Collects problems while the files of a platform are read. A position counts bytes over all files.
pub(crate) struct Notes<'a> {
    files: Vec<Lines<'a>>,
    /// Lines of the first file that name another file, with that name.
    references: Vec<(usize, &'a str)>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) unknowns: Vec<Unknown>,
    pub(crate) lesser: Vec<Lesser>,
}

impl<'a> Notes<'a> {
    /// Notes for a text without other files.
    pub(crate) fn new(file: &'a str, text: &[u8]) -> Notes<'a> {
        let files = vec![Lines::new(file, text, 0)];
        Notes { files, references: Vec::new(), problems: Vec::new(), unknowns: Vec::new(), lesser: Vec::new() }
    }

    /// Notes for all files of a platform, and the position of the first byte of each.
    pub(crate) fn of(members: &'a [Member]) -> (Notes<'a>, Vec<usize>) {
        let mut notes = Notes::new("", b"");
        notes.files.clear();
        let mut offset = 0;
        for member in members {
            let text = member.document.text.as_bytes();
            notes.files.push(Lines::new(&member.document.file, text, offset));
            offset += text.len() + 1;
        }
        let names = members.first().map_or(&[][..], |first| &first.names[..]);
        notes.references =
            names.iter().filter_map(|(_, at)| members.get(*at)).map(|one| (one.line, one.name.as_str())).collect();
        let offsets = notes.files.iter().map(|lines| lines.offset).collect();
        (notes, offsets)
    }

    /// The file of a position; there is at least one.
    fn file(&self, position: usize) -> Option<&Lines<'a>> {
        self.files.iter().rfind(|lines| lines.offset <= position)
    }

    /// Line of a position in its file.
    pub(crate) fn line(&self, position: usize) -> usize {
        self.file(position).map_or(0, |lines| lines.starts.partition_point(|start| *start <= position) + 1)
    }

    pub(crate) fn at_byte(&mut self, position: usize, key: String, message: String) {
        let line = self.line(position);
        let file = self.file(position).map_or("", |lines| lines.file).to_owned();
        self.problems.push(Problem { file, line, key, message });
    }

    /// Notes a problem in a line of the first file. The line of an inherited value is that of the name of its file.
    pub(crate) fn at_line(&mut self, line: usize, key: String, mut message: String) {
        if let Some((_, name)) = self.references.iter().find(|(of, _)| *of == line) {
            message = format!("{message} (the value is from {name}; write the key in this file to change it)");
        }
        let file = self.files.first().map_or("", |lines| lines.file).to_owned();
        self.problems.push(Problem { file, line, key, message });
    }

    /// The problems in the order of their lines, those of the first file first.
    pub(crate) fn problems(self) -> Vec<Problem> {
        let (files, mut problems) = (self.files, self.problems);
        let place = |problem: &Problem| files.iter().position(|lines| lines.file == problem.file);
        problems.sort_by_key(|problem| (place(problem), problem.line));
        problems
    }
}
