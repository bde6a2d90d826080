//! `new` and `check`: platform files.

use crate::args::{CheckArgs, NewArgs};
use crate::failure::{Failure, say};
use crate::output;
use crate::unknown::origins_to_json;
use lanemark_platform::{
    CARDS, Counts, Draft, HOSTS, Like, Origin, Part, Platform, ValueOf, host_with_card, is_path, new_file,
};
use lanemark_record::file;
use lanemark_report::counts_in_words;
use lanemark_runner::{RunError, draft, draft_of, is_built_in, origins_of, part, platform};
use serde_json::json;
use std::io::Write;
use std::path::Path;

/// Host of a card for which none is named.
const USUAL_HOST: &str = "xeon-spr";

/// Name of a file that is printed; that of its platform follows.
const PRINTED: &str = "mine.toml";

/// `lanemark new`
pub fn new(args: &NewArgs) -> Result<(), Failure> {
    let path = args.output.as_path();
    let is_printed = path == Path::new("-");
    if !args.force && !is_printed && std::fs::symlink_metadata(path).is_ok() {
        let message = format!("{} exists: use another name, or --force to replace it", path.display());
        return Err(Failure::Usage(message));
    }
    if !is_printed {
        output::check(&[path], &[Path::new(&args.like)])?;
    }
    let path = if is_printed { Path::new(PRINTED) } else { path };
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let pair = args.like.split_once('+').filter(|(host, _)| HOSTS.iter().any(|row| row.name == *host));
    let is_card = CARDS.iter().any(|row| row.name == args.like);
    if let Some(host) = args.host.as_ref().filter(|_| !is_card) {
        let message = format!("--host {host} is for a built-in card, and {} has a host: omit it", args.like);
        return Err(Failure::Usage(message));
    }
    let host = args.host.as_deref().unwrap_or(USUAL_HOST);
    let text = match pair.or(is_card.then_some((host, args.like.as_str()))) {
        Some((host, card)) => new_file(&stem, Like::Pair { host, card }, &pair_of(host, card)?),
        None => new_file(&stem, Like::Platform(&base(&args.like, path)?), &platform(&args.like)?),
    };
    draft_of(&path.to_string_lossy(), text.as_bytes()).map_err(|error| Failure::Usage(error.to_string()))?;
    if is_printed {
        return output::text(&text, None);
    }
    file::write_whole(path, text.as_bytes()).map_err(|error| Failure::Usage(error.to_string()))?;
    say(&format!("wrote {}; lanemark check {} lists its values", path.display(), path.display()));
    Ok(())
}

fn pair_of(host: &str, card: &str) -> Result<Platform, RunError> {
    Ok(host_with_card(host, card)?.complete()?)
}

/// The name of a base as the new file at `path` writes it: a path is relative to its folder, or absolute.
fn base(like: &str, path: &Path) -> Result<String, Failure> {
    let is_in_this_folder = path.parent().is_none_or(|folder| folder.as_os_str().is_empty());
    if !is_path(like) || is_in_this_folder {
        return Ok(like.to_owned());
    }
    let absolute = std::fs::canonicalize(like).map_err(|error| Failure::Usage(format!("reading {like}: {error}")))?;
    Ok(absolute.to_string_lossy().into_owned())
}

/// `lanemark check`
pub fn check(args: &CheckArgs) -> Result<(), Failure> {
    if let Some(part) = part(&args.platform).filter(|_| !is_built_in(&args.platform)) {
        return check_part(args, &part.map_err(|error| Failure::Usage(error.to_string()))?);
    }
    let draft = draft(&args.platform)?;
    let values = draft.values();
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", file::to_json(&to_json(&draft, &values)))?;
        return Ok(());
    }
    writeln!(out, "{}: {}", draft.name(), draft.summary())?;
    writeln!(out, "numbers: {}", counts_in_words(origins_of(&draft.origins())))?;
    list(&mut out, &values, args.all)?;
    if !draft.lesser().is_empty() {
        writeln!(out, "\nhost and card differ:")?;
    }
    draft.lesser().iter().try_for_each(|lesser| writeln!(out, "  {lesser}"))?;
    for unknown in draft.unknowns() {
        writeln!(out, "\n{} is unknown ({}): lanemark fit RECORD --on {}", unknown.key, unknown.reason, args.platform)?;
    }
    Ok(())
}

/// `lanemark check` of a host or a card alone.
fn check_part(args: &CheckArgs, part: &Part) -> Result<(), Failure> {
    let Part { kind, reference, name, summary, .. } = part;
    let (values, counts) = (part.values(), part.counts());
    let mut out = std::io::stdout().lock();
    if args.json {
        let json = json!({
            "kind": kind,
            "name": name,
            "summary": summary,
            "origins": {"given": counts.given, "assumed": counts.assumed, "fitted": counts.fitted, "unknown": counts.unknown},
            "values": values.iter().map(value_to_json).collect::<Vec<_>>(),
        });
        writeln!(out, "{}", file::to_json(&json))?;
        return Ok(());
    }
    let other = if *kind == "host" { "card" } else { "host" };
    writeln!(out, "{name}: a {kind}, not a whole platform: {summary}")?;
    let unknown = if counts.unknown > 0 { format!(", {} unknown", counts.unknown) } else { String::new() };
    let Counts { given, assumed, fitted, .. } = counts;
    writeln!(out, "numbers: {given} given, {assumed} assumed, {fitted} fitted{unknown}")?;
    writeln!(out, "a platform file names it by {kind} = \"{reference}\", and its {other} by {other} = \"...\"")?;
    list(&mut out, &values, args.all)?;
    for unknown in part.unknowns() {
        writeln!(out, "\n{} is unknown ({})", unknown.key, unknown.reason)?;
    }
    Ok(())
}

/// Lists values; those that the file does not state only if `all`.
fn list(out: &mut impl Write, values: &[ValueOf], all: bool) -> Result<(), Failure> {
    let (mut own, mut inherited, mut defaults): (Vec<_>, Vec<_>, Vec<_>) = (Vec::new(), Vec::new(), Vec::new());
    for value in values {
        match &value.origin {
            Origin::Inherited { .. } => inherited.push(value),
            Origin::Default(_) => defaults.push(value),
            _ => own.push(value),
        }
    }
    for (head, shown) in [("stated in this file", &own), ("defaults of keys", &defaults), ("inherited", &inherited)] {
        if shown.is_empty() {
            continue;
        }
        let is_listed = all || head == "stated in this file";
        let rest = if is_listed { ":" } else { "; --all lists them" };
        writeln!(out, "\n{head}: {} values{rest}", shown.len())?;
        if is_listed {
            for value in shown {
                let number = value.value.as_deref().unwrap_or("unknown");
                writeln!(out, "  {} = {number} ({})", value.key, in_words(&value.origin))?;
            }
        }
    }
    Ok(())
}

fn in_words(origin: &Origin) -> String {
    match origin {
        Origin::Given(source) => format!("source: {source}"),
        Origin::Assumed(why) => format!("assumed: {why}"),
        Origin::FittedTo(ids) => format!("fitted to {}", ids.join(", ")),
        Origin::Default(why) => format!("default: {why}"),
        Origin::Unknown(how) => how.clone(),
        Origin::Inherited { from, origin } => format!("{from}; {}", in_words(origin)),
    }
}

fn value_to_json(value: &ValueOf) -> serde_json::Value {
    let (kind, text) = match value.origin.stated() {
        Origin::Given(text) => ("given", text.clone()),
        Origin::Assumed(text) => ("assumed", text.clone()),
        Origin::FittedTo(ids) => ("fitted", ids.join(", ")),
        Origin::Default(text) => ("default", text.clone()),
        Origin::Unknown(text) | Origin::Inherited { from: text, .. } => ("unknown", text.clone()),
    };
    let from = match &value.origin {
        Origin::Inherited { from, .. } => Some(from),
        _ => None,
    };
    json!({"key": value.key, "value": value.value, "origin": kind, "text": text, "inherited_from": from})
}

fn to_json(draft: &Draft, values: &[ValueOf]) -> serde_json::Value {
    let mut json = json!({
        "name": draft.name(),
        "summary": draft.summary(),
        "origins": origins_to_json(&draft.origins()),
        "values": values.iter().map(value_to_json).collect::<Vec<_>>(),
    });
    if !draft.lesser().is_empty() {
        json["host_and_card_differ"] = draft.lesser().iter().map(ToString::to_string).collect();
    }
    json
}
