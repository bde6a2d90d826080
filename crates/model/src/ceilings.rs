//! Ceilings of transfers: limits that no transfer exceeds.

use crate::ceiling::Ceiling;
use crate::costs::Costs;
use crate::kernel::compute_ceiling;
use crate::transfer;
use lanemark_machine::{Partner, Pattern, Rated, Relay, Transfer, Verb, Window};
use lanemark_platform::Platform;
use lanemark_units::Rate;
use lanemark_wire::{Generation, Lanes, tlp_ticks, tlp_wire_bytes};

/// The most bytes a second that loads or stores of `size` bytes move to or from the region named `region`:
/// the smaller of what the link carries and what the region's data path takes.
///
/// The link: `payload / time of its TLP`, for the largest TLP that a core makes of this size, at most a
/// line of 64 B and MPS; writes go downstream with 3 or 4 DW headers, completions upstream with 3. DLLPs
/// travel against the data and cost it nothing; SKP ordered sets (about 0.3 %) are not subtracted, so the
/// true limit lies a little lower. The region: `payload / beats of it`.
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
    let payload = size.clamp(1, LINE.min(u64::from(link.mps_bytes.value)));
    let rate = |ns: f64| Rate::from_bytes_per_s(payload as f64 * 1e9 / ns);
    let on_link = rate(costs.serialise(verb, payload))?;
    let (packet, direction) = packet(verb);
    let trained = format!("Gen{} x{}", link.generation.value, link.width_lanes.value);
    let at_region = rate(costs.beats(payload)).filter(|at_region| *at_region < on_link);
    let because = match at_region {
        Some(_) => format!(
            "data path of region {}, {} B every {}; {trained} would carry {on_link}",
            region.name, region.beat_bytes.value, region.beat_ns.value
        ),
        None => format!("{trained}, {packet} of {payload} B {direction}"),
    };
    Some(Ceiling { rate: at_region.unwrap_or(on_link), because })
}

/// The most bytes a second that loads or stores of `size` bytes move over a link of which nothing else is known: the same
/// packets as for [`ceiling`], without a region behind it. MPS is 128 B or more, so a line always fits.
///
/// `address` is that of the transfer; one above 4 GiB makes the header of a write a DW longer.
///
/// ```
/// use lanemark_machine::Verb;
/// use lanemark_wire::{Generation, Lanes};
/// let line = lanemark_model::link_ceiling(Generation::Gen2, Lanes::X8, 0xfe80_0000, Verb::Store, 4096).unwrap();
/// // 64 B of payload in 84 B at 4 GB/s.
/// assert_eq!(line.rate.to_string(), "3.048 GB/s");
/// ```
#[must_use]
pub fn link_ceiling(generation: Generation, lanes: Lanes, address: u64, verb: Verb, size: u64) -> Option<Ceiling> {
    let payload = size.clamp(1, LINE);
    let (packet, direction) = packet(verb);
    let header_dw = if verb == Verb::Store && address > u64::from(u32::MAX) { 4 } else { 3 };
    let wire = tlp_wire_bytes(generation, header_dw, payload as u32, false);
    let rate = Rate::over(payload, tlp_ticks(generation, lanes, wire))?;
    Some(Ceiling {
        rate,
        because: format!("Gen{} x{}, {packet} of {payload} B {direction}", generation.number(), lanes.count()),
    })
}

/// The most bytes a second that transfers like this one move by a device itself: the bytes of one of them over the time
/// of its packets on the slowest link between both ends. `None` if the platform has no such device or end.
///
/// The packets are those into which MPS, the device, the page and the first byte cut a transfer; for reads, the
/// completions. DLLPs of other traffic and SKP ordered sets are not subtracted, so the true limit lies a little lower.
///
/// ```
/// use lanemark_machine::{Partner, Pattern, Transfer, Verb, Window};
/// let card = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
/// let window = Window { offset: 0, len: 1 << 20, pattern: Pattern::Sequential };
/// let write = Transfer { card: 0, verb: Verb::Store, partner: Partner::Host, bytes: 4096, count: 1, window, outstanding: None };
/// // 512 B of payload in 536 B at 63.015 GB/s.
/// assert_eq!(lanemark_model::transfer_ceiling(&card, &write).unwrap().rate.to_string(), "60.194 GB/s");
/// ```
#[must_use]
pub fn transfer_ceiling(platform: &Platform, transfer: &Transfer) -> Option<Ceiling> {
    transfer::ceiling(platform, transfer)
}

/// The most bytes a second that copies of `bytes` bytes by a runtime move, as the program sees them: a store goes to the card. The first
/// channel of its DMA engine moves them, as [`transfer_ceiling`] says of one from the beginning of a page. `None` without an engine.
///
/// ```
/// use lanemark_machine::Verb;
/// let card = lanemark_platform::preset("card-stratix10mx").unwrap().unwrap();
/// // 256 B of a completion in 276 B at 15.754 GB/s.
/// assert_eq!(lanemark_model::copy_ceiling(&card, Verb::Store, 1 << 20).unwrap().rate.to_string(), "14.612 GB/s");
/// ```
#[must_use]
pub fn copy_ceiling(platform: &Platform, verb: Verb, bytes: u64) -> Option<Ceiling> {
    // The card reads what a program stores.
    let verb = if verb == Verb::Store { Verb::Load } else { Verb::Store };
    let window = Window { offset: 0, len: bytes, pattern: Pattern::Sequential };
    transfer_ceiling(
        platform,
        &Transfer { card: 0, verb, partner: Partner::Host, bytes, count: 1, window, outstanding: None },
    )
}

/// The most bytes a second that transfers like these move together, each at the same rate: no link carries more than its
/// share of each flow. `None` where one of them has no ceiling.
#[must_use]
pub fn shared_ceiling(platform: &Platform, transfers: &[Transfer]) -> Option<Ceiling> {
    transfer::shared_ceiling(platform, transfers)
}

/// The most bytes a second that pass a relay from end to end: those of its slowest hop, each as [`transfer_ceiling`]. Hops that share
/// a link may leave each other less. `None` where one of them has no ceiling.
#[must_use]
pub fn relay_ceiling(platform: &Platform, relay: &Relay) -> Option<Ceiling> {
    let hops =
        relay.transfers().iter().map(|transfer| transfer_ceiling(platform, transfer)).collect::<Option<Vec<_>>>()?;
    hops.into_iter().min_by(|one, other| one.rate.bytes_per_s().total_cmp(&other.rate.bytes_per_s()))
}

/// The most bytes a second of this work. `None` where the platform has no such device, or no region with these bytes.
#[must_use]
pub fn rate_ceiling(platform: &Platform, rated: &Rated<'_>) -> Option<Ceiling> {
    match rated {
        Rated::Computation(work) => compute_ceiling(platform, work),
        Rated::Copies { verb, bytes } => copy_ceiling(platform, *verb, *bytes),
        Rated::Relay(relay) => relay_ceiling(platform, relay),
        Rated::Transfers(transfers) => match transfers.as_slice() {
            [transfer] => transfer_ceiling(platform, transfer),
            several => shared_ceiling(platform, several),
        },
        Rated::Accesses { verb, at, bytes } => {
            let region = platform.region_at(at.bar, at.offset, *bytes)?;
            ceiling(platform, &region.name, *verb, *bytes)
        }
    }
}

/// The link that carries the payload, and its direction.
const fn packet(verb: Verb) -> (&'static str, &'static str) {
    match verb {
        Verb::Store => ("MWr", "downstream"),
        Verb::Load => ("CplD", "upstream"),
    }
}

/// The most payload one load or store makes, a write-combining buffer or a cache line too.
const LINE: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_transfers_have_higher_ceilings_up_to_a_line() {
        let card = lanemark_platform::preset("tacc-stratix4").unwrap().unwrap();
        let rate = |size| ceiling(&card, "sram", Verb::Store, size).unwrap().rate.bytes_per_s();
        assert!(rate(4) < rate(63) && rate(63) < rate(64));
        assert_eq!(rate(64), rate(4096), "no store makes a larger packet");
    }

    #[test]
    fn the_slower_of_link_and_region_is_the_ceiling_and_is_named() {
        let card = lanemark_platform::preset("aws-f1").unwrap().unwrap();
        let limit = ceiling(&card, "ddr", Verb::Store, 4096).unwrap();
        assert!(limit.because.starts_with("data path of region ddr, 64 B every 33.9"), "{}", limit.because);
        assert!((limit.rate.bytes_per_s() / 1.887e9 - 1.0).abs() < 1e-3);
        let card = lanemark_platform::preset("tacc-stratix4").unwrap().unwrap();
        assert_eq!(ceiling(&card, "sram", Verb::Store, 4096).unwrap().because, "Gen2 x8, MWr of 64 B downstream");
    }

    #[test]
    fn an_unknown_region_has_none() {
        let card = lanemark_platform::preset("tacc-stratix4").unwrap().unwrap();
        assert_eq!(ceiling(&card, "nowhere", Verb::Store, 64), None);
    }
}
