//! What a plan would touch on a card, without touching it.

use super::CardError;
use super::allowance::{Allowance, Mapping};
use super::attachment::Attachment;
use super::effective::MappedType;
use super::window::file_of;
use crate::x86::ask::Work;
use crate::x86::pin::allowed_cpus;
use lanemark_machine::{Access, Facts, Machine, MachineError, Plan, Sample, Samples, Unsupported, Verb};
use lanemark_units::{BarOffset, MemoryType, Ticks};
use std::fmt;
use std::path::PathBuf;

/// A [`CardMachine`](super::CardMachine) that touches nothing: it opens no `resource` file, reads no configuration space,
/// and notes what each plan it is asked to run would touch.
///
/// Its samples take a millisecond each, whatever the plan: enough for an asker that adds passes until a sample is long.
#[derive(Debug)]
pub struct Rehearsal {
    allowance: Allowance,
    refusals: Vec<CardError>,
    touched: Vec<Touch>,
}

/// Accesses that one pass of a plan would make.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Touch {
    /// The file that would be mapped.
    pub file: PathBuf,
    /// With which memory type.
    pub memory_type: MemoryType,
    /// Load or store.
    pub verb: Verb,
    /// By which instruction.
    pub access: Access,
    /// The first byte.
    pub first: BarOffset,
    /// The last byte.
    pub last: BarOffset,
    /// Accesses of full width in one pass; copies of the whole span for `memcpy` and `rep movsb`.
    pub count: u64,
    /// Bytes after them, which narrower accesses move.
    pub rest_bytes: u64,
    /// Whether one load of the span's last bytes would follow every sample, to tell that its stores have arrived.
    pub is_read_back: bool,
    /// Whether the whole span would be loaded once after the last sample, to compare it with what was stored.
    pub is_confirmed: bool,
}

impl fmt::Display for Touch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.verb == Verb::Load { "load" } else { "store" };
        write!(f, "{} {}: ", self.memory_type, self.access)?;
        match self.access.width() {
            Some(width) => write!(f, "{} x {verb} of {} B a pass", self.count, width.bytes())?,
            None => write!(f, "{} x {verb} of the whole span a pass", self.count)?,
        }
        if self.rest_bytes > 0 {
            write!(f, " and {} B by narrower ones", self.rest_bytes)?;
        }
        write!(f, ", {} to {}", self.first, self.last)?;
        if self.is_read_back {
            f.write_str("; one load from its end after each sample")?;
        }
        if self.is_confirmed {
            f.write_str("; all of it loaded once at the end")?;
        }
        Ok(())
    }
}

impl Rehearsal {
    /// How long a sample is said to take.
    const SAMPLE: Ticks = Ticks::whole_ns(1_000_000);

    /// A rehearsal of an attachment and of what would be refused, as [`Attachment::rehearsed`] gives them.
    ///
    /// # Errors
    /// [`CardError::Os`] if the kernel does not tell which cores may be used.
    pub fn new((attachment, refusals): (Attachment, Vec<CardError>)) -> Result<Rehearsal, CardError> {
        let device = attachment.device.clone();
        let cpus = allowed_cpus()
            .map_err(|error| device.os("asking for", "the cores that may be used".into(), error.into()))?;
        let allowance = Allowance::new(attachment, cpus.len(), |place, memory_type| {
            let because = "not mapped: this is a rehearsal".to_owned();
            let bar = place.range.bar;
            Ok(match file_of(&device, bar, memory_type) {
                Some(file) if file.exists() => Ok(MappedType { found: None, because }),
                Some(path) if memory_type == MemoryType::Wc => {
                    Err(CardError::NoWriteCombining { device: device.address(), bar, path }.to_string())
                }
                Some(path) => return Err(CardError::NoResourceFile { device: device.address(), path }),
                None => Err("sysfs does not offer it".to_owned()),
            })
        })?;
        Ok(Rehearsal { allowance, refusals, touched: Vec::new() })
    }

    /// The device and the ranges that would be touched.
    #[must_use]
    pub const fn attachment(&self) -> &Attachment {
        &self.allowance.attachment
    }

    /// The mappings that would be made.
    #[must_use]
    pub fn mappings(&self) -> &[Mapping] {
        &self.allowance.mappings
    }

    /// Why nothing would be run as things are.
    #[must_use]
    pub fn refusals(&self) -> &[CardError] {
        &self.refusals
    }

    /// What was noted since the last call, each once.
    pub fn take_touched(&mut self) -> Vec<Touch> {
        std::mem::take(&mut self.touched)
    }
}

impl Machine for Rehearsal {
    fn facts(&self) -> &Facts {
        &self.allowance.facts
    }

    fn supports(&self, plan: &Plan) -> Result<(), Unsupported> {
        match self.allowance.ask(plan) {
            Ok(_) => Ok(()),
            Err(refusal) => Err(refusal.into_unsupported(self.facts())),
        }
    }

    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        let (ask, place) = self.allowance.ask(plan).map_err(|refusal| refusal.into_error(self.facts()))?;
        samples.clear();
        while samples.wants_more() {
            samples.keep(Sample { issue: Self::SAMPLE, delivered: Self::SAMPLE }, None);
        }
        let Work::Stream { shape, count, rest } = ask.work else { return Ok(()) };
        if ask.len == 0 || count == 0 && rest == 0 {
            return Ok(());
        }
        let place = &self.allowance.attachment.places[place];
        let file = file_of(&self.allowance.attachment.device, place.range.bar, ask.span.memory_type);
        let is_store = shape.verb == Verb::Store;
        let is_copy = shape.access.width().is_none();
        let touch = Touch {
            file: file.unwrap_or_default(),
            memory_type: ask.span.memory_type,
            verb: shape.verb,
            access: shape.access,
            first: ask.span.at,
            last: BarOffset { offset: ask.span.end() - 1, ..ask.span.at },
            count: count as u64,
            rest_bytes: rest as u64,
            is_read_back: is_store && place.kind.may_load(),
            is_confirmed: (is_store || is_copy) && place.kind == super::Kind::Storage,
        };
        if !self.touched.contains(&touch) {
            self.touched.push(touch);
        }
        Ok(())
    }
}
