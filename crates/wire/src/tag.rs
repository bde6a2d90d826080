//! How many requests can a requester have under way?

/// How wide a requester's tags are.
///
/// ```
/// use lanemark_wire::TagBits;
/// assert_eq!(TagBits::Ten.usable(), 768);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TagBits {
    /// What every requester has.
    Five,
    /// With Extended Tag Field Enable.
    Eight,
    /// With 10-Bit Tag Requester Enable; from devices of 16 GT/s on.
    Ten,
    /// With 14-Bit Tag Requester Enable; in FLITs only.
    Fourteen,
}

/// Width, bits, and how many of its values are left out.
///
/// A requester of wider tags leaves out those in which the bits above the next narrower width are zero, so that a
/// completion that lost them is noticed.
const TAGS: [(TagBits, u32, u16, &str); 4] = [
    (TagBits::Five, 5, 0, "PCI Express Base Specification 5.0, section 2.2.6.2"),
    (TagBits::Eight, 8, 0, "PCI Express Base Specification 5.0, section 2.2.6.2"),
    (TagBits::Ten, 10, 256, "PCI Express Base Specification 5.0, section 2.2.6.2"),
    (TagBits::Fourteen, 14, 1024, "PCI Express Base Specification 6.0, section 2.2.6.2"),
];

impl TagBits {
    /// Every width, narrowest first.
    pub const ALL: [TagBits; 4] = [TagBits::Five, TagBits::Eight, TagBits::Ten, TagBits::Fourteen];

    /// How many requests one requester can have under way.
    #[must_use]
    pub const fn usable(self) -> u16 {
        let (_, bits, left_out, _) = TAGS[self as usize];
        (1 << bits) - left_out
    }

    /// The narrowest that is enough for so many requests under way; `None` if none is.
    ///
    /// ```
    /// use lanemark_wire::TagBits;
    /// assert_eq!(TagBits::enough_for(256), Some(TagBits::Eight));
    /// assert_eq!(TagBits::enough_for(257), Some(TagBits::Ten));
    /// assert_eq!(TagBits::enough_for(15_361), None);
    /// ```
    #[must_use]
    pub fn enough_for(requests: u32) -> Option<TagBits> {
        TagBits::ALL.into_iter().find(|bits| u32::from(bits.usable()) >= requests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_stands_where_its_width_points() {
        for (place, bits) in TagBits::ALL.into_iter().enumerate() {
            assert_eq!(TAGS[place].0, bits);
            assert!(TAGS[place].3.contains("section"));
        }
        assert_eq!(TagBits::ALL.map(TagBits::usable), [32, 256, 768, 15_360]);
    }
}
