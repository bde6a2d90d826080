//! Files that name a real device under test: `duts/*.toml`.

use super::{CardEngine, Drive, DriveBehindVfio, Host, Storage, StorageBehindModule, StorageBehindVfio, Subject, Xdma};
use std::fs;
use std::path::Path;

/// A device under test, as a file describes it.
///
/// | key | value |
/// | --- | --- |
/// | `name` | the device, in words, for the report |
/// | `way` | `host`, `sysfs`, `vfio`, `engine-vfio`, `module`, `nvme`, `nvme-vfio` or `xdma` |
/// | `device` | PCI address; for `nvme` and `xdma` a path, as `/dev/ng0n1` and `/dev/xdma0` |
/// | `range` | range of a BAR whose bytes are overwritten, at least 16 KiB; for `xdma`, of addresses on the card; for `nvme-vfio`, if any, the part of a namespace, as `1:4MiB` |
/// | `file` | for `engine-vfio`, the device file: the name of a built-in one, or a path; the memory that it names is overwritten |
pub struct Dut {
    /// The device, in words.
    pub name: String,
    /// The backend that accesses the device: a value of the key `way`.
    pub way: String,
    /// The machine under test.
    pub subject: Box<dyn Subject>,
}

/// Keys of a file.
const KEYS: [&str; 5] = ["name", "way", "device", "range", "file"];

impl Dut {
    /// Reads a file, and accesses no device.
    ///
    /// # Errors
    /// A sentence with the file and the key.
    pub fn read(path: &Path) -> Result<Dut, String> {
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Dut::parse(&text).map_err(|why| format!("{}: {why}", path.display()))
    }

    /// Parses the text of a file.
    ///
    /// # Errors
    /// A sentence with the key.
    pub fn parse(text: &str) -> Result<Dut, String> {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| error.message().to_owned())?;
        if let Some(key) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(format!("{key}: unknown key; the keys are {}", KEYS.join(", ")));
        }
        let get = |key: &str| match table.get(key) {
            Some(toml::Value::String(value)) => Ok(value.as_str()),
            Some(_) => Err(format!("{key}: must be text")),
            None => Err(format!("{key}: missing")),
        };
        let device = || get("device");
        let address = || device()?.parse().map_err(|error| format!("device: {error}"));
        let range = || get("range")?.parse().map_err(|error| format!("range: {error}"));
        let way = get("way")?;
        let subject: Box<dyn Subject> = match way {
            "host" => Box::new(Host),
            "sysfs" => Box::new(Storage { address: address()?, range: range()? }),
            "vfio" => Box::new(StorageBehindVfio { address: address()?, range: range()? }),
            "engine-vfio" => Box::new(CardEngine { address: address()?, file: get("file")?.to_owned() }),
            "module" => Box::new(StorageBehindModule { address: address()?, range: range()? }),
            "nvme" => Box::new(Drive { path: device()?.into() }),
            "nvme-vfio" => {
                let lost = table.contains_key("range").then(|| get("range")).transpose()?;
                let lost = lost.map(str::parse).transpose().map_err(|error| format!("range: {error}"))?;
                Box::new(DriveBehindVfio { address: address()?, destructive: lost })
            }
            "xdma" => {
                let memory = get("range")?.parse().map_err(|error| format!("range: {error}"))?;
                Box::new(Xdma { path: device()?.into(), memory })
            }
            other => {
                return Err(format!(
                    "way: '{other}' is none of host, sysfs, vfio, engine-vfio, module, nvme, nvme-vfio, xdma"
                ));
            }
        };
        Ok(Dut { name: get("name")?.to_owned(), way: way.to_owned(), subject })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_a_device_and_how_it_is_accessed() {
        let dut =
            Dut::parse("name = \"a card\"\nway = \"sysfs\"\ndevice = \"01:00.0\"\nrange = \"2:0..64KiB:storage\"");
        let dut = dut.unwrap_or_else(|why| panic!("{why}"));
        assert_eq!((dut.name.as_str(), dut.subject.name().as_str()), ("a card", "0000:01:00.0 2:0..64KiB:storage"));
    }

    #[test]
    fn what_is_wrong_in_a_file_is_named_by_its_key() {
        let said = |text: &str| Dut::parse(text).err().unwrap_or_default();
        assert!(said("way = \"host\"").contains("name: missing"));
        assert!(said("name = \"a\"").contains("way: missing"));
        assert!(said("name = \"a\"\nway = \"usb\"").contains("'usb' is none of host, sysfs"));
        assert!(said("name = \"a\"\nway = 3").contains("way: must be text"));
        assert!(said("name = \"a\"\nway = \"host\"\nbar = \"2\"").contains("bar: unknown key"));
        assert!(
            said("name = \"a\"\nway = \"vfio\"\ndevice = \"x\"\nrange = \"2:0..4KiB\"").contains("device: 'x' is not")
        );
        assert!(said("name = \"a\"\nway = \"xdma\"\ndevice = \"/dev/xdma0\"\nrange = \"2:0..4\"").contains("range: "));
        assert!(said("name = \"a\"\nway = \"nvme-vfio\"\ndevice = \"01:00.0\"\nrange = \"0\"").contains("range: "));
        assert!(said("name = \"a\"\nway = \"engine-vfio\"\ndevice = \"01:00.0\"").contains("file: missing"));
        assert!(said("way").len() > 3);
    }

    #[test]
    fn every_file_in_the_tree_is_valid() {
        let folder = crate::root().join("duts");
        let files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        let files: Vec<_> = files.iter().filter(|path| path.extension().is_some_and(|kind| kind == "toml")).collect();
        assert!(files.len() >= 3, "{files:?}");
        for path in files {
            assert!(Dut::read(path).is_ok(), "{:?}", Dut::read(path).err());
        }
    }
}
