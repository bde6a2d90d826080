//! Designs in `SystemVerilog` under the adversary: the card of `rtl/`, its mutants and the example engine.
//!
//! `make test-rtl` fetches Verilator and runs these tests.

mod blocks;
mod card;
mod design;
mod figures;
mod plans;
mod questions;
mod sequence;
mod three_ways;
mod timing;

use design::{Mutant, all_detected, build, changed, loaded, mutants};
use lanemark_adversary::{RULES, Request, SITUATIONS, Situation, Summary, Target, campaign};
use lanemark_checks::page::Page;
use lanemark_checks::shown::missing;
use lanemark_checks::trials::{Available, Trial, run};
use lanemark_checks::{lanemark, python_module, root, trials};
use lanemark_devices::DeviceFile;
use lanemark_hw::dut_library::DutLibrary;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// TLPs that the correct card passes with each of both partners.
const TLPS: u64 = 100_000;
/// Seeds of a mutant with each partner: at most a few seconds.
const LEGAL_SEEDS: u64 = 48;
const ILLEGAL_SEEDS: u64 = 400;

fn main() -> ExitCode {
    let verilator = Available::unless("LANEMARK_SKIPPED_RTL");
    let cocotb = verilator.and(&Available::new(cocotb(), "LANEMARK_REQUIRE_RTL"));
    let proofs = Available::unless("LANEMARK_SKIPPED_PROOFS");
    let is_long = std::env::var_os("LANEMARK_LONG").is_some_and(|value| !value.is_empty());
    let long = verilator.and(&Available::optional(if is_long { Ok(()) } else { Err("make test-long".to_owned()) }));
    let mut tests: Vec<Trial> = trials!(
        verilator;
        the_card_passes_a_hundred_thousand_tlps_of_a_legal_partner,
        the_card_passes_a_hundred_thousand_tlps_of_an_illegal_partner,
        each_mutant_of_the_card_is_found_with_its_rule,
        the_example_engine_works_with_a_legal_partner,
        both_failures_of_the_example_engine_are_found,
        the_same_seed_gives_the_same_run,
        a_finding_is_kept_as_a_file_that_fails_in_the_same_way,
        a_design_that_does_not_return_is_a_finding,
        a_design_that_does_not_settle_is_a_finding,
        blocks::the_card_breaks_no_rule_behind_any_block,
        blocks::misuse_of_a_block_is_found,
        blocks::ports_that_fit_no_interface_are_refused_by_name,
        commands_of_the_guide_print_the_shown_output,
        three_ways::the_platform_file_is_what_its_generator_writes,
        three_ways::the_compiled_and_the_simulated_card_send_the_same_tlps,
        three_ways::the_times_of_both_cards_differ_by_at_most_a_clock_a_stage,
        figures::beats_follow_the_published_rules_of_write_combining,
        figures::a_write_starts_at_any_dw_of_the_stream,
        three_ways::mutants_of_the_card_send_other_tlps,
        questions::a_plan_takes_the_time_of_the_simulated_card_within_a_clock_a_stage,
        questions::every_byte_is_confirmed_and_a_mutant_loses_some,
        questions::the_card_behind_a_block_is_measured_too,
        questions::a_compiled_card_without_what_it_needs_is_refused_with_what_to_name,
        questions::a_record_names_the_library_and_the_host,
        questions::a_design_that_does_not_return_ends_the_command,
    )
    .into();
    tests.extend(trials!(
        cocotb;
        the_example_test_bench_of_cocotb_finds_the_trusted_completion,
        blocks::the_card_with_ultrascale_streams_works_with_a_model_of_others,
        blocks::one_test_bench_of_cocotb_serves_every_interface,
    ));
    tests.extend(trials!(proofs; the_rules_of_the_card_are_proved_and_each_mutant_is_refuted));
    tests.extend(trials!(long; the_card_passes_ten_million_tlps));
    run(tests)
}

/// Whether test benches of cocotb can run, or the reason why not.
fn cocotb() -> Result<(), String> {
    let output = Command::new(root().join("rtl/cocotb_run")).arg("--available").output().unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()) }
}

fn the_rules_of_the_card_are_proved_and_each_mutant_is_refuted() {
    let output = Command::new(root().join("rtl/prove")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains(" mutants: all proved and refuted"), "{text}");
    assert!(text.matches("proved by induction at depth").count() >= 60, "{text}");
    assert!(text.matches(": refuted").count() >= 50, "{text}");
}

/// The Python package in a folder, and the folder for `PYTHONPATH`.
fn package() -> (tempfile::TempDir, PathBuf) {
    let packages = tempfile::tempdir().unwrap();
    let package = packages.path().join("lanemark");
    fs::create_dir(&package).unwrap();
    for entry in fs::read_dir(root().join("python/lanemark")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, package.join(path.file_name().unwrap())).unwrap();
        }
    }
    fs::copy(python_module(), package.join("_lanemark.abi3.so")).unwrap();
    let path = packages.path().to_owned();
    (packages, path)
}

fn the_example_test_bench_of_cocotb_finds_the_trusted_completion() {
    let (_packages, path) = package();
    let output = Command::new(root().join("rtl/cocotb_run"))
        .args(["copy_engine", "rtl/examples/test_copy_engine.py", "rtl/examples/copy_engine.sv"])
        .current_dir(root())
        .env("PYTHONPATH", path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("TESTS=2 PASS=2 FAIL=0 SKIP=0"), "{text}");
}

fn the_card_passes_ten_million_tlps() {
    let library = design::card();
    let target = target("rtl/card.toml");
    let (mut tlps, mut from) = (0, 0);
    while tlps < 100 * TLPS {
        for is_illegal in [false, true] {
            let request = Request { seeds: from..from + 1000, is_illegal, threads: 2 };
            let open = |_| library.open("a seed").map_err(|error| error.to_string());
            let summary = campaign(&request, &target, open, || false).unwrap();
            let texts: Vec<String> = summary.failures.iter().map(|failure| format!("{failure:?}")).collect();
            assert!(texts.is_empty(), "{}", texts.join("\n"));
            tlps += summary.tlps;
        }
        from += 1000;
    }
}

fn target(file: &str) -> Target {
    let text = fs::read_to_string(root().join(file)).unwrap();
    Target::new(&DeviceFile::parse(file, &text).unwrap(), 2048).unwrap()
}

fn fuzz(library: &DutLibrary, target: &Target, seeds: u64, is_illegal: bool, threads: usize) -> Summary {
    let request = Request { seeds: 0..seeds, is_illegal, threads };
    campaign(&request, target, |_| library.open("a seed").map_err(|error| error.to_string()), || false).unwrap()
}

fn names(summary: &Summary) -> Vec<&'static str> {
    summary.failures.iter().map(|failure| failure.finding.rule.row().name).collect()
}

fn card_is_clean(is_illegal: bool) {
    let library = design::card();
    let summary = fuzz(library, &target("rtl/card.toml"), 700, is_illegal, 2);
    let texts: Vec<String> = summary.failures.iter().map(|failure| format!("{:?}", failure.finding)).collect();
    assert!(texts.is_empty(), "{}", texts.join("\n"));
    assert!(summary.tlps >= TLPS, "only {} TLPs", summary.tlps);
    for row in SITUATIONS.iter().filter(|row| row.is_legal || is_illegal) {
        assert!(summary.coverage.of(row.situation) > 0, "{} was never tried", row.name);
    }
}

fn the_card_passes_a_hundred_thousand_tlps_of_a_legal_partner() {
    card_is_clean(false);
}

fn the_card_passes_a_hundred_thousand_tlps_of_an_illegal_partner() {
    card_is_clean(true);
}

/// What is wrong with the search of a mutant; `None` if it is found with its rule.
fn search(mutant: &Mutant, target: &Target) -> Option<String> {
    if let Some(unknown) = mutant.rules.iter().find(|rule| RULES.iter().all(|row| row.name != **rule)) {
        return Some(format!("{unknown} is no rule"));
    }
    let (_folder, library) = match changed(mutant) {
        Ok(built) => built,
        Err(because) => return Some(because),
    };
    let mut found = names(&fuzz(&library, target, LEGAL_SEEDS, false, 1));
    if !found.iter().any(|name| mutant.rules.iter().any(|rule| rule == name)) {
        found.extend(names(&fuzz(&library, target, ILLEGAL_SEEDS, true, 1)));
    }
    let is_found = found.iter().any(|name| mutant.rules.iter().any(|rule| rule == name));
    match (is_found, mutant.is_equivalent) {
        (true, false) | (false, true) => None,
        (false, false) => Some(format!("found {found:?} instead of {:?}", mutant.rules)),
        (true, true) => Some("it is found, and the file says that it cannot be".to_owned()),
    }
}

fn each_mutant_of_the_card_is_found_with_its_rule() {
    let target = target("rtl/card.toml");
    let mutants = mutants();
    assert!(mutants.iter().filter(|mutant| !mutant.is_equivalent).count() >= 30);
    all_detected(&mutants, |mutant| search(mutant, &target));
}

fn the_example_engine_works_with_a_legal_partner() {
    let (_folder, library) = loaded("copy_engine", "rtl/examples");
    let summary = fuzz(&library, &target("rtl/examples/copy_engine.toml"), 100, false, 2);
    let texts: Vec<String> = summary.failures.iter().map(|failure| format!("{:?}", failure.finding)).collect();
    assert!(texts.is_empty(), "{}", texts.join("\n"));
}

fn both_failures_of_the_example_engine_are_found() {
    let (_folder, library) = loaded("copy_engine", "rtl/examples");
    let summary = fuzz(&library, &target("rtl/examples/copy_engine.toml"), 100, true, 2);
    let found = names(&summary);
    for wanted in ["completion_mismatch", "unexpected_completion", "progress", "timeout"] {
        assert!(found.contains(&wanted), "{wanted} is not among {found:?}");
    }
    let shortest =
        |name: &str| summary.failures.iter().find(|failure| failure.finding.rule.row().name == name).unwrap();
    let mismatch = shortest("completion_mismatch");
    let situations: Vec<Situation> = mismatch.case.steps.iter().filter_map(|step| Some(step.illegal?.0)).collect();
    assert_eq!(situations.len(), 1, "{:?}", mismatch.case);
}

fn the_same_seed_gives_the_same_run() {
    let (_folder, library) = loaded("copy_engine", "rtl/examples");
    let target = target("rtl/examples/copy_engine.toml");
    let run = || {
        let failures = fuzz(&library, &target, 20, true, 2).failures;
        failures
            .into_iter()
            .map(|failure| (failure.seed, failure.finding, failure.case, failure.kept))
            .collect::<Vec<_>>()
    };
    let first = run();
    assert!(!first.is_empty());
    assert_eq!(first, run());
}

/// Runs the command in a folder; returns its exit code and its output.
fn command(folder: &Path, words: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(lanemark()).args(words).current_dir(folder).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.code(), text.into_owned())
}

fn a_finding_is_kept_as_a_file_that_fails_in_the_same_way() {
    let folder = tempfile::tempdir().unwrap();
    build(&folder.path().join("engine.so"), "copy_engine", &root().join("rtl/examples")).unwrap();
    let device = root().join("rtl/examples/copy_engine.toml");
    fs::copy(device, folder.path().join("engine.toml")).unwrap();
    let common = ["fuzz-rtl", "engine.so", "--device", "engine.toml"];
    let seeds = ["--seeds", "0..20", "--illegal", "--timeout-clocks", "1024", "--output", "."];
    let (code, found) = command(folder.path(), &[&common[..], &seeds].concat());
    assert_eq!(code, Some(1), "{found}");
    let mut replayed = 0;
    for finding in found.split("FINDING ").skip(1) {
        let shown = finding.split("\n  to repeat: ").next().unwrap();
        let again = finding.split("\n  to repeat: lanemark ").nth(1).unwrap().lines().next().unwrap();
        let words: Vec<&str> = again.split(' ').collect();
        let (code, text) = command(folder.path(), &words);
        assert_eq!(code, Some(1), "{again}\n{text}");
        let same = |text: &str| text.lines().filter(|line| !line.contains("found by")).collect::<Vec<_>>().join("\n");
        assert!(same(&text).contains(&same(shown)), "{again}\n{text}\nis not\n{shown}");
        let capture = words.last().unwrap().replace(".toml", ".pcapng");
        let (code, table) = command(folder.path(), &["trace", "--read", &capture]);
        assert!(code == Some(0) && table.contains("CplD"), "{table}");
        replayed += 1;
    }
    assert!(replayed >= 3, "{found}");
    // The card keeps the rules that the engine breaks, and a file that is wrong is refused with line and key.
    build(&folder.path().join("card.so"), "card", &root().join("rtl/card")).unwrap();
    fs::copy(root().join("rtl/card.toml"), folder.path().join("card.toml")).unwrap();
    let files = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let file = files.into_iter().find(|name| name.ends_with("completion_mismatch.toml")).unwrap();
    let on_card = ["fuzz-rtl", "card.so", "--device", "card.toml", "--replay", &file];
    let (code, text) = command(folder.path(), &on_card);
    assert_eq!((code, text.as_str()), (Some(0), "no rule is broken; the file was written for completion_mismatch\n"));
    let wrong = fs::read_to_string(folder.path().join(&file)).unwrap().replace("tags = ", "tagz = ");
    fs::write(folder.path().join(&file), wrong).unwrap();
    let (code, text) = command(folder.path(), &on_card);
    assert!(code == Some(2) && text.contains(&format!("{file}:8: tagz: is unknown; did you mean tags?")), "{text}");
}

/// A module with the ports of the card and this text; the folder has its library and the device file of the card.
fn module(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let card = fs::read_to_string(root().join("rtl/card/card.sv")).unwrap();
    let ports = card[card.find("    input  logic        clk").unwrap()..].split(");").next().unwrap();
    let text = format!(
        "/* verilator lint_off UNDRIVEN */ /* verilator lint_off BLKSEQ */ /* verilator lint_off UNOPTFLAT */\nmodule broken (\n{ports});\n{text}\nendmodule\n"
    );
    fs::write(folder.path().join("broken.sv"), text).unwrap();
    build(&folder.path().join("broken.so"), "broken", folder.path()).unwrap();
    fs::copy(root().join("rtl/card.toml"), folder.path().join("card.toml")).unwrap();
    folder
}

fn a_design_that_does_not_return_is_a_finding() {
    let folder = module(
        "logic [31:0] spin;\nassign tx_data = spin;\n\
         always_ff @(posedge clk) if (rx_valid) while (rx_data != spin + 32'd1) spin = rx_data; else spin = 0;",
    );
    let words = ["fuzz-rtl", "broken.so", "--device", "card.toml", "--seeds", "3..4", "--hang-after-s", "1"];
    let (code, text) = command(folder.path(), &words);
    assert_eq!(code, Some(1), "{text}");
    let lines = [
        "FINDING hang (rule of rtl/lanemark_dut.h: each call of the design returns)",
        "broken.so: lanemark_dut_evaluate has not returned for 1 s (seed 3, after ",
        "lanemark: 1 rule is broken",
    ];
    for line in lines {
        assert!(text.contains(line), "{text}");
    }
}

fn a_design_that_does_not_settle_is_a_finding() {
    let folder = module("wire loop = rx_valid && !loop;\nassign tx_data = {31'd0, loop};");
    let words = ["fuzz-rtl", "broken.so", "--device", "card.toml", "--seeds", "3..4"];
    let (code, text) = command(folder.path(), &words);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("FINDING assertion") && text.contains("did not converge"), "{text}");
}

fn commands_of_the_guide_print_the_shown_output() {
    let folder = tempfile::tempdir().unwrap();
    build(&folder.path().join("card.so"), "card", &root().join("rtl/card")).unwrap();
    blocks::build(&folder.path().join("card_7.so"), "card_series7", 128);
    build(&folder.path().join("copy_engine.so"), "copy_engine", &root().join("rtl/examples")).unwrap();
    for file in ["card.toml", "platform.toml", "examples/copy_engine.toml"] {
        let name = Path::new(file).file_name().unwrap();
        fs::copy(root().join("rtl").join(file), folder.path().join(name)).unwrap();
    }
    let mut commands = 0;
    for page in Page::all() {
        for block in page.blocks().iter().filter(|block| block.has("rtl")) {
            for (command, shown) in block.commands() {
                let words = command.strip_prefix("lanemark ").unwrap().split(' ');
                let output = Command::new(lanemark()).args(words).current_dir(folder.path()).output().unwrap();
                let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
                let code = block.note("exit").unwrap_or("0").parse().ok();
                assert_eq!(output.status.code(), code, "{}:{}: $ {command}\n{text}", page.path, block.line);
                if let Some(line) = missing(&shown, &text, block.note("varies")) {
                    panic!("{}:{}: $ {command}\n{line} is not in\n{text}", page.path, block.line);
                }
                commands += 1;
            }
        }
    }
    assert!(commands >= 2, "{commands} commands");
}
