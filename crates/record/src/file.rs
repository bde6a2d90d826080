//! Records as files: written completely or not at all, and read with exact error messages.

use crate::{Record, SCHEMA};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Unexpected, Visitor};
use std::fmt;
use std::fs::Metadata;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A record could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// An error of the operating system.
    #[error("{doing} {}: {source}", .path.display())]
    Os {
        /// The failed operation.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// The file is not JSON, or not a record.
    #[error("{}: line {line}, column {column}: {message}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Line of the error.
        line: usize,
        /// Column of the error.
        column: usize,
        /// The error, and the expected content.
        message: String,
    },
    /// The record has a newer schema.
    #[error("{}: key 'schema', line {line}: this record has schema {found} and this program reads {SCHEMA}; use the lanemark that wrote it, or a newer one", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Line of the schema.
        line: usize,
        /// Schema of the record.
        found: u64,
    },
    /// The record has an older schema.
    #[error("{}: key 'schema', line {line}: this record has schema {found} and this program reads {SCHEMA}; run `lanemark bench` again, with the options in its key 'command', to write a new one", .path.display())]
    Older {
        /// The file.
        path: PathBuf,
        /// Line of the schema.
        line: usize,
        /// Schema of the record.
        found: u64,
    },
    /// Another process has the log of a sweep open.
    #[error("{}: another sweep writes to this log; wait for its end, or use another file with --log", .path.display())]
    Locked {
        /// The log.
        path: PathBuf,
    },
    /// The record contains a value that JSON cannot represent.
    #[error("{}: not written, because the record would not read back unchanged: {reason}", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Position and reason.
        reason: String,
    },
}

/// Writes `record` to `path` with [`write_whole`].
///
/// # Errors
/// [`RecordError::Unwritable`] if it contains a value that JSON cannot represent, such as NaN;
/// [`RecordError::Os`]. No partial file remains, and an old file at `path` is unchanged.
pub fn write(record: &Record, path: &Path) -> Result<(), RecordError> {
    let mut text = to_json(record);
    text.push('\n');
    let unwritable = |reason| Err(RecordError::Unwritable { path: path.to_owned(), reason });
    match from_bytes(text.as_bytes(), path) {
        Ok(read) if read == *record => write_whole(path, text.as_bytes()),
        Ok(_) => unwritable("it contains a number that is not finite".to_owned()),
        Err(RecordError::Malformed { line, column, message, .. }) => {
            unwritable(format!("line {line}, column {column} of it: {message}"))
        }
        Err(error) => Err(error),
    }
}

/// Writes `bytes` to `path` completely or not at all: first to a temporary file in the same folder,
/// which is then renamed. Readers never see a partial file.
///
/// A symbolic link is kept, and its target is replaced. Devices and pipes, such as `/dev/null`, are
/// written to directly.
///
/// # Errors
/// [`RecordError::Os`]; no partial file remains, and an old file at `path` is unchanged.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
    let os = |doing| move |source| RecordError::Os { doing, path: path.to_owned(), source };
    let old = std::fs::metadata(path).ok();
    if old.as_ref().is_some_and(Metadata::is_dir) {
        return Err(os("writing")(std::io::ErrorKind::IsADirectory.into()));
    }
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        let mut device = std::fs::OpenOptions::new().write(true).open(path).map_err(os("opening"))?;
        return device.write_all(bytes).map_err(os("writing"));
    }
    let target = match &old {
        Some(_) => std::fs::canonicalize(path).map_err(os("following"))?,
        // A dangling link is relative to its own folder.
        None => match std::fs::read_link(path) {
            Ok(to) => path.parent().unwrap_or(Path::new("")).join(to),
            Err(_) => path.to_owned(),
        },
    };
    let folder = target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .permissions(old.map_or_else(permissions, |old| old.permissions()))
        .tempfile_in(folder)
        .map_err(os("creating a file beside"))?;
    file.write_all(bytes).map_err(os("writing"))?;
    file.as_file().sync_all().map_err(os("writing"))?;
    file.persist(&target).map_err(|error| os("moving a new file to")(error.error))?;
    Ok(())
}

#[cfg(unix)]
fn permissions() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o644)
}

/// Formats the value as indented JSON without a final newline; lists of numbers are on one line.
#[must_use]
pub fn to_json<T: serde::Serialize>(value: &T) -> String {
    // Only maps with keys other than strings, or a failing `Serialize`, cause errors; these types
    // have neither.
    let text = serde_json::to_string_pretty(value).unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"));
    let mut joined = String::with_capacity(text.len());
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        joined.push_str(line);
        // Strings have no raw line breaks, so a line that ends in a bracket opens a list.
        let is_list = line.ends_with('[') && lines.peek().is_some_and(|next| is_number(next));
        while is_list && let Some(number) = lines.next_if(|next| is_number(next)) {
            joined.push_str(number.trim_start());
            if number.ends_with(',') {
                joined.push(' ');
            }
        }
        if is_list && let Some(end) = lines.next_if(|next| next.trim_start().starts_with(']')) {
            joined.push_str(end.trim_start());
        }
        if lines.peek().is_some() {
            joined.push('\n');
        }
    }
    joined
}

/// Whether a line of indented JSON is a number in a list.
fn is_number(line: &str) -> bool {
    line.trim_start().starts_with(|c: char| c == '-' || c.is_ascii_digit())
}

/// Reads the record at `path`.
///
/// # Errors
/// [`RecordError::Os`] if it cannot be read; [`RecordError::Newer`] or [`RecordError::Older`] for
/// another schema; [`RecordError::Malformed`], with line and column, for everything else.
pub fn read(path: &Path) -> Result<Record, RecordError> {
    let bytes =
        std::fs::read(path).map_err(|source| RecordError::Os { doing: "reading", path: path.to_owned(), source })?;
    from_bytes(&bytes, path)
}

/// Reads a record from `bytes`; `path` is for messages.
///
/// # Errors
/// As for [`read`].
pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Record, RecordError> {
    let malformed = |line, column, message| RecordError::Malformed { path: path.to_owned(), line, column, message };
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let good = error.valid_up_to();
        let mut lines = bytes[..good].split(|byte| *byte == b'\n');
        let (line, column) = (lines.clone().count(), lines.next_back().map_or(0, <[u8]>::len) + 1);
        malformed(line, column, format!("byte {good} is not UTF-8; a record is JSON text"))
    })?;
    let json = |error: serde_json::Error| {
        let message = format!("{}; a record is JSON as `lanemark schema record` describes it", json_problem(&error));
        malformed(error.line().max(1), error.column().max(1), message)
    };
    let mut found = None;
    match Version(&mut found).deserialize(&mut serde_json::Deserializer::from_str(text)) {
        Ok(()) => {}
        Err(error) => {
            return Err(match found {
                Some(found) if found < u64::from(SCHEMA) => {
                    RecordError::Older { path: path.to_owned(), line: error.line(), found }
                }
                Some(found) => RecordError::Newer { path: path.to_owned(), line: error.line(), found },
                None => json(error),
            });
        }
    }
    serde_json::from_str(text).map_err(json)
}

/// Describes an error of JSON in one line, without the position that [`RecordError`] shows before it.
///
/// Names from the text, which the description repeats, may contain line breaks and other control characters: they are
/// written as escapes.
pub(crate) fn json_problem(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let problem = text.strip_suffix(&place).unwrap_or(&text);
    let mut line = String::with_capacity(problem.len());
    for letter in problem.chars() {
        if letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}') {
            line.extend(letter.escape_default());
        } else {
            line.push(letter);
        }
    }
    line
}

/// Reads only the schema of a record. Fails at any version except [`SCHEMA`], and keeps that
/// version.
struct Version<'a>(&'a mut Option<u64>);

impl<'de> DeserializeSeed<'de> for Version<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, record: D) -> Result<(), D::Error> {
        record.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Version<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the key `schema`")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = false;
        while let Some(key) = map.next_key::<String>()? {
            if key == "schema" {
                seen = true;
                map.next_value_seed(Schema(self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        if seen { Ok(()) } else { Err(serde::de::Error::missing_field("schema")) }
    }
}

/// The value of the key `schema`.
struct Schema<'a>(&'a mut Option<u64>);

impl<'de> DeserializeSeed<'de> for Schema<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        value.deserialize_u64(self)
    }
}

impl Visitor<'_> for Schema<'_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEMA} for the key `schema`")
    }
    fn visit_u64<E: serde::de::Error>(self, found: u64) -> Result<(), E> {
        if found == u64::from(SCHEMA) {
            return Ok(());
        }
        *self.0 = Some(found);
        Err(E::invalid_value(Unexpected::Unsigned(found), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record::new(vec!["lanemark".to_owned(), "bench".to_owned()])
    }

    #[test]
    fn a_record_reads_back_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.json");
        write(&record(), &path).unwrap();
        assert_eq!(read(&path).unwrap(), record());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file remains");
    }

    #[test]
    fn a_failed_write_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("no/such/folder/r.json");
        assert!(write(&record(), &path).unwrap_err().to_string().contains("no/such/folder"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn a_symbolic_link_is_kept_even_if_it_is_dangling() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link.json");
        std::os::unix::fs::symlink("real.json", &link).unwrap();
        for text in ["first", "second"] {
            write_whole(&link, text.as_bytes()).unwrap();
            assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
            assert_eq!(std::fs::read_to_string(folder.path().join("real.json")).unwrap(), text);
        }
    }

    #[test]
    fn only_this_schema_is_read_and_an_older_one_names_the_command_to_run() {
        let text = to_json(&record());
        assert!(from_bytes(text.as_bytes(), Path::new("r")).is_ok());
        let of = |schema: u32| text.replacen("\"schema\": 4", &format!("\"schema\": {schema}"), 1);
        let error = from_bytes(of(SCHEMA + 1).as_bytes(), Path::new("r")).unwrap_err();
        assert!(matches!(error, RecordError::Newer { line: 2, found: 5, .. }), "{error}");
        for older in 0..SCHEMA {
            let error = from_bytes(of(older).as_bytes(), Path::new("r")).unwrap_err().to_string();
            let versions = format!("r: key 'schema', line 2: this record has schema {older} and this program reads 4");
            assert!(error.starts_with(&versions) && error.contains("run `lanemark bench` again"), "{error}");
        }
    }

    #[test]
    fn only_lists_of_numbers_are_on_one_line() {
        let value = serde_json::json!({"a": [1, -2.5, 3e300], "b": ["[", "1"], "c": [[1], []], "d": [{"e": [0]}]});
        let lines = [
            "{",
            "  \"a\": [1, -2.5, 3e+300],",
            "  \"b\": [",
            "    \"[\",",
            "    \"1\"",
            "  ],",
            "  \"c\": [",
            "    [1],",
            "    []",
            "  ],",
            "  \"d\": [",
            "    {",
            "      \"e\": [0]",
            "    }",
            "  ]",
            "}",
        ];
        assert_eq!(to_json(&value), lines.join("\n"));
    }

    #[test]
    fn invalid_records_are_refused_with_line_and_column() {
        for (bytes, hint) in [
            (&b"{\n  \"schema\": 4,\n  \"extra\": 1\n}"[..], "line 3"),
            (b"[", "line 1"),
            (b"{}", "schema"),
            (b"\n\xff", "line 2"),
        ] {
            let message = from_bytes(bytes, Path::new("r.json")).unwrap_err().to_string();
            assert!(message.contains("r.json") && message.contains(hint), "{message}");
        }
    }
}
