//! Guests that tests share, and how many run at once.
//!
//! All tests start at once. Those of a kind of guest wait for the one guest of that kind, so that each kind boots once; a
//! guest keeps its place among the running ones until no test wants it and another kind needs the place.

use crate::guest::Guest;
use rustix::thread::CpuSet;
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// Time after which a test without a place looks again for a guest that no test wants.
const LOOK: Duration = Duration::from_millis(100);

/// Processors of running guests, those that wait to run, in their order, and the kinds that have booted.
struct Places {
    taken: Vec<usize>,
    queue: VecDeque<u64>,
    tickets: u64,
    kinds: Vec<&'static Guests>,
}

static PLACES: Mutex<Places> =
    Mutex::new(Places { taken: Vec::new(), queue: VecDeque::new(), tickets: 0, kinds: Vec::new() });
static CHANGED: Condvar = Condvar::new();

fn places() -> MutexGuard<'static, Places> {
    PLACES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The place of a running guest: a processor. Threads of an emulator wait for each other all the time, which takes half as
/// long on one processor as on two.
pub struct Place {
    processor: usize,
}

impl Place {
    /// Waits for a place; the guest of a kind that no test wants makes room.
    pub fn take() -> Place {
        let ours = rustix::thread::sched_getaffinity(None).unwrap();
        let mut all = places();
        let ticket = all.tickets;
        all.tickets += 1;
        all.queue.push_back(ticket);
        loop {
            let is_next = all.queue.front() == Some(&ticket);
            let mut free =
                (0..CpuSet::MAX_CPU).filter(|processor| ours.is_set(*processor) && !all.taken.contains(processor));
            if let Some(processor) = free.next().filter(|_| is_next) {
                all.queue.pop_front();
                all.taken.push(processor);
                CHANGED.notify_all();
                return Place { processor };
            }
            let unwanted = if is_next { all.kinds.iter().find_map(|kind| kind.unwanted()) } else { None };
            if let Some(guest) = unwanted {
                drop(all);
                drop(guest);
                all = places();
            } else {
                all = CHANGED.wait_timeout(all, LOOK).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    /// Starts a program on this processor.
    pub fn spawn(&self, program: &mut Command) -> std::io::Result<Child> {
        let before = rustix::thread::sched_getaffinity(None)?;
        let mut here = CpuSet::new();
        here.set(self.processor);
        // A program inherits the processors of the thread that starts it.
        rustix::thread::sched_setaffinity(None, &here)?;
        let started = program.spawn();
        rustix::thread::sched_setaffinity(None, &before)?;
        started
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        places().taken.retain(|taken| *taken != self.processor);
        CHANGED.notify_all();
    }
}

/// The guest of one kind, which is lent to one test at a time.
pub struct Guests {
    boot: fn() -> Guest,
    guest: Mutex<Option<Guest>>,
    /// Number of tests that have it or wait for it.
    wanted: AtomicUsize,
}

impl Guests {
    /// The guest that `boot` starts.
    pub const fn new(boot: fn() -> Guest) -> Guests {
        Guests { boot, guest: Mutex::new(None), wanted: AtomicUsize::new(0) }
    }

    /// The guest, when no other test has it.
    pub fn lend(&'static self) -> Lent {
        self.wanted.fetch_add(1, Ordering::SeqCst);
        let mut lent = Lent { kind: self, guest: self.guest.lock().unwrap_or_else(PoisonError::into_inner) };
        // A guest ends when its time is over.
        if lent.guest.as_mut().is_some_and(|guest| !guest.answers()) {
            *lent.guest = None;
        }
        if lent.guest.is_none() {
            *lent.guest = Some((self.boot)());
            let kinds = &mut places().kinds;
            if !kinds.iter().any(|kind| std::ptr::eq(*kind, self)) {
                kinds.push(self);
            }
        }
        lent
    }

    /// The guest, if no test wants it.
    fn unwanted(&self) -> Option<Guest> {
        let mut guest = match self.guest.try_lock() {
            Ok(guest) => guest,
            // A test of this kind has failed.
            Err(TryLockError::Poisoned(guest)) => guest.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        if self.wanted.load(Ordering::SeqCst) == 0 { guest.take() } else { None }
    }
}

/// A guest that is lent to a test.
pub struct Lent {
    kind: &'static Guests,
    guest: MutexGuard<'static, Option<Guest>>,
}

impl Deref for Lent {
    type Target = Guest;

    fn deref(&self) -> &Guest {
        self.guest.as_ref().unwrap()
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Guest {
        self.guest.as_mut().unwrap()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        // A failed test may leave its guest in any state: it is not lent again, and the next test boots another one.
        if std::thread::panicking() {
            *self.guest = None;
        }
        self.kind.wanted.fetch_sub(1, Ordering::SeqCst);
    }
}
