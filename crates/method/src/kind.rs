//! The kinds of methods.

use crate::Method;

/// Variant of a [`Method`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MethodKind {
    /// [`Method::Core`].
    Core,
    /// [`Method::Fence`].
    Fence,
    /// [`Method::Clock`].
    Clock,
    /// [`Method::KernelCall`].
    KernelCall,
    /// [`Method::Wake`].
    Wake,
    /// [`Method::CacheLines`].
    CacheLines,
    /// [`Method::LineLoad`].
    LineLoad,
    /// [`Method::Dma`].
    Dma,
    /// [`Method::DmaPages`].
    DmaPages,
    /// [`Method::DmaUnderLoad`].
    DmaUnderLoad,
    /// [`Method::DmaCall`].
    DmaCall,
    /// [`Method::Relay`].
    Relay,
    /// [`Method::RuntimeCopy`].
    RuntimeCopy,
    /// [`Method::Launch`].
    Launch,
    /// [`Method::Argument`].
    Argument,
    /// [`Method::Compute`].
    Compute,
    /// [`Method::MapUnmap`].
    MapUnmap,
    /// [`Method::SharedBuffer`].
    SharedBuffer,
}

impl MethodKind {
    /// All kinds.
    pub const ALL: [MethodKind; 18] = [
        MethodKind::Core,
        MethodKind::Fence,
        MethodKind::Clock,
        MethodKind::KernelCall,
        MethodKind::Wake,
        MethodKind::CacheLines,
        MethodKind::LineLoad,
        MethodKind::Dma,
        MethodKind::DmaPages,
        MethodKind::DmaUnderLoad,
        MethodKind::DmaCall,
        MethodKind::Relay,
        MethodKind::RuntimeCopy,
        MethodKind::Launch,
        MethodKind::Argument,
        MethodKind::Compute,
        MethodKind::MapUnmap,
        MethodKind::SharedBuffer,
    ];

    /// Value of the key `kind` in files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            MethodKind::Core => "core",
            MethodKind::Fence => "fence",
            MethodKind::Clock => "clock",
            MethodKind::KernelCall => "kernel_call",
            MethodKind::Wake => "wake",
            MethodKind::CacheLines => "cache_lines",
            MethodKind::LineLoad => "line_load",
            MethodKind::Dma => "dma",
            MethodKind::DmaPages => "dma_pages",
            MethodKind::DmaUnderLoad => "dma_under_load",
            MethodKind::DmaCall => "dma_call",
            MethodKind::Relay => "relay",
            MethodKind::RuntimeCopy => "runtime_copy",
            MethodKind::Launch => "launch",
            MethodKind::Argument => "argument",
            MethodKind::Compute => "compute",
            MethodKind::MapUnmap => "map_unmap",
            MethodKind::SharedBuffer => "shared_buffer",
        }
    }
}

crate::name::from_name!(MethodKind, "a kind of method");

impl Method {
    /// The kind of this method.
    #[must_use]
    pub const fn kind(&self) -> MethodKind {
        match self {
            Method::Core(_) => MethodKind::Core,
            Method::Fence { .. } => MethodKind::Fence,
            Method::Clock { .. } => MethodKind::Clock,
            Method::KernelCall { .. } => MethodKind::KernelCall,
            Method::Wake { .. } => MethodKind::Wake,
            Method::CacheLines { .. } => MethodKind::CacheLines,
            Method::LineLoad { .. } => MethodKind::LineLoad,
            Method::Dma { .. } => MethodKind::Dma,
            Method::DmaPages { .. } => MethodKind::DmaPages,
            Method::DmaUnderLoad { .. } => MethodKind::DmaUnderLoad,
            Method::DmaCall { .. } => MethodKind::DmaCall,
            Method::Relay { .. } => MethodKind::Relay,
            Method::RuntimeCopy { .. } => MethodKind::RuntimeCopy,
            Method::Launch { .. } => MethodKind::Launch,
            Method::Argument { .. } => MethodKind::Argument,
            Method::Compute { .. } => MethodKind::Compute,
            Method::MapUnmap { .. } => MethodKind::MapUnmap,
            Method::SharedBuffer { .. } => MethodKind::SharedBuffer,
        }
    }
}
