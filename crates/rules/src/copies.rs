//! Blocking copies of a runtime, by size.

use crate::one_sample::warm_ns;
use lanemark_machine::{Allocation, HostWait, RuntimeCopy, Verb};
use lanemark_platform::Platform;
use lanemark_record::{Picture, PictureLine};

/// Sizes of a copy in bytes: from one line to twice the largest published size.
const SIZES: [u64; 11] =
    [64, 1000, 4096, 20_000, 80_000, 250_000, 1_000_000, 2_000_000, 4_000_000, 8_000_000, 16_000_000];

/// Draws the time of one copy over its size, for each kind of allocation.
pub(crate) fn copies_by_size(platform: &Platform) -> Result<Picture, String> {
    let line = |allocation: Allocation, name: &str| {
        let copy = |bytes| {
            let moved = RuntimeCopy { verb: Verb::Store, bytes, wait: HostWait::Event, allocation };
            Ok(Some(warm_ns(platform, moved)? / 1e3))
        };
        let values = SIZES.into_iter().map(copy).collect::<Result<_, String>>()?;
        Ok(PictureLine { name: name.to_owned(), values })
    };
    Ok(Picture {
        title: "One blocking copy to the card".to_owned(),
        along: "bytes".to_owned(),
        shows: "us".to_owned(),
        at: SIZES.map(|bytes| bytes as f64).to_vec(),
        lines: [
            (Allocation::Buffer, "buffer"),
            (Allocation::Device, "explicit USM"),
            (Allocation::Host, "USM from host USM"),
            (Allocation::Mapped, "mapped"),
        ]
        .into_iter()
        .map(|(allocation, name)| line(allocation, name))
        .collect::<Result<_, String>>()?,
        note: "Simulated. Two lines were fitted at two sizes, 80 kB and 8 MB; the rest of them and the other two lines are predicted. \
               Copies below a page are staged by the core, longer ones are pinned and moved in place."
            .to_owned(),
    })
}
