//! Kernels, built from their source or given as they are.

#![allow(unsafe_code)]

use super::OpenClError;
use super::context::Context;
use super::device::{good, text};
use super::finished::FinishedKernels;
use super::memory::At;
use super::status::Status;
use crate::kernel_source::KernelSource;
use crate::runtime_common::workers::Number;
use opencl_sys as cl;
use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::Arc;

/// A program that is built, with one kernel that is wanted of it.
#[derive(Debug)]
pub(crate) struct Program {
    context: Arc<Context>,
    handle: cl::cl_program,
    name: CString,
}

/// Such a program, as a device has taken it.
#[derive(Debug)]
pub(super) struct Given {
    pub(super) handle: cl::cl_program,
    file: String,
}

impl Given {
    /// Gives it to the device of this context.
    ///
    /// # Errors
    /// [`OpenClError::NotTaken`].
    pub(super) fn new(context: &Context, kernels: FinishedKernels) -> Result<Given, OpenClError> {
        let (api, device) = (context.api, context.id.device);
        let FinishedKernels { file, bytes } = kernels;
        // A board that is lost or busy does not speak against a file.
        let not_taken = |status, log: String| match status {
            cl::CL_INVALID_BINARY | cl::CL_INVALID_VALUE | cl::CL_INVALID_DEVICE | cl::CL_BUILD_PROGRAM_FAILURE => {
                let device = context.device.clone();
                OpenClError::NotTaken { device, file: file.clone(), status: Status(status), log }
            }
            status => OpenClError::Refused { doing: "giving it kernels that are built", status: Status(status) },
        };
        let (mut status, mut of_device) = (cl::CL_SUCCESS, cl::CL_SUCCESS);
        let (mut start, len) = (bytes.as_ptr(), bytes.len());
        // SAFETY: one device, one binary of `len` bytes, which is copied, and a place for what is said of it.
        let handle = unsafe {
            let make = api.create_program_of_binary;
            make(
                context.handle,
                1,
                &raw const device,
                &raw const len,
                &raw mut start,
                &raw mut of_device,
                &raw mut status,
            )
        };
        if status != cl::CL_SUCCESS {
            return Err(not_taken(status, String::new()));
        }
        // SAFETY: the program is of this device's context.
        let built = unsafe { (api.build_program)(handle, 1, &raw const device, ptr::null(), None, ptr::null_mut()) };
        if of_device != cl::CL_SUCCESS || built != cl::CL_SUCCESS {
            let log = format!("\n{}", build_log(context, handle));
            // SAFETY: it is given back once.
            unsafe { (api.release_program)(handle) };
            return Err(not_taken(if of_device == cl::CL_SUCCESS { built } else { of_device }, log));
        }
        Ok(Given { handle, file })
    }
}

impl Program {
    /// The one with this kernel: that which the device was given, or one that its compiler builds.
    ///
    /// # Errors
    /// What the runtime said, and [`OpenClError::NotBuilt`] with the compiler's words.
    pub(crate) fn of(context: &Arc<Context>, source: &KernelSource) -> Result<Program, OpenClError> {
        let (api, device) = (context.api, context.id.device);
        // No name of ours has a zero.
        let name = CString::new(source.name.as_str()).unwrap_or_default();
        if let Some(Given { handle, .. }) = context.given {
            // SAFETY: the program is there as long as the context.
            good("keeping a program", unsafe { (api.retain_program)(handle) })?;
            return Ok(Program { context: Arc::clone(context), handle, name });
        }
        let (mut text, len) = (source.text.as_ptr().cast(), source.text.len());
        let mut status = cl::CL_SUCCESS;
        // SAFETY: the source has `len` bytes, and is copied.
        let handle = unsafe { (api.create_program)(context.handle, 1, &raw mut text, &raw const len, &raw mut status) };
        if !context.has_compiler && status != cl::CL_SUCCESS {
            return Err(OpenClError::NoCompiler { device: context.device.clone(), status: Status(status) });
        }
        good("giving it a kernel", status)?;
        let program = Program { context: Arc::clone(context), handle, name };
        // SAFETY: the program is of this device's context.
        let built = unsafe { (api.build_program)(handle, 1, &raw const device, ptr::null(), None, ptr::null_mut()) };
        match built {
            cl::CL_SUCCESS => Ok(program),
            status if !context.has_compiler => {
                Err(OpenClError::NoCompiler { device: context.device.clone(), status: Status(status) })
            }
            status => Err(program.not_built(status)),
        }
    }

    fn not_built(&self, status: i32) -> OpenClError {
        let (device, log) = (self.context.device.clone(), build_log(&self.context, self.handle));
        OpenClError::NotBuilt { device, status: Status(status), log }
    }

    /// The kernel, a new one each time: each has its own arguments.
    ///
    /// # Errors
    /// What the runtime said, and [`OpenClError::NoKernel`].
    pub(crate) fn kernel(&self) -> Result<Kernel, OpenClError> {
        let mut status = cl::CL_SUCCESS;
        // SAFETY: the program is built.
        let handle = unsafe { (self.context.api.create_kernel)(self.handle, self.name.as_ptr(), &raw mut status) };
        if let (Some(Given { file, .. }), cl::CL_INVALID_KERNEL_NAME) = (&self.context.given, status) {
            let name = self.name.to_string_lossy().into_owned();
            return Err(OpenClError::NoKernel { file: file.clone(), name });
        }
        good("finding the kernel", status)?;
        Ok(Kernel { context: Arc::clone(&self.context), handle })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: it is given back once; its kernels keep what they need.
        unsafe {
            (self.context.api.release_program)(self.handle);
        }
    }
}

/// What was said as a program was built, or the end of it.
fn build_log(context: &Context, program: cl::cl_program) -> String {
    let Context { api, id, .. } = context;
    let log = text(|len, into, used| {
        // SAFETY: `text` gives room for `len` bytes, and a place for how many there are.
        unsafe { (api.build_info)(program, id.device, cl::CL_PROGRAM_BUILD_LOG, len, into, used) }
    });
    log.map_or_else(|error| format!("(no log: {error})"), |log| end_of(&log))
}

/// Most lines of a compiler's log that are shown.
const SHOWN_LINES: usize = 40;
/// Most bytes of it.
const SHOWN_BYTES: usize = 4096;

/// The end of a log, where compilers say what was wrong, and before it how much is left out; all of a short one.
fn end_of(log: &str) -> String {
    let by_bytes = match log.len().saturating_sub(SHOWN_BYTES) {
        0 => 0,
        from => {
            let from = (from..log.len()).find(|at| log.is_char_boundary(*at)).unwrap_or(log.len());
            // From the next line on, if there is one.
            log[from..].find('\n').map_or(from, |at| from + at + 1)
        }
    };
    let by_lines = log.rmatch_indices('\n').nth(SHOWN_LINES - 1).map_or(0, |(at, _)| at + 1);
    match by_bytes.max(by_lines) {
        0 => log.to_owned(),
        from => format!("(the first {from} B of a log of {} B are left out)\n{}", log.len(), &log[from..]),
    }
}

/// A kernel and what it is given.
#[derive(Debug)]
pub(crate) struct Kernel {
    context: Arc<Context>,
    pub(super) handle: cl::cl_kernel,
}

// SAFETY: handles may be used from any thread (OpenCL 3.0, section 2.1), and one thread at a time has a kernel.
unsafe impl Send for Kernel {}

impl Kernel {
    /// Its handle, which lives as long as this does.
    pub(crate) fn handle(&self) -> *mut c_void {
        self.handle.cast()
    }

    /// Gives it memory, which stays as long as the kernel may be launched; the runtime's status.
    #[inline]
    pub(super) fn give(&self, place: u32, at: At) -> i32 {
        match (at, self.context.usm) {
            (At::Object(object), _) => {
                let value = (&raw const object).cast();
                // SAFETY: the value is a handle, of its own length.
                unsafe { (self.context.api.kernel_argument)(self.handle, place, size_of_val(&object), value) }
            }
            // SAFETY: the address is of memory of this context.
            (At::Address(address), Some(usm)) => unsafe { (usm.kernel_argument)(self.handle, place, address) },
            (At::Address(_), None) => cl::CL_INVALID_OPERATION,
        }
    }

    /// Gives it a number.
    ///
    /// # Errors
    /// What the runtime said.
    pub(super) fn give_number(&self, place: u32, number: Number) -> Result<(), OpenClError> {
        let give = |value: *const c_void, bytes| {
            // SAFETY: the value is there, of its own length, and is copied.
            unsafe { (self.context.api.kernel_argument)(self.handle, place, bytes, value) }
        };
        let status = match number {
            Number::Uint(number) => give((&raw const number).cast(), size_of_val(&number)),
            Number::Ulong(number) => give((&raw const number).cast(), size_of_val(&number)),
        };
        good("giving a kernel a number", status)
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // SAFETY: it is given back once.
        unsafe {
            (self.context.api.release_kernel)(self.handle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_log_is_shown_whole_and_of_a_long_one_whole_lines_of_its_end() {
        let lines = |count: usize| (1..=count).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
        assert_eq!(end_of(""), "");
        assert_eq!(end_of(&lines(SHOWN_LINES)), lines(SHOWN_LINES));
        let shown = end_of(&lines(SHOWN_LINES + 1));
        assert!(shown.starts_with("(the first 7 B of a log of ") && shown.contains("left out)\nline 2\n"), "{shown}");
        assert!(shown.ends_with("\nline 41"), "{shown}");
        let long = format!("{}\n{}", "x".repeat(SHOWN_BYTES), "y".repeat(SHOWN_BYTES / 2));
        assert!(end_of(&long).ends_with(&format!(" are left out)\n{}", "y".repeat(SHOWN_BYTES / 2))));
    }

    #[test]
    fn a_log_of_one_endless_line_is_cut_between_characters() {
        let shown = end_of(&"ä€".repeat(SHOWN_BYTES));
        let (said, end) = shown.split_once('\n').unwrap();
        assert!(said.contains("left out") && end.len() <= SHOWN_BYTES && end.len() > SHOWN_BYTES - 4, "{said}");
    }
}
