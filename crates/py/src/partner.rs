//! The partner of a device in a simulator of RTL, for `lanemark.cocotb`.

use crate::error::{Kind, raised};
use lanemark_adversary::{Finding, PartnerSettings, Rule};
use lanemark_dut::Outputs;
use lanemark_hard_blocks::{Attached, Interface, Pin, Port, PortRow};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyInt};

/// Root complex and host memory, and the block between them and the ports of a design.
#[pyclass(module = "lanemark._lanemark")]
pub struct Partner {
    host: lanemark_adversary::Partner,
    attached: Attached,
    inputs: Vec<Pin>,
    /// Name, place, and whether it has no valid signal.
    outputs: Vec<(&'static str, Pin, bool)>,
    /// DWs of all inputs that the simulator has.
    shown: Vec<Vec<u32>>,
    is_in_reset: bool,
}

/// A broken rule: its name, and the finding in words.
type Broken = (&'static str, String);

fn broken<T>(checked: Result<T, Finding>) -> Result<T, Broken> {
    checked.map_err(|finding| (finding.rule.row().name, finding.to_string()))
}

#[pymethods]
impl Partner {
    /// `ports` has the name and the bits of each port of the interface that the design has.
    #[new]
    fn new(
        seed: u64,
        is_adversary: bool,
        is_illegal: bool,
        timeout_clocks: u32,
        memory_start: u64,
        memory_bytes: u64,
        ports: Vec<(String, u32)>,
    ) -> PyResult<Partner> {
        let interface = found(|name| ports.iter().any(|(port, _)| port == name))?;
        let row = |name: &str| interface.ports.iter().find(|row| row.name == name);
        let port =
            |(name, bits): (String, u32)| Port { is_input: row(&name).is_none_or(|row| row.is_input), name, bits };
        let ports: Vec<Port> = ports.into_iter().map(port).collect();
        let attached = lanemark_hard_blocks::attach(ports).map_err(|error| raised(Kind::Usage, &error.to_string()))?;
        let settings = PartnerSettings {
            seed,
            is_adversary,
            is_illegal,
            timeout_clocks,
            timer_slack_clocks: attached.block.timer_slack_clocks(),
            beat_bytes: attached.block.beat_bytes(),
            memory_start,
            memory_bytes,
        };
        let host = lanemark_adversary::Partner::new(settings).map_err(|error| raised(Kind::Usage, &error))?;
        let there = |row: &&'static PortRow| attached.pins.find(row.name).bits() > 0;
        let inputs = rows(interface, true).filter(there).map(|row| attached.pins.find(row.name)).collect::<Vec<Pin>>();
        let (controls, data): (Vec<&'static PortRow>, Vec<&'static PortRow>) =
            rows(interface, false).filter(there).partition(|row| row.valid.is_none());
        let of = |control: &&'static PortRow| {
            let control = Some(control.name);
            data.iter().filter(move |row| row.valid == control)
        };
        let outputs = controls.iter().chain(controls.iter().flat_map(of));
        let output = |row: &&'static PortRow| (row.name, attached.pins.find(row.name), row.valid.is_none());
        let outputs = outputs.map(output).collect();
        let shown = vec![Vec::new(); inputs.len()];
        Ok(Partner { host, attached, inputs, outputs, shown, is_in_reset: true })
    }

    /// Inputs that changed since the last clock: index among those that the design has, in the order of [`interface_of`], and
    /// value.
    fn drive<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<(usize, Bound<'py, PyAny>)>> {
        let inputs = self.host.drive();
        self.is_in_reset = inputs.reset != 0;
        self.attached.block.drive(inputs, &mut self.attached.pins);
        let mut changed = Vec::new();
        for (at, (pin, shown)) in self.inputs.iter().zip(&mut self.shown).enumerate() {
            let dws = self.attached.pins.dws(*pin);
            if dws != &shown[..] {
                shown.clear();
                shown.extend_from_slice(dws);
                changed.push((at, number(py, dws)?));
            }
        }
        Ok(changed)
    }

    /// Whether the design is in reset in this clock: its outputs are not looked at.
    #[getter]
    fn is_in_reset(&self) -> bool {
        self.is_in_reset
    }

    /// Checks the outputs of the design in this clock; returns a broken rule. `values` has the bits of each output as text, the
    /// highest first: the outputs without a valid signal, then the others grouped by valid signal. An empty text is not valid;
    /// in a reset there are none.
    fn sample(&mut self, values: Vec<PyBackedStr>) -> Option<Broken> {
        for ((name, pin, is_control), bits) in self.outputs.iter().zip(&values) {
            let has_value = read(bits, self.attached.pins.dws_mut(*pin));
            if *is_control && !has_value {
                let what = format!("{name} is {bits}, neither 0 nor 1");
                return broken(Err::<(), _>(Finding { rule: Rule::Assertion, what, clock: self.host.clock() })).err();
            }
        }
        let mut outputs = Outputs::default();
        let Partner { host, attached, .. } = self;
        let sampled = match attached.block.sample(host.inputs(), &attached.pins, &mut outputs) {
            Ok(()) => host.sample(&outputs),
            Err(what) => Err(Finding { rule: Rule::Assertion, what, clock: host.clock() }),
        };
        broken(sampled).err()
    }

    /// Sets or clears the reset.
    fn set_reset(&mut self, is_set: bool) {
        self.host.set_reset(is_set);
    }

    /// Queues a write to a BAR.
    fn write(&mut self, bar: u8, address: u64, data: &[u8]) -> PyResult<()> {
        checked(bar, address, data.len())?;
        self.host.write(bar, address, data);
        Ok(())
    }

    /// Queues a read of a BAR; returns its tag.
    fn start_read(&mut self, bar: u8, address: u64, length: usize) -> PyResult<u16> {
        checked(bar, address, length)?;
        Ok(self.host.start_read(bar, address, length as u32))
    }

    /// Bytes of a read, once it is completed, or a broken rule.
    fn take_read<'py>(&mut self, py: Python<'py>, tag: u16) -> (Option<Bound<'py, PyBytes>>, Option<Broken>) {
        match broken(self.host.take_read(tag)) {
            Ok(data) => (data.map(|data| PyBytes::new(py, &data)), None),
            Err(broken) => (None, Some(broken)),
        }
    }

    /// Bytes of the host memory.
    fn memory<'py>(&mut self, py: Python<'py>, address: u64, length: usize) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.host.memory(address, length).ok_or_else(|| outside(address, length))?;
        Ok(PyBytes::new(py, bytes))
    }

    /// Changes bytes of the host memory.
    fn set_memory(&mut self, address: u64, data: &[u8]) -> PyResult<()> {
        let bytes = self.host.memory(address, data.len()).ok_or_else(|| outside(address, data.len()))?;
        bytes.copy_from_slice(data);
        Ok(())
    }

    /// Begins a transfer.
    fn begin(&mut self, address: u64, length: usize, writes: bool) -> PyResult<()> {
        self.host.memory(address, length).ok_or_else(|| outside(address, length))?;
        self.host.begin(address, length as u64, writes);
        Ok(())
    }

    /// Ends the transfer; returns the name of its illegal situation.
    fn end(&mut self) -> Option<&'static str> {
        self.host.end();
        self.host.twisted().map(|situation| situation.row().name)
    }

    /// Checks that the transfer can still end; returns a broken rule.
    fn check_progress(&self) -> Option<Broken> {
        broken(self.host.check_progress()).err()
    }

    /// Compares bytes that the device has copied; returns a broken rule.
    fn check_data(&self, found: &[u8], expected: &[u8]) -> Option<Broken> {
        broken(self.host.check_data(found, expected)).err()
    }

    /// MSIs since the last transfer began.
    #[getter]
    fn interrupts(&self) -> u32 {
        self.host.interrupts()
    }

    /// Situations that were created, and how often.
    fn coverage(&self) -> Vec<(&'static str, u64)> {
        let count = |row: &lanemark_adversary::SituationRow| (row.name, self.host.coverage().of(row.situation));
        lanemark_adversary::SITUATIONS.iter().map(count).filter(|(_, times)| *times > 0).collect()
    }

    /// TLPs of both directions as a capture.
    fn pcapng<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.host.capture().to_pcapng())
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

/// Reads the bits of a number, the highest first; those that are neither 0 nor 1 are read as 0. Returns whether all are.
fn read(bits: &str, dws: &mut [u32]) -> bool {
    dws.fill(0);
    for (at, bit) in bits.bytes().rev().enumerate() {
        if let (b'1', Some(dw)) = (bit, dws.get_mut(at / 32)) {
            *dw |= 1 << (at % 32);
        }
    }
    bits.bytes().all(|bit| matches!(bit, b'0' | b'1'))
}

/// A number of a port in Python.
fn number<'py>(py: Python<'py>, dws: &[u32]) -> PyResult<Bound<'py, PyAny>> {
    if let [low] = dws {
        return Ok(low.into_pyobject(py)?.into_any());
    }
    let bytes: Vec<u8> = dws.iter().flat_map(|dw| dw.to_le_bytes()).collect();
    py.get_type::<PyInt>().call_method1("from_bytes", (PyBytes::new(py, &bytes), "little"))
}

/// Ports of one direction that the test bench does not drive itself.
fn rows(interface: &'static Interface, is_input: bool) -> impl Iterator<Item = &'static PortRow> {
    interface.ports.iter().filter(move |row| row.is_input == is_input && row.name != FUNCTION_RESET)
}

/// The port that belongs to the test bench.
const FUNCTION_RESET: &str = "flr";

fn found(has_port: impl Fn(&str) -> bool) -> PyResult<&'static Interface> {
    lanemark_hard_blocks::interface_of(has_port).map_err(|error| raised(Kind::Usage, &error.to_string()))
}

/// Name, clock, inputs and outputs of an interface; an output has the name of its valid signal, or an empty one.
type InterfacePorts = (&'static str, &'static str, Vec<&'static str>, Vec<(&'static str, &'static str)>);

/// The interface of a design with these ports.
#[pyfunction]
pub fn interface_of(has_port: &Bound<'_, PyAny>) -> PyResult<InterfacePorts> {
    let has = |name: &str| has_port.call1((name,)).and_then(|answer| answer.is_truthy()).unwrap_or(false);
    let interface = found(has)?;
    let inputs = rows(interface, true).map(|row| row.name).collect();
    let outputs = rows(interface, false).map(|row| (row.name, row.valid.unwrap_or_default())).collect();
    Ok((interface.name, interface.clock, inputs, outputs))
}
