//! The PCIe fabric: links with their data link layer and credits, switches and routing.
//!
//! Start with `link.rs`, the transmitter of one direction of a link. The fabric does not depend on hosts or devices:
//! an end of a link is an input number.

pub mod credit;
pub mod dllp;
pub mod input;
pub mod link;
pub mod pace;
pub mod retimer;
pub mod route;
pub mod switch;
