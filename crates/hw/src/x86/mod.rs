//! Code that an x86-64 core executes between two timestamps, independent of the target memory.
//!
//! | file | contents |
//! | --- | --- |
//! | `ask`, `refusal` | check of plans: the request for the loops, or the reason for a refusal |
//! | `c_library` | name of the C library whose `memcpy` is called |
//! | `cpu` | instructions that this processor supports |
//! | `pin` | pinning a thread to a core |
//! | `loops` | loads and stores, one loop per instruction |
//! | `routine` | the closed set of loops, and the choice among them |
//! | `run` | the samples of one run of a plan |
//! | `flush` | flushing cache lines from all caches |
//! | `buffer_handoff` | buffers shared with a device |
//! | `copy` | copy routines from memory to a span |
//! | `copy_table` | the fastest routine for each size, found by measurement |
//! | `exchange` | messages between two cores |
//! | `sample` | the timestamps around one sample |
//! | `driver_calls` | `pread`, `pwrite` and `mmap` on the file of a driver |
//! | `disturbance` | detection of disturbed samples |
//! | `timer` | conversion of TSC cycles to ticks, and the cost of the timestamps |
//! | `pattern` | stored data and its verification |
//! | `buffer` | populated ordinary memory |

pub(crate) mod buffer;
pub(crate) mod buffer_handoff;
pub(crate) mod c_library;
pub(crate) mod copy;
pub(crate) mod copy_table;
pub(crate) mod cpu;
pub(crate) mod disturbance;
pub(crate) mod driver_calls;
pub(crate) mod exchange;
pub(crate) mod flush;
pub(crate) mod loops;
pub(crate) mod pattern;
pub(crate) mod pin;
pub(crate) mod refusal;
pub(crate) mod request;
pub(crate) mod routine;
pub(crate) mod run;
pub(crate) mod sample;
pub(crate) mod timer;
