//! A work of kernels on a card's memory: its checks, its results and its time.
//!
//! While kernels run, nothing else uses their memory ports. The next request of each unit follows from the previous
//! ones, so no event is needed for a word; a work is one event, its end.

use crate::kernel_time::KernelTime;
use crate::memory_port::{MemoryPort, Spec as PortSpec};
use crate::pipeline::{Spec, run};
use crate::spmv_kernel::SpmvKernel;
use crate::stream_kernel::StreamKernel;
use lanemark_compute::{Array, Spmv, StreamCopy, Workload};
use lanemark_platform::{DeviceMemory, Kernel};
use lanemark_units::Ticks;
use std::ops::Range;
use std::sync::Arc;

/// The outcome of a work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Computed<T> {
    /// The end: when the last word of any kernel is stored, from the first iteration on.
    pub ended: T,
    /// Time for which the busiest memory port was occupied.
    pub port_busy: Ticks,
    /// Bytes of the result.
    pub claimed_bytes: u64,
    /// Bytes of the result that are right.
    pub confirmed_bytes: u64,
}

/// Returns why the kernels cannot do a work; `None` if they can.
#[must_use]
pub fn refused(memory: &DeviceMemory, kernel: &Kernel, work: &Workload) -> Option<String> {
    let (ports, most, holds) = (memory.ports.value, kernel.most_kernels.value, memory.size_bytes.value);
    let too_many =
        |kernels: u32| (kernels > most).then(|| format!("{kernels} kernels do not fit: kernel.most_kernels is {most}"));
    let too_large = |bytes: u64| {
        (bytes > holds).then(|| format!("{bytes} B do not fit behind a port: device_memory.size_bytes is {holds}"))
    };
    match work {
        Workload::StreamCopy(copy) => {
            if let Err(because) = copy.check() {
                return Some(because.to_owned());
            }
            if copy.first_port.checked_add(copy.ports).is_none_or(|end| end > ports) {
                return Some(format!("it has ports 0 to {}", ports - 1));
            }
            let (most_bytes, ports) = (StreamCopy::most_bytes_per_port(copy.ports), copy.ports);
            if copy.bytes_per_port > most_bytes {
                return Some(format!("with {ports} ports, at most {most_bytes} B are copied here within each"));
            }
            if u64::from(copy.vector_words) > u64::from(kernel.unit_words.value) {
                let words = kernel.unit_words.value;
                return Some(format!(
                    "its units have room for {words} words (kernel.unit_words), not for a vector of {}",
                    copy.vector_words
                ));
            }
            too_many(copy.ports).or_else(|| too_large(copy.span_bytes().saturating_mul(2)))
        }
        Workload::Spmv(spmv) => {
            if spmv.kernels == 0 || spmv.ports_each == 0 {
                return Some("at least one kernel and one port per kernel are needed".to_owned());
            }
            if spmv.ports_each > ports {
                return Some(format!("it has {ports} ports, and each kernel has ports of its own"));
            }
            let words = Spec::new(memory, kernel, spmv.kernels).words;
            let fullest = || spmv.held_bytes(words, ports).into_iter().max().unwrap_or(0);
            too_many(spmv.kernels).or_else(|| too_large(fullest()))
        }
    }
}

/// Does a work once. `stop` is polled; `None` if it returns true before the end.
///
/// With [`Traced`](crate::Traced) instants, the end has its critical path; with [`Ticks`](lanemark_units::Ticks), the
/// same time is computed faster.
#[must_use]
pub fn compute<T: KernelTime>(
    memory: &DeviceMemory,
    kernel: &Kernel,
    work: &Workload,
    stop: &mut dyn FnMut() -> bool,
) -> Option<Computed<T>> {
    let spec = Spec::new(memory, kernel, work.kernels());
    let mut ports = vec![MemoryPort::new(PortSpec::from(memory)); memory.ports.value as usize];
    match work {
        Workload::StreamCopy(copy) => stream_copy(spec, &mut ports, copy, stop),
        Workload::Spmv(spmv) => (!stop()).then(|| multiply(spec, &mut ports, spmv)),
    }
}

fn stream_copy<T: KernelTime>(
    spec: Spec,
    ports: &mut [MemoryPort<T>],
    copy: &StreamCopy,
    stop: &mut dyn FnMut() -> bool,
) -> Option<Computed<T>> {
    let (mut ended, mut confirmed) = (T::ZERO, 0);
    // Each kernel has a port of its own, so they are independent. Running one at a time needs the memory of one.
    for port in copy.first_port..copy.first_port + copy.ports {
        if stop() {
            return None;
        }
        let words = (0..copy.count()).map(|word| meant(port, word)).collect();
        let mut kernel = [StreamKernel::new(spec, *copy, port as usize, words)];
        ended = ended.later(run(&mut kernel, ports));
        confirmed += (0..).zip(kernel[0].copied()).filter(|(word, found)| **found == meant(port, *word)).count() as u64;
    }
    let confirmed_bytes = confirmed * StreamCopy::WORD_BYTES;
    Some(Computed { ended, port_busy: busiest(ports), claimed_bytes: copy.bytes() / 2, confirmed_bytes })
}

/// Returns the time for which the busiest port was occupied.
fn busiest<T: KernelTime>(ports: &[MemoryPort<T>]) -> Ticks {
    ports.iter().map(MemoryPort::busy).max().unwrap_or(Ticks::ZERO)
}

/// Returns the initial value of a word: unique among the words of all ports, and never 0.
fn meant(port: u32, word: u64) -> u64 {
    (u64::from(port) << 40 | (word + 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn multiply<T: KernelTime>(spec: Spec, ports: &mut [MemoryPort<T>], spmv: &Spmv) -> Computed<T> {
    let x = Arc::new(spmv.x());
    let blocks = spmv.blocks();
    let count = ports.len() as u32;
    let of_kernel = |(kernel, rows): (u32, &Range<u32>)| {
        spmv.ports_of(kernel, spmv.words(rows, spec.words), count).map(|port| port as usize)
    };
    let dealt: Vec<[usize; 5]> = (0..).zip(&blocks).map(of_kernel).collect();
    let mut asked = vec![0_u32; ports.len()];
    dealt.iter().flatten().for_each(|port| asked[*port] += 1);
    let make = |(rows, ports): (&Range<u32>, &[usize; 5])| {
        let is_alone = asked[ports[Array::X.index()]] == 1;
        SpmvKernel::new(spec, Arc::clone(&spmv.matrix), Arc::clone(&x), rows.clone(), *ports, is_alone)
    };
    let mut kernels: Vec<SpmvKernel<T>> = blocks.iter().zip(&dealt).map(make).collect();
    let ended = run(&mut kernels, ports);
    let found = || kernels.iter().flat_map(SpmvKernel::y);
    // Both sum a row from its first entry to its last: only rows that differ are checked against the error bound.
    let is_same = kernels.iter().zip(&blocks).all(|(kernel, rows)| {
        kernel.y().iter().zip(rows.clone()).all(|(found, row)| *found == spmv.matrix.row_times(row, &x))
    });
    let right = if is_same {
        found().count()
    } else {
        let near = spmv.matrix.times(&x).into_iter().zip(spmv.matrix.error_bounds(&x));
        found().zip(near).filter(|(found, (meant, bound))| (*found - meant).abs() <= *bound).count()
    };
    let bytes = u64::from(Array::Y.bytes());
    let claimed_bytes = bytes * u64::from(spmv.matrix.rows());
    Computed { ended, port_busy: busiest(ports), claimed_bytes, confirmed_bytes: bytes * right as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel_time::{KernelPath, Traced};
    use lanemark_compute::Csr;
    use lanemark_units::Ticks;

    /// Returns the card of 32 ports, with `size_bytes` of memory behind each port.
    fn card(size_bytes: f64) -> lanemark_platform::Platform {
        let card = lanemark_platform::preset("card-stratix10mx").unwrap().unwrap();
        let origin = || lanemark_platform::Origin::Given("a test".to_owned());
        card.with("device_memory.size_bytes", size_bytes, origin()).unwrap()
    }

    fn refused_of(card: &lanemark_platform::Platform, ports: u32, bytes_per_port: u64) -> Option<String> {
        let copy = StreamCopy { first_port: 0, ports, bytes_per_port, stride_bytes: 8, vector_words: 4 };
        refused(card.device_memory.as_ref().unwrap(), card.kernel.as_ref().unwrap(), &Workload::StreamCopy(copy))
    }

    #[test]
    fn the_published_sizes_are_accepted_and_larger_ones_are_rejected() {
        let large = card((1_u64 << 40) as f64);
        for (ports, most) in [(1, 512 << 20), (8, 512 << 20), (32, 128 << 20)] {
            assert_eq!(refused_of(&large, ports, most), None);
            let because = refused_of(&large, ports, most + 8).unwrap();
            assert!(because.ends_with(&format!("at most {most} B are copied here within each")), "{because}");
        }
        let own = card(f64::from(256 << 20));
        assert_eq!(refused_of(&own, 32, 96_000_000), None);
        assert_eq!(refused_of(&own, 32, 128 << 20), None, "two arrays are all that it holds");
        assert!(refused_of(&own, 1, (128 << 20) + 8).unwrap().contains("do not fit behind a port"));
    }

    #[test]
    fn the_copy_time_does_not_depend_on_the_number_of_ports() {
        let card = card(f64::from(256 << 20));
        let (memory, kernel) = (card.device_memory.as_ref().unwrap(), card.kernel.as_ref().unwrap());
        let copy = StreamCopy { first_port: 0, ports: 1, bytes_per_port: 4096, stride_bytes: 8, vector_words: 4 };
        let work = |first_port, ports| Workload::StreamCopy(StreamCopy { first_port, ports, ..copy });
        let of =
            |first_port, ports| compute::<Traced>(memory, kernel, &work(first_port, ports), &mut || false).unwrap();
        let one = of(0, 1);
        assert_eq!((one.claimed_bytes, one.confirmed_bytes), (4096, 4096));
        for (first_port, ports) in [(0, 32), (5, 3), (31, 1)] {
            let bytes = 4096 * u64::from(ports);
            let all = Computed { claimed_bytes: bytes, confirmed_bytes: bytes, ..one };
            assert_eq!(of(first_port, ports), all);
        }
        // `stop` returns true at the fourth port.
        let mut asked = 0;
        let mut stop = || {
            asked += 1;
            asked == 4
        };
        assert_eq!(compute::<Ticks>(memory, kernel, &work(0, 32), &mut stop), None);
        assert_eq!(asked, 4);
    }

    /// Pseudo-random numbers (splitmix64).
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: u64) -> u64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            (mixed ^ mixed >> 31) % end
        }

        fn pick<T: Copy>(&mut self, from: &[T]) -> T {
            from[self.below(from.len() as u64) as usize]
        }
    }

    /// Returns a matrix whose rows have random lengths, including 0.
    fn matrix(random: &mut Random) -> Csr {
        let (rows, longest) = (random.pick(&[1, 9, 200, 1500]), random.pick(&[1, 6, 60]));
        let mut starts = vec![0];
        for row in 0..rows {
            starts.push(starts[row] + random.below(longest + 1) as u32);
        }
        let entries = starts[rows] as usize;
        let columns = (0..entries).map(|_| random.below(100) as u32).collect();
        Csr::new(100, starts, columns, vec![1.5; entries]).unwrap()
    }

    fn random_work(random: &mut Random, unit_words: u32) -> Workload {
        if random.below(4) == 0 {
            let (stride_bytes, vector_words) = (random.pick(&[8, 24]), random.pick(&[1, 1, 4]).min(unit_words));
            let bytes_per_port = random.pick(&[8, 1000, 20_000]);
            return Workload::StreamCopy(StreamCopy {
                first_port: 1,
                ports: 2,
                bytes_per_port,
                stride_bytes,
                vector_words,
            });
        }
        let (kernels, ports_each) = (random.pick(&[1, 3, 16]), random.pick(&[1, 2, 5]));
        Workload::Spmv(Spmv { matrix: Arc::new(matrix(random)), kernels, ports_each })
    }

    #[test]
    fn traced_kernels_end_at_the_same_tick_and_their_path_adds_up_to_it() {
        let mut random = Random(22);
        let mut largest = [0; 5];
        for number in 0..400 {
            let mut card = card(f64::from(256 << 20));
            let burst_words = random.pick(&[1, 4, 16]);
            let unit_words = burst_words * random.pick(&[1, 3, 32]);
            for (key, value) in [
                ("device_memory.ports", random.pick(&[5.0, 8.0, 32.0])),
                ("device_memory.word_ns", random.pick(&[0.3, 2.5, 17.0])),
                ("device_memory.read_ns", random.pick(&[0.0, 30.0, 300.0])),
                ("kernel.interval_cycles", random.pick(&[1.0, 1.0, 6.0])),
                ("kernel.addition_cycles", random.pick(&[1.0, 1.0, 8.0])),
                ("kernel.burst_words", f64::from(burst_words)),
                ("kernel.unit_words", f64::from(unit_words)),
            ] {
                card = card.with(key, value, lanemark_platform::Origin::Given("a test".to_owned())).unwrap();
            }
            card.kernel.as_mut().unwrap().keeps_words.value = random.below(2) == 1;
            let (memory, kernel) = (card.device_memory.as_ref().unwrap(), card.kernel.as_ref().unwrap());
            let work = random_work(&mut random, unit_words);
            assert_eq!(refused(memory, kernel, &work), None, "case {number}");
            let plain = compute::<Ticks>(memory, kernel, &work, &mut || false).unwrap();
            let traced = compute::<Traced>(memory, kernel, &work, &mut || false).unwrap();
            assert_eq!(traced.ended.ticks(), plain.ended, "case {number}");
            assert_eq!(traced.confirmed_bytes, traced.claimed_bytes, "case {number}");
            let KernelPath { port, interval, additions, unit_words, latency } = traced.ended.path().unwrap();
            let parts = [port, interval, additions, unit_words, latency];
            assert_eq!(parts.into_iter().sum::<Ticks>(), plain.ended, "case {number}: {parts:?}");
            let most = parts.into_iter().max().unwrap();
            (largest.iter_mut().zip(parts)).for_each(|(count, part)| *count += u32::from(part == most));
        }
        assert!(largest.into_iter().all(|count| count >= 10), "{largest:?}");
    }
}
