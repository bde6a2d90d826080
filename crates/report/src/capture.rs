//! A capture for a terminal: its TLPs, unreadable frames, and round-trip times.

use crate::figures;
use crate::grid::{Column, Grid, clean};
use crate::tlp;
use lanemark_record::{Capture, Exchanges, Passed, RequesterLatency};
use lanemark_wire::FlowClass;

/// One line per TLP, then unreadable frames, then latencies by requester; `name` is the file name.
#[must_use]
pub fn capture_table(name: &str, capture: &Capture) -> String {
    let mut text = format!("{}: {}", clean(name), figures::counted(capture.frames.len(), "TLP"));
    if !capture.place.is_empty() {
        text += &format!(" at {}", clean(&capture.place));
    }
    text += "\n";
    if !capture.about.is_empty() {
        text += &format!("{}\n", clean(&capture.about));
    }
    for gap in gaps(capture) {
        text += &format!("{}\n", clean(&gap));
    }
    if capture.frames.is_empty() {
        return text;
    }
    text += "\n";
    text += &frames(capture);
    let exchanges = capture.exchanges();
    text + &exchanges_in_words(capture, &exchanges) + &latencies(&capture.latencies(&exchanges))
}

/// One line per TLP. There can be millions, so only the first column is measured.
fn frames(capture: &Capture) -> String {
    let times = capture.frames.iter().map(|passed| passed.at_ns);
    let (first, last) = (times.clone().min().unwrap_or(0), times.max().unwrap_or(0));
    let width = (last - first).to_string().len().max(2);
    let mut text = format!("{:>width$}  dir   TLP\n{}\n", "ns", "─".repeat(width + 60));
    for passed in &capture.frames {
        let direction = match passed.is_upstream {
            Some(true) => "up",
            Some(false) => "down",
            None => "-",
        };
        text += &format!("{:>width$}  {direction:<4}  {}\n", passed.at_ns - first, describe(passed));
    }
    text
}

/// A TLP with everything that is unusual about it.
fn describe(passed: &Passed) -> String {
    let packet = passed.packet();
    let mut text = match (&passed.header, &packet) {
        (Ok(header), _) => tlp::describe(header),
        (Err(rule), Some(packet)) => format!("{}, irregular: {rule}", tlp::describe_irregular(packet)),
        (Err(rule), None) => rule.to_string(),
    };
    match packet.map_or(0, |packet| packet.prefixes().len() / 4) {
        0 => {}
        1 => text += ", with a TLP prefix",
        prefixes => text += &format!(", with {prefixes} TLP prefixes"),
    }
    text += &tlp::flaws(&passed.tlp);
    if passed.has_lcrc_error {
        text += ", LCRC error";
    }
    if passed.is_cut {
        text += ", cut";
    }
    text
}

/// Frames that are not shown, with the reason, and TLPs that break a rule.
fn gaps(capture: &Capture) -> Vec<String> {
    let unread = &capture.unread;
    let malformed = unread.first_malformed.as_deref().unwrap_or_default();
    let counted = [
        (unread.others, "without a NetTLP header".to_owned()),
        (unread.malformed, format!("malformed, the first of them {malformed}")),
        (unread.cut, "truncated by the capture; shown if the header is complete".to_owned()),
        (unread.untimed, "without a timestamp".to_owned()),
    ];
    let mut gaps: Vec<String> = counted
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", figures::counted(count as usize, "frame")))
        .collect();
    let frames = |count: u64| figures::counted(count as usize, "frame");
    if unread.lost > 0 {
        gaps.push(format!("{} missing by their sequence numbers", frames(unread.lost)));
    }
    if unread.dropped > 0 {
        gaps.push(format!("{} dropped, as the capturing tool reports", frames(unread.dropped)));
    }
    let mut irregular = capture.frames.iter().filter_map(|passed| passed.header.err()).peekable();
    if let Some(first) = irregular.peek().copied() {
        let count = figures::counted(irregular.count(), "TLP");
        gaps.push(format!("{count} irregular, marked below, the first of them: {first}"));
    }
    gaps.extend(unread.ends_early.iter().map(|why| format!("incomplete: {why}")));
    gaps
}

/// Requests by outcome. What lies outside the capture, or may be among its lost frames, is not called unanswered.
fn exchanges_in_words(capture: &Capture, exchanges: &Exchanges) -> String {
    let answered = exchanges.answered.len();
    let (unanswered, stray) = if capture.has_gaps() {
        (
            "without a last completion before their tag is used again, which may be among the missing frames",
            "completions without a request, which may be among the missing frames",
        )
    } else {
        ("without a last completion before their tag is used again", "completions without a request")
    };
    let mut parts = vec![format!("{} completed", figures::counted(answered, "request"))];
    let others = [
        (exchanges.open, "outstanding where the capture ends"),
        (exchanges.unanswered, unanswered),
        (exchanges.early, "completions of requests before the capture"),
        (exchanges.strays, stray),
        (exchanges.backwards, "completed before the request, by timestamp"),
    ];
    parts.extend(others.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")));
    let mut text = format!("\n{}\n", parts.join(", "));
    let has = |class| capture.frames.iter().any(|passed| passed.class() == Some(class));
    if has(FlowClass::NonPosted) && !has(FlowClass::Completion) {
        text += "no completion at all: the capture may have one direction only\n";
    }
    text
}

fn latencies(latencies: &[RequesterLatency]) -> String {
    if latencies.is_empty() {
        return String::new();
    }
    let mut columns = vec![Column::words("requester"), Column::figures("requests")];
    for head in ["first: median", "p99", "max", "last: median", "p99", "max"] {
        columns.push(Column::figures(head));
    }
    let rows = latencies.iter().map(|row| {
        let mut cells = vec![row.requester.to_string(), row.first_ns.count.to_string()];
        for summary in [&row.first_ns, &row.last_ns] {
            cells.extend([summary.median, summary.p99, summary.max].map(figures::significant));
        }
        cells
    });
    let grid = Grid { columns, rows: rows.collect() };
    let lines: Vec<String> = grid.lines(None).iter().map(|line| line.trim_end().to_owned()).collect();
    format!(
        "\nround trip in ns at the capture point: from a request to its first and to its last completion\n{}\n",
        lines.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::probe;
    use crate::timeline::tests::{load, traced};
    use lanemark_record::Unread;

    #[test]
    fn a_capture_shows_tlps_and_the_latency_at_its_link() {
        let (trace, method) = (load(), crate::fixture::method("uc", "8", None));
        let capture = probe(&traced(&trace, &method), 1).unwrap();
        let text = capture_table("x.pcapng", &capture);
        let lines: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines[0], "x.pcapng: 2 TLPs at fpga0");
        assert_eq!(
            lines[1],
            "mmio_read_latency of a card: UC 8, 8 B, 1 iteration; case 1 of 3; 7 earlier TLPs were dropped"
        );
        // Downstream TLPs count at arrival, 110 ns; upstream TLPs at departure, 190 ns.
        assert_eq!(
            lines[5..7],
            ["0 down MRd 8 B at 0x1000 by 00:00.0, tag 3", "80 up CplD 8 B from 01:00.0 for 00:00.0, tag 3"]
        );
        assert_eq!(lines[8], "1 request completed");
        assert_eq!(lines[13], "00:00.0 1 80.0 80.0 80.0 80.0 80.0 80.0");
        assert_eq!(probe(&traced(&trace, &method), 0).unwrap().frames, [], "the other link");
    }

    #[test]
    fn unreadable_frames_are_counted_and_cannot_move_the_cursor() {
        let unread = Unread {
            others: 1,
            malformed: 2,
            first_malformed: Some("frame 1: \u{1b}[2J".to_owned()),
            cut: 3,
            untimed: 4,
            lost: 5,
            dropped: 6,
            ends_early: Some("byte 9: the file ends within a block".to_owned()),
        };
        let capture = Capture { unread, place: "\u{1b}card".to_owned(), ..Capture::default() };
        let lines = [
            "x: 0 TLPs at card",
            "1 frame without a NetTLP header",
            "2 frames malformed, the first of them frame 1: [2J",
            "3 frames truncated by the capture; shown if the header is complete",
            "4 frames without a timestamp",
            "5 frames missing by their sequence numbers",
            "6 frames dropped, as the capturing tool reports",
            "incomplete: byte 9: the file ends within a block",
        ];
        assert_eq!(capture_table("x", &capture), lines.join("\n") + "\n");
    }

    /// A capture of TLPs, one each nanosecond.
    fn capture(tlps: &[&[u8]]) -> Capture {
        let frames = tlps.iter().zip(0..).map(|(tlp, at)| Passed::new(at, None, tlp.to_vec()).unwrap());
        Capture { frames: frames.collect(), ..Capture::default() }
    }

    const READ: [u8; 12] = [0, 0, 0, 1, 1, 0, 7, 0x0f, 0xfe, 0, 0, 0x10];
    const ANSWER: [u8; 16] = [0x4A, 0, 0, 1, 0, 0, 0, 4, 1, 0, 7, 0x10, 1, 2, 3, 4];

    #[test]
    fn irregular_tlps_are_counted_and_shown_with_the_rule() {
        let mut odd = READ;
        odd[7] = 0xff;
        let mut with_prefix = vec![0x91, 0, 0, 5];
        with_prefix.extend(READ);
        let mut capture = capture(&[&odd, &ANSWER, &with_prefix]);
        capture.frames[2].has_lcrc_error = true;
        let text = capture_table("x", &capture);
        let rule = "byte 7: Last DW BE is 0b1111 with Length 1; it must be 0";
        for line in [
            &format!("1 TLP irregular, marked below, the first of them: {rule}\n"),
            &format!("MRd 1 DW at 0xfe000010 by 01:00.0, tag 7, irregular: {rule}\n"),
            "MRd 4 B at 0xfe000010 by 01:00.0, tag 7, with a TLP prefix, LCRC error\n",
            "\n1 request completed\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }

    #[test]
    fn requests_at_an_edge_or_beside_lost_frames_are_not_called_unanswered() {
        let mut some = capture(&[&ANSWER, &READ, &READ, &ANSWER, &READ]);
        let text = capture_table("x", &some);
        let known = "1 request completed, 1 outstanding where the capture ends, 1 without a last completion before \
                     their tag is used again, 1 completions of requests before the capture\n";
        assert!(text.contains(known), "{text}");
        some.unread.lost = 1;
        let text = capture_table("x", &some);
        assert!(text.contains("tag is used again, which may be among the missing frames, "), "{text}");
        // A truncated payload hides no TLP.
        (some.unread.lost, some.unread.cut, some.frames[3].is_cut) = (0, 1, true);
        assert!(!some.has_gaps() && capture_table("x", &some).contains(known));
        some.unread.cut = 2;
        assert!(some.has_gaps());
        let one_way = capture_table("x", &capture(&[&READ]));
        assert!(one_way.contains("0 requests completed, 1 outstanding where the capture ends\nno completion at all"));
    }
}
