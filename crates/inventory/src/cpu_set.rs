//! A set of processors.

use std::fmt;
use std::str::FromStr;

/// A set of processors, as the kernel writes it: `0-3,8,10-11`.
///
/// ```
/// use lanemark_inventory::CpuSet;
/// let set: CpuSet = "0-3,8,10-11".parse().unwrap();
/// assert_eq!(set.count(), 7);
/// assert!(set.contains(10) && !set.contains(9));
/// assert_eq!(set.to_string(), "0-3,8,10-11");
/// assert_eq!("".parse(), Ok(CpuSet::default())); // a node without processors
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct CpuSet(Vec<(u32, u32)>);

/// Processors that Linux can have, with much to spare.
const MOST_CPUS: u32 = 1 << 20;

impl CpuSet {
    /// How many processors.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// Whether this one is among them.
    #[must_use]
    pub fn contains(&self, cpu: u32) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&cpu))
    }

    /// Every processor, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().flat_map(|(first, last)| *first..=*last)
    }

    /// The first one.
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        self.0.first().map(|(first, _)| *first)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Ranges in any order, made disjoint and sorted.
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

/// A text that is no set of processors.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{0}' is no list of processors; one looks like 0-3,8")]
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
        ranges.map(CpuSet::from_ranges).ok_or_else(|| NoCpuSet(crate::shortened(text)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_and_neighbouring_ranges_become_one() {
        let set: CpuSet = "4,0-2,3,2-3,9".parse().unwrap();
        assert_eq!((set.to_string().as_str(), set.count(), set.first()), ("0-4,9", 6, Some(0)));
        assert_eq!(set.iter().collect::<CpuSet>(), set);
    }

    #[test]
    fn what_the_kernel_never_writes_is_refused() {
        for text in ["-", "1-", "-1", "3-2", "1,", "a", "0-1048576", "0x1", "1 2"] {
            assert_eq!(text.parse::<CpuSet>(), Err(NoCpuSet(text.to_owned())), "{text}");
        }
        assert_eq!("0-1048575".parse::<CpuSet>().unwrap().count(), 1 << 20);
    }
}
