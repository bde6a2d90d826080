//! Errors detected by a port, in the Advanced Error Reporting registers of its function.

use crate::function::SimulatedFunction;
use lanemark_wire::config::aer::ADVANCED_ERROR_REPORTING as AER;
use lanemark_wire::config::{AerError, CapabilityId, ConfigSpace, Spot};

/// An error logged in the registers of a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoggedError {
    /// The port, by its name in the platform.
    pub port: String,
    /// The error.
    pub error: AerError,
    /// The header of the offending TLP, first four DWs, where ports log it.
    pub header_log: Option<[u32; 4]>,
}

impl LoggedError {
    /// Appends this error to `so_far`, unless its bit is set already.
    pub fn log(self, so_far: &mut Vec<LoggedError>) {
        if !so_far.iter().any(|other| (&other.port, other.error) == (&self.port, self.error)) {
            so_far.push(self);
        }
    }
}

const HEADER_LOG: [Spot; 4] = [
    Spot::of(&AER, "HeaderLog 0", "HeaderLog 0"),
    Spot::of(&AER, "HeaderLog 1", "HeaderLog 1"),
    Spot::of(&AER, "HeaderLog 2", "HeaderLog 2"),
    Spot::of(&AER, "HeaderLog 3", "HeaderLog 3"),
];

impl SimulatedFunction {
    /// Sets the status bits of these errors, the oldest first. First Error Pointer and Header Log belong to the first
    /// uncorrectable one.
    pub fn show(&mut self, errors: &[LoggedError]) {
        let mut is_first = true;
        for logged in errors {
            if logged.port != self.port {
                continue;
            }
            let raw = u64::from(logged.error.status().raw);
            if logged.error.is_correctable() {
                self.change(const { Spot::of(&AER, "CESta", "RxErr") }, |register| register | raw);
                continue;
            }
            self.change(const { Spot::of(&AER, "UESta", "DLP") }, |register| register | raw);
            if std::mem::take(&mut is_first) {
                let pointer = const { Spot::of(&AER, "AERCap", "First Error Pointer") };
                self.change(pointer, |register| pointer.field.put(register, logged.error.row().bit.into()));
                for (spot, dw) in HEADER_LOG.into_iter().zip(logged.header_log.unwrap_or_default()) {
                    self.change(spot, |_| dw.into());
                }
            }
        }
    }

    /// Changes a register of the Advanced Error Reporting capability, if the function has one.
    pub fn change(&mut self, spot: Spot, to: impl FnOnce(u64) -> u64) {
        let space = ConfigSpace::new(&self.bytes);
        let Ok(capability) = space.capability(CapabilityId::ADVANCED_ERROR_REPORTING) else { return };
        let Ok(now) = capability.region().register(spot) else { return };
        let at = usize::from(capability.offset() + spot.register.offset);
        let bytes = (to(now) as u32).to_le_bytes();
        if let Some(register) = self.bytes.get_mut(at..at + bytes.len()) {
            register.copy_from_slice(&bytes);
        }
    }
}
