//! Numbers of the PCIe standard in expressions of derived figures.
//!
//! | name | number |
//! | --- | --- |
//! | `wire:3:64` | share of the payload in a TLP on the wire with 3 DW of header and 64 B, in percent, for the generation of the platform's link |
//! | `lane:2` | information rate of a lane of Gen2: transfers per second without the line code, in Gbit/s |

use lanemark_platform::Platform;
use lanemark_wire::{Generation, tlp_wire_bytes};

/// The number with the name `id`; `None` if `id` is no such name, or needs a platform that is absent.
pub(crate) fn number(platform: Option<&Platform>, id: &str) -> Option<f64> {
    let (kind, of) = id.split_once(':')?;
    match kind {
        "wire" => wire_share(platform?, of),
        "lane" => lane_rate(of),
        _ => None,
    }
}

/// Share of the payload in a TLP, in percent; `of` is header DWs and payload bytes, such as `3:64`.
fn wire_share(platform: &Platform, of: &str) -> Option<f64> {
    let (header_dw, payload) = of.split_once(':')?;
    let (header_dw, payload): (u8, u32) = (header_dw.parse().ok()?, payload.parse().ok()?);
    let generation = Generation::from_number(u8::try_from(platform.link.generation.value).ok()?)?;
    Some(100.0 * f64::from(payload) / f64::from(tlp_wire_bytes(generation, header_dw, payload, false)))
}

/// Information rate of a lane in Gbit/s; `of` is the number of a generation.
fn lane_rate(of: &str) -> Option<f64> {
    let rate = Generation::from_number(of.parse().ok()?)?.rate();
    let share = f64::from(rate.payload_bits) / f64::from(rate.line_bits);
    Some(f64::from(rate.megatransfers_per_s) / 1e3 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_have_the_rates_of_their_generations() {
        assert_eq!(number(None, "lane:1"), Some(2.0));
        assert_eq!(number(None, "lane:2"), Some(4.0));
        let gen3 = number(None, "lane:3").unwrap();
        assert!((gen3 - 8.0 * 128.0 / 130.0).abs() < 1e-12, "{gen3}");
        assert_eq!(number(None, "lane:0"), None);
        assert_eq!(number(None, "lane:7"), None);
        assert_eq!(number(None, "lane"), None);
    }

    #[test]
    fn a_share_needs_a_platform_and_a_header() {
        let platform = lanemark_platform::preset("tacc-stratix4").unwrap().unwrap();
        let share = number(Some(&platform), "wire:3:64").unwrap();
        assert!((share - 100.0 * 64.0 / 84.0).abs() < 1e-12, "{share}");
        assert_eq!(number(None, "wire:3:64"), None);
        assert_eq!(number(Some(&platform), "wire:64"), None);
        assert_eq!(number(Some(&platform), "R12:1"), None);
    }
}
