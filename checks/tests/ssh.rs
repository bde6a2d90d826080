//! `fleet run` over a real ssh server on this machine. (`make test-ssh`)

use lanemark_checks::trials::{Available, run};
use lanemark_checks::{lanemark, root, trials};
use serde_json::Value;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SERVER: &str = ".tools/ssh/root/usr/sbin/sshd";
/// Longest wait for the server.
const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    let is_here = root().join(SERVER).exists();
    // A container may lack the right to a mount namespace.
    let found = if is_here { Server::start().map(drop) } else { Err("an ssh server: make test-ssh".to_owned()) };
    let available = Available::unless("LANEMARK_SKIPPED_SSH").and(&Available::new(found, "LANEMARK_REQUIRE_SSH"));
    run(trials!(available;
        machines_are_measured_over_ssh_and_the_one_that_differs_is_named,
        words_reach_the_machine_as_they_were,
        a_machine_that_cannot_be_reached_is_listed_with_the_reason_of_ssh,
        a_program_that_hangs_is_ended_on_the_machine,
    )
    .into())
}

/// An ssh server on a port of its own.
struct Server {
    process: Child,
    folder: TempDir,
}

impl Server {
    /// Starts a server whose machine has this program.
    ///
    /// # Errors
    /// The reason why none can run here.
    fn start() -> Result<Server, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.map_err(|error| format!("a port: {error}"))?.port();
        let log = std::fs::File::create(folder.path().join("log")).map_err(|error| error.to_string())?;
        let mut serve = Command::new(root().join("checks/ssh/serve"));
        serve.arg(folder.path()).arg(port.to_string()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let process = serve.spawn().map_err(|error| format!("checks/ssh/serve: {error}"))?;
        let mut server = Server { process, folder };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let has_ended = server.process.try_wait().is_ok_and(|status| status.is_some());
            if has_ended || begun.elapsed() > PATIENCE {
                let log = std::fs::read_to_string(server.path("log")).unwrap_or_default();
                return Err(format!("an ssh server that starts: {}", log.lines().last().unwrap_or("it says nothing")));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Puts a program that commands over ssh find into place.
    fn has(&self, name: &str, program: &Path) {
        std::os::unix::fs::symlink(program, self.path("bin").join(name)).unwrap();
    }

    /// `lanemark fleet run` with this file.
    fn fleet(&self, hosts: &str, more: &[&str]) -> Output {
        std::fs::write(self.path("hosts.toml"), hosts).unwrap();
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new(lanemark());
        command.args(["fleet", "run", "hosts.toml"]).args(more).current_dir(self.folder.path()).env("PATH", path);
        command.output().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A server that has ended already is fine.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const BENCH: &str =
    r#"["--on", "card-gen5-x16", "--question", "dma_read_bandwidth", "--sizes", "4K", "--iterations", "1"]"#;

/// Five machines, all of them this one, the last with a link of four lanes.
fn five() -> String {
    let host = |number: u32| {
        let listing = root().join("checks/tests/inventory/listings").join(match number {
            5 => "server-with-a-degraded-card.txt",
            _ => "virtual-machine-with-virtio.txt",
        });
        let slow = BENCH.replace(']', r#", "--with", "link.width_lanes=4"]"#);
        let own = if number == 5 { format!("bench = {slow}\n") } else { String::new() };
        let listing = listing.display();
        format!("[[host]]\nname = \"node{number}\"\nssh = \"node\"\n{own}doctor = [\"--from\", \"{listing}\"]\n")
    };
    format!("schema = 1\nbench = {BENCH}\n") + &(1..=5).map(host).collect::<String>()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn machines_are_measured_over_ssh_and_the_one_that_differs_is_named() {
    let server = Server::start().unwrap();
    server.has("lanemark", lanemark());
    let done = server.fleet(&five(), &["--records", "all", "--json"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    let document: Value = serde_json::from_slice(&done.stdout).unwrap();
    let outliers = document["outliers"].as_array().unwrap();
    assert!(!outliers.is_empty() && outliers.iter().all(|outlier| outlier["machine"] == "node5"), "{document}");
    for number in 1..=5 {
        let record = lanemark_record::read(&server.path(&format!("all/node{number}.json"))).unwrap();
        assert_eq!(record.answers.len(), 1);
    }
    let log = std::fs::read_to_string(server.path("log")).unwrap();
    assert!(log.matches("Accepted publickey").count() >= 10, "bench and doctor of each machine: {log}");
}

fn words_reach_the_machine_as_they_were() {
    let server = Server::start().unwrap();
    let program = server.path("echoes");
    std::fs::write(&program, "#!/bin/sh\nfor word; do printf '[%s]' \"$word\"; done >&2\nexit 3\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    server.has("lanemark", &program);
    let hosts =
        "schema = 1\nbench = [\"--note\", \"it's $(id) \\\"x\\\" *\"]\n[[host]]\nname = \"a\"\nssh = \"node\"\n";
    let done = server.fleet(hosts, &[]);
    let said = text(&done.stdout);
    assert!(said.contains("exit code 3") && said.contains("[bench][--note][it's $(id) \"x\" *][--json]"), "{said}");
}

fn a_machine_that_cannot_be_reached_is_listed_with_the_reason_of_ssh() {
    let server = Server::start().unwrap();
    server.has("lanemark", lanemark());
    let hosts = format!("{}[[host]]\nname = \"away\"\nssh = \"closed\"\n", five());
    let done = server.fleet(&hosts, &[]);
    assert_eq!(done.status.code(), Some(1));
    let (said, told) = (text(&done.stdout), text(&done.stderr));
    assert!(told.contains("no answers from away"), "{told}");
    assert!(said.contains("exit code 255") && said.contains("Connection refused"), "{said}");
    assert!(said.contains("node5:"), "the others are compared: {said}");
}

fn a_program_that_hangs_is_ended_on_the_machine() {
    let server = Server::start().unwrap();
    let program = server.path("hangs");
    std::fs::write(&program, "#!/bin/sh\nexec sleep 4321.5\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).unwrap();
    server.has("lanemark", &program);
    let hosts = "schema = 1\nbench = []\n[[host]]\nname = \"a\"\nssh = \"node\"\n";
    let done = server.fleet(hosts, &["--timeout", "1"]);
    assert_eq!(done.status.code(), Some(1));
    let begun = Instant::now();
    let is_running =
        || Command::new("pgrep").args(["-f", "sleep 4321.5"]).output().is_ok_and(|found| !found.stdout.is_empty());
    while is_running() {
        assert!(begun.elapsed() < PATIENCE, "it still runs on the machine");
        std::thread::sleep(Duration::from_millis(100));
    }
}
