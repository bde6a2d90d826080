//! Stores through the posted queue of a root complex.

use crate::condition::with;
use crate::line::{Figures, line};
use crate::rule::as_text;
use lanemark_bench::{Axes, Effort, ask, question};
use lanemark_machine::Access;
use lanemark_platform::Platform;
use lanemark_record::{Picture, PictureLine};
use lanemark_sim::SimulatedMachine;
use lanemark_units::MemoryType;

/// Sizes in bytes, from one line to where the buffers on the path are full.
const SIZES: [u64; 8] = [64, 128, 256, 512, 1 << 10, 2 << 10, 4 << 10, 8 << 10];
/// Entries of the queue beside those of the platform.
const ENTRIES: [u32; 3] = [64, 140, 200];
/// Iterations over the same range.
const PASSES: u64 = 100;
/// IDs of the published rates, without the size.
const PUBLISHED: &str = "F1:customwc";

/// Draws the issue rate of `memcpy` to WC memory over its size, for several lengths of the posted queue of the root
/// complex, beside the published rates.
pub(crate) fn posted_queue(platform: &Platform, figure: Figures) -> Result<Picture, String> {
    let own = platform.root_complex.posted_queue_entries.value;
    let published = SIZES.into_iter().map(|size| figure(&format!("{PUBLISHED}:{size}")).map(Some)).collect();
    let of = |entries: u32| -> Result<PictureLine, String> {
        let changed = with(platform, "root_complex.posted_queue_entries", f64::from(entries))?;
        let values = SIZES.into_iter().map(|size| issue_gb_per_s(&changed, size).map(Some)).collect();
        line(format!("{entries} entries{}", if entries == own { ", the platform" } else { "" }), values)
    };
    let mut lines = vec![line("published", published)?];
    for entries in std::iter::once(own).chain(ENTRIES) {
        lines.push(of(entries)?);
    }
    Ok(Picture {
        title: "memcpy to WC memory, by the posted queue of the root complex".to_owned(),
        along: "bytes".to_owned(),
        shows: "issue rate, GB/s".to_owned(),
        at: SIZES.map(|bytes| bytes as f64).to_vec(),
        lines,
        note: format!(
            "Simulated, with root_complex.posted_queue_entries changed; a sensitivity, not a fit: the platform keeps {own}. \
             A longer queue raises the peak, and also the rate above it, where the published rate falls."
        ),
    })
}

/// Issue rate of `memcpy` to WC memory, in GB/s.
fn issue_gb_per_s(platform: &Platform, size: u64) -> Result<f64, String> {
    let question = question("mmio_write_bandwidth").ok_or("there is no question mmio_write_bandwidth")?;
    let mut machine = SimulatedMachine::new(platform).map_err(as_text)?;
    let axes = Axes {
        sizes: Some(vec![size]),
        memory_types: Some(vec![MemoryType::Wc]),
        accesses: Some(vec![Access::Memcpy]),
        fences: Some(vec![None]),
        ..Axes::default()
    };
    let cases = (question.cases)(lanemark_machine::Machine::facts(&machine), &axes);
    let [case] = &cases[..] else { return Err(format!("{} cases of {size} B, instead of one", cases.len())) };
    let effort = Effort { simulated_passes: Some(PASSES), ..Effort::default() };
    let answer = ask(question, &mut machine, case, &effort).map_err(as_text)?;
    let rate = answer.issue_rate_bytes_per_s.ok_or_else(|| "the answer has no issue rate".to_owned())?;
    Ok(rate.median / 1e9)
}
