//! Address assignment: buses numbered depth first, and the windows of bridges.

use crate::bar::SimulatedBar;
use lanemark_platform::{LinkEnds, Platform, ROOT};
use lanemark_wire::FunctionId;
use lanemark_wire::config::{BusNumbers, PortType};

/// A range of addresses below a bridge: its first and last byte.
pub(super) type Window = Option<(u64, u64)>;

/// A function and its address, before its registers are written.
pub(super) struct Seat {
    pub(super) address: FunctionId,
    pub(super) port: String,
    pub(super) kind: PortType,
    /// Number of this port among the ports of its component.
    pub(super) number: u8,
    pub(super) generation: u32,
    pub(super) lanes: u32,
    /// The card whose slot this port leads to.
    pub(super) slot: Option<usize>,
    pub(super) buses: Option<BusNumbers>,
    pub(super) windows: Windows,
    pub(super) bars: Vec<SimulatedBar>,
}

/// The ranges below a bridge: at or below 4 GiB, and above.
#[derive(Clone, Copy, Default)]
pub(super) struct Windows {
    pub(super) low: Window,
    pub(super) high: Window,
}

const MIB: u64 = 1 << 20;

impl Windows {
    fn around(bars: &[SimulatedBar]) -> Windows {
        let mut all = Windows::default();
        for bar in bars {
            // Bridges decode whole MiB.
            let window = Some((bar.address / MIB * MIB, (bar.address + (bar.size_bytes - 1)) | (MIB - 1)));
            let one =
                if bar.is_64_bit() { Windows { high: window, low: None } } else { Windows { low: window, high: None } };
            all = all.with(one);
        }
        all
    }

    fn with(self, other: Windows) -> Windows {
        let both = |one: Window, other: Window| match (one, other) {
            (Some((start, end)), Some((from, to))) => Some((start.min(from), end.max(to))),
            (one, other) => one.or(other),
        };
        Windows { low: both(self.low, other.low), high: both(self.high, other.high) }
    }

    fn meets(self, other: Windows) -> bool {
        let meet = |one: Window, other: Window| match (one, other) {
            (Some((start, end)), Some((from, to))) => start <= to && from <= end,
            _ => false,
        };
        meet(self.low, other.low) || meet(self.high, other.high)
    }
}

/// The depth-first walk that assigns bus numbers to links.
pub(super) struct Walk<'a> {
    platform: &'a Platform,
    links: Vec<LinkEnds<'a>>,
    seats: Vec<Seat>,
    next_bus: u16,
}

impl<'a> Walk<'a> {
    pub(super) fn new(platform: &'a Platform) -> Walk<'a> {
        Walk { platform, links: platform.links(), seats: Vec::new(), next_bus: 1 }
    }

    /// Returns every function. Device 0 of bus 0 is reserved for the host bridge.
    pub(super) fn seats(mut self) -> Result<Vec<Seat>, String> {
        self.bus(ROOT, 0, 1)?;
        Ok(self.seats)
    }

    /// Assigns the ports of `above` to `bus`, from device `first` on, and everything below them.
    fn bus(&mut self, above: &str, bus: u8, first: u8) -> Result<Windows, String> {
        let links: Vec<LinkEnds<'a>> = self.links.iter().filter(|link| link.above == above).copied().collect();
        let mut all: Vec<(&str, Windows)> = Vec::new();
        for (place, link) in links.into_iter().enumerate() {
            let room = 32 - usize::from(first);
            if place >= room {
                return Err(format!("more than {room} links hang on {above}, and a bus has 32 devices"));
            }
            let windows = self.link(link, bus, first + place as u8)?;
            if let Some((other, _)) = all.iter().find(|(_, other)| windows.meets(*other)) {
                return Err(format!(
                    "BARs below {other} and {} share a MiB or lie between each other, and a window of a bridge is one \
                     range of whole MiB: choose other bar_shift_bytes",
                    link.below
                ));
            }
            all.push((link.below, windows));
        }
        Ok(all.into_iter().fold(Windows::default(), |sum, (_, windows)| sum.with(windows)))
    }

    /// Assigns both ends of a link, with the upper one on `bus`.
    fn link(&mut self, link: LinkEnds<'a>, bus: u8, device: u8) -> Result<Windows, String> {
        let upper = self.seats.len();
        let card = (0..).map_while(|card| self.platform.card_name(card)).position(|name| name == link.below);
        let switch = self.platform.switches.iter().find(|switch| switch.name == link.below);
        let kind = if link.above == ROOT { PortType::RootPort } else { PortType::DownstreamPort };
        let trained = match switch {
            Some(switch) => (switch.generation.value, switch.width_lanes.value),
            None => (self.platform.link.generation.value, self.platform.link.width_lanes.value),
        };
        let seat = |bus, device, port: String, kind| {
            let address = FunctionId::new(bus, device, 0).ok_or("a device number is below 32")?;
            let (generation, lanes) = trained;
            let (windows, bars) = (Windows::default(), Vec::new());
            let (slot, buses) = (None, None);
            Ok::<_, String>(Seat { address, port, kind, number: device, generation, lanes, slot, buses, windows, bars })
        };
        self.seats
            .push(Seat { slot: card.filter(|_| switch.is_none()), ..seat(bus, device, link.upper_port(), kind)? });
        let below = self.take_bus()?;
        let lower = self.seats.len();
        let windows = if switch.is_some() {
            self.seats.push(seat(below, 0, link.below.to_owned(), PortType::UpstreamPort)?);
            let inside = self.take_bus()?;
            let windows = self.bus(link.below, inside, 0)?;
            self.bridge(lower, below, inside, windows);
            windows
        } else {
            let bars = self.bars(card.unwrap_or(0))?;
            let windows = Windows::around(&bars);
            self.seats.push(Seat { bars, ..seat(below, 0, link.below.to_owned(), PortType::Endpoint)? });
            windows
        };
        self.bridge(upper, bus, below, windows);
        Ok(windows)
    }

    fn take_bus(&mut self) -> Result<u8, String> {
        let bus = u8::try_from(self.next_bus).map_err(|_| "it needs more than the 256 buses there are".to_owned())?;
        self.next_bus += 1;
        Ok(bus)
    }

    /// Sets the buses and windows of a bridge: its range holds every bus assigned since its own.
    fn bridge(&mut self, seat: usize, primary: u8, secondary: u8, windows: Windows) {
        let subordinate = (self.next_bus - 1) as u8;
        self.seats[seat].buses = Some(BusNumbers { primary, secondary, subordinate });
        self.seats[seat].windows = windows;
    }

    fn bars(&self, card: usize) -> Result<Vec<SimulatedBar>, String> {
        let shift = self.platform.slots.get(card).map_or(0, |slot| slot.bar_shift_bytes.value);
        let bars = self.platform.bars.iter().map(|bar| SimulatedBar {
            index: bar.index.value as u8,
            address: bar.address_bytes.value + shift,
            size_bytes: bar.size_bytes.value,
            prefetchable: bar.prefetchable.value,
        });
        let mut bars: Vec<SimulatedBar> = bars.collect();
        bars.sort_by_key(|bar| bar.index);
        for (place, bar) in bars.iter().enumerate() {
            let upper_half = bar.index + 1;
            let taken = bars.get(place + 1).is_some_and(|next| next.index == upper_half);
            if bar.is_64_bit() && (taken || upper_half > 5) {
                return Err(format!("BAR{} ends above 4 GiB and needs BAR{upper_half} for its upper half", bar.index));
            }
        }
        Ok(bars)
    }
}
