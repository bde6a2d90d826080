//! A card compiled from its source, on a simulated host.

use crate::cancel::Cancel;
use crate::error::RunError;
use crate::open_target::{Compiled, Kind, OpenTarget};
use crate::setup::Setup;
use crate::target::Target;
use lanemark_dut::Dut;
use lanemark_hw::dut_library::{DutError, DutLibrary, Watchdog};
use lanemark_record::Design;
use lanemark_sim::{CompiledCard, SimulatedMachine};
use lanemark_units::Ticks;
use std::path::Path;
use std::time::Duration;
use twox_hash::XxHash3_128;

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
    let unread = |why: String| DutError::NotLoaded { path: path.display().to_string(), why };
    let read = || std::fs::read(path).map_err(|error| unread(error.to_string()));
    // A device or a pipe may have no end.
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return Err(unread("it is no regular file".to_owned()).into());
    }
    let contents = read()?;
    let dut = DutLibrary::load(path, &watchdog)?.open("bench")?;
    if read()? != contents {
        return Err(unread("it was changed meanwhile".to_owned()).into());
    }
    let (found, dma) = (dut.beat_bytes(), platform.dma.as_ref());
    let Some(dma) = dma.filter(|dma| dma.beat_bytes.value as usize == found) else {
        let expected = dma.map_or_else(|| "absent".to_owned(), |dma| dma.beat_bytes.value.to_string());
        return Err(RunError::RtlBeats { target: name, found, platform: platform.name.clone(), expected });
    };
    let period = dma.beat_ns.value;
    if period == Ticks::ZERO {
        return Err(RunError::RtlClock { target: name, platform: platform.name.clone() });
    }
    let card = CompiledCard::new(Box::new(dut), period, setup.card.device.as_ref());
    let design = Design {
        library: path.display().to_string(),
        library_bytes: contents.len() as u64,
        library_xxh3: format!("{:032x}", XxHash3_128::oneshot(&contents)),
        beat_bytes: found as u64,
        clock_ns: period.as_ns(),
        platform: platform.to_json(),
    };
    let mut host = platform.clone();
    host.summary =
        format!("the design in {}, {} per clock; host and link of {}, simulated", path.display(), period, host.name);
    host.name.clone_from(&name);
    let machine = SimulatedMachine::of_compiled(&host, card)?.interrupted_by(cancel.flag());
    let has_engine = setup.card.device.as_ref().is_some_and(|file| file.engine.is_some());
    let note = if has_engine {
        "DMA is started by accesses to registers beside the link; a sample begins when the card has taken the first command; a \
         rate includes the accesses between two transfers, a latency does not"
    } else {
        "no DMA is measured: name a device file with the registers of the engine (--device)"
    };
    let notes = vec![format!("{name}: {note}")];
    let kind = Kind::Compiled(Box::new(Compiled { host, design }));
    Ok(OpenTarget { machine: Box::new(machine), kind, notes, with: Vec::new() })
}
