//! Launch latency of kernels.

use crate::condition::with;
use crate::one_sample::{delivered_ns, sample};
use crate::rule::Outcome;
use lanemark_machine::{Arguments, HostWait, Launch, LaunchBy, QueueRequest};
use lanemark_platform::Platform;

/// Time of one launch from `core` until its kernel has finished, in ns.
fn launch_ns(platform: &Platform, core: u32) -> Result<f64, String> {
    let launch = Launch { kernels: 1, by: LaunchBy::Calls, wait: HostWait::Finish, arguments: Arguments::NONE };
    delivered_ns(&sample(platform, core, QueueRequest::Launch(launch))?.1)
}

/// Launches are slower at a lower clock, at which a powersave governor leaves a waiting core.
pub(crate) fn a_performance_governor_shortens_launches(platform: &Platform) -> Outcome {
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
pub(crate) fn the_nearest_core_launches_fastest(platform: &Platform) -> Outcome {
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
