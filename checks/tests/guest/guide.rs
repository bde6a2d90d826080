//! Commands of the documents that need a card print the shown output.

use crate::guest::Guest;
use crate::storage::with_decoding_off;
use crate::{descriptors, shared, xdma_card};
use lanemark_checks::page::{Block, Page};
use lanemark_checks::shown::missing;

pub fn card_commands_print_the_shown_output() {
    let kinds = ["module", "xdma", "iommufd", "descriptors"];
    let is_other = |block: &Block| kinds.iter().any(|kind| block.has(kind));
    on_an_unused_card(|block| block.has("guest") && !is_other(block));
}

pub fn commands_with_our_module_print_the_shown_output() {
    on_an_unused_card(|block| block.has("guest") && block.has("module"));
}

pub fn commands_with_amds_driver_print_the_shown_output() {
    let mut guest = xdma_card::shared();
    print_the_shown_output(|block| block.has("guest") && block.has("xdma"), |run| run(&mut guest));
}

pub fn commands_with_iommufd_print_the_shown_output() {
    on_an_unused_card(|block| block.has("guest") && block.has("iommufd"));
}

pub fn commands_for_an_engine_with_descriptors_print_the_shown_output() {
    let (mut guest, _twin) = descriptors::shared();
    print_the_shown_output(|block| block.has("guest") && block.has("descriptors"), |run| run(&mut guest));
}

/// On a card like a reader's.
fn on_an_unused_card(wants_a_card: impl Fn(&Block) -> bool) {
    let mut guest = shared();
    print_the_shown_output(wants_a_card, |run| with_decoding_off(&mut guest, |guest| run(guest)));
    // The driver has left memory decoding off.
    guest.expect("echo 1 >/sys/bus/pci/devices/0000:04:00.0/enable");
}

/// Runs the commands of each page in the guest that `on` gives.
fn print_the_shown_output(wants_a_card: impl Fn(&Block) -> bool, mut on: impl FnMut(&mut dyn FnMut(&mut Guest))) {
    let mut wrong = Vec::new();
    let mut commands = 0;
    for page in Page::all().into_iter().filter(|page| page.blocks().iter().any(&wants_a_card)) {
        on(&mut |guest| {
            guest.expect("rm -rf page; mkdir page");
            for block in &page.blocks() {
                if let Some(name) = block.note("file") {
                    guest.expect(&format!("cat >page/{name} <<'END'\n{}\nEND\n", block.lines.join("\n")));
                }
                if !wants_a_card(block) {
                    continue;
                }
                let exit: i32 = block.note("exit").unwrap_or("0").parse().unwrap();
                for (command, shown) in block.commands() {
                    commands += 1;
                    let said = guest.run(&format!("cd page; {command}"));
                    let output = said.stdout + &said.stderr;
                    let missing = missing(&shown, &output, block.note("varies"));
                    if said.status != exit || missing.is_some() {
                        let (status, at) = (said.status, format!("{}:{}", page.path, block.line));
                        let what = format!("exit code {status} for {exit}, without the line {missing:?}");
                        wrong.push(format!("{at}: $ {command}\n{what}\n{output}"));
                    }
                }
            }
        });
    }
    assert!(commands > 0, "no page has a command for the guest: the pages are not read");
    assert!(wrong.is_empty(), "{} of {commands} commands:\n\n{}", wrong.len(), wrong.join("\n\n"));
}
