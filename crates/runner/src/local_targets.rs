//! Names of targets on this machine.

/// Targets of this machine that are named without a PCI address, and their description.
pub const LOCAL_TARGETS: [(&str, &str); 6] = [
    ("host", "the memory of this machine (measured)"),
    ("cuda:0", "the first GPU of the CUDA driver (measured); the next is cuda:1"),
    ("opencl:0", "the first OpenCL device (measured); the next is opencl:1"),
    ("nvme:/dev/ng0n1", "a namespace of an NVMe drive, read through the kernel's driver (measured)"),
    ("xdma:/dev/xdma0", "a card with AMD's XDMA core, through its driver (measured)"),
    ("sycl:0", "the first SYCL device (measured); the next is sycl:1"),
];
