//! Which plans may be run on which range, and through which file.

use super::Kind;
use super::attachment::{Attachment, Place};
use super::effective::{MappedType, Mapping};
use super::window::file_of;
use crate::x86::ask::{Ability, Ask, Work};
use crate::x86::c_library::c_library;
use crate::x86::cpu::Cpu;
use crate::x86::loops::After;
use crate::x86::pin::usable_cores;
use crate::x86::refusal::Refusal;
use crate::x86::timer::Timer;
use lanemark_machine::{Access, Facts, Plan, Region, RegionKind, TimeBase, Verb, Width};
use lanemark_units::MemoryType;

/// What may be done to a card, in the terms of the loops.
#[derive(Debug)]
pub(super) struct Allowance {
    pub(super) facts: Facts,
    pub(super) attachment: Attachment,
    pub(super) mappings: Vec<Mapping>,
    pub(super) cpu: Cpu,
    pub(super) timer: Timer,
}

/// The memory types that sysfs offers.
const OFFERED: [MemoryType; 2] = [MemoryType::Uc, MemoryType::Wc];

impl Allowance {
    /// What `attachment` allows, where `attempt` says what comes of mapping a place with a type.
    pub(super) fn new<E>(
        attachment: Attachment,
        cpus: usize,
        mut attempt: impl FnMut(&Place, MemoryType) -> Result<Result<MappedType, String>, E>,
    ) -> Result<Allowance, E> {
        let cpu = Cpu::detected();
        let mut mappings = Vec::new();
        for (number, place) in attachment.places.iter().enumerate() {
            for memory_type in OFFERED {
                let Some(file) = file_of(&attachment.device, place.range.bar, memory_type) else { continue };
                let outcome = match (place.kind, memory_type) {
                    (Kind::Registers { .. }, MemoryType::Wc) => {
                        Err("registers are not mapped write-combining: stores \
                        would be merged and loads might be speculative"
                            .to_owned())
                    }
                    _ => attempt(place, memory_type)?,
                };
                mappings.push(Mapping { place: number, memory_type, file, outcome });
            }
        }
        let facts = facts(&attachment, &mappings, &cpu, cpus);
        let timer = Timer::checked(cpu.tsc_hz);
        Ok(Allowance { facts, attachment, mappings, cpu, timer })
    }

    /// What `plan` asks for, and of which place, if it may be run.
    pub(super) fn ask(&self, plan: &Plan) -> Result<(Ask, usize), Refusal> {
        let ask = Ask::of(plan, &self.ability())?;
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

    /// Between two looks at the clock lie 4 ms where a load takes a microsecond; a pass may move 64 MiB by 8 B.
    fn ability(&self) -> Ability<'_> {
        Ability {
            facts: &self.facts,
            cpu: &self.cpu,
            timer: self.timer,
            no_other_type: "sysfs maps a BAR as UC, and as WC where it is prefetchable",
            weight_per_look: 1 << 12,
            weight_per_pass: 1 << 23,
        }
    }
}

/// Refuses what a place's kind does not allow.
fn check_kind(ask: &Ask, place: &Place) -> Result<(), Refusal> {
    let Work::Stream { shape, count: _, rest } = ask.work else {
        let because = "its loops are written for one stream of loads or stores, with a fence or a pause after it";
        return Err(Refusal::new("such a pass", because));
    };
    if shape.access == Access::CopyToDevice {
        let because = "its table of copies is measured on ordinary memory, and would say nothing about a card";
        return Err(Refusal::new(shape.access.to_string(), because));
    }
    if shape.after == After::Flush || ask.flushed.is_some() {
        return Err(Refusal::new("a flush of lines", "no cache holds lines of UC or WC memory"));
    }
    let (range, kind) = (place.range, place.kind);
    let refused = |what: &str, advice: &str| {
        let what = format!("{} to {what} {}", shape.access, ask.span.at);
        Err(Refusal::new(what, format!("{range} is {kind}: {advice}")))
    };
    match (shape.verb, kind) {
        (Verb::Load, kind) if !kind.may_load() => refused("load from", "name it 'registers:write' to allow loads"),
        (Verb::Store, kind) if !kind.may_store() => {
            refused("store to", "name it 'storage' or 'registers:write' to allow stores")
        }
        (_, Kind::Storage) => Ok(()),
        _ if shape.access != Access::Plain(Width::B4) => {
            refused("touch", "registers are touched by plain accesses of 4 B, which every device takes")
        }
        _ if rest != 0 || !ask.span.at.offset.is_multiple_of(4) => {
            refused("touch", "an access of 4 B to registers lies at a multiple of 4")
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
        disciplines: vec![],
        line_sources: vec![],
        runtime: None,
    }
}
