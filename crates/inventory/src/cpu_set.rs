//! Sets of CPUs.

use std::fmt;
use std::str::FromStr;

/// A set of CPUs in the kernel's list format: `0-3,8,10-11`.
///
/// ```
/// use lanemark_inventory::CpuSet;
/// let set: CpuSet = "0-3,8,10-11".parse().unwrap();
/// assert_eq!(set.count(), 7);
/// assert!(set.contains(10) && !set.contains(9));
/// assert_eq!(set.to_string(), "0-3,8,10-11");
/// assert_eq!("".parse(), Ok(CpuSet::default())); // a node without CPUs
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct CpuSet(Vec<(u32, u32)>);

/// Upper bound of CPU numbers, far above that of Linux.
const MOST_CPUS: u32 = 1 << 20;

impl CpuSet {
    /// Number of CPUs.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// Whether `cpu` is in the set.
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&cpu))
    }

    /// All CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// The lowest CPU.
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        self.0.first().map(|(first, _)| *first)
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sorts ranges and merges overlapping and adjacent ones.
    fn from_ranges(mut ranges: Vec<(u32, u32)>) -> CpuSet {
        ranges.sort_unstable();
        let mut joined: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match joined.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => joined.push((first, last)),
            }
        }
        CpuSet(joined)
    }
}

impl FromIterator<u32> for CpuSet {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> CpuSet {
        CpuSet::from_ranges(cpus.into_iter().map(|cpu| (cpu, cpu)).collect())
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            if first == last { write!(f, "{comma}{first}")? } else { write!(f, "{comma}{first}-{last}")? }
        }
        Ok(())
    }
}

/// A text that is not a CPU list.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{0}' is not a CPU list; write it as 0-3,8")]
pub struct NoCpuSet(pub String);

impl FromStr for CpuSet {
    type Err = NoCpuSet;

    fn from_str(text: &str) -> Result<CpuSet, NoCpuSet> {
        if text.is_empty() {
            return Ok(CpuSet::default());
        }
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |text: &str| text.parse().ok().filter(|cpu| *cpu < MOST_CPUS);
            let (first, last): (u32, u32) = (number(first)?, number(last)?);
            (first <= last).then_some((first, last))
        };
        let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
        ranges.map(CpuSet::from_ranges).ok_or_else(|| NoCpuSet(crate::shortened::shortened(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_and_adjacent_ranges_are_merged() {
        let set: CpuSet = "4,0-2,3,2-3,9".parse().unwrap();
        assert_eq!((set.to_string().as_str(), set.count(), set.first()), ("0-4,9", 6, Some(0)));
        assert_eq!(set.iter().collect::<CpuSet>(), set);
    }

    #[test]
    fn malformed_cpu_lists_are_refused() {
        for text in ["-", "1-", "-1", "3-2", "1,", "a", "0-1048576", "0x1", "1 2"] {
            assert_eq!(text.parse::<CpuSet>(), Err(NoCpuSet(text.to_owned())), "{text}");
        }
        assert_eq!("0-1048575".parse::<CpuSet>().unwrap().count(), 1 << 20);
    }
}
