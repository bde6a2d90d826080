//! A board that a Python program drives TLP by TLP.

use crate::card_reads::{CardReads, Request};
use crate::error::{Kind, raised};
use crate::platform::Platform;
use lanemark_sim::{BoardError, CardIndex, Tlp, TlpKind};
use lanemark_units::Ticks;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyBytes;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes of a line: a processor's writes are split at its multiples.
const LINE_BYTES: usize = 64;

/// Events between two looks at signals.
const EVENTS_PER_LOOK: u64 = 65_536;

/// Simulated host, links and cards. Calls of several threads run one after another.
#[pyclass(module = "lanemark._lanemark", frozen)]
pub struct Board {
    driven: Mutex<Driven>,
    /// The thread that has locked it, as of [`this_thread`]; 0 for none.
    owner: AtomicUsize,
}

/// The board during a call.
struct Call<'a> {
    driven: MutexGuard<'a, Driven>,
    owner: &'a AtomicUsize,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.owner.store(0, Ordering::Relaxed);
    }
}

impl Deref for Call<'_> {
    type Target = Driven;

    fn deref(&self) -> &Driven {
        &self.driven
    }
}

impl DerefMut for Call<'_> {
    fn deref_mut(&mut self) -> &mut Driven {
        &mut self.driven
    }
}

/// A number of this thread that no other thread has at the same time, and that is not 0.
fn this_thread() -> usize {
    thread_local! {
        static PLACE: u8 = const { 0 };
    }
    PLACE.with(|place| std::ptr::from_ref(place).addr())
}

/// State of the board, locked during a call.
struct Driven {
    simulated: lanemark_sim::Board,
    /// Payload of a card's TLPs, at most.
    mps_bytes: usize,
    /// Reads of cards that have not completed.
    reads: CardReads,
}

/// A TLP that a card accepted: time in ns, kind, address, length, and the first eight bytes of its payload.
type Accepted<'py> = (f64, &'static str, u64, u64, Bound<'py, PyBytes>);
/// A completion of a processor's read: time in ns, tag, and its bytes; None if the read was not successful.
type Completed<'py> = (f64, u16, Option<Bound<'py, PyBytes>>);
/// A completed read of a card: time in ns, the card, the caller's tag, and its bytes; None if the read was not successful.
type Fetched<'py> = (f64, usize, u64, Option<Bound<'py, PyBytes>>);

fn refused(text: &str) -> PyErr {
    raised(Kind::Usage, text)
}

fn time(name: &str, ns: f64) -> PyResult<Ticks> {
    Ticks::from_ns(ns).map_err(|error| refused(&format!("{name}: {error}")))
}

#[pymethods]
impl Board {
    #[new]
    fn new(platform: &Platform) -> PyResult<Board> {
        let platform = platform.complete()?;
        let board = lanemark_sim::Board::new(&platform);
        let mut board = board.map_err(|error: BoardError| refused(&error.to_string()))?;
        board.record_crossings();
        let mps_bytes = (platform.link.mps_bytes.value as usize).min(board.most_payload_bytes());
        let reads = CardReads::new(platform.link.mrrs_bytes.value);
        Ok(Board { driven: Mutex::new(Driven { simulated: board, mps_bytes, reads }), owner: AtomicUsize::new(0) })
    }

    /// Present time in ns.
    #[getter]
    fn now_ns(&self, py: Python<'_>) -> PyResult<f64> {
        Ok(self.driven(py)?.simulated.now().as_ns())
    }

    /// Time of the next event in ns; None if there is none.
    fn next_at_ns(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        Ok(self.driven(py)?.simulated.next_at().map(Ticks::as_ns))
    }

    /// Runs every event up to and including `until_ns`.
    fn run_until(&self, py: Python<'_>, until_ns: f64) -> PyResult<()> {
        let until = time("until_ns", until_ns)?;
        while !self.run_some(py, |board| board.run_some(until, EVENTS_PER_LOOK))? {
            py.check_signals()?;
        }
        Ok(())
    }

    /// Runs until nothing is left to do, or until `most` events have run; returns whether nothing is left.
    #[pyo3(signature = (most=10_000_000))]
    fn run(&self, py: Python<'_>, most: u64) -> PyResult<bool> {
        let mut left = most;
        while left > 0 {
            let now = left.min(EVENTS_PER_LOOK);
            if self.run_some(py, |board| (0..now).any(|_| !board.step()))? {
                return Ok(true);
            }
            left -= now;
            py.check_signals()?;
        }
        Ok(false)
    }

    /// Number of TLPs on links, counted on each link.
    #[getter]
    fn hops(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.driven(py)?.simulated.hops())
    }

    /// Number of cards.
    #[getter]
    fn cards(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.driven(py)?.simulated.cards())
    }

    /// Bus address of the memory for DMA.
    #[getter]
    fn host_memory_at(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.driven(py)?.simulated.mapped_at())
    }

    /// Names and bus addresses of the regions of a card, with their lengths.
    #[pyo3(signature = (card=0))]
    fn regions(&self, py: Python<'_>, card: usize) -> PyResult<Vec<(String, u64, u64)>> {
        self.driven(py)?.regions(card)
    }

    /// Writes from the root at `at_ns` at the earliest, as a processor does: one TLP per line of 64 B.
    #[pyo3(signature = (address, data, at_ns=0.0))]
    fn write(&self, py: Python<'_>, address: u64, data: &[u8], at_ns: f64) -> PyResult<()> {
        let mut driven = self.driven(py)?;
        let at = time("at_ns", at_ns)?;
        let (mut address, mut rest) = (checked(address, data.len())?, data);
        while !rest.is_empty() {
            let within = (address % LINE_BYTES as u64) as usize;
            let (piece, after) = rest.split_at(rest.len().min(LINE_BYTES - within));
            driven.simulated.inject_write(at, address, piece);
            address += piece.len() as u64;
            rest = after;
        }
        Ok(())
    }

    /// Reads `length` bytes within one line of 64 B from the root; the completion has this tag.
    #[pyo3(signature = (address, length, tag=0, at_ns=0.0))]
    fn read(&self, py: Python<'_>, address: u64, length: u64, tag: u16, at_ns: f64) -> PyResult<()> {
        let mut driven = self.driven(py)?;
        let address = checked(address, usize::try_from(length).unwrap_or(usize::MAX))?;
        let room = LINE_BYTES as u64 - address % LINE_BYTES as u64;
        if length == 0 || length > room {
            return Err(refused(&format!(
                "length: {length} B at {address:#x}: read 1 to {room} B, up to the end of its line"
            )));
        }
        driven.simulated.inject_read(time("at_ns", at_ns)?, address, length, tag);
        Ok(())
    }

    /// Writes from a card at `at_ns` at the earliest, as its own engine does: TLPs of at most `Max_Payload_Size`.
    #[pyo3(signature = (address, data, card=0, at_ns=0.0))]
    fn card_write(&self, py: Python<'_>, address: u64, data: &[u8], card: usize, at_ns: f64) -> PyResult<()> {
        let mut driven = self.driven(py)?;
        let at = time("at_ns", at_ns)?;
        if driven.simulated.card(CardIndex(card)).is_none() {
            return Err(driven.no_card(card));
        }
        let (mut address, mut rest) = (checked(address, data.len())?, data);
        while !rest.is_empty() {
            let within = (address % driven.mps_bytes as u64) as usize;
            let (piece, after) = rest.split_at(rest.len().min(driven.mps_bytes - within));
            driven.simulated.inject_card_write(CardIndex(card), at, address, piece);
            address += piece.len() as u64;
            rest = after;
        }
        Ok(())
    }

    /// Reads from a card at `at_ns` at the earliest, as its own engine does: TLPs of at most `Max_Read_Request_Size`. The
    /// completed read has this tag.
    #[pyo3(signature = (address, length, tag=0, card=0, at_ns=0.0))]
    fn card_read(
        &self,
        py: Python<'_>,
        address: u64,
        length: usize,
        tag: u64,
        card: usize,
        at_ns: f64,
    ) -> PyResult<()> {
        let mut driven = self.driven(py)?;
        let (at, address) = (time("at_ns", at_ns)?, checked(address, length)?);
        if driven.simulated.card(CardIndex(card)).is_none() {
            return Err(driven.no_card(card));
        }
        if driven.simulated.engine(CardIndex(card)).is_none() {
            return Err(refused(&format!("card: card {card} has no DMA engine: add [dma] to the platform")));
        }
        let requests = driven.reads.begin(card, address, length, tag).ok_or_else(|| too_many(length))?;
        for Request { address, length, tag } in requests {
            driven.simulated.inject_card_read(CardIndex(card), at, address, length, tag);
        }
        Ok(())
    }

    /// The reads of cards that were completed since the last call.
    fn fetched<'py>(&self, py: Python<'py>) -> PyResult<Vec<Fetched<'py>>> {
        let mut driven = self.driven(py)?;
        for card in driven.simulated.each_card() {
            for fetched in driven.simulated.take_fetched(card) {
                driven.reads.take(fetched);
            }
        }
        let done = driven.reads.take_done().into_iter();
        Ok(done.map(|done| (done.at_ns, done.card, done.tag, done.data.map(|data| PyBytes::new(py, &data)))).collect())
    }

    /// The TLPs that cards accepted since the last call.
    fn accepted<'py>(&self, py: Python<'py>) -> PyResult<Vec<Accepted<'py>>> {
        let mut driven = self.driven(py)?;
        let accepted = driven.simulated.take_crossings().into_iter().map(|crossing| {
            let tlp = &crossing.tlp;
            let skip = u64::from(tlp.first_be.trailing_zeros());
            let bytes = u64::from(tlp.enabled_bytes());
            let shown = if tlp.kind == TlpKind::MWr { bytes.min(8u64.saturating_sub(skip)) as usize } else { 0 };
            let skip_bytes = skip as usize;
            let head = crossing.head.get(skip_bytes..skip_bytes + shown).unwrap_or_default();
            (crossing.at.as_ns(), tlp.kind.name(), tlp.address + skip, bytes, PyBytes::new(py, head))
        });
        Ok(accepted.collect())
    }

    /// The completions of reads since the last call.
    fn completed<'py>(&self, py: Python<'py>) -> PyResult<Vec<Completed<'py>>> {
        let mut driven = self.driven(py)?;
        let taken = std::mem::take(driven.simulated.outbox());
        let bytes = |tlp: &Tlp, line: &[u8; LINE_BYTES]| {
            let skip = tlp.first_be.trailing_zeros() as usize;
            let bytes = line.get(skip..skip + tlp.enabled_bytes() as usize).unwrap_or_default();
            (tlp.kind == TlpKind::CplD).then(|| PyBytes::new(py, bytes))
        };
        Ok(taken.iter().map(|(at, tlp, line)| (at.as_ns(), tlp.tag, bytes(tlp, line))).collect())
    }

    /// Bytes of a region of a card.
    #[pyo3(signature = (region, offset, length, card=0))]
    fn card_memory<'py>(
        &self,
        py: Python<'py>,
        region: &str,
        offset: u64,
        length: usize,
        card: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let mut driven = self.driven(py)?;
        let known = driven.regions(card)?.into_iter().map(|(name, _, _)| name).collect::<Vec<_>>().join(", ");
        let missing = || refused(&format!("region: card {card} has no region '{region}'; it has {known}"));
        let region = driven.simulated.region_of_mut(CardIndex(card), region).ok_or_else(missing)?;
        fits(offset, length, region.spec.len, "the end of the region")?;
        checked(offset, length)?;
        let mut bytes = vec![0; length];
        region.memory.read(offset, &mut bytes);
        Ok(PyBytes::new(py, &bytes))
    }

    /// Sets bytes of a region of a card, at no simulated time.
    #[pyo3(signature = (region, offset, data, card=0))]
    fn set_card_memory(&self, py: Python<'_>, region: &str, offset: u64, data: &[u8], card: usize) -> PyResult<()> {
        let mut driven = self.driven(py)?;
        let known = driven.regions(card)?.into_iter().map(|(name, _, _)| name).collect::<Vec<_>>().join(", ");
        let missing = || refused(&format!("region: card {card} has no region '{region}'; it has {known}"));
        let region = driven.simulated.region_of_mut(CardIndex(card), region).ok_or_else(missing)?;
        fits(offset, data.len(), region.spec.len, "the end of the region")?;
        checked(offset, data.len())?;
        region.memory.write(offset, data);
        Ok(())
    }

    /// Sets bytes of the memory for DMA, from `offset` on, at no simulated time.
    fn set_host_memory(&self, py: Python<'_>, offset: u64, data: &[u8]) -> PyResult<()> {
        let mut driven = self.driven(py)?;
        fits(offset, data.len(), MOST_BYTES as u64, MEMORY_END)?;
        driven.simulated.memory_mut().write(offset, data);
        Ok(())
    }

    /// Bytes of the memory for DMA, from `offset` on.
    fn host_memory<'py>(&self, py: Python<'py>, offset: u64, length: usize) -> PyResult<Bound<'py, PyBytes>> {
        let mut driven = self.driven(py)?;
        fits(offset, length, MOST_BYTES as u64, MEMORY_END)?;
        let mut bytes = vec![0; length];
        driven.simulated.memory_mut().read(offset, &mut bytes);
        Ok(PyBytes::new(py, &bytes))
    }
}

impl Board {
    /// Locks the board for this call. Other threads of Python run while it waits for the lock.
    ///
    /// # Errors
    /// `RuntimeError` in code that Python runs during a call of this thread, such as `__del__`: it would wait forever.
    fn driven(&self, py: Python<'_>) -> PyResult<Call<'_>> {
        if self.owner.load(Ordering::Relaxed) == this_thread() {
            return Err(PyRuntimeError::new_err("this board is in use by a call that is not finished"));
        }
        let driven = self.driven.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        self.owner.store(this_thread(), Ordering::Relaxed);
        Ok(Call { driven, owner: &self.owner })
    }

    /// Runs a batch of events without the GIL. A signal handler may call the board between two batches.
    fn run_some(&self, py: Python<'_>, run: impl FnOnce(&mut lanemark_sim::Board) -> bool + Send) -> PyResult<bool> {
        let mut call = self.driven(py)?;
        let board = &mut call.simulated;
        Ok(py.detach(|| run(board)))
    }
}

impl Driven {
    fn regions(&self, card: usize) -> PyResult<Vec<(String, u64, u64)>> {
        let endpoint = self.simulated.card(CardIndex(card)).ok_or_else(|| self.no_card(card))?;
        Ok(endpoint
            .regions
            .iter()
            .map(|region| (region.spec.name.clone(), region.spec.address, region.spec.len))
            .collect())
    }

    fn no_card(&self, card: usize) -> PyErr {
        refused(&format!("card: there is no card {card}; the last one is {}", self.simulated.cards().saturating_sub(1)))
    }
}

/// Refuses a read of no bytes, or of more requests than tags are free.
fn too_many(length: usize) -> PyErr {
    refused(&match length {
        0 => "length: 0 B: read at least 1 B".to_owned(),
        _ => format!("length: {length} B: too many read requests are outstanding; let the board run first"),
    })
}

/// Most bytes of a call.
const MOST_BYTES: usize = 64 << 20;

/// An address whose bytes exist and are not too many.
fn checked(address: u64, bytes: usize) -> PyResult<u64> {
    if bytes > MOST_BYTES {
        return Err(refused(&format!("data: {bytes} B are too many for one call: use at most {MOST_BYTES}")));
    }
    match address.checked_add(bytes as u64) {
        Some(_) => Ok(address),
        None => Err(refused(&format!("address: {bytes} B from {address:#x} on end beyond 2^64"))),
    }
}

/// Where the memory ends whose bytes are set and returned at no simulated time.
const MEMORY_END: &str = "the 64 MiB that are reached; use lower addresses of host memory for data that you check";

/// Refuses bytes beyond the end of a memory.
fn fits(offset: u64, length: usize, len: u64, end_of: &str) -> PyResult<()> {
    match offset.checked_add(length as u64) {
        Some(end) if end <= len => Ok(()),
        _ => Err(refused(&format!("offset: {length} B from {offset:#x} on end beyond {len:#x}, {end_of}"))),
    }
}
