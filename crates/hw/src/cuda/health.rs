//! State of a GPU as its management library (NVML) reports it: link, clocks, temperature, throttling.
//!
//! Everything is optional: containers and virtual machines may lack the library, and boards may lack a value. Nothing is set.

use nvml_wrapper::Nvml;
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, GpuVirtualizationMode, TemperatureSensor};
use std::ffi::OsStr;
use std::fmt;
use std::sync::OnceLock;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// State of a GPU at an instant; a value that the library does not report is `None`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Health {
    /// Generation and width of the link.
    pub link: Option<(u32, u32)>,
    /// Clock of the multiprocessors in MHz.
    pub sm_clock_mhz: Option<u32>,
    /// Clock of the memory in MHz.
    pub memory_clock_mhz: Option<u32>,
    /// Temperature of the chip in degrees Celsius.
    pub temperature_c: Option<u32>,
    /// Power and temperature limits that now lower the clocks; empty if there are none, or if unknown.
    pub throttled_by: Vec<&'static str>,
    /// Modes in which figures are not those of a whole device without encryption; empty if there are none, or if unknown.
    pub modes: Vec<&'static str>,
    /// PCIe replays since the reset of the device, as NVML counts them; one replay may send several TLPs again.
    pub replays: Option<u32>,
}

/// Longest time that the library may take: it may block when the device is lost.
const LONGEST: Duration = Duration::from_secs(10);
/// Value of the current mode where MIG is enabled. Source: NVML API reference, `NVML_DEVICE_MIG_ENABLE`.
const MIG_ENABLED: u32 = 1;
/// File name of the library.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// Reasons that lower the clocks under load, and their names. Source: NVML API reference, `nvmlClocksEventReasons`. An idle
/// device, a setting of the user, and boards that keep in step are no reasons for concern.
const THROTTLES: [(ThrottleReasons, &str); 5] = [
    (ThrottleReasons::SW_POWER_CAP, "the power limit"),
    (ThrottleReasons::HW_SLOWDOWN, "the hardware (temperature or power)"),
    (ThrottleReasons::SW_THERMAL_SLOWDOWN, "the temperature limit of the driver"),
    (ThrottleReasons::HW_THERMAL_SLOWDOWN, "the temperature limit of the hardware"),
    (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, "the power brake of the board"),
];

impl Health {
    /// State of the GPU at this PCI address.
    ///
    /// # Errors
    /// Reason why nothing can be read: no library, no such GPU, or no answer within 10 s.
    pub fn now(bus_id: &str) -> Result<Health, String> {
        let bus_id = bus_id.to_owned();
        let (sender, receiver) = sync_channel(1);
        let body = move || {
            // Sending fails only if the caller has given up.
            let _ = sender.send(Health::read(&bus_id));
        };
        let spawned = std::thread::Builder::new().name("management library".to_owned()).spawn(body);
        spawned.map_err(|error| format!("starting a thread: {error}"))?;
        let late = |_| format!("{LIBRARY} has not answered for {} s", LONGEST.as_secs());
        receiver.recv_timeout(LONGEST).map_err(late)?
    }

    fn read(bus_id: &str) -> Result<Health, String> {
        static OPENED: OnceLock<Result<Nvml, String>> = OnceLock::new();
        let open = || Nvml::builder().lib_path(OsStr::new(LIBRARY)).init().map_err(|error| error.to_string());
        let library = OPENED.get_or_init(open).as_ref().map_err(String::clone)?;
        let device = library.device_by_pci_bus_id(bus_id).map_err(|error| format!("{bus_id}: {error}"))?;
        let link = device.current_pcie_link_gen().ok().zip(device.current_pcie_link_width().ok());
        let reasons = device.current_throttle_reasons().unwrap_or(ThrottleReasons::NONE);
        let throttled_by = THROTTLES.iter().filter(|(reason, _)| reasons.contains(*reason)).map(|(_, name)| *name);
        let is_split = device.mig_mode().is_ok_and(|mode| mode.current == MIG_ENABLED);
        let is_virtual = device.virtualization_mode().is_ok_and(|mode| mode == GpuVirtualizationMode::Vgpu);
        let modes = [
            (is_split, "MIG: it is split into parts"),
            (is_virtual, "vGPU: it is shared with other machines"),
            (
                device.check_confidential_compute_status().unwrap_or(false),
                "confidential computing: copies are encrypted",
            ),
        ];
        Ok(Health {
            link,
            modes: modes.into_iter().filter(|(is_on, _)| *is_on).map(|(_, mode)| mode).collect(),
            sm_clock_mhz: device.clock_info(Clock::SM).ok(),
            memory_clock_mhz: device.clock_info(Clock::Memory).ok(),
            temperature_c: device.temperature(TemperatureSensor::Gpu).ok(),
            throttled_by: throttled_by.collect(),
            replays: device.pcie_replay_counter().ok(),
        })
    }

    /// Sentences, without a full stop, about new replays since `before` and about clocks that are lowered now.
    #[must_use]
    pub fn changes_since(&self, before: &Health) -> Vec<String> {
        let mut changes = Vec::new();
        if let (Some(was), Some(is)) = (before.replays, self.replays)
            && is > was
        {
            changes.push(format!("the link of the device had {} replays during the run", is - was));
        }
        if !self.throttled_by.is_empty() {
            changes.push(format!("the clocks of the device are lowered by {}", self.throttled_by.join(" and ")));
        }
        changes
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.link.map(|(generation, lanes)| format!("link Gen{generation} x{lanes}")));
        parts.extend(self.sm_clock_mhz.map(|mhz| format!("multiprocessors at {mhz} MHz")));
        parts.extend(self.memory_clock_mhz.map(|mhz| format!("memory at {mhz} MHz")));
        parts.extend(self.temperature_c.map(|degrees| format!("{degrees} °C")));
        if !self.throttled_by.is_empty() {
            parts.push(format!("clocks lowered by {}", self.throttled_by.join(" and ")));
        }
        parts.extend(self.modes.iter().map(|mode| format!("{mode}, so its figures are not those of a whole GPU")));
        if parts.is_empty() { f.write_str("nothing reported") } else { f.write_str(&parts.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_reported_is_shown() {
        let all = Health {
            link: Some((5, 16)),
            sm_clock_mhz: Some(1980),
            memory_clock_mhz: Some(2619),
            temperature_c: Some(35),
            throttled_by: vec!["the power limit"],
            modes: vec![],
            replays: Some(2),
        };
        let split = Health { modes: vec!["MIG: it is split into parts"], ..Health::default() };
        assert_eq!(split.to_string(), "MIG: it is split into parts, so its figures are not those of a whole GPU");
        assert_eq!(
            all.to_string(),
            "link Gen5 x16, multiprocessors at 1980 MHz, memory at 2619 MHz, 35 °C, clocks lowered by the power limit"
        );
        assert_eq!(Health::default().to_string(), "nothing reported");
    }

    #[test]
    fn replays_during_a_run_and_lowered_clocks_are_reported() {
        let with = |replays, throttled_by| Health { throttled_by, replays, ..Health::default() };
        let changes = |now: Health| now.changes_since(&with(Some(2), vec![]));
        assert!(changes(with(Some(2), vec![])).is_empty() && changes(with(None, vec![])).is_empty());
        assert_eq!(changes(with(Some(5), vec![])), ["the link of the device had 3 replays during the run"]);
        let slow = changes(with(Some(2), vec!["the power limit", "the power brake of the board"]));
        let expected = "the clocks of the device are lowered by the power limit and the power brake of the board";
        assert_eq!(slow, [expected]);
    }
}
