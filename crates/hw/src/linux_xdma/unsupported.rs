//! Stub for targets without the measurement loops: other architectures.

use super::{CardMemory, XdmaCard, XdmaError};
use crate::lines::Lines;
use crate::linux_sysfs::{Attachment, CardError, Mapping, Rehearsal};
use crate::no_machine::no_machine;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn unsupported(card: &XdmaCard) -> XdmaError {
    let because = format!("measurements need x86-64 Linux; this is {}", std::env::consts::ARCH);
    XdmaError::Unsupported { path: card.path().to_owned(), because }
}

/// A card behind its driver; cannot be opened on this target.
#[derive(Debug)]
pub struct XdmaMachine {
    never: Infallible,
}

/// Dry run of transfers; cannot be created on this target.
#[derive(Debug)]
pub struct XdmaRehearsal {
    never: Infallible,
}

// Same interface as on x86-64 Linux, but every constructor fails.
#[allow(missing_docs, clippy::missing_errors_doc, clippy::needless_pass_by_value)]
impl XdmaMachine {
    pub fn open(
        card: &XdmaCard,
        _: Option<CardMemory>,
        _: Attachment,
        _: bool,
        _: Arc<AtomicBool>,
    ) -> Result<XdmaMachine, XdmaError> {
        Err(unsupported(card))
    }
    #[must_use]
    pub fn mappings(&self) -> &[Mapping] {
        match self.never {}
    }
}

#[allow(missing_docs, clippy::missing_errors_doc)]
impl XdmaRehearsal {
    pub fn new(
        card: &XdmaCard,
        _: Option<CardMemory>,
        _: (Attachment, Vec<CardError>),
        _: bool,
    ) -> Result<XdmaRehearsal, XdmaError> {
        Err(unsupported(card))
    }
    #[must_use]
    pub fn user(&self) -> Option<&Rehearsal> {
        match self.never {}
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

no_machine!(XdmaMachine, XdmaRehearsal);
