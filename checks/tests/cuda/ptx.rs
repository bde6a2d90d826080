//! The kernels through the assembler of the vendor, and what it made of them.

use crate::said;
use lanemark_checks::root;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The assembler: `LANEMARK_PTXAS`, or the one that `make ptxas` fetched.
pub fn ptxas() -> Option<PathBuf> {
    let named = std::env::var_os("LANEMARK_PTXAS").map(PathBuf::from);
    Some(named.unwrap_or_else(|| root().join(".tools/ptxas/ptxas"))).filter(|path| path.exists())
}

pub fn disassembler() -> Option<PathBuf> {
    Some(ptxas()?.with_file_name("nvdisasm")).filter(|path| path.exists())
}

/// Assembles a kernel for `generation`; the assembler prints nothing.
fn assembled(folder: &Path, name: &str, text: &str, generation: &str) -> PathBuf {
    let (source, binary) = (folder.join(format!("{name}.ptx")), folder.join(format!("{name}.{generation}")));
    fs::write(&source, text).unwrap();
    let mut command = Command::new(ptxas().unwrap());
    let output = command.arg(format!("-arch={generation}")).arg(&source).arg("-o").arg(&binary).output().unwrap();
    assert!(output.status.success() && said(&output).is_empty(), "{name} for {generation}: {}", said(&output));
    binary
}

/// Turing, the oldest that the texts name, Ampere, Hopper.
const GENERATIONS: [&str; 3] = ["sm_75", "sm_80", "sm_90"];

pub fn every_kernel_assembles_for_three_generations() {
    let (folder, kernels) = (tempfile::tempdir().unwrap(), lanemark_hw::cuda::every_kernel());
    for (name, text) in &kernels {
        for generation in GENERATIONS {
            assembled(folder.path(), name, text, generation);
        }
    }
    // Every text of the backend is among them.
    for file in fs::read_dir(root().join("crates/hw/src/cuda")).unwrap() {
        let file = file.unwrap().path();
        if file.extension().is_some_and(|kind| kind == "ptx") {
            let name = file.file_stem().unwrap().to_str().unwrap();
            assert!(kernels.iter().any(|(kernel, _)| kernel.split('_').next() == Some(name)), "{name}");
        }
    }
}

pub fn a_thread_has_eight_loads_and_stores_in_flight_and_none_are_merged() {
    let (folder, kernels) = (tempfile::tempdir().unwrap(), lanemark_hw::cuda::every_kernel());
    for (name, width, others) in [
        // The load after the fence of a transfer is a word.
        ("transfers_16", ".128", 0),
        ("transfers_8", ".64", 0),
        ("transfers_4", "", 1),
        ("pieces_16", ".128", 0),
        ("pieces_8", ".64", 0),
        ("pieces_4", "", 0),
        ("pieces_1", ".U8", 0),
    ] {
        let text = &kernels.iter().find(|(kernel, _)| kernel == name).unwrap().1;
        for generation in GENERATIONS {
            let binary = assembled(folder.path(), name, text, generation);
            let output = Command::new(disassembler().unwrap()).arg("-c").arg(binary).output().unwrap();
            assert!(output.status.success(), "{}", said(&output));
            let code = String::from_utf8(output.stdout).unwrap();
            let lines: Vec<&str> = code.lines().collect();
            let places = |instruction: String| {
                let is_it = |line: &&str| line.contains(&format!(" {instruction} "));
                lines.iter().enumerate().filter(|(_, line)| is_it(line)).map(|(place, _)| place).collect::<Vec<_>>()
            };
            let (loads, stores) =
                (places(format!("LDG.E{width}.STRONG.SYS")), places(format!("STG.E{width}.STRONG.SYS")));
            assert_eq!((loads.len(), stores.len()), (8 + others, 8), "{name} for {generation}: {code}");
            // No branch between the eight loads, so all of them are issued before the thread waits.
            let branches = lines[loads[0]..loads[7]].iter().filter(|line| line.contains(" BRA ")).count();
            assert_eq!(branches, 0, "{name} for {generation}: {code}");
        }
    }
}
