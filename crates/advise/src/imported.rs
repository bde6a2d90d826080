//! Does an imported figure look right? Rates above, far below or at a fraction of the link's limit, devices unlike their
//! siblings, concurrent transfers that share a link, and decimal units taken for binary ones.

mod limits;
#[cfg(test)]
mod tests;

use crate::fleet::{FALSE_ALARM, LEAST_MACHINES, MIN_EFFECT_PERCENT, extreme};
use lanemark_import::LinkLimit;
use lanemark_record::{BytePath, ImportFinding, ImportFindingKind, Imported, ImportedFigure, Measured, Summary};
use lanemark_units::{figures, format_size};
use lanemark_wire::{Generation, Lanes};
pub use limits::{ImportLimits, NoLimit};

/// Relative rounding error of two figures computed in floating point.
const ROUNDING: f64 = 1e-9;

/// Binary units over decimal ones: GiB to GB and MiB to MB.
const UNITS: [(f64, &str); 2] = [(1.073_741_824, "GiB and GB"), (1.048_576, "MiB and MB")];

/// Largest deviation from such a factor of a rate above its limit: a good transfer reaches 98.5 % of it at least.
const UNIT_ABOVE_LIMIT: f64 = 0.015;

/// Largest deviation of two figures that are the same measurement in two units. Two measurements differ by as much as the
/// factor itself, so that only the digits of a print may differ.
const UNIT_BETWEEN_FIGURES: f64 = 0.001;

/// Factor below the limit that counts as far below.
const FAR_BELOW: f64 = 30.0;

/// Bytes of a transfer from which a rate should not be far below its limit.
const LONG_BYTES: u64 = 64 << 10;

/// Rate of one access of 8 B per 10 us, the slowest plausible one of a core.
const SLOWEST_CORE: f64 = 0.8e6;

/// Least share of the limit of a slower link at which a large transfer looks like one of that link.
const SLOW_SHARE: f64 = 0.85;

/// Bytes of a transfer that reaches the limit of its link.
const LARGE_BYTES: u64 = 1 << 20;

/// Largest share of its rate alone that a device keeps if it shares a link with another one.
const SHARED_SHARE: f64 = 0.7;

/// Largest factor over one direction alone of both directions that share one path.
const ONE_PATH: f64 = 1.1;

/// Sets the limits of the figures, if links are known, and finds the remarkable ones.
///
/// A finding says what the figure is, what it is held against, and what to try. It is a question, except that a rate above
/// its limit is impossible.
pub fn judge_imported(imported: &mut Imported, limits: Option<&ImportLimits>) {
    let links: Vec<Option<LinkLimit>> =
        imported.figures.iter().map(|figure| limits.and_then(|limits| limits.of(imported, figure)).cloned()).collect();
    for (figure, link) in imported.figures.iter_mut().zip(&links) {
        figure.limit_bytes_per_s = link.as_ref().and_then(|link| link.of(figure));
    }
    let mut findings = Vec::new();
    for (figure, link) in imported.figures.iter().zip(&links) {
        if let Some(link) = link {
            findings.extend(beside_limit(figure, link));
        }
        findings.extend(slow_core(figure));
    }
    findings.extend(slow_links(&imported.figures, &links));
    findings.extend(other_units(&imported.figures));
    findings.extend(unlike_siblings(&imported.figures));
    findings.extend(shared_ports(&imported.figures));
    findings.extend(one_path(&imported.figures));
    findings.sort_by_key(|finding| finding.line);
    imported.findings = findings;
}

fn finding(kind: ImportFindingKind, figure: &ImportedFigure, text: String, try_this: &str) -> ImportFinding {
    ImportFinding { kind, line: figure.line, test: figure.test.clone(), text, try_this: try_this.to_owned() }
}

/// The figure in words: test, device, size.
fn about(figure: &ImportedFigure) -> String {
    let device = figure.device.as_ref().map(|device| format!(", {device}")).unwrap_or_default();
    let size = figure.size_bytes.map(|bytes| format!(", {}", format_size(bytes))).unwrap_or_default();
    format!("{}{device}{size}", figure.test)
}

/// A rate above its limit, or far below it.
fn beside_limit(figure: &ImportedFigure, link: &LinkLimit) -> Option<ImportFinding> {
    let (rate, limit) = (figure.value.rate()?, figure.limit_bytes_per_s?);
    let (times, of) = (rate / limit, format!("{} ({}, {})", figures::rate(limit), link.in_words(), link.source));
    let name = about(figure);
    if times > 1.0 + ROUNDING {
        let text = format!("{name}: {} is {times:.3} times the limit of {of}", figures::rate(rate));
        let near = |(factor, _): &&(f64, &str)| (times / factor - 1.0).abs() <= UNIT_ABOVE_LIMIT;
        return Some(match UNITS.iter().find(near) {
            Some((factor, names)) => {
                let right = figures::rate(rate / factor);
                let advice = format!(
                    "are {names} mixed up? Divided by {factor:.4} it would be {right}; compare bytes and seconds of the tool"
                );
                finding(ImportFindingKind::Units, figure, text, &advice)
            }
            None => finding(
                ImportFindingKind::Impossible,
                figure,
                text,
                "check that all counted bytes crossed this link and that the time ends with the last one; check --on: another \
                 card, or in a virtual machine an MPS that is not the real one",
            ),
        });
    }
    let is_long = figure.size_bytes.is_none_or(|bytes| bytes >= LONG_BYTES);
    let is_of_core = matches!(figure.path, BytePath::CoreLoads | BytePath::CoreStores);
    (is_long && !is_of_core && rate < limit / FAR_BELOW).then(|| {
        let text = format!("{name}: {} is {:.0} times below the limit of {of}", figures::rate(rate), limit / rate);
        let advice = "check the unit (bits or bytes, MB or GB) and whether the transfers waited for each other";
        finding(ImportFindingKind::FarBelow, figure, text, advice)
    })
}

/// Accesses of a core that are slower than one round trip of 10 us each.
fn slow_core(figure: &ImportedFigure) -> Option<ImportFinding> {
    let rate = figure.value.rate().filter(|rate| *rate < SLOWEST_CORE)?;
    matches!(figure.path, BytePath::CoreLoads | BytePath::CoreStores).then(|| {
        let text = format!("{}: {} is less than 8 B every 10 us", about(figure), figures::rate(rate));
        finding(ImportFindingKind::FarBelow, figure, text, "check the unit, and the memory type of the mapping")
    })
}

/// The slower states of a link: lower generations, and narrower links, with their limits.
fn slower(link: &LinkLimit) -> Vec<(LinkLimit, f64)> {
    let generations = (1..link.generation.number()).filter_map(Generation::from_number);
    let with = |generation, lanes| LinkLimit { generation, lanes, ..link.clone() };
    let mut states: Vec<LinkLimit> = generations.map(|generation| with(generation, link.lanes)).collect();
    let widths = [1_u8, 2, 4, 8].into_iter().filter(|count| u32::from(*count) < u32::from(link.lanes.count()));
    states.extend(widths.filter_map(Lanes::new).map(|lanes| with(link.generation, lanes)));
    let mut states: Vec<(LinkLimit, f64)> =
        states.into_iter().filter_map(|state| Some((state.clone(), state.one_way()?))).collect();
    states.sort_by(|one, other| one.1.total_cmp(&other.1));
    states
}

/// Large transfers of one device alone that are as fast as a slower state of the link; one finding per test, device and
/// path.
fn slow_links(all: &[ImportedFigure], links: &[Option<LinkLimit>]) -> Vec<ImportFinding> {
    let mut found: Vec<(&ImportedFigure, ImportFinding)> = Vec::new();
    for (figure, link) in all.iter().zip(links) {
        let is_stream = matches!(figure.path, BytePath::ToDevice | BytePath::FromDevice) && !figure.is_concurrent;
        let is_large = figure.size_bytes.is_none_or(|bytes| bytes >= LARGE_BYTES);
        let (Some(link), Some(rate), true) = (link, figure.value.rate(), is_stream && is_large) else { continue };
        let fits = slower(link).into_iter().find(|(_, limit)| rate <= *limit);
        let Some((state, limit)) = fits.filter(|(_, limit)| rate >= SLOW_SHARE * limit) else { continue };
        let is_same = |other: &ImportedFigure| (&other.test, &other.device) == (&figure.test, &figure.device);
        if found.iter().any(|(other, _)| is_same(other)) {
            continue;
        }
        let text = format!(
            "{}: {} is {:.0} % of the limit of {} {}, and {} has {}",
            about(figure),
            figures::rate(rate),
            100.0 * rate / limit,
            state.generation,
            state.lanes,
            link.source,
            link.in_words()
        );
        let advice = "read LnkSta during the transfer (an idle GPU lowers its speed), and run lanemark doctor; otherwise \
                      another part with this rate is the limit";
        found.push((figure, finding(ImportFindingKind::SlowLink, figure, text, advice)));
    }
    found.into_iter().map(|(_, finding)| finding).collect()
}

/// Two figures of the same transfers whose ratio is exactly that of a decimal and a binary unit.
fn other_units(all: &[ImportedFigure]) -> Vec<ImportFinding> {
    let mut found = Vec::new();
    for (place, one) in all.iter().enumerate() {
        let key =
            |figure: &ImportedFigure| (figure.path, figure.device.clone(), figure.size_bytes, figure.is_concurrent);
        for other in &all[place + 1..] {
            let (Some(rate), Some(second)) = (one.value.rate(), other.value.rate()) else { continue };
            if key(one) != key(other) || one.size_bytes.is_none() || one.test == other.test {
                continue;
            }
            let ratio = (rate / second).max(second / rate);
            if let Some((factor, names)) =
                UNITS.iter().find(|(factor, _)| (ratio / factor - 1.0).abs() <= UNIT_BETWEEN_FIGURES)
            {
                let text = format!(
                    "{} of line {} and {} of line {} differ by {factor:.4}: {} and {}",
                    about(one),
                    one.line,
                    other.test,
                    other.line,
                    figures::rate(rate),
                    figures::rate(second)
                );
                let advice = format!("are {names} mixed up? Compare bytes and seconds of the tools");
                found.push(finding(ImportFindingKind::Units, one, text, &advice));
            }
        }
    }
    found
}

/// Groups of figures of the same test, path and size, each with its devices.
fn by_test(all: &[ImportedFigure]) -> Vec<Vec<&ImportedFigure>> {
    let key = |figure: &ImportedFigure| (figure.test.clone(), figure.path, figure.size_bytes);
    let mut groups: Vec<Vec<&ImportedFigure>> = Vec::new();
    for figure in all.iter().filter(|figure| figure.device.is_some()) {
        match groups.iter_mut().find(|group| key(group[0]) == key(figure)) {
            // A device counts once.
            Some(group) if group.iter().all(|other| other.device != figure.device) => group.push(figure),
            Some(_) => {}
            None => groups.push(vec![figure]),
        }
    }
    groups
}

/// Devices whose figure differs from those of the others.
fn unlike_siblings(all: &[ImportedFigure]) -> Vec<ImportFinding> {
    // Devices that share a link are unlike the others while all move bytes: that is a finding of its own.
    let is_judged = |group: &Vec<&ImportedFigure>| group.len() >= LEAST_MACHINES && !group[0].is_concurrent;
    let groups: Vec<Vec<&ImportedFigure>> = by_test(all).into_iter().filter(is_judged).collect();
    let least = (MIN_EFFECT_PERCENT / 100.0).ln_1p();
    let mut found = Vec::new();
    for group in &groups {
        let value = |figure: &ImportedFigure| match figure.value {
            Measured::RateBytesPerS(value) | Measured::LatencyNs(value) => value,
        };
        let logs: Vec<f64> = group.iter().map(|figure| value(figure).ln()).collect();
        let outliers = extreme(&logs, FALSE_ALARM / groups.len() as f64);
        let others: Vec<f64> = (0..logs.len())
            .filter(|place| outliers.iter().all(|(other, _)| other != place))
            .map(|place| logs[place])
            .collect();
        let Some(middle) = Summary::of(&others).map(|others| others.median) else { continue };
        for (place, _) in outliers {
            let distance = logs[place] - middle;
            if distance.abs() <= least {
                continue;
            }
            let (figure, is_rate) = (group[place], group[place].value.rate().is_some());
            let word = if (distance < 0.0) == is_rate { "slower" } else { "faster" };
            let print = |value| if is_rate { figures::rate(value) } else { figures::time(value) };
            let text = format!(
                "{}: {}, {:.2} times {word} than the median of the other {} devices, {}",
                about(figure),
                print(value(figure)),
                distance.abs().exp(),
                group.len() - 1,
                print(middle.exp())
            );
            let advice = "compare LnkSta, NUMA node and the switches above this device with those of the others: lanemark \
                          doctor; repeat with host memory on its node";
            found.push(finding(ImportFindingKind::UnlikeSiblings, figure, text, advice));
        }
    }
    found
}

/// The largest rate of a device alone on the same path.
fn alone(all: &[ImportedFigure], figure: &ImportedFigure, path: BytePath) -> Option<f64> {
    let is_alone = |other: &&ImportedFigure| {
        !other.is_concurrent && other.path == path && other.device == figure.device && other.device.is_some()
    };
    all.iter().filter(is_alone).filter_map(|other| other.value.rate()).max_by(f64::total_cmp)
}

/// Devices that keep only a part of their rate while the others move bytes, too.
fn shared_ports(all: &[ImportedFigure]) -> Vec<ImportFinding> {
    let mut found = Vec::new();
    for group in by_test(all).into_iter().filter(|group| group[0].is_concurrent && group.len() > 1) {
        let share = |figure: &ImportedFigure| {
            let rate = figure.value.rate()?;
            Some((rate, rate / alone(all, figure, figure.path)?))
        };
        let slowed: Vec<(&ImportedFigure, f64, f64)> = group
            .iter()
            .filter_map(|figure| share(figure).map(|(rate, share)| (*figure, rate, share)))
            .filter(|(_, _, share)| *share < SHARED_SHARE)
            .collect();
        let Some((first, ..)) = slowed.first().filter(|_| slowed.len() > 1) else { continue };
        let names: Vec<&str> = slowed.iter().filter_map(|(figure, ..)| figure.device.as_deref()).collect();
        let sum: f64 = slowed.iter().map(|(_, rate, _)| rate).sum();
        let mean = 100.0 * slowed.iter().map(|(_, _, share)| share).sum::<f64>() / slowed.len() as f64;
        let text = format!(
            "{}: {} of {} devices keep {mean:.0} % of their rate alone on average while all move bytes, {} together: {}",
            first.test,
            slowed.len(),
            group.len(),
            figures::rate(sum),
            names.join(", ")
        );
        let advice = "they may share a root port, an uplink or the memory of a node: lspci -tv shows the tree, and lanemark \
                      doctor the links above each device";
        found.push(finding(ImportFindingKind::SharedPort, first, text, advice));
    }
    found
}

/// Both directions at once that are hardly faster than one alone.
fn one_path(all: &[ImportedFigure]) -> Vec<ImportFinding> {
    let mut found = Vec::new();
    for figure in all.iter().filter(|figure| !figure.is_concurrent) {
        let sum = match figure.path {
            BytePath::Both => figure.value.rate(),
            BytePath::ToDeviceOfBoth => {
                let is_other = |other: &&ImportedFigure| {
                    other.path == BytePath::FromDeviceOfBoth
                        && (&other.device, other.size_bytes) == (&figure.device, figure.size_bytes)
                        && other.test.ends_with(figure.test.rsplit('_').next().unwrap_or_default())
                };
                let other = all.iter().find(is_other).and_then(|other| other.value.rate());
                other.zip(figure.value.rate()).map(|(other, own)| other + own)
            }
            _ => None,
        };
        let single = [BytePath::ToDevice, BytePath::FromDevice].map(|path| alone(all, figure, path));
        let [Some(to), Some(from)] = single else { continue };
        let Some(sum) = sum.filter(|sum| *sum <= ONE_PATH * to.max(from)) else { continue };
        let text = format!(
            "{}: both directions at once are {} together, and one alone is {}",
            about(figure),
            figures::rate(sum),
            figures::rate(to.max(from))
        );
        let advice = "a PCIe link has a path for each direction: look for one copy engine, a shared root port or uplink, or \
                      memory of the other node";
        found.push(finding(ImportFindingKind::SharedPort, figure, text, advice));
    }
    found
}
