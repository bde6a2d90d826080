//! Conversion of the command line to a request.

use crate::args::{AxisArgs, BenchArgs};
use crate::failure::Failure;
use crate::output::command_line;
use lanemark_bench::{Axes, Effort};
use lanemark_hw::DriveOptions;
use lanemark_hw::linux_sysfs::Consent;
use lanemark_machine::Fence;
use lanemark_record::Reach;
use lanemark_runner::{
    Answerer, CardAccess, Changes, Request, RunError, Setup, Target, WhatIf, device_file, questions,
};
use lanemark_sweep::{Combine, Settings};
use lanemark_units::Ticks;

/// The targets named by `--on`; without any, the `usual` ones.
pub fn targets(args: &BenchArgs, usual: &[&str]) -> Result<Vec<Target>, RunError> {
    let named = args.on.iter().map(|name| name.parse());
    if args.on.is_empty() { usual.iter().map(|name| name.parse()).collect() } else { named.collect() }
}

/// Builds the request of `bench` or `predict` to these targets.
pub fn request(args: &BenchArgs, targets: Vec<Target>, answerer: Answerer) -> Result<Request, Failure> {
    let (with, combinations) = settings(args)?;
    let targets = changed(targets, &combinations);
    Ok(Request {
        targets,
        questions: questions(&args.questions)?,
        axes: axes(&args.axes)?,
        effort: effort(args),
        answerer,
        what_if: what_if(args),
        setup: setup(args, with)?,
        command: command_line(),
    })
}

/// The report always shows what changes would bring to the best and the worst method.
fn what_if(args: &BenchArgs) -> WhatIf {
    match args.what_if {
        true => WhatIf::Every,
        false if args.html.is_some() => WhatIf::BestAndWorst,
        false => WhatIf::Nothing,
    }
}

/// Largest number of combinations of values; a sweep has no such limit.
const MOST: u64 = 64;

/// The changed keys with one value, and each combination of the others; without others no combination.
fn settings(args: &BenchArgs) -> Result<(Pairs, Vec<Pairs>), Failure> {
    let keys: Vec<(String, Vec<String>)> = args.with.iter().flat_map(|one| one.0.clone()).collect();
    let (several, single): (Vec<_>, Vec<_>) = keys.into_iter().partition(|(_, values)| values.len() > 1);
    let with =
        single.into_iter().filter_map(|(key, values)| Some((key, values.into_iter().next()?))).collect::<Pairs>();
    if several.is_empty() {
        let without = "combines several values of keys: give some, such as --with dma.tags=32,64";
        return if args.zip { Err(Failure::Usage(format!("--zip {without}"))) } else { Ok((with, Vec::new())) };
    }
    let combine = if args.zip { Combine::Zip } else { Combine::Product };
    let settings = Settings { keys: several, combine };
    settings.check().map_err(|(key, message)| Failure::Usage(format!("--with: {key} {message}")))?;
    if let Some((key, _)) = with.iter().find(|(key, _)| settings.keys.iter().any(|(other, _)| other == key)) {
        return Err(Failure::Usage(format!("--with: {key} is given twice; give all its values in one list")));
    }
    let Some(count) = settings.len().filter(|count| *count <= MOST) else {
        let message = format!("more than {MOST} combinations of values: use lanemark sweep, which can be interrupted");
        return Err(Failure::Usage(format!("--with: {message}")));
    };
    Ok((with, (0..count).map(|nth| settings.combination(nth)).collect()))
}

/// Keys with their values.
type Pairs = Vec<(String, String)>;

/// Each target with each combination; the targets themselves without combinations.
fn changed(targets: Vec<Target>, combinations: &[Pairs]) -> Vec<Target> {
    if combinations.is_empty() {
        return targets;
    }
    let with = |target: Target| {
        combinations.iter().map(move |with| Target::Changed { of: Box::new(target.clone()), with: with.clone() })
    };
    targets.into_iter().flat_map(with).collect()
}

fn setup(args: &BenchArgs, with: Pairs) -> Result<Setup, RunError> {
    let (setpci, faults) = (args.setpci.clone(), args.fault.clone());
    let card = &args.card;
    Ok(Setup {
        changes: Changes { with, setpci, faults },
        no_fast_forward: args.no_fast_forward,
        kernels: args.kernels.clone(),
        twin: args.twin.as_deref().map(str::parse).transpose()?,
        on_hang: None,
        card: CardAccess {
            bars: card.bars.clone(),
            card_memory: card.card_memory,
            peer: card.peer,
            vfio: card.vfio,
            host_pages: card.host_pages,
            device: card.device.as_deref().map(device_file).transpose()?,
            drive: DriveOptions {
                queues: card.nvme_queues,
                data: card.nvme_data,
                data_place: card.nvme_data_place,
                completions: card.nvme_completions,
                namespace: card.namespace,
                destructive: card.destructive,
            },
            binds_to: card.bind.clone(),
            consent: Consent { owns_device: card.i_own_this_device, enable: card.enable },
            emulated: card.emulated,
            system_root: card.system_root.clone(),
        },
    })
}

/// Extension of the default time budget for the samples of all default sizes; none if a budget is given.
const EXTENSION: Ticks = Ticks::whole_ns(5_000_000_000);

fn effort(args: &BenchArgs) -> Effort {
    let usual = Effort::default();
    Effort {
        budget: args.sampling.budget.unwrap_or(usual.budget),
        extension: if args.sampling.budget.is_some() { usual.extension } else { EXTENSION },
        interval_percent: args.sampling.interval.unwrap_or(usual.interval_percent),
        simulated_passes: args.iterations,
        is_whole: args.sampling.all_copies,
        ..usual
    }
}

/// The variants selected on the command line.
pub fn axes(args: &AxisArgs) -> Result<Axes, RunError> {
    let matrices = args.matrix.iter().map(|name| lanemark_runner::matrix(name)).collect::<Result<Vec<_>, _>>()?;
    let fences: Vec<Option<Fence>> = args.fence.iter().map(|fence| fence.0).collect();
    Ok(Axes {
        sizes: args.sizes.as_ref().map(|sizes| sizes.bytes().to_vec()),
        memory_types: each_once(&args.memory_type),
        accesses: each_once(&args.access),
        fences: each_once(&fences),
        alignments: each_once(&args.align),
        region: args.region.clone(),
        flows: each_once(&args.flows),
        reach: Reach {
            window_bytes: args.window,
            is_random: args.random,
            stride_bytes: args.stride,
            outstanding: args.outstanding,
            cache_state: args.cache_state,
            socket: args.socket,
            channels: args.channels,
        },
        matrices: (!matrices.is_empty()).then_some(matrices),
        cores: args.cores.clone(),
    })
}

/// Removes duplicates; `None` for an empty list, which selects the defaults of the question.
fn each_once<T: Copy + PartialEq>(list: &[T]) -> Option<Vec<T>> {
    let mut once: Vec<T> = Vec::new();
    for item in list {
        if !once.contains(item) {
            once.push(*item);
        }
    }
    (!once.is_empty()).then_some(once)
}
