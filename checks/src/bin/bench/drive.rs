//! Commands of an NVMe drive through a queue pair of this program, compared with a bare loop on the same memory.

use crate::{instructions, row};
use lanemark_hw::{SubmittedBy, submitted};

/// First argument of the process whose instructions are counted.
pub const ONCE: &str = "submission-path";

const WAYS: [(&str, SubmittedBy); 3] =
    [("driver", SubmittedBy::Driver), ("loop", SubmittedBy::BareLoop), ("device", SubmittedBy::Nothing)];

/// Fewest commands of a counted process.
const FEW: u64 = 100_000;

/// Instructions of a command, without those of the device.
pub fn drive() {
    let counted = WAYS.map(|(name, _)| instructions::of(&[ONCE, name], FEW));
    let [Some(driver), Some(bare), Some(device)] = counted else {
        return println!("drive: {}", instructions::NOT_COUNTED);
    };
    row("drive: instructions of a command from submission to completion", vec![driver - device]);
    row("  baseline: a bare loop of stores, doorbells and polls", vec![bare - device]);
    row("  driver over bare loop, times (target: 1.1)", vec![(driver - device) / (bare - device)]);
}

/// Runs commands in a separate process.
///
/// # Errors
/// If the name is unknown or a command fails.
pub fn once(name: &str, commands: u64) -> Result<(), Box<dyn std::error::Error>> {
    let (_, by) = WAYS.into_iter().find(|(known, _)| *known == name).ok_or("unknown way")?;
    Ok(submitted(by, commands)?)
}
