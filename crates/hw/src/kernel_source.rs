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
    let reads = READ_BYTES.map(reads);
    let all = nothing.chain(copies).chain([spmv()]).chain(reads);
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

/// Bytes that one load of the kernel of [`reads`] has, largest first.
pub(crate) const READ_BYTES: [u32; 2] = [16, 4];

/// Reads by loads of `bytes` bytes, one of [`READ_BYTES`]: each work item makes one transfer after the other, of which the
/// next starts when the last data have arrived. The random order is that of
/// [`Window::place`](lanemark_machine::Window::place).
///
/// Lengths and distances are in units of a load. `zero` is 0, but a compiler does not know that.
pub(crate) fn reads(bytes: u32) -> KernelSource {
    let (word, added) = match bytes {
        16 => ("uint4", "unit.s0 + unit.s1 + unit.s2 + unit.s3"),
        _ => ("uint", "unit"),
    };
    let name = format!("reads_{bytes}");
    let text = format!(
        "__kernel void {name}(__global const {word} *memory, __global uint *sums, ulong first, ulong count, ulong places,
                      ulong step, ulong units, uint is_random, uint zero)
{{
    ulong item = get_global_id(0), items = get_global_size(0);
    uint sum = 0;
    for (ulong nth = item; nth < count; nth += items) {{
        ulong hash = nth;
        if (is_random) {{
            hash = (hash + 1) * 0x9E3779B97F4A7C15UL;
            hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9UL;
            hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EBUL;
            hash ^= hash >> 31;
        }}
        __global const {word} *at = memory + first + (hash % places) * step + (sum & zero);
        for (ulong n = 0; n < units; n++) {{
            {word} unit = at[n];
            sum += {added};
        }}
    }}
    sums[item] = sum;
}}
"
    );
    KernelSource { name, text }
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
        assert_eq!(names.len(), 6 + 4 + 1 + 2);
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 13);
        for kernel in [nothing(16), stream_copy(4, true), stream_copy(1, false), spmv(), reads(16), reads(4)] {
            assert!(all.contains(&kernel.text) && kernel.text.contains(&format!("void {}(", kernel.name)));
        }
    }
}
