//! Captures: TLPs as they passed one place, in files that public tools read.
//!
//! A file is a pcapng file whose frames are Ethernet, IPv4 and UDP around `NetTLP`'s encapsulation of a TLP, which stock
//! Wireshark shows as UDP and two public plugins decode. [`Capture::to_pcapng`] writes one, [`Capture::from_pcapng`] reads it
//! and those of others: nothing in a frame is fatal, and what cannot be read is counted in [`Unread`].
//! [`Capture::exchanges`] pairs requests with completions.

mod exchange;
mod nettlp;
mod pcapng;

pub use exchange::{Exchange, Exchanges, RequesterLatency};

use lanemark_wire::Header;
use std::path::PathBuf;

/// TLPs by the time at which they passed.
///
/// ```
/// use lanemark_record::{Capture, Passed};
/// let read = [0x00, 0, 0, 1, 1, 0, 7, 0x0f, 0xfe, 0, 0, 0x10]; // MRd of 4 B by 01:00.0, tag 7
/// let passed = Passed::new(100, Some(true), read.to_vec())?;
/// let capture = Capture { place: "card".to_owned(), about: "an example".to_owned(), frames: vec![passed], ..Capture::default() };
/// let bytes = capture.to_pcapng();
/// assert_eq!(Capture::from_pcapng(&bytes, "x.pcapng".as_ref())?, capture);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Capture {
    /// Where it was taken: the name of the first interface of the file, if it has one.
    pub place: String,
    /// What it is of: the comment of the file, if it has one.
    pub about: String,
    /// The TLPs, in the order of the file.
    pub frames: Vec<Passed>,
    /// What was there besides.
    pub unread: Unread,
}

/// One TLP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// When, in nanoseconds; since when depends on who captured.
    pub at_ns: u64,
    /// Whether it went towards the root; `None` if the file does not say.
    pub is_upstream: Option<bool>,
    /// `NetTLP`'s sequence number, which counts the frames of a sender modulo 2^16.
    pub sequence: u16,
    /// Its header.
    pub header: Header,
    /// Header, payload and digest as on the link; of a frame that was cut, what there is.
    pub tlp: Vec<u8>,
    /// Whether payload is missing.
    pub is_cut: bool,
}

impl Passed {
    /// The whole TLP at the start of `tlp`.
    ///
    /// # Errors
    /// [`WireError`](lanemark_wire::WireError) if there is none.
    pub fn new(at_ns: u64, is_upstream: Option<bool>, mut tlp: Vec<u8>) -> Result<Passed, lanemark_wire::WireError> {
        let (header, _) = Header::parse_whole(&tlp)?;
        tlp.truncate(whole_bytes(&header));
        Ok(Passed { at_ns, is_upstream, sequence: 0, header, tlp, is_cut: false })
    }
}

/// Bytes of a TLP with this header: data and digest too.
fn whole_bytes(header: &Header) -> usize {
    let digest = if header.td() { 4 } else { 0 };
    usize::from(header.header_dw()) * 4 + header.data_bytes() as usize + digest
}

/// What a file has besides TLPs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Unread {
    /// Frames that carry no `NetTLP`.
    pub others: u64,
    /// Frames that do, and whose TLP breaks a rule.
    pub malformed: u64,
    /// Which of them was the first, and which rule.
    pub first_malformed: Option<String>,
    /// Frames that the capture cut; those whose header is there are among the TLPs.
    pub cut: u64,
    /// Frames whose time the file does not say.
    pub untimed: u64,
    /// Why the file could not be read to its end.
    pub ends_early: Option<String>,
}

/// Bytes that are no capture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {what}", .path.display())]
pub struct CaptureError {
    /// Which file.
    pub path: PathBuf,
    /// What it is instead and what to do.
    pub what: String,
}
