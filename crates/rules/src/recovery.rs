//! Recovery of a hung card.

use crate::rule::Outcome;
use lanemark_platform::Platform;
use lanemark_sim::BusTree;
use lanemark_wire::config::AerRegister;

/// After masking errors, removal, programming and a rescan, a hung card answers, and no error is reported; without the
/// masks, errors are.
pub(crate) fn a_hung_card_is_recovered(platform: &Platform) -> Outcome {
    let (answer, reported) = recovered(platform, true)?;
    let (_, unmasked) = recovered(platform, false)?;
    let said = unmasked.join("; ");
    if !reported.is_empty() || unmasked.is_empty() {
        return Err(format!("{} errors are reported with the masks; without them: {said}", reported.len()));
    }
    Ok(format!("after it a load returns {answer:02x?}, and no error is reported; without the masks: {said}"))
}

/// Recovers a hung card; returns the data of a load from it and the errors reported meanwhile.
fn recovered(platform: &Platform, masks: bool) -> Result<([u8; 4], Vec<String>), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let card = platform.card_name(0).unwrap_or("card");
    let fault = format!("no_completion@{card}").parse().map_err(|error: lanemark_platform::NoFault| text(&error))?;
    let broken = platform.with_fault(fault).map_err(|error| text(&error))?;
    let mut tree = BusTree::new(&broken).map_err(|error| text(&error))?;
    let functions = tree.functions();
    let function = functions.iter().find(|function| function.port == card).ok_or("the card has no function")?;
    let (function, bus) = (function.address, function.address.bus());
    if tree.load(function).map_err(|error| text(&error))?.bytes.is_some() {
        return Err("the card answers in spite of the fault".to_owned());
    }
    let before = tree.reported().len();
    for seen in functions.iter().filter(|_| masks) {
        for mask in AerRegister::MASKS {
            tree.write(seen.address, mask, u32::MAX).map_err(|error| text(&error))?;
        }
    }
    tree.remove(function).map_err(|error| text(&error))?;
    tree.program(function).map_err(|error| text(&error))?;
    tree.rescan(bus).map_err(|error| text(&error))?;
    let bytes = tree.load(function).map_err(|error| text(&error))?.bytes.ok_or("the card does not answer")?;
    Ok((bytes, tree.reported()[before..].iter().map(ToString::to_string).collect()))
}
