//! Sparse matrix-vector products by kernels and ports.

use crate::line::Figures;
use crate::one_sample::warm_ns;
use lanemark_compute::{Generated, Spmv, Workload};
use lanemark_machine::{Compute, HostWait, Plan};
use lanemark_model::predict;
use lanemark_platform::Platform;
use lanemark_record::{Picture, PictureLine};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Largest published number of kernels and of ports per kernel.
const KERNELS: u32 = 8;
const PORTS: u32 = 4;
const MATRIX: Generated = Generated::Poisson(256);

/// Draws the speed of a product over the number of kernels, for each number of ports per kernel.
pub(crate) fn kernels_and_ports(platform: &Platform, figure: Figures) -> Result<Picture, String> {
    let published = [figure("S11")?, figure("S12")?, figure("S13")?];
    let matrix = Arc::new(MATRIX.matrix());
    let op = |kernels, ports_each| {
        let work = Workload::Spmv(Spmv { matrix: Arc::clone(&matrix), kernels, ports_each });
        Compute { work, wait: HostWait::Finish }
    };
    let one = warm_ns(platform, op(1, 1))?;
    // The binding limit of each cell.
    let mut bounds: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut lines, mut cells) = (Vec::new(), Vec::new());
    for ports in 1..=PORTS {
        let mut values = Vec::new();
        for kernels in 1..=KERNELS {
            let times = one / warm_ns(platform, op(kernels, ports))?;
            values.push(Some(times));
            cells.push((times, format!("{kernels}x{ports}")));
            let prediction = predict(platform, &Plan::new(op(kernels, ports), 1))
                .ok_or_else(|| format!("no formula for {kernels} kernels with {ports} ports"))?;
            bounds.entry(prediction.bound.name().to_owned()).or_default().push(format!("{kernels}x{ports}"));
        }
        let name = if ports == 1 { "1 port each".to_owned() } else { format!("{ports} ports each") };
        lines.push(PictureLine { name, values });
    }
    let bounds: Vec<String> =
        bounds.into_iter().map(|(bound, places)| format!("{bound}: {}", places.join(" "))).collect();
    let [four, eight, all] = published;
    let places: Vec<String> = published.iter().map(|times| between(&cells, *times)).collect();
    Ok(Picture {
        title: format!("SpMV by kernels and ports per kernel, {MATRIX}"),
        along: "kernels".to_owned(),
        shows: "speed relative to 1 kernel with 1 port".to_owned(),
        at: (1..=KERNELS).map(f64::from).collect(),
        lines,
        note: format!(
            "Simulated. Published: {four} for 1 kernel with 4 ports, {eight} for 8 with 1, {all} for 8 with 4. Matrix, loops and clocks are \
             not published: ours are the matrix {MATRIX}, a word for each load, own ports for every kernel, one clock for any number of \
             kernels, and no launches in the time. Here, kernels x ports: {}. Bound by, according to the formula: {}.",
            places.join("; "),
            bounds.join("; ")
        ),
    })
}

/// The cells with the next lower and the next higher value than `times`, as text.
fn between(cells: &[(f64, String)], times: f64) -> String {
    let show = |cell: Option<&(f64, String)>| cell.map(|(value, place)| format!("{place} with {value:.2}"));
    let by_value = |one: &&(f64, String), other: &&(f64, String)| one.0.total_cmp(&other.0);
    let below = show(cells.iter().filter(|cell| cell.0 <= times).max_by(by_value));
    let above = show(cells.iter().filter(|cell| cell.0 > times).min_by(by_value));
    match (below, above) {
        (Some(below), Some(above)) => format!("{times} is between {below} and {above}"),
        (Some(below), None) => format!("{times} is above all, the highest is {below}"),
        (None, Some(above)) => format!("{times} is below all, the lowest is {above}"),
        (None, None) => format!("{times} cannot be placed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_figure_is_placed_between_its_neighbours() {
        let cells = [(1.0, "1x1".to_owned()), (2.0, "2x1".to_owned()), (1.75, "1x2".to_owned())];
        assert_eq!(between(&cells, 1.9), "1.9 is between 1x2 with 1.75 and 2x1 with 2.00");
        assert_eq!(between(&cells, 2.0), "2 is above all, the highest is 2x1 with 2.00");
        assert_eq!(between(&cells, 0.5), "0.5 is below all, the lowest is 1x1 with 1.00");
    }
}
