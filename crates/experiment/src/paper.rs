//! The built-in experiments.

/// The files of an experiment.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// Name of the folder.
    pub name: &'static str,
    /// Content of `experiment.toml`.
    pub experiment: &'static str,
    /// Content of `published.csv`.
    pub published: &'static str,
    /// Content of `dependencies.csv`.
    pub dependencies: &'static str,
}

macro_rules! papers {
    ($($name:literal),* $(,)?) => {
        /// Every experiment, in the order of reproduction.
        pub const PAPERS: &[Paper] = &[$(Paper {
            name: $name,
            experiment: include_str!(concat!("../../../experiments/", $name, "/experiment.toml")),
            published: include_str!(concat!("../../../experiments/", $name, "/published.csv")),
            dependencies: include_str!(concat!("../../../experiments/", $name, "/dependencies.csv")),
        }),*];
    };
}

papers!(
    "tacc-tr-14-10",
    "aws-f1-write-combining",
    "rosta-virtex7-peer-to-peer",
    "hp-coherent-io",
    "sandia-oneapi-fpga"
);

/// The experiment named `name`.
#[must_use]
pub fn paper(name: &str) -> Option<&'static Paper> {
    PAPERS.iter().find(|paper| paper.name == name)
}
