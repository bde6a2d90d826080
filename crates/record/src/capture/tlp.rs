//! The TLP at the start of some bytes, legal or not.

use lanemark_wire::{Header, Packet, WireError};

/// TLP prefixes before a header: four end-to-end ones, and as many local ones.
///
/// Source: PCI Express Base Specification 5.0, section 2.2.10.
const MOST_PREFIXES: usize = 8;

/// A TLP of a known type.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TlpBytes<'a> {
    /// Its header, or the rule that it breaks.
    pub(super) header: Result<Header, WireError>,
    /// Its bytes, from the first prefix to the digest.
    pub(super) bytes: &'a [u8],
    /// Whether the capture has only the first of its bytes.
    pub(super) is_cut: bool,
}

/// The TLP at the start of `bytes`; `is_cut` if the capture truncated them. Bytes after a TLP are ignored.
///
/// A TLP that breaks a rule is kept, because real devices send such TLPs.
pub(super) fn tlp_of(bytes: &[u8], is_cut: bool) -> Result<TlpBytes<'_>, WireError> {
    let packet = Packet::new(bytes).map_err(|short| match Header::parse(bytes) {
        // A reserved type has no length.
        Err(reserved @ WireError::ReservedType { .. }) => reserved,
        _ => short,
    })?;
    let start = packet.prefixes().len();
    if start > MOST_PREFIXES * 4 {
        return Err(WireError::Prefix { byte0: bytes[0] });
    }
    let header = Header::parse(&bytes[start..]).map(|(header, _)| header);
    if let (None, Err(rule)) = (packet.kind(), header) {
        return Err(rule);
    }
    let data = start + packet.header_bytes() + packet.data_bytes();
    let whole = data + if packet.td() { 4 } else { 0 };
    if let Some(tlp) = bytes.get(..whole) {
        // A frame may be truncated after its TLP.
        return Ok(TlpBytes { header, bytes: tlp, is_cut: false });
    }
    if is_cut {
        return Ok(TlpBytes { header, bytes, is_cut });
    }
    let (field, dw, td) = (packet.length_field(), packet.length(), packet.td());
    let missing = WireError::DataCut { field, dw, td, got: bytes.len() - start - packet.header_bytes() };
    // Some adapters remove the digest and leave TD set.
    if bytes.len() == data { Ok(TlpBytes { header: Err(missing), bytes, is_cut }) } else { Err(missing) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A read of 1 DW by 01:00.0, with all byte enables set.
    const ODD_READ: [u8; 12] = [0, 0, 0, 1, 1, 0, 7, 0xff, 0xfe, 0, 0, 0x10];

    #[test]
    fn tlps_that_break_a_rule_are_kept_with_the_rule() {
        let TlpBytes { header, bytes, is_cut } = tlp_of(&ODD_READ, false).unwrap();
        assert_eq!((header, is_cut), (Err(WireError::LastBeOfOneDw { last_be: 0xf }), false));
        assert_eq!(bytes, ODD_READ);
        let odd_write = [&[0x40, 0, 0, 2, 1, 0, 7, 0xf0, 0xfe, 0, 0, 0x10][..], &[5; 9]].concat();
        let TlpBytes { header, bytes, .. } = tlp_of(&odd_write, false).unwrap();
        assert_eq!(header, Err(WireError::NoByteEnabled { field: "1st DW BE", length: 2 }));
        assert_eq!(bytes, &odd_write[..20], "without the byte after it");
    }

    #[test]
    fn a_missing_digest_is_accepted_and_missing_data_is_not() {
        let write = [&[0x40, 0, 0x80, 2, 1, 0, 7, 0xff, 0xfe, 0, 0, 0x10][..], &[5; 12]].concat();
        assert!(tlp_of(&write, false).unwrap().header.is_ok());
        let missing = WireError::DataCut { field: 2, dw: 2, td: true, got: 8 };
        assert_eq!(
            tlp_of(&write[..20], false),
            Ok(TlpBytes { header: Err(missing), bytes: &write[..20], is_cut: false })
        );
        for kept in [12, 19, 21, 23] {
            assert!(matches!(tlp_of(&write[..kept], false), Err(WireError::DataCut { .. })), "{kept}");
        }
    }

    #[test]
    fn tlp_prefixes_belong_to_the_tlp() {
        let read = [0, 0, 0, 1, 1, 0, 7, 0x0f, 0xfe, 0, 0, 0x10];
        let with_pasid = [&[0x91, 0, 0, 5][..], &read].concat();
        let TlpBytes { header, bytes, .. } = tlp_of(&with_pasid, false).unwrap();
        assert_eq!(header, Header::parse(&read).map(|(header, _)| header));
        assert_eq!(bytes, with_pasid);
        assert!(matches!(tlp_of(&[0x3F; 20], false), Err(WireError::ReservedType { .. })));
        assert!(matches!(tlp_of(&[0x91; 40], false), Err(WireError::TooShort { .. })));
        let prefixes = |count: usize| [&[0x91; 4].repeat(count)[..], &read].concat();
        assert!(tlp_of(&prefixes(8), false).is_ok_and(|tlp| tlp.header.is_ok()));
        assert_eq!(tlp_of(&prefixes(9), false), Err(WireError::Prefix { byte0: 0x91 }));
    }
}
