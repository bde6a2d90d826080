//! Bus errors on our mappings, turned from the end of the process into something a run can see.
//!
//! When a device is removed while its BAR is mapped, the next load or store there raises SIGBUS. The handler here looks
//! whether the address lies in a guarded window; if so it maps anonymous memory from that page to the window's end, so
//! that the access goes on and ends nowhere, and notes the address for [`Guard::fault`]. All else goes to whoever
//! handled SIGBUS before. The handler is there while a guard is, and uses atomics and system calls only, as a handler
//! may. Source: signal-safety(7); sigaction(2), "The `siginfo_t` argument to a `SA_SIGINFO` handler".

#![allow(unsafe_code)]

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

/// A page of this processor.
pub(super) const PAGE: usize = 4096;

/// One guarded window; free where `start` is 0.
struct Slot {
    start: AtomicUsize,
    end: AtomicUsize,
    /// The first address that faulted; 0 where none did.
    fault: AtomicUsize,
}

/// More windows than a program has devices and ranges of them.
static SLOTS: [Slot; 64] =
    [const { Slot { start: AtomicUsize::new(0), end: AtomicUsize::new(0), fault: AtomicUsize::new(0) } }; 64];

/// How many guards there are; whoever changes the handler holds this.
static GUARDS: Mutex<usize> = Mutex::new(0);

/// Who handled SIGBUS before, and how; written before our handler is there.
static BEFORE: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static BEFORE_FLAGS: AtomicI32 = AtomicI32::new(0);

/// Keeps bus errors on a window from ending the process, until dropped.
#[derive(Debug)]
pub(super) struct Guard {
    slot: usize,
}

impl Guard {
    /// Guards the whole pages `start..start + len`, which must stay mapped until the guard is dropped.
    ///
    /// # Errors
    /// What the kernel said, or that there are too many windows already.
    pub(super) fn over(start: *mut u8, len: usize) -> Result<Guard, Errno> {
        let mut guards = GUARDS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let free = |slot: &Slot| slot.start.load(Ordering::Relaxed) == 0;
        let slot = SLOTS.iter().position(free).ok_or(Errno::NOBUFS)?;
        if *guards == 0 {
            install()?;
        }
        *guards += 1;
        SLOTS[slot].fault.store(0, Ordering::Relaxed);
        SLOTS[slot].end.store(start as usize + len, Ordering::Relaxed);
        SLOTS[slot].start.store(start as usize, Ordering::Release);
        Ok(Guard { slot })
    }

    /// The first address in the window that raised a bus error, if one did.
    pub(super) fn fault(&self) -> Option<usize> {
        Some(SLOTS[self.slot].fault.load(Ordering::Acquire)).filter(|at| *at != 0)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut guards = GUARDS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        SLOTS[self.slot].start.store(0, Ordering::Release);
        *guards -= 1;
        if *guards == 0 {
            remove();
        }
    }
}

/// Somebody took SIGBUS while ours was there, and may hand on to it.
static STAYED: AtomicBool = AtomicBool::new(false);

fn install() -> Result<(), Errno> {
    let before = current()?;
    // Ours is the handler still, or again, or behind theirs: put in front of theirs, each would hand on to the other
    // without end.
    let is_theirs = !matches!(before.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN);
    if before.sa_sigaction == our_handler() || is_theirs && STAYED.load(Ordering::Relaxed) {
        return Ok(());
    }
    BEFORE.store(before.sa_sigaction, Ordering::Relaxed);
    BEFORE_FLAGS.store(before.sa_flags, Ordering::Relaxed);
    // SAFETY: all bits zero is a valid sigaction; the handler has the signature that SA_SIGINFO asks for.
    let done = unsafe {
        let mut ours: libc::sigaction = std::mem::zeroed();
        ours.sa_sigaction = our_handler();
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigemptyset(&raw mut ours.sa_mask);
        libc::sigaction(libc::SIGBUS, &raw const ours, ptr::null_mut())
    };
    if done == 0 { Ok(()) } else { Err(last_error()) }
}

/// Gives SIGBUS back, unless somebody has taken it meanwhile: they may hand on to us, so we stay.
fn remove() {
    let Ok(now) = current() else { return };
    if now.sa_sigaction == our_handler() {
        give_back();
        STAYED.store(false, Ordering::Relaxed);
    } else {
        STAYED.store(true, Ordering::Relaxed);
    }
}

fn current() -> Result<libc::sigaction, Errno> {
    let mut now = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: nothing is changed, and the kernel fills what it is given.
    unsafe {
        if libc::sigaction(libc::SIGBUS, ptr::null(), now.as_mut_ptr()) == 0 {
            Ok(now.assume_init())
        } else {
            Err(last_error())
        }
    }
}

/// Puts the handler from before back; may be called in a handler.
fn give_back() {
    // SAFETY: the address and flags are those the kernel gave for this signal.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        before.sa_sigaction = BEFORE.load(Ordering::Relaxed);
        before.sa_flags = BEFORE_FLAGS.load(Ordering::Relaxed);
        libc::sigemptyset(&raw mut before.sa_mask);
        libc::sigaction(libc::SIGBUS, &raw const before, ptr::null_mut());
    }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

fn our_handler() -> usize {
    on_bus_error as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize
}

extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel hands a valid siginfo; `si_addr` is filled where the code says that the signal is a fault.
    let (is_fault, at) = unsafe { ((*info).si_code > 0, (*info).si_addr() as usize) };
    if is_fault && mend(at) {
        return;
    }
    match BEFORE.load(Ordering::Relaxed) {
        libc::SIG_IGN if !is_fault => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // The access faults again, or the signal comes again, and this time it ends the process as it always did.
            BEFORE.store(libc::SIG_DFL, Ordering::Relaxed);
            give_back();
            if !is_fault {
                // SAFETY: raise may be called in a handler.
                unsafe { libc::raise(signal) };
            }
        }
        handler if BEFORE_FLAGS.load(Ordering::Relaxed) & libc::SA_SIGINFO != 0 => {
            // SAFETY: whoever registered this address with SA_SIGINFO gave it this signature.
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: whoever registered this address without SA_SIGINFO gave it this signature.
            let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}

/// Maps nothing's memory over a guarded window from the page of `at` on; says whether `at` lies in one.
fn mend(at: usize) -> bool {
    for slot in &SLOTS {
        let start = slot.start.load(Ordering::Acquire);
        let end = slot.end.load(Ordering::Relaxed);
        if start == 0 || !(start..end).contains(&at) {
            continue;
        }
        let page = at / PAGE * PAGE;
        // SAFETY: the pages belong to a window of ours, whose accesses are assembly or volatile: none of them relies on
        // what was mapped there.
        let mapped = unsafe {
            mmap_anonymous(
                page as *mut c_void,
                end - page,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::FIXED,
            )
        };
        if mapped.is_ok() {
            // The first fault is the one that tells where the device ended.
            let _ = slot.fault.compare_exchange(0, at, Ordering::Release, Ordering::Relaxed);
        }
        return mapped.is_ok();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::mm::{mmap, munmap};
    use std::fs::File;
    use std::os::unix::process::ExitStatusExt;

    /// Two pages of a file of one page: the second raises a bus error.
    fn short_file() -> *mut u8 {
        let file: File = tempfile::tempfile().unwrap();
        file.set_len(PAGE as u64).unwrap();
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: no address is asked for.
        unsafe { mmap(ptr::null_mut(), 2 * PAGE, access, MapFlags::SHARED, &file, 0).unwrap().cast() }
    }

    fn touch(at: *mut u8) {
        // SAFETY: the tests map the page, and volatile accesses rely on nothing.
        unsafe { at.write_volatile(7) };
    }

    #[test]
    fn a_fault_in_a_window_is_noted_and_the_access_goes_on() {
        let window = short_file();
        let guard = Guard::over(window, 2 * PAGE).unwrap();
        touch(window);
        assert_eq!(guard.fault(), None);
        let behind = window.wrapping_add(PAGE + 3);
        touch(behind);
        assert_eq!(guard.fault(), Some(behind as usize));
        touch(behind.wrapping_add(1));
        assert_eq!(guard.fault(), Some(behind as usize), "the first one stays");
        drop(guard);
        // SAFETY: ours, and nobody uses it any more.
        unsafe { munmap(window.cast(), 2 * PAGE).unwrap() };
    }

    /// What the process of a test does when its own name stands in the environment.
    const PART: &str = "LANEMARK_SIGBUS_PART";

    /// Runs this test again in a process of its own, in which `part` is played and a fault follows outside every window.
    fn plays(test: &str, part: &str) -> std::process::ExitStatus {
        let this = std::env::current_exe().unwrap();
        let name = format!("{}::{test}", module_path!().split_once("::").unwrap().1);
        std::process::Command::new(this)
            .args(["--exact", &name, "--nocapture"])
            .env(PART, part)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status()
            .unwrap()
    }

    extern "C" fn leaves(_: c_int) {
        // SAFETY: _exit may be called in a handler.
        unsafe { libc::_exit(42) }
    }

    /// Whom [`hands_on`] hands on to.
    static OURS: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn hands_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
        // SAFETY: it is our handler, of this signature.
        let ours: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
            unsafe { std::mem::transmute(OURS.load(Ordering::Relaxed)) };
        ours(signal, info, context);
    }

    /// As another library does it that hands on what is not its own.
    fn take_and_hand_on() {
        OURS.store(current().unwrap().sa_sigaction, Ordering::Relaxed);
        // SAFETY: all bits zero is a valid sigaction; the handler has the signature that SA_SIGINFO asks for.
        unsafe {
            let mut theirs: libc::sigaction = std::mem::zeroed();
            theirs.sa_sigaction = hands_on as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
            theirs.sa_flags = libc::SA_SIGINFO;
            assert_eq!(libc::sigaction(libc::SIGBUS, &raw const theirs, ptr::null_mut()), 0);
        }
    }

    #[test]
    fn a_fault_elsewhere_goes_to_whoever_handled_it_before() {
        if let Ok(part) = std::env::var(PART) {
            if part == "own handler" {
                // SAFETY: the handler has the signature of a plain one and calls _exit only.
                unsafe { libc::signal(libc::SIGBUS, leaves as extern "C" fn(c_int) as usize) };
            }
            let (guarded, elsewhere) = (short_file(), short_file());
            let guard = Guard::over(guarded, 2 * PAGE).unwrap();
            touch(guarded.wrapping_add(PAGE));
            assert!(guard.fault().is_some());
            if part == "after drop" {
                drop(guard);
            } else if part == "taken meanwhile" {
                take_and_hand_on();
                drop(guard);
                let _guard = Guard::over(guarded, 2 * PAGE).unwrap();
                touch(elsewhere.wrapping_add(PAGE));
            }
            touch(elsewhere.wrapping_add(PAGE));
            unreachable!("a bus error does not pass");
        }
        let test = "a_fault_elsewhere_goes_to_whoever_handled_it_before";
        assert_eq!(plays(test, "own handler").code(), Some(42));
        assert_eq!(plays(test, "no handler").signal(), Some(libc::SIGBUS));
        assert_eq!(plays(test, "after drop").signal(), Some(libc::SIGBUS));
        assert_eq!(plays(test, "taken meanwhile").signal(), Some(libc::SIGBUS), "nobody hands on in a circle");
    }
}
