//! Is the README complete: every command, every preset?

use lanemark_checks::lanemark;
use lanemark_checks::page::Page;
use lanemark_platform::PRESETS;
use std::collections::BTreeSet;
use std::process::Command;

/// The commands that `help` lists, except `help` itself.
fn commands(help: &str) -> BTreeSet<String> {
    let (_, rest) = help.split_once("\nCommands:\n").expect("a list of commands");
    let names = rest.lines().take_while(|line| !line.is_empty()).filter_map(|line| {
        // Further lines of a description are indented deeper.
        let name = line.strip_prefix("  ").filter(|line| !line.starts_with(' '))?;
        name.split(' ').next().map(str::to_owned)
    });
    names.filter(|name| name != "help").collect()
}

/// The commands in the first column of a table, `| `lanemark NAME` | ... |`.
fn in_table(text: &str) -> BTreeSet<String> {
    let names = text.lines().filter_map(|line| line.strip_prefix("| `lanemark ")?.split_once("` |"));
    names.map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn every_command_is_in_the_table_of_the_readme() {
    let help = Command::new(lanemark()).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let table = in_table(&Page::read("README.md").text);
    assert_eq!(table, commands(&help), "left: the table in README.md; right: lanemark --help");
    let lists = |help: &str| commands(help).into_iter().collect::<Vec<_>>();
    assert_eq!(lists("x\n\nCommands:\n  bench  Ask\n           again\n  help   Print\n\nOptions:\n  -h\n"), ["bench"]);
}

#[test]
fn every_preset_is_named_in_the_readme() {
    let text = Page::read("README.md").text;
    let missing: Vec<&str> =
        PRESETS.iter().map(|preset| preset.name).filter(|name| !text.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "README.md names no preset {}", missing.join(", "));
}
