//! One-line description of a function, and comparison of two inventories.

use super::masks::Masks;
use lanemark_inventory::{Address, Function, Inventory, Why};
use lanemark_wire::config::{AerRegister, Errors};

/// Describes a function's link, BARs, masks and errors, as far as they were seen.
///
/// ```
/// let dead = lanemark_inventory::config::function("01:00.0".parse().unwrap(), vec![0xff; 4096]).0;
/// assert_eq!(lanemark_advise::recover::look(&dead), "does not respond");
/// ```
#[must_use]
pub fn look(function: &Function) -> String {
    if function.aer.why() == Some(&Why::AllOnes) {
        return "does not respond".to_owned();
    }
    let mut parts: Vec<String> = link(function).into_iter().collect();
    parts.extend(bars(function));
    if let Masks::Seen(held) = Masks::of(function) {
        let held =
            AerRegister::MASKS.into_iter().zip(held).map(|(register, held)| format!("{} {held:08x}", register.name()));
        parts.push(held.collect::<Vec<_>>().join(", "));
    }
    parts.extend(
        errors(function).map(|errors| if errors.is_empty() { "no error".to_owned() } else { errors.join(", ") }),
    );
    if parts.is_empty() { "nothing was seen".to_owned() } else { parts.join("; ") }
}

/// Describes the link: `Gen5 x16`, `Gen5 x16 down`.
fn link(function: &Function) -> Option<String> {
    let link = function.link()?;
    let generation = link.speed.get()?.generation()?;
    let is_down = link.data_link_active.present() == Some(&false);
    Some(format!("{generation} {}{}", link.width.get()?, if is_down { " down" } else { "" }))
}

/// Describes the BARs: `BAR0 at 0x20000000000`.
fn bars(function: &Function) -> Option<String> {
    let regions = function.regions.known().filter(|_| !function.is_bridge())?;
    let bars = regions.iter().filter_map(|region| Some((region.bar()?, (*region.base.known()?)?)));
    let bars: Vec<String> = bars.map(|(number, base)| format!("BAR{number} at {:#x}", base.0)).collect();
    Some(if bars.is_empty() { "no BAR".to_owned() } else { bars.join(", ") })
}

/// Names of the errors in the status registers.
fn errors(function: &Function) -> Option<Vec<&'static str>> {
    let aer = function.aer.present()?;
    let (uncorrectable, correctable) = (aer.uncorrectable_status.get()?, aer.correctable_status.get()?);
    Some(Errors::uncorrectable(uncorrectable).names().chain(Errors::correctable(correctable).names()).collect())
}

/// Differences of these functions between two inventories: presence, link, BARs; and errors that are set.
#[must_use]
pub fn differences(before: &Inventory, after: &Inventory, functions: &[Address]) -> Vec<String> {
    let mut differences = Vec::new();
    for address in functions {
        let Some(was) = before.function(*address) else { continue };
        let Some(is) = after.function(*address) else {
            differences.push(format!("{address} is missing"));
            continue;
        };
        if is.aer.why() == Some(&Why::AllOnes) {
            differences.push(format!("{address} does not respond"));
            continue;
        }
        for fact in [link, bars] {
            if let (Some(was), now) = (fact(was), fact(is))
                && now.as_ref() != Some(&was)
            {
                differences.push(format!("{address}: {} instead of {was}", now.unwrap_or_else(|| "unseen".to_owned())));
            }
        }
        let set = errors(is).filter(|set| !set.is_empty());
        differences.extend(set.map(|set| format!("{address}: {} is set", set.join(", "))));
    }
    differences
}

/// Differences of the error masks of these functions between two inventories, as far as they were seen.
#[must_use]
pub fn mask_differences(before: &Inventory, after: &Inventory, functions: &[Address]) -> Vec<String> {
    let held = |inventory: &Inventory, address: Address| match inventory.function(address).map(Masks::of) {
        Some(Masks::Seen(held)) => Some(held),
        _ => None,
    };
    let different = |address: &Address| {
        let (was, is) = (held(before, *address)?, held(after, *address)?);
        let which = AerRegister::MASKS.into_iter().zip(was.into_iter().zip(is)).filter(|(_, (was, is))| was != is);
        let which: Vec<String> =
            which.map(|(register, (was, is))| format!("{} {is:08x} instead of {was:08x}", register.name())).collect();
        (!which.is_empty()).then(|| format!("{address}: {}", which.join(", ")))
    };
    functions.iter().filter_map(different).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::sample::{self, BAR_BASE, CARD, known};
    use lanemark_inventory::{Aer, Width};

    fn card(machine: &Inventory) -> [Address; 1] {
        [machine.functions[CARD].address]
    }

    #[test]
    fn an_unchanged_card_has_no_differences_and_another_bar_width_or_error_is_one() {
        let before = sample::healthy();
        assert_eq!(differences(&before, &before, &card(&before)), [""; 0]);
        let with = |change: &dyn Fn(&mut Inventory)| {
            let mut after = before.clone();
            change(&mut after);
            differences(&before, &after, &card(&before))
        };
        let moved = with(&|after| sample::bar(after, CARD).base = known(Some(lanemark_units::HostPhys(BAR_BASE << 1))));
        assert_eq!(moved, ["0000:01:00.0: BAR2 at 0x4000000000 instead of BAR2 at 0x2000000000"]);
        let narrow = with(&|after| sample::link(after, CARD).width = known(Width(8)));
        assert_eq!(narrow, ["0000:01:00.0: Gen4 x8 instead of Gen4 x16"]);
        let wrong = with(&|after| {
            let mut aer = Aer::unseen(&Why::NotInDump);
            (aer.uncorrectable_status, aer.correctable_status) = (known(1 << 5), known(0));
            after.functions[CARD].aer = known(Some(aer));
        });
        assert_eq!(wrong, ["0000:01:00.0: SDES is set"]);
        assert_eq!(with(&|after| after.functions.truncate(CARD)), ["0000:01:00.0 is missing"]);
    }
}
