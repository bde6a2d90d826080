//! The ceiling of a transfer: what the link allows, whatever the core does.

use crate::costs::Costs;
use lanemark_machine::Verb;
use lanemark_platform::Platform;
use lanemark_units::Rate;

/// A computed limit and how it was computed.
#[derive(Clone, Debug, PartialEq)]
pub struct Ceiling {
    /// Payload bytes per second that no transfer of this size exceeds.
    pub rate: Rate,
    /// Which numbers it was computed from.
    pub because: String,
}

/// The most payload a link carries in transfers of `size` bytes to or from the region named `region`.
///
/// `payload / time of its TLPs`, for the largest TLP that size and MPS allow: writes go downstream with
/// 3 or 4 DW headers, completions upstream with 3. DLLPs travel against the data and cost it nothing; SKP
/// ordered sets (about 0.3 %) are not subtracted, so the true limit lies a little lower.
/// `None` if the platform has no such region.
///
/// ```
/// use lanemark_machine::Verb;
/// let card = lanemark_platform::preset("tacc-stratix4").unwrap().unwrap();
/// let line = lanemark_model::ceiling(&card, "sram", Verb::Store, 64).unwrap();
/// // 64 B of payload in 88 B at 4 GB/s.
/// assert_eq!(line.rate.to_string(), "2.909 GB/s");
/// ```
#[must_use]
pub fn ceiling(platform: &Platform, region: &str, verb: Verb, size: u64) -> Option<Ceiling> {
    let region = platform.region(region)?;
    let costs = Costs::new(platform, region)?;
    let link = &platform.link;
    let payload = size.clamp(1, u64::from(link.mps_bytes.value));
    let rate = Rate::from_bytes_per_s(payload as f64 * 1e9 / costs.serialise(verb, payload))?;
    let (packet, direction) = match verb {
        Verb::Store => ("MWr", "downstream"),
        Verb::Load => ("CplD", "upstream"),
    };
    let because = format!(
        "Gen{} x{}, {packet} of {payload} B {direction}, MPS {} B",
        link.generation.value, link.width_lanes.value, link.mps_bytes.value
    );
    Some(Ceiling { rate, because })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_transfers_have_higher_ceilings_up_to_mps() {
        let card = lanemark_platform::preset("tacc-stratix4").unwrap().unwrap();
        let rate = |size| ceiling(&card, "sram", Verb::Store, size).unwrap().rate.bytes_per_s();
        assert!(rate(4) < rate(64) && rate(64) < rate(128));
        assert_eq!(rate(128), rate(4096), "MPS is 128 B here");
    }

    #[test]
    fn an_unknown_region_has_none() {
        let card = lanemark_platform::preset("tacc-stratix4").unwrap().unwrap();
        assert_eq!(ceiling(&card, "nowhere", Verb::Store, 64), None);
    }
}
