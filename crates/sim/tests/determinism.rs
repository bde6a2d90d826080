//! Determinism: the same platform and plan give identical results, boards are independent, and no payload slot leaks.

mod random;
mod stage;

use lanemark_machine::{Cause, Lane, Machine, Plan, Samples, Step};
use lanemark_sim::{Board, CardIndex, SimulatedMachine};
use random::{Random, plan};

/// Returns the observable results of a run as text.
fn trace(seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut machine = SimulatedMachine::new(&random.platform()).unwrap();
    machine.board_mut().record_crossings();
    for core in 0..machine.board_mut().cores() {
        machine.board_mut().observe_loads(core);
    }
    let plan = plan(&mut random, &machine);
    let mut samples = Samples::wanted(2);
    let result = machine.run(&plan, &mut samples);
    let board = machine.board_mut();
    let loads: Vec<_> = (0..board.cores()).map(|core| board.loads_seen(core).to_vec()).collect();
    let crossed = board.crossed(CardIndex(0));
    format!("{result:?} {samples:?} {:?} {crossed:?} {loads:?}", board.crossings())
}

#[test]
fn the_same_platform_and_plan_give_an_identical_trace() {
    for seed in 0..150 {
        assert_eq!(trace(seed), trace(seed), "seed {seed}");
    }
}

/// Returns a board with the lanes of its plan started.
fn started(seed: u64) -> Board {
    let mut random = Random::new(seed);
    let machine = SimulatedMachine::new(&random.platform()).unwrap();
    let plan = plan(&mut random, &machine);
    let mut board = Board::new(&Random::new(seed).platform()).unwrap();
    board.record_crossings();
    for lane in plan.work.lanes() {
        board.start(lane, plan.passes, 0);
    }
    board
}

fn state(board: &mut Board) -> String {
    let waits = (0..board.cores()).map(|core| board.waits(core)).collect::<Vec<[_; Cause::ALL.len()]>>();
    let crossed = board.crossed(CardIndex(0));
    format!("{:?} {:?} {crossed:?} {waits:?}", board.now(), board.crossings())
}

#[test]
fn two_boards_stepped_alternately_give_the_same_results_as_alone() {
    for seed in 0..60 {
        let alone = [seed, seed + 1000].map(|seed| {
            let mut board = started(seed);
            while board.step() {}
            state(&mut board)
        });
        let [mut one, mut other] = [seed, seed + 1000].map(started);
        loop {
            let went = (one.step(), other.step());
            if went == (false, false) {
                break;
            }
        }
        assert_eq!([state(&mut one), state(&mut other)], alone, "seed {seed}");
    }
}

#[test]
fn small_time_slices_give_the_same_result_as_a_large_one() {
    for seed in 0..60 {
        let mut whole = started(seed);
        while whole.step() {}
        let mut sliced = started(seed);
        while let Some(next) = sliced.next_at() {
            assert!(next >= sliced.now(), "seed {seed}: time runs backwards");
            sliced.run_until(next);
            assert_eq!(sliced.now(), next);
        }
        assert_eq!(state(&mut sliced), state(&mut whole), "seed {seed}");
    }
}

#[test]
fn no_payload_slot_leaks() {
    for seed in 0..400 {
        let mut board = started(seed);
        while board.step() {}
        let gathered: usize = (0..board.cores()).map(|core| board.core(core).lines_open() as usize).sum();
        assert_eq!(board.slots_in_use(), gathered, "seed {seed}: only open lines have a slot");
        for core in 0..board.cores() {
            board.flush(core);
        }
        while board.step() {}
        assert_eq!(board.slots_in_use(), 0, "seed {seed}");
        assert!((0..board.cores()).all(|core| board.core(core).is_drained()), "seed {seed}");
    }
}

#[test]
fn samples_that_start_on_an_idle_board_are_equal() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let mut machine = SimulatedMachine::new(&random.platform()).unwrap();
        let plan = plan(&mut random, &machine);
        // Caches and streaming buffers keep lines between samples; stores alone leave no state.
        let stores = |lane: &Lane| {
            let steps: Vec<Step> = lane.task.steps().iter().filter(|step| random::only_stores(step)).cloned().collect();
            (!steps.is_empty()).then_some(Lane { core: lane.core, task: steps.into() })
        };
        let lanes: Vec<Lane> = plan.work.lanes().iter().filter_map(stores).collect();
        if lanes.is_empty() {
            continue;
        }
        let plan = Plan { work: lanes.into(), ..plan };
        let mut samples = Samples::wanted(3);
        machine.run(&plan, &mut samples).unwrap();
        assert!(samples.taken.windows(2).all(|pair| pair[0] == pair[1]), "seed {seed}: {:?}", samples.taken);
    }
}

#[test]
fn leaving_out_the_critical_path_changes_no_other_result() {
    let mut with_path = 0;
    for seed in 0..100 {
        let mut random = Random::new(seed);
        let platform = random.platform();
        let mut machine = SimulatedMachine::new(&platform).unwrap();
        let plan = plan(&mut random, &machine);
        let run = |machine: &mut SimulatedMachine| {
            let mut samples = Samples::wanted(2);
            let result = machine.run(&plan, &mut samples);
            let path = std::mem::take(&mut samples.path);
            (format!("{result:?} {samples:?}"), path)
        };
        let (expected, path) = run(&mut machine);
        with_path += usize::from(!path.is_empty());
        let left_out = run(&mut SimulatedMachine::new(&platform).unwrap().without_path());
        assert_eq!(left_out, (expected, vec![]), "seed {seed}");
    }
    assert!(with_path > 50, "{with_path} of 100 plans have a path");
}
