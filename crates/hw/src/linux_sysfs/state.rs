//! State of a device and of the links above it: speed, width and error counters, before and after a measurement.

use super::system::text;
use super::{Address, Device};
use lanemark_wire::link::{Generation, Lanes};
use std::fmt;
use std::path::Path;

/// Links between a device and the root complex, and the error counters along them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct State {
    /// Link of each function between device and root complex, from the device up; functions without a link are omitted.
    pub links: Vec<(Address, Link)>,
    /// Error counters, in the order of the kernel.
    pub errors: Vec<ErrorCount>,
}

/// Trained link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Generation (speed).
    pub generation: Generation,
    /// Width.
    pub lanes: Lanes,
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gen{} x{}", self.generation.number(), self.lanes.count())
    }
}

/// AER error counter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ErrorCount {
    /// Function that counts.
    pub device: Address,
    /// Severity: `correctable`, `nonfatal` or `fatal`.
    pub severity: &'static str,
    /// Name of the error in the kernel, such as `BadTLP`.
    pub name: String,
    /// Count since boot.
    pub count: u64,
}

const COUNTERS: [(&str, &str); 3] =
    [("aer_dev_correctable", "correctable"), ("aer_dev_nonfatal", "nonfatal"), ("aer_dev_fatal", "fatal")];

impl State {
    /// Reads the current state; values that the kernel does not report are omitted.
    #[must_use]
    pub fn now(device: &Device) -> State {
        let (mut links, mut errors) = (Vec::new(), Vec::new());
        for (address, folder) in device.and_above() {
            links.extend(link(&folder).map(|link| (address, link)));
            for (file, severity) in COUNTERS {
                let text = text(&folder.join(file)).unwrap_or_default();
                errors.extend(counts(&text).map(|(name, count)| ErrorCount { device: address, severity, name, count }));
            }
        }
        State { links, errors }
    }

    /// Slowest link between the device and the root complex; `None` if no link is known.
    #[must_use]
    pub fn slowest_link(&self) -> Option<(Address, Link)> {
        self.links.iter().copied().min_by_key(|(_, link)| rate(*link))
    }

    /// Slowest link between the device and that of `other` through the root complex, which requests with IOVAs take even if both are
    /// below one switch; `None` if no link is known.
    #[must_use]
    pub fn slowest_link_to(&self, other: &State) -> Option<(Address, Link)> {
        self.links.iter().chain(&other.links).copied().min_by_key(|(_, link)| rate(*link))
    }

    /// Combines two states: of each link the faster of both, error counters as in `self`.
    #[must_use]
    pub fn fastest_since(mut self, before: &State) -> State {
        for (address, was) in &before.links {
            match self.links.iter_mut().find(|(other, _)| other == address) {
                Some((_, is)) if rate(*is) >= rate(*was) => {}
                Some((_, is)) => *is = *was,
                None => self.links.push((*address, *was)),
            }
        }
        self
    }

    /// Differences to `before`, one sentence each without a full stop.
    #[must_use]
    pub fn changes_since(&self, before: &State) -> Vec<String> {
        let mut changes = Vec::new();
        for (address, was) in &before.links {
            match self.links.iter().find(|(other, _)| other == address) {
                Some((_, is)) if is == was => {}
                Some((_, is)) => {
                    changes.push(format!("{address}: the link was {was} before the run but {is} after it"));
                }
                None => {
                    changes.push(format!("{address}: the link was {was} before the run but is not reported after it"));
                }
            }
        }
        for is in &self.errors {
            let same = |was: &&ErrorCount| (was.device, was.severity, &was.name) == (is.device, is.severity, &is.name);
            let was = before.errors.iter().find(same).map_or(0, |was| was.count);
            if is.count != was {
                let ErrorCount { device, severity, name, count } = is;
                changes.push(format!(
                    "{device}: the counter of {severity} errors {name} was {was} before the run but {count} after it"
                ));
            }
        }
        changes
    }
}

fn rate(link: Link) -> u64 {
    lanemark_wire::link::bytes_per_s(link.generation, link.lanes)
}

/// Link of the function in `folder`: speeds such as `16.0 GT/s PCIe`, widths such as `16`; 0 or `Unknown` means no link.
fn link(folder: &Path) -> Option<Link> {
    let speed = text(&folder.join("current_link_speed")).ok()?;
    let width = text(&folder.join("current_link_width")).ok()?;
    let generation = match speed.split_whitespace().next()? {
        "2.5" => 1,
        "5.0" | "5" => 2,
        "8.0" | "8" => 3,
        "16.0" | "16" => 4,
        "32.0" | "32" => 5,
        _ => return None,
    };
    Some(Link { generation: Generation::from_number(generation)?, lanes: Lanes::new(width.trim().parse().ok()?)? })
}

/// Error names and counts in a file such as `aer_dev_fatal`, one per line, without the total in the last line.
fn counts(text: &str) -> impl Iterator<Item = (String, u64)> {
    text.lines().filter_map(|line| {
        let (name, count) = line.rsplit_once(' ')?;
        Some((name.to_owned(), count.parse().ok()?)).filter(|_| !name.starts_with("TOTAL"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux_sysfs::System;

    /// Sysfs tree with a card below a switch below a root port.
    fn tree() -> (tempfile::TempDir, Device) {
        let root = tempfile::tempdir().unwrap();
        let above = "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0";
        let card = root.path().join(above).join("0000:02:00.0");
        std::fs::create_dir_all(&card).unwrap();
        std::fs::create_dir_all(root.path().join("sys/bus/pci/devices")).unwrap();
        std::os::unix::fs::symlink(&card, root.path().join("sys/bus/pci/devices/0000:02:00.0")).unwrap();
        let write = |folder: &Path, speed: &str, width: &str| {
            std::fs::write(folder.join("current_link_speed"), speed).unwrap();
            std::fs::write(folder.join("current_link_width"), width).unwrap();
        };
        write(&card, "16.0 GT/s PCIe\n", "16\n");
        write(card.parent().unwrap(), "2.5 GT/s PCIe\n", "1\n");
        write(card.parent().unwrap().parent().unwrap(), "Unknown\n", "0\n");
        std::fs::write(card.join("aer_dev_correctable"), "RxErr 0\nBadTLP 3\nTOTAL_ERR_COR 3\n").unwrap();
        let device = Device::find(&System::at(root.path()), "02:00.0".parse().unwrap()).unwrap();
        (root, device)
    }

    #[test]
    fn all_links_up_to_the_root_complex_are_read_and_the_slowest_is_found() {
        let (_root, device) = tree();
        let state = State::now(&device);
        let shown: Vec<String> = state.links.iter().map(|(address, link)| format!("{address} {link}")).collect();
        assert_eq!(shown, ["0000:02:00.0 Gen4 x16", "0000:01:00.0 Gen1 x1"]);
        let (address, slowest) = state.slowest_link().unwrap();
        assert_eq!((address.to_string().as_str(), slowest.to_string().as_str()), ("0000:01:00.0", "Gen1 x1"));
    }

    #[test]
    fn the_slowest_link_between_two_devices_is_on_either_path() {
        let (_root, device) = tree();
        let state = State::now(&device);
        let (_, slowest) = state.slowest_link().unwrap();
        let address: Address = "0000:0a:00.0".parse().unwrap();
        let with = |generation| {
            let links = vec![(address, Link { generation, lanes: slowest.lanes })];
            state.slowest_link_to(&State { links, ..state.clone() }).unwrap()
        };
        assert_eq!(with(Generation::Gen5), state.slowest_link().unwrap());
        let other = State { links: Vec::new(), ..state.clone() };
        assert_eq!(other.slowest_link_to(&state), state.slowest_link());
    }

    #[test]
    fn the_faster_state_of_a_retrained_link_is_kept() {
        let (_root, device) = tree();
        let before = State::now(&device);
        let write = |speed: &str| std::fs::write(device.path("current_link_speed"), speed).unwrap();
        let first = |state: State| state.links[0].1.to_string();
        for (speed, wanted) in [("2.5 GT/s PCIe", "Gen4 x16"), ("32.0 GT/s PCIe", "Gen5 x16")] {
            write(speed);
            assert_eq!(first(State::now(&device).fastest_since(&before)), wanted);
        }
        std::fs::remove_file(device.path("current_link_speed")).unwrap();
        let links = State::now(&device).fastest_since(&before).links;
        assert_eq!(links.len(), 2, "a link that is no longer reported still counts");
    }

    #[test]
    fn only_changed_counters_and_links_are_reported() {
        let (_root, device) = tree();
        let before = State::now(&device);
        assert_eq!(State::now(&device).changes_since(&before), Vec::<String>::new());
        std::fs::write(device.path("aer_dev_correctable"), "RxErr 0\nBadTLP 4\nTOTAL_ERR_COR 4\n").unwrap();
        std::fs::write(device.path("current_link_width"), "8\n").unwrap();
        let changes = State::now(&device).changes_since(&before);
        assert_eq!(
            changes,
            [
                "0000:02:00.0: the link was Gen4 x16 before the run but Gen4 x8 after it",
                "0000:02:00.0: the counter of correctable errors BadTLP was 3 before the run but 4 after it",
            ]
        );
        std::fs::remove_file(device.path("current_link_speed")).unwrap();
        assert!(State::now(&device).changes_since(&before)[0].ends_with("is not reported after it"));
    }
}
