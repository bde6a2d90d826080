//! Resources of a transfer: how long each is in use, beside its share of the critical path.

use crate::figures;
use crate::grid::{Column, Grid};
use lanemark_machine::Cause;
use lanemark_record::{Answer, Direction, PathPart};

/// Resources with less than this of both are left out, in percent.
const SMALL_PERCENT: f64 = 1.0;
/// Number of rows up to which busy resources outside of the critical path are shown.
const MOST: usize = 8;
/// Use from which a resource is a possible bottleneck, in percent.
const NEARLY_ALWAYS_PERCENT: f64 = 95.0;

/// The work of a place, or latency at it.
struct Row<'a> {
    place: &'a str,
    work: String,
    used: Option<&'a Used>,
    path_percent: f64,
}

/// The resources of an answer: the longest share of the critical path first, then the busiest.
fn rows<'a>(answer: &'a Answer, used: &'a [Used]) -> Vec<Row<'a>> {
    let of_part = |part: &'a PathPart| Row {
        place: &part.place,
        work: if part.is_latency { latency(&part.cause) } else { part.cause.replace('_', " ") },
        used: used.iter().find(|used| !part.is_latency && used.is_of(part)),
        path_percent: part.share_percent,
    };
    let mut rows: Vec<Row> = answer.critical_path.iter().map(of_part).collect();
    let is_on_path = |used: &Used| answer.critical_path.iter().any(|part| !part.is_latency && used.is_of(part));
    rows.extend(used.iter().filter(|used| !is_on_path(used)).map(|used| Row {
        place: &used.place,
        work: used.cause.replace('_', " "),
        used: Some(used),
        path_percent: 0.0,
    }));
    let used_percent = |row: &Row| row.used.map_or(0.0, Used::most_percent);
    // A part of a difference may be negative.
    rows.retain(|row| row.path_percent.abs().max(used_percent(row)) >= SMALL_PERCENT);
    let rank = |row: &Row| if row.path_percent >= SMALL_PERCENT { 100.0 + row.path_percent } else { used_percent(row) };
    rows.sort_by(|one, other| rank(other).total_cmp(&rank(one)));
    rows
}

/// Use of a direction of a link or of another resource, or of both directions of one.
struct Used {
    place: String,
    cause: String,
    shares: Vec<(Option<Direction>, f64)>,
}

impl Used {
    /// Use of the busier direction.
    fn most_percent(&self) -> f64 {
        self.shares.iter().map(|(_, share)| *share).fold(0.0, f64::max)
    }

    fn in_words(&self) -> String {
        let one = |(direction, share): &(Option<Direction>, f64)| {
            let name = direction.map_or_else(String::new, |direction| format!(" {}", direction.name()));
            format!("{}{name}", figures::whole_percent(*share))
        };
        self.shares.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    fn is_of(&self, part: &PathPart) -> bool {
        (&self.place, &self.cause) == (&part.place, &part.cause)
    }
}

/// Links and other resources, the busiest first, each once.
fn used(answer: &Answer) -> Vec<Used> {
    let links = answer.links.iter().map(|link| Used {
        place: format!("{} {}", link.link, link.direction.name()),
        cause: Cause::LinkBusy.name().to_owned(),
        shares: vec![(None, link.tlp_share_percent + link.dllp_share_percent)],
    });
    let others = answer.resources.iter().map(|one| Used {
        place: one.place.clone(),
        cause: one.cause.clone(),
        shares: vec![(one.direction, one.share_percent)],
    });
    let mut all: Vec<Used> = Vec::new();
    for one in links.chain(others) {
        match all.iter_mut().find(|other| (&other.place, &other.cause) == (&one.place, &one.cause)) {
            Some(other) => other.shares.extend(one.shares),
            None => all.push(one),
        }
    }
    all.sort_by(|one, other| other.most_percent().total_cmp(&one.most_percent()));
    all
}

/// Latency in words, with the limit that kept it from overlapping with more.
fn latency(cause: &str) -> String {
    match cause {
        "transit" => "latency".to_owned(),
        limit => format!("latency, limited by {}", limit.replace('_', " ")),
    }
}

/// The table of the resources, without rows if no use was observed, and a note on those that it leaves out.
pub(crate) fn grid(answer: &Answer) -> (Grid, Option<String>) {
    let columns = vec![
        Column::words("resource"),
        Column::words("work"),
        Column::figures("in use"),
        Column::figures("critical path"),
    ];
    let mut grid = Grid { columns, rows: Vec::new() };
    if answer.links.is_empty() && answer.resources.is_empty() {
        return (grid, None);
    }
    let used = used(answer);
    let mut rows = rows(answer, &used);
    let on_path = rows.iter().filter(|row| row.path_percent >= SMALL_PERCENT).count();
    let left_out = rows.split_off(rows.len().min(MOST.max(on_path)));
    let note = (!left_out.is_empty()).then(|| {
        let others = figures::counted(left_out.len(), "other resource");
        format!("{others} in use for less of the time, each with less than 1 % of the critical path")
    });
    for row in rows {
        grid.rows.push(vec![
            row.place.to_owned(),
            row.work,
            row.used.map(Used::in_words).unwrap_or_default(),
            if answer.critical_path.is_empty() { String::new() } else { figures::whole_percent(row.path_percent) },
        ]);
    }
    grid.drop_empty_columns();
    (grid, note)
}

/// A sentence, if a resource is in use nearly all the time and the critical path names another one first, which is in use
/// less.
pub(crate) fn disagreement(answer: &Answer) -> Option<String> {
    let first = answer.critical_path.first()?;
    let used = used(answer);
    let busiest = used.first().filter(|used| used.most_percent() >= NEARLY_ALWAYS_PERCENT)?;
    let own = if first.is_latency { None } else { used.iter().find(|used| used.is_of(first)) };
    let is_less = own.is_none_or(|own| own.most_percent() < NEARLY_ALWAYS_PERCENT);
    (busiest.place != first.place && is_less).then(|| {
        format!(
            "disagreement: the critical path names {} ({}), and {} is in use {} of the time",
            first.cause.replace('_', " "),
            first.place,
            busiest.place,
            figures::whole_percent(busiest.most_percent())
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use lanemark_record::{LinkUse, ResourceUse};

    fn part(place: &str, cause: &str, is_latency: bool, share_percent: f64) -> PathPart {
        PathPart { place: place.to_owned(), cause: cause.to_owned(), is_latency, share_percent }
    }

    fn resource(place: &str, cause: &str, direction: Direction, share_percent: f64) -> ResourceUse {
        ResourceUse { place: place.to_owned(), cause: cause.to_owned(), direction: Some(direction), share_percent }
    }

    fn answer() -> Answer {
        let mut answer = fixture::record().answers.remove(0);
        answer.links = vec![LinkUse {
            link: "card".to_owned(),
            direction: Direction::Down,
            tlp_share_percent: 40.0,
            dllp_share_percent: 0.5,
            payload_rate_bytes_per_s: 1e9,
        }];
        let engine = |direction, share| resource("DMA engine", "data_path", direction, share);
        answer.resources = vec![engine(Direction::Up, 30.0), engine(Direction::Down, 20.0)];
        answer.critical_path = vec![
            part("memory", "tag", true, 70.0),
            part("DMA engine", "data_path", false, 29.5),
            part("x", "y", true, 0.5),
        ];
        answer
    }

    #[test]
    fn use_stands_beside_the_share_of_the_critical_path_and_idle_resources_are_left_out() {
        assert_eq!(
            grid(&answer()).0.lines(None)[2..],
            [
                "memory      latency, limited by tag                               70 %",
                "DMA engine  data path                30 % up, 20 % down           30 %",
                "card down   link busy                              40 %            0 %",
            ]
        );
    }

    #[test]
    fn busy_resources_outside_of_the_path_are_shown_up_to_eight_rows_and_counted_beyond() {
        let mut answer = answer();
        let other = |number| resource(&format!("core {number}"), "issue", Direction::Up, 10.0 + f64::from(number));
        answer.resources.extend((1..6).map(other));
        assert_eq!((grid(&answer).0.rows.len(), grid(&answer).1), (8, None));
        answer.resources.push(other(0));
        let (shown, note) = grid(&answer);
        assert_eq!((shown.rows.len(), shown.rows[7][0].as_str()), (8, "core 1"));
        let said = "1 other resource in use for less of the time, each with less than 1 % of the critical path";
        assert_eq!(note.as_deref(), Some(said));
    }

    #[test]
    fn a_busy_resource_disagrees_with_a_path_that_names_another_one_which_is_in_use_less() {
        let mut answer = answer();
        assert_eq!(disagreement(&answer), None);
        answer.links[0].tlp_share_percent = 94.4;
        assert_eq!(disagreement(&answer), None);
        answer.links[0].tlp_share_percent = 94.5;
        let said = "disagreement: the critical path names tag (memory), and card down is in use 95 % of the time";
        assert_eq!(disagreement(&answer).as_deref(), Some(said));
        answer.critical_path.swap(0, 1);
        answer.resources[0].share_percent = 95.0;
        assert_eq!(disagreement(&answer), None, "both are bottlenecks");
    }
}
