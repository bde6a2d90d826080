//! Load latencies of lines that miss in a core's own caches.

use crate::{Param, Platform};
use lanemark_units::Ticks;

/// Load latency by the holder of the line; `None` if unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loads {
    /// Memory of the core's own socket.
    pub memory: Option<Ticks>,
    /// Memory of the other socket.
    pub remote_memory: Option<Ticks>,
    /// Cache of another core of the same socket.
    pub core: Option<Ticks>,
    /// Cache of a core of the other socket.
    pub remote_core: Option<Ticks>,
}

impl Platform {
    /// Load latencies of lines that miss in a core's own caches. Memory latency defaults to that of `[coherence]`.
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
