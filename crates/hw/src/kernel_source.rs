//! What devices behind runtimes are given to launch, in OpenCL C.
//!
//! Most runtimes have a compiler, and build one of these when it is first needed. Boards with an FPGA have none: whoever has one builds
//! [`every_kernel`] with its vendor's compiler, and names the file.

#![cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux")),
    allow(dead_code, reason = "elsewhere devices are listed and not asked")
)]

use lanemark_machine::Arguments;
use std::fmt::Write as _;

/// Words that kernels load at once.
pub(crate) const VECTORS: [u32; 5] = [1, 2, 4, 8, 16];

/// One kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct KernelSource {
    /// Its name, no other's.
    pub(crate) name: String,
    /// All that a compiler has to see.
    pub(crate) text: String,
}

/// How many pieces of memory the questions give a kernel, and how many words they have one load at once.
const ASKED_ARGUMENTS: [u32; 6] = [0, 1, 2, 4, 8, Arguments::MOST];
const ASKED_VECTORS: [u32; 2] = [1, 4];

/// The source of every kernel that a question launches, as one program.
///
/// ```
/// assert!(lanemark_hw::every_kernel().contains("__kernel void nothing_0(void) {}"));
/// ```
#[must_use]
pub fn every_kernel() -> String {
    let nothing = ASKED_ARGUMENTS.into_iter().map(nothing);
    let copies = ASKED_VECTORS.into_iter().flat_map(|words| [false, true].map(|has_gaps| stream_copy(words, has_gaps)));
    let all = nothing.chain(copies).chain([spmv()]);
    all.map(|kernel| kernel.text).collect::<Vec<_>>().join("\n")
}

/// One that does nothing, and takes so many pieces of memory.
pub(crate) fn nothing(count: u32) -> KernelSource {
    let mut parameters = String::new();
    for place in 0..count {
        let comma = if place == 0 { "" } else { ", " };
        // Writing to a string succeeds.
        let _ = write!(parameters, "{comma}__global ulong *a{place}");
    }
    let name = format!("nothing_{count}");
    let text = format!("__kernel void {name}({}) {{}}\n", if count == 0 { "void" } else { &parameters });
    KernelSource { name, text }
}

/// A plain loop over neighbouring words or vectors of them; or one over words with gaps, as many at once.
pub(crate) fn stream_copy(at_once: u32, has_gaps: bool) -> KernelSource {
    let vector = if at_once == 1 { String::new() } else { at_once.to_string() };
    let (name, word, body) = if has_gaps {
        let body = format!(
            "        ulong words[{at_once}];\n\
             \x20       #pragma unroll\n\
             \x20       for (uint n = 0; n < {at_once}; n++) words[n] = from[(i * {at_once} + n) * stride];\n\
             \x20       #pragma unroll\n\
             \x20       for (uint n = 0; n < {at_once}; n++) to[(i * {at_once} + n) * stride] = words[n];\n"
        );
        (format!("stream_copy_{at_once}_with_gaps"), "ulong".to_owned(), body)
    } else {
        (format!("stream_copy_{at_once}"), format!("ulong{vector}"), "        to[i] = from[i];\n".to_owned())
    };
    let text = format!(
        "__kernel void {name}(__global const {word} *restrict from, __global {word} *restrict to, ulong groups, ulong stride)\n\
         {{\n    for (ulong i = 0; i < groups; i++) {{\n{body}    }}\n}}\n"
    );
    KernelSource { name, text }
}

/// A sparse matrix times a vector: each row summed from its first entry to its last.
pub(crate) fn spmv() -> KernelSource {
    let text = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable
__kernel void spmv(__global const double *restrict values, __global const uint *restrict columns,
                   __global const double *restrict x, __global double *restrict y,
                   __global const uint *restrict starts, uint rows)
{
    for (uint row = 0; row < rows; row++) {
        double sum = 0.0;
        for (uint entry = starts[row]; entry < starts[row + 1]; entry++)
            sum += values[entry] * x[columns[entry]];
        y[row] = sum;
    }
}
";
    KernelSource { name: "spmv".to_owned(), text: text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_takes_as_many_pieces_of_memory_as_it_is_given() {
        assert_eq!(nothing(0).text, "__kernel void nothing_0(void) {}\n");
        assert_eq!(nothing(2).text, "__kernel void nothing_2(__global ulong *a0, __global ulong *a1) {}\n");
    }

    #[test]
    fn words_without_gaps_are_loaded_as_a_vector_and_words_with_gaps_one_by_one() {
        assert!(stream_copy(4, false).text.contains("__global const ulong4 *restrict from"));
        assert!(stream_copy(1, false).text.contains("__global const ulong *restrict from"));
        let gaps = stream_copy(4, true).text;
        assert!(
            gaps.contains("const ulong *restrict") && gaps.contains("words[n] = from[(i * 4 + n) * stride]"),
            "{gaps}"
        );
    }

    #[test]
    fn one_program_has_every_kernel_and_no_name_twice() {
        let all = every_kernel();
        let mut names: Vec<&str> =
            all.split("__kernel void ").skip(1).map(|rest| rest.split('(').next().unwrap_or_default()).collect();
        assert_eq!(names.len(), 6 + 4 + 1);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 11);
        for kernel in [nothing(16), stream_copy(4, true), stream_copy(1, false), spmv()] {
            assert!(all.contains(&kernel.text) && kernel.text.contains(&format!("void {}(", kernel.name)));
        }
    }
}
