//! Output files, checked before a measurement begins, and the terminal.

use crate::failure::{Failure, say};
use crate::invocation;
use crate::page::record_page;
use lanemark_record::{Record, Reproduction, file};
use std::io::{IsTerminal, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// Checks that `outputs` can be written and do not overwrite each other or one of `inputs`.
pub fn check(outputs: &[&Path], inputs: &[&Path]) -> Result<(), Failure> {
    for (place, output) in outputs.iter().enumerate() {
        let other = inputs.iter().chain(&outputs[..place]).find(|other| is_same(output, other));
        if let Some(other) = other {
            let message = format!("{} would overwrite {}; use another name", output.display(), other.display());
            return Err(Failure::Usage(message));
        }
        check_one(output)
            .map_err(|error| Failure::Usage(format!("{} cannot be written: {error}", output.display())))?;
    }
    Ok(())
}

fn check_one(path: &Path) -> std::io::Result<()> {
    match std::fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(std::io::ErrorKind::IsADirectory.into()),
        // A write to a FIFO blocks until it is read, perhaps forever.
        Ok(found) if !found.is_file() && !found.file_type().is_char_device() && !is_stream(path) => {
            let message = "it is a pipe, a socket or a block device; use a regular file or /dev/stdout";
            Err(std::io::Error::other(message))
        }
        Ok(found) if !found.is_file() => Ok(()),
        // The new file is written in the same folder and renamed over the old one.
        _ => tempfile::tempfile_in(folder(&real(path))).map(drop),
    }
}

/// Whether the path is an open file of this process, such as `/dev/stdout`; it may be a pipe.
fn is_stream(path: &Path) -> bool {
    ["/dev/stdout", "/dev/stderr"].map(Path::new).contains(&path)
        || ["/dev/fd", "/proc/self/fd"].iter().any(|folder| path.starts_with(folder))
}

/// Whether both paths refer to the same regular file, existing or not.
fn is_same(one: &Path, other: &Path) -> bool {
    let is_device = |path: &Path| std::fs::metadata(path).is_ok_and(|found| !found.is_file());
    !is_device(one) && real(one) == real(other)
}

/// The path with all links resolved; the file need not exist.
fn real(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| match (std::fs::canonicalize(folder(path)), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path.to_owned(),
    })
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes a text to a file, completely or not at all, or to standard output.
pub fn text(text: &str, path: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(std::io::stdout().lock().write_all(text.as_bytes())?) };
    file::write_whole(path, text.as_bytes()).map_err(|error| Failure::Usage(error.to_string()))?;
    say(&format!("wrote {}", path.display()));
    Ok(())
}

/// Writes the HTML page of a record and of reproductions.
pub fn write_html(record: &Record, reproductions: &[Reproduction], path: &Path) -> Result<(), Failure> {
    let page = record_page(record, reproductions)?;
    file::write_whole(path, page.as_bytes()).map_err(|error| Failure::Usage(error.to_string()))
}

/// Writes the plot of a record's bandwidths.
pub fn write_svg(record: &Record, path: &Path) -> Result<(), Failure> {
    let no_plot = || {
        let needs = "a plot needs bandwidths of at least two sizes, and the record has none: measure a question about \
                     bandwidth, and give at least two sizes";
        Failure::Usage(format!("{}: {needs}", path.display()))
    };
    let plot = lanemark_report::bandwidth_plot(record).ok_or_else(no_plot)?;
    file::write_whole(path, plot.as_bytes()).map_err(|error| Failure::Usage(error.to_string()))
}

/// Number of columns of the terminal; `None` if standard output is not a terminal.
pub fn terminal_width() -> Option<u16> {
    let out = std::io::stdout();
    if out.is_terminal() {
        rustix::termios::tcgetwinsize(&out).ok().map(|size| size.ws_col).filter(|columns| *columns > 0)
    } else {
        None
    }
}

/// The command line as typed, with the program's name instead of its path; invalid UTF-8 is replaced.
pub fn command_line() -> Vec<String> {
    let arguments = invocation::arguments().iter().map(|argument| argument.to_string_lossy().into_owned());
    // `bench --repeat` adds an option for its runs at the end.
    let typed = arguments.take_while(|argument| argument != "--run-of-repeat");
    std::iter::once("lanemark".to_owned()).chain(typed).collect()
}
