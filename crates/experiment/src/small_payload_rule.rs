//! The rule that small payloads fall short of what the link would carry: a picture of a write rate against the payload.

use lanemark_machine::{Machine, Op, Partner, Pattern, Plan, Samples, Transfer, Verb, Window};
use lanemark_model::transfer_ceiling;
use lanemark_platform::{Origin, Platform};
use lanemark_sim::SimulatedMachine;

/// Payloads of the picture, in bytes.
const PAYLOADS: [u64; 5] = [8, 16, 32, 64, 128];
/// From this payload on the picture is near what the link carries.
const LARGE: u64 = 64;
/// Far below: three quarters of it. The picture has no numbers; this one is ours.
const FAR: f64 = 0.75;
/// What is moved.
const BYTES: u64 = 1 << 18;

/// Tries it with writes of card 0 to host memory: the rate rises with the payload, and lies far below the link's for all
/// payloads under 64 B, and only for those.
pub(crate) fn check(platform: &Platform) -> Result<String, String> {
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
        let plan = Plan::on_one_core(vec![Op::Transfer(transfer)], 1);
        machine.run(&plan, &mut samples).map_err(|error| error.to_string())?;
        let taken = samples.taken.first().ok_or("there is no sample")?;
        let rate = BYTES as f64 * 1e9 / taken.delivered.as_ns();
        let most = transfer_ceiling(&platform, &transfer).ok_or("there is no ceiling")?.rate.bytes_per_s();
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
        (true, Some(payload)) => Err(format!("{seen}: {payload} B is not where the picture has it")),
        (false, _) => Err(format!("{seen}: it does not rise with the payload")),
    }
}

/// Bytes of a MiB.
const MIB: f64 = (1 << 20) as f64;
