//! One function of a bus tree.

use crate::index::CardIndex;
use lanemark_config_space::SimulatedFunction;
use lanemark_wire::config::{CapabilityId, ConfigSpace};

/// A function, whether the system knows it, and how firmware had set it up.
#[derive(Debug)]
pub(super) struct Seat {
    /// As it is now.
    pub(super) function: SimulatedFunction,
    /// As firmware left it.
    configured: SimulatedFunction,
    /// Which card, if it is one.
    pub(super) card: Option<CardIndex>,
    pub(super) is_known: bool,
    /// Whether it has lost its registers and nobody has set them since.
    is_blank: bool,
}

/// Command: memory and bus mastering. Source: PCI Express Base Specification 6.0, section 7.5.1.1.3.
const COMMAND: std::ops::Range<usize> = 0x04..0x06;
/// The six BARs. Source: section 7.5.1.2.1.
const BARS: std::ops::Range<usize> = 0x10..0x28;
/// Device Control, from the start of its capability, and what it holds after a reset: relaxed ordering and no snoop allowed, reads of
/// 512 B, writes of 128 B, and no error reported. Source: section 7.5.3.4.
const DEVICE_CONTROL: (usize, u16) = (0x08, 0x2810);
/// Link Status, and `Data Link Layer Link Active` in it. Source: section 7.5.3.8.
const LINK_ACTIVE: (usize, u16) = (0x12, 1 << 13);

impl Seat {
    pub(super) fn new(function: SimulatedFunction, card: Option<CardIndex>) -> Seat {
        Seat { configured: function.clone(), function, card, is_known: true, is_blank: false }
    }

    /// Its registers are as after a reset.
    pub(super) fn invalidate(&mut self) {
        self.function = self.configured.clone();
        self.is_blank = true;
        let bytes = &mut self.function.bytes;
        bytes[COMMAND].fill(0);
        bytes[BARS].fill(0);
        self.function.bars.clear();
        change_express(&mut self.function, DEVICE_CONTROL.0, |_| DEVICE_CONTROL.1);
    }

    /// The system finds it, and sets up what is blank.
    pub(super) fn configure(&mut self) {
        self.is_known = true;
        if std::mem::take(&mut self.is_blank) {
            self.function = self.configured.clone();
        }
    }

    /// As it is read when nobody answers.
    pub(super) fn silent(&self) -> SimulatedFunction {
        SimulatedFunction { bytes: vec![0xff; self.function.bytes.len()], ..self.function.clone() }
    }
}

/// The port says that its link is down.
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
