//! DMA flows in short notation, such as `0:host`.

use crate::{UnknownName, Verb};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Transfers between a card and a peer, named in the direction of the data.
///
/// `0:host`: card 0 writes to host memory. `host:0`: card 0 reads host memory. `0:1`: card 0 writes to card 1.
/// `0:1:read`: card 1 reads from card 0.
///
/// ```
/// use lanemark_method::{Flow, Peer, Verb};
/// let flow: Flow = "3:0".parse().unwrap();
/// assert_eq!((flow.card, flow.verb, flow.peer), (3, Verb::Store, Peer::Card(0)));
/// assert_eq!("host:7".parse::<Flow>().unwrap().to_string(), "host:7");
/// assert!("3:3".parse::<Flow>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// The requesting card, counted from 0.
    pub card: u32,
    /// Direction as seen by the card: `Store` writes to the peer, `Load` reads from it.
    pub verb: Verb,
    /// The other end.
    pub peer: Peer,
}

/// The other end of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Peer {
    /// Host memory.
    Host,
    /// Another card, counted from 0.
    Card(u32),
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let card = self.card;
        match (self.verb, self.peer) {
            (Verb::Store, Peer::Host) => write!(f, "{card}:host"),
            (Verb::Load, Peer::Host) => write!(f, "host:{card}"),
            (Verb::Store, Peer::Card(other)) => write!(f, "{card}:{other}"),
            (Verb::Load, Peer::Card(other)) => write!(f, "{other}:{card}:read"),
        }
    }
}

impl FromStr for Flow {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Flow, UnknownName> {
        let unknown = || UnknownName {
            name: text.to_owned(),
            what: "a flow",
            known: "0:host (card 0 writes to host memory), host:0 (reads it), 0:1 (card 0 writes to card 1), \
                    0:1:read (card 1 reads card 0)"
                .to_owned(),
        };
        let card = |text: &str| text.parse::<u32>().map_err(|_| unknown());
        let (ends, verb) = match text.strip_suffix(":read") {
            Some(ends) => (ends, Verb::Load),
            None => (text, Verb::Store),
        };
        let flow = match (ends.split_once(':').ok_or_else(unknown)?, verb) {
            ((from, "host"), Verb::Store) => Flow { card: card(from)?, verb, peer: Peer::Host },
            (("host", to), Verb::Store) => Flow { card: card(to)?, verb: Verb::Load, peer: Peer::Host },
            ((from, to), Verb::Store) => Flow { card: card(from)?, verb, peer: Peer::Card(card(to)?) },
            ((from, to), Verb::Load) => Flow { card: card(to)?, verb, peer: Peer::Card(card(from)?) },
        };
        if flow.peer == Peer::Card(flow.card) { Err(unknown()) } else { Ok(flow) }
    }
}
