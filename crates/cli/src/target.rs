//! Whom to ask: a preset, a platform file, this machine, or a card in it.

use crate::args::{BenchArgs, CardArgs};
use crate::card::{self, Card};
use crate::failure::Failure;
use crate::input;
use lanemark_config_space::{ConfigWrite, setpci};
use lanemark_hw::HostMemory;
use lanemark_hw::opencl::{Device, FinishedKernels, OpenClError, OpenClMachine, vendors};
use lanemark_hw::sycl::{SyclError, SyclMachine};
use lanemark_machine::{DeviceKind as SeenKind, Facts, Machine, TimeBase};
use lanemark_model::FormulaMachine;
use lanemark_platform::{Draft, Fault, LinkEnds, Origin, PRESETS, Platform, PlatformError};
use lanemark_record::{DeviceKind, Link, Origins, Runtime, Software, Target as TargetRecord, TargetKind};
use lanemark_sim::SimulatedMachine;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Somebody to ask, ready to answer.
pub struct Target {
    /// The machine.
    pub machine: Box<dyn Machine>,
    /// Its formulas, where there is a platform.
    pub formula: Option<FormulaMachine>,
    /// Its platform, where there is one.
    pub platform: Option<Platform>,
    /// What is known of the card, where it is a real one.
    pub card: Option<Card>,
    /// The programs between us and a device behind a runtime, where it is a real one.
    pub software: Option<Software>,
    /// What of the platform is not as its file says, because the user changed it; of runtimes, which others do not answer.
    pub changed: Vec<String>,
}

/// What the user changes of simulated platforms for one run.
#[derive(Default)]
pub struct Changes {
    /// Keys, by their paths, and their values.
    pub with: Vec<(String, String)>,
    /// Writes to registers of ports.
    pub setpci: Vec<ConfigWrite>,
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// Whether every transfer is simulated.
    pub detailed: bool,
    /// Whether the user said of whom.
    pub is_named: bool,
    /// Of devices behind runtimes, which kernels they are given.
    pub kernels: Option<PathBuf>,
}

impl Target {
    /// Opens a target by name, a simulated one after these changes; `interrupted` ends long measurements.
    pub fn open(
        name: &str,
        card: &CardArgs,
        changes: &Changes,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Target, Failure> {
        if is_real(name) {
            changes.refuse(name)?;
        }
        if name == "host" {
            let host = HostMemory::open().map_err(|error| Failure::Absent(error.to_string()))?;
            return Ok(Target::of(Box::new(host.interrupted_by(Arc::clone(interrupted)))));
        }
        if let Some(number) = name.strip_prefix(OPENCL) {
            let (kernels, mut said) = changes.kernels(name)?;
            let machine = open_cl(number, kernels, interrupted)?;
            said.extend(silent());
            let software = Some(software(machine.device()));
            return Ok(Target { software, changed: said, ..Target::of(Box::new(machine)) });
        }
        if let Some(number) = name.strip_prefix(SYCL) {
            let (kernels, said) = changes.kernels(name)?;
            let machine = open_sycl(number, kernels, interrupted)?;
            return Ok(Target { changed: said, ..Target::of(Box::new(machine)) });
        }
        if let Some(address) = card::address(name) {
            let (machine, card) = card::open(address, card, interrupted)?;
            return Ok(Target { card: Some(card), ..Target::of(machine) });
        }
        let (platform, differences) = changes.of(name)?;
        let machine = SimulatedMachine::new(&platform).map_err(|error| Failure::Usage(error.to_string()))?;
        let machine = machine.interrupted_by(Arc::clone(interrupted));
        let machine = if changes.detailed { machine.in_detail() } else { machine };
        let formula = FormulaMachine::new(&platform, machine.facts());
        let (formula, platform) = (Some(formula), Some(platform));
        Ok(Target { formula, platform, changed: differences, ..Target::of(Box::new(machine)) })
    }

    /// A machine of which nothing else is known.
    pub fn of(machine: Box<dyn Machine>) -> Target {
        Target { machine, formula: None, platform: None, card: None, software: None, changed: Vec::new() }
    }

    /// What it is.
    pub fn facts(&self) -> &Facts {
        self.machine.facts()
    }

    /// What was told to go wrong and what came of it, in words; `formula_only` if only its formulas were asked.
    pub fn injected_faults(&self, formula_only: bool) -> Vec<String> {
        let name = &self.facts().name;
        let faults = self.platform.iter().filter(|_| formula_only).flat_map(|platform| &platform.faults);
        let left_out = faults.map(|fault| format!("{name}: {fault} by {} is in no formula", fault.told_by()));
        let injected_faults = self.machine.injected_faults().into_iter().filter(|_| !formula_only);
        injected_faults.map(|mishap| format!("{name}: {mishap}")).chain(left_out).collect()
    }

    /// The device behind a runtime, as records show it.
    pub fn runtime(&self) -> Option<Runtime> {
        let facts = self.facts().runtime.as_ref()?;
        let device_kind = match facts.kind {
            SeenKind::Cpu => DeviceKind::Cpu,
            SeenKind::Gpu => DeviceKind::Gpu,
            SeenKind::Accelerator => DeviceKind::Accelerator,
            SeenKind::Other => DeviceKind::Other,
        };
        Some(Runtime { device_kind, is_emulated: facts.is_emulated, software: self.software.clone() })
    }

    /// As records show it; `formula_only` if only its formulas were asked.
    pub fn to_record(&self, formula_only: bool) -> TargetRecord {
        let facts = self.facts();
        let origins = self.platform.as_ref().map(Platform::origins);
        TargetRecord {
            name: facts.name.clone(),
            summary: facts.summary.clone(),
            kind: match facts.time_base {
                _ if formula_only => TargetKind::Formula,
                TimeBase::Simulated => TargetKind::Simulated,
                TimeBase::Real if facts.runtime.as_ref().is_some_and(|runtime| runtime.is_emulated) => {
                    TargetKind::Emulated
                }
                TimeBase::Real => TargetKind::Real,
                TimeBase::Emulated => TargetKind::Emulated,
            },
            memcpy: facts.memcpy.clone(),
            platform: self.platform.as_ref().map(Platform::to_json),
            origins: origins.map(|[given, assumed, fitted]| Origins { given, assumed, fitted, unknown: 0 }),
            card: self.card.as_ref().map(|card| card.to_record(facts)),
            links: self.platform.as_ref().map(links).unwrap_or_default(),
            runtime: self.runtime(),
        }
    }
}

/// What names of devices behind an OpenCL runtime begin with.
const OPENCL: &str = "opencl:";
/// The same behind a SYCL one.
const SYCL: &str = "sycl:";

/// Whether a name is that of something real that no platform file describes, and that is no card either.
pub fn has_no_platform(name: &str) -> bool {
    name == "host" || name.starts_with(OPENCL) || name.starts_with(SYCL)
}

/// Whether a name is that of something real.
pub fn is_real(name: &str) -> bool {
    has_no_platform(name) || card::address(name).is_some()
}

fn open_cl(
    number: &str,
    kernels: Option<FinishedKernels>,
    interrupted: &Arc<AtomicBool>,
) -> Result<OpenClMachine, Failure> {
    OpenClMachine::open_with(place(OPENCL, number)?, kernels, Arc::clone(interrupted)).map_err(|error| match error {
        OpenClError::NoDevice { .. } | OpenClError::NotTaken { .. } | OpenClError::NoKernel { .. } => {
            Failure::Usage(error.to_string())
        }
        OpenClError::Interrupted => Failure::Interrupted,
        _ => Failure::Absent(error.to_string()),
    })
}

/// Machines to ask, one after the other.
pub type Machines = Vec<Box<dyn Machine>>;

/// Every device behind a runtime of this machine, and who does not answer, and why.
pub fn runtimes(interrupted: &Arc<AtomicBool>) -> (Machines, Vec<String>) {
    let (mut found, mut silent): (Machines, _) = (Vec::new(), Vec::new());
    for number in 0.. {
        match OpenClMachine::open(number, Arc::clone(interrupted)) {
            Ok(machine) => found.push(Box::new(machine)),
            Err(OpenClError::NoDevice { .. }) => break,
            // This one's own trouble; another may have none.
            Err(error @ OpenClError::NotBuilt { .. }) => silent.push(format!("{OPENCL}{number}: {error}")),
            Err(error @ (OpenClError::NotOpened { .. } | OpenClError::NoCompiler { .. })) => {
                silent.push(error.to_string());
            }
            Err(error) => {
                silent.push(error.to_string());
                break;
            }
        }
    }
    for number in 0.. {
        match SyclMachine::open(number, Arc::clone(interrupted)) {
            Ok(machine) => found.push(Box::new(machine)),
            Err(SyclError::NoDevice { .. }) => break,
            Err(error) => {
                silent.push(error.to_string());
                break;
            }
        }
    }
    (found, silent)
}

fn open_sycl(
    number: &str,
    kernels: Option<FinishedKernels>,
    interrupted: &Arc<AtomicBool>,
) -> Result<SyclMachine, Failure> {
    SyclMachine::open_with(place(SYCL, number)?, kernels, Arc::clone(interrupted)).map_err(|error| match error {
        SyclError::NoDevice { .. } | SyclError::OpenCl(OpenClError::NotTaken { .. } | OpenClError::NoKernel { .. }) => {
            Failure::Usage(error.to_string())
        }
        SyclError::Interrupted => Failure::Interrupted,
        _ => Failure::Absent(error.to_string()),
    })
}

/// Runtimes that are installed and that loaders pass over without a word: one of them may be what was meant.
fn silent() -> Vec<String> {
    let broken = vendors().into_iter().filter(|vendor| vendor.problem.is_some());
    broken.map(|vendor| format!("a runtime of OpenCL is left out: {vendor}")).collect()
}

/// The number of a device behind a runtime.
fn place(kind: &str, number: &str) -> Result<usize, Failure> {
    let wrong = || Failure::Usage(format!("'{kind}{number}' names no device: they are numbered, {kind}0"));
    number.parse().map_err(|_| wrong())
}

/// What a runtime says of itself and of its device.
fn software(device: &Device) -> Software {
    Software {
        platform_name: device.platform.clone(),
        platform_version: device.platform_version.clone(),
        device_name: device.name.clone(),
        device_version: device.version.clone(),
        driver_version: device.driver.clone(),
        loader_library: device.loader.clone(),
    }
}

/// The links of a platform.
fn links(platform: &Platform) -> Vec<Link> {
    let link = |link: LinkEnds| {
        let (generation, width_lanes) = platform.trained_at(link);
        Link { name: link.below.to_owned(), above: link.above.to_owned(), generation, width_lanes }
    };
    platform.links().into_iter().map(link).collect()
}

/// A platform by preset name or file.
pub fn platform(name: &str) -> Result<Platform, Failure> {
    draft(name)?.complete().map_err(|error| refused(&error))
}

impl Changes {
    /// Those of a command line.
    pub fn wanted(args: &BenchArgs) -> Changes {
        let faults = args.fault.clone();
        let (with, setpci, detailed) = (args.with.clone(), args.setpci.clone(), args.no_fast_forward);
        Changes { with, setpci, faults, detailed, is_named: !args.on.is_empty(), kernels: args.kernels.clone() }
    }

    /// The kernels that the user names, and that the target of this name was given them.
    fn kernels(&self, name: &str) -> Result<(Option<FinishedKernels>, Vec<String>), Failure> {
        let Some(file) = &self.kernels else { return Ok((None, Vec::new())) };
        Ok((
            Some(input::kernels(file)?),
            vec![format!("{name}: its kernels are those of {}, by --kernels", file.display())],
        ))
    }

    /// Refuses what only other targets than these can be given.
    pub fn check(&self, names: &[&str]) -> Result<(), Failure> {
        let is_behind_runtime = |name: &&str| name.starts_with(OPENCL) || name.starts_with(SYCL);
        if self.kernels.is_some() && !names.iter().any(is_behind_runtime) {
            let advice = "name one, for example --on opencl:0";
            return Err(Failure::Usage(format!("--kernels is about devices behind runtimes: {advice}")));
        }
        Ok(())
    }

    /// Real machines are not changed.
    pub fn refuse(&self, name: &str) -> Result<(), Failure> {
        let what = match (self.setpci.is_empty(), self.with.first()) {
            (false, _) => {
                format!("--setpci: '{name}' is real, and Lanemark writes to simulated ports only; use setpci")
            }
            (true, Some((key, _))) => {
                format!("--with {key}: '{name}' is real, and only simulated platforms have numbers to change")
            }
            (true, None) => match self.faults.first() {
                Some(fault) => {
                    format!("--fault {fault}: '{name}' is real, and only simulated platforms fail by order")
                }
                None => return Ok(()),
            },
        };
        if !self.is_named {
            let hint = "without --on it is asked too: add --on PLATFORM, such as --on card-gen5-x16";
            return Err(Failure::Usage(format!("{what}; {hint}")));
        }
        Err(Failure::Usage(what))
    }

    /// The platform of this name after the changes, and what they were.
    pub fn of(&self, name: &str) -> Result<(Platform, Vec<String>), Failure> {
        let (mut platform, mut changed) = (platform(name)?, Vec::new());
        for (key, value) in &self.with {
            let before = platform.value_text(key).unwrap_or_else(|| "absent".to_owned());
            let origin = Origin::Assumed(format!("given with --with on the command line; {before} otherwise"));
            platform =
                platform.with_text(key, value, origin).map_err(|error| Failure::Usage(format!("--with: {error}")))?;
            let value = platform.value_text(key).unwrap_or_default();
            changed.push(format!("{}: {key} is {value} by --with, and {before} in its file", platform.name));
        }
        let mut platform =
            setpci(&platform, &self.setpci).map_err(|error| Failure::Usage(format!("--setpci {error}")))?;
        for fault in &self.faults {
            platform =
                platform.with_fault(fault.clone()).map_err(|error| Failure::Usage(format!("--fault: {error}")))?;
        }
        Ok((platform, changed))
    }
}

fn refused(error: &PlatformError) -> Failure {
    Failure::Usage(error.to_string())
}

/// A platform by preset name or file, some of whose numbers may be unknown.
pub fn draft(name: &str) -> Result<Draft, Failure> {
    if let Some(found) = PRESETS.iter().find(|preset| preset.name == name) {
        return Draft::parse(&format!("platforms/{name}.toml"), found.text).map_err(|error| refused(&error));
    }
    let names = PRESETS.iter().map(|preset| preset.name).collect::<Vec<_>>().join(", ");
    let bytes = input::read(Path::new(name), input::PLATFORM).map_err(|error| {
        Failure::Usage(format!("'{name}' is no built-in platform ({names}), not 'host', not 'opencl:0' or 'sycl:0', no address of a card (0000:01:00.0), and no readable file: {error}"))
    })?;
    Draft::from_bytes(name, &bytes).map_err(|error| refused(&error))
}
