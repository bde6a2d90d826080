//! Build script: a hash of the sources that determine the figures of a point, so that a log never mixes results of
//! different programs.

use std::path::{Path, PathBuf};
use twox_hash::XxHash3_128;

/// Crates that affect the figures of a point: this one and all below it, except those that only measure real machines.
const CRATES: [&str; 17] = [
    "bench",
    "coherent",
    "compute",
    "config_space",
    "device_kernels",
    "dma",
    "engine",
    "machine",
    "method",
    "model",
    "platform",
    "record",
    "runner",
    "sim",
    "sweep",
    "units",
    "wire",
];

fn main() -> std::io::Result<()> {
    let crates = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("..");
    let mut files = Vec::new();
    for name in CRATES {
        let source = crates.join(name).join("src");
        println!("cargo::rerun-if-changed={}", source.display());
        collect(&source, &mut files)?;
    }
    files.sort();
    let mut bytes = Vec::new();
    for file in files {
        bytes.extend(std::fs::read(file)?);
    }
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=LANEMARK_SEMANTICS={:032x}", XxHash3_128::oneshot(&bytes));
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
