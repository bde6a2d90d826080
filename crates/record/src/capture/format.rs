//! The formats of capture files, told apart by their first bytes.

use super::frame::Intake;
use super::{Capture, CaptureError, pcap, pcapng};
use std::path::Path;

/// Classic pcap with longer frame headers, by a patched libpcap.
const MODIFIED_PCAP: [[u8; 4]; 2] = [[0xA1, 0xB2, 0xCD, 0x34], [0x34, 0xCD, 0xB2, 0xA1]];
/// Compressed files of capturing tools.
const COMPRESSED: [(&[u8], &str); 3] =
    [(&[0x1F, 0x8B], "gunzip"), (&[0x28, 0xB5, 0x2F, 0xFD], "zstd -d"), (&[4, 0x22, 0x4D, 0x18], "lz4 -d")];

impl Capture {
    /// Decodes a pcapng or a classic pcap file; `path` is for messages. Decoding stops at an unreadable place.
    ///
    /// # Errors
    /// [`CaptureError`] if it is neither; later bytes never cause an error.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Capture, CaptureError> {
        let mut intake = Intake::default();
        if pcap::is_pcap(bytes) {
            pcap::read(bytes, &mut intake);
        } else if pcapng::is_pcapng(bytes) {
            pcapng::read(bytes, &mut intake);
        } else {
            return Err(CaptureError { path: path.to_owned(), what: other(bytes) });
        }
        Ok(intake.into_capture())
    }
}

/// What a file is that is not a capture, and what to do.
fn other(bytes: &[u8]) -> String {
    let Some(start) = bytes.first_chunk::<4>() else {
        return format!("it has {} B, a pcapng file at least 28 and a pcap file at least 24", bytes.len());
    };
    if MODIFIED_PCAP.contains(start) {
        return "it is a pcap file with modified frame headers; convert it with editcap -F pcapng OLD NEW".to_owned();
    }
    if let Some((_, command)) = COMPRESSED.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return format!("it is compressed; decompress it with {command}");
    }
    format!(
        "it begins with {:#010x}, a pcapng file with 0x0a0d0d0a and a pcap file with 0xa1b2c3d4 or 0xa1b23c4d",
        u32::from_be_bytes(*start)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_are_refused_with_their_actual_format() {
        for (bytes, hint) in [
            (&b""[..], "it has 0 B"),
            (b"\x0A\x0D\x0D", "it has 3 B"),
            (b"{\"schema\": 2}", "it begins with 0x7b227363"),
            (&[0x34, 0xCD, 0xB2, 0xA1], "editcap -F pcapng"),
            (&[0x1F, 0x8B, 8, 0], "decompress it with gunzip"),
        ] {
            let message = Capture::from_bytes(bytes, Path::new("x.pcapng")).unwrap_err().to_string();
            assert!(message.starts_with("x.pcapng: ") && message.contains(hint), "{message}");
        }
    }
}
