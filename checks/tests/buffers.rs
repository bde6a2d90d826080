//! The question `wc_buffers` finds the number of buffers of a simulated core, which its platform file defines.

use lanemark_bench::{Axes, Effort, ask, question};
use lanemark_machine::Machine;
use lanemark_platform::{Origin, PRESETS, preset};
use lanemark_record::{Buffers, Detail};
use lanemark_sim::SimulatedMachine;

/// The answer of `platform` with `count` write-combining buffers.
fn found(platform: &lanemark_platform::Platform, count: u32) -> Buffers {
    let platform = platform.with("core.wc_buffers", f64::from(count), Origin::Assumed("a test".to_owned())).unwrap();
    let mut machine = SimulatedMachine::new(&platform).unwrap();
    let question = question("wc_buffers").unwrap();
    let cases = (question.cases)(machine.facts(), &Axes::default());
    let answer = ask(question, &mut machine, &cases[0], &Effort::default()).unwrap();
    match answer.detail {
        Some(Detail::Buffers(buffers)) => buffers,
        other => panic!("{other:?}"),
    }
}

#[test]
fn wc_buffers_finds_the_count_of_the_platform() {
    for row in PRESETS {
        let platform = preset(row.name).unwrap().unwrap();
        for count in [platform.core.wc_buffers.value, 4, 10, 24] {
            let buffers = found(&platform, count);
            assert_eq!(buffers.count, Some(u64::from(count)), "{}: {}", row.name, buffers.because);
            assert!(buffers.flush_ns.unwrap() > 0.0 && buffers.flush_spread_percent.unwrap() < 25.0, "{buffers:?}");
        }
    }
}

#[test]
fn more_buffers_than_tested_lines_give_no_number() {
    let platform = preset(PRESETS[0].name).unwrap().unwrap();
    let buffers = found(&platform, 64);
    assert_eq!((buffers.count, buffers.flush_ns), (None, None));
    assert!(buffers.because.contains("no step"), "{}", buffers.because);
}
