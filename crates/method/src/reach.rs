//! Placement of DMA in memory: window, stride, order, cache state and socket.

use lanemark_units::format_size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Requested parameters of DMA transfers; the question chooses those that are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reach {
    /// Window of each flow at the other end, in bytes.
    pub window_bytes: Option<u64>,
    /// Whether transfers begin at random offsets in the window, instead of back to back.
    pub is_random: bool,
    /// Distance between the starts of two transfers, or with random offsets their alignment; absent for adjacent
    /// transfers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stride_bytes: Option<u64>,
    /// Largest number of outstanding transfers.
    pub outstanding: Option<u32>,
    /// Initial cache state of the host memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_state: Option<CacheState>,
    /// Socket of the host memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<Socket>,
    /// Number of channels of each card, over which transfers are distributed, or one for each
    /// thread that calls the driver.
    pub channels: Option<u32>,
}

/// Initial cache state of host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// No cache holds the lines.
    Cold,
    /// A core wrote the lines last.
    HostWarm,
    /// A device wrote the lines last, after they were flushed from all caches.
    DeviceWarm,
}

impl CacheState {
    /// All states.
    pub const ALL: [CacheState; 3] = [CacheState::Cold, CacheState::HostWarm, CacheState::DeviceWarm];

    /// Name in options and records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            CacheState::Cold => "cold",
            CacheState::HostWarm => "host-warm",
            CacheState::DeviceWarm => "device-warm",
        }
    }
}

/// Socket of a memory, as seen from the devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Socket {
    /// The socket whose root ports the devices are attached to.
    #[default]
    Local,
    /// The other socket.
    Remote,
}

impl Socket {
    /// Both sockets.
    pub const ALL: [Socket; 2] = [Socket::Local, Socket::Remote];

    /// Name in options and records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Socket::Local => "local",
            Socket::Remote => "remote",
        }
    }
}

impl Reach {
    /// Whether `self` has every parameter that is requested in `asked`.
    #[must_use]
    pub fn is_as_asked(&self, asked: &Reach) -> bool {
        let Reach { window_bytes, is_random, stride_bytes, outstanding, cache_state, socket, channels } = *asked;
        (window_bytes.is_none() || window_bytes == self.window_bytes)
            && (!is_random || self.is_random)
            && (stride_bytes.is_none() || stride_bytes == self.stride_bytes)
            && (outstanding.is_none() || outstanding == self.outstanding)
            && (cache_state.is_none() || cache_state == self.cache_state)
            && (socket.is_none() || socket == self.socket)
            && (channels.is_none() || channels == self.channels)
    }

    /// Whether no parameter is requested.
    #[must_use]
    pub fn is_usual(&self) -> bool {
        *self == Reach::default()
    }
}

impl std::fmt::Display for Reach {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(state) = self.cache_state {
            write!(f, ", {}", state.name())?;
        }
        if let Some(socket) = self.socket {
            write!(f, ", {} socket", socket.name())?;
        }
        match (self.is_random, self.stride_bytes.map(format_size)) {
            (true, Some(stride)) => write!(f, ", at random multiples of {stride}")?,
            (true, None) => f.write_str(", at random")?,
            (false, Some(stride)) => write!(f, ", every {stride}")?,
            (false, None) => {}
        }
        if let Some(bytes) = self.window_bytes {
            write!(f, ", in {}", format_size(bytes))?;
        }
        if let Some(most) = self.outstanding {
            write!(f, ", {most} outstanding")?;
        }
        match self.channels {
            None => Ok(()),
            Some(1) => f.write_str(", on 1 channel"),
            Some(channels) => write!(f, ", on {channels} channels"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_a_reach_have_the_requested_parameters() {
        let window_bytes = Some(65536);
        let reach =
            Reach { window_bytes, is_random: true, outstanding: Some(4), channels: Some(2), ..Reach::default() };
        assert_eq!(reach.to_string(), ", at random, in 64KiB, 4 outstanding, on 2 channels");
        let apart = Reach { window_bytes, stride_bytes: Some(4096), ..Reach::default() };
        assert_eq!(apart.to_string(), ", every 4KiB, in 64KiB");
        let lines = Reach { is_random: true, stride_bytes: Some(64), ..Reach::default() };
        assert_eq!(lines.to_string(), ", at random multiples of 64B");
        assert!(lines.is_as_asked(&Reach { is_random: true, ..Reach::default() }));
        let one = Reach { channels: Some(1), ..Reach::default() };
        assert_eq!(one.to_string(), ", on 1 channel");
        let warm = Reach {
            cache_state: Some(CacheState::DeviceWarm),
            socket: Some(Socket::Remote),
            window_bytes,
            ..Reach::default()
        };
        assert_eq!(warm.to_string(), ", device-warm, remote socket, in 64KiB");
        assert!(warm.is_as_asked(&Reach { cache_state: Some(CacheState::DeviceWarm), ..Reach::default() }));
        assert!(!warm.is_as_asked(&Reach { socket: Some(Socket::Local), ..Reach::default() }));
        assert!(!Reach { is_random: true, ..Reach::default() }.is_usual());
        assert!(Reach::default().is_usual() && Reach::default().to_string().is_empty());
    }
}
