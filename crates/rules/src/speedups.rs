//! Which assumptions give the published speed-ups of a sparse product by several kernels at once.
//!
//! Three speed-ups are published without the matrix, the clock, or the parts of the time. The picture tries combinations
//! of assumptions by formula and simulates the nearest of each group:
//!
//! - all kernels share some of the memory ports;
//! - the clock falls with each kernel on the card;
//! - the time includes the launch of every kernel, with some buffers each.

use crate::line::Figures;
use crate::one_sample::warm_ns;
use lanemark_compute::{Csr, Generated, Spmv, Workload};
use lanemark_machine::{Allocation, Arguments, Compute, HostWait, Launch, LaunchBy, Plan, Work};
use lanemark_model::predict;
use lanemark_platform::{Origin, Platform};
use lanemark_record::{Picture, PictureLine};
use std::sync::Arc;

/// Kernels and ports of each: the reference, and the three published cases.
const ONE: (u32, u32) = (1, 1);
const CASES: [(u32, u32); 3] = [(1, 4), (8, 1), (8, 4)];
/// Published figures of the cases.
const FIGURES: [&str; 3] = ["S11", "S12", "S13"];
/// Sides of the square grids whose matrices are tried.
const SIDES: [u32; 11] = [32, 64, 80, 96, 112, 128, 192, 232, 256, 384, 512];
/// Clocks of one kernel that are tried, in GHz: up to the highest that the paper states.
const CLOCKS_GHZ: [f64; 8] = [0.2, 0.225, 0.25, 0.26, 0.275, 0.3, 0.35, 0.4];
/// Numbers of memory ports that all kernels share; each kernel needs up to four.
const PORTS: [u32; 8] = [4, 6, 8, 10, 12, 16, 24, 32];
/// Growth of the cycle for each further kernel, in percent.
const GROWTHS_PERCENT: [f64; 6] = [0.0, 2.0, 5.0, 10.0, 20.0, 40.0];

/// One combination of assumptions.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Assumed {
    side: u32,
    clock_ghz: f64,
    ports: u32,
    growth_percent: f64,
    /// Buffers of each launched kernel; `None` if launches are not part of the time.
    buffers: Option<u32>,
}

/// A group of combinations: a line of the picture.
struct Group {
    name: &'static str,
    buffers: &'static [Option<u32>],
    shares_ports: bool,
    clock_falls: bool,
}

const GROUPS: [Group; 6] = [
    Group { name: "slower clock", buffers: &[None], shares_ports: false, clock_falls: true },
    Group { name: "shared ports", buffers: &[None], shares_ports: true, clock_falls: false },
    Group { name: "shared ports and slower clock", buffers: &[None], shares_ports: true, clock_falls: true },
    Group { name: "launches", buffers: &[Some(0)], shares_ports: false, clock_falls: false },
    Group { name: "launches with 1 buffer", buffers: &[Some(1)], shares_ports: false, clock_falls: false },
    Group {
        name: "all, 0, 1 or 5 buffers",
        buffers: &[Some(0), Some(1), Some(5)],
        shares_ports: true,
        clock_falls: true,
    },
];

/// Times of one matrix by formula, without launches, in ns.
struct Times {
    /// One kernel with one port and with four, by clock.
    single: Vec<[f64; 2]>,
    /// Eight kernels with one port and with four each, by clock, ports and growth.
    eight: Vec<Vec<Vec<[f64; 2]>>>,
}

/// Draws the largest error of the three speed-ups over the size of the matrix, for groups of assumptions.
pub(crate) fn speedups_by_assumption(platform: &Platform, figure: Figures) -> Result<Picture, String> {
    let published = [figure(FIGURES[0])?, figure(FIGURES[1])?, figure(FIGURES[2])?];
    let launches = |buffers: Option<u32>| {
        let with_launches = |kernels| launch_ns(platform, kernels, buffers, &by_formula);
        Ok::<_, String>([with_launches(1)?, with_launches(8)?])
    };
    let mut with_launches = Vec::new();
    for group in &GROUPS {
        with_launches.push(group.buffers.iter().map(|buffers| launches(*buffers)).collect::<Result<Vec<_>, _>>()?);
    }
    let mut lines: Vec<PictureLine> =
        GROUPS.iter().map(|group| PictureLine { name: group.name.to_owned(), values: Vec::new() }).collect();
    let mut nearest: [Option<(f64, Assumed)>; GROUPS.len()] = [None; GROUPS.len()];
    for side in SIDES {
        let times = times(platform, side)?;
        for (number, group) in GROUPS.iter().enumerate() {
            let mut best: Option<(f64, Assumed)> = None;
            for (buffers, [one, eight]) in group.buffers.iter().zip(&with_launches[number]) {
                for_each(group, &times, side, *buffers, &mut |assumed, single, eight_ns| {
                    let reference = single[0] + one;
                    let times = [single[1] + one, eight_ns[0] + eight, eight_ns[1] + eight];
                    let off = worst(&times.map(|ns| reference / ns), &published);
                    if best.is_none_or(|(least, _)| off < least) {
                        best = Some((off, assumed));
                    }
                });
            }
            lines[number].values.push(best.map(|(off, _)| off));
            if let Some((off, assumed)) = best
                && nearest[number].is_none_or(|(least, _)| off < least)
            {
                nearest[number] = Some((off, assumed));
            }
        }
    }
    let mut places = Vec::new();
    for (group, nearest) in GROUPS.iter().zip(nearest) {
        let Some((_, assumed)) = nearest else { continue };
        let speeds = simulated(platform, assumed)?;
        let off = worst(&speeds, &published);
        let [four, eight, all] = speeds;
        places.push(format!(
            "{}: {four:.2}, {eight:.2}, {all:.2}, off by up to {off:.0} % ({})",
            group.name,
            assumed.in_words()
        ));
    }
    let [four, eight, all] = published;
    Ok(Picture {
        title: "Speed-ups of SpMV by assumption, the nearest combination for each matrix".to_owned(),
        along: "side of the grid (matrix poisson:SIDE)".to_owned(),
        shows: "largest error of the three speed-ups in percent".to_owned(),
        at: SIDES.map(f64::from).to_vec(),
        lines,
        note: format!(
            "By formula. Published: {four} for 1 kernel with 4 ports, {eight} for 8 with 1, {all} for 8 with 4, without matrix, clock and \
             the parts of the time. Every line may choose the clock of one kernel, {} to {} GHz. Shared ports: {} to {} of them for all \
             kernels together, otherwise each kernel has its own. Slower clock: a cycle that grows by up to {} % for each further kernel. \
             Launches: the launches of as many empty kernels through the runtime, with their buffers, are part of the time. The nearest \
             of each line, simulated: {}.",
            CLOCKS_GHZ[0],
            CLOCKS_GHZ[CLOCKS_GHZ.len() - 1],
            PORTS[0],
            PORTS[PORTS.len() - 1],
            GROWTHS_PERCENT[GROWTHS_PERCENT.len() - 1],
            places.join("; "),
        ),
    })
}

impl Assumed {
    fn in_words(&self) -> String {
        let mut text = format!("poisson:{}, {} GHz, {} ports in all", self.side, self.clock_ghz, self.ports);
        if self.growth_percent > 0.0 {
            text = format!("{text}, cycle + {} % per kernel", self.growth_percent);
        }
        match self.buffers {
            None => {}
            Some(1) => text += ", launches with 1 buffer",
            Some(buffers) => text = format!("{text}, launches with {buffers} buffers"),
        }
        text
    }

    /// The platform with these assumptions.
    fn applied(&self, platform: &Platform) -> Result<Platform, String> {
        let keys = [
            ("kernel.clock_ghz", self.clock_ghz),
            ("device_memory.ports", self.ports.into()),
            ("kernel.cycle_growth_percent", self.growth_percent),
        ];
        keys.into_iter().try_fold(platform.clone(), |platform, (key, value)| {
            let origin = Origin::Assumed("for a picture".to_owned());
            platform.with(key, value, origin).map_err(|error| error.to_string())
        })
    }
}

/// Largest absolute error of `speeds`, in percent.
fn worst(speeds: &[f64; 3], published: &[f64; 3]) -> f64 {
    let errors = speeds.iter().zip(published).map(|(speed, published)| 100.0 * (speed / published - 1.0).abs());
    errors.fold(0.0, f64::max)
}

/// Calls `found` for each combination of a group, with the times of one and of eight kernels.
fn for_each(
    group: &Group,
    times: &Times,
    side: u32,
    buffers: Option<u32>,
    found: &mut dyn FnMut(Assumed, [f64; 2], [f64; 2]),
) {
    let ports = if group.shares_ports { 0..PORTS.len() } else { PORTS.len() - 1..PORTS.len() };
    let growths = if group.clock_falls { 0..GROWTHS_PERCENT.len() } else { 0..1 };
    for (clock, single) in times.single.iter().enumerate() {
        for port in ports.clone() {
            for growth in growths.clone() {
                let assumed = Assumed {
                    side,
                    clock_ghz: CLOCKS_GHZ[clock],
                    ports: PORTS[port],
                    growth_percent: GROWTHS_PERCENT[growth],
                    buffers,
                };
                found(assumed, *single, times.eight[clock][port][growth]);
            }
        }
    }
}

/// Times of the matrix of a grid by formula, for all clocks, ports and growths.
fn times(platform: &Platform, side: u32) -> Result<Times, String> {
    let matrix = Arc::new(Generated::Poisson(side).matrix());
    let mut times = Times { single: Vec::new(), eight: Vec::new() };
    for clock_ghz in CLOCKS_GHZ {
        let of = |ports, growth_percent, cases: [(u32, u32); 2]| {
            let assumed = Assumed { side, clock_ghz, ports, growth_percent, buffers: None };
            let platform = assumed.applied(platform)?;
            let [one, four] = cases;
            Ok::<_, String>([
                product_ns(&platform, &matrix, one, &by_formula)?,
                product_ns(&platform, &matrix, four, &by_formula)?,
            ])
        };
        times.single.push(of(PORTS[PORTS.len() - 1], 0.0, [ONE, CASES[0]])?);
        let by_growth = |ports| GROWTHS_PERCENT.iter().map(|growth| of(ports, *growth, [CASES[1], CASES[2]])).collect();
        times.eight.push(PORTS.into_iter().map(by_growth).collect::<Result<_, String>>()?);
    }
    Ok(times)
}

/// The three speed-ups, simulated.
fn simulated(platform: &Platform, assumed: Assumed) -> Result<[f64; 3], String> {
    let matrix = Arc::new(Generated::Poisson(assumed.side).matrix());
    let applied = assumed.applied(platform)?;
    let time = |case: (u32, u32)| {
        let product = product_ns(&applied, &matrix, case, &warm_ns)?;
        Ok::<_, String>(product + launch_ns(platform, case.0, assumed.buffers, &warm_ns)?)
    };
    let reference = time(ONE)?;
    let mut speeds = [0.0; 3];
    for (speed, case) in speeds.iter_mut().zip(CASES) {
        *speed = reference / time(case)?;
    }
    Ok(speeds)
}

/// The time of work on a platform, in ns.
type Clocked<'a> = &'a dyn Fn(&Platform, Work) -> Result<f64, String>;

fn by_formula(platform: &Platform, work: Work) -> Result<f64, String> {
    let said = predict(platform, &Plan::new(work, 1)).ok_or("there is no formula for this work")?;
    Ok(said.delivered_ns)
}

fn product_ns(platform: &Platform, matrix: &Arc<Csr>, case: (u32, u32), clocked: Clocked) -> Result<f64, String> {
    let (kernels, ports_each) = case;
    let work = Workload::Spmv(Spmv { matrix: Arc::clone(matrix), kernels, ports_each });
    clocked(platform, Compute { work, wait: HostWait::Finish }.into())
}

/// Time to launch this many empty kernels and to wait for them; 0 if launches are not part of the time.
fn launch_ns(platform: &Platform, kernels: u32, buffers: Option<u32>, clocked: Clocked) -> Result<f64, String> {
    let Some(count) = buffers else { return Ok(0.0) };
    let arguments = Arguments { count, allocation: Allocation::Buffer };
    clocked(platform, Launch { kernels, by: LaunchBy::Calls, wait: HostWait::Finish, arguments }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card() -> Platform {
        lanemark_platform::preset("card-stratix10mx").unwrap().unwrap()
    }

    #[test]
    fn the_error_of_a_combination_is_that_of_its_worst_speed_up() {
        assert!((worst(&[2.0, 4.4, 8.8], &[2.0, 4.0, 8.0]) - 10.0).abs() < 1e-9);
        assert!((worst(&[1.0, 4.0, 8.0], &[2.0, 4.0, 8.0]) - 50.0).abs() < 1e-9);
    }

    #[test]
    fn simulated_speed_ups_are_near_those_by_formula() {
        let assumed = Assumed { side: 48, clock_ghz: 0.3, ports: 32, growth_percent: 0.0, buffers: Some(1) };
        let matrix = Arc::new(Generated::Poisson(48).matrix());
        let platform = assumed.applied(&card()).unwrap();
        let time = |case: (u32, u32)| {
            product_ns(&platform, &matrix, case, &by_formula).unwrap()
                + launch_ns(&card(), case.0, Some(1), &by_formula).unwrap()
        };
        let found = simulated(&card(), assumed).unwrap();
        for (found, case) in found.into_iter().zip(CASES) {
            let said = time(ONE) / time(case);
            assert!((found / said - 1.0).abs() < 0.02, "{case:?}: {found} {said}");
        }
    }

    #[test]
    fn ports_shared_by_all_kernels_slow_either_one_port_each_or_four() {
        let matrix = Arc::new(Generated::Poisson(256).matrix());
        let speeds = |ports: u32| {
            let assumed = Assumed { side: 256, clock_ghz: 0.3, ports, growth_percent: 0.0, buffers: None };
            let platform = assumed.applied(&card()).unwrap();
            let time = |case| product_ns(&platform, &matrix, case, &by_formula).unwrap();
            [CASES[1], CASES[2]].map(|case| time(ONE) / time(case))
        };
        for (ports, each_one, each_four) in [
            (4, 3.9..4.1, 3.4..3.6),
            (7, 3.9..4.1, 6.1..6.3),
            (8, 7.9..8.1, 6.9..7.1),
            (10, 7.9..8.1, 6.9..7.1),
            (9, 7.9..8.1, 7.9..8.1),
            (32, 7.9..8.1, 20.8..21.0),
        ] {
            let [one, four] = speeds(ports);
            assert!(each_one.contains(&one) && each_four.contains(&four), "{ports} ports: {one}, {four}");
        }
    }

    #[test]
    fn launches_cost_nothing_unless_they_are_part_of_the_time() {
        assert_eq!(launch_ns(&card(), 8, None, &by_formula), Ok(0.0));
        let [none, one] = [0, 1].map(|buffers| launch_ns(&card(), 8, Some(buffers), &by_formula).unwrap());
        // A buffer costs 20 us a launch.
        assert!((one - none - 8.0 * 20_000.0).abs() < 1.0, "{none} {one}");
    }
}
