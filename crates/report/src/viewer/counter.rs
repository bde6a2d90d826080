//! Counter tracks: credits of each direction of a link, its utilisation, and tags in use.

use lanemark_machine::{Direction, Frame, Trace};
use lanemark_units::Ticks;
use lanemark_wire::{FlowClass, FunctionId, Packet};
use std::collections::BTreeMap;

/// Intervals over which utilisation is averaged.
const WINDOWS: u64 = 100;

/// One counter: its name, and its values over time. A value holds until the next one.
#[derive(Debug, PartialEq)]
pub(super) struct Counter {
    pub(super) name: String,
    /// Times in ascending order, and the series with their values.
    pub(super) values: Vec<(Ticks, Vec<(&'static str, f64)>)>,
}

/// All counters of a trace.
pub(super) fn counters(trace: &Trace) -> Vec<Counter> {
    let mut lines: Vec<(usize, Direction)> = trace.frames.iter().map(|frame| (frame.link, frame.direction)).collect();
    lines.sort_unstable();
    lines.dedup();
    let mut counters = Vec::new();
    for line in lines {
        let link = trace.links.get(line.0).map_or("", String::as_str);
        let name = format!("{link} {}", line.1.name());
        counters.push(Counter { name: format!("{name}, utilisation in %"), values: utilisation(trace, line) });
        for class in FlowClass::ALL {
            let values = credits(trace, line, class);
            if !values.is_empty() {
                counters.push(Counter { name: format!("{name}, {} credits left", class_name(class)), values });
            }
        }
    }
    counters.extend(tags(trace));
    counters
}

const fn class_name(class: FlowClass) -> &'static str {
    match class {
        FlowClass::Posted => "posted",
        FlowClass::NonPosted => "non-posted",
        FlowClass::Completion => "completion",
    }
}

fn on(trace: &Trace, line: (usize, Direction)) -> impl Iterator<Item = &Frame> {
    trace.frames.iter().filter(move |frame| (frame.link, frame.direction) == line)
}

/// Share of each interval in which a TLP or DLLP is on the line.
fn utilisation(trace: &Trace, line: (usize, Direction)) -> Vec<(Ticks, Vec<(&'static str, f64)>)> {
    let ends = trace.frames.iter().map(|frame| frame.arrives).chain(trace.waits.iter().map(|wait| wait.until));
    let end = ends.max().unwrap_or(Ticks::ZERO);
    let window = end.0.div_ceil(WINDOWS).max(1);
    let mut busy = vec![0_u64; end.0.div_ceil(window) as usize];
    let of_dllps = trace.dllps.iter().filter(|dllp| (dllp.link, dllp.direction) == line);
    let spans = on(trace, line).map(|frame| (frame.starts, frame.ends));
    for (starts, ends) in spans.chain(of_dllps.map(|dllp| (dllp.starts, dllp.ends))) {
        let mut from = starts.0;
        while from < ends.0 {
            let place = from / window;
            let until = ends.0.min((place + 1) * window);
            if let Some(busy) = busy.get_mut(place as usize) {
                *busy += until - from;
            }
            from = until;
        }
    }
    let percent = |busy: u64| (busy as f64 / window as f64 * 100.0).min(100.0);
    let values = busy.iter().zip(0..).map(|(busy, place)| (Ticks(place * window), vec![("busy", percent(*busy))]));
    values.chain([(end, vec![("busy", 0.0)])]).collect()
}

/// Credits of a class that the sender has left after each TLP; empty if they are infinite.
fn credits(trace: &Trace, line: (usize, Direction), class: FlowClass) -> Vec<(Ticks, Vec<(&'static str, f64)>)> {
    let of_class = on(trace, line).filter(|frame| class_of(frame) == Some(class));
    let values = of_class.map(|frame| {
        let left = frame.credits_left;
        let series = [("header", left.header), ("data", left.data)];
        (frame.starts, series.into_iter().filter_map(|(name, left)| Some((name, f64::from(left?)))).collect())
    });
    values.filter(|(_, series): &(Ticks, Vec<_>)| !series.is_empty()).collect()
}

fn class_of(frame: &Frame) -> Option<FlowClass> {
    Some(Packet::new(&frame.tlp).ok()?.kind()?.class())
}

/// Tags in use by requester: from the time at which a request is ready to be sent to the arrival of its last
/// completion. Requests without a completion in the trace keep their tag.
fn tags(trace: &Trace) -> Vec<Counter> {
    let mut uses: BTreeMap<u64, (FunctionId, Ticks, Option<Ticks>)> = BTreeMap::new();
    for frame in trace.frames.iter().filter(|frame| !frame.is_damaged) {
        let (Some(class), Ok(packet)) = (class_of(frame), Packet::new(&frame.tlp)) else { continue };
        match class {
            FlowClass::Posted => {}
            FlowClass::NonPosted => {
                uses.entry(frame.request).or_insert((packet.requester_id(), frame.ready, None));
            }
            FlowClass::Completion => {
                if let Some((.., until)) = uses.get_mut(&frame.request) {
                    *until = Some(until.unwrap_or(Ticks::ZERO).max(frame.arrives));
                }
            }
        }
    }
    let mut steps: BTreeMap<FunctionId, BTreeMap<Ticks, i64>> = BTreeMap::new();
    for (requester, from, until) in uses.into_values() {
        let of_requester = steps.entry(requester).or_default();
        *of_requester.entry(from).or_default() += 1;
        if let Some(until) = until {
            *of_requester.entry(until).or_default() -= 1;
        }
    }
    let counter = |(requester, steps): (FunctionId, BTreeMap<Ticks, i64>)| {
        let values = steps.into_iter().scan(0, |used, (at, step)| {
            *used += step;
            Some((at, vec![("used", *used as f64)]))
        });
        Counter { name: format!("{requester}, tags in use"), values: values.collect() }
    };
    steps.into_iter().map(counter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::tests::{damaged_load, load};

    fn named<'a>(counters: &'a [Counter], name: &str) -> &'a Counter {
        let all: Vec<&str> = counters.iter().map(|counter| counter.name.as_str()).collect();
        counters.iter().find(|counter| counter.name == name).unwrap_or_else(|| panic!("{name} in {all:?}"))
    }

    #[test]
    fn a_tag_is_in_use_until_its_completion_arrives() {
        let counters = counters(&load());
        let at = Ticks::whole_ns;
        assert_eq!(
            named(&counters, "00:00.0, tags in use").values,
            [(at(0), vec![("used", 1.0)]), (at(300), vec![("used", 0.0)])]
        );
    }

    #[test]
    fn credits_are_those_that_are_finite() {
        let counters = counters(&load());
        let left = named(&counters, "fpga0 down, non-posted credits left");
        assert_eq!(left.values, [(Ticks::ZERO, vec![("header", 7.0)])]);
        assert_eq!(counters.len(), 5, "two directions with one class each, and tags");
    }

    #[test]
    fn utilisation_is_the_time_of_tlps_and_dllps_on_the_line() {
        for (trace, line, busy_ns) in
            [(load(), "fpga0 up", 10.0), (damaged_load(), "fpga0 down", 20.0), (damaged_load(), "fpga0 up", 4.0)]
        {
            let counters = counters(&trace);
            let Some(counter) = counters.iter().find(|counter| counter.name == format!("{line}, utilisation in %"))
            else {
                assert_eq!(line, "fpga0 up", "a direction without TLPs has no counter");
                continue;
            };
            let spans = counter.values.windows(2);
            let busy: f64 = spans.map(|pair| pair[0].1[0].1 / 100.0 * pair[1].0.since(pair[0].0).as_ns()).sum();
            assert!((busy - busy_ns).abs() < 0.1, "{line}: {busy}");
            assert!(counter.values.iter().all(|(_, series)| (0.0..=100.0).contains(&series[0].1)));
            assert_eq!(counter.values.last().map(|(_, series)| series[0].1), Some(0.0));
        }
    }
}
