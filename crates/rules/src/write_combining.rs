//! Write-combining buffers of a core.

use crate::condition::with;
use crate::rule::{Outcome, hold};
use crate::trial::Trial;
use lanemark_machine::{Fence, Step, Width};
use lanemark_platform::Platform;
use lanemark_units::MemoryType;

/// Stores half a line, then a whole line, then the other half: two writes arrive, the later line first.
pub(crate) fn wc_keeps_neither_order_nor_number_of_writes(platform: &Platform) -> Outcome {
    let mut board = Trial::new(platform)?;
    // The first half of line 0, all of line 1, the second half of line 0.
    let (wc, first, second) = (MemoryType::Wc, 0, 64);
    let body = vec![
        board.store(first, 32, Width::B4, wc),
        board.store(second, 64, Width::B4, wc),
        board.store(first + 32, 32, Width::B4, wc),
    ];
    board.run(0, body)?;
    let seen = board.writes();
    hold(seen == [(64, 64), (0, 64)], format!("32 stores, {} writes, the later line first", seen.len()))
}

/// Drains half a line from a write-combining buffer: it leaves in several writes.
pub(crate) fn partial_flush_splits_a_line(platform: &Platform) -> Outcome {
    let mut board = Trial::new(platform)?;
    let body = vec![board.store(0, 32, Width::B4, MemoryType::Wc), Step::Fence(Fence::Sfence)];
    board.run(0, body)?;
    let seen = board.writes();
    let bytes: u32 = seen.iter().map(|write| write.1).sum();
    hold(seen.len() > 1 && bytes == 32, format!("half a line leaves in {} writes, {bytes} B in total", seen.len()))
}

/// Loads by another core what is in a write-combining buffer: the old bytes are returned until SFENCE.
pub(crate) fn another_core_reads_stale_until_flush(platform: &Platform) -> Outcome {
    if platform.core.cores.value < 2 {
        return Err("the platform needs two cores".to_owned());
    }
    let mut board = Trial::new(platform)?;
    board.board.observe_loads(1);
    board.board.observe_loads(0);
    let before = board.device_bytes(0, 8);
    let look = board.load(0, Width::B8, MemoryType::Uc);
    board.run(0, vec![board.store(0, 8, Width::B8, MemoryType::Wc)])?;
    board.run(1, vec![look.clone()])?;
    let stale = board.board.loads_seen(1).last().map(|seen| seen.bytes.clone()).unwrap_or_default();
    board.run(0, vec![Step::Fence(Fence::Sfence)])?;
    board.run(1, vec![look])?;
    let fresh = board.board.loads_seen(1).last().map(|seen| seen.bytes.clone()).unwrap_or_default();
    let device = board.device_bytes(0, 8);
    hold(
        stale == before && fresh == device && device != before,
        "another core and the device see the old bytes until SFENCE, then the new ones".to_owned(),
    )
}

/// Stores to six and to seven lines with six buffers: only the seventh evicts a line.
pub(crate) fn seventh_line_evicts_on_six_buffers(platform: &Platform) -> Outcome {
    let platform = with(platform, "core.wc_buffers", 6.0)?;
    let arrived = |lines: u64| -> Result<usize, String> {
        let mut board = Trial::new(&platform)?;
        let body = (0..lines).map(|line| board.store(line * 64, 8, Width::B8, MemoryType::Wc)).collect();
        board.run(0, body)?;
        Ok(board.writes().len())
    };
    let (six, seven) = (arrived(6)?, arrived(7)?);
    hold(six == 0 && seven == 1, format!("six lines: {six} evicted; with a seventh: {seven}"))
}

/// Executes each fence after a WC store: all but LFENCE drain the buffer.
pub(crate) fn sfence_drains_and_lfence_does_not(platform: &Platform) -> Outcome {
    let arrived = |fence: Option<Fence>| -> Result<usize, String> {
        let mut board = Trial::new(platform)?;
        let mut body = vec![board.store(0, 8, Width::B8, MemoryType::Wc)];
        body.extend(fence.map(Step::Fence));
        board.run(0, body)?;
        Ok(board.writes().len())
    };
    let none = arrived(None)?;
    let lfence = arrived(Some(Fence::Lfence))?;
    let others = [Fence::Sfence, Fence::Mfence, Fence::Locked, Fence::Interrupt];
    let drained = others.into_iter().map(|fence| arrived(Some(fence))).collect::<Result<Vec<_>, _>>()?;
    hold(
        none == 0 && lfence == 0 && drained.iter().all(|writes| *writes == 1),
        "SFENCE, MFENCE, a locked instruction and an interrupt drain; LFENCE does not".to_owned(),
    )
}

/// Counts the lines that leave together when the round trip to the root complex is long.
pub(crate) fn lines_in_flight_equal_the_buffers(platform: &Platform) -> Outcome {
    // With a long round trip to the root complex, lines arrive in groups of as many as there are buffers.
    let buffers = platform.core.wc_buffers.value as usize;
    let far = with(platform, "root_complex.core_round_trip_ns", 100_000.0)?;
    let mut board = Trial::new(&far)?;
    board.run(0, vec![board.store(0, 64 * 32, Width::B8, MemoryType::Wc)])?;
    let times: Vec<f64> = board.board.crossings().iter().map(|crossing| crossing.at.as_ns()).collect();
    let group = times.iter().take_while(|at| **at < times[0] + 50_000.0).count();
    hold(group == buffers.min(32) && (4..=16).contains(&buffers), format!("{group} lines are in flight together"))
}
