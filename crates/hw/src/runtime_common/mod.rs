//! Code shared by all backends that call a runtime (CUDA, OpenCL, SYCL).
//!
//! | file | contents |
//! | --- | --- |
//! | `machine` | device state, and how one run is put together |
//! | `request` | check of a plan: the request it makes, or why it is refused |
//! | `workers` | interface to a runtime's compute kernels |
//! | `stream_copy`, `spmv` | the two kinds of compute kernels: source, arrays, verification of results |
//! | `computing` | compute kernels of either kind |
//! | `contents` | contents of memory that kernels read |

pub(crate) mod computing;
pub(crate) mod contents;
pub(crate) mod machine;
pub(crate) mod request;
mod spmv;
mod stream_copy;
pub(crate) mod workers;

use crate::interpreter::interpreter;
use crate::x86::pin::usable_cores;
use lanemark_machine::{Facts, RuntimeFacts, TimeBase};

/// Facts of a runtime device: no memory regions and no load or store instructions; `cpus` cores may call the runtime.
pub(crate) fn facts(name: String, summary: String, cpus: usize, runtime: RuntimeFacts) -> Facts {
    Facts {
        name,
        summary,
        time_base: if interpreter().is_some() { TimeBase::Emulated } else { TimeBase::Real },
        cores: usable_cores(cpus),
        regions: Vec::new(),
        memory_types: Vec::new(),
        stores: Vec::new(),
        loads: Vec::new(),
        memcpy: String::new(),
        dma: None,
        driver_width: None,
        tables: vec![],
        disciplines: Vec::new(),
        line_sources: Vec::new(),
        runtime: Some(runtime),
    }
}
