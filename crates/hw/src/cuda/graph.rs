//! Graphs of empty kernels, and words of memory that a stream waits for.
//!
//! Never run on a GPU.

#![allow(unsafe_code)]

use super::api::{Graphs, Handle, NodeParameters, StreamMemory};
use super::context::Context;
use super::error::CudaError;
use super::kernel::Kernel;
use super::memory::{HostMemory, Pinned};
use super::status::SUCCESS;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Graph of kernels, each of which starts after the one before it has ended.
#[derive(Debug)]
pub(super) struct Graph {
    context: Arc<Context>,
    calls: Graphs,
    definition: Handle,
    executable: Handle,
}

impl Graph {
    /// Makes a graph of `nodes` launches of `kernel` with one thread and no parameters.
    ///
    /// # Errors
    /// Errors of the driver.
    pub(super) fn new(context: &Arc<Context>, calls: Graphs, kernel: &Kernel, nodes: u32) -> Result<Graph, CudaError> {
        let (mut definition, executable) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the pointer is valid.
        CudaError::check("creating a graph", unsafe { (calls.create)(&raw mut definition, 0) })?;
        let mut made = Graph { context: Arc::clone(context), calls, definition, executable };
        let parameters = NodeParameters::empty_kernel(kernel.function());
        let mut before: Handle = ptr::null_mut();
        for nth in 0..nodes {
            let (mut node, needed) = (ptr::null_mut(), usize::from(nth > 0));
            // SAFETY: the list has as many nodes as told, all of this graph; the parameters are copied by the call.
            let status = unsafe {
                (calls.add_kernel)(&raw mut node, definition, &raw const before, needed, &raw const parameters)
            };
            CudaError::check("adding a kernel to a graph", status)?;
            before = node;
        }
        // SAFETY: the graph is valid.
        let status = unsafe { (calls.instantiate)(&raw mut made.executable, definition, 0) };
        CudaError::check("instantiating a graph", status)?;
        Ok(made)
    }

    /// Launches all nodes.
    #[inline]
    pub(super) fn launch(&self) -> c_int {
        // SAFETY: graph and stream are valid.
        unsafe { (self.calls.launch)(self.executable, self.context.stream) }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: each handle is destroyed once; the owner has waited for the stream.
            unsafe {
                if !self.executable.is_null() {
                    (self.calls.destroy_executable)(self.executable);
                }
                (self.calls.destroy)(self.definition);
            }
        }
    }
}

/// A word of host memory that the stream waits for.
#[derive(Debug)]
pub(super) struct Gate {
    context: Arc<Context>,
    calls: StreamMemory,
    memory: HostMemory,
    /// Value that the stream waited for last.
    last: u32,
}

/// Flag of `cuStreamWaitValue32`: until the word is at least the value, as a signed difference.
const AT_LEAST: u32 = 0;

impl Gate {
    /// Allocates the word.
    ///
    /// # Errors
    /// Errors of the driver.
    pub(super) fn new(context: &Arc<Context>, calls: StreamMemory) -> Result<Gate, CudaError> {
        let memory = HostMemory::new(context, 4096, Pinned::Plain)?;
        Ok(Gate { context: Arc::clone(context), calls, memory, last: 0 })
    }

    /// Lets the stream wait, from here on, until [`open`](Gate::open) is called.
    #[inline]
    pub(super) fn close(&mut self) -> c_int {
        let next = self.last.wrapping_add(1);
        // SAFETY: the word is in page-locked memory, which outlives the wait: `drop` opens the gate.
        let status = unsafe { (self.calls.wait)(self.context.stream, self.memory.at, next, AT_LEAST) };
        if status == SUCCESS {
            self.last = next;
        }
        status
    }

    /// Stores the word that the stream waits for.
    #[inline]
    pub(super) fn open(&self) {
        // SAFETY: the word is aligned; device and host access it atomically.
        let word = unsafe { AtomicU32::from_ptr(self.memory.start.cast()) };
        word.store(self.last, Ordering::Release);
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
        if self.context.enter().is_ok() {
            // SAFETY: the stream is valid, and no longer waits.
            unsafe { (self.context.api.wait_stream)(self.context.stream) };
        }
    }
}

impl NodeParameters {
    /// One thread of a kernel without parameters.
    fn empty_kernel(function: Handle) -> NodeParameters {
        let none = ptr::null_mut::<*mut c_void>();
        NodeParameters {
            function,
            blocks: [1; 3],
            threads: [1; 3],
            shared_bytes: 0,
            parameters: none,
            extra: none,
            kernel: ptr::null_mut(),
            context: ptr::null_mut(),
        }
    }
}
