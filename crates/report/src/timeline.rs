//! A trace as a waterfall for a terminal: one line per TLP and link, and one per stall.

mod page;

use crate::figures;
use crate::grid::{Column, Grid};
use crate::panel::words;
use crate::tlp;
use lanemark_machine::{Cause, Frame, Sample, StallSite, Trace};
use lanemark_record::Method;
use lanemark_units::Ticks;
use std::collections::BTreeMap;

pub use page::waterfall_html;
pub(crate) use page::{SCRIPT as WATERFALL_SCRIPT, Waterfall};

/// A trace with its origin.
#[derive(Clone, Copy, Debug)]
pub struct Traced<'a> {
    /// The target.
    pub target: &'a str,
    /// The question.
    pub question: &'a str,
    /// The method.
    pub method: &'a Method,
    /// Bytes per iteration.
    pub size_bytes: u64,
    /// Number of iterations.
    pub passes: u64,
    /// Number of this case among the selected cases, from 1, and their count.
    pub case: (usize, usize),
    /// Times of the sample.
    pub sample: Sample,
    /// The recorded events.
    pub trace: &'a Trace,
    /// The error that ended the run, if any.
    pub error: Option<&'a str>,
}

/// Width of the time picture, in characters.
const PICTURE: u64 = 40;

impl Traced<'_> {
    /// One line with question, target, method, size and number of iterations.
    #[must_use]
    pub fn about(&self) -> String {
        let (case, of) = self.case;
        let which = if of > 1 { format!("; case {case} of {of}") } else { String::new() };
        let passes = if self.passes == 1 { "1 iteration".to_owned() } else { format!("{} iterations", self.passes) };
        format!(
            "{} of {}: {}, {}, {passes}{which}",
            self.question,
            self.target,
            self.method,
            figures::size(self.size_bytes)
        )
    }

    /// Notes on missing parts of the trace; empty if it is complete.
    #[must_use]
    pub fn gaps(&self) -> Vec<String> {
        let dropped = self.trace.dropped;
        let lost = [
            (dropped.frames, "earlier TLPs were dropped"),
            (dropped.dllps, "earlier DLLPs were dropped"),
            (dropped.waits, "earlier stalls were dropped"),
            (dropped.illegal, "TLPs could not be encoded: a bug in the simulator"),
        ];
        let lost = lost.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        self.error.iter().map(|error| format!("the run ended with an error: {error}")).chain(lost).collect()
    }
}

/// A row of the table.
struct Row {
    from: Ticks,
    until: Ticks,
    place: String,
    what: String,
    waited: String,
    picture: String,
}

/// The whole trace as a table below a short summary, with the total stall times at the end.
#[must_use]
pub fn waterfall(traced: &Traced) -> String {
    let trace = traced.trace;
    let [issued, delivered] = [traced.sample.issue, traced.sample.delivered].map(|span| figures::time(span.as_ns()));
    let sample = match traced.error {
        None => format!("issued after {issued}, delivered after {delivered}"),
        Some(_) => "up to an error".to_owned(),
    };
    let mut text = format!(
        "{}\n{sample}; {} on {}",
        traced.about(),
        figures::counted(trace.frames.len(), "TLP"),
        figures::counted(links(trace), "link")
    );
    let damaged = trace.frames.iter().filter(|frame| frame.is_damaged).count();
    if damaged > 0 {
        text += &format!(", {damaged} of them with an LCRC error");
    }
    if !trace.dllps.is_empty() {
        text += &format!("; {}", figures::counted(trace.dllps.len(), "DLLP"));
    }
    text += "\n";
    for gap in traced.gaps() {
        text += &format!("{gap}\n");
    }
    let ends = trace.frames.iter().map(|frame| frame.arrives).chain(trace.waits.iter().map(|wait| wait.until));
    let ends = ends.chain(trace.dllps.iter().map(|dllp| dllp.arrives));
    let all = ends.max().unwrap_or(Ticks::ZERO).max(traced.sample.delivered);
    let mut rows: Vec<Row> = trace.frames.iter().map(|frame| of_frame(trace, frame, all)).collect();
    rows.extend(trace.dllps.iter().map(|dllp| Row {
        from: dllp.starts,
        until: dllp.arrives,
        place: format!("{} {}", link_name(trace, dllp.link), dllp.direction.name()),
        what: dllp.kind.name().to_owned(),
        waited: String::new(),
        picture: picture(all, &[(dllp.starts, dllp.ends, '▪'), (dllp.ends, dllp.arrives, '─')]),
    }));
    rows.extend(trace.waits.iter().map(|wait| Row {
        from: wait.from,
        until: wait.until,
        place: wait.who.to_string(),
        what: format!("waits: {}", words(wait.cause.name())),
        waited: String::new(),
        picture: picture(all, &[(wait.from, wait.until, '░')]),
    }));
    rows.sort_by_key(|row| row.from);
    let columns = vec![
        Column::figures("from ns"),
        Column::figures("for ns"),
        Column::words("where"),
        Column::words("event"),
        Column::words("waited before"),
        Column::words(&format!("0 to {}", figures::time(all.as_ns()))),
    ];
    let cells = rows.into_iter().map(|row| {
        let [from, span] = [row.from, row.until.since(row.from)].map(ns);
        vec![from, span, row.place, row.what, row.waited, row.picture]
    });
    let mut grid = Grid { columns, rows: cells.collect() };
    grid.drop_empty_columns();
    text += "\n";
    for line in grid.lines(None) {
        text += line.trim_end();
        text += "\n";
    }
    text + &waits(trace)
}

/// Number of links with frames.
fn links(trace: &Trace) -> usize {
    (0..trace.links.len()).filter(|link| trace.frames.iter().any(|frame| frame.link == *link)).count()
}

fn link_name(trace: &Trace, link: usize) -> &str {
    trace.links.get(link).map_or("", String::as_str)
}

fn of_frame(trace: &Trace, frame: &Frame, all: Ticks) -> Row {
    let what = tlp::tlp_in_words(&frame.tlp);
    let waited = frame
        .because
        .map(|cause| format!("{} {}", words(cause.name()), figures::time(frame.starts.since(frame.ready).as_ns())));
    let lcrc = if frame.is_damaged { ", LCRC error" } else { "" };
    Row {
        from: frame.starts,
        until: frame.arrives,
        place: format!("{} {}", link_name(trace, frame.link), frame.direction.name()),
        what: format!("#{} {what}{}{lcrc}", frame.request, tlp::flaws(&frame.tlp)),
        waited: waited.unwrap_or_default(),
        picture: picture(
            all,
            &[(frame.ready, frame.starts, '·'), (frame.starts, frame.ends, '█'), (frame.ends, frame.arrives, '─')],
        ),
    }
}

/// Nanoseconds with one decimal, so that columns align.
fn ns(span: Ticks) -> String {
    format!("{:.1}", span.as_ns())
}

/// Draws spans in the interval from 0 to `all`. Every nonempty span takes at least one character.
/// Later spans overwrite earlier ones, except for time in flight (`─`).
fn picture(all: Ticks, spans: &[(Ticks, Ticks, char)]) -> String {
    let mut cells = vec![' '; PICTURE as usize];
    let place = |at: Ticks| (u128::from(at.0) * u128::from(PICTURE)).checked_div(u128::from(all.0)).unwrap_or(0);
    for (from, until, sign) in spans.iter().filter(|(from, until, _)| from < until) {
        let first = (place(*from) as usize).min(cells.len() - 1);
        let behind = (place(Ticks(until.0 - 1)) as usize + 1).clamp(first + 1, cells.len());
        for cell in &mut cells[first..behind] {
            if *sign != '─' || *cell == ' ' {
                *cell = *sign;
            }
        }
    }
    cells.into_iter().collect::<String>().trim_end().to_owned()
}

/// Total stall times by stall site and cause, and an explanation of each cause.
fn waits(trace: &Trace) -> String {
    let mut sums: BTreeMap<StallSite, BTreeMap<usize, Ticks>> = BTreeMap::new();
    for wait in &trace.waits {
        *sums.entry(wait.who).or_default().entry(wait.cause.index()).or_default() += wait.until.since(wait.from);
    }
    let mut text = String::new();
    for (who, causes) in &sums {
        let mut causes: Vec<(Cause, Ticks)> =
            causes.iter().filter_map(|(place, sum)| Some((*Cause::ALL.get(*place)?, *sum))).collect();
        causes.sort_by_key(|(_, sum)| std::cmp::Reverse(*sum));
        let parts = causes.iter().map(|(cause, sum)| format!("{} {}", words(cause.name()), figures::time(sum.as_ns())));
        text += &format!("\n{who} waited: {}", parts.collect::<Vec<_>>().join(", "));
    }
    let of_links = trace.frames.iter().filter_map(|frame| frame.because).map(Cause::index);
    let mut met: Vec<usize> = trace.waits.iter().map(|wait| wait.cause.index()).chain(of_links).collect();
    met.sort_unstable();
    met.dedup();
    for cause in met.into_iter().filter_map(|place| Cause::ALL.get(place)) {
        text += &format!("\n{}: {}", words(cause.name()), cause.explanation());
    }
    if text.is_empty() { text } else { text + "\n" }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use lanemark_machine::{CreditsLeft, Direction, Dllp, DllpKind, TraceGap, Waited};
    use lanemark_wire::{Completion, FunctionId, Header, MemoryRequest};

    fn bytes(header: Header) -> Vec<u8> {
        let mut bytes = vec![0; Header::MAX_BYTES];
        let used = header.emit(&mut bytes).unwrap();
        bytes.truncate(used);
        bytes.resize(used + header.data_bytes() as usize, 0);
        bytes
    }

    /// A core loads 8 B: each TLP takes 10 ns on the link and 100 ns in flight, and the completion
    /// waits 20 ns for the link.
    pub(crate) fn load() -> Trace {
        let at = Ticks::whole_ns;
        let read = bytes(Header::Memory(MemoryRequest::read(FunctionId(0), 3, 0x1000, 8)));
        let answer = bytes(Header::Completion(Completion::data(FunctionId(0x100), FunctionId(0), 3, 0, 8, 8)));
        let frame = |direction, ready, starts, because, tlp| Frame {
            link: 1,
            direction,
            request: 1,
            ready: at(ready),
            starts: at(starts),
            ends: at(starts + 10),
            arrives: at(starts + 110),
            because,
            credits_left: CreditsLeft { header: Some(7), data: None },
            is_damaged: false,
            tlp,
        };
        Trace {
            links: vec!["other".to_owned(), "fpga0".to_owned()],
            frames: vec![
                frame(Direction::Downstream, 0, 0, None, read),
                frame(Direction::Upstream, 170, 190, Some(Cause::LinkBusy), answer),
            ],
            dllps: Vec::new(),
            waits: vec![Waited { who: StallSite::Core(2), from: at(0), until: at(300), cause: Cause::ReadRoundTrip }],
            dropped: TraceGap { frames: 7, ..TraceGap::default() },
        }
    }

    pub(crate) fn traced<'a>(trace: &'a Trace, method: &'a Method) -> Traced<'a> {
        let sample = Sample { issue: Ticks::whole_ns(300), delivered: Ticks::whole_ns(400) };
        let (target, question) = ("a card", "mmio_read_latency");
        Traced { target, question, method, size_bytes: 8, passes: 1, case: (1, 3), sample, trace, error: None }
    }

    #[test]
    fn a_waterfall_has_a_line_per_tlp_and_stall_and_names_dropped_events() {
        let (trace, method) = (load(), crate::fixture::method("uc", "8", None));
        let text = waterfall(&traced(&trace, &method));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..3],
            [
                "mmio_read_latency of a card: UC 8, 8 B, 1 iteration; case 1 of 3",
                "issued after 300 ns, delivered after 400 ns; 2 TLPs on 1 link",
                "7 earlier TLPs were dropped",
            ]
        );
        let like = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(like(lines[4]).starts_with("from ns for ns where event waited before 0 to 400 ns"), "{text}");
        assert_eq!(
            lines[6..9].iter().map(|line| like(line)).collect::<Vec<_>>(),
            [
                "0.0 110.0 fpga0 down #1 MRd 8 B at 0x1000 by 00:00.0, tag 3 █──────────",
                "0.0 300.0 core 2 waits: read round trip ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░",
                "190.0 110.0 fpga0 up #1 CplD 8 B from 01:00.0 for 00:00.0, tag 3 link busy 20.0 ns ··█──────────",
            ]
        );
        assert_eq!(
            lines[9..],
            [
                "",
                "core 2 waited: read round trip 300 ns",
                "link busy: the link is busy",
                "read round trip: a read waits for its completion",
            ]
        );
    }

    /// The same load with a first read that arrives corrupted, its `Nak`, and a credit update for
    /// the replayed read.
    pub(crate) fn damaged_load() -> Trace {
        let at = Ticks::whole_ns;
        let mut trace = load();
        let read = trace.frames[0].clone();
        let again =
            Frame { starts: at(140), ends: at(150), arrives: at(250), because: Some(Cause::Replay), ..read.clone() };
        trace.frames = vec![Frame { is_damaged: true, ..read }, again];
        let dllp = |direction, kind, from| Dllp {
            link: 1,
            direction,
            kind,
            starts: at(from),
            ends: at(from + 2),
            arrives: at(from + 30),
        };
        trace.dllps = vec![
            dllp(Direction::Upstream, DllpKind::Nak, 110),
            dllp(Direction::Upstream, DllpKind::UpdateFcNonPosted, 260),
        ];
        trace
    }

    #[test]
    fn damaged_tlps_are_marked_and_dllps_have_their_own_lines() {
        let (trace, method) = (damaged_load(), crate::fixture::method("uc", "8", None));
        let text = waterfall(&traced(&trace, &method));
        assert!(text.contains("; 2 TLPs on 1 link, 1 of them with an LCRC error; 2 DLLPs\n"), "{text}");
        let like = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        let lines: Vec<String> = text.lines().map(like).collect();
        for line in [
            "0.0 110.0 fpga0 down #1 MRd 8 B at 0x1000 by 00:00.0, tag 3, LCRC error █──────────",
            "110.0 30.0 fpga0 up Nak ▪──",
            "140.0 110.0 fpga0 down #1 MRd 8 B at 0x1000 by 00:00.0, tag 3 replay 140 ns ··············█──────────",
            "260.0 30.0 fpga0 up UpdateFC-NP ▪──",
        ] {
            assert!(lines.iter().any(|other| other == line), "{line} in\n{}", lines.join("\n"));
        }
    }

    #[test]
    fn an_empty_trace_is_only_a_summary() {
        let (trace, method) = (Trace::default(), crate::fixture::method("uc", "8", None));
        let text = waterfall(&Traced { passes: 2, case: (1, 1), ..traced(&trace, &method) });
        assert!(text.starts_with("mmio_read_latency of a card: UC 8, 8 B, 2 iterations\n"), "{text}");
        assert!(text.contains("0 TLPs on 0 links\n"), "{text}");
    }

    #[test]
    fn a_trace_with_an_error_names_it_and_has_no_sample_times() {
        let (trace, method) = (load(), crate::fixture::method("uc", "8", None));
        let text = waterfall(&Traced { error: Some("the card is gone"), ..traced(&trace, &method) });
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1..3], ["up to an error; 2 TLPs on 1 link", "the run ended with an error: the card is gone"]);
    }

    #[test]
    fn spans_are_drawn_in_proportion_to_time() {
        let at = Ticks::whole_ns;
        assert_eq!(picture(at(40), &[(at(0), at(40), '░')]), "░".repeat(40));
        assert_eq!(picture(at(40), &[(at(39), at(40), '█')]), format!("{}█", " ".repeat(39)));
        assert_eq!(picture(at(4000), &[(at(1), at(2), '█')]), "█", "a short span is visible");
        assert_eq!(picture(at(40), &[(at(3), at(3), '·')]), "", "an empty span is invisible");
        let frame = [(at(2), at(4), '·'), (at(4), at(5), '█'), (at(5), at(8), '─')];
        assert_eq!(picture(at(40), &frame), "  ··█───");
        assert_eq!(picture(Ticks::ZERO, &[(at(0), at(1), '█')]), "█", "an empty trace has no length");
    }
}
