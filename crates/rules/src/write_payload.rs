//! Writes of a card to host memory by payload: a rule and a picture for a published curve without numbers.
//!
//! Memory that is fast only in bursts takes longer for a part of a line (`memory.partial_line_ns`). A curve without
//! numbers limits this time on one side only. The picture prints the limit.

use crate::rule::Outcome;
use lanemark_machine::{
    Completion, Descriptors, DmaCall, Machine, Partner, Pattern, Plan, Samples, Share, Transfer, Verb, Window, Work,
};
use lanemark_model::{predict, transfer_ceiling};
use lanemark_platform::{Origin, Platform};
use lanemark_record::{Picture, PictureLine};
use lanemark_sim::SimulatedMachine;
use lanemark_units::MemoryType;

/// Payloads of the picture, in bytes.
const PAYLOADS: [u64; 5] = [8, 16, 32, 64, 128];
/// Smallest payload for which the picture is close to the rate of the link.
const LARGE: u64 = 64;
/// Share of the link's rate below which a rate counts as far below. The picture has no numbers; this one is ours.
const FAR: f64 = 0.75;
/// Other meanings of "far below", to show how little a shape determines.
const OTHER_FAR: [f64; 2] = [0.9, 0.5];
/// Bytes of a transfer.
const BYTES: u64 = 1 << 18;
/// Bytes of a timed call of the driver.
const CALL_BYTES: u64 = 4 << 20;
/// Largest cost of a partial line that is tried, in ns.
const MOST_NS: u32 = 1000;
/// Bytes of a MiB.
const MIB: f64 = (1 << 20) as f64;

/// Tests the rule with writes of card 0 to host memory: the rate rises with the payload, and is far below the link's for
/// payloads under 64 B only.
pub(crate) fn small_payloads_fall_short_of_the_link(platform: &Platform) -> Outcome {
    let mut seen = Vec::new();
    let (mut rates, mut shares) = (Vec::new(), Vec::new());
    for payload in PAYLOADS {
        let platform = with(platform, "dma.write_bytes", payload as f64)?;
        let rate = simulated_rate(&platform)?;
        let share = rate / link_rate(&platform)?;
        seen.push(format!("{payload} B {:.0} MiB/s, {:.0} % of the link's", rate / MIB, 100.0 * share));
        rates.push(rate);
        shares.push(share);
    }
    let seen = seen.join("; ");
    if !rises(&rates) {
        return Err(format!("{seen}: the rate does not rise with the payload"));
    }
    match disagreeing(&shares, FAR) {
        None => Ok(seen),
        Some(payload) => Err(format!("{seen}: {payload} B disagrees with the picture")),
    }
}

/// Draws the write rate over the payload, for several costs of a partial line, and prints which costs have the shape.
pub(crate) fn write_rate_by_payload(platform: &Platform) -> Result<Picture, String> {
    let memory = platform.memory.as_ref().ok_or("the platform has no memory for devices")?;
    let own_ns = memory.partial_line_ns.value.as_ns();
    let least_ns = least_cost(platform, FAR)?;
    let line = |name: String, value: &dyn Fn(&Platform) -> Result<f64, String>| {
        let at = |payload: u64| Ok(Some(value(&with(platform, "dma.write_bytes", payload as f64)?)? / MIB));
        let values = PAYLOADS.into_iter().map(at).collect::<Result<_, String>>()?;
        Ok::<PictureLine, String>(PictureLine { name, values })
    };
    let costing = |ns: f64| {
        line(format!("written, {ns} ns"), &move |platform| {
            simulated_rate(&with(platform, "memory.partial_line_ns", ns)?)
        })
    };
    let mut lines = vec![line("limit of the link".to_owned(), &link_rate)?];
    let mut costs = vec![0.0, own_ns, 2.0 * own_ns];
    costs.extend(least_ns.map(f64::from));
    costs.sort_by(f64::total_cmp);
    costs.dedup();
    for ns in costs {
        lines.push(costing(ns)?);
    }
    lines.push(line(format!("called, {own_ns} ns"), &called_rate)?);
    let others: Result<Vec<String>, String> =
        OTHER_FAR.into_iter().map(|far| Ok(in_words(far, least_cost(platform, far)?))).collect();
    Ok(Picture {
        title: "Writes to host memory by payload".to_owned(),
        along: "payload in bytes".to_owned(),
        shows: "MiB/s".to_owned(),
        at: PAYLOADS.map(|payload| payload as f64).to_vec(),
        lines,
        note: format!(
            "Rates on the link are simulated; the rate of a call of {} MiB is by formula. \"n ns\" is the extra time for a line that a \
             write fills in part (memory.partial_line_ns, {own_ns} ns in the platform). The published curves have no numbers. Their shape \
             (rising, far below the link under {LARGE} B and close to it from there on) limits this time on one side only. {}. {}. No value \
             up to {MOST_NS} ns is too large: full lines have the same rate. Below {LARGE} B only the sum with memory.write_tlp_ns counts.",
            CALL_BYTES >> 20,
            in_words(FAR, least_ns),
            others?.join(". "),
        ),
    })
}

/// The least cost of a partial line for this meaning of "far below".
fn in_words(far: f64, least_ns: Option<u32>) -> String {
    let far = format!("If \"far below\" means under {:.0} %", 100.0 * far);
    match least_ns {
        Some(least_ns) => format!("{far}, at least {least_ns} ns are needed"),
        None => format!("{far}, no value has this shape"),
    }
}

/// Smallest whole number of ns per partial line from which on the formula has the shape of the picture, up to
/// [`MOST_NS`]; `None` if no such value exists.
fn least_cost(platform: &Platform, far: f64) -> Result<Option<u32>, String> {
    // A larger cost lowers the rates of partial lines only, so the shape is kept once it is reached.
    if !has_shape(platform, MOST_NS, far)? {
        return Ok(None);
    }
    let (mut below, mut enough) = (None, MOST_NS);
    while enough > below.map_or(0, |below: u32| below + 1) {
        let middle = below.map_or(0, |below| below + 1).midpoint(enough).min(enough - 1);
        if has_shape(platform, middle, far)? { enough = middle } else { below = Some(middle) }
    }
    Ok(Some(enough))
}

/// Whether the rates by formula have the shape of the picture.
fn has_shape(platform: &Platform, partial_line_ns: u32, far: f64) -> Result<bool, String> {
    let platform = with(platform, "memory.partial_line_ns", f64::from(partial_line_ns))?;
    let (mut rates, mut shares) = (Vec::new(), Vec::new());
    for payload in PAYLOADS {
        let platform = with(&platform, "dma.write_bytes", payload as f64)?;
        let plan = Plan::new(write(BYTES), 1);
        let said = predict(&platform, &plan).ok_or("there is no formula for a write of a card")?;
        rates.push(rate(BYTES, said.delivered_ns));
        shares.push(rate(BYTES, said.delivered_ns) / link_rate(&platform)?);
    }
    Ok(rises(&rates) && disagreeing(&shares, far).is_none())
}

fn rises(rates: &[f64]) -> bool {
    rates.windows(2).all(|pair| pair[0] < pair[1])
}

/// The first payload whose share of the link's rate disagrees with the picture.
fn disagreeing(shares: &[f64], far: f64) -> Option<u64> {
    let pairs = PAYLOADS.into_iter().zip(shares);
    pairs.filter(|(payload, share)| (**share < far) != (*payload < LARGE)).map(|(payload, _)| payload).next()
}

/// A write of card 0 to host memory.
fn write(bytes: u64) -> Transfer {
    let window = Window { offset: 0, len: bytes, pattern: Pattern::Sequential };
    Transfer { card: 0, verb: Verb::Store, partner: Partner::Host, bytes, count: 1, window, outstanding: None }
}

/// Bytes per second.
fn rate(bytes: u64, ns: f64) -> f64 {
    bytes as f64 * 1e9 / ns
}

fn link_rate(platform: &Platform) -> Result<f64, String> {
    Ok(transfer_ceiling(platform, &write(BYTES)).ok_or("the transfer has no ceiling")?.rate.bytes_per_s())
}

fn simulated_rate(platform: &Platform) -> Result<f64, String> {
    let mut machine = SimulatedMachine::new(platform).map_err(|error| error.to_string())?;
    let mut samples = Samples::wanted(1);
    machine.run(&Plan::new(write(BYTES), 1), &mut samples).map_err(|error| error.to_string())?;
    let taken = samples.taken.first().ok_or("no sample was taken")?;
    Ok(rate(BYTES, taken.delivered.as_ns()))
}

/// Bytes per second of a whole call of the driver, whose descriptors a core writes, by formula.
fn called_rate(platform: &Platform) -> Result<f64, String> {
    let call = DmaCall {
        transfer: write(CALL_BYTES),
        channel: 0,
        share: Share::Call,
        descriptors: Descriptors::Written(MemoryType::Uc),
        completion: Completion::Interrupt,
    };
    let plan = Plan::new(Work::from(call), 1);
    let said = predict(platform, &plan).ok_or("there is no formula for a call of the driver")?;
    Ok(rate(CALL_BYTES, said.delivered_ns))
}

fn with(platform: &Platform, key: &str, value: f64) -> Result<Platform, String> {
    platform.with(key, value, Origin::Assumed("for a rule".to_owned())).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rosta() -> Platform {
        lanemark_platform::preset("rosta-virtex7").unwrap().unwrap()
    }

    #[test]
    fn the_shape_sets_a_lower_limit_that_a_nanosecond_less_misses() {
        let platform = rosta();
        let least = least_cost(&platform, FAR).unwrap().unwrap();
        assert!(has_shape(&platform, least, FAR).unwrap());
        assert!(!has_shape(&platform, least - 1, FAR).unwrap());
        assert!(has_shape(&platform, MOST_NS, FAR).unwrap());
        let at = |ns: u32| {
            small_payloads_fall_short_of_the_link(&with(&platform, "memory.partial_line_ns", ns.into()).unwrap())
        };
        assert!(at(least).is_ok());
        assert!(at(least - 1).unwrap_err().contains("32 B disagrees"));
    }

    #[test]
    fn the_formula_is_exact_where_partial_lines_bind_and_never_low_elsewhere() {
        for ns in [0.0, 5.0, 15.0, 40.0] {
            let platform = with(&rosta(), "memory.partial_line_ns", ns).unwrap();
            for payload in PAYLOADS {
                let platform = with(&platform, "dma.write_bytes", payload as f64).unwrap();
                let said = predict(&platform, &Plan::new(write(BYTES), 1)).unwrap();
                let found = simulated_rate(&platform).unwrap();
                let off = rate(BYTES, said.delivered_ns) / found - 1.0;
                // Elsewhere link and engine take nearly the same time, and the larger of both is a lower bound.
                let most = if ns >= 15.0 && payload < 64 { 0.001 } else { 0.1 };
                assert!((-1e-9..most).contains(&off), "{ns} ns, {payload} B: {off}");
            }
        }
    }

    #[test]
    fn full_lines_have_the_same_rate_at_any_cost() {
        let of = |ns: f64| {
            let platform = with(&rosta(), "memory.partial_line_ns", ns).unwrap();
            simulated_rate(&with(&platform, "dma.write_bytes", 64.0).unwrap()).unwrap()
        };
        assert_eq!(of(0.0).to_bits(), of(1000.0).to_bits());
    }
}
