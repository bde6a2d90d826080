//! The functions of a machine as a tree, with the link state of each function.

use crate::grid::clean;
use lanemark_record::diagnosis::{Diagnosis, Function, Link};
use std::collections::BTreeMap;

/// The tree, one line per function. A line longer than `width` loses part of the function's name.
pub(crate) fn tree(diagnosis: &Diagnosis, width: Option<u16>) -> String {
    let links = diagnosis.links.iter().map(|link| (link.lower.as_str(), link)).collect();
    let places: BTreeMap<&str, usize> =
        diagnosis.functions.iter().enumerate().map(|(place, function)| (function.address.as_str(), place)).collect();
    let mut below: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut roots: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, function) in diagnosis.functions.iter().enumerate() {
        let parent = function.parent.value().and_then(|parent| places.get(parent.as_deref()?).copied());
        if let Some(parent) = parent.filter(|parent| *parent != place) {
            below.entry(parent).or_default().push(place);
        } else {
            roots.entry(bus(function)).or_default().push(place);
        }
    }
    let mut drawing = Drawing {
        functions: &diagnosis.functions,
        links,
        below,
        width,
        lines: Vec::new(),
        drawn: vec![false; diagnosis.functions.len()],
    };
    for (bus, places) in &roots {
        drawing.lines.push(format!("bus {}", clean(bus)));
        drawing.draw(places, "");
    }
    // Functions that are parents of each other have no root; the first of them is drawn as one.
    for (place, function) in diagnosis.functions.iter().enumerate() {
        if !drawing.drawn[place] {
            drawing.lines.push(format!("bus {}", clean(bus(function))));
            drawing.draw(&[place], "");
        }
    }
    drawing.lines.join("\n")
}

/// Domain and bus of a function.
fn bus(function: &Function) -> &str {
    function.address.rsplit_once(':').map_or(function.address.as_str(), |(bus, _)| bus)
}

struct Drawing<'a> {
    functions: &'a [Function],
    links: BTreeMap<&'a str, &'a Link>,
    below: BTreeMap<usize, Vec<usize>>,
    width: Option<u16>,
    lines: Vec<String>,
    /// Prevents endless recursion: an untrusted file may describe two functions as parents of
    /// each other.
    drawn: Vec<bool>,
}

impl Drawing<'_> {
    fn draw(&mut self, places: &[usize], lead: &str) {
        for (count, place) in places.iter().enumerate() {
            if std::mem::replace(&mut self.drawn[*place], true) {
                continue;
            }
            let is_last = count + 1 == places.len();
            let line = self.line(*place, &format!("{lead}{}", if is_last { "└─ " } else { "├─ " }));
            self.lines.push(line);
            let below = self.below.remove(place).unwrap_or_default();
            self.draw(&below, &format!("{lead}{}", if is_last { "   " } else { "│  " }));
        }
    }

    fn line(&self, place: usize, lead: &str) -> String {
        let function = &self.functions[place];
        let address = function.address.strip_prefix("0000:").unwrap_or(&function.address);
        let edge =
            self.links.get(function.address.as_str()).map_or_else(String::new, |link| format!("   {}", state(link)));
        let start = format!("{lead}{} ", clean(address));
        let what = clean(&what(function));
        let Some(width) = self.width.map(usize::from) else { return format!("{start}{what}{edge}") };
        let room = width.saturating_sub(start.chars().count() + edge.chars().count());
        if what.chars().count() <= room {
            return format!("{start}{what}{edge}");
        }
        let kept: String = what.chars().take(room.saturating_sub(1)).collect();
        format!("{start}{kept}…{edge}").chars().take(width).collect()
    }
}

/// Name, port type (except endpoints) and driver of a function.
fn what(function: &Function) -> String {
    let ids = function.vendor_id.value().zip(function.device_id.value());
    let name = function.name.value().or_else(|| function.class.value()).cloned();
    let name = name.or_else(|| ids.map(|(vendor, device)| format!("{vendor:04x}:{device:04x}")));
    let mut parts = vec![name.unwrap_or_else(|| "function".to_owned())];
    if let Some(Some(port)) = function.port.value().filter(|port| port.as_deref() != Some("endpoint")) {
        parts.push(port.clone());
    }
    if let Some(Some(driver)) = function.driver.value() {
        parts.push(format!("driver {driver}"));
    }
    parts.join(", ")
}

/// The state of a link, marked if it is below the capability of both ends.
pub(crate) fn state(link: &Link) -> String {
    let lost =
        link.trained.value().zip(link.both_can.value()).is_some_and(|(trained, both)| {
            trained.generation < both.generation || trained.width_lanes < both.width_lanes
        });
    format!("{}{}", clean(&link.state), if lost { " ▼" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor_fixture::sample;
    use lanemark_record::diagnosis::Fact;

    #[test]
    fn functions_in_a_cycle_are_drawn_once_each() {
        let mut strange = sample();
        strange.functions[0].parent = Fact::Seen { value: Some("0000:01:00.0".to_owned()) };
        let drawn = tree(&strange, None);
        for address in ["00:01.0", "01:00.0", "00:1f.0"] {
            assert_eq!(drawn.matches(&format!("─ {address} ")).count(), 1, "{drawn}");
        }
    }

    #[test]
    fn a_long_name_is_shortened_and_the_link_is_kept() {
        let mut long = sample();
        long.functions[1].name = Fact::Seen { value: "x".repeat(200) };
        let text = tree(&long, Some(60));
        let line = text.lines().find(|line| line.contains("01:00.0")).unwrap();
        assert!(line.ends_with("…   Gen3 x8 of Gen4 x16 ▼"), "{line}");
        assert_eq!(line.chars().count(), 60);
    }
}
