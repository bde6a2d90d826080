//! The simulation of a TLP allocates nothing: after warm-up, a thousand more iterations allocate nothing.

// A global allocator is unsafe by nature; this one forwards every call to the system allocator and counts.
#![allow(unsafe_code)]

mod stage;

use lanemark_machine::{Lane, Step};
use lanemark_sim::Board;
use lanemark_units::MemoryType;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

std::thread_local! {
    /// Per thread, because the test harness has threads of its own.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that is ending has no counter any more.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: every call is forwarded to the system allocator with the same arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller fulfils the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from `alloc` above, hence from the system allocator.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as for `dealloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the allocations of `passes` iterations of the core, from an idle board to an idle board.
fn allocations(board: &mut Board, lane: &Lane, passes: u64) -> u64 {
    let before = ALLOCATIONS.get();
    board.start(lane, passes, 0);
    while board.step() {}
    ALLOCATIONS.get() - before
}

#[test]
fn a_thousand_iterations_after_warm_up_allocate_nothing() {
    let streams: [(&str, Vec<Step>); 4] = [
        ("WC stores of 64 B", vec![stage::store(64, stage::span("sram", MemoryType::Wc, 0, 4096))]),
        ("UC stores of 4 B", vec![stage::store(4, stage::span("sram", MemoryType::Uc, 0, 256))]),
        ("UC loads of 8 B", vec![stage::load(8, stage::span("sram", MemoryType::Uc, 0, 256))]),
        ("WC loads of 64 B", vec![stage::load(64, stage::span("sram", MemoryType::Wc, 0, 256))]),
    ];
    for (what, steps) in streams {
        let mut board = Board::new(&stage::platform("8B", &[])).unwrap();
        let lane = Lane { core: 0, task: steps.into() };
        // Stores gathered by a core are evicted into other queues at the next start.
        for passes in [10, 1] {
            allocations(&mut board, &lane, passes);
        }
        // Starting a lane copies its steps: a constant number of allocations.
        let to_start = allocations(&mut board, &lane, 1);
        assert_eq!(allocations(&mut board, &lane, 1001), to_start, "{what}");
    }
}
