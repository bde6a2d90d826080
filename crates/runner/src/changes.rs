//! Changes to simulated platforms, valid for one run.

use crate::error::RunError;
use crate::target::Target;
use lanemark_config_space::{ConfigWrite, setpci};
use lanemark_platform::{Fault, FaultKind, Origin, Platform};
use std::collections::BTreeMap;

/// Changes to simulated platforms for one run. Real targets are refused with an error.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Changes {
    /// Changed keys: path of the key, such as `link.mps_bytes`, and its value as text.
    pub with: Vec<(String, String)>,
    /// Writes to port registers, applied before the run.
    pub setpci: Vec<ConfigWrite>,
    /// Injected faults.
    pub faults: Vec<Fault>,
}

impl Changes {
    /// Applies the changes to `platform`; returns the result and one sentence per key whose value differs.
    ///
    /// # Errors
    /// [`RunError::RepeatedKey`], [`RunError::With`], [`RunError::Setpci`] or [`RunError::Fault`] for a change that is
    /// repeated or invalid for the platform.
    pub fn apply(&self, platform: &Platform) -> Result<(Platform, Vec<String>), RunError> {
        self.check_keys()?;
        let before = |key: &str| platform.value_text(key).unwrap_or_else(|| "absent".to_owned());
        let changes = self.with.iter().map(|(key, value)| {
            let origin = Origin::Assumed(format!("given for this run; {} otherwise", before(key)));
            (key.as_str(), value.as_str(), origin)
        });
        let with = platform.with_texts(changes).map_err(RunError::With)?;
        let now = |key: &str| with.value_text(key).unwrap_or_default();
        let sentence = |(key, _): &(String, String)| {
            format!("{}: {key} is {} in this run, and {} in its file", platform.name, now(key), before(key))
        };
        let is_changed = |(key, _): &&(String, String)| now(key) != before(key);
        let sentences = self.with.iter().filter(is_changed).map(sentence).collect();
        let mut platform = setpci(&with, &self.setpci).map_err(RunError::Setpci)?;
        for fault in &self.faults {
            platform = platform.with_fault(fault.clone()).map_err(RunError::Fault)?;
        }
        Ok((platform, sentences))
    }

    /// Returns an error if a key is changed twice.
    fn check_keys(&self) -> Result<(), RunError> {
        for (place, (key, second)) in self.with.iter().enumerate() {
            if let Some((_, first)) = self.with[..place].iter().find(|(other, _)| other == key) {
                return Err(RunError::RepeatedKey { key: key.clone(), first: first.clone(), second: second.clone() });
            }
        }
        Ok(())
    }

    /// Changed keys and their values in `platform`; all register writes under `setpci`, all faults under `fault`.
    pub(crate) fn varied(&self, platform: &Platform) -> BTreeMap<String, String> {
        let value = |key: &String| (key.clone(), platform.value_text(key).unwrap_or_default());
        let mut varied: BTreeMap<String, String> = self.with.iter().map(|(key, _)| value(key)).collect();
        let joined = |texts: Vec<String>| (!texts.is_empty()).then(|| texts.join(" "));
        let setpci = joined(self.setpci.iter().map(ToString::to_string).collect());
        let faults = joined(self.faults.iter().map(ToString::to_string).collect());
        varied.extend(setpci.map(|writes| ("setpci".to_owned(), writes)));
        varied.extend(faults.map(|faults| ("fault".to_owned(), faults)));
        varied
    }

    /// Returns an error if there are changes and `target` is real, or if a fault cannot occur in any question.
    pub(crate) fn check(&self, target: &Target) -> Result<(), RunError> {
        if !target.is_real() {
            let never = self.faults.iter().find(|fault| fault.kind.value == FaultKind::StuckInvalidation);
            return match never {
                Some(fault) => Err(RunError::FaultNeverOccurs { fault: fault.to_string() }),
                None => Ok(()),
            };
        }
        let (field, about, rule) = if !self.setpci.is_empty() {
            ("setpci", String::new(), "Lanemark writes to simulated ports only; use setpci")
        } else if let Some((key, _)) = self.with.first() {
            ("with", format!(" {key}"), "only numbers of simulated platforms can be changed")
        } else if let Some(fault) = self.faults.first() {
            ("fault", format!(" {fault}"), "faults are injected into simulated platforms only")
        } else {
            return Ok(());
        };
        Err(RunError::RealTarget { field, about, target: target.to_string(), rule })
    }
}
