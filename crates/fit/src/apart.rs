//! Measurements that determine a number which the present data leave open.

/// Platform keys, each with a measurement that determines it.
const DETERMINED_BY: &[(&str, &str)] = &[
    ("link.latency_ns", "mmio_read_latency of the same card, which contains the link but not host memory"),
    ("endpoint.ingress_ns", "mmio_write_latency of the same card, which includes it; a data sheet"),
    ("endpoint.egress_ns", "mmio_read_latency minus mmio_write_latency of the same card; a data sheet"),
    (
        "memory.read_ns",
        "measurements of the other terms of its sum; reads alone give only the round trip including memory",
    ),
    (
        "memory.read_request_ns",
        "dma_read_bandwidth of several cards concurrently (shared_link), beyond the rate of one card",
    ),
    ("memory.write_ns", "the time until a core sees a card's write; bandwidths hardly depend on it"),
    (
        "memory.write_tlp_ns",
        "dma_write_bandwidth of several cards concurrently (shared_link), beyond the rate of one card",
    ),
    ("dma.tags", "dma_read_bandwidth bound by outstanding reads: smaller sizes, a smaller MRRS, farther memory"),
    ("dma.beat_bytes", "sizes one DW above and below a beat; the width of the engine's data path in its manual"),
    ("dma.beat_ns", "bandwidths bound by the engine and not by the link; its clock in its manual"),
    ("dma.read_request_ns", "dma_read_bandwidth with a smaller MRRS: more requests per descriptor"),
    ("dma.write_request_ns", "dma_write_bandwidth of sizes around MPS, and with a smaller MPS: more requests per byte"),
    ("dma.descriptor_ns", "bandwidths of sizes below one request, compared with many requests per descriptor"),
    ("dma.start_ns", "a single transfer: in a table many back-to-back transfers share it"),
    ("dma.send_buffers", "bandwidths bound by requests that wait for the link"),
];

/// The measurement that determines the number at `key`, as a noun phrase.
///
/// `None` for keys that do not affect bandwidths and latencies of DMA.
///
/// ```
/// assert!(lanemark_fit::measurement_for("dma.tags").unwrap().contains("MRRS"));
/// assert_eq!(lanemark_fit::measurement_for("core.sfence_ns"), None);
/// ```
#[must_use]
pub fn measurement_for(key: &str) -> Option<&'static str> {
    DETERMINED_BY.iter().find(|(name, _)| *name == key).map(|(_, what)| *what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_a_platform_number() {
        let platform = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
        for (key, _) in DETERMINED_BY {
            assert!(platform.number(key).is_some(), "{key}");
        }
    }
}
