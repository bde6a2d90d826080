//! What a core waits for a line that none of its own caches has.

use crate::{Param, Platform};
use lanemark_units::Ticks;

/// From a load to its bytes, by who has the line; `None` where nothing is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loads {
    /// Memory of the core's own socket.
    pub memory: Option<Ticks>,
    /// Memory of the other socket.
    pub remote_memory: Option<Ticks>,
    /// The cache of another core of the same socket.
    pub core: Option<Ticks>,
    /// The cache of a core of the other socket.
    pub remote_core: Option<Ticks>,
}

impl Platform {
    /// What a core waits for a line that none of its own caches has. What `[coherence]` says of memory stands for what
    /// `[core]` does not say.
    ///
    /// ```
    /// use lanemark_platform::preset;
    /// use lanemark_units::Ticks;
    /// let loads = preset("soc-noncoherent").unwrap()?.loads();
    /// assert_eq!((loads.memory, loads.core), (Some(Ticks::whole_ns(130)), None));
    /// # Ok::<(), lanemark_platform::PlatformError>(())
    /// ```
    #[must_use]
    pub fn loads(&self) -> Loads {
        let known = |key: &Param<Ticks>| Some(key.value).filter(|span| *span > Ticks::ZERO);
        let coherence = self.coherence.as_ref().and_then(|coherence| known(&coherence.read_ns));
        Loads {
            memory: known(&self.core.memory_load_ns).or(coherence),
            remote_memory: known(&self.core.remote_memory_load_ns),
            core: known(&self.core.cache_to_cache_ns),
            remote_core: known(&self.core.remote_core_load_ns),
        }
    }
}
