//! Gain of a remedy, computed by the model.

use lanemark_model::{completion_ceiling, dma_write_ceiling, outstanding_reads};
use lanemark_record::diagnosis::{Gain, LinkRate, Severity, Unit};
use lanemark_wire::{Generation, Lanes, Mps, Mrrs};

/// Factor from which a lost gain is costly.
const COSTLY: f64 = 1.05;

/// Converts a link rate; `None` above Gen6 and for widths that do not exist.
fn of(rate: LinkRate) -> Option<(Generation, Lanes)> {
    Some((Generation::from_number(rate.generation)?, Lanes::new(rate.width_lanes)?))
}

/// Rate in bytes per second of back-to-back writes with payloads of `mps`.
pub(crate) fn write_ceiling(rate: LinkRate, mps: Mps) -> Option<f64> {
    let (generation, lanes) = of(rate)?;
    Some(dma_write_ceiling(generation, lanes, mps)?.bytes_per_s())
}

/// Rate in bytes per second of reads: limited by the link or by the outstanding requests.
pub(crate) fn read_ceiling(rate: LinkRate, mps: Mps, tags: u16, mrrs: Mrrs, round_trip_ns: f64) -> Option<f64> {
    let (generation, lanes) = of(rate)?;
    let link = completion_ceiling(generation, lanes, mps)?.bytes_per_s();
    Some(link.min(outstanding_reads(tags, mrrs, round_trip_ns)?.bytes_per_s()))
}

/// Builds a gain in bytes per second; unknown if either rate is.
pub(crate) fn bytes_per_s(quantity: &str, now: Option<f64>, then: Option<f64>, assumes: String) -> Gain {
    match (now, then) {
        (Some(now), Some(then)) => {
            Gain::Computed { quantity: quantity.to_owned(), now, then, unit: Unit::BytesPerS, assumes }
        }
        _ => Gain::Unknown { because: "the model covers Gen1 to Gen6 and standard link widths only".to_owned() },
    }
}

/// Severity of a gain: costly from 5 % on, otherwise minor.
pub(crate) fn severity(gain: &Gain) -> Severity {
    if gain.factor().is_some_and(|factor| factor >= COSTLY) { Severity::Costly } else { Severity::Minor }
}

/// Gain of a faster link for payloads of `mps` in one direction.
pub(crate) fn link(now: LinkRate, then: LinkRate, mps: Option<Mps>) -> Gain {
    let Some(mps) = mps else {
        return Gain::Unknown { because: "the payload size was not seen".to_owned() };
    };
    let assumes = format!("back-to-back writes of {} B in one direction; {now} now, {then} after", mps.bytes());
    bytes_per_s("DMA ceiling", write_ceiling(now, mps), write_ceiling(then, mps), assumes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_of_five_percent_is_costly() {
        let gain = |then| bytes_per_s("x", Some(1.0), Some(then), String::new());
        assert_eq!((severity(&gain(1.05)), severity(&gain(1.049))), (Severity::Costly, Severity::Minor));
        assert_eq!(severity(&bytes_per_s("x", None, Some(1.0), String::new())), Severity::Minor);
    }

    #[test]
    fn rates_outside_the_tables_have_no_gain() {
        let mps = Mps::new(256).unwrap();
        assert!(write_ceiling(LinkRate { generation: 6, width_lanes: 16 }, mps).is_some());
        assert_eq!(write_ceiling(LinkRate { generation: 7, width_lanes: 16 }, mps), None);
        assert_eq!(write_ceiling(LinkRate { generation: 3, width_lanes: 3 }, mps), None);
    }
}
