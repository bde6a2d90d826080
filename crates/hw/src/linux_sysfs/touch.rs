//! Accesses of a plan in a dry run, as data and as text.

use lanemark_machine::{Access, MapUnmap, Verb};
use lanemark_units::{BarOffset, MemoryType, format_size};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// Accesses that one iteration of a plan would make.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Touch {
    /// File that would be mapped.
    pub file: PathBuf,
    /// Memory type of the mapping.
    pub memory_type: MemoryType,
    /// Load or store.
    pub verb: Verb,
    /// Instruction or copy routine.
    pub access: Access,
    /// Address of the first byte.
    pub first: BarOffset,
    /// Address of the last byte.
    pub last: BarOffset,
    /// Number of full-width accesses per iteration; for `memcpy` and `rep movsb`, number of copies of the span.
    pub count: u64,
    /// Remaining bytes of the span, moved by narrower accesses.
    pub rest_bytes: u64,
    /// Bytes of each driver call, whose driver makes these accesses; `None` for loads and stores of a core.
    pub call_bytes: Option<u64>,
    /// Whether a load of the last bytes would follow each sample, to show that its stores have arrived.
    pub is_read_back: bool,
    /// Whether the span would be loaded once after the last sample, to verify the stored data.
    pub is_confirmed: bool,
}

impl fmt::Display for Touch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.verb == Verb::Load { "load" } else { "store" };
        write!(f, "{} {}: ", self.memory_type, self.access)?;
        match self.access.width() {
            Some(width) => write!(f, "{} x {verb} of {} B per iteration", self.count, width.bytes())?,
            None => write!(f, "{} x {verb} of the whole span per iteration", self.count)?,
        }
        if self.rest_bytes > 0 {
            write!(f, " and {} B by narrower accesses", self.rest_bytes)?;
        }
        write!(f, ", {} to {}", self.first, self.last)?;
        if let Some(bytes) = self.call_bytes {
            write!(f, ", by driver calls of {bytes} B")?;
        }
        if self.is_read_back {
            f.write_str("; one load at its end after each sample and 31 after the last sample")?;
        }
        if self.is_confirmed {
            f.write_str("; the whole span loaded once at the end")?;
        }
        Ok(())
    }
}

/// An action of a plan that a dry run records instead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Note {
    /// Loads or stores to the card.
    Touch(Touch),
    /// Mappings of host memory for the card.
    MapUnmap(MapUnmap),
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Note::Touch(touch) => touch.fmt(f),
            Note::MapUnmap(MapUnmap { means, bytes, pairs }) => write!(
                f,
                "maps {} of host memory for the device and unmaps it, {pairs} times per iteration: {means}",
                format_size(*bytes)
            ),
        }
    }
}

/// Record of what a dry run would do; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Notes(Arc<Mutex<Vec<Note>>>);

impl Notes {
    /// Adds `note` unless it is recorded already.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub(super) fn add(&self, note: Note) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !noted.contains(&note) {
            noted.push(note);
        }
    }

    /// Removes and returns what was recorded since the last call.
    #[must_use]
    pub fn take(&self) -> Vec<Note> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
