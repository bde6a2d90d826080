//! A file server as a closed queueing network: operations per second as a function of processor cycles.
//!
//! A constant number of outstanding requests alternates between processors and disks. Exact mean value analysis (Reiser and
//! Lavenberg, 1980). Several processors with one queue are approximated by one queue with a processor as fast as all of them,
//! and a delay for the rest of the time (Seidmann, Schweitzer, Shalev-Oren, 1987).

/// Parameters of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Server {
    /// Outstanding requests.
    pub requests: u32,
    /// Number of processors.
    pub processors: f64,
    /// Time of one processor per operation, in ms.
    pub processor_ms: f64,
    /// Number of identical disks.
    pub disks: f64,
    /// Total time of the disks per operation, in ms.
    pub disk_ms: f64,
}

/// Throughput and response time at the clients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Seen {
    /// Operations per second.
    pub ops_per_s: f64,
    /// Time from request to response, in ms.
    pub response_ms: f64,
}

impl Server {
    /// Computes throughput and response time.
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
    fn throughput_is_bound_by_latency_for_one_request_and_by_the_slowest_station_for_many() {
        assert_eq!(server(1).seen(), Seen { ops_per_s: 200.0, response_ms: 5.0 });
        let many = server(500).seen();
        assert!((many.ops_per_s - 1e3 / 3.0).abs() < 1e-3, "{many:?}");
    }

    #[test]
    fn two_requests_at_two_stations_match_the_markov_chain() {
        // States are the number of requests at the first station, 0 to 2. Balance at rates 1/2 and 1/3 gives the ratio of neighbours.
        let (one, other) = (1.0 / 2.0, 1.0 / 3.0);
        let ratio: f64 = other / one;
        let total = 1.0 + ratio + ratio * ratio;
        let busy = 1.0 - 1.0 / total;
        let meant = busy * one * 1e3;
        assert!((server(2).seen().ops_per_s - meant).abs() < 1e-9);
    }

    #[test]
    fn littles_law_holds() {
        for requests in [1, 7, 150] {
            let server = Server { processors: 4.0, disks: 56.0, disk_ms: 11.0, ..server(requests) };
            let seen = server.seen();
            assert!((seen.ops_per_s * seen.response_ms / 1e3 - f64::from(requests)).abs() < 1e-6);
        }
    }
}
