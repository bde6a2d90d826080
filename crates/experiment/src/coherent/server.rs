//! A file server as a closed network of queues: what a cost in processor cycles does to its operations per second.
//!
//! Requests under way are as many as clients keep up; each goes to the processors and to the disks, again and again. Exact mean
//! value analysis (Reiser and Lavenberg, 1980); several processors with one queue are one queue of a processor as fast as all of
//! them, and a delay for the rest of the time (Seidmann, Schweitzer, Shalev-Oren, 1987), which is an approximation.

/// A server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Server {
    /// Requests under way.
    pub requests: u32,
    /// Processors.
    pub processors: f64,
    /// Time of one of them that an operation takes, in ms.
    pub processor_ms: f64,
    /// Disks that are alike.
    pub disks: f64,
    /// Time of all of them that an operation takes, in ms.
    pub disk_ms: f64,
}

/// What clients see.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Operations per second.
    pub ops_per_s: f64,
    /// From request to answer, in ms.
    pub response_ms: f64,
}

impl Server {
    /// What its clients see.
    #[must_use]
    pub fn seen(&self) -> Seen {
        let Server { requests, processors, processor_ms, disks, disk_ms } = *self;
        let delay_ms = processor_ms * (processors - 1.0) / processors;
        let (mut at_processor, mut at_disks) = (0.0, 0.0);
        let mut seen = Seen { ops_per_s: 0.0, response_ms: 0.0 };
        for count in 1..=requests {
            let processor = processor_ms / processors * (1.0 + at_processor);
            let disk = disk_ms * (1.0 + at_disks / disks);
            let response_ms = processor + delay_ms + disk;
            let per_ms = f64::from(count) / response_ms;
            (at_processor, at_disks) = (per_ms * processor, per_ms * disk);
            seen = Seen { ops_per_s: per_ms * 1e3, response_ms };
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(requests: u32) -> Server {
        Server { requests, processors: 1.0, processor_ms: 2.0, disks: 1.0, disk_ms: 3.0 }
    }

    #[test]
    fn one_request_waits_for_nobody_and_many_for_the_slowest_station() {
        assert_eq!(server(1).seen(), Seen { ops_per_s: 200.0, response_ms: 5.0 });
        let many = server(500).seen();
        assert!((many.ops_per_s - 1e3 / 3.0).abs() < 1e-3, "{many:?}");
    }

    #[test]
    fn two_requests_in_two_stations_are_as_the_chain_of_states_says() {
        // States by how many are at the first station, 0 to 2: in balance p1 = 3/2 p0 and p2 = 3/2 p1 for rates 1/2 and 1/3 ...
        let (one, other) = (1.0 / 2.0, 1.0 / 3.0);
        let ratio: f64 = other / one;
        let total = 1.0 + ratio + ratio * ratio;
        let busy = 1.0 - 1.0 / total;
        let meant = busy * one * 1e3;
        assert!((server(2).seen().ops_per_s - meant).abs() < 1e-9);
    }

    #[test]
    fn requests_under_way_are_what_passes_times_how_long_it_stays() {
        for requests in [1, 7, 150] {
            let server = Server { processors: 4.0, disks: 56.0, disk_ms: 11.0, ..server(requests) };
            let seen = server.seen();
            assert!((seen.ops_per_s * seen.response_ms / 1e3 - f64::from(requests)).abs() < 1e-6);
        }
    }
}
