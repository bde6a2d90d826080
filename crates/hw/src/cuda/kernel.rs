//! Kernels that the driver compiles.

#![allow(unsafe_code)]

use super::api::Handle;
use super::context::Context;
use super::error::CudaError;
use super::status::{SUCCESS, Status};
use std::ffi::{CString, c_int, c_void};
use std::ptr;
use std::sync::Arc;

/// A compiled kernel.
#[derive(Debug)]
pub(super) struct Kernel {
    context: Arc<Context>,
    module: Handle,
    function: Handle,
    running: &'static str,
}

// SAFETY: handles of the driver may be used from any thread on which the context is current.
unsafe impl Send for Kernel {}

/// Options of `cuModuleLoadDataEx`. Source: CUDA Driver API 12.8, `CUjit_option`.
const ERROR_LOG_BUFFER: c_int = 5;
const ERROR_LOG_BUFFER_SIZE_BYTES: c_int = 6;
/// Operations of messages by the name of the kernel.
const RUNNING: [(&str, &str); 5] = [
    ("clock", "running the kernel clock"),
    ("nothing", "running the kernel nothing"),
    ("pieces", "running the kernel pieces"),
    ("ping", "running the kernel ping"),
    ("transfers", "running the kernel transfers"),
];
/// Length of the compiler's log in bytes.
const LOG_BYTES: usize = 1 << 14;

impl Kernel {
    /// Compiles the kernel `name` of a PTX text.
    ///
    /// # Errors
    /// [`CudaError::NotBuilt`] with the log of the compiler.
    pub(super) fn new(context: &Arc<Context>, name: &'static str, text: &str) -> Result<Kernel, CudaError> {
        let mut log = vec![0_u8; LOG_BYTES];
        let zero = |error: std::ffi::NulError| CudaError::System(format!("the kernel {name}: {error}"));
        let (text, symbol) = (CString::new(text).map_err(zero)?, CString::new(name).map_err(zero)?);
        let mut options = [ERROR_LOG_BUFFER, ERROR_LOG_BUFFER_SIZE_BYTES];
        // The size is passed in the pointer itself.
        let mut values = [log.as_mut_ptr().cast::<c_void>(), ptr::without_provenance_mut(LOG_BYTES - 1)];
        let (mut module, mut function) = (ptr::null_mut(), ptr::null_mut());
        let api = &context.api;
        // SAFETY: the text ends with a zero, and both options have a value; the log is one byte longer than the size.
        let status = unsafe {
            let status = (api.load_module)(
                &raw mut module,
                text.as_ptr().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            );
            if status == SUCCESS { (api.function)(&raw mut function, module, symbol.as_ptr()) } else { status }
        };
        if status != SUCCESS {
            let end = log.iter().position(|byte| *byte == 0).unwrap_or(0);
            let log = String::from_utf8_lossy(&log[..end]).trim_end().to_owned();
            let log = if log.is_empty() { log } else { format!("\n{log}") };
            return Err(CudaError::NotBuilt { kernel: name, status: Status(status), log });
        }
        let running =
            RUNNING.iter().find(|(kernel, _)| *kernel == name).map_or("running a kernel", |(_, running)| running);
        Ok(Kernel { context: Arc::clone(context), module, function, running })
    }

    /// Launches `blocks` blocks (columns and rows) of `threads` threads.
    ///
    /// Returns the status of the driver, so that no branch is between two time stamps.
    ///
    /// # Safety
    /// There is one pointer per parameter of the kernel, each to a value of the parameter's type, and every memory that
    /// the kernel accesses stays valid until the stream has been waited for.
    #[inline]
    pub(super) unsafe fn launch(&self, blocks: [u32; 2], threads: u32, parameters: &mut [*mut c_void]) -> c_int {
        let [columns, rows] = blocks;
        let (stream, values) = (self.context.stream, parameters.as_mut_ptr());
        // SAFETY: the caller guarantees the parameters.
        unsafe {
            (self.context.api.launch)(
                self.function,
                columns,
                rows,
                1,
                threads,
                1,
                1,
                0,
                stream,
                values,
                ptr::null_mut(),
            )
        }
    }

    /// Handle of the function, for the nodes of a graph.
    pub(super) fn function(&self) -> Handle {
        self.function
    }

    /// Name of the kernel, as an operation for messages: `running the kernel clock`.
    pub(super) fn name(&self) -> &'static str {
        self.running
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        if self.context.enter().is_ok() {
            // SAFETY: the module is unloaded once, and no launch is left: its owner waits for the stream.
            unsafe { (self.context.api.unload_module)(self.module) };
        }
    }
}
