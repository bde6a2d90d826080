//! The picture of a file server by processor utilization.

use super::server::Server;
use crate::line::{Figures, line};
use lanemark_record::Picture;

/// Published figures of the file server, which are inputs here.
struct Published {
    /// Processor cycles per operation, without and with coherent I/O.
    cycles: [f64; 2],
    /// Operations per second, without and with.
    ops_per_s: [f64; 2],
}

/// Processors and file systems of the published configuration.
const PROCESSORS: f64 = 4.0;
const DISKS: f64 = 56.0;

/// Processor utilizations without coherent I/O, in percent; the clock, which would determine it, is not published.
const BUSY_PERCENT: [f64; 9] = [70.0, 80.0, 90.0, 95.0, 97.0, 98.0, 99.0, 99.5, 99.9];

/// Operations per second with coherent I/O; the disk time is chosen so that the published rate without it results.
fn gain(published: &Published, busy_percent: f64, requests: u32) -> Option<f64> {
    let without_ms = PROCESSORS * busy_percent / 100.0 / published.ops_per_s[0] * 1e3;
    let server = |processor_ms: f64, disk_ms: f64| Server {
        requests,
        processors: PROCESSORS,
        processor_ms,
        disks: DISKS,
        disk_ms,
    };
    let without = |disk_ms| server(without_ms, disk_ms).seen().ops_per_s;
    let (mut short, mut long) = (0.0, 1e3);
    if without(short) < published.ops_per_s[0] {
        return None;
    }
    for _ in 0..60 {
        let middle = f64::midpoint(short, long);
        *(if without(middle) < published.ops_per_s[0] { &mut long } else { &mut short }) = middle;
    }
    Some(server(without_ms * published.cycles[1] / published.cycles[0], short).seen().ops_per_s)
}

/// Draws the throughput of the file server with coherent I/O over processor utilization without it.
pub(crate) fn server_gain(figure: Figures) -> Result<Picture, String> {
    let pair = |of: &str| Ok::<_, String>([figure(&format!("{of}:without"))?, figure(&format!("{of}:with"))?]);
    let ops = |of: &str| figure(&format!("H9:{of}:ops"));
    let published = Published { cycles: pair("H13")?, ops_per_s: [ops("without")?, ops("with")?] };
    let of = |requests: u32| {
        let values = BUSY_PERCENT.map(|busy| gain(&published, busy, requests)).to_vec();
        line(format!("{requests} outstanding requests"), Ok(values))
    };
    let mut lines = [120, 153, 200].map(of).into_iter().collect::<Result<Vec<_>, _>>()?;
    lines.push(line("published", Ok(vec![Some(published.ops_per_s[1]); BUSY_PERCENT.len()]))?);
    Ok(Picture {
        title: "Effect of fewer cycles per operation on a file server".to_owned(),
        along: "processor utilization without coherent I/O, %".to_owned(),
        shows: "operations per second with coherent I/O".to_owned(),
        at: BUSY_PERCENT.to_vec(),
        lines,
        note: "By a closed network of four processors and 56 disks (mean value analysis). Cycles per operation are given, and the disk time is \
               chosen to give 4255 operations per second without coherent I/O. 4651 result only if processors were busy for more than \
               99.5 % of the time; below that the disks are the limit, and fewer cycles gain little. Savings of coherent I/O on the bus \
               and memory are not included. 120 requests are the processes of the clients; 153 are operations times response time. Clock \
               and disks are not published: nothing of this is a prediction."
            .to_owned(),
    })
}
