//! A folder of its own for each test, and the program run in it.

use lanemark_checks::{lanemark, root};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// No command here may take this long.
const TIMEOUT: Duration = Duration::from_mins(3);

/// One small question, quickly answered by any platform with registers.
pub const SMALL: [&str; 6] = ["--question", "mmio_read_latency", "--access", "8", "--memory-type", "uc"];

/// Exit code and output of a command.
#[derive(Debug, PartialEq)]
pub struct Outcome {
    /// Its exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

/// A folder that is gone after the test.
pub struct Folder {
    place: tempfile::TempDir,
    outside: tempfile::TempDir,
}

impl Folder {
    /// An empty one.
    pub fn new() -> Folder {
        Folder { place: tempfile::tempdir().unwrap(), outside: tempfile::tempdir().unwrap() }
    }

    /// One with these files.
    pub fn with(files: &[(&str, &[u8])]) -> Folder {
        let folder = Folder::new();
        for (name, bytes) in files {
            std::fs::write(folder.path(name), bytes).unwrap();
        }
        folder
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// What lies in it, with the bytes of regular files.
    pub fn content(&self) -> BTreeMap<String, Vec<u8>> {
        let name = |entry: &std::fs::DirEntry| entry.file_name().into_string().unwrap();
        let bytes = |path: &Path| if path.is_file() { std::fs::read(path).unwrap() } else { Vec::new() };
        let entries = std::fs::read_dir(self.place.path()).unwrap().map(Result::unwrap);
        entries.map(|entry| (name(&entry), bytes(&entry.path()))).collect()
    }

    /// Starts the program; what it says goes to files outside the folder.
    pub fn start<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Child {
        let out = Stdio::from(File::create(self.outside.path().join("out")).unwrap());
        self.start_into(out, arguments)
    }

    /// Starts the program with another standard output.
    pub fn start_into<S: AsRef<OsStr>>(&self, out: Stdio, arguments: &[S]) -> Child {
        let mut command = Command::new(lanemark());
        command.args(arguments);
        self.start_command(out, command)
    }

    /// Starts a command in this folder.
    fn start_command(&self, out: Stdio, mut command: Command) -> Child {
        let err = File::create(self.outside.path().join("err")).unwrap();
        command.current_dir(self.place.path());
        command.stdin(Stdio::null()).stdout(out).stderr(err).spawn().unwrap()
    }

    /// The output so far of a program that was started here.
    pub fn said(&self, status: ExitStatus) -> Outcome {
        let read = |name: &str| std::fs::read(self.outside.path().join(name)).unwrap_or_default();
        let text = |name: &str| String::from_utf8(read(name)).unwrap();
        let outcome = Outcome { code: status.code(), out: text("out"), err: text("err") };
        assert!(!outcome.err.contains("panicked"), "{}", outcome.err);
        outcome
    }

    /// Runs the program to its end.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Outcome {
        let child = self.start(arguments);
        let named = || arguments.iter().map(AsRef::as_ref).collect::<Vec<&OsStr>>();
        let status = wait(child, TIMEOUT).unwrap_or_else(|| panic!("{:?} did not end", named()));
        self.said(status)
    }

    /// Runs a command that starts the program, and waits for its end.
    pub fn run_by(&self, command: Command) -> Outcome {
        let named = format!("{command:?}");
        let out = File::create(self.outside.path().join("out")).unwrap();
        let child = self.start_command(Stdio::from(out), command);
        let status = wait(child, TIMEOUT).unwrap_or_else(|| panic!("{named} did not end"));
        self.said(status)
    }

    /// As [`run`](Folder::run), for a command that must end with 0; its standard output.
    pub fn good(&self, arguments: &[&str]) -> String {
        let outcome = self.run(arguments);
        assert_eq!(outcome.code, Some(0), "{arguments:?}: {}", outcome.err);
        outcome.out
    }
}

/// How a program ended; `None`, and it is ended by force, if not in time.
pub fn wait(mut child: Child, most: Duration) -> Option<ExitStatus> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        if started.elapsed() > most {
            child.kill().unwrap();
            child.wait().unwrap();
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// `bench` or `predict` on one target with one small question.
pub fn small<'a>(verb: &'a str, target: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&[verb, "--on", target], &SMALL[..], more].concat()
}

/// The text of the default platform's file.
pub fn card() -> String {
    std::fs::read_to_string(root().join("platforms/card-gen5-x16.toml")).unwrap()
}

/// The default platform with something replaced in its file.
pub fn card_with(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(card(), |text, (old, new)| {
        assert!(text.contains(old), "the platform file has no {old}");
        text.replace(old, new)
    })
}
