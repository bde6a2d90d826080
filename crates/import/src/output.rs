//! Readers of the output of tools: every figure that a record can hold.

mod bandwidth_test;
mod collector;
mod fio;
mod gdrcopy;
mod mlc;
mod nvbandwidth;
mod osu;
mod pcm_pcie;
mod perftest;
mod wc_perf;

use crate::table::TableError;
use lanemark_record::Imported;

/// A tool whose output is imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportTool {
    /// NVIDIA's nvbandwidth, text or JSON.
    Nvbandwidth,
    /// `gdrcopy_copybw` and `gdrcopy_copylat`.
    Gdrcopy,
    /// `bandwidthTest` of the CUDA samples.
    BandwidthTest,
    /// The OSU micro-benchmarks.
    Osu,
    /// perftest: `ib_write_bw`, `ib_read_lat` and others.
    Perftest,
    /// Intel's Memory Latency Checker.
    Mlc,
    /// fio with JSON output.
    Fio,
    /// `pcm-pcie -csv`.
    PcmPcie,
    /// `wc_perf` of the AWS FPGA application notes.
    WcPerf,
}

impl ImportTool {
    /// All tools.
    pub const ALL: [ImportTool; 9] = [
        ImportTool::Nvbandwidth,
        ImportTool::Gdrcopy,
        ImportTool::BandwidthTest,
        ImportTool::Osu,
        ImportTool::Perftest,
        ImportTool::Mlc,
        ImportTool::Fio,
        ImportTool::PcmPcie,
        ImportTool::WcPerf,
    ];

    /// Name in options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ImportTool::Nvbandwidth => "nvbandwidth",
            ImportTool::Gdrcopy => "gdrcopy",
            ImportTool::BandwidthTest => "bandwidthTest",
            ImportTool::Osu => "osu",
            ImportTool::Perftest => "perftest",
            ImportTool::Mlc => "mlc",
            ImportTool::Fio => "fio",
            ImportTool::PcmPcie => "pcm-pcie",
            ImportTool::WcPerf => "wc_perf",
        }
    }

    /// Words of which the output of this tool has at least one.
    const fn marks(self) -> &'static [&'static str] {
        match self {
            ImportTool::Nvbandwidth => &["nvbandwidth Version", "\"nvbandwidth\"", "_memcpy_ce", "_memcpy_sm"],
            ImportTool::Gdrcopy => &["gdr_copy_", "write BW: ", "read BW: "],
            ImportTool::BandwidthTest => &["[CUDA Bandwidth Test]", "bandwidthTest-"],
            ImportTool::Osu => &["# OSU MPI"],
            ImportTool::Perftest => &["BW Test\n", "Latency Test\n", "Bidirectional BW Test"],
            ImportTool::Mlc => &["Intel(R) Memory Latency Checker"],
            ImportTool::Fio => &["\"fio version\""],
            ImportTool::PcmPcie => &["PCIe Rd (B)"],
            ImportTool::WcPerf => &["wc_perf", "burst-wc"],
        }
    }

    /// The tool that printed this text; `None` if its words are those of no tool, or of several.
    ///
    /// ```
    /// use lanemark_import::ImportTool;
    /// assert_eq!(ImportTool::of_output("# OSU MPI Bandwidth Test v7.3\n"), Some(ImportTool::Osu));
    /// assert_eq!(ImportTool::of_output("4 GB/s\n"), None);
    /// ```
    #[must_use]
    pub fn of_output(text: &str) -> Option<ImportTool> {
        let mut found = ImportTool::ALL.into_iter().filter(|tool| tool.marks().iter().any(|mark| text.contains(mark)));
        found.next().filter(|_| found.next().is_none())
    }

    /// Reads the tool's output. Lines of other kinds are skipped and counted.
    ///
    /// # Errors
    /// [`TableError`] for an invalid figure, or if nothing was found.
    pub fn read(self, file: &str, text: &str) -> Result<Imported, TableError> {
        let text = text.trim_start_matches('\u{feff}');
        match self {
            ImportTool::Nvbandwidth => nvbandwidth::read(file, text),
            ImportTool::Gdrcopy => gdrcopy::read(file, text),
            ImportTool::BandwidthTest => bandwidth_test::read(file, text),
            ImportTool::Osu => osu::read(file, text),
            ImportTool::Perftest => perftest::read(file, text),
            ImportTool::Mlc => mlc::read(file, text),
            ImportTool::Fio => fio::read(file, text),
            ImportTool::PcmPcie => pcm_pcie::read(file, text),
            ImportTool::WcPerf => wc_perf::read(file, text),
        }
    }
}
