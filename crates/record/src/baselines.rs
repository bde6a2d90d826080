//! Baselines: records under a name, to compare later ones with.

use crate::record_folder::{check_folder, records_in, write_folder};
use crate::{Record, RecordError};
use lanemark_units::did_you_mean;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A folder of baselines. Each baseline is a folder of records, with the baseline's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Baselines {
    folder: PathBuf,
}

/// A baseline cannot be saved or found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BaselineError {
    /// The name cannot be the name of a folder everywhere.
    #[error(
        "'{name}' is no name of a baseline: use 1 to {most} letters, digits, '.', '_' and '-', and begin with a letter or digit",
        most = Baselines::LONGEST_NAME
    )]
    Name {
        /// The name.
        name: String,
    },
    /// There is no baseline of this name.
    #[error("there is no baseline '{name}' in {}; {hint}", .folder.display())]
    Absent {
        /// The name.
        name: String,
        /// The folder of baselines.
        folder: PathBuf,
        /// A similar name, or the names that there are, as a clause.
        hint: String,
    },
    /// The folder of the baseline has other files, which would be lost.
    #[error("{} has other files than records, such as {file}: it is not replaced; move them away", .folder.display())]
    OtherFiles {
        /// The folder.
        folder: PathBuf,
        /// One of the files.
        file: String,
    },
    /// An error of a file.
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl Baselines {
    /// The usual folder of baselines, in the current folder.
    pub const USUAL_FOLDER: &str = ".lanemark/baselines";
    /// Longest name of a baseline.
    pub const LONGEST_NAME: usize = 64;

    /// The baselines in a folder, which need not exist.
    #[must_use]
    pub fn in_folder(folder: PathBuf) -> Baselines {
        Baselines { folder }
    }

    /// The folder of a baseline.
    ///
    /// # Errors
    /// [`BaselineError::Name`].
    pub fn path(&self, name: &str) -> Result<PathBuf, BaselineError> {
        let is_inside = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        if begins_well && name.len() <= Baselines::LONGEST_NAME && name.chars().all(is_inside) {
            Ok(self.folder.join(name))
        } else {
            Err(BaselineError::Name { name: name.to_owned() })
        }
    }

    /// Checks that a baseline can be saved, and creates the folder of baselines.
    ///
    /// # Errors
    /// [`BaselineError`] if the name is invalid, the folder cannot be written, or an older baseline
    /// has other files than records.
    pub fn check(&self, name: &str) -> Result<(), BaselineError> {
        let path = self.path(name)?;
        let os = |doing| move |source| RecordError::Os { doing, path: self.folder.clone(), source };
        std::fs::create_dir_all(&self.folder).map_err(os("creating"))?;
        if let Some(file) = foreign_file(&path)? {
            return Err(BaselineError::OtherFiles { folder: path, file });
        }
        // A name beside it, because an older baseline is replaced.
        Ok(check_folder(&self.folder.join(format!(".{name}.check")))?)
    }

    /// Saves records under a name; replaces an older baseline of this name as a whole.
    ///
    /// # Errors
    /// As for [`check`](Baselines::check); an older baseline is then kept.
    pub fn save(&self, name: &str, records: &[Record]) -> Result<PathBuf, BaselineError> {
        self.check(name)?;
        let path = self.path(name)?;
        let os = |doing| move |source| RecordError::Os { doing, path: self.folder.clone(), source };
        let beside = tempfile::Builder::new()
            .prefix(".replaced-")
            .tempdir_in(&self.folder)
            .map_err(os("creating a folder in"))?;
        let (new, old) = (beside.path().join("new"), beside.path().join("old"));
        write_folder(records, &new)?;
        let had_old = match std::fs::rename(&path, &old) {
            Ok(()) => true,
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(error) => return Err(os("replacing a baseline in")(error).into()),
        };
        if let Err(error) = std::fs::rename(&new, &path) {
            if had_old {
                std::fs::rename(&old, &path).map_err(os("restoring a baseline in"))?;
            }
            return Err(os("replacing a baseline in")(error).into());
        }
        Ok(path)
    }

    /// The records of a baseline, in order.
    ///
    /// # Errors
    /// [`BaselineError::Absent`] with similar names or a list; [`BaselineError::Name`].
    pub fn files(&self, name: &str) -> Result<Vec<PathBuf>, BaselineError> {
        let path = self.path(name)?;
        if path.is_dir() {
            return Ok(records_in(&path)?);
        }
        let names = self.names()?;
        let hint = match did_you_mean(name, names.iter().map(String::as_str)) {
            Some(hint) => hint,
            None if names.is_empty() => "`lanemark bench --save-baseline NAME` saves one".to_owned(),
            None => format!("there are {}", names.join(", ")),
        };
        Err(BaselineError::Absent { name: name.to_owned(), folder: self.folder.clone(), hint })
    }

    /// The names of all baselines, sorted; empty if the folder does not exist.
    ///
    /// # Errors
    /// [`RecordError::Os`] if the folder cannot be read.
    pub fn names(&self) -> Result<Vec<String>, BaselineError> {
        let os = |source| RecordError::Os { doing: "reading", path: self.folder.clone(), source };
        let entries = match std::fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(os(error).into()),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(os)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if self.path(&name).is_ok() && entry.path().is_dir() {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }
}

/// A file in the folder of an older baseline that is not one of its records.
fn foreign_file(folder: &Path) -> Result<Option<String>, RecordError> {
    let os = |source| RecordError::Os { doing: "reading", path: folder.to_owned(), source };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(os(error)),
    };
    for entry in entries {
        let name = entry.map_err(os)?.file_name().to_string_lossy().into_owned();
        let is_record = name.strip_suffix(".json").is_some_and(|number| number.parse::<u64>().is_ok());
        if !is_record {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file;

    fn records(count: usize) -> Vec<Record> {
        (0..count).map(|n| Record::new(vec![format!("{n} of {count}")])).collect()
    }

    #[test]
    fn a_baseline_is_replaced_as_a_whole() {
        let place = tempfile::tempdir().unwrap();
        let baselines = Baselines::in_folder(place.path().join("not/there/yet"));
        assert_eq!(baselines.names().unwrap(), Vec::<String>::new());
        for count in [5, 3] {
            baselines.save("main", &records(count)).unwrap();
            let files = baselines.files("main").unwrap();
            let read: Vec<Record> = files.iter().map(|path| file::read(path).unwrap()).collect();
            assert_eq!(read, records(count));
        }
        baselines.save("v1.2_x-y", &records(1)).unwrap();
        assert_eq!(baselines.names().unwrap(), ["main", "v1.2_x-y"]);
        let entries = std::fs::read_dir(place.path().join("not/there/yet")).unwrap().count();
        assert_eq!(entries, 2, "no temporary folder remains");
    }

    #[test]
    fn names_that_are_no_folder_are_refused() {
        let baselines = Baselines::in_folder(PathBuf::from("nowhere"));
        let long = "x".repeat(65);
        for name in ["", ".", "..", ".hidden", "-x", "a/b", "../x", "a b", "ä", "a\0b", &long] {
            assert!(matches!(baselines.path(name), Err(BaselineError::Name { .. })), "{name:?}");
        }
        assert!(baselines.path(&"x".repeat(64)).is_ok());
    }

    #[test]
    fn an_absent_baseline_names_similar_ones_and_other_files_are_kept() {
        let place = tempfile::tempdir().unwrap();
        let baselines = Baselines::in_folder(place.path().to_owned());
        let absent = |name: &str| baselines.files(name).unwrap_err().to_string();
        assert!(absent("main").contains("`lanemark bench --save-baseline NAME` saves one"));
        baselines.save("main", &records(1)).unwrap();
        assert!(absent("mian").contains("main"), "{}", absent("mian"));
        assert!(absent("release").contains("there are main"), "{}", absent("release"));
        std::fs::write(place.path().join("main/notes.txt"), "").unwrap();
        assert!(baselines.save("main", &records(2)).unwrap_err().to_string().contains("notes.txt"));
        assert_eq!(baselines.files("main").unwrap().len(), 1);
    }
}
