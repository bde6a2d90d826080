//! Tag widths and the number of outstanding requests.

/// Width of a requester's tags.
///
/// ```
/// use lanemark_wire::TagBits;
/// assert_eq!(TagBits::Ten.usable(), 768);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TagBits {
    /// 5 bits: every requester.
    Five,
    /// 8 bits: Extended Tag Field Enable.
    Eight,
    /// 10 bits: 10-Bit Tag Requester Enable; from 16 GT/s devices on.
    Ten,
    /// 14 bits: 14-Bit Tag Requester Enable; flit mode only.
    Fourteen,
}

/// Width, bits, number of unused values, and source.
///
/// With wider tags, values whose bits above the next narrower width are all zero are not used, so that a completion
/// that lost those bits is detected.
const TAGS: [(TagBits, u32, u16, &str); 4] = [
    (TagBits::Five, 5, 0, "PCI Express Base Specification 5.0, section 2.2.6.2"),
    (TagBits::Eight, 8, 0, "PCI Express Base Specification 5.0, section 2.2.6.2"),
    (TagBits::Ten, 10, 256, "PCI Express Base Specification 5.0, section 2.2.6.2"),
    (TagBits::Fourteen, 14, 1024, "PCI Express Base Specification 6.0, section 2.2.6.2"),
];

impl TagBits {
    /// Every width, narrowest first.
    pub const ALL: [TagBits; 4] = [TagBits::Five, TagBits::Eight, TagBits::Ten, TagBits::Fourteen];

    /// Maximum number of outstanding requests of one requester.
    #[must_use]
    pub const fn usable(self) -> u16 {
        let (_, bits, left_out, _) = TAGS[self as usize];
        (1 << bits) - left_out
    }

    /// The narrowest width for this number of outstanding requests; `None` if none is sufficient.
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
    fn rows_are_in_the_order_of_the_widths() {
        for (place, bits) in TagBits::ALL.into_iter().enumerate() {
            assert_eq!(TAGS[place].0, bits);
            assert!(TAGS[place].3.contains("section"));
        }
        assert_eq!(TagBits::ALL.map(TagBits::usable), [32, 256, 768, 15_360]);
    }
}
