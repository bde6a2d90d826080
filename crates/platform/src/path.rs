//! One number of a platform, by its path: `link.width_lanes`, `bar.0.size_bytes`, `region.sram.read_ns`.

use crate::check::{Tree, check, check_ports};
use crate::read::{Notes, said};
use crate::spec::Raw;
use crate::{
    Bar, Core, Dma, Driver, Endpoint, Link, Memory, Origin, Param, Platform, PlatformError, Port, Problem, Region,
    RootComplex, Slot, Switch,
};

/// Splits `region.sram.read_ns` into section, name (for sections that may be there several times, else empty) and key.
fn split(path: &str) -> Option<(&str, &str, &str)> {
    let (section, rest) = path.split_once('.')?;
    let is_one_of_several = [Bar::PATH, Region::PATH, Switch::PATH, Slot::PATH, Port::PATH].contains(&section);
    match (is_one_of_several, rest.split_once('.')) {
        (true, Some((name, key))) => Some((section, name, key)),
        (true, None) | (false, Some(_)) => None,
        (false, None) => Some((section, "", rest)),
    }
}

pub(crate) fn with(platform: &Platform, path: &str, value: f64, origin: Origin) -> Result<Platform, PlatformError> {
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
        RootComplex::PATH => RootComplex::KEYS,
        Memory::PATH => Memory::KEYS,
        Link::PATH => Link::KEYS,
        Endpoint::PATH => Endpoint::KEYS,
        Dma::PATH => Dma::KEYS,
        Switch::PATH => Switch::KEYS,
        Slot::PATH => Slot::KEYS,
        Port::PATH => Port::KEYS,
        Bar::PATH => Bar::KEYS,
        Region::PATH => Region::KEYS,
        _ => &[],
    };
    let row = keys.iter().find(|row| row.name == key).ok_or_else(unknown)?;
    let raw = row.kind.take_f64(value).ok_or_else(|| refused(format!("is {value}; {}", row.kind.wanted())))?;
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
        RootComplex::PATH => changed.root_complex.set(key, &raw, origin),
        Memory::PATH => changed.memory.as_mut().is_some_and(|memory| memory.set(key, &raw, origin)),
        Link::PATH => changed.link.set(key, &raw, origin),
        Endpoint::PATH => changed.endpoint.set(key, &raw, origin),
        Dma::PATH => changed.dma.as_mut().is_some_and(|dma| dma.set(key, &raw, origin)),
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

/// Sets `Max_Payload_Size` of one port, which need not have been set apart before.
pub(crate) fn with_mps(platform: &Platform, port: &str, bytes: u32, origin: Origin) -> Result<Platform, PlatformError> {
    let mut changed = platform.clone();
    let mps_bytes = Param { value: bytes, origin, line: 0 };
    match changed.ports.iter_mut().find(|other| other.name == port) {
        Some(port) => port.mps_bytes = mps_bytes,
        None => changed.ports.push(Port { name: port.to_owned(), mps_bytes }),
    }
    checked(changed)
}

/// A platform whose keys fit each other still, though some were changed.
fn checked(changed: Platform) -> Result<Platform, PlatformError> {
    let mut notes = Notes::new(&changed.name, b"");
    let Platform { link, bars, regions, memory, dma, switches, slots, .. } = &changed;
    let tree = Tree { memory: memory.as_ref(), dma: dma.as_ref(), switches, slots };
    check(Some(link), Some(bars), Some(regions), Some(&tree), &mut notes);
    check_ports(&changed, &mut notes);
    let mut problems = notes.problems();
    // Their lines are those of the file before the change.
    for problem in &mut problems {
        problem.line = 0;
    }
    if problems.is_empty() { Ok(changed) } else { Err(PlatformError { problems }) }
}

pub(crate) fn number_at(platform: &Platform, path: &str) -> Option<(f64, Origin)> {
    let (section, name, wanted) = split(path)?;
    let mut found = None;
    let mut visit = |key: &'static str, raw: Raw, origin: &Origin| {
        if key == wanted {
            found = match raw {
                Raw::Number(number) => Some((number, origin.clone())),
                Raw::Whole(whole) => Some((whole as f64, origin.clone())),
                Raw::Word(_) | Raw::Flag(_) => None,
            };
        }
    };
    match section {
        Core::PATH => platform.core.each(&mut visit),
        Driver::PATH => platform.driver.as_ref()?.each(&mut visit),
        RootComplex::PATH => platform.root_complex.each(&mut visit),
        Memory::PATH => platform.memory.as_ref()?.each(&mut visit),
        Link::PATH => platform.link.each(&mut visit),
        Endpoint::PATH => platform.endpoint.each(&mut visit),
        Dma::PATH => platform.dma.as_ref()?.each(&mut visit),
        Switch::PATH => platform.switches.iter().find(|switch| switch.name == name)?.each(&mut visit),
        Slot::PATH => platform.slots.iter().find(|slot| slot.name == name)?.each(&mut visit),
        Port::PATH => platform.ports.iter().find(|port| port.name == name)?.each(&mut visit),
        Bar::PATH => platform.bars.iter().find(|bar| bar.index.value.to_string() == name)?.each(&mut visit),
        Region::PATH => platform.region(name)?.each(&mut visit),
        _ => {}
    }
    found
}
