//! Captures: TLPs that passed one point, in files that public tools read.
//!
//! The frames of a file are Ethernet, IPv4 and UDP around the `NetTLP` encapsulation of a TLP; stock
//! Wireshark shows UDP, and two public plugins decode the TLP. [`Capture::to_pcapng`] writes such a
//! file. [`Capture::from_bytes`] also reads those of other tools, pcapng and classic pcap: no frame
//! causes an error, and unreadable ones are counted in [`Unread`]. [`Capture::exchanges`] pairs
//! requests with completions.

mod exchange;
mod format;
mod frame;
mod nettlp;
mod pcap;
mod pcapng;
mod tlp;

pub use exchange::{Exchange, Exchanges, RequesterLatency};

use lanemark_wire::{FlowClass, FunctionId, Header, Packet, WireError};
use std::path::PathBuf;
use tlp::{TlpBytes, tlp_of};

/// TLPs by time.
///
/// ```
/// use lanemark_record::{Capture, Passed};
/// let read = [0x00, 0, 0, 1, 1, 0, 7, 0x0f, 0xfe, 0, 0, 0x10]; // MRd of 4 B by 01:00.0, tag 7
/// let passed = Passed::new(100, Some(true), read.to_vec())?;
/// let capture = Capture { place: "card".to_owned(), about: "an example".to_owned(), frames: vec![passed], ..Capture::default() };
/// let bytes = capture.to_pcapng();
/// assert_eq!(Capture::from_bytes(&bytes, "x.pcapng".as_ref())?, capture);
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

impl Capture {
    /// Whether TLPs may be missing between the first and the last one.
    #[must_use]
    pub fn has_gaps(&self) -> bool {
        let Unread { malformed, cut, untimed, lost, dropped, .. } = &self.unread;
        let without_header = cut.saturating_sub(self.frames.iter().filter(|passed| passed.is_cut).count() as u64);
        [*malformed, *untimed, *lost, *dropped, without_header].iter().any(|count| *count > 0)
    }
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
    /// Header of the TLP, or the rule that it breaks.
    pub header: Result<Header, WireError>,
    /// Prefixes, header, payload and digest as on the link; the available part of a truncated frame.
    pub tlp: Vec<u8>,
    /// Whether payload is missing.
    pub is_cut: bool,
    /// Whether its LCRC is wrong: the receiver drops it, and it is replayed.
    pub has_lcrc_error: bool,
}

impl Passed {
    /// The TLP at the start of `tlp`, without the bytes after it.
    ///
    /// # Errors
    /// [`WireError`] if there is no complete TLP of a known type. A TLP that breaks a rule has the rule in its header.
    pub fn new(at_ns: u64, is_upstream: Option<bool>, mut tlp: Vec<u8>) -> Result<Passed, WireError> {
        let TlpBytes { header, bytes, .. } = tlp_of(&tlp, false)?;
        let kept = bytes.len();
        tlp.truncate(kept);
        Ok(Passed { at_ns, is_upstream, sequence: 0, header, tlp, is_cut: false, has_lcrc_error: false })
    }

    /// A view of the TLP; `None` if its header is incomplete, which [`Passed::new`] and readers exclude.
    #[must_use]
    pub fn packet(&self) -> Option<Packet<&[u8]>> {
        Packet::new(self.tlp.as_slice()).ok()
    }

    /// The class for flow control and ordering; `None` if its type is unknown.
    #[must_use]
    pub fn class(&self) -> Option<FlowClass> {
        Some(self.packet()?.kind()?.class())
    }

    /// Requester ID and tag, which match completions to requests.
    #[must_use]
    pub fn transaction(&self) -> Option<(FunctionId, u16)> {
        self.packet().map(|packet| (packet.requester_id(), packet.tag()))
    }
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
    /// Frames that the senders numbered and the file does not have. The first and the last are unknown.
    pub lost: u64,
    /// Frames that the capturing tool reports as dropped.
    pub dropped: u64,
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
