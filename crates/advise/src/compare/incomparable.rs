//! Records that cannot be compared, and why.

use crate::compare::named::{Named, kind};
use lanemark_record::{Record, Runtime, TargetKind};

/// Records cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Incomparable {
    /// A side has no records.
    #[error("there are no {side} records")]
    NoRecords {
        /// `base` or `new`.
        side: &'static str,
    },
    /// Two records are equal.
    #[error(
        "{first} and {second} are the same record: a record that counts twice is not a second run; measure again, or use `lanemark bench --repeat`"
    )]
    Twice {
        /// Name of the first record.
        first: String,
        /// Name of the second record.
        second: String,
    },
    /// Their formats differ.
    #[error(
        "{first} has schema {first_schema} and {second} has schema {second_schema}: figures of two formats may differ in meaning; measure both again with one version of lanemark"
    )]
    Schemas {
        /// Name of the first record.
        first: String,
        /// Schema of the first record.
        first_schema: u32,
        /// Name of the second record.
        second: String,
        /// Schema of the second record.
        second_schema: u32,
    },
    /// A record has no answers.
    #[error("{record} has no answers")]
    Empty {
        /// Name of the record.
        record: String,
    },
    /// The sides have no question in common.
    #[error("the records have no question in common: the base has {base}; the new side has {new}")]
    Questions {
        /// Questions of the base records.
        base: String,
        /// Questions of the new records.
        new: String,
    },
    /// The targets are of different kinds.
    #[error("{first} and {second}: {because}")]
    Kinds {
        /// Target, record and kind of the first one.
        first: String,
        /// Target, record and kind of the second one.
        second: String,
        /// Reason why such times cannot be compared.
        because: &'static str,
    },
    /// A target has formulas only.
    #[error("'{target}' of {record} has formulas only and no samples: measure or simulate it with `lanemark bench`")]
    FormulasOnly {
        /// The target.
        target: String,
        /// Name of the record.
        record: String,
    },
    /// A target that the record does not list.
    #[error("{record} does not list its target '{target}'")]
    Unknown {
        /// The target.
        target: String,
        /// Name of the record.
        record: String,
    },
    /// No answer has a counterpart on the other side.
    #[error(
        "no answer has a counterpart in the other record: question, method, size and alignment must be equal, and the target's name if a record has several targets; the targets are {base} and {new}"
    )]
    NoPair {
        /// Targets of the base records.
        base: String,
        /// Targets of the new records.
        new: String,
    },
}

/// Checks each record alone, and that no run counts twice.
pub(super) fn check(base: &[Named<'_>], new: &[Named<'_>]) -> Result<(), Incomparable> {
    for (side, name) in [(base, "base"), (new, "new")] {
        let Some(first) = base.first().filter(|_| !side.is_empty()) else {
            return Err(Incomparable::NoRecords { side: name });
        };
        for one in side {
            if one.record.schema != first.record.schema {
                return Err(Incomparable::Schemas {
                    first: first.name.to_owned(),
                    first_schema: first.record.schema,
                    second: one.name.to_owned(),
                    second_schema: one.record.schema,
                });
            }
            if one.record.answers.is_empty() {
                return Err(Incomparable::Empty { record: one.name.to_owned() });
            }
        }
        refuse_twice(side)?;
    }
    Ok(())
}

/// Refuses measurements that count twice. Simulations are equal in every run.
pub(super) fn refuse_twice(records: &[Named<'_>]) -> Result<(), Incomparable> {
    let measured: Vec<_> = records.iter().filter(|one| one.record.written_unix_s.is_some()).collect();
    for (place, one) in measured.iter().enumerate() {
        if let Some(other) = measured[..place].iter().find(|other| other.record == one.record) {
            return Err(Incomparable::Twice { first: other.name.to_owned(), second: one.name.to_owned() });
        }
    }
    Ok(())
}

fn runtime<'a>(record: &'a Record, name: &str) -> Option<&'a Runtime> {
    record.targets.iter().find(|target| target.name == name)?.runtime.as_ref()
}

/// Refuses targets of different kinds, or without samples.
pub(super) fn same_kind(first: (&Named<'_>, &str), second: (&Named<'_>, &str)) -> Result<(), Incomparable> {
    let of = |(one, name): (&Named<'_>, &str)| match kind(one.record, name) {
        Some(TargetKind::Formula) => {
            Err(Incomparable::FormulasOnly { target: name.to_owned(), record: one.name.to_owned() })
        }
        Some(kind) => Ok(kind),
        None => Err(Incomparable::Unknown { target: name.to_owned(), record: one.name.to_owned() }),
    };
    let differ = |first_kind: &str, second_kind: &str, because| {
        let [first, second] = [(first, first_kind), (second, second_kind)]
            .map(|((one, target), kind)| format!("'{target}' of {} is {kind}", one.name));
        Incomparable::Kinds { first, second, because }
    };
    let kinds = [of(first)?, of(second)?];
    let runtimes = [runtime(first.0.record, first.1), runtime(second.0.record, second.1)];
    if let [Some(before), Some(after)] = runtimes
        && before.no_card_because() != after.no_card_because()
    {
        let because = before.no_card_because().or(after.no_card_because()).unwrap_or_default();
        return Err(differ(before.label(), after.label(), because));
    }
    if kinds[0] == kinds[1] {
        return Ok(());
    }
    let because = if kinds.contains(&TargetKind::Emulated) {
        "timings in an emulator are not meaningful"
    } else if kinds.contains(&TargetKind::Imported) {
        "a figure of another tool is one number, measured in its own way; `lanemark compare --to-corpus` shows it beside machines"
    } else {
        "a simulation follows from a platform's parameters, a measurement from a machine; `lanemark reproduce` and `lanemark fit` relate them"
    };
    let [first_kind, second_kind] = kinds.map(|kind| match kind {
        TargetKind::Simulated => "simulated",
        TargetKind::Real => "real",
        TargetKind::Emulated => "emulated",
        TargetKind::Formula => "formulas only",
        TargetKind::Imported => "imported",
    });
    Err(differ(first_kind, second_kind, because))
}
