//! The experiments that come with the program.

/// An experiment's files.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// The folder's name.
    pub name: &'static str,
    /// `experiment.toml`.
    pub experiment: &'static str,
    /// `published.csv`.
    pub published: &'static str,
}

macro_rules! papers {
    ($($name:literal),* $(,)?) => {
        /// Every experiment, in the order they are reproduced.
        pub const PAPERS: &[Paper] = &[$(Paper {
            name: $name,
            experiment: include_str!(concat!("../../../experiments/", $name, "/experiment.toml")),
            published: include_str!(concat!("../../../experiments/", $name, "/published.csv")),
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

/// The experiment of this name.
#[must_use]
pub fn paper(name: &str) -> Option<&'static Paper> {
    PAPERS.iter().find(|paper| paper.name == name)
}
