//! Shared code of the tests in `tests/`, which cross crates.

pub mod browser;
pub mod conformance;
pub mod live_page;
pub mod page;
pub mod pci_dump;
pub mod shown;
pub mod trials;

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

/// Gives each of `items` to `check`, several at once, and returns what it returned, in the order of `items`. These are made
/// one by one, in order, so that random ones are the same in each run.
///
/// # Panics
/// If `check` panics: with its message.
pub fn on_all_cores<Item, Found: Send>(
    items: impl IntoIterator<Item = Item, IntoIter: Send>,
    check: impl Fn(Item) -> Found + Sync,
) -> Vec<Found> {
    let left = Mutex::new(items.into_iter().enumerate());
    let worker = || {
        let next = || left.lock().expect("no worker panics while it takes an item").next();
        std::iter::from_fn(next).map(|(number, item)| (number, check(item))).collect::<Vec<_>>()
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let mut found: Vec<(usize, Found)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        let ended = workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
        ended.flatten().collect()
    });
    found.sort_by_key(|(number, _)| *number);
    found.into_iter().map(|(_, found)| found).collect()
}

/// Root folder of the repository.
#[must_use]
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_owned).unwrap_or_default()
}

/// Path of the program `lanemark`: the one that the environment variable `LANEMARK_PROGRAM` names, as `make bench` does, or the
/// one built in the profile of the running test.
///
/// # Panics
/// If the build fails.
#[must_use]
pub fn lanemark() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| match std::env::var_os("LANEMARK_PROGRAM") {
        Some(program) => PathBuf::from(program),
        None => built(&["--workspace", "--bin", "lanemark"]).join("lanemark"),
    })
}

/// Folder with `liblanemark.so` and `liblanemark.a`, built in the profile of the running test.
///
/// # Panics
/// If the build fails.
#[must_use]
pub fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| built(&["--workspace", "--lib"]))
}

/// The native module of the Python package, built in the profile of the running test.
///
/// # Panics
/// If the build fails.
#[must_use]
pub fn python_module() -> PathBuf {
    library().join("lib_lanemark.so")
}

/// Builds `what` in the profile of the running test, and returns the output folder.
///
/// `what` is of the whole workspace: a package alone has fewer features of other packages, so that they are compiled again.
fn built(what: &[&str]) -> PathBuf {
    let (mut cargo, folder) = cargo(&["build", "--quiet", "--locked"]);
    if !folder.ends_with("debug") {
        cargo.arg("--profile").args(folder.file_name());
    }
    assert!(cargo.args(what).status().is_ok_and(|status| status.success()), "{what:?} does not build");
    folder
}

/// Installs the program below `place` by the command of the README, without network access.
///
/// The package alone has fewer features of other packages than [`lanemark()`], so that all is compiled again: quickly, because
/// nothing is optimised.
///
/// # Panics
/// If the command fails.
#[must_use]
pub fn install(place: &Path) -> PathBuf {
    let (mut cargo, _) = cargo(&INSTALL);
    cargo.args(["--locked", "--offline", "--quiet", "--profile", "plain", "--root"]).arg(place);
    let done = cargo.output().expect("cargo runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    place.join("bin/lanemark")
}

/// Arguments of cargo that install the program from the root of the repository.
pub const INSTALL: [&str; 3] = ["install", "--path", "crates/cli"];

/// Cargo with `arguments` and the target folder of the running test, and the folder of its profile there.
fn cargo(arguments: &[&str]) -> (Command, PathBuf) {
    // <target>/<profile>/deps/<test>-<hash>
    let this = std::env::current_exe().expect("a test knows where it is");
    let folder = this.ancestors().nth(2).expect("tests are built in target/PROFILE/deps");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(arguments).arg("--target-dir").arg(folder.parent().expect("a profile's folder is in target"));
    cargo.current_dir(root());
    (cargo, folder.to_owned())
}

/// Compiles the C example with the header and the library of this tree, and linker arguments `link`.
///
/// # Panics
/// If compilation fails or prints a warning.
pub fn compile_c_example(program: &Path, link: &[&str]) {
    let capi = root().join("crates/capi");
    let mut cc = Command::new("cc");
    cc.args(["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1", "-I"]).arg(capi.join("include"));
    cc.arg(capi.join("examples/hello.c")).arg("-o").arg(program).arg("-L").arg(library()).args(link);
    let done = cc.output().expect("a C compiler, cc, which Rust needs for linking too");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}
