//! The channels of a card, and what sysfs says about them.

use super::CardMemory;
use super::XdmaError;
use crate::linux_sysfs::{Address, Attachment, Space, System, text};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Class of the driver's files.
const CLASS: &str = "sys/class/xdma";
/// End of the name of the user BAR's file.
const USER: &str = "user";
/// Most channels of a direction. Source: AMD PG195, "Feature Summary".
const MOST_CHANNELS: u32 = 4;

/// Directions, as the driver names them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    /// Host to card: the card reads host memory.
    H2c,
    /// Card to host: the card writes host memory.
    C2h,
}

impl Direction {
    const fn name(self) -> &'static str {
        match self {
            Direction::H2c => "h2c",
            Direction::C2h => "c2h",
        }
    }
}

/// A card that is bound to the driver `xdma`. Creating a value does not access the card.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct XdmaCard {
    path: PathBuf,
    /// Name in sysfs, such as `xdma0`.
    name: String,
    function: Address,
    /// Channels of each direction, counted from 0 without gaps.
    h2c: u32,
    c2h: u32,
    system: System,
}

impl XdmaCard {
    /// Finds the card whose files begin with `path`, such as `/dev/xdma0`.
    ///
    /// # Errors
    /// [`XdmaError`] if there is none, or if it has no channel of one direction.
    pub fn find(system: &System, path: &Path) -> Result<XdmaCard, XdmaError> {
        let not = |is: &str| XdmaError::NotACard { path: path.to_owned(), is: is.to_owned(), hint: hint(system) };
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_card = name
            .strip_prefix("xdma")
            .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()));
        if !is_card {
            return Err(not("is not the name of a card"));
        }
        let card = |h2c, c2h, function| XdmaCard {
            path: path.to_owned(),
            name: name.to_owned(),
            function,
            h2c,
            c2h,
            system: system.clone(),
        };
        let class = system.path(CLASS);
        let count = |direction: Direction| {
            let is_there = |number: &u32| class.join(format!("{name}_{}_{number}", direction.name())).exists();
            (0..MOST_CHANNELS).take_while(is_there).count() as u32
        };
        let (h2c, c2h) = (count(Direction::H2c), count(Direction::C2h));
        if h2c == 0 && c2h == 0 {
            return Err(not("has no channel (a file such as xdma0_h2c_0)"));
        }
        if h2c == 0 || c2h == 0 {
            let (has, lacks) = if c2h == 0 { ("h2c", "c2h") } else { ("c2h", "h2c") };
            let because = format!(
                "this design has {has} channels only, and without {lacks} channels no bytes can be verified: use a design with both"
            );
            return Err(XdmaError::Unsupported { path: path.to_owned(), because });
        }
        let first = class.join(format!("{name}_h2c_0"));
        let device = first.join("device").canonicalize().ok();
        let function = device.as_deref().and_then(Path::file_name).and_then(|name| name.to_str()?.parse().ok());
        let function = function.ok_or_else(|| XdmaError::Unsupported {
            path: path.to_owned(),
            because: format!("sysfs has no PCI address of this card ({})", first.join("device").display()),
        })?;
        let card = card(h2c, c2h, function);
        for (direction, count) in [(Direction::H2c, h2c), (Direction::C2h, c2h)] {
            (0..count).try_for_each(|number| card.check_file(direction, number))?;
        }
        card.check_limits()?;
        Ok(card)
    }

    /// Fails if the file of a channel is not the character device that sysfs names.
    fn check_file(&self, direction: Direction, number: u32) -> Result<(), XdmaError> {
        let path = self.file(direction, number);
        let found = fs::metadata(&path).ok().filter(|data| data.file_type().is_char_device()).map(|data| data.rdev());
        self.check_device(path, &channel(direction, number), found)
    }

    /// Does the same for an open file.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn check_number(
        &self,
        file: &std::os::fd::OwnedFd,
        direction: Direction,
        number: u32,
    ) -> Result<(), XdmaError> {
        let path = self.file(direction, number);
        let found = rustix::fs::fstat(file).ok().map(|data| data.st_rdev);
        self.check_device(path, &channel(direction, number), found)
    }

    /// The same of the open file of the user BAR.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn check_user_number(&self, file: &std::os::fd::OwnedFd) -> Result<(), XdmaError> {
        let found = rustix::fs::fstat(file).ok().map(|data| data.st_rdev);
        self.check_device(self.user_file(), USER, found)
    }

    /// Fails unless something may be accessed: addresses of the card's memory, or ranges of its user BAR.
    ///
    /// # Errors
    /// [`XdmaError`] if nothing is named, and for ranges that are not in a user BAR.
    pub fn check_access(&self, memory: Option<CardMemory>, attachment: &Attachment) -> Result<(), XdmaError> {
        let path = || self.path.clone();
        let Some(place) = attachment.places.first() else {
            return memory.map(drop).ok_or_else(|| XdmaError::NoMemory { path: path() });
        };
        if !self.system.path(CLASS).join(format!("{}_{USER}", self.name)).exists() {
            let because = format!(
                "this design has no user BAR (no file {}), so loads and stores have no target: use a design whose core has an AXI4-Lite \
                 master, or --on {}",
                self.user_file().display(),
                self.function
            );
            return Err(XdmaError::Unsupported { path: path(), because });
        }
        let bars = attachment.device.bars();
        let bars = bars.map_err(|error| XdmaError::Unsupported { path: path(), because: error.to_string() })?;
        // The driver takes the first memory BAR as the user BAR.
        let user = bars.iter().find(|bar| bar.space != Space::Io).map_or(place.range.bar, |bar| bar.number);
        match attachment.places.iter().map(|place| place.range.bar).find(|bar| *bar != user) {
            None => Ok(()),
            Some(bar) => {
                let because = format!(
                    "{} is BAR{user}, and --bar names BAR{bar}: name ranges of BAR{user}",
                    self.user_file().display()
                );
                Err(XdmaError::Unsupported { path: path(), because })
            }
        }
    }

    fn check_device(&self, path: PathBuf, of: &str, found: Option<u64>) -> Result<(), XdmaError> {
        let file = self.system.path(CLASS).join(format!("{}_{of}", self.name));
        let wanted = text(&file.join("dev")).unwrap_or_default();
        let is_it = found
            .is_some_and(|found| wanted.trim() == format!("{}:{}", rustix::fs::major(found), rustix::fs::minor(found)));
        if is_it {
            return Ok(());
        }
        let because = format!(
            "it is not the character device '{}', which sysfs gives for this file: use the driver's own device files, as \
             xdma:/dev/{}",
            wanted.trim(),
            self.name
        );
        Err(XdmaError::Unsupported { path, because })
    }

    /// Fails if a time limit of the driver is off, so that a transfer that does not end would block this program for ever.
    fn check_limits(&self) -> Result<(), XdmaError> {
        for limit in ["h2c_timeout", "c2h_timeout"] {
            let value = text(&self.system.path("sys/module/xdma/parameters").join(limit));
            if value.is_ok_and(|value| value.trim() == "0") {
                let because = format!(
                    "its driver waits without limit ({limit}=0): set a time limit in s, as its default: \
                     echo 10 > /sys/module/xdma/parameters/{limit}, or load the module with {limit}=10"
                );
                return Err(XdmaError::Unsupported { path: self.path.clone(), because });
            }
        }
        Ok(())
    }

    /// Common part of the paths of its files, as given.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// PCI function of the card.
    #[must_use]
    pub const fn function(&self) -> Address {
        self.function
    }

    /// The channels, in words.
    #[must_use]
    pub fn summary(&self) -> String {
        format!("{} ({}) with {} h2c and {} c2h channels", self.name, self.function, self.h2c, self.c2h)
    }

    /// Channels that exist in both directions.
    #[must_use]
    pub fn channels(&self) -> u32 {
        self.h2c.min(self.c2h)
    }

    /// Path of the file of a channel.
    pub(super) fn file(&self, direction: Direction, number: u32) -> PathBuf {
        self.file_named(&channel(direction, number))
    }

    /// Path of the file of the user BAR, which may not exist.
    #[must_use]
    pub fn user_file(&self) -> PathBuf {
        self.file_named(USER)
    }

    fn file_named(&self, of: &str) -> PathBuf {
        let mut name = self.path.as_os_str().as_bytes().to_vec();
        name.extend(format!("_{of}").bytes());
        PathBuf::from(std::ffi::OsString::from(std::ffi::OsStr::from_bytes(&name)))
    }

    /// Whether the driver polls for the end of transfers instead of waiting for an interrupt; `None` if it does not say it.
    #[must_use]
    pub fn polls(&self) -> Option<bool> {
        let mode = text(&self.system.path("sys/module/xdma/parameters/poll_mode")).ok()?;
        Some(mode.trim() != "0")
    }

    /// Whether the same card still has these files.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(super) fn is_there(&self) -> bool {
        XdmaCard::find(&self.system, &self.path).is_ok_and(|found| found == *self)
    }
}

/// End of the name of a channel's file.
fn channel(direction: Direction, number: u32) -> String {
    format!("{}_{number}", direction.name())
}

/// Names the cards of this machine.
fn hint(system: &System) -> String {
    let entries = fs::read_dir(system.path(CLASS)).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut cards: Vec<String> = names.filter_map(|name| Some(name.split_once("_h2c_")?.0.to_owned())).collect();
    cards.sort();
    cards.dedup();
    if cards.is_empty() {
        return "such as xdma:/dev/xdma0; this machine has none (load the driver xdma of github.com/Xilinx/dma_ip_drivers; the kernel's own module of that name has no such files)".to_owned();
    }
    format!("here {}", cards.iter().map(|name| format!("xdma:/dev/{name}")).collect::<Vec<_>>().join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A system with these channels in sysfs, all of one function.
    fn system(channels: &[&str]) -> (tempfile::TempDir, System) {
        let folder = tempfile::tempdir().unwrap();
        let function = folder.path().join("sys/devices/pci0000:00/0000:01:00.0");
        fs::create_dir_all(&function).unwrap();
        fs::create_dir_all(folder.path().join("dev")).unwrap();
        for channel in channels {
            let at = folder.path().join(CLASS).join(channel);
            fs::create_dir_all(&at).unwrap();
            symlink(&function, at.join("device")).unwrap();
            // The device number of /dev/null.
            fs::write(at.join("dev"), "1:3\n").unwrap();
            symlink("/dev/null", folder.path().join("dev").join(channel)).unwrap();
        }
        let system = System::at(folder.path());
        (folder, system)
    }

    #[test]
    fn a_card_is_found_with_its_channels_and_its_function() {
        let (folder, system) = system(&["xdma0_h2c_0", "xdma0_h2c_1", "xdma0_c2h_0", "xdma1_h2c_0", "xdma0_user"]);
        let card = XdmaCard::find(&system, &folder.path().join("dev/xdma0")).unwrap();
        assert_eq!(card.summary(), "xdma0 (0000:01:00.0) with 2 h2c and 1 c2h channels");
        assert_eq!((card.channels(), card.polls(), card.is_there()), (1, None, true));
        fs::remove_dir_all(folder.path().join(CLASS).join("xdma0_h2c_1")).unwrap();
        assert!(!card.is_there(), "it has other channels than before");
    }

    #[test]
    fn what_is_no_card_is_named_with_the_cards_of_the_machine() {
        let (folder, system) = system(&["xdma0_h2c_0", "xdma0_c2h_0", "xdma7_c2h_0"]);
        let said = |name: &str| XdmaCard::find(&system, &folder.path().join("dev").join(name)).unwrap_err().to_string();
        for wrong in ["xdma0_h2c_0", "xdma", "xdmaa", "null", "xdma1"] {
            assert!(said(wrong).ends_with("here xdma:/dev/xdma0"), "{wrong}: {}", said(wrong));
        }
        assert!(said("xdma7").contains("has c2h channels only"), "{}", said("xdma7"));
        fs::remove_file(folder.path().join("dev/xdma0_c2h_0")).unwrap();
        assert!(said("xdma0").contains("xdma0_c2h_0: it is not the character device '1:3'"), "{}", said("xdma0"));
        symlink("/dev/zero", folder.path().join("dev/xdma0_c2h_0")).unwrap();
        assert!(said("xdma0").contains("it is not the character device '1:3'"), "{}", said("xdma0"));
        fs::remove_file(folder.path().join("dev/xdma0_c2h_0")).unwrap();
        symlink("/dev/null", folder.path().join("dev/xdma0_c2h_0")).unwrap();
        let limits = folder.path().join("sys/module/xdma/parameters");
        fs::create_dir_all(&limits).unwrap();
        fs::write(limits.join("c2h_timeout"), "1\n").unwrap();
        assert!(XdmaCard::find(&system, &folder.path().join("dev/xdma0")).is_ok());
        fs::write(limits.join("c2h_timeout"), "0\n").unwrap();
        assert!(said("xdma0").contains("load the module with c2h_timeout=10"), "{}", said("xdma0"));
        let (_folder, empty) = self::system(&[]);
        let said = XdmaCard::find(&empty, Path::new("/dev/xdma0")).unwrap_err().to_string();
        assert!(said.contains("this machine has none"), "{said}");
    }
}
