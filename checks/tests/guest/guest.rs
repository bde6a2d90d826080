//! A booted guest that runs commands and returns their output.

use crate::initramfs::Initramfs;
use crate::module;
use crate::sharing::Place;
use flate2::read::GzDecoder;
use lanemark_checks::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time limit of a boot, which takes three seconds on an idle machine, and half a minute with [`KERNEL_WITH_CHECKS`].
const BOOT: Duration = Duration::from_secs(90);
/// Time limit of a command.
const COMMAND: Duration = Duration::from_mins(4);
/// Time limit of a guest, independent of the test.
const LIFE_S: &str = "1800";
/// The processor. Without what takes the emulator long: byte by byte, it executes the string instructions that the kernel
/// uses with ERMS or FSRM to clear and copy pages; SMAP ends a translated block at each access to a program's memory.
const CPU: &str = "max,+invtsc,x-force-features=on,erms=off,fsrm=off,smap=off,la57=off";
/// User ID without root rights.
const SOMEBODY: u32 = 1000;
/// Boots that may fail before the guest is ready, because an emulated timer is sometimes late on a busy machine.
const BOOTS: u32 = 3;

/// Shell script that runs its arguments but the first. When its standard input closes, in any kind of exit of the test, it
/// ends them and removes the folder named first: statics are never dropped.
const KEEPER: &str = r#"
folder=$1
shift
exec 3<&0
"$@" </dev/null 3<&- &
emulator=$!
{
    cat <&3 >/dev/null
    kill $emulator 2>/dev/null
    while kill -0 $emulator 2>/dev/null; do sleep 0.1; done
    rm -rf "$folder"
} &
wait $emulator
"#;

/// Linux 6.1, for which our kernel module is built.
pub const KERNEL: &str = "guest-kernel";
/// Linux 6.12, which has a driver of virtio-iommu.
pub const KERNEL_WITH_VIRTIO_IOMMU: &str = "guest-kernel-virtio";
/// The kernel with iommufd and without groups, which `checks/guest/kernel` builds.
pub const KERNEL_WITH_IOMMUFD: &str = "guest-kernel-iommufd";
/// The kernel with both.
pub const KERNEL_WITH_BOTH: &str = "guest-kernel-iommufd-groups";
/// Linux 6.12 with lockdep, KASAN and checks of DMA mappings, which `checks/guest/kernel` builds.
pub const KERNEL_WITH_CHECKS: &str = "guest-kernel-debug";

/// The kernel of guests that need no certain one: [`KERNEL`], or the one that `LANEMARK_GUEST_KERNEL` names, so that the same
/// tests run on another one.
pub fn usual_kernel() -> &'static str {
    match std::env::var("LANEMARK_GUEST_KERNEL").as_deref().unwrap_or("") {
        "" => KERNEL,
        KERNEL_WITH_IOMMUFD => KERNEL_WITH_IOMMUFD,
        KERNEL_WITH_BOTH => KERNEL_WITH_BOTH,
        KERNEL_WITH_CHECKS => KERNEL_WITH_CHECKS,
        other => panic!(
            "LANEMARK_GUEST_KERNEL={other}: it is none of {KERNEL_WITH_IOMMUFD}, {KERNEL_WITH_BOTH}, {KERNEL_WITH_CHECKS}"
        ),
    }
}

/// Configuration of a guest.
pub struct Hardware<'a> {
    /// Folder of the kernel below `.tools`.
    pub packages: &'a str,
    /// Arguments of the emulator, such as `-device` and `-object`; `{folder}` is the folder of backing files.
    pub devices: &'a [&'a str],
    /// Additional kernel command line.
    pub kernel: &'a str,
}

/// Result of a command.
#[derive(Debug)]
pub struct Output {
    /// Exit status.
    pub status: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// A running guest. Commands run as root, one at a time.
pub struct Guest {
    emulator: Child,
    agent: BufReader<UnixStream>,
    folder: tempfile::TempDir,
    commands: u32,
    /// Returned after the end of the emulator.
    _place: Place,
}

impl Guest {
    /// Boots a guest with `programs`, or kernel modules, in its `/bin`.
    ///
    /// `prepared` is called with the folder for backing files before the emulator starts, on the emulator's processor: threads
    /// that it starts, such as one for an emulated card, stay there.
    pub fn boot(hardware: &Hardware, programs: &[&Path], prepared: impl Fn(&Path)) -> Guest {
        let mut reasons = Vec::new();
        for _ in 0..BOOTS {
            let place = Place::take();
            let folder = tempfile::Builder::new().prefix("lanemark-guest-").tempdir().unwrap();
            place.run(|| prepared(folder.path()));
            match Guest::started(hardware, programs, folder, place) {
                Ok(guest) => return guest,
                Err(reason) => reasons.push(reason),
            }
        }
        panic!("the guest did not boot:\n{}", reasons.join("\n"));
    }

    fn started(
        hardware: &Hardware,
        programs: &[&Path],
        folder: tempfile::TempDir,
        place: Place,
    ) -> Result<Guest, String> {
        let here = folder.path().to_str().unwrap().to_owned();
        initramfs(hardware.packages, programs).write(&folder.path().join("initramfs")).unwrap();
        let kernel_line = format!(
            // no_timer_check: the kernel's timer test sometimes fails on a busy machine. mitigations=off: an emulated
            // processor has no side channels, and calls through thunks take it long. cryptomgr.notests, init_on_alloc=0: the
            // kernel need neither test its ciphers nor clear the memory of a guest that lives for minutes.
            // tsc=reliable: nor compare the clock of its processor with another one.
            "console=ttyS0 quiet panic=-1 no_timer_check mitigations=off cryptomgr.notests init_on_alloc=0 \
             tsc=reliable intel_iommu=on {}",
            hardware.kernel
        );
        let mut arguments: Vec<String> = ["-M", "q35", "-accel", "tcg", "-cpu", CPU, "-smp", "1", "-m", "512M"]
            .into_iter()
            .chain(["-nodefaults", "-display", "none", "-no-reboot"])
            .map(str::to_owned)
            .collect();
        arguments.extend(["-kernel".to_owned(), kernel(hardware.packages).to_str().unwrap().to_owned()]);
        arguments.extend(["-initrd".to_owned(), format!("{here}/initramfs")]);
        arguments.extend(["-append".to_owned(), kernel_line]);
        arguments.extend(["-serial".to_owned(), format!("file:{here}/console")]);
        // The emulator waits until we are connected, so that no output is lost.
        arguments.extend(["-chardev".to_owned(), format!("socket,id=agent,path={here}/agent,server=on,wait=on")]);
        arguments.extend(["-serial", "chardev:agent"].map(str::to_owned));
        // QMP has a thread of its own, which each jump of an emulated clock wakes; the monitor for people has none.
        arguments.extend(["-monitor".to_owned(), format!("unix:{here}/monitor,server=on,wait=off")]);
        for device in hardware.devices {
            arguments.extend(device.split_whitespace().map(|word| word.replace("{folder}", &here)));
        }

        let mut command = Command::new("sh");
        command.args(["-c", KEEPER, "sh", &here, "timeout", LIFE_S]).args(qemu()).args(&arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        command.stderr(fs::File::create(folder.path().join("emulator")).unwrap());
        let mut emulator = place.run(|| command.spawn()).unwrap();
        let deadline = Instant::now() + BOOT;
        let stream = loop {
            let error = match UnixStream::connect(folder.path().join("agent")) {
                Ok(stream) => break stream,
                Err(error) => error,
            };
            if Instant::now() > deadline || emulator.try_wait().unwrap().is_some() {
                let said = logs(folder.path());
                drop(emulator.stdin.take());
                let _ = emulator.wait();
                return Err(format!("the emulator did not start: {error}\n{said}"));
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        let mut guest = Guest { emulator, agent: BufReader::new(stream), folder, commands: 0, _place: place };
        match guest.line(deadline).as_deref() {
            Ok("guest ready") => Ok(guest),
            other => Err(format!("{other:?}\n{}", logs(guest.folder.path()))),
        }
    }

    /// Runs a shell script and waits for its end.
    pub fn run(&mut self, script: &str) -> Output {
        self.commands += 1;
        self.ask(script).unwrap_or_else(|why| panic!("{script}: {why}\n{}", logs(self.folder.path())))
    }

    /// Whether it still runs commands.
    pub fn answers(&mut self) -> bool {
        self.commands += 1;
        self.ask("true").is_ok()
    }

    fn ask(&mut self, script: &str) -> Result<Output, String> {
        let id = self.commands.to_string();
        let asked = format!("{id} {}\n{script}", script.len());
        self.agent.get_mut().write_all(asked.as_bytes()).map_err(|error| error.to_string())?;
        let deadline = Instant::now() + COMMAND;
        loop {
            let line = self.line(deadline)?;
            let words: Vec<&str> = line.split(' ').collect();
            let [answered, status, form, stdout, stderr] = words[..] else { return Err(format!("it said '{line}'")) };
            let mut sent = |length: &str| -> Result<Vec<u8>, String> {
                let length = length.parse::<usize>().map_err(|error| format!("'{line}': {error}"))?;
                let mut bytes = vec![0; length];
                self.agent.read_exact(&mut bytes).map_err(|error| error.to_string())?;
                Ok(bytes)
            };
            let (mut stdout, stderr) = (sent(stdout)?, sent(stderr)?);
            if form == "gzip" {
                let packed = std::mem::take(&mut stdout);
                GzDecoder::new(&packed[..]).read_to_end(&mut stdout).map_err(|error| format!("'{line}': {error}"))?;
            }
            let [stdout, stderr] = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            // Late output of an earlier command is discarded.
            if answered == id {
                let status = status.parse().map_err(|error| format!("'{line}': {error}"))?;
                return Ok(Output { status, stdout, stderr });
            }
        }
    }

    /// Runs a script that must succeed, and returns its standard output.
    pub fn expect(&mut self, script: &str) -> String {
        let output = self.run(script);
        assert_eq!(output.status, 0, "{script}\n{}\n{}", output.stdout, output.stderr);
        output.stdout
    }

    /// Runs one of our programs without root rights.
    pub fn run_as_somebody(&mut self, program: &str, arguments: &str) -> Output {
        self.run(&format!("start-stop-daemon -S -c {SOMEBODY}:{SOMEBODY} -x /bin/{program} -- {arguments}"))
    }

    /// Sends a command to the emulator's monitor, such as `device_del card`, which must succeed.
    pub fn monitor(&mut self, command: &str) {
        let mut stream = UnixStream::connect(self.folder.path().join("monitor")).unwrap();
        stream.set_read_timeout(Some(COMMAND)).unwrap();
        // The answer is between two prompts, with an echo of the command before it.
        let mut answer = Vec::new();
        let mut prompted = |stream: &mut UnixStream| {
            while !answer.ends_with(b"(qemu) ") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                answer.extend(byte);
            }
            String::from_utf8_lossy(&std::mem::take(&mut answer)).into_owned()
        };
        prompted(&mut stream);
        stream.write_all(format!("{command}\n").as_bytes()).unwrap();
        let answer = prompted(&mut stream);
        assert!(!answer.contains("Error") && !answer.contains("unknown command"), "{command}: {answer}");
    }

    /// A backing file, as it is on the outside.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Next line of the guest's serial output.
    fn line(&mut self, deadline: Instant) -> Result<String, String> {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        self.agent.get_ref().set_read_timeout(Some(left)).map_err(|error| error.to_string())?;
        let mut line = String::new();
        match self.agent.read_line(&mut line) {
            Ok(0) => Err("the guest ended".to_owned()),
            Ok(_) => Ok(line.trim_end().to_owned()),
            Err(error) => Err(format!("no answer: {error}")),
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        drop(self.emulator.stdin.take());
        let _ = self.emulator.wait();
    }
}

/// Output of the emulator and of the guest's kernel.
fn logs(folder: &Path) -> String {
    let read = |name: &str| fs::read(folder.join(name)).unwrap_or_default();
    let said = |name: &str| String::from_utf8_lossy(&read(name)).into_owned();
    said("emulator") + &said("console")
}

pub fn tools() -> PathBuf {
    root().join(".tools")
}

/// The emulator, run by its own loader with its own libraries.
fn qemu() -> Vec<PathBuf> {
    let root = tools().join("qemu/root/usr");
    let libraries = root.join("lib/x86_64-linux-gnu");
    vec![
        root.join("lib64/ld-linux-x86-64.so.2"),
        "--library-path".into(),
        libraries,
        root.join("bin/qemu-system-x86_64"),
        "-L".into(),
        root.join("share/qemu"),
        "-L".into(),
        root.join("share/seabios"),
    ]
}

fn kernel(packages: &str) -> PathBuf {
    let boot = tools().join(packages).join("root/boot");
    let files = fs::read_dir(&boot).unwrap_or_else(|error| {
        panic!("{}: {error}; run make test-qemu, test-iommufd or test-kmod-debug", boot.display())
    });
    let mut kernels = files.map(|file| file.unwrap().path());
    kernels.find(|path| path.file_name().unwrap().to_string_lossy().starts_with("vmlinuz-")).unwrap()
}

/// Drivers to which a card can be bound, and that of virtio-iommu.
const DRIVERS: [&str; 5] = ["vfio_iommu_type1", "vfio-pci", "uio_pci_generic", "nvme", "virtio-iommu"];

/// Module files of these drivers and their dependencies, in loading order; built-in drivers have no file.
fn modules(folder: &Path) -> Vec<PathBuf> {
    fn add(folder: &Path, name: &str, modules: &mut Vec<PathBuf>) {
        // Module names use `-` and `_` interchangeably.
        let spellings = [name.replace('_', "-"), name.replace('-', "_"), name.to_owned()];
        let file = spellings.iter().find_map(|name| found(folder, &format!("{name}.ko")));
        let Some(file) = file.filter(|file| !modules.contains(file)) else { return };
        let content = fs::read(&file).unwrap();
        let text = String::from_utf8_lossy(&content);
        let needed = text.split('\0').find_map(|field| field.strip_prefix("depends=")).unwrap_or("");
        needed.split(',').filter(|name| !name.is_empty()).for_each(|name| add(folder, name, modules));
        modules.push(file);
    }
    let mut modules = Vec::new();
    for name in DRIVERS {
        add(folder, name, &mut modules);
    }
    modules
}

/// The initramfs: busybox, modules of a kernel, stripped `programs`, and their shared libraries.
fn initramfs(packages: &str, programs: &[&Path]) -> Initramfs {
    let mut archive = Initramfs::default();
    for folder in ["proc", "sys", "dev", "tmp", "bin"] {
        archive.folder(folder);
    }
    archive.program("etc/passwd", format!("somebody:x:{SOMEBODY}:{SOMEBODY}::/tmp:/bin/sh\n").as_bytes());
    archive.program("init", include_bytes!("../../guest/init"));
    archive.program("bin/busybox", &fs::read(tools().join(KERNEL).join("root/bin/busybox")).unwrap());
    let has_module = matches!(packages, KERNEL | KERNEL_WITH_CHECKS) && packages == usual_kernel();
    let ours = module::built().filter(|_| has_module).map(Path::to_path_buf);
    for (place, module) in modules(&tools().join(packages).join("root")).iter().chain(&ours).enumerate() {
        let name = module.file_name().unwrap().to_str().unwrap();
        // The guest loads them in alphabetical order.
        archive.program(&format!("modules/{place:02}-{name}"), &fs::read(module).unwrap());
    }
    let mut libraries = BTreeSet::new();
    for program in programs {
        let name = program.file_name().unwrap().to_str().unwrap();
        if program.extension().is_some_and(|kind| kind == "ko") {
            // A module has no libraries, and needs its symbols.
            archive.program(&format!("bin/{name}"), &fs::read(program).unwrap());
            continue;
        }
        archive.program(&format!("bin/{name}"), &stripped(program));
        libraries.extend(linked(program));
    }
    for library in libraries {
        let path = library.to_str().unwrap().trim_start_matches('/').to_owned();
        archive.program(&path, &fs::read(&library).unwrap());
    }
    archive
}

fn found(folder: &Path, name: &str) -> Option<PathBuf> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find_map(|path| if path.is_dir() { found(&path, name) } else { path.ends_with(name).then_some(path) })
}

/// A program without symbols. Each is stripped once.
fn stripped(program: &Path) -> Arc<Vec<u8>> {
    static STRIPPED: Mutex<BTreeMap<PathBuf, Arc<Vec<u8>>>> = Mutex::new(BTreeMap::new());
    let mut all = STRIPPED.lock().unwrap_or_else(PoisonError::into_inner);
    let once = || {
        let to = tempfile::NamedTempFile::new().unwrap();
        let done = Command::new("strip").arg("-o").args([to.path(), program]).status();
        assert!(done.is_ok_and(|status| status.success()), "strip, which comes with the linker, failed");
        Arc::new(fs::read(to.path()).unwrap())
    };
    Arc::clone(all.entry(program.to_path_buf()).or_insert_with(once))
}

/// Shared libraries of a program by their search paths, the loader first.
fn linked(program: &Path) -> Vec<PathBuf> {
    let output = Command::new("ldd").arg(program).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    said.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect()
}
