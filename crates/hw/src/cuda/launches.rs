//! Empty kernels and their arguments.

#![allow(unsafe_code)]

use super::api::{DevicePointer, Handle};
use super::context::{Context, LONGEST};
use super::error::CudaError;
use super::graph::{Gate, Graph};
use super::kernel::Kernel;
use super::memory::{DeviceMemory, HostMemory, Pinned};
use super::ptx;
use super::status::SUCCESS;
use crate::x86::sample::{Ending, Limits, Stamps, stamp_after, stamp_before, timed};
use lanemark_machine::{Allocation, Arguments, HostWait, Launch, LaunchBy};
use rustix::io::Errno;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Length of each kernel argument in bytes.
const GIVEN_BYTES: usize = 4096;

/// Empty kernel with its arguments, or a graph of it.
#[derive(Debug)]
pub(super) struct Launches {
    context: Arc<Context>,
    way: Way,
    /// The launch for which everything exists.
    launch: Launch,
    kernel: Kernel,
    addresses: Vec<DevicePointer>,
    event: Handle,
    _given: Vec<Given>,
}

// SAFETY: handles of the driver may be used from any thread on which the context is current.
unsafe impl Send for Launches {}

/// The way of launching the kernel: by calls, in a graph, or behind a wait of the stream.
#[derive(Debug)]
enum Way {
    Calls,
    Graph(Graph),
    StreamWait(Gate),
}

/// Memory of an argument.
#[derive(Debug)]
enum Given {
    Device(DeviceMemory),
    Host(HostMemory),
}

impl Launches {
    /// Builds the kernel, allocates its arguments, and launches it once, as `launch` says: drivers do one-time work at the
    /// first launch.
    ///
    /// # Errors
    /// Errors of the driver, [`CudaError::NotBuilt`], and [`CudaError::NotThere`] if the driver lacks a function.
    pub(super) fn new(context: &Arc<Context>, launch: Launch) -> Result<Launches, CudaError> {
        let arguments = launch.arguments;
        let kernel = Kernel::new(context, "nothing", &ptx::nothing(arguments.count))?;
        let given = (0..arguments.count).map(|_| match arguments.allocation {
            Allocation::Host => HostMemory::new(context, GIVEN_BYTES, Pinned::Plain).map(Given::Host),
            Allocation::Combining => HostMemory::new(context, GIVEN_BYTES, Pinned::Combining).map(Given::Host),
            _ => DeviceMemory::new(context, GIVEN_BYTES).map(Given::Device),
        });
        let given: Vec<Given> = given.collect::<Result<_, _>>()?;
        let addresses = given.iter().map(|given| match given {
            Given::Device(memory) => memory.at,
            Given::Host(memory) => memory.at,
        });
        let addresses = addresses.collect();
        let missing = |function| CudaError::NotThere { function, by: launch.by.name() };
        let way = match launch.by {
            LaunchBy::Calls => Way::Calls,
            LaunchBy::Graph => {
                let calls = context.api.graphs.map_err(missing)?;
                Way::Graph(Graph::new(context, calls, &kernel, launch.kernels)?)
            }
            LaunchBy::StreamWait => Way::StreamWait(Gate::new(context, context.api.stream_memory.map_err(missing)?)?),
        };
        let event = context.event()?;
        let context = Arc::clone(context);
        let mut launches = Launches { context, way, launch, kernel, addresses, event, _given: given };
        let first = match &mut launches.way {
            Way::Calls => launches.launch(),
            Way::Graph(graph) => graph.launch(),
            Way::StreamWait(_) => launches.behind_a_word(),
        };
        launches.open();
        CudaError::check("launching the kernel for the first time", first)?;
        launches.context.finish(launches.kernel.name(), LONGEST)?;
        Ok(launches)
    }

    /// Whether everything that `launch` needs exists; the number of kernels matters in a graph only.
    pub(super) fn matches(&self, launch: Launch) -> bool {
        let kernels = if launch.by == LaunchBy::Graph { self.launch.kernels } else { launch.kernels };
        Launch { wait: launch.wait, kernels, ..self.launch } == launch
    }

    /// Times `passes` iterations; returns the stamps and the status of the last call.
    pub(super) fn timed(&mut self, launch: Launch, limits: &Limits<'_>, first: u64, passes: u64) -> (Stamps, c_int) {
        if launch.by == LaunchBy::StreamWait {
            self.launch.kernels = launch.kernels;
            return self.timed_behind_a_word(launch.wait, limits, passes);
        }
        let mut status = SUCCESS;
        let stamps = timed(limits, first, passes, |_| {
            status = self.enqueue(launch.kernels);
            if status == SUCCESS {
                status = self.wait(launch.wait);
            }
            if status == SUCCESS { Ok(()) } else { Err(Errno::IO) }
        });
        (stamps, status)
    }

    /// Enqueues the kernels of an iteration.
    #[inline]
    fn enqueue(&mut self, kernels: u32) -> c_int {
        if let Way::Graph(graph) = &self.way {
            return graph.launch();
        }
        for _ in 0..kernels {
            let status = self.launch();
            if status != SUCCESS {
                return status;
            }
        }
        SUCCESS
    }

    /// Enqueues a wait for a word and the kernels behind it.
    fn behind_a_word(&mut self) -> c_int {
        let status = match &mut self.way {
            Way::StreamWait(gate) => gate.close(),
            Way::Calls | Way::Graph(_) => SUCCESS,
        };
        if status == SUCCESS { self.enqueue(self.launch.kernels) } else { status }
    }

    /// Stores the word, if the stream waits for one.
    #[inline]
    fn open(&self) {
        if let Way::StreamWait(gate) = &self.way {
            gate.open();
        }
    }

    /// Times `passes` iterations from the store of the word to the end of the wait; the stamps are one after the other, as
    /// if nothing were enqueued between the iterations.
    fn timed_behind_a_word(&mut self, wait: HostWait, limits: &Limits<'_>, passes: u64) -> (Stamps, c_int) {
        let (mut spent, mut ending) = (0, Ending::Done);
        let begun = stamp_before();
        for pass in 0..passes {
            let mut status = self.behind_a_word();
            if status == SUCCESS && wait == HostWait::Event {
                // SAFETY: event and stream are valid.
                status = unsafe { (self.context.api.record_event)(self.event, self.context.stream) };
            }
            let start = stamp_before();
            // Also after an error: the stream must not wait for ever.
            self.open();
            if status == SUCCESS {
                // SAFETY: stream and event are valid.
                status = unsafe {
                    match wait {
                        HostWait::Finish => (self.context.api.wait_stream)(self.context.stream),
                        HostWait::Event => (self.context.api.wait_event)(self.event),
                    }
                };
            }
            spent += stamp_after().saturating_sub(start);
            if status != SUCCESS {
                let end = begun + spent;
                return (
                    Stamps { start: begun, issued: end, delivered: end, ending: Ending::Failed(Errno::IO) },
                    status,
                );
            }
            let is_late = stamp_before().saturating_sub(begun) > limits.timeout_cycles;
            if pass + 1 < passes && (is_late || limits.interrupted.load(Ordering::Relaxed)) {
                ending = Ending::Stopped(pass + 1);
                break;
            }
        }
        let end = begun + spent;
        (Stamps { start: begun, issued: end, delivered: end, ending }, SUCCESS)
    }

    #[inline]
    fn launch(&mut self) -> c_int {
        let mut pointers = [ptr::null_mut::<c_void>(); Arguments::MOST as usize];
        for (pointer, address) in pointers.iter_mut().zip(&mut self.addresses) {
            *pointer = ptr::from_mut(address).cast();
        }
        // SAFETY: the kernel has one parameter per address and accesses nothing.
        unsafe { self.kernel.launch([1, 1], 1, &mut pointers) }
    }

    #[inline]
    fn wait(&self, wait: HostWait) -> c_int {
        let (api, stream) = (&self.context.api, self.context.stream);
        // SAFETY: stream and event are valid.
        unsafe {
            match wait {
                HostWait::Finish => (api.wait_stream)(stream),
                HostWait::Event => match (api.record_event)(self.event, stream) {
                    SUCCESS => (api.wait_event)(self.event),
                    status => status,
                },
            }
        }
    }
}

impl Drop for Launches {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: stream and event are valid, and the event is destroyed once.
            unsafe {
                (self.context.api.wait_stream)(self.context.stream);
                (self.context.api.destroy_event)(self.event);
            }
        }
    }
}
