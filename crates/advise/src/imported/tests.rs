//! Tests of findings among imported figures, each at its threshold.

use super::*;
use lanemark_wire::Mps;

const LIMIT_LINK: (Generation, Lanes) = (Generation::Gen5, Lanes::X16);

fn link() -> LinkLimit {
    let (generation, lanes) = LIMIT_LINK;
    LinkLimit { source: "card".to_owned(), generation, lanes, mps: Mps::new(256).unwrap() }
}

fn limit() -> f64 {
    link().one_way().unwrap()
}

fn figure(test: &str, path: BytePath, rate: f64) -> ImportedFigure {
    ImportedFigure {
        line: 1,
        test: test.to_owned(),
        path,
        device: None,
        size_bytes: Some(64 << 20),
        outstanding: None,
        is_concurrent: false,
        value: Measured::RateBytesPerS(rate),
        limit_bytes_per_s: None,
    }
}

fn of(device: u32, figure: ImportedFigure) -> ImportedFigure {
    ImportedFigure { device: Some(format!("GPU {device}")), ..figure }
}

fn judged(figures: Vec<ImportedFigure>, is_held: bool) -> Imported {
    let mut imported = Imported {
        tool: "a tool".to_owned(),
        version: None,
        file: "f".to_owned(),
        figures,
        unknown: Vec::new(),
        notes: Vec::new(),
        left_out: Vec::new(),
        skipped_lines: 0,
        findings: Vec::new(),
    };
    let limits = ImportLimits::of_platform(
        &lanemark_platform::host_with_card("xeon-spr", "gpu-h100").unwrap().complete().unwrap(),
    );
    let limits = limits.unwrap();
    judge_imported(&mut imported, is_held.then_some(&limits));
    imported
}

fn kinds(figures: Vec<ImportedFigure>) -> Vec<ImportFindingKind> {
    judged(figures, true).findings.iter().map(|finding| finding.kind).collect()
}

fn to_device(rate: f64) -> Vec<ImportedFigure> {
    vec![figure("copy", BytePath::ToDevice, rate)]
}

use ImportFindingKind::{FarBelow, Impossible, SharedPort, SlowLink, Units, UnlikeSiblings};

#[test]
fn a_rate_at_the_limit_is_possible_and_one_above_is_not() {
    assert_eq!(kinds(to_device(limit())), []);
    assert_eq!(kinds(to_device(limit() * 1.000_001)), [Impossible]);
    assert_eq!(kinds(vec![figure("copy", BytePath::Both, 2.0 * limit())]), [], "a path for each direction");
    assert_eq!(kinds(vec![figure("copy", BytePath::Both, 2.001 * limit())]), [Impossible]);
    for path in [BytePath::HostMemory, BytePath::OtherLink, BytePath::DevicesRead] {
        assert_eq!(kinds(vec![figure("copy", path, 10.0 * limit())]), [], "{path:?} need not cross the link");
    }
    let imported = judged(to_device(10.0 * limit()), false);
    assert_eq!((imported.findings.len(), imported.figures[0].limit_bytes_per_s), (0, None), "without a link");
}

#[test]
fn a_rate_above_the_limit_by_the_factor_of_two_units_is_a_mix_up() {
    for factor in [1.073_741_824, 1.048_576] {
        for near in [0.986, 1.0, 1.014] {
            assert_eq!(kinds(to_device(limit() * factor * near)), [Units], "{factor} {near}");
        }
    }
    assert_eq!(kinds(to_device(limit() * 1.073_741_824 * 1.016)), [Impossible]);
    assert_eq!(kinds(to_device(limit() * 1.048_576 * 0.984)), [Impossible]);
    let finding = judged(to_device(limit() * 1.073_741_824), true).findings.remove(0);
    assert!(finding.text.contains("1.074 times the limit of 58.4 GB/s (Gen5 x16, MPS 256 B, xeon-spr+gpu-h100)"));
    assert!(finding.try_this.contains("GiB and GB") && finding.try_this.contains("58.4 GB/s"), "{finding:?}");
}

#[test]
fn two_figures_of_the_same_transfers_may_be_one_in_two_units() {
    let pair = |ratio: f64| {
        let other = figure("other", BytePath::ToDevice, 4e10 / ratio);
        kinds(vec![figure("copy", BytePath::ToDevice, 4e10), ImportedFigure { line: 2, ..other }])
    };
    assert_eq!((pair(1.0737), pair(1.0486)), (vec![Units], vec![Units]));
    assert_eq!((pair(1.06), pair(1.0765)), (vec![], vec![]), "two measurements may differ by as much");
    let own = || figure("copy", BytePath::ToDevice, 4e10);
    let again = figure("copy", BytePath::ToDevice, 4e10 / 1.0737);
    assert_eq!(kinds(vec![own(), again]), [], "the same test twice");
    let longer = ImportedFigure { size_bytes: Some(128 << 20), ..figure("other", BytePath::ToDevice, 4e10 / 1.0737) };
    assert_eq!(kinds(vec![own(), longer]), [], "another size");
}

#[test]
fn more_than_thirty_times_below_the_limit_is_far_below() {
    let below = |times: f64, size_bytes| {
        let found = ImportedFigure { size_bytes, ..figure("copy", BytePath::FromDevice, limit() / times) };
        kinds(vec![found]).contains(&FarBelow)
    };
    assert!(!below(30.0, Some(64 << 10)) && below(30.001, Some(64 << 10)) && below(31.0, None));
    assert!(!below(300.0, Some((64 << 10) - 1)), "a short transfer may be slow");
    let core = |rate| kinds(vec![figure("read", BytePath::CoreLoads, rate)]);
    assert_eq!((core(0.8e6), core(0.799e6)), (vec![], vec![FarBelow]));
}

#[test]
fn a_large_transfer_just_below_a_slower_state_looks_like_one_of_it() {
    let slower = LinkLimit { generation: Generation::Gen3, ..link() }.one_way().unwrap();
    assert_eq!(kinds(to_device(slower)), [SlowLink]);
    assert_eq!(kinds(to_device(slower * 0.851)), [SlowLink]);
    assert_eq!(kinds(to_device(slower * 0.849)), []);
    assert_eq!(kinds(to_device(slower * 1.05)), [], "faster than Gen3, and far below Gen4");
    let short = ImportedFigure { size_bytes: Some(4096), ..figure("copy", BytePath::ToDevice, slower) };
    assert_eq!(kinds(vec![short]), [], "a short transfer does not reach the limit");
    let text = judged(to_device(slower * 0.95), true).findings.remove(0).text;
    assert!(text.contains("is 95 % of the limit of Gen3 x16, and xeon-spr+gpu-h100 has Gen5 x16"), "{text}");
}

#[test]
fn one_of_eight_devices_unlike_the_others_is_named() {
    let eight = |fifth: f64| {
        let rate = |device: u32| if device == 5 { fifth } else { 5.5e10 + f64::from(device) * 2e7 };
        (0..8).map(|device| of(device, figure("copy", BytePath::ToDevice, rate(device)))).collect::<Vec<_>>()
    };
    assert_eq!(kinds(eight(5.3e10)), [], "a difference below 5 %");
    assert_eq!(kinds(eight(4.1e10)), [UnlikeSiblings]);
    let finding = judged(eight(4.1e10), true).findings.remove(0);
    assert!(
        finding.text.contains("GPU 5") && finding.text.contains("1.34 times slower than the median of the other 7")
    );
    assert_eq!(kinds(eight(4.1e10).split_off(5)), [], "three devices are too few");
    let mut latencies = eight(4.1e10);
    for figure in &mut latencies {
        figure.value = Measured::LatencyNs(1e12 / figure.value.rate().unwrap());
    }
    assert!(judged(latencies, true).findings[0].text.contains("times slower"), "a longer time is slower");
}

#[test]
fn devices_that_keep_a_part_of_their_rate_share_a_port() {
    let machine = |share: f64| {
        let alone = (0..4).map(|device| of(device, figure("alone", BytePath::ToDevice, 5.5e10)));
        let rate = |device| if device < 2 { 5.5e10 * share } else { 5.4e10 };
        let all = (0..4).map(|device| ImportedFigure {
            is_concurrent: true,
            ..of(device, figure("all", BytePath::ToDevice, rate(device)))
        });
        alone.chain(all).collect::<Vec<_>>()
    };
    assert_eq!(kinds(machine(0.71)), []);
    let found = judged(machine(0.5), true).findings;
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(finding.kind, SharedPort);
    assert!(finding.text.contains("2 of 4 devices keep 50 %") && finding.text.ends_with("GPU 0, GPU 1"), "{finding:?}");
}

#[test]
fn both_directions_that_are_no_faster_than_one_share_a_path() {
    let both = |each: f64| {
        let of_both = |test: &str, path| of(0, figure(test, path, each));
        vec![
            of(0, figure("host_to_device_memcpy_ce", BytePath::ToDevice, 5e10)),
            of(0, figure("device_to_host_memcpy_ce", BytePath::FromDevice, 5e10)),
            of_both("host_to_device_bidirectional_memcpy_ce", BytePath::ToDeviceOfBoth),
            of_both("device_to_host_bidirectional_memcpy_ce", BytePath::FromDeviceOfBoth),
        ]
    };
    assert_eq!(kinds(both(2.76e10)), []);
    assert_eq!(kinds(both(2.75e10)), [SharedPort]);
}
