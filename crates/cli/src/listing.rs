//! `platforms`, `questions`, `kernels`, `schema`, `completions`, `man`: built-in lists and documents, as text or JSON.

use crate::args::{Args, CompletionsArgs, Format, ListArgs, ManArgs, SchemaArgs};
use crate::failure::Failure;
use clap::CommandFactory as _;
use lanemark_bench::CATALOGUE;
use lanemark_platform::{CARDS, Counts, HOSTS, PRESETS, Platform, Preset, host_with_card, preset};
use lanemark_record::file;
use lanemark_report::counts_in_words;
use lanemark_runner::{LOCAL_TARGETS, origins_of};
use lanemark_units::did_you_mean;
use serde_json::json;
use std::io::Write;

/// `lanemark platforms`
pub fn platforms(args: &ListArgs) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let presets: Vec<Platform> = PRESETS.iter().filter_map(|row| preset(row.name)?.ok()).collect();
    let hosts: Vec<Part> = HOSTS.iter().filter_map(|host| part(host, host.name, CARDS.first()?.name)).collect();
    let cards: Vec<Part> = CARDS.iter().filter_map(|card| part(card, HOSTS.first()?.name, card.name)).collect();
    if args.json {
        let list = |parts: &[Part]| parts.iter().map(part_to_json).collect::<Vec<_>>();
        let platforms: Vec<_> = presets
            .iter()
            .map(|platform| {
                json!({
                    "name": platform.name,
                    "summary": platform.summary,
                    "numbers": origins_of(&platform.origins()),
                })
            })
            .collect();
        let document = json!({"platforms": platforms, "hosts": list(&hosts), "cards": list(&cards)});
        writeln!(out, "{}", file::to_json(&document))?;
        return Ok(());
    }
    for platform in &presets {
        let origins = origins_of(&platform.origins());
        writeln!(out, "{:<16} {}", platform.name, platform.summary)?;
        writeln!(out, "{:<16} numbers: {}", "", counts_in_words(origins))?;
    }
    for (name, description) in LOCAL_TARGETS {
        writeln!(out, "{name:<16} {description}")?;
    }
    for (kind, parts) in [("hosts", &hosts), ("cards", &cards)] {
        writeln!(out, "\n{kind}: a host and a card are a platform, such as xeon-spr+gpu-h100")?;
        for Part { name, summary, counts } in parts {
            let Counts { given, assumed, fitted, .. } = counts;
            writeln!(out, "{name:<16} {summary}")?;
            writeln!(out, "{:<16} numbers: {given} given, {assumed} assumed, {fitted} fitted", "")?;
        }
    }
    Ok(())
}

/// A built-in host or card.
struct Part {
    name: &'static str,
    summary: String,
    counts: Counts,
}

/// The built-in `file`, which is `host` or `card`.
fn part(file: &Preset, host: &str, card: &str) -> Option<Part> {
    let platform = host_with_card(host, card).ok()?.complete().ok()?;
    let counts = platform.inherited_from(file.name);
    Some(Part { name: file.name, summary: file.summary().unwrap_or_default(), counts })
}

fn part_to_json(part: &Part) -> serde_json::Value {
    let Counts { given, assumed, fitted, .. } = part.counts;
    json!({
        "name": part.name,
        "summary": part.summary,
        "numbers": {"given": given, "assumed": assumed, "fitted": fitted},
    })
}

/// `lanemark questions`
pub fn questions(args: &ListArgs) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    if args.json {
        let rows = CATALOGUE.iter().map(|question| {
            json!({
                "name": question.name,
                "summary": question.summary,
                "quantity": question.quantity,
                "is_usual": question.is_usual,
            })
        });
        writeln!(out, "{}", file::to_json(&json!({"questions": rows.collect::<Vec<_>>()})))?;
        return Ok(());
    }
    for question in CATALOGUE {
        let named = if question.is_usual { "" } else { " (not by default)" };
        writeln!(out, "{:<26} {}{named}", question.name, question.summary)?;
    }
    Ok(())
}

/// `lanemark kernels`
pub fn kernels() -> Result<(), Failure> {
    Ok(std::io::stdout().lock().write_all(lanemark_hw::every_kernel().as_bytes())?)
}

/// `lanemark schema`
pub fn schema(args: &SchemaArgs) -> Result<(), Failure> {
    let text = match args.format {
        Format::Platform => lanemark_platform::schema(),
        Format::Device => lanemark_devices::schema(),
        Format::Record => lanemark_record::schema(),
        Format::Doctor => lanemark_record::diagnosis::schema(),
        Format::Fleet => lanemark_record::fleet::schema(),
        Format::Guidance => lanemark_record::guidance::schema(),
        Format::Space => lanemark_sweep::schema(),
        Format::SweepLog => lanemark_record::sweep_log_schema(),
        Format::Copies => lanemark_copy_plan::schema(),
    };
    Ok(std::io::stdout().lock().write_all(text.as_bytes())?)
}

/// `lanemark completions`
pub fn completions(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "lanemark", &mut script);
    Ok(std::io::stdout().lock().write_all(&script)?)
}

/// `lanemark man`
pub fn man(args: &ManArgs) -> Result<(), Failure> {
    let mut whole = Args::command();
    whole.build();
    let command = match &args.command {
        None => whole,
        Some(name) => {
            let known: Vec<&str> = whole.get_subcommands().map(clap::Command::get_name).collect();
            let hint = did_you_mean(name, known).map(|hint| format!("; {hint}")).unwrap_or_default();
            let found = whole.find_subcommand(name).cloned();
            found.ok_or_else(|| Failure::Usage(format!("'{name}' is not a command: see lanemark --help{hint}")))?
        }
    };
    let mut page = Vec::new();
    clap_mangen::Man::new(command).render(&mut page)?;
    Ok(std::io::stdout().lock().write_all(&page)?)
}
