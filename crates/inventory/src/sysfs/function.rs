//! Reads one function from its folder in `/sys`.

use crate::files::{FileError, Files, garbled, join};
use crate::link::speed_in;
use crate::{
    Address, Aer, Class, ErrorCount, Express, Function, Interrupt, Link, Note, Region, RegionKind, Seen, Sriov, Why,
    Width, config, merge,
};
use lanemark_units::HostPhys;
use lanemark_wire::config::{BarKind, ConfigSpace, ResizableBar};
use std::collections::BTreeMap;

/// The folder in which Linux lists PCI functions.
pub(crate) const FUNCTIONS: &str = "sys/bus/pci/devices";

/// Vendor and device names from the system's `pci.ids`; empty without that file.
pub(crate) struct IdNames {
    file: Option<String>,
    vendors: BTreeMap<u16, usize>,
}

impl IdNames {
    /// Paths of the file in common distributions.
    const PLACES: [&str; 3] = ["usr/share/misc/pci.ids", "usr/share/hwdata/pci.ids", "var/lib/pciutils/pci.ids"];

    pub(crate) fn read(files: &Files<'_>) -> IdNames {
        let file = Self::PLACES.iter().find_map(|place| files.text(place).ok());
        let mut vendors = BTreeMap::new();
        let mut at = 0;
        for line in file.as_deref().unwrap_or("").split_inclusive('\n') {
            if let Some(id) = line.get(..4).filter(|_| !line.starts_with(['\t', '#', 'C'])) {
                if let Ok(id) = u16::from_str_radix(id, 16) {
                    vendors.insert(id, at);
                }
            } else if line.starts_with("C ") {
                break; // Classes come last.
            }
            at += line.len();
        }
        IdNames { file, vendors }
    }

    fn name(&self, vendor: Option<u16>, device: Option<u16>) -> Seen<String> {
        let unseen = |file: &'static str| Seen::Unseen(Why::NoFile(file.into()));
        let Some(file) = &self.file else { return unseen("pci.ids") };
        let (Some(vendor), Some(device)) = (vendor, device) else { return unseen("name without ids") };
        let Some(at) = self.vendors.get(&vendor) else { return unseen("line for this vendor in pci.ids") };
        let mut lines = file[*at..].lines();
        let of_vendor = lines.next().and_then(|line| line.get(4..)).unwrap_or("").trim();
        let wanted = format!("\t{device:04x} ");
        let of_device = lines
            .take_while(|line| line.starts_with(['\t', '#']) || line.is_empty())
            .find_map(|line| line.strip_prefix(wanted.as_str()));
        match of_device {
            Some(of_device) => Seen::Known(format!("{of_vendor} {}", of_device.trim())),
            None => Seen::Known(format!("{of_vendor} Device {device:04x}")),
        }
    }
}

/// Reads functions one at a time.
pub(crate) struct Reader<'a> {
    pub(crate) files: &'a Files<'a>,
    /// Whether the files are those of the running machine, where reading configuration space may wake a device.
    pub(crate) live: bool,
    pub(crate) names: IdNames,
    /// Number of interrupts since boot, by Linux number.
    pub(crate) interrupts: Seen<BTreeMap<u32, u64>>,
    pub(crate) present: FilesPresent,
}

/// Optional files that the source contains for some function, so that their absence at another is a fact.
pub(crate) struct FilesPresent {
    /// Files with link speeds.
    pub(crate) links: bool,
    /// Symbolic links to drivers.
    pub(crate) drivers: bool,
    /// Symbolic links to IOMMU groups.
    pub(crate) groups: bool,
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

fn hex16(text: &str) -> Option<u16> {
    u16::try_from(hex(text)?).ok()
}

/// Kernel flags in a line of `resource` (`include/linux/ioport.h`).
mod flag {
    pub(super) const IO: u64 = 0x100;
    pub(super) const MEMORY: u64 = 0x200;
    pub(super) const PREFETCHABLE: u64 = 0x2000;
    pub(super) const MEMORY_64: u64 = 0x10_0000;
    pub(super) const UNSET: u64 = 0x2000_0000;
}

impl Reader<'_> {
    pub(crate) fn read(&self, address: Address, name: &str, notes: &mut Vec<Note>) -> Function {
        let Ok(folder) = self.files.real(&join(FUNCTIONS, name)) else {
            let what = "the function is listed but its folder is missing; none of its facts are known".to_owned();
            notes.push(Note { at: address.to_string(), what });
            return unread(address);
        };
        let power_state = self.files.fact(&folder, "power_state", |text| Some(text.to_owned()));
        let by_config = self.by_config(address, &folder, power_state.known().map(String::as_str), notes);
        let by_files = self.by_files(address, &folder, power_state, &by_config);
        // The kernel knows assigned addresses and sizes, which the registers do not show.
        let regions = by_files.regions.clone().or_else(|| by_config.regions.clone());
        let resizable_bars = by_config.resizable_bars.clone().or_else(|| self.resizable(&folder, &regions));
        let mut function = merge::functions(by_config, by_files);
        function.name = self.names.name(function.vendor.get(), function.device.get());
        Function { regions, resizable_bars, ..function }
    }

    /// Whether a register access could wake the function.
    fn is_asleep(&self, power: Option<&str>) -> bool {
        self.live && power == Some("D3cold")
    }

    fn by_config(&self, address: Address, folder: &str, power: Option<&str>, notes: &mut Vec<Note>) -> Function {
        if self.is_asleep(power) {
            return config::unread(address, &Why::Asleep);
        }
        let bytes = match self.files.bytes(&join(folder, "config"), ConfigSpace::BYTES) {
            Ok(bytes) if bytes.is_empty() => return config::unread(address, &garbled("config", "")),
            Ok(bytes) => bytes,
            Err(trouble) => return config::unread(address, &trouble.why("config")),
        };
        let cut = padded(&bytes);
        if cut < bytes.len() {
            let what = format!(
                "config space is zero from byte {cut} on although a capability list starts there: padded by a copy; those bytes are ignored"
            );
            notes.push(Note { at: address.to_string(), what });
        }
        let (function, faults) = config::function(address, bytes[..cut].to_vec());
        notes.extend(faults);
        function
    }

    /// The facts in the kernel's files, without configuration space.
    fn by_files(&self, address: Address, folder: &str, power_state: Seen<String>, config: &Function) -> Function {
        let fact16 = |name| self.files.fact(folder, name, hex16);
        let subsystem = match (fact16("subsystem_vendor"), fact16("subsystem_device")) {
            (Seen::Known(vendor), Seen::Known(device)) => Seen::Known(Some((vendor, device))),
            (Seen::Unseen(why), _) | (_, Seen::Unseen(why)) => Seen::Unseen(why),
        };
        let group = self.link(folder, "iommu_group", self.present.groups);
        let iommu_group = match group {
            Seen::Known(Some(group)) => match group.parse() {
                Ok(group) => Seen::Known(Some(group)),
                Err(_) => Seen::Unseen(garbled("iommu_group", &group)),
            },
            Seen::Known(None) => Seen::Known(None),
            Seen::Unseen(why) => Seen::Unseen(why),
        };
        let iommu_domain = match iommu_group {
            Seen::Known(None) => Seen::Known(None),
            _ => self.files.fact(folder, "iommu_group/type", |text| Some(Some(text.to_owned()))),
        };
        let why_config = config.config.why().or(config.express.why()).cloned();
        Function {
            vendor: fact16("vendor"),
            device: fact16("device"),
            subsystem,
            revision: self.files.fact(folder, "revision", |text| u8::try_from(hex(text)?).ok()),
            class: self.files.fact(folder, "class", |text| u32::try_from(hex(text)?).ok().map(Class)),
            regions: self.regions(folder, config.buses.present().is_some()),
            express: self.express(
                folder,
                why_config.as_ref().unwrap_or(&Why::NotInDump),
                self.is_asleep(power_state.known().map(String::as_str)),
            ),
            aer: self.aer(folder),
            sriov: self.sriov(folder),
            driver: self.link(folder, "driver", self.present.drivers),
            numa_node: self.files.fact(folder, "numa_node", |text| {
                text.parse::<i64>()
                    .ok()
                    .and_then(|node| if node == -1 { Some(None) } else { u32::try_from(node).ok().map(Some) })
            }),
            local_cpus: self.files.fact(folder, "local_cpulist", |text| text.parse().ok()),
            iommu_group,
            iommu_domain,
            power_state,
            d3cold_allowed: self.files.fact(folder, "d3cold_allowed", |text| match text {
                "0" => Some(false),
                "1" => Some(true),
                _ => None,
            }),
            enable_count: self.files.fact(folder, "enable", |text| text.parse().ok()),
            interrupts: self.interrupts(folder),
            parent: parent(folder),
            ..Function::unseen(address, &Why::NotInDump)
        }
    }

    /// Interrupts: those of MSI and MSI-X, or the one of the interrupt pin.
    fn interrupts(&self, folder: &str) -> Seen<Vec<Interrupt>> {
        let mut numbers: Vec<u32> = match self.files.names(&join(folder, "msi_irqs")) {
            Ok(names) => names.iter().filter_map(|name| name.parse().ok()).collect(),
            Err(_) => match self.files.fact(folder, "irq", |text| text.parse().ok()) {
                Seen::Known(number) => Some(number).filter(|number| *number > 0).into_iter().collect(),
                Seen::Unseen(why) => return Seen::Unseen(why),
            },
        };
        numbers.sort_unstable();
        let interrupt = |number: u32| Interrupt {
            number,
            // An interrupt that no driver requested has no line.
            count: match &self.interrupts {
                Seen::Known(counts) => Seen::Known(counts.get(&number).copied().unwrap_or(0)),
                Seen::Unseen(why) => Seen::Unseen(why.clone()),
            },
            cpus: self.files.fact(&format!("proc/irq/{number}"), "effective_affinity_list", |text| text.parse().ok()),
        };
        Seen::Known(numbers.into_iter().map(interrupt).collect())
    }

    /// Name of the target of a symbolic link. The kernel creates the link only if there is a target, so where links are
    /// `present` in the source, a missing one means none.
    fn link(&self, folder: &str, name: &'static str, present: bool) -> Seen<Option<String>> {
        match self.files.link_name(&join(folder, name)) {
            Ok(target) => Seen::Known(Some(target)),
            Err(FileError::Missing) if present => Seen::Known(None),
            Err(trouble) => Seen::Unseen(trouble.why(name)),
        }
    }

    /// Link speeds and widths, which the kernel exports without root and for PCI Express functions only.
    fn express(&self, folder: &str, why: &Why, asleep: bool) -> Seen<Option<Express>> {
        if !self.files.exists(&join(folder, "max_link_speed")) {
            // Where other functions have the file, every PCI Express function has it.
            let present = self.present.links;
            return if present { Seen::Known(None) } else { Seen::Unseen(Why::NoFile("max_link_speed".into())) };
        }
        let speed = |name| unknown_to_kernel(self.files.fact(folder, name, speed_in), name, "Unknown");
        let width = |name| {
            let lanes =
                self.files.fact(folder, name, |text| text.parse().ok().filter(|lanes| *lanes != 255).map(Width));
            unknown_to_kernel(lanes, name, "255")
        };
        // The other files read registers, for which newer kernels wake the function; the maximum speed is cached.
        let link = if asleep {
            Link { fastest: speed("max_link_speed"), ..Link::unseen(&Why::Asleep) }
        } else {
            Link {
                fastest: speed("max_link_speed"),
                widest: width("max_link_width"),
                speed: speed("current_link_speed"),
                width: width("current_link_width"),
                ..Link::unseen(why)
            }
        };
        Seen::Known(Some(Express { link: Seen::Known(Some(link)), ..Express::unseen(why) }))
    }

    fn aer(&self, folder: &str) -> Seen<Option<Aer>> {
        let counts = |name| self.files.fact(folder, name, error_counts);
        let aer = Aer {
            correctable: counts("aer_dev_correctable"),
            nonfatal: counts("aer_dev_nonfatal"),
            fatal: counts("aer_dev_fatal"),
            ..Aer::unseen(&Why::NotInDump)
        };
        // Without the files, only configuration space shows whether the capability exists.
        let any = aer.correctable.known().or(aer.nonfatal.known()).or(aer.fatal.known()).is_some();
        if any { Seen::Known(Some(aer)) } else { Seen::Unseen(Why::NoFile("aer_dev_correctable".into())) }
    }

    fn sriov(&self, folder: &str) -> Seen<Option<Sriov>> {
        if !self.files.exists(&join(folder, "sriov_totalvfs")) {
            return Seen::Unseen(Why::NoFile("sriov_totalvfs".into()));
        }
        let count = |name| self.files.fact(folder, name, |text| text.parse().ok());
        Seen::Known(Some(Sriov { total: count("sriov_totalvfs"), enabled: count("sriov_numvfs") }))
    }

    fn regions(&self, folder: &str, is_bridge: bool) -> Seen<Vec<Region>> {
        let mut lines = Vec::new();
        let lines = match self.files.fact(folder, "resource", |text| {
            for line in text.lines() {
                let mut numbers = line.split_whitespace().map(hex);
                lines.push((numbers.next()??, numbers.next()??, numbers.next()??));
            }
            Some(lines)
        }) {
            Seen::Known(lines) => lines,
            Seen::Unseen(why) => return Seen::Unseen(why),
        };
        // Order: BARs, ROM, six BARs of virtual functions if the kernel supports them, bridge windows.
        let kind = |at: usize| match at {
            0..6 => Some(RegionKind::Bar(at as u8)),
            6 => Some(RegionKind::Rom),
            _ if is_bridge && lines.len() == 11 => Some(RegionKind::Window(at as u8 - 7)),
            7..13 => Some(RegionKind::VirtualFunctionBar(at as u8 - 7)),
            13..17 => Some(RegionKind::Window(at as u8 - 13)),
            _ => None,
        };
        let region = |(at, (first, last, flags)): (usize, &(u64, u64, u64))| {
            let kind = kind(at)?;
            let space = match flags {
                flags if flags & flag::IO != 0 => BarKind::Io,
                flags if flags & flag::MEMORY == 0 => return None,
                flags if flags & flag::MEMORY_64 != 0 => BarKind::Memory64,
                _ => BarKind::Memory32,
            };
            let unset = flags & flag::UNSET != 0 || *first == 0;
            let bytes = last.checked_sub(*first).and_then(|less_one| less_one.checked_add(1));
            Some(Region {
                kind,
                space,
                base: Seen::Known((!unset).then_some(HostPhys(*first))),
                bytes: bytes
                    .map_or_else(|| Seen::Unseen(garbled("resource", &format!("{first:#x} {last:#x}"))), Seen::Known),
                prefetchable: flags & flag::PREFETCHABLE != 0,
                write_combining_file: self.write_combining(folder, kind),
            })
        };
        Seen::Known(lines.iter().enumerate().filter_map(region).collect())
    }

    /// Whether `resourceN_wc` exists. The kernel creates `resourceN` for every BAR; in a copy without it this is
    /// unknown.
    fn write_combining(&self, folder: &str, kind: RegionKind) -> Seen<bool> {
        let RegionKind::Bar(number) = kind else { return Seen::Known(false) };
        let name = format!("resource{number}");
        if self.files.exists(&join(folder, &format!("{name}_wc"))) {
            Seen::Known(true)
        } else if self.files.exists(&join(folder, &name)) {
            Seen::Known(false)
        } else {
            Seen::Unseen(Why::NoFile(name.into()))
        }
    }

    /// Resizable BARs by `resourceN_resize`: one bit for every size from 1 MiB on.
    fn resizable(&self, folder: &str, regions: &Seen<Vec<Region>>) -> Seen<Vec<ResizableBar>> {
        let regions = match regions {
            Seen::Known(regions) => regions,
            Seen::Unseen(why) => return Seen::Unseen(why.clone()),
        };
        let mut bars = Vec::new();
        for (bar, region) in regions.iter().filter_map(|region| Some((region.bar()?, region))) {
            let Ok(text) = self.files.text(&join(folder, &format!("resource{bar}_resize"))) else { continue };
            let Ok(bits) = u64::from_str_radix(text.trim_start_matches("0x"), 16) else {
                return Seen::Unseen(garbled(format!("resource{bar}_resize"), &text));
            };
            let Some(bytes) = region.bytes.get().filter(|bytes| bytes.is_power_of_two() && *bytes >= 1 << 20) else {
                return Seen::Unseen(garbled("resource", &format!("{:?}", region.bytes)));
            };
            bars.push(ResizableBar { bar, possible: bits, size_code: bytes.trailing_zeros() as u8 - 20 });
        }
        // Older kernels lack these files, so their absence shows nothing.
        if bars.is_empty() { Seen::Unseen(Why::NoFile("resource0_resize".into())) } else { Seen::Known(bars) }
    }
}

/// Number of bytes to trust: 64 if a copy padded 64 visible bytes with zeros, which a capability pointer into zeros
/// reveals.
fn padded(bytes: &[u8]) -> usize {
    let says_list = bytes.len() > 64 && bytes[6] & 0x10 != 0;
    if says_list && bytes[64..].iter().all(|byte| *byte == 0) { 64 } else { bytes.len() }
}

/// Text that the kernel writes if it could not read a register is a refusal, not garbage: root may see more.
fn unknown_to_kernel<T>(fact: Seen<T>, file: &'static str, unknown: &str) -> Seen<T> {
    match fact {
        Seen::Unseen(Why::Garbled { text, .. }) if text.starts_with(unknown) => {
            Seen::Unseen(Why::Refused { file: file.into(), error: format!("the kernel says '{text}'").into() })
        }
        fact => fact,
    }
}

/// Parses lines such as `BadTLP 3`.
fn error_counts(text: &str) -> Option<Vec<ErrorCount>> {
    let count = |line: &str| {
        let (name, count) = line.trim().rsplit_once(' ')?;
        Some(ErrorCount { name: name.to_owned(), count: count.parse().ok()? })
    };
    text.lines().map(count).collect()
}

/// The parent bridge, by the parent folder: `devices/pci0000:00/0000:00:1c.0/0000:01:00.0`.
fn parent(folder: &str) -> Seen<Option<Address>> {
    let mut names = folder.rsplit('/').skip(1);
    match names.next() {
        Some(name) if name.starts_with("pci") => Seen::Known(None),
        Some(name) => match name.parse() {
            Ok(address) => Seen::Known(Some(address)),
            // A copy with folders in place of links, or a separate bus below a function (VMD).
            Err(_) => names
                .find_map(|name| name.parse().ok())
                .map_or(Seen::Unseen(Why::NoFile("sys/devices".into())), |address| Seen::Known(Some(address))),
        },
        None => Seen::Unseen(Why::NoFile("sys/devices".into())),
    }
}

/// A function with a known address only.
fn unread(address: Address) -> Function {
    Function::unseen(address, &Why::NoFile("config".into()))
}

#[cfg(test)]
mod tests {
    use crate::files::{Files, Folder};
    use crate::{Function, Source, Why};
    use std::fs;

    const ONE: &str = "sys/bus/pci/devices/0000:3b:00.0";

    /// The only function of a machine with these files.
    fn function(files: &[(&str, &str)], live: bool) -> Function {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(ONE).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let store = Folder::new(root.path());
        let mut inventory = super::super::read(&Files::new(&store), Source::ThisMachine, live).unwrap();
        inventory.functions.remove(0)
    }

    #[test]
    fn files_that_would_wake_a_function_in_d3cold_are_not_read() {
        let files = |state| {
            [
                ("power_state", state),
                ("max_link_speed", "16.0 GT/s PCIe"),
                ("max_link_width", "16"),
                ("current_link_speed", "8.0 GT/s PCIe"),
                ("current_link_width", "8"),
            ]
        };
        for (state, live, is_read) in [("D3cold", true, false), ("D3hot", true, true), ("D3cold", false, true)] {
            let function = function(&files(state), live);
            let link = function.link().unwrap();
            assert!(link.fastest.known().is_some(), "{state}");
            let why = (!is_read).then_some(Why::Asleep);
            let whys = [link.widest.why(), link.speed.why(), link.width.why()];
            assert_eq!(whys, [why.as_ref(); 3], "{state}, {live}");
        }
    }

    #[test]
    fn a_missing_driver_link_means_no_driver_only_if_other_functions_have_one() {
        let root = tempfile::tempdir().unwrap();
        let functions = root.path().join("sys/bus/pci/devices");
        for address in ["0000:00:00.0", "0000:00:01.0"] {
            fs::create_dir_all(functions.join(address)).unwrap();
            fs::write(functions.join(address).join("config"), [0; 64]).unwrap();
        }
        let store = Folder::new(root.path());
        let first = |live| {
            let mut inventory = super::super::read(&Files::new(&store), Source::ThisMachine, live).unwrap();
            inventory.functions.remove(0)
        };
        assert_eq!(first(false).driver.why(), Some(&Why::NoFile("driver".into())));
        assert_eq!(first(false).iommu_group.why(), Some(&Why::NoFile("iommu_group".into())));
        assert!(first(true).driver.is_absent() && first(true).iommu_group.is_absent());
        for link in ["driver", "iommu_group"] {
            std::os::unix::fs::symlink("../../7", functions.join("0000:00:01.0").join(link)).unwrap();
        }
        assert!(first(false).driver.is_absent() && first(false).iommu_group.is_absent());
    }
}
