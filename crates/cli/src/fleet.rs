//! `fleet`: the same questions to several machines, each reached by a command, and those that differ.

use crate::args::{FleetArgs, FleetCommand, FleetRunArgs};
use crate::failure::{Failure, say};
use crate::interrupt;
use crate::invocation;
use crate::output::{self, terminal_width};
use crate::progress::progress;
use lanemark_advise::{FleetMember, MIN_EFFECT_PERCENT, fleet as judge};
use lanemark_record::diagnosis::Diagnosis;
use lanemark_record::fleet::Fleet;
use lanemark_record::{Record, check_folder, file};
use lanemark_runner::{Cancel, read_file};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use std::collections::HashSet;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Version of the file of machines.
const SCHEMA: u32 = 1;
/// Largest file of machines, in bytes.
const HOSTS: u64 = 1 << 20;
/// Largest output of a command on a machine, in bytes.
const OUTPUT: u64 = 256 << 20;
/// Default time that a command may take.
const TIMEOUT: Duration = Duration::from_mins(10);
/// Polling interval of a command.
const LOOK: Duration = Duration::from_millis(20);
/// Time that the output of a command may stay open after its end.
const PIPE_TIMEOUT: Duration = Duration::from_secs(5);
/// Most characters of a message of a machine.
const MESSAGE: usize = 300;

/// The file of machines.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hosts {
    schema: u32,
    /// Options of `bench`.
    bench: Vec<String>,
    host: Vec<Host>,
}

/// A machine of the file.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Host {
    name: String,
    /// Destination of `ssh`.
    ssh: Option<String>,
    /// Words that run `lanemark` on the machine, instead of `ssh`.
    command: Option<Vec<String>>,
    /// Whether it is this machine, and `lanemark` is this program.
    #[serde(default)]
    local: bool,
    /// Options of `bench`, instead of the common ones.
    bench: Option<Vec<String>>,
    /// Options of `doctor`.
    #[serde(default)]
    doctor: Vec<String>,
}

/// `lanemark fleet`
pub fn fleet(args: &FleetArgs) -> Result<(), Failure> {
    match &args.command {
        FleetCommand::Run(args) => run(args),
    }
}

fn run(args: &FleetRunArgs) -> Result<(), Failure> {
    let Hosts { bench, host: hosts, .. } = read(&args.hosts)?;
    if let Some(folder) = &args.records {
        check_folder(folder).map_err(|error| Failure::Usage(error.to_string()))?;
        output::check(&[folder], &[&args.hosts])?;
    }
    let timeout = args.timeout.map_or(TIMEOUT, |time| Duration::from_secs_f64(time.as_ns() / 1e9));
    let cancel = interrupt::cancel()?;
    let members = ask_all(&hosts, &bench, timeout, &cancel)?;
    let records: Vec<Record> = members.iter().filter_map(|member| member.record.clone()).collect();
    if let Some(folder) = &args.records {
        write_records(&members, folder)?;
        say(&format!("wrote {} records to {}", records.len(), folder.display()));
    }
    let fleet = judge(&members, args.min_effect.unwrap_or(MIN_EFFECT_PERCENT));
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", file::to_json(&fleet))?;
    } else {
        out.write_all(lanemark_report::fleet_table(&fleet, terminal_width()).as_bytes())?;
    }
    drop(out);
    if cancel.is_cancelled() { Err(Failure::Interrupted) } else { check(&fleet) }
}

/// Returns an error if a machine has no answers.
fn check(fleet: &Fleet) -> Result<(), Failure> {
    let silent = fleet.machines.iter().filter(|machine| machine.answers == 0);
    let names: Vec<&str> = silent.map(|machine| machine.name.as_str()).collect();
    if names.is_empty() {
        Ok(())
    } else {
        Err(Failure::Check(format!("no answers from {}: see the problems in the table", names.join(", "))))
    }
}

fn read(path: &Path) -> Result<Hosts, Failure> {
    let wrong = |why: String| Failure::Usage(format!("{}: {why}", path.display()));
    let bytes = read_file(path, HOSTS).map_err(|error| wrong(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| wrong("it is not valid UTF-8".to_owned()))?;
    let hosts: Hosts = toml::from_str(&text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))?;
    if hosts.schema != SCHEMA {
        return Err(wrong(format!("schema: {} is not known; this program reads {SCHEMA}", hosts.schema)));
    }
    if hosts.host.is_empty() {
        return Err(wrong("host: there is no machine; add [[host]] with a name and ssh".to_owned()));
    }
    let mut names = HashSet::new();
    for Host { name, ssh, command, local, .. } in &hosts.host {
        let is_name = !name.is_empty() && name.chars().all(|one| one.is_ascii_alphanumeric() || "._-".contains(one));
        if !is_name || name.starts_with('.') {
            return Err(wrong(format!("host.name: '{name}': use letters, digits, '.', '_' and '-'")));
        }
        if !names.insert(name) {
            return Err(wrong(format!("host.name: '{name}' is given twice")));
        }
        let ways = usize::from(ssh.is_some()) + usize::from(command.is_some()) + usize::from(*local);
        if ways != 1 {
            let how = "ssh = \"user@machine\", command = [\"words\", \"that\", \"run\", \"lanemark\"], or local = true";
            return Err(wrong(format!("host {name}: {ways} ways to reach it are given; give one: {how}")));
        }
        if let Some(to) = ssh.as_ref().filter(|to| to.is_empty() || to.starts_with('-')) {
            return Err(wrong(format!("host.ssh of {name}: '{to}' is no destination; use user@machine")));
        }
        if command.as_ref().is_some_and(Vec::is_empty) {
            return Err(wrong(format!("host.command of {name}: it is empty; give the words that run lanemark")));
        }
    }
    Ok(hosts)
}

/// Asks all machines at the same time; in the order of the file.
fn ask_all(hosts: &[Host], bench: &[String], timeout: Duration, cancel: &Cancel) -> Result<Vec<FleetMember>, Failure> {
    let bar = progress(hosts.len() as u64);
    let members = std::thread::scope(|scope| {
        let started = hosts.iter().map(|host| {
            let thread = std::thread::Builder::new().name(host.name.clone());
            let thread = thread.spawn_scoped(scope, || {
                let member = ask(host, bench, timeout, cancel);
                bar.inc(1);
                member
            });
            thread.map_err(|error| {
                Failure::Usage(format!(
                    "no thread can be created that asks {} ({error}): raise the limits of processes (ulimit -u) and of memory \
                     (ulimit -v)",
                    host.name
                ))
            })
        });
        let started: Vec<_> = started.collect::<Result<_, _>>()?;
        let lost = || Failure::Check("asking the machines: a thread of a machine has panicked".to_owned());
        started.into_iter().map(|thread| thread.join().map_err(|_| lost())).collect::<Result<Vec<_>, Failure>>()
    });
    bar.finish_and_clear();
    members
}

fn ask(host: &Host, bench: &[String], timeout: Duration, cancel: &Cancel) -> FleetMember {
    let bench = host.bench.as_deref().unwrap_or(bench);
    let mut member = FleetMember { name: host.name.clone(), ..FleetMember::default() };
    match output_of(host, "bench", bench, timeout, cancel) {
        Err(why) => member.problem = Some(why),
        Ok((text, problem)) => match file::from_bytes(text.as_bytes(), Path::new(&host.name)) {
            Ok(record) => match record.refuse_impossible(Path::new(&host.name)) {
                Ok(()) => (member.record, member.problem) = (Some(record), problem),
                Err(text) => member.problem = Some(text),
            },
            Err(error) => member.problem = Some(problem.unwrap_or_else(|| error.to_string())),
        },
    }
    // A machine that has not answered would not answer a second time.
    if member.record.is_some() && !cancel.is_cancelled() {
        let (text, problem) = match output_of(host, "doctor", &host.doctor, timeout, cancel) {
            Ok((text, problem)) => (text, problem),
            Err(why) => (String::new(), Some(why)),
        };
        let read =
            |error: serde_json::Error| problem.unwrap_or_else(|| format!("reading the output of doctor: {error}"));
        member.diagnosis = Some(serde_json::from_str::<Diagnosis>(&text).map_err(read));
    }
    member
}

/// The standard output of a command of `lanemark` on a machine, and the reason if it failed.
fn output_of(
    host: &Host,
    command: &str,
    options: &[String],
    timeout: Duration,
    cancel: &Cancel,
) -> Result<(String, Option<String>), String> {
    let words: Vec<String> = [command].into_iter().map(str::to_owned).chain(options.iter().cloned()).collect();
    let words = words.into_iter().chain(["--json".to_owned()]);
    let all: Vec<String> = match (&host.ssh, &host.command) {
        (Some(to), _) => {
            // The program there ends when its time is over, also if the connection is lost before.
            let most = format!("{:.0}", timeout.as_secs_f64().ceil());
            let options = ["-o", "BatchMode=yes", "-o", "ConnectTimeout=10"];
            let there = ["--", to, "timeout", "-k", "5", &most, "lanemark"];
            let ssh = ["ssh"].into_iter().chain(options).chain(there);
            // The shell of the machine reads the words again.
            ssh.map(str::to_owned).chain(words.map(|word| quoted(&word))).collect()
        }
        (None, Some(command)) => command.iter().cloned().chain(words).collect(),
        (None, None) => {
            let program = invocation::program().iter().map(|word| word.to_string_lossy().into_owned());
            program.chain(words).collect()
        }
    };
    let [program, arguments @ ..] = all.as_slice() else { return Err("no command reaches it".to_owned()) };
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A group of its own, which can be killed with everything that it started.
        .process_group(0)
        .spawn()
        .map_err(|error| format!("starting {program}: {error}"))?;
    let (status, out, err) = finished(child, timeout, cancel)?;
    let text = String::from_utf8(out).map_err(|_| format!("the output of {command} is not valid UTF-8"))?;
    if status.success() {
        return Ok((text, None));
    }
    let err = String::from_utf8_lossy(&err);
    let said: String = main_line(&err)
        .unwrap_or("without a message; run it by hand")
        .chars()
        .filter(|one| !one.is_control())
        .take(MESSAGE)
        .collect();
    let code = status.code().map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"));
    Ok((text, Some(format!("{command} ended with {code}: {said}"))))
}

/// Waits for a command, with its output; kills it after the timeout or on a cancellation.
fn finished(mut child: Child, timeout: Duration, cancel: &Cancel) -> Result<(ExitStatus, Vec<u8>, Vec<u8>), String> {
    let failed = |error: std::io::Error| format!("waiting for the command: {error}");
    let readers = reader(child.stdout.take()).and_then(|out| Ok((out, reader(child.stderr.take())?)));
    let (out, err) = match readers {
        Ok(readers) => readers,
        Err(error) => {
            kill_process_group(Pid::from_child(&child), Signal::KILL).map_err(|error| failed(error.into()))?;
            child.wait().map_err(failed)?;
            return Err(format!("no thread can be created ({error}): raise 'ulimit -u' or 'ulimit -v'"));
        }
    };
    let begun = Instant::now();
    let (status, because) = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break (status, None);
        }
        let because = if cancel.is_cancelled() {
            Some("interrupted".to_owned())
        } else {
            (begun.elapsed() > timeout).then(|| format!("no answer within {} s", timeout.as_secs_f64()))
        };
        if because.is_some() {
            kill_process_group(Pid::from_child(&child), Signal::KILL).map_err(|error| failed(error.into()))?;
            break (child.wait().map_err(failed)?, because);
        }
        std::thread::sleep(LOOK);
    };
    if let Some(because) = because {
        return Err(because);
    }
    let open = |_| "the command ended, but another process that it started keeps its output open".to_owned();
    let out = out.recv_timeout(PIPE_TIMEOUT).map_err(open)?;
    // Messages are read as far as they are: a proxy of ssh may keep them open.
    Ok((status, out, err.recv_timeout(LOOK).unwrap_or_default()))
}

/// Reads a pipe to its end, at most [`OUTPUT`] bytes, on a thread of its own.
fn reader(pipe: Option<impl Read + Send + 'static>) -> std::io::Result<Receiver<Vec<u8>>> {
    let (sender, receiver) = channel();
    std::thread::Builder::new().spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            // What was read before an error stays: the reader of the JSON says what is missing.
            let _ = pipe.take(OUTPUT).read_to_end(&mut bytes);
        }
        // Nobody receives it after a timeout.
        let _ = sender.send(bytes);
    })?;
    Ok(receiver)
}

/// The line of a command's messages that says what is wrong: the first one that begins with `error`, or else the last one.
fn main_line(messages: &str) -> Option<&str> {
    let mut lines = messages.lines().filter(|line| !line.trim().is_empty());
    lines.clone().find(|line| line.starts_with("error")).or_else(|| lines.next_back())
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |one: char| one.is_ascii_alphanumeric() || "_./:=,+@%-".contains(one);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn write_records(members: &[FleetMember], folder: &Path) -> Result<(), Failure> {
    let refused = |error: &dyn std::fmt::Display| Failure::Usage(format!("{}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(|error| refused(&error))?;
    for member in members {
        if let Some(record) = &member.record {
            let path = folder.join(format!("{}.json", member.name));
            file::write(record, &path).map_err(|error| refused(&error))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usage_error_is_told_by_its_first_line_and_other_failures_by_the_last_one() {
        let usage = "error: unexpected argument '--sise' found\n\nUsage: lanemark bench\n\nFor more information, try '--help'.\n";
        assert_eq!(main_line(usage), Some("error: unexpected argument '--sise' found"));
        assert_eq!(main_line("Warning: added a key\nConnection refused\n\n"), Some("Connection refused"));
        assert_eq!(main_line(" \n"), None);
    }

    #[test]
    fn a_shell_reads_a_quoted_word_as_it_was() {
        for word in ["--on", "", "a b", "it's", "$(id)", "x;y", "64,4K", "\\", "--with=link.mps_bytes=128"] {
            let shell = Command::new("sh").args(["-c", &format!("printf %s {}", quoted(word))]).output().unwrap();
            assert_eq!(String::from_utf8(shell.stdout).unwrap(), word);
        }
    }
}
