//! The files above 600 lines, and the one noun that each of them holds.
//!
//! A long file is fine as long as it holds one noun. A file that grows past the limit either gets a row here, with
//! its noun, or is cut where the second noun begins. A row whose file is no longer that long has to go.

use crate::source::{self, SourceFile};
use std::path::Path;

/// A source file with more lines than this has a row in [`LONG_FILES`].
const LIMIT: usize = 600;

/// Every source file above the limit, and the noun it holds.
const LONG_FILES: &[(&str, &str)] = &[
    ("crates/advise/src/doctor/platform.rs", "the platform file of a slot"),
    ("crates/cli/src/args.rs", "the command line"),
    ("crates/device_kernels/src/spmv_kernel.rs", "the kernel of sparse matrix-vector products"),
    ("crates/hw/src/nvme/plan.rs", "the plan of a drive's commands"),
    ("crates/inventory/src/lspci/listing.rs", "the text that lspci prints"),
    ("crates/platform/src/spec.rs", "the keys of a platform"),
    ("crates/report/src/html.rs", "the HTML page"),
    ("crates/report/src/table.rs", "the tables of a terminal"),
    ("crates/runner/src/run.rs", "the run of a request"),
    ("crates/sim/src/device/dma_engine.rs", "the DMA engine"),
    ("crates/sim/src/fabric/link.rs", "the transmitter of one direction of a link"),
    ("crates/sim/src/host/core.rs", "the core"),
    ("crates/sim/src/host/peer_forwarder.rs", "the forwarder of peer requests"),
    ("crates/sim/src/iommu.rs", "the IOMMU"),
    ("crates/sim/src/machine.rs", "the simulated machine"),
];

fn lines(file: &SourceFile) -> usize {
    file.text.lines().count()
}

#[test]
fn every_file_above_the_limit_has_a_row_with_its_noun() {
    let missing: Vec<String> = source::tree()
        .iter()
        .filter(|file| file.crate_name().is_some() && lines(file) > LIMIT)
        .filter(|file| LONG_FILES.iter().all(|(path, _)| *path != file.path))
        .map(|file| format!("{}: {} lines; cut it where its second noun begins, or add a row", file.path, lines(file)))
        .collect();
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn every_row_names_a_file_above_the_limit_and_a_noun() {
    let tree = source::tree();
    for (path, noun) in LONG_FILES {
        let file = tree.iter().find(|file| file.path == *path);
        let file = file.unwrap_or_else(|| panic!("{path} is not in the tree: remove its row"));
        assert!(lines(file) > LIMIT, "{path} has {} lines, at most {LIMIT}: remove its row", lines(file));
        assert!(!noun.is_empty(), "{path} has no noun");
    }
    assert!(LONG_FILES.is_sorted_by(|a, b| a.0 < b.0), "the rows are sorted by path");
}

#[test]
fn the_kernel_module_has_fewer_than_600_lines_of_code() {
    let tree = source::tree();
    let is_c = |file: &SourceFile| Path::new(&file.path).extension().is_some_and(|kind| kind == "c");
    let is_module =
        |file: &&SourceFile| file.path == "kmod/lanemark.h" || (file.path.starts_with("kmod/") && is_c(file));
    let files: Vec<&SourceFile> = tree.iter().filter(is_module).collect();
    let code = |file: &&SourceFile| file.code().iter().filter(|line| !line.trim().is_empty()).count();
    let lines: usize = files.iter().map(code).sum();
    assert!(files.len() > 1, "no source of the module is found");
    assert!(lines < 600, "{lines} lines of code in kmod/: a reviewer reads all of them");
}
