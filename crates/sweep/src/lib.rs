//! Sweeps: platforms, changed keys and questions as a space of points.
//!
//! A [`Space`] is read from a TOML file. A [`Points`] lists it: point number `n` is a pure function of the space and
//! `n`, so that any program can run any part of it. [`Points::answer`] runs one point; it depends on nothing else.
//! [`run`] runs all points on several threads, and appends each to a log, which is also where it continues after an
//! interruption. [`value_list`] and [`Settings`] read the values of `--with`.
//!
//! [`schema()`] is the JSON Schema of a space.
//!
//! A point that cannot run is a row with its reason. Tables of rows, and the log, are in `lanemark-record`.
//!
//! ```
//! use lanemark_sweep::{Points, Space};
//!
//! let space = Space::parse("tags.toml", r#"
//!     schema = 1
//!     platforms = ["card-gen5-x16"]
//!     [with]
//!     dma.tags = "32..256*2"
//!     [[question]]
//!     name = "dma_read_bandwidth"
//!     sizes = "4K,64K"
//! "#)?;
//! let points = Points::of(&space)?;
//! assert_eq!(points.len(), 8);
//! let row = points.answer(7).ok_or("eight points")?;
//! assert_eq!((row.varied["dma.tags"].as_str(), row.size_bytes), ("256", Some(65536)));
//! assert!(row.delivered_rate_bytes_per_s > Some(1e9));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod answer;
mod error;
mod options;
mod points;
mod run;
mod schema;
mod settings;
mod space;
mod values;

pub use error::SpaceError;
pub use options::OPTIONS;
pub use points::{Point, Points};
pub use run::{Progress, run};
pub use schema::schema;
pub use settings::{Combine, Settings};
pub use space::{Asked, Space};
pub use values::{ValuesError, value_list};
