//! The pcapng format: blocks of 4 B words, each with its length at both ends.
//!
//! Written files have one section, one interface (Ethernet, nanoseconds) and one frame per block.
//! Read files may have any number of sections, either byte order and any time resolution. Lengths
//! are checked against the size of the file.
//!
//! Source: draft-ietf-opsawg-pcapng, sections 3 and 4.

use super::nettlp::{self, Found};
use super::{Capture, CaptureError, Passed, whole_bytes};
use lanemark_wire::{Header, WireError};
use std::path::Path;

const SECTION: u32 = 0x0A0D_0D0A;
const INTERFACE: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1A2B_3C4D;

const COMMENT: u16 = 1;
const NAME: u16 = 2;
const FLAGS: u16 = 2;
const TIME_RESOLUTION: u16 = 9;
const TIME_OFFSET: u16 = 14;

const ETHERNET: u16 = 1;
/// Direction flag of a frame, seen from below the link: downstream is inbound.
const INBOUND: u32 = 0b01;
const OUTBOUND: u32 = 0b10;

/// Bytes of a block's type and two lengths.
const LEAST_BLOCK: usize = 12;

impl Capture {
    /// Encodes the capture as a pcapng file, to be written by
    /// [`write_whole`](crate::file::write_whole). Sequence numbers follow the list.
    #[must_use]
    pub fn to_pcapng(&self) -> Vec<u8> {
        let mut file = Vec::new();
        let mut body = Vec::new();
        body.extend(BYTE_ORDER.to_le_bytes());
        body.extend([1, 0, 0, 0]);
        // The optional length of the section is unknown.
        body.extend([0xFF; 8]);
        options(&mut body, &[(COMMENT, self.about.as_bytes())]);
        block(&mut file, SECTION, &body);
        body.clear();
        body.extend(ETHERNET.to_le_bytes());
        // Reserved; frames are not truncated.
        body.extend([0; 6]);
        options(&mut body, &[(NAME, self.place.as_bytes()), (TIME_RESOLUTION, &[9])]);
        block(&mut file, INTERFACE, &body);
        for (number, passed) in self.frames.iter().enumerate() {
            let time = passed.at_ns as u32;
            let is_upstream = passed.is_upstream == Some(true);
            let frame = nettlp::frame(number as u16, time, passed.header.tag(), is_upstream, &passed.tlp);
            body.clear();
            body.extend(0_u32.to_le_bytes());
            body.extend(((passed.at_ns >> 32) as u32).to_le_bytes());
            body.extend(time.to_le_bytes());
            body.extend((frame.len() as u32).to_le_bytes());
            body.extend((frame.len() as u32).to_le_bytes());
            body.extend(&frame);
            pad(&mut body);
            if let Some(is_upstream) = passed.is_upstream {
                let flags = if is_upstream { OUTBOUND } else { INBOUND };
                options(&mut body, &[(FLAGS, &flags.to_le_bytes())]);
            }
            block(&mut file, ENHANCED_PACKET, &body);
        }
        file
    }

    /// Decodes a pcapng file; `path` is for messages. Decoding stops at an unreadable block.
    ///
    /// # Errors
    /// [`CaptureError`] if it is not a pcapng file; later blocks never cause an error.
    pub fn from_pcapng(bytes: &[u8], path: &Path) -> Result<Capture, CaptureError> {
        if let Some(what) = no_pcapng(bytes) {
            return Err(CaptureError { path: path.to_owned(), what });
        }
        let mut reader = Reader { capture: Capture::default(), is_big: false, interfaces: Vec::new(), frames: 0 };
        let mut at = 0;
        while at < bytes.len() {
            match reader.block(&bytes[at..]) {
                Ok(length) => at += length,
                Err(why) => {
                    reader.capture.unread.ends_early = Some(format!("byte {at}: {why}"));
                    break;
                }
            }
        }
        Ok(reader.capture)
    }
}

fn no_pcapng(bytes: &[u8]) -> Option<String> {
    let start = bytes.first_chunk::<4>().copied().map(u32::from_be_bytes);
    match start {
        Some(SECTION) => None,
        Some(0xA1B2_C3D4 | 0xD4C3_B2A1 | 0xA1B2_3C4D | 0x4D3C_B2A1) => {
            Some("it is a capture in the older format pcap; convert it with editcap -F pcapng OLD NEW".to_owned())
        }
        Some(start) => Some(format!("it begins with {start:#010x}, a pcapng file with {SECTION:#010x}")),
        None => Some(format!("it has {} B, a pcapng file at least 28", bytes.len())),
    }
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// Options and their end marker; empty ones are left out.
fn options(body: &mut Vec<u8>, options: &[(u16, &[u8])]) {
    for (code, value) in options.iter().filter(|(_, value)| !value.is_empty()) {
        // Truncates values to the range of the length field.
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        body.extend(code.to_le_bytes());
        body.extend((value.len() as u16).to_le_bytes());
        body.extend(value);
        pad(body);
    }
    body.extend([0; 4]);
}

fn block(file: &mut Vec<u8>, kind: u32, body: &[u8]) {
    let length = ((LEAST_BLOCK + body.len()) as u32).to_le_bytes();
    file.extend(kind.to_le_bytes());
    file.extend(length);
    file.extend(body);
    file.extend(length);
}

/// Properties of an interface's frames.
#[derive(Clone, Copy)]
struct Interface {
    link_type: u16,
    resolution: u8,
    offset_s: i64,
}

impl Interface {
    /// A time stamp in nanoseconds, saturated to 64 bits.
    fn ns(&self, stamp: u64) -> u64 {
        let scaled = u128::from(stamp) * 1_000_000_000;
        let power = u32::from(self.resolution & 0x7F);
        let since = if self.resolution & 0x80 != 0 {
            scaled >> power
        } else {
            // Resolutions finer than 10^-38 s count as zero time.
            10_u128.checked_pow(power).map_or(0, |parts| scaled / parts)
        };
        let all = i128::try_from(since).unwrap_or(i128::MAX).saturating_add(i128::from(self.offset_s) * 1_000_000_000);
        u64::try_from(all.max(0)).unwrap_or(u64::MAX)
    }
}

struct Reader {
    capture: Capture,
    is_big: bool,
    interfaces: Vec<Interface>,
    /// Number of frames so far, for messages.
    frames: u64,
}

impl Reader {
    fn u16(&self, bytes: &[u8], at: usize) -> Option<u16> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(if self.is_big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    fn u32(&self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(if self.is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    /// Decodes the block at the start of `rest`; returns its length, or the reason why it is
    /// invalid.
    fn block(&mut self, rest: &[u8]) -> Result<usize, String> {
        let ends = || "the file ends within a block".to_owned();
        if rest.starts_with(&SECTION.to_be_bytes()) {
            let order = rest.get(8..).and_then(|rest| rest.first_chunk()).ok_or_else(ends)?;
            self.is_big = match (u32::from_le_bytes(*order), u32::from_be_bytes(*order)) {
                (BYTE_ORDER, _) => false,
                (_, BYTE_ORDER) => true,
                (order, _) => return Err(format!("a section with the invalid byte-order magic {order:#010x}")),
            };
        }
        let (kind, length) = self.u32(rest, 0).zip(self.u32(rest, 4)).ok_or_else(ends)?;
        let length = length as usize;
        if length < LEAST_BLOCK || !length.is_multiple_of(4) {
            return Err(format!("a block of {length} B"));
        }
        let block = rest.get(..length).ok_or_else(ends)?;
        if self.u32(block, length - 4) != Some(length as u32) {
            return Err(format!("a block of {length} B with another length at its end"));
        }
        let body = &block[8..length - 4];
        match kind {
            SECTION => self.section(body),
            INTERFACE => self.interface(body),
            ENHANCED_PACKET => self.packet(body),
            SIMPLE_PACKET => {
                self.frames += 1;
                self.capture.unread.untimed += 1;
            }
            _ => {}
        }
        Ok(length)
    }

    fn section(&mut self, body: &[u8]) {
        self.interfaces.clear();
        if self.capture.about.is_empty()
            && let Some(about) = self.option(body.get(16..).unwrap_or_default(), COMMENT)
        {
            self.capture.about = String::from_utf8_lossy(about).into_owned();
        }
    }

    fn interface(&mut self, body: &[u8]) {
        let options = body.get(8..).unwrap_or_default();
        let resolution = self.option(options, TIME_RESOLUTION).and_then(<[u8]>::first).copied().unwrap_or(6);
        let offset = self.option(options, TIME_OFFSET).and_then(|value| value.first_chunk::<8>());
        let offset_s =
            offset.map_or(0, |value| if self.is_big { i64::from_be_bytes(*value) } else { i64::from_le_bytes(*value) });
        if self.capture.place.is_empty()
            && let Some(name) = self.option(options, NAME)
        {
            self.capture.place = String::from_utf8_lossy(name).into_owned();
        }
        // An interface block without a type is of an unsupported type.
        let link_type = self.u16(body, 0).unwrap_or(u16::MAX);
        self.interfaces.push(Interface { link_type, resolution, offset_s });
    }

    fn packet(&mut self, body: &[u8]) {
        self.frames += 1;
        let number = self.frames;
        let fields = [0, 4, 8, 12, 16].map(|at| self.u32(body, at));
        let [Some(interface), Some(high), Some(low), Some(captured), Some(whole)] = fields else {
            return self.malformed(number, "its block is too short");
        };
        let Some(interface) = self.interfaces.get(interface as usize).copied() else {
            return self.malformed(number, "it refers to an undefined interface");
        };
        let Some(frame) = body[20..].get(..captured as usize) else {
            return self.malformed(number, "it is longer than its block");
        };
        let options = body[20..].get(frame.len().next_multiple_of(4)..).unwrap_or_default();
        let flags = self.option(options, FLAGS).and_then(|value| self.u32(value, 0));
        let is_upstream = match flags.map(|flags| flags & 0b11) {
            Some(INBOUND) => Some(false),
            Some(OUTBOUND) => Some(true),
            _ => None,
        };
        let at_ns = interface.ns(u64::from(high) << 32 | u64::from(low));
        let (sequence, tlp, is_cut) = match nettlp::decode(interface.link_type, frame, whole as usize) {
            Found::Tlp { sequence, tlp, is_cut } => (sequence, tlp, is_cut),
            Found::Broken { is_cut: true } => return self.capture.unread.cut += 1,
            Found::Broken { is_cut: false } => return self.malformed(number, "its UDP datagram is too short"),
            Found::Other => return self.capture.unread.others += 1,
        };
        let keep = |header| {
            // Bytes after a TLP are ignored.
            let tlp = tlp[..tlp.len().min(whole_bytes(&header))].to_vec();
            Passed { at_ns, is_upstream, sequence, header, tlp, is_cut }
        };
        match (Header::parse_whole(tlp), Header::parse(tlp)) {
            // A frame may be truncated after its TLP.
            (Ok((header, _)), _) => self.capture.frames.push(Passed { is_cut: false, ..keep(header) }),
            (Err(WireError::DataCut { .. }), Ok((header, _))) if is_cut => {
                self.capture.unread.cut += 1;
                self.capture.frames.push(keep(header));
            }
            (Err(WireError::TooShort { .. }), _) if is_cut => self.capture.unread.cut += 1,
            (Err(error), _) => self.malformed(number, &error.to_string()),
        }
    }

    fn malformed(&mut self, number: u64, why: &str) {
        self.capture.unread.malformed += 1;
        self.capture.unread.first_malformed.get_or_insert_with(|| format!("frame {number}: {why}"));
    }

    /// The value of the first option with this code.
    fn option<'a>(&self, mut options: &'a [u8], wanted: u16) -> Option<&'a [u8]> {
        loop {
            let (code, length) = (self.u16(options, 0)?, usize::from(self.u16(options, 2)?));
            let value = options.get(4..)?.get(..length)?;
            if code == wanted {
                return Some(value);
            }
            if code == 0 {
                return None;
            }
            options = options.get(4 + length.next_multiple_of(4)..)?;
        }
    }
}

#[cfg(test)]
mod tests;
