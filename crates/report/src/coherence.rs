//! The cost of sharing memory with a device beyond hardware coherence.

use crate::panel::{Line, Panel, Point};
use lanemark_method::{Discipline, Method};

/// Heading of the column.
pub(crate) const BEYOND: &str = "beyond coherent";

/// Bytes of a cache line.
const LINE: u64 = 64;

/// Cost of `point` minus that of the coherent method with the same direction and size, in the
/// panel's unit, and per line if the buffer has several. `None` for other methods, for the coherent
/// method itself, and without its answer.
pub(crate) fn beyond(panel: &Panel, line: &Line, point: Point) -> Option<String> {
    let Method::SharedBuffer { direction, discipline } = &point.answer.method else { return None };
    let is_other = *discipline != Discipline::Coherent;
    let coherent = |other: &&Line| {
        let found = &other.largest().answer.method;
        *found == Method::SharedBuffer { direction: *direction, discipline: Discipline::Coherent }
    };
    let size = point.answer.size_bytes;
    let coherent = panel.lines.iter().filter(|other| is_other && other.name != line.name).find(coherent)?;
    let more = point.value? - coherent.at(size)?.value?;
    let sign = if more < 0.0 { "-" } else { "+" };
    let all = format!("{sign}{}", panel.unit.figure(more.abs()));
    let lines = size / LINE;
    if lines < 2 {
        return Some(all);
    }
    Some(format!("{all} ({sign}{} a line)", panel.unit.figure(more.abs() / lines as f64)))
}
