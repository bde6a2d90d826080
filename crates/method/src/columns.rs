//! The fields of methods as table columns.

use crate::{Arguments, ComputeWork, CoreAccess, Flow, Means, Method, Reach, Table};

impl Method {
    /// The columns of all methods, in table order.
    pub const COLUMNS: [&'static str; 45] = [
        "kind",
        "path",
        "verb",
        "memory_type",
        "access",
        "fence",
        "clock",
        "call",
        "by",
        "lines",
        "source",
        "flows",
        "cards",
        "outstanding",
        "pages",
        "share",
        "descriptors",
        "completion",
        "direction",
        "copies",
        "wait",
        "allocation",
        "kernels",
        "arguments",
        "pinned",
        "work",
        "ports",
        "first_port",
        "vector_words",
        "work_stride_bytes",
        "matrix",
        "ports_each",
        "strategy",
        "table",
        "invalidation",
        "part",
        "discipline",
        "window_bytes",
        "is_random",
        "stride_bytes",
        "asked_outstanding",
        "cache_state",
        "socket",
        "channels",
        "label",
    ];

    /// The columns with whole numbers; all others have texts.
    pub const WHOLE_COLUMNS: [&'static str; 14] = [
        "outstanding",
        "pages",
        "copies",
        "kernels",
        "arguments",
        "ports",
        "first_port",
        "vector_words",
        "work_stride_bytes",
        "ports_each",
        "window_bytes",
        "stride_bytes",
        "asked_outstanding",
        "channels",
    ];

    /// The fields with a value, by column; other columns are empty.
    ///
    /// ```
    /// use lanemark_method::{Clock, Method};
    /// let cells = Method::Clock { clock: Clock::Rdtsc }.cells();
    /// assert_eq!(cells[..2], [("kind", "clock".to_owned()), ("clock", "rdtsc".to_owned())]);
    /// ```
    #[must_use]
    pub fn cells(&self) -> Vec<(&'static str, String)> {
        let mut cells = vec![("kind", self.kind().name().to_owned())];
        let mut put = |column: &'static str, value: &str| cells.push((column, value.to_owned()));
        match self {
            Method::Core(CoreAccess { path, verb, memory_type, access, fence }) => {
                put("path", path.name());
                put("verb", verb.name());
                put("memory_type", memory_type.name());
                put("access", &access.to_string());
                put("fence", fence.map_or("none", |fence| fence.name()));
            }
            Method::Fence { fence } => put("fence", fence.name()),
            Method::Clock { clock } => put("clock", clock.name()),
            Method::KernelCall { call } => put("call", call.name()),
            Method::Wake { by } => put("by", by.name()),
            Method::CacheLines { memory_type, access, lines } => {
                put("memory_type", memory_type.name());
                put("access", &access.to_string());
                put("lines", lines.name());
            }
            Method::LineLoad { source } => put("source", source.name()),
            Method::Dma { flows, outstanding, reach } => {
                put("flows", &in_cell(flows));
                if let Some(outstanding) = outstanding {
                    put("outstanding", &outstanding.to_string());
                }
                put_reach(&mut put, reach);
            }
            Method::DmaPages { flows, pages, reach } => {
                put("flows", &in_cell(flows));
                put("pages", &pages.to_string());
                put_reach(&mut put, reach);
            }
            Method::DmaUnderLoad { flows, outstanding, reach } => {
                put("flows", &in_cell(flows));
                put("outstanding", &outstanding.to_string());
                put_reach(&mut put, reach);
            }
            Method::DmaCall { flows, share, descriptors, completion, reach } => {
                put("flows", &in_cell(flows));
                put("share", share.name());
                put("descriptors", descriptors.name());
                put("completion", completion.name());
                put_reach(&mut put, reach);
            }
            Method::Relay { cards, reach } => {
                put("cards", &cards.iter().map(u32::to_string).collect::<Vec<_>>().join(" "));
                put_reach(&mut put, reach);
            }
            Method::RuntimeCopy { direction, wait, allocation } => {
                put("direction", direction.name());
                put("wait", wait.name());
                put("allocation", allocation.name());
            }
            Method::SmallCopies { direction, copies, by } => {
                put("by", by.name());
                put("direction", direction.name());
                put("copies", &copies.to_string());
            }
            Method::Launch { kernels, by, wait, arguments, pinned } => {
                put("kernels", &kernels.to_string());
                if !by.is_calls() {
                    put("by", by.name());
                }
                put("wait", wait.name());
                let Arguments { count, allocation } = arguments.unwrap_or(Arguments::NONE);
                put("arguments", &count.to_string());
                if count > 0 {
                    put("allocation", allocation.name());
                }
                put("pinned", &pinned.to_string());
            }
            Method::Argument { wait, allocation } => {
                put("wait", wait.name());
                put("allocation", allocation.name());
            }
            Method::Compute { work, wait } => {
                match work {
                    ComputeWork::StreamCopy { ports, first_port, vector_words, stride_bytes } => {
                        put("work", "stream_copy");
                        put("ports", &ports.to_string());
                        put("first_port", &first_port.to_string());
                        put("vector_words", &vector_words.to_string());
                        put("work_stride_bytes", &stride_bytes.to_string());
                    }
                    ComputeWork::Spmv { matrix, kernels, ports_each } => {
                        put("work", "spmv");
                        put("matrix", matrix);
                        put("kernels", &kernels.to_string());
                        put("ports_each", &ports_each.to_string());
                    }
                }
                put("wait", wait.name());
            }
            Method::MapUnmap { means } => {
                put("strategy", means.strategy_name());
                match means {
                    Means::Map { strategy: _, table, invalidation } => {
                        put("table", table.name());
                        put("invalidation", invalidation.name());
                    }
                    Means::Pool => {}
                    Means::Kernel { memory: _, part } => {
                        put("table", Table::Kernel.name());
                        put("part", part.name());
                    }
                }
            }
            Method::SharedBuffer { direction, discipline } => {
                put("direction", direction.name());
                put("discipline", discipline.name());
            }
        }
        put("label", &self.to_string());
        cells
    }
}

fn put_reach(put: &mut impl FnMut(&'static str, &str), reach: &Reach) {
    let Reach { window_bytes, is_random, stride_bytes, outstanding, cache_state, socket, channels } = reach;
    let mut number = |column, value: Option<u64>| {
        if let Some(value) = value {
            put(column, &value.to_string());
        }
    };
    number("window_bytes", *window_bytes);
    number("stride_bytes", *stride_bytes);
    number("asked_outstanding", outstanding.map(u64::from));
    number("channels", channels.map(u64::from));
    put("is_random", &is_random.to_string());
    if let Some(state) = cache_state {
        put("cache_state", state.name());
    }
    if let Some(socket) = socket {
        put("socket", socket.name());
    }
}

fn in_cell(flows: &[Flow]) -> String {
    flows.iter().map(Flow::to_string).collect::<Vec<_>>().join(" ")
}
