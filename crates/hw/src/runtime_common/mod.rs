//! What is true of every device behind a runtime, whichever that is.
//!
//! | file | holds |
//! | --- | --- |
//! | `asked` | which plans there are, and why another is refused |
//! | `workers` | kernels that compute, as a runtime is asked for them |
//! | `stream_copy`, `spmv` | what they compute: their source, what is in their arrays, whether the result is right |
//! | `computing` | either of the two |

pub(crate) mod asked;
pub(crate) mod computing;
mod spmv;
mod stream_copy;
pub(crate) mod workers;

use crate::interpreter::interpreter;
use crate::x86::pin::usable_cores;
use lanemark_machine::{Facts, RuntimeFacts, TimeBase};

/// A queue: it has no region and no instruction, and a program may call it from so many processors.
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
        disciplines: Vec::new(),
        line_sources: Vec::new(),
        runtime: Some(runtime),
    }
}
