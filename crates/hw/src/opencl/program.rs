//! OpenCL programs and kernels, compiled from source or prebuilt.

#![allow(unsafe_code)]

use super::context::Context;
use super::devices::{check, text};
use super::error::OpenClError;
use super::finished::FinishedKernels;
use super::memory_at::At;
use super::prebuilt::Prebuilt;
use super::status::Status;
use crate::kernel_source::KernelSource;
use crate::runtime_common::workers::Number;
use opencl_sys as cl;
use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::Arc;

/// Built program, and the name of the one kernel that is used from it.
#[derive(Debug)]
pub(crate) struct Program {
    context: Arc<Context>,
    handle: cl::cl_program,
    name: CString,
}

impl Prebuilt {
    /// Loads prebuilt kernels on the device of `context`.
    ///
    /// # Errors
    /// [`OpenClError::NotTaken`] if the device rejects the file.
    pub(super) fn new(context: &Context, kernels: FinishedKernels) -> Result<Prebuilt, OpenClError> {
        let (api, device) = (context.api, context.id.device);
        let FinishedKernels { file, bytes } = kernels;
        // Other statuses, of a lost or busy board, do not mean that the file is wrong.
        let not_taken = |status, log: String| match status {
            cl::CL_INVALID_BINARY | cl::CL_INVALID_VALUE | cl::CL_INVALID_DEVICE | cl::CL_BUILD_PROGRAM_FAILURE => {
                let device = context.device.clone();
                OpenClError::NotTaken { device, file: file.clone(), status: Status(status), log }
            }
            status => OpenClError::Refused { doing: "loading prebuilt kernels", status: Status(status) },
        };
        let (mut status, mut of_device) = (cl::CL_SUCCESS, cl::CL_SUCCESS);
        let (mut start, len) = (bytes.as_ptr(), bytes.len());
        // SAFETY: one device and one binary of `len` bytes, which the call copies, and a valid place for its status.
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
        // SAFETY: the program belongs to the context of this device.
        let built = unsafe { (api.build_program)(handle, 1, &raw const device, ptr::null(), None, ptr::null_mut()) };
        if of_device != cl::CL_SUCCESS || built != cl::CL_SUCCESS {
            let log = format!("\n{}", build_log(context, handle));
            // SAFETY: the program is released once.
            unsafe { (api.release_program)(handle) };
            return Err(not_taken(if of_device == cl::CL_SUCCESS { built } else { of_device }, log));
        }
        Ok(Prebuilt { handle, file })
    }
}

impl Program {
    /// Returns the program with this kernel: the prebuilt one if there is one, otherwise compiled from `source`.
    ///
    /// # Errors
    /// Errors of the runtime, and [`OpenClError::NotBuilt`] with the compiler's log.
    pub(crate) fn of(context: &Arc<Context>, source: &KernelSource) -> Result<Program, OpenClError> {
        let (api, device) = (context.api, context.id.device);
        // Kernel names contain no NUL.
        let name = CString::new(source.name.as_str()).unwrap_or_default();
        if let Some(Prebuilt { handle, .. }) = context.prebuilt {
            // SAFETY: the program is valid as long as the context.
            check("retaining the prebuilt program", unsafe { (api.retain_program)(handle) })?;
            return Ok(Program { context: Arc::clone(context), handle, name });
        }
        let (mut text, len) = (source.text.as_ptr().cast(), source.text.len());
        let mut status = cl::CL_SUCCESS;
        // SAFETY: the source has `len` bytes, and the call copies it.
        let handle = unsafe { (api.create_program)(context.handle, 1, &raw mut text, &raw const len, &raw mut status) };
        if !context.has_compiler && status != cl::CL_SUCCESS {
            return Err(OpenClError::NoCompiler { device: context.device.clone(), status: Status(status) });
        }
        check("creating a program from source", status)?;
        let program = Program { context: Arc::clone(context), handle, name };
        // SAFETY: the program belongs to the context of this device.
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

    /// Creates a kernel object; each has arguments of its own.
    ///
    /// # Errors
    /// Errors of the runtime, and [`OpenClError::NoKernel`].
    pub(crate) fn kernel(&self) -> Result<Kernel, OpenClError> {
        let mut status = cl::CL_SUCCESS;
        // SAFETY: the program is built.
        let handle = unsafe { (self.context.api.create_kernel)(self.handle, self.name.as_ptr(), &raw mut status) };
        if let (Some(Prebuilt { file, .. }), cl::CL_INVALID_KERNEL_NAME) = (&self.context.prebuilt, status) {
            let name = self.name.to_string_lossy().into_owned();
            return Err(OpenClError::NoKernel { file: file.clone(), name });
        }
        check("creating the kernel", status)?;
        Ok(Kernel { context: Arc::clone(&self.context), handle })
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: the program is released once; its kernels hold references to it.
        unsafe {
            (self.context.api.release_program)(self.handle);
        }
    }
}

/// Returns the build log of a program, or its end if it is long.
fn build_log(context: &Context, program: cl::cl_program) -> String {
    let Context { api, id, .. } = context;
    let log = text(|len, into, used| {
        // SAFETY: `text` passes a buffer of `len` bytes and a valid pointer for the length.
        unsafe { (api.build_info)(program, id.device, cl::CL_PROGRAM_BUILD_LOG, len, into, used) }
    });
    log.map_or_else(|error| format!("(no log: {error})"), |log| end_of(&log))
}

/// Maximum number of lines of a build log that are shown.
const SHOWN_LINES: usize = 40;
/// Maximum number of bytes of a build log that are shown.
const SHOWN_BYTES: usize = 4096;

/// Returns the end of a log, where compilers print the error, after a note of how much was cut; a short log is returned whole.
fn end_of(log: &str) -> String {
    let by_bytes = match log.len().saturating_sub(SHOWN_BYTES) {
        0 => 0,
        from => {
            let from = (from..log.len()).find(|at| log.is_char_boundary(*at)).unwrap_or(log.len());
            // Continue at the next line, if there is one.
            log[from..].find('\n').map_or(from, |at| from + at + 1)
        }
    };
    let by_lines = log.rmatch_indices('\n').nth(SHOWN_LINES - 1).map_or(0, |(at, _)| at + 1);
    match by_bytes.max(by_lines) {
        0 => log.to_owned(),
        from => format!("(first {from} B of a log of {} B omitted)\n{}", log.len(), &log[from..]),
    }
}

/// Kernel object with its arguments.
#[derive(Debug)]
pub(crate) struct Kernel {
    context: Arc<Context>,
    pub(super) handle: cl::cl_kernel,
}

// SAFETY: handles may be used from any thread (OpenCL 3.0, section 2.1), and only one thread at a time uses a kernel.
unsafe impl Send for Kernel {}

impl Kernel {
    /// OpenCL handle, valid as long as `self`.
    pub(crate) fn handle(&self) -> *mut c_void {
        self.handle.cast()
    }

    /// Sets argument `place` to device memory, which must stay valid as long as the kernel may be launched; returns the status.
    #[inline]
    pub(super) fn set_argument(&self, place: u32, at: At) -> i32 {
        match (at, self.context.usm) {
            (At::Object(object), _) => {
                let value = (&raw const object).cast();
                // SAFETY: the value is a handle, of the size passed.
                unsafe { (self.context.api.kernel_argument)(self.handle, place, size_of_val(&object), value) }
            }
            // SAFETY: the address is that of memory of this context.
            (At::Address(address), Some(usm)) => unsafe { (usm.kernel_argument)(self.handle, place, address) },
            (At::Address(_), None) => cl::CL_INVALID_OPERATION,
        }
    }

    /// Sets argument `place` to a number.
    ///
    /// # Errors
    /// Errors of the runtime.
    pub(super) fn set_number(&self, place: u32, number: Number) -> Result<(), OpenClError> {
        let give = |value: *const c_void, bytes| {
            // SAFETY: the value is valid, of the size passed, and the call copies it.
            unsafe { (self.context.api.kernel_argument)(self.handle, place, bytes, value) }
        };
        let status = match number {
            Number::Uint(number) => give((&raw const number).cast(), size_of_val(&number)),
            Number::Ulong(number) => give((&raw const number).cast(), size_of_val(&number)),
        };
        check("setting a numeric kernel argument", status)
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // SAFETY: the kernel is released once.
        unsafe {
            (self.context.api.release_kernel)(self.handle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_log_is_shown_whole_and_a_long_one_from_a_line_near_its_end() {
        let lines = |count: usize| (1..=count).map(|line| format!("line {line}")).collect::<Vec<_>>().join("\n");
        assert_eq!(end_of(""), "");
        assert_eq!(end_of(&lines(SHOWN_LINES)), lines(SHOWN_LINES));
        let shown = end_of(&lines(SHOWN_LINES + 1));
        assert!(shown.starts_with("(first 7 B of a log of ") && shown.contains("omitted)\nline 2\n"), "{shown}");
        assert!(shown.ends_with("\nline 41"), "{shown}");
        let long = format!("{}\n{}", "x".repeat(SHOWN_BYTES), "y".repeat(SHOWN_BYTES / 2));
        assert!(end_of(&long).ends_with(&format!(" omitted)\n{}", "y".repeat(SHOWN_BYTES / 2))));
    }

    #[test]
    fn a_log_of_one_long_line_is_cut_between_characters() {
        let shown = end_of(&"ä€".repeat(SHOWN_BYTES));
        let (said, end) = shown.split_once('\n').unwrap();
        assert!(said.contains("omitted") && end.len() <= SHOWN_BYTES && end.len() > SHOWN_BYTES - 4, "{said}");
    }
}
