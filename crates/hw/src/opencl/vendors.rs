//! Which runtimes are installed, and why one of them is not listed: loaders pass over a library that cannot be loaded, and say nothing.

#![allow(unsafe_code)]

use super::said;
use libloading::Library;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Where loaders look unless they are told.
pub(super) const FOLDER: &str = "/etc/OpenCL/vendors";
/// What tells them.
const VARIABLE: &str = "OCL_ICD_VENDORS";

/// An installed runtime: a file that names a library.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Vendor {
    /// The file; the library itself where somebody names that.
    pub file: PathBuf,
    /// The library it names.
    pub library: String,
    /// Why it cannot be loaded, if it cannot: mostly another library that is missing.
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

/// Every runtime that a loader would try, in the order of their files' names.
#[must_use]
pub fn vendors() -> Vec<Vendor> {
    vendors_in(&place())
}

/// Where a loader looks.
pub(super) fn place() -> PathBuf {
    std::env::var_os(VARIABLE).map_or_else(|| PathBuf::from(FOLDER), PathBuf::from)
}

/// The same in this folder, by this file alone, or this library alone: a loader takes any of the three.
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
        // A folder that is not there has none; anything else is a library's name.
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
        Some("its first line is empty, or it cannot be read".to_owned())
    } else {
        // SAFETY: the loader loads it in the same way, and has done so already if it can be.
        match unsafe { Library::new(library) } {
            Ok(library) => {
                // Runtimes have threads of their own: what is loaded stays so.
                std::mem::forget(library);
                None
            }
            Err(error) => Some(said(&error)),
        }
    };
    Vendor { file: file.to_owned(), library: library.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_whose_library_cannot_be_loaded_says_which_file_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("b.icd"), "/nowhere/libgone.so\n").unwrap();
        fs::write(folder.path().join("a.icd"), "").unwrap();
        fs::write(folder.path().join("c.icd"), "libc.so.6\n").unwrap();
        fs::write(folder.path().join("readme.txt"), "no runtime").unwrap();
        let all = vendors_in(folder.path());
        assert_eq!(all.len(), 3);
        assert!(all[0].to_string().contains("its first line is empty"), "{}", all[0]);
        assert!(all[1].problem.as_deref().unwrap().contains("/nowhere/libgone.so"), "{}", all[1]);
        assert_eq!(all[2].problem, None);
    }

    #[test]
    fn a_folder_that_is_not_there_has_none() {
        assert_eq!(vendors_in(Path::new("/nowhere/vendors")), []);
    }

    #[test]
    fn one_file_or_one_library_may_be_named_instead() {
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
