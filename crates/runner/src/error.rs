//! Why there is no record, or no complete one.

use lanemark_bench::CATALOGUE;
use lanemark_config_space::SetpciError;
use lanemark_hw::linux_sysfs::CardError;
use lanemark_hw::opencl::OpenClError;
use lanemark_hw::sycl::SyclError;
use lanemark_machine::MachineError;
use lanemark_platform::{PRESETS, PlatformError};
use lanemark_sim::BoardError;
use lanemark_units::did_you_mean;
use std::io;
use std::path::PathBuf;

/// The kind of an error, from which a command makes its exit code and a library its exception.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The request, or a file it names, is wrong.
    Usage,
    /// A device, a runtime or a permission is absent, or there is nothing to ask.
    Absent,
    /// The run was cancelled.
    Interrupted,
    /// A target failed.
    Failed,
}

/// Why there is no record, or no complete one.
///
/// Where the error is about one part of the request, its text begins with the name of that part ([`RunError::field`]).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A question that does not exist.
    #[error("'{name}' is not a question: {}", question_hint(name))]
    UnknownQuestion {
        /// The name that was given.
        name: String,
    },
    /// A device behind a runtime without a number.
    #[error("'{name}' names no device: they are numbered, {kind}:0")]
    DeviceNumber {
        /// The name that was given.
        name: String,
        /// The prefix of such names.
        kind: &'static str,
    },
    /// A name that is no target.
    #[error(
        "'{name}' is not a target: {}use a built-in platform ({}), a platform file, host, opencl:0, sycl:0 or the PCI address of a card (0000:01:00.0); reading it as a file: {source}",
        target_hint(name),
        preset_names()
    )]
    NoPlatform {
        /// The name that was given.
        name: String,
        /// Why no file of that name can be read.
        source: io::Error,
    },
    /// A platform file with problems, or with unknown numbers where all must be known.
    #[error(transparent)]
    Platform(#[from] PlatformError),
    /// A platform that cannot be simulated.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// A changed key that the platform refuses.
    #[error("with: {0}")]
    With(#[source] PlatformError),
    /// A write to a register that the platform refuses.
    #[error("setpci {0}")]
    Setpci(#[source] SetpciError),
    /// A fault that the platform refuses.
    #[error("fault: {0}")]
    Fault(#[source] PlatformError),
    /// A change to a real machine.
    #[error("{field}{about}: '{target}' is real, and {rule}")]
    RealTarget {
        /// The part of the request that changes targets.
        field: &'static str,
        /// The key or fault, after a space.
        about: String,
        /// The real target.
        target: String,
        /// Why real targets are not changed so, and what to use.
        rule: &'static str,
    },
    /// Two targets of one name, which a record could not tell apart.
    #[error("two targets are called '{name}'")]
    SameName {
        /// Their name.
        name: String,
    },
    /// Kernels for devices behind runtimes, where none is asked.
    #[error("kernels is about devices behind runtimes: name one, for example opencl:0")]
    NoRuntimeForKernels,
    /// A file of kernels that cannot be read.
    #[error("reading {}: {source}", path.display())]
    Kernels {
        /// The file.
        path: PathBuf,
        /// Why it cannot be read.
        source: io::Error,
    },
    /// A matrix that is neither a file nor one that is generated.
    #[error("matrix: {because}; or a file in Matrix Market format, MATRIX.mtx")]
    MatrixName {
        /// The rule that the name breaks.
        because: String,
    },
    /// A matrix file that cannot be used.
    #[error("matrix {name}: {because}")]
    MatrixFile {
        /// The file.
        name: String,
        /// The rule that the file breaks.
        because: String,
    },
    /// Formulas of a target that has no platform file.
    #[error("'{target}' has no formula: it is real, and there is no platform file of it; name a platform")]
    NoFormula {
        /// The target.
        target: String,
    },
    /// A fault, where only formulas answer.
    #[error("fault {fault}: a formula knows nothing of faults; ask the simulation")]
    FaultInFormula {
        /// The fault.
        fault: String,
    },
    /// A trace of a real machine.
    #[error("'{target}' is real and keeps no trace: name a platform, built-in or a file")]
    NoTrace {
        /// The target.
        target: String,
    },
    /// Access to a card, where no card is asked.
    #[error("{field} is about a card: name one by its address, for example 0000:01:00.0")]
    NoCard {
        /// The part of the request that is about cards.
        field: &'static str,
    },
    /// Several cards, while ranges are those of one.
    #[error("bar names ranges of one card; measure one card at a time")]
    SeveralCards,
    /// A dry run of more than a card.
    #[error("dry_run tells what would happen to a card; leave the other targets out")]
    DryRunOfOthers,
    /// A card that cannot be opened.
    #[error(transparent)]
    Card(#[from] CardError),
    /// A device behind OpenCL that cannot be opened.
    #[error(transparent)]
    OpenCl(#[from] OpenClError),
    /// A device behind SYCL that cannot be opened.
    #[error(transparent)]
    Sycl(#[from] SyclError),
    /// The memory of this machine cannot be measured.
    #[error(transparent)]
    Host(MachineError),
    /// A region that a target does not have.
    #[error("region {name}: {target} has no such region; it has {known}")]
    Region {
        /// The name that was given.
        name: String,
        /// The target.
        target: String,
        /// The regions it has.
        known: String,
    },
    /// A distance from a boundary that is beyond the next one.
    #[error("align: {bytes} is not below {line}: for {question}, it is the distance from a {line} B boundary")]
    Alignment {
        /// The distance that was given.
        bytes: u64,
        /// Bytes between two boundaries.
        line: u64,
        /// The question.
        question: &'static str,
    },
    /// A window beyond the memory there is.
    #[error("window: {bytes} B reach beyond {of} of {target}; ask for at most {most}")]
    Window {
        /// The window that was given.
        bytes: u64,
        /// The memory it is in.
        of: String,
        /// The target.
        target: String,
        /// The longest window.
        most: u64,
    },
    /// A size beyond the memory there is.
    #[error("sizes: {bytes} B reach beyond {of} of {target}; ask for at most {most}")]
    Size {
        /// The size that was given.
        bytes: u64,
        /// The memory it is in.
        of: String,
        /// The target.
        target: String,
        /// The largest size.
        most: u64,
    },
    /// A choice that leaves no case of a question, or more than the one that is wanted.
    #[error("{question} has {} on {target}{}", if *.several { "several such cases" } else { "no such case" }, if *.several { ": name access and memory type" } else { "" })]
    NotOneCase {
        /// The question.
        question: &'static str,
        /// The target.
        target: String,
        /// Whether there are several cases, and not none.
        several: bool,
    },
    /// No case was left to ask.
    #[error("{because}")]
    NothingToAsk {
        /// Why the first of them was left out.
        because: String,
    },
    /// A target does not support the plan of a case.
    #[error("{0}")]
    Unsupported(lanemark_machine::Unsupported),
    /// The run was cancelled.
    #[error("interrupted")]
    Interrupted,
    /// A real card or a simulated platform failed.
    #[error("{because}")]
    TargetFailed {
        /// The target.
        target: String,
        /// What it reported.
        because: String,
    },
    /// A device behind a runtime failed.
    #[error("{}", if *.has_answers { format!("{target} failed before it was asked all: its warning says why, and what it answered is kept") } else { because.clone() })]
    RuntimeFailed {
        /// The target.
        target: String,
        /// What it reported.
        because: String,
        /// Whether the record has answers all the same.
        has_answers: bool,
    },
    /// There is no answer at all.
    #[error("there is no answer: {warning}")]
    NoAnswer {
        /// The first warning of the record.
        warning: String,
    },
}

impl RunError {
    /// The kind of the error.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            RunError::Interrupted
            | RunError::OpenCl(OpenClError::Interrupted)
            | RunError::Sycl(SyclError::Interrupted) => Class::Interrupted,
            RunError::OpenCl(
                OpenClError::NoDevice { .. } | OpenClError::NotTaken { .. } | OpenClError::NoKernel { .. },
            )
            | RunError::Sycl(
                SyclError::NoDevice { .. }
                | SyclError::OpenCl(OpenClError::NotTaken { .. } | OpenClError::NoKernel { .. }),
            ) => Class::Usage,
            RunError::Card(
                CardError::Permission { .. }
                | CardError::LockedDown { .. }
                | CardError::Claimed { .. }
                | CardError::NoResourceFile { .. }
                | CardError::Unsupported { .. },
            )
            | RunError::OpenCl(_)
            | RunError::Sycl(_)
            | RunError::Host(_)
            | RunError::NothingToAsk { .. }
            | RunError::Unsupported(_)
            | RunError::RuntimeFailed { .. } => Class::Absent,
            RunError::Card(CardError::Gone { .. }) | RunError::TargetFailed { .. } | RunError::NoAnswer { .. } => {
                Class::Failed
            }
            _ => Class::Usage,
        }
    }

    /// The part of the request that the error is about, by the name of the option or argument, such as `window` or
    /// `dry_run`; the text begins with it. `None` if it is about a target as a whole, or about none.
    #[must_use]
    pub const fn field(&self) -> Option<&'static str> {
        Some(match self {
            RunError::With(_) => "with",
            RunError::Setpci(_) => "setpci",
            RunError::Fault(_) | RunError::FaultInFormula { .. } => "fault",
            RunError::RealTarget { field, .. } | RunError::NoCard { field } => field,
            RunError::NoRuntimeForKernels => "kernels",
            RunError::MatrixName { .. } | RunError::MatrixFile { .. } => "matrix",
            RunError::SeveralCards => "bar",
            RunError::DryRunOfOthers => "dry_run",
            RunError::Region { .. } => "region",
            RunError::Alignment { .. } => "align",
            RunError::Window { .. } => "window",
            RunError::Size { .. } => "sizes",
            _ => return None,
        })
    }
}

/// The questions that `name` may have meant, or all of them.
fn question_hint(name: &str) -> String {
    let names = || CATALOGUE.iter().map(|question| question.name);
    did_you_mean(name, names()).unwrap_or_else(|| format!("use one of {}", names().collect::<Vec<_>>().join(", ")))
}

/// The target that `name` may have meant, or nothing.
fn target_hint(name: &str) -> String {
    let known = PRESETS.iter().map(|preset| preset.name).chain(["host", "opencl:0", "sycl:0"]);
    did_you_mean(name, known).map(|hint| format!("{hint} ")).unwrap_or_default()
}

fn preset_names() -> String {
    PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_begins_with_the_field_it_is_about() {
        let errors = [
            RunError::RealTarget { field: "with", about: " a.b".to_owned(), target: "host".to_owned(), rule: "it is" },
            RunError::NoRuntimeForKernels,
            RunError::MatrixName { because: "x".to_owned() },
            RunError::MatrixFile { name: "x".to_owned(), because: "y".to_owned() },
            RunError::FaultInFormula { fault: "x".to_owned() },
            RunError::NoCard { field: "enable" },
            RunError::SeveralCards,
            RunError::DryRunOfOthers,
            RunError::Region { name: "a".to_owned(), target: "b".to_owned(), known: "c".to_owned() },
            RunError::Alignment { bytes: 64, line: 64, question: "q" },
            RunError::Window { bytes: 1, of: "a".to_owned(), target: "b".to_owned(), most: 0 },
            RunError::Size { bytes: 1, of: "a".to_owned(), target: "b".to_owned(), most: 0 },
        ];
        for error in errors {
            let field = error.field().unwrap();
            assert!(error.to_string().starts_with(field), "{field}: {error}");
            assert_eq!(error.class(), Class::Usage, "{error}");
        }
        assert_eq!(RunError::Interrupted.field(), None);
    }

    #[test]
    fn a_runtime_that_failed_is_absent_and_a_card_or_simulation_failed() {
        let (target, because) = ("opencl:0".to_owned(), "it is gone".to_owned());
        let runtime =
            |has_answers| RunError::RuntimeFailed { target: target.clone(), because: because.clone(), has_answers };
        assert_eq!((runtime(false).class(), runtime(false).to_string()), (Class::Absent, because.clone()));
        assert!(runtime(true).to_string().starts_with("opencl:0 failed before it was asked all"));
        assert_eq!(RunError::TargetFailed { target, because }.class(), Class::Failed);
    }
}
