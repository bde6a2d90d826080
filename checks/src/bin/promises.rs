//! Holds one machine against every promise of `Machine`: `promises host`, `promises sim NAME`.
//!
//! The test guest runs it on what only the guest has.

use lanemark_checks::conformance::{Host, Simulation, Subject, held_against};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let known = lanemark_platform::PRESETS.iter().map(|preset| preset.name).find(|name| words.get(1) == Some(name));
    let subject: Box<dyn Subject> = match (words.as_slice(), known) {
        (["host"], _) => Box::new(Host),
        (["sim", _], Some(name)) => Box::new(Simulation(name)),
        _ => {
            eprintln!("usage: promises host | promises sim NAME");
            return ExitCode::from(2);
        }
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
