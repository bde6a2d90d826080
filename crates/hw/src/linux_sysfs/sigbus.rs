//! SIGBUS handler that turns bus errors in mapped windows into reported errors.
//!
//! When a device is removed while its BAR is mapped, the next load or store there raises SIGBUS. If the address lies in a
//! guarded window, the handler maps anonymous memory from that page to the end of the window and records the address for
//! [`Guard::fault`]; the access then completes on that memory. Any other SIGBUS goes to the previous handler. The handler
//! is installed while a guard exists. It uses only atomics and system calls, which are async-signal-safe. Source:
//! signal-safety(7); sigaction(2), "The `siginfo_t` argument to a `SA_SIGINFO` handler".

#![allow(unsafe_code)]

use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};

/// Page size in bytes.
pub(super) const PAGE: usize = 4096;

/// Guarded window; free if `start` is 0.
struct Slot {
    start: AtomicUsize,
    end: AtomicUsize,
    /// First faulting address; 0 if none.
    fault: AtomicUsize,
}

/// Slots for guarded windows, more than a program needs for its devices and ranges.
static SLOTS: [Slot; 64] =
    [const { Slot { start: AtomicUsize::new(0), end: AtomicUsize::new(0), fault: AtomicUsize::new(0) } }; 64];

/// Number of guards; changing the handler requires this lock.
static GUARDS: Mutex<usize> = Mutex::new(0);

/// Previous SIGBUS handler and its flags; written before ours is installed.
static PREVIOUS: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static PREVIOUS_FLAGS: AtomicI32 = AtomicI32::new(0);

/// Guards a window against bus errors until dropped.
#[derive(Debug)]
pub(super) struct Guard {
    slot: usize,
}

impl Guard {
    /// Guards the whole pages `start..start + len`, which must stay mapped until the guard is dropped.
    ///
    /// # Errors
    /// Error of the system call, or `NOBUFS` if all slots are in use.
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

/// Whether another handler was installed over ours, which may forward to ours.
static OVERRIDDEN: AtomicBool = AtomicBool::new(false);

fn install() -> Result<(), Errno> {
    let before = current()?;
    // Ours is still installed, or a later handler may forward to it. Installing ours over that handler would make the
    // two forward to each other without end.
    let is_theirs = !matches!(before.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN);
    if before.sa_sigaction == our_handler() || is_theirs && OVERRIDDEN.load(Ordering::Relaxed) {
        return Ok(());
    }
    PREVIOUS.store(before.sa_sigaction, Ordering::Relaxed);
    PREVIOUS_FLAGS.store(before.sa_flags, Ordering::Relaxed);
    // SAFETY: a zeroed sigaction is valid; the handler has the signature that SA_SIGINFO requires.
    let done = unsafe {
        let mut ours: libc::sigaction = std::mem::zeroed();
        ours.sa_sigaction = our_handler();
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigemptyset(&raw mut ours.sa_mask);
        libc::sigaction(libc::SIGBUS, &raw const ours, ptr::null_mut())
    };
    if done == 0 { Ok(()) } else { Err(last_error()) }
}

/// Restores the previous handler, unless another one was installed over ours: that one may forward to ours, so ours stays.
fn remove() {
    let Ok(now) = current() else { return };
    if now.sa_sigaction == our_handler() {
        restore();
        OVERRIDDEN.store(false, Ordering::Relaxed);
    } else {
        OVERRIDDEN.store(true, Ordering::Relaxed);
    }
}

fn current() -> Result<libc::sigaction, Errno> {
    let mut now = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: changes nothing; the kernel fills the structure.
    unsafe {
        if libc::sigaction(libc::SIGBUS, ptr::null(), now.as_mut_ptr()) == 0 {
            Ok(now.assume_init())
        } else {
            Err(last_error())
        }
    }
}

/// Restores the previous handler; async-signal-safe.
fn restore() {
    // SAFETY: address and flags are those that the kernel returned for this signal.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        before.sa_sigaction = PREVIOUS.load(Ordering::Relaxed);
        before.sa_flags = PREVIOUS_FLAGS.load(Ordering::Relaxed);
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
    // SAFETY: the kernel passes a valid siginfo; `si_addr` is set if the code marks a fault.
    let (is_fault, at) = unsafe { ((*info).si_code > 0, (*info).si_addr() as usize) };
    if is_fault && replace_pages(at) {
        return;
    }
    match PREVIOUS.load(Ordering::Relaxed) {
        libc::SIG_IGN if !is_fault => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            // The access faults again, or the signal is raised again, and the default action ends the process.
            PREVIOUS.store(libc::SIG_DFL, Ordering::Relaxed);
            restore();
            if !is_fault {
                // SAFETY: raise is async-signal-safe.
                unsafe { libc::raise(signal) };
            }
        }
        handler if PREVIOUS_FLAGS.load(Ordering::Relaxed) & libc::SA_SIGINFO != 0 => {
            // SAFETY: a handler registered with SA_SIGINFO has this signature.
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: a handler registered without SA_SIGINFO has this signature.
            let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}

/// Maps anonymous memory over a guarded window from the page of `at` on; returns whether `at` lies in a window.
fn replace_pages(at: usize) -> bool {
    for slot in &SLOTS {
        let start = slot.start.load(Ordering::Acquire);
        let end = slot.end.load(Ordering::Relaxed);
        if start == 0 || !(start..end).contains(&at) {
            continue;
        }
        let page = at / PAGE * PAGE;
        // SAFETY: the pages belong to a guarded window, which is accessed by assembly or volatile accesses only: no access
        // relies on the earlier mapping.
        let mapped = unsafe {
            mmap_anonymous(
                page as *mut c_void,
                end - page,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::FIXED,
            )
        };
        if mapped.is_ok() {
            // Keep the first fault, which shows where the device failed.
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

    /// Maps two pages of a one-page file: the second page raises a bus error.
    fn short_file() -> *mut u8 {
        let file: File = tempfile::tempfile().unwrap();
        file.set_len(PAGE as u64).unwrap();
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the address.
        unsafe { mmap(ptr::null_mut(), 2 * PAGE, access, MapFlags::SHARED, &file, 0).unwrap().cast() }
    }

    fn touch(at: *mut u8) {
        // SAFETY: the test maps the page; the access is volatile.
        unsafe { at.write_volatile(7) };
    }

    #[test]
    fn a_fault_in_a_window_is_recorded_and_the_access_completes() {
        let window = short_file();
        let guard = Guard::over(window, 2 * PAGE).unwrap();
        touch(window);
        assert_eq!(guard.fault(), None);
        let behind = window.wrapping_add(PAGE + 3);
        touch(behind);
        assert_eq!(guard.fault(), Some(behind as usize));
        touch(behind.wrapping_add(1));
        assert_eq!(guard.fault(), Some(behind as usize), "the first fault is kept");
        drop(guard);
        // SAFETY: the test owns the mapping and does not use it afterwards.
        unsafe { munmap(window.cast(), 2 * PAGE).unwrap() };
    }

    /// Environment variable that selects the scenario in the child process of a test.
    const PART: &str = "LANEMARK_SIGBUS_PART";

    /// Runs this test in a child process, in the scenario `part`, which ends with a fault outside every window.
    fn run_child(test: &str, part: &str) -> std::process::ExitStatus {
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

    extern "C" fn exits_42(_: c_int) {
        // SAFETY: _exit is async-signal-safe.
        unsafe { libc::_exit(42) }
    }

    /// Handler that [`forwards`] forwards to.
    static OURS: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn forwards(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
        // SAFETY: the address is that of our handler, which has this signature.
        let ours: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
            unsafe { std::mem::transmute(OURS.load(Ordering::Relaxed)) };
        ours(signal, info, context);
    }

    /// Installs a forwarding handler, as another library might.
    fn install_forwarding_handler() {
        OURS.store(current().unwrap().sa_sigaction, Ordering::Relaxed);
        // SAFETY: a zeroed sigaction is valid; the handler has the signature that SA_SIGINFO requires.
        unsafe {
            let mut theirs: libc::sigaction = std::mem::zeroed();
            theirs.sa_sigaction = forwards as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
            theirs.sa_flags = libc::SA_SIGINFO;
            assert_eq!(libc::sigaction(libc::SIGBUS, &raw const theirs, ptr::null_mut()), 0);
        }
    }

    #[test]
    fn a_fault_outside_every_window_goes_to_the_previous_handler() {
        if let Ok(part) = std::env::var(PART) {
            if part == "own handler" {
                // SAFETY: the handler has the plain signature and calls _exit only.
                unsafe { libc::signal(libc::SIGBUS, exits_42 as extern "C" fn(c_int) as usize) };
            }
            let (guarded, elsewhere) = (short_file(), short_file());
            let guard = Guard::over(guarded, 2 * PAGE).unwrap();
            touch(guarded.wrapping_add(PAGE));
            assert!(guard.fault().is_some());
            if part == "after drop" {
                drop(guard);
            } else if part == "taken meanwhile" {
                install_forwarding_handler();
                drop(guard);
                let _guard = Guard::over(guarded, 2 * PAGE).unwrap();
                touch(elsewhere.wrapping_add(PAGE));
            }
            touch(elsewhere.wrapping_add(PAGE));
            unreachable!("the bus error must end the process");
        }
        let test = "a_fault_outside_every_window_goes_to_the_previous_handler";
        assert_eq!(run_child(test, "own handler").code(), Some(42));
        assert_eq!(run_child(test, "no handler").signal(), Some(libc::SIGBUS));
        assert_eq!(run_child(test, "after drop").signal(), Some(libc::SIGBUS));
        assert_eq!(
            run_child(test, "taken meanwhile").signal(),
            Some(libc::SIGBUS),
            "handlers must not forward in a circle"
        );
    }
}
