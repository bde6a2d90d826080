//! Rules, counts and pictures of a paper about coherent I/O.
//!
//! [`rules`] and [`counts`] check bytes, entries and bus transactions of the coherent board, with memory mapped by
//! `lanemark-dma`. [`streams`] and [`server`] compute the data of the [`pictures`].

mod counts;
mod mapped_board;
mod pictures;
pub(crate) mod rules;
mod server;
mod streams;

pub(crate) use counts::measured;
pub(crate) use pictures::picture;

use std::fmt::Display;

/// An error of another crate, as text.
fn as_text(error: impl Display) -> String {
    error.to_string()
}
