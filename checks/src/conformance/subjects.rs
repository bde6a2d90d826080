//! Machines to hold against the promises.

use super::{Opened, Subject, WATCHED_BYTES};
use lanemark_hw::HostMemory;
use lanemark_machine::Machine;
use lanemark_model::FormulaMachine;
use lanemark_platform::{Platform, preset};
use lanemark_sim::SimulatedMachine;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A built-in platform, simulated.
pub struct Simulation(pub &'static str);

/// The formulas of a built-in platform.
pub struct Formulas(pub &'static str);

/// The memory of this machine.
pub struct Host;

/// # Panics
/// If there is no such preset, or none that can be read: other tests say so too.
fn platform(name: &str) -> Platform {
    preset(name).unwrap_or_else(|| panic!("no platform {name}")).unwrap_or_else(|error| panic!("{error}"))
}

impl Subject for Simulation {
    fn name(&self) -> String {
        format!("{} (simulated)", self.0)
    }

    fn open(&self, interrupted: Arc<AtomicBool>) -> Box<dyn Opened> {
        let machine = SimulatedMachine::new(&platform(self.0)).unwrap_or_else(|error| panic!("{error}"));
        Box::new(machine.interrupted_by(interrupted))
    }
}

impl Opened for SimulatedMachine {
    fn machine(&mut self) -> &mut dyn Machine {
        self
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let name = self.facts().storage()?.name.clone();
        let mut bytes = vec![0; WATCHED_BYTES];
        self.board_mut().region_mut(&name)?.memory.read(0, &mut bytes);
        Some(bytes)
    }
}

impl Subject for Formulas {
    fn name(&self) -> String {
        format!("{} (formulas)", self.0)
    }

    fn open(&self, _interrupted: Arc<AtomicBool>) -> Box<dyn Opened> {
        let platform = platform(self.0);
        let simulated = SimulatedMachine::new(&platform).unwrap_or_else(|error| panic!("{error}"));
        Box::new(FormulaMachine::new(&platform, simulated.facts()))
    }

    fn takes_samples(&self) -> bool {
        false
    }
}

impl Opened for FormulaMachine {
    fn machine(&mut self) -> &mut dyn Machine {
        self
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        None
    }
}

impl Subject for Host {
    fn name(&self) -> String {
        "host".to_owned()
    }

    fn open(&self, interrupted: Arc<AtomicBool>) -> Box<dyn Opened> {
        let host = HostMemory::open().unwrap_or_else(|error| panic!("{error}"));
        Box::new(host.interrupted_by(interrupted))
    }
}

impl Opened for HostMemory {
    fn machine(&mut self) -> &mut dyn Machine {
        self
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        Some(HostMemory::bytes(self)[..WATCHED_BYTES].to_vec())
    }
}
