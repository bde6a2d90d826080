//! What an x86-64 core executes between two timestamps, whatever lies behind the pointer.
//!
//! | file | holds |
//! | --- | --- |
//! | `cpu` | which instructions this processor has |
//! | `pin` | the thread held on one core |
//! | `loops` | the loads and stores, one loop an instruction |
//! | `routine` | the closed set of loops, and the choice among them |
//! | `flush` | cached lines dropped from every cache |
//! | `copy` | the routines that copy from memory to a span |
//! | `copy_table` | which of them for which size, found by measuring |
//! | `exchange` | two cores that tell each other |
//! | `sample` | the timestamps around one sample |
//! | `timer` | cycles of the time-stamp counter to ticks, and what the timestamps cost |
//! | `pattern` | the bytes that are stored, and finding them again |
//! | `buffer` | ordinary memory, present from the start |

pub(crate) mod buffer;
pub(crate) mod copy;
pub(crate) mod copy_table;
pub(crate) mod cpu;
pub(crate) mod exchange;
pub(crate) mod flush;
pub(crate) mod loops;
pub(crate) mod pattern;
pub(crate) mod pin;
pub(crate) mod routine;
pub(crate) mod sample;
pub(crate) mod timer;
