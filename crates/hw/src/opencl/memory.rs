//! Memory of an OpenCL device.

#![allow(unsafe_code)]

use super::context::Context;
use super::error::OpenClError;
use super::memory_at::At;
use lanemark_machine::Allocation;
use opencl_sys as cl;
use std::ptr;
use std::sync::Arc;

/// Device memory allocated by the runtime, freed on drop.
#[derive(Debug)]
pub(super) struct Memory {
    context: Arc<Context>,
    at: At,
    bytes: usize,
}

/// Alignment of USM allocations in bytes: one cache line.
const ALIGNMENT: u32 = 64;

impl Memory {
    /// Allocates `bytes` bytes, at least 1, of the kind that `allocation` names.
    ///
    /// # Errors
    /// [`OpenClError::NoMemory`], or another error of the runtime.
    pub(super) fn new(context: &Arc<Context>, allocation: Allocation, bytes: usize) -> Result<Memory, OpenClError> {
        let (handle, device) = (context.handle, context.id.device);
        let mut status = cl::CL_SUCCESS;
        let usm = || context.usm.ok_or(OpenClError::NoFunction("clDeviceMemAllocINTEL"));
        // SAFETY: context and device are valid, no properties and no host pointer are passed.
        let at = unsafe {
            match allocation {
                Allocation::Buffer | Allocation::Mapped => {
                    let lies = if allocation == Allocation::Mapped { cl::CL_MEM_ALLOC_HOST_PTR } else { 0 };
                    let flags = cl::CL_MEM_READ_WRITE | lies;
                    let make = context.api.create_buffer;
                    At::Object(make(handle, flags, bytes, ptr::null_mut(), &raw mut status))
                }
                Allocation::Device => {
                    let make = usm()?.on_device;
                    At::Address(make(handle, device, ptr::null(), bytes, ALIGNMENT, &raw mut status))
                }
                // The check of a plan refuses the others.
                Allocation::Host | Allocation::Registered | Allocation::Combining => {
                    At::Address((usm()?.on_host)(handle, ptr::null(), bytes, ALIGNMENT, &raw mut status))
                }
            }
        };
        Memory::made(context, at, status, bytes)
    }

    /// Allocates a buffer of at least 1 B in a port of the device's memory; ports count from 0.
    ///
    /// # Errors
    /// The errors of [`Memory::new`].
    pub(super) fn in_port(context: &Arc<Context>, port: u32, bytes: usize) -> Result<Memory, OpenClError> {
        let (object, status) = context.ports.buffer(context, port, bytes);
        Memory::made(context, At::Object(object), status, bytes)
    }

    fn made(context: &Arc<Context>, at: At, status: i32, bytes: usize) -> Result<Memory, OpenClError> {
        if status != cl::CL_SUCCESS {
            return Err(context.no_memory(bytes as u64, status));
        }
        Ok(Memory { context: Arc::clone(context), at, bytes })
    }

    /// Reference to the memory, valid as long as `self`.
    #[inline]
    pub(super) fn at(&self) -> At {
        self.at
    }

    /// Length in bytes.
    pub(super) fn len(&self) -> usize {
        self.bytes
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the memory is freed once, by the call that matches its allocation; every queue that used it is empty.
        unsafe {
            match self.at {
                At::Object(object) => {
                    (self.context.api.release_memory)(object);
                }
                At::Address(address) => {
                    if let Some(usm) = self.context.usm {
                        (usm.free)(self.context.handle, address);
                    }
                }
            }
        }
    }
}
