//! Reads CPUs, memory types, IOMMU and kernel from `/sys` and `/proc`.

use crate::files::{FileError, Files, garbled, join};
use crate::{
    CpuSet, Governor, IdleState, Inventory, Iommu, Kernel, Mtrr, NumaNode, Package, Pat, PatRange, Processors, Seen,
    Source, Why, kernel_log,
};
use lanemark_units::{HostPhys, MemoryType};
use std::collections::{BTreeMap, BTreeSet};

const CPUS: &str = "sys/devices/system/cpu";
const NODES: &str = "sys/devices/system/node";
/// The PAT of Linux: WB WC UC- UC WB WP UC- WT (`arch/x86/mm/pat/memtype.c`).
const LINUX_PAT: [u8; 8] = [6, 1, 7, 0, 6, 5, 7, 4];

/// The machine without its functions.
pub(crate) fn read(files: &Files<'_>, source: Source, live: bool) -> Inventory {
    let processors = processors(files);
    let kernel = kernel(files);
    Inventory {
        mtrrs: files.fact("proc", "mtrr", mtrrs),
        pat: pat(files, &processors, &kernel),
        iommu: iommu(files, live),
        processors,
        kernel,
        ..Inventory::unseen(source, &Why::NotShown("nothing was read yet"))
    }
}

pub(crate) fn processors(files: &Files<'_>) -> Processors {
    let about = match files.text("proc/cpuinfo") {
        Ok(text) => text,
        Err(trouble) => {
            let why = trouble.why("proc/cpuinfo");
            return Processors {
                packages: packages(files),
                nodes: nodes(files),
                governors: governors(files),
                ..Processors::unseen(&why)
            };
        }
    };
    // One paragraph per CPU; fields of a single CPU are taken from the first.
    let first = about.split("\n\n").next().unwrap_or("");
    let field = |name: &str| {
        let of_line = |line: &str| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        };
        first
            .lines()
            .find_map(of_line)
            .map_or_else(|| Seen::Unseen(Why::NoFile(format!("line '{name}' in proc/cpuinfo").into())), Seen::Known)
    };
    let number = |name| match field(name) {
        Seen::Known(text) => {
            text.parse::<u32>().map_or_else(|_| Seen::Unseen(garbled("proc/cpuinfo", &text)), Seen::Known)
        }
        Seen::Unseen(why) => Seen::Unseen(why),
    };
    let signature = match (number("cpu family"), number("model"), number("stepping")) {
        (Seen::Known(family), Seen::Known(model), Seen::Known(stepping)) => Seen::Known((family, model, stepping)),
        (Seen::Unseen(why), ..) | (_, Seen::Unseen(why), _) | (.., Seen::Unseen(why)) => Seen::Unseen(why),
    };
    let microcode = match field("microcode") {
        Seen::Known(text) => u64::from_str_radix(text.trim_start_matches("0x"), 16)
            .map_or_else(|_| Seen::Unseen(garbled("proc/cpuinfo", &text)), Seen::Known),
        Seen::Unseen(why) => Seen::Unseen(why),
    };
    let flags = field("flags").map(|text| {
        let mut flags: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        flags.sort_unstable();
        flags
    });
    let sockets: BTreeSet<&str> = about
        .lines()
        .filter_map(|line| line.strip_prefix("physical id")?.split_once(':').map(|(_, id)| id.trim()))
        .collect();
    Processors {
        vendor: field("vendor_id"),
        model: field("model name"),
        signature,
        microcode,
        flags,
        online: files.fact(CPUS, "online", |text| text.parse().ok()),
        sockets: match sockets.len() {
            0 => Seen::Unseen(Why::NoFile("line 'physical id' in proc/cpuinfo".into())),
            sockets => Seen::Known(sockets as u32),
        },
        packages: packages(files),
        nodes: nodes(files),
        governors: governors(files),
        idle_states: idle_states(files),
    }
}

/// The entries of a folder named `prefix` and a number, by number.
fn numbered(files: &Files<'_>, folder: &str, prefix: &str) -> Result<Vec<(u32, String)>, FileError> {
    let names = files.names(folder)?;
    let number = |name: String| Some((name.strip_prefix(prefix)?.parse().ok()?, join(folder, &name)));
    let mut numbered: Vec<(u32, String)> = names.into_iter().filter_map(number).collect();
    numbered.sort_unstable();
    Ok(numbered)
}

fn packages(files: &Files<'_>) -> Seen<Vec<Package>> {
    let cpus = match numbered(files, CPUS, "cpu") {
        Ok(cpus) => cpus,
        Err(trouble) => return Seen::Unseen(trouble.why(CPUS)),
    };
    let mut found: BTreeMap<u32, (Vec<u32>, Vec<u32>)> = BTreeMap::new();
    for (cpu, folder) in cpus {
        let folder = join(&folder, "topology");
        let number = match files.fact(&folder, "physical_package_id", |text| text.parse::<u32>().ok()) {
            Seen::Known(number) => number,
            // An offline CPU has no topology.
            Seen::Unseen(Why::NoFile(_)) => continue,
            Seen::Unseen(why) => return Seen::Unseen(why),
        };
        let (all, first) = found.entry(number).or_default();
        all.push(cpu);
        let threads = files.fact(&folder, "thread_siblings_list", |text| text.parse::<CpuSet>().ok());
        if threads.known().and_then(CpuSet::first) == Some(cpu) {
            first.push(cpu);
        }
    }
    if found.is_empty() {
        return Seen::Unseen(Why::NoFile("physical_package_id".into()));
    }
    let package = |(number, (cpus, first)): (u32, (Vec<u32>, Vec<u32>))| Package {
        number,
        cpus: cpus.into_iter().collect(),
        first_threads: first.into_iter().collect(),
    };
    Seen::Known(found.into_iter().map(package).collect())
}

fn nodes(files: &Files<'_>) -> Seen<Vec<NumaNode>> {
    let nodes = match numbered(files, NODES, "node") {
        Ok(nodes) => nodes,
        Err(trouble) => return Seen::Unseen(trouble.why(NODES)),
    };
    let node = |(number, folder): (u32, String)| NumaNode {
        number,
        cpus: files.fact(&folder, "cpulist", |text| text.parse().ok()),
        memory_bytes: files.fact(&folder, "meminfo", |text| {
            let total = text.lines().find_map(|line| line.split_once("MemTotal:"))?.1.trim();
            total.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
        }),
        distances: files
            .fact(&folder, "distance", |text| text.split_whitespace().map(|distance| distance.parse().ok()).collect()),
    };
    Seen::Known(nodes.into_iter().map(node).collect())
}

fn governors(files: &Files<'_>) -> Seen<Vec<Governor>> {
    let cpus = match numbered(files, CPUS, "cpu") {
        Ok(cpus) => cpus,
        Err(trouble) => return Seen::Unseen(trouble.why(CPUS)),
    };
    let mut found: BTreeMap<(String, Option<String>), Vec<u32>> = BTreeMap::new();
    let mut refused = None;
    for (cpu, folder) in cpus {
        let folder = join(&folder, "cpufreq");
        match files.text(&join(&folder, "scaling_governor")) {
            Ok(governor) => {
                let driver = files.text(&join(&folder, "scaling_driver")).ok();
                found.entry((governor, driver)).or_default().push(cpu);
            }
            Err(FileError::Missing) => {}
            Err(trouble) => refused = Some(trouble.why("scaling_governor")),
        }
    }
    if let Some(why) = refused {
        return Seen::Unseen(why);
    }
    let governor = |((name, driver), cpus): ((String, Option<String>), Vec<u32>)| Governor {
        name,
        driver: driver.map_or_else(|| Seen::Unseen(Why::NoFile("scaling_driver".into())), Seen::Known),
        cpus: cpus.into_iter().collect::<CpuSet>(),
    };
    Seen::Known(found.into_iter().map(governor).collect())
}

fn idle_states(files: &Files<'_>) -> Seen<Vec<IdleState>> {
    let folder = "sys/devices/system/cpu/cpu0/cpuidle";
    let states = match numbered(files, folder, "state") {
        Ok(states) => states,
        Err(trouble) => return Seen::Unseen(trouble.why(folder)),
    };
    let state = |(_, folder): (u32, String)| {
        Some(IdleState {
            name: files.text(&join(&folder, "name")).ok()?,
            exit_latency_us: files.fact(&folder, "latency", |text| text.parse().ok()),
            disabled: files.fact(&folder, "disable", |text| text.parse::<u64>().ok().map(|off| off != 0)),
        })
    };
    Seen::Known(states.into_iter().filter_map(state).collect())
}

/// Parses lines such as `reg00: base=0x0c0000000 ( 3072MB), size= 1024MB, count=1: uncachable`
/// (`arch/x86/kernel/cpu/mtrr/if.c`).
fn mtrrs(text: &str) -> Option<Vec<Mtrr>> {
    let mtrr = |line: &str| {
        let (number, rest) = line.strip_prefix("reg")?.split_once(':')?;
        let base = rest.split_once("base=0x")?.1.split_whitespace().next()?;
        let size = rest.split_once("size=")?.1.split_once(',')?.0.trim();
        let digits = size.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = match &size[digits.len()..] {
            "KB" => 1 << 10,
            "MB" => 1 << 20,
            "GB" => 1 << 30,
            _ => return None,
        };
        let memory_type = match rest.rsplit(':').next()?.trim() {
            "uncachable" => MemoryType::Uc,
            "write-combining" => MemoryType::Wc,
            "write-through" => MemoryType::Wt,
            "write-protect" => MemoryType::Wp,
            "write-back" => MemoryType::Wb,
            _ => return None,
        };
        Some(Mtrr {
            number: number.trim().parse().ok()?,
            base: HostPhys(u64::from_str_radix(base, 16).ok()?),
            bytes: digits.parse::<u64>().ok()?.checked_mul(unit)?,
            memory_type,
        })
    };
    text.lines().filter(|line| !line.trim().is_empty()).map(mtrr).collect()
}

fn pat(files: &Files<'_>, processors: &Processors, kernel: &Kernel) -> Pat {
    let entries = match (processors.flags.known(), kernel.command_line.known()) {
        (Some(flags), Some(line)) if line.split_whitespace().any(|word| word == "nopat") || !has(flags, "pat") => {
            Seen::Unseen(Why::NotShown("the kernel does not program the page attribute table on this machine"))
        }
        (Some(_), Some(_)) => Seen::Known(LINUX_PAT),
        _ => Seen::Unseen(Why::NotShown("neither processor flags nor command line could be read")),
    };
    Pat { entries, mapped: files.fact("sys/kernel/debug/x86", "pat_memtype_list", pat_ranges) }
}

fn has(flags: &[String], flag: &str) -> bool {
    flags.binary_search_by(|other| other.as_str().cmp(flag)).is_ok()
}

/// Parses lines such as `PAT: [mem 0x00000000fed00000-0x00000000fed01000] uncached-minus`, with an exclusive end
/// (`arch/x86/mm/pat/memtype.c`).
fn pat_ranges(text: &str) -> Option<Vec<PatRange>> {
    let range = |line: &str| {
        let (range, name) = line.split_once("[mem ")?.1.split_once(']')?;
        let (first, end) = range.split_once('-')?;
        let number = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        let (first, end) = (number(first)?, number(end)?);
        let encoding = match name.trim() {
            "uncached" => 0,
            "write-combining" => 1,
            "write-through" => 4,
            "write-protected" => 5,
            "write-back" => 6,
            "uncached-minus" => 7,
            _ => return None,
        };
        Some(PatRange { base: HostPhys(first), bytes: end.checked_sub(first)?, encoding })
    };
    let lines = text.lines().filter(|line| line.starts_with("PAT: ") && line.contains("[mem "));
    let mut ranges: Vec<PatRange> = lines.map(range).collect::<Option<_>>()?;
    ranges.sort_unstable_by_key(|range| range.base);
    Some(ranges)
}

fn iommu(files: &Files<'_>, live: bool) -> Iommu {
    let names = |path: &'static str| match files.names(path) {
        Ok(names) => Seen::Known(names),
        Err(trouble) => Seen::Unseen(trouble.why(path)),
    };
    Iommu {
        units: names("sys/class/iommu"),
        groups: names("sys/kernel/iommu_groups").map(|groups| groups.len() as u32),
        faults: kernel_log::faults(files, live),
    }
}

fn kernel(files: &Files<'_>) -> Kernel {
    Kernel {
        release: files.fact("proc/sys/kernel", "osrelease", |text| Some(text.to_owned())),
        command_line: files.fact("proc", "cmdline", |text| Some(text.to_owned())),
        lockdown: match files.text("sys/kernel/security/lockdown") {
            Ok(text) => {
                chosen(&text).map_or_else(|| Seen::Unseen(garbled("lockdown", &text)), |mode| Seen::Known(Some(mode)))
            }
            // The folder has entries if securityfs is mounted.
            Err(FileError::Missing) if files.names("sys/kernel/security").is_ok_and(|names| !names.is_empty()) => {
                Seen::Known(None)
            }
            Err(trouble) => Seen::Unseen(trouble.why("sys/kernel/security/lockdown")),
        },
        aspm_policy: files.fact("sys/module/pcie_aspm/parameters", "policy", chosen),
    }
}

/// The word in brackets: `[none] integrity confidentiality` is `none`.
fn chosen(text: &str) -> Option<String> {
    Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mtrr_lines_are_parsed_with_their_units() {
        let text = "reg00: base=0x0c0000000 ( 3072MB), size= 1024MB, count=1: uncachable\n\
                    reg01: base=0x5c000000000 (6029312MB), size=131072MB, count=2: write-combining\n\
                    reg02: base=0x0000a0000 (    0MB), size=  128KB, count=1: write-back\n";
        let ranges = mtrrs(text).unwrap();
        let rows: Vec<_> = ranges.iter().map(|range| (range.base.0, range.bytes, range.memory_type)).collect();
        assert_eq!(
            rows,
            [
                (0xc000_0000, 1 << 30, MemoryType::Uc),
                (0x5c0_0000_0000, 128 << 30, MemoryType::Wc),
                (0xa_0000, 128 << 10, MemoryType::Wb),
            ]
        );
        assert_eq!(mtrrs(""), Some(Vec::new()));
        for garbled in [
            "reg00: nothing",
            "reg00: base=0x0 (0MB), size= 1TB, count=1: uncachable",
            "reg00: base=0x0 (0MB), size= 1MB, count=1: fast",
        ] {
            assert_eq!(mtrrs(garbled), None, "{garbled}");
        }
    }

    #[test]
    fn pat_ranges_have_an_exclusive_end_and_are_sorted() {
        let text = "PAT memtype list:\n\
                    PAT: [mem 0x000005c000000000-0x000005e000000000] write-combining\n\
                    PAT: [mem 0x00000000fed00000-0x00000000fed01000] uncached-minus\n";
        let ranges = pat_ranges(text).unwrap();
        assert_eq!((ranges[0].base, ranges[0].bytes, ranges[0].encoding), (HostPhys(0xfed0_0000), 0x1000, 7));
        assert_eq!((ranges[1].bytes, ranges[1].encoding), (128 << 30, 1));
        assert_eq!(pat_ranges("PAT: [mem 0x2-0x1] write-back"), None);
    }

    #[test]
    fn the_selected_word_is_in_brackets() {
        assert_eq!(chosen("[default] performance powersave").as_deref(), Some("default"));
        assert_eq!(chosen("none [integrity] confidentiality").as_deref(), Some("integrity"));
        assert_eq!(chosen("none"), None);
    }
}
