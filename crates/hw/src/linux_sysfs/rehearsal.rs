//! Dry run of plans on a card: the accesses a plan would make, without making them.

use super::CardError;
use super::allowance::Allowance;
use super::attachment::Attachment;
use super::bar_files::{BarFiles, Resources};
use super::effective::{MappedType, Mapping};
use super::touch::{Note, Notes, Touch};
use crate::x86::pin::allowed_cpus;
use crate::x86::request::Timed;
use lanemark_machine::{Access, Facts, Machine, MachineError, Plan, Sample, Samples, Unsupported, Verb, Width};
use lanemark_units::{BarOffset, MemoryType, Ticks};
use std::sync::Arc;

/// Dry run of a [`CardMachine`](super::CardMachine): opens no `resource` file, does not read configuration space, and
/// records the accesses that each plan would make.
///
/// Every sample takes a millisecond, long enough for a caller that adds iterations until a sample is long.
#[derive(Debug)]
pub struct Rehearsal {
    allowance: Allowance,
    refusals: Vec<CardError>,
    notes: Notes,
}

impl Rehearsal {
    /// Duration of every sample.
    const SAMPLE: Ticks = Ticks::whole_ns(1_000_000);

    /// Creates a dry run from the result of [`Attachment::rehearsed`].
    ///
    /// # Errors
    /// [`CardError::Os`] if the CPU affinity mask cannot be read.
    pub fn new(rehearsed: (Attachment, Vec<CardError>)) -> Result<Rehearsal, CardError> {
        Rehearsal::through(&(Arc::new(Resources) as Arc<dyn BarFiles>), rehearsed)
    }

    /// As [`new`](Rehearsal::new), with mappings of other files.
    pub(crate) fn through(
        files: &Arc<dyn BarFiles>,
        (attachment, refusals): (Attachment, Vec<CardError>),
    ) -> Result<Rehearsal, CardError> {
        let device = attachment.device.clone();
        let cpus =
            allowed_cpus().map_err(|error| device.os("querying", "the CPU affinity mask".into(), error.into()))?;
        let allowance = Allowance::new(Arc::clone(files), attachment, cpus.len(), |place, memory_type| {
            let because = "not mapped in a dry run".to_owned();
            let bar = place.range.bar;
            Ok(match files.path(&device, bar, memory_type) {
                Some(file) if files.exists(&file) => Ok(MappedType { found: None, because }),
                Some(path) if memory_type == MemoryType::Wc => {
                    Err(CardError::NoWriteCombining { device: device.address(), bar, path }.to_string())
                }
                Some(path) => return Err(CardError::NoResourceFile { device: device.address(), path }),
                None => Err(files.types().to_owned()),
            })
        })?;
        Ok(Rehearsal { allowance, refusals, notes: Notes::default() })
    }

    /// Device and the ranges that would be accessed.
    #[must_use]
    pub const fn attachment(&self) -> &Attachment {
        &self.allowance.attachment
    }

    /// Mappings that would be made.
    #[must_use]
    pub fn mappings(&self) -> &[Mapping] {
        &self.allowance.mappings
    }

    /// Errors that would prevent a run at present.
    #[must_use]
    pub fn refusals(&self) -> &[CardError] {
        &self.refusals
    }

    /// Shared record of the accesses.
    #[must_use]
    pub fn notes(&self) -> Notes {
        self.notes.clone()
    }
}

impl Machine for Rehearsal {
    fn facts(&self) -> &Facts {
        &self.allowance.facts
    }

    fn supports(&self, plan: &Plan) -> Result<(), Unsupported> {
        self.allowance.request(plan).map(drop).map_err(|refusal| refusal.into_unsupported(self.facts()))
    }

    fn run(&mut self, plan: &Plan, samples: &mut Samples) -> Result<(), MachineError> {
        let (ask, place) = self.allowance.request(plan).map_err(|refusal| refusal.into_error(self.facts()))?;
        samples.clear();
        while samples.wants_more() {
            samples.keep(Sample { issue: Self::SAMPLE, delivered: Self::SAMPLE }, None);
        }
        let width = self.allowance.facts.driver_width.unwrap_or(Width::B8);
        let (verb, access, count, rest, call_bytes) = match ask.work {
            Timed::Stream { shape, count, rest } => (shape.verb, shape.access, count, rest, None),
            Timed::Driver { verb, call_bytes } => {
                let bytes = width.bytes() as usize;
                (verb, Access::Plain(width), ask.len / bytes, ask.len % bytes, Some(call_bytes as u64))
            }
            Timed::MapUnmap(asked) => {
                self.notes.add(Note::MapUnmap(asked));
                return Ok(());
            }
            // A mapping without an access.
            _ => return Ok(()),
        };
        if ask.len == 0 || count == 0 && rest == 0 {
            return Ok(());
        }
        let place = &self.allowance.attachment.places[place];
        let file = self.allowance.files.path(&self.allowance.attachment.device, place.range.bar, ask.span.memory_type);
        let is_store = verb == Verb::Store;
        let is_copy = access.width().is_none() || call_bytes.is_some();
        let is_cached = matches!(ask.span.memory_type, MemoryType::Wt | MemoryType::Wp);
        let touch = Touch {
            file: file.unwrap_or_default(),
            memory_type: ask.span.memory_type,
            verb,
            access,
            first: ask.span.at,
            last: BarOffset { offset: ask.span.end() - 1, ..ask.span.at },
            count: count as u64,
            rest_bytes: rest as u64,
            call_bytes,
            is_read_back: is_store && place.kind.may_load() && !is_cached && call_bytes.is_none(),
            is_confirmed: (is_store || is_copy) && place.kind == super::Kind::Storage,
        };
        self.notes.add(Note::Touch(touch));
        Ok(())
    }
}
