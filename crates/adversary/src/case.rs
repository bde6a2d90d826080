//! A case: transfers and situations, computed from a seed.

use crate::situation::{SITUATIONS, Situation};
use crate::target::Target;
use fastrand::Rng;
use lanemark_devices::Direction;
use lanemark_wire::Rcb;

/// A transfer and the situations around it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// Direction.
    pub direction: Direction,
    /// Offset in the host memory of the test bench.
    pub host: u64,
    /// Offset in the memory of the device.
    pub device: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// Max Payload Size in bytes.
    pub mps: u16,
    /// Max Read Request Size in bytes.
    pub mrrs: u16,
    /// Whether an interrupt is requested.
    pub has_interrupt: bool,
    /// Legal situations.
    pub legal: Vec<Situation>,
    /// An illegal situation, and the number of requests before it.
    pub illegal: Option<(Situation, u32)>,
    /// Seed of all random choices during the transfer.
    pub seed: u64,
}

/// A run: settings and transfers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    /// The seed that gave this case.
    pub seed: u64,
    /// Read Completion Boundary of the host.
    pub rcb: Rcb,
    /// Number of usable tags.
    pub tags: u16,
    /// Whether the host has few buffers for requests.
    pub is_scarce: bool,
    /// Transfers.
    pub steps: Vec<Step>,
}

/// Max Payload Sizes and Max Read Request Sizes in bytes.
pub(crate) const SIZES: [u16; 3] = [128, 256, 512];

impl Case {
    /// The case of a seed; with illegal situations if asked.
    #[must_use]
    pub fn of_seed(seed: u64, target: &Target, is_illegal: bool) -> Case {
        let mut random = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let steps = random.usize(3..10);
        let mut steps: Vec<Step> = (0..steps).map(|_| step(&mut random, target, is_illegal)).collect();
        if is_illegal {
            // Illegal situations take turns, so that a hundred seeds create each of them several times.
            let illegal: Vec<Situation> = illegal_situations().collect();
            let turn = illegal[seed as usize % illegal.len()];
            let place = random.usize(0..steps.len());
            steps[place].direction = Direction::ToDevice;
            steps[place].illegal = Some((turn, random.u32(0..3)));
            if random.bool() {
                // As many reads as the engine can have outstanding.
                let most = target.most_bytes();
                (steps[place].host, steps[place].device, steps[place].bytes) = (0, 0, most);
                steps[place].mrrs = SIZES[0];
            }
            // Another transfer to the device shows what the situation has left behind.
            let mut after = step(&mut random, target, false);
            after.direction = Direction::ToDevice;
            steps.insert(place + 1, after);
        }
        Case {
            seed,
            rcb: if random.bool() { Rcb::B64 } else { Rcb::B128 },
            tags: if random.bool() { 32 } else { 256 },
            is_scarce: random.u8(0..3) == 0,
            steps,
        }
    }
}

/// Every illegal situation.
pub(crate) fn illegal_situations() -> impl Iterator<Item = Situation> {
    SITUATIONS.iter().filter(|row| !row.is_legal).map(|row| row.situation)
}

/// Legal situations of a transfer: at most one of each group.
pub(crate) fn legal_situations(random: &mut Rng) -> Vec<Situation> {
    let mut legal = Vec::new();
    let mut maybe = |random: &mut Rng, each: &[Situation]| {
        let choice = random.usize(0..=each.len() + 1);
        if let Some(situation) = each.get(choice) {
            legal.push(*situation);
        }
    };
    maybe(random, &[Situation::SplitAtEveryRcb, Situation::SplitAnywhere]);
    maybe(random, &[Situation::ReorderedAcrossTags, Situation::InterleavedAcrossTags]);
    maybe(random, &[Situation::DelayedToTimeout, Situation::RandomDelays, Situation::TagsReusedAtOnce]);
    maybe(random, &[Situation::CreditsWithheld, Situation::CreditsOneByOne]);
    for one in [
        Situation::BackPressure,
        Situation::GapsInTlps,
        Situation::PollingDuringTransfer,
        Situation::ZeroLengthRead,
        Situation::OddByteEnables,
        Situation::LoadsAmongStores,
        Situation::BusMasterCleared,
    ] {
        maybe(random, &[one]);
    }
    legal
}

fn step(random: &mut Rng, target: &Target, is_illegal: bool) -> Step {
    let direction = if random.bool() { Direction::ToDevice } else { Direction::ToHost };
    let alignment = target.alignment();
    let down = |value: u64| value / alignment * alignment;
    let most = target.most_bytes();
    let bytes = match random.u8(0..8) {
        0 => random.u64(1..=16.min(most)),
        1..=4 => random.u64(1..=600.min(most)),
        _ => random.u64(1..=most),
    };
    let bytes = down(bytes).max(alignment);
    let device = down(random.u64(0..=target.memory_bytes() - bytes));
    let host_bytes = target.host_bytes();
    // Half of the buffers are near a 4 KiB boundary.
    let host = if random.bool() {
        random.u64(0..=host_bytes - bytes)
    } else {
        let page = random.u64(1..host_bytes / 4096) * 4096;
        (page + random.u64(0..64)).saturating_sub(random.u64(0..=bytes.min(64))).min(host_bytes - bytes)
    };
    let legal = legal_situations(random);
    let illegal: Vec<Situation> = illegal_situations().collect();
    let illegal = (is_illegal && random.u8(0..4) == 0).then(|| {
        let situation = match direction {
            Direction::ToDevice => illegal[random.usize(0..illegal.len())],
            Direction::ToHost => Situation::FunctionLevelReset,
        };
        (situation, random.u32(0..4))
    });
    Step {
        direction,
        host: down(host),
        device,
        bytes,
        mps: SIZES[random.usize(0..SIZES.len())],
        mrrs: SIZES[random.usize(0..SIZES.len())],
        has_interrupt: target.has_interrupt() && random.bool(),
        legal,
        illegal,
        seed: random.u64(..),
    }
}
