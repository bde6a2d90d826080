//! A trace as a page: a waterfall with zoom, and all TLPs as a table.

use super::{Traced, links};
use crate::chart;
use crate::error::ReportError;
use crate::figures;
use crate::grid::{Column, Grid};
use crate::page_parts::PageParts;
use crate::panel::words;
use crate::tlp;
use askama::Template;
use lanemark_machine::{Cause, Direction, Frame, StallSite, Waited};
use lanemark_units::Ticks;
use lanemark_wire::{FlowClass, Header};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Largest number of TLPs of a page, and of stalls; a page of this size opens at once.
const MOST: usize = 2000;

/// Renders a trace as one HTML page with a waterfall to zoom, and needs no network.
///
/// It has the first 2000 TLPs, and the stalls up to the last of them.
///
/// # Errors
/// [`ReportError`] through a bug of this program; every trace can be rendered.
pub fn waterfall_html(traced: &Traced) -> Result<String, ReportError> {
    let (frames, waits) = shown(traced, MOST);
    let waterfall = Waterfall::of(traced, MOST);
    let data = Value::Array(vec![waterfall.data.clone()]);
    let page = Page {
        tlps: tlps(traced, frames),
        stalls: stalls(&waits),
        data: chart::embeddable(&data).map_err(|source| ReportError::Plots { source })?,
        waterfall,
        script: SCRIPT,
        parts: PageParts::new(),
    };
    page.render().map_err(|source| ReportError::Template { source })
}

/// Draws the waterfalls of a page.
pub(crate) const SCRIPT: &str = include_str!("../../assets/waterfall.js");

/// A waterfall of a page.
pub(crate) struct Waterfall {
    /// Question, target, method, size and iterations.
    pub(crate) about: String,
    pub(crate) sample: String,
    /// Numbers of TLPs, links and stalls.
    pub(crate) count: String,
    pub(crate) notes: Vec<String>,
    /// Causes of the stalls, and their explanations.
    pub(crate) causes: Vec<(usize, String, &'static str)>,
    /// Input of [`SCRIPT`].
    pub(crate) data: Value,
}

impl Waterfall {
    /// The first `most` TLPs of a trace, and as many stalls.
    pub(crate) fn of(traced: &Traced, most: usize) -> Waterfall {
        let (frames, waits) = shown(traced, most);
        let [issued, delivered] =
            [traced.sample.issue, traced.sample.delivered].map(|span| figures::time(span.as_ns()));
        let mut notes = traced.gaps();
        let left_out = traced.trace.frames.len() - frames.len();
        if left_out > 0 {
            let last = figures::time(frames.last().map(|frame| frame.starts).unwrap_or_default().as_ns());
            let later = figures::counted(left_out, "later TLP");
            notes.push(format!(
                "not on this page: {later}, after {last}; use lanemark trace with --iterations or --link"
            ));
        }
        Waterfall {
            about: traced.about(),
            sample: match traced.error {
                None => format!("issued after {issued}, delivered after {delivered}"),
                Some(_) => "up to an error".to_owned(),
            },
            count: format!(
                "{} on {}, {}",
                figures::counted(frames.len(), "TLP"),
                figures::counted(links(traced.trace), "link"),
                figures::counted(waits.len(), "stall")
            ),
            notes,
            causes: causes(frames, &waits),
            data: data(traced, frames, &waits),
        }
    }
}

/// The first `most` TLPs, and the stalls up to the last of them.
fn shown<'a>(traced: &Traced<'a>, most: usize) -> (&'a [Frame], Vec<&'a Waited>) {
    let trace = traced.trace;
    let frames = &trace.frames[..trace.frames.len().min(most)];
    let until = if frames.len() < trace.frames.len() { frames.last().map(|frame| frame.starts) } else { None };
    let waits = trace.waits.iter().filter(|wait| until.is_none_or(|until| wait.from <= until)).take(most);
    (frames, waits.collect())
}

#[derive(Template)]
#[template(path = "waterfall.html")]
struct Page {
    waterfall: Waterfall,
    tlps: Grid,
    stalls: Grid,
    data: String,
    script: &'static str,
    parts: PageParts,
}

/// Number of the colour of a cause.
fn colour(cause: Cause) -> usize {
    cause.index() % 10
}

fn causes(frames: &[Frame], waits: &[&Waited]) -> Vec<(usize, String, &'static str)> {
    let met = frames.iter().filter_map(|frame| frame.because).chain(waits.iter().map(|wait| wait.cause));
    let met: BTreeSet<usize> = met.map(Cause::index).collect();
    let causes = met.into_iter().filter_map(|place| Cause::ALL.get(place));
    causes.map(|cause| (colour(*cause), words(cause.name()), cause.explanation())).collect()
}

/// A line of the waterfall: a direction of a link, or what stalls.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Lane {
    Stall(StallSite),
    Link(usize, u8),
}

fn lane(link: usize, direction: Direction) -> Lane {
    Lane::Link(link, direction as u8)
}

fn data(traced: &Traced, frames: &[Frame], waits: &[&Waited]) -> Value {
    let ns = |at: Ticks| (at.as_ns() * 1000.0).round() / 1000.0;
    let lanes: BTreeSet<Lane> = (frames.iter().map(|frame| lane(frame.link, frame.direction)))
        .chain(waits.iter().map(|wait| Lane::Stall(wait.who)))
        .collect();
    let lanes: Vec<Lane> = lanes.into_iter().collect();
    let name = |lane: &Lane| match lane {
        Lane::Stall(who) => who.to_string(),
        Lane::Link(link, direction) => {
            let direction =
                if *direction == Direction::Downstream as u8 { Direction::Downstream } else { Direction::Upstream };
            format!("{} {}", traced.trace.links.get(*link).map_or("", String::as_str), direction.name())
        }
    };
    let place = |lane: Lane| lanes.iter().position(|one| *one == lane);
    let of_frame = |frame: &Frame| {
        let facts = Facts::of(frame);
        json!({
            "lane": place(lane(frame.link, frame.direction)), "ready": ns(frame.ready), "starts": ns(frame.starts),
            "ends": ns(frame.ends), "arrives": ns(frame.arrives), "kind": facts.kind, "words": facts.words,
            "bytes": facts.bytes, "request": frame.request, "posted": facts.is_posted, "damaged": frame.is_damaged,
            "cause": frame.because.map(|cause| words(cause.name())), "colour": frame.because.map(colour),
        })
    };
    let of_wait = |wait: &&Waited| {
        json!({
            "lane": place(Lane::Stall(wait.who)), "from": ns(wait.from), "until": ns(wait.until),
            "cause": words(wait.cause.name()), "colour": colour(wait.cause),
        })
    };
    let ends = frames.iter().map(|frame| frame.arrives).chain(waits.iter().map(|wait| wait.until));
    json!({
        "lanes": lanes.iter().map(name).collect::<Vec<_>>(),
        "tlps": frames.iter().map(of_frame).collect::<Vec<_>>(),
        "waits": waits.iter().map(of_wait).collect::<Vec<_>>(),
        "end": ns(ends.max().unwrap_or_default()),
    })
}

/// What a TLP is.
struct Facts {
    kind: String,
    /// Type, size, addresses and IDs.
    words: String,
    tag: Option<u16>,
    address: Option<u64>,
    /// Bytes of data, or bytes that a read requests.
    bytes: Option<u32>,
    is_posted: bool,
}

impl Facts {
    fn of(frame: &Frame) -> Facts {
        let Ok((header, _)) = Header::parse(&frame.tlp) else {
            let (kind, words) = ("?".to_owned(), tlp::tlp_in_words(&frame.tlp));
            return Facts { kind, words, tag: None, address: None, bytes: None, is_posted: false };
        };
        let is_posted = header.kind().class() == FlowClass::Posted;
        let (address, bytes) = match header {
            Header::Memory(request) => match request.span() {
                Some((address, bytes)) => (Some(address), Some(bytes)),
                None => (Some(request.address), None),
            },
            _ => (None, Some(header.data_bytes())),
        };
        Facts {
            kind: header.kind().name().to_owned(),
            words: tlp::describe(&header) + &tlp::flaws(&frame.tlp),
            tag: (!is_posted).then(|| header.tag()),
            address,
            bytes: bytes.filter(|bytes| *bytes > 0),
            is_posted,
        }
    }
}

/// Every TLP of the page.
fn tlps(traced: &Traced, frames: &[Frame]) -> Grid {
    let mut columns = vec![Column::figures("from ns")];
    columns.extend(["sent in ns", "arrives at ns"].map(Column::figures));
    columns.extend(["link", "direction", "type"].map(Column::words));
    columns.extend(["request", "tag", "address", "bytes"].map(Column::figures));
    columns.push(Column::words("waited for"));
    columns.push(Column::figures("waited ns"));
    columns.push(Column::words("error"));
    let row = |frame: &Frame| {
        let facts = Facts::of(frame);
        let some = |value: Option<String>| value.unwrap_or_default();
        vec![
            super::ns(frame.starts),
            super::ns(frame.ends.since(frame.starts)),
            super::ns(frame.arrives),
            super::link_name(traced.trace, frame.link).to_owned(),
            frame.direction.name().to_owned(),
            facts.kind,
            frame.request.to_string(),
            some(facts.tag.map(|tag| tag.to_string())),
            some(facts.address.map(|address| format!("{address:#x}"))),
            some(facts.bytes.map(|bytes| bytes.to_string())),
            some(frame.because.map(|cause| words(cause.name()))),
            some(frame.because.map(|_| super::ns(frame.starts.since(frame.ready)))),
            if frame.is_damaged { "LCRC error".to_owned() } else { String::new() },
        ]
    };
    let mut grid = Grid { columns, rows: frames.iter().map(row).collect() };
    grid.drop_empty_columns();
    grid
}

/// Every stall of the page.
fn stalls(waits: &[&Waited]) -> Grid {
    let mut columns = vec![Column::words("who"), Column::figures("from ns"), Column::figures("for ns")];
    columns.push(Column::words("waits for"));
    let row = |wait: &&Waited| {
        let [from, span] = [wait.from, wait.until.since(wait.from)].map(super::ns);
        vec![wait.who.to_string(), from, span, words(wait.cause.name())]
    };
    Grid { columns, rows: waits.iter().map(row).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::timeline::tests::load;
    use lanemark_machine::{Sample, Trace};

    fn page(trace: &Trace) -> String {
        let method = fixture::method("uc", "8", None);
        let sample = Sample { issue: Ticks::whole_ns(1), delivered: Ticks::whole_ns(300) };
        let (target, question, size_bytes, passes, case) = ("<card>", "mmio_read_latency", 8, 1, (1, 1));
        let error = None;
        waterfall_html(&Traced { target, question, method: &method, size_bytes, passes, case, sample, trace, error })
            .unwrap()
    }

    fn data(page: &str) -> Value {
        let (_, rest) = page.split_once("id=\"waterfall-data\">").unwrap();
        let all: Value = serde_json::from_str(rest.split("</script>").next().unwrap()).unwrap();
        all[0].clone()
    }

    #[test]
    fn each_tlp_has_its_times_its_facts_and_the_cause_of_its_wait() {
        let page = page(&load());
        assert!(!page.contains("<card>"));
        let data = data(&page);
        let read = &data["tlps"][0];
        assert_eq!((&read["kind"], &read["bytes"], &read["ends"]), (&json!("MRd"), &json!(8), &json!(10.0)));
        assert!(read["words"].as_str().unwrap().contains("0x1000"), "{read}");
        let answer = &data["tlps"][1];
        assert_eq!((&answer["ready"], &answer["starts"]), (&json!(170.0), &json!(190.0)));
        assert_eq!(answer["cause"], "link busy");
        assert_ne!(read["lane"], answer["lane"], "a row per direction");
        let lanes: Vec<&str> = data["lanes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        assert!(lanes.contains(&"fpga0 down") && lanes.contains(&"fpga0 up"), "{lanes:?}");
        assert!(page.contains(">190.0</th>") && page.contains(">CplD</td>"), "the table has the same TLPs");
    }

    #[test]
    fn a_page_has_two_thousand_tlps_and_counts_the_others() {
        let mut trace = load();
        let first = trace.frames[0].clone();
        trace.frames = vec![first; MOST];
        let full = page(&trace);
        assert_eq!(data(&full)["tlps"].as_array().unwrap().len(), MOST);
        assert!(!full.contains("not on this page"));
        trace.frames.push(trace.frames[0].clone());
        let cut = page(&trace);
        assert_eq!(data(&cut)["tlps"].as_array().unwrap().len(), MOST);
        assert!(cut.contains("not on this page: 1 later TLP, after 0"));
        assert!(cut.len() < 2_000_000, "{}", cut.len());
    }
}
