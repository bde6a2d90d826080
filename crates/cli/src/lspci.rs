//! `lspci`: the configuration space of a simulated platform.

use crate::args::LspciArgs;
use crate::failure::Failure;
use crate::output;
use crate::target::platform_after;
use lanemark_sim::config_space::{functions, lspci_text};
use std::path::Path;

/// `lanemark lspci`
pub fn lspci(args: &LspciArgs) -> Result<(), Failure> {
    if let Some(output) = &args.output {
        // A platform that is a file, and not a preset, is an input.
        output::check(&[output], &[Path::new(&args.on)])?;
    }
    let platform = platform_after(&args.on, &args.setpci)?;
    let functions = functions(&platform).map_err(|error| Failure::Usage(error.to_string()))?;
    output::text(&lspci_text(&functions), args.output.as_deref())
}
