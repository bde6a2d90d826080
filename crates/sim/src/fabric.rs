//! The PCIe fabric: links with their data link layer and credits, switches and routing.
//!
//! [`Fabric`] owns all links and switches of a board, and the ports at their ends. Its methods schedule directions,
//! deliver DLLPs and return credits (`fabric/delivery.rs`). A board delivers the TLPs, because they may end at parts
//! outside the fabric.
//!
//! Start with `link.rs`, the transmitter of one direction of a link. The fabric does not depend on hosts or devices:
//! an end of a link is an index, and an input of a transmitter is a number.

pub mod carried;
pub mod credit;
pub mod delivery;
pub mod dllp;
pub mod input;
pub mod link;
pub mod pace;
pub mod retimer;
pub mod route;
pub mod switch;

use crate::fabric::dllp::Watch;
use crate::fabric::link::{Crossed, Sent, Transmitter};
use crate::fabric::switch::Switch;
use crate::index::{CardIndex, DirectionIndex, PortIndex, RootPortIndex, Side};
use crate::noticed::PortLimit;
use crate::steady::Survey;
use crate::tlp::Tlp;
use lanemark_machine::Unsteady;
use lanemark_platform::OrderingChoice;
use lanemark_units::Ticks;
use lanemark_wire::config::AerError;

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// A root port.
    Root(RootPortIndex),
    /// A port of a switch.
    Switch {
        /// Number of the switch.
        switch: usize,
        /// Port of the switch.
        port: PortIndex,
    },
    /// An endpoint.
    Endpoint(CardIndex),
}

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct Direction {
    pub(crate) transmitter: Transmitter,
    pub(crate) from: End,
    pub(crate) to: End,
    /// The smaller `Max_Payload_Size` of its two ports.
    pub(crate) most_payload: u32,
    /// Whether a TLP stalls for a DLLP of the other direction that has not been sent.
    pub(crate) awaits_dllp: bool,
}

/// The links and switches of a board. See [`crate::index`] for the order of directions.
#[derive(Debug)]
pub(crate) struct Fabric {
    /// Two directions for each link, the downstream one first.
    pub(crate) directions: Vec<Direction>,
    /// The ports of each direction, the sender first.
    ports: Vec<[PortLimit; 2]>,
    switches: Vec<Switch>,
    /// The directions that leave each switch, the upstream one first.
    switch_ports: Vec<Vec<DirectionIndex>>,
    /// The direction that leaves each endpoint.
    endpoint_up: Vec<DirectionIndex>,
}

impl Fabric {
    /// Creates a fabric without links, for these numbers of switches and endpoints.
    pub(crate) fn new(switches: usize, endpoints: usize) -> Fabric {
        Fabric {
            directions: Vec::new(),
            ports: Vec::new(),
            switches: Vec::new(),
            switch_ports: vec![Vec::new(); switches],
            endpoint_up: vec![DirectionIndex(0); endpoints],
        }
    }

    /// Adds the next direction, from one end of a link to the other; `ports` are its sender and its receiver.
    pub(crate) fn connect(&mut self, spec: link::Spec, from: End, to: End, ports: [PortLimit; 2]) {
        let number = DirectionIndex(self.directions.len());
        match from {
            End::Root(_) => {}
            End::Switch { switch, port } => {
                let ports = &mut self.switch_ports[switch];
                ports.resize(ports.len().max(port.0 + 1), DirectionIndex(0));
                ports[port] = number;
            }
            End::Endpoint(card) => self.endpoint_up[card] = number,
        }
        let most_payload = spec.mps_bytes;
        let transmitter = Transmitter::new(spec);
        self.directions.push(Direction { transmitter, from, to, most_payload, awaits_dllp: false });
        self.ports.push(ports);
    }

    /// Adds the next switch.
    pub(crate) fn add_switch(&mut self, switch: Switch) {
        self.switches.push(switch);
    }

    /// Visits the state of every direction.
    pub(crate) fn visit(&mut self, view: &mut impl Survey, now: Ticks) {
        let Fabric { directions, ports: _, switches: _, switch_ports: _, endpoint_up: _ } = self;
        for direction in directions {
            let Direction { transmitter, from: _, to: _, most_payload: _, awaits_dllp } = direction;
            transmitter.visit(view, now);
            view.flag(*awaits_dllp);
        }
    }

    /// Returns every direction.
    pub(crate) fn each_direction(&self) -> impl DoubleEndedIterator<Item = DirectionIndex> + use<> {
        DirectionIndex::all(self.directions.len())
    }

    /// Returns the ports of each direction, the sender first.
    pub(crate) fn ports(&self) -> &[[PortLimit; 2]] {
        &self.ports
    }

    /// Returns a port of a direction.
    pub(crate) fn port(&self, direction: DirectionIndex, side: Side) -> &PortLimit {
        &self.ports[direction][side]
    }

    /// Returns the direction that leaves an endpoint.
    #[inline]
    pub(crate) fn up_from(&self, card: CardIndex) -> DirectionIndex {
        self.endpoint_up[card]
    }

    /// Returns the direction that leaves an endpoint, if there is this endpoint.
    pub(crate) fn find_up_from(&self, card: CardIndex) -> Option<DirectionIndex> {
        self.endpoint_up.get(card.0).copied()
    }

    /// Returns the direction down to an endpoint, if there is this endpoint.
    pub(crate) fn down_to(&self, card: CardIndex) -> Option<DirectionIndex> {
        self.find_up_from(card).map(|up| up.link().down())
    }

    /// Returns the name of the port of a card, by its requester ID.
    pub(crate) fn card_port(&self, requester: u16) -> &str {
        let up = self.find_up_from(CardIndex::of_requester(requester));
        up.map_or("a card", |up| self.port(up, Side::Sender).name.as_str())
    }

    /// Returns the direction that arrives at a port of a switch.
    #[inline]
    pub(crate) fn arriving_at(&self, switch: usize, port: PortIndex) -> DirectionIndex {
        self.switch_ports[switch][port].opposite()
    }

    /// Returns the direction by which a switch forwards a TLP that it received at `port`, if there is one.
    #[inline]
    pub(crate) fn out_of_switch(&self, switch: usize, port: PortIndex, tlp: &Tlp) -> Option<DirectionIndex> {
        let out = self.switches[switch].way_of(tlp, port)?;
        Some(self.switch_ports[switch][out])
    }

    /// Returns the direction by which a switch forwards a completion to its requester.
    pub(crate) fn to_requester(&self, switch: usize, completion: &Tlp) -> DirectionIndex {
        let towards = self.switches[switch].routes.below(completion).unwrap_or(PortIndex::UPSTREAM);
        self.switch_ports[switch][towards]
    }

    /// Returns when a switch has a TLP ready for direction `out`.
    #[inline]
    pub(crate) fn ready(&self, switch: usize, out: DirectionIndex, sent: &Sent) -> Ticks {
        let time_out = self.directions[out].transmitter.time_of(&sent.tlp);
        self.switches[switch].ready(sent, time_out)
    }

    /// Returns whether a request of a card passes the root complex.
    pub(crate) fn passes_root(&self, card: CardIndex, tlp: &Tlp) -> bool {
        let mut next = self.find_up_from(card);
        while let Some(direction) = next {
            match self.directions[direction].to {
                End::Root(_) => return true,
                End::Endpoint(_) => return false,
                End::Switch { switch, port } => next = self.out_of_switch(switch, port, tlp),
            }
        }
        false
    }

    /// Returns the name of the component below each link.
    pub(crate) fn link_names(&self) -> Vec<&str> {
        self.ports.iter().step_by(2).map(|[_, lower]| lower.name.as_str()).collect()
    }

    /// Returns the traffic of a card's link, downstream and upstream.
    pub(crate) fn crossed(&self, card: CardIndex) -> (Crossed, Crossed) {
        let up = self.up_from(card);
        (self.directions[up.opposite()].transmitter.crossed, self.directions[up].transmitter.crossed)
    }

    /// Returns the number of TLPs on links, counted on each link.
    pub(crate) fn hops(&self) -> u64 {
        let crossed = |direction: &Direction| direction.transmitter.crossed;
        self.directions.iter().map(crossed).map(|crossed| crossed.writes + crossed.reads + crossed.completions).sum()
    }

    /// Returns the errors that links have corrected since the last reset: port, error and number. A corrupted TLP is
    /// a Bad TLP at its receiver. If its `Nak` was corrupted too, its sender has a Bad DLLP and a `REPLAY_TIMER`
    /// timeout. The fourth replay in a row is a `REPLAY_NUM` rollover. There are no Receiver Errors, because symbols
    /// are not simulated.
    ///
    /// Source: PCI Express Base Specification 6.0, sections 3.6.2.1, 3.6.2.2 and 3.6.3.1.
    pub(crate) fn corrected(&self) -> impl Iterator<Item = (&str, AerError, u64)> {
        let each = self.directions.iter().zip(&self.ports).flat_map(|(direction, [from, to])| {
            let crossed = direction.transmitter.crossed;
            [
                (to.name.as_str(), AerError::BadTlp, crossed.replays),
                (from.name.as_str(), AerError::BadDllp, crossed.replay_timeouts),
                (from.name.as_str(), AerError::ReplayTimerTimeout, crossed.replay_timeouts),
                (from.name.as_str(), AerError::ReplayNumRollover, crossed.rollovers),
            ]
        });
        each.filter(|(.., count)| *count > 0)
    }

    /// Records the last `most` DLLPs of each direction from now on.
    pub(crate) fn watch_dllps(&mut self, most: usize) {
        self.directions.iter_mut().for_each(|direction| direction.transmitter.watch_dllps(most));
    }

    /// Returns whether the DLLPs of a direction are recorded.
    pub(crate) fn is_watched(&self) -> bool {
        self.directions.iter().any(|direction| direction.transmitter.is_watched())
    }

    /// Takes the recorded DLLPs of each direction, with their line time.
    pub(crate) fn take_watched(&mut self) -> impl Iterator<Item = (DirectionIndex, Watch, Ticks)> {
        self.directions.iter_mut().enumerate().filter_map(|(number, direction)| {
            let (watch, on_line) = direction.transmitter.take_watched()?;
            Some((DirectionIndex(number), watch, on_line))
        })
    }

    /// Returns the reason why no steady state can be skipped, if links corrupt or reorder TLPs at random.
    pub(crate) fn randomness(&self) -> Option<Unsteady> {
        let specs = || self.directions.iter().map(|direction| direction.transmitter.spec());
        if specs().any(|spec| spec.tlps_per_error > 0) {
            return Some(Unsteady::Errors);
        }
        specs().any(|spec| spec.ordering == OrderingChoice::Random).then_some(Unsteady::RandomOrdering)
    }

    /// Returns whether a direction sends SKP ordered sets.
    pub(crate) fn has_skp(&self) -> bool {
        self.directions.iter().any(|direction| direction.transmitter.spec().skp.is_some())
    }

    /// Returns the time from which no past TLP delays a new one, once every scheduled DLLP has been sent.
    pub(crate) fn quiet_at(&self) -> Ticks {
        self.directions.iter().map(|direction| direction.transmitter.quiet_at()).fold(Ticks::ZERO, Ticks::max)
    }
}
