//! The inventory reader and the doctor read the configuration space of simulated platforms correctly.

use lanemark_advise::doctor::{DiagnosisRequest, Figures, as_platform, diagnose};
use lanemark_config_space::{SimulatedFunction, functions, lspci_text, setpci};
use lanemark_inventory::{Address, Inventory, Seen};
use lanemark_platform::{Draft, PRESETS, Platform, preset};
use lanemark_record::diagnosis::{Finding, Severity};
use std::path::Path;

fn presets() -> impl Iterator<Item = Platform> {
    PRESETS.iter().map(|row| preset(row.name).unwrap().unwrap())
}

fn inventory(platform: &Platform) -> (Vec<SimulatedFunction>, Inventory) {
    let made = functions(platform).unwrap();
    let inventory = Inventory::from_lspci(&lspci_text(&made), Path::new("simulated.txt")).unwrap();
    (made, inventory)
}

fn findings(platform: &Platform) -> Vec<Finding> {
    diagnose(&inventory(platform).1, &DiagnosisRequest::default()).findings
}

#[test]
fn the_inventory_of_a_preset_matches_its_tree() {
    for platform in presets() {
        let (made, inventory) = inventory(&platform);
        assert_eq!(inventory.notes, [], "{}", platform.name);
        assert_eq!(inventory.functions.len(), made.len());
        let tree = inventory.tree();
        let mut links = Vec::new();
        for (at, function) in made.iter().enumerate() {
            assert_eq!(inventory.functions[at].address, Address { domain: 0, function: function.address });
            let Some(parent) = tree.parent(at) else { continue };
            // The link above a switch or a card; above a downstream port is the inside of its switch.
            if function.port.contains('/') {
                assert!(function.port.starts_with(&format!("{}/", made[parent].port)), "{}", function.port);
            } else {
                links.push((made[parent].port.clone(), function.port.clone()));
            }
        }
        let mut meant: Vec<(String, String)> =
            platform.links().iter().map(|link| (link.upper_port(), link.below.to_owned())).collect();
        links.sort();
        meant.sort();
        assert_eq!(links, meant, "{}", platform.name);
    }
}

#[test]
fn bar_sizes_and_link_speeds_match_the_platform() {
    for platform in presets() {
        let (made, inventory) = inventory(&platform);
        for (function, of) in inventory.functions.iter().zip(&made) {
            let express = function.express.present().unwrap();
            let link = express.link.present().unwrap();
            let below = of.port.split_once('/').map_or(of.port.as_str(), |(_, below)| below);
            let switch = platform.switches.iter().find(|switch| switch.name == below);
            let meant = switch.map_or((platform.link.generation.value, platform.link.width_lanes.value), |switch| {
                (switch.generation.value, switch.width_lanes.value)
            });
            let trained = (link.speed.get().unwrap().code().into(), link.width.get().unwrap().0.into());
            assert_eq!(trained, meant, "{}", of.port);
            assert_eq!(express.mps.get().unwrap().bytes(), platform.mps_bytes_of(&of.port));
            let Seen::Known(regions) = &function.regions else { panic!("{}: no regions", of.port) };
            let seen: Vec<(u64, u64, bool)> = regions
                .iter()
                .filter(|region| region.bar().is_some())
                .map(|region| {
                    let base = region.base.present().unwrap().0;
                    (base, region.bytes.get().unwrap(), region.prefetchable)
                })
                .collect();
            let meant: Vec<(u64, u64, bool)> =
                of.bars.iter().map(|bar| (bar.address, bar.size_bytes, bar.prefetchable)).collect();
            assert_eq!(seen, meant, "{}", of.port);
        }
    }
}

#[test]
fn the_doctor_reports_only_shared_uplinks_of_presets() {
    for platform in presets() {
        for finding in findings(&platform) {
            assert_eq!((finding.check.as_str(), finding.severity), ("uplink", Severity::Hint), "{finding:?}");
            assert!(platform.slots.len() > 1, "{}: {finding:?}", platform.name);
        }
    }
}

#[test]
fn the_doctor_warns_of_payloads_that_the_simulator_drops() {
    let rosta = preset("rosta-virtex7").unwrap().unwrap();
    let written = setpci(&rosta, &["05:00.0+CAP_EXP+8.w=20:e0".parse().unwrap()]).unwrap();
    let broken: Vec<Finding> =
        findings(&written).into_iter().filter(|finding| finding.severity == Severity::Broken).collect();
    let [finding] = &broken[..] else { panic!("{broken:?}") };
    assert!(finding.reason.contains("drops its larger writes as malformed"), "{}", finding.reason);
    assert!(finding.functions.contains(&"0000:05:00.0".to_owned()), "{:?}", finding.functions);
}

#[test]
fn a_slot_of_a_preset_becomes_a_platform_file_with_the_same_link_and_bars() {
    for platform in presets().filter(|platform| platform.slots.is_empty()) {
        let inventory = inventory(&platform).1;
        let text = as_platform(&inventory, None, Figures::Dma).unwrap();
        let draft = Draft::parse("doctor.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}")).to_json();
        let preset = platform.to_json();
        for key in ["generation", "width_lanes", "mps_bytes", "mrrs_bytes", "rcb_bytes"] {
            assert_eq!(draft["link"][key]["value"], preset["link"][key]["value"], "{}: {key}", platform.name);
        }
        assert_eq!(
            draft["endpoint"]["mps_supported_bytes"]["value"],
            platform.mps_supported_bytes_of("card"),
            "{}",
            platform.name
        );
        for (at, _) in platform.bars.iter().enumerate() {
            for key in ["index", "size_bytes", "address_bytes", "prefetchable"] {
                let values = [&draft, &preset].map(|file| file["bar"][at][key]["value"].clone());
                assert_eq!(values[0], values[1], "{}: BAR {at}, {key}", platform.name);
            }
        }
    }
}
