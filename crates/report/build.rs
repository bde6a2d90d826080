//! Build script: compiles the formulas to WebAssembly, for the live part of a page.
//!
//! It runs cargo for the crate `live`, whose results are kept in `target/live`. An optimised build has the live part; a
//! debug build has it with `LANEMARK_LIVE=1`, because it takes a minute after each change of a formula. `LANEMARK_LIVE=0`
//! leaves it out. Without it the program works, and its pages say why they have no sliders.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-unknown-unknown";

/// Crates that are compiled to WebAssembly.
const CRATES: [&str; 15] = [
    "bench",
    "compute",
    "config_space",
    "device_kernels",
    "dma",
    "engine",
    "live",
    "machine",
    "method",
    "model",
    "platform",
    "record",
    "sim",
    "units",
    "wire",
];

/// Variables of the outer build that would change the inner one.
const OUTER: [&str; 7] = [
    "CARGO_BUILD_TARGET",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_TARGET_DIR",
    "CARGO_BUILD_RUSTFLAGS",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
];

fn main() -> std::io::Result<()> {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let crates = Path::new(&variable("CARGO_MANIFEST_DIR")).join("..");
    for name in CRATES {
        println!("cargo::rerun-if-changed={}", crates.join(name).join("src").display());
        println!("cargo::rerun-if-changed={}", crates.join(name).join("Cargo.toml").display());
    }
    for file in ["../../Cargo.lock", "../../Cargo.toml", "build.rs"] {
        println!("cargo::rerun-if-changed={file}");
    }
    println!("cargo::rerun-if-env-changed=LANEMARK_LIVE");
    let out = PathBuf::from(variable("OUT_DIR"));
    let wanted = variable("LANEMARK_LIVE");
    let built = match &*wanted {
        "0" => Err("it was built with LANEMARK_LIVE=0".to_owned()),
        "" if variable("PROFILE") == "debug" => Err("it is a debug build without LANEMARK_LIVE=1".to_owned()),
        _ => module(&crates, &out),
    };
    let (text, because) = match built {
        Ok(module) => (base64(&compressed(&module)?), String::new()),
        Err(because) => {
            if !wanted.is_empty() && wanted != "0" || variable("PROFILE") != "debug" {
                println!("cargo::warning=pages will have no sliders: {because}");
            }
            (String::new(), because)
        }
    };
    std::fs::write(out.join("live.txt"), text)?;
    println!("cargo::rustc-env=LANEMARK_NO_LIVE={because}");
    Ok(())
}

/// The compiled module, or a clause with the reason why there is none.
fn module(crates: &Path, out: &Path) -> Result<Vec<u8>, String> {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let rustc = Command::new(variable("RUSTC")).args(["--print", "target-libdir", "--target", TARGET]).output();
    let library = rustc.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    if !library.is_ok_and(|folder| Path::new(&folder).exists()) {
        return Err(format!("the compiler lacks {TARGET}: rustup target add {TARGET}"));
    }
    // OUT_DIR is <target>/[<triple>/]<profile>/build/<package>/out. A folder of its own is not locked by the outer build.
    let folder = out.ancestors().nth(4).unwrap_or(out).join("live");
    let mut cargo = Command::new(variable("CARGO"));
    for name in OUTER {
        cargo.env_remove(name);
    }
    let options = ["rustc", "--locked", "--quiet", "-p", "lanemark-live", "--lib", "--crate-type", "cdylib"];
    cargo.args(options).args(["--profile", "live", "--target", TARGET, "--target-dir"]).arg(&folder);
    let output = cargo.current_dir(crates).output().map_err(|error| format!("cargo cannot be run: {error}"))?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let line = text.lines().find(|line| line.starts_with("error")).unwrap_or("cargo has failed");
        return Err(format!("compiling to {TARGET} failed: {line}"));
    }
    let file = folder.join(TARGET).join("live/lanemark_live.wasm");
    std::fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))
}

fn compressed(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Bytes as text that a browser decodes with `atob`.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let word = three.iter().fold(0, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - three.len()));
        for digit in 0..4 {
            let place = (word >> (18 - 6 * digit) & 63) as usize;
            text.push(if digit <= three.len() { char::from(DIGITS[place]) } else { '=' });
        }
    }
    text
}
