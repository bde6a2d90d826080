//! What tells a device from another one in the same slot.

use super::system::text;
use lanemark_wire::config::{CapabilityId, ConfigSpace};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Identity of a function: IDs, revision, and the device serial number if it has one.
///
/// The same device in a slot keeps it. Two cards of one model without serial numbers share it. Only root can read a serial
/// number, because it is in extended configuration space.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity(String);

impl Identity {
    /// An identity as written in a journal.
    pub(crate) fn of_text(text: &str) -> Identity {
        Identity(text.to_owned())
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
        let subsystem = optional("subsystem_vendor")?.zip(optional("subsystem_device")?);
        let config = folder.join("config");
        let serial = match serial_number(&config) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err((config, error)),
            found => found.ok().flatten(),
        };
        let parts = [
            Some(format!("{}:{}", part("vendor")?, part("device")?)),
            subsystem.map(|(vendor, device)| format!("{vendor}:{device}")),
            optional("revision")?.map(|revision| format!("rev {revision}")),
            serial.map(|serial| format!("serial {serial}")),
        ];
        Ok(Identity(parts.into_iter().flatten().collect::<Vec<_>>().join(" ")))
    }
}

impl fmt::Display for Identity {
    /// Vendor, device, subsystem vendor, subsystem device, revision and serial number, in hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The Device Serial Number, as lspci writes it: the most significant byte first.
fn serial_number(config: &Path) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    File::open(config)?.take(ConfigSpace::BYTES as u64).read_to_end(&mut bytes)?;
    let space = ConfigSpace::new(&bytes);
    let Ok(capability) = space.capability(CapabilityId::SERIAL_NUMBER) else { return Ok(None) };
    let start = usize::from(capability.offset()) + 4;
    let number = bytes.get(start..start + 8);
    Ok(number.map(|number| number.iter().rev().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join("-")))
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

    /// Configuration space of a function with PCI Express and a serial number.
    fn with_serial() -> Vec<u8> {
        let mut bytes = vec![0; ConfigSpace::BYTES];
        bytes[..4].copy_from_slice(&[0xee, 0x10, 0x3f, 0x90]);
        // Status: a list of capabilities; the PCI Express capability at 0x40 is the only one.
        (bytes[0x06], bytes[0x34], bytes[0x40]) = (0x10, 0x40, 0x10);
        bytes[0x42] = 0x02;
        bytes[0x100..0x104].copy_from_slice(&0x0001_0003_u32.to_le_bytes());
        bytes[0x104..0x10c].copy_from_slice(&0x000a_35ff_ff12_3456_u64.to_le_bytes());
        bytes
    }

    #[test]
    fn the_serial_number_belongs_to_the_identity_where_it_can_be_read() {
        let whole = with_serial();
        let of = |config: &[u8]| Identity::read(folder(config).path()).unwrap().to_string();
        assert_eq!(of(&whole), "10ee:903f rev 01 serial 00-0a-35-ff-ff-12-34-56");
        // What a user other than root can read, and a list that ends before the number does.
        assert_eq!(of(&whole[..64]), "10ee:903f rev 01");
        assert_eq!(of(&whole[..0x10b]), "10ee:903f rev 01");
    }

    #[test]
    fn a_missing_id_is_an_error_with_its_file() {
        let folder = folder(&[0; 64]);
        std::fs::remove_file(folder.path().join("device")).unwrap();
        let (path, error) = Identity::read(folder.path()).unwrap_err();
        assert_eq!((path, error.kind()), (folder.path().join("device"), io::ErrorKind::NotFound));
    }
}
