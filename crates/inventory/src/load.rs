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

/// CPU time of this machine since boot, from the first line of `/proc/stat`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CpuTime {
    /// Clock ticks in which a hypervisor ran something else although a CPU of this machine was ready (*steal*).
    pub stolen_ticks: u64,
    /// All clock ticks, of all CPUs.
    pub all_ticks: u64,
}

impl CpuTime {
    /// The CPU time of this machine until now.
    #[must_use]
    pub fn of_this_machine() -> Seen<CpuTime> {
        Files::new(&Folder::new(Path::new("/"))).fact("proc", "stat", cpu_time)
    }

    /// The share of the time since `before` that was stolen, in percent; 0 if no tick has passed.
    #[must_use]
    pub fn stolen_percent_since(&self, before: &CpuTime) -> f64 {
        let all = self.all_ticks.saturating_sub(before.all_ticks);
        let stolen = self.stolen_ticks.saturating_sub(before.stolen_ticks);
        if all == 0 { 0.0 } else { 100.0 * stolen as f64 / all as f64 }
    }
}

/// Parses `cpu  user nice system idle iowait irq softirq steal guest guest_nice`; guest times are part of user and nice times.
fn cpu_time(text: &str) -> Option<CpuTime> {
    let mut words = text.lines().next()?.split_whitespace();
    (words.next()? == "cpu").then_some(())?;
    let ticks: Vec<u64> = words.take(8).map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let [.., stolen_ticks] = ticks[..] else { return None };
    (ticks.len() == 8)
        .then(|| CpuTime { stolen_ticks, all_ticks: ticks.iter().fold(0, |sum, of| u64::saturating_add(sum, *of)) })
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
    fn stolen_time_is_the_eighth_figure_of_the_first_line() {
        let before = cpu_time("cpu  100 0 50 800 10 5 5 30 7 0\ncpu0 1 2 3\n").unwrap();
        assert_eq!(before, CpuTime { stolen_ticks: 30, all_ticks: 1000 });
        let after = cpu_time("cpu 150 0 50 800 10 5 5 80 7 0").unwrap();
        assert_eq!(after.stolen_percent_since(&before), 50.0);
        assert_eq!(before.stolen_percent_since(&before), 0.0);
        assert_eq!(before.stolen_percent_since(&after), 0.0, "counters that went back say nothing");
        for garbled in ["", "cpu", "cpu 1 2 3 4 5 6 7", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3 4 5 6 7 x"] {
            assert_eq!(cpu_time(garbled), None, "{garbled}");
        }
    }

    #[test]
    fn a_load_line_has_three_averages_and_two_counts() {
        let read = load("0.52 0.58 10.59 3/602 11278").unwrap();
        assert_eq!(read, Load { means: [0.52, 0.58, 10.59], runnable: 3, threads: 602 });
        for garbled in ["", "0.52 0.58", "0.52 0.58 NaN 3/602", "0.52 0.58 -1 3/602", "0.52 0.58 0.59 3", "a b c 1/2"] {
            assert_eq!(load(garbled), None, "{garbled}");
        }
    }
}
