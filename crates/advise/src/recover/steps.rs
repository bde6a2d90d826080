//! Steps of a recovery, and their commands.

use super::masks::Masks;
use super::{Card, NoRecovery, look};
use lanemark_inventory::{Address, Function, Inventory};
use lanemark_record::recovery::{Act, Recovery, Step, StepKind};
use lanemark_wire::config::{AerError, AerRegister};

/// Method of programming a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programming {
    /// Command of the vendor's tool, if known.
    pub command: Option<String>,
    /// Number of runs.
    pub times: u32,
}

/// Folder of the functions in sysfs.
const SYSFS: &str = "/sys/bus/pci/devices";

/// Masks after a reset: internal errors, advisory errors and header log overflow are masked. Source: PCI Express Base
/// Specification 6.0, sections 7.8.4.3 and 7.8.4.6.
const AFTER_RESET: [u32; 2] = [0x0040_0000, 0x0000_e000];

/// Placeholder for an unknown programming command.
const NO_COMMAND: &str = "# program the card with its vendor's tool here; set the command with --program";

/// Plans the recovery of the card that contains the function at `address`.
///
/// # Errors
/// [`NoRecovery`] if there is no such function, or if it is not a card below a port.
pub fn recovery(inventory: &Inventory, address: Address, programming: &Programming) -> Result<Recovery, NoRecovery> {
    let card = Card::find(inventory, address)?;
    let (mut notes, mut keep, mut mask, mut restore) = (Vec::new(), Vec::new(), Writes::default(), Writes::default());
    let (mut clear, mut unseen) = (Writes::default(), Vec::new());
    for function in card.all() {
        let at = function.address;
        match Masks::of(function) {
            Masks::Seen(held) => {
                if held[0] & AerError::SurpriseDown.status().raw != 0 {
                    notes.push(format!(
                        "{at}: Surprise Down is already masked; if an earlier attempt left it masked, restore {:08x} and {:08x}, the values after a reset",
                        AFTER_RESET[0], AFTER_RESET[1]
                    ));
                }
                restore.add(at, AerRegister::MASKS.into_iter().zip(held));
            }
            Masks::Unseen(because) => {
                keep.extend(
                    AerRegister::MASKS.map(|register| format!("{}=$(setpci -s {at} {register})", kept(at, register))),
                );
                restore.commands.push(format!(
                    "setpci -s {at} {}",
                    AerRegister::MASKS.map(|register| format!("{register}=${}", kept(at, register))).join(" ")
                ));
                unseen.push(format!("{at}: {because}"));
            }
            Masks::None(because) => {
                notes.push(format!("{at}: {because}"));
                continue;
            }
        }
        mask.add(at, AerRegister::MASKS.map(|register| (register, u32::MAX)));
        clear.add(at, AerRegister::STATUSES.map(|register| (register, u32::MAX)));
    }
    let mut steps = vec![unbind(&card, &mut notes)];
    steps.push((!keep.is_empty()).then(|| Step {
        kind: StepKind::Keep,
        commands: keep,
        acts: Vec::new(),
        why: format!(
            "the mask values were not seen ({}); as root, this shell saves them for the last step",
            unseen.join("; ")
        ),
    }));
    let masked = "programming drops the link, which an unmasked port reports as a fatal error; the system may then \
                  panic, or the port may keep the link disabled (DPC)";
    steps.push(mask.step(StepKind::Mask, masked));
    steps.push(Some(remove(&card)));
    steps.extend(programmed(&card, programming).map(Some));
    steps.push(Some(rescan(&card)));
    let cleared = "status bits are set even for masked errors and would be taken for new errors; bits that are set \
                   after this step are new";
    steps.push(clear.step(StepKind::Clear, cleared));
    steps.push(Some(check(&card)));
    let restored = "while a port is masked, it hides all errors of everything below it";
    steps.push(restore.step(StepKind::Restore, restored));
    if programming.command.is_none() {
        notes.push(
            "the programming command is specific to the vendor: --program \"COMMAND\"; --times 2 runs it twice"
                .to_owned(),
        );
    }
    let names = |functions: &[&Function]| functions.iter().map(|function| function.address.to_string()).collect();
    Ok(Recovery {
        source: inventory.source.to_string(),
        functions: names(&card.functions),
        ports: names(&card.ports),
        steps: steps.into_iter().flatten().collect(),
        notes,
    })
}

/// Register writes of several functions, one command per function.
#[derive(Default)]
struct Writes {
    commands: Vec<String>,
    acts: Vec<Act>,
}

impl Writes {
    fn add(&mut self, at: Address, values: impl IntoIterator<Item = (AerRegister, u32)>) {
        let values: Vec<(AerRegister, u32)> = values.into_iter().collect();
        self.acts.extend(values.iter().map(|(register, value)| Act::Write {
            function: at.function,
            register: *register,
            value: *value,
        }));
        let values: Vec<String> = values.iter().map(|(register, value)| format!("{register}={value:08x}")).collect();
        self.commands.push(format!("setpci -s {at} {}", values.join(" ")));
    }

    fn step(self, kind: StepKind, why: &str) -> Option<Step> {
        let Writes { commands, acts } = self;
        (!commands.is_empty()).then(|| Step { kind, commands, acts, why: why.to_owned() })
    }
}

/// Name of the shell variable that saves a register: `UEMsk_0000_01_00_0`.
fn kept(at: Address, register: AerRegister) -> String {
    format!("{}_{}", register.name(), at.to_string().replace([':', '.'], "_"))
}

/// Unbinds drivers and removes virtual functions.
fn unbind(card: &Card<'_>, notes: &mut Vec<String>) -> Option<Step> {
    let mut commands = Vec::new();
    let mut drivers = Vec::new();
    for function in &card.functions {
        let at = function.address;
        if function.sriov.present().and_then(|functions| functions.enabled.get()).is_some_and(|enabled| enabled > 0) {
            commands.push(format!("echo 0 > {SYSFS}/{at}/sriov_numvfs"));
        }
        if let Some(driver) = function.driver.present() {
            commands.push(format!("echo {at} > {SYSFS}/{at}/driver/unbind"));
            drivers.push(format!("{driver} at {at}"));
        } else if let Some(why) = function.driver.why() {
            notes.push(format!("{at}: the driver was not seen ({}); if one is bound, unbind it first", why.because()));
        }
    }
    let who = if drivers.is_empty() {
        "virtual functions are enabled".to_owned()
    } else {
        format!("bound: {}", drivers.join(", "))
    };
    (!commands.is_empty()).then(|| Step {
        kind: StepKind::Unbind,
        commands,
        acts: Vec::new(),
        why: format!("{who}; end the programs that use the card, then unbind its driver, by this command or by rmmod"),
    })
}

fn remove(card: &Card<'_>) -> Step {
    // Function 0 last: a device without function 0 does not exist.
    let functions = || card.functions.iter().rev().map(|function| function.address);
    Step {
        kind: StepKind::Remove,
        commands: functions().map(|at| format!("echo 1 > {SYSFS}/{at}/remove")).collect(),
        acts: functions().map(|at| Act::Remove(at.function)).collect(),
        why:
            "the system initialises only new functions: a function that is not removed keeps register settings that the card has lost"
                .to_owned(),
    }
}

fn programmed(card: &Card<'_>, programming: &Programming) -> impl Iterator<Item = Step> {
    let command = programming.command.clone().unwrap_or_else(|| NO_COMMAND.to_owned());
    let (times, first) = (programming.times, card.functions[0].address.function);
    (1..=times).map(move |time| Step {
        kind: StepKind::Program,
        commands: vec![command.clone()],
        acts: vec![Act::Program(first)],
        why: match times {
            1 => "the card restarts; use a separate cable such as JTAG, because its link may be what is broken"
                .to_owned(),
            times => format!("run {time} of {times}: the card restarts; use a separate cable such as JTAG"),
        },
    })
}

fn rescan(card: &Card<'_>) -> Step {
    let (port, address) = (card.port(), card.functions[0].address);
    let bus = address.bus();
    Step {
        kind: StepKind::Rescan,
        commands: vec![format!("echo 1 > {SYSFS}/{port}/pci_bus/{:04x}:{bus:02x}/rescan", address.domain)],
        acts: vec![Act::Rescan { bus }],
        why: format!("the system finds the card below {port} and assigns its addresses"),
    }
}

fn check(card: &Card<'_>) -> Step {
    let commands = card.functions.iter().chain(card.ports.first());
    let commands =
        commands.map(|function| format!("lspci -vvs {} | grep -E 'LnkSta:|Region [0-5]:|[UC]ESta:'", function.address));
    let expected = card.functions.iter().map(|function| format!("{}: {}", function.address, look(function)));
    Step {
        kind: StepKind::Check,
        commands: commands.collect(),
        acts: Vec::new(),
        why: format!(
            "link and BARs should be as before, and no error should be set; when this plan was made they were: {}",
            expected.collect::<Vec<_>>().join("; ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::sample::{self, CARD, PORT, card_below, known};
    use lanemark_inventory::{Aer, Express, Seen, Why, config};
    use lanemark_wire::config::PortType;

    fn once() -> Programming {
        Programming { command: None, times: 1 }
    }

    fn of(machine: &Inventory, address: &str) -> Result<Recovery, NoRecovery> {
        recovery(machine, address.parse().unwrap(), &once())
    }

    fn card_of(machine: &Inventory) -> Recovery {
        of(machine, "01:00.0").unwrap()
    }

    fn step(recovery: &Recovery, kind: StepKind) -> Option<&Step> {
        recovery.steps.iter().find(|step| step.kind == kind)
    }

    /// Sets configuration space with these masks.
    fn masked(machine: &mut Inventory, place: usize, [uncorrectable, correctable]: [u32; 2]) {
        let bytes = sample::config(|bytes| {
            bytes[0x100..0x104].copy_from_slice(&0x0002_0001_u32.to_le_bytes());
            bytes[0x108..0x10c].copy_from_slice(&uncorrectable.to_le_bytes());
            bytes[0x114..0x118].copy_from_slice(&correctable.to_le_bytes());
        });
        machine.functions[place].config = known(bytes);
        machine.functions[place].aer = known(Some(Aer::unseen(&Why::NotInDump)));
        machine.functions[place].driver = known(None);
    }

    #[test]
    fn masks_are_set_first_and_restored_at_the_end() {
        let mut machine = sample::healthy();
        masked(&mut machine, PORT, [0x40_0000, 0xe000]);
        masked(&mut machine, CARD, [0, 0x2000]);
        let recovery = card_of(&machine);
        let kinds: Vec<&str> = recovery.steps.iter().map(|step| step.kind.name()).collect();
        assert_eq!(kinds, ["mask", "remove", "program", "rescan", "clear", "check", "restore"]);
        let commands = |kind| step(&recovery, kind).unwrap().commands.clone();
        assert_eq!(
            commands(StepKind::Mask),
            [
                "setpci -s 0000:01:00.0 ECAP_AER+08.l=ffffffff ECAP_AER+14.l=ffffffff",
                "setpci -s 0000:00:01.0 ECAP_AER+08.l=ffffffff ECAP_AER+14.l=ffffffff"
            ]
        );
        assert_eq!(
            commands(StepKind::Restore),
            [
                "setpci -s 0000:01:00.0 ECAP_AER+08.l=00000000 ECAP_AER+14.l=00002000",
                "setpci -s 0000:00:01.0 ECAP_AER+08.l=00400000 ECAP_AER+14.l=0000e000"
            ]
        );
        assert_eq!(commands(StepKind::Remove), ["echo 1 > /sys/bus/pci/devices/0000:01:00.0/remove"]);
        assert_eq!(commands(StepKind::Rescan), ["echo 1 > /sys/bus/pci/devices/0000:00:01.0/pci_bus/0000:01/rescan"]);
    }

    #[test]
    fn unseen_masks_are_saved_by_the_shell_which_needs_root() {
        let mut machine = sample::healthy();
        masked(&mut machine, PORT, [0; 2]);
        masked(&mut machine, CARD, [0; 2]);
        if let Seen::Known(bytes) = &mut machine.functions[CARD].config {
            bytes.truncate(64);
        }
        let recovery = card_of(&machine);
        let keep = step(&recovery, StepKind::Keep).unwrap();
        assert_eq!(
            keep.commands,
            [
                "UEMsk_0000_01_00_0=$(setpci -s 0000:01:00.0 ECAP_AER+08.l)",
                "CEMsk_0000_01_00_0=$(setpci -s 0000:01:00.0 ECAP_AER+14.l)"
            ]
        );
        assert!(
            keep.why
                .contains("0000:01:00.0: only 64 B of its configuration space were readable; reading more needs root")
        );
        let restore = &step(&recovery, StepKind::Restore).unwrap().commands;
        assert_eq!(
            restore[0],
            "setpci -s 0000:01:00.0 ECAP_AER+08.l=$UEMsk_0000_01_00_0 ECAP_AER+14.l=$CEMsk_0000_01_00_0"
        );
    }

    #[test]
    fn masks_left_by_an_earlier_attempt_are_reported() {
        let noted = |mask: u32| {
            let mut machine = sample::healthy();
            masked(&mut machine, PORT, [mask, 0]);
            card_of(&machine).notes.iter().any(|note| note.starts_with("0000:00:01.0: Surprise Down is already masked"))
        };
        assert_eq!([noted(1 << 5), noted(!(1 << 5))], [true, false]);
    }

    #[test]
    fn every_port_on_the_path_is_masked_and_no_other() {
        let machine = sample::switch(2);
        let card = machine.functions[card_below(3)].address.to_string();
        let recovery = of(&machine, &card).unwrap();
        assert_eq!(recovery.functions, [card]);
        assert_eq!(recovery.ports, ["0000:02:01.0", "0000:01:00.0", "0000:00:01.0"]);
        assert_eq!(step(&recovery, StepKind::Mask).unwrap().commands.len(), 4);
    }

    #[test]
    fn every_function_of_the_card_is_removed_and_function_0_last() {
        let mut machine = sample::healthy();
        let mut second = machine.functions[CARD].clone();
        second.address = "01:00.1".parse().unwrap();
        machine.functions.push(second);
        let recovery = of(&machine, "01:00.1").unwrap();
        assert_eq!(recovery.functions, ["0000:01:00.0", "0000:01:00.1"]);
        let acts = &step(&recovery, StepKind::Remove).unwrap().acts;
        let first = machine.functions[CARD].address.function;
        assert_eq!((acts.len(), acts.last()), (2, Some(&Act::Remove(first))));
    }

    #[test]
    fn a_bound_driver_is_unbound_first() {
        let mut machine = sample::healthy();
        machine.functions[CARD].driver = known(Some("accel".to_owned()));
        let recovery = card_of(&machine);
        let first = &recovery.steps[0];
        assert_eq!(first.kind, StepKind::Unbind);
        assert_eq!(first.commands, ["echo 0000:01:00.0 > /sys/bus/pci/devices/0000:01:00.0/driver/unbind"]);
        assert!(first.why.starts_with("bound: accel at 0000:01:00.0; "), "{}", first.why);
        machine.functions[CARD].driver = known(None);
        assert_eq!(step(&card_of(&machine), StepKind::Unbind), None);
    }

    #[test]
    fn a_card_is_programmed_the_requested_number_of_times() {
        let programming = Programming { command: Some("jtag card.sof".to_owned()), times: 2 };
        let recovery = recovery(&sample::healthy(), "01:00.0".parse().unwrap(), &programming).unwrap();
        let programs = recovery.steps.iter().filter(|step| step.kind == StepKind::Program);
        let commands: Vec<&str> = programs.flat_map(|step| &step.commands).map(String::as_str).collect();
        assert_eq!(commands, ["jtag card.sof", "jtag card.sof"]);
    }

    #[test]
    fn functions_without_error_reporting_or_response_are_not_masked_but_named() {
        let mut machine = sample::healthy();
        machine.functions[PORT].aer = known(None);
        let dead = config::function(machine.functions[CARD].address, vec![0xff; 4096]).0;
        let parent = machine.functions[CARD].parent.clone();
        machine.functions[CARD] = Function { parent, ..dead };
        let recovery = card_of(&machine);
        assert_eq!((step(&recovery, StepKind::Mask), step(&recovery, StepKind::Restore)), (None, None));
        let notes = recovery.notes.join("\n");
        assert!(notes.contains("0000:00:01.0: it has no Advanced Error Reporting"), "{notes}");
        assert!(notes.contains("0000:01:00.0: it does not respond"), "{notes}");
    }

    #[test]
    fn functions_that_are_not_a_card_below_a_port_are_rejected_with_the_reason() {
        let says = |machine: &Inventory, address: &str| of(machine, address).unwrap_err().to_string();
        let mut machine = sample::healthy();
        let absent = "no function 0000:09:00.0 in this machine; it has 0000:00:01.0, 0000:01:00.0";
        assert_eq!(says(&machine, "09:00.0"), absent);
        machine.functions[PORT].class = known(lanemark_inventory::Class(0x06_04_00));
        assert_eq!(says(&machine, "00:01.0"), "0000:00:01.0 is a bridge, not a card; below it: 0000:01:00.0");
        machine.functions[CARD].parent = known(None);
        assert!(says(&machine, "01:00.0").starts_with("this machine contains no port above 0000:01:00.0"));
        let mut express = Express::unseen(&Why::NotInDump);
        express.kind = known(PortType::IntegratedEndpoint);
        machine.functions[CARD].express = known(Some(express));
        assert!(says(&machine, "01:00.0").contains("is integrated into the root complex"));
        machine.functions[CARD].express = known(None);
        assert!(says(&machine, "01:00.0").contains("is conventional PCI"));
        machine.functions[CARD].config = known([[0xff; 4], [0; 4]].concat());
        assert!(says(&machine, "01:00.0").contains("is a virtual function"));
    }
}
