//! Method for many small copies to a device, or back, on one machine.
//!
//! [`CopyTable`] holds the times of a few counts and sizes, as `lanemark tune` measured them. [`CopyPlan`] is made from
//! it once; [`CopyPlan::choose`] then returns the fastest method of any count and size by one look-up, without a clock,
//! a lock or an allocation. Programs link this crate, or call `lanemark_copy_plan` of the C library.
//!
//! ```
//! use lanemark_copy_plan::{CopyPlan, CopyPoint, CopyTable};
//! use lanemark_method::{CopyBy, CopyDirection};
//! let direction = CopyDirection::ToDevice;
//! let point = |by, copies, ns| CopyPoint { direction, by, copies, size_bytes: 64, ns };
//! // A loop takes 2 us per piece, a kernel 9 us for all.
//! let points = vec![
//!     point(CopyBy::Loop, 1, 5000.0),
//!     point(CopyBy::Loop, 65, 133_000.0),
//!     point(CopyBy::InPlace, 1, 9000.0),
//!     point(CopyBy::InPlace, 65, 9640.0),
//! ];
//! let table = CopyTable::new("example".to_owned(), points)?;
//! let plan = CopyPlan::new(&table);
//! assert_eq!(plan.choose(64, 2, direction), Some(CopyBy::Loop));
//! assert_eq!(plan.choose(64, 4, direction), Some(CopyBy::InPlace));
//! # Ok::<(), lanemark_copy_plan::TableError>(())
//! ```

#![forbid(unsafe_code)]

mod plan;
mod table;

pub use plan::CopyPlan;
pub use table::{CopyPoint, CopyTable, SCHEMA, TableError, schema};
