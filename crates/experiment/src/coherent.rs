//! What a paper says of a machine whose caches see what devices do: rules, counts, and pictures.
//!
//! [`rules`] and [`counts`] look at bytes, entries and transactions of the coherent board, which lends memory by the
//! library; [`streams`] and [`server`] are what the pictures are drawn from.

mod counts;
mod mapped_board;
mod pictures;
pub(crate) mod rules;
mod server;
mod streams;

pub(crate) use counts::measured;
pub(crate) use pictures::picture;

use std::fmt::Display;

/// An error of another room, in its own words.
fn told(error: impl Display) -> String {
    error.to_string()
}
