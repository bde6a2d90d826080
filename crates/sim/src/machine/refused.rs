//! Checks of plans: the operations that a simulated platform does not support, and why.

use super::SimulatedMachine;
use lanemark_machine::{
    Access, BufferHandoff, DmaCall, EngineJob, Handshake, HostMemory, Lane, LineSource, Operation, Partner, Placement,
    QueueRequest, Socket, Span, Step, Task, Transfer, Unsupported, Verb, Width, Work,
};
use lanemark_platform::{Mailbox, PeerRoute, RegionKind};
use lanemark_units::MemoryType;

impl SimulatedMachine {
    fn check_access(&self, verb: Verb, access: Access, span: &Span) -> Result<(), Unsupported> {
        if span.memory_type == MemoryType::Wb {
            let because = "device memory cannot be written back: the device does not take part in coherence";
            return Err(self.unsupported("a BAR mapped WB", because));
        }
        if !self.facts.accesses(verb).contains(&access) {
            let what = format!("{} by {access}", if verb == Verb::Load { "loading" } else { "storing" });
            return Err(self.unsupported(what, format!("{} has no such instruction", self.platform.core.name)));
        }
        if access == Access::Movdir64b && (!span.at.offset.is_multiple_of(64) || !span.len.is_multiple_of(64)) {
            return Err(self.unsupported("movdir64b", "it moves whole 64 B lines only"));
        }
        let aligned = |width: Width| span.at.offset.is_multiple_of(width.bytes());
        match access {
            Access::NonTemporal(width) if !aligned(width) => {
                Err(self
                    .unsupported(access.to_string(), format!("its address must be a multiple of {} B", width.bytes())))
            }
            _ => Ok(()),
        }
    }

    /// Checks whether the platform supports the work of a plan that passed [`Plan::check`](lanemark_machine::Plan::check).
    pub(super) fn check_work(&self, work: &Work) -> Result<(), Unsupported> {
        work.check_cores(self.facts.cores).map_err(|impossible| impossible.on(&self.facts.name))?;
        if let Some(dma) = &self.platform.dma {
            let channels = work.check_channels(dma.channels.value, dma.full_duplex.value);
            channels.map_err(|impossible| impossible.on(&self.facts.name))?;
        }
        match work {
            Work::Cores(cores) => {
                cores.lanes.iter().try_for_each(|lane| self.check_lane(lane))?;
                cores.before.iter().try_for_each(|step| self.check_step(step))
            }
            Work::Exchange(_) => {
                Err(self.unsupported("a message to another core", "its cores share device memory only"))
            }
            Work::Engines(engines) => {
                engines.jobs.iter().try_for_each(|job| self.check_job(job))?;
                self.check_memory(engines.memory)
            }
            Work::Relay(relay) => self.check_relay(relay),
            Work::Queue(queue) => {
                if queue.placement == Placement::Unpinned {
                    let because = "there is no operating system to schedule it";
                    return Err(self.unsupported("a thread that is not pinned", because));
                }
                match &queue.request {
                    QueueRequest::Launch(launch) => self.check_launch(launch.by),
                    QueueRequest::Copy(copy) => self.check_moved(copy),
                    QueueRequest::SmallCopies(copies) => self.check_small_copies(copies),
                    QueueRequest::Compute(compute) => self.check_compute(compute),
                }
            }
        }
    }

    fn check_lane(&self, lane: &Lane) -> Result<(), Unsupported> {
        match &lane.task {
            Task::Steps(steps) => steps.iter().try_for_each(|step| self.check_step(step)),
            Task::Operation(operation) => self.check_operation(operation),
            Task::DmaCall(call) => self.check_call(call),
        }
    }

    fn check_step(&self, step: &Step) -> Result<(), Unsupported> {
        if let Some(span) = step.span()
            && let Err(error) = self.check_span(span)
        {
            return Err(self.unsupported(format!("{} B at {}", span.len, span.at), error.to_string()));
        }
        match step {
            Step::Stream(stream) => self.check_access(stream.verb, stream.access, &stream.span),
            Step::Driver(_) if self.platform.driver.is_none() => {
                Err(self.unsupported("a driver call", "its platform file has no [driver] section"))
            }
            Step::Driver(call) => self.check_access(call.verb, Access::Plain(call.width), &call.span),
            Step::Map(_) if self.platform.driver.is_none() => {
                Err(self.unsupported("mapping a BAR", "its platform file has no [driver] section"))
            }
            Step::Copy(_) => Err(self.unsupported("a copy from memory", "its stores come from registers")),
            Step::Map(_) | Step::Fence(_) | Step::FlushLines(_) | Step::Pause(_) => Ok(()),
        }
    }

    fn check_operation(&self, operation: &Operation) -> Result<(), Unsupported> {
        match operation {
            Operation::Clock(_) => {
                Err(self.unsupported("reading a clock", "simulated time is observed without a clock read"))
            }
            Operation::KernelCall(_) => Err(self.unsupported("a system call", "it simulates driver calls only")),
            Operation::MapUnmap(_) => {
                Err(self.unsupported("mapping memory for a device", "its cores do not run a program's instructions"))
            }
            Operation::BufferHandoff(handoff) => self.check_handoff(handoff),
            Operation::Handshake(request) => self.check_handshake(request),
            Operation::LineLoad(holder) if self.facts.line_sources.contains(holder) => Ok(()),
            Operation::LineLoad(holder) => {
                let key = match holder {
                    LineSource::Memory => "memory_load_ns",
                    LineSource::RemoteMemory => "remote_memory_load_ns",
                    LineSource::Core => "cache_to_cache_ns",
                    LineSource::RemoteCore => "remote_core_load_ns",
                };
                Err(self.unsupported(
                    format!("a load from {holder}"),
                    format!("core.{key} is 0, so the latency is unknown"),
                ))
            }
        }
    }

    fn check_handshake(&self, request: &Handshake) -> Result<(), Unsupported> {
        let Handshake { data, access, status, .. } = request;
        let status = Span { at: *status, len: Handshake::STATUS_BYTES, memory_type: MemoryType::Uc };
        for span in [data, &status] {
            if let Err(error) = self.check_span(span) {
                return Err(self.unsupported(format!("{} B at {}", span.len, span.at), error.to_string()));
            }
            let region = self.platform.region_at(span.at.bar, span.at.offset, span.len);
            if region.is_some_and(|region| region.kind.value == RegionKind::Fifo) {
                return Err(self.unsupported("a request to a device", "its data would enter a queue"));
            }
        }
        let bell = self.platform.runtime.as_ref().and_then(|_| self.platform.kernel_doorbell(0));
        let start = self.platform.bar(data.at.bar).map_or(0, |bar| bar.address_bytes.value) + data.at.offset;
        if bell.is_some_and(|bell| (start..start + data.len).contains(&bell.doorbell)) {
            return Err(self.unsupported("a request to a device", "its data would start a kernel of the runtime"));
        }
        [Verb::Store, Verb::Load].into_iter().try_for_each(|verb| self.check_access(verb, *access, data))
    }

    fn check_job(&self, job: &EngineJob) -> Result<(), Unsupported> {
        job.directions().try_for_each(|transfer| self.check_transfer(&transfer))
    }

    fn check_handoff(&self, handoff: &BufferHandoff) -> Result<(), Unsupported> {
        let refused =
            |because: &str| Err(self.unsupported(format!("sharing a buffer, {}", handoff.discipline), because));
        if self.platform.coherence.is_none() {
            return refused("its platform file has no section [coherence]");
        }
        if !self.facts.disciplines.contains(&handoff.discipline) {
            return refused("its cores use another flush instruction (coherence.flush)");
        }
        Ok(())
    }

    pub(super) fn check_transfer(&self, transfer: &Transfer) -> Result<(), Unsupported> {
        let refused = |because: String| {
            let verb = if transfer.verb == Verb::Store { "a write" } else { "a read" };
            Err(self.unsupported(format!("{verb} by a card's DMA engine"), because))
        };
        let Some(dma) = self.facts.dma else {
            return refused("its platform file has no section [dma]".to_owned());
        };
        if transfer.card >= dma.cards {
            return refused(format!("there is no card {}: it has {}", transfer.card, dma.cards));
        }
        let (what, len) = match transfer.partner {
            Partner::Host => ("DMA memory", dma.mapped_bytes),
            Partner::Peer { card, .. } if card >= dma.cards => {
                return refused(format!("card {card} is no peer of card {}", transfer.card));
            }
            Partner::Peer { card, .. } if self.goes_nowhere(transfer.verb, transfer.card, card).is_some() => {
                return refused(self.goes_nowhere(transfer.verb, transfer.card, card).unwrap_or_default());
            }
            Partner::Peer { bar, .. } => {
                let region = self.platform.region_at(bar, transfer.window.offset, transfer.bytes);
                let end = region.map_or(0, |region| region.offset_bytes.value + region.size_bytes.value);
                ("the region in which they begin", end)
            }
        };
        let window = &transfer.window;
        let end = window.offset.checked_add(window.len.max(transfer.bytes));
        if end.is_none_or(|end| end > len) {
            let because = format!("{} B at {:#x} reach beyond {what}, {len} B", window.len, window.offset);
            return refused(because);
        }
        Ok(())
    }

    /// Returns why a request of a card to another card is not forwarded, if it is not.
    fn goes_nowhere(&self, verb: Verb, from: u32, to: u32) -> Option<String> {
        let root = &self.platform.root_complex;
        let (what, key, is_sent_on) = match verb {
            Verb::Load => ("reads", "peer_reads", root.peer_reads.value),
            Verb::Store => ("writes", "peer_writes", root.peer_writes.value),
        };
        match self.platform.peer_route(from as usize, to as usize)? {
            PeerRoute::BySwitch => None,
            PeerRoute::ByRoot if is_sent_on => None,
            PeerRoute::ByRoot => Some(format!(
                "a request of card {from} to card {to} goes up to the root complex, which does not forward peer {what}: it completes them with \
                 UR (root_complex.{key} is false); use cards below a common switch that does not redirect"
            )),
            PeerRoute::Nowhere(port) => Some(format!(
                "a request of card {from} to card {to} is redirected upstream, but port {port} does not forward it \
                 (port.{port}.acs_redirect is false), and a TLP does not return to its ingress port"
            )),
        }
    }

    fn check_call(&self, call: &DmaCall) -> Result<(), Unsupported> {
        self.check_transfer(&call.transfer)?;
        let refused = |because: &str| Err(self.unsupported("a driver call that starts DMA", because));
        if self.platform.driver.is_none() {
            return refused("its platform file has no section [driver]");
        }
        if self.platform.mailbox(call.transfer.card, call.channel).is_none() {
            return refused(Mailbox::NEEDS);
        }
        Ok(())
    }

    fn check_memory(&self, memory: HostMemory) -> Result<(), Unsupported> {
        if memory.socket == Socket::Remote && !self.facts.dma.is_some_and(|dma| dma.has_remote) {
            let because = "it has one socket: memory.remote_ns is 0";
            return Err(self.unsupported("memory of another socket", because));
        }
        Ok(())
    }
}
