//! Memory of the device, and memory of the host that the device can access.

#![allow(unsafe_code)]

use super::api::DevicePointer;
use super::context::Context;
use super::error::CudaError;
use super::status::{SUCCESS, Status};
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

/// Memory of the device.
#[derive(Debug)]
pub(super) struct DeviceMemory {
    context: Arc<Context>,
    pub(super) at: DevicePointer,
    pub(super) len: usize,
}

impl DeviceMemory {
    /// Allocates `len` bytes (at least 1).
    ///
    /// # Errors
    /// [`CudaError::NoMemory`], and errors of the driver.
    pub(super) fn new(context: &Arc<Context>, len: usize) -> Result<DeviceMemory, CudaError> {
        let mut at = 0;
        // SAFETY: the pointer is valid.
        let status = unsafe { (context.api.allocate)(&raw mut at, len) };
        check(status, len, "on the device")?;
        Ok(DeviceMemory { context: Arc::clone(context), at, len })
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // A thread that drops memory may be a new one.
        if self.context.enter().is_ok() {
            // SAFETY: the memory is freed once, and no work that uses it is left: its owner waits for the stream.
            unsafe { (self.context.api.free)(self.at) };
        }
    }
}

/// Kind of page-locked host memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pinned {
    /// Allocated by the driver.
    Plain,
    /// Allocated by the driver, write-combining for the processor.
    Combining,
}

impl Pinned {
    /// Flags of `cuMemHostAlloc`. Source: CUDA Driver API 12.8: PORTABLE 1, DEVICEMAP 2, WRITECOMBINED 4.
    const fn flags(self) -> u32 {
        match self {
            Pinned::Plain => 1 | 2,
            Pinned::Combining => 1 | 2 | 4,
        }
    }
}

/// Page-locked host memory that the device accesses over the link.
#[derive(Debug)]
pub(super) struct HostMemory {
    context: Arc<Context>,
    pub(super) start: *mut u8,
    /// Address of the start in the address space of the device.
    pub(super) at: DevicePointer,
    pub(super) len: usize,
}

// SAFETY: the memory belongs to the process, not to a thread.
unsafe impl Send for HostMemory {}

impl HostMemory {
    /// Allocates `len` bytes (at least 1).
    ///
    /// # Errors
    /// [`CudaError::NoMemory`], and errors of the driver.
    pub(super) fn new(context: &Arc<Context>, len: usize, kind: Pinned) -> Result<HostMemory, CudaError> {
        let (mut start, mut at) = (ptr::null_mut::<c_void>(), 0);
        // SAFETY: the pointers are valid; memory that has no address for the device is freed at once.
        unsafe {
            let status = (context.api.allocate_host)(&raw mut start, len, kind.flags());
            check(status, len, "of page-locked host memory")?;
            let status = (context.api.host_pointer)(&raw mut at, start, 0);
            if status != SUCCESS {
                (context.api.free_host)(start);
            }
            CudaError::check("asking for the address of host memory", status)?;
            // The driver need not clear the memory.
            start.cast::<u8>().write_bytes(0, len);
        }
        Ok(HostMemory { context: Arc::clone(context), start: start.cast(), at, len })
    }

    /// Contents; the device must not write meanwhile.
    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the memory is valid and initialised for its length; callers wait for the stream before they look.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }

    /// Contents, writable; the device must not access them meanwhile.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `bytes`, and self is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.len) }
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: the memory is freed once, and no work that uses it is left: its owner waits for the stream.
            unsafe { (self.context.api.free_host)(self.start.cast()) };
        }
    }
}

fn check(status: i32, len: usize, place: &'static str) -> Result<(), CudaError> {
    match Status(status) {
        status if status.is_short_of_memory() => Err(CudaError::NoMemory { bytes: len as u64, place, status }),
        _ => CudaError::check("allocating memory", status),
    }
}
