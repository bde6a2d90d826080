//! Requester and completer IDs.

use std::fmt;

/// Bus, device and function: the Requester ID and Completer ID of a TLP.
///
/// ```
/// use lanemark_wire::FunctionId;
/// let id = FunctionId::new(1, 0, 0).unwrap();
/// assert_eq!(id, FunctionId(0x0100));
/// assert_eq!(id.to_string(), "01:00.0");
/// assert_eq!(FunctionId::new(0, 32, 0), None); // the highest device number is 31
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FunctionId(pub u16);

impl FunctionId {
    /// The function `bus:device.function`; `None` if `device` is above 31 or `function` above 7.
    #[must_use]
    pub const fn new(bus: u8, device: u8, function: u8) -> Option<FunctionId> {
        if device < 32 && function < 8 {
            Some(FunctionId((bus as u16) << 8 | (device as u16) << 3 | function as u16))
        } else {
            None
        }
    }

    /// Bus number.
    #[must_use]
    pub const fn bus(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// Device number, 0 to 31. With ARI the device is 0 and these bits belong to the function.
    #[must_use]
    pub const fn device(self) -> u8 {
        (self.0 >> 3) as u8 & 0x1f
    }

    /// Function number, 0 to 7.
    #[must_use]
    pub const fn function(self) -> u8 {
        self.0 as u8 & 0x7
    }
}

impl fmt::Display for FunctionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}:{:02x}.{}", self.bus(), self.device(), self.function())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_round_trips() {
        for raw in 0..=u16::MAX {
            let id = FunctionId(raw);
            assert_eq!(FunctionId::new(id.bus(), id.device(), id.function()), Some(id));
        }
    }

    #[test]
    fn devices_end_at_31_and_functions_at_7() {
        assert_eq!(FunctionId::new(0xff, 31, 7), Some(FunctionId(0xffff)));
        assert_eq!(FunctionId::new(0, 32, 0), None);
        assert_eq!(FunctionId::new(0, 0, 8), None);
    }

    #[test]
    fn ids_are_printed_as_by_lspci() {
        assert_eq!(FunctionId(0x3b_fa).to_string(), "3b:1f.2");
    }
}
