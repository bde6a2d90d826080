//! The links of a target as a tree, with their use during one answer.

use crate::figures;
use crate::grid::{Column, Grid, clean};
use crate::panel::Panel;
use crate::svg::{self, escaped};
use lanemark_record::{Answer, Direction, Link, LinkUse, Record};
use std::fmt::Write as _;

/// Utilization in percent below which a link is left out of a table and grey in a drawing.
const IDLE_BELOW_PERCENT: f64 = 1.0;
/// Utilization in percent from which a link is drawn as half used, and as full.
const HALF_PERCENT: f64 = 50.0;
const FULL_PERCENT: f64 = 90.0;
/// Largest number of links in a table, the busiest first.
const MOST_ROWS: usize = 12;

/// Dimensions of the drawing in its own units.
const ROW: f64 = 48.0;
const BOX_WIDTH: f64 = 92.0;
const BOX_HEIGHT: f64 = 34.0;
const TRUNK: f64 = 12.0;
const LINE: f64 = 150.0;
const MARGIN: f64 = 6.0;
/// Indentation of a level in the drawing for narrow screens.
const INDENT: f64 = 14.0;
/// Characters of a name that fit into its box.
const NAME_CHARS: usize = 13;

/// The links of a target with their traffic for one answer.
pub(crate) struct Fabric<'a> {
    target: &'a str,
    links: &'a [Link],
    answer: &'a Answer,
}

/// Both directions of a link.
#[derive(Clone, Copy, Default)]
struct Both<'a> {
    down: Option<&'a LinkUse>,
    up: Option<&'a LinkUse>,
}

impl Both<'_> {
    fn most_percent(&self) -> f64 {
        percent(self.down).max(percent(self.up))
    }
}

fn percent(used: Option<&LinkUse>) -> f64 {
    used.map_or(0.0, |used| used.tlp_share_percent)
}

/// A link with its position in a drawing: its row and its depth.
struct Placed<'a> {
    link: &'a Link,
    depth: usize,
    row: f64,
    /// Index of the link above it in the list; `None` below a root.
    above: Option<usize>,
}

impl<'a> Fabric<'a> {
    /// The links of `answer`; `None` if they were not observed, or if a core used the only link.
    pub fn of(record: &'a Record, answer: &'a Answer) -> Option<Fabric<'a>> {
        let target = record.targets.iter().find(|target| target.name == answer.target)?;
        let is_shown =
            !answer.links.is_empty() && !target.links.is_empty() && (answer.method.is_dma() || target.links.len() > 1);
        is_shown.then_some(Fabric { target: &target.name, links: &target.links, answer })
    }

    fn both(&self, link: &Link) -> Both<'a> {
        let of = |direction| {
            let links = self.answer.links.iter();
            links.filter(|used| used.link == link.name).find(|used| used.direction == direction)
        };
        Both { down: of(Direction::Down), up: of(Direction::Up) }
    }

    /// The links in use, the busiest first.
    fn used(&self) -> Vec<(&'a Link, Both<'a>)> {
        let mut used: Vec<(&Link, Both)> = self.links.iter().map(|link| (link, self.both(link))).collect();
        used.retain(|(_, both)| both.most_percent() >= IDLE_BELOW_PERCENT);
        used.sort_by(|a, b| b.1.most_percent().total_cmp(&a.1.most_percent()));
        used
    }

    /// The busiest link, without a full stop.
    pub fn in_words(&self) -> String {
        match self.used().first() {
            None => format!("no link was busy for more than {IDLE_BELOW_PERCENT} % of the time"),
            Some((link, both)) => {
                let direction = if percent(both.down) > percent(both.up) { "down" } else { "up" };
                let most = figures::percent(both.most_percent());
                format!("busiest link: {}, {direction}, {most} of the time", clean(&link.name))
            }
        }
    }

    /// Lines for a terminal: one line if one link was used, else a line and a table.
    pub fn lines(&self, width: Option<u16>) -> Vec<String> {
        let used = self.used();
        let what = format!("{}, {}", self.answer.method, figures::size(self.answer.size_bytes));
        let share = |used: Option<&LinkUse>| used.map(|used| figures::percent(used.tlp_share_percent));
        let rate = |used: Option<&LinkUse>| {
            let rate = used.map(|used| used.payload_rate_bytes_per_s).filter(|rate| *rate > 0.0);
            rate.map(figures::rate).unwrap_or_default()
        };
        let share_of = |used| share(used).unwrap_or_else(|| "0 %".to_owned());
        match used.as_slice() {
            [] => Vec::new(),
            [(link, both)] => {
                let (down, up) = (share_of(both.down), share_of(both.up));
                vec![format!("link {} ({}) in use: {down} down, {up} up: {what}", clean(&link.name), trained(link))]
            }
            several => {
                let mut grid =
                    Grid { columns: vec![Column::words("link"), Column::words("trained")], rows: Vec::new() };
                grid.columns.extend(["down", "up", "payload down", "payload up"].map(Column::figures));
                for (link, both) in several.iter().take(MOST_ROWS) {
                    let shares = [share_of(both.down), share_of(both.up)];
                    let [down, up] = shares;
                    grid.rows.push(vec![link.name.clone(), trained(link), down, up, rate(both.down), rate(both.up)]);
                }
                grid.drop_empty_columns();
                let others = several.len().saturating_sub(MOST_ROWS);
                let more = if others > 0 { format!("; {others} more in --json and --html") } else { String::new() };
                let mut lines = vec![crate::grid::wrap(&format!("links in use: {what}{more}"), width, 2)];
                lines.extend(grid.lines(width));
                lines
            }
        }
    }

    /// An SVG of the tree from left to right, with a bar per link and direction. `id` must be
    /// unique in the page.
    pub fn drawing(&self, id: &str) -> String {
        let (placed, rows) = placed(self.links);
        if placed.is_empty() {
            return String::new();
        }
        let deepest = placed.iter().map(|one| one.depth).max().unwrap_or(0);
        let left = |depth: usize| MARGIN + depth as f64 * (BOX_WIDTH + TRUNK + LINE);
        let (width, height) = (left(deepest + 1) + BOX_WIDTH + MARGIN, rows * ROW + 2.0 * MARGIN);
        let y = |row: f64| MARGIN + (row + 0.5) * ROW;
        let title = format!("Links of {}: {}", self.target, self.answer.method);
        let mut text = svg::begin("fabric", id, (width, height), &title, &self.in_words());
        let mut roots: Vec<(&str, f64, f64)> = Vec::new();
        for one in placed.iter().filter(|one| one.above.is_none()) {
            match roots.iter_mut().find(|(name, ..)| *name == one.link.above) {
                Some(root) => root.2 = one.row,
                None => roots.push((&one.link.above, one.row, one.row)),
            }
        }
        let mut trunk = |x: f64, from: f64, first: f64, last: f64| {
            let _ = write!(
                text,
                "<path class=\"trunk\" d=\"M{x:.1} {:.1}h{TRUNK:.1}M{:.1} {:.1}V{:.1}\"/>",
                y(from),
                x + TRUNK,
                y(first) - 5.0,
                y(last) + 5.0
            );
        };
        for (_, first, last) in &roots {
            trunk(left(0) + BOX_WIDTH, f64::midpoint(*first, *last), *first, *last);
        }
        for (place, one) in placed.iter().enumerate() {
            let mut below = placed.iter().filter(|other| other.above == Some(place)).map(|other| other.row);
            if let Some(first) = below.next() {
                trunk(left(one.depth + 1) + BOX_WIDTH, one.row, first, below.next_back().unwrap_or(first));
            }
        }
        for (name, first, last) in roots {
            node(&mut text, (left(0), y(f64::midpoint(first, last))), name, "");
        }
        for one in &placed {
            let x = left(one.depth) + BOX_WIDTH + TRUNK;
            self.link(&mut text, (x, y(one.row)), one.link);
            node(&mut text, (x + LINE, y(one.row)), &one.link.name, &trained(one.link));
        }
        text + "</svg>"
    }

    /// As [`Fabric::drawing`], for narrow screens: the tree from top to bottom, each link beside the box below it.
    pub fn narrow_drawing(&self, id: &str) -> String {
        let (placed, _) = placed(self.links);
        // Rows in the order of the list, with a row for each root above its first link.
        let mut rows: Vec<(Option<&Placed>, &str)> = Vec::new();
        let mut last_root = None;
        for one in &placed {
            if one.above.is_none() && last_root != Some(&one.link.above) {
                rows.push((None, &one.link.above));
                last_root = Some(&one.link.above);
            }
            rows.push((Some(one), &one.link.name));
        }
        if rows.is_empty() {
            return String::new();
        }
        let level = |row: &(Option<&Placed>, &str)| row.0.map_or(0, |one| one.depth + 1);
        let deepest = rows.iter().map(level).max().unwrap_or(0);
        let left = |level: usize| MARGIN + level as f64 * INDENT;
        let width = left(deepest) + BOX_WIDTH + TRUNK + LINE + MARGIN;
        let y = |row: usize| MARGIN + (row as f64 + 0.5) * ROW;
        let title = format!("Links of {}: {}", self.target, self.answer.method);
        let size = (width, rows.len() as f64 * ROW + 2.0 * MARGIN);
        let mut text = svg::begin("fabric narrow", id, size, &title, &self.in_words());
        for (number, row) in rows.iter().enumerate().filter(|(_, row)| row.0.is_some()) {
            // From the box above it, the last one that is a level higher.
            let above = rows[..number].iter().rposition(|other| level(other) < level(row)).unwrap_or(0);
            let x = left(level(row)) - INDENT / 2.0;
            let (from, to) = (y(above) + BOX_HEIGHT / 2.0, y(number));
            let _ = write!(text, "<path class=\"trunk\" d=\"M{x:.1} {from:.1}V{to:.1}h{:.1}\"/>", INDENT / 2.0);
        }
        for (number, row) in rows.iter().enumerate() {
            let (x, words) = (left(level(row)), row.0.map(|one| trained(one.link)));
            node(&mut text, (x, y(number)), row.1, words.as_deref().unwrap_or_default());
            if let Some(one) = row.0 {
                self.link(&mut text, (width - MARGIN - LINE, y(number)), one.link);
            }
        }
        text + "</svg>"
    }

    /// Number of links without a root, which only a damaged record has.
    pub fn not_drawn(&self) -> usize {
        self.links.len() - placed(self.links).0.len()
    }

    fn link(&self, text: &mut String, (x, y): (f64, f64), link: &Link) {
        let both = self.both(link);
        let of = |direction: Direction, used: Option<&LinkUse>| match used {
            None => format!("{} nothing", direction.name()),
            Some(used) => format!(
                "{} {} TLPs, {} DLLPs, {} of payload",
                direction.name(),
                figures::percent(used.tlp_share_percent),
                figures::percent(used.dllp_share_percent),
                figures::rate(used.payload_rate_bytes_per_s)
            ),
        };
        let words = format!(
            "{}, {}: {}; {}",
            link.name,
            trained(link),
            of(Direction::Down, both.down),
            of(Direction::Up, both.up)
        );
        let is_idle = both.most_percent() < IDLE_BELOW_PERCENT;
        let _ = write!(text, "<g><title>{}</title>", escaped(&words));
        for (used, is_down) in [(both.down, true), (both.up, false)] {
            let share = percent(used).clamp(0.0, 100.0) / 100.0;
            let (at, baseline) = if is_down { (y - 5.0, y - 9.0) } else { (y + 1.0, y + 17.0) };
            let (start, length) = (x + 1.0, LINE - 2.0);
            let filled = length * share;
            // A bar grows in the direction of the bytes.
            let from = if is_down { start } else { start + length - filled };
            let _ = write!(
                text,
                "<rect class=\"line\" x=\"{start:.1}\" y=\"{at:.1}\" width=\"{length:.1}\" height=\"4\"/>\
                 <rect class=\"{}\" x=\"{from:.1}\" y=\"{at:.1}\" width=\"{filled:.1}\" height=\"4\"/>",
                level(percent(used))
            );
            if is_idle {
                continue;
            }
            let arrow = if is_down { '→' } else { '←' };
            let mut words = format!("{arrow} {}", figures::percent(percent(used)));
            if let Some(rate) = used.map(|used| used.payload_rate_bytes_per_s).filter(|rate| *rate > 0.0) {
                words += &format!("  {}", figures::rate(rate));
            }
            svg::words(text, (x + LINE / 2.0, baseline), "middle", &words);
        }
        if is_idle {
            svg::words(text, (x + LINE / 2.0, y - 9.0), "middle", "idle");
        }
        text.push_str("</g>");
    }
}

/// The answer whose links are shown first: that of the best method, or of the heaviest load.
pub(crate) fn shown_first<'a>(panel: &Panel<'a>) -> &'a Answer {
    let line = if panel.is_loaded() { panel.lines.last() } else { panel.lines.first() };
    line.unwrap_or(&panel.lines[0]).largest().answer
}

fn trained(link: &Link) -> String {
    format!("Gen{} x{}", link.generation, link.width_lanes)
}

/// CSS class of a bar.
fn level(percent: f64) -> &'static str {
    match percent {
        _ if percent >= FULL_PERCENT => "full",
        _ if percent >= HALF_PERCENT => "half",
        _ if percent >= IDLE_BELOW_PERCENT => "some",
        _ => "none",
    }
}

fn node(text: &mut String, (x, y): (f64, f64), name: &str, below: &str) {
    let (top, middle) = (y - BOX_HEIGHT / 2.0, x + BOX_WIDTH / 2.0);
    let name = clean(name);
    let short = if name.chars().count() > NAME_CHARS {
        name.chars().take(NAME_CHARS - 1).chain(['…']).collect()
    } else {
        name.clone()
    };
    let _ = write!(
        text,
        "<g class=\"node\"><title>{}</title><rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{BOX_WIDTH:.1}\" \
         height=\"{BOX_HEIGHT:.1}\" rx=\"4\"/>",
        escaped(&name)
    );
    svg::words(text, (middle, if below.is_empty() { y + 4.0 } else { y - 2.0 }), "middle", &short);
    if !below.is_empty() {
        svg::words(text, (middle, y + 12.0), "middle", below);
    }
    text.push_str("</g>");
}

/// Every link below a root, each after the link above it, and the number of rows.
fn placed(links: &[Link]) -> (Vec<Placed<'_>>, f64) {
    let is_root = |link: &&Link| links.iter().all(|other| other.name != link.above);
    let mut placed: Vec<Placed> = Vec::new();
    let mut rows = 0.0;
    for link in links.iter().filter(is_root) {
        place(links, link, None, 0, &mut placed, &mut rows);
    }
    (placed, rows)
}

fn place<'a>(
    links: &'a [Link],
    link: &'a Link,
    above: Option<usize>,
    depth: usize,
    placed: &mut Vec<Placed<'a>>,
    rows: &mut f64,
) {
    let number = placed.len();
    placed.push(Placed { link, depth, row: *rows, above });
    let first = placed.len();
    // If two links share a name, the links below it are drawn once, below the first.
    for below in links.iter().filter(|below| below.above == link.name) {
        if placed.iter().all(|other| !std::ptr::eq(other.link, below)) {
            place(links, below, Some(number), depth + 1, placed, rows);
        }
    }
    let below = placed[first..].iter().filter(|other| other.above == Some(number));
    let ends =
        below.fold(None, |ends: Option<(f64, f64)>, other| Some((ends.map_or(other.row, |ends| ends.0), other.row)));
    match ends {
        Some((first, last)) => placed[number].row = f64::midpoint(first, last),
        None => *rows += 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn drawn(cards: usize) -> (Record, String) {
        let record = fixture::fabric(cards);
        let svg = Fabric::of(&record, &record.answers[0]).unwrap().drawing("d");
        (record, svg)
    }

    #[test]
    fn every_box_fits_the_screen_of_a_phone() {
        for cards in [1, 8, 64] {
            let record = fixture::fabric(cards);
            let wide = Fabric::of(&record, &record.answers[0]).unwrap().drawing("d");
            let narrow = Fabric::of(&record, &record.answers[0]).unwrap().narrow_drawing("d-narrow");
            let boxes = |svg: &str| svg.matches("<g class=\"node\">").count();
            assert_eq!(boxes(&wide), boxes(&narrow), "{cards}");
            assert_eq!(wide.matches("class=\"line\"").count(), narrow.matches("class=\"line\"").count());
            let width = narrow.split(" width=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
            assert!(width.parse::<f64>().unwrap() <= 360.0 - 2.0 * 0.9 * 16.0, "{width}");
        }
    }

    #[test]
    fn every_link_is_drawn_once() {
        for cards in [1, 8, 64] {
            let (record, svg) = drawn(cards);
            let links = record.targets[0].links.len();
            assert_eq!(svg.matches("class=\"line\"").count(), 2 * links, "{cards}");
            assert_eq!(svg.matches("class=\"node\"").count(), links + 1, "and the root");
        }
    }

    #[test]
    fn boxes_do_not_overlap_and_lie_within_the_drawing() {
        let (_, svg) = drawn(64);
        let attribute = |text: &str, name: &str| -> f64 {
            text.split_once(&format!(" {name}=\"")).unwrap().1.split_once('"').unwrap().0.parse().unwrap()
        };
        let (width, height) = (attribute(&svg, "width"), attribute(&svg, "height"));
        let mut boxes: Vec<(f64, f64)> = Vec::new();
        for node in svg.split("class=\"node\"").skip(1) {
            let at = (attribute(node, "x"), attribute(node, "y"));
            assert!(at.0 >= 0.0 && at.0 + BOX_WIDTH <= width && at.1 >= 0.0 && at.1 + BOX_HEIGHT <= height, "{at:?}");
            let is_apart = |other: &(f64, f64)| other.0 != at.0 || (other.1 - at.1).abs() > BOX_HEIGHT;
            assert!(boxes.iter().all(is_apart), "{at:?}");
            boxes.push(at);
        }
    }

    #[test]
    fn the_use_of_a_link_is_given_in_words_and_by_its_class() {
        let (_, svg) = drawn(8);
        assert!(
            svg.contains("fpga0, Gen2 x4: down nothing; up 49.8 % TLPs, 0.0100 % DLLPs, 861 MB/s of payload"),
            "{svg}"
        );
        assert!(svg.contains("← 99.6 %") && svg.contains("class=\"full\"") && svg.contains(">idle<"));
        assert!(svg.contains("busiest link: sw0, up, 99.6 % of the time"));
    }

    #[test]
    fn links_in_a_cycle_are_counted_and_not_drawn() {
        let (mut record, _) = drawn(8);
        record.targets[0].links[1].above = "fpga0".to_owned();
        let fabric = Fabric::of(&record, &record.answers[0]).unwrap();
        assert!(fabric.not_drawn() > 0);
        assert!(!fabric.drawing("d").contains("fpga0,"));
        for link in &mut record.targets[0].links {
            link.above = "fpga0".to_owned();
        }
        let fabric = Fabric::of(&record, &record.answers[0]).unwrap();
        assert_eq!((fabric.drawing("d"), fabric.not_drawn()), (String::new(), record.targets[0].links.len()));
    }

    #[test]
    fn a_core_on_the_only_link_has_no_drawing() {
        let mut record = fixture::fabric(1);
        assert!(Fabric::of(&record, &record.answers[0]).is_some());
        record.answers[0].method = fixture::method("uc", "8", None);
        assert!(Fabric::of(&record, &record.answers[0]).is_none());
        let mut record = fixture::fabric(8);
        record.answers[0].method = fixture::method("uc", "8", None);
        assert!(Fabric::of(&record, &record.answers[0]).is_some(), "shared links are drawn");
        record.answers[0].links.clear();
        assert!(Fabric::of(&record, &record.answers[0]).is_none());
    }

    #[test]
    fn the_table_has_links_above_one_percent_busiest_first() {
        let record = fixture::fabric(8);
        let lines = Fabric::of(&record, &record.answers[0]).unwrap().lines(None);
        assert_eq!(lines[0], "links in use: device-to-host by DMA, 1 MiB");
        assert!(lines[1].starts_with("link   trained"), "{lines:?}");
        assert!(lines[3].starts_with("sw0") && lines[3].ends_with("99.6 %   3.44 GB/s"), "{lines:?}");
        assert_eq!(lines.len(), 5, "{lines:?}");
        let one = fixture::fabric(1);
        let lines = Fabric::of(&one, &one.answers[0]).unwrap().lines(None);
        assert_eq!(lines, ["link fpga0 (Gen2 x4) in use: 0 % down, 49.8 % up: device-to-host by DMA, 1 MiB"]);
    }
}
