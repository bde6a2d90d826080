//! System load at an instant.

use crate::files::{Files, Folder};
use crate::sysfs::processors_of;
use crate::{Processors, Seen};
use std::path::Path;

/// Load averages and thread counts of this machine, from `/proc/loadavg`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Load {
    /// Load averages over 1, 5 and 15 minutes: threads that were runnable or in uninterruptible sleep
    /// (`kernel/sched/loadavg.c` of Linux).
    pub means: [f64; 3],
    /// Runnable threads, including the calling one.
    pub runnable: u32,
    /// Total number of threads.
    pub threads: u32,
}

impl Load {
    /// The current load of this machine.
    #[must_use]
    pub fn of_this_machine() -> Seen<Load> {
        Files::new(&Folder::new(Path::new("/"))).fact("proc", "loadavg", load)
    }
}

impl Processors {
    /// The CPUs of this machine, whether or not it has PCI.
    #[must_use]
    pub fn of_this_machine() -> Processors {
        processors_of(&Files::new(&Folder::new(Path::new("/"))))
    }
}

/// Parses a line such as `0.52 0.58 0.59 3/602 11278`.
fn load(text: &str) -> Option<Load> {
    let mut words = text.split_whitespace();
    let mut mean = || words.next()?.parse::<f64>().ok().filter(|mean| mean.is_finite() && *mean >= 0.0);
    let means = [mean()?, mean()?, mean()?];
    let (runnable, threads) = words.next()?.split_once('/')?;
    Some(Load { means, runnable: runnable.parse().ok()?, threads: threads.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_line_has_three_averages_and_two_counts() {
        let read = load("0.52 0.58 10.59 3/602 11278").unwrap();
        assert_eq!(read, Load { means: [0.52, 0.58, 10.59], runnable: 3, threads: 602 });
        for garbled in ["", "0.52 0.58", "0.52 0.58 NaN 3/602", "0.52 0.58 -1 3/602", "0.52 0.58 0.59 3", "a b c 1/2"] {
            assert_eq!(load(garbled), None, "{garbled}");
        }
    }
}
