//! Installed OpenCL runtimes, and why a runtime cannot be loaded: loaders skip such a library without a message.

#![allow(unsafe_code)]

use super::load_error::load_error;
use libloading::Library;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Default folder of loaders.
pub(super) const FOLDER: &str = "/etc/OpenCL/vendors";
/// Environment variable that replaces it.
const VARIABLE: &str = "OCL_ICD_VENDORS";

/// Installed runtime: a file that names a library.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Vendor {
    /// The `.icd` file, or the library itself if the environment variable names one.
    pub file: PathBuf,
    /// Library that the file names.
    pub library: String,
    /// Error from loading the library, usually a missing dependency; `None` if it loads.
    pub problem: Option<String>,
}

impl fmt::Display for Vendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} names {}", self.file.display(), self.library)?;
        match &self.problem {
            Some(problem) => write!(f, ", which cannot be loaded: {problem}"),
            None => Ok(()),
        }
    }
}

/// All runtimes that a loader tries, ordered by file name.
#[must_use]
pub fn vendors() -> Vec<Vendor> {
    vendors_in(&place())
}

/// Folder, file or library that a loader uses.
pub(super) fn place() -> PathBuf {
    std::env::var_os(VARIABLE).map_or_else(|| PathBuf::from(FOLDER), PathBuf::from)
}

/// Runtimes of a folder, of one `.icd` file, or of one library: a loader accepts any of the three.
fn vendors_in(place: &Path) -> Vec<Vendor> {
    let is_file_of_one = |file: &Path| file.extension().is_some_and(|extension| extension == "icd");
    let named = |file: &Path| {
        let text = fs::read_to_string(file).unwrap_or_default();
        vendor(file, text.lines().next().unwrap_or_default().trim())
    };
    if is_file_of_one(place) {
        return vec![named(place)];
    }
    let Ok(entries) = fs::read_dir(place) else {
        // A missing folder has no runtimes; any other text is a library name.
        let is_library = place.to_string_lossy().contains(".so");
        return if is_library { vec![vendor(place, &place.to_string_lossy())] } else { Vec::new() };
    };
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| is_file_of_one(file));
    files.sort();
    files.iter().map(|file| named(file)).collect()
}

fn vendor(file: &Path, library: &str) -> Vendor {
    let problem = if library.is_empty() {
        Some("its first line is empty or unreadable".to_owned())
    } else {
        // SAFETY: loading runs the library's initialisers, as the OpenCL loader does for the same library.
        match unsafe { Library::new(library) } {
            Ok(library) => {
                // Never unload it: runtimes keep threads.
                std::mem::forget(library);
                None
            }
            Err(error) => Some(load_error(&error)),
        }
    };
    Vendor { file: file.to_owned(), library: library.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_that_cannot_be_loaded_reports_the_missing_file() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("b.icd"), "/nowhere/libgone.so\n").unwrap();
        fs::write(folder.path().join("a.icd"), "").unwrap();
        fs::write(folder.path().join("c.icd"), "libc.so.6\n").unwrap();
        fs::write(folder.path().join("readme.txt"), "not a runtime").unwrap();
        let all = vendors_in(folder.path());
        assert_eq!(all.len(), 3);
        assert!(all[0].to_string().contains("its first line is empty"), "{}", all[0]);
        assert!(all[1].problem.as_deref().unwrap().contains("/nowhere/libgone.so"), "{}", all[1]);
        assert_eq!(all[2].problem, None);
    }

    #[test]
    fn a_missing_folder_has_no_runtimes() {
        assert_eq!(vendors_in(Path::new("/nowhere/vendors")), []);
    }

    #[test]
    fn the_variable_may_name_one_file_or_one_library() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("one.icd");
        fs::write(&file, "/nowhere/libgone.so").unwrap();
        for place in [file.as_path(), Path::new("/nowhere/libgone.so"), Path::new("libgone.so.2")] {
            let all = vendors_in(place);
            assert_eq!(all.len(), 1);
            assert!(all[0].problem.as_deref().unwrap().contains("libgone.so"), "{}", all[0]);
        }
        assert_eq!(vendors_in(Path::new("libc.so.6"))[0].problem, None);
    }
}
