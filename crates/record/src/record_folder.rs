//! Folders of records: several runs of the same measurement.

use crate::{Record, RecordError, file};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

/// Largest number of records in a folder that is read.
const MOST_RECORDS: usize = 1000;

/// Writes records as `1.json`, `2.json` and so on into a new folder, completely or not at all: the
/// folder gets its name when all files are written.
///
/// # Errors
/// [`RecordError::Os`] if the folder exists and is not empty, or cannot be written;
/// [`RecordError::Unwritable`] for a record that JSON cannot represent. No partial folder remains.
pub fn write_folder(records: &[Record], folder: &Path) -> Result<(), RecordError> {
    let os = |doing| move |source| RecordError::Os { doing, path: folder.to_owned(), source };
    check_folder(folder)?;
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let unfinished = tempfile::Builder::new()
        .prefix(".records-")
        .permissions(permissions())
        .tempdir_in(parent)
        .map_err(os("creating a folder beside"))?;
    for (place, record) in records.iter().enumerate() {
        file::write(record, &unfinished.path().join(format!("{}.json", place + 1)))?;
    }
    std::fs::rename(unfinished.path(), folder).map_err(os("moving a new folder to"))?;
    // It has moved, so that nothing is left to remove.
    let _moved = unfinished.keep();
    Ok(())
}

/// Checks that [`write_folder`] can create this folder: it is absent or empty, and the folder above
/// it exists.
///
/// # Errors
/// [`RecordError::Os`] with the reason.
pub fn check_folder(folder: &Path) -> Result<(), RecordError> {
    let os = |source| RecordError::Os { doing: "writing records to", path: folder.to_owned(), source };
    match std::fs::read_dir(folder).map(|mut entries| entries.next().is_none()) {
        Ok(true) => Ok(()),
        Ok(false) => {
            let message =
                "the folder is not empty; name a new one, so that no older record is taken for one of this run";
            Err(os(Error::other(message)))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            tempfile::tempdir_in(parent).map(drop).map_err(os)
        }
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            Err(os(Error::other("it is a file; several records need a folder, so name a new one")))
        }
        Err(error) => Err(os(error)),
    }
}

/// The records in a folder: its files with the extension `json`, by number or by name.
///
/// # Errors
/// [`RecordError::Os`] if it cannot be read, or if it has no records or more than 1000.
pub fn records_in(folder: &Path) -> Result<Vec<PathBuf>, RecordError> {
    let os = |source| RecordError::Os { doing: "reading", path: folder.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(os)? {
        let path = entry.map_err(os)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
        if files.len() > MOST_RECORDS {
            return Err(os(Error::other(format!("the folder has more than {MOST_RECORDS} records"))));
        }
    }
    if files.is_empty() {
        return Err(os(Error::other("the folder has no records, which are files with the extension .json")));
    }
    // 10.json follows 9.json.
    let number = |path: &PathBuf| path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
    files.sort_by(|a, b| number(a).cmp(&number(b)).then_with(|| a.cmp(b)));
    Ok(files)
}

#[cfg(unix)]
fn permissions() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o755)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_numbered_and_read_in_order() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("runs");
        let records: Vec<Record> = (0..11).map(|n| Record::new(vec![n.to_string()])).collect();
        write_folder(&records, &folder).unwrap();
        let files = records_in(&folder).unwrap();
        let read: Vec<Record> = files.iter().map(|path| file::read(path).unwrap()).collect();
        assert_eq!(read, records);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1, "no temporary folder remains");
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&folder).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o755);
    }

    #[test]
    fn folders_with_other_records_files_and_absent_parents_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("runs");
        write_folder(&[Record::new(vec![])], &folder).unwrap();
        let refused = |folder: &Path| write_folder(&[Record::new(vec![])], folder).unwrap_err().to_string();
        assert!(refused(&folder).contains("is not empty; name a new one"));
        assert!(refused(&folder.join("1.json")).contains("it is a file"));
        assert!(refused(&place.path().join("no/such")).contains("No such file"));
        let empty = place.path().join("empty");
        std::fs::create_dir(&empty).unwrap();
        assert!(records_in(&empty).unwrap_err().to_string().contains("has no records"));
        write_folder(&[Record::new(vec![])], &empty).unwrap();
        assert_eq!(records_in(&empty).unwrap().len(), 1);
    }
}
