//! The pcapng format: blocks of 4 B words, each with its length at both ends.
//!
//! Written files have one section, one interface (Ethernet, nanoseconds) and one frame per block.
//! Read files may have any number of sections, either byte order and any time resolution. Lengths
//! are checked against the size of the file.
//!
//! Source: draft-ietf-opsawg-pcapng, sections 3 and 4.

use super::Capture;
use super::frame::{Frame, Intake};
use super::nettlp;

const SECTION: u32 = 0x0A0D_0D0A;
const INTERFACE: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
const STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1A2B_3C4D;

const COMMENT: u16 = 1;
const NAME: u16 = 2;
const FLAGS: u16 = 2;
const DROPS_BEFORE: u16 = 4;
const DROPPED_BY_INTERFACE: u16 = 5;
const DROPPED_BY_SYSTEM: u16 = 7;
const TIME_RESOLUTION: u16 = 9;
const TIME_OFFSET: u16 = 14;

const ETHERNET: u16 = 1;
/// Direction flag of a frame, seen from below the link: downstream is inbound.
const INBOUND: u32 = 0b01;
const OUTBOUND: u32 = 0b10;
/// Flag of a frame with a wrong checksum: here, the LCRC of its TLP.
const CRC_ERROR: u32 = 1 << 24;

/// Comment of a frame with [`CRC_ERROR`].
const LCRC_ERROR: &[u8] = b"LCRC error: the receiver drops this TLP, and it is replayed";

/// Bytes of a block's type and two lengths.
const LEAST_BLOCK: usize = 12;

impl Capture {
    /// Encodes the capture as a pcapng file, to be written by
    /// [`write_whole`](crate::file::write_whole). Sequence numbers count the TLPs of each direction.
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
        let mut sent = [0_u16; 2];
        for passed in &self.frames {
            let time = passed.at_ns as u32;
            let is_upstream = passed.is_upstream == Some(true);
            let number = &mut sent[usize::from(is_upstream)];
            let tag = passed.transaction().map_or(0, |(_, tag)| tag);
            let frame = nettlp::frame(*number, time, tag, is_upstream, &passed.tlp);
            *number = number.wrapping_add(1);
            body.clear();
            body.extend(0_u32.to_le_bytes());
            body.extend(((passed.at_ns >> 32) as u32).to_le_bytes());
            body.extend(time.to_le_bytes());
            body.extend((frame.len() as u32).to_le_bytes());
            body.extend((frame.len() as u32).to_le_bytes());
            body.extend(&frame);
            pad(&mut body);
            let direction = passed.is_upstream.map_or(0, |is_upstream| if is_upstream { OUTBOUND } else { INBOUND });
            let flags = direction | if passed.has_lcrc_error { CRC_ERROR } else { 0 };
            if flags != 0 {
                let comment: &[u8] = if passed.has_lcrc_error { LCRC_ERROR } else { &[] };
                options(&mut body, &[(FLAGS, &flags.to_le_bytes()), (COMMENT, comment)]);
            }
            block(&mut file, ENHANCED_PACKET, &body);
        }
        file
    }
}

/// Whether a file with these first bytes is pcapng.
pub(super) fn is_pcapng(bytes: &[u8]) -> bool {
    bytes.starts_with(&SECTION.to_be_bytes())
}

/// Reads all blocks of a file for which [`is_pcapng`] holds, up to an unreadable one.
pub(super) fn read(bytes: &[u8], intake: &mut Intake) {
    let mut reader = Reader { intake, is_big: false, interfaces: Vec::new(), frames: 0 };
    let mut at = 0;
    while at < bytes.len() {
        match reader.block(&bytes[at..]) {
            Ok(length) => at += length,
            Err(why) => {
                reader.intake.capture.unread.ends_early = Some(format!("byte {at}: {why}"));
                break;
            }
        }
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

struct Reader<'a> {
    intake: &'a mut Intake,
    is_big: bool,
    interfaces: Vec<Interface>,
    /// Number of frames so far, for messages.
    frames: u64,
}

impl Reader<'_> {
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
            STATISTICS => self.statistics(body),
            SIMPLE_PACKET => {
                self.frames += 1;
                self.intake.capture.unread.untimed += 1;
            }
            _ => {}
        }
        Ok(length)
    }

    fn section(&mut self, body: &[u8]) {
        self.interfaces.clear();
        if self.intake.capture.about.is_empty()
            && let Some(about) = self.option(body.get(16..).unwrap_or_default(), COMMENT)
        {
            self.intake.capture.about = String::from_utf8_lossy(about).into_owned();
        }
    }

    fn interface(&mut self, body: &[u8]) {
        let options = body.get(8..).unwrap_or_default();
        let resolution = self.option(options, TIME_RESOLUTION).and_then(<[u8]>::first).copied().unwrap_or(6);
        let offset = self.option(options, TIME_OFFSET).and_then(|value| value.first_chunk::<8>());
        let offset_s =
            offset.map_or(0, |value| if self.is_big { i64::from_be_bytes(*value) } else { i64::from_le_bytes(*value) });
        if self.intake.capture.place.is_empty()
            && let Some(name) = self.option(options, NAME)
        {
            self.intake.capture.place = String::from_utf8_lossy(name).into_owned();
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
        let flags = self.option(options, FLAGS).and_then(|value| self.u32(value, 0)).unwrap_or(0);
        let is_upstream = match flags & 0b11 {
            INBOUND => Some(false),
            OUTBOUND => Some(true),
            _ => None,
        };
        self.add_drops(options, &[DROPS_BEFORE]);
        self.intake.frame(Frame {
            number,
            at_ns: interface.ns(u64::from(high) << 32 | u64::from(low)),
            is_upstream,
            has_lcrc_error: flags & CRC_ERROR != 0,
            link_type: interface.link_type,
            bytes: frame,
            whole_bytes: whole as usize,
        });
    }

    /// The block at the end of a file, with the number of frames that the interface and the system dropped.
    fn statistics(&mut self, body: &[u8]) {
        self.add_drops(body.get(12..).unwrap_or_default(), &[DROPPED_BY_INTERFACE, DROPPED_BY_SYSTEM]);
    }

    fn add_drops(&mut self, options: &[u8], codes: &[u16]) {
        for code in codes {
            let value = self.option(options, *code).and_then(|value| value.first_chunk::<8>().copied());
            let count =
                value.map(|bytes| if self.is_big { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) });
            let dropped = &mut self.intake.capture.unread.dropped;
            *dropped = dropped.saturating_add(count.unwrap_or(0));
        }
    }

    fn malformed(&mut self, number: u64, why: &str) {
        self.intake.malformed(number, why);
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
