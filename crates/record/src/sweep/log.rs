//! The log of a sweep: one JSON line per point, appended when the point has its figure.
//!
//! Every line is a [`SweepRow`] as a JSON object whose first member is `key`. There is no header line, and the order of
//! lines has no meaning. A line that is in the log twice counts once, so that logs can be joined; two lines with the same
//! key and another content are an error. [`sweep_log_schema`] is the JSON Schema of a line.
//!
//! A line is written with its line break in one call, so that a killed program leaves at most one incomplete line, the
//! last. It is removed when the log is opened again. The log is locked while it is open for writing.

use crate::file::{RecordError, json_problem};
use crate::sweep::row::SweepRow;
use std::collections::{HashMap, HashSet};
use std::fs::{File, TryLockError};
use std::hash::{DefaultHasher, Hasher};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// Begin of every line of a log.
const BEGIN: &[u8] = b"{\"key\"";

/// Longest line of a log, in bytes, with its line break.
const LONGEST: usize = 1 << 20;

/// Digits of a key.
const KEY_DIGITS: usize = 32;

/// A log of a sweep that is open for writing, and locked.
#[derive(Debug)]
pub struct SweepLog {
    file: File,
    path: PathBuf,
    /// Length of the complete lines.
    len: u64,
    done: HashSet<u128>,
    without_figure: HashSet<u128>,
}

impl SweepLog {
    /// Opens the log at `path`, or creates it, and locks it. An incomplete last line is removed.
    ///
    /// # Errors
    /// [`RecordError::Locked`] if another process has it open; [`RecordError::Malformed`], with the line, if a
    /// complete line is not one of a log, or an incomplete one cannot become one: the file is then unchanged;
    /// [`RecordError::Os`] otherwise, also if it is not a regular file.
    pub fn open(path: &Path) -> Result<SweepLog, RecordError> {
        let os = |doing| move |source| RecordError::Os { doing, path: path.to_owned(), source };
        refuse_special(path)?;
        let mut options = File::options();
        let mut file = options.read(true).append(true).create(true).open(path).map_err(os("opening the log"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(RecordError::Locked { path: path.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(os("locking")(source)),
        }
        let (mut done, mut without_figure) = (HashSet::new(), HashSet::new());
        let len = each_row(&mut file, path, &mut |key, row| {
            done.insert(key);
            if row.because.is_some() {
                without_figure.insert(key);
            }
        })?;
        if file.metadata().map_err(os("reading"))?.len() > len {
            file.set_len(len).map_err(os("removing the incomplete last line of"))?;
        }
        Ok(SweepLog { file, path: path.to_owned(), len, done, without_figure })
    }

    /// The keys of all points in the log.
    #[must_use]
    pub fn done(&self) -> &HashSet<u128> {
        &self.done
    }

    /// The keys of the points that had a reason instead of a figure when the log was opened.
    #[must_use]
    pub fn without_figure(&self) -> &HashSet<u128> {
        &self.without_figure
    }

    /// Appends these rows, each as one line, in one call. After an error the log has none or some of them, all
    /// complete.
    ///
    /// # Errors
    /// [`RecordError::Os`] if the log cannot be written; [`RecordError::Unwritable`] for a row that JSON cannot
    /// represent, or whose line is longer than 1 MiB.
    pub fn append(&mut self, rows: &[SweepRow]) -> Result<(), RecordError> {
        let mut lines = Vec::with_capacity(rows.len() * 512);
        for row in rows {
            let unwritable = |reason: String| RecordError::Unwritable {
                path: self.path.clone(),
                reason: format!("point {}: {reason}", row.key),
            };
            let begin = lines.len();
            serde_json::to_writer(&mut lines, row).map_err(|error| unwritable(error.to_string()))?;
            lines.push(b'\n');
            if lines.len() - begin > LONGEST {
                return Err(unwritable("its line would be longer than 1 MiB".to_owned()));
            }
        }
        match self.file.write_all(&lines) {
            Ok(()) => {
                self.len += lines.len() as u64;
                self.done.extend(rows.iter().filter_map(|row| key(&row.key)));
                Ok(())
            }
            Err(source) => {
                // If this fails too, the next start removes the incomplete line.
                let _ = self.file.set_len(self.len);
                Err(RecordError::Os { doing: "writing", path: self.path.clone(), source })
            }
        }
    }

    /// Writes all lines to the disk.
    ///
    /// # Errors
    /// [`RecordError::Os`].
    pub fn sync(&self) -> Result<(), RecordError> {
        let os = |source| RecordError::Os { doing: "writing", path: self.path.clone(), source };
        self.file.sync_data().map_err(os)
    }
}

impl Drop for SweepLog {
    fn drop(&mut self) {
        // A process that was forked meanwhile has the file open, too, and would keep the lock.
        let _ = self.file.unlock();
    }
}

/// Reads the log at `path`, without a lock, and passes each row to `each`. An incomplete last line is skipped. A log
/// that is being written can be read.
///
/// # Errors
/// [`RecordError::Malformed`], with the line, for a complete line that is not one of a log; [`RecordError::Os`].
pub fn read_sweep_log(path: &Path, mut each: impl FnMut(SweepRow)) -> Result<(), RecordError> {
    refuse_special(path)?;
    let os = |source| RecordError::Os { doing: "opening the log", path: path.to_owned(), source };
    let mut file = File::open(path).map_err(os)?;
    each_row(&mut file, path, &mut |_, row| each(row))?;
    Ok(())
}

/// Whether the file at `path` begins as the log of a sweep; false for one that cannot be read.
#[must_use]
pub fn is_sweep_log(path: &Path) -> bool {
    let mut begin = [0; BEGIN.len()];
    // A pipe would lose what is read here.
    let is_file = std::fs::metadata(path).is_ok_and(|found| found.is_file());
    is_file && File::open(path).and_then(|mut file| file.read_exact(&mut begin)).is_ok() && begin == BEGIN
}

/// The JSON Schema of one line of a log, a [`SweepRow`], as text with a final newline.
#[must_use]
pub fn sweep_log_schema() -> String {
    let schema = schemars::schema_for!(SweepRow);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

/// Refuses everything except a regular file or a path without a file: a FIFO would block.
fn refuse_special(path: &Path) -> Result<(), RecordError> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            let source = std::io::Error::other("it is a folder, a pipe or a device; use a regular file");
            Err(RecordError::Os { doing: "opening the log", path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

/// Passes the row of each different complete line, with its key as a number, to `each`. Returns the length of the complete lines.
fn each_row(file: &mut File, path: &Path, each: &mut dyn FnMut(u128, SweepRow)) -> Result<u64, RecordError> {
    let os = |source| RecordError::Os { doing: "reading", path: path.to_owned(), source };
    file.seek(SeekFrom::Start(0)).map_err(os)?;
    let mut lines = BufReader::with_capacity(1 << 20, file);
    let (mut len, mut number, mut line) = (0, 0, Vec::new());
    // Number and hash of the first line of each key.
    let mut first: HashMap<u128, (usize, u64)> = HashMap::new();
    loop {
        line.clear();
        number += 1;
        let read = lines.by_ref().take(LONGEST as u64).read_until(b'\n', &mut line).map_err(os)?;
        if read == 0 {
            return Ok(len);
        }
        if line.last() != Some(&b'\n') {
            // A longer line is none of a log.
            return if read < LONGEST && may_be_cut(&line) { Ok(len) } else { Err(not_a_log(path, number)) };
        }
        let text = std::str::from_utf8(&line).map_err(|_| not_a_log(path, number))?.trim_end();
        if !text.is_empty() && !text.as_bytes().starts_with(BEGIN) {
            return Err(not_a_log(path, number));
        }
        let row: SweepRow = serde_json::from_str(text).map_err(|error| malformed(path, number, &error))?;
        let key = key(&row.key).ok_or_else(|| not_a_key(path, number, &row.key))?;
        len += read as u64;
        let hash = hash(text);
        match first.get(&key) {
            None => {
                first.insert(key, (number, hash));
                each(key, row);
            }
            Some((_, same)) if *same == hash => {}
            Some((before, _)) => return Err(contradicts(path, number, *before)),
        }
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    hasher.finish()
}

/// A key as a number: 32 hexadecimal digits, so that equal keys are equal texts.
fn key(text: &str) -> Option<u128> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_key = text.len() == KEY_DIGITS && text.bytes().all(is_digit);
    if is_key { u128::from_str_radix(text, 16).ok() } else { None }
}

/// Whether a line without its end may be the beginning of a line of a log, so that removing it loses nothing: `{"key":"`,
/// 32 hexadecimal digits, `",` and anything, or less of it. Other writers may put spaces between.
fn may_be_cut(line: &[u8]) -> bool {
    let mut rest = line.iter().copied().filter(|byte| *byte != b' ');
    let digits = std::iter::repeat_n(None, KEY_DIGITS);
    let expected = BEGIN.iter().chain(b":\"").map(|byte| Some(*byte)).chain(digits);
    for expected in expected.chain(b"\",".iter().map(|byte| Some(*byte))) {
        let is_expected = match (rest.next(), expected) {
            (None, _) => return true,
            (Some(byte), Some(expected)) => byte == expected,
            (Some(byte), None) => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
        };
        if !is_expected {
            return false;
        }
    }
    true
}

const IS_A_LOG: &str = "each line of the log of a sweep is a JSON object that begins with {\"key\"";

fn not_a_log(path: &Path, line: usize) -> RecordError {
    let fix = if line == 1 { "use another file for the log" } else { "remove the line to run its point again" };
    let message = format!("this is not a line of a log; {IS_A_LOG}: {fix}");
    RecordError::Malformed { path: path.to_owned(), line, column: 1, message }
}

fn not_a_key(path: &Path, line: usize, key: &str) -> RecordError {
    let key: String = key.chars().take(KEY_DIGITS + 1).collect();
    let message = format!(
        "the key {key:?} must have {KEY_DIGITS} hexadecimal digits in lower case; remove the line to run its point again"
    );
    RecordError::Malformed { path: path.to_owned(), line, column: 1, message }
}

fn contradicts(path: &Path, line: usize, before: usize) -> RecordError {
    let message = format!(
        "the point of line {before} again, with another content; one of both was changed: remove both lines to run the \
         point again"
    );
    RecordError::Malformed { path: path.to_owned(), line, column: 1, message }
}

fn malformed(path: &Path, line: usize, error: &serde_json::Error) -> RecordError {
    let message = format!("{}; {IS_A_LOG}: remove the line to run its point again", json_problem(error));
    RecordError::Malformed { path: path.to_owned(), line, column: error.column().max(1), message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::row::SweptBy;

    fn row(key: u128) -> SweepRow {
        let row = SweepRow::without_figure(format!("{key:032x}"), "card".to_owned(), "q".to_owned(), SweptBy::Formulas);
        SweepRow { latency_ns: Some(key as f64), ..row }
    }

    fn rows(path: &Path) -> Vec<SweepRow> {
        let mut rows = Vec::new();
        read_sweep_log(path, |row| rows.push(row)).unwrap();
        rows
    }

    #[test]
    fn appended_rows_are_done_when_the_log_is_opened_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let mut log = SweepLog::open(&path).unwrap();
        assert!(log.done().is_empty());
        log.append(&[row(1), row(2)]).unwrap();
        log.append(&[row(u128::MAX)]).unwrap();
        log.sync().unwrap();
        drop(log);
        assert_eq!(rows(&path), [row(1), row(2), row(u128::MAX)]);
        let log = SweepLog::open(&path).unwrap();
        assert_eq!(*log.done(), HashSet::from([1, 2, u128::MAX]));
    }

    #[test]
    fn a_line_that_is_twice_in_a_log_counts_once_and_must_not_contradict_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let refused = SweepRow { because: Some("no such tag".to_owned()), ..row(2) };
        SweepLog::open(&path).unwrap().append(&[row(1), refused.clone(), row(1)]).unwrap();
        assert_eq!(rows(&path), [row(1), refused]);
        let log = SweepLog::open(&path).unwrap();
        assert_eq!((log.done().len(), log.without_figure()), (2, &HashSet::from([2])));
        drop(log);
        SweepLog::open(&path).unwrap().append(&[SweepRow { latency_ns: Some(2.0), ..row(1) }]).unwrap();
        let error = SweepLog::open(&path).unwrap_err().to_string();
        assert!(error.contains("line 4, column 1: the point of line 1 again, with another content"), "{error}");
        assert_eq!(error, read_sweep_log(&path, |_| {}).unwrap_err().to_string());
    }

    #[test]
    fn a_log_cut_at_any_byte_keeps_its_complete_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        SweepLog::open(&path).unwrap().append(&[row(1), row(2)]).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for end in 0..=whole.len() {
            std::fs::write(&path, &whole[..end]).unwrap();
            let complete = whole[..end].split(|byte| *byte == b'\n').count() - 1;
            assert_eq!(rows(&path).len(), complete, "{end}");
            let mut log = SweepLog::open(&path).unwrap();
            assert_eq!(log.done().len(), complete, "{end}");
            log.append(&[row(3)]).unwrap();
            drop(log);
            assert_eq!(rows(&path).len(), complete + 1, "{end}");
        }
    }

    #[test]
    fn a_second_writer_is_refused_and_a_reader_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let mut log = SweepLog::open(&path).unwrap();
        log.append(&[row(1)]).unwrap();
        assert!(matches!(SweepLog::open(&path), Err(RecordError::Locked { .. })));
        assert_eq!(rows(&path).len(), 1);
        drop(log);
        assert!(SweepLog::open(&path).is_ok());
    }

    #[test]
    fn other_files_are_refused_and_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let good = format!("{}\n", serde_json::to_string(&row(1)).unwrap());
        let short = good.replacen('0', "", 1);
        let upper = good.replacen("00", "AA", 1);
        for (text, line) in [
            ("name = \"card\"\n".to_owned(), 1),
            ("no line break".to_owned(), 1),
            ("{\"schema\": 3}".to_owned(), 1),
            (format!("{good}\n"), 2),
            (format!("{good}{short}"), 2),
            (format!("{good}{upper}"), 2),
            (format!("{good}{{\"key\":\"12\"}}\n"), 2),
            (format!("{good}{}", good.replacen("00", r"\n\u2028", 1)), 2),
            (format!("{good}{}", good.replace("\"by\"", "\"bye\"")), 2),
            (format!("{good}{}", good.replace("\"by\"", r#""b\n\u001b\u2028y""#)), 2),
            (format!("{good}{{\"key\":\"1\n"), 2),
            (format!("{good}{{\"key\": \"my own\""), 2),
            (format!("{good}{{\"key\":\"abc\"}}"), 2),
            (format!("{good}{{\"key\":{{"), 2),
            (format!("{good}{}", &good[..good.len() - 1].replacen("\",", "\"}", 1)), 2),
            (format!("{}{}", &good[..good.len() - 1], " ".repeat(LONGEST)), 1),
        ] {
            std::fs::write(&path, &text).unwrap();
            match SweepLog::open(&path) {
                Err(RecordError::Malformed { line: found, message, .. }) => {
                    assert_eq!(found, line, "{text}");
                    assert!(
                        !message.contains(|letter: char| letter.is_control() || letter == '\u{2028}'),
                        "{message:?}"
                    );
                }
                other => panic!("{text}: {other:?}"),
            }
            assert!(matches!(read_sweep_log(&path, |_| {}), Err(RecordError::Malformed { .. })), "{text}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        assert!(matches!(SweepLog::open(folder.path()), Err(RecordError::Os { .. })));
    }

    #[test]
    fn a_log_of_another_writer_with_spaces_between_is_read_and_its_cut_line_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let spaced = serde_json::to_string(&row(5)).unwrap().replace(':', ": ").replace(',', ", ");
        for end in 0..spaced.len() {
            std::fs::write(&path, format!("{spaced}\r\n{}", &spaced[..end])).unwrap();
            let log = SweepLog::open(&path).unwrap();
            assert_eq!(*log.done(), HashSet::from([5]), "{end}");
            drop(log);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{spaced}\r\n"), "{end}");
        }
    }

    #[test]
    fn a_line_is_at_most_a_mebibyte_long() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let mut log = SweepLog::open(&path).unwrap();
        let rest = serde_json::to_string(&row(1)).unwrap().len() + ",\"because\":\"\"\n".len();
        let of = |because: usize| SweepRow { because: Some("x".repeat(because)), ..row(1) };
        assert!(matches!(log.append(&[of(LONGEST - rest + 1)]), Err(RecordError::Unwritable { .. })));
        log.append(&[of(LONGEST - rest)]).unwrap();
        drop(log);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), LONGEST as u64);
        assert_eq!(SweepLog::open(&path).unwrap().done().len(), 1);
    }
}
