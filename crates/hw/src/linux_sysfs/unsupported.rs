//! Stub for targets without the measurement loops: other architectures and operating systems.

use super::attachment::{Attachment, Consent, Place};
use super::effective::{MappedType, Mapping};
use super::touch::Notes;
use super::{Address, CardError, Range, System};
use crate::no_machine::no_machine;
use lanemark_machine::Width;
use lanemark_units::MemoryType;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

fn unsupported(device: Address) -> CardError {
    let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
    let because = format!("loads and stores to cards exist for x86-64 Linux only; this is {arch} {os}");
    CardError::Unsupported { device, because }
}

/// Card as a machine; cannot be opened on this target.
#[derive(Debug)]
pub struct CardMachine {
    never: Infallible,
}

/// Dry run of plans on a card; cannot be created on this target.
#[derive(Debug)]
pub struct Rehearsal {
    never: Infallible,
}

/// Card for programs; cannot be attached on this target.
#[derive(Debug)]
pub struct Card {
    never: Infallible,
}

/// Mapped range of a BAR; cannot be created on this target.
#[derive(Debug)]
pub struct BarMapping {
    never: Infallible,
}

// Same interface as on x86-64 Linux, but every constructor fails.
#[allow(missing_docs, clippy::missing_errors_doc, clippy::needless_pass_by_value)]
impl CardMachine {
    pub fn open(attachment: Attachment, _is_emulated: bool) -> Result<CardMachine, CardError> {
        Err(unsupported(attachment.device.address()))
    }
    #[must_use]
    pub fn interrupted_by(self, _flag: Arc<AtomicBool>) -> CardMachine {
        self
    }
    #[must_use]
    pub fn attachment(&self) -> &Attachment {
        match self.never {}
    }
    #[must_use]
    pub fn mappings(&self) -> &[Mapping] {
        match self.never {}
    }
}

#[allow(missing_docs, clippy::missing_errors_doc, clippy::needless_pass_by_value)]
impl Rehearsal {
    pub fn new((attachment, _): (Attachment, Vec<CardError>)) -> Result<Rehearsal, CardError> {
        Err(unsupported(attachment.device.address()))
    }
    #[must_use]
    pub fn attachment(&self) -> &Attachment {
        match self.never {}
    }
    #[must_use]
    pub fn mappings(&self) -> &[Mapping] {
        match self.never {}
    }
    #[must_use]
    pub fn refusals(&self) -> &[CardError] {
        match self.never {}
    }
    #[must_use]
    pub fn notes(&self) -> Notes {
        match self.never {}
    }
}

#[allow(missing_docs, clippy::missing_errors_doc, clippy::needless_pass_by_value)]
impl Card {
    pub fn attach(address: Address, _ranges: &[Range], _consent: Consent) -> Result<Card, CardError> {
        Err(unsupported(address))
    }
    #[doc(hidden)]
    pub fn attach_in(_: &System, address: Address, _: &[Range], _: Consent) -> Result<Card, CardError> {
        Err(unsupported(address))
    }
    #[must_use]
    pub fn attachment(&self) -> &Attachment {
        match self.never {}
    }
    pub fn map(&self, _range: usize, _memory_type: MemoryType) -> Result<BarMapping, CardError> {
        match self.never {}
    }
    #[must_use]
    pub fn mappings(&self) -> usize {
        match self.never {}
    }
}

#[allow(missing_docs, clippy::missing_errors_doc, clippy::needless_pass_by_value)]
impl BarMapping {
    #[must_use]
    pub fn mapped_type(&self) -> &MappedType {
        match self.never {}
    }
    #[must_use]
    pub fn place(&self) -> &Place {
        match self.never {}
    }
    pub fn peek(&self, _offset: u64, _width: Width) -> Result<u64, CardError> {
        match self.never {}
    }
    pub fn poke(&mut self, _offset: u64, _width: Width, _value: u64) -> Result<(), CardError> {
        match self.never {}
    }
    pub fn write_burst(&mut self, _offset: u64, _words: &[u32]) -> Result<(), CardError> {
        match self.never {}
    }
    pub fn calibrate(&mut self, _limit: std::time::Duration) -> Result<(), CardError> {
        match self.never {}
    }
    pub fn copy_to(&mut self, _offset: u64, _bytes: &[u8]) -> Result<(), CardError> {
        match self.never {}
    }
    pub fn copy_from(&self, _offset: u64, _bytes: &mut [u8]) -> Result<(), CardError> {
        match self.never {}
    }
    pub fn fence(&mut self) {
        match self.never {}
    }
}

no_machine!(CardMachine, Rehearsal);
