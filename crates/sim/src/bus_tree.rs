//! A platform as its operating system sees it: the known functions, their registers, and the error log.
//!
//! Software operations on a running machine are here: writing a mask, removing a function, reprogramming a card,
//! rescanning a bus. Link traffic belongs to a [`Board`], whose ports detect errors. Configuration requests are not
//! TLPs of the board; a card answers them or not ([`Board::answers_config`]).
//!
//! An error sets its status bit, masked or not. If it is not masked and its function may report it, its message
//! reaches the log, and it becomes the First Error if there was none. TLP headers are not kept.
//!
//! Source: PCI Express Base Specification 6.0, sections 6.2.4 to 6.2.6 (which errors are reported), 7.5.3.4 (Device Control).

use crate::board::Board;
use crate::error::BoardError;
use crate::index::CardIndex;
use crate::noticed::Noticed;
use crate::tlp::TlpKind;
use lanemark_config_space::{ConfigSpaceError, LoggedError, SimulatedFunction, functions};
use lanemark_platform::{Platform, RegionKind};
use lanemark_units::Ticks;
use lanemark_wire::FunctionId;
use lanemark_wire::config::pcie::PCI_EXPRESS;
use lanemark_wire::config::{AerError, AerRegister, CapabilityId, ConfigSpace, PortType, Severity, Spot};
use std::fmt;

mod seat;

use seat::Seat;

/// An error whose message has reached the log of the operating system.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reported {
    /// The reporting function.
    pub function: FunctionId,
    /// Its port, by its name in the platform.
    pub port: String,
    /// The error.
    pub error: AerError,
    /// Time of the error.
    pub at: Ticks,
}

impl fmt::Display for Reported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = self.error.row();
        write!(
            f,
            "{} ({}): PCIe Bus Error: severity={}, type={}, [{}] {} ({})",
            self.function,
            self.port,
            row.severity.name(),
            row.layer.name(),
            row.bit,
            row.name,
            row.full_name
        )
    }
}

/// The result of a load of four bytes from a card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loaded {
    /// Bus address.
    pub address: u64,
    /// The bytes; `None` if there was no data, so that the core reads all ones.
    pub bytes: Option<[u8; 4]>,
    /// Latency of the load.
    pub took: Ticks,
}

/// Why an operation on a bus tree fails.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BusTreeError {
    /// The platform has no board.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// The platform has no configuration space.
    #[error(transparent)]
    ConfigSpace(#[from] ConfigSpaceError),
    /// The operating system does not know the function.
    #[error("the system has no function {function}; rescan its bus to find it again")]
    Unknown {
        /// Address of the function.
        function: FunctionId,
    },
    /// The function does not answer configuration requests.
    #[error("{function} does not answer: its configuration space reads as all ones")]
    Silent {
        /// Address of the function.
        function: FunctionId,
    },
    /// The operation needs a card, but the function is a bridge.
    #[error("{function} is a bridge; name the card below it")]
    Bridge {
        /// Address of the function.
        function: FunctionId,
    },
    /// No bridge leads to the bus.
    #[error("no bridge leads to bus {bus:02x}")]
    NoBus {
        /// The bus number.
        bus: u8,
    },
}

/// A platform as its operating system sees it.
///
/// ```
/// use lanemark_sim::BusTree;
/// use lanemark_wire::config::AerRegister;
/// let platform = lanemark_platform::preset("card-gen5-x16").unwrap().unwrap();
/// let mut tree = BusTree::new(&platform)?;
/// let card = tree.functions().into_iter().find(|function| function.port == "card").unwrap().address;
/// assert!(tree.load(card)?.bytes.is_some());
/// tree.remove(card)?;
/// tree.program(card)?;
/// assert_eq!(tree.reported()[0].error.row().name, "SDES", "no error was masked");
/// assert_eq!(tree.load(card)?.bytes, None, "its BARs are reset");
/// tree.rescan(card.bus())?;
/// assert!(tree.load(card)?.bytes.is_some());
/// # Ok::<(), lanemark_sim::BusTreeError>(())
/// ```
#[derive(Debug)]
pub struct BusTree {
    platform: Platform,
    board: Board,
    seats: Vec<Seat>,
    reported: Vec<Reported>,
}

impl BusTree {
    /// Creates the tree as after power-on: firmware has configured every function, and the system has enumerated all.
    ///
    /// # Errors
    /// [`BusTreeError`] if the platform has no board or no configuration space.
    pub fn new(platform: &Platform) -> Result<BusTree, BusTreeError> {
        let card = |port: &str| (0..).map_while(|card| platform.card_name(card)).position(|name| name == port);
        let seats = functions(platform)?.into_iter().map(|function| {
            let card = card(&function.port).filter(|_| function.kind == PortType::Endpoint);
            Seat::new(function, card.map(CardIndex))
        });
        let seats = seats.collect();
        Ok(BusTree { platform: platform.clone(), board: Board::new(platform)?, seats, reported: Vec::new() })
    }

    /// Returns the known functions with their current registers, sorted by address.
    #[must_use]
    pub fn functions(&self) -> Vec<SimulatedFunction> {
        let known = self.seats.iter().filter(|seat| seat.is_known);
        known.map(|seat| if self.answers(seat) { self.with_link(seat) } else { seat.silent() }).collect()
    }

    /// Returns the errors whose messages reached the log, in order.
    #[must_use]
    pub fn reported(&self) -> &[Reported] {
        &self.reported
    }

    /// Writes a register of Advanced Error Reporting, as `setpci` does. A mask takes the value; ones clear bits of a
    /// status register.
    ///
    /// # Errors
    /// [`BusTreeError`] if the function is not known or does not answer.
    pub fn write(&mut self, function: FunctionId, register: AerRegister, value: u32) -> Result<(), BusTreeError> {
        let place = self.known(function)?;
        if !self.answers(&self.seats[place]) {
            return Err(BusTreeError::Silent { function });
        }
        // Reserved bits stay zero.
        let value = value & !register.errors(value).reserved();
        let then = |now: u64| if register.is_status() { now & !u64::from(value) } else { u64::from(value) };
        self.seats[place].function.change(register.spot(), then);
        Ok(())
    }

    /// Removes a card's function from the system, without link traffic.
    ///
    /// # Errors
    /// [`BusTreeError`] if the function is not known, or is a bridge.
    pub fn remove(&mut self, function: FunctionId) -> Result<(), BusTreeError> {
        let place = self.known(function)?;
        self.seats[place].card.ok_or(BusTreeError::Bridge { function })?;
        self.seats[place].is_known = false;
        Ok(())
    }

    /// Reprograms a card through another cable: its link goes down and up, and its memory and registers are reset.
    /// Injected faults of the card and its link end.
    ///
    /// # Errors
    /// [`BusTreeError`] if there is no card, or the platform has no board.
    pub fn program(&mut self, function: FunctionId) -> Result<(), BusTreeError> {
        let (place, card) = self.card(function)?;
        self.board.reprogram(&self.platform, card)?;
        self.seats[place].invalidate();
        self.log();
        Ok(())
    }

    /// Rescans a bus and those below it, and configures unknown cards that answer. They get their earlier addresses,
    /// because bridges have kept their windows. Known functions are unchanged.
    ///
    /// # Errors
    /// [`BusTreeError`] if no bridge leads to the bus.
    pub fn rescan(&mut self, bus: u8) -> Result<(), BusTreeError> {
        let mut buses = self.seats.iter().filter_map(|seat| ConfigSpace::new(&seat.function.bytes).bus_numbers().ok());
        let buses = buses.find(|buses| buses.secondary == bus).ok_or(BusTreeError::NoBus { bus })?;
        let board = &mut self.board;
        for seat in &mut self.seats {
            let is_below = (buses.secondary..=buses.subordinate).contains(&seat.function.address.bus());
            if let Some(card) = seat.card.filter(|card| is_below && !seat.is_known && board.answers_config(*card)) {
                seat.configure();
                board.configure(card);
            }
        }
        Ok(())
    }

    /// Loads the first four bytes of a card's first storage region, or of its first region, at the address that
    /// firmware assigned. The system need not know the card.
    ///
    /// # Errors
    /// [`BusTreeError`] if there is no card.
    pub fn load(&mut self, function: FunctionId) -> Result<Loaded, BusTreeError> {
        let (_, card) = self.card(function)?;
        let address = self.address_of(card);
        let start = self.board.now();
        self.board.outbox().clear();
        self.board.inject_read(start, address, 4, 0);
        let patience = self.platform.root_complex.completion_timeout_ns.value;
        self.board.run_while(start + patience + patience, |board| !board.is_idle());
        let answer = self.board.outbox().pop_front();
        let bytes = answer.and_then(|(_, tlp, data)| (tlp.kind == TlpKind::CplD).then_some(data));
        let took = answer.map_or(patience, |(at, ..)| at.since(start));
        self.log();
        Ok(Loaded { address, bytes: bytes.map(|data| [data[0], data[1], data[2], data[3]]), took })
    }

    fn address_of(&self, card: CardIndex) -> u64 {
        let keeps = |kind: RegionKind| !matches!(kind, RegionKind::Fifo | RegionKind::Registers);
        let regions = &self.platform.regions;
        let region = regions.iter().find(|region| keeps(region.kind.value)).or_else(|| regions.first());
        let bar = region.and_then(|region| self.platform.bar(region.bar.value as u8));
        let shift = self.platform.slots.get(card.0).map_or(0, |slot| slot.bar_shift_bytes.value);
        let offset = region.map_or(0, |region| region.offset_bytes.value);
        bar.map_or(0, |bar| bar.address_bytes.value) + shift + offset
    }

    fn known(&self, function: FunctionId) -> Result<usize, BusTreeError> {
        let place = self.seats.iter().position(|seat| seat.is_known && seat.function.address == function);
        place.ok_or(BusTreeError::Unknown { function })
    }

    /// Returns the index of a card's function, and the card.
    fn card(&self, function: FunctionId) -> Result<(usize, CardIndex), BusTreeError> {
        let place = self.seats.iter().position(|seat| seat.function.address == function);
        let place = place.ok_or(BusTreeError::Unknown { function })?;
        Ok((place, self.seats[place].card.ok_or(BusTreeError::Bridge { function })?))
    }

    fn answers(&self, seat: &Seat) -> bool {
        seat.card.is_none_or(|card| self.board.answers_config(card))
    }

    /// Returns a function with the state of the link below it.
    fn with_link(&self, seat: &Seat) -> SimulatedFunction {
        let buses = ConfigSpace::new(&seat.function.bytes).bus_numbers().ok();
        let below = |other: &&Seat| buses.is_some_and(|buses| other.function.address.bus() == buses.secondary);
        let card = self.seats.iter().find(below).and_then(|below| below.card);
        let mut function = seat.function.clone();
        if card.is_some_and(|card| !self.board.link_is_up(card)) {
            seat::clear_link_active(&mut function);
        }
        function
    }

    /// Sets status bits for detected errors, and adds their messages to the log.
    fn log(&mut self) {
        for noticed in self.board.take_errors() {
            self.log_one(&noticed);
        }
    }

    fn log_one(&mut self, noticed: &Noticed) {
        let Some(seat) = self.seats.iter_mut().find(|seat| seat.function.port == noticed.port) else { return };
        let error = noticed.error;
        let space = ConfigSpace::new(&seat.function.bytes);
        let held = |register: AerRegister| space.error_reporting().and_then(|aer| register.of(&aer)).unwrap_or(0);
        let [mask, status] = if error.is_correctable() {
            [AerRegister::CorrectableMask, AerRegister::CorrectableStatus]
        } else {
            [AerRegister::UncorrectableMask, AerRegister::UncorrectableStatus]
        };
        let is_masked = held(mask) & error.status().raw != 0;
        let is_first = held(AerRegister::UncorrectableStatus) == 0;
        let reports = reports(&space, error);
        if is_masked || !is_first {
            seat.function.change(status.spot(), |bits| bits | u64::from(error.status().raw));
        } else {
            seat.function.show(&[LoggedError { port: noticed.port.clone(), error, header_log: None }]);
        }
        if !is_masked && reports {
            let (function, port) = (seat.function.address, noticed.port.clone());
            self.reported.push(Reported { function, port, error, at: noticed.at });
        }
    }
}

/// Returns whether Device Control enables the reporting of an error.
fn reports(space: &ConfigSpace<'_>, error: AerError) -> bool {
    let Ok(express) = space.capability(CapabilityId::PCI_EXPRESS) else { return false };
    let allows = |spot: Spot| express.region().flag(spot) == Ok(true);
    let severity = match error.row().severity {
        Severity::Correctable => const { Spot::of(&PCI_EXPRESS, "DevCtl", "CorrErr") },
        Severity::NonFatal => const { Spot::of(&PCI_EXPRESS, "DevCtl", "NonFatalErr") },
        Severity::Fatal => const { Spot::of(&PCI_EXPRESS, "DevCtl", "FatalErr") },
    };
    let is_refusal = error == AerError::UnsupportedRequest;
    allows(severity) && (!is_refusal || allows(const { Spot::of(&PCI_EXPRESS, "DevCtl", "UnsupReq") }))
}
