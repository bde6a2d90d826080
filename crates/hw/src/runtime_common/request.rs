//! Check of a plan against a runtime device: the request it makes, or the reason for its refusal.

use super::stream_copy::array_bytes;
use crate::kernel_source::VECTORS;
use lanemark_compute::{Spmv, StreamCopy, Workload};
use lanemark_machine::{
    Allocation, Compute, Launch, LaunchBy, Plan, QueueRequest, QueueWork, RuntimeCopy, RuntimeFacts, SmallCopies,
    Unsupported, Work,
};
use lanemark_units::format_size;

/// Operation in progress, for messages.
pub(crate) const fn doing(request: &QueueRequest) -> &'static str {
    match request {
        QueueRequest::Launch(_) => "launching kernels",
        QueueRequest::Copy(_) | QueueRequest::SmallCopies(_) => "copying between host and device",
        QueueRequest::Compute(_) => "computing",
    }
}

/// Name of a request, for messages.
pub(crate) fn name(request: &QueueRequest) -> String {
    match request {
        QueueRequest::Launch(launch) if !launch.by.is_calls() => format!("a launch by {}", launch.by),
        QueueRequest::Launch(launch) => match launch.arguments.count {
            1 => "a launch with 1 argument".to_owned(),
            count => format!("a launch with {count} arguments"),
        },
        QueueRequest::Copy(copy) => format!("a copy of {} B as {}", copy.bytes, copy.allocation),
        QueueRequest::SmallCopies(copies) => {
            format!("{} copies of {} B by {}", copies.count, copies.bytes, copies.by.in_words())
        }
        QueueRequest::Compute(_) => "kernels that compute".to_owned(),
    }
}

/// Properties of a device that decide which plans it supports.
#[derive(Clone, Debug)]
pub(crate) struct PlanCheck<'a> {
    /// Machine name, for messages.
    pub(crate) machine: &'a str,
    /// Number of cores a plan may name.
    pub(crate) cores: usize,
    pub(crate) runtime: &'a RuntimeFacts,
    /// Limits of its device.
    pub(crate) limits: DeviceLimits,
}

/// Limits of a device that only messages and the check of a plan use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceLimits {
    /// Name of the extension or aspect that provides device memory with addresses, for messages.
    pub(crate) usm: &'static str,
    /// Largest single allocation in bytes.
    pub(crate) largest_bytes: u64,
    /// Whether kernels may use double precision.
    pub(crate) has_double: bool,
}

/// Maximum number of concurrent compute kernels, each with a queue of its own.
const MOST_KERNELS: u32 = 64;

impl PlanCheck<'_> {
    /// Request of a plan, and the core that makes the calls.
    ///
    /// # Errors
    /// [`Unsupported`] with the reason.
    pub(crate) fn request<'a>(&self, plan: &'a Plan) -> Result<(&'a QueueRequest, usize), Unsupported> {
        plan.check().map_err(|impossible| impossible.on(self.machine))?;
        let Work::Queue(QueueWork { core, request, .. }) = &plan.work else {
            let because = "a runtime device has a queue and no BARs: one plan is one launch, one copy or one computation; it has no loads or stores";
            return Err(self.refused("the plan", because.to_owned()));
        };
        match request {
            QueueRequest::Launch(launch) => self.launch(launch)?,
            QueueRequest::Copy(copy) => self.copy(copy)?,
            QueueRequest::SmallCopies(copies) => self.small_copies(copies)?,
            QueueRequest::Compute(Compute { work: Workload::StreamCopy(copy), .. }) => self.stream_copy(copy)?,
            QueueRequest::Compute(Compute { work: Workload::Spmv(spmv), .. }) => self.spmv(spmv)?,
        }
        plan.work.check_cores(self.cores as u32).map_err(|impossible| impossible.on(self.machine))?;
        Ok((request, *core as usize))
    }

    fn copy(&self, copy: &RuntimeCopy) -> Result<(), Unsupported> {
        let RuntimeCopy { bytes, allocation, .. } = *copy;
        if bytes > self.limits.largest_bytes {
            let because = format!("the largest allocation on the device is {} B", self.limits.largest_bytes);
            return Err(self.refused(&format!("a copy of {bytes} B"), because));
        }
        self.allocation(allocation)
    }

    fn launch(&self, launch: &Launch) -> Result<(), Unsupported> {
        if !self.runtime.launches.contains(&launch.by) {
            let because = "the backend makes a call for each kernel".to_owned();
            return Err(self.refused(&format!("a launch by {}", launch.by), because));
        }
        if launch.by == LaunchBy::Graph && launch.arguments.count > 0 {
            let because = "the kernels of its graphs have no arguments".to_owned();
            return Err(self.refused("a graph of kernels with arguments", because));
        }
        if launch.arguments.count == 0 { Ok(()) } else { self.allocation(launch.arguments.allocation) }
    }

    fn small_copies(&self, copies: &SmallCopies) -> Result<(), Unsupported> {
        let has = &self.runtime.small_copies;
        if !has.contains(&copies.by) {
            let has: Vec<&str> = has.iter().map(|by| by.in_words()).collect();
            let has = if has.is_empty() { "no copies of pieces".to_owned() } else { has.join(", ") };
            return Err(self.refused(copies.by.in_words(), format!("the backend has {has}")));
        }
        if copies.memory_bytes() > self.limits.largest_bytes {
            let because = format!("the largest allocation on the device is {} B", self.limits.largest_bytes);
            return Err(self.refused(&format!("{} copies of {} B", copies.count, copies.bytes), because));
        }
        Ok(())
    }

    fn allocation(&self, allocation: Allocation) -> Result<(), Unsupported> {
        let has = &self.runtime.allocations;
        if has.contains(&allocation) {
            return Ok(());
        }
        let has = has.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let lacks = match allocation {
            Allocation::Device | Allocation::Host => {
                format!("the device does not provide {} completely: ", self.limits.usm)
            }
            Allocation::Buffer | Allocation::Mapped | Allocation::Registered | Allocation::Combining => String::new(),
        };
        let because = format!("{lacks}it supports {has}");
        Err(self.refused(&format!("memory as {allocation}"), because))
    }

    fn stream_copy(&self, copy: &StreamCopy) -> Result<(), Unsupported> {
        let StreamCopy { first_port, ports, bytes_per_port, stride_bytes, vector_words } = *copy;
        if !VECTORS.contains(&vector_words) {
            let because = "a kernel loads 1, 2, 4, 8 or 16 words at a time".to_owned();
            return Err(self.refused(&format!("a vector of {vector_words} words"), because));
        }
        let group = StreamCopy::WORD_BYTES * u64::from(vector_words);
        let most = RuntimeCopy::MOST_BYTES;
        if !bytes_per_port.is_multiple_of(group) || array_bytes(copy) > most {
            let because = format!(
                "the words of an array must be a multiple of {group} B, and the array with its gaps at most {}",
                format_size(most)
            );
            return Err(
                self.refused(&format!("{bytes_per_port} B per port with a stride of {stride_bytes} B"), because)
            );
        }
        let has = self.runtime.memory_ports;
        if first_port.checked_add(ports).is_none_or(|end| end > has) {
            return Err(self.refused(&format!("{ports} memory ports from port {first_port} on"), self.ports()));
        }
        Ok(())
    }

    fn spmv(&self, spmv: &Spmv) -> Result<(), Unsupported> {
        let Spmv { matrix, kernels, ports_each } = spmv;
        if !self.limits.has_double {
            let because = "the device has no double precision (extension cl_khr_fp64)";
            return Err(self.refused("a sparse matrix times a vector", because.to_owned()));
        }
        let most = MOST_KERNELS.min(matrix.rows());
        if *kernels > most {
            let because = format!("at most {most} kernels are possible, each with at least one row");
            return Err(self.refused(&format!("{kernels} kernels"), because));
        }
        let has = self.runtime.memory_ports;
        // On a device without selectable ports, all kernels share its memory.
        let share = has == 1 && *ports_each == 1;
        if !share && kernels.checked_mul(*ports_each).is_none_or(|all| all > has) {
            return Err(self.refused(&format!("{kernels} kernels with {ports_each} memory ports each"), self.ports()));
        }
        Ok(())
    }

    fn ports(&self) -> String {
        match self.runtime.memory_ports {
            1 => "a program cannot select memory ports on this device".to_owned(),
            has => format!("a program can select among {has} memory ports on this device"),
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
    use lanemark_machine::{Arguments, CopyBy, DeviceKind, HostWait, Verb};
    use std::sync::Arc;

    fn because(work: impl Into<Work>, memory_ports: u32, has_double: bool) -> Option<String> {
        let runtime = RuntimeFacts {
            kind: DeviceKind::Cpu,
            is_emulated: false,
            allocations: vec![Allocation::Buffer, Allocation::Mapped],
            launches: vec![LaunchBy::Calls],
            small_copies: Vec::new(),
            memory_ports,
            computes: true,
        };
        let usm = "addresses";
        let limits = DeviceLimits { usm, largest_bytes: 1 << 20, has_double };
        let check = PlanCheck { machine: "opencl:0", cores: 1, runtime: &runtime, limits };
        check.request(&Plan::new(work, 1)).err().map(|refused| refused.to_string())
    }

    fn launched(count: u32, allocation: Allocation) -> Option<String> {
        let arguments = Arguments { count, allocation };
        because(Launch { kernels: 1, by: LaunchBy::Calls, wait: HostWait::Finish, arguments }, 1, true)
    }

    #[test]
    fn a_kernel_has_at_most_sixteen_arguments_of_a_supported_allocation() {
        assert_eq!(launched(16, Allocation::Buffer), None);
        assert!(launched(17, Allocation::Buffer).unwrap().contains("at most 16"));
        assert!(launched(1, Allocation::Device).unwrap().contains("does not provide addresses"));
        assert!(launched(1, Allocation::Mapped).unwrap().contains("buffers or USM"));
        assert_eq!(launched(0, Allocation::Device), None);
    }

    #[test]
    fn an_unsupported_allocation_is_rejected_with_the_supported_ones() {
        let moved = |allocation| {
            let moved = RuntimeCopy { verb: Verb::Store, bytes: 1, wait: HostWait::Event, allocation };
            because(moved, 1, true)
        };
        assert_eq!((moved(Allocation::Buffer), moved(Allocation::Mapped)), (None, None));
        assert!(moved(Allocation::Host).unwrap().contains("it supports buffer, mapped"));
    }

    #[test]
    fn copies_of_pieces_need_a_method_of_the_backend() {
        let copies = SmallCopies { verb: Verb::Store, bytes: 64, count: 4, by: CopyBy::Batch };
        assert!(because(copies, 1, true).unwrap().contains("the backend has no copies of pieces"));
    }

    #[test]
    fn a_stream_copy_needs_whole_vectors_and_existing_ports() {
        let copy = StreamCopy { first_port: 1, ports: 6, bytes_per_port: 64, stride_bytes: 8, vector_words: 4 };
        let request = |copy| because(Compute { work: Workload::StreamCopy(copy), wait: HostWait::Event }, 7, false);
        assert_eq!(request(copy), None);
        assert!(request(StreamCopy { ports: 7, ..copy }).unwrap().contains("among 7 memory ports"));
        assert!(request(StreamCopy { ports: 0, ..copy }).is_some());
        assert!(request(StreamCopy { vector_words: 3, ..copy }).unwrap().contains("1, 2, 4, 8 or 16"));
        assert!(request(StreamCopy { bytes_per_port: 72, ..copy }).unwrap().contains("a multiple of 32 B"));
        assert!(request(StreamCopy { stride_bytes: 12, ..copy }).unwrap().contains("must be multiples of 8"));
        let most = RuntimeCopy::MOST_BYTES;
        assert_eq!(request(StreamCopy { bytes_per_port: most, ..copy }), None);
        assert!(request(StreamCopy { bytes_per_port: most, stride_bytes: 16, ..copy }).is_some());
    }

    #[test]
    fn a_matrix_needs_double_precision_and_a_row_and_ports_per_kernel() {
        let matrix = Arc::new(Csr::new(1, vec![0; 5], vec![], vec![]).unwrap());
        let request = |kernels, ports_each, memory_ports, has_double| {
            let work = Workload::Spmv(Spmv { matrix: Arc::clone(&matrix), kernels, ports_each });
            because(Compute { work, wait: HostWait::Event }, memory_ports, has_double)
        };
        assert_eq!(request(4, 1, 1, true), None);
        assert!(request(4, 1, 1, false).unwrap().contains("cl_khr_fp64"));
        assert!(request(5, 1, 1, true).unwrap().contains("at most 4 kernels"));
        assert!(request(0, 1, 1, true).is_some());
        assert!(request(1, 2, 1, true).unwrap().contains("cannot select"));
        assert_eq!(request(2, 4, 8, true), None);
        assert!(request(3, 4, 8, true).unwrap().contains("among 8 memory ports"));
        assert!(request(1, 0, 8, true).is_some());
    }
}
