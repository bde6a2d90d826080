//! `recover`: steps that recover a hung card, and their test on a simulated platform.

use crate::args::RecoverArgs;
use crate::doctor;
use crate::failure::Failure;
use crate::output::{self, terminal_width};
use lanemark_advise::recover::{Programming, differences, look, mask_differences, recovery};
use lanemark_config_space::{SimulatedFunction, functions, lspci_text};
use lanemark_inventory::{Address, Function, Inventory};
use lanemark_record::file;
use lanemark_record::recovery::{Act, CarriedOut, Changed, Done, Recovery, StepKind};
use lanemark_runner::{Changes, platform};
use lanemark_sim::{BusTree, BusTreeError, Loaded, Reported};
use serde::Serialize;
use std::path::Path;

/// `lanemark recover`
pub fn recover(args: &RecoverArgs) -> Result<(), Failure> {
    let programming = Programming { command: args.program.clone(), times: args.times };
    let Some(name) = &args.on else {
        let address = args.card.parse().map_err(|error| Failure::Usage(format!("{error}")))?;
        let steps = steps(&doctor::read(args.from.as_deref())?, address, &programming)?;
        if !args.dry_run {
            let message = "Lanemark prints the steps and does not run them on a real machine: add --dry-run, read them, and \
                           run them yourself as root; --on PLATFORM runs them on a simulated card";
            return Err(Failure::Usage(message.to_owned()));
        }
        return print(args, &steps, lanemark_report::recovery);
    };
    let changes = Changes { with: args.with.clone(), faults: args.fault.clone(), ..Changes::default() };
    let (platform, _) = changes.apply(&platform(name)?)?;
    let usage = |error: &dyn std::fmt::Display| Failure::Usage(error.to_string());
    let configured = functions(&platform).map_err(|error| usage(&error))?;
    let intact = inventory(&configured, &platform.name)?;
    let address = address(&args.card, &configured)?;
    let mut tree = BusTree::new(&platform).map_err(|error| usage(&error))?;
    // For a bridge this returns an error that names the devices below it.
    steps(&intact, address, &programming)?;
    let first_load = load_text(tree.load(address.function).map_err(|error| usage(&error))?);
    let at_first = inventory(&tree.functions(), &platform.name)?;
    let steps = steps(&at_first, address, &programming)?;
    if args.dry_run {
        return print(args, &steps, lanemark_report::recovery);
    }
    let seen = Seen { machine: &platform.name, addresses: addresses(&steps)?, intact };
    let reported_at_first = tree.reported().iter().map(Reported::to_string).collect();
    let left_out = |kind: StepKind| args.without.iter().any(|without| without.kind() == kind);
    let mut done = Vec::new();
    for step in steps.steps {
        let is_left_out = left_out(step.kind);
        done.push(seen.carry_out(&mut tree, step, is_left_out)?);
    }
    let last = tree.load(address.function).map_err(|error| usage(&error))?;
    let at_last = inventory(&tree.functions(), &platform.name)?;
    let mut differences = differences(&seen.intact, &at_last, &seen.addresses);
    differences.extend(mask_differences(&seen.intact, &at_last, &seen.addresses));
    let is_back = last.bytes.is_some() && differences.is_empty();
    let all = CarriedOut {
        at_first: seen.states(&at_first),
        machine: platform.name.clone(),
        first_load,
        reported_at_first,
        done,
        last_load: load_text(last),
        differences,
    };
    print(args, &all, lanemark_report::carried_out)?;
    if is_back {
        Ok(())
    } else {
        Err(Failure::Check(format!("{address} of {} differs from its state before the fault", platform.name)))
    }
}

/// Prints `what` as text or as JSON.
fn print<T: Serialize>(args: &RecoverArgs, what: &T, text: fn(&T, Option<u16>) -> String) -> Result<(), Failure> {
    output::text(&if args.json { file::to_json(what) } else { text(what, terminal_width()) }, None)
}

fn steps(inventory: &Inventory, address: Address, programming: &Programming) -> Result<Recovery, Failure> {
    recovery(inventory, address, programming).map_err(|error| Failure::Usage(error.to_string()))
}

/// The inventory of simulated functions.
fn inventory(functions: &[SimulatedFunction], name: &str) -> Result<Inventory, Failure> {
    Inventory::from_lspci(&lspci_text(functions), Path::new(name)).map_err(|error| Failure::Usage(error.to_string()))
}

/// Finds a function of a simulated platform, by its address or the name of its port.
fn address(card: &str, functions: &[SimulatedFunction]) -> Result<Address, Failure> {
    let function = functions.iter().find(|function| function.port == card);
    let text = function.map_or_else(|| card.to_owned(), |function| function.address.to_string());
    text.parse().map_err(|error| {
        let names = functions.iter().map(|function| function.port.as_str()).collect::<Vec<_>>().join(", ");
        Failure::Usage(format!("'{card}' is not a port of the platform ({names}); {error}"))
    })
}

/// Addresses of a card and of the ports above it, topmost port first.
fn addresses(recovery: &Recovery) -> Result<Vec<Address>, Failure> {
    let names = recovery.ports.iter().rev().chain(&recovery.functions);
    names.map(|name| name.parse().map_err(|error| Failure::Usage(format!("{error}")))).collect()
}

fn load_text(loaded: Loaded) -> String {
    let (address, took) = (loaded.address, loaded.took);
    match loaded.bytes {
        Some(bytes) => format!("{:08x} from {address:#x}, after {took}", u32::from_le_bytes(bytes)),
        None => format!("all ones and no data from {address:#x}, after {took}"),
    }
}

/// The simulated devices whose state is compared before and after each step.
struct Seen<'a> {
    machine: &'a str,
    addresses: Vec<Address>,
    /// State before the fault.
    intact: Inventory,
}

impl Seen<'_> {
    fn states(&self, inventory: &Inventory) -> Vec<(String, String)> {
        let state_of = |function: Option<&Function>| function.map_or_else(|| "absent".to_owned(), look);
        self.addresses.iter().map(|address| (address.to_string(), state_of(inventory.function(*address)))).collect()
    }

    fn carry_out(
        &self,
        tree: &mut BusTree,
        step: lanemark_record::recovery::Step,
        is_left_out: bool,
    ) -> Result<Done, Failure> {
        let before = self.states(&inventory(&tree.functions(), self.machine)?);
        let known = tree.reported().len();
        let acts = step.acts.iter().filter(|_| !is_left_out);
        let mut failures: Vec<String> =
            acts.filter_map(|act| self::act(tree, *act).err()).map(|error| error.to_string()).collect();
        failures.dedup();
        let now = inventory(&tree.functions(), self.machine)?;
        if step.kind == StepKind::Check {
            failures.extend(differences(&self.intact, &now, &self.addresses));
        }
        let both = before.into_iter().zip(self.states(&now));
        let changes = both.filter(|(before, after)| before != after);
        let changes = changes.map(|((function, before), (_, after))| Changed { function, before, after });
        Ok(Done {
            left_out: is_left_out.then(|| format!("--without {}", step.kind.name())),
            failures,
            changes: changes.collect(),
            reported: tree.reported()[known..].iter().map(Reported::to_string).collect(),
            step,
        })
    }
}

fn act(tree: &mut BusTree, act: Act) -> Result<(), BusTreeError> {
    match act {
        Act::Write { function, register, value } => tree.write(function, register, value),
        Act::Remove(function) => tree.remove(function),
        Act::Program(function) => tree.program(function),
        Act::Rescan { bus } => tree.rescan(bus),
    }
}
