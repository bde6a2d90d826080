//! Ports of the schedule, and the inputs of the links.

use crate::index::{CardIndex, DirectionIndex, RootPortIndex};

/// A port of the schedule: a row of the table of ports, in which ties go to the upper row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Port {
    Core(usize),
    /// Requests of cores at the root complex.
    Requests,
    /// A direction of a link.
    Send(DirectionIndex),
    /// Requests of devices at a root port.
    Take(RootPortIndex),
    /// Reads of memory for a root port.
    Fetched(RootPortIndex),
    /// Completions for cores from a root port.
    Return(RootPortIndex),
    /// Completions in flight to cores.
    Completions,
    /// Split peer reads of the root complex.
    Peers,
    /// Root-complex ingress, if requests are serialised.
    RcIngress,
    /// Requests in the IOMMU.
    Iommu,
    /// The receive buffer of an endpoint.
    Accept(CardIndex),
    /// The next request of an endpoint's DMA engine.
    Issue(CardIndex),
    /// Completions of the DMA engine.
    Data(CardIndex),
    /// Bytes between its queues.
    Carry(CardIndex),
    /// The end of a kernel.
    Kernels(CardIndex),
    /// A region of an endpoint.
    Answer(CardIndex, usize),
    /// Completion timeouts of requesters.
    Timeouts,
}

/// First schedule index of each kind of port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    requests: usize,
    send: usize,
    root_ports: usize,
    completions: usize,
    peers: usize,
    ingress: usize,
    iommu: usize,
    endpoints: usize,
    regions: usize,
    timeouts: usize,
}

/// Ports of each root port: [`Port::Take`], [`Port::Fetched`], [`Port::Return`].
const OF_ROOT_PORT: usize = 3;
/// Ports of each endpoint besides those of its regions: [`Port::Accept`], [`Port::Issue`], [`Port::Data`],
/// [`Port::Carry`], [`Port::Kernels`].
const OF_ENDPOINT: usize = 5;

impl Places {
    /// Returns the indices for these numbers of cores, directions, root ports, endpoints and regions, and the port of
    /// each index.
    pub(crate) fn table(
        cores: usize,
        directions: usize,
        root_ports: usize,
        endpoints: usize,
        regions: usize,
    ) -> (Places, Vec<Port>) {
        let mut table: Vec<Port> = (0..cores).map(Port::Core).collect();
        let requests = table.len();
        table.push(Port::Requests);
        let send = table.len();
        table.extend(DirectionIndex::all(directions).map(Port::Send));
        let at_root = table.len();
        table.extend(
            (0..root_ports)
                .map(RootPortIndex)
                .flat_map(|port| [Port::Take(port), Port::Fetched(port), Port::Return(port)]),
        );
        let completions = table.len();
        table.push(Port::Completions);
        let peers = table.len();
        table.push(Port::Peers);
        let ingress = table.len();
        table.push(Port::RcIngress);
        let iommu = table.len();
        table.push(Port::Iommu);
        let at_endpoints = table.len();
        for card in (0..endpoints).map(CardIndex) {
            table.extend([Port::Accept(card), Port::Issue(card), Port::Data(card), Port::Carry(card)]);
            table.push(Port::Kernels(card));
            table.extend((0..regions).map(|region| Port::Answer(card, region)));
        }
        let timeouts = table.len();
        table.push(Port::Timeouts);
        let endpoints = at_endpoints;
        let root_ports = at_root;
        let places =
            Places { requests, send, root_ports, completions, peers, ingress, iommu, endpoints, regions, timeouts };
        (places, table)
    }

    #[allow(clippy::inline_always)] // As `Board::set`.
    #[inline(always)]
    pub(crate) fn of(&self, port: Port) -> usize {
        let of_endpoint = |card: CardIndex| self.endpoints + card.0 * (OF_ENDPOINT + self.regions);
        match port {
            Port::Core(number) => number,
            Port::Requests => self.requests,
            Port::Send(direction) => self.send + direction.0,
            Port::Take(port) => self.root_ports + OF_ROOT_PORT * port.0,
            Port::Fetched(port) => self.root_ports + OF_ROOT_PORT * port.0 + 1,
            Port::Return(port) => self.root_ports + OF_ROOT_PORT * port.0 + 2,
            Port::Completions => self.completions,
            Port::Peers => self.peers,
            Port::RcIngress => self.ingress,
            Port::Iommu => self.iommu,
            Port::Accept(card) => of_endpoint(card),
            Port::Issue(card) => of_endpoint(card) + 1,
            Port::Data(card) => of_endpoint(card) + 2,
            Port::Carry(card) => of_endpoint(card) + 3,
            Port::Kernels(card) => of_endpoint(card) + 4,
            Port::Answer(card, region) => of_endpoint(card) + OF_ENDPOINT + region,
            Port::Timeouts => self.timeouts,
        }
    }
}

/// Inputs of the link down from a root port.
pub(crate) mod root_input {
    use crate::index::RootPortIndex;

    /// Completions from memory.
    pub const MEMORY: usize = 0;
    /// Requests of cores.
    pub const CORES: usize = 1;
    /// The first input of [`from`].
    pub const PEERS: usize = 2;

    /// Returns the input of TLPs received by a root port.
    pub const fn from(port: RootPortIndex) -> usize {
        PEERS + port.0
    }

    /// Returns the root port that received the TLPs of an input of [`from`].
    pub const fn came_up_at(input: usize) -> RootPortIndex {
        RootPortIndex(input - PEERS)
    }

    /// Returns the input of the peer reads that the root complex issues itself, and of their completions, with
    /// `root_ports` root ports.
    pub const fn own(root_ports: usize) -> usize {
        PEERS + root_ports
    }
}

/// Inputs of the link up from an endpoint.
pub(crate) mod endpoint_input {
    /// Completions of its regions, with strict priority.
    pub const ANSWERS: usize = 0;
    /// The first channel of its DMA engine; the other channels follow and are served round-robin. The last input has
    /// the completion messages of kernels, if there is a runtime.
    pub const ENGINE: usize = 1;
}
