//! Bytes are simulated: stored bytes are those of the device, and loads return the bytes of the device.

mod stage;

use lanemark_machine::{Access, Fence, Lane, Machine, Plan, Samples, Step, Stream, Verb, Width};
use lanemark_sim::stored_bytes;
use lanemark_sim::{Board, SimulatedMachine};
use lanemark_units::MemoryType;
use proptest::prelude::*;

const TYPES: [MemoryType; 4] = [MemoryType::Uc, MemoryType::Wc, MemoryType::Wt, MemoryType::Wp];

fn stores() -> Vec<Access> {
    SimulatedMachine::new(&stage::platform("8B", &[])).unwrap().facts().accesses(Verb::Store).to_vec()
}

fn loads() -> Vec<Access> {
    SimulatedMachine::new(&stage::platform("8B", &[])).unwrap().facts().accesses(Verb::Load).to_vec()
}

/// Returns an offset and a length that the instruction supports.
fn allowed(access: Access, offset: u64, len: u64) -> (u64, u64) {
    match access {
        Access::Movdir64b => (offset & !63, len.next_multiple_of(64)),
        Access::NonTemporal(width) => (offset & !(width.bytes() - 1), len),
        _ => (offset, len),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_store_changes_exactly_its_bytes_in_the_device(
        access in prop::sample::select(stores()),
        kind in prop::sample::select(&TYPES[..]),
        policy in prop::sample::select(vec!["8B", "dw", "contiguous"]),
        offset in 1_u64..200,
        len in prop_oneof![1_u64..130, Just(256), Just(511), Just(2048), Just(3001)],
        passes in 1_u64..5,
        buffers in 1_u32..8,
        fence in prop::option::of(prop::sample::select(&Fence::ALL[..])),
    ) {
        let (offset, len) = allowed(access, offset + 64, len);
        let platform = stage::platform(policy, &[("core.wc_buffers", f64::from(buffers))]);
        let mut machine = SimulatedMachine::new(&platform).unwrap();
        let sram = |machine: &mut SimulatedMachine| {
            let mut bytes = vec![0; 4096];
            machine.board_mut().region_mut("sram").unwrap().memory.read(0, &mut bytes);
            bytes
        };
        let mut meant = sram(&mut machine);
        let mut body = vec![stage::stream(Verb::Store, access, stage::span("sram", kind, offset, len))];
        body.extend(fence.map(Step::Fence));
        let mut samples = Samples::wanted(1);
        machine.run(&Plan::new(body, passes), &mut samples).unwrap();
        let confirmed = samples.confirmed.unwrap();
        prop_assert_eq!((confirmed.claimed_bytes, confirmed.confirmed_bytes), (len, len));
        stored_bytes(stage::bus("sram", offset), passes - 1, &mut meant[offset as usize..(offset + len) as usize]);
        prop_assert_eq!(sram(&mut machine), meant);
        prop_assert_eq!(machine.board_mut().slots_in_use(), 0);
    }

    #[test]
    fn loads_return_every_byte_of_the_device(
        access in prop::sample::select(loads()),
        kind in prop::sample::select(&TYPES[..]),
        offset in 0_u64..200,
        len in prop_oneof![1_u64..130, Just(256), Just(511), Just(2100)],
        fence in prop::option::of(prop::sample::select(vec![Fence::Lfence, Fence::Mfence])),
    ) {
        let (offset, len) = allowed(access, offset, len);
        let mut board = Board::new(&stage::platform("8B", &[])).unwrap();
        board.observe_loads(0);
        let stream = Stream { fence_each: fence, ..Stream::over(Verb::Load, access, stage::span("sram", kind, offset, len)) };
        board.start(&Lane { core: 0, task: Step::Stream(stream).into() }, 1, 0);
        while board.step() {}
        prop_assert!(board.core(0).is_done());
        let mut found = vec![None; len as usize];
        for seen in board.loads_seen(0) {
            let at = (seen.address - stage::bus("sram", offset)) as usize;
            for (place, byte) in seen.bytes.iter().enumerate() {
                found[at + place] = Some(*byte);
            }
        }
        let mut bytes = vec![0; len as usize];
        board.region_mut("sram").unwrap().memory.read(offset, &mut bytes);
        prop_assert_eq!(found, bytes.into_iter().map(Some).collect::<Vec<_>>());
        prop_assert_eq!(board.slots_in_use(), 0);
    }

    #[test]
    fn a_load_returns_the_last_store_for_any_pair_of_instructions(
        by in prop::sample::select(stores()),
        with in prop::sample::select(loads()),
        kind in prop::sample::select(&TYPES[..]),
        offset in 0_u64..100,
        len in prop_oneof![1_u64..130, Just(300)],
        loaded_before in any::<bool>(),
    ) {
        let (offset, len) = allowed(by, offset, len);
        let (offset, len) = if matches!(with, Access::NonTemporal(_)) { (offset & !63, len) } else { (offset, len) };
        let mut board = Board::new(&stage::platform("8B", &[])).unwrap();
        let span = stage::span("sram", kind, offset, len);
        let mut body = vec![stage::stream(Verb::Store, by, span), stage::stream(Verb::Load, with, span)];
        if loaded_before {
            body.insert(0, stage::stream(Verb::Load, with, span));
        }
        board.start(&Lane { core: 0, task: body[..body.len() - 1].to_vec().into() }, 1, 7);
        while board.step() {}
        board.observe_loads(0);
        board.start(&Lane { core: 0, task: body[body.len() - 1..].to_vec().into() }, 1, 8);
        while board.step() {}
        for seen in board.loads_seen(0) {
            let mut meant = vec![0; seen.bytes.len()];
            stored_bytes(seen.address, 7, &mut meant);
            prop_assert_eq!(&seen.bytes, &meant, "at {:#x}", seen.address);
        }
    }
}

#[test]
fn a_store_of_one_byte_changes_one_byte() {
    let mut stage = stage::Stage::new();
    let before = stage.device("sram", 0, 16);
    stage.run(vec![stage::stream(Verb::Store, Access::Plain(Width::B1), stage::span("sram", MemoryType::Uc, 7, 1))]);
    stage.quiesce();
    let after = stage.device("sram", 0, 16);
    assert_eq!((&after[..7], &after[8..]), (&before[..7], &before[8..]));
    assert_eq!(after[7..8], stage.stored("sram", 7, 1));
}
