//! OpenCL C source of every kernel that runtime devices launch.
//!
//! Most runtimes have a compiler and build a kernel when it is first needed. FPGA boards usually have none: build
//! [`every_kernel`] with the vendor's compiler and pass the resulting file.

#![cfg_attr(
    not(all(target_arch = "x86_64", target_os = "linux")),
    allow(dead_code, reason = "on other targets devices are listed but not measured")
)]

use lanemark_machine::Arguments;
use std::fmt::Write as _;

/// Vector widths that kernels may load, in words.
pub(crate) const VECTORS: [u32; 5] = [1, 2, 4, 8, 16];

/// Source of one kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct KernelSource {
    /// Kernel name, unique among all kernels.
    pub(crate) name: String,
    /// Complete source text for the compiler.
    pub(crate) text: String,
}

/// Argument counts that the questions use for empty kernels.
const QUESTION_ARGUMENTS: [u32; 6] = [0, 1, 2, 4, 8, Arguments::MOST];
/// Vector widths that the questions use for stream copies, in words.
const QUESTION_VECTORS: [u32; 2] = [1, 4];

/// Source of every kernel that a question launches, as one program.
///
/// ```
/// assert!(lanemark_hw::every_kernel().contains("__kernel void nothing_0(void) {}"));
/// ```
#[must_use]
pub fn every_kernel() -> String {
    let nothing = QUESTION_ARGUMENTS.into_iter().map(nothing);
    let copies =
        QUESTION_VECTORS.into_iter().flat_map(|words| [false, true].map(|has_gaps| stream_copy(words, has_gaps)));
    let all = nothing.chain(copies).chain([spmv()]);
    all.map(|kernel| kernel.text).collect::<Vec<_>>().join("\n")
}

/// Empty kernel with `count` pointer arguments.
pub(crate) fn nothing(count: u32) -> KernelSource {
    let mut parameters = String::new();
    for place in 0..count {
        let comma = if place == 0 { "" } else { ", " };
        // Writing to a `String` cannot fail.
        let _ = write!(parameters, "{comma}__global ulong *a{place}");
    }
    let name = format!("nothing_{count}");
    let text = format!("__kernel void {name}({}) {{}}\n", if count == 0 { "void" } else { &parameters });
    KernelSource { name, text }
}

/// Copy kernel: a loop over `vector_words`-wide vectors, or over groups of `vector_words` separate words with gaps.
pub(crate) fn stream_copy(vector_words: u32, has_gaps: bool) -> KernelSource {
    let vector = if vector_words == 1 { String::new() } else { vector_words.to_string() };
    let (name, word, body) = if has_gaps {
        let body = format!(
            "        ulong words[{vector_words}];\n\
             \x20       #pragma unroll\n\
             \x20       for (uint n = 0; n < {vector_words}; n++) words[n] = from[(i * {vector_words} + n) * stride];\n\
             \x20       #pragma unroll\n\
             \x20       for (uint n = 0; n < {vector_words}; n++) to[(i * {vector_words} + n) * stride] = words[n];\n"
        );
        (format!("stream_copy_{vector_words}_with_gaps"), "ulong".to_owned(), body)
    } else {
        (format!("stream_copy_{vector_words}"), format!("ulong{vector}"), "        to[i] = from[i];\n".to_owned())
    };
    let text = format!(
        "__kernel void {name}(__global const {word} *restrict from, __global {word} *restrict to, ulong groups, ulong stride)\n\
         {{\n    for (ulong i = 0; i < groups; i++) {{\n{body}    }}\n}}\n"
    );
    KernelSource { name, text }
}

/// Sparse matrix times vector; each row is summed from its first entry to its last.
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
    fn an_empty_kernel_has_the_requested_number_of_arguments() {
        assert_eq!(nothing(0).text, "__kernel void nothing_0(void) {}\n");
        assert_eq!(nothing(2).text, "__kernel void nothing_2(__global ulong *a0, __global ulong *a1) {}\n");
    }

    #[test]
    fn contiguous_words_are_loaded_as_a_vector_and_strided_words_one_by_one() {
        assert!(stream_copy(4, false).text.contains("__global const ulong4 *restrict from"));
        assert!(stream_copy(1, false).text.contains("__global const ulong *restrict from"));
        let gaps = stream_copy(4, true).text;
        assert!(
            gaps.contains("const ulong *restrict") && gaps.contains("words[n] = from[(i * 4 + n) * stride]"),
            "{gaps}"
        );
    }

    #[test]
    fn the_combined_program_has_every_kernel_once() {
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
