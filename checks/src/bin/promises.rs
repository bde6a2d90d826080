//! Runs the conformance tests of the `Machine` trait on one machine: `promises host`, `promises sim NAME`,
//! `promises card ADDRESS RANGE`, `promises vfio ADDRESS RANGE`, `promises engine-vfio ADDRESS DEVICE-FILE`,
//! `promises module ADDRESS RANGE`, `promises nvme PATH`,
//! `promises nvme-vfio ADDRESS [NAMESPACE]`, whose start is then overwritten, `promises xdma PATH RANGE`, `promises dut FILE` for a device that a file names.
//!
//! The test guest runs it on its emulated devices. `make conform` runs it on a real one; its output is a report for an issue.

use lanemark_checks::conformance::{
    CardEngine, Drive, DriveBehindVfio, Dut, Host, Simulation, Storage, StorageBehindModule, StorageBehindVfio,
    Subject, Xdma, held_against,
};
use lanemark_platform::PRESETS;
use std::ffi::OsString;
use std::panic;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    // A file may have any name; all other words are text.
    let texts: Vec<&str> = words.iter().map(|word| word.to_str().unwrap_or_default()).collect();
    let subject = match texts.as_slice() {
        ["dut", _] => match Dut::read(Path::new(&words[1])) {
            Ok(dut) => {
                println!("{} ({}), lanemark {}", dut.name, dut.way, env!("CARGO_PKG_VERSION"));
                Some(dut.subject)
            }
            Err(why) => {
                eprintln!("{why}");
                return ExitCode::from(2);
            }
        },
        words => subject(words),
    };
    let Some(subject) = subject else {
        eprintln!(
            "usage: promises host | sim NAME | card|vfio|module ADDRESS RANGE | engine-vfio ADDRESS DEVICE-FILE | nvme PATH | nvme-vfio ADDRESS [NAMESPACE] | xdma PATH RANGE | dut FILE"
        );
        return ExitCode::from(2);
    };
    match opened(&*subject) {
        Ok(summary) => println!("{}: {summary}\n{}", subject.name(), kernel()),
        Err(why) => {
            eprintln!("{}: cannot be opened: {why}", subject.name());
            return ExitCode::from(2);
        }
    }
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

/// What the machine says of itself, or why it cannot be opened.
fn opened(subject: &dyn Subject) -> Result<String, String> {
    // A subject panics if it cannot be opened, as tests want it.
    let before = panic::take_hook();
    panic::set_hook(Box::new(|_| ()));
    let opened =
        panic::catch_unwind(panic::AssertUnwindSafe(|| subject.open(Arc::default()).machine().facts().summary.clone()));
    panic::set_hook(before);
    opened.map_err(|why| match why.downcast::<String>() {
        Ok(why) => *why,
        Err(_) => "for no reason that it names".to_owned(),
    })
}

/// Name and release of the kernel.
fn kernel() -> String {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    format!("{} {}", read("ostype").trim(), read("osrelease").trim())
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
        ["engine-vfio", address, file] => {
            Some(Box::new(CardEngine { address: address.parse().ok()?, file: (*file).to_owned() }))
        }
        ["module", address, range] => {
            let (address, range) = (address.parse().ok()?, range.parse().ok()?);
            Some(Box::new(StorageBehindModule { address, range }))
        }
        ["nvme-vfio", address, lost @ ..] if lost.len() < 2 => {
            let destructive = lost.first().map(|lost| lost.parse()).transpose().ok()?;
            Some(Box::new(DriveBehindVfio { address: address.parse().ok()?, destructive }))
        }
        ["nvme", path] => Some(Box::new(Drive { path: path.into() })),
        ["xdma", path, memory] => Some(Box::new(Xdma { path: path.into(), memory: memory.parse().ok()? })),
        _ => None,
    }
}
