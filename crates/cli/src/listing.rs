//! Lists and schemas.

use crate::args::{Format, SchemaArgs};
use crate::failure::Failure;
use lanemark_bench::CATALOGUE;
use lanemark_platform::{PRESETS, preset};
use std::io::Write;

/// `lanemark platforms`
pub fn platforms() -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    for row in PRESETS {
        if let Some(Ok(platform)) = preset(row.name) {
            let [given, assumed, fitted] = platform.origins();
            writeln!(out, "{:<16} {}", platform.name, platform.summary)?;
            writeln!(out, "{:<16} {given} numbers given, {assumed} assumed, {fitted} fitted", "")?;
        }
    }
    writeln!(out, "{:<16} the memory of this machine, for real", "host")?;
    writeln!(out, "{:<16} the first device behind an OpenCL runtime, for real; then opencl:1", "opencl:0")?;
    writeln!(out, "{:<16} the first device behind a SYCL runtime, for real; then sycl:1", "sycl:0")?;
    Ok(())
}

/// `lanemark questions`
pub fn questions() -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    for question in CATALOGUE {
        let named = if question.is_usual { "" } else { " (asked when named)" };
        writeln!(out, "{:<26} {}{named}", question.name, question.summary)?;
    }
    Ok(())
}

/// `lanemark kernels`
pub fn kernels() -> Result<(), Failure> {
    Ok(std::io::stdout().lock().write_all(lanemark_hw::every_kernel().as_bytes())?)
}

/// `lanemark schema`
pub fn schema(args: &SchemaArgs) -> Result<(), Failure> {
    let text = match args.format {
        Format::Platform => lanemark_platform::schema(),
        Format::Record => lanemark_record::schema(),
        Format::Doctor => lanemark_record::diagnosis::schema(),
    };
    Ok(std::io::stdout().lock().write_all(text.as_bytes())?)
}
