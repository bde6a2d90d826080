//! Pictures of a sweep, from the table of its points: lines, a heat map, a Pareto front and a tornado of sensitivities.
//!
//! All are self-contained SVG files without a script, for light and dark backgrounds.

mod frame;
mod heat_map;
mod lines;
mod pareto;
mod selection;
#[cfg(test)]
mod tests;
mod tornado;

pub use heat_map::heat_map;
pub use lines::lines;
pub use pareto::pareto;
pub use selection::{Selection, SweepPictureError};
pub use tornado::{Sensitivity, sensitivities, tornado};
