//! Pictures of a sweep, from the table of its points: lines, a heat map, a Pareto front and a tornado of sensitivities.
//!
//! Pictures are self-contained SVG files without a script, for light and dark backgrounds. The map of a sweep is a page.

mod frame;
mod heat_map;
mod lines;
mod map;
mod pareto;
mod selection;
#[cfg(test)]
mod tests;
mod tornado;

pub use heat_map::heat_map;
pub use lines::lines;
pub use map::map_html;
pub use pareto::pareto;
pub use selection::{Selection, SweepPictureError};
pub use tornado::{Sensitivity, sensitivities, tornado};
