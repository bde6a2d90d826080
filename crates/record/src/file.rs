//! Records as files: written whole or not at all, read with every mistake named.

use crate::{Record, SCHEMA};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Why a record could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The operating system refused.
    #[error("{doing} {}: {source}", .path.display())]
    Os {
        /// What was being done.
        doing: &'static str,
        /// Which file.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
    /// Not JSON, or not a record.
    #[error("{}: line {line}, column {column}: {message}", .path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// Where.
        line: usize,
        /// Where in the line.
        column: usize,
        /// What is wrong and what would be right.
        message: String,
    },
    /// Written by a newer program.
    #[error("{}: key 'schema', line {line}: this record has schema {found} and this program reads up to {SCHEMA}; use the lanemark that wrote it, or a newer one", .path.display())]
    Newer {
        /// Which file.
        path: PathBuf,
        /// Where.
        line: usize,
        /// Its schema.
        found: u64,
    },
}

/// Writes `record` to `path`: first to a new file beside it, then moved in place, so that a reader sees
/// all of it or none.
///
/// # Errors
/// [`RecordError::Os`]; nothing is left behind then, and an old file at `path` is untouched.
pub fn write(record: &Record, path: &Path) -> Result<(), RecordError> {
    let mut text = to_json(record);
    text.push('\n');
    write_whole(path, text.as_bytes())
}

/// Writes `bytes` to `path` whole or not at all; see [`write`].
///
/// # Errors
/// [`RecordError::Os`], as for [`write`].
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
    let os = |doing| move |source| RecordError::Os { doing, path: path.to_owned(), source };
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .permissions(permissions())
        .tempfile_in(folder)
        .map_err(os("creating a file beside"))?;
    file.write_all(bytes).map_err(os("writing"))?;
    file.as_file().sync_all().map_err(os("writing"))?;
    file.persist(path).map_err(|error| os("moving a new file to")(error.error))?;
    Ok(())
}

#[cfg(unix)]
fn permissions() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o644)
}

/// The record as indented JSON without a final newline.
#[must_use]
pub fn to_json<T: serde::Serialize>(value: &T) -> String {
    // Only a map with keys that are no strings, or a failing `Serialize`, can fail; our types have neither.
    serde_json::to_string_pretty(value).unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"))
}

/// Reads the record at `path`.
///
/// # Errors
/// [`RecordError::Os`] if it cannot be read; [`RecordError::Newer`] if a newer program wrote it;
/// [`RecordError::Malformed`], with line and column, for everything else.
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
        let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        malformed(line, 1, format!("byte {} is not UTF-8; a record is JSON text", error.valid_up_to()))
    })?;
    let json = |error: serde_json::Error| {
        malformed(
            error.line(),
            error.column(),
            format!("{error}; a record is JSON as `lanemark schema record` describes it"),
        )
    };
    #[derive(serde::Deserialize)]
    struct Version {
        schema: Option<u64>,
    }
    let version: Version = serde_json::from_str(text).map_err(json)?;
    match version.schema {
        None => return Err(malformed(1, 1, "the key 'schema' is missing; is this a record of lanemark?".to_owned())),
        Some(found) if found > u64::from(SCHEMA) => {
            let line = text.lines().position(|line| line.contains("\"schema\"")).map_or(1, |index| index + 1);
            return Err(RecordError::Newer { path: path.to_owned(), line, found });
        }
        Some(_) => {}
    }
    serde_json::from_str(text).map_err(json)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Tool;

    fn record() -> Record {
        Record {
            schema: SCHEMA,
            tool: Tool { name: "lanemark".to_owned(), version: "0".to_owned() },
            command: vec!["lanemark".to_owned(), "bench".to_owned()],
            written_unix_s: None,
            targets: vec![],
            answers: vec![],
            skipped: vec![],
            warnings: vec![],
            advice: vec![],
            interrupted: false,
        }
    }

    #[test]
    fn a_record_reads_back_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.json");
        write(&record(), &path).unwrap();
        assert_eq!(read(&path).unwrap(), record());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left beside it");
    }

    #[test]
    fn a_record_that_cannot_be_written_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("no/such/folder/r.json");
        assert!(write(&record(), &path).unwrap_err().to_string().contains("no/such/folder"));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn this_schema_is_read_and_the_next_one_refused() {
        let text = to_json(&record());
        assert!(from_bytes(text.as_bytes(), Path::new("r")).is_ok());
        let newer = text.replacen("\"schema\": 1", "\"schema\": 2", 1);
        let error = from_bytes(newer.as_bytes(), Path::new("r")).unwrap_err();
        assert!(matches!(error, RecordError::Newer { line: 2, found: 2, .. }), "{error}");
    }

    #[test]
    fn what_is_no_record_is_refused_with_its_place() {
        for (bytes, hint) in [
            (&b"{\n  \"schema\": 1,\n  \"extra\": 1\n}"[..], "line 3"),
            (b"[", "line 1"),
            (b"{}", "schema"),
            (b"\n\xff", "line 2"),
        ] {
            let message = from_bytes(bytes, Path::new("r.json")).unwrap_err().to_string();
            assert!(message.contains("r.json") && message.contains(hint), "{message}");
        }
    }
}
