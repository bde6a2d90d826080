//! Flows of bytes in a sample: what a plan moves, and how much of it has arrived.

use crate::board::Board;
use crate::requester::FIRST_CARD;
use lanemark_machine::{
    Arrived, DmaCall, EngineJob, Flow, Partner, Peer, Plan, QueueRequest, QueueWork, Transfer, Work,
};

/// A flow of bytes: DMA of a card, or a called channel.
#[derive(Clone, Copy)]
enum Flowing {
    Card(Transfer),
    Called(DmaCall),
    /// In parts of a copy with this many bytes.
    Copied(DmaCall, u64),
}

impl Flowing {
    fn moved(&self, board: &Board) -> u64 {
        match self {
            Flowing::Card(transfer) => board.moved(transfer).0,
            Flowing::Called(call) | Flowing::Copied(call, _) => board.moved_by(call),
        }
    }

    fn name(&self) -> String {
        match self {
            Flowing::Card(transfer) => flow(transfer),
            Flowing::Copied(call, _) => flow(&call.transfer),
            Flowing::Called(call) if call.channel == 0 => flow(&call.transfer),
            Flowing::Called(call) => format!("{} on channel {}", flow(&call.transfer), call.channel),
        }
    }

    fn wanted(&self, passes: u64) -> u64 {
        let of_pass = match self {
            Flowing::Card(transfer) | Flowing::Called(DmaCall { transfer, .. }) => transfer.bytes_per_pass(),
            Flowing::Copied(_, bytes) => *bytes,
        };
        of_pass.saturating_mul(passes)
    }
}

/// Bytes that had arrived before a sample.
pub(super) struct BytesBefore {
    flows: Vec<(Flowing, u64)>,
    loaded: u64,
    stored: u64,
}

/// Returns the bytes that cores loaded, and those that cards accepted from cores.
fn by_cores(board: &Board) -> (u64, u64) {
    let loaded = (0..board.cores()).map(|core| board.core(core).loaded_bytes).sum();
    let accepted = board.each_card().filter_map(|card| board.card(card)).map(|card| {
        let from_cards = (0..board.cards()).map(|other| card.accepted_from(FIRST_CARD + other as u16).0);
        card.accepted_bytes - from_cards.sum::<u64>()
    });
    (loaded, accepted.sum())
}

fn flow(transfer: &Transfer) -> String {
    let peer = match transfer.partner {
        Partner::Host => Peer::Host,
        Partner::Peer { card, .. } => Peer::Card(card),
    };
    Flow { card: transfer.card, verb: transfer.verb, peer }.to_string()
}

impl BytesBefore {
    pub(super) fn of(plan: &Plan, board: &Board) -> BytesBefore {
        let moving: Vec<Flowing> = match &plan.work {
            Work::Cores(_) => plan.work.dma_calls().map(|call| Flowing::Called(*call)).collect(),
            Work::Engines(engines) => engines.jobs.iter().flat_map(EngineJob::directions).map(Flowing::Card).collect(),
            Work::Relay(relay) => relay.transfers().into_iter().map(Flowing::Card).collect(),
            Work::Queue(QueueWork { request: QueueRequest::Copy(copy), .. }) => {
                board.parts(copy).map(|parts| Flowing::Copied(parts.call, copy.bytes)).into_iter().collect()
            }
            Work::Queue(_) | Work::Exchange(_) => Vec::new(),
        };
        let (loaded, stored) = by_cores(board);
        BytesBefore {
            flows: moving.into_iter().map(|flowing| (flowing, flowing.moved(board))).collect(),
            loaded,
            stored,
        }
    }

    /// Returns the bytes that have arrived since.
    pub(super) fn arrived(&self, plan: &Plan, passes: u64, board: &Board) -> Vec<Arrived> {
        let flows = self.flows.iter().map(|(flowing, before)| Arrived {
            flow: flowing.name(),
            bytes: flowing.moved(board) - before,
            wanted_bytes: Some(flowing.wanted(passes)),
        });
        let (loaded, stored) = by_cores(board);
        let (mut to_load, mut to_store) = (0_u64, 0_u64);
        for step in plan.work.steps() {
            let sum = if step.stores() { &mut to_store } else { &mut to_load };
            *sum = sum.saturating_add(step.bytes().saturating_mul(passes));
        }
        let by_cores =
            [("loads by cores", loaded - self.loaded, to_load), ("stores by cores", stored - self.stored, to_store)];
        // Cache lines and buffers fetch more than is requested.
        let by_cores = by_cores.into_iter().filter(|(.., wanted)| *wanted > 0).map(|(flow, bytes, wanted)| Arrived {
            flow: flow.to_owned(),
            bytes,
            wanted_bytes: (bytes <= wanted).then_some(wanted),
        });
        flows.chain(by_cores).collect()
    }
}
