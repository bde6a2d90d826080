//! Programs: recorded operations over columns of numbers, in as few registers as possible.

#![expect(clippy::inline_always, reason = "only what is inlined into a function for AVX2 is compiled for it")]

use crate::number::WHOLE;
use crate::operation::{Binary, Comparison, Operand, Operation};
use crate::symbol::{Graph, Symbol};
use crate::vector::Vectorized;
use fearless_simd::prelude::*;
use fearless_simd::{Simd, f64x8};
use std::ops::Range;

/// Numbers of a vector: as many as a line of the cache has.
const LANES: usize = 8;
/// Vectors that are computed in a row, so that the loop over them costs less.
const VECTORS: usize = 2;
/// Groups of vectors in a column.
const GROUPS: usize = 8;
/// Rows of a column. All registers together fit the first-level cache.
const ROWS: usize = LANES * VECTORS * GROUPS;

/// A register: a number for each row.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Column([[[f64; LANES]; VECTORS]; GROUPS]);

impl Column {
    fn of(number: f64) -> Box<Column> {
        Box::new(Column([[[number; LANES]; VECTORS]; GROUPS]))
    }

    fn rows(&self) -> &[f64] {
        self.0.as_flattened().as_flattened()
    }

    fn rows_mut(&mut self) -> &mut [f64] {
        self.0.as_flattened_mut().as_flattened_mut()
    }
}

/// An operation on registers, and the register of its result.
#[derive(Clone, Copy, Debug)]
struct Step {
    operation: Operation,
    result: usize,
}

/// Operations that compute `N` numbers from those that vary.
#[derive(Clone, Debug)]
pub(crate) struct Program<const N: usize> {
    /// Registers at the start: those of known outputs have their number.
    registers: Vec<f64>,
    steps: Vec<Step>,
    /// The register of each output.
    outputs: [usize; N],
}

impl<const N: usize> Program<N> {
    /// The operations that `outputs` need.
    pub(crate) fn of(graph: &Graph, outputs: [Symbol<'_>; N]) -> Program<N> {
        let outputs = outputs.map(Symbol::operand);
        let mut operations = graph.operations();
        fuse(&mut operations, &outputs);
        // The operation that needs each result last; the end needs the outputs.
        let mut last: Vec<Option<usize>> = vec![None; operations.len()];
        for output in outputs {
            if let Operand::Result(number) = output {
                last[number] = Some(operations.len());
            }
        }
        for (number, operation) in operations.iter().enumerate().rev() {
            if last[number].is_some() {
                operation.needs().for_each(|needed| _ = last[needed].get_or_insert(number));
            }
        }
        let (mut registers, mut free, mut steps) = (Vec::new(), Vec::new(), Vec::new());
        let mut register_of = vec![0; operations.len()];
        for (number, operation) in operations.iter().enumerate() {
            if last[number].is_none() {
                continue;
            }
            let operation_on = operation.on(&register_of);
            for needed in operation.needs() {
                // Once, also if an operation needs a result twice.
                if last[needed].take_if(|last| *last == number).is_some() {
                    free.push(register_of[needed]);
                }
            }
            let result = free.pop().unwrap_or(registers.len());
            if result == registers.len() {
                registers.push(0.0);
            }
            steps.push(Step { operation: operation_on, result });
            register_of[number] = result;
        }
        let outputs = outputs.map(|output| match output.on(&register_of) {
            Operand::Result(register) => register,
            Operand::Known(bits) => {
                registers.push(f64::from_bits(bits));
                registers.len() - 1
            }
        });
        Program { registers, steps, outputs }
    }
}

/// Replaces sums of which one part is a product that nothing else needs. Both results are rounded as before.
fn fuse(operations: &mut [Operation], outputs: &[Operand]) {
    let mut uses = vec![0; operations.len()];
    let of_operations = operations.iter().flat_map(Operation::needs);
    let of_outputs = outputs.iter().filter_map(|output| output.number());
    of_operations.chain(of_outputs).for_each(|number| uses[number] += 1);
    for number in 0..operations.len() {
        let Operation::Binary(Binary::Add, one, other) = operations[number] else { continue };
        let factors = |operand: Operand| match operations[operand.number().filter(|number| uses[*number] == 1)?] {
            Operation::Binary(Binary::Mul, one, other) => Some((one, other)),
            _ => None,
        };
        // The order of the parts of a sum does not change it.
        let parts = [(one, other), (other, one)];
        let fused = parts.into_iter().find_map(|(part, product)| Some((part, factors(product)?)));
        if let Some((part, (one, other))) = fused {
            operations[number] = Operation::Sum([part, one, other]);
        }
    }
}

impl Operand {
    fn on(self, registers: &[usize]) -> Operand {
        match self {
            Operand::Known(bits) => Operand::Known(bits),
            Operand::Result(number) => Operand::Result(registers[number]),
        }
    }
}

impl Operation {
    fn on(self, registers: &[usize]) -> Operation {
        let on = |operand: Operand| operand.on(registers);
        match self {
            Operation::Input(place) => Operation::Input(place),
            Operation::Binary(binary, one, other) => Operation::Binary(binary, on(one), on(other)),
            Operation::Floor(one) => Operation::Floor(on(one)),
            Operation::Remainder(three) => Operation::Remainder(three.map(on)),
            Operation::Sum(three) => Operation::Sum(three.map(on)),
            Operation::Select(comparison, compared, yes, no) => {
                Operation::Select(comparison, compared.map(on), on(yes), on(no))
            }
        }
    }
}

/// An operand for a step: the same number in each row, or a register.
trait Source: Copy {
    fn at<S: Simd>(self, simd: S, place: (usize, usize)) -> f64x8<S>;
}

impl Source for f64 {
    #[inline(always)]
    fn at<S: Simd>(self, simd: S, _: (usize, usize)) -> f64x8<S> {
        f64x8::splat(simd, self)
    }
}

impl Source for &Column {
    #[inline(always)]
    fn at<S: Simd>(self, simd: S, (group, vector): (usize, usize)) -> f64x8<S> {
        f64x8::load_array_ref(simd, &self.0[group][vector])
    }
}

/// Evaluates `$body` with each `$name` bound to the [`Source`] of an operand.
macro_rules! with_sources {
    ($registers:expr, [], $body:expr) => {
        $body
    };
    ($registers:expr, [$name:ident = $operand:expr $(, $names:ident = $operands:expr)*], $body:expr) => {
        match $operand {
            Operand::Known(bits) => {
                let $name = f64::from_bits(bits);
                with_sources!($registers, [$($names = $operands),*], $body)
            }
            Operand::Result(register) => {
                let $name = &*$registers[register];
                with_sources!($registers, [$($names = $operands),*], $body)
            }
        }
    };
}

/// A receiver of rows, and their outputs.
pub(crate) type Take<'a, const N: usize> = dyn FnMut(Range<usize>, [&[f64]; N]) + 'a;

/// Computes `program` for each row of `inputs`, and passes some rows after the other to `take`, with the outputs.
pub(crate) struct Run<'a, const N: usize> {
    pub(crate) program: &'a Program<N>,
    pub(crate) inputs: &'a [&'a [f64]],
    pub(crate) rows: usize,
    pub(crate) take: &'a mut Take<'a, N>,
}

impl<const N: usize> Vectorized for Run<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Run { program, inputs, rows, take } = self;
        let mut registers: Vec<Box<Column>> = program.registers.iter().map(|number| Column::of(*number)).collect();
        let mut result = Column::of(0.0);
        for start in (0..rows).step_by(ROWS) {
            let rows = start..rows.min(start + ROWS);
            let groups = rows.len().div_ceil(LANES * VECTORS);
            for step in &program.steps {
                if let Operation::Input(place) = step.operation {
                    result.rows_mut()[..rows.len()].copy_from_slice(&inputs[place][rows.clone()]);
                } else {
                    apply(simd, step.operation, &registers, &mut result, groups);
                }
                // The register is overwritten only now, because the operation may need it.
                std::mem::swap(&mut registers[step.result], &mut result);
            }
            take(rows.clone(), program.outputs.map(|register| &registers[register].rows()[..rows.len()]));
        }
    }
}

/// Computes an operation for the first groups of `result`.
#[inline(always)]
fn apply<S: Simd>(simd: S, operation: Operation, registers: &[Box<Column>], result: &mut Column, groups: usize) {
    let groups = groups.min(GROUPS);
    /// Sets each group to `$of`, in which each `$name` is the group of an operand.
    macro_rules! each {
        ([$($name:ident = $operand:expr),*], $of:expr) => {
            with_sources!(registers, [$($name = $operand),*], {
                for group in 0..groups {
                    for vector in 0..VECTORS {
                        $(let $name = $name.at(simd, (group, vector));)*
                        $of.store_array(&mut result.0[group][vector]);
                    }
                }
            })
        };
    }
    match operation {
        Operation::Input(_) => {}
        Operation::Binary(Binary::Add, one, other) => each!([one = one, other = other], (one + other)),
        Operation::Binary(Binary::Sub, one, other) => each!([one = one, other = other], (one - other)),
        Operation::Binary(Binary::Mul, one, other) => each!([one = one, other = other], (one * other)),
        Operation::Binary(Binary::Div, one, other) => each!([one = one, other = other], (one / other)),
        Operation::Binary(Binary::Quotient, one, other) => {
            each!([one = one, other = other], whole(simd, one / other));
        }
        Operation::Binary(Binary::Max, one, other) => {
            each!([one = one, other = other], one.simd_gt(other).select(one, other));
        }
        Operation::Binary(Binary::Min, one, other) => {
            each!([one = one, other = other], one.simd_gt(other).select(other, one));
        }
        Operation::Floor(one) => each!([one = one], whole(simd, one)),
        Operation::Remainder([one, two, by]) => each!([one = one, two = two, by = by], (one - two * by)),
        Operation::Sum([one, two, by]) => each!([one = one, two = two, by = by], (one + two * by)),
        Operation::Select(Comparison::Above, [one, other], yes, no) => {
            each!([one = one, other = other, yes = yes, no = no], one.simd_gt(other).select(yes, no));
        }
        Operation::Select(Comparison::Same, [one, other], yes, no) => {
            each!([one = one, other = other, yes = yes, no = no], one.simd_eq(other).select(yes, no));
        }
    }
}

/// As [`floor`](crate::number::floor).
#[inline(always)]
fn whole<S: Simd>(simd: S, number: f64x8<S>) -> f64x8<S> {
    let whole = f64x8::splat(simd, WHOLE);
    let rounded = (number + whole) - whole;
    rounded.simd_gt(number).select(rounded - f64x8::splat(simd, 1.0), rounded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound::Bound;
    use crate::bounds::Largest;
    use crate::number::Number;
    use crate::vector::{on_baseline, vectorized};
    use fearless_simd::Level;

    /// Formulas with every operation, of which each is needed.
    fn formulas<N: Number>(one: N, other: N) -> [N; 2] {
        let (three, zero) = (N::all(3.0), N::all(0.0));
        let (quotient, rest) = (one * N::all(7.0)).floor().divided(other.floor().max(N::all(1.0)));
        let (known_quotient, known_rest) = N::all(911.0).divided(other.floor() + N::all(1.0));
        let waits = quotient.if_above(zero, quotient * one + rest, rest - one);
        let hidden = N::if_same(N::bounds(Bound::Link), N::bounds(Bound::Issue), one, waits / three);
        let largest = Largest::of([(Bound::Link, one * other), (Bound::Device, hidden)])
            .and([(Bound::Link, known_quotient + known_rest * three), (Bound::Credits, one.min(other))])
            .and_one(one.bound_if_above(other, N::bounds(Bound::Link), N::bounds(Bound::Tags)), one / other);
        let Largest { ns, next_ns, .. } = largest;
        [next_ns.if_above(zero, ns / next_ns, N::all(f64::INFINITY)), next_ns - ns / N::all(4096.0)]
    }

    fn program() -> Program<2> {
        let graph = Graph::default();
        let range = (0.0, 1e6);
        Program::of(&graph, formulas(graph.input(0, range), graph.input(1, range)))
    }

    #[test]
    fn programs_have_the_bits_of_their_formula_with_and_without_avx2() {
        let program = program();
        for rows in [0, 1, 7, 8, 15, 16, 17, ROWS - 1, ROWS, ROWS + 1, 3 * ROWS + 5] {
            let ones: Vec<f64> = (0..rows).map(|row| (row * row % 97) as f64 / 3.0).collect();
            let others: Vec<f64> = (0..rows).map(|row| (row * 31 % 89) as f64 / 7.0).collect();
            for is_baseline in [false, true] {
                let mut found: Vec<[u64; 2]> = Vec::new();
                let take = &mut |rows: Range<usize>, [one, other]: [&[f64]; 2]| {
                    assert_eq!(rows, found.len()..found.len() + one.len());
                    found.extend(one.iter().zip(other).map(|(one, other)| [one.to_bits(), other.to_bits()]));
                };
                let run = Run { program: &program, inputs: &[&ones, &others], rows, take };
                if is_baseline {
                    on_baseline(Level::new(), run);
                } else {
                    vectorized(run);
                }
                let wanted = ones.iter().zip(&others).map(|(one, other)| formulas(*one, *other).map(f64::to_bits));
                assert_eq!(found, wanted.collect::<Vec<_>>());
            }
        }
    }

    fn known<'g>(number: f64) -> Symbol<'g> {
        Symbol::all(number)
    }

    #[test]
    fn operations_that_change_nothing_are_left_out() {
        let steps = |of: fn(Symbol<'_>) -> Symbol<'_>| {
            let graph = Graph::default();
            let program = Program::of(&graph, [of(graph.input(0, (1.0, 100.0)))]);
            program.steps.iter().filter(|step| !matches!(step.operation, Operation::Input(_))).count()
        };
        assert_eq!(steps(|_| known(2.0)), 0, "nothing is computed for a known output");
        assert_eq!(steps(|one| one * known(1.0) + known(0.0) - known(0.0)), 0);
        assert_eq!(steps(|one| one.max(known(1.0)).min(known(100.0))), 0);
        assert_eq!(steps(|one| one.max(known(1.5))), 1);
        assert_eq!(steps(|one| known(0.5).if_above(one, one / known(3.0), one)), 0);
        assert_eq!(steps(|one| known(1.5).if_above(one, known(3.0), one)), 1);
        assert_eq!(steps(|one| one / known(3.0) - one / known(3.0)), 2, "a quotient is computed once");
        assert_eq!(steps(|one| one * known(3.0) + one), 1, "a product and a sum");
        assert_eq!(steps(|one| one * known(3.0) + one * known(3.0)), 2, "the product is needed twice");
    }

    #[test]
    fn a_zero_with_a_sign_keeps_it() {
        let graph = Graph::default();
        // Minus zero plus zero is zero.
        let program = Program::of(&graph, [graph.input(0, (0.0, 1.0)) + Symbol::all(0.0)]);
        let mut found = f64::NAN;
        let take = &mut |_: Range<usize>, [sum]: [&[f64]; 1]| found = sum[0];
        vectorized(Run { program: &program, inputs: &[&[-0.0]], rows: 1, take });
        assert_eq!(found.to_bits(), 0.0_f64.to_bits());
    }
}
