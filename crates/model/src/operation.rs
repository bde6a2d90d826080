//! Operations of a recorded formula.

use crate::number::{Number, floor};

/// An operand of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operand {
    /// The bits of a number.
    Known(u64),
    /// The number of an operation.
    Result(usize),
}

/// An operation of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    /// The largest whole number up to the quotient.
    Quotient,
    /// The first one if it is above the second one, and the second one otherwise.
    Max,
    /// The second one if the first one is above it, and the first one otherwise.
    Min,
}

/// A comparison of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Comparison {
    /// The first one is above the second one.
    Above,
    Same,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    /// A number that varies, by its place.
    Input(usize),
    Binary(Binary, Operand, Operand),
    Floor(Operand),
    /// The first one minus the product of the others.
    Remainder([Operand; 3]),
    /// The sum of the first one and the product of the others.
    Sum([Operand; 3]),
    /// `yes` if the comparison holds, and `no` otherwise.
    Select(Comparison, [Operand; 2], Operand, Operand),
}

impl Operand {
    /// The number of the operation of a result.
    pub(crate) fn number(self) -> Option<usize> {
        match self {
            Operand::Known(_) => None,
            Operand::Result(number) => Some(number),
        }
    }
}

impl Operation {
    /// Numbers of the operations whose results this one needs.
    pub(crate) fn needs(&self) -> impl Iterator<Item = usize> + use<> {
        let operands = match *self {
            Operation::Input(_) => [None; 4],
            Operation::Floor(one) => [Some(one), None, None, None],
            Operation::Binary(_, one, other) => [Some(one), Some(other), None, None],
            Operation::Remainder(three) | Operation::Sum(three) => {
                [Some(three[0]), Some(three[1]), Some(three[2]), None]
            }
            Operation::Select(_, [one, other], yes, no) => [Some(one), Some(other), Some(yes), Some(no)],
        };
        operands.into_iter().flatten().filter_map(Operand::number)
    }
}

impl Binary {
    /// The result for two known numbers.
    pub(crate) fn of(self, one: f64, other: f64) -> f64 {
        match self {
            Binary::Add => one + other,
            Binary::Sub => one - other,
            Binary::Mul => one * other,
            Binary::Div => one / other,
            Binary::Quotient => floor(one / other),
            Binary::Max => one.if_above(other, one, other),
            Binary::Min => one.if_above(other, other, one),
        }
    }
}

impl Comparison {
    pub(crate) fn holds(self, one: f64, other: f64) -> bool {
        match self {
            Comparison::Above => one > other,
            Comparison::Same => one == other,
        }
    }
}
