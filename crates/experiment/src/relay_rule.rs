//! The rules that what cards read from host memory comes back to it as it was: through one of them, and through all.

use lanemark_machine::{Machine, Op, Pattern, Plan, Relay, Samples, Window};
use lanemark_platform::Platform;
use lanemark_sim::SimulatedMachine;

/// What passes in one transfer that no queue holds.
const BYTES: u64 = 4 << 20;

/// Through one card and back: first what its queue holds, written back when all of it has come; then much more, read and
/// written at the same time.
pub(crate) fn loopback(platform: &Platform) -> Result<String, String> {
    let holds = platform.fifos.as_ref().map_or(0, |fifos| fifos.tx_bytes.value);
    let first = handed_on(platform, &[0], holds, true)?;
    let then = handed_on(platform, &[0], BYTES, false)?;
    Ok(format!("{holds} B, stored whole: {first} equal; {BYTES} B, read and written at once: {then} equal"))
}

/// Through all cards, in the order of their slots.
pub(crate) fn chain(platform: &Platform) -> Result<String, String> {
    let cards: Vec<u32> = (0..platform.cards()).collect();
    let equal = handed_on(platform, &cards, BYTES, false)?;
    Ok(format!("{BYTES} B through {} cards: {equal} equal", cards.len()))
}

/// How many of so many bytes came back as they were; all of them, or it is an error.
fn handed_on(platform: &Platform, cards: &[u32], bytes: u64, is_stored: bool) -> Result<u64, String> {
    let mut machine = SimulatedMachine::new(platform).map_err(|error| error.to_string())?;
    let at = machine.facts().dma.and_then(|dma| dma.relays_at).ok_or("its cards hand on nothing")?;
    let window = |offset| Window { offset, len: bytes, pattern: Pattern::Sequential };
    let (from, to, at_peers) = (window(0), window(bytes), window(at.offset));
    let relay = Relay { cards: cards.to_vec(), bar: at.bar, at_peers, bytes, count: 1, from, to, is_stored };
    let mut samples = Samples::wanted(1);
    let plan = Plan::on_one_core(vec![Op::Relay(relay)], 1);
    machine.run(&plan, &mut samples).map_err(|error| error.to_string())?;
    let equal = samples.confirmed.map_or(0, |confirmed| confirmed.confirmed_bytes);
    if equal == bytes { Ok(equal) } else { Err(format!("{equal} of {bytes} bytes came back as they were")) }
}
