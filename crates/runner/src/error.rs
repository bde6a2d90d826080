//! Errors of a run, and their classes.

use crate::local_targets::LOCAL_TARGETS;
use lanemark_bench::CATALOGUE;
use lanemark_config_space::SetpciError;
use lanemark_devices::DeviceFileError;
use lanemark_hw::cuda::CudaError;
use lanemark_hw::dut_library::DutError;
use lanemark_hw::linux_nvme::DriveError;
use lanemark_hw::linux_sysfs::CardError;
use lanemark_hw::linux_vfio::VfioError;
use lanemark_hw::linux_xdma::XdmaError;
use lanemark_hw::opencl::OpenClError;
use lanemark_hw::sycl::SyclError;
use lanemark_machine::{Flow, MachineError};
use lanemark_platform::{CARDS, HOSTS, PRESETS, PlatformError, Preset};
use lanemark_sim::BoardError;
use lanemark_units::did_you_mean;
use std::io;
use std::path::PathBuf;

/// Class of an error; determines the exit code of a command or the exception type of a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The request, or a file named in it, is invalid.
    Usage,
    /// A device, a runtime or a permission is missing, or no case is left to measure.
    Absent,
    /// The run was cancelled.
    Interrupted,
    /// A target failed.
    Failed,
}

/// Reason why a run has no record, or an incomplete one.
///
/// The text of an error about one part of the request begins with the name of that part ([`RunError::field`]).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// An unknown question.
    #[error("'{name}' is not a question: {}", question_hint(name))]
    UnknownQuestion {
        /// The name given.
        name: String,
    },
    /// A file or device node without a path.
    #[error("'{prefix}' has no path: write it after the colon, for example {example}")]
    NoPath {
        /// The prefix given: `nvme:`, `xdma:` or `rtl:`.
        prefix: &'static str,
        /// A target with such a path.
        example: &'static str,
    },
    /// A runtime device without a valid number.
    #[error("'{name}' is not a device: use a number, for example {kind}:0")]
    DeviceNumber {
        /// The name given.
        name: String,
        /// The prefix of such names: `cuda`, `opencl` or `sycl`.
        kind: &'static str,
    },
    /// A name that is neither a built-in target nor a readable file.
    #[error(
        "'{name}' is not a target: {}use a built-in platform ({}), a built-in host and card (xeon-spr+gpu-h100), a platform file, host, cuda:0, opencl:0, sycl:0, the PCI address of a card (0000:01:00.0), nvme:/dev/ng0n1, xdma:/dev/xdma0 or a compiled card (rtl:card.so); reading it as a file failed: {source}",
        target_hint(name),
        preset_names()
    )]
    NoPlatform {
        /// The name given.
        name: String,
        /// Error of reading the file of that name.
        source: io::Error,
    },
    /// A real machine where a platform is required.
    #[error("'{target}' is no simulated platform, which is required: name a built-in platform or a platform file")]
    NotSimulated {
        /// The real machine.
        target: String,
    },
    /// A record instead of a platform file.
    #[error(
        "'{name}' is JSON, such as a record of lanemark bench, and not a platform file, which is TOML: lanemark report and compare read records"
    )]
    Json {
        /// The file.
        name: String,
    },
    /// A platform file with errors, or with unknown numbers where all must be known.
    #[error(transparent)]
    Platform(#[from] PlatformError),
    /// A platform that cannot be simulated.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// A changed key that is invalid for the platform.
    #[error("with: {0}")]
    With(#[source] PlatformError),
    /// A key that is changed twice.
    #[error("with {key}: is given twice, as {first} and as {second}; keep one of them")]
    RepeatedKey {
        /// The key.
        key: String,
        /// The first value given.
        first: String,
        /// The second value given.
        second: String,
    },
    /// A register write that is invalid for the platform.
    #[error("setpci {0}")]
    Setpci(#[source] SetpciError),
    /// A fault that is invalid for the platform.
    #[error("fault: {0}")]
    Fault(#[source] PlatformError),
    /// A change to a real machine.
    #[error("{field}{about}: '{target}' is no simulated platform, and {rule}")]
    RealTarget {
        /// The part of the request that contains the change.
        field: &'static str,
        /// The key or fault, with a leading space.
        about: String,
        /// The real target.
        target: String,
        /// Why real targets cannot be changed this way, and the alternative.
        rule: &'static str,
    },
    /// Two targets of the same name, which a record cannot distinguish.
    #[error("two targets are called '{name}': name each target once, or change `name` in one file")]
    SameName {
        /// The common name.
        name: String,
    },
    /// The library of a compiled card.
    #[error(transparent)]
    Rtl(#[from] DutError),
    /// A compiled card without a host.
    #[error(
        "twin: {target} needs a platform for its host and its link: name one, for example rtl/platform.toml for the card of rtl/"
    )]
    RtlWithoutTwin {
        /// The target.
        target: String,
    },
    /// A compiled card whose clock does not follow from the platform.
    #[error(
        "{target}: its stream has beats of {found} B, and dma.beat_bytes of {platform} is {expected}: set it to {found}, and dma.beat_ns to the period of the clock"
    )]
    RtlBeats {
        /// The target.
        target: String,
        /// Bytes of a beat of the library.
        found: usize,
        /// Name of the platform.
        platform: String,
        /// Its number of bytes, or `absent`.
        expected: String,
    },
    /// A compiled card without a clock.
    #[error(
        "{target}: dma.beat_ns of {platform} is 0: set it to the period of the clock, at which the stream has a beat"
    )]
    RtlClock {
        /// The target.
        target: String,
        /// Name of the platform.
        platform: String,
    },
    /// A compiled card in a program that cannot end a design that does not return.
    #[error("{target}: only the command lanemark opens a compiled card: it can end a design that does not return")]
    RtlUnwatched {
        /// The target.
        target: String,
    },
    /// The thread that watches a compiled card cannot start.
    #[error("starting the thread that watches the design failed: {0}")]
    RtlWatchdog(#[source] io::Error),
    /// A twin that is a real machine.
    #[error("twin: {twin} is no simulated platform; name the platform that describes the target, or its file")]
    TwinIsReal {
        /// The target given as twin.
        twin: String,
    },
    /// A twin without a real card or runtime device among the targets.
    #[error(
        "twin applies to a real card, a runtime device or a compiled card only: add one as a target, for example 0000:01:00.0"
    )]
    NoTwin,
    /// A kernels file without a runtime device among the targets.
    #[error("kernels applies to runtime devices only: add one as a target, for example opencl:0")]
    NoRuntimeForKernels,
    /// An unreadable kernels file.
    #[error("reading {}: {source}", path.display())]
    Kernels {
        /// The file.
        path: PathBuf,
        /// The error of reading it.
        source: io::Error,
    },
    /// A matrix name that is neither a file nor a generated matrix.
    #[error("matrix: {because}; or use a file in Matrix Market format, MATRIX.mtx")]
    MatrixName {
        /// The violated rule.
        because: String,
    },
    /// An invalid or unreadable matrix file.
    #[error("matrix {name}: {because}")]
    MatrixFile {
        /// The file.
        name: String,
        /// The violated rule or the error of reading it.
        because: String,
    },
    /// A prediction by formulas for a target without a platform file.
    #[error("'{target}' has no formula: it is no simulated platform; name a platform or its file")]
    NoFormula {
        /// The target.
        target: String,
    },
    /// An injected fault in a prediction by formulas.
    #[error("fault {fault}: formulas do not model faults; use the simulation")]
    FaultInFormula {
        /// The fault.
        fault: String,
    },
    /// An injected fault that no question can trigger.
    #[error(
        "fault {fault}: no question invalidates translations on a simulated platform, so it cannot occur; it is for programs \
         that unmap memory of a simulated board (library lanemark-dma)"
    )]
    FaultNeverOccurs {
        /// The fault.
        fault: String,
    },
    /// A trace of a real machine.
    #[error(
        "'{target}' is no simulated platform, and only those are traced: name a built-in platform or a platform file"
    )]
    NoTrace {
        /// The target.
        target: String,
    },
    /// Options for access to a card, without a card among the targets.
    #[error("{field} applies to cards only: name one by its address, for example 0000:01:00.0")]
    NoCard {
        /// The part of the request that applies to cards only.
        field: &'static str,
    },
    /// Options for a card with the driver `xdma`, without one among the targets.
    #[error("{field} applies to cards with the driver xdma only: add --on xdma:/dev/xdma0")]
    NoXdma {
        /// The part of the request that applies to such cards only.
        field: &'static str,
    },
    /// Several cards in one request; ranges of BARs, or of memory, belong to one card.
    #[error("several cards are named: measure one card at a time")]
    SeveralCards,
    /// A dry run with targets other than one card.
    #[error("dry_run applies to one card or drive: remove the other targets")]
    DryRunOfOthers,
    /// A card that cannot be opened.
    #[error(transparent)]
    Card(#[from] CardError),
    /// A card behind VFIO that cannot be opened.
    #[error(transparent)]
    Vfio(#[from] VfioError),
    /// A namespace of a drive that cannot be opened.
    #[error(transparent)]
    Drive(#[from] DriveError),
    /// A card that cannot be opened through its driver `xdma`.
    #[error(transparent)]
    Xdma(#[from] XdmaError),
    /// The other card is the target itself.
    #[error("peer: {0} is the target itself: name another card")]
    PeerIsTarget(String),
    /// Memory of another card, and a target without DMA.
    #[error(
        "peer needs a target with DMA: an NVMe drive without --device, or a card whose --device file has a section [engine] or \
         [descriptors]"
    )]
    PeerWithoutEngine,
    /// A device file with errors.
    #[error("device: {0}")]
    DeviceFile(#[from] DeviceFileError),
    /// A name that is neither a built-in device file nor a readable file.
    #[error("device: '{name}' is not a device file: {because}")]
    NoDeviceFile {
        /// The name given.
        name: String,
        /// Similar names, and the error of reading it.
        because: String,
    },
    /// A device file for a card that is not behind VFIO.
    #[error(
        "device: {0} is not bound to vfio-pci, through which its DMA engine is driven: add --bind vfio-pci, or bind it with: lanemark bind {0}"
    )]
    DeviceNotBehindVfio(String),
    /// An option of VFIO or of an NVMe drive for a card that is not behind VFIO.
    #[error(
        "{field}: the target {device} is not bound to vfio-pci: add --bind vfio-pci, or bind it with: lanemark bind {device}"
    )]
    NotBehindVfio {
        /// The part of the request that applies to cards behind VFIO only.
        field: &'static str,
        /// PCI address of the card.
        device: String,
    },
    /// An OpenCL device that cannot be opened.
    #[error(transparent)]
    OpenCl(#[from] OpenClError),
    /// A SYCL device that cannot be opened.
    #[error(transparent)]
    Sycl(#[from] SyclError),
    /// A device of the CUDA driver that cannot be opened.
    #[error(transparent)]
    Cuda(#[from] CudaError),
    /// The memory of this machine cannot be measured.
    #[error(transparent)]
    Host(MachineError),
    /// An unknown region of a target.
    #[error("region {name}: {target} has no such region; it has {known}")]
    Region {
        /// The name given.
        name: String,
        /// The target.
        target: String,
        /// The regions of the target.
        known: String,
    },
    /// A flow of a card that the target does not have.
    #[error("flows {flow}: {target} has {}", match cards { 1 => "1 card: 0".to_owned(), cards => format!("{cards} cards: 0 to {}", cards - 1) } + "; use these, or give the platform a [[slot]] for each card")]
    Flow {
        /// The flow given.
        flow: Flow,
        /// The target.
        target: String,
        /// Number of cards of the target, at least 1.
        cards: u32,
    },
    /// An alignment that is not smaller than the boundary it is relative to.
    #[error("align: {bytes} is not below {line}: for {question}, it is the distance from a {line} B boundary")]
    Alignment {
        /// The distance given, in bytes.
        bytes: u64,
        /// Distance between two boundaries, in bytes.
        line: u64,
        /// The question.
        question: &'static str,
    },
    /// A window larger than the accessible memory.
    #[error("window: {bytes} B exceed {of} of {target}; use at most {most}")]
    Window {
        /// The window given, in bytes.
        bytes: u64,
        /// The accessed memory, in words.
        of: String,
        /// The target.
        target: String,
        /// The largest window, in bytes.
        most: u64,
    },
    /// A size larger than the accessible memory.
    #[error("sizes: {bytes} B exceed {of} of {target}; use at most {most}")]
    Size {
        /// The size given, in bytes.
        bytes: u64,
        /// The accessed memory, in words.
        of: String,
        /// The target.
        target: String,
        /// The largest size, in bytes.
        most: u64,
    },
    /// A selection that leaves no case of a question, or several where one is required.
    #[error("{question} has {} on {target}{}", if *.several { "several such cases" } else { "no such case" }, if *.several { ": name access and memory type" } else { "" })]
    NotOneCase {
        /// The question.
        question: &'static str,
        /// The target.
        target: String,
        /// True for several cases, false for none.
        several: bool,
    },
    /// No case is left to measure.
    #[error("{because}")]
    NothingToAsk {
        /// Reason why the first case was skipped.
        because: String,
    },
    /// A plan that the target does not support.
    #[error("{0}")]
    Unsupported(lanemark_machine::Unsupported),
    /// The run was cancelled.
    #[error("interrupted")]
    Interrupted,
    /// A real card or a simulated platform that failed.
    #[error("{because}")]
    TargetFailed {
        /// The target.
        target: String,
        /// The error reported by the target.
        because: String,
    },
    /// A runtime device that failed.
    #[error("{}", if *.has_answers { format!("{target} failed before all cases were measured: see its warning for the reason; the answers so far are kept") } else { because.clone() })]
    RuntimeFailed {
        /// The target.
        target: String,
        /// The error reported by the target.
        because: String,
        /// Whether the record has answers.
        has_answers: bool,
    },
    /// A record without any answer.
    #[error("there is no answer: {warning}")]
    NoAnswer {
        /// The first warning of the record.
        warning: String,
    },
}

/// The kind of an error of a card.
const fn class_of(error: &CardError) -> Class {
    match error {
        CardError::Permission { .. }
        | CardError::LockedDown { .. }
        | CardError::Claimed { .. }
        | CardError::NoResourceFile { .. }
        | CardError::InUse { .. }
        | CardError::Unsupported { .. } => Class::Absent,
        CardError::Gone { .. } | CardError::Unbound { .. } | CardError::Changed { .. } => Class::Failed,
        _ => Class::Usage,
    }
}

impl RunError {
    /// The kind of the error.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            RunError::Interrupted
            | RunError::Drive(DriveError::Interrupted)
            | RunError::Vfio(VfioError::Interrupted)
            | RunError::OpenCl(OpenClError::Interrupted)
            | RunError::Sycl(SyclError::Interrupted)
            | RunError::Cuda(CudaError::Interrupted) => Class::Interrupted,
            RunError::OpenCl(
                OpenClError::NoDevice { .. } | OpenClError::NotTaken { .. } | OpenClError::NoKernel { .. },
            )
            | RunError::Cuda(CudaError::NoDevice { .. })
            | RunError::Sycl(
                SyclError::NoDevice { .. }
                | SyclError::OpenCl(OpenClError::NotTaken { .. } | OpenClError::NoKernel { .. }),
            ) => Class::Usage,
            RunError::Card(error)
            | RunError::Xdma(XdmaError::Function(error))
            | RunError::Drive(DriveError::Function(error)) => class_of(error),
            RunError::Vfio(
                VfioError::NoVfio { .. }
                | VfioError::NoIommufd { .. }
                | VfioError::NoPeerByIommufd { .. }
                | VfioError::InUse { .. }
                | VfioError::Range(CardError::InUse { .. })
                | VfioError::Kernel { .. }
                | VfioError::Unsupported { .. }
                | VfioError::Busy { .. }
                | VfioError::Permission { .. },
            )
            | RunError::Drive(DriveError::Permission { .. } | DriveError::Unsupported { .. } | DriveError::Os { .. })
            | RunError::Xdma(
                XdmaError::Permission { .. }
                | XdmaError::InUse { .. }
                | XdmaError::Unsupported { .. }
                | XdmaError::Os { .. },
            )
            | RunError::OpenCl(_)
            | RunError::Sycl(_)
            | RunError::Cuda(_)
            | RunError::Host(_)
            | RunError::NothingToAsk { .. }
            | RunError::Unsupported(_)
            | RunError::RuntimeFailed { .. } => Class::Absent,
            RunError::Vfio(VfioError::Gone { .. } | VfioError::Changed { .. })
            | RunError::Drive(DriveError::Failed { .. })
            | RunError::TargetFailed { .. }
            | RunError::NoAnswer { .. } => Class::Failed,
            _ => Class::Usage,
        }
    }

    /// The part of the request that the error is about, by the name of its option or argument, such as `window` or
    /// `dry_run`; the text begins with it. `None` for errors about a whole target or about no part.
    #[must_use]
    pub const fn field(&self) -> Option<&'static str> {
        Some(match self {
            RunError::With(_) | RunError::RepeatedKey { .. } => "with",
            RunError::Setpci(_) => "setpci",
            RunError::Fault(_) | RunError::FaultInFormula { .. } | RunError::FaultNeverOccurs { .. } => "fault",
            RunError::RealTarget { field, .. }
            | RunError::NoCard { field }
            | RunError::NoXdma { field }
            | RunError::NotBehindVfio { field, .. } => field,
            RunError::NoRuntimeForKernels => "kernels",
            RunError::TwinIsReal { .. } | RunError::NoTwin | RunError::RtlWithoutTwin { .. } => "twin",
            RunError::MatrixName { .. } | RunError::MatrixFile { .. } => "matrix",
            RunError::DeviceFile(_) | RunError::NoDeviceFile { .. } | RunError::DeviceNotBehindVfio(_) => "device",
            RunError::PeerIsTarget(_) | RunError::PeerWithoutEngine => "peer",
            RunError::DryRunOfOthers => "dry_run",
            RunError::Region { .. } => "region",
            RunError::Flow { .. } => "flows",
            RunError::Alignment { .. } => "align",
            RunError::Window { .. } => "window",
            RunError::Size { .. } => "sizes",
            _ => return None,
        })
    }
}

/// A suggestion of similar question names, or the list of all.
fn question_hint(name: &str) -> String {
    let names = || CATALOGUE.iter().map(|question| question.name);
    did_you_mean(name, names()).unwrap_or_else(|| format!("use one of {}", names().collect::<Vec<_>>().join(", ")))
}

/// A suggestion of a similar target name, or an empty string.
fn target_hint(name: &str) -> String {
    if let Some((host, card)) = name.split_once('+') {
        let one = |noun: &str, rows: &'static [Preset], name: &str| {
            let names = || rows.iter().map(|row| row.name);
            if names().any(|known| known == name) {
                return String::new();
            }
            let hint = did_you_mean(name, names())
                .unwrap_or_else(|| format!("known: {}", names().collect::<Vec<_>>().join(", ")));
            format!("there is no built-in {noun} '{name}', {hint} ")
        };
        return format!("{}{}", one("host", HOSTS, host), one("card", CARDS, card));
    }
    let known = PRESETS.iter().map(|preset| preset.name).chain(LOCAL_TARGETS.map(|(name, _)| name));
    did_you_mean(name, known).map(|hint| format!("{hint} ")).unwrap_or_default()
}

fn preset_names() -> String {
    PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_text_begins_with_its_field() {
        let errors = [
            RunError::RealTarget { field: "with", about: " a.b".to_owned(), target: "host".to_owned(), rule: "it is" },
            RunError::RepeatedKey { key: "a.b".to_owned(), first: "1".to_owned(), second: "2".to_owned() },
            RunError::NoRuntimeForKernels,
            RunError::TwinIsReal { twin: "host".to_owned() },
            RunError::NoTwin,
            RunError::MatrixName { because: "x".to_owned() },
            RunError::MatrixFile { name: "x".to_owned(), because: "y".to_owned() },
            RunError::FaultInFormula { fault: "x".to_owned() },
            RunError::FaultNeverOccurs { fault: "x".to_owned() },
            RunError::NoCard { field: "enable" },
            RunError::NoXdma { field: "card_memory" },
            RunError::NoDeviceFile { name: "a".to_owned(), because: "b".to_owned() },
            RunError::DeviceNotBehindVfio("0000:01:00.0".to_owned()),
            RunError::NotBehindVfio { field: "nvme_queues", device: "0000:01:00.0".to_owned() },
            RunError::PeerIsTarget("0000:01:00.0".to_owned()),
            RunError::PeerWithoutEngine,
            RunError::DryRunOfOthers,
            RunError::Region { name: "a".to_owned(), target: "b".to_owned(), known: "c".to_owned() },
            RunError::Flow { flow: "9:host".parse().unwrap(), target: "b".to_owned(), cards: 1 },
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
    fn failed_runtimes_are_absent_while_failed_cards_and_simulations_are_failures() {
        let (target, because) = ("opencl:0".to_owned(), "it is gone".to_owned());
        let runtime =
            |has_answers| RunError::RuntimeFailed { target: target.clone(), because: because.clone(), has_answers };
        assert_eq!((runtime(false).class(), runtime(false).to_string()), (Class::Absent, because.clone()));
        assert!(runtime(true).to_string().starts_with("opencl:0 failed before all cases were measured"));
        assert_eq!(RunError::TargetFailed { target, because }.class(), Class::Failed);
    }
}
