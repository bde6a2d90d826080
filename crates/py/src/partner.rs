//! The partner of a device in a simulator of RTL, for `lanemark.cocotb`.

use crate::error::{Kind, raised};
use lanemark_adversary::{Finding, PartnerSettings};
use lanemark_dut::Outputs;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// Bytes of a beat.
const BEAT_BYTES: usize = 4;

/// Root complex and host memory.
#[pyclass(module = "lanemark._lanemark")]
pub struct Partner {
    partner: lanemark_adversary::Partner,
}

/// A broken rule: its name, and the finding in words.
type Broken = (&'static str, String);

fn broken<T>(checked: Result<T, Finding>) -> Result<T, Broken> {
    checked.map_err(|finding| (finding.rule.row().name, finding.to_string()))
}

#[pymethods]
impl Partner {
    #[new]
    fn new(
        seed: u64,
        is_adversary: bool,
        is_illegal: bool,
        timeout_clocks: u32,
        memory_start: u64,
        memory_bytes: u64,
    ) -> PyResult<Partner> {
        let settings = PartnerSettings {
            seed,
            is_adversary,
            is_illegal,
            timeout_clocks,
            beat_bytes: BEAT_BYTES,
            memory_start,
            memory_bytes,
        };
        let partner = lanemark_adversary::Partner::new(settings).map_err(|error| raised(Kind::Usage, &error))?;
        Ok(Partner { partner })
    }

    /// Inputs of the device in the next clock, in the order of `INPUTS` in `lanemark.cocotb`.
    fn drive(&mut self) -> [u64; 18] {
        let it = self.partner.drive();
        let data = u32::from_be_bytes([it.rx_data[0], it.rx_data[1], it.rx_data[2], it.rx_data[3]]);
        [
            data.into(),
            u64::from(it.rx_bytes > 0),
            it.rx_last.into(),
            it.rx_bar.into(),
            it.tx_ready.into(),
            it.reset.into(),
            it.bus_master.into(),
            it.msi_enable.into(),
            it.posted_headers.into(),
            it.non_posted_headers.into(),
            it.posted_data.into(),
            it.requester_id.into(),
            it.mps.into(),
            it.mrrs.into(),
            it.tags.into(),
            it.timeout_clocks.into(),
            it.msi_address,
            it.msi_data.into(),
        ]
    }

    /// Checks the outputs of the device in this clock; returns a broken rule.
    fn sample(&mut self, data: u32, is_valid: bool, is_last: bool, is_ready: bool) -> Option<Broken> {
        let mut outputs = Outputs { tx_last: is_last.into(), rx_ready: is_ready.into(), ..Outputs::default() };
        if is_valid {
            outputs.tx_bytes = BEAT_BYTES as u8;
            outputs.tx_data[..BEAT_BYTES].copy_from_slice(&data.to_be_bytes());
        }
        broken(self.partner.sample(&outputs)).err()
    }

    /// Sets or clears the reset.
    fn set_reset(&mut self, is_set: bool) {
        self.partner.set_reset(is_set);
    }

    /// Queues a write to a BAR.
    fn write(&mut self, bar: u8, address: u64, data: &[u8]) -> PyResult<()> {
        checked(bar, address, data.len())?;
        self.partner.write(bar, address, data);
        Ok(())
    }

    /// Queues a read of a BAR; returns its tag.
    fn start_read(&mut self, bar: u8, address: u64, length: usize) -> PyResult<u16> {
        checked(bar, address, length)?;
        Ok(self.partner.start_read(bar, address, length as u32))
    }

    /// Bytes of a read, once it is completed, or a broken rule.
    fn take_read<'py>(&mut self, py: Python<'py>, tag: u16) -> (Option<Bound<'py, PyBytes>>, Option<Broken>) {
        match broken(self.partner.take_read(tag)) {
            Ok(data) => (data.map(|data| PyBytes::new(py, &data)), None),
            Err(broken) => (None, Some(broken)),
        }
    }

    /// Bytes of the host memory.
    fn memory<'py>(&mut self, py: Python<'py>, address: u64, length: usize) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.partner.memory(address, length).ok_or_else(|| outside(address, length))?;
        Ok(PyBytes::new(py, bytes))
    }

    /// Changes bytes of the host memory.
    fn set_memory(&mut self, address: u64, data: &[u8]) -> PyResult<()> {
        let bytes = self.partner.memory(address, data.len()).ok_or_else(|| outside(address, data.len()))?;
        bytes.copy_from_slice(data);
        Ok(())
    }

    /// Begins a transfer.
    fn begin(&mut self, address: u64, length: usize, writes: bool) -> PyResult<()> {
        self.partner.memory(address, length).ok_or_else(|| outside(address, length))?;
        self.partner.begin(address, length as u64, writes);
        Ok(())
    }

    /// Ends the transfer; returns the name of its illegal situation.
    fn end(&mut self) -> Option<&'static str> {
        self.partner.end();
        self.partner.twisted().map(|situation| situation.row().name)
    }

    /// Checks that the transfer can still end; returns a broken rule.
    fn check_progress(&self) -> Option<Broken> {
        broken(self.partner.check_progress()).err()
    }

    /// Compares bytes that the device has copied; returns a broken rule.
    fn check_data(&self, found: &[u8], expected: &[u8]) -> Option<Broken> {
        broken(self.partner.check_data(found, expected)).err()
    }

    /// MSIs since the last transfer began.
    #[getter]
    fn interrupts(&self) -> u32 {
        self.partner.interrupts()
    }

    /// Situations that were created, and how often.
    fn coverage(&self) -> Vec<(&'static str, u64)> {
        let count = |row: &lanemark_adversary::SituationRow| (row.name, self.partner.coverage().of(row.situation));
        lanemark_adversary::SITUATIONS.iter().map(count).filter(|(_, times)| *times > 0).collect()
    }

    /// TLPs of both directions as a capture.
    fn pcapng<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.partner.capture().to_pcapng())
    }
}

/// Refuses an access to a BAR that is not one DW or two.
fn checked(bar: u8, address: u64, length: usize) -> PyResult<()> {
    if bar > 5 {
        return Err(raised(Kind::Usage, &format!("bar: {bar}; a function has BAR 0 to 5")));
    }
    if !matches!(length, 4 | 8) || !address.is_multiple_of(4) || address.checked_add(8).is_none() {
        let text = format!("{length} B at {address:#x}: access 4 or 8 B at a multiple of 4");
        return Err(raised(Kind::Usage, &text));
    }
    if address % 4096 + length as u64 > 4096 {
        return Err(raised(Kind::Usage, &format!("{length} B at {address:#x}: cross no 4 KiB boundary")));
    }
    Ok(())
}

fn outside(address: u64, length: usize) -> PyErr {
    raised(Kind::Usage, &format!("{length} B at {address:#x} are outside the host memory"))
}
