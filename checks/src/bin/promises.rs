//! Runs the conformance tests of the `Machine` trait on one machine: `promises host`, `promises sim NAME`,
//! `promises card ADDRESS RANGE`, `promises vfio ADDRESS RANGE`, `promises module ADDRESS RANGE`, `promises nvme PATH`,
//! `promises xdma PATH RANGE`.
//!
//! The test guest runs it on its emulated card.

use lanemark_checks::conformance::{
    Drive, Host, Simulation, Storage, StorageBehindModule, StorageBehindVfio, Subject, Xdma, held_against,
};
use lanemark_platform::PRESETS;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Some(subject) = subject(&words) else {
        eprintln!("usage: promises host | sim NAME | card|vfio|module ADDRESS RANGE | nvme PATH | xdma PATH RANGE");
        return ExitCode::from(2);
    };
    let verdicts = held_against(&*subject);
    for verdict in &verdicts {
        match &verdict.broken {
            None => println!("PASS {}", verdict.promise),
            Some(why) => println!("FAIL {}: {why}", verdict.promise),
        }
    }
    let broken = verdicts.iter().filter(|verdict| verdict.broken.is_some()).count();
    println!("{} passed, {broken} failed", verdicts.len() - broken);
    ExitCode::from(u8::from(broken > 0))
}

fn subject(words: &[&str]) -> Option<Box<dyn Subject>> {
    match words {
        ["host"] => Some(Box::new(Host)),
        ["sim", wanted] => {
            let preset = PRESETS.iter().find(|preset| preset.name == *wanted)?;
            Some(Box::new(Simulation(preset.name)))
        }
        ["card", address, range] => {
            let (address, range) = (address.parse().ok()?, range.parse().ok()?);
            Some(Box::new(Storage { address, range }))
        }
        ["vfio", address, range] => {
            let (address, range) = (address.parse().ok()?, range.parse().ok()?);
            Some(Box::new(StorageBehindVfio { address, range }))
        }
        ["module", address, range] => {
            let (address, range) = (address.parse().ok()?, range.parse().ok()?);
            Some(Box::new(StorageBehindModule { address, range }))
        }
        ["nvme", path] => Some(Box::new(Drive { path: path.into() })),
        ["xdma", path, memory] => Some(Box::new(Xdma { path: path.into(), memory: memory.parse().ok()? })),
        _ => None,
    }
}
