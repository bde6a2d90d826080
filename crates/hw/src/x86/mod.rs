//! What an x86-64 core executes between two timestamps, whatever lies behind the pointer.
//!
//! | file | holds |
//! | --- | --- |
//! | `ask`, `refusal` | which plans the loops can run, and why not the others |
//! | `c_library` | whose `memcpy` a program calls |
//! | `cpu` | which instructions this processor has |
//! | `pin` | the thread held on one core |
//! | `loops` | the loads and stores, one loop an instruction |
//! | `routine` | the closed set of loops, and the choice among them |
//! | `run` | the samples of one run of a plan |
//! | `flush` | cached lines dropped from every cache |
//! | `handover` | buffers shared with a device |
//! | `copy` | the routines that copy from memory to a span |
//! | `copy_table` | which of them for which size, found by measuring |
//! | `exchange` | two cores that tell each other |
//! | `sample` | the timestamps around one sample |
//! | `disturbance` | whether something else had a part in a sample |
//! | `timer` | cycles of the time-stamp counter to ticks, and what the timestamps cost |
//! | `pattern` | the bytes that are stored, and finding them again |
//! | `buffer` | ordinary memory, present from the start |

pub(crate) mod ask;
pub(crate) mod buffer;
pub(crate) mod buffer_handoff;
pub(crate) mod c_library;
pub(crate) mod copy;
pub(crate) mod copy_table;
pub(crate) mod cpu;
pub(crate) mod disturbance;
pub(crate) mod exchange;
pub(crate) mod flush;
pub(crate) mod loops;
pub(crate) mod pattern;
pub(crate) mod pin;
pub(crate) mod refusal;
pub(crate) mod routine;
pub(crate) mod run;
pub(crate) mod sample;
pub(crate) mod timer;
