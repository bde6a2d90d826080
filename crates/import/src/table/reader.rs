//! Figures that a reader collects from the output of a tool.

use super::rows::{LARGEST_BYTES, MOST_ROWS, Reading, Row, Table, TableError, dma_question};
use super::units::checked;
use lanemark_method::Reach;

/// The figures that were read so far, and what was left out.
pub(super) struct Reader {
    table: Table,
    waited: Vec<Waited>,
}

/// Note for transfers that a tool waits for.
const WAITED_FOR: &str =
    "the tool waits for each transfer: up to 10 % of the time of each figure is the driver call or the command";

/// Largest share that a driver call may have of the time of a figure.
const MOST_OF_CALL: f64 = 0.1;

/// A transfer that a tool waits for.
struct Waited {
    line: usize,
    question: &'static str,
    size_bytes: u64,
    bytes_per_s: f64,
}

impl Waited {
    /// Time of one transfer with its call, in nanoseconds.
    fn time_ns(&self) -> f64 {
        self.size_bytes as f64 / self.bytes_per_s * 1e9
    }
}

/// Largest transfer of a stream, in words.
const SHORTENED: &str = "transfers above 16 MiB are read as 16 MiB: the rate of a stream hardly depends on its length";

impl Reader {
    pub(super) fn new(file: &str) -> Reader {
        Reader {
            table: Table { file: file.to_owned(), rows: Vec::new(), reading: Reading::default() },
            waited: Vec::new(),
        }
    }

    /// An error at a line of the file.
    pub(super) fn wrong(&self, line: usize, message: impl Into<String>) -> TableError {
        TableError { file: self.table.file.clone(), line, message: in_one_line(message.into()) }
    }

    /// Adds a bandwidth in bytes per second.
    pub(super) fn rate(
        &mut self,
        line: usize,
        question: &str,
        size_bytes: u64,
        bytes_per_s: f64,
        outstanding: Option<u32>,
    ) -> Result<(), TableError> {
        let row = self.row(line, question, size_bytes, bytes_per_s, outstanding)?;
        self.table.rows.push(row);
        Ok(())
    }

    fn row(
        &self,
        line: usize,
        question: &str,
        size_bytes: u64,
        bytes_per_s: f64,
        outstanding: Option<u32>,
    ) -> Result<Row, TableError> {
        if self.table.rows.len() == MOST_ROWS {
            let message = format!("a table has at most {MOST_ROWS} rows; about ten sizes per question are enough");
            return Err(self.wrong(line, message));
        }
        let row = dma_question(question).and_then(|question| {
            let figure = checked(bytes_per_s, question)?;
            let reach = Reach { outstanding, ..Reach::default() };
            Row { reach, ..Row::new(line, question.name, size_bytes, figure) }.checked(question)
        });
        row.map_err(|message| self.wrong(line, message))
    }

    /// Adds the bandwidth of a stream. One longer than the largest size of a table has the rate of that size.
    pub(super) fn stream(
        &mut self,
        line: usize,
        question: &str,
        size_bytes: u64,
        bytes_per_s: f64,
    ) -> Result<(), TableError> {
        if size_bytes > LARGEST_BYTES {
            self.note(SHORTENED);
        }
        self.rate(line, question, size_bytes.min(LARGEST_BYTES), bytes_per_s, None)
    }

    /// Adds a transfer that the tool waits for, a bandwidth in bytes per second. [`Reader::finish`] uses it if the
    /// driver call takes a small part of its time.
    pub(super) fn waited(&mut self, line: usize, question: &'static str, size_bytes: u64, bytes_per_s: f64) {
        self.waited.push(Waited { line, question, size_bytes, bytes_per_s });
    }

    /// Adds those transfers that take much longer than the shortest one of their direction. The time of the driver call
    /// is at most the time of that one.
    fn add_waited(&mut self) -> Result<(), TableError> {
        let waited = std::mem::take(&mut self.waited);
        for one in &waited {
            let of_question = waited.iter().filter(|other| other.question == one.question);
            let shortest = of_question.map(Waited::time_ns).fold(f64::INFINITY, f64::min);
            let share = shortest / one.time_ns();
            let outstanding = (one.question == "dma_read_bandwidth").then_some(1);
            let row = self.row(one.line, one.question, one.size_bytes, one.bytes_per_s, outstanding)?;
            if share <= MOST_OF_CALL {
                self.table.rows.push(row);
                self.note(WAITED_FOR);
            } else {
                let (percent, call) = (100.0 * share, shortest / 1e3);
                self.refuse(
                    one.line,
                    format!(
                        "the tool waits for each transfer, and up to {percent:.0} % of its time is the driver call or the command: \
                         at most the {call:.1} us of the shortest one; measure 4 KiB, and sizes that take ten times as long"
                    ),
                );
            }
        }
        self.table.reading.refused.sort_by_key(|(line, _)| *line);
        self.table.rows.sort_by_key(|row| row.line);
        Ok(())
    }

    /// Counts a line of another kind.
    pub(super) fn skip(&mut self) {
        self.table.reading.skipped_lines += 1;
    }

    /// Leaves out a figure that no question has.
    pub(super) fn refuse(&mut self, line: usize, because: impl Into<String>) {
        self.table.reading.refused.push((line, in_one_line(because.into())));
    }

    /// Adds a note about all figures, once.
    pub(super) fn note(&mut self, note: &'static str) {
        if !self.table.reading.notes.contains(&note) {
            self.table.reading.notes.push(note);
        }
    }

    /// The table.
    ///
    /// # Errors
    /// [`TableError`] if there is no figure, with `looked_for` and the reason of the first figure that was left out.
    pub(super) fn finish(mut self, looked_for: &str) -> Result<Table, TableError> {
        self.add_waited()?;
        if !self.table.rows.is_empty() {
            return Ok(self.table);
        }
        match self.table.reading.refused.first() {
            Some((line, because)) => {
                let count = self.table.reading.refused.len();
                Err(self.wrong(*line, format!("none of the {count} figures found can be used: {because}")))
            }
            None => Err(self.wrong(1, format!("no figure found: looked for {looked_for}"))),
        }
    }
}

/// A number of a tool: digits with at most one point, above 0; `None` for other text, such as `nan`.
pub(crate) fn positive(text: &str) -> Option<f64> {
    let is_plain = text.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.parse().ok().filter(|value: &f64| is_plain && value.is_finite() && *value > 0.0)
}

/// Whether two figures of one line agree within `share`.
pub(super) fn agree(one: f64, other: f64, share: f64) -> bool {
    (one - other).abs() <= share * one.max(other)
}

/// Number of lines before a JSON document, and the document, or line and message of its error.
type Document = (usize, Result<serde_json::Value, (usize, String)>);

/// The JSON document that begins at the first line that starts with `{`, and the number of lines before it.
///
/// `None` if there is no such line.
pub(crate) fn json(text: &str) -> Option<Document> {
    let mut start = 0;
    for (before, line) in text.split_inclusive('\n').enumerate() {
        if line.trim_start().starts_with('{') {
            let mut documents = serde_json::Deserializer::from_str(&text[start..]).into_iter();
            let found = documents.next()?;
            let found = found.map_err(|error: serde_json::Error| {
                // The position of serde_json counts from the start of the document, and may be behind the last line.
                let line = (before + error.line().max(1)).min(text.lines().count());
                let message = error.to_string();
                let what = message.split(" at line ").next().unwrap_or_default();
                (line, format!("invalid JSON: {what}; is the file complete?"))
            });
            return Some((before, found));
        }
        start += line.len();
    }
    None
}

/// The lines of the occurrences of the JSON key `key`, from 1.
pub(crate) fn lines_of_key(text: &str, key: &str) -> Vec<usize> {
    let key = format!("\"{key}\"");
    let is_key = |rest: &str| rest.trim_start().starts_with(':');
    let count = |line: &str| line.match_indices(&key).filter(|(at, _)| is_key(&line[at + key.len()..])).count();
    (1..).zip(text.lines()).flat_map(|(number, line)| std::iter::repeat_n(number, count(line))).collect()
}

/// The message with control characters as escapes: text of a JSON file may contain line breaks.
pub(crate) fn in_one_line(message: String) -> String {
    if !message.contains(char::is_control) {
        return message;
    }
    let escaped =
        |letter: char| if letter.is_control() { letter.escape_default().to_string() } else { letter.to_string() };
    message.chars().map(escaped).collect()
}
