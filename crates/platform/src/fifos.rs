//! Checks of the FIFOs of a card.

use crate::notes::Notes;
use crate::{Fifos, Platform, RegionKind};

/// Each FIFO holds at least one packet of the maximum payload, and the region that other cards write to is storage.
pub(crate) fn check_fifos(platform: &Platform, notes: &mut Notes<'_>) {
    let Some(fifos) = &platform.fifos else { return };
    let path = Fifos::PATH;
    if platform.dma.is_none() {
        let message = "needs a section [dma], which uses the FIFOs".to_owned();
        notes.at_line(fifos.rx_bytes.line, path.to_owned(), message);
    }
    let largest = u64::from(platform.largest_mps_bytes());
    for (key, size) in [
        ("rx_bytes", &fifos.rx_bytes),
        ("tx_bytes", &fifos.tx_bytes),
        ("ep_rx_bytes", &fifos.ep_rx_bytes),
        ("ep_tx_bytes", &fifos.ep_tx_bytes),
    ] {
        if size.value < largest {
            let message = format!("is {}; one payload of {largest} B must fit in", size.value);
            notes.at_line(size.line, format!("{path}.{key}"), message);
        }
    }
    let keeps = |kind| matches!(kind, RegionKind::Sram | RegionKind::Ddr);
    let regions: Vec<&str> =
        platform.regions.iter().filter(|region| keeps(region.kind.value)).map(|region| region.name.as_str()).collect();
    if !regions.contains(&fifos.ep_rx.as_str()) {
        let message = format!("is {:?}; regions with storage: {}", fifos.ep_rx, regions.join(", "));
        notes.at_line(fifos.rx_bytes.line, format!("{path}.ep_rx"), message);
    }
}

#[cfg(test)]
mod tests {
    use crate::{PRESETS, Platform};

    /// Problems of the preset with FIFOs if `from` is replaced by `to`.
    fn problem(from: &str, to: &str) -> String {
        let text = PRESETS.iter().find(|preset| preset.name == "rosta-virtex7").unwrap().text;
        assert!(text.contains(from), "{from}");
        Platform::parse("queues.toml", &text.replacen(from, to, 1))
            .map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn every_fifo_must_hold_one_maximum_payload() {
        for queue in ["rx", "tx", "ep_rx", "ep_tx"] {
            let from = format!("\n{queue}_bytes = {{ value = 4096,");
            let with = |bytes: u32| problem(&from, &format!("\n{queue}_bytes = {{ value = {bytes},"));
            assert_eq!(with(128), "");
            let refused = with(127);
            assert!(
                refused.contains(&format!("fifos.{queue}_bytes")) && refused.contains("128 B must fit"),
                "{refused}"
            );
        }
    }

    #[test]
    fn peer_writes_need_a_storage_region() {
        for name in ["registers", "nowhere"] {
            let refused = problem("ep_rx = \"ep_rx\"", &format!("ep_rx = \"{name}\""));
            assert!(refused.contains("fifos.ep_rx") && refused.contains("regions with storage: ep_rx"), "{refused}");
        }
    }

    #[test]
    fn fifos_without_a_dma_engine_are_rejected() {
        let text = PRESETS.iter().find(|preset| preset.name == "rosta-virtex7").unwrap().text;
        let (before, behind) = (text.find("[dma]").unwrap(), text.find("[fifos]").unwrap());
        let without = format!("{}{}", &text[..before], &text[behind..]);
        let refused = Platform::parse("queues.toml", &without).unwrap_err().to_string();
        assert!(refused.contains("[dma]"), "{refused}");
    }
}
