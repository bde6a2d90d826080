//! Memory types of a BAR.

use crate::rule::{Outcome, hold};
use crate::trial::Trial;
use lanemark_machine::{Machine, Plan, Step, Width};
use lanemark_platform::memory_type::{Effective, Manual, Pat, effective, effective_of_encodings};
use lanemark_platform::spec::Vendor;
use lanemark_platform::{Platform, RegionKind};
use lanemark_sim::SimulatedMachine;
use lanemark_units::MemoryType;

/// Loads a line through WT and WP after the device changed it: the old bytes are returned until the line is flushed.
pub(crate) fn cached_lines_go_stale(platform: &Platform) -> Outcome {
    for kind in [MemoryType::Wt, MemoryType::Wp] {
        let mut board = Trial::new(platform)?;
        board.board.observe_loads(0);
        let look = board.load(0, Width::B8, kind);
        board.run(0, vec![look.clone()])?;
        let name = board.region.clone();
        board.board.region_mut(&name).ok_or("no region")?.memory.write(0, &[0xAB; 8]);
        board.run(0, vec![look.clone()])?;
        board.run(0, vec![Step::FlushLines(board.span(0, 64, kind)), look])?;
        let seen: Vec<bool> = board.board.loads_seen(0).iter().map(|seen| seen.bytes == [0xAB; 8]).collect();
        if seen != [false, false, true] {
            return Err(format!("{kind}: the device's bytes were returned by loads {seen:?}"));
        }
    }
    Ok("WT and WP loads return the device's bytes only after the line is flushed".to_owned())
}

/// Maps a BAR as WB: the machine refuses the plan.
pub(crate) fn wb_is_refused(platform: &Platform) -> Outcome {
    let board = Trial::new(platform)?;
    let plan = Plan::new(vec![board.load(0, Width::B8, MemoryType::Wb)], 1);
    let machine = SimulatedMachine::new(platform).map_err(|error| error.to_string())?;
    match machine.supports(&plan) {
        Err(unsupported) => Ok(unsupported.to_string()),
        Ok(()) => Err("a plan that maps the BAR WB is accepted".to_owned()),
    }
}

/// Reads a clear-on-read register twice: through UC both reads reach it, through WT the second hits the cache.
pub(crate) fn side_effects_need_uc(platform: &Platform) -> Outcome {
    let looks = |kind: MemoryType| -> Result<Vec<bool>, String> {
        let mut board = Trial::on(platform, |kind| kind == RegionKind::Registers)?;
        let name = board.region.clone();
        let region = board.board.region_mut(&name).ok_or("no registers")?;
        region.clear_on_read(0);
        region.memory.write(0, &[1; 8]);
        board.board.observe_loads(0);
        let look = board.load(0, Width::B8, kind);
        board.run(0, vec![look.clone(), look])?;
        Ok(board.board.loads_seen(0).iter().map(|seen| seen.bytes == [1; 8]).collect())
    };
    let (uc, wt) = (looks(MemoryType::Uc)?, looks(MemoryType::Wt)?);
    hold(
        uc == [true, false] && wt == [true, true],
        "a clear-on-read register: the second UC read returns the cleared value, the second WT read hits the cache"
            .to_owned(),
    )
}

/// Looks up effective memory types by MTRR and PAT in the tables of the manuals.
pub(crate) fn mtrr_and_pat_determine_the_type(platform: &Platform) -> Outcome {
    let manual = match platform.core.vendor.value {
        Vendor::Intel => Manual::Intel,
        Vendor::Amd => Manual::Amd,
        Vendor::Arm => return Err("an Arm core has no MTRRs; its page tables alone give the memory type".to_owned()),
    };
    let types = [MemoryType::Wt, MemoryType::Wp, MemoryType::Uc, MemoryType::Wb];
    let under_wb_pages = types.map(|mtrr| effective(manual, mtrr, Pat::Wb));
    let holds = under_wb_pages == types.map(Effective::Type)
        && effective(manual, MemoryType::Uc, Pat::Wc) == Effective::Type(MemoryType::Wc)
        && effective_of_encodings(manual, 2, 6) == Effective::Undefined;
    hold(holds, "an MTRR of type WT or WP under WB pages gives WT or WP; PAT WC wins; reserved is undefined".to_owned())
}
