//! Reads an NVMe drive through VFIO and prints the bytes: `read-drive ADDRESS FROM COUNT COMMAND_BYTES DEPTH [OPTION=VALUE ...]`.
//!
//! It reads `COUNT` bytes from the byte `FROM` of the namespace on. Numbers are decimal. The options `namespace`,
//! `queues`, `data`, `place` and `completions` are those of `lanemark bench --namespace`, `--nvme-queues`, `--nvme-data-place` and
//! so on; `pairs` is the number of I/O queue pairs. `read-drive ADDRESS unmapped` reads a block to
//! memory that was unmapped just before, and prints the outcome. An error ends the program with status 1.
//!
//! The test guest runs it, and the test compares the bytes with the file behind the drive.

use lanemark_hw::linux_sysfs::System;
use lanemark_hw::linux_vfio::{VfioMachine, VfioOptions};
use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match read(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn read(words: &[String]) -> Result<(), Box<dyn Error>> {
    if let [address, word] = words
        && word == "unmapped"
    {
        return unmapped(address);
    }
    let [address, from, count, command_bytes, depth, more @ ..] = words else {
        return Err("usage: read-drive ADDRESS FROM COUNT COMMAND_BYTES DEPTH [OPTION=VALUE ...]".into());
    };
    let mut pairs = 1;
    let mut options = VfioOptions { is_emulated: true, ..VfioOptions::default() };
    for word in more {
        match word.split_once('=') {
            Some(("pairs", value)) => pairs = value.parse()?,
            Some(("queues", value)) => options.drive.queues = Some(value.parse()?),
            Some(("data", value)) => options.drive.data = Some(value.parse()?),
            Some(("namespace", value)) => options.drive.namespace = Some(value.parse()?),
            Some(("place", value)) => options.drive.data_place = Some(value.parse()?),
            Some(("completions", value)) => options.drive.completions = Some(value.parse()?),
            _ => {
                return Err(format!(
                    "'{word}' is no option: use namespace=, pairs=, queues=, data=, place= or completions="
                )
                .into());
            }
        }
    }
    let mut drive = VfioMachine::open(&System::this(), address.parse()?, &options)?;
    let mut bytes = vec![0; count.parse()?];
    drive.read_drive(from.parse()?, command_bytes.parse()?, (depth.parse()?, pairs), &mut bytes)?;
    std::io::stdout().write_all(&bytes)?;
    Ok(())
}

/// Prints address, completion, whether the bytes are unchanged, and the kernel's reports.
fn unmapped(address: &str) -> Result<(), Box<dyn Error>> {
    let options = VfioOptions { is_emulated: true, ..VfioOptions::default() };
    let mut drive = VfioMachine::open(&System::this(), address.parse()?, &options)?;
    let found = drive.read_unmapped()?;
    println!("address {:#x}", found.iova.0);
    println!("completed {:?}", found.completed);
    println!("unchanged {}", found.is_unchanged);
    found.faults.iter().for_each(|fault| println!("fault {fault}"));
    Ok(())
}
