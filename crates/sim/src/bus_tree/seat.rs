//! A function of a bus tree.

use crate::index::CardIndex;
use lanemark_config_space::SimulatedFunction;
use lanemark_wire::config::{CapabilityId, ConfigSpace};

/// A function, whether the system knows it, and its configuration by firmware.
#[derive(Debug)]
pub(super) struct Seat {
    /// Current state.
    pub(super) function: SimulatedFunction,
    /// State after firmware configuration.
    configured: SimulatedFunction,
    /// The card, if it is one.
    pub(super) card: Option<CardIndex>,
    pub(super) is_known: bool,
    /// Whether its registers were reset and have not been configured since.
    is_blank: bool,
}

/// Command: memory space and bus mastering. Source: PCI Express Base Specification 6.0, section 7.5.1.1.3.
const COMMAND: std::ops::Range<usize> = 0x04..0x06;
/// The six BARs. Source: section 7.5.1.2.1.
const BARS: std::ops::Range<usize> = 0x10..0x28;
/// Offset of Device Control in its capability, and its reset value: relaxed ordering and no snoop enabled, reads of
/// 512 B, writes of 128 B, and no error reporting. Source: section 7.5.3.4.
const DEVICE_CONTROL: (usize, u16) = (0x08, 0x2810);
/// Offset of Link Status, and `Data Link Layer Link Active`. Source: section 7.5.3.8.
const LINK_ACTIVE: (usize, u16) = (0x12, 1 << 13);

impl Seat {
    pub(super) fn new(function: SimulatedFunction, card: Option<CardIndex>) -> Seat {
        Seat { configured: function.clone(), function, card, is_known: true, is_blank: false }
    }

    /// Resets its registers.
    pub(super) fn invalidate(&mut self) {
        self.function = self.configured.clone();
        self.is_blank = true;
        let bytes = &mut self.function.bytes;
        bytes[COMMAND].fill(0);
        bytes[BARS].fill(0);
        self.function.bars.clear();
        change_express(&mut self.function, DEVICE_CONTROL.0, |_| DEVICE_CONTROL.1);
    }

    /// Makes the function known, and configures it after a reset.
    pub(super) fn configure(&mut self) {
        self.is_known = true;
        if std::mem::take(&mut self.is_blank) {
            self.function = self.configured.clone();
        }
    }

    /// Returns its registers as read when it does not answer.
    pub(super) fn silent(&self) -> SimulatedFunction {
        SimulatedFunction { bytes: vec![0xff; self.function.bytes.len()], ..self.function.clone() }
    }
}

/// Clears Link Active of a port whose link is down.
pub(super) fn clear_link_active(port: &mut SimulatedFunction) {
    change_express(port, LINK_ACTIVE.0, |status| status & !LINK_ACTIVE.1);
}

/// Changes 16 bits of the PCI Express capability, which every simulated function has.
fn change_express(function: &mut SimulatedFunction, offset: usize, to: impl FnOnce(u16) -> u16) {
    let Ok(capability) = ConfigSpace::new(&function.bytes).capability(CapabilityId::PCI_EXPRESS) else { return };
    let at = usize::from(capability.offset()) + offset;
    if let Some([low, high]) = function.bytes.get_mut(at..at + 2) {
        [*low, *high] = to(u16::from_le_bytes([*low, *high])).to_le_bytes();
    }
}
