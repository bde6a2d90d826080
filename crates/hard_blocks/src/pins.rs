//! Ports of a design and their values.

/// A port of a design.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its width in bits.
    pub bits: u32,
    /// Whether the design reads it.
    pub is_input: bool,
}

/// The place of a port in [`Pins`]. A port that the design does not have has no bits: it is read as 0, and writing it has no
/// effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pin {
    start: usize,
    bits: u32,
}

impl Pin {
    /// Its width in bits; 0 if the design does not have it.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.bits
    }

    /// Its width in DWs, rounded up.
    #[must_use]
    pub const fn dws(self) -> usize {
        self.bits.div_ceil(32) as usize
    }
}

/// Values of all ports of a design. A value is a sequence of DWs, the lowest bits first.
///
/// ```
/// use lanemark_hard_blocks::{Pins, Port};
///
/// let port = |name: &str, bits| Port { name: name.to_owned(), bits, is_input: true };
/// let mut pins = Pins::new(vec![port("tvalid", 1), port("tdata", 64)]);
/// let data = pins.find("tdata");
/// pins.set(data, 0x1_0000_0002);
/// assert_eq!(pins.dws(data), [2, 1]);
/// assert_eq!(pins.find("tuser").bits(), 0);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Pins {
    ports: Vec<(Port, Pin)>,
    dws: Vec<u32>,
}

impl Pins {
    /// All ports with the value 0.
    #[must_use]
    pub fn new(ports: Vec<Port>) -> Pins {
        let mut pins = Pins::default();
        for port in ports {
            let pin = Pin { start: pins.dws.len(), bits: port.bits };
            pins.dws.resize(pin.start + pin.dws(), 0);
            pins.ports.push((port, pin));
        }
        pins
    }

    /// The ports in their order.
    #[must_use]
    pub fn ports(&self) -> &[(Port, Pin)] {
        &self.ports
    }

    /// A port by name; without bits if there is none.
    #[must_use]
    pub fn find(&self, name: &str) -> Pin {
        self.ports.iter().find(|(port, _)| port.name == name).map_or_else(Pin::default, |(_, pin)| *pin)
    }

    /// The value of a port.
    #[must_use]
    pub fn dws(&self, pin: Pin) -> &[u32] {
        &self.dws[pin.start..pin.start + pin.dws()]
    }

    /// The value of a port, to be changed; bits beyond its width stay 0.
    pub fn dws_mut(&mut self, pin: Pin) -> &mut [u32] {
        &mut self.dws[pin.start..pin.start + pin.dws()]
    }

    /// The lowest 64 bits of a port.
    #[must_use]
    pub fn get(&self, pin: Pin) -> u64 {
        match self.dws(pin) {
            [] => 0,
            [low] => u64::from(*low),
            [low, high, ..] => u64::from(*high) << 32 | u64::from(*low),
        }
    }

    /// Whether the lowest bit of a port is 1.
    #[must_use]
    pub fn is_set(&self, pin: Pin) -> bool {
        self.get(pin) & 1 != 0
    }

    /// Sets a port; bits that it does not have are left out, and higher ones become 0.
    pub fn set(&mut self, pin: Pin, value: u64) {
        let value = if pin.bits < 64 { value & ((1 << pin.bits) - 1) } else { value };
        match self.dws_mut(pin) {
            [] => {}
            [low] => *low = value as u32,
            [low, high, rest @ ..] => {
                (*low, *high) = (value as u32, (value >> 32) as u32);
                rest.fill(0);
            }
        }
    }

    /// Up to 32 bits of a port from bit `low` on; bits that it does not have are 0.
    #[must_use]
    pub fn field(&self, pin: Pin, low: u32, bits: u32) -> u32 {
        let dws = self.dws(pin);
        let dw = |at: usize| dws.get(at).copied().map_or(0, u64::from);
        let at = (low / 32) as usize;
        let two = dw(at + 1) << 32 | dw(at);
        (two >> (low % 32) & ((1 << bits) - 1)) as u32
    }

    /// Sets up to 32 bits of a port, which must be 0 before, from bit `low` on; bits that it does not have are ignored.
    pub fn set_field(&mut self, pin: Pin, low: u32, bits: u32, value: u32) {
        let value = u64::from(value) & ((1 << bits) - 1);
        let two = value << (low % 32);
        let last = pin.dws();
        let mask = if pin.bits.is_multiple_of(32) { u32::MAX } else { (1 << (pin.bits % 32)) - 1 };
        let dws = self.dws_mut(pin);
        for (at, part) in [two as u32, (two >> 32) as u32].into_iter().enumerate() {
            let at = (low / 32) as usize + at;
            if let Some(dw) = dws.get_mut(at) {
                *dw |= if at + 1 == last { part & mask } else { part };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pins() -> (Pins, Pin, Pin) {
        let port = |name: &str, bits| Port { name: name.to_owned(), bits, is_input: true };
        let pins = Pins::new(vec![port("one", 1), port("wide", 88), port("last", 32)]);
        let (wide, last) = (pins.find("wide"), pins.find("last"));
        (pins, wide, last)
    }

    #[test]
    fn a_field_crosses_a_dw_and_leaves_its_neighbours() {
        let (mut pins, wide, last) = pins();
        pins.set(last, u64::MAX);
        pins.set_field(wide, 30, 4, 0b1011);
        assert_eq!(pins.dws(wide), [0xC000_0000, 0b10, 0]);
        assert_eq!((pins.field(wide, 30, 4), pins.field(wide, 29, 1), pins.field(wide, 34, 32)), (0b1011, 0, 0));
        assert_eq!(pins.get(last), 0xFFFF_FFFF);
    }

    #[test]
    fn bits_that_a_port_does_not_have_are_left_out() {
        let (mut pins, wide, _) = pins();
        let (one, absent) = (pins.find("one"), pins.find("absent"));
        pins.set(one, 0b10);
        assert_eq!(pins.get(one), 0);
        pins.set(one, 0b11);
        assert_eq!(pins.get(one), 1);
        pins.set(absent, 7);
        pins.set_field(wide, 96, 8, 0xFF);
        pins.set_field(wide, 84, 8, 0xFF);
        assert_eq!((pins.get(absent), pins.field(wide, 96, 8), pins.get(wide)), (0, 0, 0));
        assert_eq!(pins.dws(wide)[2], 0xF0_0000);
    }
}
