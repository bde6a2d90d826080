//! `import`: the output of another tool as a record, held against the limit of a link.

use crate::args::ImportArgs;
use crate::doctor;
use crate::failure::{Failure, say};
use crate::input;
use crate::output::{self, terminal_width};
use lanemark_advise::{ImportLimits, judge_imported};
use lanemark_import::{ImportTool, joined};
use lanemark_record::{ImportFindingKind, Imported, Record, file};
use lanemark_runner::platform;
use std::io::Write;
use std::path::{Path, PathBuf};

/// `lanemark import`
pub fn import(args: &ImportArgs) -> Result<(), Failure> {
    if let Some(output) = &args.output {
        let listing = args.on.as_deref().map(Path::new);
        output::check(&[output], &args.files.iter().map(PathBuf::as_path).chain(listing).collect::<Vec<_>>())?;
    }
    let record = imported_record(&args.files, args.from, args.on.as_deref())?;
    let Some(imported) = &record.imported else { return Ok(()) };
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", file::to_json(&record))?;
    } else {
        let on = args.on.as_deref();
        let table = lanemark_report::import_table(imported, record.answers.len(), on, terminal_width());
        out.write_all(table.as_bytes())?;
    }
    if let Some(path) = &args.output {
        file::write(&record, path).map_err(|error| Failure::Usage(error.to_string()))?;
        say(&format!("wrote {}", path.display()));
    }
    match above_limit(&record) {
        Some(message) => Err(Failure::Check(message)),
        None => Ok(()),
    }
}

/// The output of a tool in these files as a record; `on` is a listing or a platform with the limit of the link.
///
/// # Errors
/// [`Failure::Usage`] for files that are not the output of the tool, or of no known one.
pub fn imported_record(files: &[PathBuf], from: Option<ImportTool>, on: Option<&str>) -> Result<Record, Failure> {
    let limits = on.map(limits).transpose()?;
    let names = names(files);
    let read: Vec<Imported> =
        files.iter().zip(&names).map(|(path, name)| read(path, name, from)).collect::<Result<_, _>>()?;
    let mut imported = joined(read).map_err(|error| Failure::Usage(error.to_string()))?;
    judge_imported(&mut imported, limits.as_ref());
    let mut words = vec!["lanemark".to_owned(), "import".to_owned()];
    words.extend(names);
    words.extend(["--from".to_owned(), imported.tool.clone()]);
    Ok(lanemark_import::record(imported, words))
}

/// The number of imported figures above the limit of the link, in words; `None` if there is none.
#[must_use]
pub fn above_limit(record: &Record) -> Option<String> {
    let imported = record.imported.as_ref()?;
    let is_above = |kind| matches!(kind, ImportFindingKind::Impossible);
    let above = imported.figures.iter().filter(|figure| {
        let limit = figure.limit_bytes_per_s.zip(figure.value.rate());
        limit.is_some_and(|(limit, rate)| rate > limit)
    });
    let count = above.count().max(imported.findings.iter().filter(|finding| is_above(finding.kind)).count());
    let figures = match count {
        0 => return None,
        1 => "1 figure is".to_owned(),
        count => format!("{count} figures are"),
    };
    Some(format!("{figures} above the limit of the link, which is impossible"))
}

/// Names of files for messages and the record: without their folders, unless two would have the same name.
fn names(files: &[PathBuf]) -> Vec<String> {
    let short = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let all: Vec<String> = files.iter().map(short).collect();
    let is_unique = all.iter().all(|name| all.iter().filter(|other| *other == name).count() == 1);
    if is_unique { all } else { files.iter().map(|path| path.display().to_string()).collect() }
}

fn read(path: &Path, name: &str, from: Option<ImportTool>) -> Result<Imported, Failure> {
    let text = input::output(path)?;
    let tool = from.or_else(|| ImportTool::of_output(&text)).ok_or_else(|| {
        let known = ImportTool::ALL.map(ImportTool::name).join(", ");
        Failure::Usage(format!("{name}: its words are those of no tool, or of several; name one with --from: {known}"))
    })?;
    tool.read(name, &text).map_err(|error| Failure::Usage(error.to_string()))
}

/// The links of a listing, if `on` is a file of one, or of a platform.
fn limits(on: &str) -> Result<ImportLimits, Failure> {
    let path = Path::new(on);
    let is_platform_file = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"));
    let found = if path.exists() && !is_platform_file {
        ImportLimits::of_listing(&doctor::read(Some(path))?)
    } else {
        ImportLimits::of_platform(&platform(on)?)
    };
    found.map_err(|error| Failure::Usage(format!("--on {on}: {error}")))
}
