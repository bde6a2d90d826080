//! A record is written completely or not at all.

mod whole_record;

use lanemark_record::{Record, file};
use std::fs;
use std::path::{Path, PathBuf};
use whole_record::whole_record;

/// File names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn old_file(folder: &Path) -> PathBuf {
    let path = folder.join("r.json");
    fs::write(&path, "old").unwrap();
    path
}

#[test]
fn a_record_replaces_an_old_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = old_file(folder.path());
    file::write(&whole_record(), &path).unwrap();
    assert_eq!(file::read(&path).unwrap(), whole_record());
    assert_eq!(names(folder.path()), ["r.json"]);
}

#[test]
fn unrepresentable_values_are_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = old_file(folder.path());
    let spoiled = |spoil: fn(&mut Record)| {
        let mut record = whole_record();
        spoil(&mut record);
        let error = file::write(&record, &path).unwrap_err().to_string();
        let start = format!("{}: not written, because the record would not read back unchanged: ", path.display());
        error.strip_prefix(&start).unwrap_or_else(|| panic!("{error}")).to_owned()
    };
    for (spoil, reason) in [
        (
            (|record| record.answers[0].timer_cost_ns = f64::NAN) as fn(&mut Record),
            "column 27 of it: invalid type: null, expected f64",
        ),
        (|record| record.answers[0].samples_ns[1] = f64::INFINITY, "column 12 of it: invalid type: null, expected f64"),
        (
            |record| record.answers[0].share_of_ceiling_percent = Some(f64::NAN),
            "it contains a number that is not finite",
        ),
        (
            |record| record.targets[0].platform = Some((0..200).fold(1.into(), |inner, _| vec![inner].into())),
            "of it: recursion limit exceeded",
        ),
    ] {
        let found = spoiled(spoil);
        assert!(found.contains(reason), "{found}");
        assert_eq!(
            (fs::read_to_string(&path).unwrap().as_str(), names(folder.path())),
            ("old", vec!["r.json".to_owned()])
        );
    }
}

#[test]
fn a_missing_folder_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none").join("r.json");
    let error = file::write(&whole_record(), &path).unwrap_err().to_string();
    assert!(error.starts_with(&format!("creating a file beside {}: ", path.display())), "{error}");
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_file_as_folder_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = old_file(folder.path());
    let error = file::write(&whole_record(), &path.join("r.json")).unwrap_err().to_string();
    assert!(error.contains("r.json/r.json: "), "{error}");
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names(folder.path())), ("old", vec!["r.json".to_owned()]));
}

#[test]
fn a_folder_as_target_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.json");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("inside"), "old").unwrap();
    for path in [path.clone(), folder.path().join("r.json/"), folder.path().join("r.json/.")] {
        let error = file::write(&whole_record(), &path).unwrap_err().to_string();
        assert_eq!(error, format!("writing {}: is a directory", path.display()));
    }
    assert_eq!((names(folder.path()), names(&path)), (vec!["r.json".to_owned()], vec!["inside".to_owned()]));
}

#[test]
fn an_empty_path_is_an_error() {
    assert!(file::write(&whole_record(), Path::new("")).is_err());
    assert!(file::write(&whole_record(), Path::new("/")).is_err());
    assert!(names(Path::new(".")).iter().all(|name| !name.starts_with(".tmp")));
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

    /// `--record /dev/null`, as root, must not replace the device by a file.
    #[test]
    fn a_device_is_written_to_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("null");
        symlink("/dev/null", &path).unwrap();
        file::write(&whole_record(), &path).unwrap();
        assert!(fs::metadata(&path).unwrap().file_type().is_char_device());
        assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
        assert_eq!(names(folder.path()), ["null"]);
    }

    #[test]
    fn a_socket_is_refused_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let error = file::write(&whole_record(), &path).unwrap_err().to_string();
        assert!(error.starts_with(&format!("opening {}: ", path.display())), "{error}");
        assert!(fs::metadata(&path).unwrap().file_type().is_socket());
    }

    #[test]
    fn a_symbolic_link_is_kept_and_its_target_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("far")).unwrap();
        let target = old_file(&folder.path().join("far"));
        let link = folder.path().join("link");
        symlink("far/r.json", &link).unwrap();
        file::write(&whole_record(), &link).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(file::read(&target).unwrap(), whole_record());
        assert_eq!(
            (names(folder.path()), names(&folder.path().join("far"))),
            (vec!["far".to_owned(), "link".to_owned()], vec!["r.json".to_owned()])
        );
    }

    #[test]
    fn a_new_file_is_world_readable_and_an_old_one_keeps_its_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let new = folder.path().join("new.json");
        file::write(&whole_record(), &new).unwrap();
        assert_eq!(mode(&new) & 0o600, 0o600);
        let old = old_file(folder.path());
        fs::set_permissions(&old, fs::Permissions::from_mode(0o600)).unwrap();
        file::write(&whole_record(), &old).unwrap();
        assert_eq!(mode(&old), 0o600);
    }
}
