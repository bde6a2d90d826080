//! A device with ports, version 2 of `rtl/lanemark_dut.h`.

use super::device::Device;
use super::watchdog::Function;
use lanemark_hard_blocks::{Design, Pin, Pins, Port};
use std::ffi::{CStr, c_char, c_void};
use std::ptr::NonNull;

/// `lanemark_dut_ports`.
pub(super) type Ports = unsafe extern "C" fn(*mut c_void, *mut u32) -> *const RawPort;
/// `lanemark_dut_evaluate`.
pub(super) type Evaluate = unsafe extern "C" fn(*mut c_void) -> u32;

/// `lanemark_dut_port`.
#[repr(C)]
pub(super) struct RawPort {
    name: *const c_char,
    value: *mut c_void,
    bits: u32,
    is_input: u32,
}

/// Most ports of a design, and most bits of one.
const MOST_PORTS: u32 = 1 << 16;
const MOST_BITS: u32 = 1 << 20;

/// The variable of a port, and the place of its value in [`Pins`].
#[derive(Debug)]
struct Variable {
    value: NonNull<c_void>,
    bytes: usize,
    pin: Pin,
}

impl Variable {
    fn new(value: NonNull<c_void>, pin: Pin) -> Variable {
        let bytes = match pin.bits() {
            0..=8 => 1,
            9..=16 => 2,
            17..=32 => 4,
            _ => pin.dws() * 4,
        };
        Variable { value, bytes, pin }
    }

    /// Copies the value of the pin to the variable.
    fn write(&self, pins: &Pins) {
        let from = pins.dws(self.pin);
        let (value, low) = (self.value, from[0]);
        // SAFETY: by `rtl/lanemark_dut.h`, a variable of this width has this type; one of 8 bytes or more is a sequence of DWs with
        // the lowest bits first on the processors that this program is built for.
        unsafe {
            match self.bytes {
                1 => value.cast::<u8>().write(low as u8),
                2 => value.cast::<u16>().write(low as u16),
                4 => value.cast::<u32>().write(low),
                _ => value.cast::<u32>().copy_from_nonoverlapping(NonNull::from(from).cast(), from.len()),
            }
        }
    }

    /// Copies the value of the variable to the pin.
    fn read(&self, pins: &mut Pins) {
        let to = pins.dws_mut(self.pin);
        let value = self.value;
        // SAFETY: as above.
        unsafe {
            match self.bytes {
                1 => to[0] = u32::from(value.cast::<u8>().read()),
                2 => to[0] = u32::from(value.cast::<u16>().read()),
                4 => to[0] = value.cast::<u32>().read(),
                _ => value.cast::<u32>().copy_to_nonoverlapping(NonNull::from(&mut *to).cast(), to.len()),
            }
        }
    }
}

/// A device with ports.
#[derive(Debug)]
pub(super) struct LoadedDesign {
    device: Device,
    evaluate: Evaluate,
    ports: Vec<Port>,
    inputs: Vec<Variable>,
    outputs: Vec<Variable>,
}

// SAFETY: the variables of the ports belong to the device, which may move between threads.
unsafe impl Send for LoadedDesign {}

impl LoadedDesign {
    /// Reads the list of ports of a device.
    ///
    /// # Errors
    /// The number of the port without a name, a value or a width; or the number of ports.
    pub fn new(device: Device, ports: Ports, evaluate: Evaluate) -> Result<LoadedDesign, String> {
        let mut count = 0;
        // SAFETY: the device is open.
        let first = device.calls.call(Function::Ports, || unsafe { ports(device.pointer.as_ptr(), &raw mut count) });
        if first.is_null() || count > MOST_PORTS {
            return Err(format!("{count} ports; a design has at most {MOST_PORTS}"));
        }
        let mut ports = Vec::new();
        let mut values = Vec::new();
        for at in 0..count as usize {
            // SAFETY: by `rtl/lanemark_dut.h`, so many ports are there.
            let RawPort { name, value, bits, is_input } = unsafe { first.add(at).read() };
            let (false, Some(value), 1..=MOST_BITS) = (name.is_null(), NonNull::new(value), bits) else {
                return Err(format!("port {at} has no name, no value, or {bits} bits"));
            };
            // SAFETY: the name is a string.
            let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
            ports.push(Port { name, bits, is_input: is_input != 0 });
            values.push(value);
        }
        // Another `Pins` of the same ports has them at the same places.
        let pins = Pins::new(ports.clone());
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for ((port, pin), value) in pins.ports().iter().zip(values) {
            if port.is_input { &mut inputs } else { &mut outputs }.push(Variable::new(value, *pin));
        }
        Ok(LoadedDesign { device, evaluate, ports, inputs, outputs })
    }

    fn call(&self, function: Function) -> bool {
        // SAFETY: the device is open.
        self.device.calls.call(function, || unsafe { (self.evaluate)(self.device.pointer.as_ptr()) != 0 })
    }
}

impl Design for LoadedDesign {
    fn ports(&self) -> Vec<Port> {
        self.ports.clone()
    }

    fn evaluate(&mut self, pins: &mut Pins) -> bool {
        for input in &self.inputs {
            input.write(pins);
        }
        let has_failed = self.call(Function::Evaluate);
        for output in &self.outputs {
            output.read(pins);
        }
        has_failed
    }

    fn rise(&mut self, clock: Pin, pins: &mut Pins) -> bool {
        pins.set(clock, 1);
        if let Some(clock) = self.inputs.iter().find(|input| input.pin == clock) {
            clock.write(pins);
        }
        self.call(Function::Rise)
    }

    fn failed_assertion(&mut self) -> Option<String> {
        self.device.failed_assertion()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};

    #[test]
    fn a_port_has_the_layout_of_the_header() {
        assert_eq!(size_of::<RawPort>(), 24);
        let offsets = [
            offset_of!(RawPort, name),
            offset_of!(RawPort, value),
            offset_of!(RawPort, bits),
            offset_of!(RawPort, is_input),
        ];
        assert_eq!(offsets, [0, 8, 16, 20]);
    }
}
