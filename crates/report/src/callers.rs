//! Figures by the core that called a runtime: one picture and one table per method.

use crate::figures::{self, Unit};
use crate::grid::{Column, Grid};
use crate::panel::{Panel, summary};
use crate::svg;
use lanemark_record::{CallerCores, Detail, Host, Interval, Record, Summary};
use std::collections::BTreeSet;
use std::fmt::Write as _;

const HEIGHT: f64 = 260.0;
const LEFT: f64 = 84.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 26.0;
const BELOW: f64 = 46.0;
/// Distance between two cores.
const STEP: f64 = 44.0;
/// Smallest width of a picture.
const LEAST_WIDTH: f64 = 420.0;
/// Height of the picture in units of the greatest median. A few slow samples would flatten
/// everything else.
const MOST_MEDIANS: f64 = 3.0;

/// One method, called from several cores.
pub(crate) struct Callers {
    /// The method without its core.
    pub name: String,
    /// Figures by core; those of unpinned threads come last.
    pub places: Vec<Place>,
}

/// One core.
pub(crate) struct Place {
    /// The core; `None` if the thread was not pinned.
    pub core: Option<u32>,
    /// Processors on which samples ended, with counts.
    processors: String,
    /// Sockets of these processors, where known.
    sockets: BTreeSet<u32>,
    median_ns: f64,
    /// Spread of several samples; `None` for a formula.
    mad_ns: Option<f64>,
    p99_ns: f64,
    ci95: Option<Interval>,
}

impl Callers {
    /// The callers of `panel`, in the order of its methods; empty unless every answer names its
    /// core.
    pub fn of(record: &Record, panel: &Panel) -> Vec<Callers> {
        let mut all: Vec<Callers> = Vec::new();
        for line in &panel.lines {
            for point in &line.points {
                let Some(Detail::Caller(caller)) = &point.answer.detail else { return Vec::new() };
                let name = point.answer.method.pinned().to_string();
                // A formula has one figure and no spread.
                let by_formula = || {
                    let ns = point.answer.formula.as_ref()?.latency_ns?;
                    Some(Summary { count: 1, min: ns, p1: ns, median: ns, p99: ns, max: ns, mad: 0.0, ci95: None })
                };
                let place = summary(point.answer).or_else(by_formula).map(|summary| Place {
                    core: caller.core,
                    processors: processors(caller),
                    sockets: sockets(caller, record.host.as_ref()),
                    median_ns: summary.median,
                    mad_ns: (summary.count > 1 || point.answer.latency_ns.is_some()).then_some(summary.mad),
                    p99_ns: summary.p99,
                    ci95: summary.ci95,
                });
                match all.iter_mut().find(|callers| callers.name == name) {
                    Some(callers) => callers.places.extend(place),
                    None => all.push(Callers { name, places: place.into_iter().collect() }),
                }
            }
        }
        for callers in &mut all {
            callers.places.sort_by_key(|place| (place.core.is_none(), place.core));
        }
        all
    }

    /// The fastest and the slowest core, and the unpinned threads, without a full stop.
    pub fn in_words(&self) -> String {
        let held = self.places.iter().filter(|place| place.core.is_some());
        let by_median = |a: &&Place, b: &&Place| a.median_ns.total_cmp(&b.median_ns);
        let at = |place: &Place| match place.core {
            Some(core) => format!("{} from core {core}", figures::time(place.median_ns)),
            None => format!("{} unpinned", figures::time(place.median_ns)),
        };
        let mut parts = Vec::new();
        match (held.clone().min_by(by_median), held.max_by(by_median)) {
            (Some(least), Some(most)) if least.core != most.core => {
                parts.push(format!("{} to {}", at(least), at(most)));
            }
            (Some(only), _) => parts.push(at(only)),
            _ => {}
        }
        parts.extend(self.places.iter().filter(|place| place.core.is_none()).map(at));
        format!("{}: {}", self.name, if parts.is_empty() { "no figure".to_owned() } else { parts.join("; ") })
    }

    /// The figures as a grid.
    pub fn grid(&self, unit: Unit) -> Grid {
        let mut columns = vec![Column::words("from core"), Column::words("socket")];
        columns.extend([unit.symbol(), "p99", "ci95"].map(Column::figures));
        columns.push(Column::words("on processor (samples)"));
        let row = |place: &Place| {
            let ci95 = place.ci95.map(|ci95| format!("{} to {}", unit.figure(ci95.low), unit.figure(ci95.high)));
            vec![
                place.core.map_or_else(|| "unpinned".to_owned(), |core| core.to_string()),
                place.sockets(),
                match place.mad_ns {
                    Some(mad_ns) => format!("{} ±{}", unit.figure(place.median_ns), unit.figure(mad_ns)),
                    None => unit.figure(place.median_ns),
                },
                place.mad_ns.map(|_| unit.figure(place.p99_ns)).unwrap_or_default(),
                ci95.unwrap_or_default(),
                place.processors.clone(),
            ]
        };
        let mut grid = Grid { columns, rows: self.places.iter().map(row).collect() };
        grid.drop_empty_columns();
        grid
    }

    /// An SVG with cores to the right and time upwards: a dot for the median, a line up to p99.
    /// Empty without figures.
    pub fn drawing(&self, id: &str) -> String {
        let most = |of: fn(&Place) -> f64| self.places.iter().map(of).fold(0.0, f64::max);
        let top_ns = most(|place| place.p99_ns).min(MOST_MEDIANS * most(|place| place.median_ns)) * 1.05;
        if !top_ns.is_finite() || top_ns <= 0.0 {
            return String::new();
        }
        let width = (LEFT + RIGHT + STEP * self.places.len() as f64).max(LEAST_WIDTH);
        let step = (width - LEFT - RIGHT) / self.places.len() as f64;
        let x = |nth: usize| LEFT + step * (nth as f64 + 0.5);
        let y = |ns: f64| TOP + (HEIGHT - TOP - BELOW) * (1.0 - ns.min(top_ns) / top_ns);
        let mut text = svg::begin("callers", id, (width, HEIGHT), &self.name, &self.in_words());
        let (bottom, right) = (y(0.0), width - RIGHT);
        for part in 0..=4 {
            let ns = top_ns * f64::from(part) / 4.0;
            let _ = write!(text, "<path class=\"grid\" d=\"M{LEFT} {:.1}H{right:.1}\"/>", y(ns));
            svg::words(&mut text, (LEFT - 8.0, y(ns) + 4.0), "end", &figures::time(ns));
        }
        svg::words(&mut text, (4.0, 12.0), "start", "dot median, line up to p99");
        svg::words(&mut text, (LEFT - 8.0, bottom + 16.0), "end", "core");
        svg::words(&mut text, (LEFT - 8.0, bottom + 32.0), "end", "socket");
        for (nth, place) in self.places.iter().enumerate() {
            let (at, middle, high) = (x(nth), y(place.median_ns), y(place.p99_ns));
            let class = match (place.core, place.sockets.first()) {
                (None, _) => "unpinned".to_owned(),
                (Some(_), socket) => format!("line-{}", socket.copied().unwrap_or(0) % 6),
            };
            if place.core.is_none() {
                let _ = write!(text, "<path class=\"apart\" d=\"M{:.1} {TOP}V{bottom:.1}\"/>", at - step / 2.0);
            }
            let words = place.in_words();
            let _ = write!(
                text,
                "<path class=\"reach {class}\" d=\"M{at:.1} {middle:.1}V{high:.1}\"/>\
                 <circle class=\"{class}\" cx=\"{at:.1}\" cy=\"{middle:.1}\" r=\"5\"><title>{}</title></circle>",
                svg::escaped(&words)
            );
            if place.p99_ns > top_ns {
                svg::words(&mut text, (at, TOP - 4.0), "middle", &figures::time(place.p99_ns));
            }
            let core = place.core.map_or_else(|| "none".to_owned(), |core| core.to_string());
            svg::words(&mut text, (at, bottom + 16.0), "middle", &core);
            svg::words(&mut text, (at, bottom + 32.0), "middle", &place.sockets());
        }
        let _ = write!(text, "<path class=\"axis\" d=\"M{LEFT} {TOP}V{bottom:.1}H{right:.1}\"/>");
        text + "</svg>"
    }
}

impl Place {
    fn sockets(&self) -> String {
        self.sockets.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
    }

    fn in_words(&self) -> String {
        let from = self.core.map_or_else(|| "unpinned".to_owned(), |core| format!("from core {core}"));
        format!("{from}: {}, p99 {}", figures::time(self.median_ns), figures::time(self.p99_ns))
    }
}

fn processors(caller: &CallerCores) -> String {
    caller.cpus.iter().map(|seen| format!("{} ({})", seen.cpu, seen.samples)).collect::<Vec<_>>().join(", ")
}

fn sockets(caller: &CallerCores, host: Option<&Host>) -> BTreeSet<u32> {
    caller.cpus.iter().filter_map(|seen| host?.socket_of(seen.cpu)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn callers(record: &Record) -> Vec<Callers> {
        Callers::of(record, &Panel::of(record)[0])
    }

    #[test]
    fn cores_are_sorted_and_unpinned_threads_come_last() {
        let record = fixture::callers();
        let [one, many] = &callers(&record)[..] else { panic!("two methods") };
        let names = [&*many.name, &*one.name];
        assert!(names.contains(&"launch, wait by finish") && names.contains(&"100 launches, wait by finish"));
        for callers in [one, many] {
            let cores: Vec<Option<u32>> = callers.places.iter().map(|place| place.core).collect();
            assert_eq!(cores, [Some(0), Some(1), None]);
        }
    }

    #[test]
    fn the_table_has_sockets_if_the_record_has_them() {
        let mut record = fixture::callers();
        let grid = callers(&record)[0].grid(Unit::Nanoseconds);
        let heads = |grid: &Grid| grid.columns.iter().map(|column| column.head.clone()).collect::<Vec<_>>();
        assert_eq!(heads(&grid), ["from core", "socket", "ns", "p99", "ci95", "on processor (samples)"]);
        assert_eq!(grid.rows[1][1], "1");
        assert_eq!(grid.rows[2][0], "unpinned");
        assert_eq!((&*grid.rows[2][1], &*grid.rows[2][5]), ("0, 1", "0 (10), 1 (20)"));
        record.host = None;
        assert!(!heads(&callers(&record)[0].grid(Unit::Nanoseconds)).contains(&"socket".to_owned()));
    }

    #[test]
    fn every_core_is_a_dot_and_a_p99_out_of_range_is_labelled() {
        let record = fixture::callers();
        let all = callers(&record);
        let one = all.iter().find(|callers| callers.name == "launch, wait by finish").unwrap();
        assert_eq!(
            one.in_words(),
            "launch, wait by finish: 20.0 us from core 0 to 30.0 us from core 1; 25.0 us unpinned"
        );
        let svg = one.drawing("c");
        assert_eq!(svg.matches("<circle").count(), 3);
        assert!(svg.contains("class=\"line-1\"") && svg.contains("class=\"unpinned\""), "{svg}");
        assert!(svg.contains(">9.00 ms<"), "{svg}");
    }

    #[test]
    fn answers_without_a_caller_make_no_picture() {
        let mut record = fixture::callers();
        record.answers[0].detail = None;
        assert!(callers(&record).is_empty());
        assert!(callers(&fixture::record()).is_empty());
    }
}
