//! Random plans for a card, reproducible from a seed, and what the simulated card sends for them.

use crate::card::{MEMORY, MEMORY_BYTES};
use fastrand::Rng;
use lanemark_engine::Slot;
use lanemark_machine::{
    Access, Fence, Order, Partner, Pattern, Plan, Samples, Span, Step, Stream, Trace, TraceGap, Transfer, Verb, Width,
    Window, Work,
};
use lanemark_platform::Platform;
use lanemark_sim::{Board, OUTSIDE, SimulatedMachine, Tlp, TlpKind};
use lanemark_units::{BarOffset, MemoryType, Ticks};

/// Bytes of the registers of the engine that keep what is written.
const PLAIN_REGISTERS: u64 = 0x14;
/// Most bytes of a transfer of the card.
const MOST_BYTES: u64 = 4096;

/// The platform of the card with a random host: packet sizes, and memory below 4 GiB, above, or on both sides.
pub fn settings(random: &mut Rng, platform: &Platform) -> Platform {
    let mut changed = platform.clone();
    changed.link.mps_bytes.value = pick(random, &[128, 256, 512]);
    changed.link.mrrs_bytes.value = pick(random, &[128, 256, 512, 1024, 4096]);
    changed.link.rcb_bytes.value = pick(random, &[64, 128]);
    if let Some(memory) = &mut changed.memory {
        memory.address_bytes.value = pick(random, &[0x1000_0000, 0xFFFF_0000, 1 << 32, 0x12_3456_0000]);
        memory.size_bytes.value = 1 << 20;
    }
    changed
}

pub fn pick<T: Copy>(random: &mut Rng, from: &[T]) -> T {
    from[random.usize(0..from.len())]
}

/// A length in bytes, often short, at most `most`.
fn length(random: &mut Rng, most: u64) -> u64 {
    let limit = pick(random, &[8, 40, 300, 1200, most]).min(most);
    random.u64(1..=limit)
}

/// DMA of the card: one to four transfers of any length to any address, often across 4 KiB.
pub fn dma(random: &mut Rng) -> Plan {
    let (bytes, count) = (length(random, MOST_BYTES), random.u64(1..=4));
    transfers(random, bytes, count)
}

/// DMA of the card: one transfer of at least 1 KiB.
pub fn long_dma(random: &mut Rng) -> Plan {
    let bytes = random.u64(1024..=MOST_BYTES);
    transfers(random, bytes, 1)
}

fn transfers(random: &mut Rng, bytes: u64, count: u64) -> Plan {
    let verb = pick(random, &[Verb::Load, Verb::Store]);
    let page = 4096 * random.u64(1..100);
    let offset = match random.u8(0..4) {
        0 => page,
        1 => page + random.u64(0..4096),
        // Across 4 KiB.
        _ => page - random.u64(1..=bytes),
    };
    let pattern =
        pick(random, &[Pattern::Sequential, Pattern::Strided(bytes + 3), Pattern::Random, Pattern::RandomStrided(64)]);
    let window = Window { offset, len: 6 * MOST_BYTES, pattern };
    // The engine does one transfer at a time.
    let outstanding = (verb == Verb::Load).then_some(1);
    Plan::new(Transfer { card: 0, verb, partner: Partner::Host, bytes, count, window, outstanding }, 1)
}

/// Loads and stores of a core: any width at any offset, through UC and WC, in the memory of the card and in registers.
pub fn accesses(random: &mut Rng) -> Plan {
    let mut steps = Vec::new();
    // A small window, so that loads find what stores have left.
    let start = u64::from(MEMORY) + random.u64(0..u64::from(MEMORY_BYTES) - 512);
    for _ in 0..random.u8(1..8) {
        let is_register = random.u8(0..5) == 0;
        let (from, most) = if is_register { (0, PLAIN_REGISTERS) } else { (start, 512) };
        let width = pick(random, &Width::ALL[..if is_register { 4 } else { 7 }]);
        let verb = pick(random, &[Verb::Load, Verb::Store]);
        let memory_type = if is_register { MemoryType::Uc } else { pick(random, &[MemoryType::Uc, MemoryType::Wc]) };
        let is_repeated = random.u8(0..6) == 0;
        let len = if is_repeated { width.bytes().min(most) } else { length(random, most.min(200)) };
        let offset = from + random.u64(0..=most - len);
        let order = if is_repeated { Order::SameAddress { times: random.u64(2..5) } } else { Order::Ascending };
        let span = Span { at: BarOffset { bar: 0, offset }, len, memory_type };
        steps.push(Step::Stream(Stream { order, ..Stream::over(verb, Access::Plain(width), span) }));
        if random.bool() {
            steps.push(Step::Fence(pick(random, &[Fence::Sfence, Fence::Mfence])));
        }
    }
    steps.push(Step::Fence(Fence::Mfence));
    Plan::new(steps, 1)
}

/// A load or a store that no instruction of a core makes, as of another device.
#[derive(Clone, Copy, Debug)]
pub struct OddAccess {
    pub verb: Verb,
    /// Offset in BAR 0, a multiple of 4.
    pub offset: u64,
    pub length_dw: u16,
    pub first_be: u8,
    pub last_be: u8,
}

/// Loads and stores with any byte enables that section 2.2.5 allows, of up to 128 B, also without an enabled byte.
pub fn odd_accesses(random: &mut Rng) -> Vec<OddAccess> {
    let start = u64::from(MEMORY) + 4 * random.u64(0..u64::from(MEMORY_BYTES) / 4 - 64);
    let mut accesses = Vec::new();
    for _ in 0..random.u8(2..24) {
        let verb = pick(random, &[Verb::Load, Verb::Store]);
        let any = random.u16(1..=32);
        let length_dw = pick(random, &[1, 1, 2, 3, any]);
        let mut offset = start + 4 * random.u64(0..=32);
        let (first_be, last_be) = match length_dw {
            1 => (random.u8(0..16), 0),
            2 if random.bool() => {
                // Holes within an aligned QW.
                offset &= !7;
                (random.u8(1..16), random.u8(1..16))
            }
            _ => (pick(random, &[0xf, 0xe, 0xc, 0x8]), pick(random, &[0xf, 0x7, 0x3, 0x1])),
        };
        // No request crosses 4 KiB.
        if offset % 4096 + 4 * u64::from(length_dw) > 4096 {
            offset -= 128;
        }
        accesses.push(OddAccess { verb, offset, length_dw, first_be, last_be });
    }
    accesses
}

/// Sends loads and stores to the simulated card. A store behind a load is sent 100 us later: it could pass the load
/// (section 2.4.1), which could then return the data from before or after the store.
pub fn simulate_odd(platform: &Platform, accesses: &[OddAccess]) -> Simulated {
    let bar = platform.bar(0).unwrap().address_bytes.value;
    simulate_board(platform, |board| {
        let (mut at, mut was_load) = (Ticks::ZERO, false);
        for (nth, access) in accesses.iter().enumerate() {
            let OddAccess { verb, offset, length_dw, first_be, last_be } = *access;
            let (kind, payload) = match verb {
                Verb::Load => (TlpKind::MRd, Slot::NONE),
                Verb::Store => {
                    let bytes: Vec<u8> = (0..4 * length_dw).map(|place| (place as u8) ^ (nth as u8) << 3).collect();
                    (TlpKind::MWr, board.payload(&bytes))
                }
            };
            let (address, requester, tag) = (bar + offset, OUTSIDE, nth as u16);
            let tlp = Tlp { address, length_dw, first_be, last_be, requester, tag, payload, ..Tlp::of(kind) };
            if was_load && verb == Verb::Store {
                at += Ticks::whole_ns(100_000);
            }
            was_load = verb == Verb::Load;
            board.inject(at, tlp);
        }
    })
}

/// TLPs of the simulated card in a plan, its memory before it, and the counted beats.
#[derive(Default)]
pub struct Simulated {
    pub trace: Trace,
    /// Of loads and stores: the content of the registers and of the memory of the card before the plan.
    pub registers: Vec<u8>,
    pub memory: Vec<u8>,
    /// Beats written to the memory and read from it by loads and stores.
    pub beats: (u64, u64),
}

/// Runs a plan on the simulated card.
pub fn simulate(platform: &Platform, plan: &Plan) -> Simulated {
    let simulated = if let Work::Cores(cores) = &plan.work {
        simulate_board(platform, |board| {
            for lane in &cores.lanes {
                board.start(lane, 1, 0);
            }
        })
    } else {
        let mut samples = Samples::wanted(1);
        let mut machine = SimulatedMachine::new(platform).unwrap();
        let trace = machine.trace(plan, &mut samples, Trace::MOST);
        Simulated { trace: trace.unwrap_or_else(|error| panic!("{error}: {plan:?}")), ..Simulated::default() }
    };
    assert_eq!(simulated.trace.dropped, TraceGap::default(), "{plan:?}");
    simulated
}

/// Runs what `start` starts on a board, which also shows the memory of the card.
fn simulate_board(platform: &Platform, start: impl FnOnce(&mut Board)) -> Simulated {
    let mut board = Board::new(platform).unwrap();
    let mut content = |region: &str, bytes: usize| {
        let mut content = vec![0; bytes];
        board.region_mut(region).unwrap().memory.read(0, &mut content);
        content
    };
    let registers = content("registers", PLAIN_REGISTERS as usize);
    let memory = content("sram", MEMORY_BYTES as usize);
    board.observe(platform, Trace::MOST).unwrap();
    start(&mut board);
    board.run_until(Ticks::whole_ns(1_000_000_000));
    let trace = board.take_trace();
    assert_eq!(trace.dropped, TraceGap::default());
    let beats = board.region_mut("sram").unwrap().take_beats();
    Simulated { trace, registers, memory, beats: (beats.write, beats.read) }
}
