//! Captures: TLPs that passed one point, in files that public tools read.
//!
//! A file is in pcapng format. Its frames are Ethernet, IPv4 and UDP around the `NetTLP`
//! encapsulation of a TLP; stock Wireshark shows UDP, and two public plugins decode the TLP.
//! [`Capture::to_pcapng`] writes such a file. [`Capture::from_pcapng`] also reads those of other
//! tools: no frame causes an error, and unreadable ones are counted in [`Unread`].
//! [`Capture::exchanges`] pairs requests with completions.

mod exchange;
mod nettlp;
mod pcapng;

pub use exchange::{Exchange, Exchanges, RequesterLatency};

use lanemark_wire::Header;
use std::path::PathBuf;

/// TLPs by time.
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
    /// Capture point: the name of the first interface of the file, if it has one.
    pub place: String,
    /// Description: the comment of the file, if it has one.
    pub about: String,
    /// The TLPs, in the order of the file.
    pub frames: Vec<Passed>,
    /// Content that is not shown as TLPs.
    pub unread: Unread,
}

/// A captured TLP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Time in nanoseconds, from an origin that the capturing tool chooses.
    pub at_ns: u64,
    /// Whether the direction is towards the root; `None` if the file does not tell.
    pub is_upstream: Option<bool>,
    /// Sequence number of `NetTLP`, which counts the frames of a sender modulo 2^16.
    pub sequence: u16,
    /// Header of the TLP.
    pub header: Header,
    /// Header, payload and digest as on the link; the available part of a truncated frame.
    pub tlp: Vec<u8>,
    /// Whether payload is missing.
    pub is_cut: bool,
}

impl Passed {
    /// The TLP at the start of `tlp`, without the bytes after it.
    ///
    /// # Errors
    /// [`WireError`](lanemark_wire::WireError) if there is no valid TLP.
    pub fn new(at_ns: u64, is_upstream: Option<bool>, mut tlp: Vec<u8>) -> Result<Passed, lanemark_wire::WireError> {
        let (header, _) = Header::parse_whole(&tlp)?;
        tlp.truncate(whole_bytes(&header));
        Ok(Passed { at_ns, is_upstream, sequence: 0, header, tlp, is_cut: false })
    }
}

/// Number of bytes of a TLP with this header, including payload and digest.
fn whole_bytes(header: &Header) -> usize {
    let digest = if header.td() { 4 } else { 0 };
    usize::from(header.header_dw()) * 4 + header.data_bytes() as usize + digest
}

/// Content of a file that is not shown as TLPs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Unread {
    /// Frames without `NetTLP`.
    pub others: u64,
    /// `NetTLP` frames whose TLP is malformed.
    pub malformed: u64,
    /// The first malformed frame and the violated rule.
    pub first_malformed: Option<String>,
    /// Truncated frames; those with a complete header are among the TLPs.
    pub cut: u64,
    /// Frames without a time.
    pub untimed: u64,
    /// Reason why the rest of the file was not read.
    pub ends_early: Option<String>,
}

/// Bytes that are not a capture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {what}", .path.display())]
pub struct CaptureError {
    /// The file.
    pub path: PathBuf,
    /// The actual content and the fix.
    pub what: String,
}
