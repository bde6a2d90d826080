//! Does the program keep its promises to those who script it?
//!
//! Everything here runs `lanemark` as a stranger would, in a folder of its own, and looks at the exit code,
//! at standard output, at standard error and at what lies in the folder afterwards.

mod bad_input;
mod commands;
mod doctor;
mod ending;
mod folder;
mod json;
