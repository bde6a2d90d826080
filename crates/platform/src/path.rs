//! One value of a platform, by its path: `link.width_lanes`, `bar.0.size_bytes`, `region.sram.read_ns`, `link.skp`.

use crate::check::{Tree, check, check_ports, check_timeouts};
use crate::fifos::check_fifos;
use crate::iommu::check_iommu;
use crate::kernel::check_kernel;
use crate::msi_x::check_msi_x;
use crate::read::{Notes, cut, of_defaults, said};
use crate::registers::check_registers;
use crate::runtime::check_runtime;
use crate::spec::{Key, Kind, Raw, check_faults};
use crate::{
    Bar, Coherence, Core, DeviceMemory, Dma, DmaRead, DmaWrite, Driver, Endpoint, Fault, Fifos, Iommu, Kernel, Link,
    Memory, MsiX, Origin, Param, Platform, PlatformError, Port, Problem, Region, Registers, RootComplex, Runtime, Slot,
    Switch,
};

/// Splits `region.sram.read_ns` into section, name (for sections that may be there several times, else empty) and key.
fn split(path: &str) -> Option<(&str, &str, &str)> {
    let (section, rest) = path.split_once('.')?;
    let is_one_of_several =
        [Bar::PATH, Region::PATH, Switch::PATH, Slot::PATH, Port::PATH, Fault::PATH].contains(&section);
    match (is_one_of_several, rest.split_once('.')) {
        (true, Some((name, key))) => Some((section, name, key)),
        (true, None) | (false, Some(_)) => None,
        (false, None) => Some((section, "", rest)),
    }
}

pub(crate) fn with(platform: &Platform, path: &str, value: f64, origin: Origin) -> Result<Platform, PlatformError> {
    replaced(platform, path, |kind| kind.take_f64(value), &value.to_string(), origin)
}

pub(crate) fn with_text(
    platform: &Platform,
    path: &str,
    text: &str,
    origin: Origin,
) -> Result<Platform, PlatformError> {
    replaced(platform, path, |kind| kind.take_text(text), &cut(text), origin)
}

/// A platform with another value at a path, which is shown so.
fn replaced(
    platform: &Platform,
    path: &str,
    take: impl FnOnce(&Kind) -> Option<Raw>,
    shown: &str,
    origin: Origin,
) -> Result<Platform, PlatformError> {
    let mut changed = platform.clone();
    let refused = |message: String| {
        let problem = Problem { file: platform.name.clone(), line: 0, key: path.to_owned(), message };
        PlatformError { problems: vec![problem] }
    };
    let unknown = || refused("there is no such number in this platform".to_owned());
    let (section, name, key) = split(path).ok_or_else(unknown)?;
    let keys = match section {
        Core::PATH => Core::KEYS,
        Driver::PATH => Driver::KEYS,
        Runtime::PATH => Runtime::KEYS,
        RootComplex::PATH => RootComplex::KEYS,
        Memory::PATH => Memory::KEYS,
        Iommu::PATH => Iommu::KEYS,
        Coherence::PATH => Coherence::KEYS,
        Link::PATH => Link::KEYS,
        Endpoint::PATH => Endpoint::KEYS,
        Dma::PATH => Dma::KEYS,
        DmaRead::PATH => DmaRead::KEYS,
        DmaWrite::PATH => DmaWrite::KEYS,
        Fifos::PATH => Fifos::KEYS,
        DeviceMemory::PATH => DeviceMemory::KEYS,
        Kernel::PATH => Kernel::KEYS,
        MsiX::PATH => MsiX::KEYS,
        Registers::PATH => Registers::KEYS,
        Switch::PATH => Switch::KEYS,
        Slot::PATH => Slot::KEYS,
        Port::PATH => Port::KEYS,
        Fault::PATH => Fault::KEYS,
        Bar::PATH => Bar::KEYS,
        Region::PATH => Region::KEYS,
        _ => &[],
    };
    let row = keys.iter().find(|row| row.name == key).ok_or_else(unknown)?;
    let raw = take(&row.kind).ok_or_else(|| refused(format!("is {shown}; {}", row.kind.wanted())))?;
    make(&mut changed, section, name).map_err(refused)?;
    let says = match &origin {
        Origin::Given(text) | Origin::Assumed(text) | Origin::Default(text) => said(text),
        Origin::Unknown(_) => false,
        Origin::FittedTo(ids) => !ids.is_empty() && ids.iter().all(|id| said(id)),
    };
    if !says {
        return Err(refused("must say where it comes from".to_owned()));
    }
    let done = match section {
        Core::PATH => changed.core.set(key, &raw, origin),
        Driver::PATH => changed.driver.as_mut().is_some_and(|driver| driver.set(key, &raw, origin)),
        Runtime::PATH => changed.runtime.as_mut().is_some_and(|runtime| runtime.set(key, &raw, origin)),
        RootComplex::PATH => changed.root_complex.set(key, &raw, origin),
        Memory::PATH => changed.memory.as_mut().is_some_and(|memory| memory.set(key, &raw, origin)),
        Iommu::PATH => changed.iommu.as_mut().is_some_and(|iommu| iommu.set(key, &raw, origin)),
        Coherence::PATH => changed.coherence.as_mut().is_some_and(|coherence| coherence.set(key, &raw, origin)),
        Link::PATH => changed.link.set(key, &raw, origin),
        Endpoint::PATH => changed.endpoint.set(key, &raw, origin),
        Dma::PATH => changed.dma.as_mut().is_some_and(|dma| dma.set(key, &raw, origin)),
        DmaRead::PATH => changed.dma_read.as_mut().is_some_and(|way| way.set(key, &raw, origin)),
        DmaWrite::PATH => changed.dma_write.as_mut().is_some_and(|way| way.set(key, &raw, origin)),
        Fifos::PATH => changed.fifos.as_mut().is_some_and(|fifos| fifos.set(key, &raw, origin)),
        DeviceMemory::PATH => changed.device_memory.as_mut().is_some_and(|memory| memory.set(key, &raw, origin)),
        Kernel::PATH => changed.kernel.as_mut().is_some_and(|kernel| kernel.set(key, &raw, origin)),
        MsiX::PATH => changed.msi_x.as_mut().is_some_and(|msi_x| msi_x.set(key, &raw, origin)),
        Registers::PATH => changed.registers.as_mut().is_some_and(|registers| registers.set(key, &raw, origin)),
        Switch::PATH => changed
            .switches
            .iter_mut()
            .find(|switch| switch.name == name)
            .is_some_and(|switch| switch.set(key, &raw, origin)),
        Slot::PATH => {
            changed.slots.iter_mut().find(|slot| slot.name == name).is_some_and(|slot| slot.set(key, &raw, origin))
        }
        Port::PATH => {
            changed.ports.iter_mut().find(|port| port.name == name).is_some_and(|port| port.set(key, &raw, origin))
        }
        Fault::PATH => {
            changed.faults.iter_mut().find(|fault| fault.name == name).is_some_and(|fault| fault.set(key, &raw, origin))
        }
        Bar::PATH => changed
            .bars
            .iter_mut()
            .find(|bar| bar.index.value.to_string() == name)
            .is_some_and(|bar| bar.set(key, &raw, origin)),
        _ => changed
            .regions
            .iter_mut()
            .find(|region| region.name == name)
            .is_some_and(|region| region.set(key, &raw, origin)),
    };
    if !done {
        return Err(unknown());
    }
    checked(changed)
}

/// Makes a section that is not there, if all its keys have defaults; says what it takes otherwise.
fn make(platform: &mut Platform, section: &str, name: &str) -> Result<(), String> {
    let missing = |section: &str, texts: &[&str], keys: &[Key]| {
        let needed = keys.iter().filter(|key| key.default.is_none()).map(|key| key.name);
        let needed: Vec<&str> = texts.iter().copied().chain(needed).collect();
        let needs = if needed.is_empty() { String::new() } else { format!(", which takes {}", needed.join(", ")) };
        Err(format!("this platform has no section [{section}]{needs}: write it into a copy of the platform file"))
    };
    match section {
        Driver::PATH if platform.driver.is_none() => missing(section, Driver::TEXTS, Driver::KEYS),
        Runtime::PATH if platform.runtime.is_none() => missing(section, Runtime::TEXTS, Runtime::KEYS),
        Memory::PATH if platform.memory.is_none() => missing(section, Memory::TEXTS, Memory::KEYS),
        Iommu::PATH if platform.iommu.is_none() => missing(section, Iommu::TEXTS, Iommu::KEYS),
        Coherence::PATH if platform.coherence.is_none() => missing(section, Coherence::TEXTS, Coherence::KEYS),
        Fifos::PATH if platform.fifos.is_none() => missing(section, Fifos::TEXTS, Fifos::KEYS),
        DeviceMemory::PATH if platform.device_memory.is_none() => {
            missing(section, DeviceMemory::TEXTS, DeviceMemory::KEYS)
        }
        Kernel::PATH if platform.kernel.is_none() => missing(section, Kernel::TEXTS, Kernel::KEYS),
        MsiX::PATH if platform.msi_x.is_none() => missing(section, MsiX::TEXTS, MsiX::KEYS),
        Registers::PATH if platform.registers.is_none() => missing(section, Registers::TEXTS, Registers::KEYS),
        Dma::PATH | DmaRead::PATH | DmaWrite::PATH if platform.dma.is_none() => {
            missing(Dma::PATH, Dma::TEXTS, Dma::KEYS)
        }
        DmaRead::PATH if platform.dma_read.is_none() => {
            platform.dma_read = of_defaults(DmaRead::PATH, DmaRead::read);
            Ok(())
        }
        DmaWrite::PATH if platform.dma_write.is_none() => {
            platform.dma_write = of_defaults(DmaWrite::PATH, DmaWrite::read);
            Ok(())
        }
        Port::PATH => {
            let names = platform.port_names();
            if !names.iter().any(|port| port == name) {
                return Err(format!("there is no port {name} in this platform; its ports: {}", names.join(", ")));
            }
            let _ = port_of(platform, name);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Sets `Max_Payload_Size` of one port, which need not have been set apart before.
pub(crate) fn with_mps(platform: &Platform, port: &str, bytes: u32, origin: Origin) -> Result<Platform, PlatformError> {
    let mut changed = platform.clone();
    port_of(&mut changed, port).mps_bytes = Param { value: bytes, origin, line: 0 };
    checked(changed)
}

/// Lets something more go wrong.
pub(crate) fn with_fault(platform: &Platform, fault: Fault) -> Result<Platform, PlatformError> {
    let mut changed = platform.clone();
    changed.faults.push(fault);
    checked(changed)
}

/// Lets a port redirect requests or not.
pub(crate) fn with_redirect(
    platform: &Platform,
    port: &str,
    redirects: bool,
    origin: Origin,
) -> Result<Platform, PlatformError> {
    let mut changed = platform.clone();
    port_of(&mut changed, port).acs_redirect = Param { value: redirects, origin, line: 0 };
    checked(changed)
}

/// What is set apart of a port, though nothing may have been.
fn port_of<'a>(platform: &'a mut Platform, name: &str) -> &'a mut Port {
    let place = platform.ports.iter().position(|other| other.name == name).unwrap_or_else(|| {
        let origin = || Origin::Default("as every port that no [[port]] is about".to_owned());
        let mps_bytes = Param { value: 0, origin: origin(), line: 0 };
        let acs_redirect = Param { value: false, origin: origin(), line: 0 };
        platform.ports.push(Port { name: name.to_owned(), mps_bytes, acs_redirect });
        platform.ports.len() - 1
    });
    &mut platform.ports[place]
}

/// A platform whose keys fit each other still, though some were changed.
fn checked(changed: Platform) -> Result<Platform, PlatformError> {
    let mut notes = Notes::new(&changed.name, b"");
    let Platform { link, bars, regions, memory, dma, switches, slots, .. } = &changed;
    let tree = Tree { memory: memory.as_ref(), dma: dma.as_ref(), switches, slots };
    check(Some(link), Some(bars), Some(regions), Some(&tree), &mut notes);
    check_ports(&changed, &mut notes);
    check_timeouts(&changed, &mut notes);
    check_faults(&changed, &mut notes);
    check_fifos(&changed, &mut notes);
    check_kernel(&changed, &mut notes);
    check_iommu(&changed, &mut notes);
    check_msi_x(&changed, &mut notes);
    check_registers(&changed, &mut notes);
    check_runtime(&changed, &mut notes);
    let mut problems = notes.problems();
    // Their lines are those of the file before the change.
    for problem in &mut problems {
        problem.line = 0;
    }
    if problems.is_empty() { Ok(changed) } else { Err(PlatformError { problems }) }
}

pub(crate) fn number_at(platform: &Platform, path: &str) -> Option<(f64, Origin)> {
    match value_at(platform, path)? {
        (Raw::Number(number), origin) => Some((number, origin)),
        (Raw::Whole(whole), origin) => Some((whole as f64, origin)),
        (Raw::Word(_) | Raw::Flag(_), _) => None,
    }
}

pub(crate) fn value_at(platform: &Platform, path: &str) -> Option<(Raw, Origin)> {
    let (section, name, wanted) = split(path)?;
    let mut found = None;
    let mut visit = |key: &'static str, raw: Raw, origin: &Origin| {
        if key == wanted {
            found = Some((raw, origin.clone()));
        }
    };
    match section {
        Core::PATH => platform.core.each(&mut visit),
        Driver::PATH => platform.driver.as_ref()?.each(&mut visit),
        Runtime::PATH => platform.runtime.as_ref()?.each(&mut visit),
        RootComplex::PATH => platform.root_complex.each(&mut visit),
        Memory::PATH => platform.memory.as_ref()?.each(&mut visit),
        Iommu::PATH => platform.iommu.as_ref()?.each(&mut visit),
        Coherence::PATH => platform.coherence.as_ref()?.each(&mut visit),
        Link::PATH => platform.link.each(&mut visit),
        Endpoint::PATH => platform.endpoint.each(&mut visit),
        Dma::PATH => platform.dma.as_ref()?.each(&mut visit),
        DmaRead::PATH => platform.dma_read.as_ref()?.each(&mut visit),
        DmaWrite::PATH => platform.dma_write.as_ref()?.each(&mut visit),
        Fifos::PATH => platform.fifos.as_ref()?.each(&mut visit),
        DeviceMemory::PATH => platform.device_memory.as_ref()?.each(&mut visit),
        Kernel::PATH => platform.kernel.as_ref()?.each(&mut visit),
        MsiX::PATH => platform.msi_x.as_ref()?.each(&mut visit),
        Registers::PATH => platform.registers.as_ref()?.each(&mut visit),
        Switch::PATH => platform.switches.iter().find(|switch| switch.name == name)?.each(&mut visit),
        Slot::PATH => platform.slots.iter().find(|slot| slot.name == name)?.each(&mut visit),
        Fault::PATH => platform.faults.iter().find(|fault| fault.name == name)?.each(&mut visit),
        Port::PATH => platform.ports.iter().find(|port| port.name == name)?.each(&mut visit),
        Bar::PATH => platform.bars.iter().find(|bar| bar.index.value.to_string() == name)?.each(&mut visit),
        Region::PATH => platform.region(name)?.each(&mut visit),
        _ => {}
    }
    found
}
