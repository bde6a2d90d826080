//! Readers of the output of tools, on files made by hand in the formats of the tools.

use lanemark_import::{ImportTool, record};
use lanemark_record::BytePath::{FromDevice, FromDeviceOfBoth, OtherLink, ToDevice, ToDeviceOfBoth};
use lanemark_record::{BytePath, Imported, Measured, TargetKind};

macro_rules! sample {
    ($name:literal) => {
        include_str!(concat!("../../../records/samples/", $name))
    };
}

const EIGHT: &str = sample!("nvbandwidth-eight-gpus.txt");
const JSON: &str = sample!("nvbandwidth-idle.json");
const COPYBW: &str = sample!("gdrcopy-copybw.txt");
const COPYLAT: &str = sample!("gdrcopy-copylat.txt");
const BANDWIDTH_TEST: &str = sample!("bandwidthTest.txt");
const BANDWIDTH_CSV: &str = sample!("bandwidthTest-binary.csv");
const OSU: &str = sample!("osu-bw.txt");
const OSU_LATENCY: &str = sample!("osu-latency.txt");
const PERFTEST: &str = include_str!("../../fit/tests/tools/perftest-by-hand.txt");
const PERFTEST_LATENCY: &str = sample!("perftest-latency.txt");
const MLC: &str = sample!("mlc.txt");
const FIO: &str = sample!("fio-drive.json");
const PCM: &str = sample!("pcm-pcie.csv");
const WC_PERF: &str = sample!("wc_perf.txt");

/// Every sample with its tool and its number of figures.
const ALL: [(ImportTool, &str, usize); 14] = [
    (ImportTool::Nvbandwidth, EIGHT, 48),
    (ImportTool::Nvbandwidth, JSON, 3),
    (ImportTool::Gdrcopy, COPYBW, 2),
    (ImportTool::Gdrcopy, COPYLAT, 9),
    (ImportTool::BandwidthTest, BANDWIDTH_TEST, 3),
    (ImportTool::BandwidthTest, BANDWIDTH_CSV, 2),
    (ImportTool::Osu, OSU, 6),
    (ImportTool::Osu, OSU_LATENCY, 4),
    (ImportTool::Perftest, PERFTEST, 15),
    (ImportTool::Perftest, PERFTEST_LATENCY, 3),
    (ImportTool::Mlc, MLC, 19),
    (ImportTool::Fio, FIO, 5),
    (ImportTool::PcmPcie, PCM, 6),
    (ImportTool::WcPerf, WC_PERF, 3),
];

fn read(tool: ImportTool, text: &str) -> Imported {
    tool.read("f", text).unwrap_or_else(|error| panic!("{}: {error}", tool.name()))
}

/// Way, size and value (B/s or ns, rounded) of each figure.
fn figures(tool: ImportTool, text: &str) -> Vec<(BytePath, Option<u64>, i64)> {
    let value = |value: Measured| match value {
        Measured::RateBytesPerS(value) | Measured::LatencyNs(value) => value.round() as i64,
    };
    read(tool, text).figures.iter().map(|one| (one.path, one.size_bytes, value(one.value))).collect()
}

/// The error for a file with one part replaced.
fn error(tool: ImportTool, text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "the file has no '{from}'");
    tool.read("f", &text.replacen(from, to, 1)).unwrap_err().to_string()
}

#[test]
fn every_sample_is_recognised_and_read() {
    for (tool, text, count) in ALL {
        assert_eq!(ImportTool::of_output(text), Some(tool), "{}", tool.name());
        let imported = read(tool, text);
        assert_eq!((imported.figures.len(), imported.tool.as_str()), (count, tool.name()));
        assert!(!imported.unknown.is_empty(), "{}: every tool leaves something unsaid", tool.name());
        let lines = 1..=text.lines().count() as u64;
        assert!(imported.figures.iter().all(|figure| lines.contains(&figure.line)), "{}", tool.name());
    }
}

#[test]
fn an_empty_file_and_one_of_another_tool_are_refused() {
    for (tool, ..) in ALL {
        let refused = tool.read("f", "").unwrap_err().to_string();
        assert!(refused.starts_with("f:1: no figure found: looked for "), "{}: {refused}", tool.name());
        let other = if tool == ImportTool::Osu { MLC } else { OSU };
        assert!(tool.read("f", other).is_err(), "{}", tool.name());
    }
}

#[test]
fn a_last_line_without_an_end_is_refused() {
    for (tool, text) in
        [(ImportTool::Osu, OSU), (ImportTool::WcPerf, WC_PERF), (ImportTool::BandwidthTest, BANDWIDTH_CSV)]
    {
        let refused = tool.read("f", text.trim_end()).unwrap_err().to_string();
        assert!(refused.contains("the last line has no end"), "{}: {refused}", tool.name());
    }
}

#[test]
fn nvbandwidth_has_a_figure_for_each_gpu_with_its_address() {
    let imported = read(ImportTool::Nvbandwidth, EIGHT);
    assert_eq!(imported.version.as_deref(), Some("v0.8"));
    let first = &imported.figures[0];
    assert_eq!(first.device.as_deref(), Some("GPU 0 (00000000:19:00)"));
    assert_eq!((first.path, first.size_bytes, first.is_concurrent), (BytePath::ToDevice, Some(512 << 20), false));
    let paths: Vec<BytePath> = imported.figures.iter().step_by(8).map(|figure| figure.path).collect();
    assert_eq!(paths, [ToDevice, FromDevice, ToDeviceOfBoth, FromDeviceOfBoth, ToDevice, OtherLink]);
    assert!(imported.figures[32].is_concurrent, "host_to_all");
    let without = EIGHT.split_once('\n').unwrap().1;
    let imported = read(ImportTool::Nvbandwidth, without);
    assert_eq!(imported.figures[0].size_bytes, None, "without a command line the size is unknown");
    assert!(imported.unknown[0].starts_with("buffer size"));
}

#[test]
fn the_json_of_nvbandwidth_has_latencies_too() {
    assert_eq!(
        figures(ImportTool::Nvbandwidth, JSON),
        [
            (BytePath::ToDevice, Some(512 << 20), 13_620_000_000),
            (BytePath::FromDevice, Some(512 << 20), 13_710_000_000),
            (BytePath::ToDevice, None, 813),
        ]
    );
    assert!(error(ImportTool::Nvbandwidth, JSON, "(GB/s)", "(GiB/s)").contains("neither (GB/s) nor (ns)"));
    assert!(
        error(ImportTool::Nvbandwidth, EIGHT, "55.32", "55.32x").contains("f:22: '55.32x' is not a figure in GB/s")
    );
    let cut = &EIGHT[..EIGHT.find("55.32").unwrap()];
    let refused = ImportTool::Nvbandwidth.read("f", &format!("{cut}\n")).unwrap_err().to_string();
    assert!(refused.contains("1 values instead of 8: is the file complete?"), "{refused}");
}

#[test]
fn a_megabyte_of_gdrcopy_has_two_to_the_twenty_bytes() {
    assert_eq!(
        figures(ImportTool::Gdrcopy, COPYBW),
        [
            (BytePath::CoreStores, Some(131_072), (11_868.2_f64 * 1_048_576.0).round() as i64),
            (BytePath::CoreLoads, Some(131_072), (528.71_f64 * 1_048_576.0).round() as i64),
        ]
    );
    let times = figures(ImportTool::Gdrcopy, COPYLAT);
    assert_eq!(
        (times[1], times[8]),
        ((BytePath::CoreStores, Some(64), 93), (BytePath::CoreLoads, Some(65_536), 121_430))
    );
    assert!(error(ImportTool::Gdrcopy, COPYBW, "11868.2MB/s", "11.8GB/s").contains("f:16: the unit of"));
}

#[test]
fn tables_and_lines_of_bandwidth_test_are_read_with_their_unit() {
    let found = figures(ImportTool::BandwidthTest, BANDWIDTH_TEST);
    assert_eq!(found[0], (BytePath::ToDevice, Some(32_000_000), 24_600_000_000));
    assert_eq!(found[2].0, BytePath::OtherLink);
    let older = BANDWIDTH_TEST.replace("(GB/s)", "(MB/s)");
    assert_eq!(figures(ImportTool::BandwidthTest, &older)[0].2, (24.6_f64 * 1_048_576.0).round() as i64);
    assert!(
        error(ImportTool::BandwidthTest, BANDWIDTH_TEST, "(GB/s)", "(TB/s)").contains("is 'TB/s', not GB/s or MB/s")
    );
    assert_eq!(figures(ImportTool::BandwidthTest, BANDWIDTH_CSV)[0].2, 31_200_000_000);
    let several = BANDWIDTH_CSV.replacen("NumDevsUsed = 1", "NumDevsUsed = 2", 1);
    assert_eq!(read(ImportTool::BandwidthTest, &several).left_out[0].line, 1);
    assert!(error(ImportTool::BandwidthTest, BANDWIDTH_CSV, "H2D", "X2D").contains("names no direction"));
}

#[test]
fn network_figures_have_no_direction_at_a_device() {
    assert_eq!(figures(ImportTool::Osu, OSU)[5], (BytePath::Network, Some(4_194_304), 24_402_130_000));
    assert_eq!(figures(ImportTool::Osu, OSU_LATENCY)[0], (BytePath::Network, Some(1), 1620));
    assert_eq!(read(ImportTool::Osu, OSU).version.as_deref(), Some("7.3"));
    assert!(error(ImportTool::Osu, OSU, "Bandwidth (MB/s)", "Bandwidth (Gb/s)").contains("is neither"));
    assert_eq!(figures(ImportTool::Perftest, PERFTEST_LATENCY)[2], (BytePath::Network, Some(4096), 1970));
    // Bandwidths are those of the reader of tables, latencies are added.
    let found = figures(ImportTool::Perftest, PERFTEST);
    let count = |path| found.iter().filter(|(found, ..)| *found == path).count();
    assert_eq!((count(BytePath::ToDevice), count(BytePath::FromDevice), count(BytePath::Both)), (8, 5, 1));
    assert_eq!((count(BytePath::Network), read(ImportTool::Perftest, PERFTEST).left_out.len()), (1, 0));
    assert!(error(ImportTool::Perftest, PERFTEST_LATENCY, "1.97 ", "-1.97").contains("f:11: '-1.97' is not"));
}

#[test]
fn sections_of_mlc_are_host_memory_and_others_are_named() {
    let imported = read(ImportTool::Mlc, MLC);
    assert!(imported.figures.iter().all(|figure| figure.path == BytePath::HostMemory));
    assert_eq!(imported.figures[1].test, "idle latency, node 0 to 1");
    assert_eq!(figures(ImportTool::Mlc, MLC)[4].2, 310_218_700_000);
    assert_eq!((imported.version.as_deref(), imported.left_out.len()), (Some("3.11a"), 1));
    assert!(error(ImportTool::Mlc, MLC, " 168.9\t", "").contains("f:5: 1 values instead of 2"));
}

#[test]
fn rows_of_pcm_pcie_are_sums_over_devices_and_empty_intervals_are_left_out() {
    let found = figures(ImportTool::PcmPcie, PCM);
    assert_eq!(found[0], (BytePath::DevicesRead, None, 25_769_803_776));
    assert_eq!(read(ImportTool::PcmPcie, PCM).left_out.len(), 2);
    assert!(error(ImportTool::PcmPcie, PCM, ",25031606272", "").contains("f:2: 9 cells instead of 10"));
}

#[test]
fn wc_perf_needs_its_command_line_and_the_table_of_its_page_is_read() {
    assert_eq!(figures(ImportTool::WcPerf, WC_PERF)[1], (BytePath::CoreStores, Some(4096), 1_666_118_000));
    assert_eq!(read(ImportTool::WcPerf, WC_PERF).figures[2].test, "custom-wc");
    let alone = WC_PERF.split_once('\n').unwrap().1;
    assert!(ImportTool::WcPerf.read("f", alone).unwrap_err().to_string().contains("f:1: there is no command line"));
    let page = "| size (bytes) | burst | burst-wc | custom | custom-wc (GB/s) |\n| ---- | :---: | :---: | :---: | :---: |\n\
                | 64 | 0.026475 | 0.434842 | 0.052006 | 0.257794 |\n";
    let found = figures(ImportTool::WcPerf, page);
    assert_eq!((found.len(), found[1]), (4, (BytePath::CoreStores, Some(64), 434_842_000)));
    assert!(ImportTool::WcPerf.read("f", &page.replace("(GB/s)", "")).unwrap_err().to_string().contains("GB/s"));
}

#[test]
fn a_record_has_answers_for_dma_of_one_device_with_a_size_and_all_figures() {
    let made = record(read(ImportTool::Nvbandwidth, EIGHT), vec!["lanemark".to_owned()]);
    assert_eq!((made.answers.len(), made.targets.len()), (16, 8), "two directions of eight GPUs");
    assert!(made.targets.iter().all(|target| target.kind == TargetKind::Imported));
    assert!(made.answers.iter().all(|answer| answer.samples_ns.len() == 1 && answer.size_bytes == 512 << 20));
    assert_eq!(made.imported.as_ref().unwrap().figures.len(), 48);
    assert_eq!((made.written_unix_s, made.host), (None, None), "the tool says neither");
    let sizeless = record(read(ImportTool::Nvbandwidth, EIGHT.split_once('\n').unwrap().1), Vec::new());
    assert_eq!(sizeless.answers, [], "without a size there is no case");
    let memory = record(read(ImportTool::Mlc, MLC), Vec::new());
    assert_eq!((memory.answers.len(), memory.targets.len()), (0, 0), "no question has figures of mlc");
}

#[test]
fn damaged_files_are_refused_with_a_line_or_read_with_possible_figures() {
    let mut random = fastrand::Rng::with_seed(11);
    let letters: Vec<char> = "0123456789.,:;|()#-/ \n\tGMB{}[]\"é".chars().collect();
    for (_, text, _) in ALL {
        for _ in 0..200 {
            let mut damaged: Vec<char> = text.chars().collect();
            for _ in 0..random.usize(1..4) {
                let place = random.usize(..damaged.len());
                match random.u32(..4) {
                    0 => damaged[place] = letters[random.usize(..letters.len())],
                    1 => drop(damaged.drain(place..(place + random.usize(1..40)).min(damaged.len()))),
                    2 => damaged.insert(place, letters[random.usize(..letters.len())]),
                    _ => damaged.truncate(place.max(1)),
                }
                if damaged.is_empty() {
                    damaged.push('x');
                }
            }
            let damaged: String = damaged.into_iter().collect();
            let lines = 1..=damaged.lines().count().max(1);
            for tool in ImportTool::ALL {
                match tool.read("f", &damaged) {
                    Err(error) => {
                        assert!(lines.contains(&error.line) && error.message.lines().count() == 1, "{error}");
                    }
                    Ok(imported) => {
                        for figure in &imported.figures {
                            let (Measured::RateBytesPerS(value) | Measured::LatencyNs(value)) = figure.value;
                            assert!(value > 0.0 && value <= 1e14, "{figure:?}");
                            assert!(lines.contains(&(figure.line as usize)), "{figure:?}");
                        }
                        assert!(record(imported, Vec::new()).imported.is_some());
                    }
                }
            }
        }
    }
}
