//! Identity of a device: IDs, revision and serial number.

use super::system::text;
use lanemark_wire::config::{CapabilityId, ConfigSpace};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

/// Identity of a function: IDs, revision, and the device serial number if it has one.
///
/// The same device in a slot keeps it. Two cards of one model without serial numbers share it. Only root can read a serial
/// number, because it is in extended configuration space.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// Vendor, device, subsystem and revision.
    ids: String,
    serial: Option<String>,
}

/// Separates the other parts from the serial number in a text.
const SERIAL: &str = " serial ";

impl Identity {
    /// An identity as written in a journal.
    pub(crate) fn of_text(text: &str) -> Identity {
        let (ids, serial) = text.split_once(SERIAL).map_or((text, None), |(ids, serial)| (ids, Some(serial)));
        Identity { ids: ids.to_owned(), serial: serial.map(str::to_owned) }
    }

    /// Whether both are of one device, as far as is known: a serial number that was not readable at one time counts as equal.
    pub(crate) fn is_same(&self, other: &Identity) -> bool {
        let serials = self.serial.as_ref().zip(other.serial.as_ref());
        self.ids == other.ids && serials.is_none_or(|(one, other)| one == other)
    }

    /// Reads the identity of the device whose sysfs files are in `folder`, without accessing its BARs.
    ///
    /// # Errors
    /// The file that could not be read, with the reason. All files but those of vendor and device may be absent.
    pub(crate) fn read(folder: &Path) -> Result<Identity, (PathBuf, io::Error)> {
        let part = |name: &str| {
            let path = folder.join(name);
            let read = text(&path).map_err(|error| (path, error))?;
            Ok::<_, (PathBuf, io::Error)>(read.trim().trim_start_matches("0x").to_owned())
        };
        let optional = |name: &str| match part(name) {
            Err((_, error)) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            other => other.map(Some),
        };
        let revision = optional("revision")?.map(|revision| format!("rev {revision}"));
        let subsystem = optional("subsystem_vendor")?.zip(optional("subsystem_device")?);
        // Read after the files that may be absent: a removal takes these away first, so that it is no other identity.
        let ids = format!("{}:{}", part("vendor")?, part("device")?);
        let parts = [Some(ids), subsystem.map(|(vendor, device)| format!("{vendor}:{device}")), revision];
        let config = folder.join("config");
        let serial = match serial_number(&config) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err((config, error)),
            found => found.ok().flatten(),
        };
        Ok(Identity { ids: parts.into_iter().flatten().collect::<Vec<_>>().join(" "), serial })
    }
}

impl fmt::Display for Identity {
    /// Vendor, device, subsystem vendor, subsystem device, revision and serial number, in hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.ids)?;
        self.serial.as_ref().map_or(Ok(()), |serial| write!(f, "{SERIAL}{serial}"))
    }
}

/// The Device Serial Number, as lspci writes it: the most significant byte first.
///
/// Only headers of the list are read, and the number: each read is one of the device's, and some devices do not tolerate reads
/// of registers that they do not have.
fn serial_number(config: &Path) -> io::Result<Option<String>> {
    /// Most capabilities that fit, so that a list in a loop ends.
    const MOST: usize = (ConfigSpace::BYTES - FIRST as usize) / 8;
    /// Offset of the first extended capability. Source: PCI Express Base Specification, "PCI Express Extended Capabilities".
    const FIRST: u64 = 0x100;
    let mut file = File::open(config)?;
    let mut at = FIRST;
    for _ in 0..MOST {
        let Some(header) = bytes_at(&mut file, at)?.map(u32::from_le_bytes) else { return Ok(None) };
        if header == 0 || header == u32::MAX {
            return Ok(None);
        }
        if CapabilityId::Extended(header as u16) == CapabilityId::SERIAL_NUMBER {
            let number: Option<[u8; 8]> = bytes_at(&mut file, at + 4)?;
            return Ok(number.map(|number| number.map(|byte| format!("{byte:02x}"))).map(|mut bytes| {
                bytes.reverse();
                bytes.join("-")
            }));
        }
        at = u64::from(header >> 20 & 0xffc);
        if at < FIRST {
            return Ok(None);
        }
    }
    Ok(None)
}

/// The bytes at an offset of a file; `None` if it ends before.
fn bytes_at<const N: usize>(file: &mut File, at: u64) -> io::Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    file.seek(io::SeekFrom::Start(at))?;
    match file.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(config: &[u8]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in [("vendor", "0x10ee\n"), ("device", "0x903f\n"), ("revision", "0x01\n")] {
            std::fs::write(folder.path().join(name), content).unwrap();
        }
        std::fs::write(folder.path().join("config"), config).unwrap();
        folder
    }

    /// Configuration space of a function with a serial number, after another extended capability.
    fn with_serial() -> Vec<u8> {
        let mut bytes = vec![0; ConfigSpace::BYTES];
        bytes[..4].copy_from_slice(&[0xee, 0x10, 0x3f, 0x90]);
        bytes[0x100..0x104].copy_from_slice(&0x1401_0001_u32.to_le_bytes());
        bytes[0x140..0x144].copy_from_slice(&0x0001_0003_u32.to_le_bytes());
        bytes[0x144..0x14c].copy_from_slice(&0x000a_35ff_ff12_3456_u64.to_le_bytes());
        bytes
    }

    #[test]
    fn the_serial_number_belongs_to_the_identity_where_it_can_be_read() {
        let whole = with_serial();
        let of = |config: &[u8]| Identity::read(folder(config).path()).unwrap().to_string();
        assert_eq!(of(&whole), "10ee:903f rev 01 serial 00-0a-35-ff-ff-12-34-56");
        // What a user other than root can read, and a list that ends before the number does.
        assert_eq!(of(&whole[..64]), "10ee:903f rev 01");
        assert_eq!(of(&whole[..0x14b]), "10ee:903f rev 01");
    }

    #[test]
    fn a_serial_number_that_could_not_be_read_at_one_time_counts_as_equal() {
        let of = Identity::of_text;
        let (one, other) = (of("10ee:903f rev 01 serial 00-01"), of("10ee:903f rev 01 serial 00-02"));
        assert_eq!(one.to_string(), "10ee:903f rev 01 serial 00-01");
        assert!(one.is_same(&one) && !one.is_same(&other));
        let unread = of("10ee:903f rev 01");
        assert!(one.is_same(&unread) && unread.is_same(&other));
        assert!(!one.is_same(&of("10ee:903f rev 02")));
    }

    #[test]
    fn a_list_of_capabilities_in_a_loop_ends() {
        let mut bytes = with_serial();
        bytes[0x100..0x104].copy_from_slice(&0x1001_0001_u32.to_le_bytes());
        assert_eq!(Identity::read(folder(&bytes).path()).unwrap().to_string(), "10ee:903f rev 01");
    }

    #[test]
    fn a_missing_id_is_an_error_with_its_file() {
        let folder = folder(&[0; 64]);
        std::fs::remove_file(folder.path().join("device")).unwrap();
        let (path, error) = Identity::read(folder.path()).unwrap_err();
        assert_eq!((path, error.kind()), (folder.path().join("device"), io::ErrorKind::NotFound));
    }
}
