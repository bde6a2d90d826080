//! Named pictures of arguments that a paper makes in words, leaves open, or shows at a few points only.

use crate::coherent::{server_picture, stream_pictures};
use crate::line::Figures;
use crate::{copies, dma_or_loads, posted_queue, speedups, spmv, write_payload};
use lanemark_platform::Platform;
use lanemark_record::Picture;

/// The picture named `name`. `platform` is that of the experiment, and `figure` returns published values by ID.
///
/// # Errors
/// A message if there is no such picture, it needs a platform or a figure that is absent, or its simulation fails.
pub fn picture(name: &str, platform: Option<&Platform>, figure: Figures) -> Result<Picture, String> {
    let platform = || platform.ok_or_else(|| format!("the picture '{name}' needs a platform"));
    match name {
        "copies_by_size" => copies::copies_by_size(platform()?),
        "kernels_and_ports" => spmv::kernels_and_ports(platform()?, figure),
        "speedups_by_assumption" => speedups::speedups_by_assumption(platform()?, figure),
        "write_rate_by_payload" => write_payload::write_rate_by_payload(platform()?),
        "loads_over_dma" => dma_or_loads::loads_over_dma(platform()?),
        "posted_queue" => posted_queue::posted_queue(platform()?, figure),
        "chain_id_schemes" => stream_pictures::chain_id_schemes(),
        "pages_per_range_held" => stream_pictures::pages_per_range("held"),
        "pages_per_range_taken" => stream_pictures::pages_per_range("taken"),
        "pages_per_range_missed" => stream_pictures::pages_per_range("missed"),
        "thirty_years" => stream_pictures::thirty_years(),
        "server_gain" => server_picture::server_gain(figure),
        "misses_of_disks" => stream_pictures::misses_of_disks(figure),
        _ => Err(format!("there is no picture named '{name}'")),
    }
}
