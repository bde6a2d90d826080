//! The end of the program when a compiled design does not return.

use crate::failure::{Failure, say};
use lanemark_hw::dut_library::Hang;
use lanemark_hw::end_at_once;

/// Reports a design that does not return, and ends the program: its thread cannot be ended.
pub fn end_of(hang: &Hang) {
    let failure =
        Failure::Check(format!("{hang}; the run ends here; to find an error of the design, run `lanemark fuzz-rtl`"));
    say(&format!("lanemark: {failure}"));
    end_at_once(failure.exit_code());
}
