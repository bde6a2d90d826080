//! All interfaces, and the one that fits the ports of a design.

use crate::interface::{Block, Interface, PortRow, to_design};
use crate::pins::{Pin, Pins, Port};
use crate::{litepcie, series7, stream, ultrascale};
use lanemark_dut::MOST_BEAT_BYTES;

/// All interfaces. The stream is the last one: a design behind a block may have signals with the names of its ports inside, which
/// a simulator shows, too.
pub const INTERFACES: &[&Interface] =
    &[&ultrascale::INTERFACE, &series7::INTERFACE, &litepcie::INTERFACE, &stream::INTERFACE];

/// Reason why a design cannot be attached.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AttachError {
    /// The design has the identifying port of no interface.
    #[error("interface not recognised: the top has none of the ports {marks}; rename its ports, or write a wrapper")]
    NoInterface {
        /// The marks of all interfaces, and what each is.
        marks: String,
    },
    /// A port is missing.
    #[error("no port {port}, which the interface {interface} ({about}) needs")]
    NoPort {
        /// Its name.
        port: &'static str,
        /// Name of the interface.
        interface: &'static str,
        /// [`Interface::about`].
        about: &'static str,
    },
    /// A port has the other direction.
    #[error("port {port} is an {found}, and the interface {interface} needs an {}", if *.found == "input" { "output" } else { "input" })]
    OtherDirection {
        /// Its name.
        port: &'static str,
        /// Name of the interface.
        interface: &'static str,
        /// `input` or `output`.
        found: &'static str,
    },
    /// A port has a width that the interface does not have.
    #[error("interface {interface}: {what}")]
    OtherWidth {
        /// Name of the interface.
        interface: &'static str,
        /// The port and its width.
        what: String,
    },
}

/// The interface of a design with these ports.
///
/// # Errors
/// [`AttachError::NoInterface`].
pub fn interface_of(has_port: impl Fn(&str) -> bool) -> Result<&'static Interface, AttachError> {
    let found = INTERFACES.iter().find(|interface| has_port(interface.mark));
    found.copied().ok_or_else(|| {
        let mark = |interface: &&Interface| format!("{} ({})", interface.mark, interface.about);
        let marks: Vec<String> = INTERFACES.iter().map(mark).collect();
        AttachError::NoInterface { marks: marks.join(", or ") }
    })
}

/// A block for a design with these ports, the values of the ports, and the place of the clock.
///
/// ```
/// use lanemark_hard_blocks::{Port, attach};
///
/// let port = |name: &str| Port { name: name.to_owned(), bits: 32, is_input: true };
/// let error = attach(vec![port("clk"), port("rx_data")]).unwrap_err();
/// assert!(error.to_string().starts_with("no port rst, which the interface stream"), "{error}");
/// ```
///
/// # Errors
/// [`AttachError`] if no interface fits.
pub fn attach(ports: Vec<Port>) -> Result<Attached, AttachError> {
    let pins = Pins::new(ports);
    let interface = interface_of(|name| pins.find(name).bits() > 0)?;
    let (name, about) = (interface.name, interface.about);
    let clock = PortRow { name: interface.clock, ..to_design("") };
    for row in std::iter::once(&clock).chain(interface.ports) {
        match pins.ports().iter().find(|(port, _)| port.name == row.name) {
            None if row.is_optional => {}
            None => return Err(AttachError::NoPort { port: row.name, interface: name, about }),
            Some((port, _)) if port.is_input != row.is_input => {
                let found = if port.is_input { "input" } else { "output" };
                return Err(AttachError::OtherDirection { port: row.name, interface: name, found });
            }
            Some(_) => {}
        }
    }
    let block = (interface.attach)(&pins).map_err(|what| AttachError::OtherWidth { interface: name, what })?;
    debug_assert!((4..=MOST_BEAT_BYTES).contains(&block.beat_bytes()), "{name}");
    let clock = pins.find(interface.clock);
    Ok(Attached { interface, block, pins, clock })
}

/// A block that is attached to the ports of a design.
#[derive(Debug)]
pub struct Attached {
    /// Its interface.
    pub interface: &'static Interface,
    /// The block.
    pub block: Box<dyn Block>,
    /// Values of the ports.
    pub pins: Pins,
    /// The clock of the design.
    pub clock: Pin,
}

impl Attached {
    /// The interface and the width of its streams, such as `plain stream of TLPs, 32 bits`.
    #[must_use]
    pub fn described(&self) -> String {
        format!("{}, {} bits", self.interface.about, self.block.beat_bytes() * 8)
    }

    /// Inputs of the design that the model does not have: they are 0.
    #[must_use]
    pub fn undriven(&self) -> Vec<&str> {
        let is_driven =
            |name: &str| name == self.interface.clock || self.interface.ports.iter().any(|row| row.name == name);
        let inputs = self.pins.ports().iter().filter(|(port, _)| port.is_input && !is_driven(&port.name));
        inputs.map(|(port, _)| port.name.as_str()).collect()
    }
}
