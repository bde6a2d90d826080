//! Reads an NVMe drive through VFIO and prints the bytes: `read-drive ADDRESS FROM COUNT COMMAND_BYTES DEPTH`.
//!
//! It reads `COUNT` bytes from the byte `FROM` of the namespace on. Numbers are decimal. An error ends the program with
//! status 1. The test guest runs it, and the test compares the bytes with the file behind the drive.

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
    let [address, from, count, command_bytes, depth] = words else {
        return Err("usage: read-drive ADDRESS FROM COUNT COMMAND_BYTES DEPTH".into());
    };
    let options = VfioOptions { is_emulated: true, ..VfioOptions::default() };
    let mut drive = VfioMachine::open(&System::this(), address.parse()?, &options)?;
    let mut bytes = vec![0; count.parse()?];
    drive.read_drive(from.parse()?, command_bytes.parse()?, depth.parse()?, &mut bytes)?;
    std::io::stdout().write_all(&bytes)?;
    Ok(())
}
