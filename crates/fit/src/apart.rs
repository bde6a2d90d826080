//! Which measurement tells a number that the data at hand leave open.

/// By key: what would tell it.
const TELLS: &[(&str, &str)] = &[
    ("link.latency_ns", "mmio_read_latency of the same card: the link is in it, and host memory is not"),
    ("endpoint.ingress_ns", "mmio_write_latency of the same card, which ends behind it; a data sheet"),
    ("endpoint.egress_ns", "mmio_read_latency less mmio_write_latency of the same card; a data sheet"),
    ("memory.read_ns", "whatever tells the others of its sum; reads alone tell only the way there, in memory and back"),
    (
        "memory.read_request_ns",
        "dma_read_bandwidth of several cards at once (shared_link), more than one of them asks for",
    ),
    ("memory.write_ns", "the time until a core sees what a card has written; bandwidths hardly have it in them"),
    ("memory.write_tlp_ns", "dma_write_bandwidth of several cards at once (shared_link), more than one of them sends"),
    (
        "dma.tags",
        "dma_read_bandwidth where reads under way are the limit: smaller sizes, a smaller MRRS, farther memory",
    ),
    (
        "dma.beat_bytes",
        "sizes of one DW more and less than a beat; the width of the engine's data path is in its manual",
    ),
    ("dma.beat_ns", "bandwidths where the engine is the limit and not the link; its clock is in its manual"),
    ("dma.read_request_ns", "dma_read_bandwidth with a smaller MRRS: more requests for each descriptor"),
    (
        "dma.write_request_ns",
        "dma_write_bandwidth of sizes around MPS, and with a smaller one: more requests for each byte",
    ),
    ("dma.descriptor_ns", "bandwidths of sizes below one request, and of those beside many in one descriptor"),
    ("dma.start_ns", "one transfer alone: in a table it is shared by many in a row"),
    ("dma.send_buffers", "bandwidths where what waits for the link is the limit"),
];

/// What would tell the number of this key, in a clause; `None` of keys that bandwidths and latencies of a card's own
/// transfers are not about.
///
/// ```
/// assert!(lanemark_fit::what_tells("dma.tags").unwrap().contains("MRRS"));
/// assert_eq!(lanemark_fit::what_tells("core.sfence_ns"), None);
/// ```
#[must_use]
pub fn what_tells(key: &str) -> Option<&'static str> {
    TELLS.iter().find(|(name, _)| *name == key).map(|(_, what)| *what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_a_number_of_a_platform() {
        let platform = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
        for (key, _) in TELLS {
            assert!(platform.number(key).is_some(), "{key}");
        }
    }
}
