//! A kernel that does nothing, for a queue that another library made on a context of OpenCL.

#![allow(unsafe_code)]

use super::OpenClError;
use super::api::Api;
use super::device::{good, text};
use super::program::end_of;
use super::status::Status;
use opencl_sys as cl;
use std::ffi::c_void;
use std::fmt::Write as _;
use std::ptr;

/// Built, with its program; given back on drop.
#[derive(Debug)]
pub(crate) struct Kernel {
    api: Api,
    program: cl::cl_program,
    handle: cl::cl_kernel,
}

// SAFETY: handles may be used from any thread (OpenCL 3.0, section 2.1), and one thread at a time has a kernel.
unsafe impl Send for Kernel {}

impl Kernel {
    /// One that is given `arguments` addresses, for this device of this context.
    ///
    /// # Safety
    /// Both are handles of OpenCL that live, and the device, called `name` in messages, is of the context.
    ///
    /// # Errors
    /// What the runtime said, and [`OpenClError::NotBuilt`].
    pub(crate) unsafe fn of_nothing(
        context: *mut c_void,
        device: *mut c_void,
        name: &str,
        arguments: u32,
    ) -> Result<Kernel, OpenClError> {
        let api = Api::loaded()?;
        // Released as far as it was made, whatever happens below.
        let mut built = Kernel { api, program: ptr::null_mut(), handle: ptr::null_mut() };
        let (text_of_it, mut status) = (source(arguments), cl::CL_SUCCESS);
        let (mut source, len) = (text_of_it.as_ptr().cast(), text_of_it.len());
        // SAFETY: whoever calls vouches for both handles, and every other one is that of a call that succeeded.
        unsafe {
            built.program = (api.create_program)(context.cast(), 1, &raw mut source, &raw const len, &raw mut status);
            good("giving it a kernel", status)?;
            let id: cl::cl_device_id = device.cast();
            let status = (api.build_program)(built.program, 1, &raw const id, ptr::null(), None, ptr::null_mut());
            if status != cl::CL_SUCCESS {
                let log = text(|len, into, used| {
                    (api.build_info)(built.program, id, cl::CL_PROGRAM_BUILD_LOG, len, into, used)
                });
                let log = log.map_or_else(|error| format!("(no log: {error})"), |log| end_of(&log));
                return Err(OpenClError::NotBuilt { device: name.to_owned(), status: Status(status), log });
            }
        }
        // SAFETY: as above.
        built.handle = unsafe { (api.create_kernel)(built.program, c"nothing".as_ptr(), &raw mut status) };
        good("finding the kernel", status)?;
        Ok(built)
    }

    /// Its handle, which lives as long as this does.
    pub(crate) fn handle(&self) -> *mut c_void {
        self.handle.cast()
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // SAFETY: each handle is given back once, if it was made.
        unsafe {
            if !self.handle.is_null() {
                (self.api.release_kernel)(self.handle);
            }
            if !self.program.is_null() {
                (self.api.release_program)(self.program);
            }
        }
    }
}

/// Gives a context of OpenCL back that another library kept for us.
///
/// # Safety
/// It is a handle of OpenCL that lives, and one hold of it is ours.
pub(crate) unsafe fn release_context(context: *mut c_void) {
    if let Ok(api) = Api::loaded() {
        // SAFETY: whoever calls vouches for it.
        unsafe { (api.release_context)(context.cast()) };
    }
}

/// A kernel `nothing` with so many addresses as arguments.
fn source(arguments: u32) -> String {
    let mut source = "__kernel void nothing(".to_owned();
    for n in 0..arguments {
        let comma = if n == 0 { "" } else { ", " };
        // Writing to a String does not fail.
        let _ = write!(source, "{comma}__global uchar *given_{n}");
    }
    source + if arguments == 0 { "void) {}\n" } else { ") {}\n" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_has_as_many_arguments_as_are_asked_for() {
        assert_eq!(source(0), "__kernel void nothing(void) {}\n");
        assert_eq!(source(2), "__kernel void nothing(__global uchar *given_0, __global uchar *given_1) {}\n");
    }
}
