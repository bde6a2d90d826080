//! Does the guide to a real card tell what happens? Its blocks marked `guest` are run here, in their order.

#[allow(dead_code)] // The other pages are another test's.
#[path = "../docs/page.rs"]
mod page;
#[path = "../docs/shown.rs"]
mod shown;

use crate::{shared, storage};
use page::Page;

#[test]
fn every_command_of_the_guide_to_a_real_card_works_and_says_what_is_shown() {
    let mut guest = shared();
    storage::fresh(&guest);
    let mut commands = 0;
    for block in Page::read("docs/guide/real-card.md").blocks().iter().filter(|block| block.has("guest")) {
        let wanted: i32 = block.note("exit").unwrap_or("0").parse().unwrap();
        for (command, shown) in block.commands() {
            commands += 1;
            let output = guest.run(&command);
            let said = format!("{}{}", output.stdout, output.stderr);
            assert_eq!(output.status, wanted, "line {}: $ {command}\n{said}", block.line);
            let missing = shown::missing(&shown, &said, block.note("varies"));
            assert_eq!(missing, None, "line {}: $ {command} does not say, at its place\n{said}", block.line);
        }
    }
    assert!(commands >= 4, "only {commands} commands were found: the page is not read");
}
