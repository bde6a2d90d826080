//! The pages under test, and what they are made of.

use lanemark_record::{Record, SweepRow, SweepTable, SweptBy, read};
use lanemark_report::{ComparedRecord, Traced, machines_html, sweep_map_html, waterfall_html};
use lanemark_runner::{Cancel, Changes, Target, TraceRequest, TracedCase, question, trace};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Reference records: two simulated machines, a real card, and a real machine with other questions.
pub const RECORDS: [&str; 4] =
    ["simulated-card-gen5-x16.json", "simulated-gpu-h100.json", "h100-dma-cuda.json", "vm-host-memory.json"];

/// Reason of the point without a figure.
pub const REASON: &str = "too few credits";

/// A page in a file.
pub struct Made {
    pub name: &'static str,
    pub file: PathBuf,
    /// Expression that is true when the page is drawn.
    pub is_ready: &'static str,
    /// The element whose picture is compared.
    pub picture: &'static str,
    /// Begin of the first table as CSV.
    pub csv_head: &'static str,
    _folder: TempDir,
}

impl Made {
    pub fn all() -> [Made; 3] {
        [Made::machines(), Made::map(), Made::waterfall()]
    }

    pub fn machines() -> Made {
        let records = records();
        let compared: Vec<ComparedRecord> = (records.iter())
            .map(|(name, record)| ComparedRecord { file: Path::new(name), record, neighbours: None })
            .collect();
        let page = machines_html(&compared).unwrap();
        let is_ready = "document.querySelectorAll('.plot canvas').length > 0";
        Made::new("machines", &page, is_ready, ".plot .canvas", "fact,")
    }

    pub fn map() -> Made {
        let page = sweep_map_html(&SweepTable::of(&swept()), "sweep.jsonl").unwrap();
        Made::new("map", &page, "document.querySelectorAll('.map td').length > 0", ".map", "dma.tags,link.mps_bytes,")
    }

    /// The same sweep at two latencies of the link, the second with half of the figures.
    pub fn map_of_three() -> Made {
        let at = |latency: u32| {
            swept().into_iter().map(move |mut row| {
                row.key = format!("{latency}-{}", row.key);
                row.varied.insert("link.latency_ns".to_owned(), latency.to_string());
                row.delivered_rate_bytes_per_s = row.delivered_rate_bytes_per_s.map(|rate| rate / f64::from(latency));
                row
            })
        };
        let rows: Vec<SweepRow> = at(1).chain(at(2)).collect();
        let page = sweep_map_html(&SweepTable::of(&rows), "sweep.jsonl").unwrap();
        Made::new("map of three", &page, "document.querySelectorAll('.map td').length > 0", ".map", "dma.tags,")
    }

    pub fn waterfall() -> Made {
        let TracedCase { target, case, nth, cases, passes, sample, trace, .. } = traced();
        let traced = Traced {
            target: &target,
            question: "dma_read_bandwidth",
            method: &case.method,
            size_bytes: case.size,
            passes,
            case: (nth, cases),
            sample,
            trace: &trace,
            error: None,
        };
        let page = waterfall_html(&traced).unwrap();
        let is_ready = "document.querySelectorAll('.waterfall rect').length > 0";
        Made::new("waterfall", &page, is_ready, ".waterfall", "from ns,sent in ns,")
    }

    fn new(
        name: &'static str,
        page: &str,
        is_ready: &'static str,
        picture: &'static str,
        csv_head: &'static str,
    ) -> Made {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("page.html");
        std::fs::write(&file, page).unwrap();
        Made { name, file, is_ready, picture, csv_head, _folder: folder }
    }
}

/// The records, with their names on the page.
pub fn records() -> Vec<(String, Record)> {
    let folder = lanemark_checks::root().join("records");
    let name = |file: &str| file.trim_end_matches(".json").to_owned();
    RECORDS.iter().map(|file| (name(file), read(&folder.join(file)).unwrap())).collect()
}

/// A sweep of tags by payload, with a point that has no figure.
pub fn swept() -> Vec<SweepRow> {
    let mut rows = Vec::new();
    for tags in [8_u32, 16, 32, 64] {
        for mps in [128_u32, 256, 512] {
            let has_figure = (tags, mps) != (64, 512);
            let row = SweepRow::without_figure(
                rows.len().to_string(),
                "card-gen5-x16".to_owned(),
                "dma_read_bandwidth".to_owned(),
                SweptBy::Formulas,
            );
            rows.push(SweepRow {
                varied: [("dma.tags", tags), ("link.mps_bytes", mps)]
                    .map(|(key, value)| (key.to_owned(), value.to_string()))
                    .into(),
                method: "host-to-device by DMA".to_owned(),
                size_bytes: Some(4096),
                delivered_rate_bytes_per_s: has_figure.then(|| f64::from(tags) * 1e8 + f64::from(mps) * 1e6),
                bound_by: has_figure
                    .then(|| if tags < 32 { "tag 90 %" } else { "link busy 99 % (card down)" }.to_owned()),
                because: (!has_figure).then(|| REASON.to_owned()),
                ..row
            });
        }
    }
    rows
}

/// The bottleneck of a point on the page.
pub fn bound(row: &SweepRow) -> &'static str {
    if row.bound_by.as_deref().unwrap_or_default().starts_with("tag") { "tag" } else { "link busy (card down)" }
}

/// Reads of 64 KiB by a card.
pub fn traced() -> TracedCase {
    let request = TraceRequest {
        target: "card-gen5-x16".parse::<Target>().unwrap(),
        question: question("dma_read_bandwidth").unwrap(),
        axes: lanemark_bench::Axes { sizes: Some(vec![65536]), ..lanemark_bench::Axes::default() },
        changes: Changes::default(),
        passes: Some(1),
        dllps: false,
    };
    trace(&request, &Cancel::default()).unwrap()
}
