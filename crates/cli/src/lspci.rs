//! `lspci`: the configuration space of a simulated platform.

use crate::args::LspciArgs;
use crate::failure::Failure;
use crate::output;
use lanemark_config_space::{functions, lspci_text};
use lanemark_runner::{Changes, platform};
use std::path::Path;

/// `lanemark lspci`
pub fn lspci(args: &LspciArgs) -> Result<(), Failure> {
    if let Some(output) = &args.output {
        // A platform file is an input, a preset is not.
        output::check(&[output], &[Path::new(&args.on)])?;
    }
    let (platform, _) = Changes { setpci: args.setpci.clone(), ..Changes::default() }.apply(&platform(&args.on)?)?;
    let functions = functions(&platform).map_err(|error| Failure::Usage(error.to_string()))?;
    output::text(&lspci_text(&functions), args.output.as_deref())
}
