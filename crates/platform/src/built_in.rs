//! The files that come with the program.

use toml::de::DeTable;

/// A built-in file: a platform, a host or a card.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// Name on the command line.
    pub name: &'static str,
    /// Its file in the repository.
    pub file: &'static str,
    /// Text of that file.
    pub text: &'static str,
}

impl Preset {
    /// Its summary in one line; `None` for a text that is not a file of this format.
    #[must_use]
    pub fn summary(&self) -> Option<String> {
        let table = DeTable::parse(self.text).ok()?;
        Some(table.get_ref().get("summary")?.get_ref().as_str()?.to_owned())
    }
}

macro_rules! built_in {
    ($name:literal, $file:literal) => {
        Preset { name: $name, file: $file, text: include_str!(concat!("../../../", $file)) }
    };
}

/// The built-in platforms.
pub const PRESETS: &[Preset] = &[
    built_in!("card-gen5-x16", "platforms/card-gen5-x16.toml"),
    built_in!("card-gen5-x16-iommu", "platforms/card-gen5-x16-iommu.toml"),
    built_in!("card-stratix10mx", "platforms/card-stratix10mx.toml"),
    built_in!("soc-noncoherent", "platforms/soc-noncoherent.toml"),
    built_in!("tacc-stratix4", "platforms/tacc-stratix4.toml"),
    built_in!("aws-f1", "platforms/aws-f1.toml"),
    built_in!("rosta-virtex7", "platforms/rosta-virtex7.toml"),
];

/// The built-in hosts, for the key `host` of a platform file.
pub const HOSTS: &[Preset] = &[
    built_in!("xeon-icelake", "platforms/hosts/xeon-icelake.toml"),
    built_in!("xeon-spr", "platforms/hosts/xeon-spr.toml"),
    built_in!("epyc-milan", "platforms/hosts/epyc-milan.toml"),
    built_in!("epyc-genoa", "platforms/hosts/epyc-genoa.toml"),
    built_in!("ampere-altra", "platforms/hosts/ampere-altra.toml"),
];

/// The built-in cards, for the key `card` of a platform file.
pub const CARDS: &[Preset] = &[
    built_in!("fpga-gen3-xdma", "platforms/cards/fpga-gen3-xdma.toml"),
    built_in!("fpga-gen4-xdma", "platforms/cards/fpga-gen4-xdma.toml"),
    built_in!("gpu-h100", "platforms/cards/gpu-h100.toml"),
    built_in!("nvme-gen4", "platforms/cards/nvme-gen4.toml"),
    built_in!("nic-100g", "platforms/cards/nic-100g.toml"),
];
