//! Stub for targets without the measurement loops: other architectures.

use super::{DriveError, DriveNode};
use crate::lines::Lines;
use crate::no_machine::no_machine;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn unsupported(node: &DriveNode) -> DriveError {
    let because = format!("measurements need x86-64 Linux; this is {}", std::env::consts::ARCH);
    DriveError::Unsupported { path: node.path().to_owned(), because }
}

/// A namespace behind the kernel's driver; cannot be opened on this target.
#[derive(Debug)]
pub struct NvmeMachine {
    never: Infallible,
}

/// Dry run of reads; cannot be created on this target.
#[derive(Debug)]
pub struct NvmeRehearsal {
    never: Infallible,
}

// Same interface as on x86-64 Linux, but every constructor fails.
#[allow(missing_docs, clippy::missing_errors_doc, clippy::needless_pass_by_value)]
impl NvmeMachine {
    pub fn open(node: &DriveNode, _: bool, _: Arc<AtomicBool>) -> Result<NvmeMachine, DriveError> {
        Err(unsupported(node))
    }
    #[must_use]
    pub fn way(&self) -> String {
        match self.never {}
    }
}

#[allow(missing_docs, clippy::missing_errors_doc)]
impl NvmeRehearsal {
    pub fn new(node: &DriveNode, _: bool) -> Result<NvmeRehearsal, DriveError> {
        Err(unsupported(node))
    }
    #[must_use]
    pub fn summary(&self) -> &[String] {
        match self.never {}
    }
    #[must_use]
    pub fn notes(&self) -> Lines {
        match self.never {}
    }
}

no_machine!(NvmeMachine, NvmeRehearsal);
