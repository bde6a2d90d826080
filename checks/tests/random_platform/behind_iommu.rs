//! Random platforms whose IOMMU translates.

use super::{Random, set};
use lanemark_platform::{Iommu, PRESETS, Platform};

/// A preset with a random IOMMU.
pub fn platform(random: &mut Random) -> Platform {
    let name = random.pick(&["card-gen5-x16", "rosta-virtex7"]);
    let preset = PRESETS.iter().find(|preset| preset.name == name).unwrap();
    let ways = random.pick(&[1, 2, 4, 8]);
    let sets = random.pick(&[1, 2, 16, 64, 256]);
    let (page_bits, page) = random.pick(&[(12, 4096_u64), (12, 4096), (21, 2 << 20)]);
    let index_bit = page_bits + random.pick(&[0, 0, 1, 3]);
    let number = |random: &mut Random, most: f64| (random.between(1.0, most) * 4.0).round() / 4.0;
    let (lookup, read, interval) = (number(random, 50.0), number(random, 500.0), number(random, 900.0));
    let interval = if random.below(2) == 0 { 0.0 } else { interval };
    let (reads, blocks, walkers) = (1 + random.below(5), random.pick(&[0, 1, 2, 16]), random.pick(&[1, 2, 4]));
    let entries = ways * sets;
    let section = format!(
        r#"
[iommu]
page_bytes = {{ value = {page}, assumed = "picked" }}
iotlb_entries = {{ value = {entries}, assumed = "picked" }}
iotlb_ways = {{ value = {ways}, assumed = "picked" }}
iotlb_index_bit = {{ value = {index_bit}, assumed = "picked" }}
lookup_ns = {{ value = {lookup}, assumed = "picked" }}
walk_reads = {{ value = {reads}, assumed = "picked" }}
walk_read_ns = {{ value = {read}, assumed = "picked" }}
walk_cache_entries = {{ value = {blocks}, assumed = "picked" }}
walkers = {{ value = {walkers}, assumed = "picked" }}
walk_interval_ns = {{ value = {interval}, assumed = "picked" }}

[link]"#
    );
    let text = preset.text.replacen("[link]", &section, 1);
    let mut platform = Platform::parse(name, &text).unwrap_or_else(|error| panic!("{error}"));
    platform.link.skp.value = false;
    platform.fifos = None;
    // Waiting requests hold these credits.
    for key in ["root_complex.posted_header_credits", "root_complex.nonposted_header_credits"] {
        set(&mut platform, key, random.pick(&[4.0, 8.0, 127.0]));
    }
    platform
}

/// The random numbers, for messages.
pub fn numbers(platform: &Platform) -> String {
    let keys = Iommu::KEYS.iter().map(|key| {
        let number = platform.number(&format!("iommu.{}", key.name));
        format!("{} {}", key.name, number.map_or(f64::NAN, |number| number.0))
    });
    keys.collect::<Vec<_>>().join(", ")
}
