//! Rows of a table against the answers of the questions with the same options.

use lanemark_bench::{Axes, Effort, ask, question};
use lanemark_fit::{FitData, HEADER, Table};
use lanemark_machine::Machine;
use lanemark_method::Reach;
use lanemark_platform::{Draft, Platform};
use lanemark_sim::SimulatedMachine;

const PRESET: &str = include_str!("../../../platforms/card-gen5-x16.toml");

/// The preset with one unknown number; the search starts at `start`.
fn draft() -> Draft {
    Draft::parse("card.toml", &PRESET.replace("latency_ns = { value = 120, assumed", "latency_ns = { unknown")).unwrap()
}

/// The simulated figures of a table of one question, with the unknown number at its value in the preset.
fn simulated(table: &str) -> Vec<f64> {
    let table = Table::parse("t.csv", table).unwrap();
    let data = FitData::of_table(&table, &draft()).unwrap();
    assert_eq!(data.parameters().len(), 1);
    data.compare(&[120.0]).unwrap().iter().map(|residual| residual.simulated).collect()
}

/// The figure of the question with these options.
fn asked(name: &str, size: u64, alignment: u64, reach: Reach) -> f64 {
    let mut machine = SimulatedMachine::new(&Platform::parse("card", PRESET).unwrap()).unwrap();
    let question = question(name).unwrap();
    let (sizes, alignments) = (Some(vec![size]), Some(vec![alignment]));
    let axes = Axes { sizes, alignments, reach, ..Axes::default() };
    let case = (question.cases)(machine.facts(), &axes).into_iter().next().unwrap();
    // A figure of a table is that of a long run, of at most 64 iterations.
    let passes = (question.simulated_passes)(&case).clamp(1, 64);
    let effort = Effort { simulated_passes: Some(passes), ..Effort::default() };
    let answer = ask(question, &mut machine, &case, &effort).unwrap();
    answer.delivered_rate_bytes_per_s.or(answer.latency_ns).unwrap().median
}

#[test]
fn a_row_with_options_is_the_case_of_the_question_with_them() {
    let rows: [(&str, u64, &str, u64, Reach); 6] = [
        ("dma_read_bandwidth", 4096, ",,,,1,", 0, Reach { outstanding: Some(1), ..Reach::default() }),
        (
            "dma_read_bandwidth",
            256,
            "64KiB,yes,,,,",
            0,
            Reach { window_bytes: Some(65536), is_random: true, ..Reach::default() },
        ),
        ("dma_read_bandwidth", 64, ",,4KiB,,,", 0, Reach { stride_bytes: Some(4096), ..Reach::default() }),
        ("dma_write_bandwidth", 256, ",,,60,,", 60, Reach::default()),
        ("dma_read_write_mix", 4096, ",,,,4,", 0, Reach { outstanding: Some(4), ..Reach::default() }),
        (
            "dma_read_latency",
            4096,
            "1MiB,,8KiB,16,1,",
            16,
            Reach { window_bytes: Some(1 << 20), stride_bytes: Some(8192), ..Reach::default() },
        ),
    ];
    let mut distinct = Vec::new();
    for (name, size, cells, alignment, reach) in rows {
        let figure = if name.ends_with("latency") { "1 us" } else { "1 GB/s" };
        let text =
            format!("{HEADER},window,random,stride,align,outstanding,channels\n{name},{size},{figure},{cells}\n");
        let by_table = simulated(&text);
        // A long run ends when the time of an added iteration has settled, to 1 in 10,000.
        let [figure] = by_table[..] else { panic!("{text}") };
        assert!((figure / asked(name, size, alignment, reach) - 1.0).abs() < 1e-4, "{text}");
        distinct.push(by_table[0]);
    }
    // The options have an effect: a read that is waited for is slower than the usual one.
    assert!(distinct[0] < 0.9 * asked("dma_read_bandwidth", 4096, 0, Reach::default()));
}

#[test]
fn sizes_are_held_out_for_each_question_with_its_options() {
    let sizes = [64, 128, 256, 512, 1024, 2048];
    let rows = |cell: &str, count: usize| -> String {
        let lines = sizes[..count].iter().map(|size| format!("dma_read_bandwidth,{size},1 GB/s,{cell}\n"));
        lines.collect::<Vec<_>>().concat()
    };
    let held_out = |rows: &str| {
        let table = Table::parse("t.csv", &format!("{HEADER},window\n{rows}")).unwrap();
        FitData::of_table(&table, &draft()).unwrap().held_out()
    };
    assert_eq!(held_out(&rows("", 6)), 6);
    assert_eq!(held_out(&(rows("", 5) + &rows("64KiB", 5))), 0, "five sizes of each curve");
    assert_eq!(held_out(&(rows("", 6) + &rows("64KiB", 5))), 6);
    assert_eq!(held_out(&(rows("", 6) + &rows("64KiB", 6))), 12);
}

#[test]
fn an_alignment_is_named_with_its_figure() {
    let table = Table::parse("t.csv", &format!("{HEADER},align\ndma_read_latency,64,1 us,16\n")).unwrap();
    let data = FitData::of_table(&table, &draft()).unwrap();
    let names: Vec<&str> = data.data().collect();
    assert_eq!(names, ["dma_read_latency host-to-device by DMA 64 B, 16 B into a page"]);
}
