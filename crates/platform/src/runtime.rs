//! Copies of a runtime, distances of cores from the card, and checks of `[runtime]`.

use crate::notes::Notes;
use crate::{Mailbox, Platform, Runtime};
use lanemark_units::Ticks;

impl Runtime {
    /// Bytes of a pinned page.
    pub const PAGE_BYTES: u64 = 4096;

    /// Whether a copy of `bytes` bytes of a program's own memory is made in place: it is long enough, aligned for the
    /// engine, and can be pinned.
    ///
    /// ```
    /// use lanemark_platform::{Origin, preset};
    /// let card = preset("card-stratix10mx").unwrap().unwrap();
    /// let from_malloc = card.with("runtime.buffer_offset_bytes", 16.0, Origin::Assumed("malloc".to_owned()))?;
    /// let in_place = |card: &lanemark_platform::Platform| card.runtime.as_ref().map(|runtime| runtime.is_in_place(8_000_000));
    /// assert_eq!((in_place(&card), in_place(&from_malloc)), (Some(true), Some(false)));
    /// # Ok::<(), lanemark_platform::PlatformError>(())
    /// ```
    #[must_use]
    pub fn is_in_place(&self, bytes: u64) -> bool {
        let offset = self.buffer_offset_bytes.value;
        bytes >= self.staged_below_bytes.value
            && offset.is_multiple_of(self.alignment_bytes.value.into())
            && Runtime::pages(offset, bytes) * Runtime::PAGE_BYTES <= self.pinned_bytes.value
    }

    /// Number of pages touched by `bytes` bytes that start at `offset` in a page.
    #[must_use]
    pub const fn pages(offset: u64, bytes: u64) -> u64 {
        (offset + bytes).div_ceil(Runtime::PAGE_BYTES)
    }

    /// Duration of software at the clock of a core that runs the runtime, if it is `span` at the clock of
    /// `platform`'s cores.
    #[must_use]
    pub fn at_its_clock(&self, platform: &Platform, span: Ticks) -> Ticks {
        let (clock, own) = (platform.core.clock_ghz.value, self.clock_ghz.value);
        if own > 0.0 { Ticks::from_ns(span.as_ns() * clock / own).unwrap_or(span) } else { span }
    }
}

impl Platform {
    /// Extra latency, each way, between a core and the root complex, compared with `root_complex.core_round_trip_ns`.
    /// The last core of a socket is the nearest; cores of other sockets are further away than those of the first.
    ///
    /// ```
    /// let card = lanemark_platform::preset("card-stratix10mx").unwrap().unwrap();
    /// let cores = card.core.cores.value;
    /// assert_eq!(card.core_distance(cores / 2 - 1), lanemark_units::Ticks::ZERO);
    /// assert!(card.core_distance(0) > card.core_distance(1) && card.core_distance(cores - 1) > card.core_distance(0));
    /// ```
    #[must_use]
    pub fn core_distance(&self, core: u32) -> Ticks {
        let root = &self.root_complex;
        let of_socket = self.core.cores.value.div_ceil(self.core.sockets.value);
        let (socket, nth) = (core / of_socket, core % of_socket);
        let other = if socket > 0 { root.other_socket_ns.value } else { Ticks::ZERO };
        root.core_step_ns.value * u64::from(of_socket - 1 - nth) + other
    }
}

/// A runtime has everything that its copies and launches need.
pub(crate) fn check_runtime(platform: &Platform, notes: &mut Notes<'_>) {
    let Some(runtime) = &platform.runtime else { return };
    let mut note = |line, key: &str, message: String| notes.at_line(line, format!("{}.{key}", Runtime::PATH), message);
    let needs = [
        ("[driver]", platform.driver.is_none()),
        ("[memory]", platform.memory.is_none()),
        ("[dma]", platform.dma.is_none()),
    ];
    let missing: Vec<&str> = needs.iter().filter(|(_, is_missing)| *is_missing).map(|(name, _)| *name).collect();
    if !missing.is_empty() {
        let message = format!("a runtime needs the card's DMA engine and driver: add {}", missing.join(", "));
        return note(runtime.submit_ns.line, "submit_ns", message);
    }
    if platform.mailbox(0, 0).is_none() {
        note(
            runtime.submit_ns.line,
            "submit_ns",
            format!("a runtime needs the mailbox of the driver: {}", Mailbox::NEEDS),
        );
    }
    if platform.msi_x.is_some() {
        let message = "kernels signal completion by MSI; remove [msi_x]".to_owned();
        note(runtime.kernel_end_ns.line, "kernel_end_ns", message);
    }
    let (chunk, pinned) = (&runtime.chunk_bytes, &runtime.pinned_bytes);
    if Runtime::pages(0, chunk.value) * Runtime::PAGE_BYTES > pinned.value {
        let message = format!("is {}; the buffer is pinned, and pinned_bytes is only {}", chunk.value, pinned.value);
        note(chunk.line, "chunk_bytes", message);
    }
    let lent = platform.bytes_for_plans();
    if chunk.value.saturating_add(2 * Runtime::PAGE_BYTES) > lent {
        let message = format!(
            "is {}; together with the program's buffer it must fit in the mapped memory, {lent} B",
            chunk.value
        );
        note(chunk.line, "chunk_bytes", message);
    }
}
