//! The `NetTLP` encapsulation: Ethernet, IPv4, UDP, a header of 6 B, a TLP.
//!
//! ```text
//! 14 B Ethernet II | 20 B IPv4, protocol 17 | 8 B UDP, no checksum | u16 sequence, u32 time | TLP
//! ```
//!
//! The UDP ports encode the tag: 0x3000 + tag. Public dissectors decode ports 0x3000 to 0x4fff as
//! `NetTLP`. All fields are big-endian.
//!
//! Source: the frames that github.com/NetTLP writes and its Wireshark plugin reads.

const IPV4: usize = 20;
const UDP: usize = 8;
const NETTLP: usize = 6;

/// First UDP port, to which the tag is added.
const FIRST_PORT: u16 = 0x3000;
const LAST_PORT: u16 = 0x4FFF;

/// MAC addresses of the two ends, as in the `NetTLP` papers, the root first.
const MACS: [[u8; 6]; 2] = [[0xA0, 0x36, 0x9F, 0x28, 0, 2], [0xA0, 0x36, 0x9F, 0x28, 0, 1]];
const ADDRESSES: [[u8; 4]; 2] = [[192, 168, 10, 1], [192, 168, 10, 3]];

/// Builds a frame around `tlp`, which has at most 4148 B: prefixes, header, data and digest.
pub(super) fn frame(sequence: u16, time: u32, tag: u16, is_upstream: bool, tlp: &[u8]) -> Vec<u8> {
    let (from, to) = if is_upstream { (1, 0) } else { (0, 1) };
    let udp_bytes = (UDP + NETTLP + tlp.len()) as u16;
    let mut ip = [0; IPV4];
    (ip[0], ip[8], ip[9]) = (0x45, 64, 17);
    ip[2..4].copy_from_slice(&(udp_bytes + IPV4 as u16).to_be_bytes());
    ip[12..16].copy_from_slice(&ADDRESSES[from]);
    ip[16..20].copy_from_slice(&ADDRESSES[to]);
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let port = (FIRST_PORT + (tag & lanemark_wire::tlp::MAX_TAG)).to_be_bytes();
    [
        &MACS[to],
        &MACS[from],
        &[8, 0][..],
        &ip,
        &port,
        &port,
        &udp_bytes.to_be_bytes(),
        &[0, 0],
        &sequence.to_be_bytes(),
        &time.to_be_bytes(),
        tlp,
    ]
    .concat()
}

/// Checksum of an IPv4 header.
///
/// Source: RFC 791, "Header Checksum".
fn checksum(header: &[u8]) -> u16 {
    let sum: u32 = header.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    !((sum & 0xFFFF) + (sum >> 16)) as u16
}

/// Content of a frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found<'a> {
    /// `NetTLP`: its sequence number, the IPv4 address that counts it, and the bytes after its header.
    Tlp { sender: [u8; 4], sequence: u16, tlp: &'a [u8], is_cut: bool },
    /// `NetTLP`, truncated within the headers around the TLP, or with inconsistent lengths.
    Broken { is_cut: bool },
    /// Something else.
    Other,
}

/// The bytes after an Ethernet header and its VLAN tags, if they are IPv4; `from` is the offset of the type.
///
/// Source: IEEE 802.1Q, "Tag Protocol Identifier formats"; 0x9100 precedes 802.1ad.
fn ipv4_after_tags(frame: &[u8], mut from: usize) -> Option<&[u8]> {
    loop {
        match frame.get(from..)?.first_chunk()? {
            [0x81 | 0x91, 0] | [0x88, 0xA8] => from += 4,
            [8, 0] => return frame.get(from + 2..),
            _ => return None,
        }
    }
}

/// Decodes a frame with this link type; `frame` is the captured part of `whole_bytes`.
///
/// Source of the link types: draft-ietf-opsawg-pcaplinktype.
pub(super) fn decode(link_type: u16, frame: &[u8], whole_bytes: usize) -> Found<'_> {
    let was_cut = frame.len() < whole_bytes;
    let ip = match link_type {
        // Ethernet.
        1 => ipv4_after_tags(frame, 12),
        // Linux "any" interface, versions 1 and 2: its header has the type at its end and at its start.
        113 => ipv4_after_tags(frame, 14),
        276 if frame.starts_with(&[8, 0]) => frame.get(20..),
        // IP, IPv4.
        101 | 228 => Some(frame),
        // USER0, which users of the plugins assign to the header of NetTLP.
        147 => return decode_udp_payload([0; 4], frame, was_cut),
        _ => None,
    };
    let Some(ip) = ip else { return Found::Other };
    let Some(header) = ip.get(..IPV4) else { return Found::Other };
    let header_bytes = usize::from(header[0] & 0xF) * 4;
    let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3FFF != 0;
    if header[0] >> 4 != 4 || header_bytes < IPV4 || header[9] != 17 || is_fragment {
        return Found::Other;
    }
    let Some(udp) = ip.get(header_bytes..) else { return Found::Other };
    let Some(head) = udp.first_chunk::<UDP>() else { return Found::Other };
    let [to, length] = [[head[2], head[3]], [head[4], head[5]]].map(u16::from_be_bytes);
    if !(FIRST_PORT..=LAST_PORT).contains(&to) {
        return Found::Other;
    }
    // Short frames are padded, so the length field determines the end of the TLP.
    let Some(all) = usize::from(length).checked_sub(UDP) else { return Found::Broken { is_cut: false } };
    let there = &udp[UDP..];
    let sender = [header[12], header[13], header[14], header[15]];
    decode_udp_payload(sender, &there[..there.len().min(all)], there.len() < all)
}

fn decode_udp_payload(sender: [u8; 4], bytes: &[u8], is_cut: bool) -> Found<'_> {
    match bytes.split_at_checked(NETTLP) {
        Some((head, tlp)) => Found::Tlp { sender, sequence: u16::from_be_bytes([head[0], head[1]]), tlp, is_cut },
        None => Found::Broken { is_cut },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ETHERNET: usize = 14;

    /// A hand-made frame that two public dissectors decode: a write of 4 DW to 0xfe000010, tag 1,
    /// by 01:00.0.
    const BY_HAND: &str = "a0369f280001a0369f2800020800 4500003e000000004011e55ac0a80a01c0a80a03 30013001002a0000 \
                           000100000064 40000004010001fffe000010000102030405060708090a0b0c0d0e0f";

    fn by_hand() -> Vec<u8> {
        let digits: Vec<u8> = BY_HAND.bytes().filter(u8::is_ascii_hexdigit).collect();
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(byte).collect()
    }

    #[test]
    fn frames_match_those_of_public_dissectors() {
        let known = by_hand();
        let tlp = &known[ETHERNET + IPV4 + UDP + NETTLP..];
        assert_eq!(tlp.len(), 28);
        assert_eq!(frame(1, 0x64, 1, false, tlp), known);
    }

    #[test]
    fn encapsulation_round_trips() {
        for (is_upstream, tag, length) in [(false, 0, 12), (true, 1023, 4112)] {
            let tlp: Vec<u8> = (0..length).map(|byte| byte as u8).collect();
            let frame = frame(65_535, 7, tag, is_upstream, &tlp);
            let sender = ADDRESSES[usize::from(is_upstream)];
            let found = Found::Tlp { sender, sequence: 65_535, tlp: &tlp, is_cut: false };
            assert_eq!(decode(1, &frame, frame.len()), found);
            for link_type in [101, 228] {
                assert_eq!(decode(link_type, &frame[ETHERNET..], frame.len() - ETHERNET), found);
            }
            let found = Found::Tlp { sender: [0; 4], sequence: 65_535, tlp: &tlp, is_cut: false };
            assert_eq!(decode(147, &frame[ETHERNET + IPV4 + UDP..], frame.len() - ETHERNET - IPV4 - UDP), found);
            assert_eq!(checksum(&frame[ETHERNET..ETHERNET + IPV4]), 0, "of a header with its checksum");
        }
    }

    #[test]
    fn padding_of_short_frames_is_ignored() {
        let mut padded = frame(1, 0, 0, false, &[7; 12]);
        padded.resize(90, 0);
        assert_eq!(decode(1, &padded, 90), tlp(&[7; 12], false));
    }

    /// The TLP of a frame from the root with sequence number 1.
    fn tlp(tlp: &[u8], is_cut: bool) -> Found<'_> {
        Found::Tlp { sender: ADDRESSES[0], sequence: 1, tlp, is_cut }
    }

    #[test]
    fn vlan_tags_are_skipped_also_nested_ones() {
        let whole = by_hand();
        let (customer, provider, old) = ([0x81, 0, 0, 5], [0x88, 0xA8, 0x20, 7], [0x91, 0, 0, 1]);
        for tags in [&[customer][..], &[provider, customer], &[old, customer], &[provider, provider, customer]] {
            let tagged = [&whole[..12], &tags.concat(), &whole[12..]].concat();
            assert_eq!(decode(1, &tagged, tagged.len()), tlp(&whole[48..], false));
            for kept in 12..12 + tags.len() * 4 + 2 {
                assert_eq!(decode(1, &tagged[..kept], tagged.len()), Found::Other, "{kept}");
            }
        }
    }

    #[test]
    fn headers_of_the_linux_any_interface_are_skipped() {
        let whole = by_hand();
        let first = [&[0, 4, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 8, 0][..], &whole[ETHERNET..]].concat();
        assert_eq!(decode(113, &first, first.len()), tlp(&whole[48..], false));
        let second = [&[8, 0][..], &[0; 18], &whole[ETHERNET..]].concat();
        assert_eq!(decode(276, &second, second.len()), tlp(&whole[48..], false));
        let ipv6 = [&[0x86, 0xDD][..], &[0; 18], &whole[ETHERNET..]].concat();
        assert_eq!(decode(276, &ipv6, ipv6.len()), Found::Other);
    }

    #[test]
    fn truncation_is_detected_from_the_udp_length() {
        let whole = by_hand();
        for kept in 0..whole.len() {
            let found = decode(1, &whole[..kept], whole.len());
            match kept {
                0..42 => assert_eq!(found, Found::Other, "{kept}"),
                42..48 => assert_eq!(found, Found::Broken { is_cut: true }, "{kept}"),
                _ => assert_eq!(found, tlp(&whole[48..kept], true), "{kept}"),
            }
        }
    }

    #[test]
    fn other_traffic_is_detected() {
        let whole = by_hand();
        let with = |place: usize, byte: u8| {
            let mut changed = whole.clone();
            changed[place] = byte;
            changed
        };
        for (place, byte, why) in [
            (12, 0x86, "no IPv4 by its type"),
            (14, 0x65, "no IPv4 by its version"),
            (14, 0x44, "an IP header that is too short"),
            (20, 0x20, "a first fragment"),
            (21, 0x01, "a later fragment"),
            (23, 6, "TCP"),
            (36, 0x2F, "a port below"),
            (36, 0x50, "a port above"),
        ] {
            assert_eq!(decode(1, &with(place, byte), whole.len()), Found::Other, "{why}");
        }
        assert_eq!(
            decode(1, &with(39, 7), whole.len()),
            Found::Broken { is_cut: false },
            "UDP shorter than its header"
        );
        assert_eq!(decode(1, &with(39, 13), whole.len()), Found::Broken { is_cut: false }, "shorter than NetTLP's");
        assert_eq!(decode(105, &whole[14..], whole.len() - 14), Found::Other, "another link type");
        let last = frame(0, 0, 0, false, &[0; 12]);
        let at = |port: u16| [&last[..36], &port.to_be_bytes(), &last[38..]].concat();
        assert!(matches!(decode(1, &at(0x4FFF), last.len()), Found::Tlp { .. }));
        assert_eq!(decode(1, &at(0x5000), last.len()), Found::Other);
        assert_eq!(decode(1, &at(0x2FFF), last.len()), Found::Other);
    }
}
