//! Rules about a runtime and its card: latency of launches, zero-copy transfers, pages that cannot be pinned, recovery, and
//! the width of loads.

use lanemark_compute::{StreamCopy, Workload};
use lanemark_machine::{
    Allocation, Arguments, Compute, HostWait, Launch, Machine, MachineError, Placement, Plan, QueueRequest, QueueWork,
    RuntimeCopy, Samples, Verb,
};
use lanemark_platform::{Origin, Platform};
use lanemark_sim::{BusTree, SimulatedMachine};
use lanemark_wire::config::AerRegister;

/// Makes a request once from `core` of a new machine, and returns the machine and the samples.
fn sample(platform: &Platform, core: u32, request: QueueRequest) -> Result<(SimulatedMachine, Samples), String> {
    let mut machine = SimulatedMachine::new(platform).map_err(|error| error.to_string())?;
    let samples = again(&mut machine, core, request).map_err(|error| error.to_string())?;
    Ok((machine, samples))
}

fn again(machine: &mut SimulatedMachine, core: u32, request: QueueRequest) -> Result<Samples, MachineError> {
    let plan = Plan::new(QueueWork { core, placement: Placement::Pinned, request }, 1);
    let mut samples = Samples::wanted(1);
    machine.run(&plan, &mut samples)?;
    Ok(samples)
}

fn delivered_ns(samples: &Samples) -> Result<f64, String> {
    samples.taken.first().map(|sample| sample.delivered.as_ns()).ok_or_else(|| "no sample was taken".to_owned())
}

fn launch_ns(platform: &Platform, core: u32) -> Result<f64, String> {
    let launch = Launch { kernels: 1, told: HostWait::Finish, arguments: Arguments::NONE };
    delivered_ns(&sample(platform, core, QueueRequest::Launch(launch))?.1)
}

fn with(platform: &Platform, key: &str, value: f64) -> Result<Platform, String> {
    let origin = Origin::Given("condition of a rule".to_owned());
    platform.with(key, value, origin).map_err(|error| error.to_string())
}

/// Launches are slower at a lower clock, at which a powersave governor leaves a waiting core.
pub(crate) fn a_performance_governor_shortens_launches(platform: &Platform) -> Result<String, String> {
    let fast = launch_ns(platform, 0)?;
    let mut seen = vec![format!("{:.1} us at {} GHz", fast / 1e3, platform.core.clock_ghz.value)];
    let mut before = fast;
    for clock_ghz in [2.1, 1.6, 0.8] {
        let slow = launch_ns(&with(platform, "runtime.clock_ghz", clock_ghz)?, 0)?;
        seen.push(format!("{:.1} us at {clock_ghz} GHz", slow / 1e3));
        if slow <= before {
            return Err(seen.join(", "));
        }
        before = slow;
    }
    Ok(seen.join(", "))
}

/// The last core of the first socket is the nearest to the card.
pub(crate) fn the_nearest_core_launches_fastest(platform: &Platform) -> Result<String, String> {
    let cores = platform.core.cores.value;
    let all = (0..cores).map(|core| launch_ns(platform, core)).collect::<Result<Vec<f64>, String>>()?;
    let (first_socket, others) = all.split_at((cores / platform.core.sockets.value.max(1)) as usize);
    let Some((nearest, farther)) = first_socket.split_last() else { return Err("the platform has no core".to_owned()) };
    let next = farther.iter().chain(others).copied().fold(f64::INFINITY, f64::min);
    let most = all.iter().copied().fold(0.0, f64::max);
    let seen = format!(
        "core {}: {nearest:.0} ns, the next best {next:.0} ns, the worst of {cores} {most:.0} ns",
        first_socket.len() - 1
    );
    if *nearest < next { Ok(seen) } else { Err(seen) }
}

const BYTES: u64 = 80_000;

fn copy(verb: Verb, allocation: Allocation) -> QueueRequest {
    QueueRequest::Copy(RuntimeCopy { verb, bytes: BYTES, told: HostWait::Event, allocation })
}

/// With an unpinnable last page, a zero-copy transfer fails; a staged one pins fewer pages and succeeds.
pub(crate) fn unaligned_buffers_are_staged(platform: &Platform) -> Result<String, String> {
    let broken = unpinnable(platform, BYTES.div_ceil(4096))?;
    let (mut in_place, mut staged) = (Vec::new(), Vec::new());
    for offset in [0_u32, 8, 16, 32, 48, 64, 128] {
        let platform = with(&broken, "runtime.buffer_offset_bytes", offset.into())?;
        let list = if sample(&platform, 0, copy(Verb::Store, Allocation::Buffer)).is_err() {
            &mut in_place
        } else {
            &mut staged
        };
        list.push(offset);
    }
    let seen = format!("pinned and moved in place at offsets {in_place:?} B in a page, staged at {staged:?}");
    if in_place == [0, 64, 128] { Ok(seen) } else { Err(seen) }
}

fn unpinnable(platform: &Platform, page: u64) -> Result<Platform, String> {
    let card = platform.card_name(0).unwrap_or("card");
    let fault =
        format!("unpinnable@{card}:{page}").parse().map_err(|error: lanemark_platform::NoFault| error.to_string())?;
    platform.with_fault(fault).map_err(|error| error.to_string())
}

/// In both directions, through buffers and through USM: the copy ends with an error that names the page, and the next copy
/// is complete.
pub(crate) fn a_page_that_cannot_be_pinned_ends_one_transfer(platform: &Platform) -> Result<String, String> {
    let broken = unpinnable(platform, 1)?;
    let mut said = String::new();
    for allocation in [Allocation::Buffer, Allocation::Device] {
        for verb in [Verb::Load, Verb::Store] {
            let mut machine = SimulatedMachine::new(&broken).map_err(|error| error.to_string())?;
            let Err(error) = again(&mut machine, 0, copy(verb, allocation)) else {
                return Err(format!("a copy by {allocation} succeeds with an unpinnable page"));
            };
            said = error.to_string();
            let next = again(&mut machine, 0, copy(verb, allocation)).map_err(|error| error.to_string())?;
            let confirmed = next.confirmed.as_ref().map_or(0, |bytes| bytes.confirmed_bytes);
            if confirmed != BYTES {
                return Err(format!("the next copy by {allocation} delivers {confirmed} of {BYTES} B"));
            }
        }
    }
    Ok(format!("four kinds of copies fail, and each next copy is complete; the error: {said}"))
}

/// After masking errors, removal, programming and a rescan, a hung card answers, and no error is reported; without the
/// masks, errors are.
pub(crate) fn a_hung_card_is_recovered(platform: &Platform) -> Result<String, String> {
    let (answer, reported) = recovered(platform, true)?;
    let (_, unmasked) = recovered(platform, false)?;
    let said = unmasked.join("; ");
    if !reported.is_empty() || unmasked.is_empty() {
        return Err(format!("{} errors are reported with the masks; without them: {said}", reported.len()));
    }
    Ok(format!("after it a load returns {answer:02x?}, and no error is reported; without the masks: {said}"))
}

/// Recovers a hung card; returns the data of a load from it and the errors reported meanwhile.
fn recovered(platform: &Platform, masks: bool) -> Result<([u8; 4], Vec<String>), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let card = platform.card_name(0).unwrap_or("card");
    let fault = format!("no_completion@{card}").parse().map_err(|error: lanemark_platform::NoFault| text(&error))?;
    let broken = platform.with_fault(fault).map_err(|error| text(&error))?;
    let mut tree = BusTree::new(&broken).map_err(|error| text(&error))?;
    let functions = tree.functions();
    let function = functions.iter().find(|function| function.port == card).ok_or("the card has no function")?;
    let (function, bus) = (function.address, function.address.bus());
    if tree.load(function).map_err(|error| text(&error))?.bytes.is_some() {
        return Err("the card answers in spite of the fault".to_owned());
    }
    let before = tree.reported().len();
    for seen in functions.iter().filter(|_| masks) {
        for mask in AerRegister::MASKS {
            tree.write(seen.address, mask, u32::MAX).map_err(|error| text(&error))?;
        }
    }
    tree.remove(function).map_err(|error| text(&error))?;
    tree.program(function).map_err(|error| text(&error))?;
    tree.rescan(bus).map_err(|error| text(&error))?;
    let bytes = tree.load(function).map_err(|error| text(&error))?.bytes.ok_or("the card does not answer")?;
    Ok((bytes, tree.reported()[before..].iter().map(ToString::to_string).collect()))
}

/// A loop of 64-bit accesses moves four times the words of one of 256-bit accesses, and takes four times as long where the
/// ports are the bound.
pub(crate) fn partially_used_words_are_loaded_whole(platform: &Platform) -> Result<String, String> {
    let ns = |vector_words| {
        let copy = StreamCopy { first_port: 0, ports: 1, bytes_per_port: 1 << 20, stride_bytes: 8, vector_words };
        let compute = Compute { work: Workload::StreamCopy(copy), told: HostWait::Finish };
        delivered_ns(&sample(platform, 0, QueueRequest::Compute(compute))?.1)
    };
    let (memory, kernel) = (platform.device_memory.as_ref(), platform.kernel.as_ref());
    let (Some(memory), Some(kernel)) = (memory, kernel) else {
        return Err("the card of this platform runs no kernels".to_owned());
    };
    let words = |vector_words| {
        let copy = StreamCopy { first_port: 0, ports: 1, bytes_per_port: 1 << 20, stride_bytes: 8, vector_words };
        let words =
            lanemark_compute::PortWords { port_bytes: memory.port_bytes.value, keeps: kernel.keeps_words.value };
        copy.words(words)
    };
    let (plain, vectors, times) = (words(1), words(4), ns(1)? / ns(4)?);
    let seen = format!("{plain} words of 256 bits instead of {vectors}, in {times:.3} times the time");
    if plain == 4 * vectors { Ok(seen) } else { Err(seen) }
}
