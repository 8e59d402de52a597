"""Functions of maps in a row, run on a Block as one.

Only functions that NumPy computes to the last bit are joined (`column_arithmetic.py`): a program that XLA compiles for two
functions may round differently from two programs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from time import perf_counter
from typing import Any, final

import numpy as np

from evenfeed.core.block import Block, Positions
from evenfeed.core.conversion import Array
from evenfeed.core.specs import TensorSpec
from evenfeed.runtime.functions.arithmetic.column_program import ColumnArithmetic
from evenfeed.runtime.functions.arithmetic.joined_steps import JoinedSteps
from evenfeed.runtime.functions.blockwise import assembled, free_columns
from evenfeed.runtime.functions.compiled import FixedLengthProgram
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.functions.vectorise import Row
from evenfeed.runtime.operator import FailedRow


@final
class JoinedFunctions:
    """Functions of which each gets what the one before returns.

    Args:
        functions: Functions that are pure and run on whole Blocks.
    """

    def __init__(self, functions: Sequence[RowFunction]) -> None:
        self.functions = tuple(functions)
        self._stages: list[RowFunction | _Stage] = []

    def rows(self, block: Block, first: int | Positions = 0) -> Block:
        """Return the results of the last function for a whole Block.

        Args:
            block: The elements.
            first: The number of the first element, or the numbers of all, for the notes of errors.

        Raises:
            FailedRow: A function failed at an element.
        """
        if not self._stages:
            self._stages = _stages(self.functions)
        return _in_turn(self._stages, block, first)


def _in_turn(
    stages: "Sequence[RowFunction | _Stage]", block: Block, first: int | Positions
) -> Block:
    for number, stage in enumerate(stages, 1):
        try:
            block = stage.rows(block, first)
        except FailedRow as failed:
            before = failed.before
            if before is not None and number < len(stages):
                before = _in_turn(stages[number:], before, first)
            raise FailedRow(failed.index, before, failed.error, damaged=failed.damaged) from None
    return block


def _stages(functions: Sequence[RowFunction]) -> "list[RowFunction | _Stage]":
    """Join the functions that can be joined with their neighbours."""
    found: list[RowFunction | _Stage] = []
    pairs = [(function, _simple(function)) for function in functions]
    for is_simple, group in groupby(pairs, lambda pair: pair[1] is not None):
        members = list(group)
        if not is_simple or len(members) == 1:
            found += [function for function, _ in members]
            continue
        simple = [one for _, one in members if one is not None]
        found.append(_Stage([function for function, _ in members], _known(members[-1][0], simple)))
    return found


@final
@dataclass(frozen=True, slots=True)
class _Simple:
    """The program of a function that NumPy computes, and the columns that it gets."""

    program: FixedLengthProgram
    rows: tuple[Row | None, ...]

    @property
    def numeric(self) -> list[int]:
        return [index for index, row in enumerate(self.rows) if row is not None]


def _simple(function: RowFunction) -> _Simple | None:
    """Return how NumPy computes a function; None if it does not, or shapes vary."""
    if function.traced is None:
        return None
    compiled, kernels = function.traced
    if kernels.takes_more:
        return None
    rows: list[Row | None] = []
    for spec, is_handle in zip(kernels.specs, kernels.handles, strict=True):
        if is_handle or not isinstance(spec, TensorSpec):
            rows.append(None)
        elif spec.shape.is_fully_defined():
            rows.append(Row(tuple(length or 0 for length in spec.shape), spec.dtype))
        else:
            return None
    program = compiled.program(tuple(rows)) if any(rows) else None
    if program is None or not (program.found.arithmetic or program.computes_nothing):
        return None
    return _Simple(program, tuple(rows))


@final
@dataclass(frozen=True, slots=True)
class JoinedProgram:
    """The calls of several functions as one.

    Attributes:
        programs: The programs of the functions.
        rows: The shapes and dtypes of the columns of a Block; None for those that NumPy cannot compute with.
        arithmetic: The calls; None if nothing is computed.
        parts: What comes out: a Row (computed), a Handle (passed through), a constant or None.
    """

    programs: tuple[FixedLengthProgram, ...]
    rows: tuple[Row | None, ...]
    arithmetic: ColumnArithmetic | None
    parts: Sequence[Any]


def _known(last: RowFunction, simple: Sequence[_Simple]) -> JoinedProgram:
    """Return the program of a chain, which is kept with its last function for other passes."""
    programs, record = tuple(one.program for one in simple), last.record
    found = record.joined
    if not isinstance(found, JoinedProgram) or found.programs != programs:
        found = record.joined = _joined(programs, simple)
    return found


def _joined(programs: tuple[FixedLengthProgram, ...], simple: Sequence[_Simple]) -> JoinedProgram:
    kinds = [None if row is None else (row.shape, row.dtype) for row in simple[0].rows]
    chain = JoinedSteps(kinds)
    for one in simple:
        chain.add(one.numeric, one.program.found.arithmetic, one.program.found.parts)
    rows = simple[0].rows
    arithmetic = chain.joined()
    kinds = iter([] if arithmetic is None else arithmetic.body.results)
    parts = [Row(*next(kinds)[1]) if isinstance(part, int) else part for part in chain.parts]
    return JoinedProgram(programs, rows, arithmetic, parts)


@final
class _Stage:
    """Functions that run as one on Blocks of the columns that they were joined for, and else one after the other."""

    def __init__(self, functions: Sequence[RowFunction], program: JoinedProgram) -> None:
        self._functions = functions
        self._program = program

    def rows(self, block: Block, first: int | Positions) -> Block:
        """Return the results of the last function."""
        start = perf_counter()
        done = self._at_once(block)
        if done is None:
            return _in_turn(self._functions, block, first)
        each = (perf_counter() - start) / len(self._functions)
        for function in self._functions:
            function.meter.add(block.length, each)
        return done

    def _at_once(self, block: Block) -> Block | None:
        program = self._program
        columns = _columns(block, program.rows)
        if columns is None:
            return None
        if program.arithmetic is None:
            return assembled(block, program.parts, ())
        free = free_columns(block, program.rows, program.parts)
        try:
            found = program.arithmetic.run(columns, block.length, free=free)
        except Exception:  # noqa: BLE001 - memory is short: the functions run one after the other
            return None
        return assembled(block, program.parts, found)


def _columns(block: Block, rows: Sequence[Row | None]) -> list[Array] | None:
    """Return the columns to compute with; None if one has another shape, or is in pieces."""
    found: list[Array] = []
    for column, row in zip(block.columns, rows, strict=True):
        if row is None:
            continue
        if type(column) is not np.ndarray:
            return None
        if column.shape[1:] != row.shape or column.dtype != row.dtype:
            return None
        found.append(column)
    return found
