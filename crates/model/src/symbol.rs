//! Symbols: numbers that are not known when a formula is recorded.
//!
//! A formula that is computed with symbols records its operations in a [`Graph`]. Operations on known numbers are
//! computed at once, equal ones are recorded once, and those that the range of their operands makes superfluous are left
//! out. All results are those of the formula to the last bit.

use crate::bound::Bound;
use crate::interval::Interval;
use crate::number::{Number, floor};
use crate::operation::{Binary, Comparison, Operand, Operation};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::{Add, Div, Mul, Sub};

/// A known number, or the result of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Symbol<'g> {
    Known(f64),
    Result(&'g Graph, usize),
}

/// Recorded operations, each after those whose results it needs.
#[derive(Debug, Default)]
pub(crate) struct Graph(RefCell<Recorded>);

#[derive(Debug, Default)]
struct Recorded {
    operations: Vec<Operation>,
    /// Intervals of their results; `None` if not known.
    intervals: Vec<Option<Interval>>,
    numbers: BTreeMap<Operation, usize>,
}

impl Graph {
    /// The number that varies at this place, from `low` to `high`.
    pub(crate) fn input(&self, place: usize, (low, high): (f64, f64)) -> Symbol<'_> {
        self.result(Operation::Input(place), Interval::new(low, high))
    }

    /// The operations so far, by their number.
    pub(crate) fn operations(&self) -> Vec<Operation> {
        self.0.borrow().operations.clone()
    }

    fn result(&self, operation: Operation, interval: Option<Interval>) -> Symbol<'_> {
        let Recorded { operations, intervals, numbers } = &mut *self.0.borrow_mut();
        let number = *numbers.entry(operation).or_insert_with(|| {
            operations.push(operation);
            intervals.push(interval);
            operations.len() - 1
        });
        Symbol::Result(self, number)
    }
}

impl<'g> Symbol<'g> {
    /// The symbol as an operand.
    pub(crate) fn operand(self) -> Operand {
        match self {
            Symbol::Known(number) => Operand::Known(number.to_bits()),
            Symbol::Result(_, number) => Operand::Result(number),
        }
    }

    fn is(self, number: f64) -> bool {
        self.operand() == Operand::Known(number.to_bits())
    }

    fn interval(self) -> Option<Interval> {
        match self {
            Symbol::Known(number) => Interval::of(number),
            Symbol::Result(graph, number) => graph.0.borrow().intervals[number],
        }
    }

    fn binary(self, binary: Binary, other: Symbol<'g>) -> Symbol<'g> {
        let graph = match (self, other) {
            (Symbol::Known(one), Symbol::Known(other)) => return Symbol::Known(binary.of(one, other)),
            (Symbol::Result(graph, _), _) | (_, Symbol::Result(graph, _)) => graph,
        };
        let is_sum_with_zero = |one: Symbol<'_>, other: Symbol<'_>| {
            other.is(0.0) && one.interval().is_some_and(|interval| !interval.has_minus_zero)
        };
        // These are exact, also for zeros with a sign.
        match binary {
            Binary::Add if is_sum_with_zero(self, other) => return self,
            Binary::Add if is_sum_with_zero(other, self) => return other,
            Binary::Sub if other.is(0.0) => return self,
            Binary::Mul | Binary::Div if other.is(1.0) => return self,
            Binary::Mul if self.is(1.0) => return other,
            Binary::Div => {
                if let Some(inverse) = other.exact_inverse() {
                    return self * Symbol::Known(inverse);
                }
            }
            Binary::Max | Binary::Min if self.operand() == other.operand() => return self,
            Binary::Max | Binary::Min => {
                let is_larger = self.is_above(other).or_else(|| self.is_at_least(other).then_some(true));
                if let Some(is_larger) = is_larger {
                    return if is_larger == (binary == Binary::Max) { self } else { other };
                }
            }
            Binary::Add | Binary::Sub | Binary::Mul | Binary::Quotient => {}
        }
        let interval =
            (self.interval().zip(other.interval())).and_then(|(one, other)| Interval::of_binary(binary, &one, &other));
        graph.result(Operation::Binary(binary, self.operand(), other.operand()), interval)
    }

    /// Whether this number is above another one; `None` if it depends on numbers that vary.
    fn is_above(self, other: Symbol<'_>) -> Option<bool> {
        Interval::decides(Comparison::Above, &self.interval()?, &other.interval()?)
    }

    /// Whether this number is never below another one. If both are equal, they have the same bits.
    fn is_at_least(self, other: Symbol<'_>) -> bool {
        let intervals = self.interval().zip(other.interval());
        intervals.is_some_and(|(one, other)| one.low >= other.high && other.high != 0.0)
    }

    fn select(comparison: Comparison, [one, other]: [Symbol<'g>; 2], yes: Symbol<'g>, no: Symbol<'g>) -> Symbol<'g> {
        let graph = match (one, other) {
            (Symbol::Known(one), Symbol::Known(other)) => return if comparison.holds(one, other) { yes } else { no },
            (Symbol::Result(graph, _), _) | (_, Symbol::Result(graph, _)) => graph,
        };
        let intervals = one.interval().zip(other.interval());
        if let Some(holds) = intervals.and_then(|(one, other)| Interval::decides(comparison, &one, &other)) {
            return if holds { yes } else { no };
        }
        let (compared, yes_no) = ([one, other].map(Symbol::operand), [yes, no].map(Symbol::operand));
        let is_above = comparison == Comparison::Above;
        match yes_no {
            [yes_operand, no_operand] if yes_operand == no_operand => yes,
            [yes, no] if is_above && [yes, no] == compared => one.binary(Binary::Max, other),
            [yes, no] if is_above && [no, yes] == compared => one.binary(Binary::Min, other),
            [yes_operand, no_operand] => {
                let interval = yes.interval().zip(no.interval()).and_then(|(yes, no)| yes.or(&no));
                graph.result(Operation::Select(comparison, compared, yes_operand, no_operand), interval)
            }
        }
    }

    /// The inverse of a power of two: a product with it has the same bits as a quotient.
    fn exact_inverse(self) -> Option<f64> {
        const FRACTION: u64 = (1 << (f64::MANTISSA_DIGITS - 1)) - 1;
        let Symbol::Known(number) = self else { return None };
        let inverse = 1.0 / number;
        let is_power = number.to_bits() & FRACTION == 0;
        (is_power && number.is_normal() && inverse.is_normal()).then_some(inverse)
    }
}

impl<'g> Add for Symbol<'g> {
    type Output = Symbol<'g>;
    fn add(self, other: Symbol<'g>) -> Symbol<'g> {
        self.binary(Binary::Add, other)
    }
}

impl<'g> Sub for Symbol<'g> {
    type Output = Symbol<'g>;
    fn sub(self, other: Symbol<'g>) -> Symbol<'g> {
        self.binary(Binary::Sub, other)
    }
}

impl<'g> Mul for Symbol<'g> {
    type Output = Symbol<'g>;
    fn mul(self, other: Symbol<'g>) -> Symbol<'g> {
        self.binary(Binary::Mul, other)
    }
}

impl<'g> Div for Symbol<'g> {
    type Output = Symbol<'g>;
    fn div(self, other: Symbol<'g>) -> Symbol<'g> {
        self.binary(Binary::Div, other)
    }
}

impl<'g> Number for Symbol<'g> {
    /// The place in [`Bound::ALL`].
    type Bounds = Symbol<'g>;

    fn all(number: f64) -> Symbol<'g> {
        Symbol::Known(number)
    }

    fn bounds(bound: Bound) -> Symbol<'g> {
        Symbol::Known(f64::from(bound as u8))
    }

    fn if_above(self, other: Symbol<'g>, yes: Symbol<'g>, no: Symbol<'g>) -> Symbol<'g> {
        Symbol::select(Comparison::Above, [self, other], yes, no)
    }

    fn bound_if_above(self, other: Symbol<'g>, yes: Symbol<'g>, no: Symbol<'g>) -> Symbol<'g> {
        self.if_above(other, yes, no)
    }

    fn if_same(one: Symbol<'g>, other: Symbol<'g>, yes: Symbol<'g>, no: Symbol<'g>) -> Symbol<'g> {
        Symbol::select(Comparison::Same, [one, other], yes, no)
    }

    fn floor(self) -> Symbol<'g> {
        match self {
            Symbol::Known(number) => Symbol::Known(floor(number)),
            Symbol::Result(graph, _) => {
                let interval = self.interval().and_then(|interval| interval.floor());
                graph.result(Operation::Floor(self.operand()), interval)
            }
        }
    }

    fn max(self, other: Symbol<'g>) -> Symbol<'g> {
        self.binary(Binary::Max, other)
    }

    fn min(self, other: Symbol<'g>) -> Symbol<'g> {
        self.binary(Binary::Min, other)
    }

    fn divided(self, by: Symbol<'g>) -> (Symbol<'g>, Symbol<'g>) {
        let quotient = self.binary(Binary::Quotient, by);
        let graph = match (self, by) {
            (Symbol::Known(_), Symbol::Known(_)) => return (quotient, self - quotient * by),
            (Symbol::Result(graph, _), _) | (_, Symbol::Result(graph, _)) => graph,
        };
        let interval = self.interval().zip(by.interval()).and_then(|(one, by)| Interval::remainder(&one, &by));
        let remainder = Operation::Remainder([self, quotient, by].map(Symbol::operand));
        (quotient, graph.result(remainder, interval))
    }
}
