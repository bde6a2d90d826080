//! A trace for Perfetto and Chrome: one track per core, per DMA channel, and per direction of a
//! link; and counters of credits, tags and utilisation.
//!
//! A TLP is a slice as long as its time on the link. A stall of a core or a channel is a slice
//! named by its cause. Slices of one track do not overlap. A stall before a link is an asynchronous
//! slice, because several can overlap. A flow joins each request with its TLPs on every link and with its completions. A DLLP is a
//! slice between TLPs.
//!
//! Source: "Trace Event Format", the JSON Object Format; times are microseconds.

mod counter;

use crate::panel::words;
use crate::timeline::Traced;
use crate::tlp;
use counter::counters;
use lanemark_machine::{Cause, Direction, Frame, StallSite, Waited};
use lanemark_units::Ticks;
use lanemark_wire::Header;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const CORES: u32 = 1;
const ENGINES: u32 = 2;
const LINKS: u32 = 3;

/// Channels of a card, at most, so that each has a track of its own.
const CHANNELS: u32 = 1 << 16;
/// Cores, and channels of all cards, at most, so that each lane of one has a track of its own.
const LANE: u32 = 1 << 24;

/// One JSON document; open it at <https://ui.perfetto.dev> or <chrome://tracing>.
#[must_use]
pub fn viewer_trace(traced: &Traced) -> String {
    let trace = traced.trace;
    let mut events = vec![process(CORES, "cores"), process(ENGINES, "DMA engines"), process(LINKS, "links")];
    let placed = placed(&trace.waits);
    let tracks: BTreeMap<(u32, u32), (StallSite, u32)> =
        placed.iter().map(|(wait, lane)| (place_of(wait.who, *lane), (wait.who, *lane))).collect();
    for (track, (who, lane)) in tracks {
        let name = if lane == 0 { who.to_string() } else { format!("{who}, concurrent {}", lane + 1) };
        events.push(thread(track, &name));
    }
    let of_dllps = trace.dllps.iter().map(|dllp| (dllp.link, dllp.direction));
    let lines = trace.frames.iter().map(|frame| (frame.link, frame.direction)).chain(of_dllps);
    let lines: BTreeSet<(usize, Direction)> = lines.collect();
    for (link, direction) in lines {
        let name = trace.links.get(link).map_or("", String::as_str);
        events.push(thread(line(link, direction), &format!("{name} {}", direction.name())));
    }
    for (wait, lane) in placed {
        let (process, thread) = place_of(wait.who, lane);
        events.push(json!({
            "name": words(wait.cause.name()), "cat": "wait", "ph": "X", "cname": colour(wait.cause),
            "pid": process, "tid": thread, "ts": us(wait.from), "dur": us(wait.until.since(wait.from)),
            "args": {"because": wait.cause.explanation()},
        }));
    }
    for (number, frame) in trace.frames.iter().enumerate() {
        of_frame(&mut events, number, frame);
    }
    for dllp in &trace.dllps {
        let (process, thread) = line(dllp.link, dllp.direction);
        events.push(json!({
            "name": dllp.kind.name(), "cat": "dllp", "ph": "X", "cname": "grey", "pid": process, "tid": thread,
            "ts": us(dllp.starts), "dur": us(dllp.ends.since(dllp.starts)),
            "args": {"arrives_ns": dllp.arrives.as_ns()},
        }));
    }
    flows(&mut events, &trace.frames);
    for counter in counters(trace) {
        events.extend(counter.values.iter().map(|(at, series)| {
            let values: serde_json::Map<String, Value> =
                series.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
            json!({"name": counter.name, "cat": "counter", "ph": "C", "pid": LINKS, "ts": us(*at), "args": values})
        }));
    }
    let document = json!({
        "displayTimeUnit": "ns",
        "otherData": {"about": traced.about(), "gaps": traced.gaps()},
        "traceEvents": events,
    });
    document.to_string() + "\n"
}

fn process(number: u32, name: &str) -> Value {
    json!({"name": "process_name", "ph": "M", "pid": number, "args": {"name": name}})
}

fn thread((process, thread): (u32, u32), name: &str) -> Value {
    json!({"name": "thread_name", "ph": "M", "pid": process, "tid": thread, "args": {"name": name}})
}

/// Each stall with its lane: the first one of its core or channel in which it overlaps no other.
///
/// Only runtimes and drivers stall a core concurrently, in their own time and in that of the hardware.
fn placed(waits: &[Waited]) -> Vec<(&Waited, u32)> {
    let mut sorted: Vec<&Waited> = waits.iter().collect();
    sorted.sort_by_key(|wait| (wait.who, wait.from, wait.until));
    let mut ends: BTreeMap<StallSite, Vec<Ticks>> = BTreeMap::new();
    let mut lane = |wait: &Waited| {
        let ends = ends.entry(wait.who).or_default();
        let lane = ends.iter().position(|end| *end <= wait.from).unwrap_or(ends.len());
        ends.resize(ends.len().max(lane + 1), Ticks::ZERO);
        ends[lane] = wait.until;
        lane as u32
    };
    sorted.into_iter().map(|wait| (wait, lane(wait))).collect()
}

const fn place_of(who: StallSite, lane: u32) -> (u32, u32) {
    match who {
        StallSite::Core(number) => (CORES, lane * LANE + number),
        StallSite::Channel { card, channel } => (ENGINES, lane * LANE + card * CHANNELS + channel),
    }
}

const fn line(link: usize, direction: Direction) -> (u32, u32) {
    (LINKS, link as u32 * 2 + direction as u32)
}

fn us(at: Ticks) -> f64 {
    at.as_ns() / 1000.0
}

fn of_frame(events: &mut Vec<Value>, number: usize, frame: &Frame) {
    let (process, thread) = line(frame.link, frame.direction);
    let flaws = tlp::flaws(&frame.tlp);
    let (name, what) = match Header::parse(&frame.tlp) {
        Ok((header, _)) => (tlp::name(&header), tlp::describe(&header)),
        Err(error) => ("?".to_owned(), error.to_string()),
    };
    if let Some(cause) = frame.because.filter(|_| frame.ready < frame.starts) {
        for (phase, at) in [("b", frame.ready), ("e", frame.starts)] {
            events.push(json!({
                "name": words(cause.name()), "cat": "wait", "ph": phase, "id": number, "cname": colour(cause),
                "pid": process, "tid": thread, "ts": us(at), "args": {"for": what, "because": cause.explanation()},
            }));
        }
    }
    let mut event = json!({
        "name": name, "cat": "tlp", "ph": "X", "pid": process, "tid": thread,
        "ts": us(frame.starts), "dur": us(frame.ends.since(frame.starts)),
        "args": {"tlp": what, "request": frame.request, "arrives_ns": frame.arrives.as_ns()},
    });
    if !flaws.is_empty() {
        event["name"] = json!(format!("{name}{flaws}"));
    }
    if frame.is_damaged {
        event["name"] = json!(format!("{name}{flaws}, LCRC error"));
        event["cname"] = json!("terrible");
    }
    events.push(event);
}

/// Adds an arrow from each frame of a request to the next, up to its last completion.
fn flows(events: &mut Vec<Value>, frames: &[Frame]) {
    let mut ways: BTreeMap<u64, Vec<&Frame>> = BTreeMap::new();
    for frame in frames {
        ways.entry(frame.request).or_default().push(frame);
    }
    for (request, way) in ways.into_iter().filter(|(_, way)| way.len() > 1) {
        for (place, frame) in way.iter().enumerate() {
            let phase = match place {
                0 => "s",
                _ if place + 1 == way.len() => "f",
                _ => "t",
            };
            let (process, thread) = line(frame.link, frame.direction);
            events.push(json!({
                "name": "request", "cat": "request", "ph": phase, "id": request, "bp": "e",
                "pid": process, "tid": thread, "ts": us(frame.starts),
            }));
        }
    }
}

/// A colour of Chrome's viewer for a cause; Perfetto derives its colours from names.
const fn colour(cause: Cause) -> &'static str {
    match cause {
        Cause::Issue | Cause::Driver | Cause::Runtime | Cause::InitiationInterval | Cause::Additions => {
            "thread_state_running"
        }
        Cause::StrongOrdering | Cause::Fence | Cause::SameLine => "thread_state_uninterruptible",
        Cause::WcBuffers
        | Cause::SendBuffers
        | Cause::Tag
        | Cause::Replay
        | Cause::Descriptor
        | Cause::OutstandingWords => "bad",
        Cause::RootComplex | Cause::Memory | Cause::Translation | Cause::Flush => "yellow",
        Cause::LinkBusy => "good",
        Cause::Credit => "olive",
        Cause::Device | Cause::Engine | Cause::DataPath | Cause::Fifo | Cause::MemoryPort => "terrible",
        Cause::ReadRoundTrip | Cause::Transit | Cause::Transfer | Cause::Interrupt | Cause::Compute => {
            "thread_state_iowait"
        }
        Cause::Idle => "thread_state_sleeping",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::tests::{load, traced};

    fn events() -> Vec<Value> {
        let (trace, method) = (load(), crate::fixture::method("uc", "8", None));
        let document: Value = serde_json::from_str(&viewer_trace(&traced(&trace, &method))).unwrap();
        assert_eq!(document["displayTimeUnit"], "ns");
        assert_eq!(document["otherData"]["gaps"], json!(["7 earlier TLPs were dropped"]));
        document["traceEvents"].as_array().unwrap().clone()
    }

    #[test]
    fn cores_and_directions_of_links_are_named_tracks() {
        let events = events();
        let name_of = |process: u32, thread: u32| {
            let is_it =
                |event: &&Value| event["name"] == "thread_name" && event["pid"] == process && event["tid"] == thread;
            events.iter().find(is_it).map(|event| event["args"]["name"].clone())
        };
        assert_eq!(name_of(CORES, 2), Some(json!("core 2")));
        assert_eq!((name_of(LINKS, 2), name_of(LINKS, 3)), (Some(json!("fpga0 down")), Some(json!("fpga0 up"))));
        assert_eq!(name_of(LINKS, 0), None, "an unused link has no track");
        for event in events.iter().filter(|event| event["ph"] != "M" && event["ph"] != "C") {
            let number = |key: &str| event[key].as_u64().unwrap() as u32;
            assert!(name_of(number("pid"), number("tid")).is_some(), "{event}");
        }
    }

    #[test]
    fn slices_last_as_long_as_link_use_and_stalls() {
        let slices: Vec<(Value, Value, Value)> = (events().into_iter())
            .filter(|event| event["ph"] == "X")
            .map(|event| (event["name"].clone(), event["ts"].clone(), event["dur"].clone()))
            .collect();
        let expected = [
            (json!("read round trip"), json!(0.0), json!(0.3)),
            (json!("MRd 8 B"), json!(0.0), json!(0.01)),
            (json!("CplD 8 B"), json!(0.19), json!(0.01)),
        ];
        assert_eq!(slices, expected);
    }

    #[test]
    fn flows_join_requests_with_completions_and_stalls_precede_links() {
        let events = events();
        let of = |kind: &str| -> Vec<(Value, Value, Value)> {
            let all = events.iter().filter(|event| event["cat"] == kind && event["ph"] != "X");
            all.map(|event| (event["ph"].clone(), event["tid"].clone(), event["ts"].clone())).collect()
        };
        let flow = [(json!("s"), json!(2), json!(0.0)), (json!("f"), json!(3), json!(0.19))];
        assert_eq!(of("request"), flow);
        assert_eq!(of("wait"), [(json!("b"), json!(3), json!(0.17)), (json!("e"), json!(3), json!(0.19))]);
    }

    #[test]
    fn damaged_tlps_and_dllps_are_named_slices() {
        let (trace, method) = (crate::timeline::tests::damaged_load(), crate::fixture::method("uc", "8", None));
        let document: Value = serde_json::from_str(&viewer_trace(&traced(&trace, &method))).unwrap();
        let events = document["traceEvents"].as_array().unwrap();
        let slices = events.iter().filter(|event| event["ph"] == "X" && event["cat"] != "wait");
        let slices: Vec<(&str, u64)> =
            slices.map(|event| (event["name"].as_str().unwrap(), event["tid"].as_u64().unwrap())).collect();
        assert_eq!(slices, [("MRd 8 B, LCRC error", 2), ("MRd 8 B", 2), ("Nak", 3), ("UpdateFC-NP", 3)]);
        let named = |event: &&Value| event["name"] == "thread_name" && event["tid"] == 3;
        assert!(events.iter().any(|event| named(&event)), "a link used by DLLPs only has a track");
    }

    #[test]
    fn concurrent_stalls_have_a_track_each() {
        let at = Ticks::whole_ns;
        let (mut trace, method) = (load(), crate::fixture::method("uc", "8", None));
        let wait = |from, until| Waited { from: at(from), until: at(until), ..trace.waits[0] };
        trace.waits = vec![wait(0, 100), wait(50, 150), wait(100, 120), wait(160, 170)];
        let document: Value = serde_json::from_str(&viewer_trace(&traced(&trace, &method))).unwrap();
        let events = document["traceEvents"].as_array().unwrap();
        let slices = events.iter().filter(|event| event["ph"] == "X" && event["cat"] == "wait");
        let lanes: Vec<u64> = slices.map(|event| event["tid"].as_u64().unwrap() >> 24).collect();
        assert_eq!(lanes, [0, 1, 0, 0]);
        let is_second = |event: &&Value| event["args"]["name"] == "core 2, concurrent 2";
        assert_eq!(events.iter().filter(is_second).count(), 1);
    }

    #[test]
    fn every_cause_has_a_colour() {
        for cause in Cause::ALL {
            assert_ne!(colour(cause), "grey", "{cause:?}");
        }
    }
}
