//! Buffers in the memory ports of a device, and detection of the ports.

#![allow(unsafe_code)]

use super::context::Context;
use super::ports::Ports;
use super::usm::address;
use opencl_sys as cl;
use std::ptr;

/// Position of the lowest flag bit.
const FLAG_SHIFT: u32 = 16;
/// Number of ports that the flags can name; a higher value would be another flag.
const MOST_BY_FLAG: u32 = 7;
/// Maximum number of ports tried: a card with two HBM2 stacks has 32.
const MOST: u32 = 32;
/// Length of a trial allocation in bytes.
const TRIAL_BYTES: usize = 4096;

impl Ports {
    /// Detects the ports of a device by trial allocations. Only devices with ports accept the flags; others accept and ignore the property.
    pub(super) fn of(context: &Context) -> Ports {
        let takes = |ports: Ports, port| {
            let (object, status) = ports.buffer(context, port, TRIAL_BYTES);
            if status != cl::CL_SUCCESS {
                return false;
            }
            // SAFETY: the buffer is released once.
            unsafe { (context.api.release_memory)(object) };
            true
        };
        let many =
            |ports: fn(u32) -> Ports, most| (0..most).take_while(|port| takes(ports(most), *port)).count() as u32;
        let by_flag = many(Ports::Flag, MOST_BY_FLAG);
        if by_flag < 2 {
            return Ports::One;
        }
        let by_property = many(Ports::Property, MOST);
        if by_property > by_flag { Ports::Property(by_property) } else { Ports::Flag(by_flag) }
    }

    /// Allocates a buffer in port `port`, counted from 0; returns it and the status of the call.
    pub(super) fn buffer(self, context: &Context, port: u32, bytes: usize) -> (cl::cl_mem, i32) {
        let (api, handle) = (context.api, context.handle);
        let mut status = cl::CL_SUCCESS;
        let flags = match self {
            Ports::Flag(_) => cl::CL_MEM_READ_WRITE | (u64::from(port) + 1) << FLAG_SHIFT,
            _ => cl::CL_MEM_READ_WRITE,
        };
        if let Ports::Property(_) = self {
            let properties = [u64::from(cl::CL_MEM_CHANNEL_INTEL), u64::from(port) + 1, 0];
            // SAFETY: the type is that of the function of this name; the property list ends with 0, and no host pointer is passed.
            let object = unsafe {
                let name = c"clCreateBufferWithPropertiesINTEL";
                let make: cl::clCreateBufferWithPropertiesINTEL_fn = address(&api, context.id, name);
                let Some(make) = make else { return (ptr::null_mut(), cl::CL_INVALID_OPERATION) };
                make(handle, properties.as_ptr(), flags, bytes, ptr::null_mut(), &raw mut status)
            };
            return (object, status);
        }
        // SAFETY: the context is valid, and no host pointer is passed.
        let object = unsafe { (api.create_buffer)(handle, flags, bytes, ptr::null_mut(), &raw mut status) };
        (object, status)
    }
}
