//! Dry run: lists the accesses to a card that a request would make, without making any.

use crate::card::{BY_ITS_DRIVER, behind_module, behind_vfio, with_its_driver};
use crate::error::RunError;
use crate::open_target::OpenTarget;
use crate::request::Request;
use crate::target::Target;
use crate::tasks::{Task, work};
use lanemark_bench::{BenchError, Effort};
use lanemark_hw::linux_lanemark;
use lanemark_hw::linux_nvme::{DriveNode, NvmeRehearsal};
use lanemark_hw::linux_sysfs::{Address, Attachment, Device, Notes, Rehearsal, System};
use lanemark_hw::linux_vfio::{DRIVER, VfioOptions, VfioRehearsal};
use lanemark_hw::linux_xdma::{XdmaCard, XdmaRehearsal};
use lanemark_machine::{Machine, MachineError};
use std::path::Path;

/// Accesses to a card that a request would make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DryRun {
    /// PCI address of the card.
    pub device: String,
    /// Vendor and device ID of the card.
    pub id: String,
    /// Reasons why a run would be refused in the present state of the card.
    pub refusals: Vec<String>,
    /// What a run does before and beside its cases, one sentence each.
    pub steps: Vec<String>,
    /// Ranges of BARs that may be accessed.
    pub ranges: Vec<RangeCheck>,
    /// Accesses of each case, in measurement order.
    pub cases: Vec<CaseAccesses>,
}

/// A range of a BAR and its possible mappings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeCheck {
    /// The range, in the syntax of the `--bar` option.
    pub range: String,
    /// Kind of the range: storage, or a kind of registers.
    pub kind: String,
    /// Whether the kind is derived from the BAR because the user gave none.
    pub is_kind_assumed: bool,
    /// Description of the BAR.
    pub bar: String,
    /// Per memory type: the file that would be mapped, or the reason why none can be.
    pub mappings: Vec<(String, Result<String, String>)>,
}

/// Accesses of one case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseAccesses {
    /// Name of the question.
    pub question: &'static str,
    /// Largest number of iterations of one sample.
    pub most_passes: u64,
    /// One sentence per series of accesses.
    pub touched: Vec<String>,
    /// Reason why the case cannot be measured, if there is one.
    pub problem: Option<String>,
}

/// Lists every range, mapping and access of `request`, whose only target is a card or a drive, and accesses nothing.
///
/// # Errors
/// [`RunError`] if the request is invalid or the card is absent.
pub fn dry_run(request: &Request) -> Result<DryRun, RunError> {
    let (targets, access) = (&request.targets, &request.setup.card);
    targets.iter().try_for_each(|target| request.setup.changes.check(target))?;
    access.check(targets)?;
    let address = match targets.as_slice() {
        [Target::Card(address)] => *address,
        [Target::Nvme(path)] => return dry_run_of_drive(request, path),
        [Target::Xdma(path)] => return dry_run_of_xdma(request, path),
        others if others.iter().any(|target| matches!(target, Target::Card(_) | Target::Nvme(_) | Target::Xdma(_))) => {
            return Err(RunError::DryRunOfOthers);
        }
        _ => return Err(RunError::NoCard { field: "dry_run" }),
    };
    if access.binds_to(DRIVER) || behind_vfio(address, access)?.is_some() {
        return dry_run_through_vfio(request, address);
    }
    let rehearsal = if behind_module(address, access)? {
        linux_lanemark::rehearse(&access.system(), address, &access.bars)?
    } else {
        let attachment = Attachment::rehearsed(&access.system(), address, &access.bars, access.consent);
        attachment.and_then(Rehearsal::new)?
    };
    let mut found = DryRun {
        device: rehearsal.attachment().device.address().to_string(),
        id: rehearsal.attachment().device.id()?,
        refusals: rehearsal.refusals().iter().map(ToString::to_string).collect(),
        steps: steps(&[lock(&access.system(), address)], COMMAND),
        ranges: ranges(&rehearsal),
        cases: Vec::new(),
    };
    let notes = rehearsal.notes();
    let taken = || notes.take().iter().map(ToString::to_string).collect();
    let mut targets = vec![OpenTarget::of_memory(Box::new(rehearsal))];
    let work = work(&request.named_or_usual(), &targets, &request.axes)?;
    found.cases = work.tasks.iter().map(|task| accesses(&mut targets[0], &taken, task)).collect();
    Ok(found)
}

/// Reads of configuration space in every run of a card.
const COMMAND: &str = "at the start: the Command register, link states and error counters are read from configuration space; at each \
                       plan: the device serial number";
/// The same of a drive behind the kernel's driver.
const LINKS: &str = "at the start: link states and error counters are read from sysfs";

/// The lock of every run of a function.
fn lock(system: &System, function: Address) -> String {
    let file = system.device(function).join("config");
    format!("locked for the run, so that a second Lanemark process is refused: {}", file.display())
}

fn steps(more: &[String], last: &str) -> Vec<String> {
    more.iter().cloned().chain([last.to_owned()]).collect()
}

/// As [`dry_run`], of a namespace behind the kernel's driver.
fn dry_run_of_drive(request: &Request, path: &Path) -> Result<DryRun, RunError> {
    let access = &request.setup.card;
    let system = access.system();
    let node = DriveNode::find(&system, path)?;
    let rehearsal = NvmeRehearsal::new(&node, access.emulated || system.emulated().is_some())?;
    let (lines, before) = (rehearsal.notes(), rehearsal.summary().to_vec());
    dry_run_through_driver(request, node.function(), &before, &|| lines.take(), Box::new(rehearsal))
}

/// As [`dry_run`], of a card with the driver `xdma`.
fn dry_run_of_xdma(request: &Request, path: &Path) -> Result<DryRun, RunError> {
    let access = &request.setup.card;
    let system = access.system();
    let card = XdmaCard::find(&system, path)?;
    let is_emulated = access.emulated || system.emulated().is_some();
    let rehearsed = match access.bars.as_slice() {
        [] => (with_its_driver(&system, card.function())?, Vec::new()),
        bars => Attachment::rehearsed(&system, card.function(), bars, BY_ITS_DRIVER)?,
    };
    let rehearsal = XdmaRehearsal::new(&card, access.card_memory, rehearsed, is_emulated)?;
    let (lines, before) = (rehearsal.notes(), rehearsal.summary().to_vec());
    let ranges = rehearsal.user().map(self::ranges).unwrap_or_default();
    let refusals = rehearsal.user().map(Rehearsal::refusals).unwrap_or_default();
    let refusals = refusals.iter().map(ToString::to_string).collect();
    let notes = rehearsal.user().map(Rehearsal::notes);
    let taken = || {
        let of_user = notes.iter().flat_map(Notes::take).map(|note| note.to_string());
        lines.take().into_iter().chain(of_user).collect()
    };
    let found = dry_run_through_driver(request, card.function(), &before, &taken, Box::new(rehearsal))?;
    Ok(DryRun { refusals, ranges, ..found })
}

/// As [`dry_run`], of a function that keeps its driver: `before` says what a run does beside its cases, and `taken` what
/// `rehearsal` has recorded.
fn dry_run_through_driver(
    request: &Request,
    function: Address,
    before: &[String],
    taken: &dyn Fn() -> Vec<String>,
    rehearsal: Box<dyn Machine>,
) -> Result<DryRun, RunError> {
    let mut found = DryRun {
        device: function.to_string(),
        id: Device::find(&request.setup.card.system(), function)?.id()?,
        refusals: Vec::new(),
        steps: steps(&[before, &[lock(&request.setup.card.system(), function)]].concat(), LINKS),
        ranges: Vec::new(),
        cases: Vec::new(),
    };
    let mut targets = vec![OpenTarget::of_memory(rehearsal)];
    let work = work(&request.named_or_usual(), &targets, &request.axes)?;
    found.cases = work.tasks.iter().map(|task| accesses(&mut targets[0], taken, task)).collect();
    Ok(found)
}

/// As [`dry_run`], of a card that is or will be bound to `vfio-pci`.
fn dry_run_through_vfio(request: &Request, address: Address) -> Result<DryRun, RunError> {
    let access = &request.setup.card;
    let (system, ranges) = (access.system(), access.ranges());
    let is_emulated = access.emulated || system.emulated().is_some();
    let options = VfioOptions {
        ranges: &ranges,
        file: access.device.as_ref(),
        peer: access.peer,
        interface: access.vfio,
        pages: access.host_pages,
        drive: access.drive,
        is_emulated,
        interrupted: None,
    };
    let rehearsal = VfioRehearsal::new(&system, address, &options, access.binds_to(DRIVER))?;
    let peer = access.peer.map(|peer| peer.device);
    let locks: Vec<String> = [address].into_iter().chain(peer).map(|function| lock(&system, function)).collect();
    let mut found = DryRun {
        device: address.to_string(),
        id: Device::find(&system, address)?.id()?,
        refusals: Vec::new(),
        steps: steps(&[rehearsal.summary(), locks.as_slice()].concat(), COMMAND),
        ranges: rehearsal.ranges().map(self::ranges).unwrap_or_default(),
        cases: Vec::new(),
    };
    let notes = rehearsal.notes();
    let mut targets = vec![OpenTarget::of_memory(Box::new(rehearsal))];
    let work = work(&request.named_or_usual(), &targets, &request.axes)?;
    found.cases = work.tasks.iter().map(|task| accesses(&mut targets[0], &|| notes.take(), task)).collect();
    Ok(found)
}

fn ranges(rehearsal: &Rehearsal) -> Vec<RangeCheck> {
    let mappings = |number: usize| {
        let of_range = rehearsal.mappings().iter().filter(move |mapping| mapping.place == number);
        let each = of_range.map(|mapping| {
            let file = mapping.outcome.as_ref().map(|_| mapping.file.display().to_string());
            (mapping.memory_type.to_string(), file.map_err(ToString::to_string))
        });
        each.collect()
    };
    let places = rehearsal.attachment().places.iter().enumerate();
    let check = |(number, place): (usize, &lanemark_hw::linux_sysfs::Place)| RangeCheck {
        range: place.range.to_string(),
        kind: place.kind.to_string(),
        is_kind_assumed: place.is_kind_assumed(),
        bar: place.bar.to_string(),
        mappings: mappings(number),
    };
    places.map(check).collect()
}

fn accesses(target: &mut OpenTarget, taken: &dyn Fn() -> Vec<String>, task: &Task) -> CaseAccesses {
    let Task { question, case, .. } = task;
    let asked = target.ask(question, case, &Effort::default());
    CaseAccesses {
        question: question.name,
        most_passes: (question.most_passes)(case),
        touched: taken(),
        problem: match asked {
            Ok(_) | Err(BenchError::Machine(MachineError::Unsupported(_))) => None,
            Err(error) => Some(format!("{}, {}: {error}", question.name, case.method)),
        },
    }
}
