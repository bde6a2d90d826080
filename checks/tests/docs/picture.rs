//! The picture of the README: bandwidths by size, as `lanemark` plots them.
//!
//! `make picture` draws it again; the test here compares the committed file with the answers of this build.

use lanemark_checks::{lanemark, root};
use std::path::Path;
use std::process::Command;

/// The picture, from the repository's root.
const PATH: &str = "docs/methods.svg";

/// The answers it shows: loads and stores of a core, and DMA.
const BENCH: &[&str] = &[
    "bench",
    "--on",
    "card-gen5-x16",
    "--question",
    "mmio_write_bandwidth,mmio_read_bandwidth,dma_write_bandwidth,dma_read_bandwidth",
    "--json",
];

#[test]
fn the_picture_of_the_readme_shows_the_answers_of_this_build() {
    let done = Command::new(lanemark()).args(BENCH).output().unwrap();
    let record = lanemark_record::file::from_bytes(&done.stdout, Path::new("the picture"))
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&done.stderr)));
    let wanted = lanemark_report::bandwidth_plot(&record).expect("bandwidths of several sizes");
    if crate::is_blessing() {
        std::fs::write(root().join(PATH), wanted).unwrap();
    } else {
        let found = std::fs::read_to_string(root().join(PATH)).unwrap_or_default();
        assert!(found == wanted, "{PATH} shows other answers than the program; draw it again by: make picture");
    }
}
