//! Guests that tests share, and how many run at once.
//!
//! All tests start at once. Those of a kind of guest wait for the one guest of that kind, so that each kind boots once; a
//! guest keeps its place among the running ones until no test wants it and another kind needs the place. The next kind is that
//! of most tests, so that none of many tests begins last.

use crate::guest::Guest;
use rustix::thread::CpuSet;
use std::cell::Cell;
use std::cmp::Reverse;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// Time after which a test without a place looks again for a guest that no test wants.
const LOOK: Duration = Duration::from_millis(100);

/// Processors of running guests, those that wait to run, and the kinds that have booted.
struct Places {
    taken: Vec<usize>,
    queue: Vec<Ticket>,
    tickets: u64,
    kinds: Vec<&'static Guests>,
}

/// A guest that waits for a place: its number, and its kind if tests share it.
#[derive(Clone, Copy)]
struct Ticket(u64, Option<&'static Guests>);

impl Ticket {
    /// Number of tests that wait for it.
    fn tests(self) -> usize {
        self.1.map_or(1, |kind| kind.wanted.load(Ordering::SeqCst))
    }
}

static PLACES: Mutex<Places> =
    Mutex::new(Places { taken: Vec::new(), queue: Vec::new(), tickets: 0, kinds: Vec::new() });
static CHANGED: Condvar = Condvar::new();

thread_local! {
    /// The kind that this thread boots.
    static BOOTED: Cell<Option<&'static Guests>> = const { Cell::new(None) };
}

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
        let processors: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|processor| ours.is_set(*processor)).collect();
        let mut all = places();
        let ticket = Ticket(all.tickets, BOOTED.get());
        all.tickets += 1;
        all.queue.push(ticket);
        loop {
            let next = all.queue.iter().max_by_key(|waiting| (waiting.tests(), Reverse(waiting.0)));
            let is_next = next.is_some_and(|next| next.0 == ticket.0);
            let free = processors.iter().find(|processor| !all.taken.contains(processor)).copied();
            if let Some(processor) = free.filter(|_| is_next) {
                all.queue.retain(|waiting| waiting.0 != ticket.0);
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

    /// Calls `start` on this processor: the programs and threads that it starts inherit it.
    pub fn run<T>(&self, start: impl FnOnce() -> T) -> T {
        let before = rustix::thread::sched_getaffinity(None).unwrap();
        let mut here = CpuSet::new();
        here.set(self.processor);
        rustix::thread::sched_setaffinity(None, &here).unwrap();
        let started = start();
        rustix::thread::sched_setaffinity(None, &before).unwrap();
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
            BOOTED.set(Some(self));
            *lent.guest = Some((self.boot)());
            BOOTED.set(None);
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
