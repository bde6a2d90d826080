//! Every function of a platform, and its configuration space as the text that `lspci -F` reads.

use crate::bar::SimulatedBar;
use crate::walk::Walk;
use lanemark_platform::Platform;
use lanemark_wire::FunctionId;
use lanemark_wire::config::PortType;
use std::fmt::Write as _;

/// Vendor ID of simulated functions; the list of PCI IDs assigns it to nobody.
pub const VENDOR_ID: u16 = 0xfade;

/// The reason why a platform has no configuration space.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("platform {platform} has no configuration space: {because}")]
pub struct ConfigSpaceError {
    /// Name of the platform.
    pub platform: String,
    /// The reason, for a person.
    pub because: String,
}

/// One function of a simulated platform.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SimulatedFunction {
    /// Bus, device and function.
    pub address: FunctionId,
    /// The port of the platform, by its name in [`Platform::port_names`].
    pub port: String,
    /// Type of the port.
    pub kind: PortType,
    /// Its BARs, with the sizes that `bytes` cannot hold.
    pub bars: Vec<SimulatedBar>,
    /// Its configuration space, 4096 bytes.
    pub bytes: Vec<u8>,
}

/// Returns every function of `platform`, sorted by address.
///
/// # Errors
/// [`ConfigSpaceError`] if the platform has too many functions for its buses and devices, or BARs that share the
/// window of a bridge.
///
/// ```
/// use lanemark_wire::config::ConfigSpace;
/// let rosta = lanemark_platform::preset("rosta-virtex7").unwrap().unwrap();
/// let functions = lanemark_config_space::functions(&rosta).unwrap();
/// let card = functions.iter().find(|function| function.port == "fpga0").unwrap();
/// assert_eq!(card.address.to_string(), "05:00.0");
/// assert_eq!(ConfigSpace::new(&card.bytes).pcie().unwrap().max_payload(), Ok(128));
/// ```
pub fn functions(platform: &Platform) -> Result<Vec<SimulatedFunction>, ConfigSpaceError> {
    let fail = |because: String| ConfigSpaceError { platform: platform.name.clone(), because };
    let mut seats = Walk::new(platform).seats().map_err(fail)?;
    seats.sort_by_key(|seat| seat.address);
    let functions = seats.iter().map(|seat| {
        let bytes =
            seat.bytes(platform).map_err(|error| fail(format!("{} at {}: {error}", seat.port, seat.address)))?;
        let (port, bars) = (seat.port.clone(), seat.bars.clone());
        Ok(SimulatedFunction { address: seat.address, port, kind: seat.kind, bars, bytes })
    });
    functions.collect()
}

/// Formats functions as `lspci -n -xxxx` does, with the sizes of BARs as `-v` prints them. `lspci -F` reads the text.
/// A comment before each function names its port.
#[must_use]
pub fn lspci_text(functions: &[SimulatedFunction]) -> String {
    let mut text = String::new();
    for function in functions {
        let (class, device) = (class_of(function.kind), device_id_of(function.kind));
        let _ = writeln!(text, "# port {}", function.port);
        let _ = writeln!(text, "{} {:04x}: {VENDOR_ID:04x}:{device:04x}", function.address, class >> 8);
        for bar in &function.bars {
            let (bits, non) = (if bar.is_64_bit() { 64 } else { 32 }, if bar.prefetchable { "" } else { "non-" });
            let size = size_as_lspci(bar.size_bytes);
            let _ = writeln!(
                text,
                "\tRegion {}: Memory at {:08x} ({bits}-bit, {non}prefetchable) [size={size}]",
                bar.index, bar.address
            );
        }
        for (row, bytes) in function.bytes.chunks(16).enumerate() {
            let _ = write!(text, "{:02x}:", 16 * row);
            for byte in bytes {
                let _ = write!(text, " {byte:02x}");
            }
            text.push('\n');
        }
        text.push('\n');
    }
    text
}

/// Formats a size such as `16M`, with the largest unit that leaves a whole number.
fn size_as_lspci(bytes: u64) -> String {
    let (mut left, mut unit) = (bytes, 0);
    while left >= 1024 && left.is_multiple_of(1024) && unit < 4 {
        left /= 1024;
        unit += 1;
    }
    format!("{left}{}", ["", "K", "M", "G", "T"][unit])
}

/// Returns the class code of a function: section 1 of the PCI Code and ID Assignment Specification 1.15.
pub(crate) const fn class_of(kind: PortType) -> u32 {
    // A processing accelerator; a PCI-to-PCI bridge.
    if matches!(kind, PortType::Endpoint) { 0x12_00_00 } else { 0x06_04_00 }
}

pub(crate) const fn device_id_of(kind: PortType) -> u16 {
    match kind {
        PortType::RootPort => 0x0001,
        PortType::UpstreamPort => 0x0002,
        PortType::DownstreamPort => 0x0003,
        _ => 0x1000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_platform::{PRESETS, Param, ROOT, Slot, preset};
    use lanemark_wire::config::ConfigSpace;

    fn rosta() -> Platform {
        preset("rosta-virtex7").unwrap().unwrap()
    }

    fn presets() -> impl Iterator<Item = Platform> {
        PRESETS.iter().map(|row| preset(row.name).unwrap().unwrap())
    }

    /// Replaces the cards of a platform by `count` cards below one port, with BARs a MiB apart.
    fn cards(mut platform: Platform, below: &str, count: u64) -> Platform {
        let first = platform.slots[0].bar_shift_bytes.clone();
        let slot = |number: u64| Slot {
            name: format!("card{number}"),
            below: below.to_owned(),
            bar_shift_bytes: Param { value: number << 24, ..first.clone() },
        };
        platform.slots = (0..count).map(slot).collect();
        platform.switches.retain(|switch| switch.name == below);
        platform
    }

    #[test]
    fn buses_are_numbered_depth_first() {
        let functions = functions(&rosta()).unwrap();
        let at = |port: &str| functions.iter().find(|function| function.port == port).unwrap().address.to_string();
        let ports =
            ["root/rha25", "rha25", "rha25/rc47a", "rc47a", "rc47a/fpga3", "fpga3", "rha25/rc47b", "rc47b", "fpga7"];
        let seen = ports.map(at);
        assert_eq!(
            seen,
            ["00:01.0", "01:00.0", "02:00.0", "03:00.0", "04:03.0", "08:00.0", "02:01.0", "09:00.0", "0e:00.0"]
        );
        assert_eq!(functions.len(), 22);
    }

    #[test]
    fn the_windows_of_a_bridge_cover_exactly_the_bars_below_it() {
        for platform in presets() {
            let functions = functions(&platform).unwrap();
            for bridge in functions.iter().filter(|function| function.kind != PortType::Endpoint) {
                let space = ConfigSpace::new(&bridge.bytes);
                let (buses, windows) = (space.bus_numbers().unwrap(), space.windows().unwrap());
                assert_eq!((buses.primary, windows.io), (bridge.address.bus(), None));
                for card in functions.iter().filter(|function| function.kind == PortType::Endpoint) {
                    let is_below = (buses.secondary..=buses.subordinate).contains(&card.address.bus());
                    for bar in &card.bars {
                        let window = if bar.is_64_bit() { &windows.prefetchable } else { &windows.memory };
                        let [first, last] = [bar.address, bar.address + bar.size_bytes - 1];
                        let holds = |at| window.as_ref().is_some_and(|window| window.contains(&at));
                        assert_eq!([holds(first), holds(last)], [is_below; 2], "{} to {}", bridge.port, card.port);
                    }
                }
            }
        }
    }

    #[test]
    fn configuration_space_decodes_to_the_values_of_the_platform() {
        for platform in presets() {
            for function in functions(&platform).unwrap() {
                let space = ConfigSpace::new(&function.bytes);
                assert_eq!(space.chain_faults().count(), 0);
                assert_eq!(space.vendor_id(), Ok(VENDOR_ID));
                let pcie = space.pcie().unwrap();
                assert_eq!(pcie.port_type(), Ok(function.kind));
                assert_eq!(pcie.max_payload(), Ok(platform.mps_bytes_of(&function.port)));
                assert_eq!(pcie.max_payload_supported(), Ok(platform.mps_supported_bytes_of(&function.port)));
                assert_eq!(pcie.link_speed(), pcie.max_link_speed());
                let bars: Vec<(u8, u64, bool)> =
                    space.bars().map(|bar| (bar.index, bar.address(), bar.prefetchable)).collect();
                let meant: Vec<(u8, u64, bool)> =
                    function.bars.iter().map(|bar| (bar.index, bar.address, bar.prefetchable)).collect();
                assert_eq!(bars, meant);
            }
        }
    }

    #[test]
    fn a_function_supports_as_many_tags_as_its_engine_uses() {
        let card = preset("card-gen5-x16").unwrap().unwrap();
        let bits = |tags: f64| {
            let origin = lanemark_platform::Origin::Given("a test".to_owned());
            let functions = functions(&card.with("dma.tags", tags, origin).unwrap()).unwrap();
            ConfigSpace::new(&functions[1].bytes).tag_bits().unwrap().tags()
        };
        assert_eq!(
            [bits(1.0), bits(32.0), bits(33.0), bits(256.0), bits(257.0), bits(768.0)],
            [32, 32, 256, 256, 768, 768]
        );
        // With ATS, a channel has 16 tags for descriptors, and one more for Translation Requests.
        let asks = preset("card-gen5-x16-iommu").unwrap().unwrap();
        let origin = || lanemark_platform::Origin::Given("a test".to_owned());
        let asks = asks.with("dma.ats_entries", 1.0, origin()).unwrap();
        let bits = |tags: f64| {
            let functions = functions(&asks.with("dma.tags", tags, origin()).unwrap()).unwrap();
            ConfigSpace::new(&functions[1].bytes).tag_bits().unwrap().tags()
        };
        assert_eq!([bits(15.0), bits(16.0), bits(239.0), bits(240.0)], [32, 256, 256, 768]);
    }

    #[test]
    fn only_a_card_with_an_atc_has_the_ats_capability() {
        let iommu = preset("card-gen5-x16-iommu").unwrap().unwrap();
        for (entries, has_ats) in [(0.0, false), (1.0, true)] {
            let origin = lanemark_platform::Origin::Given("a test".to_owned());
            let functions = functions(&iommu.with("dma.ats_entries", entries, origin).unwrap()).unwrap();
            let said = functions.iter().map(|function| ConfigSpace::new(&function.bytes).address_translation().ok());
            assert_eq!(said.collect::<Vec<_>>(), [None, has_ats.then_some(true)]);
        }
    }

    #[test]
    fn more_cards_than_devices_of_a_bus_are_rejected() {
        for (below, most) in [(ROOT, 31), ("rha25", 32)] {
            assert!(functions(&cards(rosta(), below, most)).is_ok());
            let error = functions(&cards(rosta(), below, most + 1)).unwrap_err();
            assert_eq!(error.because, format!("more than {most} links hang on {below}, and a bus has 32 devices"));
        }
    }

    #[test]
    fn more_than_256_buses_are_rejected() {
        // Seven switches with 32 cards take 34 buses each; the eighth takes two, and one for each of its cards.
        let with = |last: u64| {
            let mut platform = cards(rosta(), "rha25", 7 * 32 + last);
            let switch = platform.switches[0].clone();
            platform.switches = (0..8)
                .map(|number| lanemark_platform::Switch {
                    name: format!("s{number}"),
                    below: ROOT.to_owned(),
                    ..switch.clone()
                })
                .collect();
            for (number, slot) in platform.slots.iter_mut().enumerate() {
                slot.below = format!("s{}", number / 32);
            }
            functions(&platform)
        };
        assert_eq!(with(15).unwrap().last().unwrap().address.bus(), 255);
        assert!(with(16).unwrap_err().because.ends_with("more than the 256 buses there are"));
    }

    #[test]
    fn a_bar_above_4_gib_takes_two_registers() {
        let bar = |address, size_bytes| SimulatedBar { index: 0, address, size_bytes, prefetchable: false };
        assert!(!bar(0xf000_0000, 0x1000_0000).is_64_bit());
        assert!(bar(0x1_0000_0000, 16).is_64_bit() && bar(0, 0x2_0000_0000).is_64_bit());
        let mut card = preset("card-gen5-x16").unwrap().unwrap();
        card.bars[1].index.value = 1;
        let error = functions(&card).unwrap_err();
        assert_eq!(error.because, "BAR0 ends above 4 GiB and needs BAR1 for its upper half");
        card.bars[1].index.value = 4;
        assert!(functions(&card).is_ok());
        card.bars[1].index.value = 5;
        assert_eq!(functions(&card).unwrap_err().because, "BAR5 ends above 4 GiB and needs BAR6 for its upper half");
    }

    #[test]
    fn bars_of_two_cards_in_one_mib_are_rejected() {
        let apart = |shift: u64| {
            let mut platform = rosta();
            platform.bars[0].size_bytes.value = 1 << 16;
            for (number, slot) in (0..).zip(&mut platform.slots) {
                slot.bar_shift_bytes.value = number * shift;
            }
            functions(&platform)
        };
        assert!(apart(1 << 20).is_ok());
        assert!(apart(1 << 19).unwrap_err().because.starts_with("BARs below fpga0 and fpga1 share a MiB"));
    }
}
