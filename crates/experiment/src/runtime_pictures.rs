//! Pictures of a paper about a runtime and its card: curves between its figures.

use lanemark_compute::{Generated, Spmv, Workload};
use lanemark_machine::{Allocation, Compute, HostWait, Machine, Plan, RuntimeCopy, Samples, Verb, Work};
use lanemark_model::predict;
use lanemark_platform::Platform;
use lanemark_record::{Picture, PictureLine};
use lanemark_sim::SimulatedMachine;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The picture named `name` for `platform`; `None` if the name is unknown here.
pub(crate) fn picture(name: &str, platform: &Platform) -> Option<Result<Picture, String>> {
    match name {
        "copies_by_size" => Some(copies_by_size(platform)),
        "kernels_and_ports" => Some(kernels_and_ports(platform)),
        _ => None,
    }
}

fn ns(platform: &Platform, request: impl Into<Work>) -> Result<f64, String> {
    let mut machine = SimulatedMachine::new(platform).map_err(|error| error.to_string())?;
    let mut samples = Samples::wanted(1);
    let plan = Plan { warmup_passes: 1, ..Plan::new(request, 1) };
    machine.run(&plan, &mut samples).map_err(|error| error.to_string())?;
    samples.taken.first().map(|sample| sample.delivered.as_ns()).ok_or_else(|| "no sample was taken".to_owned())
}

/// Sizes of a copy in bytes: from one line to twice the largest published size.
const SIZES: [u64; 11] =
    [64, 1000, 4096, 20_000, 80_000, 250_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000, 16_000_000];

fn copies_by_size(platform: &Platform) -> Result<Picture, String> {
    let line = |allocation: Allocation, name: &str| {
        let copy = |bytes| {
            let moved = RuntimeCopy { verb: Verb::Store, bytes, told: HostWait::Event, allocation };
            Ok(Some(ns(platform, moved)? / 1e3))
        };
        let values = SIZES.into_iter().map(copy).collect::<Result<_, String>>()?;
        Ok(PictureLine { name: name.to_owned(), values })
    };
    Ok(Picture {
        title: "One blocking copy to the card".to_owned(),
        along: "bytes".to_owned(),
        shows: "us".to_owned(),
        at: SIZES.map(|bytes| bytes as f64).to_vec(),
        lines: [
            (Allocation::Buffer, "buffer"),
            (Allocation::Device, "explicit USM"),
            (Allocation::Host, "USM from host USM"),
            (Allocation::Mapped, "mapped"),
        ]
        .into_iter()
        .map(|(allocation, name)| line(allocation, name))
        .collect::<Result<_, String>>()?,
        note: "Simulated. Two lines were fitted at two sizes, 80 kB and 8 MB; the rest of them and the other two lines are predicted. \
               Copies below a page are staged by the core, longer ones are pinned and moved in place."
            .to_owned(),
    })
}

/// Largest published number of kernels and of ports per kernel.
const KERNELS: u32 = 8;
const PORTS: u32 = 4;
const MATRIX: Generated = Generated::Poisson(256);

fn kernels_and_ports(platform: &Platform) -> Result<Picture, String> {
    let matrix = Arc::new(MATRIX.matrix());
    let op = |kernels, ports_each| {
        let work = Workload::Spmv(Spmv { matrix: Arc::clone(&matrix), kernels, ports_each });
        Compute { work, told: HostWait::Finish }
    };
    let one = ns(platform, op(1, 1))?;
    // The binding limit of each cell.
    let mut bounds: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut lines, mut cells) = (Vec::new(), Vec::new());
    for ports in 1..=PORTS {
        let mut values = Vec::new();
        for kernels in 1..=KERNELS {
            let times = one / ns(platform, op(kernels, ports))?;
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
    let places: Vec<String> = PUBLISHED.iter().map(|times| between(&cells, *times)).collect();
    Ok(Picture {
        title: format!("SpMV by kernels and ports per kernel, {MATRIX}"),
        along: "kernels".to_owned(),
        shows: "speed relative to 1 kernel with 1 port".to_owned(),
        at: (1..=KERNELS).map(f64::from).collect(),
        lines,
        note: format!(
            "Simulated. Published: 2.24 for 1 kernel with 4 ports, 4.7 for 8 with 1, 7.5 for 8 with 4. Matrix, loops and clocks are not \
             published: ours are a grid of 256 x 256 points, a word for each load, and a clock that does not fall with the number of \
             kernels. Here, kernels x ports: {}. Bound by, according to the formula: {}.",
            places.join("; "),
            bounds.join("; ")
        ),
    })
}

/// Published speeds relative to one kernel with one port: S11, S12 and S13.
const PUBLISHED: [f64; 3] = [2.24, 4.7, 7.5];

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
