//! Binding of a PCI function to another driver, on a folder that imitates sysfs. `checks/guest` has a real kernel.

use lanemark_hw::linux_sysfs::{Address, System};
use lanemark_hw::pci_driver::{Binding, DriverError, Journal, Restoration, RunMark, Step};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const CARD: &str = "0000:01:00.0";
const OTHER: &str = "0000:01:00.1";

/// An imitation of sysfs with a card, whose driver is `nvme`, in an IOMMU group.
struct Slot(tempfile::TempDir);

impl Slot {
    fn new() -> Slot {
        let slot = Slot(tempfile::tempdir().unwrap());
        slot.function(CARD);
        for driver in ["nvme", "igb", "vfio-pci", "pcieport"] {
            fs::create_dir_all(slot.at("sys/bus/pci/drivers").join(driver)).unwrap();
        }
        slot.bound(CARD, "nvme");
        fs::write(slot.at("sys/bus/pci/drivers_probe"), "").unwrap();
        slot
    }

    fn at(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn device(&self, address: &str) -> PathBuf {
        self.at("sys/bus/pci/devices").join(address)
    }

    fn system(&self) -> System {
        System::at(self.0.path())
    }

    /// Adds a function in the IOMMU group 5.
    fn function(&self, address: &str) {
        let folder = self.device(address);
        fs::create_dir_all(&folder).unwrap();
        for (file, text) in [
            ("vendor", "0x1b36"),
            ("device", "0x0010"),
            ("subsystem_vendor", "0x1af4"),
            ("subsystem_device", "0x1100"),
            ("revision", "0x02"),
            ("class", "0x010802"),
            ("driver_override", "(null)"),
        ] {
            fs::write(folder.join(file), format!("{text}\n")).unwrap();
        }
        let group = self.at("sys/kernel/iommu_groups/5");
        fs::create_dir_all(group.join("devices")).unwrap();
        symlink(&group, folder.join("iommu_group")).unwrap();
        symlink(&folder, group.join("devices").join(address)).unwrap();
    }

    /// Binds a function, as the kernel does.
    fn bound(&self, address: &str, driver: &str) {
        let link = self.device(address).join("driver");
        let _ = fs::remove_file(&link);
        symlink(self.at("sys/bus/pci/drivers").join(driver), link).unwrap();
    }

    /// Adds a device of a class below the card.
    fn below(&self, class: &str, name: &str) -> PathBuf {
        let folder = self.device(CARD).join(class).join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::create_dir_all(self.at("sys/class").join(class)).unwrap();
        symlink(&folder, self.at("sys/class").join(class).join(name)).unwrap();
        folder
    }

    fn binding(&self) -> Result<Binding, DriverError> {
        Binding::new(&self.system(), address(CARD), "vfio-pci", false)
    }

    fn refusal(&self) -> String {
        self.binding().unwrap_err().to_string()
    }

    /// Writes a journal of a binding to vfio-pci.
    fn journal(&self, identity: &str, driver: &str) {
        fs::create_dir_all(self.at("run/lanemark")).unwrap();
        let text = format!("identity = {identity}\ndriver = {driver}\ndriver_override =\nto = vfio-pci\n");
        fs::write(Journal::path(&self.system(), address(CARD)), text).unwrap();
    }
}

fn address(text: &str) -> Address {
    text.parse().unwrap()
}

/// The steps as shell commands, without the root folder.
fn shown(steps: &[Step], root: &Path) -> Vec<String> {
    steps.iter().map(|step| step.to_string().replace(root.to_str().unwrap(), "")).collect()
}

#[test]
fn the_steps_to_another_driver_and_back_are_known_before_the_first() {
    let slot = Slot::new();
    assert_eq!(
        shown(slot.binding().unwrap().steps(), slot.0.path()),
        [
            "echo vfio-pci > /sys/bus/pci/devices/0000:01:00.0/driver_override",
            "echo 0000:01:00.0 > /sys/bus/pci/drivers/nvme/unbind",
            "echo 0000:01:00.0 > /sys/bus/pci/drivers_probe",
        ]
    );
    slot.journal("1b36:0010 1af4:1100 rev 02", "nvme");
    slot.bound(CARD, "vfio-pci");
    let restoration = Restoration::new(&slot.system(), address(CARD)).unwrap();
    assert_eq!(
        shown(restoration.steps(), slot.0.path()),
        [
            "echo > /sys/bus/pci/devices/0000:01:00.0/driver_override",
            "echo 0000:01:00.0 > /sys/bus/pci/drivers/vfio-pci/unbind",
            "echo 0000:01:00.0 > /sys/bus/pci/drivers/nvme/bind",
        ]
    );
    // Killed before the first step: only the override may have changed.
    slot.bound(CARD, "nvme");
    let restoration = Restoration::new(&slot.system(), address(CARD)).unwrap();
    assert_eq!(shown(restoration.steps(), slot.0.path()), ["echo > /sys/bus/pci/devices/0000:01:00.0/driver_override"]);
}

#[test]
fn a_function_without_a_driver_is_not_unbound_first() {
    let slot = Slot::new();
    fs::remove_file(slot.device(CARD).join("driver")).unwrap();
    assert_eq!(slot.binding().unwrap().steps().len(), 2);
    slot.journal("1b36:0010 1af4:1100 rev 02", "");
    slot.bound(CARD, "vfio-pci");
    let restoration = Restoration::new(&slot.system(), address(CARD)).unwrap();
    assert_eq!(restoration.steps().len(), 2, "the override, and unbinding");
}

#[test]
fn vfio_needs_an_iommu_and_names_other_drivers_of_its_group() {
    let slot = Slot::new();
    slot.function(OTHER);
    for driver in ["vfio-pci", "pcieport"] {
        slot.bound(OTHER, driver);
        assert_eq!(slot.binding().unwrap().notes(), &[] as &[String], "{driver}");
    }
    slot.bound(OTHER, "igb");
    let notes = slot.binding().unwrap().notes().to_vec();
    assert!(notes.len() == 1 && notes[0].contains("0000:01:00.1") && notes[0].contains("'igb'"), "{notes:?}");
    // Another driver does not need the group.
    let other = Binding::new(&slot.system(), address(CARD), "igb", false).unwrap();
    assert!(other.notes().is_empty());
    fs::remove_file(slot.device(CARD).join("iommu_group")).unwrap();
    let refusal = slot.refusal();
    assert!(refusal.contains("behind no IOMMU") && refusal.contains("intel_iommu=on"), "{refusal}");
    // Unless the user has told the kernel to permit it.
    let parameter = slot.at("sys/module/vfio/parameters/enable_unsafe_noiommu_mode");
    fs::create_dir_all(parameter.parent().unwrap()).unwrap();
    fs::write(&parameter, "N\n").unwrap();
    assert_eq!(slot.refusal(), refusal);
    fs::write(&parameter, "Y\n").unwrap();
    let notes = slot.binding().unwrap().notes().to_vec();
    assert!(notes.len() == 1 && notes[0].contains("can reach all memory"), "{notes:?}");
}

#[test]
fn a_mounted_drive_is_found_by_its_number_whatever_its_name_is() {
    let slot = Slot::new();
    let disk = slot.below("block", "nvme0n1");
    fs::write(disk.join("dev"), "259:0\n").unwrap();
    fs::create_dir_all(slot.at("dev")).unwrap();
    fs::write(slot.at("dev/nvme0n1"), "").unwrap();
    assert!(slot.refusal().contains("mountinfo"), "without a list of mounts nothing is known: {}", slot.refusal());
    fs::create_dir_all(slot.at("proc/self")).unwrap();
    let mounts = |text: &str| fs::write(slot.at("proc/self/mountinfo"), text).unwrap();
    mounts("22 1 259:1 / /other rw - ext4 /dev/nvme0n1p1 rw\n");
    assert!(slot.binding().is_ok(), "another device");
    mounts("22 1 259:0 / / rw shared:1 - ext4 /dev/root rw\n");
    let refusal = slot.refusal();
    assert!(refusal.contains("/dev/nvme0n1 is mounted at /; unmount it"), "{refusal}");
    assert!(Binding::new(&slot.system(), address(CARD), "vfio-pci", true).is_err(), "consent does not unmount it");
    mounts("");
    fs::remove_file(slot.at("dev/nvme0n1")).unwrap();
    assert!(slot.refusal().contains("opening"), "a drive that cannot be examined: {}", slot.refusal());
}

#[test]
fn a_program_that_has_a_file_of_vfio_open_is_found_by_its_device_number() {
    let slot = Slot::new();
    slot.function(OTHER);
    slot.journal("1b36:0010 1af4:1100 rev 02", "nvme");
    slot.bound(CARD, "vfio-pci");
    let refusal =
        || Restoration::new(&slot.system(), address(CARD)).map(drop).map_err(|error| error.to_string()).unwrap_err();
    let is_free = || Restoration::new(&slot.system(), address(CARD)).is_ok();
    // Linux 6.1 has this folder without a number: there is no file to open.
    let vfio_device = |function: &str, name: &str| {
        let folder = slot.device(function).join("vfio-dev").join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    };
    let card = vfio_device(CARD, "vfio3");
    assert!(is_free(), "no number");
    fs::write(card.join("dev"), "1:3\n").unwrap();
    assert!(refusal().contains("listing the processes"), "without processes nothing is known: {}", refusal());
    // A program with files of two devices, which have the numbers of /dev/null and /dev/zero.
    let files = slot.at("proc/123/fd");
    fs::create_dir_all(&files).unwrap();
    fs::create_dir_all(slot.at("proc/fs")).unwrap();
    fs::create_dir_all(slot.at("vfio")).unwrap();
    let opened = |number: &str, name: &str, device: &str| {
        symlink(device, slot.at("vfio").join(name)).unwrap();
        symlink(slot.at("vfio").join(name), files.join(number)).unwrap();
    };
    fs::create_dir_all(slot.at("proc/124")).unwrap();
    opened("3", "vfio4", "/dev/zero");
    fs::write(slot.at("vfio/notes"), "").unwrap();
    symlink(slot.at("vfio/notes"), files.join("4")).unwrap();
    assert!(is_free(), "the device of another card");
    opened("5", "renamed", "/dev/null");
    assert!(refusal().contains("a program uses it through"), "{}", refusal());
    assert!(refusal().contains("dev/vfio/devices/vfio3; end that program first"), "{}", refusal());
    let owned = Binding::new(&slot.system(), address(OTHER), "vfio-pci", true).map(drop).unwrap_err().to_string();
    assert!(owned.contains("0000:01:00.1 is in use") && owned.contains("vfio3"), "a function of its group: {owned}");
    fs::remove_file(files.join("5")).unwrap();
    assert!(is_free(), "the program has closed it");
}

#[test]
fn a_path_of_a_multipath_drive_and_virtual_functions_are_never_taken() {
    let slot = Slot::new();
    fs::create_dir_all(slot.at("proc/self")).unwrap();
    fs::write(slot.at("proc/self/mountinfo"), "").unwrap();
    let owned = || Binding::new(&slot.system(), address(CARD), "vfio-pci", true).map(drop).unwrap_err().to_string();
    let path = slot.below("block", "nvme0c0n1");
    fs::write(path.join("hidden"), "1\n").unwrap();
    assert!(owned().contains("one of several paths"), "{}", owned());
    fs::write(path.join("hidden"), "0\n").unwrap();
    fs::write(path.join("dev"), "259:0\n").unwrap();
    fs::create_dir_all(slot.at("dev")).unwrap();
    fs::write(slot.at("dev/nvme0c0n1"), "").unwrap();
    fs::write(slot.device(CARD).join("sriov_numvfs"), "2\n").unwrap();
    assert!(owned().contains("2 virtual functions"), "{}", owned());
    fs::write(slot.device(CARD).join("sriov_numvfs"), "0\n").unwrap();
    assert!(slot.binding().is_ok());
}

#[test]
fn an_interface_that_is_up_and_the_console_yield_to_consent() {
    let slot = Slot::new();
    let interface = slot.below("net", "eth0");
    for (state, is_free) in
        [("down", true), ("notpresent", true), ("up", false), ("unknown", false), ("dormant", false)]
    {
        fs::write(interface.join("operstate"), format!("{state}\n")).unwrap();
        assert_eq!(slot.binding().is_ok(), is_free, "{state}");
    }
    assert!(slot.refusal().contains("ip link set eth0 down"), "{}", slot.refusal());
    fs::write(interface.join("operstate"), "down\n").unwrap();
    fs::write(slot.device(CARD).join("boot_vga"), "1\n").unwrap();
    assert!(slot.refusal().contains("the console"), "{}", slot.refusal());
    assert!(Binding::new(&slot.system(), address(CARD), "vfio-pci", true).is_ok());
}

#[test]
fn bridges_unknown_drivers_and_missing_functions_are_refused() {
    let slot = Slot::new();
    let to = |driver: &str| Binding::new(&slot.system(), address(CARD), driver, false).unwrap_err().to_string();
    assert!(to("uio_pci_generic").contains("modprobe uio_pci_generic"));
    for name in ["", "..", "a/b", "vfio pci"] {
        assert!(to(name).contains("not the name of a driver"), "{name}");
    }
    let none = Binding::new(&slot.system(), address("0000:02:00.0"), "vfio-pci", false).unwrap_err().to_string();
    assert!(none.contains("0000:02:00.0 does not exist"), "{none}");
    fs::write(slot.device(CARD).join("class"), "0x060400\n").unwrap();
    assert!(slot.refusal().contains("is a bridge (class 060400)"), "{}", slot.refusal());
}

#[test]
fn if_the_kernel_ignores_the_steps_the_former_state_is_restored() {
    let slot = Slot::new();
    // Nothing acts on the files of the imitation.
    let error = slot.binding().unwrap().carry_out().unwrap_err().to_string();
    assert!(error.contains("it has 'nvme' instead of 'vfio-pci'"), "{error}");
    assert_eq!(Journal::all(&slot.system()).unwrap(), []);
    assert_eq!(fs::read_to_string(slot.device(CARD).join("driver_override")).unwrap(), "\n");
}

#[test]
fn a_function_that_was_not_restored_is_not_bound_again() {
    let slot = Slot::new();
    slot.journal("1b36:0010 1af4:1100 rev 02", "nvme");
    assert!(slot.refusal().contains("restore it with: lanemark unbind 0000:01:00.0"), "{}", slot.refusal());
    assert_eq!(Journal::all(&slot.system()).unwrap(), [address(CARD)]);
}

#[test]
fn another_device_in_the_slot_or_another_driver_is_not_restored() {
    let slot = Slot::new();
    let restored = || Restoration::new(&slot.system(), address(CARD)).unwrap_err().to_string();
    assert!(restored().contains("nothing to restore"), "{}", restored());
    slot.journal("1b36:0010 1af4:1100 rev 03", "nvme");
    assert!(restored().contains("rev 03 in the journal, 1b36:0010 1af4:1100 rev 02 in the slot"), "{}", restored());
    slot.journal("1b36:0010 1af4:1100 rev 02", "nvme");
    slot.bound(CARD, "igb");
    assert!(restored().contains("bound to 'igb' and not to 'vfio-pci'"), "{}", restored());
}

#[test]
fn the_driver_is_changed_by_one_process_at_a_time() {
    let slot = Slot::new();
    let binding = slot.binding().unwrap();
    fs::create_dir_all(slot.at("run/lanemark")).unwrap();
    let lock = fs::File::create(slot.at("run/lanemark").join(format!("{CARD}.lock"))).unwrap();
    lock.lock().unwrap();
    let error = binding.clone().carry_out().unwrap_err().to_string();
    assert!(error.contains("another process"), "{error}");
    assert_eq!(Journal::all(&slot.system()).unwrap(), []);
}

#[test]
fn steps_are_not_carried_out_if_the_driver_changed_after_they_were_printed() {
    let slot = Slot::new();
    let binding = slot.binding().unwrap();
    slot.bound(CARD, "igb");
    let error = binding.carry_out().unwrap_err().to_string();
    assert!(error.contains("try again"), "{error}");
    slot.journal("1b36:0010 1af4:1100 rev 02", "nvme");
    slot.bound(CARD, "vfio-pci");
    let restoration = Restoration::new(&slot.system(), address(CARD)).unwrap();
    // Another process has restored the driver.
    slot.bound(CARD, "nvme");
    let error = restoration.carry_out().unwrap_err().to_string();
    assert!(error.contains("try again"), "{error}");
}

#[test]
fn a_driver_that_is_no_longer_loaded_is_named_before_the_first_step() {
    let slot = Slot::new();
    slot.journal("1b36:0010 1af4:1100 rev 02", "gone");
    slot.bound(CARD, "vfio-pci");
    let error = Restoration::new(&slot.system(), address(CARD)).unwrap_err().to_string();
    assert!(error.contains("modprobe gone"), "{error}");
    fs::remove_dir_all(slot.device(CARD)).unwrap();
    let error = Restoration::new(&slot.system(), address(CARD)).unwrap_err().to_string();
    assert!(error.contains("if it was removed, delete"), "{error}");
}

#[test]
fn a_binding_of_a_run_is_left_behind_when_its_process_has_ended() {
    let slot = Slot::new();
    let journal = "identity = 1b36:0010 1af4:1100 rev 02\ndriver = nvme\ndriver_override =\nto = vfio-pci\n";
    let mark = RunMark::new(&slot.system(), address(CARD)).unwrap();
    let path = Journal::path(&slot.system(), address(CARD));
    fs::write(&path, journal).unwrap();
    assert!(RunMark::left(&slot.system()).is_empty(), "its process runs");
    assert!(matches!(RunMark::new(&slot.system(), address(CARD)), Err(DriverError::Busy { .. })));
    drop(mark);
    let left = RunMark::left(&slot.system());
    assert!(matches!(&left[..], [Journal { to, .. }] if to == "vfio-pci"), "{left:?}");
    // The binding of a user is none of a run.
    fs::remove_file(path.with_extension("run")).unwrap();
    assert!(RunMark::left(&slot.system()).is_empty());
}

#[test]
fn the_mark_of_a_run_without_a_journal_is_removed() {
    let slot = Slot::new();
    let mark = RunMark::new(&slot.system(), address(CARD)).unwrap();
    drop(mark);
    let folder = Journal::path(&slot.system(), address(CARD)).parent().unwrap().to_path_buf();
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
}
