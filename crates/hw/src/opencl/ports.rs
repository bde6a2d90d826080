//! Ports of a device's memory, where a program chooses in which its buffers are.

#![allow(unsafe_code)]

use super::context::Context;
use super::usm::address;
use opencl_sys as cl;
use std::ptr;

/// How a program names the port of a buffer.
///
/// Neither is a standard, and no runtime says how many there are: it is asked for buffers in them.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ports {
    /// It cannot.
    One,
    /// By flags of its creation, of which there are three bits: Intel's `CL_CHANNEL_1_INTELFPGA` to 7.
    Flag(u32),
    /// By a property of its creation, from 1 on: extension `cl_intel_mem_channel_property`.
    Property(u32),
}

/// Where the flags begin.
const FLAG_SHIFT: u32 = 16;
/// The last port that flags can name: one more is another flag.
const MOST_BY_FLAG: u32 = 7;
/// The most that are asked for: a card with two stacks of HBM2 has 32.
const MOST: u32 = 32;
/// What is made to ask for it.
const TRIAL_BYTES: usize = 4096;

impl Ports {
    /// How many there are.
    pub(super) const fn count(self) -> u32 {
        match self {
            Ports::One => 1,
            Ports::Flag(count) | Ports::Property(count) => count,
        }
    }

    /// What a device takes. One that has ports takes the flag of the first; others know the property too, and do nothing about it.
    pub(super) fn of(context: &Context) -> Ports {
        let takes = |ports: Ports, port| {
            let (object, status) = ports.buffer(context, port, TRIAL_BYTES);
            if status != cl::CL_SUCCESS {
                return false;
            }
            // SAFETY: the buffer is given back once.
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

    /// A buffer in this port, counted from 0, and what the runtime said.
    pub(super) fn buffer(self, context: &Context, port: u32, bytes: usize) -> (cl::cl_mem, i32) {
        let (api, handle) = (context.api, context.handle);
        let mut status = cl::CL_SUCCESS;
        let flags = match self {
            Ports::Flag(_) => cl::CL_MEM_READ_WRITE | (u64::from(port) + 1) << FLAG_SHIFT,
            _ => cl::CL_MEM_READ_WRITE,
        };
        if let Ports::Property(_) = self {
            let properties = [u64::from(cl::CL_MEM_CHANNEL_INTEL), u64::from(port) + 1, 0];
            // SAFETY: the type is that of the function of this name; the properties end with 0, and no memory of the program's is handed over.
            let object = unsafe {
                let name = c"clCreateBufferWithPropertiesINTEL";
                let make: cl::clCreateBufferWithPropertiesINTEL_fn = address(&api, context.id, name);
                let Some(make) = make else { return (ptr::null_mut(), cl::CL_INVALID_OPERATION) };
                make(handle, properties.as_ptr(), flags, bytes, ptr::null_mut(), &raw mut status)
            };
            return (object, status);
        }
        // SAFETY: the context is there, and no memory of the program's is handed over.
        let object = unsafe { (api.create_buffer)(handle, flags, bytes, ptr::null_mut(), &raw mut status) };
        (object, status)
    }
}
