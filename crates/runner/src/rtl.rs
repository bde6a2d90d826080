//! A card compiled from its source, on a simulated host.

use crate::cancel::Cancel;
use crate::error::RunError;
use crate::open_target::{Kind, OpenTarget};
use crate::setup::Setup;
use crate::target::Target;
use lanemark_dut::Dut;
use lanemark_hw::dut_library::{DutLibrary, Watchdog};
use lanemark_sim::{CompiledCard, SimulatedMachine};
use lanemark_units::Ticks;
use std::path::Path;
use std::time::Duration;

/// Longest call into a design.
const HANGS_AFTER: Duration = Duration::from_secs(10);

/// Opens the card in a library on the host of the twin; its clock is the time of a beat of the twin's card.
///
/// # Errors
/// [`RunError`] if the library or the twin is absent or unfit.
pub(crate) fn open(path: &Path, setup: &Setup, cancel: &Cancel) -> Result<OpenTarget, RunError> {
    let name = Target::Rtl(path.to_owned()).to_string();
    let twin = setup.twin.as_ref().ok_or_else(|| RunError::RtlWithoutTwin { target: name.clone() })?;
    if twin.is_real() {
        return Err(RunError::TwinIsReal { twin: twin.to_string() });
    }
    let on_hang = setup.on_hang.ok_or_else(|| RunError::RtlUnwatched { target: name.clone() })?;
    let twin = twin.open(&Setup::default(), cancel)?;
    let platform = twin.platform().ok_or_else(|| RunError::RtlWithoutTwin { target: name.clone() })?;
    let watchdog = Watchdog::start(HANGS_AFTER, on_hang.0).map_err(RunError::RtlWatchdog)?;
    let dut = DutLibrary::load(path, &watchdog)?.open("a question")?;
    let (found, dma) = (dut.beat_bytes(), platform.dma.as_ref());
    let period = dma.filter(|dma| dma.beat_bytes.value as usize == found).map(|dma| dma.beat_ns.value);
    let Some(period) = period.filter(|period| *period > Ticks::ZERO) else {
        let expected = dma.map_or_else(|| "absent".to_owned(), |dma| dma.beat_bytes.value.to_string());
        return Err(RunError::RtlBeats { target: name, found, platform: platform.name.clone(), expected });
    };
    let card = CompiledCard::new(Box::new(dut), period, setup.card.device.as_ref());
    let mut host = platform.clone();
    host.summary =
        format!("the design in {}, {} per clock; host and link of {}, simulated", path.display(), period, host.name);
    host.name.clone_from(&name);
    let machine = SimulatedMachine::of_compiled(&host, card)?.interrupted_by(cancel.flag());
    let note = match &setup.card.device {
        Some(_) => {
            "a bench beside the card stores and loads its registers to start each transfer and to see its end; a sample begins \
             with the first command; a rate includes the registers between two transfers, a latency does not"
        }
        None => "no device file describes the registers of an engine, so there is no DMA; name one with device",
    };
    let notes = vec![format!("{name}: {note}")];
    Ok(OpenTarget { machine: Box::new(machine), kind: Kind::Compiled(Box::new(host)), notes, with: Vec::new() })
}
