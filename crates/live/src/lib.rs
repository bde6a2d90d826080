//! The formulas of a platform, asked again for changed keys: what moves when a reader of a page moves a slider.
//!
//! [`Live`] holds a platform as a record has it, and [`Point`]s, the answers of the record whose formulas it computes.
//! [`Live::figures`] computes them for some [`Change`]s, as `lanemark predict --with` does. [`Slider`] is a key with the
//! values that it can take.
//!
//! Compiled to WebAssembly, this crate is the live part of a report; `exports.rs` has the functions for its script. It has
//! no file, clock or thread.

#![deny(unsafe_code)]

mod change;
mod error;
#[cfg(target_arch = "wasm32")]
mod exports;
mod live;
mod message;
mod point;
mod slider;

pub use change::{Change, MEMORY_TYPE, OUTSTANDING};
pub use error::LiveError;
pub use live::Live;
pub use message::{Page, answer, open};
pub use point::{Figure, Point};
pub use slider::Slider;
