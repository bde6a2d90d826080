//! The picture of the README: delivered rates of some methods by size, with their limits.
//!
//! `make picture` draws it again; the test here compares the committed file with the answers of this build.

use lanemark_checks::{lanemark, root};
use serde_json::Value;
use std::fmt::Write;
use std::process::Command;

/// The picture, from the repository's root.
const PATH: &str = "docs/methods.svg";
/// The platform whose answers it shows.
const PLATFORM: &str = "card-gen5-x16";

/// One line of the picture.
struct Method {
    label: &'static str,
    colour: &'static str,
    /// Options of `lanemark bench` that leave exactly this method.
    options: &'static [&'static str],
}

/// The methods, fastest first. Colours are distinguishable with all kinds of colour blindness.
const METHODS: &[Method] = &[
    Method { label: "DMA read", colour: "#0072b2", options: &["--question", "dma_read_bandwidth"] },
    Method { label: "DMA write", colour: "#56b4e9", options: &["--question", "dma_write_bandwidth"] },
    Method {
        label: "64 B stores, WC",
        colour: "#009e73",
        options: &["--question", "mmio_write_bandwidth", "--memory-type", "wc", "--access", "64"],
    },
    Method {
        label: "16 B MOVNTDQA loads, WC",
        colour: "#e69f00",
        options: &["--question", "streaming_load_bandwidth", "--memory-type", "wc", "--access", "nt16"],
    },
    Method {
        label: "8 B stores, UC",
        colour: "#cc79a7",
        options: &["--question", "mmio_write_bandwidth", "--memory-type", "uc", "--access", "8"],
    },
    Method {
        label: "8 B loads, UC",
        colour: "#d55e00",
        options: &["--question", "mmio_read_bandwidth", "--memory-type", "uc", "--access", "8"],
    },
];

/// The answers of one method.
struct Curve {
    /// Size in bytes and delivered rate in bytes per second.
    points: Vec<(f64, f64)>,
    /// The limit at the largest size, in bytes per second.
    limit: f64,
}

/// Asks the program of this build.
fn curve(method: &Method) -> Curve {
    let mut bench = Command::new(lanemark());
    bench.args(["bench", "--on", PLATFORM, "--sizes", "64..4MiB", "--json"]).args(method.options);
    let done = bench.output().unwrap();
    let record: Value = serde_json::from_slice(&done.stdout)
        .unwrap_or_else(|error| panic!("{}: {error}: {}", method.label, String::from_utf8_lossy(&done.stderr)));
    let answers = record["answers"].as_array().unwrap();
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{}: {value}", method.label));
    let rate = |answer: &Value| number(&answer["delivered_rate_bytes_per_s"]["median"]);
    let points: Vec<(f64, f64)> = answers.iter().map(|answer| (number(&answer["size_bytes"]), rate(answer))).collect();
    let is_ordered = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
    assert!(points.len() > 1 && is_ordered, "{}: the options leave another number of methods than one", method.label);
    let limit = number(&answers[answers.len() - 1]["ceiling"]["rate_bytes_per_s"]);
    Curve { points, limit }
}

/// Width and height of the picture, and the edges of the plot in it.
const SIZE: (f64, f64) = (840.0, 420.0);
const LEFT: f64 = 70.0;
const RIGHT: f64 = 600.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 380.0;
/// Sizes at the left and right edge of the plot, as powers of two: 64 B to 4 MiB.
const SIZES: (f64, f64) = (6.0, 22.0);
/// Rates at the bottom and top edge of the plot, as powers of ten: 10 MB/s to 100 GB/s.
const RATES: (f64, f64) = (7.0, 11.0);

fn x(size_bytes: f64) -> f64 {
    LEFT + (size_bytes.log2() - SIZES.0) / (SIZES.1 - SIZES.0) * (RIGHT - LEFT)
}

fn y(bytes_per_s: f64) -> f64 {
    BOTTOM - (bytes_per_s.log10() - RATES.0) / (RATES.1 - RATES.0) * (BOTTOM - TOP)
}

/// The whole picture.
fn picture() -> String {
    let curves: Vec<Curve> = METHODS.iter().map(curve).collect();
    let mut svg = String::new();
    let mut line = |text: String| writeln!(svg, "{text}").unwrap();
    let (width, height) = SIZE;
    line(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\" role=\"img\">"
    ));
    line(format!("<title>Delivered rate by method and size on {PLATFORM}, simulated</title>"));
    line(format!("<rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>"));
    line(format!(
        "<text x=\"{LEFT}\" y=\"26\" font-size=\"15\">{PLATFORM} (simulated): delivered rate in GB/s by size</text>"
    ));
    for (power, label) in [(7, "0.01"), (8, "0.1"), (9, "1"), (10, "10"), (11, "100")] {
        let at = y(10_f64.powi(power));
        line(format!("<path d=\"M{LEFT} {at:.1}H{RIGHT}\" stroke=\"#ddd\"/>"));
        line(format!("<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>", LEFT - 8.0, at + 4.0));
    }
    for (power, label) in [(6, "64 B"), (10, "1 KiB"), (14, "16 KiB"), (18, "256 KiB"), (22, "4 MiB")] {
        let at = x(2_f64.powi(power));
        line(format!("<path d=\"M{at:.1} {TOP}V{BOTTOM}\" stroke=\"#ddd\"/>"));
        line(format!("<text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{label}</text>", BOTTOM + 20.0));
    }
    // The limits of the two DMA directions differ by less than a line's width: the lower one is drawn.
    let (dma, mmio) = (curves[1].limit.min(curves[0].limit), curves[2].limit);
    for (limit, what, above) in
        [(dma, "limit of DMA, from the link", 6.0), (mmio, "limit of MMIO, from the BAR's data path", -14.0)]
    {
        let at = y(limit);
        line(format!("<path d=\"M{LEFT} {at:.1}H{RIGHT}\" stroke=\"#555\" stroke-dasharray=\"6 4\"/>"));
        line(format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">{what}: {:.1}</text>",
            RIGHT - 6.0,
            at - above,
            limit / 1e9
        ));
    }
    let mut last_label = f64::NEG_INFINITY;
    for (method, curve) in METHODS.iter().zip(&curves) {
        let points: Vec<String> =
            curve.points.iter().map(|(size, rate)| format!("{:.1},{:.1}", x(*size), y(*rate))).collect();
        let colour = method.colour;
        line(format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.5\"/>",
            points.join(" ")
        ));
        let (size, rate) = curve.points[curve.points.len() - 1];
        // Labels of curves that end close together are moved apart.
        last_label = (y(rate) + 4.0).max(last_label + 17.0);
        line(format!(
            "<text x=\"{:.1}\" y=\"{last_label:.1}\" fill=\"{colour}\">{}: {}</text>",
            x(size) + 8.0,
            method.label,
            figure(rate / 1e9)
        ));
    }
    line("</svg>".to_owned());
    svg
}

/// Three digits.
fn figure(number: f64) -> String {
    let decimals = if number < 0.1 {
        4
    } else if number < 1.0 {
        3
    } else if number < 10.0 {
        2
    } else {
        1
    };
    format!("{number:.decimals$}")
}

#[test]
fn the_picture_of_the_readme_shows_the_answers_of_this_build() {
    let wanted = picture();
    if crate::is_blessing() {
        std::fs::write(root().join(PATH), wanted).unwrap();
    } else {
        let found = std::fs::read_to_string(root().join(PATH)).unwrap_or_default();
        assert!(found == wanted, "{PATH} shows other figures than the program; draw it again by: make picture");
    }
}
