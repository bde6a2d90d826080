//! Check of a plan against the named ranges of a card.

use super::Kind;
use super::attachment::{Attachment, Place};
use super::bar_files::BarFiles;
use super::effective::{MappedType, Mapping};
use crate::x86::c_library::c_library;
use crate::x86::cpu::Cpu;
use crate::x86::loops::After;
use crate::x86::pin::usable_cores;
use crate::x86::refusal::Refusal;
use crate::x86::request::{Ability, Request, Timed};
use crate::x86::timer::Timer;
use lanemark_machine::{Access, Facts, Plan, Region, RegionKind, TimeBase, Verb, Width};
use lanemark_units::MemoryType;
use std::sync::Arc;

/// Ranges, mappings and instructions that plans for a card may use.
#[derive(Debug)]
pub(super) struct Allowance {
    /// Files through which the ranges are mapped.
    pub(super) files: Arc<dyn BarFiles>,
    pub(super) facts: Facts,
    pub(super) attachment: Attachment,
    pub(super) mappings: Vec<Mapping>,
    pub(super) cpu: Cpu,
    pub(super) timer: Timer,
}

/// Memory types that mappings can have.
const OFFERED: [MemoryType; 4] = [MemoryType::Uc, MemoryType::Wc, MemoryType::Wt, MemoryType::Wp];

impl Allowance {
    /// Builds the allowance for `attachment`; `attempt` maps a place with a memory type and returns the outcome.
    pub(super) fn new<E>(
        files: Arc<dyn BarFiles>,
        attachment: Attachment,
        cpus: usize,
        mut attempt: impl FnMut(&Place, MemoryType) -> Result<Result<MappedType, String>, E>,
    ) -> Result<Allowance, E> {
        let cpu = Cpu::detected();
        let mut mappings = Vec::new();
        for (number, place) in attachment.places.iter().enumerate() {
            for memory_type in OFFERED {
                let Some(file) = files.path(&attachment.device, place.range.bar, memory_type) else { continue };
                let outcome = match (place.kind, memory_type) {
                    (Kind::Registers { .. }, MemoryType::Uc) => attempt(place, memory_type)?,
                    (Kind::Registers { .. }, MemoryType::Wc) => {
                        Err("registers are never mapped write-combining: stores would be merged \
                        and loads might be speculative"
                            .to_owned())
                    }
                    (Kind::Registers { .. }, _) => Err("registers are never cached".to_owned()),
                    _ => attempt(place, memory_type)?,
                };
                mappings.push(Mapping { place: number, memory_type, file, outcome });
            }
        }
        let (driver_width, tables) = (files.driver_width(), files.tables().to_vec());
        let facts = Facts { driver_width, tables, ..facts(&attachment, &mappings, &cpu, cpus) };
        let timer = Timer::checked(cpu.tsc_hz);
        Ok(Allowance { files, facts, attachment, mappings, cpu, timer })
    }

    /// Returns the request of `plan` and the index of its place, or the reason for a refusal.
    pub(super) fn request(&self, plan: &Plan) -> Result<(Request, usize), Refusal> {
        let ask = Request::of(plan, &self.ability())?;
        let (at, end) = (ask.span.at, ask.span.end());
        let holds = |place: &Place| place.range.bar == at.bar && place.range.from <= at.offset && end <= place.range.to;
        let number = self.attachment.places.iter().position(holds).ok_or(Refusal::OutOfRange(ask.span))?;
        let place = &self.attachment.places[number];
        let mapping = |mapping: &&Mapping| mapping.place == number && mapping.memory_type == ask.span.memory_type;
        match self.mappings.iter().find(mapping).map(|mapping| &mapping.outcome) {
            Some(Ok(_)) => {}
            Some(Err(because)) => {
                return Err(Refusal::new(format!("{} as {}", place.range, ask.span.memory_type), because.clone()));
            }
            None => return Err(Refusal::OutOfRange(ask.span)),
        }
        check_kind(&ask, place)?;
        Ok((ask, number))
    }

    /// Limits of plans: at 1 us per load, the clock is read every 4 ms; one iteration moves at most 64 MiB by 8 B.
    fn ability(&self) -> Ability<'_> {
        Ability {
            facts: &self.facts,
            cpu: &self.cpu,
            timer: self.timer,
            no_other_type: self.files.types(),
            weight_per_check: 1 << 12,
            weight_per_pass: 1 << 23,
        }
    }
}

/// Rejects requests that the kind of the place forbids.
fn check_kind(ask: &Request, place: &Place) -> Result<(), Refusal> {
    // A mapping of host memory does not access the card.
    if matches!(ask.work, Timed::MapUnmap(_)) {
        return Ok(());
    }
    let is_cached = matches!(ask.span.memory_type, MemoryType::Wt | MemoryType::Wp);
    if let (Timed::Driver { .. }, true) = (ask.work, is_cached) {
        return Err(Refusal::new("a driver call", "a call leaves WT and WP lines in a cache: use uc, uc- or wc"));
    }
    if let (Timed::Driver { .. } | Timed::Map, None) = (ask.work, ask.flushed) {
        let because = format!("{} is {}: calls copy storage only", place.range, place.kind);
        return if place.kind == Kind::Storage { Ok(()) } else { Err(Refusal::new("a driver call", because)) };
    }
    let Timed::Stream { shape, count: _, rest } = ask.work else {
        let because = "a card runs one stream of loads or stores, followed by a fence or a pause";
        return Err(Refusal::new("this combination of operations", because));
    };
    if shape.access == Access::CopyToDevice {
        let because = "its table is calibrated on ordinary memory and does not apply to a card";
        return Err(Refusal::new(shape.access.to_string(), because));
    }
    if !is_cached && (shape.after == After::Flush || ask.flushed.is_some()) {
        return Err(Refusal::new("a cache-line flush", "caches hold no lines of UC or WC memory"));
    }
    let (range, kind) = (place.range, place.kind);
    let refused = |what: &str, advice: &str| {
        let what = format!("{} to {what} {}", shape.access, ask.span.at);
        Err(Refusal::new(what, format!("{range} is {kind}: {advice}")))
    };
    match (shape.verb, kind) {
        (Verb::Load, kind) if !kind.may_load() => refused("load from", "use the kind 'registers:write' to allow loads"),
        (Verb::Store, kind) if !kind.may_store() => {
            refused("store to", "use the kind 'storage' or 'registers:write' to allow stores")
        }
        (_, Kind::Storage) => Ok(()),
        _ if shape.access != Access::Plain(Width::B4) => {
            refused("access", "registers take plain 4 B accesses only, which every device supports")
        }
        _ if rest != 0 || !ask.span.at.offset.is_multiple_of(4) => {
            refused("access", "register accesses must be 4 B at a multiple of 4")
        }
        _ => Ok(()),
    }
}

fn facts(attachment: &Attachment, mappings: &[Mapping], cpu: &Cpu, cpus: usize) -> Facts {
    let Attachment { device, places, .. } = attachment;
    let alone = |place: &Place| places.iter().filter(|other| other.range.bar == place.range.bar).count() == 1;
    let regions = places.iter().map(|place| Region {
        name: match place.range {
            range if alone(place) => format!("bar{}", range.bar),
            range => format!("bar{}+{:#x}", range.bar, range.from),
        },
        at: place.start(),
        len: place.range.len(),
        kind: match place.kind {
            Kind::Storage => RegionKind::Storage,
            Kind::Registers { .. } => RegionKind::Registers,
        },
    });
    let is_mapped = |kind: &MemoryType| mappings.iter().any(|map| map.memory_type == *kind && map.outcome.is_ok());
    let id = device.id().unwrap_or_else(|_| "a device".to_owned());
    let ranges = places.iter().map(|place| format!("{} {}", place.range, place.kind)).collect::<Vec<_>>().join(", ");
    Facts {
        name: device.address().to_string(),
        summary: format!("{id}, ranges {ranges}; {}", cpu.brand),
        time_base: TimeBase::Real,
        cores: usable_cores(cpus),
        regions: regions.collect(),
        memory_types: OFFERED.into_iter().filter(is_mapped).collect(),
        stores: cpu.accesses(Verb::Store).into_iter().filter(|access| *access != Access::CopyToDevice).collect(),
        loads: cpu.accesses(Verb::Load),
        memcpy: c_library(),
        dma: None,
        driver_width: None,
        tables: vec![],
        disciplines: vec![],
        line_sources: vec![],
        runtime: None,
    }
}
