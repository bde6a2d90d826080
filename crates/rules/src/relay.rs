//! Rules: data that cards read from host memory return to it unchanged, through one card and through all.

use crate::rule::Outcome;
use lanemark_machine::{Machine, Pattern, Plan, Relay, Samples, Window};
use lanemark_platform::Platform;
use lanemark_sim::SimulatedMachine;

/// Bytes of a transfer that no queue can hold.
const BYTES: u64 = 4 << 20;

/// Tests one card: first a transfer that fits its queue, written back when all of it is stored; then a larger one, read and
/// written concurrently.
pub(crate) fn a_card_writes_back_all_bytes(platform: &Platform) -> Outcome {
    let holds = platform.fifos.as_ref().map_or(0, |fifos| fifos.tx_bytes.value);
    let first = relayed(platform, &[0], holds, true)?;
    let then = relayed(platform, &[0], BYTES, false)?;
    Ok(format!("{holds} B, stored whole: {first} equal; {BYTES} B, read and written concurrently: {then} equal"))
}

/// Tests a chain of all cards, in the order of their slots.
pub(crate) fn a_chain_of_cards_relays_all_bytes(platform: &Platform) -> Outcome {
    let cards: Vec<u32> = (0..platform.cards()).collect();
    let equal = relayed(platform, &cards, BYTES, false)?;
    Ok(format!("{BYTES} B through {} cards: {equal} equal", cards.len()))
}

/// Relays `bytes` through `cards`, and returns the number of unchanged bytes; an error unless all are.
fn relayed(platform: &Platform, cards: &[u32], bytes: u64, is_stored: bool) -> Result<u64, String> {
    let mut machine = SimulatedMachine::new(platform).map_err(|error| error.to_string())?;
    let at = machine.facts().dma.and_then(|dma| dma.relays_at).ok_or("the cards of this platform cannot relay")?;
    let window = |offset| Window { offset, len: bytes, pattern: Pattern::Sequential };
    let (from, to, at_peers) = (window(0), window(bytes), window(at.offset));
    let relay = Relay { cards: cards.to_vec(), bar: at.bar, at_peers, bytes, count: 1, from, to, is_stored };
    let mut samples = Samples::wanted(1);
    let plan = Plan::new(relay, 1);
    machine.run(&plan, &mut samples).map_err(|error| error.to_string())?;
    let equal = samples.confirmed.map_or(0, |confirmed| confirmed.confirmed_bytes);
    if equal == bytes { Ok(equal) } else { Err(format!("{equal} of {bytes} bytes came back unchanged")) }
}
