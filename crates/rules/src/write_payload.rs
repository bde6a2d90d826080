//! Rule: writes with small payloads are far below the rate of the link (a picture of write rate by payload).

use crate::rule::Outcome;
use lanemark_machine::{Machine, Partner, Pattern, Plan, Samples, Transfer, Verb, Window};
use lanemark_model::transfer_ceiling;
use lanemark_platform::{Origin, Platform};
use lanemark_sim::SimulatedMachine;

/// Payloads of the picture, in bytes.
const PAYLOADS: [u64; 5] = [8, 16, 32, 64, 128];
/// Smallest payload for which the picture is close to the rate of the link.
const LARGE: u64 = 64;
/// Share of the link's rate below which a rate counts as far below. The picture has no numbers; this one is ours.
const FAR: f64 = 0.75;
/// Bytes of a transfer.
const BYTES: u64 = 1 << 18;

/// Tests the rule with writes of card 0 to host memory: the rate rises with the payload, and is far below the link's for
/// payloads under 64 B only.
pub(crate) fn small_payloads_fall_short_of_the_link(platform: &Platform) -> Outcome {
    let mut seen = Vec::new();
    let (mut rises, mut before, mut not_far) = (true, 0.0, Vec::new());
    for payload in PAYLOADS {
        let origin = Origin::Assumed("for a rule".to_owned());
        let platform = platform.with("dma.write_bytes", payload as f64, origin).map_err(|error| error.to_string())?;
        let window = Window { offset: 0, len: BYTES, pattern: Pattern::Sequential };
        let (verb, partner) = (Verb::Store, Partner::Host);
        let transfer = Transfer { card: 0, verb, partner, bytes: BYTES, count: 1, window, outstanding: None };
        let mut machine = SimulatedMachine::new(&platform).map_err(|error| error.to_string())?;
        let mut samples = Samples::wanted(1);
        let plan = Plan::new(transfer, 1);
        machine.run(&plan, &mut samples).map_err(|error| error.to_string())?;
        let taken = samples.taken.first().ok_or("no sample was taken")?;
        let rate = BYTES as f64 * 1e9 / taken.delivered.as_ns();
        let most = transfer_ceiling(&platform, &transfer).ok_or("the transfer has no ceiling")?.rate.bytes_per_s();
        let share = rate / most;
        rises &= rate > before;
        before = rate;
        if (share < FAR) != (payload < LARGE) {
            not_far.push(payload);
        }
        seen.push(format!("{payload} B {:.0} MiB/s, {:.0} % of the link's", rate / MIB, 100.0 * share));
    }
    let seen = seen.join("; ");
    match (rises, not_far.first()) {
        (true, None) => Ok(seen),
        (true, Some(payload)) => Err(format!("{seen}: {payload} B disagrees with the picture")),
        (false, _) => Err(format!("{seen}: the rate does not rise with the payload")),
    }
}

/// Bytes of a MiB.
const MIB: f64 = (1 << 20) as f64;
