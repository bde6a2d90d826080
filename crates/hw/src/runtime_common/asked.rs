//! What a plan asks a runtime for, and why another is refused.

use super::stream_copy::array_bytes;
use crate::kernel_source::VECTORS;
use lanemark_compute::{Spmv, StreamCopy, Work};
use lanemark_machine::{Allocation, Arguments, Compute, Launch, MovedByRuntime, Op, Plan, RuntimeFacts, Unsupported};
use lanemark_units::format_size;

/// What a pass is.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    Launch(Launch),
    Moved(MovedByRuntime),
    Compute(Compute),
}

/// What is known of a device where plans are looked at.
#[derive(Clone, Debug)]
pub(crate) struct Asker<'a> {
    /// For messages.
    pub(crate) machine: &'a str,
    /// Cores that a plan may name.
    pub(crate) cores: usize,
    pub(crate) runtime: &'a RuntimeFacts,
    /// What a device has that has memory with addresses.
    pub(crate) usm: &'static str,
    /// Bytes of a piece of its memory, at most.
    pub(crate) largest_bytes: u64,
    pub(crate) has_double: bool,
}

/// Most kernels that compute at once, each with a queue of its own.
const MOST_KERNELS: u32 = 64;

impl Asker<'_> {
    /// What a plan asks for, and the core that is to call for it.
    ///
    /// # Errors
    /// [`Unsupported`], with the reason.
    pub(crate) fn asked(&self, plan: &Plan) -> Result<(Asked, usize), Unsupported> {
        let one = |because: &str| self.refused("the plan", because.to_owned());
        let [lane] = plan.lanes.as_slice() else { return Err(one("one thread calls its runtime")) };
        let asked = match lane.body.as_slice() {
            [Op::Launch(launch)] => Asked::Launch(*launch),
            [Op::MovedByRuntime(moved)] => Asked::Moved(*moved),
            [Op::Compute(compute)] => Asked::Compute(compute.clone()),
            _ => {
                let because = "it is a queue and no function of PCIe: it launches, copies and computes, one of these, and nothing can be loaded or stored there";
                return Err(one(because));
            }
        };
        if !plan.before.is_empty() {
            return Err(one("nothing goes before"));
        }
        match &asked {
            Asked::Launch(launch) => self.launch(launch)?,
            Asked::Moved(moved) => self.moved(moved)?,
            Asked::Compute(Compute { work: Work::StreamCopy(copy), .. }) => self.stream_copy(copy)?,
            Asked::Compute(Compute { work: Work::Spmv(spmv), .. }) => self.spmv(spmv)?,
        }
        if plan.passes == 0 {
            return Err(one("it has no pass"));
        }
        let core = lane.core as usize;
        if core >= self.cores {
            return Err(self.refused(&format!("core {core}"), format!("this program may use {}", self.cores)));
        }
        Ok((asked, core))
    }

    fn launch(&self, launch: &Launch) -> Result<(), Unsupported> {
        let Launch { kernels, arguments: Arguments { count, allocation }, .. } = *launch;
        if kernels == 0 || kernels > Launch::MOST_KERNELS {
            let because = format!("launches between two waits are 1 to {}", Launch::MOST_KERNELS);
            return Err(self.refused(&format!("{kernels} launches"), because));
        }
        if count > Arguments::MOST {
            let because = format!("a kernel is given at most {}", Arguments::MOST);
            return Err(self.refused(&format!("a kernel with {count} arguments"), because));
        }
        if count > 0 && !matches!(allocation, Allocation::Buffer | Allocation::Device) {
            let because = "what a kernel is given is a buffer or usm".to_owned();
            return Err(self.refused(&format!("an argument as {allocation}"), because));
        }
        if count == 0 { Ok(()) } else { self.allocation(allocation) }
    }

    fn moved(&self, moved: &MovedByRuntime) -> Result<(), Unsupported> {
        let MovedByRuntime { bytes, allocation, .. } = *moved;
        if bytes == 0 || bytes > MovedByRuntime::MOST_BYTES {
            let because = format!("a copy is of 1 B to {}", format_size(MovedByRuntime::MOST_BYTES));
            return Err(self.refused(&format!("a copy of {bytes} B"), because));
        }
        if bytes > self.largest_bytes {
            let because = format!("a piece of its memory has at most {} B", self.largest_bytes);
            return Err(self.refused(&format!("a copy of {bytes} B"), because));
        }
        self.allocation(allocation)
    }

    fn allocation(&self, allocation: Allocation) -> Result<(), Unsupported> {
        let has = &self.runtime.allocations;
        if has.contains(&allocation) {
            return Ok(());
        }
        let has = has.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let lacks = match allocation {
            Allocation::Device | Allocation::Host => format!("its device has not got {}, or not all of it: ", self.usm),
            Allocation::Buffer | Allocation::Mapped => String::new(),
        };
        let because = format!("{lacks}its memory is {has}");
        Err(self.refused(&format!("memory as {allocation}"), because))
    }

    fn stream_copy(&self, copy: &StreamCopy) -> Result<(), Unsupported> {
        let StreamCopy { first_port, ports, bytes_per_port, stride_bytes, vector_words } = *copy;
        let word = StreamCopy::WORD_BYTES;
        if !VECTORS.contains(&vector_words) {
            let because = "kernels load 1, 2, 4, 8 or 16 at once".to_owned();
            return Err(self.refused(&format!("{vector_words} words at once"), because));
        }
        if stride_bytes == 0 || !stride_bytes.is_multiple_of(word) {
            let because = format!("from one word to the next it is a multiple of {word} B");
            return Err(self.refused(&format!("a stride of {stride_bytes} B"), because));
        }
        let group = word * u64::from(vector_words);
        let most = MovedByRuntime::MOST_BYTES;
        if bytes_per_port == 0 || !bytes_per_port.is_multiple_of(group) || array_bytes(copy) > most {
            let because = format!(
                "an array has a multiple of {group} B of words, and with its gaps at most {}",
                format_size(most)
            );
            return Err(self.refused(&format!("{bytes_per_port} B in a port, a word every {stride_bytes} B"), because));
        }
        let has = self.runtime.memory_ports;
        if ports == 0 || first_port.checked_add(ports).is_none_or(|end| end > has) {
            return Err(self.refused(&format!("{ports} ports from {first_port} on"), self.ports()));
        }
        Ok(())
    }

    fn spmv(&self, spmv: &Spmv) -> Result<(), Unsupported> {
        let Spmv { matrix, kernels, ports_each } = spmv;
        if !self.has_double {
            let because = "its device computes with no numbers of 64 bits: it has not got the extension cl_khr_fp64";
            return Err(self.refused("a sparse matrix times a vector", because.to_owned()));
        }
        let most = MOST_KERNELS.min(matrix.rows());
        if !(1..=most).contains(kernels) {
            let because = format!("there are at most {most}, and each has rows");
            return Err(self.refused(&format!("{kernels} kernels"), because));
        }
        let has = self.runtime.memory_ports;
        // Where nobody chooses, kernels share what there is.
        let share = has == 1 && *ports_each == 1;
        if !share && (*ports_each == 0 || kernels.checked_mul(*ports_each).is_none_or(|all| all > has)) {
            return Err(self.refused(&format!("{kernels} kernels with {ports_each} ports each"), self.ports()));
        }
        Ok(())
    }

    fn ports(&self) -> String {
        match self.runtime.memory_ports {
            1 => "a program cannot choose among ports of its memory".to_owned(),
            has => format!("a program can choose among {has} ports of its memory"),
        }
    }

    fn refused(&self, what: &str, because: String) -> Unsupported {
        Unsupported { what: what.to_owned(), machine: self.machine.to_owned(), because }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanemark_compute::Csr;
    use lanemark_machine::{DeviceKind, HostWait, Verb};
    use std::sync::Arc;

    fn because(op: Op, memory_ports: u32, has_double: bool) -> Option<String> {
        let runtime = RuntimeFacts {
            kind: DeviceKind::Cpu,
            is_emulated: false,
            allocations: vec![Allocation::Buffer, Allocation::Mapped],
            memory_ports,
            computes: true,
        };
        let usm = "addresses";
        let asker = Asker { machine: "opencl:0", cores: 1, runtime: &runtime, usm, largest_bytes: 1 << 20, has_double };
        asker.asked(&Plan::on_one_core(vec![op], 1)).err().map(|refused| refused.to_string())
    }

    fn launched(count: u32, allocation: Allocation) -> Option<String> {
        let arguments = Arguments { count, allocation };
        because(Op::Launch(Launch { kernels: 1, told: HostWait::Finish, arguments }), 1, true)
    }

    #[test]
    fn a_kernel_is_given_up_to_sixteen_pieces_of_what_the_device_has() {
        assert_eq!(launched(16, Allocation::Buffer), None);
        assert!(launched(17, Allocation::Buffer).unwrap().contains("at most 16"));
        assert!(launched(1, Allocation::Device).unwrap().contains("has not got addresses"));
        assert!(launched(1, Allocation::Mapped).unwrap().contains("a buffer or usm"));
        assert_eq!(launched(0, Allocation::Device), None);
    }

    #[test]
    fn memory_that_a_device_has_not_got_is_refused_with_what_it_has() {
        let moved = |allocation| {
            let moved = MovedByRuntime { verb: Verb::Store, bytes: 1, told: HostWait::Event, allocation };
            because(Op::MovedByRuntime(moved), 1, true)
        };
        assert_eq!((moved(Allocation::Buffer), moved(Allocation::Mapped)), (None, None));
        assert!(moved(Allocation::Host).unwrap().contains("its memory is buffer, mapped"));
    }

    #[test]
    fn a_copy_within_ports_is_of_whole_vectors_and_of_ports_that_there_are() {
        let copy = StreamCopy { first_port: 1, ports: 6, bytes_per_port: 64, stride_bytes: 8, vector_words: 4 };
        let asked =
            |copy| because(Op::Compute(Compute { work: Work::StreamCopy(copy), told: HostWait::Event }), 7, false);
        assert_eq!(asked(copy), None);
        assert!(asked(StreamCopy { ports: 7, ..copy }).unwrap().contains("among 7 ports"));
        assert!(asked(StreamCopy { ports: 0, ..copy }).is_some());
        assert!(asked(StreamCopy { vector_words: 3, ..copy }).unwrap().contains("1, 2, 4, 8 or 16"));
        assert!(asked(StreamCopy { bytes_per_port: 72, ..copy }).unwrap().contains("a multiple of 32 B"));
        assert!(asked(StreamCopy { stride_bytes: 12, ..copy }).unwrap().contains("a multiple of 8 B"));
        let most = MovedByRuntime::MOST_BYTES;
        assert_eq!(asked(StreamCopy { bytes_per_port: most, ..copy }), None);
        assert!(asked(StreamCopy { bytes_per_port: most, stride_bytes: 16, ..copy }).is_some());
    }

    #[test]
    fn a_matrix_needs_double_numbers_and_kernels_that_each_have_a_row_and_ports() {
        let matrix = Arc::new(Csr::new(1, vec![0; 5], vec![], vec![]).unwrap());
        let asked = |kernels, ports_each, memory_ports, has_double| {
            let work = Work::Spmv(Spmv { matrix: Arc::clone(&matrix), kernels, ports_each });
            because(Op::Compute(Compute { work, told: HostWait::Event }), memory_ports, has_double)
        };
        assert_eq!(asked(4, 1, 1, true), None);
        assert!(asked(4, 1, 1, false).unwrap().contains("cl_khr_fp64"));
        assert!(asked(5, 1, 1, true).unwrap().contains("at most 4"));
        assert!(asked(0, 1, 1, true).is_some());
        assert!(asked(1, 2, 1, true).unwrap().contains("cannot choose"));
        assert_eq!(asked(2, 4, 8, true), None);
        assert!(asked(3, 4, 8, true).unwrap().contains("among 8 ports"));
        assert!(asked(1, 0, 8, true).is_some());
    }
}
