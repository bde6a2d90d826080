//! The state of an endpoint without its DMA engine.

use super::{Endpoint, Received};
use crate::steady::Survey;

impl Endpoint {
    /// Visits the state. [`DmaEngine::visit`] visits the engine, after every item that may carry its tags.
    ///
    /// [`DmaEngine::visit`]: crate::device::dma_engine::DmaEngine::visit
    pub(crate) fn visit(&mut self, view: &mut impl Survey) {
        let Endpoint {
            spec: _,
            regions,
            registers,
            accepting,
            free_at,
            free: _,
            left_at,
            dma: _,
            kernels,
            responder,
            last_accepted,
            last_milestone: _,
            accepted_bytes,
            accepted_from,
            unsupported,
            busy,
        } = self;
        busy.visit(view);
        for region in regions {
            region.visit(view);
        }
        if let Some(registers) = registers {
            registers.visit(view);
        }
        if let Some(kernels) = kernels {
            kernels.visit(view);
        }
        if let Some(responder) = responder {
            responder.visit(view);
        }
        view.count(accepting.len());
        for Received { done, at, tlp, place, beats, waits, is_queued: _, span } in accepting.as_mut_slice() {
            view.moment(done);
            view.moment(at);
            view.tlp(tlp);
            view.count(*place);
            view.state(*beats);
            view.flag(*waits);
            view.state(span.0);
        }
        view.time(free_at);
        // If it does not advance, no TLP arrives and it is not read.
        view.time(left_at);
        view.mark(last_accepted);
        view.counter(accepted_bytes);
        view.count(accepted_from.len());
        for (requester, bytes, at, _) in accepted_from {
            view.state(u64::from(*requester));
            view.counter(bytes);
            view.mark(at);
        }
        view.state(*unsupported);
    }
}
