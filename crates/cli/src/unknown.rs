//! `fit` for a platform file with unknown numbers: fills them in from a record or a table.

use crate::args::FitArgs;
use crate::failure::{Failure, say};
use crate::input;
use crate::output::{self, terminal_width};
use crate::progress::spinner;
use lanemark_fit::{
    Contender, Distinction, Errors, FillError, FillOptions, Filled, MOST_PREDICTIONS, Measured, Missed, Reading,
    Reopened, Table, fill_in,
};
use lanemark_platform::{Draft, Origin, Origins};
use lanemark_record::file;
use lanemark_runner::{draft, origins_of};
use lanemark_units::Rate;
use serde_json::json;
use std::io::Write;
use std::path::Path;

/// The platform file to fill in, if the command line names one with unknown numbers.
pub fn wanted(args: &FitArgs) -> Result<Option<Draft>, Failure> {
    let changes_fit = args.assume_rest || args.keep_structure || !args.assume.is_empty();
    let asked = changes_fit || args.from.is_some() || args.write.is_some();
    let Some(on) = args.on.as_deref().filter(|_| args.parameters.is_empty()) else {
        let message = "--assume, --assume-rest, --keep-structure and --write need a platform file with unknown numbers: name it with --on";
        return if asked { Err(Failure::Usage(message.to_owned())) } else { Ok(None) };
    };
    let draft = draft(on)?;
    Ok((asked || !draft.unknowns().is_empty()).then_some(draft))
}

/// `lanemark fit RECORD --on FILE`
pub fn fit(args: &FitArgs, mut draft: Draft) -> Result<(), Failure> {
    let [name] = args.papers.as_slice() else {
        return Err(Failure::Usage("unknown numbers are fitted to exactly one record or table: name one".to_owned()));
    };
    let path = Path::new(name);
    if let Some(write) = &args.write {
        // Overwriting the platform file is allowed, overwriting the record is not.
        output::check(&[write], &[path])?;
    }
    let origin = Origin::Assumed("given to lanemark fit with --assume".to_owned());
    for (key, value) in &args.assume {
        draft = draft.fill(key, *value, &origin).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    let (table, record);
    let measured = if args.from.is_some() || input::is_table(path) {
        table = input::table(path, args.from)?;
        Measured::Table(&table)
    } else {
        record = input::record(path)?;
        Measured::Record(&record, args.of.as_deref())
    };
    let reading = match measured {
        Measured::Table(table) if args.from.is_some() => Some(table),
        _ => None,
    };
    if let Some(table) = reading {
        say_reading(name, table);
    }
    let bar = spinner(format!("{name}: {} unknown numbers", draft.unknowns().len()));
    let kept: Vec<String> = args.assume.iter().map(|(key, _)| key.clone()).collect();
    let options =
        FillOptions { kept: &kept, assume_rest: args.assume_rest, keep_structure: args.keep_structure, cancel: None };
    let filled = fill_in(name, &measured, &draft, options);
    bar.finish_and_clear();
    let filled = filled.map_err(|error| match error {
        FillError::Record(error) => Failure::Usage(format!("{name}: {error}")),
        error => Failure::Check(error.to_string()),
    })?;
    if let Some(write) = &args.write {
        file::write_whole(write, filled.draft.text().as_bytes()).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        let mut document = fit_json(name, &filled);
        if let Some((document, table)) = document.as_object_mut().zip(reading) {
            document.insert("reading".to_owned(), reading_to_json(table));
        }
        writeln!(out, "{}", file::to_json(&document))?;
    } else {
        print(&mut out, name, &filled, terminal_width())?;
    }
    drop(out);
    if let Some(write) = &args.write {
        say(&format!("wrote {}", write.display()));
    }
    Ok(())
}

/// Reports the lines of a tool's output that were used and left out.
fn say_reading(name: &str, table: &Table) {
    let Reading { skipped_lines, refused, notes } = &table.reading;
    let (figures, refusals) = (table.rows.len(), refused.len());
    say(&format!("{name}: {figures} figures read, {refusals} left out, {skipped_lines} lines of other kinds skipped"));
    for (line, because) in refused {
        say(&format!("{name}:{line}: left out: {because}"));
    }
    for note in notes {
        say(&format!("note: {note}"));
    }
}

fn reading_to_json(table: &Table) -> serde_json::Value {
    let Reading { skipped_lines, refused, notes } = &table.reading;
    let refused: Vec<_> = refused.iter().map(|(line, because)| json!({"line": line, "because": because})).collect();
    json!({"figures": table.rows.len(), "skipped_lines": skipped_lines, "refused": refused, "notes": notes})
}

/// The result of a fit to the data called `name`, as the command prints it.
///
/// # Errors
/// None in practice: text in memory can always be written.
pub fn fit_text(name: &str, filled: &Filled) -> Result<String, Failure> {
    let mut text = Vec::new();
    print(&mut text, name, filled, None)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Decimal places that show two digits of the width of this interval, at most five.
fn decimals((least, most): (f64, f64)) -> usize {
    let places = 1.0 - (most - least).log10().floor();
    if places.is_finite() { places.clamp(0.0, 5.0) as usize } else { 5 }
}

fn print(out: &mut impl Write, name: &str, filled: &Filled, width: Option<u16>) -> Result<(), Failure> {
    let used: Vec<String> = filled.questions.iter().map(|(name, count)| format!("{count} of {name}")).collect();
    writeln!(out, "{name} on {}: fitted to {}", filled.draft.name(), used.join(", "))?;
    let is_open = |key: &str| filled.draft.unknowns().iter().any(|unknown| unknown.key == key);
    let told = |key: &String| !is_open(key) && !filled.assumed.contains(key);
    for found in filled.fit.found.iter().filter(|found| told(&found.name)) {
        let (least, most) = found.leave_one_out;
        let digits = decimals(found.within_95.unwrap_or((least, most)));
        let within = found.within_95.map(|(least, most)| format!("{least:.digits$} to {most:.digits$} with 95 %, "));
        let within = within.unwrap_or_default();
        let (name, value) = (&found.name, found.value);
        writeln!(out, "  {name} = {value:.digits$} ({within}{least:.digits$} to {most:.digits$} leaving one out)")?;
    }
    for reopened in &filled.reopened {
        let Reopened { key, assumed, chosen, is_compared, .. } = reopened;
        let (others, is_other) = (reopened.others(), (assumed - chosen).abs() > 0.0);
        let [assumed, chosen] = [*assumed, *chosen].map(|value| reopened.in_words(value));
        if !is_compared {
            writeln!(
                out,
                "  {key} = {chosen}, as assumed: {others} was not tried in a full fit, because a short fit was no better"
            )?;
        } else if is_other {
            writeln!(out, "  {key} = {chosen}, not {assumed} as assumed: clearly better at held-out figures")?;
        } else {
            writeln!(out, "  {key} = {chosen}, as assumed: {others} is not clearly better at held-out figures")?;
        }
    }
    for (key, with) in &filled.conditional {
        let others = with.join(", ");
        writeln!(out, "  {key} depends on {others}, because the figures determine only their combination")?;
    }
    let of_sets = |key: &&String| filled.fit.loose.iter().any(|set| set.names.contains(*key));
    let usual: Vec<String> = filled.assumed.iter().filter(|key| !of_sets(key)).cloned().collect();
    if !usual.is_empty() {
        let assumed = usual.join(", ");
        writeln!(out, "  assumed, because the figures do not determine it: {assumed}")?;
        print_measurements_needed(out, filled, &usual)?;
    }
    if !filled.at_default.is_empty() {
        writeln!(out, "  at the default, because the figures do not determine it: {}", filled.at_default.join(", "))?;
    }
    for key in &filled.beyond {
        writeln!(
            out,
            "  the best value of {key} is outside its search range: check that the platform is that of the data"
        )?;
    }
    let state = if filled.assumed.is_empty() { "still unknown" } else { "assumed" };
    let (sums, alone): (Vec<_>, Vec<_>) = filled.fit.loose.iter().partition(|set| set.free < set.names.len());
    for set in sums {
        let (names, free, of) = (set.names.join(", "), set.free, set.names.len());
        writeln!(
            out,
            "  {state}: {names}; fix {free} of these {of} (--assume KEY=VALUE), and the data determine the rest"
        )?;
        print_measurements_needed(out, filled, &set.names)?;
    }
    let alone: Vec<String> =
        alone.iter().flat_map(|set| set.names.clone()).filter(|name| !filled.beyond.contains(name)).collect();
    if !alone.is_empty() {
        writeln!(out, "  {state}: {}; no answer depends on them (--assume KEY=VALUE)", alone.join(", "))?;
        print_measurements_needed(out, filled, &alone)?;
    }
    writeln!(out)?;
    print_contenders(out, &filled.contenders)?;
    if filled.is_cut_short {
        writeln!(
            out,
            "  the search ended early, after {MOST_PREDICTIONS} predictions by formulas; other structures were not tried"
        )?;
    }
    out.write_all(lanemark_report::residual_table(&filled.residuals, &filled.held_out, width).as_bytes())?;
    if let Some((fitted, held_out, verdict)) = filled.halves() {
        writeln!(out, "\nfitted to: {}", in_words(&fitted))?;
        writeln!(out, "held out:  {}", in_words(&held_out))?;
        writeln!(out, "{}", verdict.sentence())?;
    }
    for Missed { what, error_percent, is_end } in &filled.missed {
        let end = if *is_end { ", an end of its curve, which the other sizes may not determine" } else { "" };
        writeln!(out, "missed if held out: {what} ({error_percent:+.1} %){end}")?;
    }
    for pattern in &filled.patterns {
        writeln!(out, "left over in {pattern}")?;
    }
    print_left_out(out, filled, width)?;
    let Origins { own, inherited } = filled.draft.origins();
    let (given, assumed, fitted) = (own.given, own.assumed, own.fitted);
    let unknown = own.unknown + inherited.unknown;
    write!(out, "\n{given} numbers given, {assumed} assumed, {fitted} fitted, {unknown} unknown")?;
    match inherited.total() - inherited.unknown {
        0 => writeln!(out)?,
        all => writeln!(out, ", {all} inherited")?,
    }
    Ok(())
}

/// Prints the figures that were left out, with the errors of their predictions.
fn print_left_out(out: &mut impl Write, filled: &Filled, width: Option<u16>) -> Result<(), Failure> {
    let (Some(left_out), Some((_, without, _))) = (&filled.left_out, filled.halves()) else { return Ok(()) };
    let (figures, mean) = (left_out.residuals.len(), left_out.held_out_with_them.mean_percent);
    writeln!(
        out,
        "\nleft out: {figures} figures of dma_read_write_mix, because no structure describes them together with the others: \
         the mean error of held-out figures is {mean:.1} % with them, and {:.1} % without",
        without.mean_percent
    )?;
    writeln!(out, "do not rely on predictions for both directions at once:\n")?;
    out.write_all(lanemark_report::residual_table(&left_out.residuals, &[], width).as_bytes())?;
    Ok(())
}

/// Most structures that are printed; the JSON has all.
const PRINTED: usize = 6;

/// Prints the best structures and that of the file, each with its errors at figures that were not fitted.
fn print_contenders(out: &mut impl Write, contenders: &[Contender]) -> Result<(), Failure> {
    if contenders.len() < 2 {
        return Ok(());
    }
    writeln!(out, "structures compared, each by its errors at figures that were not fitted:")?;
    for (place, contender) in contenders.iter().enumerate() {
        let is_file = contender.set.is_empty() && contender.fitted.is_empty();
        let is_named = is_file || contender.is_chosen || contender.is_like_chosen || contender.distinction.is_some();
        if place >= PRINTED && !is_named {
            continue;
        }
        let chosen = match contender {
            Contender { is_chosen: true, .. } => ", chosen",
            Contender { is_like_chosen: true, .. } => ", gives the same figures as the chosen one",
            Contender { is_as_likely: true, .. } => ", as likely as the chosen one",
            _ => "",
        };
        let (median, mean) = (contender.median_percent(), contender.mean_percent());
        writeln!(out, "  {}: median {median:.1} %, mean {mean:.1} %{chosen}", in_keys(contender))?;
    }
    print_distinctions(out, contenders)?;
    writeln!(out)?;
    Ok(())
}

/// Prints the measurements that tell the chosen structure from others that the figures do not exclude.
fn print_distinctions(out: &mut impl Write, contenders: &[Contender]) -> Result<(), Failure> {
    let told = contenders.iter().filter_map(|contender| Some((contender, contender.distinction.as_ref()?)));
    let mut told: Vec<(&Contender, &Distinction)> = told.collect();
    told.sort_by(|one, other| other.1.percent().total_cmp(&one.1.percent()));
    if !told.is_empty() {
        writeln!(out, "the figures do not tell the chosen structure from these; one more figure does:")?;
    }
    for (contender, distinction) in told.into_iter().take(PRINTED) {
        let Distinction { question, size_bytes, window_bytes, .. } = distinction;
        let places = window_bytes.map_or_else(String::new, |window| {
            format!(" at random places of a window of {window} B (page walks: as many at once as the figures allow)")
        });
        let figure = |value: f64| match distinction.unit {
            "ns" => format!("{value:.0} ns"),
            _ => Rate::from_bytes_per_s(value).map_or_else(|| format!("{value:.0} B/s"), |rate| rate.to_string()),
        };
        let (chosen, other) = (figure(distinction.chosen), figure(distinction.other));
        writeln!(
            out,
            "  {question} of {size_bytes} B{places}: {chosen} if chosen, {other} with {}",
            in_keys(contender)
        )?;
    }
    Ok(())
}

/// A structure as its keys.
fn in_keys(contender: &Contender) -> String {
    let set = contender.set.iter().map(|(key, value)| format!("{key} = {value}"));
    let parts: Vec<String> = set.chain(contender.fitted.iter().cloned()).collect();
    if parts.is_empty() { "as in the file".to_owned() } else { parts.join(", ") }
}

/// Prints the measurement that would determine each open number.
fn print_measurements_needed(out: &mut impl Write, filled: &Filled, keys: &[String]) -> Result<(), Failure> {
    for (key, what) in keys.iter().filter_map(|key| Some((key, filled.measurement_for(key)?))) {
        writeln!(out, "    {key} can be determined by {what}")?;
    }
    Ok(())
}

fn in_words(errors: &Errors) -> String {
    let Errors { count, median_percent, mean_percent, worst_percent } = errors;
    format!("{count} figures, median error {median_percent:.1} %, mean {mean_percent:.1} %, worst {worst_percent:.1} %")
}

fn errors_to_json(errors: &Errors) -> serde_json::Value {
    let Errors { count, median_percent, mean_percent, worst_percent } = errors;
    json!({
        "count": count, "median_percent": median_percent, "mean_percent": mean_percent, "worst_percent": worst_percent
    })
}

/// The counts as JSON, with 0 unknown.
pub fn origins_to_json(origins: &Origins) -> serde_json::Value {
    let mut counts = json!({"unknown": 0});
    if let (Some(counts), Ok(serde_json::Value::Object(counted))) =
        (counts.as_object_mut(), serde_json::to_value(origins_of(origins)))
    {
        counts.extend(counted);
    }
    counts
}

/// The result of a fit to the data called `name`, as the command writes it with `--json`.
#[must_use]
pub fn fit_json(name: &str, filled: &Filled) -> serde_json::Value {
    let (found, loose) = (filled.fit.found.iter(), filled.fit.loose.iter());
    json!({
        "from": name,
        "platform": filled.draft.name(),
        "questions": filled.questions.iter().map(|(name, count)| json!({"question": name, "answers": count})).collect::<Vec<_>>(),
        "parameters": found.map(|found| json!({
            "key": found.name,
            "value": found.value,
            "at_bound": found.at_bound,
            "leave_one_out": [found.leave_one_out.0, found.leave_one_out.1],
            "within_95": found.within_95.map(|(least, most)| [least, most]),
        })).collect::<Vec<_>>(),
        "open": loose.map(|set| json!({
            "keys": set.names,
            "free": set.free,
            "measurements": set.names.iter().map(|key| filled.measurement_for(key)).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "cut_short": filled.is_cut_short,
        "reopened": filled.reopened.iter().map(|value| {
            let typed = |number: f64| if value.is_flag { json!(number > 0.0) } else { json!(number) };
            json!({
                "key": value.key,
                "assumed": typed(value.assumed),
                "chosen": typed(value.chosen),
                "compared": value.is_compared,
            })
        }).collect::<Vec<_>>(),
        "structures": filled.contenders.iter().map(|contender| json!({
            "set": contender.set.iter().map(|(key, value)| json!({"key": key, "value": value})).collect::<Vec<_>>(),
            "fitted": contender.fitted,
            "held_out_median_percent": contender.median_percent(),
            "held_out_mean_percent": contender.mean_percent(),
            "is_chosen": contender.is_chosen,
            "is_like_chosen": contender.is_like_chosen,
            "is_as_likely": contender.is_as_likely,
            "told_apart_by": contender.distinction.as_ref().map(|one| json!({
                "question": one.question,
                "size_bytes": one.size_bytes,
                "window_bytes": one.window_bytes,
                "unit": one.unit,
                "chosen": one.chosen,
                "other": one.other,
            })),
        })).collect::<Vec<_>>(),
        "patterns": filled.patterns.iter().map(|pattern| json!({
            "of": pattern.of,
            "text": pattern.to_string(),
            "explained_percent": pattern.explained_percent,
            "keys": pattern.keys,
        })).collect::<Vec<_>>(),
        "conditional": filled.conditional.iter().map(|(key, with)| json!({"key": key, "with": with})).collect::<Vec<_>>(),
        "at_default": filled.at_default,
        "assumed": filled.assumed,
        "beyond": filled.beyond,
        "unknown": filled.draft.unknowns().iter().map(|unknown| &unknown.key).collect::<Vec<_>>(),
        "origins": origins_to_json(&filled.draft.origins()),
        "residuals": filled.residuals,
        "held_out": filled.held_out,
        "missed": filled.missed.iter().map(|missed| json!({
            "what": missed.what,
            "error_percent": missed.error_percent,
            "is_end": missed.is_end,
        })).collect::<Vec<_>>(),
        "left_out": filled.left_out.as_ref().map(|left_out| json!({
            "residuals": left_out.residuals,
            "held_out_with_them": errors_to_json(&left_out.held_out_with_them),
        })),
        "halves": filled.halves().map(|(fitted, held_out, verdict)| json!({
            "fitted": errors_to_json(&fitted),
            "held_out": errors_to_json(&held_out),
            "verdict": verdict.name(),
        })),
        "draft": filled.draft.to_json(),
    })
}

#[cfg(test)]
mod tests {
    use super::decimals;

    #[test]
    fn two_digits_of_the_width_of_an_interval_are_shown() {
        assert_eq!([(514.4, 530.1), (23.7, 24.3), (4.008, 4.072), (1e-9, 2e-9)].map(decimals), [0, 2, 3, 5]);
        assert_eq!([(24.0, 24.0), (0.0, f64::INFINITY), (f64::NAN, 1.0)].map(decimals), [5, 5, 5]);
    }
}
