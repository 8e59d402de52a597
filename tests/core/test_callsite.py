import functools
import inspect
import os
import threading

import jax
import pytest

from evenfeed.core.callsite import Origin, where_called
from evenfeed.core.conversion import to_array
from evenfeed.dataset import Dataset, plan_of


def line_here() -> int:
    return inspect.currentframe().f_back.f_lineno


def test_the_callers_line_is_found():
    assert where_called() == Origin(__file__, line_here())


def test_frames_of_evenfeed_are_skipped():
    with pytest.raises(ValueError, match=f"at:  .*test_callsite.py:{line_here() + 1}\n"):
        to_array(object())


def test_a_node_knows_the_line_that_created_it():
    dataset = Dataset.range(3)
    assert plan_of(dataset).origin == Origin(__file__, line_here() - 1)


def test_user_code_called_by_functools_is_found():
    convert = functools.singledispatch(to_array)
    with pytest.raises(ValueError, match=f"at:  .*test_callsite.py:{line_here() + 1}\n"):
        convert(object())


def test_user_code_called_by_jax_is_found():
    with pytest.raises(ValueError, match=f"at:  .*test_callsite.py:{line_here() + 1}\n"):
        jax.tree.map(to_array, [object()])


def test_a_line_inside_a_jitted_function_is_user_code():
    def step(x):
        to_array(object())
        return x

    with pytest.raises(ValueError, match=f"at:  .*test_callsite.py:{line_here() - 3}\n"):
        jax.jit(step)(1)


def typed_in(source: str, filename: str, module: str = "__main__") -> Origin:
    names = {"__name__": module, "where_called": where_called}
    exec(compile(source, filename, "exec"), names)
    return names["found"]


@pytest.mark.parametrize("filename", ["<stdin>", "<string>", "<ipython-input-3>"])
def test_typed_in_code_is_user_code(filename):
    assert typed_in("\n\nfound = where_called()", filename) == Origin(filename, 3)


def test_a_doctest_in_evenfeed_is_user_code():
    found = typed_in("found = where_called()", "<doctest evenfeed.dataset[0]>", "evenfeed.dataset")
    assert str(found) == "<doctest evenfeed.dataset[0]>:1"


@pytest.mark.parametrize("module", ["jax.tree_util", "functools", "numpy", "evenfeed.plan.node"])
def test_library_code_is_not_user_code(module):
    filename = "<string>" if module.startswith("evenfeed") else "/lib/python/it.py"
    found = typed_in("found = where_called()", filename, module)
    assert found.filename == __file__


def test_without_user_code_the_nearest_library_line_is_found():
    found = []
    thread = threading.Thread(target=lambda: found.append(where_called()))
    thread.start()
    thread.join()
    assert found[0].filename == __file__

    thread = threading.Thread(target=functools.partial(_put, found))
    thread.start()
    thread.join()
    assert found[1].filename == threading.__file__


_put = eval("lambda found: found.append(where_called())", {"where_called": where_called})
_put.__globals__["__name__"] = "threading"
_put = type(_put)(
    _put.__code__.replace(co_filename=threading.__file__), _put.__globals__, closure=None
)


def test_a_path_below_the_working_directory_is_short(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert str(Origin(str(tmp_path / "jobs" / "train.py"), 7)) == f"jobs{os.sep}train.py:7"


def test_a_path_elsewhere_is_shown_whole(tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    assert str(Origin(str(tmp_path / "train.py"), 7)) == f"{tmp_path}{os.sep}train.py:7"


def test_a_deleted_working_directory_leaves_the_path_unchanged(tmp_path, monkeypatch):
    def lost(path):
        raise FileNotFoundError(path)

    monkeypatch.setattr(os.path, "relpath", lost)
    assert str(Origin("/home/me/train.py", 7)) == "/home/me/train.py:7"


def test_typed_in_code_has_no_path_to_shorten():
    assert str(Origin("<stdin>", 4)) == "<stdin>:4"
