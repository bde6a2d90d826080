//! Tests of this machine and of the rights of its user, which not every machine has.

use lanemark_checks::trials;
use lanemark_checks::trials::{Available, Trial, run};
use lanemark_inventory::Inventory;
use lanemark_record::{Record, file};
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let functions = if Path::new(FUNCTIONS).exists() { Ok(()) } else { Err(format!("{FUNCTIONS}: Linux with PCI")) };
    let mut tests: Vec<Trial> = trials!(Available::optional(functions); a_live_inventory_equals_a_captured_one).into();
    tests.extend(trials!(Available::optional(ordinary_user()); a_read_only_folder_is_an_error));
    run(tests)
}

/// The PCI functions of this machine.
const FUNCTIONS: &str = "/sys/bus/pci/devices";

fn a_live_inventory_equals_a_captured_one() {
    let folder = tempfile::tempdir().unwrap();
    let tar = folder.path().join("machine.tar.gz");
    let done =
        Command::new("sh").args(["-c", lanemark_inventory::CAPTURE_SCRIPT, "capture.sh"]).arg(&tar).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let live = Inventory::of_this_machine().unwrap();
    let captured = Inventory::from_path(&tar).unwrap();
    assert_eq!(live.functions.len(), fs::read_dir(FUNCTIONS).unwrap().count());
    for (live, captured) in live.functions.iter().zip(&captured.functions) {
        assert_eq!(
            (live.address, &live.regions, &live.driver),
            (captured.address, &captured.regions, &captured.driver)
        );
        assert_eq!(
            (&live.parent, &live.vendor, &live.express.known().is_some()),
            (&captured.parent, &captured.vendor, &captured.express.known().is_some())
        );
    }
    assert_eq!((live.mtrrs, live.iommu, live.kernel), (captured.mtrrs, captured.iommu, captured.kernel));
    assert_eq!(live.processors.nodes.known().map(Vec::len), captured.processors.nodes.known().map(Vec::len));
}

/// A folder that its user may not write into.
#[cfg(unix)]
fn read_only() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("r.json"), "old").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
    folder
}

/// Whether this user may not write into a read-only folder; root may.
fn ordinary_user() -> Result<(), String> {
    let may = fs::write(read_only().path().join("probe"), "").is_ok();
    if may { Err("a user other than root, who may write into a read-only folder".to_owned()) } else { Ok(()) }
}

fn a_read_only_folder_is_an_error() {
    let folder = read_only();
    let path = folder.path().join("r.json");
    let error = file::write(&Record::new(vec![]), &path).unwrap_err().to_string();
    assert!(error.starts_with("creating a file beside"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
