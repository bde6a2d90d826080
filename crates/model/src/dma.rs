//! Ceilings of DMA transfers from link parameters and the number of outstanding reads.

use lanemark_units::Rate;
use lanemark_wire::{Generation, Lanes, Mps, Mrrs, tlp_ticks, tlp_wire_bytes};

/// Payload bytes per second of back-to-back memory writes of `payload` bytes with 4 DW headers, as a device sends
/// them to host memory above 4 GiB.
///
/// `payload / time of its TLP`. DLLPs travel in the opposite direction. SKP ordered sets (about 0.3 %) are not
/// subtracted; the true limit is slightly lower.
///
/// ```
/// use lanemark_wire::{Generation, Lanes, Mps};
/// let mps = Mps::new(256).unwrap();
/// let full = lanemark_model::dma_write_ceiling(Generation::Gen4, Lanes::X16, mps).unwrap();
/// assert_eq!(full.to_string(), "28.807 GB/s");
/// ```
#[must_use]
pub fn dma_write_ceiling(generation: Generation, lanes: Lanes, payload: Mps) -> Option<Rate> {
    payload_rate(generation, lanes, 4, payload)
}

/// As [`dma_write_ceiling`], for the completions (3 DW headers) of a device's reads.
#[must_use]
pub fn completion_ceiling(generation: Generation, lanes: Lanes, payload: Mps) -> Option<Rate> {
    payload_rate(generation, lanes, 3, payload)
}

fn payload_rate(generation: Generation, lanes: Lanes, header_dw: u8, payload: Mps) -> Option<Rate> {
    let wire = tlp_wire_bytes(generation, header_dw, payload.bytes(), false);
    Rate::over(u64::from(payload.bytes()), tlp_ticks(generation, lanes, wire))
}

/// Bytes per second of reads of `mrrs` bytes with `tags` outstanding and a latency of `round_trip_ns`: `tags x MRRS /
/// round trip` (Little's law). The link may limit further.
///
/// ```
/// use lanemark_wire::Mrrs;
/// // 32 tags of 512 B and a microsecond: what half of Gen4 x16 carries.
/// let bound = lanemark_model::outstanding_reads(32, Mrrs::new(512).unwrap(), 1000.0).unwrap();
/// assert_eq!(bound.to_string(), "16.384 GB/s");
/// ```
#[must_use]
pub fn outstanding_reads(tags: u16, mrrs: Mrrs, round_trip_ns: f64) -> Option<Rate> {
    Rate::from_bytes_per_s(f64::from(tags) * f64::from(mrrs.bytes()) * 1e9 / round_trip_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mps(bytes: u32) -> Mps {
        Mps::new(bytes).unwrap()
    }

    #[test]
    fn larger_payloads_and_shorter_headers_raise_the_ceiling() {
        let write = |bytes| dma_write_ceiling(Generation::Gen3, Lanes::X8, mps(bytes)).unwrap();
        assert!(write(128) < write(256) && write(256) < write(512));
        assert!(write(128) < completion_ceiling(Generation::Gen3, Lanes::X8, mps(128)).unwrap());
    }

    #[test]
    fn no_ceiling_exceeds_the_link_rate() {
        for generation in Generation::ALL {
            for lanes in Lanes::ALL {
                let raw = lanemark_wire::bytes_per_s(generation, lanes) as f64;
                let most = completion_ceiling(generation, lanes, mps(4096)).unwrap().bytes_per_s();
                assert!(most < raw && most > 0.95 * raw, "{generation:?} {lanes:?}: {most} of {raw}");
            }
        }
    }

    #[test]
    fn a_zero_round_trip_gives_no_bound() {
        assert_eq!(outstanding_reads(32, Mrrs::new(512).unwrap(), 0.0), None);
    }
}
