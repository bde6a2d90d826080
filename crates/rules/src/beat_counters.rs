//! Counters of the beats that a device memory receives.

use crate::condition::with;
use crate::rule::{Outcome, hold};
use crate::trial::Trial;
use lanemark_machine::Width;
use lanemark_platform::{Platform, RegionKind};
use lanemark_units::MemoryType;

/// The platform with storage that has beat counters.
fn with_counters(platform: &Platform) -> Result<Platform, String> {
    let mut changed = platform.clone();
    for region in &mut changed.regions {
        if region.kind.value == RegionKind::Sram {
            region.kind.value = RegionKind::Ddr;
        }
    }
    let name =
        changed.regions.iter().find(|region| region.kind.value == RegionKind::Ddr).map(|region| region.name.clone());
    let name = name.ok_or("the platform has no storage")?;
    with(&changed, &format!("region.{name}.beat_bytes"), 64.0)
}

/// Counts the beats of 16 stores of 4 B: 16 through UC, one through WC.
pub(crate) fn wc_combines_sixteen_stores_into_one_beat(platform: &Platform) -> Outcome {
    let platform = with_counters(platform)?;
    let mut beats = [0; 2];
    for (count, kind) in beats.iter_mut().zip([MemoryType::Uc, MemoryType::Wc]) {
        let mut board = Trial::new(&platform)?;
        board.run(0, vec![board.store(0, 64, Width::B4, kind)])?;
        let region = board.region.clone();
        *count = board.board.region_mut(&region).map_or(0, |region| region.take_beats().write);
    }
    hold(beats == [16, 1], format!("16 stores of 4 B make {} beats on UC and {} on WC", beats[0], beats[1]))
}

/// Reads the beat counter twice: the second value is 0.
pub(crate) fn counters_clear_when_read(platform: &Platform) -> Outcome {
    let platform = with_counters(platform)?;
    let mut board = Trial::new(&platform)?;
    board.run(0, vec![board.store(0, 64, Width::B4, MemoryType::Uc)])?;
    let name = board.region.clone();
    let mut look = || board.board.region_mut(&name).map_or(0, |region| region.take_beats().write);
    let (first, second) = (look(), look());
    hold(first == 16 && second == 0, format!("{first} beats at the first read, {second} at the second"))
}
