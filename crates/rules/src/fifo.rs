//! A queue of a device behind write-combining memory.

use crate::rule::{Outcome, hold};
use crate::trial::Trial;
use lanemark_machine::{Access, Fence, Order, Step, Stream, Verb, Width};
use lanemark_platform::{Platform, RegionKind};
use lanemark_units::MemoryType;

/// The platform with its storage turned into queues.
fn with_fifo(platform: &Platform) -> Platform {
    let mut changed = platform.clone();
    for region in &mut changed.regions {
        if matches!(region.kind.value, RegionKind::Sram | RegionKind::Ddr) {
            region.kind.value = RegionKind::Fifo;
        }
    }
    changed
}

/// Lengths of the queue's entries after `body` and an SFENCE.
fn fifo_after(platform: &Platform, body: fn(&Trial) -> Vec<Step>) -> Result<Vec<u64>, String> {
    let platform = with_fifo(platform);
    let mut board = Trial::on(&platform, |kind| kind == RegionKind::Fifo)?;
    let mut ops = body(&board);
    ops.push(Step::Fence(Fence::Sfence));
    board.run(0, ops)?;
    let name = board.region.clone();
    let region = board.board.region_mut(&name).ok_or("the platform has no queue")?;
    Ok(region.fifo.iter().map(|entry| u64::from(entry.len)).collect())
}

/// Six stores of one byte to the same address.
fn six_to_one_address(board: &Trial, kind: MemoryType) -> Vec<Step> {
    let order = Order::SameAddress { times: 6 };
    let stream = Stream::over(Verb::Store, Access::Plain(Width::B1), board.span(0, 1, kind));
    vec![Step::Stream(Stream { order, ..stream })]
}

/// Stores six bytes to one address of a queue: six entries through UC, one through WC.
pub(crate) fn fifo_behind_wc_loses_same_address_writes(platform: &Platform) -> Outcome {
    let (uc, wc) = (
        fifo_after(platform, |board| six_to_one_address(board, MemoryType::Uc))?,
        fifo_after(platform, |board| six_to_one_address(board, MemoryType::Wc))?,
    );
    hold(uc == [1; 6] && wc == [1], format!("six bytes to one address: {} entries by UC, {} by WC", uc.len(), wc.len()))
}

/// Stores six bytes to different addresses of a queue through WC: all six arrive.
pub(crate) fn fifo_behind_wc_receives_writes_to_different_addresses(platform: &Platform) -> Outcome {
    let entries = fifo_after(platform, |board| vec![board.store(0, 6, Width::B1, MemoryType::Wc)])?;
    let bytes: u64 = entries.iter().sum();
    hold(bytes == 6, format!("six bytes to addresses 0 to 5: {bytes} bytes in {} entries", entries.len()))
}
