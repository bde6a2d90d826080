//! Properties of a link that host and card state differently.

/// Property of a link that the host and the card, or the platform file, state differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lesser {
    /// Path of the key, such as `link.generation`.
    pub key: String,
    /// Value that holds.
    pub value: u64,
    /// Name of the file that states it; empty for the platform file.
    pub from: String,
    /// Value that does not hold.
    pub other: u64,
    /// Name of the file that states the other value.
    pub other_from: String,
}

impl std::fmt::Display for Lesser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Lesser { key, value, from, other, other_from } = self;
        if from.is_empty() {
            return write!(
                f,
                "{key} = {value} holds, as stated in this file, although {other_from} supports {other} only: check \
                 which of them is right"
            );
        }
        write!(f, "{key} = {value} holds, from {from}: the lower one; {other_from} supports {other}")
    }
}
