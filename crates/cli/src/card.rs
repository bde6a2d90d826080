//! A real card: opened with what the user allows, watched, and put into the record; or only rehearsed.

use crate::args::{BenchArgs, CardArgs};
use crate::ask::{axes, questions};
use crate::failure::Failure;
use crate::target::{Changes, Target};
use crate::work::{Task, work};
use lanemark_bench::{BenchError, Case, Effort};
use lanemark_hw::linux_sysfs::{
    Address, Attachment, CardError, CardMachine, Consent, Mapping, Notes, Place, Rehearsal, State, System,
};
use lanemark_machine::{Facts, Machine, MachineError};
use lanemark_record::{Card as CardRecord, CardLink, CardMapping, CardRange, Ceiling, CeilingKind};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What is known of a card besides its machine.
pub struct Card {
    attachment: Attachment,
    mappings: Vec<Mapping>,
    emulated: Option<String>,
    before: State,
}

/// The address in a target's name, if it is one.
pub fn address(name: &str) -> Option<Address> {
    name.parse().ok()
}

/// Refuses options of cards where no card is asked, and ranges for several cards.
pub fn check(args: &BenchArgs) -> Result<(), Failure> {
    let cards = args.on.iter().filter(|name| address(name).is_some()).count();
    if let Some(name) = args.on.iter().find(|name| address(name).is_some()) {
        Changes::wanted(args).refuse(name)?;
    }
    match args.card.given() {
        Some(option) if cards == 0 => {
            let advice = "name one by its address, for example --on 0000:01:00.0";
            Err(Failure::Usage(format!("{option} is about a card: {advice}")))
        }
        _ if cards > 1 => Err(Failure::Usage("--bar names ranges of one card; measure one card at a time".to_owned())),
        _ if args.card.dry_run && cards < args.on.len() => {
            Err(Failure::Usage("--dry-run tells what would happen to a card; leave the other targets out".to_owned()))
        }
        _ => Ok(()),
    }
}

/// Opens the card at `address`; `interrupted` ends long measurements.
pub fn open(
    address: Address,
    args: &CardArgs,
    interrupted: &Arc<AtomicBool>,
) -> Result<(Box<dyn Machine>, Card), Failure> {
    let system = system(args);
    let emulated = if args.emulated { Some("the user said so".to_owned()) } else { system.emulated() };
    let attachment = Attachment::new(&system, address, &args.bars, consent(args))?;
    let before = State::now(&attachment.device);
    let machine = CardMachine::open(attachment, emulated.is_some())?;
    let (attachment, mappings) = (machine.attachment().clone(), machine.mappings().to_vec());
    let card = Card { attachment, mappings, emulated, before };
    Ok((Box::new(machine.interrupted_by(Arc::clone(interrupted))), card))
}

fn system(args: &CardArgs) -> System {
    args.system_root.as_deref().map_or_else(System::this, System::at)
}

const fn consent(args: &CardArgs) -> Consent {
    Consent { owns_device: args.i_own_this_device, enable: args.enable }
}

impl From<CardError> for Failure {
    /// What the user could say otherwise is a matter of usage; what the system lacks or forbids is something absent.
    fn from(error: CardError) -> Failure {
        match error {
            CardError::Permission { .. }
            | CardError::LockedDown { .. }
            | CardError::Claimed { .. }
            | CardError::NoResourceFile { .. }
            | CardError::Unsupported { .. } => Failure::Absent(error.to_string()),
            CardError::Gone { .. } => Failure::Check(error.to_string()),
            _ => Failure::Usage(error.to_string()),
        }
    }
}

impl Card {
    /// The limit of a case: what the slowest link on the way carries.
    pub fn ceiling(&self, case: &Case) -> Ceiling {
        let unknown = |because: String| Ceiling { kind: CeilingKind::Unknown, rate_bytes_per_s: None, because };
        if let Some(because) = &self.emulated {
            return unknown(format!("emulated: {because}"));
        }
        // A link may train faster under load than it idles: nothing is held against less than it was seen to carry.
        let now = State::now(&self.attachment.device);
        let Some((reporter, link)) = now.fastest_since(&self.before).slowest_link() else {
            return unknown("no link on the way to the card tells its speed".to_owned());
        };
        let bar = self.attachment.places.iter().map(|place| &place.bar).find(|bar| bar.number == case.region.bar);
        let start = bar.map_or(0, |bar| bar.start.0);
        match lanemark_model::link_ceiling(link.generation, link.lanes, start, case.verb(), case.size) {
            Some(limit) => Ceiling {
                kind: CeilingKind::Computed,
                rate_bytes_per_s: Some(limit.rate.bytes_per_s()),
                because: format!("{}; the slowest link on the way, as {reporter} reports it", limit.because),
            },
            None => unknown("its link takes no time".to_owned()),
        }
    }

    /// What has changed at the card and the links above it since it was opened, a warning each.
    pub fn changes(&self) -> Vec<String> {
        State::now(&self.attachment.device).changes_since(&self.before)
    }

    /// As records show it.
    pub fn to_record(&self, facts: &Facts) -> CardRecord {
        let region = |place: &Place| {
            let found = facts.regions.iter().find(|region| region.at == place.start());
            found.map_or_else(String::new, |region| region.name.clone())
        };
        let range = |place: &Place| CardRange {
            region: region(place),
            bar: place.range.bar,
            offset_bytes: place.range.from,
            len_bytes: place.range.len(),
            kind: place.kind.to_string(),
            is_kind_assumed: place.is_kind_assumed(),
        };
        let Attachment { device, places, driver, was_enabled } = &self.attachment;
        let mapping = |mapping: &Mapping| CardMapping {
            region: places.get(mapping.place).map_or_else(String::new, region),
            memory_type: mapping.memory_type.name().to_owned(),
            file: mapping.file.display().to_string(),
            effective_memory_type: mapping
                .outcome
                .as_ref()
                .ok()
                .and_then(|mapped| mapped.found)
                .map(|kind| kind.name().to_owned()),
            is_used: mapping.outcome.is_ok(),
            because: match &mapping.outcome {
                Ok(mapped) => mapped.because.clone(),
                Err(because) => because.clone(),
            },
        };
        let links = self.before.links.iter().map(|(function, link)| CardLink {
            device: function.to_string(),
            generation: link.generation.number(),
            width_lanes: link.lanes.count(),
        });
        CardRecord {
            id: device.id().unwrap_or_default(),
            driver: driver.clone(),
            was_enabled: *was_enabled,
            emulated_because: self.emulated.clone(),
            ranges: places.iter().map(range).collect(),
            mappings: self.mappings.iter().map(mapping).collect(),
            links: links.collect(),
        }
    }
}

/// `lanemark bench --dry-run`: every range, mapping and access that would happen, and nothing of it done.
pub fn rehearse(args: &BenchArgs) -> Result<(), Failure> {
    check(args)?;
    let Some(address) = args.on.first().and_then(|name| address(name)) else {
        return Err(Failure::Usage("--dry-run wants a card: --on 0000:01:00.0".to_owned()));
    };
    let attachment = Attachment::rehearsed(&system(&args.card), address, &args.card.bars, consent(&args.card));
    let rehearsal = attachment.and_then(Rehearsal::new)?;
    let mut out = std::io::stdout().lock();
    head(&mut out, &rehearsal)?;
    let notes = rehearsal.notes();
    let mut targets = vec![Target::of(Box::new(rehearsal))];
    let work = work(&questions(&args.questions)?, &targets, &axes(&args.axes)?)?;
    accesses(&mut out, targets[0].machine.as_mut(), &notes, &work.tasks)?;
    writeln!(out, "\nnothing was touched: leave out --dry-run to do it")?;
    Ok(())
}

fn head(out: &mut impl Write, rehearsal: &Rehearsal) -> Result<(), Failure> {
    let Attachment { device, places, .. } = rehearsal.attachment();
    writeln!(out, "{} ({})", device.address(), device.id()?)?;
    for refusal in rehearsal.refusals() {
        writeln!(out, "would be refused as things are: {refusal}")?;
    }
    writeln!(out, "before: memory decoding is looked up in configuration space; links and error counters are read")?;
    for (number, place) in places.iter().enumerate() {
        let assumed = if place.is_kind_assumed() { ", as its BAR is and nobody said otherwise" } else { "" };
        writeln!(out, "range {}: {}{assumed}; {}", place.range, place.kind, place.bar)?;
        for mapping in rehearsal.mappings().iter().filter(|mapping| mapping.place == number) {
            match &mapping.outcome {
                Ok(_) => writeln!(out, "  mapped as {} for each run: {}", mapping.memory_type, mapping.file.display())?,
                Err(because) => writeln!(out, "  not as {}: {because}", mapping.memory_type)?,
            }
        }
    }
    Ok(())
}

fn accesses(out: &mut impl Write, machine: &mut dyn Machine, notes: &Notes, tasks: &[Task]) -> Result<(), Failure> {
    let effort = Effort::default();
    let mut last = "";
    for Task { question, case, .. } in tasks {
        let asked = lanemark_bench::ask(question, machine, case, &effort);
        let touched = notes.take();
        if !touched.is_empty() && last != question.name {
            last = question.name;
            writeln!(out, "\n{last}: a sample has at most {} passes", (question.most_passes)(case))?;
        }
        for touch in touched {
            writeln!(out, "  {touch}")?;
        }
        match asked {
            Ok(_) | Err(BenchError::Machine(MachineError::Unsupported(_))) => {}
            Err(error) => writeln!(out, "  {}, {}: {error}", question.name, case.method)?,
        }
    }
    Ok(())
}
