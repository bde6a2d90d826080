//! The accesses of a plan, as data and in words.

use lanemark_machine::{Access, Verb};
use lanemark_units::{BarOffset, MemoryType};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

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
            f.write_str("; one load from its end after each sample and 31 after the last")?;
        }
        if self.is_confirmed {
            f.write_str("; all of it loaded once at the end")?;
        }
        Ok(())
    }
}

/// Where a rehearsal notes what it would touch; clones are the same notes.
#[derive(Clone, Debug, Default)]
pub struct Notes(Arc<Mutex<Vec<Touch>>>);

impl Notes {
    /// Notes `touch`, unless it stands there.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    pub(super) fn add(&self, touch: Touch) {
        let mut touched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !touched.contains(&touch) {
            touched.push(touch);
        }
    }

    /// What was noted since the last call, each once.
    #[must_use]
    pub fn take(&self) -> Vec<Touch> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
