//! Texts of the kernels, which the driver compiles (PTX).
//!
//! Source: NVIDIA, "PTX ISA", version 7.8; target `sm_75` (Turing), so that every newer device runs them.

use lanemark_machine::Arguments;
use std::fmt::Write;

/// Kernel `clock`: readings of the device's clock.
pub(super) const CLOCK: &str = include_str!("clock.ptx");
/// Kernel `ping`: answers to doorbells.
pub(super) const PING: &str = include_str!("ping.ptx");
/// Kernel `transfers`, before its blocks are filled in.
const TRANSFERS: &str = include_str!("transfers.ptx");
/// Kernel `pieces`, before its blocks are filled in.
const PIECES: &str = include_str!("pieces.ptx");

/// Threads of a block: one warp.
pub(super) const THREADS: u32 = 32;
/// Units that a thread moves before it waits.
pub(super) const UNITS: u32 = 8;
/// Bytes that one instruction of a thread can move, largest first.
pub(super) const UNIT_BYTES: [u32; 3] = [16, 8, 4];
/// The same for pieces, which may have any length.
pub(super) const PIECE_UNIT_BYTES: [u32; 4] = [16, 8, 4, 1];

/// Bytes of a slice: the units of all threads of a warp.
pub(super) const fn slice_bytes(unit: u32) -> u64 {
    (unit * THREADS * UNITS) as u64
}

/// Kernel `transfers` that moves `unit` bytes with one instruction, one of [`UNIT_BYTES`].
pub(super) fn transfers(unit: u32) -> String {
    /// A block: its text for the bytes of a unit and the number of the occurrence.
    type Block = fn(u32, u32) -> String;
    let mut text = TRANSFERS.to_owned();
    let blocks: [(&str, Block); 5] = [
        ("{place}\n", place),
        ("{loads}\n", |unit, _| summed_loads(unit)),
        ("{sum}\n", |unit, _| sum(unit)),
        ("{stores}\n", |unit, _| stores(unit)),
        ("{advance}\n", |_, _| ADVANCE.to_owned()),
    ];
    for (name, block) in blocks {
        // Labels must be unique, so each occurrence gets a number.
        for number in 0.. {
            if !text.contains(name) {
                break;
            }
            text = text.replacen(name, &block(unit, number), 1);
        }
    }
    text.replace("{unit}", &unit.to_string())
}

/// Kernel `pieces` that moves `unit` bytes with one instruction, one of [`PIECE_UNIT_BYTES`].
pub(super) fn pieces(unit: u32) -> String {
    let text = PIECES.replace("{loads}\n", &(within(unit) + &loads(unit))).replace("{copies}\n", &copies(unit));
    text.replace("{unit}", &unit.to_string()).replace("{slice}", &slice_bytes(unit).to_string())
}

/// Kernel `nothing` with `arguments` addresses, which it ignores.
pub(super) fn nothing(arguments: u32) -> String {
    let parameters: Vec<String> = (0..arguments).map(|number| format!(".param .u64 a{number}")).collect();
    let parameters = parameters.join(", ");
    format!(
        ".version 7.8\n.target sm_75\n.address_size 64\n\n.visible .entry nothing({parameters})\n{{\n    ret;\n}}\n"
    )
}

/// Every kernel of the backend by name and number of arguments or bytes of a unit, as text (PTX), for a check by an
/// assembler without a device.
///
/// ```
/// let kernels = lanemark_hw::cuda::every_kernel();
/// let (name, text) = kernels.iter().find(|(name, _)| name == "transfers_16").unwrap();
/// assert!(text.contains(".visible .entry transfers("), "{name}");
/// ```
#[must_use]
pub fn every_kernel() -> Vec<(String, String)> {
    let mut kernels =
        [("clock", CLOCK), ("ping", PING)].map(|(name, text)| (name.to_owned(), text.to_owned())).to_vec();
    let arguments = [0, 1, Arguments::MOST].map(|count| (format!("nothing_{count}"), nothing(count)));
    kernels.extend(arguments);
    kernels.extend(UNIT_BYTES.map(|unit| (format!("transfers_{unit}"), transfers(unit))));
    kernels.extend(PIECE_UNIT_BYTES.map(|unit| (format!("pieces_{unit}"), pieces(unit))));
    kernels
}

/// Address of the slice `%k` of transfer `%nth`. The random order is that of
/// [`Window::place`](lanemark_machine::Window::place).
fn place(unit: u32, number: u32) -> String {
    let slice = slice_bytes(unit);
    format!(
        "    mov.u64 %hash, %nth;
    setp.eq.u32 %p, %israndom, 0;
    @%p bra PLACE{number};
    add.u64 %hash, %hash, 1;
    mul.lo.u64 %hash, %hash, 0x9E3779B97F4A7C15;
    shr.u64 %t, %hash, 30;
    xor.b64 %hash, %hash, %t;
    mul.lo.u64 %hash, %hash, 0xBF58476D1CE4E5B9;
    shr.u64 %t, %hash, 27;
    xor.b64 %hash, %hash, %t;
    mul.lo.u64 %hash, %hash, 0x94D049BB133111EB;
    shr.u64 %t, %hash, 31;
    xor.b64 %hash, %hash, %t;
PLACE{number}:
    rem.u64 %hash, %hash, %places;
    mul.lo.u64 %off, %hash, %step;
    mul.lo.u64 %t, %k, {slice};
    sub.u64 %len, %bytes, %t;
    add.u64 %off, %off, %t;
    add.u64 %off, %off, %lo;
    add.u64 %a, %base, %off;
"
    )
}

/// The next slice of this warp.
const ADVANCE: &str = "    add.u64 %k, %k, %dk;
    add.u64 %nth, %nth, %dn;
    setp.ge.u64 %p, %k, %slices;
    @%p sub.u64 %k, %k, %slices;
    @%p add.u64 %nth, %nth, %carry;
";

/// Predicates `%q0` to `%q7`: whether the units of this thread are within the transfer.
fn within(unit: u32) -> String {
    (0..UNITS).fold(String::new(), |mut text, place| {
        let at = place * THREADS * unit;
        let _ = writeln!(text, "    add.u64 %t, %lo, {at};\n    setp.lt.u64 %q{place}, %t, %len;");
        text
    })
}

/// Registers of the unit number `place`, and the type of an instruction that moves it.
fn registers(unit: u32, place: u32) -> (&'static str, String) {
    let words = unit.div_ceil(4);
    let list: Vec<String> = (0..words).map(|word| format!("%v{}", place * words + word)).collect();
    match unit {
        1 => (".u8", list.concat()),
        4 => (".u32", list.concat()),
        8 => (".v2.u32", format!("{{{}}}", list.join(", "))),
        _ => (".v4.u32", format!("{{{}}}", list.join(", "))),
    }
}

/// Loads of all units that are within the transfer.
fn loads(unit: u32) -> String {
    (0..UNITS).fold(String::new(), |mut text, place| {
        let (kind, list) = registers(unit, place);
        let at = place * THREADS * unit;
        let _ = writeln!(text, "    @%q{place} ld.relaxed.sys.global{kind} {list}, [%a+{at}];");
        text
    })
}

/// Stores of what was loaded to the other address.
fn copies(unit: u32) -> String {
    (0..UNITS).fold(String::new(), |mut text, place| {
        let (kind, list) = registers(unit, place);
        let at = place * THREADS * unit;
        let _ = writeln!(text, "    @%q{place} st.relaxed.sys.global{kind} [%b+{at}], {list};");
        text
    })
}

/// Loads of a transfer, which are added up.
fn summed_loads(unit: u32) -> String {
    // A unit beyond the end of the transfer adds nothing to the sum.
    let zeros = (0..UNITS * unit / 4).fold(String::new(), |mut text, register| {
        let _ = writeln!(text, "    mov.u32 %v{register}, 0;");
        text
    });
    zeros + &within(unit) + &loads(unit)
}

fn sum(unit: u32) -> String {
    (0..UNITS * unit / 4).fold(String::new(), |mut text, register| {
        let _ = writeln!(text, "    add.u32 %acc, %acc, %v{register};");
        text
    })
}

/// Stores of the word number `n` of the window, which is `n * %mul + %add`.
fn stores(unit: u32) -> String {
    let words = unit / 4;
    let mut text = "    shr.u64 %t, %off, 2;\n    cvt.u32.u64 %x, %t;\n    mad.lo.u32 %x, %x, %mul, %add;\n".to_owned();
    text += &within(unit);
    text += "    @%q0 mov.u64 %last, %a;\n";
    for place in 0..UNITS {
        for word in 0..words {
            let (register, offset) = (place * words + word, place * THREADS * words + word);
            let _ = writeln!(text, "    mad.lo.u32 %v{register}, %mul, {offset}, %x;");
        }
        let (kind, list) = registers(unit, place);
        let at = place * THREADS * unit;
        let _ = writeln!(text, "    @%q{place} st.relaxed.sys.global{kind} [%a+{at}], {list};");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_is_filled_in_and_every_label_is_unique() {
        for unit in UNIT_BYTES {
            let text = transfers(unit);
            let code: Vec<&str> = text.lines().filter(|line| !line.starts_with("//")).collect();
            assert!(code.iter().all(|line| *line == "{" || !line.starts_with('{')), "{text}");
            assert!(!code.iter().any(|line| line.contains("{unit}")), "{text}");
            let mut labels: Vec<&str> = code.iter().copied().filter(|line| line.ends_with(':')).collect();
            let count = labels.len();
            labels.sort_unstable();
            labels.dedup();
            assert_eq!(labels.len(), count);
        }
    }

    #[test]
    fn all_loads_and_stores_of_data_are_strong_and_of_system_scope() {
        for (unit, vector) in [(16, ".v4"), (8, ".v2"), (4, "")] {
            let text = transfers(unit);
            let count = |of: &str| text.matches(&format!("{of}.relaxed.sys.global{vector}.u32")).count();
            // A word-wide kernel has one more load: the one after the fence.
            assert_eq!((count(" ld"), count(" st")), (8 + usize::from(unit == 4), 8));
        }
    }

    #[test]
    fn the_number_of_a_stored_word_is_computed_in_64_bits() {
        let text = transfers(16);
        let (number, cut) = (text.find("shr.u64 %t, %off, 2;").unwrap(), text.find("cvt.u32.u64 %x, %t;").unwrap());
        assert!(
            number < cut && !text.contains("cvt.u32.u64 %x, %off;"),
            "an offset beyond 4 GiB would lose its high bits"
        );
    }

    #[test]
    fn pieces_of_every_unit_are_loaded_whole_before_they_are_stored() {
        for (unit, kind) in [(16, ".v4.u32"), (8, ".v2.u32"), (4, ".u32"), (1, ".u8")] {
            let text = pieces(unit);
            let code: Vec<&str> = text.lines().filter(|line| !line.starts_with("//")).collect();
            assert!(code.iter().all(|line| !line.contains("{unit}") && !line.contains("{slice}")), "{text}");
            let places = |of: &str| {
                let name = format!(" {of}.relaxed.sys.global{kind} ");
                code.iter().enumerate().filter(|(_, line)| line.contains(&name)).map(|(at, _)| at).collect::<Vec<_>>()
            };
            let (loads, stores) = (places("ld"), places("st"));
            assert_eq!((loads.len(), stores.len()), (8, 8), "{text}");
            assert!(loads[7] < stores[0], "{text}");
        }
    }

    #[test]
    fn a_kernel_without_work_has_the_arguments_asked_for() {
        assert!(nothing(0).contains("nothing()"));
        assert!(nothing(2).contains("nothing(.param .u64 a0, .param .u64 a1)"));
    }
}
