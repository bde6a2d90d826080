//! Does every command and example in the documents work?
//!
//! In a block marked `console`, a line behind `$ ` is run, and the lines under it must come out of it, in
//! this order; `...` stands for anything, in a line or as one. In a block marked `sh`, every line is run.
//!
//! Notes behind the mark: `exit=2` names the exit code; `varies=host` says that from a line with that word
//! to the next blank one, figures are those of some machine; `file=NAME` makes the block a file that later
//! commands of the page can use; `broken` says that it is not meant to be a sound one; `guest` says that its commands want
//! a card, and are run in a guest that has one by the test `guest` (`make test-qemu`) instead of here; `runtime` and `gpu`
//! say the same of a runtime and of the fake driver of a GPU, by the tests `runtimes` and `cuda`; `rtl` of designs in
//! `SystemVerilog`, by the test `rtl`.
//!
//! With `LANEMARK_BLESS` set, figures that are no longer those of the output are renewed in the page, and
//! so are the key tables of the guide.

mod command;
mod picture;
mod readme;

use lanemark_checks::page::{Block, Page};
use lanemark_checks::shown::{missing, renewed};
use lanemark_checks::{on_all_cores, root};
use std::path::Path;

/// The pages whose commands are run.
fn pages() -> Vec<Page> {
    let is_run = |page: &Page| {
        page.path.starts_with("docs/guide/") || matches!(page.path.as_str(), "README.md" | "CONTRIBUTING.md")
    };
    Page::all().into_iter().filter(is_run).collect()
}

#[test]
fn every_command_works_and_says_what_is_shown() {
    let (commands, wrong): (Vec<usize>, Vec<Vec<String>>) = on_all_cores(pages(), try_commands).into_iter().unzip();
    let (commands, wrong) = (commands.iter().sum::<usize>(), wrong.concat());
    assert!(commands >= 10, "only {commands} commands were found: the pages are not read");
    assert!(wrong.is_empty(), "{} of {commands} commands:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

/// Runs the commands of a page in order, in one folder: how many there are, and what is wrong.
fn try_commands(mut page: Page) -> (usize, Vec<String>) {
    let (mut commands, mut wrong) = (0, Vec::new());
    let folder = tempfile::tempdir().unwrap();
    for block in page.blocks() {
        if let Some(name) = block.note("file") {
            std::fs::write(folder.path().join(name), block.lines.join("\n") + "\n").unwrap();
        }
        for (command, shown) in block.commands() {
            if ["guest", "runtime", "gpu", "rtl"].iter().any(|elsewhere| block.has(elsewhere)) {
                assert!(command.starts_with("lanemark "), "{}:{}: $ {command}", page.path, block.line);
                continue;
            }
            commands += 1;
            match check(&block, &command, &shown, folder.path()) {
                Ok(()) => {}
                Err(Wrong::Output(_, renewed)) if is_blessing() && renewed != shown => {
                    page.text = page.text.replacen(&shown.join("\n"), &renewed.join("\n"), 1);
                    std::fs::write(root().join(&page.path), &page.text).unwrap();
                }
                Err(Wrong::Output(what, _) | Wrong::Command(what)) => {
                    wrong.push(format!("{}:{}: $ {command}\n{what}", page.path, block.line));
                }
            }
        }
    }
    (commands, wrong)
}

/// What is wrong with a command of a page.
enum Wrong {
    /// It does not run as the page says.
    Command(String),
    /// It does not say what is shown; and what could be shown instead.
    Output(String, Vec<String>),
}

fn is_blessing() -> bool {
    std::env::var_os("LANEMARK_BLESS").is_some()
}

fn check(block: &Block, command: &str, shown: &[String], folder: &Path) -> Result<(), Wrong> {
    let wanted: i32 = block.note("exit").unwrap_or("0").parse().expect("exit= wants a number");
    let outcome = command::run(command, folder).map_err(Wrong::Command)?;
    if outcome.code != Some(wanted) {
        return Err(Wrong::Command(format!("exit code {:?} instead of {wanted}:\n{}", outcome.code, outcome.output)));
    }
    match missing(shown, &outcome.output, block.note("varies")) {
        Some(line) => {
            let what = format!("does not say, at its place: {line}\n{}", outcome.output);
            Err(Wrong::Output(what, renewed(shown, &outcome.output)))
        }
        None => Ok(()),
    }
}

#[test]
fn every_block_says_its_language() {
    for page in Page::all() {
        for block in page.blocks() {
            assert!(!block.language.is_empty(), "{}:{}: write text, sh, console, toml ...", page.path, block.line);
        }
    }
}

#[test]
fn every_link_leads_somewhere() {
    for page in Page::all() {
        for link in page.links() {
            assert!(root().join(&link).exists(), "{} links to {}, which is not there", page.path, link.display());
        }
    }
}

#[test]
fn every_cause_of_a_wait_is_explained() {
    let page = Page::read("docs/guide/waits.md");
    for cause in lanemark_machine::Cause::ALL {
        let row = format!("| `{}` | ", cause.name());
        let rows: Vec<&str> = page.text.lines().filter(|line| line.starts_with(&row)).collect();
        let [row] = rows[..] else { panic!("{} rows of {}", rows.len(), cause.name()) };
        assert!(row.ends_with(&format!(" | {} |", cause.remedy())), "the page of a report says: {}", cause.remedy());
    }
    let rows = page.text.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, lanemark_machine::Cause::ALL.len(), "a row of a cause that is none");
}

#[test]
fn every_example_of_a_platform_is_one() {
    let page = Page::read("docs/guide/platform.md");
    let examples: Vec<Block> = page.blocks().into_iter().filter(|block| block.language == "toml").collect();
    let whole = |block: &&Block| block.note("file").is_some() && !block.has("broken");
    assert!(examples.iter().any(|block| whole(&block)), "the guide has no whole example");
    for block in examples.iter().filter(whole) {
        let name = block.note("file").unwrap();
        if let Err(error) = lanemark_platform::Platform::parse(name, &block.lines.join("\n")) {
            panic!("{}:{}: {error}", page.path, block.line);
        }
    }
}

#[test]
fn the_example_of_a_device_file_is_one_and_its_message_is_printed() {
    let page = Page::read("docs/guide/device-file.md");
    let blocks = page.blocks();
    let example = blocks.iter().find(|block| block.language == "toml").unwrap();
    let (name, text) = (example.note("file").unwrap(), example.lines.join("\n"));
    lanemark_devices::DeviceFile::parse(name, &text).unwrap_or_else(|error| panic!("{}: {error}", page.path));
    let wrong = text.replacen("source_register = 0x00", "source_register = 0x02", 1);
    let error = lanemark_devices::DeviceFile::parse(name, &wrong).unwrap_err();
    let shown = blocks.iter().find(|block| block.language == "text").unwrap();
    assert_eq!(shown.lines, [error.to_string()]);
}

#[test]
fn the_guide_has_the_keys_of_the_code() {
    same_keys("docs/guide/platform.md", &lanemark_platform::key_table());
    same_keys("docs/guide/device-file.md", &lanemark_devices::key_table());
}

/// Compares the keys in a page with those of the code, or renews them.
fn same_keys(page: &str, table: &str) {
    const MARKS: [&str; 2] = ["<!-- keys: begin -->\n", "<!-- keys: end -->"];
    let page = Page::read(page);
    let (before, rest) = page.text.split_once(MARKS[0]).expect("the mark where the keys begin");
    let (keys, after) = rest.split_once(MARKS[1]).expect("the mark where the keys end");
    let wanted = format!("\n{table}");
    if is_blessing() {
        let text = format!("{before}{}{wanted}{}{after}", MARKS[0], MARKS[1]);
        std::fs::write(root().join(&page.path), text).unwrap();
    } else {
        let renew = "LANEMARK_BLESS=1 cargo test -p lanemark-checks --test docs";
        assert!(keys == wanted, "the keys in {} are not those of spec.rs; renew them by: {renew}", page.path);
    }
}

#[test]
fn the_guide_has_every_question() {
    let page = Page::read("docs/guide/questions.md");
    for question in lanemark_bench::CATALOGUE {
        let heading = format!("## `{}`", question.name);
        assert!(page.text.lines().any(|line| line == heading), "{} has no heading '{heading}'", page.path);
    }
}

#[test]
fn the_schemas_are_those_of_the_code() {
    let same = |name: &str, wanted: String| {
        let found = std::fs::read_to_string(root().join(name)).unwrap_or_default();
        assert!(found == wanted, "{name} is not what the code says; renew it by: make schemas");
    };
    same("schemas/platform.json", lanemark_platform::schema());
    same("schemas/device.json", lanemark_devices::schema());
    same("schemas/record.json", lanemark_record::schema());
}
