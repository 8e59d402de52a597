"""Finds the element spec of the datasets that the function of `group_by_window` makes from groups."""

from collections.abc import Callable, Sequence
from typing import Any

from evenfeed.core.side_effects import Effects, ProbeAbandoned
from evenfeed.core.structure import DATA, map_structure
from evenfeed.plan.node import Node
from evenfeed.plan.ordering import Repeat, Take
from evenfeed.plan.windows import DatasetSpec
from evenfeed.runtime.functions.called_functions import called_in
from evenfeed.runtime.functions.probing import looked_at, of_any_length


def first_groups(plan: Node, size: int) -> list[Node]:
    """Return groups of the first element, for a function that needs elements: one with a single element, a full one."""
    first = Take(plan, 1)
    return [first, Repeat(first, size)] if size > 1 else [first]


def spec_of_groups(
    reduced: Callable[[int, Node], Node], empty: Node, first: Sequence[Node], effects: Effects
) -> Any:
    """Return the element spec of reduced groups.

    Tries empty groups of two keys, because the spec may depend on the key. A function that fails on them may need
    elements, as `get_single_element` does: it gets groups of the first one.
    """
    try:
        plan, spec = _of_empty_groups(reduced, empty, effects)
    except (TypeError, AttributeError, NameError):  # Elements would not help.
        raise
    except Exception as error:  # noqa: BLE001 - raised if the first elements do not help either
        plan = _of_first_group(reduced, first, error)
        spec = map_structure(of_any_length, plan.element_spec, rules=DATA)
    for called in called_in(plan):
        effects.include(called.effects)
    return spec


def _of_empty_groups(
    reduced: Callable[[int, Node], Node], empty: Node, effects: Effects
) -> tuple[Node, Any]:
    try:
        with looked_at(reduced, effects):
            plan, other = _under_two_keys(reduced, empty)
            return plan, _common_spec(plan, other)
    except (
        ProbeAbandoned
    ):  # It calls Python code that needs concrete values, so run it on an empty group.
        plan = reduced(0, empty)
        return plan, plan.element_spec


def _of_first_group(
    reduced: Callable[[int, Node], Node], groups: Sequence[Node], error: Exception
) -> Node:
    """Return the plan for the first of these groups that the function accepts; raise the error if there is none."""
    for group in groups:
        try:
            return _under_two_keys(reduced, group)[0]
        except Exception:  # noqa: BLE001, S112 - the error for an empty group is raised instead
            continue
    raise error


def _under_two_keys(reduced: Callable[[int, Node], Node], group: Node) -> tuple[Node, Node | None]:
    """Return the plans of a group for two keys; the second is None if only one key works."""
    plans: list[Node] = []
    errors: list[Exception] = []
    # Three tries: the function may accept only keys that exist, and key 0 fails as a batch size.
    for key in (0, 1, 2):
        try:
            plans.append(reduced(key, group))
        except Exception as error:  # noqa: BLE001 - one working key is enough
            errors.append(error)
        if len(plans) == 2:
            break
    if not plans:
        raise errors[0]
    return plans[0], plans[1] if len(plans) > 1 else None


def _common_spec(plan: Node, other: Node | None) -> Any:
    spec = DatasetSpec(plan.element_spec)
    others = [] if other is None else [DatasetSpec(other.element_spec)]
    common = spec.most_specific_common_supertype(others)
    return plan.element_spec if common is None else common.element_spec
