//! Interrupts of a function.

use crate::{CpuSet, Seen};
use std::collections::BTreeMap;

/// An interrupt of a function, by its Linux number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interrupt {
    /// Linux interrupt number.
    pub number: u32,
    /// Number of interrupts since boot, of all CPUs.
    pub count: Seen<u64>,
    /// CPUs that the interrupt goes to.
    pub cpus: Seen<CpuSet>,
}

/// Parses `/proc/interrupts`: the sum over all CPUs by interrupt number. Interrupts without a number are left out.
pub(crate) fn counts(text: &str) -> Option<BTreeMap<u32, u64>> {
    let mut lines = text.lines();
    let cpus = lines.next()?.split_whitespace().filter(|word| word.starts_with("CPU")).count();
    if cpus == 0 {
        return None;
    }
    let of_line = |line: &str| {
        let (number, rest) = line.split_once(':')?;
        let counts = rest.split_whitespace().take(cpus).map_while(|word| word.parse::<u64>().ok());
        Some((number.trim().parse().ok()?, counts.fold(0, u64::saturating_add)))
    };
    Some(lines.filter_map(of_line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_are_summed_over_the_cpus() {
        let text = "           CPU0       CPU1\n  8:          1          0  IO-APIC    8-edge      rtc0\n\
                    130:         40         2  PCI-MSIX-0000:3b:00.0    1-edge      nvme0q1\nNMI:  5  6  Non-maskable\n";
        assert_eq!(counts(text), Some(BTreeMap::from([(8, 1), (130, 42)])));
        assert_eq!(counts("130: 1 2\n"), None, "no heading");
        assert_eq!(counts(""), None);
    }
}
